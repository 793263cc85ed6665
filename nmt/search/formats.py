"""How translations are written down: text, nbest, jsonl, fairseq; and how jsonl is read."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from nmt.errors import DataError
from nmt.search.translation import Candidate, Translation

Format = Literal["text", "nbest", "jsonl", "fairseq"]
Record = dict[str, Any]

DEEPEST = 200
"""Levels of lists and objects in a line of JSON: what is read shall be written again, wherever that happens."""
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"}  # line ends that JSON leaves as they are


def writer(
    form: Format, scores: bool = False, alignment: bool = False
) -> Callable[[Translation, Record], Iterator[str]]:
    """What turns a translation, and the record it was read from, into lines.

    `scores` shows more of them, and `alignment` shows it, if translations have it.
    """
    if form == "nbest":
        return lambda translation, _: nbest(translation, alignment)
    if form == "jsonl":
        return lambda translation, record: iter([jsonl(translation, record, scores, alignment)])
    if form == "fairseq":
        return lambda translation, _: fairseq(translation, alignment)
    return lambda translation, _: iter([text(translation, scores, alignment)])


def pharaoh(candidate: Candidate) -> str:
    """The alignment as pairs of a source and a target word: `0-0 1-2`."""
    return " ".join(f"{i}-{j}" for i, j in candidate.alignment or ())


def text(translation: Translation, scores: bool, alignment: bool = False) -> str:
    """The best translation; with `scores`, its score and a tab before it; with `alignment`, that behind it."""
    line = f"{translation.score:.6f}\t{translation.text}" if scores else translation.text
    return f"{line} ||| {pharaoh(translation.best)}" if alignment else line


def nbest(translation: Translation, alignment: bool = False) -> Iterator[str]:
    """Lines as Moses and Marian write them: the line's number from 0, text, features, score; perhaps alignment."""
    for candidate in translation.alternatives:
        features = f"LogP= {candidate.log_probability:.6f} Length= {len(candidate.token_log_probabilities)}"
        features += "".join(f" {name}= {value:.6f}" for name, value in candidate.features)
        line = f"{translation.number} ||| {candidate.text} ||| {features} ||| {candidate.score:.6f}"
        yield f"{line} ||| {pharaoh(candidate)}" if alignment else line


def fairseq(translation: Translation, alignment: bool = False) -> Iterator[str]:
    """S, H, D and P lines, numbers from 0: source pieces, pieces, text, and every piece's log-probability in nats.

    With `alignment` an A line too: pairs of words.
    """
    number = translation.number
    yield f"S-{number}\t{' '.join(translation.source_tokens)}"
    for candidate in translation.alternatives:
        yield f"H-{number}\t{candidate.score:.6f}\t{' '.join(candidate.tokens)}"
        yield f"D-{number}\t{candidate.score:.6f}\t{candidate.text}"
        yield f"P-{number}\t{' '.join(f'{gain:.4f}' for gain in candidate.token_log_probabilities)}"
        if alignment:
            yield f"A-{number}\t{pharaoh(candidate)}"


def jsonl(translation: Translation, record: Record, scores: bool = False, alignment: bool = False) -> str:
    """One object: the fields of `record`, and ours; its own `id` stays, otherwise the id is the number from 0."""
    best = translation.best
    data: Record = {"id": translation.number, "source": translation.source}
    data |= record
    data |= {"translation": best.text, "score": round(best.score, 6), "tokens": list(best.tokens)}
    data |= _opinion(best, scores, alignment)
    if len(translation.alternatives) > 1:
        data["alternatives"] = [
            {"translation": c.text, "score": round(c.score, 6), "tokens": list(c.tokens)}
            | _opinion(c, scores, alignment)
            for c in translation.alternatives
        ]
    return one_object(data)


def one_object(data: Record) -> str:
    """`data` as JSON on one line, in letters rather than escapes, but for what some program takes as a line end."""
    return json.dumps(data, ensure_ascii=False).translate(_ESCAPED)


def read_record(line: str, place: str, tally: Counter[str] | None = None) -> tuple[str, Record]:
    """The source text of a line of JSON and the whole object; a blank line is an empty source.

    Half a surrogate pair, which JSON can write and no text can hold, becomes U+FFFD and is counted in `tally`.
    Raises DataError, which names `place`, for anything but an object with a text `source`.
    """
    if not line.strip():
        return "", {}
    try:
        record = json.loads(line, parse_float=_finite, parse_constant=_finite)
        deep = line.count("[") + line.count("{") > DEEPEST and _deeper(record, DEEPEST)
    except ValueError as error:
        raise DataError(f"{place}: is not valid JSON: {error}", "each line holds one JSON object") from error
    except RecursionError:
        deep = True
    if deep:
        raise DataError(f"{place}: is nested deeper than {DEEPEST} levels", "each line holds one JSON object")
    if not isinstance(record, dict) or not isinstance(record.get("source"), str):
        raise DataError(f"{place}: is not an object with a text field source", 'write {"source": "..."} on each line')
    if "\\u" in line:
        record = _mended(record, tally if tally is not None else Counter())
    return record["source"], record


def _deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects stand in each other deeper than that."""
    inside = [value] if isinstance(value, list | dict) else []
    for _ in range(levels):
        below = [list(one.values()) if isinstance(one, dict) else one for one in inside]
        inside = [item for items in below for item in items if isinstance(item, list | dict)]
    return bool(inside)


def _mended(value: Any, tally: Counter[str]) -> Any:
    """`value` with U+FFFD for what is half a surrogate pair, wherever there is text in it."""
    if isinstance(value, str):
        text, count = _HALF_PAIR.subn("\ufffd", value)
        tally["half pairs"] += count
        return text
    if isinstance(value, list):
        return [_mended(item, tally) for item in value]
    if isinstance(value, dict):
        return {_mended(key, tally): _mended(item, tally) for key, item in value.items()}
    return value


def _finite(text: str) -> float:
    """A number that JSON can say again: it has none for infinity and for what is no number."""
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return number


def _opinion(candidate: Candidate, scores: bool, alignment: bool) -> Record:
    opinion: Record = {"finished": candidate.finished}
    if candidate.features:
        opinion["features"] = {name: round(value, 6) for name, value in candidate.features}
    if alignment:
        opinion["alignment"] = pharaoh(candidate)
    if scores:
        opinion["log_probability"] = round(candidate.log_probability, 6)
        opinion["token_log_probabilities"] = rounded(candidate.token_log_probabilities)
    return opinion


def rounded(numbers: Sequence[float]) -> list[float]:
    """Six digits after the point, which is what float32 can tell of log-probabilities."""
    return [round(number, 6) for number in numbers]
