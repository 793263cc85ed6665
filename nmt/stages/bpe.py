"""The stage bpe: learn subwords on the training text, and turn training and validation text into shards of ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.batches.shards import open_shard
from nmt.corpus.lines import count_lines, read_lines
from nmt.errors import DataError
from nmt.events import Caution, Event, Notice, Progress
from nmt.files import write_json, write_whole
from nmt.recipe import Recipe
from nmt.stages.leads import Leading, Tagged, leading, tags_of, unled
from nmt.stages.methods import links_of, side_limits
from nmt.stages.parent import parent_of
from nmt.stages.stage import RunFolder
from nmt.wording import counted

if TYPE_CHECKING:
    from nmt.subwords.vocabulary import Vocabulary

SIDES = ("source", "target")
SPLITS = ("train", "valid")
_CHUNK = 8192  # lines encoded at once, on all processors


@dataclass
class Counts:
    """What encoding one file gave."""

    lines: int = 0
    words: int = 0
    """Text between white space."""
    pieces: int = 0
    unknown: int = 0
    """Pieces that are the unknown id; none with byte fallback."""
    longest: int = 0
    """Pieces of the longest line, the end mark not counted."""

    def __str__(self) -> str:
        rate, share = self.pieces / max(self.words, 1), 100 * self.unknown / max(self.pieces, 1)
        per_line = self.pieces / max(self.lines, 1)
        return (
            f"{counted(self.lines, 'line')}, {counted(self.pieces, 'piece')}, "
            f"{rate:.2f} a word, {per_line:.1f} a line, {self.longest:,} in the longest, {share:.2f} % unknown"
        )


def run(recipe: Recipe, run: RunFolder) -> Iterator[Event]:
    """Write the vocabularies and `report.json` into `run.bpe`, and a shard for each text into `run.shards`.

    Raises DataError when there is no text or its sides differ in lines, RecipeError when [bpe] size is too small.
    Alignments that training will read are checked here, so that nobody waits for training to learn of a bad line.
    """
    guide = recipe.train.guided_alignment
    known = guide if guide and guide.path.is_file() else None
    if known and known.units == "words":
        links_of(known, run)
    texts = {side: run.preprocess / f"train.{side}" for side in SIDES}
    files = vocabulary_files(run, recipe.bpe.shared)
    tagged = {split: tags_of(run, split) for split in SPLITS}
    tags = tuple(dict.fromkeys(tag for _, tag in tagged["train"] if tag))
    count, parent = recipe.preprocess.context_sentences, parent_of(recipe)
    if count:
        from nmt.subwords.vocabulary import SEPARATOR

        tags = (*tags, SEPARATOR)
    if parent:
        yield from _take_over(parent.vocabularies, files, tags)
    elif recipe.bpe.shared:
        yield from recipe.bpe.learn(list(texts.values()), files["source"], recipe.seed, tags)
    else:
        for side in SIDES:  # tags stand before source sentences
            yield from recipe.bpe.learn([texts[side]], files[side], recipe.seed, tags if side == "source" else ())
    for old in set(run.bpe.glob("*.model")) - set(files.values()):  # of an earlier run with the other kind of sharing
        old.unlink()
    yield from _encode_all(run, files, tagged, count, side_limits(recipe)[0])
    if known and known.units == "pieces":
        from nmt.subwords.vocabulary import Vocabulary

        links_of(known, run, frozenset(Vocabulary.load(files["source"]).reserved.values()))


def _take_over(theirs: dict[str, Path], ours: dict[str, Path], tags: Sequence[str]) -> Iterator[Event]:
    """Use the vocabulary of the model that training starts from: its weights mean its pieces. New tags come behind."""
    from nmt.subwords.tags import add_tags

    for side in SIDES:
        ours[side].parent.mkdir(parents=True, exist_ok=True)
        with write_whole(ours[side]) as stream:
            stream.write(theirs[side].read_bytes())
    used = ", ".join(dict.fromkeys(map(str, theirs.values())))
    yield Notice(f"subwords are those of the model that training starts from: {used}")
    if added := add_tags(ours["source"], tags):
        yield Notice(f"{', '.join(added)}: added to them, with embeddings yet to be learned")


def vocabulary_files(run: RunFolder, shared: bool) -> dict[str, Path]:
    """Each side's vocabulary file."""
    return {side: run.bpe / ("vocabulary.model" if shared else f"{side}.model") for side in SIDES}


def _encode_all(
    run: RunFolder, files: dict[str, Path], tagged: dict[str, Tagged], sentences: int, longest: int
) -> Iterator[Event]:
    """Write all shards; so many `sentences` stand before each source, which has at most `longest` tokens with them."""
    from nmt.subwords.vocabulary import Vocabulary  # sentencepiece loads only once something is encoded

    vocabularies = {side: Vocabulary.load(path) for side, path in files.items()}
    run.shards.mkdir(parents=True, exist_ok=True)
    report: dict[str, dict[str, object]] = {}
    for split in SPLITS:
        counts = {side: Counts() for side in SIDES}
        for side in SIDES:
            text, shard = run.preprocess / f"{split}.{side}", run.shards / f"{split}.{side}"
            label, lead = f"encode {split}.{side}", unled
            if side == "source":
                context = run.preprocess / f"{split}.context"
                lead = leading(tagged[split], vocabularies[side], context, sentences, longest)
            yield from _encode(text, shard, vocabularies[side], counts[side], label, lead)
            yield Notice(f"{split} {side}: {counts[side]}")
            if counts[side].unknown:
                unknown = f"{split} {side}: {counts[side].unknown:,} of {counts[side].pieces:,} pieces are unknown"
                yield Caution(f"{unknown}; [bpe] byte_fallback = true would spell them")
        _check_pairs(run, split, counts)
        report[split] = {side: asdict(counts[side]) for side in SIDES}
    sizes = {side: len(vocabulary) for side, vocabulary in vocabularies.items()}
    write_json(run.bpe / "report.json", {"vocabulary": sizes, **report})


def _encode(
    text: Path, shard: Path, vocabulary: Vocabulary, counts: Counts, label: str, lead: Leading
) -> Iterator[Event]:
    """Encode the lines of `text` into `shard`, `lead` before them, in constant memory, and count what is text."""
    total = count_lines(text)
    with open_shard(shard, len(vocabulary)) as writer:
        rest = read_lines(text)
        while lines := list(islice(rest, _CHUNK)):
            sequences = vocabulary.encode_many(lines)
            writer.add(lead(sequences))
            counts.lines += len(lines)
            counts.words += sum(len(line.split()) for line in lines)
            counts.pieces += sum(map(len, sequences))
            counts.unknown += sum(ids.count(vocabulary.unk) for ids in sequences)
            counts.longest = max(counts.longest, max(map(len, sequences)))
            yield Progress(label, counts.lines, total, "lines")


def _check_pairs(run: RunFolder, split: str, counts: dict[str, Counts]) -> None:
    source, target = (counts[side].lines for side in SIDES)
    if source != target:
        place = run.preprocess / f"{split}.source"
        raise DataError(
            f"{place}: has {counted(source, 'line')}, {split}.target has {target:,}", "run nmt preprocess again"
        )
