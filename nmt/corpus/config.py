"""What may be said of data and of cleaning it: the recipe's [languages], [data] and [preprocess]."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from nmt.schema import Config, Count

if TYPE_CHECKING:
    from nmt.corpus.clean import Cleaner
    from nmt.corpus.download import Download
    from nmt.corpus.filters import Filters
    from nmt.corpus.moses import Moses
    from nmt.corpus.recase import Recase
    from nmt.corpus.sources.plain import PlainSource
    from nmt.corpus.sources.tsv import TsvSource


def _language_code(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*", value):
        raise ValueError("a language is a code, such as en, zh or pt-BR")
    return value


Language = Annotated[str, AfterValidator(_language_code)]


def _sentence_tag(value: str) -> str:
    if not re.fullmatch(r"<[^\s<>]+>", value) or re.fullmatch(r"<(s|/s|unk|pad|0x[0-9A-F]{2})>", value):
        raise ValueError("a tag is a name in angle brackets, such as <2de>; <s>, </s>, <unk>, <pad>, <0x41> are taken")
    return value


SetTag = Annotated[
    Annotated[str, AfterValidator(_sentence_tag)] | None,
    Field(
        description="Put before every source sentence, such as `<2de>`; nmt translate --to de, or --tag, does so too."
    ),
]
SetSource = Annotated[
    Language | None, Field(description="Language of this source side, where it isn't that of [languages].")
]
SetTarget = Annotated[
    Language | None,
    Field(description="Language of this target side, where it isn't that of [languages]; scores go by it."),
]


class LanguagesConfig(Config):
    """The language codes of both sides, such as en and de; zh-TW or pt_BR are fine too."""

    source: Language
    """Language of the source side."""
    target: Language
    """Language of the target side: it chooses the scores' tokenizer and the Moses rules."""


class PlainConfig(Config):
    """Two files, one sentence a line, aligned by line number. Plain, .gz, .xz, .zst or .bz2."""

    kind: Literal["plain"] = "plain"
    source: Path
    """File of source sentences."""
    target: Path
    """File of target sentences."""
    weight: float = Field(1.0, gt=0)
    """How many times the corpus counts in an epoch, beside the other corpora."""
    tag: SetTag = None
    source_language: SetSource = None
    target_language: SetTarget = None

    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return self.source, self.target

    def build(self) -> PlainSource:
        """What reads it."""
        from nmt.corpus.sources.plain import PlainSource

        return PlainSource(self.source, self.target)


class TsvConfig(Config):
    """One file of tab-separated columns."""

    kind: Literal["tsv"] = "tsv"
    file: Path
    """File of tab-separated lines."""
    source_column: int = Field(1, ge=1)
    """Column of the source sentence, from 1."""
    target_column: int = Field(2, ge=1)
    """Column of the target sentence, from 1."""
    weight: float = Field(1.0, gt=0)
    """How many times the corpus counts in an epoch, beside the other corpora."""
    tag: SetTag = None
    source_language: SetSource = None
    target_language: SetTarget = None

    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (self.file,)

    def build(self) -> TsvSource:
        """What reads it."""
        from nmt.corpus.sources.tsv import TsvSource

        return TsvSource(self.file, self.source_column, self.target_column)


def _source_kind(value: Any) -> str:
    """`kind` may be left out: a table with `file` is a TSV, any other a pair of files."""
    if isinstance(value, dict):
        return str(value.get("kind", "tsv" if "file" in value else "plain"))
    return str(getattr(value, "kind", "plain"))


SourceConfig = Annotated[
    Annotated[PlainConfig, Tag("plain")] | Annotated[TsvConfig, Tag("tsv")], Discriminator(_source_kind)
]


def _one_or_several(value: Any) -> str:
    return "several" if isinstance(value, list | tuple) else _source_kind(value)


ValidConfig = Annotated[
    Annotated[PlainConfig, Tag("plain")]
    | Annotated[TsvConfig, Tag("tsv")]
    | Annotated[Annotated[tuple[SourceConfig, ...], Field(min_length=1)], Tag("several")],
    Discriminator(_one_or_several),
]


