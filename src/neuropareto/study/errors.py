"""What can go wrong with a study file, as exceptions that say what to do next."""

from __future__ import annotations


class StudyError(RuntimeError):
    """Anything that keeps a study from doing what was asked; the base of the others."""


class StudyInUse(StudyError):
    """Another process writes to this study, or took it over from this one."""


class StudyDamaged(StudyError):
    """The file is not what was written: truncated, overwritten, or made by something else."""


class StorageError(StudyError):
    """The operating system did not take the data (disk full, limits, I/O error); nothing is lost."""


class NetworkFileSystem(UserWarning):
    """The study lies where file locks are unreliable; it is kept in the safer, slower mode."""


class StartDesignOnly(UserWarning):
    """A run ends before the algorithm has proposed anything."""
