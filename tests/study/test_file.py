"""study.toml: what it says, and how it refuses what it cannot mean, with line and key."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto import NSGA2, Categorical, Integer, Real
from neuropareto.study import Study, StudyError
from neuropareto.study.file import StudyFileError, read
from neuropareto.study.limits import FailureStop, Limits, Retries
from neuropareto.study.readings import CsvColumn, JsonPath, LinePattern
from neuropareto.study.spec import describe
from neuropareto.study.template import CsvPoint, JsonPoint, Template
from neuropareto.study.toml_table import lines_of
from neuropareto.study.trust import fingerprint, is_trusted, remember, state_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GOOD = r"""
name = "doublet"
budget = 300
seed = 7
workers = 4
initial = 30
batch = 8
store = "data/doublet.db"
reference = [10, 2.5, 3]

[variables]
"rate[1..160]" = { lower = 0.0, upper = 20.0 }
spacing = [400, 1200]
wells = { lower = 1, upper = 9, type = "integer" }
k = { lower = 1e-6, upper = 1e-2, log = true }
fluid = { choices = ["water", "brine", 3] }

[objectives]
cost = { direction = "minimize", file = "out.json", json = "summary.cost" }
heat = { direction = "maximize", file = "out.csv", column = "power", row = 0 }
wear = { pattern = '^wear *= *(\S+)' }

[constraints]
drawdown = { at_most = 50, file = "out.json", json = "dp" }
flow = { at_least = 3, file = "out.json", json = "flow" }

[algorithm]
name = "nsga2"
population = 24

[evaluation]
command = ["./simulate", "--deck", "deck.in", "{x.spacing}", "{study}/big.mesh"]
input = [
  { file = "deck.in", template = "deck.template" },
  { file = "x.json", format = "json" },
  { file = "x.csv", format = "csv" },
]
files = ["table.dat"]
keep = "all"
wall = "2 h"
cpu = 7000
memory = "2 GB"
disk = "1.5 GiB"
grace = 2

[retries]
error = 1

[stop]
rate = 0.25
after = 10
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "simulate").write_text("#!/bin/sh\n")
    (tmp_path / "deck.template").write_text("RATES {x.rate[*]:.2f}\nK {x.k}\n")
    (tmp_path / "table.dat").write_text("1 2 3\n")
    return tmp_path


def written(home: Path, text: str) -> Path:
    path = home / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


SMALL = """
budget = 9
[variables]
a = [0, 1]
b = [0, 1]
[objectives]
f = "minimize"
g = "maximize"
[algorithm]
name = "random"
"""


BY_HAND = """
budget = 5
[variables]
a = [0, 1]
[objectives]
f = "minimize"
g = "maximize"
[algorithm]
"""


def test_settings_of_the_algorithm_from_a_file(home: Path) -> None:
    spec = NSGA2(population=24, eta_mutation=7.5)
    (home / "tuned.json").write_text(json.dumps({"algorithm": describe(spec)}))
    assert read(written(home, BY_HAND + 'file = "tuned.json"')).algorithm == spec


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "holds no settings"),
        ("[1]", "holds no settings"),
        ('{"algorithm": {"class": "os:system", "fields": {}}}', "holds no settings"),
        ('{"algorithm": 3}', "no algorithm|holds no settings"),
    ],
)
def test_a_file_of_settings_that_is_none(home: Path, text: str, said: str) -> None:
    (home / "tuned.json").write_text(text)
    with pytest.raises(StudyFileError, match=said):
        read(written(home, BY_HAND + 'file = "tuned.json"'))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('file = "../tuned.json"', "leaves the folder"),
        ('file = "missing.json"', "holds no settings"),
        ('file = "tuned.json"\nname = "nsga2"', "the file sets everything"),
    ],
)
def test_a_file_of_settings_beside_the_study_file_and_alone(
    home: Path, lines: str, said: str
) -> None:
    with pytest.raises(StudyFileError, match=said):
        read(written(home, BY_HAND + lines))


