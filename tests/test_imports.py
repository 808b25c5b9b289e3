"""Imports go one way: given and known <- believed <- decided <- runs <- measured <- reached."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import neuropareto

ROOT = Path(neuropareto.__file__).parent
LAYERS = [
    ("given", {"space", "problem", "pareto", "hypervolume", "archive", "randomness", "memory", "adam",
               "progress"}),
    ("believed", {"classifier", "rank_network", "dropout", "calibration", "surrogate"}),
    ("decided", {"variation", "candidates", "screening", "acquisition", "selection", "moves", "goals",
                 "exploration", "viability", "assessment"}),
    ("runs", {"algorithm", "neuropareto", "past", "retreat", "second", "stages", "ablations", "nsga2",
              "optimizer", "result", "minimize", "study", "threads"}),
    ("measured", {"problems", "peers", "bench", "analysis", "testing", "algorithms"}),
    ("reached", {"cli", "commands", "plots", "report", "demo", "__init__"}),
]  # fmt: skip
LEVEL = {name: level for level, (_, names) in enumerate(LAYERS) for name in names}


def imports_of(path: Path) -> set[str]:
    """The first-level parts of this package that a file imports at module level."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("neuropareto.")}
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "neuropareto":
                found |= {f"neuropareto.{a.name}" for a in node.names if a.name[:2] != "__"}
            elif node.module.startswith("neuropareto."):
                found.add(node.module)
    return {name.split(".")[1] for name in found}


def test_every_part_has_a_layer() -> None:
    parts = {p.stem if p.is_file() else p.name for p in ROOT.iterdir()}
    parts = {p for p in parts if p not in {"__pycache__", "py"}}
    assert parts <= LEVEL.keys(), f"give a layer to {sorted(parts - LEVEL.keys())}"


def test_imports_point_downwards_only() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in imports_of(path):
            if LEVEL.get(other, 99) > LEVEL[part]:
                wrong.append(f"{path.relative_to(ROOT)} imports {other}")
    assert not wrong, wrong


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, neuropareto; print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
