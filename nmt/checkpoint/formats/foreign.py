"""What all foreign formats share: what they can hold, how long sentences may be, what their readers must be told."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from nmt.checkpoint import layout
from nmt.checkpoint.layout import Description
from nmt.errors import ModelError, OutputError
from nmt.model.position.learned import Learned
from nmt.model.seq2seq import Seq2Seq
from nmt.model.transformer import Transformer
from nmt.subwords.vocabulary import Vocabulary

LEAST_POSITIONS = 1024  # as many as others' tables commonly have


def transformer(description: Description, model: Seq2Seq, name: str) -> Transformer:
    """`model` as a Transformer whose attention is the plain kind that everybody has. Raises ModelError otherwise."""
    if not isinstance(model, Transformer) or description.model.attention.kind != "dot":
        raise lacks(name, "models other than the Transformer with dot-product attention")
    attention, width = description.model.attention, description.model.width
    head = width // attention.heads
    if {attention.key_width or head, attention.value_width or head} != {head} or head * attention.heads != width:
        raise lacks(name, "heads that are not exactly model width / heads wide, in keys and in values")
    return model


def lacks(name: str, what: str) -> ModelError:
    """The error for a model that the format `name` cannot hold."""
    return ModelError(f"{name} cannot hold {what}", "export with --to safetensors, or train a model without that")


def positions(description: Description, model: Transformer) -> int:
    """How many positions a table needs: for the longest source, the longest translation of it, and begin mark."""
    if isinstance(model.decoder.position, Learned):
        return model.decoder.position.weight.size(0)
    return max(LEAST_POSITIONS, longest(description) + 1)


def longest(description: Description) -> int:
    """Most tokens of a translation, the end mark counted."""
    most = (description.translate.max_source_tokens or description.max_source_tokens) - 1
    return most + description.translate.max_extra_tokens + 1


def exponent(description: Description) -> float:
    """The exponent of a penalty |Y|^A: what others call length penalty. Zero is none."""
    return float(description.translate.length_penalty.partition(":")[2] or 0)


def pieces(vocabulary: Path) -> list[str]:
    """Every piece of a subword model, by id."""
    loaded = Vocabulary.load(vocabulary)
    return list(loaded.names(range(len(loaded))))


def copy(files: Mapping[str, Path], folder: Path) -> None:
    """Copy files into `folder` under the names that are their keys. Raises OutputError."""
    for name, path in files.items():
        try:
            shutil.copyfile(path, folder / name)
        except OSError as error:
            raise OutputError(f"{folder / name}: cannot be copied from {path}: {error.strerror}") from error


def card(description: Description, made_for: str, use: str, python: str) -> str:
    """README.md of an export: what it is, how it is used, what is to be done to text before and after."""
    languages = description.languages
    lines = [
        f"# {description.origin.name or 'A translation model'}: {languages.source} → {languages.target}, "
        f"for {made_for}",
        "",
        use,
        "",
        "```python",
        python.strip("\n"),
        "```",
        "",
        "## Text",
        "",
        *_about_text(description),
        "",
        "## Search",
        "",
        *_about_search(description),
        "",
        "## License",
        "",
        "The weights were learned from training data whose licenses decide how they may be used and passed on:",
        f"{', '.join(description.origin.corpora) or 'unknown'}.",
    ]
    return "\n".join(lines) + "\n"


def normalization(description: Description) -> str:
    """The Unicode normal form of the text that the model was trained on; empty where there is none."""
    return {"nfc": "NFC", "nfkc": "NFKC", "none": ""}[description.text.normalization]


def _about_text(description: Description) -> list[str]:
    form = normalization(description)
    lines = [f"- The model was trained on text in {form}." if form else "- Text was not normalized for training."]
    if description.text.moses is not None:
        settings = description.text.moses
        steps = {"punctuation": settings.punctuation, "tokens": settings.tokenize, "truecase": settings.truecase}
        lines.append(
            f"- It was trained in Moses mode ({', '.join(name for name, on in steps.items() if on)}): prepare source "
            "text and restore translations in the same way, for instance with sacremoses. `nmt translate` does both."
        )
        if settings.truecase:
            lines.append(f"- {layout.SOURCE_TRUECASE} and {layout.TARGET_TRUECASE} are its truecase models.")
    lines += [
        "- `nmt` escapes the few characters that subwords or lines cannot hold (U+2581, U+2585, line ends inside a "
        "line); others do not.",
        f"- `nmt` splits lines of over {description.max_source_tokens} subwords and rejoins their translations; "
        "others cut or refuse them.",
    ]
    return lines


def _about_search(description: Description) -> list[str]:
    settings = description.translate
    return [
        f"`nmt translate` searches with beam {settings.beam}, length penalty {settings.length_penalty} and at most "
        f"{settings.max_extra_tokens} tokens more than the",
        "source. Other programs divide log-probabilities by |Y|^A (`average:A` here) and know no `gnmt:A`, refill a "
        "beam when a",
        "hypothesis ends, and stop by rules of their own: translations may then differ though all scores agree.",
    ]
