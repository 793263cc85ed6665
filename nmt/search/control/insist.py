"""Search again where a translation lacks what was asked for; what still lacks it is told.

A line is searched for freely first, and keeps what is found if that will do: so asking changes no translation that
needn't change. Otherwise it is searched for with its required phrases in place and the forbidden ones, as they were
spelled, ruled out; the forbidden ones again, since a phrase can be spelled with other tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nmt.search.control.phrases import places
from nmt.search.hypothesis import Hypothesis
from nmt.search.part import Part
from nmt.subwords.vocabulary import Vocabulary

ROUNDS = 4  # of searching again, at most


class Insistence:
    """Brings parts to what is asked of them, as far as search can.

    `ids_of` gives a phrase's tokens, `text_of` a translation's text, `search` fills in the hypotheses of parts, at
    least as many as the number it is given where there are so many.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        clean: Callable[[str], str],
        text_of: Callable[[Hypothesis], str],
        search: Callable[[list[Part], int], None],
    ) -> None:
        self.vocabulary, self.clean, self.text_of, self.search = vocabulary, clean, text_of, search

    def __call__(self, parts: Sequence[Part], n_best: int, beam: int) -> None:
        """Search again for those of `parts` that need it, and keep of each the best that will do, as many as wanted.

        Where none will do, those that lack the least are kept. The first is sought as if it were the only one wanted.
        Samples are as many as asked for, whatever they lack: a choice among them would be no sample.
        """
        self._draw_anew([part for part in parts if part.settings.sample], n_best)
        parts = [part for part in parts if not part.settings.sample]
        free = [list(part.hypotheses) for part in parts]
        pools = [found[: part.wanted(1)] for part, found in zip(parts, free, strict=True)]
        asked = [i for i, part in enumerate(parts) if not self._served(part, pools[i])]
        self._again(parts, pools, asked, 1, beam)
        best = [pool[0] for pool in pools]
        for i in asked:
            best[i] = self._chosen(parts[i], pools[i])[0]
        if n_best > 1:
            asked = [i for i, part in enumerate(parts) if not self._served(part, free[i])]
            for i in asked:
                pools[i] += [found for found in free[i] if found not in pools[i]]
            self._again(parts, pools, asked, n_best, beam)
        for i in asked:
            found = self._chosen(parts[i], pools[i], best[i] if n_best > 1 else None)
            parts[i].hypotheses = _led_by(best[i], found, parts[i].wanted(n_best))

    def _draw_anew(self, parts: Sequence[Part], count: int) -> None:
        """Draw again, all `count` of a part, as long as one of them holds a forbidden phrase in a new spelling."""
        for _ in range(ROUNDS):
            parts = [part for part in parts if self._constrain(part, part.hypotheses)]
            if not parts:
                break
            self.search(list(parts), count)

    def _again(
        self, parts: Sequence[Part], pools: Sequence[list[Hypothesis]], open_: list[int], enough: int, beam: int
    ) -> None:
        """Search for the parts numbered in `open_`, into their pools, until `enough` of what is found will do."""
        for _ in range(ROUNDS):
            again = [i for i in open_ if self._constrain(parts[i], pools[i])]
            if not again:
                break
            self.search([parts[i] for i in again], beam)
            for i in again:
                pools[i] += [found for found in parts[i].hypotheses if found not in pools[i]]
            open_ = [i for i in again if self._serving(parts[i]) < enough]

    def _serving(self, part: Part) -> int:
        """How many of the hypotheses found last will do, the empty one not counted."""
        return sum(bool(found.ids) and self._served(part, [found]) for found in part.hypotheses)

    def _served(self, part: Part, found: Sequence[Hypothesis]) -> bool:
        return bool(found) and not any(self._problems(part, hypothesis) for hypothesis in found)

    def _problems(self, part: Part, found: Hypothesis) -> list[str]:
        return part.wishes.problems(self.text_of(found))

    def _constrain(self, part: Part, pool: Sequence[Hypothesis]) -> bool:
        """Give `part` the constraints that its hypotheses show to be needed; False where there are no more."""
        forbidden = dict.fromkeys(part.forbidden)
        for phrase in map(self.clean, part.wishes.forbidden):
            spelled = [span for found in pool for span in self._spelled(phrase, found.ids)]
            forbidden |= dict.fromkeys([tuple(self.vocabulary.encode(phrase)), *spelled] if spelled else [])
        required: tuple[tuple[int, ...], ...] = ()
        if not part.settings.sample:
            required = tuple(tuple(self.vocabulary.encode(self.clean(phrase))) for phrase in part.wishes.phrases())
        if (required, tuple(forbidden)) == (part.required, part.forbidden):
            return False
        part.required, part.forbidden = required, tuple(forbidden)
        part.most = min(max(part.most, len(part.prefix) + sum(map(len, required))), part.room)
        return True

    def _spelled(self, phrase: str, ids: Sequence[int]) -> list[tuple[int, ...]]:
        """The tokens that spell `phrase` in a hypothesis, for every place where it stands."""
        ends = [len(self.vocabulary.decode(ids[: i + 1])) for i in range(len(ids))]
        text = self.vocabulary.decode(ids)
        spans = []
        for start in places(phrase, text):
            end = start + len(phrase)
            first = next(i for i, ended in enumerate(ends) if ended > start)
            last = next(i for i, ended in enumerate(ends) if ended >= end)
            spans.append(tuple(ids[first : last + 1]))
        return spans

    def _chosen(self, part: Part, pool: Sequence[Hypothesis], best: Hypothesis | None = None) -> list[Hypothesis]:
        """Those that will do, best first; where none will, those that lack the least.

        Nothing is empty if that can be helped, unless it is `best`.
        """
        lacks = {found: (len(self._problems(part, found)), not found.ids and found != best) for found in pool}
        least = min(lacks.values())
        return sorted((found for found in pool if lacks[found] == least), key=lambda found: -found.score)


def _led_by(best: Hypothesis, found: list[Hypothesis], count: int) -> list[Hypothesis]:
    """`count` of those found, best first, from `best` on, so that the first of many is the one of one.

    Better ones come in only where there are too few others.
    """
    at = found.index(best) if best in found else 0
    led = found[at : at + count]
    return [*found[max(at - (count - len(led)), 0) : at], *led]
