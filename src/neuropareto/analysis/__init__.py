"""What the paper's appendices derive and recommend, measured on runs: bound, calibration, tuning.

Each module is one tool: functions from values to a frozen result that prints itself, and a
``command`` for ``neuropareto analyse``. The pages docs/theory.md, calibration.md, dropout.md,
tuning.md, dynamics.md and timing.md explain them.
"""