def test_everything_a_file_can_say(home: Path) -> None:
    file = read(written(home, GOOD))
    assert (file.name, file.budget, file.seed, file.workers) == ("doublet", 300, 7, 4)
    assert (file.initial, file.batch, file.engine) == (30, 8, "processes")
    assert file.store == home.resolve() / "data" / "doublet.db"
    assert file.space.d == 164
    assert file.space.names[:2] == ("rate[1]", "rate[2]") and file.space.names[159] == "rate[160]"
    assert file.space.variables[160:] == (
        Real(400.0, 1200.0, name="spacing"),
        Integer(1, 9, name="wells"),
        Real(1e-6, 1e-2, log=True, name="k"),
        Categorical(("water", "brine", 3), name="fluid"),
    )
    assert file.objectives == {"cost": "minimize", "heat": "maximize", "wear": "minimize"}
    assert file.reference_point == (10.0, 2.5, 3.0)
    assert file.algorithm == NSGA2(population=24)
    assert file.limits == Limits(7200.0, 7000.0, 2_000_000_000, 2.0, 3 * 2**29)
    assert file.retries == Retries(error=1)
    assert file.failure_stop == FailureStop(0.25, 10)
    sim = file.simulator
    assert sim is not None
    assert sim.objectives == (
        JsonPath("summary.cost", "out.json"),
        CsvColumn("power", "out.csv", 0),
        LinePattern(r"^wear *= *(\S+)"),
    )
    assert [(c.bound, c.sign) for c in sim.constraints] == [(50.0, 1.0), (3.0, -1.0)]
    assert sim.inputs == (
        Template("deck.in", "RATES {x.rate[*]:.2f}\nK {x.k}\n"),
        JsonPoint("x.json"),
        CsvPoint("x.csv"),
    )
    assert sim.resolved({"spacing": 500.0}) == [
        str(home.resolve() / "simulate"), "--deck", "deck.in", "500.0", f"{home.resolve()}/big.mesh",
    ]  # fmt: skip
    assert (sim.keep, sim.files, sim.memory) == ("all", ("table.dat",), 2_000_000_000)


def test_little_is_enough(home: Path) -> None:
    file = read(written(home, SMALL))
    assert file.simulator is None
    assert file.name == "study"
    assert file.initial == 3, "at most a third of the budget"
    assert file.store == home.resolve() / "study.db"


