"""Studies: durable optimisation in one file, with any evaluation engine.

- ``Study`` (create, open, view; ask, tell, fail, run, result, events)
- ``StudyError`` and its kinds ``StudyInUse``, ``StudyDamaged``, ``StorageError``
- ``neuropareto.study.exchange`` imports and exports, ``neuropareto.study.doctor`` examines and rescues
"""

from __future__ import annotations

from neuropareto.study.errors import StorageError, StudyDamaged, StudyError, StudyInUse
from neuropareto.study.study import Study

__all__ = ["StorageError", "Study", "StudyDamaged", "StudyError", "StudyInUse"]
