"""What the models of runs look at while they write sentences: alignment and cross-attention, for a report.

H heads · L layers · Q queries · K keys
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nmt.analysis.alignment import Alignments, align
from nmt.analysis.chosen import Seen, Sentence, Sights
from nmt.analysis.look import Grid, look
from nmt.analysis.record import Record
from nmt.checkpoint.load import load_translator
from nmt.errors import NmtError
from nmt.score.languages import UNSPACED, base
from nmt.search.control.request import Request
from nmt.search.translate import Translator


def see(records: Sequence[Record], sentences: Sequence[Sentence], device: str = "cpu") -> Sights:
    """Load each run's model in turn and look into `sentences`. A model that cannot be loaded is told of in `problems`.

    A translation that a run has made is read as if its model were writing it; the others are made now.
    """
    seen: dict[tuple[int, int], Seen] = {}
    problems: dict[int, str] = {}
    for run, record in enumerate(records):
        own = [(i, sentence) for i, sentence in enumerate(sentences) if run in sentence.runs]
        try:
            translator = load_translator(record.path, device) if own else None
            for i, sentence in own:
                assert translator is not None
                seen[i, run] = seen_by(translator, sentence, sentence.translations.get(run), record.languages)
        except NmtError as error:
            problems[run] = error.problem
    return Sights(tuple(sentences), seen, problems)


def seen_by(translator: Translator, sentence: Sentence, target: str | None, languages: tuple[str, str]) -> Seen:
    """What the model looks at. Raises DataError where it cannot take the sentence, ModelError without attention.

    Units are words, or pieces where one of the languages writes no spaces. A model that reads no context is given none.
    """
    translator.tags = replace(translator.tags, default=sentence.tag)
    context = sentence.context if translator.context.sentences else ()
    found = look(translator, sentence.source, target, context)
    spaced = not any(base(language) in UNSPACED for language in languages)
    grid = found.grid("words" if spaced else "subwords")
    weights_LHQK = grid.weights["cross"]
    weights = tuple(tuple(tuple(map(tuple, head)) for head in layer) for layer in weights_LHQK.tolist())
    seen = Seen(found.target, (), (), (), *grid.axes("cross"), weights, max(weights_LHQK.size(0) - 2, 0))
    if not spaced:
        return _by_rows(seen, grid, found.lead)
    *_, aligned = align(translator, [Request(sentence.source, context=tuple(context))], [found.target])
    assert isinstance(aligned, Alignments)
    words = tuple(sentence.source.split()), tuple(found.target.split())
    return replace(seen, source_words=words[0], target_words=words[1], links=aligned.layers[aligned.usual][0])


def _by_rows(seen: Seen, grid: Grid, lead: int) -> Seen:
    """`seen` with each piece linked to the piece it looks at most, marks left out."""
    source, target = grid.source[lead:-1], grid.written[:-1]
    looked = [row[lead:-1] for row in seen.mean()[:-1]]
    links = tuple(sorted((max(range(len(row)), key=row.__getitem__), j) for j, row in enumerate(looked) if row))
    return replace(seen, source_words=source, target_words=target, links=links)