@pytest.mark.parametrize(
    ("old", "new", "line", "key"),
    [
        ("budget = 300", 'budget = "many"', 3, "budget"),
        ("budget = 300", "", None, "budget"),
        ("seed = 7", "seed = -7", 4, "seed"),
        ("workers = 4", "wokers = 4", 5, "wokers"),
        ("workers = 4", "workers = true", 5, "workers"),
        ("[400, 1200]", "[400]", 13, "variables.spacing"),
        ("[400, 1200]", "[1200, 400]", 13, "variables.spacing"),
        ("[400, 1200]", "[1200, 1e400]", 13, "variables.spacing.upper"),
        ("[400, 1200]", "[nan, 1]", 13, "variables.spacing.lower"),
        ("[400, 1200]", "7", 13, "variables.spacing"),
        ("lower = 1, upper = 9", "lower = 1.5, upper = 9", 14, "variables.wells.lower"),
        ('type = "integer"', 'type = "int"', 14, "variables.wells.type"),
        ("log = true", "log = 1", 15, "variables.k.log"),
        ("log = true", "logs = true", 15, "variables.k.logs"),
        ("[1..160]", "[9..1]", 12, "variables.rate[9..1]"),
        ("[1..160]", "[1..9999999]", 12, "variables.rate[1..9999999]"),
        ('"rate[1..160]"', '"rate; rm"', 12, "variables.'rate; rm'"),
        ('["water", "brine", 3]', '["water"]', 16, "variables.fluid"),
        ('["water", "brine", 3]', '"water"', 16, "variables.fluid.choices"),
        ('direction = "maximize"', 'direction = "up"', 20, "objectives.heat.direction"),
        ('json = "summary.cost"', 'json = "a..b"', 19, "objectives.cost.json"),
        (', json = "summary.cost"', "", 19, "objectives.cost"),
        ("'^wear *=", "'wear *=", 21, "objectives.wear.pattern"),
        ('json = "dp"', 'json = "dp", column = "x"', 24, "constraints.drawdown.column"),
        ("at_least = 3,", "at_least = 3, at_most = 4,", 25, "constraints.flow.at_least"),
        ('name = "nsga2"', 'name = "nsga3"', 28, "algorithm.name"),
        ('name = "nsga2"', 'name = "os:getcwd"', 28, "algorithm.name"),
        ("population = 24", 'population = "24"', 29, "algorithm.population"),
        ("population = 24", "populaton = 24", 29, "algorithm.populaton"),
        ('["./simulate", ', '["./simulator", ', 32, "evaluation.command"),
        ('["./simulate", ', '["../simulate", ', 32, "evaluation.command"),
        ("{x.spacing}", "{x.spaceing}", 32, "evaluation.command"),
        ('"deck.template"', '"other.template"', 33, "evaluation.input.template"),
        ('files = ["table.dat"]', 'files = ["../../etc/passwd"]', 38, "evaluation.files"),
        ('keep = "all"', 'keep = "some"', 39, "evaluation.keep"),
        ('wall = "2 h"', 'wall = "2 hours"', 40, "evaluation.wall"),
        ('wall = "2 h"', "wall = -1", 40, "evaluation.wall"),
        ('memory = "2 GB"', 'memory = "2 gb"', 42, "evaluation.memory"),
        ("error = 1", "eror = 1", 47, "retries.eror"),
        ("rate = 0.25", "rate = 25", 50, "stop.rate"),
    ],
)
def test_complaints_name_line_and_key(
    home: Path, old: str, new: str, line: int | None, key: str
) -> None:
    assert old in GOOD
    with pytest.raises(StudyFileError) as error:
        read(written(home, GOOD.replace(old, new, 1)))
    where = f"study.toml line {line}, {key}: " if line else f"study.toml, {key}: "
    assert str(error.value).startswith(where)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    "text",
    [
        "budget = ",
        "budget = 1\nbudget = 2",
        "x = " + "[" * 5000,
        "x = " + "9" * 5000,
        "\x00",
        'x = "\x07"',
        "variables = 3",
        "",
    ],
)
def test_what_is_no_study_file_is_refused_in_words(home: Path, text: str) -> None:
    with pytest.raises(StudyFileError, match=r"^study\.toml"):
        read(written(home, text))


