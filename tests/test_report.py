"""The HTML report: complete, self-contained, deaf to hostile names, honest about what it lacks."""

from __future__ import annotations

import base64
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from neuropareto import NSGA2, Categorical, Integer, Problem, Real, Result, Space, minimize
from neuropareto.report import record_of, write_report
from neuropareto.report.importance import importance_of
from neuropareto.report.record import Predictions, record_of_result
from neuropareto.space import Array
from neuropareto.study import Study

EVIL = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)> $x_1$ \u202e"


class Page(HTMLParser):
    """Collects the tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(text)
        assert not self.open, f"unclosed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def page_of(result: Result, path: Path) -> Page:
    return Page(write_report(result, path / "report.html").read_text(encoding="utf-8"))


def solved(m: int, *, n: int = 40, c: int = 0) -> Result:
    def objective(X: Array) -> Array | tuple[Array, Array]:
        F = np.stack([(X[:, 0] - j / max(m - 1, 1)) ** 2 + X[:, 1] / 9 for j in range(m)], axis=1)
        return (F, X[:, :c] - 0.7) if c else F

    problem = Problem("steps", Space.of([(0.0, 1.0)] * 4), m, objective, n_constraints=c)
    return minimize(
        problem, budget=n, batch=5, n_initial=10, algorithm=NSGA2(population=10), seed=2,
        progress=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("m", "c"),
    [(2, 1), *(pytest.param(m, 0, marks=pytest.mark.slow) for m in (1, 3, 5))],
)
def test_a_report_is_complete_and_self_contained(tmp_path: Path, m: int, c: int) -> None:
    page = page_of(solved(m, c=c), tmp_path)
    for title in (
        "The front",
        "Progress",
        "Which variables matter",
        "How sure",
        "Failures",
        "Time",
    ):
        assert title in page.words
    sources = [v for k, v in page.attributes if k in ("src", "href")]
    assert len(sources) == 4
    for source in sources:
        assert source is not None
        head, data = source.split(",", 1)
        assert head == "data:image/svg+xml;base64"
        ElementTree.fromstring(base64.b64decode(data))
    assert "script" not in page.tags and "link" not in page.tags


def test_hostile_names_and_reasons_stay_text(tmp_path: Path) -> None:
    space = Space(
        (Real(0.0, 1.0, name=EVIL), Integer(1, 5, name="$\\frac{$ \u4e2d\u6587"),
         Categorical((EVIL, "b"), name="<b>"))
    )  # fmt: skip
    with Study.create(
        tmp_path / "s.db", space, {EVIL: "minimize", "&amp;": "maximize"}, NSGA2(population=8),
        seed=0, n_initial=30, name=EVIL,
    ) as study:  # fmt: skip
        for i, trial in enumerate(study.ask(30)):
            study.started(trial.id, "w")
            if i % 6 == 0:
                study.fail(trial, f"{EVIL}\n\x1b[31m\x00 \ud800".replace("\ud800", "?"), EVIL)
            else:
                study.tell(trial, [[trial.x[0], trial.x[1]]])
        path = write_report(study.result(), tmp_path / "r.html", record=record_of(study))
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert {"script", "b", "iframe"} & set(page.tags) == {"b"}
    assert "onerror" not in {k for k, _ in page.attributes}
    assert "alert(1)" in page.words
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    for source in (v for k, v in page.attributes if k == "src"):
        assert source is not None
        svg = ElementTree.fromstring(base64.b64decode(source.split(",")[1]))
        assert not [e for e in svg.iter() if e.tag.endswith("script")]
        assert not [k for e in svg.iter() for k in e.attrib if k.lower().startswith("on")]


def test_a_study_without_success_still_has_a_report(tmp_path: Path) -> None:
    with Study.create(
        tmp_path / "s.db", [(0.0, 1.0)], 2, NSGA2(population=8), seed=0, n_initial=3
    ) as study:
        study.fail(study.ask(3), "boom", "crash")
        write_report(study.result(), tmp_path / "r.html", record=record_of(study))
    page = Page((tmp_path / "r.html").read_text())
    assert "No evaluation has succeeded" in page.words
    assert "boom" in page.words and "crash" in page.words


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    result = solved(2)
    first = write_report(result, tmp_path / "a.html").read_bytes()
    assert write_report(result, tmp_path / "b.html").read_bytes() == first


def test_without_matplotlib_there_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = solved(2)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'neuropareto\[plots\]'"):
        write_report(result, tmp_path / "r.html")


# -- what is in it --


def test_the_forest_finds_the_variables_that_matter() -> None:
    rng = np.random.default_rng(0)
    U = rng.random((300, 50))
    F = np.stack(
        [4 * U[:, 7] + 0.1 * rng.normal(size=300), np.sin(6 * U[:, 3]) - 2 * U[:, 30]], axis=1
    )
    found = importance_of(U, F, seed=1)
    assert found is not None
    assert set(found.top(3)) == {7, 3, 30}
    assert int(np.argmax(found.share[:, 0])) == 7 and found.correlation[7, 0] > 0.9
    assert found.correlation[30, 1] < -0.3
    assert (found.r2 > 0.5).all()


def test_noise_has_no_important_variables_and_constants_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    U = rng.random((100, 5))
    U[:, 2] = 0.5
    found = importance_of(U, np.stack([rng.normal(size=100), np.ones(100)], axis=1), seed=1)
    assert found is not None
    assert found.r2[0] < 0.2 and found.r2[1] == 0.0
    assert not found.share[:, 1].any() and found.correlation[2].tolist() == [0.0, 0.0]
    assert importance_of(U[:5], np.ones((5, 2)), seed=1) is None


def note(mean: Array, first: int, *, pending: int = 0, replaced: int = 0) -> dict[str, object]:
    return {
        "evaluations": first, "pending": pending, "proposed": len(mean), "repeats_replaced": replaced,
        "predicted_mean": mean.tolist(), "predicted_epistemic": np.full_like(mean, 0.04).tolist(),
        "predicted_aleatoric": np.zeros_like(mean).tolist(), "seconds": 0.1,
    }  # fmt: skip


def test_predictions_of_a_result_are_matched_only_where_the_order_tells() -> None:
    result = solved(2, n=20)
    F = result.F
    notes = (
        note(F[10:15] + 0.1, 10),
        note(F[15:18], 15, replaced=1),
        note(F[18:20], 18, pending=3),
    )
    found = record_of_result(replace(result, notes=notes)).predictions
    assert found is not None
    np.testing.assert_array_equal(found.observed, F[10:15])
    np.testing.assert_allclose(found.mean, F[10:15] + 0.1)


def test_predictions_of_a_study_are_matched_by_trial(tmp_path: Path) -> None:
    class Foreseeing:
        """NSGA-II that pretends to know: it notes 10 u as prediction, minimised."""

        def propose(self, archive, q, *, pending, memory, rng):  # type: ignore[no-untyped-def]
            proposal = NSGA2(population=8).propose(
                archive, q, pending=pending, memory=memory, rng=rng
            )
            mean = np.stack([10 * proposal.U[:, 0], -10 * proposal.U[:, 1]], axis=1)
            return type(proposal)(proposal.U, proposal.memory, note(mean, 0))

    with Study.create(
        tmp_path / "s.db", [(0.0, 10.0)] * 2, {"a": "minimize", "b": "maximize"}, Foreseeing(),
        seed=0, n_initial=4,
    ) as study:  # fmt: skip
        for trial in reversed(list(study.ask(4))):
            study.tell(trial, [trial.x])
        asked = list(study.ask(6))
        for trial in reversed(asked[1:]):
            study.tell(trial, [trial.x])
        study.fail(asked[0], "lost")
        record = record_of(study)
    assert record.predictions is not None
    assert len(record.predictions) == 5
    np.testing.assert_allclose(record.predictions.mean, record.predictions.observed, atol=1e-9)


def test_coverage_counts_what_lies_inside() -> None:
    rng = np.random.default_rng(3)
    std = rng.uniform(0.5, 2.0, (4000, 2))
    mean = rng.normal(size=(4000, 2))
    found = Predictions(mean, 0.7 * std**2, 0.3 * std**2, mean + std * rng.normal(size=(4000, 2)))
    np.testing.assert_allclose(found.coverage(0.5), 0.5, atol=0.04)
    np.testing.assert_allclose(found.coverage(0.9), 0.9, atol=0.03)
