"""External programs behind a study file: awk and shell programs that behave, misbehave and lie."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto import Categorical, Integer, Real, Space
from neuropareto.study import Study
from neuropareto.study.evaluation import EvaluationError, Job, Task
from neuropareto.study.events import Failed
from neuropareto.study.file import read
from neuropareto.study.limits import FailureStop, Limits
from neuropareto.study.readings import Constraint, CsvColumn, JsonPath, LinePattern, Reading
from neuropareto.study.runner import run
from neuropareto.study.simulator import Simulator, inside
from neuropareto.study.template import CsvPoint, InputFile, JsonPoint, Template, check, filled

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "simulator"
SPACE = Space(
    (Real(0.0, 1.0, name="a"), Integer(1, 9, name="n"), Categorical(("x y", "$(id)"), "c"))
)
POINT = np.array([0.1, 3.0, 1.0])


def simulator(
    place: Path,
    script: str,
    *objectives: Reading,
    inputs: tuple[InputFile, ...] = (),
    arguments: tuple[str, ...] = (),
    keep: str = "failed",
    constraints: tuple[Constraint, ...] = (),
) -> Simulator:
    """A simulator whose program is a shell script."""
    program = place / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Simulator(
        space=SPACE, command=("./program", *arguments), home=place, runs=place / "runs",
        objectives=objectives or (LinePattern(r"^f1=(\S+)"), LinePattern(r"^f2=(\S+)")),
        inputs=inputs, keep=keep, constraints=constraints,
    )  # fmt: skip


def evaluate(sim: Simulator) -> Any:
    return sim.evaluate(Job(5, 2, POINT))


def failure(sim: Simulator) -> tuple[str, str]:
    with pytest.raises(EvaluationError) as error:
        evaluate(sim)
    return error.value.kind, str(error.value)


def ended(note: Path) -> bool:
    """Whether the process whose number a program noted ends soon (a zombie has ended)."""
    stat = Path(f"/proc/{note.read_text().strip()}/stat")
    for _ in range(200):
        try:
            if stat.read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


# -- input --


def test_template_placeholders() -> None:
    point: dict[str, float | str] = {
        "a": 0.1,
        "rate[1]": 1.5,
        "rate[2]": 2.0,
        "n": 3,
        "c": "x y",
        "t": True,
    }
    text = "{x.a} {x.n:04d} {x.rate[2]:8.3f}|{x.rate[*]:.1f} {x.c:>5s} {x.t} {y} {} {x} ${a}"
    assert filled(text, point) == "0.1 0003    2.000|1.5 2.0   x y true {y} {} {x} ${a}"


@settings(max_examples=50, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_in_a_template_keep_every_bit(value: float) -> None:
    assert float(filled("{x.v}", {"v": value})) == value


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ok\n{x.depht}", "line 2: {x.depht} names no variable"),
        ("{x.rate[*]}", "no variable is called 'rate'"),
        ("{x.a:9999999d}", "format '9999999d' is not like"),
        ("{x.a:{x.a}}", "ok"),
        ("{x.a!r}", "names no variable"),
        ("{x.a.__class__}", "names no variable"),
    ],
)
def test_wrong_placeholders_name_their_line(text: str, word: str) -> None:
    if word == "ok":
        assert (
            filled(text, {"a": 1.0}) == "{x.a:1.0}"
        )  # braces do not nest: only the inner one is ours
        return
    with pytest.raises(ValueError, match=word.replace("{", r"\{").replace(".", r"\.")):
        check(text, ["a"])


def test_all_kinds_of_input_reach_the_program(tmp_path: Path) -> None:
    inputs = (Template("in/t.txt", "{x.a}\n"), JsonPoint("p.json"), CsvPoint("p.csv"))
    sim = simulator(
        tmp_path,
        'cat in/t.txt p.json p.csv > all; echo "$NEUROPARETO_TRIAL $NEUROPARETO_ATTEMPT $1" >> all\n'
        "echo f1=1; echo f2=2",
        inputs=inputs, arguments=("{x.c}",), keep="all",
    )  # fmt: skip
    assert evaluate(sim) == [1.0, 2.0]
    (place,) = (tmp_path / "runs").iterdir()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert (place / "all").read_text().splitlines() == [
        "0.1", json.dumps({"a": 0.1, "n": 3, "c": "$(id)"}), "a,n,c", "0.1,3,$(id)", "5 2 $(id)",
    ]  # fmt: skip


# -- results --


@pytest.mark.parametrize(
    ("reading", "text", "value"),
    [
        (JsonPath("summary.cost"), '{"summary": {"cost": 3.5}}', 3.5),
        (JsonPath("wells[1].rate"), '{"wells": [{}, {"rate": 7}]}', 7.0),
        (JsonPath("[-1]"), "[1, 2]", 2.0),
        (JsonPath('["a.b"][0]'), '{"a.b": [4]}', 4.0),
        (CsvColumn("p"), "t,p\n1,5\n2,6.5\n\n", 6.5),
        (CsvColumn("p", row=0), "t, p \n1,5\n2,6.5", 5.0),
        (CsvColumn("p", delimiter=";"), "t;p\n1;1e-3", 1e-3),
        (LinePattern(r"^cost *= *(\S+)"), "cost = 1\n cost = 9\ncost=2.5D+02\n", 250.0),
        (LinePattern(r"^total:\s+(\S+) kW$"), "total:  -3 kW\r\n", -3.0),
    ],
)
def test_readings(reading: Reading, text: str, value: float) -> None:
    assert reading.read(text) == value


@pytest.mark.parametrize(
    ("reading", "text", "word"),
    [
        (JsonPath("a.b"), '{"a": 1}', "nothing at 'a.b'"),
        (JsonPath("a"), '{"a": "1"}', "got str"),
        (JsonPath("a"), '{"a": true}', "got bool"),
        (JsonPath("a"), '{"a": 1' + "0" * 400 + "}", "too large"),
        (JsonPath("a"), "[" * 100_000, "no JSON"),
        (JsonPath("a"), "", "no JSON"),
        (CsvColumn("q"), "t,p\n1,2", "no column 'q'"),
        (CsvColumn("p"), "t,p\n", "no value of 'p'"),
        (CsvColumn("p"), "", "no column"),
        (CsvColumn("p"), 'p\n"' + "x" * 200_000, "no CSV"),
        (CsvColumn("p"), "p\nhigh", "got 'high'"),
        (LinePattern("^a=(.*)"), "b=1", "no line of stdout"),
        (LinePattern("^a=(.*)"), "a=1_000", "got '1_000'"),
        (LinePattern("^a=(.*)"), "a=", "got ''"),
    ],
)
def test_unreadable_results_are_told_in_words(reading: Reading, text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        reading.read(text)


@pytest.mark.parametrize("pattern", ["cost=(.*)", "^cost", "^(a)(b)", "^(", "^(?P<x"])
def test_patterns_need_a_line_anchor_and_one_group(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        LinePattern(pattern)


@pytest.mark.parametrize("path", ["a..b", "a[x]", "a[", "a]b"])
def test_json_paths_are_checked(path: str) -> None:
    with pytest.raises(ValueError, match="no JSON path"):
        JsonPath(path)


def test_constraints_on_both_sides() -> None:
    reading = LinePattern("^g=(.*)")
    assert Constraint(reading, 10.0, 1.0).violation(12.0) == 2.0
    assert Constraint(reading, 10.0, -1.0).violation(12.0) == -2.0


# -- programs --


@pytest.mark.parametrize(
    ("script", "kind", "word"),
    [
        ("echo oh dear >&2; exit 3", "error", "status 3(.|\n)*oh dear"),
        ("kill -SEGV $$", "crash", "SIGSEGV"),
        ("kill -KILL $$", "lost", "SIGKILL"),
        ("true", "invalid", "no line of stdout(.|\n)*printed nothing"),
        ("echo f1=1", "invalid", r"no line of stdout matches '\^f2"),
        ("printf 'f1=\\000\\377\\n'", "invalid", "expected a number"),
    ],
)
def test_programs_that_fail(tmp_path: Path, script: str, kind: str, word: str) -> None:
    sim = simulator(tmp_path, script)
    found, reason = failure(sim)
    assert found == kind
    assert re.search(word, reason)
    assert len(list((tmp_path / "runs").iterdir())) == 1, "a failed run's directory is kept"


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_numbers_that_are_none_are_invalid(tmp_path: Path, value: str) -> None:
    report = Task(simulator(tmp_path, f"echo f1={value}; echo f2=1"), 2, 0)(Job(1, 1, POINT))
    assert report.kind == "invalid"


@pytest.mark.parametrize("keep", ["failed", "all", "none"])
def test_which_directories_stay(tmp_path: Path, keep: str) -> None:
    evaluate(simulator(tmp_path, "echo f1=1; echo f2=2", keep=keep))
    failure(simulator(tmp_path, "exit 1", keep=keep))
    assert len(list((tmp_path / "runs").iterdir())) == {"failed": 1, "all": 2, "none": 0}[keep]


def test_a_missing_program_is_an_error_not_a_crash(tmp_path: Path) -> None:
    sim = simulator(tmp_path, "")
    (tmp_path / "program").unlink()
    assert failure(sim)[0] == "error"


def test_a_program_that_leaves_a_child_with_open_streams_does_not_hang(tmp_path: Path) -> None:
    script = "sleep 600 & echo $! > ../../child; echo f1=1; echo f2=2"
    assert evaluate(simulator(tmp_path, script).guarded(Limits())) == [1.0, 2.0]
    assert ended(tmp_path / "child")


def test_a_hundred_megabytes_on_stdout(tmp_path: Path) -> None:
    sim = simulator(
        tmp_path, "head -c 100000000 /dev/zero | tr '\\0' 'x'; echo; echo f1=1; echo f2=2"
    )
    assert evaluate(sim) == [1.0, 2.0]


def test_a_guarded_program_is_ended_with_its_children(tmp_path: Path) -> None:
    script = "trap '' TERM; (trap '' TERM; sleep 60) & echo $! > ../../child; sleep 60"
    kind, reason = failure(simulator(tmp_path, script).guarded(Limits(wall=0.5, grace=0.3)))
    assert kind == "timeout" and "SIGKILL" in reason
    assert ended(tmp_path / "child")


def test_a_guarded_program_that_fills_its_disk(tmp_path: Path) -> None:
    script = "exec head -c 50000000 /dev/zero > big"
    kind, _ = failure(simulator(tmp_path, script).guarded(Limits(disk=1_000_000)))
    assert kind in ("crash", "error")
    (place,) = (tmp_path / "runs").iterdir()
    assert (place / "big").stat().st_size <= 1_000_000


def test_a_guarded_program_that_wants_all_memory(tmp_path: Path) -> None:
    script = "exec awk 'BEGIN { for (i = 0; i < 1e8; i++) a[i] = i; print \"f1=1\\nf2=2\" }'"
    kind, _ = failure(simulator(tmp_path, script).guarded(Limits(memory=50_000_000)))
    assert kind in ("crash", "error")


def test_a_guarded_program_that_burns_cpu(tmp_path: Path) -> None:
    kind, reason = failure(
        simulator(tmp_path, "while :; do :; done").guarded(Limits(cpu=1.0, grace=0.2))
    )
    assert kind == "timeout" and "CPU" in reason


def test_results_outside_the_directory_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("f1=1\nf2=2\n")
    both = (LinePattern(r"^f1=(\S+)", "out"), LinePattern(r"^f2=(\S+)", "out"))
    assert failure(simulator(tmp_path, "ln -s ../../secret out", *both))[0] == "invalid"
    assert failure(simulator(tmp_path, "mkfifo out", *both))[0] == "invalid"
    assert failure(simulator(tmp_path, "mkdir out", *both))[0] == "invalid"


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", ".", ""])
def test_inside_means_inside(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="must lie inside"):
        inside(tmp_path, name)


@pytest.mark.parametrize("engine", ["processes", "threads"])
def test_a_flaky_simulator_under_a_run(tmp_path: Path, engine: str) -> None:
    """Every fourth trial fails, every fifth hangs; the study goes on."""
    script = (
        "case $((NEUROPARETO_TRIAL % 5)) in 3) sleep 60;; esac\n"
        "[ $((NEUROPARETO_TRIAL % 4)) = 1 ] && exit 7\n"
        'echo "f1=$1"; echo "f2=$2"'
    )
    sim = simulator(tmp_path, script, arguments=("{x.a}", "{x.n}"))
    with Study.create(
        tmp_path / "s.db", SPACE, 2, algorithm=_nsga2(), seed=0, n_initial=10
    ) as study:
        result = run(
            study, sim, 10, workers=3, engine=engine, limits=Limits(wall=1.5, grace=0.2),
            failure_stop=FailureStop(rate=1.0), progress=False,
        )  # fmt: skip
        kinds = {e.trial: e.failure for e in study.events() if isinstance(e, Failed)}
    assert kinds == {1: "error", 5: "error", 9: "error", 3: "timeout", 8: "timeout"}
    np.testing.assert_array_equal(result.F, result.X[:, :2])


def _nsga2() -> Any:
    from neuropareto import NSGA2

    return NSGA2(population=8)


# -- the example --


def truss(areas: list[float], height: float) -> tuple[float, float, float]:
    """The ten-bar truss again, by numpy: mass (kg), largest sag (mm), largest stress (MPa)."""
    w, E, rho, load = 9.144, 210e9, 7850.0, 445e3
    nodes = np.array([[2, 1], [2, 0], [1, 1], [1, 0], [0, 1], [0, 0]]) * [w, height]
    bars = np.array(
        [[5, 3], [3, 1], [6, 4], [4, 2], [3, 4], [1, 2], [5, 4], [6, 3], [3, 2], [4, 1]]
    )
    A = np.array(areas) / 1e4
    K, mass, rows = np.zeros((12, 12)), 0.0, []
    for area, (i, j) in zip(A, bars - 1, strict=True):
        along = nodes[j] - nodes[i]
        length = np.linalg.norm(along)
        q = np.zeros(12)
        q[[2 * i, 2 * i + 1]], q[[2 * j, 2 * j + 1]] = -along / length, along / length
        K += E * area / length * np.outer(q, q)
        mass += rho * area * length
        rows.append(q / length)
    f = np.zeros(8)
    f[[3, 7]] = -load
    u = np.zeros(12)
    u[:8] = np.linalg.solve(K[:8, :8], f)
    stress = E * np.abs(np.array(rows) @ u).max() / 1e6
    return float(mass), float(-1000 * u[1:8:2].min()), float(stress)


def test_the_example_program_computes_what_it_says() -> None:
    sim = read(EXAMPLE / "study.toml").simulator
    assert sim is not None
    rng = np.random.default_rng(4)
    for steel, price, limit in ((0.0, 1.0, 235.0), (1.0, 1.25, 355.0)):
        areas, height = np.round(rng.uniform(5, 200, 10), 4), 7.25
        (cost, sag), (used,) = sim.evaluate(Job(0, 1, np.array([*areas, height, steel])))
        mass, expected_sag, stress = truss(areas.tolist(), height)
        np.testing.assert_allclose(
            [cost, sag, used], [mass * price, expected_sag, stress / limit - 1.0], rtol=1e-6
        )


def test_the_example_runs_from_the_command_line_and_resumes(tmp_path: Path) -> None:
    for file in EXAMPLE.iterdir():
        if file.is_file() and file.suffix in (".toml", ".awk", ".template"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PYTHONWARNINGS": "error",
    }
    command = [sys.executable, "-m", "neuropareto.cli", "run", "study.toml"]
    first = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=100,
    )  # fmt: skip
    assert first.returncode == 2 and "--trust" in first.stderr and "truss.awk" in first.stderr
    with subprocess.Popen(
        [*command, "--trust", "--budget", "24"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE,
        text=True,
    ) as running:  # fmt: skip
        until = time.monotonic() + 60
        while time.monotonic() < until and not list(tmp_path.glob("study.runs/*")):
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        assert running.stderr is not None
        said = running.stderr.read()
    assert running.returncode == 75, said
    assert "run it again" in said
    last = subprocess.run(
        [*command, "--budget", "24"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=100,
    )  # fmt: skip
    assert last.returncode == 0, last.stderr
    with Study.view(tmp_path / "study.db") as study:
        result = study.result()
    assert len(result.F) == 24 and not result.failures
    assert study.description.objectives == ("cost", "sag")
