"""Run the stages that are stale, in order, each whole or to be gone on with; one process to a run folder."""

from __future__ import annotations

import fcntl
import importlib
import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import OutputError, RecipeError
from nmt.events import Event, Notice, StageFinished, StageFresh, StageStarted
from nmt.files import write_text_whole
from nmt.recipe import Recipe, dump
from nmt.stages.manifest import (
    Manifest,
    digest_inputs,
    digest_outputs,
    followed,
    now,
    plain,
    read_manifest,
    staleness,
    write_manifest,
)
from nmt.stages.stage import STAGES, RunFolder, Stage

if TYPE_CHECKING:
    from nmt.train.ranks import Ranks


class Interrupted(KeyboardInterrupt):
    """Somebody asked a stage to end; what it did is saved, and the same call goes on. `status` is the shell's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.status = 128 + (signal.SIGTERM if "SIGTERM" in reason else signal.SIGINT)


def choose(first: str | None = None, last: str | None = None, only: str | None = None) -> list[Stage]:
    """The stages from `first` to `last`, both included; or `only` one. Raises RecipeError when none is left."""
    names = list(STAGES)
    start, end = names.index(only or first or names[0]), names.index(only or last or names[-1])
    if start > end:
        raise RecipeError(f"--from {names[start]} --to {names[end]}: the stages run the other way", " → ".join(names))
    return [STAGES[name] for name in names[start : end + 1]]


def plan(
    recipe: Recipe, run: RunFolder, stages: Sequence[Stage], force: Collection[str] = ()
) -> list[tuple[Stage, list[str]]]:
    """Each stage with the reasons why it would run; nothing is changed on disk."""
    planned: list[tuple[Stage, list[str]]] = []
    stale: set[str] = set()
    _check(stages, recipe, run, force)
    for stage in stages:
        reasons = _reasons(stage, recipe, run, force)
        if stage.follows in stale and not reasons:
            reasons = [f"{stage.follows} runs before it"]
        learned = stage.resumes and stage.name not in force and any(run.checkpoints.glob("step-*"))
        if stage.after in stale and (learned or not reasons):
            reasons = [*reasons, f"{stage.after} runs before it, and may give other results"]
            if learned:
                reasons += ["checkpoints of other results can't be gone on from: --force train starts over"]
        if reasons:
            stale.add(stage.name)
        planned.append((stage, reasons))
    return planned


def run_stages(
    recipe: Recipe,
    run: RunFolder,
    stages: Sequence[Stage],
    force: Collection[str] = (),
    ranks: Ranks | None = None,
) -> Iterator[Event]:
    """Run those of `stages` that are stale or forced, telling why.

    Of many processes, `ranks`, the first calls this and the others `follow`.
    Raises whatever a stage raises, TrainingError when checkpoints of other settings are in the way, and OutputError
    when the folder cannot be written or another process is writing it.
    """
    with locked(run):
        _clean(run)
        _check(stages, recipe, run, force)
        write_text_whole(run.recipe, dump(recipe))
        for stage in stages:
            reasons = _reasons(stage, recipe, run, force)
            if not reasons:
                yield StageFresh(stage.name)
                continue
            yield StageStarted(stage.name, tuple(reasons))
            anew = stage.name in force
            if stage.resumes and anew and not _forced_before(stage, recipe, run):
                yield from _set_aside(run)
            yield from _perform(stage, recipe, run, ranks, anew)


def follow(recipe: Recipe, run: RunFolder, ranks: Ranks) -> None:
    """What all processes but the first do: wait for the stages that are done together, and take part in them."""
    for stage in STAGES.values():
        if stage.joint:
            for event in _events(stage, recipe, run, ranks):
                _end_if_interrupted(event)


def _reasons(stage: Stage, recipe: Recipe, run: RunFolder, force: Collection[str]) -> list[str]:
    reasons = staleness(stage, recipe, run)
    return ["--force", *reasons] if stage.name in force else reasons


def _forced_before(stage: Stage, recipe: Recipe, run: RunFolder) -> bool:
    """Whether --force had the stage begin anew with these settings, and it hasn't ended: the same command goes on."""
    manifest = read_manifest(stage, run)
    unfinished = manifest is not None and manifest.forced and not manifest.finished
    return unfinished and manifest is not None and manifest.settings == plain(stage.settings(recipe))


