"""A run's checkpoints while it trains: saving, the best one, pruning, and going on from the newest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.checkpoint import layout
from nmt.checkpoint.layout import Description
from nmt.checkpoint.load import check_checkpoint, load_weights, put_weights
from nmt.checkpoint.save import clean, point, prune, save_checkpoint
from nmt.checkpoint.tensors import read_tensors, weights, whole
from nmt.errors import ModelError, TrainingError
from nmt.files import write_json
from nmt.model.seq2seq import Seq2Seq
from nmt.train.ema import Ema
from nmt.train.optimizer import moments, restore
from nmt.train.state import State, read_record, read_state, resumable
from nmt.train.validate import Scores


class Store:
    """The folder of checkpoints of one training.

    `files` travel with every checkpoint (vocabulary, truecase); `settings` are what a restart is compared with. Those
    saved at a multiple of `every` are regular: the newest `keep` of them stay. With `ema` a checkpoint is a model of
    moving averages, and the trained weights lie in resume/.
    """

    def __init__(
        self,
        folder: Path,
        description: Description,
        files: Mapping[str, Path],
        *,
        every: int,
        keep: int,
        settings: Mapping[str, Any] | None = None,
        ema: Ema | None = None,
    ) -> None:
        self.folder = folder
        self.description = description
        self.files = files
        self.every = every
        self.keep = keep
        self.settings = dict(settings or {})
        self.ema = ema

    def save(self, model: Seq2Seq, optimizer: torch.optim.Optimizer, state: State) -> Path:
        """A checkpoint of this very moment. Raises OutputError, and TrainingError for a weight that isn't finite."""
        tensors, remembered, trained = map(gathered, self._parts(model, optimizer))
        self.folder.mkdir(parents=True, exist_ok=True)
        origin = self.description.origin.model_copy(update={"steps": (state.step,)})
        return save_checkpoint(
            self.folder,
            state.step,
            tensors,
            self.description.model_copy(update={"origin": origin}),
            self.files,
            optimizer=remembered,
            rng=random_states(model.output_weight_VD.device),
            state=self._record(state),
            trained=trained or None,
        )

    def note(self, state: State, scores: Scores, by: str) -> None:
        """Add what validation measured to the checkpoint of this step, and point best.json at it if it is the best.

        The state comes last: whoever is cut off before validates this step again, with the same outcome.
        """
        path = self.folder / layout.step_name(state.step)
        measured = {"loss": scores.loss, "perplexity": scores.perplexity, "bleu": scores.bleu, "chrf": scores.chrf}
        numbers = {name: value if value is None or math.isfinite(value) else None for name, value in measured.items()}
        sets = {"sets": {name: dict(values) for name, values in scores.sets.items()}} if scores.sets else {}
        write_json(path / layout.VALIDATION, {"step": state.step, **numbers, **sets, "best_by": by})
        if state.best_step == state.step:
            point(self.folder, layout.BEST, path)
        write_json(path / layout.RESUME / layout.STATE, self._record(state))

    def best_by(self, by: str) -> tuple[float, int] | None:
        """The best value of `by` that validation measured at a checkpoint still here, with its step.

        best.json names that one from now on. None, and nothing done, where there is no such value.
        """
        measured = [((layout.read_validation(path) or {}).get(by), path) for path in layout.step_folders(self.folder)]
        values = [(float(value), path) for value, path in measured if isinstance(value, int | float)]
        if not values:
            return None
        value, path = (min if by == "loss" else max)(values, key=lambda pair: pair[0])
        point(self.folder, layout.BEST, path)
        return value, layout.step_number(path) or 0

    def prune(self, state: State) -> list[Path]:
        """Remove all but the best, the last and the newest `keep` of the regular ones.

        So what an interruption saved goes once training is past it: the checkpoints that remain, and their average,
        are those of a run that was never interrupted.
        """
        found = layout.step_folders(self.folder)
        regular = [path for path in found if path == found[-1] or _is_regular(path)]
        best = [path for path in found if layout.step_number(path) == state.best_step]
        return prune(self.folder, [*regular[-self.keep :], *best])

    def newest(self) -> Path | None:
        """The checkpoint to go on from, or None before the first. Raises TrainingError if none can be gone on from."""
        whole = resumable(self.folder)
        if not whole and layout.step_folders(self.folder):
            raise TrainingError(
                f"{self.folder}: its checkpoints lack {layout.RESUME}/, without which training cannot go on",
                f"train in another run folder, or remove {self.folder} to train anew",
            )
        return whole[-1] if whole else None

    def recover(self) -> list[Path]:
        """Remove what a killed save left behind, and let last.json name the newest checkpoint."""
        leftovers = clean(self.folder)
        found = layout.step_folders(self.folder)
        if found and layout.pointed(self.folder, layout.LAST) != found[-1]:
            point(self.folder, layout.LAST, found[-1])
        return leftovers

    def restore(self, path: Path, model: Seq2Seq, optimizer: torch.optim.Optimizer) -> State:
        """Put weights, moments and random numbers back as they were at `path`.

        Raises ModelError, before anything is changed where a file is not as it was saved.
        """
        state = read_state(path)
        check_checkpoint(path)
        load_weights(model, path / layout.WEIGHTS)
        if self.ema:
            self.ema.begin()
        if (path / layout.RESUME / layout.TRAINED).is_file():
            put_weights(model, path / layout.RESUME / layout.TRAINED)
        restore(optimizer, model, read_tensors(path / layout.RESUME / layout.OPTIMIZER))
        set_random_states(read_tensors(path / layout.RESUME / layout.RNG), model.output_weight_VD.device)
        return state

    def _parts(self, model: Seq2Seq, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], ...]:
        """A checkpoint's weights, the moments, and the weights that learn where the checkpoint's are their averages."""
        averages = self.ema.weights() if self.ema else weights(model)
        return averages, moments(optimizer, model), self.ema.trained() if self.ema else {}

    def _record(self, state: State) -> dict[str, Any]:
        return {"state": state.plain(), "regular": state.step % self.every == 0, "settings": self.settings}


class Helper(Store):
    """The store of a process that keeps a part of a model, and writes nothing: it helps to gather the whole."""

    def save(self, model: Seq2Seq, optimizer: torch.optim.Optimizer, state: State) -> Path:
        """Send what this process has."""
        for tensors in self._parts(model, optimizer):
            for tensor in tensors.values():
                whole(tensor)
        return self.folder / layout.step_name(state.step)

    def note(self, state: State, scores: Scores, by: str) -> None:
        """Nothing: rank 0 does it."""

    def prune(self, state: State) -> list[Path]:
        """Nothing: rank 0 does it."""
        return []


def gathered(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Whole tensors; those that were spread over processes come to the processor's memory one by one."""
    return {name: tensor if (full := whole(tensor)) is tensor else full.cpu() for name, tensor in tensors.items()}


def _is_regular(path: Path) -> bool:
    """Whether a checkpoint was due when it was saved; one that cannot tell counts as such, and stays longer."""
    try:
        return bool(read_record(path).get("regular", True))
    except ModelError:
        return True


def random_states(device: torch.device) -> dict[str, Tensor]:
    """The states of the generators that dropout draws from."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Put the generators back; one that this machine has not, or had not, is left alone."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
