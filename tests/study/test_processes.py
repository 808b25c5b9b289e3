"""Local processes under the warden, with the real thing: hanging, forking, dying, lying evaluations."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuropareto.space import Array
from neuropareto.study.evaluation import Job, Pointwise, Report, Task, decoded
from neuropareto.study.limits import Limits
from neuropareto.study.processes import Processes, ProcessPool


def behave(x: Array) -> Any:
    """One function with many characters; x[0] chooses, so that one warden serves all tests."""
    return CHARACTERS[int(x[0])](x)


def good(x: Array) -> Any:
    print("all is well")
    return [x[1], x[1] ** 2]


def raises(x: Array) -> Any:
    print("about to fail")
    raise KeyError("no such mesh")


def leaves(x: Array) -> Any:
    sys.exit("I quit")


def vanishes(x: Array) -> Any:
    os._exit(7)


def segfaults(x: Array) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)


def hangs(x: Array) -> Any:
    time.sleep(600)


def ignores_sigterm(x: Array) -> Any:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def forks(x: Array) -> Any:
    """Leave a child behind that ignores SIGTERM, then hang as well."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    note(str(child))
    time.sleep(600)


def forks_and_returns(x: Array) -> Any:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    note(str(child))
    return [1.0, 2.0]


def burns(x: Array) -> Any:
    while True:
        pass


def devours(x: Array) -> Any:
    return [float(np.ones(2**30).sum()), 0.0]


def floods_disk(x: Array) -> Any:
    with open(os.environ["NEUROPARETO_TEST_MARK"] + ".big", "wb") as file:
        for _ in range(100):
            file.write(b"x" * 10_000_000)
    return [1.0, 2.0]


def floods_stdout(x: Array) -> Any:
    line = "x" * 999 + "\n"
    print("the beginning")
    for _ in range(100_000):
        sys.stdout.write(line)
    print("the end")
    return [1.0, 2.0]


def odd_text(x: Array) -> Any:
    sys.stdout.write("\x1b" * 9000)
    return [1.0, 2.0]


def closes_stdout(x: Array) -> Any:
    os.close(1)
    os.close(2)
    time.sleep(0.2)
    return [3.0, 4.0]


def draws(x: Array) -> Any:
    return [np.random.random(), np.random.random()]  # noqa: NPY002


def who(x: Array) -> Any:
    return [int(os.environ["NEUROPARETO_TRIAL"]), int(os.environ["NEUROPARETO_ATTEMPT"])]


ODD: list[Any] = [
    [float("nan"), 1.0],
    [1.0, float("inf")],
    None,
    [1.0],
    [1.0, 2.0, 3.0],
    [1 + 2j, 3.0],
    ["1.0", "2.0"],
    "12",
    {"f1": 1.0},
    [[1.0], [2.0, 3.0]],
    object(),
    [None, 1.0],
]


def odd(x: Array) -> Any:
    return ODD[int(x[1])]


CHARACTERS: list[Callable[[Array], Any]] = [
    good, raises, leaves, vanishes, segfaults, hangs, ignores_sigterm, forks, forks_and_returns,
    burns, devours, floods_disk, floods_stdout, odd_text, closes_stdout, draws, who, odd,
]  # fmt: skip


def note(text: str) -> None:
    Path(os.environ["NEUROPARETO_TEST_MARK"]).write_text(text)


def job(character: Callable[[Array], Any], *, trial: int = 1, value: float = 3.0) -> Job:
    return Job(trial, 1, np.array([CHARACTERS.index(character), value], dtype=np.float64))


def opened(limits: Limits) -> ProcessPool:
    return Processes().open(Task(Pointwise(behave), 2, 0), 2, limits)


def finished(pool: ProcessPool, n: int, within: float = 30.0) -> dict[int, Report]:
    reports: dict[int, Report] = {}
    until = time.monotonic() + within
    while len(reports) < n and time.monotonic() < until:
        for report in pool.wait(0.5):
            assert report.trial not in reports, "a report came twice"
            reports[report.trial] = report
    assert len(reports) == n, f"only {len(reports)} of {n} evaluations ended"
    return reports


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone(pid: int) -> bool:
    until = time.monotonic() + 10.0
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pid)


