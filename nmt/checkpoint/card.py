"""README.md of a model folder: what a stranger should know before using it, made from the folder alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

from nmt.checkpoint import layout
from nmt.checkpoint.header import read_shapes
from nmt.checkpoint.layout import Description, Parent
from nmt.errors import ModelError
from nmt.files import write_text_whole
from nmt.score.metric import Score
from nmt.subwords.vocabulary import Vocabulary

NamedScore = tuple[str, Score]
NEEDED = "; every line to translate needs one"


def write_card(folder: Path, scores: Sequence[NamedScore] = ()) -> None:
    """Write `folder`/README.md; `scores` are (name of a test set, score), shown with their signatures.

    Raises ModelError when the folder holds no model, OutputError when the card cannot be written.
    """
    description = layout.read_description(folder)
    numbers = sum(prod(shape) for shape in read_shapes(folder / layout.WEIGHTS).values())
    write_text_whole(folder / layout.CARD, card(description, numbers, scores, tags_of(folder, description)))


def tags_of(folder: Path, description: Description) -> tuple[str, ...]:
    """The tags that the folder's source vocabulary knows; none where it can't be read, which loading will tell."""
    try:
        return tuple(Vocabulary.load(folder / description.source_vocabulary).tags)
    except ModelError:
        return ()


def card(description: Description, numbers: int, scores: Sequence[NamedScore] = (), tags: Sequence[str] = ()) -> str:
    """The card's Markdown; `numbers` is how many the weights are, `tags` are those of its vocabulary."""
    languages, origin = description.languages, description.origin
    asking = f" --tag '{tags[0]}'" if description.needs_tag and tags else ""
    facts = [
        ("Languages", f"{languages.source} → {languages.target}"),
        ("Model", f"{description.model.kind}, {numbers:,} parameters"),
        ("Vocabulary", _vocabulary(description)),
        *([("Tags", f"{', '.join(f'`{tag}`' for tag in tags)}{NEEDED * description.needs_tag}")] if tags else []),
        *([("Context", said_of_context(description))] if description.context_sentences else []),
        ("Longest source", f"{description.max_source_tokens} subwords; longer lines are split and rejoined"),
        ("Training data", ", ".join(origin.corpora) or "unknown"),
        ("Training pairs", f"{origin.training_pairs:,}" if origin.training_pairs else "unknown"),
        ("Checkpoints", _steps(origin.steps)),
        *([("Fine-tuned from", _parent(origin.parent))] if origin.parent else []),
        ("Recipe", f"{origin.name or 'unknown'} (fingerprint {origin.recipe or 'unknown'}, seed {origin.seed})"),
        ("Made with", f"nmt {description.nmt}"),
    ]
    lines = [
        f"# {origin.name or 'A translation model'}: {languages.source} → {languages.target}",
        "",
        *(f"- **{name}**: {value}" for name, value in facts),
        "",
        "## Use",
        "",
        "This folder alone translates raw text, one sentence a line:",
        "",
        f"    nmt translate THIS_FOLDER{asking} < input.txt > output.txt",
        "",
        "## Scores",
        "",
        *_scores(scores),
        "",
        "## License",
        "",
        "The weights were learned from the training data named above, whose licenses decide how they may be used and",
        "passed on. State them here before publishing.",
    ]
    return "\n".join(lines) + "\n"


def said_of_context(description: Description) -> str:
    """How much of what stands before a sentence is read."""
    count = description.context_sentences
    before = "the source sentence" if count == 1 else f"the {count} source sentences"
    return f"{before} before each one; a blank line begins a new document"


def _vocabulary(description: Description) -> str:
    if description.shared_vocabulary:
        return f"{description.source_size:,} subwords, shared by both sides"
    return f"{description.source_size:,} source and {description.target_size:,} target subwords"


def _steps(steps: tuple[int, ...]) -> str:
    if not steps:
        return "unknown"
    if len(steps) == 1:
        return f"step {steps[0]:,}"
    return f"mean of steps {', '.join(f'{step:,}' for step in steps)}"


def _parent(parent: Parent) -> str:
    return f"{parent.name} ({_steps(parent.steps)}, weights sha256 {parent.weights_sha256[:16]})"


def _scores(scores: Sequence[NamedScore]) -> list[str]:
    if not scores:
        return ["Not yet measured."]
    rows = [(name, score.name, f"{score.value:.2f}", score.signature.replace("|", "\\|")) for name, score in scores]
    return [
        "| test set | metric | score | signature |",
        "|---|---|--:|---|",
        *(f"| {name} | {metric} | {value} | `{signature}` |" for name, metric, value, signature in rows),
    ]
