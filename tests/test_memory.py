from __future__ import annotations

import numpy as np

from neuropareto.memory import joined, part


def test_parts_come_back_as_they_were_joined() -> None:
    parts: dict[str, dict[str, np.ndarray]] = {
        "classifier": {"W": np.eye(2)},
        "surrogate": {"Z": np.ones(3), "a/b": np.zeros(1)},
    }
    memory = joined({**parts, "acquisition": None})
    for stage, arrays in parts.items():
        found = part(memory, stage)
        assert found is not None and found.keys() == arrays.keys()
        assert all(np.array_equal(found[k], arrays[k]) for k in arrays)


def test_nothing_stored_is_none() -> None:
    assert part(None, "classifier") is None
    assert part({"classifier2/W": np.eye(2)}, "classifier") is None
