"""Checks of the number of variables d and objectives m that a user asks a problem for."""

from __future__ import annotations

import operator


def chosen(name: str, what: str, asked: int | None, default: int, *, least: int) -> int:
    """The number asked for, or the default; a ValueError if it is not an integer >= ``least``."""
    try:
        value = default if asked is None else operator.index(asked)
    except TypeError:
        value = least - 1
    if isinstance(asked, bool) or value < least:
        raise ValueError(f"{name} needs an integer {what} >= {least}, got {what}={asked!r}.")
    return value


def fixed(name: str, what: str, asked: int | None, only: int) -> int:
    """``only``, the one number this problem has; a ValueError if another one is asked for."""
    if asked is not None and asked != only:
        raise ValueError(
            f"{name} has {what}={only} and no other, got {what}={asked!r}; leave {what} out."
        )
    return only
