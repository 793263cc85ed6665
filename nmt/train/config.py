"""What may be said of training: the recipe's [train] and [average]."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from nmt.batches.config import BatchConfig
from nmt.schema import Config, Count

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from nmt.model.seq2seq import Seq2Seq
    from nmt.train.rules import Guide, Rules
    from nmt.train.schedule import Schedule


class PaperScheduleConfig(Config):
    """lr = factor · width^-0.5 · min(step^-0.5, step · warmup^-1.5) (Vaswani et al. 2017, §5.3)."""

    kind: Literal["paper"] = "paper"
    warmup_steps: Count = Field(4000, ge=1)
    """Updates of rising rate."""
    factor: float = Field(1.0, gt=0)
    """Multiplies the whole curve."""

    def build(self, width: int, steps: int | None) -> Schedule:
        """The rates of a model `width` wide; `steps` doesn't matter."""
        from nmt.train.schedule import paper

        return paper(width, self.warmup_steps, self.factor)


class LinearScheduleConfig(Config):
    """Rises to `peak` over the warmup, then falls on a straight line to `floor` at the last update (needs `steps`)."""

    kind: Literal["linear"] = "linear"
    peak: float = Field(1e-3, gt=0)
    """Highest learning rate."""
    warmup_steps: Count = Field(400, ge=0)
    """Updates of rising rate."""
    floor: float = Field(0.0, ge=0)
    """Learning rate at the last update."""

    def build(self, width: int, steps: int | None) -> Schedule:
        """The rates of a training of `steps` updates, which must be known; `width` doesn't matter."""
        from nmt.train.schedule import linear

        if steps is None:
            raise ValueError("a schedule that falls towards the last update needs the number of steps")
        return linear(self.peak, self.floor, self.warmup_steps, steps)


class CosineScheduleConfig(Config):
    """Rises to `peak` over the warmup, then falls on half a cosine to `floor` at the last update (needs `steps`)."""

    kind: Literal["cosine"] = "cosine"
    peak: float = Field(1e-3, gt=0)
    """Highest learning rate."""
    warmup_steps: Count = Field(400, ge=0)
    """Updates of rising rate."""
    floor: float = Field(0.0, ge=0)
    """Learning rate at the last update."""

    def build(self, width: int, steps: int | None) -> Schedule:
        """The rates of a training of `steps` updates, which must be known; `width` doesn't matter."""
        from nmt.train.schedule import cosine

        if steps is None:
            raise ValueError("a schedule that falls towards the last update needs the number of steps")
        return cosine(self.peak, self.floor, self.warmup_steps, steps)


class ConstantScheduleConfig(Config):
    """The same rate throughout, after an optional warmup."""

    kind: Literal["constant"] = "constant"
    peak: float = Field(1e-3, gt=0)
    """The learning rate."""
    warmup_steps: Count = Field(0, ge=0)
    """Updates of rising rate."""

    def build(self, width: int, steps: int | None) -> Schedule:
        """The rates; neither `width` nor `steps` matters."""
        from nmt.train.schedule import constant

        return constant(self.peak, self.warmup_steps)


ScheduleConfig = Annotated[
    PaperScheduleConfig | LinearScheduleConfig | CosineScheduleConfig | ConstantScheduleConfig,
    Field(discriminator="kind"),
]


Precision = Literal["float32", "bfloat16"]
"""Arithmetic that a model is trained in."""


class AdamConfig(Config):
    """Adam (Kingma & Ba 2015) with decoupled weight decay; the defaults are the paper's (§5.3)."""

    kind: Literal["adam"] = "adam"
    beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the first moment."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Decay of the second moment."""
    epsilon: float = Field(1e-9, gt=0)
    """Added to the root of the second moment."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled decay of matrices (biases, norms and embeddings are left alone)."""

    def build(self, model: Seq2Seq, precision: Precision = "float32") -> Optimizer:
        """The optimizer of the model's parameters, its rate yet to be set."""
        from nmt.train.optimizer import adam

        return adam(model, betas=(self.beta1, self.beta2), epsilon=self.epsilon, weight_decay=self.weight_decay)


class SgdConfig(Config):
    """Plain gradient descent: for tests and comparisons."""

    kind: Literal["sgd"] = "sgd"
    momentum: float = Field(0.0, ge=0, lt=1)
    """Share of the step before."""

    def build(self, model: Seq2Seq, precision: Precision = "float32") -> Optimizer:
        """The optimizer of the model's parameters, its rate yet to be set."""
        from nmt.train.optimizer import sgd

        return sgd(model, momentum=self.momentum)


