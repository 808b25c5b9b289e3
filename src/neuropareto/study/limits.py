"""What an evaluation may use, how often it is tried again, and when a run gives up.

Three frozen specs. A failure has one of six classes: ``error`` (the function raised, the program
returned a status other than 0), ``invalid`` (NaN, wrong length, unreadable result), ``crash`` (the
process died by its own fault), ``timeout`` (wall clock or CPU), ``memory``, and ``lost`` (killed
from outside: a node, an operator, a batch system).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

FAILURES = ("error", "invalid", "crash", "timeout", "memory", "lost")


@dataclass(frozen=True)
class Limits:
    """What one evaluation may use; None is no limit.

    ``wall`` and ``cpu`` are seconds, ``memory`` bytes of address space beyond what loading the
    function took (for an external program: in all), ``disk`` bytes of the largest file written.
    An evaluation over its time gets SIGTERM and, ``grace`` seconds later, SIGKILL, with its group.
    """

    wall: float | None = None
    cpu: float | None = None
    memory: int | None = None
    grace: float = 5.0
    disk: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (
                not isinstance(value, (int, float)) or isinstance(value, bool)
            ):
                raise ValueError(f"The limit {field.name} must be a number, got {value!r}.")
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"The limit {field.name} must be finite and >= 0, got {value!r}.")
            if field.name != "grace" and value == 0:
                raise ValueError(f"The limit {field.name} must be > 0 or None, got 0.")
        if self.grace is None:
            raise ValueError("The limit grace must be a number of seconds >= 0, got None.")

    @property
    def any(self) -> bool:
        """True if anything is limited."""
        return any(v is not None for v in (self.wall, self.cpu, self.memory, self.disk))


@dataclass(frozen=True)
class Retries:
    """How often a point is tried again after each class of failure, before it counts as failed.

    A function that raises will most likely raise again, so only accidents are repeated by default.
    ``lives`` bounds how often a point may be found unfinished after the whole run died with it.
    """

    error: int = 0
    invalid: int = 0
    crash: int = 1
    timeout: int = 0
    memory: int = 0
    lost: int = 3
    lives: int = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(
                    f"The retries after {field.name!r} must be a whole number >= 0, got {value!r}."
                )

    def after(self, kind: str) -> int:
        """The number of retries after a failure of class ``kind``."""
        allowed = {field.name: int(getattr(self, field.name)) for field in fields(self)}
        return allowed[kind]


@dataclass(frozen=True)
class FailureStop:
    """Stop when more than ``rate`` of this run's evaluations failed, from the ``after``-th on.

    ``rate=1.0`` never stops.
    """

    rate: float = 0.5
    after: int = 5

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate <= 1.0 or self.after < 1:
            raise ValueError(
                f"A failure stop needs 0 <= rate <= 1 and after >= 1, got rate={self.rate} and "
                f"after={self.after}."
            )

    def exceeded(self, failed: int, finished: int) -> bool:
        """True if ``failed`` of ``finished`` evaluations are too many."""
        return finished >= self.after and failed > self.rate * finished


class TooManyFailuresError(RuntimeError):
    """More evaluations fail than the run's :class:`FailureStop` allows; the study stays resumable."""
