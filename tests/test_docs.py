"""Every Python block of README and docs runs, top to bottom, one namespace a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "benchmarks").glob("*.md")),
]  # fmt: skip
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "__docs__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        code = compile("\n" * line + block.group(1), str(page), "exec", dont_inherit=True)
        exec(code, names)
    assert "```py\n" not in text, "mark Python blocks as ```python so that they are run"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    dead = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not dead, dead
