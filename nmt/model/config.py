"""What may be said of models: the recipe's [model]. No torch here; `build` loads it when something is built."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from nmt.schema import Config, nearest

if TYPE_CHECKING:
    from nmt.model.attention.core import Attention
    from nmt.model.position.core import Position
    from nmt.model.seq2seq import Seq2Seq


class SinusoidalConfig(Config):
    """Sine and cosine codes added to the embeddings (Vaswani et al. 2017, §3.5)."""

    kind: Literal["sinusoidal"] = "sinusoidal"

    def build(self, width: int, head_width: int) -> Position:
        """The hooks for a model `width` wide, whose heads are `head_width` wide."""
        from nmt.model.position.sinusoidal import Sinusoidal

        return Sinusoidal(width)


class LearnedConfig(Config):
    """A learned vector for every position (Vaswani et al. 2017, Table 3 E)."""

    kind: Literal["learned"] = "learned"
    length: int = Field(1024, ge=2)
    """Number of positions; no sentence may have more tokens."""

    def build(self, width: int, head_width: int) -> Position:
        """The hooks for a model `width` wide, whose heads are `head_width` wide."""
        from nmt.model.position.learned import Learned

        return Learned(width, self.length)


class RotaryConfig(Config):
    """Queries and keys turned by their position (Su et al. 2021)."""

    kind: Literal["rotary"] = "rotary"

    def build(self, width: int, head_width: int) -> Position:
        """The hooks for a model `width` wide, whose heads are `head_width` wide."""
        from nmt.model.position.rotary import Rotary

        return Rotary(head_width)


PositionConfig = Annotated[SinusoidalConfig | LearnedConfig | RotaryConfig, Field(discriminator="kind")]


class DotConfig(Config):
    """Scaled dot-product attention (Vaswani et al. 2017, §3.2)."""

    kind: Literal["dot"] = "dot"
    heads: int = Field(8, gt=0)
    """Attention heads."""
    key_width: int | None = Field(None, gt=0)
    """Width of one head's queries and keys; by default model width / heads."""
    value_width: int | None = Field(None, gt=0)
    """Width of one head's values; by default model width / heads."""

    def head_width(self, width: int) -> int:
        """Width of a head's queries and keys in a model `width` wide."""
        return self.key_width or width // self.heads

    def build(self, width: int, position: Position, dropout: float) -> Attention:
        """One attention layer of a model `width` wide; `dropout` is that of its weights."""
        from nmt.model.attention.dot import DotAttention

        return DotAttention(
            width, self.heads, self.head_width(width), self.value_width or width // self.heads, position, dropout
        )


AttentionConfig = Annotated[DotConfig, Field()]  # becomes a discriminated union with its second member

# The paper's presets stand as in its Table 3. The others are ours: pre-norm, for data of the sizes named.
PRESETS: dict[str, dict[str, Any]] = {
    "base-2017": {
        "width": 512, "feedforward": 2048, "encoder_layers": 6, "decoder_layers": 6, "norm": "post",
        "dropout": 0.1, "activation_dropout": 0.0, "attention_dropout": 0.0, "attention": {"heads": 8},
    },
    "big-2017": {
        "width": 1024, "feedforward": 4096, "encoder_layers": 6, "decoder_layers": 6, "norm": "post",
        "dropout": 0.3, "activation_dropout": 0.0, "attention_dropout": 0.0, "attention": {"heads": 16},
    },
    "tiny": {  # up to about 20,000 pairs
        "width": 192, "feedforward": 768, "encoder_layers": 2, "decoder_layers": 2, "norm": "pre",
        "dropout": 0.2, "attention": {"heads": 4},
    },
    "small": {  # up to about 300,000 pairs
        "width": 256, "feedforward": 1024, "encoder_layers": 3, "decoder_layers": 3, "norm": "pre",
        "dropout": 0.2, "attention": {"heads": 4},
    },
    "medium": {  # up to some millions of pairs
        "width": 512, "feedforward": 2048, "encoder_layers": 6, "decoder_layers": 6, "norm": "pre",
        "dropout": 0.1, "attention": {"heads": 8},
    },
}  # fmt: skip

