"""Write a file or a folder whole or not at all; JSON; digests.

A reader, a kill and a full disk all see either the old content or the new one under the final name, never a part.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from nmt.errors import ModelError, OutputError


@contextmanager
def write_whole(path: Path) -> Iterator[BinaryIO]:
    """A binary stream whose bytes become `path` when the block ends without an exception, all at once.

    Until then they lie beside it in `.NAME.PID.partial`; after an exception that is removed and an old `path` is as
    it was. A symbolic link keeps pointing where it points, and a device or a pipe is written straight.
    Raises OutputError when the disk, the folder or the permissions do not allow it.
    """
    if _is_special(path):
        with _output_errors(path), path.open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.partial")
    with _output_errors(path, temporary):
        if target.is_dir():
            raise OutputError(f"{path}: is a folder; a file is to be written there", "choose another name")
        try:
            with temporary.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
            _sync_folder(target.parent)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def write_text_whole(path: Path, text: str) -> None:
    """`text` as the UTF-8 file `path`, whole or not at all. Raises OutputError."""
    with write_whole(path) as stream:
        stream.write(text.encode())


def write_json(path: Path, data: Any) -> None:
    """`data` as an indented JSON file, whole or not at all. Raises OutputError."""
    write_text_whole(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """What the JSON file `path` holds. Raises ModelError when it is missing, unreadable or damaged."""
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}", "check the path") from error
    except ValueError as error:
        raise ModelError(f"{path}: is damaged: not valid JSON ({error})", "remove it and make it again") from error


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A fresh folder `NAME.partial` to fill; it becomes `path` when the block ends without an exception.

    A leftover of an earlier attempt is removed first. An old `path` stays until the new one takes its place; where the
    system can exchange two names (Linux) there is no instant without it. Raises OutputError.
    """
    path = Path(os.path.realpath(path))
    partial, old = path.with_name(path.name + ".partial"), path.with_name(path.name + ".old")
    with _output_errors(path, partial, old):
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path}: is a file; a folder is to be written there", "choose another name")
        if old.exists() and not path.exists():  # killed between the two renames of a plain replacement
            old.rename(path)
        _remove(partial)
        partial.mkdir(parents=True)
        try:
            yield partial
            _sync_tree(partial)
            _put_in_place(partial, path, old)
        except BaseException:
            with suppress(OSError):
                _remove(partial)
            raise


def sha256(path: Path) -> str:
    """The SHA-256 digest of the file's bytes, in hexadecimal. Raises ModelError when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}", "check the path") from error


@contextmanager
def _output_errors(path: Path, *ours: Path) -> Iterator[None]:
    """Turns the system's refusals to write into OutputError, and leaves alone what befell other files."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno is None or not (error.filename is None or _concerns(error.filename, (path, *ours))):
            raise
        hint = "check that the folder exists, may be written, and that the disk has room"
        raise OutputError(f"{path}: cannot be written: {error.strerror}", hint) from error


def _concerns(filename: object, ours: tuple[Path, ...]) -> bool:
    """Whether the file that an error names is one of `ours`, inside one, or a folder that holds one."""
    name = Path(str(filename))
    return any(name == one or one in name.parents or name in one.parents for one in ours)


def _is_special(path: Path) -> bool:
    """Whether `path` is a device, a pipe or a socket, which a rename would destroy."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _put_in_place(new: Path, path: Path, old: Path) -> None:
    if not path.exists():
        new.rename(path)
    elif _exchange(new, path):
        _remove(new)  # which now holds what `path` held
    else:
        _remove(old)
        path.rename(old)
        new.rename(path)
    _sync_folder(path.parent)
    _remove(old)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step; False where system or file system cannot."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync_tree(folder: Path) -> None:
    for here, _, names in os.walk(folder):
        for name in names:
            with (Path(here) / name).open("rb") as stream:
                os.fsync(stream.fileno())
        _sync_folder(Path(here))


def _sync_folder(folder: Path) -> None:
    """Make renames in `folder` last through a power cut. Some network disks refuse; nothing more can be done there."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
