"""neuropareto analyse: a table of tools, each imported when it is called."""

from __future__ import annotations

import pytest

from neuropareto.commands.analyse import PARTS, main, tool


@pytest.mark.parametrize("name", PARTS)
def test_every_tool_is_there_and_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        tool(name)(["--help"])
    assert stop.value.code == 0 and f"analyse {name}" in capsys.readouterr().out


def test_an_unknown_tool_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "bound" in capsys.readouterr().err
