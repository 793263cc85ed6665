"""The report of a run, or of several side by side: one HTML file without a script that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nmt import __version__
from nmt.analysis.charts import Series, chart, points_of
from nmt.analysis.chosen import Sights
from nmt.analysis.examples import examples
from nmt.analysis.markup import Markup, asset, details, escape, fill, join, section, table, tag
from nmt.analysis.record import STAGES, Record
from nmt.analysis.scores import scores
from nmt.analysis.sights import sights
from nmt.analysis.sizes import sizes
from nmt.wording import counted, span

UNTOLD = ("name", "data.download")  # settings that change no result


def report(records: Sequence[Record], seen: Sights | None = None) -> str:
    """The HTML file; `seen` is what the runs' models look at in chosen sentences.

    Raises DataError where a tokenizer that the recipe's scores need is not installed.
    """
    names = _names(records)
    several = len(records) > 1
    title = f"{', '.join(names[:-1])} and {names[-1]}" if several else names[0]
    parts = [
        section("At a glance", _glance(records, names)),
        section("Settings that differ", _differences(records, names)) if several else "",
        section("Scores", scores(records, names)),
        section("Learning curves", _curves(records, names)),
        section("Alignment and attention", sights(seen, records, names)),
    ]
    for record, name in zip(records, names, strict=True):
        own = join(_own(record))
        parts.append(tag("article", tag("h2", name, class_="run"), own) if several else own)
    return fill(
        asset("report.html"),
        title=escape(f"nmt: {title}"),
        style=asset("common.css") + asset("map.css") + asset("report.css"),
        heading=escape(title),
        body=join(parts),
        made=escape(f"Made by nmt {__version__} from the files of {', '.join(str(r.path) for r in records)}."),
    )


def _names(records: Sequence[Record]) -> list[str]:
    """The runs' names, or their folders' where these are the same."""
    names = [record.name for record in records]
    if len(set(names)) < len(names):
        names = [record.path.name for record in records]
    if len(set(names)) < len(names):
        names = [str(record.path) for record in records]
    return names


def _glance(records: Sequence[Record], names: Sequence[str]) -> Markup:
    facts = [dict(_facts(record)) for record in records]
    keys = list(dict.fromkeys(key for one in facts for key in one))
    return table(["", *names], [[key, *(one.get(key, "–") for one in facts)] for key in keys])


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    yield "languages", " → ".join(record.languages)
    if record.preprocess:
        read, kept = record.preprocess["read"], record.preprocess["kept"]
        yield "training pairs", f"{kept:,} of {read:,} read"
    if sizes := record.subwords.get("vocabulary"):
        shared = record.recipe.get("bpe", {}).get("shared", True)
        yield "vocabulary", f"{sizes['source']:,} shared" if shared else f"{sizes['source']:,} + {sizes['target']:,}"
    if record.parameters:
        yield "parameters", f"{record.parameters:,}"
    if steps := record.events("step"):
        yield "updates", f"{steps[-1]['step']:,}, {counted(steps[-1]['epoch'], 'epoch')}"
        seconds = sum(step["tokens"] / step["rate"] for step in steps if step.get("rate"))
        yield "time in updates", span(seconds)
    if record.steps:
        yield "model", f"mean of {len(record.steps)} checkpoints" if len(record.steps) > 1 else "one checkpoint"
    if best := _best(record):
        yield "best validation", best
    if stopped := record.events("stopped"):
        yield "training ended", str(stopped[-1].get("reason"))


def _best(record: Record) -> str:
    kept = [event for event in record.events("validation") if event.get("best")]
    if not kept:
        return ""
    event = kept[-1]
    bleu = f", BLEU {event['bleu']:.2f}" if event.get("bleu") is not None else ""
    loss = f"loss {event['loss']:.3f}" if event.get("loss") is not None else "loss not finite"
    return f"{loss}{bleu} at {event['step']:,}"


def _differences(records: Sequence[Record], names: Sequence[str]) -> Markup:
    flat = [{key: value for key, value in flatten(record.recipe) if not key.startswith(UNTOLD)} for record in records]
    keys = list(dict.fromkeys(key for one in flat for key in one))
    missing = object()
    rows = [
        [tag("code", key), *(_setting(one.get(key, "–")) for one in flat)]
        for key in keys
        if len({repr(one.get(key, missing)) for one in flat}) > 1
    ]
    return table(["setting", *names], rows) if rows else tag("p", "The recipes are the same but for their names.")


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a recipe's tables with their dotted keys."""
    items: Iterator[tuple[Any, Any]] | None = None
    if isinstance(value, Mapping):
        items = iter(value.items())
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        items = iter(enumerate(value))
    if items is None:
        yield prefix, value
        return
    for key, inner in items:
        yield from flatten(inner, f"{prefix}.{key}" if prefix else str(key))


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _curves(records: Sequence[Record], names: Sequence[str]) -> Markup:
    several = len(records) > 1
    steps = [record.events("step") for record in records]
    checks = [record.events("validation") for record in records]

    def label(name: str, i: int) -> str:
        return f"{names[i]}, {name}" if several else name

    def training(i: int, some: Sequence[Mapping[str, Any]]) -> Series:
        """Where runs are compared, a colour is a run's; one run's two losses have one each."""
        points = points_of(some, "nll" if "nll" in some[0] else "loss")
        return Series(label("training", i), points, i if several else 1, faint=True, dashed=several)

    losses = [training(i, some) for i, some in enumerate(steps) if some]
    losses += [Series(label("validation", i), points_of(some, "loss"), i) for i, some in enumerate(checks)]
    charts = [chart("Loss: −log p of a target token, in nats", losses)]
    for key, title in (("bleu", "Validation BLEU"), ("chrf", "Validation chrF")):
        charts.append(chart(title, [Series(label(title, i), points_of(some, key), i) for i, some in enumerate(checks)]))
    for key, title in (("learning_rate", "Learning rate"), ("rate", "Target tokens a second")):
        lines = [Series(label(title.lower(), i), points_of(some, key), i, faint=True) for i, some in enumerate(steps)]
        charts.append(chart(title, lines))
    shown = [one for one in charts if one]
    counted = [_counted(record, name) for record, name in zip(records, names, strict=True)]
    charts_of = tag("div", *shown, class_="charts")
    return join([charts_of, *counted, *_validations(records, names)]) if shown else Markup()


