"""Algorithms, spaces and descriptions as JSON: exact round trips, and what a file may not build."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuropareto import NSGA2, Categorical, Integer, Proposal, RandomSearch, Real, Space
from neuropareto.archive import Archive
from neuropareto.memory import Memory
from neuropareto.optimizer import Optimizer
from neuropareto.randomness import Streams
from neuropareto.space import Array
from neuropareto.study.description import Description, named_objectives
from neuropareto.study.errors import StudyDamaged, StudyError
from neuropareto.study.spec import build, build_space, describe, describe_space, matches


@dataclass(frozen=True)
class Outsider:
    """An algorithm that is not part of the package."""

    strength: float = 1.0
    extra: Any = None

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        return Proposal(rng("outsider").random((q, archive.d)))


def _through_json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


@pytest.mark.parametrize("algorithm", [RandomSearch(), NSGA2(), NSGA2(7, 0.1 + 0.2, 1e-300, 1.0)])
def test_algorithms_of_the_package_come_back_equal(algorithm: Any) -> None:
    back = build(_through_json(describe(algorithm)))
    assert back == algorithm and type(back) is type(algorithm)


def test_the_default_algorithm_comes_back_equal() -> None:
    from neuropareto import NeuroPareto

    for algorithm in (NeuroPareto(), NeuroPareto.paper()):
        assert build(_through_json(describe(algorithm))) == algorithm


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
    ),
    max_leaves=20,
)  # fmt: skip


@settings(deadline=None)
@given(values)
def test_values_come_back_with_type_and_bits(value: Any) -> None:
    back = build(_through_json(describe(value)))
    assert back == value and repr(back) == repr(value)


def test_nan_and_arrays_come_back() -> None:
    assert math.isnan(build(_through_json(describe(math.nan))))
    array = np.array([[1, 2, 3]], dtype=np.int16)
    back = build(_through_json(describe(array)))
    assert back.dtype == array.dtype and (back == array).all()


# -- what a file may not do --


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "neuropareto.cli:main",
        "neuropareto.study.store:Store",
        "neuropareto.algorithm:Path",
        "neuropareto.algorithm:np",
        "neuropareto.nsga2:Proposal",
        "neuropareto.algorithm:Algorithm",
        "neuropareto.nsga2:_tournament",
        "neuropareto.nsga2.__init__:x",
        "neuropareto..nsga2:NSGA2",
        "neuropareto.peers.nothing:X",
        "neuropareto.nsga2:NSGA2\n",
        "x" * 100_000,
        "",
    ],
)
def test_a_file_cannot_choose_what_is_imported(name: str) -> None:
    before = set(sys.modules)
    with pytest.raises(StudyError) as caught:
        build({"class": name, "fields": {}})
    assert len(str(caught.value)) < 500
    assert not [m for m in set(sys.modules) - before if not m.startswith("neuropareto")]


@pytest.mark.parametrize(
    "described",
    [
        {"class": "neuropareto.nsga2:NSGA2", "fields": {"nonsense": 1}},
        {"class": "neuropareto.nsga2:NSGA2", "fields": 3},
        {"class": 3},
        {"array": "|O8", "shape": [1], "hex": "00" * 8},
        {"array": "<f8", "shape": [2], "hex": "00" * 8},
        {"array": "<f8", "shape": [-1], "hex": "00" * 8},
        {"array": "<f8", "shape": [1], "hex": "zz"},
        {"float": "1 or 2"},
        {},
    ],
)
def test_nonsense_is_refused(described: Any) -> None:
    with pytest.raises(StudyDamaged):
        build(described)


def test_an_outsider_is_described_and_never_built() -> None:
    described = _through_json(describe(Outsider(2.0, extra=len)))
    assert "Outsider" in described["class"]
    with pytest.raises(StudyError, match=r"Study\.open\(path, algorithm="):
        build(described)
    assert matches(Outsider(2.0, extra=len), described)
    assert not matches(Outsider(3.0, extra=len), described)
    assert not matches(NSGA2(), described)


def test_fields_that_counted_rounds_are_read_as_evaluations() -> None:
    """Studies of before decision D-89 must open: their specs name rounds of ten."""
    from neuropareto import NeuroPareto
    from neuropareto.ablations import INGREDIENTS

    old = {"recent": "batches", "rescan_after": "rescan_every"}
    fewer = {"retrain_every", "grown"}

    def before(described: Any) -> Any:
        if isinstance(described, list):
            return [before(v) for v in described]
        if not isinstance(described, dict):
            return described
        fields = {k: before(v) for k, v in described.items()}
        if described.get("class", "").rpartition(":")[2] in ("Online", "Hedged", "Effort"):
            inner = {k: v for k, v in fields["fields"].items() if k not in fewer}
            fields["fields"] = {
                old.get(k, k): v // 10 if k in old else v for k, v in inner.items()
            }
        return fields

    for algorithm in (NeuroPareto(), INGREDIENTS["with-hedge"]()):
        stored = before(_through_json(describe(algorithm)))
        assert '"rescan_every": 3' in json.dumps(stored) and '"batches": 4' in json.dumps(stored)
        assert build(stored) == algorithm and matches(algorithm, stored)


def test_a_field_that_got_a_default_later_still_matches() -> None:
    described = describe(NSGA2())
    del described["fields"]["p_crossover"]
    assert matches(NSGA2(), described)
    assert not matches(NSGA2(p_crossover=0.5), described)


# -- spaces --

names = st.text(
    st.characters(exclude_characters="\x7f", exclude_categories=["Cc", "Cs"]), max_size=9
)
reals = st.tuples(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9)).map(
    lambda t: Real(t[0], t[0] + t[1])
)
integers = st.tuples(st.integers(-999, 999), st.integers(1, 99)).map(
    lambda t: Integer(t[0], t[0] + t[1])
)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text()
categories = st.lists(scalars, min_size=2, max_size=5, unique_by=repr).map(
    lambda c: Categorical(tuple(c))
)


@settings(deadline=None)
@given(st.lists(reals | integers | categories, min_size=1, max_size=6))
def test_spaces_come_back_equal(variables: list[Any]) -> None:
    space = Space(tuple(variables))
    back = build_space(_through_json(describe_space(space)))
    assert back == space and repr(back) == repr(space)


def test_names_and_logs_come_back() -> None:
    space = Space.of({"rate é": Real(1e-3, 1.0, log=True), "n": Integer(1, 9, log=True)})
    assert build_space(_through_json(describe_space(space))) == space


def test_choices_that_json_cannot_hold_are_refused() -> None:
    for choices in ((object(), object()), ((1, 2), (3, 4)), (1.0, math.nan), (np.int64(1), 2)):
        with pytest.raises(ValueError, match="strings, finite numbers"):
            describe_space(Space((Categorical(choices, name="thing"),)))


@pytest.mark.parametrize(
    "described",
    [
        [],
        [{}],
        [3],
        "abc",
        [{"real": [0.0]}],
        [{"real": [1.0, 0.0]}],
        [{"real": ["a", "b"]}],
        [{"real": [0.0, 1.0], "name": 5}],
        [{"real": [0.0, 1.0], "name": "bad\u0000name"}],
        [{"real": [0.0, 1.0], "name": "n" * 1000}],
        [{"real": [-1.0, 1.0], "log": True}],
        [{"integer": [0.5, 2]}],
        [{"choices": ["a"]}],
        [{"choices": [["a"], {}]}],
        [{"real": [0.0, float("inf")]}],
    ],
)
def test_a_hostile_space_is_refused(described: Any) -> None:
    with pytest.raises(StudyDamaged):
        build_space(described)


# -- descriptions --


def _description() -> Description:
    optimizer = Optimizer([(0.0, 1.0)] * 2, 2, NSGA2(), seed=5, n_initial=4, n_constraints=1)
    return Description.of(
        optimizer, {"cost": "minimize", "yield": "maximize"}, reference_point=[1, 2.5], name="é"
    )


def test_a_description_comes_back_equal() -> None:
    description = _description()
    back = Description.from_json(_through_json(description.to_json()))
    assert back == description
    assert back.algorithm_name == "NSGA2"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", -1),
        ("seed", "5"),
        ("n_initial", 1e9),
        ("n_constraints", -2),
        ("objectives", []),
        ("objectives", ["a", "a"]),
        ("objectives", ["a", "\x1b[2J"]),
        ("objectives", ["a", 5]),
        ("directions", ["minimize"]),
        ("directions", ["minimize", "explode"]),
        ("reference_point", [1.0]),
        ("reference_point", ["x", "y"]),
        ("variables", None),
        ("algorithm", "os:system"),
        ("name", None),
    ],
)
def test_a_hostile_description_is_refused(key: str, value: Any) -> None:
    given = {**_description().to_json(), key: value}
    with pytest.raises(StudyDamaged):
        Description.from_json(given)
    del given[key]
    with pytest.raises(StudyDamaged):
        Description.from_json(given)


@pytest.mark.parametrize(
    ("objectives", "expected"),
    [
        (2, (("f1", "f2"), ("minimize", "minimize"))),
        (["a", "b"], (("a", "b"), ("minimize", "minimize"))),
        ({"a": "maximize"}, (("a",), ("maximize",))),
    ],
)
def test_objectives_in_three_forms(objectives: Any, expected: Any) -> None:
    assert named_objectives(objectives) == expected


@pytest.mark.parametrize(
    "objectives", [0, True, "ab", None, [], {}, ["a", "a"], [""], {"a": "up"}, [3], {"a": 1}]
)
def test_wrong_objectives_are_refused(objectives: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        named_objectives(objectives)


@dataclass(frozen=True)
class _Nested:
    inner: NSGA2 = field(default_factory=NSGA2)


def test_nested_specs_are_described_by_field() -> None:
    described = describe(_Nested(NSGA2(population=8)))
    assert described["fields"]["inner"]["fields"]["population"] == 8