class TestSetConfig(Config):
    """A test set: source sentences and one or several references, scored as raw text."""

    __test__ = False  # not a test class, whatever its name starts with

    name: str = Field("test", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$")
    """Name of the set, used for file names and the table of scores."""
    source: Path
    """File of source sentences."""
    target: tuple[Path, ...] = Field(min_length=1)
    """File of reference translations, or a list of several such files."""
    tag: SetTag = None
    source_language: SetSource = None
    target_language: SetTarget = None

    @field_validator("target", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str | Path) else value

    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (self.source, *self.target)


class MemberConfig(Config):
    """A file taken out of a downloaded archive."""

    member: str = ""
    """Its path inside the archive; leave it out when the download is the file itself."""
    file: Path
    """Where it goes."""
    sgm: bool = False
    """It is an SGML test set: keep the text of its segments, one a line."""


class DownloadConfig(Config):
    """A file that `nmt download` fetches. Nothing else ever does."""

    url: str = Field(pattern=r"^https?://[^\s/]+/\S*$")
    """Where it comes from: http or https."""
    file: Path
    """Where it goes."""
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    """Its digest; without one, the command prints the digest of what it got."""
    extract: tuple[MemberConfig, ...] = ()
    """Files to take out of it: tar (packed with gz, xz or bz2), zip, or a single packed file."""

    @model_validator(mode="after")
    def _each_once(self) -> DownloadConfig:
        names = [entry.member for entry in self.extract]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"extract names member {twice[0]!r} twice; each goes to one file")
        return self

    def build(self) -> Download:
        """What nmt.corpus.download fetches."""
        from nmt.corpus.archives import Member
        from nmt.corpus.download import Download

        members = tuple(Member(entry.member, entry.file, entry.sgm) for entry in self.extract)
        return Download(self.url, self.file, self.sha256, members)


class DataConfig(Config):
    """Where the parallel text lies. Relative paths count from the recipe's own folder."""

    train: tuple[SourceConfig, ...] = Field(min_length=1)
    """Training corpora, [[data.train]] once for each."""
    valid: ValidConfig
    """Held-out pairs that steer training: validation loss and BLEU. Several sets, [[data.valid]] once for each, are
    scored one by one, and the mean of their scores counts."""
    test: tuple[TestSetConfig, ...] = ()
    """Test sets, [[data.test]] once for each; translated and scored at the end."""
    download: tuple[DownloadConfig, ...] = ()
    """Where the files can be had, [[data.download]] once for each; only `nmt download RECIPE` fetches them."""

    @property
    def valid_sets(self) -> tuple[PlainConfig | TsvConfig, ...]:
        """The validation sets, nearly always one."""
        return self.valid if isinstance(self.valid, tuple) else (self.valid,)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the training corpora, each once, in order."""
        return tuple(dict.fromkeys(corpus.tag for corpus in self.train if corpus.tag))

    def untagged(self, others: bool = False) -> str:
        """What is wrong with the tag of a held-out set, or nothing; with `others`, the model may know more tags."""
        needed = all(corpus.tag for corpus in self.train)
        sets = [("valid", valid.tag) for valid in self.valid_sets] + [(test.name, test.tag) for test in self.test]
        for name, tag in sets:
            if tag is None and needed:
                return f"every training corpus has a tag, and {name} has none; one of {', '.join(self.tags)} is needed"
            if tag is not None and tag not in self.tags and not others:
                known = f"they are {', '.join(self.tags)}" if self.tags else "none has one"
                return f"{name}: tag {tag} is not one of the training corpora's; {known}"
        return ""

    def files(self) -> tuple[Path, ...]:
        """Every file of every set, each once, in order."""
        sets = (*self.train, *self.valid_sets, *self.test)
        return tuple(dict.fromkeys(file for entry in sets for file in entry.files()))

    @model_validator(mode="after")
    def _names_differ(self) -> DataConfig:
        names = [test.name for test in self.test]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two test sets are named {twice[0]!r}; give each its own name")
        return self


class MosesConfig(Config):
    """Moses mode: punctuation normalisation, tokenisation and truecasing with sacremoses, undone after translation.

    Lossy by nature (quotes and spaces around them): the raw path is the default.
    """

    punctuation: bool = True
    """Normalise punctuation."""
    tokenize: bool = True
    """Tokenise, and detokenise translations."""
    truecase: bool = False
    """Truecase with a model learned on the training text, and capitalise translations' first letters."""

    def build(self, language: str, truecase_model: Path | None = None) -> Moses:
        """Moses mode of one side; without a model, the text keeps its case."""
        from nmt.corpus.moses import Moses

        model = truecase_model if self.truecase else None
        return Moses(language, punctuation=self.punctuation, tokenize=self.tokenize, truecase_model=model)