HOSTILE = [
    "../../../etc/cron.d/x",
    "/etc/passwd",
    "$(touch /tmp/hacked)",
    "`id`",
    "a\\u0000b",
    "\\u001b[2J\\u001b]0;owned\\u0007",
    "\\u202egnp.exe",
    "x" * 10_000_000,
    "line\\nbreak",
    "{x.__class__.__mro__}",
    "%s%n",
    "'; drop table events; --",
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize(
    "place",
    ['name = "?"', 'store = "?"', "input.file", "input.template", "files", "result file", "choice",
     "variable", "objective", "program"],
)  # fmt: skip
def test_hostile_values_do_no_harm(home: Path, place: str, value: str) -> None:
    """Refused with a short sentence, or taken as plain text that leads nowhere else."""
    old, new = {
        "input.file": ('file = "x.json"', 'file = "?"'),
        "input.template": ('"deck.template"', '"?"'),
        "files": ('"table.dat"', '"?"'),
        "result file": ('"out.csv"', '"?"'),
        "choice": ('"water"', '"?"'),
        "variable": ("spacing = [400", '"?" = [400'),
        "objective": ("wear = {", '"?" = {'),
        "program": ('"./simulate"', '"?"'),
    }.get(place, ('name = "doublet"' if "name" in place else 'store = "data/doublet.db"', place))
    text = GOOD.replace(old, new.replace("?", value), 1)
    try:
        file = read(written(home, text.replace("{x.spacing}", "5")))
    except StudyFileError as error:
        assert len(str(error)) < 600
        assert not re.search("[\x00-\x1f\x7f\u202e]", str(error))
        return
    assert "\\u" not in value and len(value) < 5000
    assert file.store.is_relative_to(home.resolve())
    assert file.simulator is not None
    for name in (*file.simulator.files, *(i.file for i in file.simulator.inputs)):
        assert ".." not in Path(name).parts and not os.path.isabs(name)
    if place == "program":
        assert file.simulator.resolved({})[0] == value, "a name is a name, never a shell command"


def test_a_symbolic_link_does_not_lead_out(home: Path) -> None:
    (home / "deck.template").unlink()
    (home / "deck.template").symlink_to("/etc/hostname")
    with pytest.raises(StudyFileError, match="leaves the folder"):
        read(written(home, GOOD))


def test_the_study_file_of_the_manual_is_a_study_file(tmp_path: Path) -> None:
    manual = Path(__file__).parent.parent.parent / "docs" / "simulator.md"
    block = re.search(r"```toml\n(.*?)```", manual.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    for name in ("exchanger", "case.template", "materials.dat"):
        (tmp_path / name).write_text("{x.rate[*]}")
    file = read(written(tmp_path, block[1].replace('"neuropareto"', '"nsga2"')))
    assert file.space.d == 164 and file.simulator is not None


# -- lines --


def test_lines_of_nested_and_quoted_keys() -> None:
    text = (
        'a = 1 # [not.a.table]\n\n[b."c.d"]\n"e[1..3]" = { x = 1 }\nf.g = """\n[fake]\nh = 1\n"""\n'
        "i = [\n  # comment ]\n  1,\n]\nj = '''\nk = 2'''\n[[m.n]]\no = '#'\np = 1\n"
    )
    found = lines_of(text)
    assert tomllib.loads(text)
    assert found == {
        ("a",): 1, ("b", "c.d"): 3, ("b", "c.d", "e[1..3]"): 4, ("b", "c.d", "f", "g"): 5,
        ("b", "c.d", "i"): 9, ("b", "c.d", "j"): 13, ("m", "n"): 15, ("m", "n", "o"): 16,
        ("m", "n", "p"): 17,
    }  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["# [x]", "", '  y = """\na = 1\n"""', "z = [\n1,\n2]", "w = 'a = 1'",
             'v = "\\" = #"', "u = {}"]
        ),
        max_size=6,
    )
)  # fmt: skip
def test_the_scanner_finds_the_line_whatever_comes_before(before: list[str]) -> None:
    text = "".join(f"[t{i}]\n{piece}\n" for i, piece in enumerate(before)) + "[last]\nwanted = 1\n"
    tomllib.loads(text)
    assert text.splitlines()[lines_of(text)["last", "wanted"] - 1] == "wanted = 1"


# -- the study behind the file --


def test_a_file_creates_and_finds_its_study(home: Path) -> None:
    file = read(written(home, SMALL))
    with file.open() as study:
        assert study.description.objectives == ("f", "g")
        assert study.description.directions == ("minimize", "maximize")
        study.ask(2)
    with file.open() as study:
        assert len(study.pending) == 2


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("a = [0, 1]", "a = [0, 2]", "variables"),
        ('g = "maximize"', 'g = "minimize"', "objectives"),
        ("[algorithm]", "[constraints]\nh = { at_most = 1 }\n[algorithm]", "constraints"),
        ('f = "minimize"\ng = "maximize"', 'g = "maximize"\nf = "minimize"', "objectives"),
        ("a = [0, 1]\nb = [0, 1]", "b = [0, 1]\na = [0, 1]", "variables"),
    ],
)
def test_a_changed_file_does_not_get_the_old_study(
    home: Path, old: str, new: str, word: str
) -> None:
    read(written(home, SMALL)).open().close()
    changed = read(written(home, SMALL.replace(old, new)))
    with pytest.raises(StudyError, match=rf"The {word} in study\.toml"):
        changed.open()
    Study.open(changed.store).close()  # and the refusal left it unlocked