def _counted(record: Record, name: str) -> Markup:
    """What a run's curves are of."""
    valid, first = record.preprocess.get("valid"), record.recipe.get("train", {}).get("valid_lines")
    if not valid:
        return Markup()
    translated = f"BLEU and chrF of the first {first:,}" if first and first < valid["kept"] else "BLEU and chrF of all"
    pairs = counted(record.preprocess["kept"], "pair")
    text = f"{name}: trained on {pairs}; validated on {valid['kept']:,}, {translated}."
    return tag("p", text, class_="soft")


def _validations(records: Sequence[Record], names: Sequence[str]) -> Iterator[Markup]:
    """The same numbers to read and to copy."""
    for record, name in zip(records, names, strict=True):
        rows = [
            [f"{event['step']:,}", *(_number(event.get(key)) for key in ("loss", "perplexity", "bleu", "chrf"))]
            for event in record.events("validation")
        ]
        if rows:
            summary = f"Validations of {name} as a table" if len(records) > 1 else "Validations as a table"
            yield details(summary, table(["updates", "loss", "perplexity", "BLEU", "chrF"], rows, numeric=range(5)))


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"


def _own(record: Record) -> Iterator[Markup]:
    """What is told of each run by itself."""
    yield from examples(record)
    yield section("Data", _data(record))
    yield section("Subwords", _subwords(record), sizes(record.path))
    yield section("How it was made", _environment(record))
    yield section("Recipe", details("The recipe as run", tag("pre", record.recipe_text)))


def _data(record: Record) -> Markup:
    if not record.preprocess:
        return Markup()
    valid = record.preprocess.get("valid")
    corpora = [*record.preprocess.get("corpora", ()), *([{**valid, "held": True}] if valid else [])]
    reasons = list(dict.fromkeys(reason for corpus in corpora for reason in corpus.get("dropped", {})))
    heads = ["corpus", "read", "kept", *(f"dropped: {reason}" for reason in reasons), "invalid bytes"]
    rows = [
        [
            f"{corpus['name']}{' (validation)' if corpus.get('held') else ''}",
            f"{corpus['read']:,}",
            f"{corpus['kept']:,}",
            *(f"{corpus.get('dropped', {}).get(reason, 0):,}" for reason in reasons),
            f"{corpus.get('bad_bytes', 0):,}",
        ]
        for corpus in corpora
    ]
    return join([table(heads, rows, numeric=range(1, len(heads))), *map(_dropped, corpora)])


def _dropped(corpus: Mapping[str, Any]) -> Markup:
    """The first pairs that each filter took out of a corpus."""
    rows = [
        [reason, f"{pair['line']:,}", pair["source"], pair["target"]]
        for reason, pairs in corpus.get("examples", {}).items()
        for pair in pairs
    ]
    if not rows:
        return Markup()
    return details(f"Dropped from {corpus['name']}: examples", table(["reason", "line", "source", "target"], rows, [1]))


def _subwords(record: Record) -> Markup:
    rows = []
    for split in ("train", "valid"):
        for side, counts in record.subwords.get(split, {}).items():
            words, lines, pieces = (max(counts[key], 1) for key in ("words", "lines", "pieces"))
            numbers = (f"{pieces / words:.2f}", f"{pieces / lines:.1f}", f"{counts['longest']:,}")
            unknown = f"{100 * counts['unknown'] / pieces:.2f} %"
            rows.append([f"{split} {side}", f"{counts['lines']:,}", f"{counts['pieces']:,}", *numbers, unknown])
    heads = ["text", "lines", "pieces", "a word", "a line", "longest line", "unknown"]
    return table(heads, rows, numeric=range(1, 7)) if rows else Markup()


def _environment(record: Record) -> Markup:
    rows = [
        [stage, found.get("finished") or "not finished", span(found.get("seconds") or 0), found.get("nmt", "–")]
        for stage in STAGES
        if (found := record.manifests.get(stage))
    ]
    told = [table(["stage", "finished", "last run took", "nmt"], rows, numeric=[2])] if rows else []
    for stage, found in record.manifests.items():
        if environment := found.get("environment"):
            facts = [(str(key), _setting(value)) for key, value in flatten(environment)]
            told.append(details(f"Machine and versions of {stage}", table(["", ""], facts)))
    return join(told)
