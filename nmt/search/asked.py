"""Read what is to be translated, with what is asked of each line and of all lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from nmt.corpus.lines import read_lines, read_once
from nmt.errors import DataError
from nmt.search.control.request import Request, read_context, read_request
from nmt.search.formats import Record, read_record


@dataclass(frozen=True)
class Asked:
    """A file of lines, and what is asked of their translations; `source` "-" is stdin."""

    source: Path | str
    form: Literal["text", "jsonl"] = "text"
    on_bad_bytes: str = "error"
    prefix: Path | None = None
    """A file with the beginning of each line's translation; an empty line asks for none."""
    common: Request = field(default_factory=lambda: Request(""))
    """What is asked of all lines; its source doesn't count."""
    context: bool = False
    """Whether a jsonl line's field `context` tells the sentences before it; otherwise it is a field as any other."""

    @property
    def name(self) -> str:
        """The source, for messages."""
        return "stdin" if str(self.source) == "-" else str(self.source)

    @property
    def pauses(self) -> bool:
        """Whether some of it comes from a pipe, which may let its reader wait."""
        return read_once(self.source) or (self.prefix is not None and read_once(self.prefix))

    def checkable(self) -> Asked:
        """What of it can be read more than once: without prefixes that come from a pipe."""
        return replace(self, prefix=None) if self.prefix is not None and read_once(self.prefix) else self

    def requests(self, tally: Counter[str] | None = None) -> Iterator[tuple[Request, Record]]:
        """Each line's request, and the record it came from, empty for text. Raises DataError at a line that is bad."""
        for number, (line, prefix) in enumerate(self._lines(tally), 1):
            record: Record = {}
            request = replace(self.common, source=line)
            if self.form == "jsonl":
                place = f"{self.name}:{number}"
                source, record = read_record(line, place, tally)
                request = replace(self.common, source=source)
                if "control" in record:
                    request = _added(read_request(source, record["control"], place), self.common)
                if self.context and "context" in record:
                    request = replace(request, context=read_context(record["context"], place))
            yield replace(request, prefix=request.prefix or prefix), record

    def _lines(self, tally: Counter[str] | None) -> Iterator[tuple[str, str]]:
        """Source lines with their prefixes."""
        lines = read_lines(self.source, self.on_bad_bytes, tally)
        if self.prefix is None:
            yield from ((line, "") for line in lines)
            return
        prefixes = read_lines(self.prefix, self.on_bad_bytes, tally)
        for number, (line, prefix) in enumerate(zip_longest(lines, prefixes), 1):
            if line is None or prefix is None:
                longer, shorter = (self.name, self.prefix) if prefix is None else (self.prefix, self.name)
                raise DataError(
                    f"{longer}:{number}: {shorter} has no such line; prefixes belong to lines by their number",
                    "give one line for each, empty where the translation may begin as it likes",
                )
            yield line, prefix


def _added(own: Request, common: Request) -> Request:
    """A line's own request with what is asked of all lines."""
    return replace(
        common,
        source=own.source,
        prefix=own.prefix,
        settings=own.settings,
        tag=own.tag or common.tag,
        markup=common.markup or own.markup,
        require=(*common.require, *own.require),
        forbid=(*common.forbid, *own.forbid),
    )