class MuonConfig(Config):
    """Muon (Jordan et al. 2024) for the matrices of layers, Adam for all else; needs about half of Adam's updates."""

    kind: Literal["muon"] = "muon"
    momentum: float = Field(0.95, ge=0, lt=1)
    """Share of the gradients before in what a matrix is changed by."""
    iterations: int = Field(5, ge=1)
    """Steps of the iteration that makes it orthogonal."""
    beta1: float = Field(0.9, ge=0, lt=1)
    """Adam's decay of the first moment, for embeddings, biases and norms."""
    beta2: float = Field(0.98, ge=0, lt=1)
    """Adam's decay of the second moment."""
    epsilon: float = Field(1e-9, gt=0)
    """Added to the root of the second moment."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled decay of the matrices of layers."""

    def build(self, model: Seq2Seq, precision: Precision = "float32") -> Optimizer:
        """The optimizer of the model's parameters, its rate yet to be set."""
        from nmt.train.muon import muon

        return muon(
            model,
            momentum=self.momentum,
            iterations=self.iterations,
            precision=precision,
            betas=(self.beta1, self.beta2),
            epsilon=self.epsilon,
            weight_decay=self.weight_decay,
        )


OptimizerConfig = Annotated[AdamConfig | SgdConfig | MuonConfig, Field(discriminator="kind")]


class GuidedAlignmentConfig(Config):
    """Attention to the source learns word alignments (Chen et al. 2016; Garg et al. 2019)."""

    path: Path
    """Links such as 0-0 1-2, source before target and from 0, one line for each pair of the run's preprocess/train.*"""
    units: Literal["words", "pieces"] = "words"
    """What is linked: words, which spaces separate, or subword pieces as nmt encode writes them."""
    weight: float = Field(0.05, gt=0)
    """Weight of the alignment's loss beside that of the translation."""
    layer: int | None = Field(None, ge=1)
    """The decoder layer that is guided, from 1; by default the last but one."""
    head: int | None = Field(None, ge=1)
    """The head that is guided, from 1; by default the mean of all, which nmt translate --alignment reads."""

    def rule(self) -> Guide:
        """What an update goes by, counted from 0."""
        from nmt.train.rules import Guide

        layer, head = (None if number is None else number - 1 for number in (self.layer, self.head))
        return Guide(self.weight, layer, head)


