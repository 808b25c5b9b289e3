"""NeuroPareto: Algorithm 1 of the paper, on one screen.

Section "Integrated complexity-reduced algorithm". A round: fit the rank classifier, the deep GP
and the acquisition network (each from where the last round left it), breed a large pool by
predicted rank, screen it cheaply, look at the shortlist with the full surrogate, choose q. Every
part is a field; an ablation replaces one field by another value of the same contract (see
:mod:`neuropareto.ablations`). Evaluating the q points and growing the archive is the optimizer's.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from neuropareto.acquisition import Acquisition, History, LearnedAcquisition
from neuropareto.algorithm import Proposal
from neuropareto.archive import Archive
from neuropareto.calibration import MatrixScaling
from neuropareto.candidates import Candidates, RankConditioned, Several
from neuropareto.classifier import Classifier, RankClassifier, bounded_k
from neuropareto.exploration import ByStructure, Exploration, Unmoved
from neuropareto.memory import Memory, joined, part
from neuropareto.moves import Descents, GradientMoves, ProfileJumps, Slides
from neuropareto.past import Past, Window
from neuropareto.randomness import Streams
from neuropareto.retreat import Retreat, Steadfast, TrustRegion
from neuropareto.screening import Screening, TwoStage
from neuropareto.second import Alone, Second, SecondOpinion
from neuropareto.selection import (
    Composite,
    Estimate,
    ExpectedGain,
    MeanGain,
    Planned,
    Selection,
    gathered,
    split,
)
from neuropareto.space import Array
from neuropareto.stages import FittedStage, Stages
from neuropareto.surrogate import DeepGP, ExactGP, FourierProxy, Ladder, NumericalFailure
from neuropareto.surrogate.contract import Surrogate
from neuropareto.surrogate.structured import StructuredGP
from neuropareto.viability import Learnt, Unguarded, Viability


@dataclass(frozen=True)
class NeuroPareto:
    """The paper's algorithm; see the module. ``NeuroPareto.paper()`` is its literal pipeline."""

    classifier: Classifier = RankClassifier(calibration=MatrixScaling())
    surrogate: Surrogate = Ladder((StructuredGP(), ExactGP(), FourierProxy()))
    acquisition: Acquisition = LearnedAcquisition()
    candidates: Candidates = Several(
        (Slides(Descents((GradientMoves(), ProfileJumps()))), RankConditioned(size=500))
    )
    screening: Screening = TwoStage(n_screen=2500, k=250, penalty=0.0, hopeful=50, proxy=None)
    estimate: Estimate = MeanGain()
    selection: Selection = Planned()
    exploration: Exploration = ByStructure()
    viability: Viability = Learnt()
    retreat: Retreat = TrustRegion()
    second: Second = SecondOpinion()
    window: Window = Window()

    @classmethod
    def paper(cls) -> NeuroPareto:
        """The pipeline as printed: deep GP, rank-conditioned variation, RFF proxy screening."""
        return cls(
            classifier=RankClassifier(),
            surrogate=Ladder((DeepGP(), ExactGP(), FourierProxy())),
            candidates=RankConditioned(),
            screening=TwoStage(proxy=FourierProxy()),
            estimate=ExpectedGain(),
            selection=Composite(),
            exploration=Unmoved(),
            viability=Unguarded(),
            retreat=Steadfast(),
            second=Alone(),
        )

    def propose(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        """One round; without a usable surrogate, quasi-random points and a note that says why.

        So it is, with a warning, after any other error: a defect here must not stop a study.
        """
        try:
            if len(archive) < 2:
                raise NumericalFailure("fewer than two evaluations have succeeded")
            return self._round(archive, q, pending=pending, memory=memory, rng=rng)
        except NumericalFailure as error:
            reason = str(error)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"A round of NeuroPareto failed and was replaced by quasi-random points ({reason}); "
                "please report it.",
                RuntimeWarning,
                stacklevel=2,
            )
        spread = qmc.Sobol(archive.d, rng=rng("quasi-random")).random_base2(q.bit_length())
        return Proposal(spread[:q], memory, {"quasi_random": reason})

    def _round(
        self, archive: Archive, q: int, *, pending: Array, memory: Memory | None, rng: Streams
    ) -> Proposal:
        """Algorithm 1; the numbers are its lines."""
        past = Past.recalled(memory, archive, pending, self.classifier.k)
        local = self.retreat.proposal(past, archive, q, pending=pending, memory=memory, rng=rng)
        if local is not None:  # not in the paper: the model has failed
            return local
        stages = Stages(memory, rng)
        with stages("classifier") as stage:  # 3: fit or warm-start the classifier on the archive
            labels = archive.labels(bounded_k(self.classifier.k, len(archive)))
            ranks = self.classifier.fit(archive.U, labels, warm=stage.warm, rng=stage.rng)
        with stages("surrogate") as stage:  # 4: fit the deep GP with amortised initialisation
            model = self.surrogate.fit(archive.U, archive.outputs, warm=stage.warm, rng=stage.rng)
        with stages("viability") as stage:  # not in the paper: failures become a constraint
            search, seen = self.viability.guarded(model, archive, rng=stage.rng)
        with stages("acquisition") as stage:  # 5: update the acquisition network on the history
            lessons = past.lessons(archive, self.window)
            network = self.acquisition.fit(
                lessons.features, lessons.estimate, lessons.gains, warm=stage.warm, rng=stage.rng
            )
        with stages("candidates") as stage:  # 6: breed a large pool, conditioned on predicted rank
            known = ranks.predict(archive.U)
            pool = self.candidates.generate(seen, known, search, rng=stage.rng)
            pool = pool.apart_from(np.concatenate([archive.U, pending, archive.failed]))
        with stages("screening") as stage:  # 7, 8: cheap proxy scores, keep the best
            belief = ranks.predict(pool.U)
            short = self.screening.shortlist(pool, belief, seen, search, rng=stage.rng)
        with stages("posterior"):  # 9: the full surrogate on the shortlist
            believed = search.posterior(np.concatenate([pool.U[short], pending]))
            posterior, feasible, waiting = split(believed, len(short), archive.m)
        with stages("selection") as stage:  # 10, 11: features, acquisition outputs, choice of q
            own = self.estimate.gain(posterior, archive, rng=stage.rng)
            signals = gathered(posterior, belief, short, own, lessons.window)
            utility = network.score(signals)
            rows = self.selection.choose(
                signals, utility, archive, q, pending=waiting, feasibility=feasible
            )
        with stages("exploration") as stage:  # not in the paper: part of the batch moves aside
            U = self.exploration.moved(
                pool.U[short[rows]], seen, search, pending=waiting, rng=stage.rng
            )
        with stages("second") as stage:  # not in the paper: another model shares the batch
            kept = History.recalled(stage.warm, archive.d, archive.m)
            kept = kept.settled(np.concatenate([archive.U, pending, archive.failed]))
            batch = self.second.joined(
                U, kept, past, archive, model, ranks, pending=pending, rng=stage.rng
            )
            U = batch.U
            posterior, _, _ = split(model.posterior(U), len(U), archive.m)
            own = self.estimate.gain(posterior, archive, rng=stage.rng)
            chosen = gathered(posterior, ranks.predict(U), np.arange(len(U)), own, lessons.window)
        fitted: dict[str, FittedStage] = {
            "classifier": ranks, "surrogate": model, "acquisition": network,
        }  # fmt: skip
        memories: dict[str, Memory | None] = {name: made.warm for name, made in fitted.items()}
        memories |= {"retreat": part(memory, "retreat"), "second": batch.kept.memory}
        memories["history"] = past.extended(U, chosen, self.window).memory
        return Proposal(
            U, joined(memories), stages.notes(fitted, pool, short, rows, U, chosen, batch.second)
        )