class TextConfig(Config):
    """What happens to raw text before subwords, in training and in use alike; it travels in the model folder."""

    normalization: Literal["nfc", "nfkc", "none"] = "nfc"
    """Unicode normal form: nfc keeps meaning and look, nfkc folds compatibility characters, none changes nothing."""
    moses: MosesConfig | None = None
    """Settings of Moses mode; leave the table out for the lossless raw path."""

    def build(self, language: str, truecase_model: Path | None = None) -> Cleaner:
        """The cleaner of the side whose language this is."""
        from nmt.corpus.clean import Cleaner

        moses = self.moses.build(language, truecase_model) if self.moses else None
        return Cleaner(language, self.normalization, moses)


class PreprocessConfig(TextConfig):
    """Cleaning of the training and validation text. Test sets are never changed or filtered."""

    min_words: int = Field(1, ge=0)
    """Fewest words on either side (text between white space)."""
    max_words: Count = Field(250, ge=1)
    """Most words on either side; for languages written without spaces max_characters is the one that bites."""
    max_characters: Count = Field(2000, ge=1)
    """Most characters on either side."""
    max_ratio: float = Field(9.0, ge=1)
    """Longest allowed ratio between the sides, counted in characters, for pairs over 20 characters."""
    drop_identical: bool = False
    """Drop pairs whose sides are equal."""
    drop_duplicates: bool = True
    """Keep only the first of equal pairs."""
    drop_held_out: bool = True
    """Drop training pairs whose source or target also stands as that side of a validation or test pair."""
    on_bad_bytes: Literal["error", "replace"] = "error"
    """Invalid UTF-8: stop with file, line and byte, or put U+FFFD in its place and count."""
    context_sentences: int = Field(0, ge=0, le=100)
    """Source sentences before each one that the model reads with it, in the order of the corpora; a blank line on both
    sides begins a new document."""
    augment_upper: float = Field(0.0, ge=0, le=1)
    """Share of the training pairs that are written in CAPITALS on both sides, 0.05 for instance."""
    augment_title: float = Field(0.0, ge=0, le=1)
    """Share of the training pairs that are written with a Capital At Each Word on both sides."""

    @model_validator(mode="after")
    def _shares_fit(self) -> PreprocessConfig:
        if self.augment_upper + self.augment_title > 1:
            raise ValueError(
                f"augment_upper = {self.augment_upper:g} and augment_title = {self.augment_title:g} are together over 1"
            )
        return self

    def recase(self) -> Recase:
        """Which training pairs are written in other letters."""
        from nmt.corpus.recase import Recase

        return Recase(self.augment_upper, self.augment_title)

    def text(self) -> TextConfig:
        """The part that a model folder keeps."""
        return TextConfig(normalization=self.normalization, moses=self.moses)

    def filters(self) -> Filters:
        """Which pairs are left out."""
        from nmt.corpus.filters import Filters

        return Filters(
            min_words=self.min_words,
            max_words=self.max_words,
            max_characters=self.max_characters,
            max_ratio=self.max_ratio,
            drop_identical=self.drop_identical,
            drop_duplicates=self.drop_duplicates,
            drop_held_out=self.drop_held_out,
        )
