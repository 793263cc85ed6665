"""A run folder as training and scoring leave it, written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECIPE = """\
name = "{name}"

[languages]
source = "en"
target = "de"

[[data.test]]
name = "news"
source = "{folder}/news.en"
target = ["{folder}/news.de"]

[bpe]
size = {size}
shared = true

[score]
metrics = [{{ kind = "bleu" }}]
"""
SOURCES = ["The dog sleeps.", "A <b>cat</b> & a dog sleep here."] + [
    f"Number {i} sleeps well today." for i in range(20)
]
TRANSLATIONS = ["Der Hund schläft.", "Eine Katze schläft."] + [f"Nummer {i} schläft heute gut." for i in range(20)]
REFERENCES = ["Der Hund schläft.", "Eine <b>Katze</b> & ein Hund schlafen hier."] + [
    f"Nummer {i} schläft heute sehr gut." for i in range(20)
]
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
PREPROCESS = {
    "read": 1200,
    "kept": 1100,
    "dropped": {"duplicate": 100},
    "corpora": [
        {
            "name": "train.en + train.de",
            "weight": 1.0,
            "read": 1200,
            "kept": 1100,
            "dropped": {"duplicate": 100},
            "bad_bytes": 3,
            "examples": {"duplicate": [{"line": 17, "source": "Yes <i>.", "target": "Ja."}]},
        }
    ],
    "valid": {"name": "v", "weight": 1.0, "read": 9, "kept": 9, "dropped": {}, "bad_bytes": 0, "examples": {}},
}
COUNTS = {"lines": 1100, "words": 10000, "pieces": 13000, "unknown": 0, "longest": 77}
SUBWORDS = {"vocabulary": {"source": 500, "target": 500}, "train": {"source": COUNTS, "target": COUNTS}}


def write_run(folder: Path, name: str = "toy", size: int = 500, bleu: float = 31.25, better: float = 0.0) -> Path:
    """The run folder `folder`/`name`, whose losses are `better` than usual."""
    for file, lines in (("news.en", SOURCES), ("news.de", REFERENCES)):
        (folder / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    run = folder / name
    for part in ("preprocess", "bpe", "translations", "scores"):
        (run / part).mkdir(parents=True)
    (run / "recipe.toml").write_text(RECIPE.format(name=name, folder=folder, size=size), encoding="utf-8")
    _json(run / "preprocess" / "report.json", PREPROCESS)
    _json(run / "preprocess" / "manifest.json", {"finished": "2026-01-02T03:04:05", "seconds": 75.0, "nmt": "0.1.0"})
    _json(run / "bpe" / "report.json", SUBWORDS)
    _json(run / "scores" / "scores.json", {"format": 1, "sets": [_scored(bleu)]})
    pairs = zip(SOURCES, TRANSLATIONS, strict=True)
    records = [json.dumps({"id": i, "source": s, "translation": t}) for i, (s, t) in enumerate(pairs)]
    (run / "translations" / "news.de.jsonl").write_text("\n".join(records) + "\n", encoding="utf-8")
    (run / "journal.jsonl").write_text("\n".join(map(json.dumps, journal(better))) + "\n", encoding="utf-8")
    return run


def journal(better: float = 0.0) -> list[dict[str, Any]]:
    """Forty updates, validated twice, the first time without a finite loss."""
    steps = [
        {"event": "step", "step": i, "steps": 10, "epoch": 1 + i // 20, "loss": 9 - i / 10, "nll": 8 - i / 10 - better}
        | {"tokens": 1000, "rate": 500.0, "learning_rate": i / 1e4, "norm": 1.0}
        for i in range(10, 50, 10)
    ]
    checks = [
        {
            "event": "validation",
            "step": 20,
            "loss": None,
            "perplexity": None,
            "bleu": None,
            "chrf": None,
            "best": False,
        },
        {
            "event": "validation",
            "step": 30,
            "loss": 5.5,
            "perplexity": 245.0,
            "bleu": 11.5,
            "chrf": 30.0,
            "best": False,
        },
        {"event": "validation", "step": 40, "loss": 4.5, "perplexity": 90.0, "bleu": 12.5, "chrf": 33.0, "best": True},
    ]
    stopped = {"event": "stopped", "reason": "all 40 steps are done", "step": 40, "interrupted": False}
    return sorted(steps + checks, key=lambda event: event["step"]) + [stopped]


def _scored(bleu: float) -> dict[str, Any]:
    scores: list[dict[str, Any]] = [
        {"name": "BLEU", "score": bleu, "signature": SIGNATURE, "higher_is_better": True},
        {"name": "TER", "score": 100 - bleu, "signature": "nrefs:1|case:lc", "higher_is_better": False},
    ]
    scores[0]["confidence"] = {"level": 95, "mean": bleu - 0.25, "half_width": 2.5, "signature": f"bs:1000|{SIGNATURE}"}
    return {"name": "news", "segments": 22, "scores": scores, "warnings": ["news.de is empty in 1 of 22 lines"]}


def _json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data), encoding="utf-8")
