"""What a proposed recipe says when it is to fine-tune a model: that must be as the model has it; and gentle steps."""

from __future__ import annotations

from typing import Any

from nmt.checkpoint.layout import Description
from nmt.schema import Config

PEAK = 5e-4  # a good part of what training from the beginning takes, for text unlike the old


def tuned_settings(parent: Description, start_from: str, steps: int) -> str:
    """The recipe's text from [preprocess]'s last lines on; `steps` are those of training from the beginning."""
    import tomli_w

    def lines(values: dict[str, Any]) -> str:
        return tomli_w.dumps(values).strip()

    steps = max(100, steps // 4)
    model = _chosen(parent.model)
    tables = {key: value for key, value in model.items() if isinstance(value, dict)}
    plain = {key: value for key, value in model.items() if key not in tables}
    text = {"preprocess.moses": _chosen(parent.text.moses)} if parent.text.moses else {}
    moses = "".join(f"\n[{name}]\n{lines(values)}\n" for name, values in text.items())
    inner = "".join(f"\n[model.{name}]\n{lines(values)}\n" for name, values in tables.items())
    often = max(1, steps // 10)
    return f"""\
normalization = "{parent.text.normalization}"             # the model's, as all that stands in [model]
{moses}
[bpe]
shared = {str(parent.shared_vocabulary).lower():<24} # the subwords are the model's: nothing is learned anew

[model]                           # only the dropouts may be others
{lines(plain)}
{inner}
[train]
{lines({"start_from": start_from})}
steps = {steps:<25} # a quarter of what training from the beginning would take
batch_tokens = 2048               # tokens of a batch, padding included; halve it if memory runs out
clip_norm = 1.0                   # keeps a rare wild gradient from undoing much
patience = 4                      # stop when four validations in a row are no better
validate_every = {often:<16} # ten times in all
save_every = {often:<20} # the last three are averaged

[train.schedule]
kind = "linear"                   # rise, then fall to nothing at the last update
peak = {PEAK:<26} # lower keeps more of what the model knows; higher learns the new text faster
warmup_steps = {max(1, steps // 10):<18} # a tenth of all

[average]
count = 3

{_translate(lines, parent)}
"""


def _translate(lines: Any, parent: Description) -> str:
    return f"[translate]\n{lines({'beam': parent.translate.beam, 'length_penalty': parent.translate.length_penalty})}"


def _chosen(config: Config) -> dict[str, Any]:
    """Every field with a value but the preset's name, which all others say in full."""
    return {k: v for k, v in config.model_dump(mode="json", exclude_none=True).items() if k != "preset"}