class TrainConfig(BatchConfig):
    """Training. At least one of steps, epochs and minutes ends it; the first to be reached does."""

    steps: Count | None = Field(None, ge=1)
    """Total updates, over all restarts."""
    epochs: int | None = Field(None, ge=1)
    """Total passes over the data."""
    minutes: float | None = Field(None, gt=0)
    """Total training time in minutes over all restarts, validation included."""
    patience: int | None = Field(None, ge=1)
    """Stop after this many validations in a row without a strictly better value of `best_by`."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Probability mass spread evenly over the vocabulary (ε_ls)."""
    clip_norm: float | None = Field(None, gt=0)
    """Largest L2 norm of an update's gradient; longer ones are scaled down."""
    schedule: ScheduleConfig = PaperScheduleConfig()
    """Learning rate over updates."""
    optimizer: OptimizerConfig = AdamConfig()
    """Rule of the updates."""
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """Arithmetic of the forward and backward pass; weights and optimizer stay float32. auto takes bfloat16 where the
    processor or GPU has instructions for it."""
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    """auto takes the GPU where there is one."""
    compile: bool = False
    """Compile the layers by torch.compile, which takes minutes at the start: for long trainings on a GPU."""
    threads: int | None = Field(None, ge=1)
    """CPU threads; by default torch's own choice. Bit-exact repetition needs the same number."""
    validate_every: Count = Field(1000, ge=1)
    """Updates between validations; the last update is always validated."""
    save_every: Count = Field(1000, ge=1)
    """Updates between checkpoints; the last update and every interruption save too."""
    keep_checkpoints: int = Field(5, ge=1)
    """Newest checkpoints kept; the best one is kept beside them."""
    best_by: Literal["loss", "bleu", "chrf"] = "bleu"
    """What the best checkpoint and patience go by, measured on the validation set."""
    valid_beam: int = Field(1, ge=1)
    """Beam of validation translations."""
    valid_lines: Count | None = Field(None, ge=1)
    """Translate only the first so many validation lines; the loss is always that of all."""
    valid_examples: Count = Field(20, ge=0)
    """Validation translations that each validation writes into RUN/validation, beside source and reference."""
    curves: bool = True
    """Draw RUN/curves.png while training, where matplotlib is installed."""
    tensorboard: bool = False
    """Write what the journal says into RUN/tensorboard too; needs the package tensorboard."""
    max_bad_steps: int = Field(20, ge=1)
    """Updates in a row with a non-finite loss or gradient (each one skipped and counted) before training stops."""
    start_from: Path | None = None
    """Fine-tuning: a model folder, or a run's, whose weights training starts from instead of random ones. Its
    vocabulary is used; [model] must be its too, but for dropout."""
    corpus_temperature: float | None = Field(None, ge=1)
    """T: a corpus of n pairs, or all corpora of one tag together, counts in proportion to n^(1/T) beside the others
    (n is pairs times weight), so that small ones come more often. 1, or none, leaves the sizes as they are."""
    ema_decay: float | None = Field(None, gt=0, lt=1)
    """Keep an exponential moving average of the weights, say with 0.999; it is validated, saved and translated with.
    The first updates decay faster: min(ema_decay, (1 + n) / (10 + n))."""
    rdrop_alpha: float | None = Field(None, ge=0)
    """R-Drop (Liang et al. 2021): every pair goes through the model twice, and α weighs how far the two distributions
    may be apart; 5 in the paper. An update then takes twice the time and memory."""
    subword_dropout: float | None = Field(None, gt=0, lt=1)
    """BPE-dropout (Provilkov et al. 2020): in every epoch training text is cut into other subwords, leaving out merges
    with this probability; 0.1 in the paper. Needs [bpe] kind = "bpe"."""
    guided_alignment: GuidedAlignmentConfig | None = None
    """Train attention to the source towards word alignments."""
    freeze: tuple[str, ...] | None = Field(None, min_length=1)
    """Parts of the model that stay as they are: encoder, decoder, embeddings, positions, output, attention,
    cross_attention, feedforward, norms, biases, or patterns of weights' names such as encoder.layers.0.*"""

    wait_minutes: float = Field(10, gt=0)
    """Minutes that one of many processes may leave the others waiting, as while a checkpoint is written, before it is
    taken to hang."""

    sharding: Literal["none", "full"] = "none"
    """What each of many processes keeps: all of the model, or with full a part of every weight and its moments, for
    models that are too large for one GPU. Checkpoints are the same."""

    @model_validator(mode="after")
    def _ends(self) -> TrainConfig:
        if self.steps is None and self.epochs is None and self.minutes is None:
            raise ValueError("nothing ends the training; set steps, epochs or minutes")
        if self.schedule.kind in {"linear", "cosine"} and self.steps is None:
            raise ValueError(f"schedule kind {self.schedule.kind!r} falls towards the last update; set steps")
        if self.guided_alignment and self.guided_alignment.units == "pieces" and self.subword_dropout:
            raise ValueError('guided_alignment links pieces, which subword_dropout changes; units = "words" does not')
        if self.compile and self.guided_alignment:
            raise ValueError(
                "compiled layers do not tell the attention that guided_alignment needs; set compile = false"
            )
        if self.compile and self.sharding == "full":
            raise ValueError("layers that sharding = full spreads over processes are not compiled; set compile = false")
        if self.sharding == "full" and self.batch_tokens == "auto":
            raise ValueError("batch_tokens = auto measures a whole model; with sharding = full, set a number")
        return self

    def rises_to_the_end(self) -> str:
        """What is wrong where training ends before its warmup does, or nothing: it works, but hardly ever well."""
        warmup = getattr(self.schedule, "warmup_steps", 0)
        if self.steps is None or warmup < self.steps:
            return ""
        return f"[train.schedule] warmup_steps = {warmup}: the rate still rises when steps = {self.steps} end it"

    def rules(self, precision: Literal["float32", "bfloat16"] = "float32", seed: int = 1) -> Rules:
        """What an update and the loop go by, in the arithmetic that `precision` was found to mean.

        `seed` is that of the coins for layers.
        """
        from nmt.train.rules import Rules

        return Rules(
            label_smoothing=self.label_smoothing,
            clip_norm=self.clip_norm,
            precision=precision,
            steps=self.steps,
            epochs=self.epochs,
            minutes=self.minutes,
            patience=self.patience,
            validate_every=self.validate_every,
            save_every=self.save_every,
            best_by=self.best_by,
            max_bad_steps=self.max_bad_steps,
            seed=seed,
            rdrop_alpha=self.rdrop_alpha,
            guide=self.guided_alignment.rule() if self.guided_alignment else None,
        )


class AverageConfig(Config):
    """The mean of several checkpoints' weights (Vaswani et al. 2017, §6.1)."""

    count: int = Field(5, ge=1)
    """Checkpoints to average; 1 takes a single one as it is."""
    of: Literal["last", "best"] = "last"
    """The newest by step, or the best by validation among those kept."""
    weights: Literal["saved", "trained"] = "saved"
    """The weights that checkpoints translate with: moving averages where [train] ema_decay keeps them; or those that
    were trained, of which the moving averages were made."""
