"""How much arithmetic training takes at least, counted layer by layer; and as the paper of 2017 counts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nmt.model.config import TransformerConfig

if TYPE_CHECKING:
    from nmt.batches.batch import Batch

FORMULA = (
    "6 x sum over sentences of [encoder layers x (S(2DA + 2DF) + S^2 A) + decoder layers x (T(2DA + 2DF) + T^2 A / 2 + "
    "(S + T)DA + STA) + TVD], with S and T real tokens of source and target, D width, F feed-forward, V vocabulary, A "
    "the width of keys and values of all heads together (2D in the paper's models): a product with a weight takes 2 "
    "FLOPs forwards and 4 backwards. Padding, softmax, norms, dropout, embeddings and the optimizer count as time, not "
    "as work."
)
PAPER_FORMULA = "training time x GPUs x sustained float32 FLOPS of a GPU"


@dataclass(frozen=True)
class Work:
    """FLOPs of products of matrices, forwards and backwards, in each part of the model."""

    encoder: float
    decoder: float
    output: float
    """From the decoder's states to the vocabulary."""

    @property
    def all(self) -> float:
        """Those of all parts."""
        return self.encoder + self.decoder + self.output

    def times(self, factor: float, layers: float = 1.0) -> Work:
        """So many times as much, with such a share of the layers."""
        return Work(self.encoder * factor * layers, self.decoder * factor * layers, self.output * factor)


def training_work(config: TransformerConfig, vocabulary: int, source_N: np.ndarray, target_N: np.ndarray) -> Work:
    """What pairs with so many real tokens, end marks counted, take at least: see FORMULA."""
    source, target = (np.asarray(tokens, dtype=np.float64) for tokens in (source_N, target_N))
    width, heads = config.width, config.attention.heads
    across = heads * (config.attention.head_width(width) + (config.attention.value_width or width // heads))
    square, ahead = width * across, 2 * width * config.feedforward
    encoder = source * (2 * square + ahead) + source**2 * across
    own = target * (2 * square + ahead) + target**2 * across / 2  # nothing is read from the future: half the square
    cross = (source + target) * square + source * target * across
    return Work(
        6 * config.encoder_layers * float(encoder.sum()),
        6 * config.decoder_layers * float((own + cross).sum()),
        6 * vocabulary * width * float(target.sum()),
    )


def batch_work(config: TransformerConfig, vocabulary: int, batch: Batch, pad: int) -> Work:
    """What an update of `batch`, which is not on a GPU, takes at least: see FORMULA."""
    source, target = batch.keep_BS.sum(1), (batch.out_BT != pad).sum(1)
    return training_work(config, vocabulary, source.numpy(), target.numpy())


def paper_flops(hours: float, gpus: int, tflops: float) -> float:
    """Training cost as Vaswani et al. 2017 estimate it (Table 2): time x GPUs x sustained FLOPS of one.

    It counts what the GPUs could have done in that time, `tflops` being 1e12 operations a second in float32.
    """
    return hours * 3600 * gpus * tflops * 1e12


@dataclass(frozen=True)
class Published:
    """A training that the paper tells of (§5.2), on P100 GPUs taken for 9.5 TFLOPS (§6.1)."""

    steps: int
    hours: float
    gpus: int = 8
    gpu: str = "P100"
    tflops: float = 9.5

    @property
    def flops(self) -> float:
        """Its cost by the paper's formula."""
        return paper_flops(self.hours, self.gpus, self.tflops)


PUBLISHED = {"base-2017": Published(100_000, 12), "big-2017": Published(300_000, 3.5 * 24)}
