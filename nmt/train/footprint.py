"""How many parameters a model has, and how many bytes its training keeps, before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.model.config import TransformerConfig
from nmt.model.seq2seq import Seq2Seq
from nmt.train.config import OptimizerConfig, Precision
from nmt.train.loss import CHUNK, GPU_CHUNK
from nmt.train.optimizer import decayed


@dataclass(frozen=True)
class Parameters:
    """Weights by part; a matrix that is shared counts once."""

    embeddings: int
    """The vocabularies' matrices, that of the output too, and learned positions."""
    encoder: int
    decoder: int
    trained: int
    """Those that are not frozen."""

    @property
    def all(self) -> int:
        """Those of all parts."""
        return self.embeddings + self.encoder + self.decoder


def parameters_of(model: Seq2Seq) -> Parameters:
    """Counted; the model may be on torch's meta device."""
    counts = {"encoder": 0, "decoder": 0, "embeddings": 0}
    for name, parameter in model.named_parameters():
        side, _, part = name.partition(".")
        counts[side if part.startswith(("layers.", "norm.")) else "embeddings"] += parameter.numel()
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return Parameters(counts["embeddings"], counts["encoder"], counts["decoder"], trained)


def moments(model: Seq2Seq, optimizer: OptimizerConfig) -> int:
    """How many numbers the optimizer keeps from one update to the next."""
    matrices, others = (sum(p.numel() for p in some) for some in decayed(model))
    if optimizer.kind == "sgd":
        return (matrices + others) * (optimizer.momentum > 0)
    return 2 * others + matrices * (1 if optimizer.kind == "muon" else 2)


def activation_bytes(
    config: TransformerConfig, parameters: int, vocabulary: int, tokens: int, precision: Precision, on_gpu: bool
) -> int:
    """About what the forward pass keeps for the backward pass, with so many tokens on either side, padding counted.

    A layer keeps what each of its products and norms has read, and what dropout has chosen. With `precision` bfloat16
    also the weights in it. Then the loss: gradients of states and output matrix, logits of a chunk. Products of
    attention that are written out, as on processors for short sentences, come on top.
    """
    width, inner, size = config.width, config.feedforward, 2 if precision == "bfloat16" else 4
    attention, heads = config.attention, config.attention.heads
    across = heads * (attention.head_width(width) + (attention.value_width or width // heads))  # keys and values
    own = across + across + 2 * width  # queries and mixture, keys and values; what the product and the norm have read
    ahead = 2 * width + inner * (2 if config.activation == "gelu" else 1)
    kept = config.encoder_layers * (own + ahead) + config.decoder_layers * (2 * own + ahead)
    dropped = width * (2 * config.encoder_layers + 3 * config.decoder_layers + 2) * (config.dropout > 0)
    low = 2 * parameters if precision == "bfloat16" else 0
    logits = (2 * min(GPU_CHUNK, tokens) if on_gpu else min(CHUNK, tokens)) * vocabulary * size
    return tokens * (kept * size + dropped * (1 if on_gpu else 2)) + low + 4 * width * (tokens + vocabulary) + logits
