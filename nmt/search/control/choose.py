"""What becomes of the hypotheses of a part before they are translations: coverage, no text twice, unknown words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nmt.search.control.config import ControlConfig
from nmt.search.control.coverage import prefer_covering
from nmt.search.control.unknown import carried_over
from nmt.search.hypothesis import Hypothesis
from nmt.search.length import Penalty
from nmt.search.look import look
from nmt.search.part import Part
from nmt.search.solve import Solver

WIDER = (2, 4, 8)  # times the beam, in search of more texts


class Choice:
    """Chooses the n best hypotheses of parts that ask for more than the most probable ones."""

    def __init__(
        self, solver: Solver, settings: ControlConfig, penalty: Penalty, text_of: Callable[[Hypothesis], str]
    ) -> None:
        self.solver, self.settings, self.penalty, self.text_of = solver, settings, penalty, text_of

    def __call__(self, parts: Sequence[Part], n_best: int) -> None:
        """Leave in those of `parts` that ask for it their `n_best` best hypotheses, best first."""
        asked = [part for part in parts if part.chosen]
        self._cover(asked)
        self._fill([part for part in asked if part.settings.unique_text], n_best)
        for part in asked:
            part.hypotheses = part.hypotheses[:n_best]
        self._carry_over([part for part in asked if part.settings.replace_unk])
        for part in asked:
            part.maps = []  # of whatever was looked at last

    def _cover(self, parts: Sequence[Part]) -> None:
        covering = [part for part in parts if part.settings.coverage_penalty > 0]
        self._look(covering)
        for part in covering:
            prefer_covering(part, part.settings.coverage_penalty)

    def _look(self, parts: Sequence[Part]) -> None:
        if parts:
            look(self.solver, parts, max(len(part.hypotheses) for part in parts), self.settings)

    def _fill(self, parts: Sequence[Part], n_best: int) -> None:
        """Keep the best of each text, and search with a wider beam for as many more as are missing."""
        found = [self._distinct(part.hypotheses) for part in parts]
        open_ = [i for i, kept in enumerate(found) if 0 < len(kept) < n_best]
        for times in WIDER:
            if not open_:
                break
            again = [parts[i] for i in open_]
            beam = self.settings.beam * times
            wider = self.settings.model_copy(update={"beam": beam})
            self.solver.solve(again, max(beam, n_best * times), wider, self.penalty)
            self._cover(again)
            for i in open_:
                found[i] = self._added(found[i], parts[i], n_best)
            open_ = [i for i in open_ if len(found[i]) < n_best]
        for part, kept in zip(parts, found, strict=True):
            part.hypotheses = sorted(kept, key=lambda one: -one.score)

    def _added(self, kept: Sequence[Hypothesis], part: Part, n_best: int) -> list[Hypothesis]:
        """`kept`, and of what a wider beam found as many as are missing.

        Those that are better than the best come last, so that the best stays the best if that can be.
        """
        fitting = [one for one in part.hypotheses if not part.wishes.problems(self.text_of(one))]
        fitting.sort(key=lambda one: (one.score > kept[0].score, -one.score))
        return self._distinct([*kept, *fitting])[:n_best]

    def _distinct(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        by_text: dict[str, Hypothesis] = {}
        for one in hypotheses:
            by_text.setdefault(self.text_of(one), one)
        return list(by_text.values())

    def _carry_over(self, parts: Sequence[Part]) -> None:
        self._look(parts)
        source, target = self.solver.source, self.solver.target
        for part in parts:
            unknown = [i == source.unk for i in part.text_ids]
            part.hypotheses = [
                carried_over(found, map_TS, part.surfaces, unknown, target)
                for found, map_TS in zip(part.hypotheses, part.maps, strict=True)
            ]
