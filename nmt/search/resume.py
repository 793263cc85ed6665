"""Output that an interrupted job leaves and the same job goes on from.

While OUTPUT is being made, its lines stand in OUTPUT.partial. OUTPUT.resume.json tells what they were made of, and
stays beside the finished file, so that the same command finds nothing to do.
"""

from __future__ import annotations

import os
import re
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
from nmt.wording import counted

try:
    import fcntl
except ImportError:  # no POSIX system
    fcntl = None  # type: ignore[assignment]

_NUMBERED = {"nbest": (b"", b" ||| "), "fairseq": (b"S-", b"\t")}
"""Forms with several lines for each line of the input: what stands before and behind its number."""


_DIGEST = re.compile("[0-9a-f]{16}( [0-9a-f]{16})*")


def digest(path: Path) -> str:
    """What a file holds, or those files of a folder that a model is made of, in short."""
    files = sorted(path.glob("*.safetensors")) + [path / "model.json"] if path.is_dir() else [path]
    return " ".join(sha256(file)[:16] for file in files)


class Kept:
    """The lines of an output that have been made already."""

    def __init__(
        self,
        output: Path,
        form: Format,
        record: Mapping[str, Any],
        names: Mapping[str, str] | None = None,
        neutral: Mapping[str, Any] | None = None,
    ) -> None:
        """`record` tells all that the lines depend on, files by their `digest`; `names` are what people call it.

        A value that is `neutral` counts as not given, so that a job goes on which knew nothing of it.
        """
        self.output, self.form, self.record = output, form, {name: value for name, value in record.items()}
        self.names, self.neutral = names or {}, neutral or {}
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
        if known is not None and self._asked(known) != self._asked(self.record):
            raise OutputError(
                f"{self.output}: was begun with something else: {'; '.join(self._differences(known))}",
                f"say what was said then, or remove {self.partial.name} and {self.beside.name} to begin anew",
            )
        return self.output.exists() and not self.partial.exists()

    def _asked(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """What of a record changes anything."""
        told = ((name, value) for name, value in record.items() if not _absent(value))
        return {name: value for name, value in told if name not in self.neutral or value != self.neutral[name]}

    def _differences(self, known: Mapping[str, Any]) -> Iterator[str]:
        """Each thing that is not as it was."""
        asked = self._asked(known), self._asked(self.record)
        for name in {**self.record, **known}:
            was, now = (_told(record.get(name)) for record in (known, self.record))
            if asked[0].get(name) == asked[1].get(name):
                continue
            if was == now == "given":
                yield f"{self.names.get(name, name)} holds something else"
            else:
                yield f"{self.names.get(name, name)} was {was}, and is {now} now"

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
                    f"{self.partial}: holds {counted(done, 'line')}; the input has {total:,}", "remove it to begin anew"
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


def _absent(value: Any) -> bool:
    return value is None or value is False or value == []


def _told(value: Any) -> str:
    """A setting as people say it."""
    if _absent(value):
        return "not given"
    texts = [str(one) for one in value] if isinstance(value, list) else [str(value)]
    return "given" if value is True or all(map(_DIGEST.fullmatch, texts)) else ", ".join(texts)


def _lock(stream: BinaryIO, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise OutputError(f"{path}: another process writes it", "wait until that one has ended") from error
