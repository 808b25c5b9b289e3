"""The command line as people use it: init, run, status, ask, tell, export, report, doctor."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto import cli
from neuropareto.study import Study
from neuropareto.study.file import read
from neuropareto.study.owner import Owner
from neuropareto.study.runner import run as run_study

HAND = """
name = "laboratory"
budget = 8
seed = 3
initial = 4
[variables]
heat = { lower = 20.0, upper = 90.0 }
salt = { choices = ["NaCl", "KCl"] }
[objectives]
yield = "maximize"
price = "minimize"
[constraints]
ph = { at_least = 6.5 }
[algorithm]
name = "nsga2"
population = 4
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(signal, "signal", _keeping(signal.signal))


def _keeping(real: Any) -> Any:
    """`run` claims SIGTERM for the whole process; in a test it must not."""

    def claim(number: int, handler: Any) -> Any:
        frame = sys._getframe(1).f_globals["__name__"]
        return None if frame == "neuropareto.commands.run" else real(number, handler)

    return claim


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "study.toml").write_text(HAND)
    return folder


@pytest.fixture
def girder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """What `init` writes, with a quick algorithm and an engine that starts at once."""
    assert cli.main(["init", str(tmp_path / "girder")]) == 0
    path = tmp_path / "girder" / "study.toml"
    text = path.read_text().replace('name = "neuropareto"', 'name = "nsga2"')
    path.write_text(text.replace("workers = 2", 'engine = "threads"\nworkers = 2'))
    capsys.readouterr()
    return path.parent


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def told(text: Any, monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    monkeypatch.setattr(
        sys, "stdin", io.StringIO(text if isinstance(text, str) else json.dumps(text))
    )
    return cli.main(["tell", str(folder)])


# -- by hand --


def test_ask_and_tell_from_a_laboratory(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ask", str(lab), "-n", "3"]) == 0
    trials = said(capsys)["trials"]
    assert [t["id"] for t in trials] == [0, 1, 2]
    assert set(trials[0]["x"]) == {"heat", "salt"} and trials[0]["x"]["salt"] in ("NaCl", "KCl")
    results = [
        {"id": 0, "objectives": {"price": 2.0, "yield": 0.5}, "constraints": {"ph": 7.0}},
        {"id": 1, "objectives": [0.25, 1.0], "constraints": [0.5]},
        {"id": 2, "failed": "the flask broke"},
        {"x": {"heat": 50, "salt": "KCl"}, "objectives": [0.9, 9], "constraints": {"ph": 6.0}},
    ]
    assert told({"trials": results}, monkeypatch, lab) == 0
    assert said(capsys) == {"told": 3, "failed": 1, "finished": 3, "pending": 0}
    with Study.view(lab / "study.db") as study:
        result = study.result()
    np.testing.assert_array_equal(result.F, [[0.5, 2.0], [0.25, 1.0], [0.9, 9.0]])
    np.testing.assert_array_equal(result.G[:, 0], [-0.5, 0.5, 0.5])
    assert result.failures[0].reason == "the flask broke"
    assert cli.main(["ask", str(lab), "-n", "2"]) == 0
    fresh = said(capsys)
    assert cli.main(["ask", str(lab), "--pending"]) == 0
    assert said(capsys) == fresh


@pytest.mark.parametrize(
    "entry",
    [
        "nonsense",
        "[" * 100_000,
        "7",
        '{"trials": 3}',
        '[{"id": 0}]',
        '[{"id": 0, "objectives": [1]}]',
        '[{"id": 0, "objectives": [1, "two"], "constraints": [0]}]',
        '[{"id": 0, "objectives": {"yield": 1, "cost": 2}, "constraints": [0]}]',
        '[{"id": 0, "objectives": [1, 2]}]',
        '[{"id": 99, "objectives": [1, 2], "constraints": [0]}]',
        '[{"id": true, "objectives": [1, 2], "constraints": [0]}]',
        '[{"id": [], "objectives": [1, 2], "constraints": [0]}]',
        '[{"id": 0, "x": {}, "objectives": [1, 2], "constraints": [0]}]',
        '[{"x": {"heat": 500, "salt": "KCl"}, "objectives": [1, 2], "constraints": [0]}]',
        '[{"x": {"heat": null, "salt": "KCl"}, "objectives": [1, 2], "constraints": [0]}]',
        '[{"x": 5, "objectives": [1, 2], "constraints": [0]}]',
        '[{"id": 0, "objectives": [1, 2], "constraints": [0], "extra": 1}]',
        '[{"id": 0, "failed": "a"}, {"id": 0, "failed": "b"}]',
        '[{"id": 0, "failed": "fine"}, {"id": 1, "objectives": []}]',
        '[{"id": 0, "objectives": [[1], [2]], "constraints": [0]}]',
        '[{"id": 0, "objectives": [1, 2], "constraints": [[0]]}]',
        '[{"id": 0, "failed": true}]',
        '[{"id": 0, "failed": ""}]',
        '[{"id": 0, "failed": {}}]',
        '[{"id": 0, "failed": false}]',
        '[{"id": 0, "failed": "broke", "objectives": [1, 2], "constraints": [0]}]',
        '[{"id": 0, "failed": "broke", "constraints": [0]}]',
        '[{"x": {"heat": 50, "salt": "KCl", "pepper": 1}, "failed": "a"}]',
        '[{"x": {"heat": 1e999, "salt": "KCl"}, "failed": "a"}]',
        '[{"x": {"heat": 1' + 400 * "0" + ', "salt": "KCl"}, "failed": "a"}]',
    ],
)
def test_wrong_results_are_refused_and_nothing_is_recorded(
    lab: Path, entry: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ask", str(lab), "-n", "2"]) == 0
    capsys.readouterr()
    assert told(entry, monkeypatch, lab) == 1
    output = capsys.readouterr()
    assert output.err.startswith("neuropareto: ") and len(output.err) < 700
    with Study.view(lab / "study.db") as study:
        assert study.finished == 0 and len(study.pending) == 2


def test_a_point_that_is_told_already_spoils_the_whole_input(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {"objectives": [1, 2], "constraints": [0]}
    assert cli.main(["ask", str(lab), "-n", "3"]) == 0
    first, second, _ = said(capsys)["trials"]
    assert told([{"id": 0, **values}], monkeypatch, lab) == 0
    for entries in (
        [{"id": 1, **values}, {"x": first["x"], **values}],
        [{"id": 1, **values}, {"x": second["x"], **values}],
        [{"x": second["x"], **values}, {"id": 1, **values}],
        [{"id": 2, **values}, {"x": second["x"], **values}, {"x": second["x"], "failed": "no"}],
    ):
        capsys.readouterr()
        assert told(entries, monkeypatch, lab) == 1
        message = capsys.readouterr().err
        assert f"Entry {len(entries) - 1}: " in message and "Nothing was recorded." in message
        with Study.view(lab / "study.db") as study:
            assert study.finished == 1 and study.imported == 0
    own = {"x": {"heat": 50, "salt": "KCl"}, **values}
    capsys.readouterr()
    assert told([own, own, {"x": second["x"], **values}], monkeypatch, lab) == 0
    assert said(capsys) == {"told": 3, "failed": 0, "finished": 2, "pending": 1}


def test_a_study_by_hand_is_taken_over_from_a_dead_host(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ask", str(lab), "-n", "2"]) == 0
    (lab / "a.csv").write_text("heat,salt,yield,price,g1\n30,KCl,1,2,0\n")
    (lab / "told.json").write_text('[{"id": 0, "failed": "broke"}]')
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    for argv in (
        ["ask", str(lab)],
        ["tell", str(lab), "--from", str(lab / "told.json")],
        ["import", str(lab), str(lab / "a.csv")],
    ):
        gone = replace(Owner.here(), host="elsewhere", boot="other", claimed=now)
        with closing(sqlite3.connect(lab / "study.db")) as file, file:
            file.execute("INSERT OR REPLACE INTO owner VALUES (1, ?)", (gone.to_json(),))
        capsys.readouterr()
        assert cli.main(argv) == 1
        assert "--take-over" in capsys.readouterr().err
        now += 3600
        assert cli.main([*argv, "--take-over"]) == 0


def test_not_failed_is_not_a_failure(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["ask", str(lab), "-n", "2"])
    capsys.readouterr()
    entries = [
        {"id": k, "failed": no, "objectives": [5, 6], "constraints": [0]}
        for k, no in enumerate((False, None))
    ]
    assert told(entries, monkeypatch, lab) == 0
    assert said(capsys) == {"told": 2, "failed": 0, "finished": 2, "pending": 0}


def test_what_is_no_text_is_named(
    lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab / "photo.json").write_bytes(b"\xff\xd8\xff")
    assert cli.main(["tell", str(lab), "--from", str(lab / "photo.json")]) == 1
    assert "neuropareto: photo.json is no text in UTF-8" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    assert cli.main(["tell", str(lab)]) == 1
    assert "neuropareto: The input is no text in UTF-8" in capsys.readouterr().err


def test_nan_told_by_hand_is_a_failure(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["ask", str(lab)])
    capsys.readouterr()
    entry = '[{"id": 0, "objectives": [NaN, 1], "constraints": [0]}]'
    assert told(entry, monkeypatch, lab) == 0
    assert said(capsys) == {"told": 0, "failed": 1, "finished": 1, "pending": 0}
    with Study.view(lab / "study.db") as study:
        assert len(study.result().failures) == 1


def test_a_study_for_the_hand_cannot_be_run(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", str(lab)]) == 1
    assert "`neuropareto ask` and `neuropareto tell`" in capsys.readouterr().err


# -- the whole life of a study --


def test_from_init_to_report(
    girder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["status", str(girder)]) == 0
    assert "not begun" in capsys.readouterr().out
    assert cli.main(["run", str(girder), "--trust", "--budget", "12", "--quiet"]) == 0
    assert "12 evaluations" in capsys.readouterr().err
    assert cli.main(["run", str(girder), "--budget", "16", "--quiet"]) == 0, "trust is remembered"
    capsys.readouterr()
    assert cli.main(["status", str(girder), "--json"]) == 0
    state = said(capsys)
    assert (state["finished"], state["budget"], state["pending"]) == (16, 60, 0)
    assert state["objectives"] == ["mass", "capacity"] and state["failed"] == {}
    assert cli.main(["status", str(girder / "study.db")]) == 0
    assert "evaluations: 16" in capsys.readouterr().out

    for name in ("all.csv", "all.json"):
        assert cli.main(["export", str(girder), str(tmp_path / name)]) == 0
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert len(rows) == 16 and {"length", "wall[3]", "mass", "capacity"} <= set(rows[0])
    assert json.loads((tmp_path / "all.json").read_text())
    assert cli.main(["export", str(girder), str(tmp_path / "all.what")]) == 1

    assert cli.main(["report", str(girder)]) == 0
    assert Path(capsys.readouterr().out.split("\n")[0]) == girder / "study.html"
    assert "capacity" in (girder / "study.html").read_text()
    assert cli.main(["doctor", str(girder)]) == 0
    assert "intact" in capsys.readouterr().out

    other = tmp_path / "other"
    cli.main(["init", str(other)])
    toml = (other / "study.toml").read_text().replace('"neuropareto"', '"random"')
    (other / "study.toml").write_text(toml)
    assert cli.main(["import", str(other), str(tmp_path / "all.csv")]) == 0
    assert "16 results" in capsys.readouterr().err
    with Study.view(other / "study.db") as study:
        assert study.imported == 16 and study.finished == 0


def test_a_study_is_imported_from_another_and_stays_as_it_is(
    girder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", str(girder), "--trust", "--budget", "6", "--quiet"]) == 0
    before = (girder / "study.db").read_bytes()
    (tmp_path / "new.toml").write_text(
        (girder / "study.toml").read_text().split("[evaluation]")[0]
    )
    assert cli.main(["import", str(tmp_path / "new.toml"), str(girder / "study.db")]) == 0
    assert "6 results and 0 failures taken in" in capsys.readouterr().err
    assert (girder / "study.db").read_bytes() == before


def test_no_output_goes_into_the_study_itself(
    lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["ask", str(lab), "-n", "3"]) == 0
    before = (lab / "study.db").read_bytes()
    monkeypatch.chdir(lab)
    for argv in (
        ["export", "--format", "csv", ".", "study.db"],
        ["export", "--format", "json", ".", "study.toml"],
        ["export", "--format", "json", "study.toml", "../lab/study.db-wal"],
        ["export", "--format", "optuna", ".", "study.db"],
        ["export", "--format", "optuna", ".", "sqlite:///study.toml"],
        ["report", ".", "-o", "study.db"],
        ["report", "study.db", "-o", str(lab / "study.db-shm")],
        ["report", ".", "-o", "study.toml"],
    ):
        assert cli.main(argv) == 1, argv
        assert "write to another file" in capsys.readouterr().err
    assert (lab / "study.db").read_bytes() == before
    assert (lab / "study.toml").read_text() == HAND


def test_a_study_exported_twice_to_optuna_is_one_sentence(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("optuna")
    assert cli.main(["ask", str(lab)]) == 0
    output = str(lab / "all.sqlite3")
    assert cli.main(["export", str(lab), output]) == 0
    assert cli.main(["export", str(lab), output]) == 1
    assert "holds a study 'laboratory' already" in capsys.readouterr().err


def test_before_the_start_people_hear_how_to_begin(
    lab: Path, girder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for folder, command in ((lab, "neuropareto ask"), (girder, "neuropareto run")):
        for argv in (
            ["ask", str(folder), "--pending"],
            ["export", str(folder), str(tmp_path / "a.csv")],
            ["report", str(folder)],
            ["doctor", str(folder)],
        ):
            assert cli.main(argv) == 1, argv
            assert f"study.toml: not begun; start it with `{command}`" in capsys.readouterr().err
        assert cli.main(["status", str(folder)]) == 0
        assert command in capsys.readouterr().out
    (tmp_path / "empty.db").touch()
    for name in ("nothing.db", "empty.db"):
        for verb in ("status", "ask", "doctor", "report"):
            assert cli.main([verb, str(tmp_path / name)]) == 1
            message = capsys.readouterr().err
            assert "neuropareto init" in message and "Study.create" not in message


def test_the_state_is_json_before_the_start_and_with_values_beyond_all_measure(
    lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main(["status", str(lab), "--json"]) == 0
    assert said(capsys) == {"begun": False, "budget": 8}
    cli.main(["ask", str(lab), "-n", "3"])
    for k, f in enumerate(([-1e200, -1e200], [1e200, 1e200], [-1e308, -1e308])):
        assert told([{"id": k, "objectives": f, "constraints": [0]}], monkeypatch, lab) == 0
    capsys.readouterr()
    assert cli.main(["status", str(lab), "--json"]) == 0
    text = capsys.readouterr().out
    state = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in the JSON"))
    assert state["begun"] and state["finished"] == 3 and state["hypervolume"] is None
    assert cli.main(["status", str(lab)]) == 0


def test_init_overwrites_nothing(girder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (girder / "input.template").write_text("mine")
    assert cli.main(["init", str(girder)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert (girder / "input.template").read_text() == "mine"


def test_a_damaged_study_is_found_and_rescued(
    girder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cli.main(["run", str(girder), "--trust", "--budget", "10", "--quiet"])
    data = bytearray((girder / "study.db").read_bytes())
    data[data.index(b"told", data.index(b"started"))] ^= 0xFF  # somewhere among the events
    (girder / "study.db").write_bytes(data)
    capsys.readouterr()
    assert cli.main(["doctor", str(girder / "study.db")]) == 1
    assert "DAMAGED" in capsys.readouterr().out
    new = tmp_path / "rescued.db"
    assert cli.main(["doctor", str(girder / "study.db"), "--rescue", str(new)]) == 0
    with Study.view(new) as study:
        assert study.finished + study.imported > 0


# -- trust --


def test_an_unknown_study_asks_before_it_runs(
    girder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert cli.main(["run", str(girder), "--budget", "2", "--quiet"]) == 2, "no terminal, no run"
    assert "--trust" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", Terminal("\n"))
    assert cli.main(["run", str(girder), "--budget", "2", "--quiet"]) == 2
    assert not (girder / "study.db").exists()
    output = capsys.readouterr().err
    assert f"awk -f {girder}/simulator.awk input.txt" in output
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert cli.main(["run", str(girder), "--budget", "2", "--quiet"]) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert cli.main(["run", str(girder), "--budget", "3", "--quiet"]) == 0
    (girder / "simulator.awk").write_text('BEGIN { system("true") }')
    assert cli.main(["run", str(girder), "--budget", "4", "--quiet"]) == 2, "the script changed"


def test_dollar_signs_and_backquotes_never_meet_a_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bait = "$(touch pwned) `touch pwned` ; touch pwned"
    (tmp_path / "study.toml").write_text(
        f"""
budget = 3
initial = 3
[variables]
a = [0, 1]
c = {{ choices = ["{bait}", "x"] }}
[objectives]
f = {{ pattern = '^f=(.*)' }}
[algorithm]
name = "random"
[evaluation]
command = ["awk", "BEGIN {{ print \\"f=1\\"; print ARGV[1] > \\"arguments\\" }}", "{bait} {{x.c}}"]
keep = "all"
"""
    )
    assert cli.main(["run", str(tmp_path), "--trust", "--quiet"]) == 0
    runs = list((tmp_path / "study.runs").iterdir())
    assert len(runs) == 3
    assert all((place / "arguments").read_text().startswith(bait) for place in runs)
    assert not list(tmp_path.rglob("pwned"))


def test_what_a_begun_study_ignores_is_said(
    girder: Path, lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", str(girder), "--trust", "--quiet", "--budget"]
    assert cli.main([*run, "2"]) == 0
    assert cli.main(["ask", str(lab)]) == 0
    assert "ignored" not in capsys.readouterr().err
    for folder, old in ((girder, "seed = 1"), (lab, "seed = 3")):
        path = folder / "study.toml"
        path.write_text(path.read_text().replace(old, "seed = 9"))
    assert cli.main([*run, "3"]) == 0
    assert "study.toml: seed is not what study.db was begun with" in capsys.readouterr().err
    assert cli.main(["ask", str(lab)]) == 0
    assert "and is ignored" in capsys.readouterr().err


# -- ends --


def test_errors_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "study.toml").write_text("budget = 'x'\n")
    for argv, code in (
        (["run", str(tmp_path)], 2),
        (["run", str(tmp_path / "nothing")], 1),
        (["status", str(tmp_path / "nothing.db")], 1),
        (["report", str(tmp_path / "nothing.db")], 1),
        (["doctor", str(tmp_path / "nothing.db")], 1),
    ):
        assert cli.main(argv) == code
        message = capsys.readouterr().err
        assert message.startswith("neuropareto: ") and "Traceback" not in message
    with pytest.raises(SystemExit) as error:
        cli.main(["frobnicate"])
    assert error.value.code == 2


@pytest.mark.parametrize("name", ["os:path", "os:getpid", "os.path:join"])
def test_what_makes_no_problem_cannot_be_tuned(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["tune", "two-stage", name, "-o", str(tmp_path / "o")]) == 1
    message = capsys.readouterr().err
    assert f"neuropareto: {name!r} is no neuropareto.Problem and makes none" in message


@pytest.mark.parametrize(
    "option", ["--dimension", "--objectives", "--budget", "--batch", "--seeds"]
)
def test_nothing_is_no_number_for_tune(
    option: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for value in ("0", "-3", "many"):
        with pytest.raises(SystemExit) as error:
            cli.main(["tune", "grid", "ZDT1", "-o", str(tmp_path / "o"), f"{option}={value}"])
        assert error.value.code == 2
        message = capsys.readouterr().err
        assert f"argument {option}" in message and f"whole number >= 1, got {value!r}" in message


def test_a_simulator_that_always_fails_stops_the_run(
    girder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (girder / "simulator.awk").write_text('BEGIN { print "no licence" > "/dev/stderr"; exit 4 }')
    assert cli.main(["run", str(girder), "--trust", "--quiet"]) == 1
    message = capsys.readouterr().err
    assert "5 of the 5" in message and "no licence" in message and "status 4" in message


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_ends_with_75_and_goes_on_exactly(
    girder: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Kill a run in mid-evaluation, resume it, and compare with one that was left alone."""
    path = girder / "study.toml"
    path.write_text(path.read_text().replace("workers = 2", "workers = 1\ninitial = 4"))
    slow = (girder / "simulator.awk").read_text() + '\nEND { system("sleep 0.15") }\n'
    (girder / "simulator.awk").write_text(slow)
    command = [sys.executable, "-m", "neuropareto.cli", "run", str(girder), "--trust"]
    command += ["--budget", "9", "--engine", "processes"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        _wait_for(girder / "study.db", 5)
        process.send_signal(number)
        assert process.stderr is not None
        message = process.stderr.read()
    assert process.returncode == 75, message
    assert "run it again" in message and "Traceback" not in message
    file = read(path)
    with file.open() as study:
        assert 4 <= study.finished < 9
        assert file.simulator is not None
        resumed = run_study(study, file.simulator, 9, engine="threads", progress=False)
    file.store.unlink()
    for extra in girder.glob("study.db-*"):
        extra.unlink()
    with file.open() as study:
        whole = run_study(study, file.simulator, 9, engine="threads", progress=False)
    np.testing.assert_array_equal(resumed.X, whole.X)
    np.testing.assert_array_equal(resumed.F, whole.F)


def _wait_for(store: Path, n: int) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.02)
        try:
            with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as file:
                query = "select count(*) from events where kind = 'started'"
                if file.execute(query).fetchone()[0] >= n:
                    return
        except sqlite3.OperationalError:
            continue  # not made yet
    raise AssertionError("the run did not get going")


def test_a_reader_that_leaves_early_is_no_drama(lab: Path) -> None:
    command = f"{sys.executable} -m neuropareto.cli ask {lab} -n 2000 | head -c 5"
    run = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in run.stderr and "Exception" not in run.stderr


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert all(f"  {name}" in text for name in cli.COMMANDS)
    for name in cli.COMMANDS:
        if name == "demo":
            continue  # it imports torch; its own tests look at it
        with pytest.raises(SystemExit) as error:
            cli.main([name, "--help"])
        assert error.value.code == 0
        assert f"neuropareto {name}" in capsys.readouterr().out


def test_the_console_script_is_installed() -> None:
    script = Path(sys.executable).with_name("neuropareto")
    run = subprocess.run([script, "--version"], capture_output=True, text=True, env=os.environ)
    assert run.stdout.startswith("neuropareto ")
