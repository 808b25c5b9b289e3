"""Grids: problems x dimensions x objectives x variants x algorithms x seeds, in a small TOML file.

A :class:`Task` is what algorithms are compared on; a :class:`Cell` is one run: a task, an algorithm
and a seed. The seed fixes the start design and, for variants, the instance, so all algorithms of a
task and seed meet the same problem and the same first points. Settings at the top of the file hold
for every ``[[part]]`` unless the part says otherwise. The paper's grids ship with the package.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from neuropareto.optimizer import start_design_size
from neuropareto.problem import Problem
from neuropareto.problems import problem as make_problem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLAIN = "plain"
_KEYS: dict[str, Any] = {
    "problems": list, "dimensions": list, "objectives": list, "variants": list,
    "algorithms": list, "seeds": (int, list), "budget": int, "batch": int, "n_initial": int,
}  # fmt: skip
_TEXTS = ("title", "about")


@dataclass(frozen=True, order=True)
class Task:
    """What algorithms are compared on: a problem in one size, a budget, a batch, a start design."""

    problem: str
    d: int
    m: int
    variant: str
    budget: int
    batch: int
    n_initial: int

    @property
    def key(self) -> str:
        """A folder name, one for each task."""
        variant = "" if self.variant == PLAIN else f"-{self.variant}"
        sizes = f"d{self.d}-m{self.m}-b{self.budget}-q{self.batch}-i{self.n_initial}"
        return f"{_slug(self.problem)}{variant}-{sizes}"

    @property
    def name(self) -> str:
        """Problem and variant, for people."""
        return self.problem if self.variant == PLAIN else f"{self.problem} {self.variant}"

    def instance(self, seed: int) -> Problem:
        """The problem; ``seed`` picks the instance of a variant."""
        return instance(self.problem, self.d, self.m, self.variant, seed)


@dataclass(frozen=True, order=True)
class Cell:
    """One run of a campaign."""

    task: Task
    algorithm: str
    seed: int

    @property
    def key(self) -> str:
        """Folder and file name of the record, without ending."""
        return f"{self.task.key}/{_slug(self.algorithm)}-s{self.seed}"

    def as_dict(self) -> dict[str, Any]:
        """A flat mapping of JSON values; :meth:`of` reads it."""
        return {**vars(self.task), "algorithm": self.algorithm, "seed": self.seed}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Cell:
        """The cell that :meth:`as_dict` described; raises KeyError or TypeError if it is none."""
        task = {name: kind(fields[name]) for name, kind in _TASK_FIELDS.items()}
        return cls(Task(**task), str(fields["algorithm"]), int(fields["seed"]))


_TASK_FIELDS: dict[str, Any] = {
    "problem": str, "d": int, "m": int, "variant": str, "budget": int, "batch": int, "n_initial": int,
}  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """The cells of a campaign, in the order in which they are run: seed by seed."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    about: str = ""

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks in the order of the file."""
        return tuple(dict.fromkeys(cell.task for cell in self.cells))

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The algorithms in the order of the file."""
        return tuple(dict.fromkeys(cell.algorithm for cell in self.cells))

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds, sorted."""
        return tuple(sorted({cell.seed for cell in self.cells}))


@dataclass(frozen=True)
class Scale:
    """What a user changes about a grid: some values replace, the others only pick.

    ``problems``, ``dimensions`` and ``variants`` pick from the grid; ``algorithms``, ``seeds`` and
    ``budget`` replace what it says. None leaves it as it is.
    """

    problems: Sequence[str] | None = None
    dimensions: Sequence[int] | None = None
    variants: Sequence[str] | None = None
    algorithms: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    budget: int | None = None

    def settings(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """A part's settings with what is replaced."""
        replaced = {
            "algorithms": None if self.algorithms is None else list(self.algorithms),
            "seeds": None if self.seeds is None else list(self.seeds),
            "budget": self.budget,
        }
        return {**part, **{k: v for k, v in replaced.items() if v is not None}}

    def wants(self, task: Task) -> bool:
        """Whether a task is among those picked."""
        return (
            (self.problems is None or task.problem in self.problems)
            and (self.dimensions is None or task.d in self.dimensions)
            and (self.variants is None or task.variant in self.variants)
        )


