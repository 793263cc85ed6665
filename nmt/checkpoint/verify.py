"""Whether an export for CTranslate2 does what its model does: greedy translations, and probabilities of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import ctranslate2

from nmt.corpus.lines import is_blank
from nmt.errors import DataError, ModelError
from nmt.search.translate import Translator
from nmt.search.translation import Translation

MOST_LINES = 10_000


@dataclass(frozen=True)
class Agreement:
    """How far an export and its model agree."""

    lines: int
    """Lines compared: all but those which are blank or too long to be translated whole."""
    equal: int
    """Lines of which the greedy translation is the same, token for token."""
    difference: float
    """The largest difference between the two log-probabilities of a token of the model's translations."""

    def __str__(self) -> str:
        return (
            f"{self.equal:,} of {self.lines:,} lines ({100 * self.equal / self.lines:.1f} %) have the same greedy "
            f"translation; log-probabilities of tokens differ by {self.difference:.2g} at most"
        )


def agreement(ours: Translator, exported: Path, lines: Iterable[str], arithmetic: str = "default") -> Agreement:
    """Compare the model with its export on the first 10,000 lines. Raises DataError where none can be compared."""
    found = [t for t in ours.stream(islice(lines, MOST_LINES), beam=1, precision="float32") if not _apart(t)]
    if not found:
        raise DataError("no line can be compared: all are blank or too long", "name a file of ordinary sentences")
    engine = ctranslate2.Translator(str(exported), device="cpu", inter_threads=1, compute_type=arithmetic)
    sources = [list(t.source_tokens) for t in found]
    never = [["<s>"], ["<pad>"], *([tag] for tag in ours.target_vocabulary.tags)]
    longest = max(len(t.best.tokens) for t in found) + 1
    batches = {"max_input_length": 0, "max_batch_size": 4096, "batch_type": "tokens"}
    limits = {"min_decoding_length": 0, "max_decoding_length": longest}
    asked = {"beam_size": 1, "disable_unk": True, "suppress_sequences": never, **limits}
    theirs = engine.translate_batch(sources, **asked, **batches)
    scored = engine.score_batch(sources, [list(t.best.tokens) for t in found], **batches)
    pairs = list(zip(found, (result.hypotheses[0] for result in theirs), strict=True))
    differences = [
        abs(a - b)
        for t, score in zip(found, scored, strict=True)
        for a, b in zip(t.best.token_log_probabilities, score.log_probs, strict=True)
    ]
    return Agreement(len(found), sum(_alike(t, tokens) for t, tokens in pairs), max(differences))


def prove(ours: Translator, exported: Path, lines: Iterable[str], least: float, quantization: str) -> Agreement:
    """The agreement. Raises ModelError where less than `least` percent of the lines are translated the same."""
    found = agreement(ours, exported, lines, quantization if quantization == "int8" else "float32")
    if 100 * found.equal < least * found.lines:
        raise ModelError(f"the export is not what the model is: {found}", "nothing was written; see --quantization")
    return found


def _apart(translation: Translation) -> bool:
    """Blank, or split into parts, which only we do."""
    return is_blank(translation.source) or any("split into" in caution for caution in translation.cautions)


def _alike(translation: Translation, tokens: list[str]) -> bool:
    """Whether `tokens` are those of the translation, as far as that may go: limits of length are not the same."""
    own = translation.best
    return tokens[: len(own.tokens)] == list(own.tokens) and (len(tokens) == len(own.tokens) or not own.finished)
