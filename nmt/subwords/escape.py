"""Characters that sentencepiece or a line cannot hold, and stand-ins for them.

Sentencepiece writes a space as U+2581 and leaves out of learning whatever line holds U+2585; a piece that held a line
feed or U+2028 could not be printed on one line. Each such character goes into subwords as a private-use character of
its own, U+10FF01 and on. Text that already holds one of these, or U+10FF00, gets U+10FF00 before it. So `escape` maps
different texts to different texts, and `unescape` undoes it. Learning, encoding and decoding all see escaped text.
"""

from __future__ import annotations

import re

ESCAPE = "\U0010ff00"
RESERVED = "\0\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029\u2581\u2585"
_STAND_INS = {chr(0x10FF01 + i): character for i, character in enumerate(RESERVED)}
_ESCAPED = {character: stand_in for stand_in, character in _STAND_INS.items()} | {
    character: ESCAPE + character for character in (ESCAPE, *_STAND_INS)
}
_TO_ESCAPE = re.compile(f"[{re.escape(''.join(_ESCAPED))}\ud800-\udfff]")
_TO_UNESCAPE = re.compile(f"{ESCAPE}([{ESCAPE}{''.join(_STAND_INS)}])|([{''.join(_STAND_INS)}])")


def escape(text: str) -> str:
    """`text` as sentencepiece sees it. Half a surrogate pair, which is no character, becomes U+FFFD."""
    return _TO_ESCAPE.sub(lambda match: _ESCAPED.get(match[0], "\ufffd"), text)


def unescape(text: str) -> str:
    """The text that `escape` was given; any other text comes back with its stand-ins replaced."""
    return _TO_UNESCAPE.sub(lambda match: match[1] or _STAND_INS[match[2]], text)
