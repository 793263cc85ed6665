"""What stands before each pair that preprocessing keeps."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.corpus.clean import Cleaner
from nmt.corpus.filters import Filters
from nmt.corpus.prepare import Corpus, prepare
from nmt.corpus.sources.plain import PlainSource

Pairs = list[tuple[str, str]]
HELD = ("held", "out")
lines = st.sampled_from(["", " ", "a", "b", "c d", "e f g", "held"])
pairs = st.lists(st.tuples(lines, st.sampled_from(["", "A", "B", "C D E", "out"])), max_size=12)


def written(folder: Path, corpora: list[Pairs], sentences: int, valid: Pairs, workers: int = 1) -> None:
    """Prepare `corpora` into `folder`/made; pairs of more than two words are dropped, and those that are held out."""
    (folder / "made").mkdir(parents=True, exist_ok=True)
    built = []
    for name, texts in (("valid", valid), *((f"train{i}", one) for i, one in enumerate(corpora))):
        for side in (0, 1):
            (folder / f"{name}.{side}").write_text("".join(pair[side] + "\n" for pair in texts))
        built.append(PlainSource(folder / f"{name}.0", folder / f"{name}.1"))
    cleaners = Cleaner("en"), Cleaner("de")
    filters = Filters(max_words=2)
    train = [Corpus(one) for one in built[1:]]
    list(prepare(folder / "made", train, built[0], [], cleaners, filters, workers=workers, context_sentences=sentences))


def expected(corpora: list[Pairs], sentences: int, held: bool = True) -> tuple[Pairs, list[str]]:
    """The pairs that are kept, and the lines before them, found by walking back from each."""
    kept: Pairs = []
    before: list[str] = []
    for texts in corpora:
        for i, (source, target) in enumerate(texts):
            dropped = held and (
                source == HELD[0] or target == HELD[1] or len(source.split()) > 2 or len(target.split()) > 2
            )
            if dropped or not source.strip() or not target.strip() or (held and (source, target) in kept):
                continue
            kept.append((source, target))
            said: list[str] = []
            for one, other in reversed(texts[:i]):
                ends = held and (one == HELD[0] or other == HELD[1]) if one.strip() else not other.strip()
                if ends or len(said) == sentences:
                    break
                said += [one] if one.strip() else []
            before += reversed(said + [""] * (sentences - len(said)))
    return kept, before


@settings(max_examples=10)
@given(corpora=st.lists(pairs, min_size=1, max_size=3), sentences=st.integers(1, 3))
def test_context_is_what_was_said_before_in_the_same_document(
    corpora: list[Pairs], sentences: int, tmp_path_factory
) -> None:
    """Dropped pairs are said too, but for those that are held out, after which nothing is known."""
    folder = tmp_path_factory.mktemp("context")
    corpora = [*corpora, [("first", "F"), ("last", "L")]]
    valid = [("x", "X"), ("", ""), HELD, ("long and longer", "Y"), ("", "Z"), ("w", "W")]
    written(folder, corpora, sentences, valid)
    for split, texts, held in (("train", corpora, True), ("valid", [valid], False)):
        kept, before = expected(texts, sentences, held)
        made = [(folder / "made" / f"{split}.{name}").read_text().split("\n")[:-1] for name in ("source", "context")]
        assert made == [[source for source, _ in kept], before]


def test_files_are_the_same_for_any_number_of_workers_and_there_is_none_without_context(tmp_path: Path) -> None:
    corpora = [[(f"s {i}" if i % 7 else "", f"T {i}" if i % 7 else "") for i in range(2100)]]
    for name, sentences, workers in (("one", 2, 1), ("two", 2, 2), ("none", 0, 1)):
        written(tmp_path / name, corpora, sentences, [HELD], workers)
    files = {
        name: {p.name: p.read_bytes() for p in (tmp_path / name / "made").iterdir()} for name in ("one", "two", "none")
    }
    assert files["one"] == files["two"]
    assert files["none"] == {name: data for name, data in files["one"].items() if not name.endswith(".context")}