@pytest.fixture(scope="module")
def mark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file by which an evaluation can leave word; named in the environment before the warden."""
    path = tmp_path_factory.mktemp("processes") / "mark"
    os.environ["NEUROPARETO_TEST_MARK"] = str(path)
    yield path
    del os.environ["NEUROPARETO_TEST_MARK"]


@pytest.fixture(scope="module")
def pool(mark: Path) -> Iterator[ProcessPool]:
    """One warden for all tests that need no special limits."""
    limits = Limits(wall=1.0, cpu=30.0, memory=2_000_000_000, grace=0.5, disk=20_000_000)
    pool = opened(limits)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def unlimited(mark: Path) -> Iterator[ProcessPool]:
    pool = opened(Limits(grace=0.5))
    yield pool
    pool.close()


def test_a_good_evaluation_reports_its_values_exactly(unlimited: ProcessPool) -> None:
    unlimited.start(job(good, value=0.1))
    report = finished(unlimited, 1)[1]
    assert (report.kind, report.F, report.attempt) == ("ok", (0.1, 0.1**2), 1)
    assert report.output == "all is well\n"


@pytest.mark.parametrize(
    ("character", "kind", "word"),
    [
        (raises, "error", "no such mesh"),
        (leaves, "error", "I quit"),
        (vanishes, "crash", "exit status 7"),
        (segfaults, "crash", "SIGSEGV"),
    ],
)
def test_accidents_are_told_apart(
    unlimited: ProcessPool, character: Callable[[Array], Any], kind: str, word: str
) -> None:
    unlimited.start(job(character))
    report = finished(unlimited, 1)[1]
    assert report.kind == kind
    assert word in report.reason


def test_what_was_printed_before_a_failure_is_kept(unlimited: ProcessPool) -> None:
    unlimited.start(job(raises))
    assert finished(unlimited, 1)[1].output == "about to fail\n"


@pytest.mark.parametrize("which", range(len(ODD)))
def test_odd_values_are_invalid_not_fatal(unlimited: ProcessPool, which: int) -> None:
    unlimited.start(job(odd, value=which))
    report = finished(unlimited, 1)[1]
    assert report.kind == "invalid"
    assert "expected 2 finite numbers" in report.reason


def test_a_hanging_evaluation_is_ended(pool: ProcessPool) -> None:
    pool.start(job(hangs))
    report = finished(pool, 1)[1]
    assert report.kind == "timeout"
    assert "SIGTERM" in report.reason


def test_one_that_ignores_sigterm_is_killed(pool: ProcessPool) -> None:
    pool.start(job(ignores_sigterm))
    report = finished(pool, 1)[1]
    assert report.kind == "timeout"
    assert "SIGKILL" in report.reason


@pytest.mark.parametrize("character", [forks, forks_and_returns])
def test_no_child_survives_its_evaluation(
    pool: ProcessPool, mark: Path, character: Callable[[Array], Any]
) -> None:
    pool.start(job(character))
    report = finished(pool, 1)[1]
    assert report.kind == ("timeout" if character is forks else "ok")
    assert gone(int(mark.read_text()))


def test_memory_is_limited(pool: ProcessPool) -> None:
    pool.start(job(devours))
    assert finished(pool, 1)[1].kind == "memory"


def test_files_are_limited(pool: ProcessPool, mark: Path) -> None:
    pool.start(job(floods_disk))
    report = finished(pool, 1)[1]
    assert report.kind in ("error", "crash")
    assert "File too large" in report.reason or "disk limit" in report.reason
    assert Path(f"{mark}.big").stat().st_size <= 20_000_000


def test_a_hundred_megabytes_of_output_are_bounded(unlimited: ProcessPool) -> None:
    unlimited.start(job(floods_stdout))
    report = finished(unlimited, 1)[1]
    assert report.kind == "ok"
    assert len(report.output) < 20_000
    assert report.output.startswith("the beginning")
    assert report.output.endswith("the end\n")


def test_closed_streams_do_not_matter(unlimited: ProcessPool) -> None:
    unlimited.start(job(closes_stdout))
    assert finished(unlimited, 1)[1].F == (3.0, 4.0)


def test_siblings_do_not_share_random_numbers(unlimited: ProcessPool) -> None:
    for trial in (1, 2):
        unlimited.start(job(draws, trial=trial))
    reports = finished(unlimited, 2)
    assert len({*reports[1].F, *reports[2].F}) == 4


def test_the_program_knows_trial_and_attempt(unlimited: ProcessPool) -> None:
    unlimited.start(Job(41, 3, np.array([CHARACTERS.index(who), 0.0])))
    assert finished(unlimited, 1)[41].F == (41.0, 3.0)


def test_cpu_time_is_limited(mark: Path) -> None:
    pool = opened(Limits(cpu=1.0, grace=0.5))
    pool.start(job(burns))
    report = finished(pool, 1)[1]
    pool.close()
    assert report.kind == "timeout"
    assert "CPU" in report.reason


def test_a_killed_evaluation_is_lost_not_failed(unlimited: ProcessPool) -> None:
    unlimited.start(job(hangs))
    os.kill(_pid_of(unlimited, 1), signal.SIGKILL)
    report = finished(unlimited, 1)[1]
    assert report.kind == "lost"
    assert "SIGKILL" in report.reason


def test_a_killed_warden_is_replaced_and_its_evaluations_ended(mark: Path) -> None:
    pool = opened(Limits(grace=0.5))
    for trial in (1, 2):
        pool.start(job(hangs, trial=trial))
    running = [_pid_of(pool, trial) for trial in (1, 2)]
    warden = pool._warden.pid
    assert warden is not None
    os.kill(warden, signal.SIGKILL)
    reports = finished(pool, 2)
    assert {r.kind for r in reports.values()} == {"lost"}
    assert all(gone(pid) for pid in running)
    pool.start(job(good))
    assert finished(pool, 1)[1].kind == "ok"
    pool.close()


def test_the_warden_works_on_while_nobody_listens(unlimited: ProcessPool) -> None:
    """Many long reports during a long proposal must not hold up the evaluations behind them."""
    for trial in range(60):
        unlimited.start(job(odd_text, trial=trial))
    time.sleep(0.5)
    reports = finished(unlimited, 60)
    assert all(len(r.output) > 7000 for r in reports.values())


def test_closing_ends_what_runs(mark: Path) -> None:
    pool = opened(Limits(grace=0.5))
    pool.start(job(ignores_sigterm))
    pid = _pid_of(pool, 1)
    pool.close()
    assert gone(pid)


def test_when_the_run_is_killed_its_evaluations_go_too(mark: Path) -> None:
    here = Path(__file__).parent
    script = (
        f"import sys; sys.path.insert(0, {str(here)!r})\n"
        "import time\n"
        "from test_processes import Limits, _pid_of, ignores_sigterm, job, opened\n"
        "pool = opened(Limits(grace=0.2)); pool.start(job(ignores_sigterm))\n"
        "print(_pid_of(pool, 1), pool._warden.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        pids = [int(word) for word in run.stdout.readline().split()]
        assert len(pids) == 2 and all(map(alive, pids))
        run.kill()
        assert all(map(gone, pids))


def test_a_forgotten_pool_does_not_keep_the_interpreter() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_processes import Limits, hangs, job, opened\n"
        "pool = opened(Limits(grace=0.2)); pool.start(job(hangs))\n"
        "raise SystemExit(3)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 3


def test_an_objective_that_cannot_travel_is_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="top level of a module"):
        Processes().open(Task(Pointwise(lambda x: [1.0, 2.0]), 2, 0), 1, Limits())


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'{"trial": "x"}', b"\xff\xfe", b"[" * 100_000, b"nonsense"]
)
def test_a_forged_report_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a report"):
        decoded(data)


def test_reports_survive_the_journey_bit_for_bit() -> None:
    report = Report(
        3, 1, "ok", (0.1 + 0.2, -0.0, 5e-324), (1e308,), "r\u20ac\n", "\x00\x1b[31m", 0.5
    )
    assert decoded(report.encoded()) == report


def _pid_of(pool: ProcessPool, trial: int) -> int:
    until = time.monotonic() + 20.0
    while trial not in pool._groups and time.monotonic() < until:
        assert pool.wait(0.1) == []
    return pool._groups[trial]
