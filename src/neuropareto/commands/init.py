"""neuropareto init: write a study file, an input template and a small simulator to start from.

The three files run as they are; replace the simulator by yours.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

STUDY = r"""# A study: what is varied, what is wanted, and the program that is asked.
# `neuropareto run` starts it and goes on with it; `neuropareto status` says how far it is.

name = "my study"
budget = 60     # evaluations in all
seed = 1
workers = 2     # evaluations at the same time

[variables]
length = { lower = 0.5, upper = 4.0 }
ribs = { lower = 1, upper = 12, type = "integer" }
shape = { choices = ["round", "square"] }
"wall[1..4]" = { lower = 1e-3, upper = 1e-1, log = true } # wall[1], wall[2], wall[3], wall[4]

[objectives] # say for each where its number stands in what the program leaves
mass = { direction = "minimize", file = "out.csv", column = "mass" }
capacity = { direction = "maximize", pattern = '^capacity *= *(\S+)' } # on standard output
# cost = { direction = "minimize", file = "out.json", json = "summary.cost" }

[constraints]
stress = { at_most = 1.0, file = "out.csv", column = "stress" }

[algorithm]
name = "neuropareto"

[evaluation] # an argv list, never a shell; every evaluation has a directory of its own
command = ["awk", "-f", "{study}/simulator.awk", "input.txt"]
input = { file = "input.txt", template = "input.template" }
wall = "10 min"   # then the program and its children are ended
# memory = "4 GB"
# files = ["table.dat"]   # copied into every directory; {study}/... names a file without copying
"""

TEMPLATE = """\
length {x.length}
ribs {x.ribs}
shape {x.shape}
walls {x.wall[*]:.6f}
"""

SIMULATOR = r"""# A made-up box girder. Put your own program in its place.
$1 == "length" { length_ = $2 }
$1 == "ribs"   { ribs = $2 }
$1 == "shape"  { factor = ($2 == "round") ? 0.8 : 1.0 }
$1 == "walls"  { for (i = 2; i <= NF; i++) { wall += $i; inverse += 1 / $i } }
END {
    mass = 100 * factor * length_ * wall + 0.4 * ribs
    capacity = 500 * factor * length_ * sqrt(wall * ribs) / (1 + 1e-4 * inverse)
    print "mass,stress" > "out.csv"
    print mass "," length_ / (60 * factor * wall) > "out.csv"
    print "capacity = " capacity
}
"""


def main(argv: Sequence[str]) -> int:
    """Write the files; refuses to overwrite any."""
    parser = argparse.ArgumentParser(prog="neuropareto init", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="default: this one")
    options = parser.parse_args(argv)
    texts = {"study.toml": STUDY, "input.template": TEMPLATE, "simulator.awk": SIMULATOR}
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in texts:
        if (options.folder / name).exists():
            raise ValueError(
                f"{str(options.folder / name)!r} exists already; choose another folder."
            )
    for name, text in texts.items():
        (options.folder / name).write_text(text, encoding="utf-8")
        print(options.folder / name)
    where = "" if options.folder == Path() else f" {shlex.quote(str(options.folder))}"
    print(f"Now: neuropareto run{where}")
    return 0
