"""Studies: durable optimisation in one file, with any evaluation engine.

- ``Study`` (create, open, view; ask, tell, fail, run, result, events)
- how evaluations run: ``Processes``, ``Threads``, ``Dask``, ``Ray``, with ``Limits``, ``Retries``
  and ``FailureStop``; ``Simulator`` is an external program
- ``StudyError`` and its kinds ``StudyInUse``, ``StudyDamaged``, ``StorageError``
- ``neuropareto.study.exchange`` imports and exports, ``neuropareto.study.doctor`` examines and rescues
"""

from __future__ import annotations

from neuropareto.study.engines import Dask, Ray, Threads
from neuropareto.study.errors import StorageError, StudyDamaged, StudyError, StudyInUse
from neuropareto.study.limits import FailureStop, Limits, Retries
from neuropareto.study.processes import Processes
from neuropareto.study.simulator import Simulator
from neuropareto.study.study import Study

__all__ = [
    "Dask",
    "FailureStop",
    "Limits",
    "Processes",
    "Ray",
    "Retries",
    "Simulator",
    "StorageError",
    "Study",
    "StudyDamaged",
    "StudyError",
    "StudyInUse",
    "Threads",
]