@dataclass(frozen=True)
class _Part:
    problems: Sequence[str]
    algorithms: Sequence[str]
    seeds: int | Sequence[int]
    dimensions: Sequence[int] = ()
    objectives: Sequence[int] = ()
    variants: Sequence[str] = (PLAIN,)
    budget: int = 300
    batch: int = 10
    n_initial: int = field(default=0)

    def tasks(self) -> list[Task]:
        dimensions: Sequence[int | None] = self.dimensions or [None]
        objectives: Sequence[int | None] = self.objectives or [None]
        choices = product(self.problems, dimensions, objectives, self.variants)
        return [self._task(*choice) for choice in choices]

    def _task(self, name: str, d: int | None, m: int | None, variant: str) -> Task:
        made = instance(name, d, m, variant, 0)
        start = self.n_initial or min(start_design_size(made.d), max(1, 2 * self.budget // 3))
        if start > self.budget:
            raise ValueError(
                f"The budget must cover the start design, got budget={self.budget} and "
                f"n_initial={start}."
            )
        return Task(name, made.d, made.n_objectives, variant, self.budget, self.batch, start)


@lru_cache(maxsize=256)
def instance(name: str, d: int | None, m: int | None, variant: str, seed: int) -> Problem:
    """A problem by name and variant ("plain": the problem itself)."""
    return make_problem(name, d, m, variant=None if variant == PLAIN else variant, seed=seed)


def shipped() -> dict[str, str]:
    """The grids that come with the package: name -> title."""
    folder = resources.files("neuropareto.bench") / "grids"
    files = sorted((p for p in folder.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name)
    return {p.name[:-5]: str(tomllib.loads(p.read_text(encoding="utf-8"))["title"]) for p in files}


def load(source: str | Path, scale: Scale | None = None) -> Grid:
    """A grid from a TOML file or, by name, one that ships with the package.

    Raises ValueError that names the key for anything that does not fit, FileNotFoundError if there
    is neither a file nor a grid of that name.
    """
    path = Path(source)
    own = resources.files("neuropareto.bench") / "grids" / f"{source}.toml"
    if path.suffix == ".toml" and path.exists():
        text, name = path.read_text(encoding="utf-8"), path.stem
    elif re.fullmatch(r"[\w-]+", str(source)) and own.is_file():
        text, name = own.read_text(encoding="utf-8"), str(source)
    else:
        raise FileNotFoundError(
            f"There is no grid file {str(source)!r}, and none of that name ships with the package; "
            "`neuropareto bench grids` lists those that do."
        )
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"The grid {str(source)!r} is not valid TOML: {error}.") from None
    return grid_of(name, document, scale or Scale())


def grid_of(name: str, document: Mapping[str, Any], scale: Scale) -> Grid:
    """The grid that a parsed TOML document describes."""
    top = {k: v for k, v in document.items() if k not in ("part", *_TEXTS)}
    parts = document.get("part", [{}])
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise ValueError("`part` must be written as [[part]] tables.")
    cells: list[Cell] = []
    for part in parts:
        settings = _checked(scale.settings({**top, **part}))
        tasks = [task for task in settings.tasks() if scale.wants(task)]
        seeds = range(settings.seeds) if isinstance(settings.seeds, int) else settings.seeds
        cells += [
            Cell(task, algorithm, seed)
            for seed, task, algorithm in product(seeds, tasks, settings.algorithms)
        ]
    # Seed by seed, so that a campaign that is cut short has run every task and not only the first.
    ordered = sorted(dict.fromkeys(cells), key=lambda cell: cell.seed)
    title, about = (str(document.get(key, "")) for key in _TEXTS)
    return Grid(name, title or name, tuple(ordered), about)


def _checked(settings: Mapping[str, Any]) -> _Part:
    for key, value in settings.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            raise ValueError(
                f"A grid has no setting {key!r}; "
                + (f"did you mean {near[0]!r}?" if near else f"it has {', '.join(_KEYS)}.")
            )
        wanted = _KEYS[key]
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise ValueError(f"The setting {key!r} of a grid cannot be {value!r}.")
        if value == [] or (isinstance(value, int) and value < 1):
            raise ValueError(f"The setting {key!r} of a grid needs at least one, got {value!r}.")
        if isinstance(value, list):
            _check_list(key, value)
    missing = [key for key in ("problems", "algorithms", "seeds") if key not in settings]
    if missing:
        raise ValueError(f"A grid needs {', '.join(missing)}.")
    return _Part(**settings)


def _check_list(key: str, values: Iterable[Any]) -> None:
    counts = key in ("dimensions", "objectives", "seeds")
    for value in values:
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if not (whole if counts else isinstance(value, str)):
            raise ValueError(
                f"{key!r} of a grid must list {'whole numbers' if counts else 'names'}, "
                f"got {value!r}."
            )


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.+_]+", "_", name) if ":" in name else name
