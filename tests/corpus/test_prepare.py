"""The pass over the corpora: what is kept, what is counted, and that the number of workers changes nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nmt.corpus.clean import Cleaner
from nmt.corpus.filters import Filters
from nmt.corpus.lines import open_lines, read_lines
from nmt.corpus.moses import Moses
from nmt.corpus.prepare import Corpus, prepare
from nmt.corpus.sources.plain import PlainSource
from nmt.corpus.sources.tsv import TsvSource
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice, Progress

WORDS = [a + b + c for a in "bdgk" for b in "aeo" for c in "lmnr"]
RAW = (Cleaner("en"), Cleaner("de"))


def plain(folder: Path, name: str, pairs: Sequence[tuple[str, str]]) -> PlainSource:
    for side, suffix in enumerate(("x", "y")):
        with open_lines(folder / f"{name}.{suffix}") as out:
            for pair in pairs:
                out.write(pair[side])
    return PlainSource(folder / f"{name}.x", folder / f"{name}.y")


def run(folder: Path, train: list[Corpus], valid: PlainSource, **options: Any) -> list[Event]:
    folder.mkdir(exist_ok=True)
    cleaners, filters = options.pop("cleaners", RAW), options.pop("filters", Filters())
    return list(prepare(folder, train, valid, options.pop("held_out", []), cleaners, filters, **options))


def pairs_in(folder: Path, name: str = "train") -> list[tuple[str, str]]:
    return list(zip(read_lines(folder / f"{name}.source"), read_lines(folder / f"{name}.target"), strict=True))


def report(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "report.json").read_text())


@pytest.fixture
def valid(tmp_path: Path) -> PlainSource:
    return plain(tmp_path, "valid", [("held source", "held target"), ("", "x")])


def test_blank_pairs_go_as_pairs_and_are_counted(tmp_path: Path, valid: PlainSource) -> None:
    source = plain(tmp_path, "a", [("bal", "bal"), ("", "ban"), ("kor", "\u200b"), ("dem", "dem")])
    events = run(tmp_path / "out", [Corpus(source)], valid)
    assert pairs_in(tmp_path / "out") == [("bal", "bal"), ("dem", "dem")]
    assert Notice("a.x + a.y: read 4, kept 2, dropped 2 (empty 2)") in events
    corpus = report(tmp_path / "out")["corpora"][0]
    assert corpus["dropped"] == {"empty": 2}
    assert [example["line"] for example in corpus["examples"]["empty"]] == [2, 3]


def test_every_pair_is_kept_or_counted_by_its_reason(tmp_path: Path, valid: PlainSource) -> None:
    pairs = [
        ("bal kor", "dem"),
        ("bal kor", "dem"),  # a duplicate
        ("bal kor", "gom"),
        ("cafe\u0301", "x"),
        ("café", "x"),  # a duplicate once composed
        ("held source", "y"),
        ("z", "held target"),
        ("held target", "held source"),  # the other way round, which is no leak
        ("test source", "z"),
        ("z", "test two"),
        ("w " * 251, "w"),
        ("w" * 2001, "w"),
        ("w", "w" * 30),
    ]
    for name, line in (("t.x", "test source"), ("t.y", "test one"), ("t.z", "test two")):
        (tmp_path / name).write_text(line + "\n")
    tests = [(tmp_path / "t.x", tmp_path / "t.y", tmp_path / "t.z")]
    run(tmp_path / "out", [Corpus(plain(tmp_path, "a", pairs))], valid, held_out=tests)
    assert pairs_in(tmp_path / "out") == [pairs[0], pairs[2], ("café", "x"), pairs[7]]
    counts = report(tmp_path / "out")
    reasons = {"duplicate": 2, "held out": 4, "too many words": 1, "too many characters": 1, "ratio": 1}
    assert counts["dropped"] == reasons
    assert counts["read"] == 13 == counts["kept"] + sum(reasons.values())


def test_nothing_is_dropped_that_is_allowed(tmp_path: Path, valid: PlainSource) -> None:
    pairs = [("bal", "bal"), ("bal", "bal"), ("held source", "held target")]
    filters = Filters(drop_duplicates=False, drop_held_out=False)
    run(tmp_path / "out", [Corpus(plain(tmp_path, "a", pairs))], valid, filters=filters)
    assert pairs_in(tmp_path / "out") == pairs


def test_corpora_stay_in_order_contiguous_and_keep_their_weights(tmp_path: Path, valid: PlainSource) -> None:
    (tmp_path / "b.tsv").write_text("id\tgom\tban\nid\tbal\tkor\n")
    corpora = [
        Corpus(plain(tmp_path, "a", [("bal", "kor"), ("dem", "ban")]), 2.0),
        Corpus(TsvSource(tmp_path / "b.tsv", 2, 3), 0.5),
    ]
    events = run(tmp_path / "out", corpora, valid)
    assert pairs_in(tmp_path / "out") == [("bal", "kor"), ("dem", "ban"), ("gom", "ban")]
    kept = [(c["name"], c["kept"], c["weight"]) for c in report(tmp_path / "out")["corpora"]]
    assert kept == [("a.x + a.y", 2, 2.0), ("b.tsv", 1, 0.5)]
    assert Notice("train: read 4, kept 3, dropped 1 (duplicate 1)") in events


def test_odd_characters_neither_split_nor_cut_a_line(tmp_path: Path, valid: PlainSource) -> None:
    data = b"bal\xe2\x80\xa8kor\ndem\xc2\x85gom\r\nban\x0bbar\x0c\x1cbel\nbal\x00kor\r\r\n"
    (tmp_path / "in").write_bytes(data)
    run(tmp_path / "out", [Corpus(PlainSource(tmp_path / "in", tmp_path / "in"))], valid)
    lines = ["bal\u2028kor", "dem\x85gom", "ban\x0bbar\x0c\x1cbel", "bal kor "]
    assert pairs_in(tmp_path / "out") == [(line, line) for line in lines]
    assert b"\r" not in (tmp_path / "out" / "train.source").read_bytes()


def test_validation_pairs_are_cleaned_but_not_filtered(tmp_path: Path) -> None:
    valid = plain(tmp_path, "v", [("cafe\u0301", "x"), ("w " * 300, "w"), ("", "x"), ("café", "x")])
    run(tmp_path / "out", [Corpus(plain(tmp_path, "a", [("bal", "kor")]))], valid)
    assert pairs_in(tmp_path / "out", "valid") == [("café", "x"), ("w " * 300, "w"), ("café", "x")]
    assert report(tmp_path / "out")["valid"]["dropped"] == {"empty": 1}


def test_bad_bytes_stop_the_pass_or_are_replaced_and_told(tmp_path: Path, valid: PlainSource) -> None:
    (tmp_path / "bad").write_bytes(b"bal\n caf\xe9 kor\n")
    corpus = Corpus(PlainSource(tmp_path / "bad", tmp_path / "bad"))
    with pytest.raises(DataError, match=r"bad:2: byte 5 \(0xE9\)"):
        run(tmp_path / "out", [corpus], valid)
    assert not (tmp_path / "out" / "train.source").exists()
    events = run(tmp_path / "out", [corpus], valid, on_bad_bytes="replace")
    assert pairs_in(tmp_path / "out")[1] == (" caf\ufffd kor", " caf\ufffd kor")
    assert Caution("bad + bad: 2 invalid UTF-8 sequences became U+FFFD") in events
    assert report(tmp_path / "out")["corpora"][0]["bad_bytes"] == 2


def test_sides_out_of_step_leave_nothing_behind(tmp_path: Path, valid: PlainSource) -> None:
    source = plain(tmp_path, "a", [("bal", "kor")] * 5)
    with open_lines(tmp_path / "a.y") as out:
        out.write("kor")
    with pytest.raises(DataError, match=r"a\.x has 5 lines, .*a\.y has 1"):
        run(tmp_path / "out", [Corpus(source)], valid)
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(("train", ".train"))]


def test_an_unequal_test_set_is_found_before_the_work(tmp_path: Path, valid: PlainSource) -> None:
    test = plain(tmp_path, "t", [("bal", "kor")] * 2)
    (tmp_path / "t.y").write_text("kor\n")
    with pytest.raises(DataError, match=r"t\.x has 2 lines"):
        corpora = [Corpus(plain(tmp_path, "a", [("bal", "kor")]))]
        run(tmp_path / "out", corpora, valid, held_out=[(test.source, test.target)])


def test_no_pair_left_is_an_error(tmp_path: Path, valid: PlainSource) -> None:
    with pytest.raises(DataError, match=r"no training pair is left: read 2, kept 0, dropped 2 \(empty 2\)"):
        run(tmp_path / "out", [Corpus(plain(tmp_path, "a", [("", "x")] * 2))], valid)
    with pytest.raises(DataError, match="no validation pair is left"):
        run(tmp_path / "out", [Corpus(valid)], plain(tmp_path, "v", []))


def test_true_case_is_learned_on_the_kept_text_and_applied(tmp_path: Path) -> None:
    cleaners = Cleaner("en", moses=Moses("en")), Cleaner("de", moses=Moses("de"))
    pairs = [("The Bal, the kor.", "Die Bal, die kor."), ("See the kor!", "Siehe die kor!")]
    valid = plain(tmp_path, "v", [("The gom.", "Die gom.")])
    run(tmp_path / "out", [Corpus(plain(tmp_path, "a", pairs))], valid, cleaners=cleaners, truecase=True)
    assert pairs_in(tmp_path / "out")[0] == ("the Bal , the kor .", "die Bal , die kor .")
    assert pairs_in(tmp_path / "out", "valid") == [("the gom .", "die gom .")]
    assert "the (2/2)" in (tmp_path / "out" / "truecase.source").read_text()
    assert "die (2/2)" in (tmp_path / "out" / "truecase.target").read_text()
    again = Moses("en", truecase_model=tmp_path / "out" / "truecase.source")
    assert again.clean("The Bal, the kor.") == "the Bal , the kor ."


@pytest.mark.parametrize("moses", [False, True], ids=["raw", "moses"])
def test_the_number_of_workers_changes_nothing(tmp_path: Path, valid: PlainSource, moses: bool) -> None:
    generator = random.Random(13)

    def line() -> str:
        return " ".join(generator.choices([*WORDS, "bal,", "“kor”", ""], k=generator.randrange(5)))

    corpora = [
        Corpus(plain(tmp_path, name, [(line(), line()) for _ in range(count)]))
        for name, count in (("a", 5000), ("b", 3))
    ]
    cleaners = (Cleaner("en", moses=Moses("en")), Cleaner("de")) if moses else RAW
    one = run(tmp_path / "one", corpora, valid, cleaners=cleaners, workers=1)
    two = run(tmp_path / "two", corpora, valid, cleaners=cleaners, workers=2)
    assert one == two
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_progress_counts_every_pair(tmp_path: Path, valid: PlainSource) -> None:
    pairs = [(f"bal {number}", "kor") for number in range(4500)]
    events = run(tmp_path / "out", [Corpus(plain(tmp_path, "a", pairs))], valid)
    done = [event.done for event in events if isinstance(event, Progress)]
    assert done == [0, 2000, 4000, 4500]
    assert {event.total for event in events if isinstance(event, Progress)} == {4500}
