"""What a stage leaves behind about itself, and when one is stale.

When a stage has finished, `manifest.json` in its folder keeps the settings it depended on, digests of what it read and
of what it wrote, and what the stage before it had written. Comparing that with the present is all of freshness.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.errors import DataError, NmtError
from nmt.files import read_json, sha256, write_json
from nmt.recipe import Recipe, is_default
from nmt.stages.environment import environment
from nmt.stages.stage import MANIFEST, STAGES, RunFolder, Stage

NO_RESULT = {MANIFEST, "README.md"}  # the model's card gets the scores once there are some


@dataclass(frozen=True)
class Manifest:
    """What a stage left behind."""

    finished: str
    """When, or empty: it was begun."""
    settings: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Files read, by key: path, size, mtime_ns, sha256."""
    before: str = ""
    """Digest of what the stage before had written."""
    followed: str = ""
    """When the stage that it follows had finished."""
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Files written, by path inside the run folder: size, sha256."""
    forced: bool = False
    """Begun anew by --force: repeated while it isn't finished, it goes on."""

    def result(self) -> str:
        """A digest of all it wrote: equal exactly when every file is."""
        names = {name: entry["sha256"] for name, entry in self.outputs.items()}
        return hashlib.sha256(json.dumps(names, sort_keys=True).encode()).hexdigest()


def read_manifest(stage: Stage, run: RunFolder) -> Manifest | None:
    """The stage's manifest, or None where there is none that can be used."""
    path = stage.manifest(run)
    if not path.is_file():
        return None
    try:
        data = read_json(path)
        return Manifest(
            str(data["finished"] or ""),
            data["settings"],
            data["inputs"],
            data["before"],
            data["followed"],
            data["outputs"],
            bool(data.get("forced")),
        )
    except (NmtError, KeyError, TypeError):  # damaged: as good as none, the stage runs anew
        return None


def now() -> str:
    """The time for a manifest."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def write_manifest(stage: Stage, run: RunFolder, manifest: Manifest, seconds: float = 0.0) -> None:
    """Keep `manifest`, and for people how long it took, on what, and with which versions."""
    path = stage.manifest(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {
        "stage": stage.name,
        "nmt": __version__,
        "finished": manifest.finished or None,
        "seconds": round(seconds, 2),
        "environment": environment(),
        "settings": dict(manifest.settings),
        "inputs": dict(manifest.inputs),
        "before": manifest.before,
        "followed": manifest.followed,
        "outputs": dict(manifest.outputs),
        "forced": manifest.forced,
    }
    write_json(path, data)


def digest_inputs(files: Mapping[str, Path], known: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Size, time and SHA-256 of every file. One whose size and time are as `known` is not read again."""
    gone = [f"{path}: there is no such file ({key})" for key, path in files.items() if not path.exists()]
    if gone:
        raise DataError("\n".join(gone), "check the paths in the recipe; nmt download RECIPE fetches what it offers")
    entries: dict[str, dict[str, Any]] = {}
    for key, path in files.items():
        status = path.stat()
        entry: dict[str, Any] = {"path": str(path), "size": status.st_size, "mtime_ns": status.st_mtime_ns}
        same = known.get(key, {})
        unchanged = all(same.get(name) == value for name, value in entry.items())
        entries[key] = {**entry, "sha256": same["sha256"] if unchanged else sha256(path)}
    return entries


def digest_outputs(stage: Stage, run: RunFolder) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of every file the stage wrote. What only serves a restart of training is left out."""
    entries = {}
    for folder in stage.folders:
        for path in sorted((run.path / folder).rglob("*")):
            name = path.relative_to(run.path)
            if path.is_file() and path.name not in NO_RESULT and "resume" not in name.parts:
                entries[name.as_posix()] = {"size": path.stat().st_size, "sha256": sha256(path)}
    return entries


def changed_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys that differ. One without a value is as good as none: so a key that is new in nmt changes no old run."""
    return [key for key in [*old, *(k for k in new if k not in old)] if old.get(key) != new.get(key)]


def describe_change(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """``train.steps changed 500 → 1000``."""
    before, after = (json.dumps(v[key], ensure_ascii=False) if key in v else "unset" for v in (old, new))
    return f"{key} changed {before} → {after}"


def staleness(stage: Stage, recipe: Recipe, run: RunFolder) -> list[str]:
    """Why the stage has to run; empty when it needn't. Reads no more of the data than it must."""
    manifest = read_manifest(stage, run)
    if manifest is None:
        return ["has not run yet" if not any((run.path / f).exists() for f in stage.folders) else "did not finish"]
    if not manifest.finished:
        return ["did not finish", *_setting_reasons(stage, recipe, manifest)]
    reasons = _setting_reasons(stage, recipe, manifest)
    entries = digest_inputs(stage.files(recipe), manifest.inputs)
    reasons += [
        f"{key} changed: {entry['path']}"
        for key, entry in entries.items()
        if manifest.inputs.get(key, {}).get("sha256") != entry["sha256"]
    ]
    reasons += [f"{key} is no longer read" for key in manifest.inputs if key not in entries]
    reasons += [f"{name} is missing or was changed" for name in _lost_outputs(manifest, run)][:3]
    if stage.after:
        before = read_manifest(STAGES[stage.after], run)
        if before is not None and before.finished and before.result() != manifest.before:
            reasons.append(f"{stage.after} gave other results")
    if followed(stage, run) != manifest.followed:
        reasons.append(f"{stage.follows} ran anew")
    return reasons


def misfits(stage: Stage, recipe: Recipe, run: RunFolder) -> list[str]:
    """Why what the stage left is not of this recipe; what was removed since, after it was read, is no reason."""
    try:
        return staleness(stage, recipe, run)
    except NmtError:
        manifest = read_manifest(stage, run)
        return _setting_reasons(stage, recipe, manifest) if manifest else []


def followed(stage: Stage, run: RunFolder) -> str:
    """When the stage that `stage` follows has finished, or empty."""
    manifest = read_manifest(STAGES[stage.follows], run) if stage.follows else None
    return manifest.finished if manifest else ""


def _setting_reasons(stage: Stage, recipe: Recipe, manifest: Manifest) -> list[str]:
    settings = plain(stage.settings(recipe))
    return [
        describe_change(key, manifest.settings, settings)
        for key in changed_settings(manifest.settings, settings)
        if key in manifest.settings or not is_default(recipe, key, settings[key])  # nmt may have new keys since
    ]


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON gives them back."""
    return dict(json.loads(json.dumps(settings, default=str)))


def _lost_outputs(manifest: Manifest, run: RunFolder) -> Iterator[str]:
    for name, entry in manifest.outputs.items():
        path = run.path / name
        if not path.is_file() or path.stat().st_size != entry["size"]:
            yield name
