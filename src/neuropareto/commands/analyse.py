"""neuropareto analyse: what the paper's appendices derive, measured on runs."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping, Sequence

PARTS: Mapping[str, str] = {
    "observe": "neuropareto.analysis.watch:command",
    "bound": "neuropareto.analysis.bound_report:command",
    "rho": "neuropareto.analysis.fidelity:command",
    "information": "neuropareto.analysis.information:command",
    "dynamics": "neuropareto.analysis.dynamics:command",
    "slice": "neuropareto.analysis.slices:command",
    "timing": "neuropareto.analysis.timing:command",
    "calibration": "neuropareto.analysis.calibration_command:command",
    "dropout-reference": "neuropareto.analysis.dropout_reference:command",
}
"""Name of a tool -> where its ``command(argv) -> exit code`` is; imported when it is called."""


def main(argv: Sequence[str]) -> int:
    """Run one of the tools; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="neuropareto analyse",
        description=__doc__,
        usage="neuropareto analyse TOOL ...",
        epilog="`neuropareto analyse TOOL --help` says more about each.",
    )
    parser.add_argument("tool", choices=PARTS, metavar="TOOL", help=", ".join(PARTS))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    return tool(options.tool)(list(options.arguments))


def tool(name: str) -> Callable[[list[str]], int]:
    """The ``command`` of the tool called ``name``."""
    module, _, function = PARTS[name].partition(":")
    found: Callable[[list[str]], int] = getattr(importlib.import_module(module), function)
    return found