UNSHAPED = {
    "preset",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "layer_drop",
}  # may change while a model learns


class TransformerConfig(Config):
    """The encoder-decoder Transformer. `preset` gives every value; keys beside it change single ones."""

    kind: Literal["transformer"] = "transformer"
    preset: str | None = None
    """base-2017 and big-2017 are the paper's; tiny, small and medium are pre-norm models for small data."""
    width: int = Field(256, gt=0)
    """d_model: width of embeddings and layers."""
    feedforward: int = Field(1024, gt=0)
    """d_ff: inner width of the feed-forward layers."""
    encoder_layers: int = Field(3, ge=1)
    """N of the encoder."""
    decoder_layers: int = Field(3, ge=1)
    """N of the decoder."""
    norm: Literal["post", "pre"] = "pre"
    """LayerNorm after each residual sum (the paper), or before each sub-layer, with one more at each stack's end."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """P_drop, on each sub-layer's output and on the sum of embedding and position."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on attention weights; none in the paper."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout inside the feed-forward layers; none in the paper."""
    layer_drop: float = Field(0.0, ge=0, lt=1)
    """Share of the updates that leave a layer out, by a coin for each layer (Fan et al. 2020); translating uses all."""
    activation: Literal["relu", "gelu"] = "relu"
    """Nonlinearity of the feed-forward layers."""
    tie_embeddings: Literal["all", "target", "none"] = "all"
    """Share source, target and output matrices (needs a shared vocabulary); only target and output; nothing."""
    attention: AttentionConfig = DotConfig()
    """Kind of attention."""
    position: PositionConfig = SinusoidalConfig()
    """Kind of position encoding."""

    @model_validator(mode="before")
    @classmethod
    def _expand_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("preset") is None:
            return values
        preset = values["preset"]
        if preset not in PRESETS:
            name = nearest(str(preset), PRESETS)
            guess = f"; did you mean {name}?" if name else ""
            raise ValueError(f"preset = {preset!r} is not one of {', '.join(PRESETS)}{guess}")
        chosen = PRESETS[preset]
        merged = {**chosen, **values}
        if isinstance(values.get("attention"), dict):
            merged["attention"] = {**chosen.get("attention", {}), **values["attention"]}
        return merged

    @model_validator(mode="after")
    def _divides(self) -> TransformerConfig:
        heads = self.attention.heads
        if self.width % heads and None in (self.attention.key_width, self.attention.value_width):
            low, high = self.width // heads * heads, math.ceil(self.width / heads) * heads
            raise ValueError(
                f"width = {self.width} is not a multiple of heads = {heads}; {f'{low} and ' if low else ''}{high} are"
            )
        if self.width % 2 and self.position.kind == "sinusoidal":
            raise ValueError(f"width = {self.width} is odd; sinusoidal positions need an even width")
        if self.attention.head_width(self.width) % 2 and self.position.kind == "rotary":
            raise ValueError(
                f"heads are {self.attention.head_width(self.width)} wide; rotary positions need an even width"
            )
        return self

    def shape(self) -> dict[str, Any]:
        """What weights must share to be of one model: every field but the preset's name and the dropouts."""
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in UNSHAPED}

    def max_length(self) -> int | None:
        """Longest sentence in tokens that the model can hold, or None where there is no limit."""
        return self.position.length if isinstance(self.position, LearnedConfig) else None

    def build(self, source_size: int, target_size: int, pad: int, *, blank: bool = False) -> Seq2Seq:
        """The model with freshly initialized weights, for vocabularies of these sizes (rows of padding id `pad`).

        `blank`: with whatever weights, for those who are about to fill them all.
        """
        from nmt.model.transformer import Transformer

        return Transformer.from_config(self, source_size, target_size, pad, blank=blank)


ModelConfig = Annotated[TransformerConfig, Field()]  # becomes a discriminated union with its second member
