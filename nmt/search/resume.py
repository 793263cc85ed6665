"""Output that an interrupted job leaves and the same job goes on from.

While OUTPUT is being made, its lines stand in OUTPUT.partial. OUTPUT.resume.json tells what they were made of, and
stays beside the finished file, so that the same command finds nothing to do.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from nmt.corpus.lines import LineWriter
from nmt.corpus.packed import packing
from nmt.errors import OutputError
from nmt.files import read_json, sha256, write_json, write_whole
from nmt.search.formats import Format

try:
    import fcntl
except ImportError:  # no POSIX system
    fcntl = None  # type: ignore[assignment]

_NUMBERED = {"nbest": (b"", b" ||| "), "fairseq": (b"S-", b"\t")}
"""Forms with several lines for each line of the input: what stands before and behind its number."""


def digest(path: Path) -> str:
    """What a file holds, or those files of a folder that a model is made of, in short."""
    files = sorted(path.glob("*.safetensors")) + [path / "model.json"] if path.is_dir() else [path]
    return " ".join(sha256(file)[:16] for file in files)


class Kept:
    """The lines of an output that have been made already."""

    def __init__(self, output: Path, form: Format, record: Mapping[str, Any]) -> None:
        """`record` tells, by names that people know, all that the lines depend on."""
        self.output, self.form, self.record = output, form, {name: value for name, value in record.items()}
        self.partial = output.with_name(f"{output.name}.partial")
        self.beside = output.with_name(f"{output.name}.resume.json")

    def whole(self) -> bool:
        """Whether the output is finished. Raises OutputError where it, or a part of it, was made of something else."""
        known = read_json(self.beside) if self.beside.is_file() else None
        if known is None and (there := next((p for p in (self.output, self.partial) if p.exists()), None)):
            raise OutputError(
                f"{there}: is there, and no {self.beside.name} tells what it was made of",
                "remove it, or leave out --resume, which replaces what is there when all is done",
            )
        if known is not None and known != self.record:
            name = next(n for n in {**self.record, **known} if known.get(n) != self.record.get(n))
            was, now = known.get(name), self.record.get(name)
            raise OutputError(
                f"{self.output}: was begun with {name} = {was!r}; now it is {now!r}",
                f"say what was said then, or remove {self.partial.name} and {self.beside.name} to begin anew",
            )
        return self.output.exists() and not self.partial.exists()

    @contextmanager
    def going_on(self, total: int) -> Iterator[tuple[LineWriter, int]]:
        """Where to write, and how many of the `total` lines of input are done; at the end the output appears.

        A line that was cut, and of forms with several lines each the last lines, are removed first.
        """
        write_json(self.beside, self.record)
        with open(self.partial, "ab+") as stream:
            _lock(stream, self.partial)
            done, size = self._complete(stream)
            if done > total:
                raise OutputError(
                    f"{self.partial}: holds {done:,} lines; the input has {total:,}", "remove it to begin anew"
                )
            stream.truncate(size)
            yield LineWriter(stream, str(self.partial)), done
            stream.flush()
            os.fsync(stream.fileno())
        with (
            open(self.partial, "rb") as done_lines,
            write_whole(self.output) as whole,
            packing(self.output.suffix, whole) as packed,
        ):
            shutil.copyfileobj(done_lines, packed)
        self.partial.unlink()

    def _complete(self, stream: BinaryIO) -> tuple[int, int]:
        """How many lines of input have all their output, and how many bytes that is."""
        stream.seek(0)
        done, size, last = 0, 0, None
        ends = 0
        for line in stream:
            if not line.endswith(b"\n"):
                break
            if self.form in _NUMBERED:
                number = self._number(line)
                if number is not None and number != last:
                    done, size, last = number, ends, number
            else:
                done, size = done + 1, ends + len(line)
            ends += len(line)
        return done, size

    def _number(self, line: bytes) -> int | None:
        before, behind = _NUMBERED[self.form]
        number = line.removeprefix(before).partition(behind)[0]
        return int(number) if line.startswith(before) and number.isdigit() else None


def _lock(stream: BinaryIO, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise OutputError(f"{path}: another process writes it", "wait until that one has ended") from error