def test_an_empty_database_is_a_study_not_begun(home: Path) -> None:
    file = read(written(home, SMALL))
    file.store.touch()  # what a disk that is full at the first start leaves
    assert not file.begun
    file.open().close()
    assert file.begun


BOUNDED = f"{SMALL}[constraints]\nh = {{ at_most = 1 }}\nk = {{ at_least = 2.5 }}\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("h = { at_most = 1 }", "h = { at_least = 1 }"),
        ("at_least = 2.5", "at_least = 2.6"),
        ("h = ", "heat = "),
        (
            "h = { at_most = 1 }\nk = { at_least = 2.5 }",
            "k = { at_least = 2.5 }\nh = { at_most = 1 }",
        ),
    ],
)
def test_changed_constraints_do_not_get_the_old_study(home: Path, old: str, new: str) -> None:
    read(written(home, BOUNDED)).open().close()
    read(written(home, BOUNDED)).open().close()
    assert old in BOUNDED
    with pytest.raises(StudyError, match=r"The constraints in study\.toml"):
        read(written(home, BOUNDED.replace(old, new))).open()


def test_a_study_that_knows_only_the_number_of_its_constraints_still_opens(home: Path) -> None:
    file = read(written(home, BOUNDED))
    Study.create(
        file.store, file.space, file.objectives, file.algorithm, seed=0, n_constraints=2
    ).close()
    with file.open() as study:
        assert study.description.bounds is None
    with pytest.raises(StudyError, match="The constraints"):
        read(written(home, BOUNDED.replace("k = { at_least = 2.5 }", ""))).open()


def test_what_a_begun_study_ignores_is_named(home: Path) -> None:
    text = "seed = 3\ninitial = 4\nreference = [1, 2]\n" + SMALL
    with read(written(home, text)).open() as study:
        assert read(written(home, text)).ignored(study) == ()
        more = text.replace("budget = 9", "budget = 900")
        assert read(written(home, more)).ignored(study) == ()
        assert read(written(home, more.replace("initial = 4\n", ""))).ignored(study) == ()
        for old, new, name in (
            ("seed = 3", "seed = 4", "seed"),
            ("initial = 4", "initial = 5", "initial"),
            ("[1, 2]", "[1, 3]", "reference"),
            ('"random"', '"nsga2"', "[algorithm]"),
        ):
            assert read(written(home, text.replace(old, new))).ignored(study) == (name,)


def test_a_changed_budget_is_fine(home: Path) -> None:
    read(written(home, SMALL)).open().close()
    changed = read(written(home, SMALL.replace("budget = 9", "budget = 90")))
    assert changed.budget == 90
    with changed.open() as study:
        study.tell(study.ask(), [[1.0, 2.0]])
        assert study.finished == 1


# -- trust --


def test_trust_follows_what_would_run(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    text = GOOD
    (home / "big.mesh").write_text("1")

    def now(text: str = text) -> str:
        sim = read(written(home, text)).simulator
        assert sim is not None
        return fingerprint(sim)

    first = now()
    assert not is_trusted(first)
    remember(first, home / "study.toml")
    assert is_trusted(first) and is_trusted(now(text.replace("budget = 300", "budget = 400")))
    assert state_file().stat().st_mode & 0o077 == 0
    for change in ("simulate", "deck.template", "table.dat", "big.mesh"):
        before = (home / change).read_text()
        (home / change).write_text(before + "# more\n")
        assert not is_trusted(now()), f"{change} changed unnoticed"
        (home / change).write_text(before)
    assert not is_trusted(now(text.replace('"--deck"', '"--dark"')))
    assert is_trusted(now())


def test_a_relative_state_home_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "../elsewhere")
    assert state_file() == Path.home() / ".local" / "state" / "neuropareto" / "trusted"
