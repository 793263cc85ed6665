"""How an estimate is shown: aligned lines, and JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from nmt.stages.costs import Estimate, Memory, Time, Updates
from nmt.train.flops import FORMULA, PAPER_FORMULA
from nmt.wording import counted

LABEL, WIDTH = 12, 80  # columns
TEXTS = {
    "shards": "as in the run's shards",
    "pieces": "counted in the corpus, before anything is cleaned or filtered",
    "corpus": "guessed from the corpus's words and letters, before anything is filtered",
    "news": "as in news text",
}
VOCABULARIES = {
    "run": "as the run has it",
    "start_from": "of the model to start from",
    "bpe.size": "as [bpe] size says",
}


def lines(found: Estimate) -> Iterator[str]:
    """For people, at most 80 columns wide."""
    for label, texts in _parts(found).items():
        for text in texts:
            for line in textwrap.wrap(text, WIDTH - LABEL):
                yield f"{label:<{LABEL}}{line}"
                label = ""


def _parts(found: Estimate) -> dict[str, list[str]]:
    """What is told under each heading, a sentence an item."""
    sizes, parameters = found.sizes, found.parameters
    frozen = parameters.all - parameters.trained
    pieces = f"{sizes.source:,}" + (f" and {sizes.target:,}" if sizes.source != sizes.target else "")
    return {
        "parameters": [
            f"{parameters.all:,}: embeddings {parameters.embeddings:,}, encoder {parameters.encoder:,}, "
            f"decoder {parameters.decoder:,}" + (f"; {frozen:,} frozen" if frozen else ""),
            f"for {pieces} pieces, {VOCABULARIES[sizes.told_by]}",
        ],
        "tokens": _tokens(found.updates),
        "FLOPs": _flops(found),
        "memory": _memory(found.memory, found.updates, found.time.on == "cpu"),
        "time": _time(found.time, found.updates),
    }


def _tokens(updates: Updates) -> list[str]:
    batches = counted(updates.accumulate, "batch", "batches")
    told = [
        f"{updates.source_tokens:,.0f} source and {updates.target_tokens:,.0f} target tokens an update, in {batches} "
        f"of up to {updates.batch_tokens:,} with padding; {TEXTS[updates.text]}"
    ]
    epoch = "" if updates.an_epoch is None else f"{counted(round(updates.an_epoch), 'update')} an epoch"
    if updates.in_all is None:
        return [*told, "how many updates there are nobody can tell without the text: set train.steps"]
    passes = "" if updates.epochs is None else f", {digits(updates.epochs)} epochs"
    end = f"{counted(round(updates.in_all), 'update')} in all{passes}, by train.{updates.ended_by}"
    return [*told, f"{epoch}; {end}" if epoch else end]


def _flops(found: Estimate) -> list[str]:
    work, time = found.work, found.time
    shares = ", ".join(
        f"{name} {100 * part / work.all:.0f} %"
        for name, part in (("encoder", work.encoder), ("decoder", work.decoder), ("vocabulary", work.output))
    )
    told = [f"{power(work.all)} an update: {shares}; products of real tokens, forwards and backwards"]
    if found.training_flops is None or found.paper_flops is None or time.hours is None:
        return told
    told.append(f"{power(found.training_flops)} in all")
    unit, many = ("GPUs", time.gpus) if time.gpus > 1 or not time.measured else ("machine", 1)
    told.append(f"{power(found.paper_flops)} by the paper's formula, time x GPUs x sustained float32 FLOPS of each:")
    told.append(f"{span(time.hours)} x {many:,} x {time.tflops:.3g} TFLOPS" + " of this machine" * (unit == "machine"))
    if paper := found.published:
        told.append(
            f"the paper's own: {span(paper.hours)} x {paper.gpus} {paper.gpu} x {paper.tflops:g} TFLOPS = "
            f"{power(paper.flops, 1)} for {paper.steps:,} updates"
        )
    return told


def _memory(memory: Memory, updates: Updates, on_cpu: bool) -> list[str]:
    average = f", moving average {size(memory.average)}" if memory.average else ""
    told = [
        f"{size(memory.all)}: weights {size(memory.weights)}, gradients {size(memory.gradients)}, moments "
        f"{size(memory.moments)}{average}, activations of a batch about {size(memory.activations)}"
    ]
    if memory.peak is not None and memory.peak_batch_tokens is not None:
        least = memory.peak_batch_tokens < updates.batch_tokens / 2
        batch = f" with batches of {memory.peak_batch_tokens:,} tokens" if least else ""
        told.append(f"{size(memory.peak)} measured{batch}, for {'the whole process' if on_cpu else 'tensors'}")
    return told


def _time(time: Time, updates: Updates) -> list[str]:
    each = time.seconds_an_update
    tokens = f"{updates.target_tokens / each:,.0f} target tokens"
    rate = f"{each:.3g} s an update, {digits(1 / each)} updates and {tokens} a second"
    told = [rate] if time.hours is None else [f"{span(time.hours)}, without validation and saving", rate]
    if time.measured:
        threads = "" if time.threads is None else f", {counted(time.threads, 'thread')}"
        made = counted(time.updates_measured or 0, "update")
        return [*told, f"measured on {time.on} in {time.precision}{threads}, by {made}"]
    many = f"each of {time.gpus:,} {time.on}" if time.gpus > 1 else f"one {time.on}"
    return [
        *told,
        f"computed: {many} is assumed to reach {100 * (time.utilisation or 0):.0f} % of {time.peak_tflops:g} TFLOPS in "
        f"{time.precision}; nothing is measured",
    ]


def power(number: float, places: int = 2) -> str:
    """`3.3e18`."""
    return f"{number:.{places}e}".replace("e+", "e")


def digits(number: float) -> str:
    """Three digits, and all of those before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def span(hours: float) -> str:
    """`3.5 days`, `12 h`, `25 min` or `40 s`, to three digits."""
    for unit, length in (("days", 48.0), ("h", 1.0), ("min", 1 / 60)):
        if hours >= length:
            return f"{digits(hours / (24.0 if unit == 'days' else length))} {unit}"
    return f"{hours * 3600:.3g} s"


def size(amount: int) -> str:
    """Bytes with a unit, to three digits."""
    for unit, length in (("GB", 1e9), ("MB", 1e6)):
        if amount >= length:
            return f"{amount / length:.3g} {unit}"
    return f"{amount / 1e3:.3g} kB"


def as_json(found: Estimate) -> str:
    """Everything, unrounded, as one object."""
    data: dict[str, Any] = {
        "name": found.name,
        "vocabulary": asdict(found.sizes),
        "parameters": {**asdict(found.parameters), "all": found.parameters.all},
        "updates": {**asdict(found.updates), "epochs": found.updates.epochs},
        "flops": {
            "an_update": {**asdict(found.work), "all": found.work.all},
            "training": found.training_flops,
            "formula": FORMULA,
            "paper": found.paper_flops,
            "paper_formula": PAPER_FORMULA,
            "published": {**asdict(found.published), "flops": found.published.flops} if found.published else None,
        },
        "memory": {**asdict(found.memory), "all": found.memory.all},
        "time": asdict(found.time),
        "warnings": list(found.cautions),
    }
    return json.dumps(data, indent=2)
