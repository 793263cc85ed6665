"""What an estimate of a recipe holds."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.train.config import Precision
from nmt.train.flops import Published, Work, paper_flops
from nmt.train.footprint import Parameters


@dataclass(frozen=True)
class Sizes:
    """Pieces of the vocabularies."""

    source: int
    target: int
    told_by: str
    """run, start_from, or bpe.size."""


@dataclass(frozen=True)
class Updates:
    """What training makes of the text."""

    batch_tokens: int
    accumulate: int
    source_tokens: float
    """Real tokens of an update, end marks counted; a mean."""
    target_tokens: float
    an_epoch: float | None
    """None where the corpus is not there."""
    in_all: float | None
    ended_by: str
    """steps, epochs or minutes, whichever is reached first; empty where nobody can tell."""
    text: str
    """Where lengths come from: shards, corpus or news."""

    @property
    def epochs(self) -> float | None:
        """Passes over the text."""
        return self.in_all / self.an_epoch if self.in_all is not None and self.an_epoch else None


@dataclass(frozen=True)
class Memory:
    """Bytes that one process keeps."""

    weights: int
    gradients: int
    moments: int
    average: int
    """The moving average of the weights, where there is one."""
    activations: int
    """Of one batch; an estimate."""
    peak: int | None = None
    """What the process had when updates were measured; of a GPU, its tensors."""
    peak_batch_tokens: int | None = None

    @property
    def all(self) -> int:
        """The sum of all parts, measured memory apart."""
        return self.weights + self.gradients + self.moments + self.average + self.activations


@dataclass(frozen=True)
class Time:
    """How long training takes, without validation and saving."""

    measured: bool
    on: str
    gpus: int
    precision: Precision
    threads: int | None
    seconds_an_update: float
    hours: float | None
    tflops: float
    """Sustained in float32, of one GPU or of this machine: for the paper's formula."""
    peak_tflops: float | None = None
    """Of one GPU, in the precision of training: for time that is computed."""
    utilisation: float | None = None
    """Assumed share of that."""
    updates_measured: int | None = None


@dataclass(frozen=True)
class Estimate:
    """All of it."""

    name: str
    sizes: Sizes
    parameters: Parameters
    updates: Updates
    work: Work
    """FLOPs of an update."""
    memory: Memory
    time: Time
    published: Published | None
    """What the paper tells of this preset."""
    cautions: tuple[str, ...] = ()

    @property
    def training_flops(self) -> float | None:
        """Of all updates."""
        return None if self.updates.in_all is None else self.work.all * self.updates.in_all

    @property
    def paper_flops(self) -> float | None:
        """The same by the paper's formula."""
        time = self.time
        return None if time.hours is None else paper_flops(time.hours, time.gpus, time.tflops)
