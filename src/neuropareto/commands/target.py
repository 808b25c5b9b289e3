"""What the user means by STUDY: a folder with study.toml, a study file, or a study's database."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from neuropareto.study.file import StudyFile, read
from neuropareto.study.filesystem import refuse_overwriting, with_journals
from neuropareto.study.gate import begun, shown
from neuropareto.study.study import Study


@dataclass(frozen=True)
class Target:
    """A study on disk: its database and, where there is one, its study file."""

    store: Path
    file: StudyFile | None

    def open(self, *, take_over: bool = False) -> Study:
        """For writing; created on first use if there is a study file."""
        if self.file is None:
            self.check_begun()
            return Study.open(self.store, take_over=take_over)
        study = self.file.open(take_over=take_over)
        _say_ignored(self.file, study)
        return study

    def view(self) -> Study:
        """For reading."""
        self.check_begun()
        return Study.view(self.store)

    @property
    def begun(self) -> bool:
        """Whether there is anything to read."""
        return begun(self.store)

    @property
    def not_begun(self) -> str:
        """How to begin, in a sentence."""
        if self.file is None:
            return (
                f"There is no study at {shown(self.store.absolute())}; name another, or begin one "
                "with `neuropareto init` and `neuropareto run`."
            )
        command = "ask" if self.file.simulator is None else "run"
        return f"{self.file.path.name}: not begun; start it with `neuropareto {command}`."

    def check_begun(self) -> None:
        """Raise ValueError if the study was not begun."""
        if not self.begun:
            raise ValueError(self.not_begun)

    def check_output(self, output: Path) -> None:
        """Raise ValueError if ``output`` is a file of the study itself."""
        own = with_journals(self.store)
        refuse_overwriting(output, own if self.file is None else (*own, self.file.path))


def _say_ignored(file: StudyFile, study: Study) -> None:
    """Say on standard error what of a study file no longer counts, because the study is begun."""
    if names := file.ignored(study):
        verb = "is" if len(names) == 1 else "are"
        print(
            f"{file.path.name}: {', '.join(names)} {verb} not what {file.store.name} was begun with, "
            f"and {verb} ignored; for a change, begin anew with another `store`.",
            file=sys.stderr,
        )


def add_study(parser: argparse.ArgumentParser) -> None:
    """The argument STUDY."""
    parser.add_argument(
        "study", nargs="?", type=Path, default=Path(), metavar="STUDY",
        help="a study file (study.toml), its folder (default: this one), or a study's database",
    )  # fmt: skip


def add_take_over(parser: argparse.ArgumentParser) -> None:
    """The option --take-over."""
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="write although a silent writer on another host may",
    )


def target_of(path: Path) -> Target:
    """Find out what ``path`` is; raises ValueError or StudyFileError."""
    if path.is_dir():
        path = path / "study.toml"
        if not path.exists():
            raise ValueError(
                f"There is no study.toml in {str(path.parent.absolute())!r}; make one with "
                "`neuropareto init`, or name a study file."
            )
    if path.suffix == ".toml":
        file = read(path)
        return Target(file.store, file)
    return Target(path, None)