def _perform(stage: Stage, recipe: Recipe, run: RunFolder, ranks: Ranks | None, forced: bool) -> Iterator[Event]:
    """Run one stage between its two manifests: one that says it began, one that says what came of it."""
    began = time.monotonic()
    before = _result_before(stage, run)
    last = read_manifest(stage, run)
    inputs = digest_inputs(stage.files(recipe), last.inputs if last else {})
    settings = plain(stage.settings(recipe))
    forced = forced or _forced_before(stage, recipe, run)
    begun = Manifest("", settings, inputs, before, followed(stage, run), forced=forced)
    write_manifest(stage, run, begun)
    for event in _events(stage, recipe, run, ranks):
        yield event
        _end_if_interrupted(event)
    seconds = time.monotonic() - began
    write_manifest(stage, run, replace(begun, finished=now(), outputs=digest_outputs(stage, run)), seconds)
    yield StageFinished(stage.name, seconds, str(run.path / stage.folders[0]))


def _events(stage: Stage, recipe: Recipe, run: RunFolder, ranks: Ranks | None) -> Iterator[Event]:
    together: dict[str, Any] = {"ranks": ranks} if stage.joint else {}
    yield from importlib.import_module(f"nmt.stages.{stage.name}").run(recipe, run, **together)


def _end_if_interrupted(event: Event) -> None:
    if getattr(event, "interrupted", False):
        raise Interrupted(str(getattr(event, "reason", "")))


def _result_before(stage: Stage, run: RunFolder) -> str:
    """The digest of what the stage before has written. Raises RecipeError when it hasn't finished."""
    if stage.after is None:
        return ""
    manifest = read_manifest(STAGES[stage.after], run)
    if manifest is None or not manifest.finished:
        raise RecipeError(
            f"{run.path}: {stage.name} reads what {stage.after} writes, which has not finished",
            f"nmt run RECIPE --to {stage.name} runs what is missing",
        )
    return manifest.result()


def _check(stages: Sequence[Stage], recipe: Recipe, run: RunFolder, force: Collection[str]) -> None:
    """Checkpoints of another model can't be gone on from: tell before the stages ahead of training cost time."""
    for stage in stages:
        if stage.resumes and stage.name not in force:
            importlib.import_module(f"nmt.stages.{stage.name}").check(recipe, run)


def _set_aside(run: RunFolder) -> Iterator[Event]:
    """Make way for training from the start: the old checkpoints and what was told of them go to checkpoints.previous.

    Or to checkpoints.previous-2 and so on, for nothing trained is ever removed.
    """
    if not any(run.checkpoints.glob("step-*")):
        return
    names = (f"checkpoints.previous-{number}" for number in count(2))
    previous = next(path for name in chain(["checkpoints.previous"], names) if not (path := run.path / name).exists())
    run.checkpoints.rename(previous)
    for told in (run.journal, run.curves, run.validation, run.tensorboard):
        if told.exists():
            told.rename(previous / told.name)
    yield Notice(f"train: the old checkpoints are now in {previous}")


def _clean(run: RunFolder) -> None:
    """Remove files that a killed process had begun to write."""
    folders = {folder for stage in STAGES.values() for folder in stage.folders}
    for folder in (run.path, *(run.path / name for name in folders)):
        for path in folder.glob(".*.partial"):
            path.unlink(missing_ok=True)


@contextmanager
def locked(run: RunFolder) -> Iterator[None]:
    """The run folder, made if need be, for this process alone. Raises OutputError when another one holds it."""
    path = run.path / ".lock"
    try:
        run.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise OutputError(
            f"{run.path}: cannot be written: {error.strerror}", "--run-dir names another folder"
        ) from error
    try:
        _lock(handle, run.path)
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(handle)  # which also unlocks


def writer(run: RunFolder) -> str:
    """That another process writes the run folder, and which; an empty string if none does. Changes nothing there."""
    try:
        handle = os.open(run.path / ".lock", os.O_RDONLY)
    except OSError:
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written(handle, run.path)
    except OSError:
        return ""
    finally:
        os.close(handle)
    return ""


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(
            _written(handle, folder), "wait until it ends, or choose another folder with --run-dir"
        ) from None
    except OSError:  # a file system without locks: better to run than to refuse
        pass


def _written(handle: int, folder: Path) -> str:
    owner = os.read(handle, 32).decode(errors="replace").strip()
    return f"{folder}: process {owner or 'unknown'} is writing this run folder"


def where(recipe: Recipe, run_dir: Path | None) -> RunFolder:
    """The run folder: the one asked for, or runs/NAME in the current folder."""
    return RunFolder(run_dir if run_dir is not None else Path("runs") / recipe.name)
