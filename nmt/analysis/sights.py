"""Alignment and attention of chosen sentences as a part of a report: words over words, maps and thumbnails."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from nmt.analysis.chosen import Seen, Sentence, Sights, reads
from nmt.analysis.markup import Markup, details, join, tag
from nmt.analysis.record import Record
from nmt.corpus.lines import is_blank
from nmt.wording import counted

FAINTEST = 0.01  # a weight that is drawn
LEVELS = 12  # shades of a thumbnail
MARKS = (0, 0.05, 0.2, 0.5, 1)
ABOUT = (
    "Under each word of a translation stands the word of the source that the model looks at most while it writes it, "
    "by the mean over the heads of cross-attention in the last layer but one. Rows of a map are the steps that write, "
    "columns the source. Weights tell what is mixed, not what matters."
)


def sights(found: Sights | None, records: Sequence[Record], names: Sequence[str]) -> Markup:
    """Every sentence with what each run's model saw; nothing where nothing was looked at."""
    if found is None or not (found.seen or found.problems):
        return Markup()
    parts = [_sentence(i, sentence, found, records, names) for i, sentence in enumerate(found.sentences)]
    problems = [tag("p", f"{names[run]}: {text}", class_="soft") for run, text in found.problems.items()]
    key = tag("div", "weight", *(_mark(weight) for weight in MARKS), class_="key")
    return join([tag("p", ABOUT, class_="soft"), key, *parts, *problems])


def _mark(weight: float) -> Markup:
    return tag("span", tag("i", style=f"--shade:{math.sqrt(weight):.3f}"), f"{weight:g}")


def _sentence(
    number: int, sentence: Sentence, found: Sights, records: Sequence[Record], names: Sequence[str]
) -> Markup:
    several = len(records) > 1
    by = f" of {names[sentence.chooser]}" if several and sentence.chooser is not None else ""
    head = [tag("h3", f"{sentence.label}{by}" if sentence.label else f"Sentence {number + 1}")]
    head += [_line("before", text) for text in sentence.context if not is_blank(text)]
    head.append(_line("source", sentence.source))
    head += [_line("reference", text) for text in sentence.references]
    parts: list[Markup] = []
    for run, record in enumerate(records):
        if seen := found.seen.get((number, run)):
            parts.append(_line(names[run] if several else "translation", _gloss(seen)))
            command = ["nmt attention", str(record.path), _quoted(sentence.source)]
            command += [f"--context {_quoted(text)}" for text in sentence.context if reads(record)]
            parts += _maps(seen, names[run], " ".join(command), open_=not several)
    return tag("div", *head, *parts, class_="sight several" if several else "sight") if parts else Markup()


def _line(name: str, content: object) -> Markup:
    return tag("div", tag("span", name, class_="what"), tag("div", content, dir="auto"), class_="told")


def _gloss(seen: Seen) -> Markup:
    """Each word of the translation over the word of the source that it is linked with."""
    of = dict((j, i) for i, j in seen.links)
    pairs = (
        tag(
            "span",
            tag("b", word, dir="auto"),
            tag("small", seen.source_words[of[j]] if j in of else "–", dir="auto"),
            title=f"{of[j]}-{j}" if j in of else None,
        )
        for j, word in enumerate(seen.target_words)
    )
    return tag("div", join(pairs, " "), class_="gloss", data_links=" ".join(f"{i}-{j}" for i, j in seen.links))


def _maps(seen: Seen, name: str, command: str, open_: bool) -> Iterator[Markup]:
    heads = len(seen.weights[seen.layer])
    summary = f"Cross-attention of {name}: layer {seen.layer + 1}, mean of {counted(heads, 'head')}"
    yield details(summary, tag("div", _map(seen), class_="map"), open_=open_)
    about = tag("p", "All weights, also of encoder and decoder: ", tag("code", command), class_="soft")
    yield details("Every head of every layer", tag("div", _heads(seen), class_="wide"), about)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _map(seen: Seen) -> Markup:
    """The mean over heads as a table; a cell's title holds its number."""
    head = tag("tr", tag("td", class_="corner"), *(_column(text) for text in seen.columns))
    rows = []
    for text, weights in zip(seen.rows, seen.mean(), strict=True):
        cells = (_cell(text, key, weight) for key, weight in zip(seen.columns, weights, strict=True))
        rows.append(tag("tr", tag("th", text, scope="row", dir="auto"), *cells))
    return tag("table", tag("thead", head), tag("tbody", *rows), style=f"--columns:{len(seen.columns)}")


def _column(text: str) -> Markup:
    return tag("th", tag("span", text, dir="auto"), scope="col")


def _cell(row: str, column: str, weight: float) -> Markup:
    ink = tag("i", style=f"opacity:{math.sqrt(weight):.3f}") if weight >= FAINTEST else ""
    return tag("td", ink, title=f"{row} ← {column} {weight:.4f}")


def _heads(seen: Seen) -> Markup:
    """A row of thumbnails for each layer."""
    most = max(len(layer) for layer in seen.weights)
    first = tag("tr", tag("th", ""), *(tag("th", f"head {i + 1}") for i in range(most)))
    rows = [
        tag("tr", tag("th", f"layer {i + 1}", scope="row"), *(tag("td", thumbnail(head)) for head in layer))
        for i, layer in enumerate(seen.weights)
    ]
    return tag("table", tag("thead", first), tag("tbody", *rows), class_="thumbnails")


def thumbnail(weights: Sequence[Sequence[float]]) -> Markup:
    """One head as a small drawing; cells of about the same shade are one path, which keeps a page small."""
    shades: dict[int, list[str]] = {}
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            if weight >= FAINTEST:
                shades.setdefault(max(1, round(LEVELS * math.sqrt(weight))), []).append(f"M{j} {i}h1v1h-1z")
    paths = (tag("path", d="".join(cells), opacity=f"{shade / LEVELS:.2f}") for shade, cells in sorted(shades.items()))
    size = f"0 0 {len(weights[0])} {len(weights)}"
    return tag("svg", *paths, viewBox=size, preserveAspectRatio="none", class_="head", aria_hidden="true")
