"""The commands of ``neuropareto``, one file each with ``main(argv) -> exit code``."""
