"""`nmt recipe new`, `show` and `check`, as typed."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest

from nmt.recipe import dump, read
from nmt.stages.propose import choose
from nmt.subwords.vocabulary import Vocabulary

FILES = ("--source", "train.aa", "--target", "train.bb")


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """600 pairs and nothing else."""
    monkeypatch.chdir(tmp_path)
    generator = random.Random(5)
    lines = [" ".join(str(generator.randrange(999)) for _ in range(6)) for _ in range(600)]
    (tmp_path / "train.aa").write_text("".join(f"a {line}\n" for line in lines))
    (tmp_path / "train.bb").write_text("".join(f"b {line}\n" for line in lines))
    return tmp_path


def test_a_new_recipe_is_complete_and_guesses_languages_from_names(nmt, corpus: Path) -> None:
    ended = nmt("recipe", "new", *FILES)
    assert ended.status == 0 and ended.out == ""
    recipe = read(corpus / "recipe.toml")
    assert (recipe.name, recipe.languages.source, recipe.languages.target) == ("aa-bb", "aa", "bb")
    assert recipe.data.train[0].files() == (corpus / "train.aa", corpus / "train.bb")
    assert recipe.train.steps and recipe.train.schedule.kind == "linear"
    assert nmt("recipe", "check", "recipe.toml").status == 0


def test_held_out_sets_are_pairs_of_the_corpus_told_and_apart(nmt, corpus: Path) -> None:
    ended = nmt("recipe", "new", *FILES)
    assert "warning: valid set: 30 random pairs are held out in aa-bb-valid.aa and aa-bb-valid.bb" in ended.err
    pairs = set(zip(*((corpus / f"train.{x}").read_text().splitlines() for x in ("aa", "bb")), strict=True))
    sets = {
        part: list(zip(*((corpus / f"aa-bb-{part}.{x}").read_text().splitlines() for x in ("aa", "bb")), strict=True))
        for part in ("valid", "test")
    }
    assert all(len(found) == 30 and set(found) <= pairs for found in sets.values())
    assert not set(sets["valid"]) & set(sets["test"])


def test_held_out_sets_depend_on_the_seed_alone(nmt, corpus: Path) -> None:
    def held_out(seed: int) -> bytes:
        assert nmt("recipe", "new", *FILES, "--overwrite", "--seed", seed).status == 0
        return (corpus / "aa-bb-valid.aa").read_bytes()

    first = held_out(1)
    assert held_out(2) != first
    assert held_out(1) == first


def test_held_out_pairs_stay_out_of_training(nmt, corpus: Path) -> None:
    nmt("recipe", "new", *FILES)
    assert nmt("preprocess", "recipe.toml").status == 0
    kept = set((corpus / "runs/aa-bb/preprocess/train.source").read_text().splitlines())
    assert len(kept) == 540
    assert not kept & set((corpus / "aa-bb-valid.aa").read_text().splitlines())


def test_named_sets_are_taken_as_they_are(nmt, corpus: Path) -> None:
    for name in ("v", "t"):
        for side in ("aa", "bb"):
            (corpus / f"{name}.{side}").write_text("x\n")
    named = ["--valid-source", "v.aa", "--valid-target", "v.bb", "--test-source", "t.aa", "--test-target", "t.bb"]
    ended = nmt("recipe", "new", *FILES, *named, "--output", "my own.toml")
    assert ended.status == 0 and "held out" not in ended.err
    recipe = read(corpus / "my own.toml")
    assert recipe.name == "my-own"
    assert recipe.data.valid.files() == (corpus / "v.aa", corpus / "v.bb")
    assert recipe.data.test[0].files() == (corpus / "t.aa", corpus / "t.bb")


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["--valid-source", "train.aa"], 2, "--valid-source and --valid-target belong together"),
        (["--source", "none.aa"], 1, "none.aa"),
        (["--target", "plain"], 1, "plain: its name tells no language"),
        (["--target", "short.bb"], 1, "train.aa has 600 lines, short.bb has 3"),
        (["--source", "short.aa", "--target", "short.bb"], 1, "short.aa: 3 pairs are too few to hold some out"),
        (["--source", "empty.aa", "--target", "empty.bb"], 1, "empty.aa: holds no lines"),
        (["--source", "bad.aa"], 1, "bad.aa:2: byte 2 (0xE9) is not valid UTF-8"),
    ],
)
def test_what_stands_in_the_way_of_a_recipe(nmt, corpus: Path, arguments: list[str], status: int, problem: str) -> None:
    for name, data in {
        "plain": b"x\n",
        "short.aa": b"x\n" * 3,
        "short.bb": b"x\n" * 3,
        "empty.aa": b"",
        "empty.bb": b"",
        "bad.aa": b"x\nx\xe9\n",
    }.items():
        (corpus / name).write_bytes(data)
    ended = nmt("recipe", "new", *FILES, *arguments)
    assert ended.status == status and problem in ended.err
    assert not (corpus / "recipe.toml").exists()


def test_equal_pairs_count_once_when_some_are_held_out(nmt, corpus: Path) -> None:
    lines = ["the same"] * 900
    for different, status in ((198, 1), (199, 0)):
        lines[-different:] = [f"no {number}" for number in range(different)]
        for name in ("train.aa", "train.bb"):
            (corpus / name).write_text("".join(line + "\n" for line in lines))
        ended = nmt("recipe", "new", *FILES)
        assert ended.status == status
        assert ("train.aa: 199 different pairs are too few to hold some out" in ended.err) == bool(status)
    sets = [(corpus / f"aa-bb-{part}.aa").read_text().splitlines() for part in ("valid", "test")]
    assert [len(set(one)) for one in sets] == [10, 10] and not set(sets[0]) & set(sets[1])


def test_nothing_is_overwritten_unasked(nmt, corpus: Path) -> None:
    (corpus / "recipe.toml").write_text("mine")
    assert nmt("recipe", "new", *FILES).status == 1
    assert (corpus / "recipe.toml").read_text() == "mine"


def test_suffixes_of_packed_files_do_not_hide_the_language(nmt, corpus: Path) -> None:
    import gzip

    for side in ("aa", "bb"):
        (corpus / f"train.{side}.gz").write_bytes(gzip.compress((corpus / f"train.{side}").read_bytes()))
    assert nmt("recipe", "new", "--source", "train.aa.gz", "--target", "train.bb.gz").status == 0
    assert read(corpus / "recipe.toml").languages.target == "bb"


def test_larger_corpora_get_larger_models_and_less_dropout() -> None:
    sizes = [1_000, 10_000, 50_000, 200_000, 1_000_000, 10_000_000]
    choices = [choose(size) for size in sizes]
    assert [c.pieces for c in choices] == sorted(c.pieces for c in choices)
    assert [c.dropout for c in choices] == sorted((c.dropout for c in choices), reverse=True)
    order = ["tiny", "small", "medium"]
    assert [order.index(c.preset) for c in choices] == sorted(order.index(c.preset) for c in choices)


def test_show_prints_a_recipe_with_every_default(nmt, toy: Path) -> None:
    ended = nmt("recipe", "show", "toy.toml", "--set", "train.steps=9")
    assert ended.status == 0 and ended.err == ""
    shown = tomllib.loads(ended.out)
    assert shown["train"]["steps"] == 9 and shown["train"]["label_smoothing"] == 0.1
    assert shown["data"]["train"][0]["source"] == str(toy / "train.aa")
    Path("shown.toml").write_text(ended.out)
    assert nmt("recipe", "show", "shown.toml").out == ended.out


def test_check_is_silent_about_nothing_and_content_with_a_good_recipe(nmt, toy: Path) -> None:
    ended = nmt("recipe", "check", "toy.toml")
    assert (ended.status, ended.out, ended.err) == (0, "", "toy.toml: no problems; nmt run toy.toml\n")
    assert not (toy / "runs").exists()


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("data.test.0.target=none.bb", "none.bb: there is no such file (data.test.0.target.0)"),
        ("data.valid.target=test.bb", "valid.aa has 6 lines, "),
        ("data.valid.source=bad.aa", "bad.aa:2: byte 1 (0xFF) is not valid UTF-8"),
        ("data.valid.target=valid.aa", "is both source and target"),
        ("data.test.0.source=train.aa", "is training data and data.test.0.source at once"),
        ("bpe.size=200", "[bpe] size = 200: 260 pieces are taken"),
        ("model.position={kind='learned', length=100}", "the model has [model.position] length = 100 positions"),
        ("train.batch_tokens=100", "no such pair fits into batch_tokens = 100"),
        ("train.schedule={kind='linear', warmup_steps=4}", "the rate still rises when steps = 4 end it"),
        ("model.width=200000", "GB are free; the run takes about"),
    ],
)
def test_check_finds(nmt, toy: Path, override: str, problem: str) -> None:
    (toy / "bad.aa").write_bytes(b"x\n\xff\n" + b"x\n" * 4)
    ended = nmt("recipe", "check", "toy.toml", "--set", override)
    assert ended.status == 1 and ended.out == ""
    assert problem in ended.err
    assert ended.err.splitlines()[-1] == "hint: mend these; nmt recipe check toy.toml looks again"


def test_check_names_the_download_of_files_that_are_missing(nmt, toy: Path) -> None:
    with (toy / "toy.toml").open("a") as recipe:
        recipe.write('\n[[data.download]]\nurl = "https://example.org/train.bb"\nfile = "train.bb"\n')
    (toy / "train.bb").unlink()
    fetch = "hint: mend these; nmt download toy.toml fetches files; nmt recipe check toy.toml looks again"
    assert nmt("recipe", "check", "toy.toml").err.splitlines()[-1] == fetch


@pytest.mark.parametrize(
    "more", [(), ("bpe.kind=unigram",), ("bpe.shared=false", "model.tie_embeddings=target")], ids=str
)
def test_a_vocabulary_that_the_text_cannot_fill_is_told_with_what_it_has(nmt, toy: Path, more: tuple[str, ...]) -> None:
    """As many as the run then learns, which doesn't stop either."""
    overrides = [part for one in ("bpe.size=3000", *more) for part in ("--set", one)]
    ended = nmt("recipe", "check", "toy.toml", *overrides)
    assert (ended.status, ended.out) == (0, "") and "no problems" in ended.err.splitlines()[-1]
    run = nmt("run", "toy.toml", "--to", "bpe", *overrides)
    assert run.status == 0
    for side in ("source", "target") if "bpe.shared=false" in more else ("",):
        count = len(Vocabulary.load(toy / "runs" / "toy" / "bpe" / f"{side or 'vocabulary'}.model"))
        text = f"the {side} side of the training text" if side else "the training text"
        assert f"warning: [bpe] size = 3000: {text} has about {count:,} pieces in it" in ended.err


def test_check_is_content_with_files_that_can_be_downloaded(nmt, toy: Path) -> None:
    """The recipe as a run saves it, whose paths are whole: archives and the files in them are no data of their own."""
    path = Path("toy.toml")
    corpus = read(path).data.train[0].files()
    with path.open("a") as stream:
        stream.write(f'\n[[data.download]]\nurl = "https://a.example/a.gz"\nfile = "{corpus[0]}"\n')
        stream.write('[[data.download]]\nurl = "https://a.example/b.tar"\nfile = "b.tar"\n')
        stream.write(f'extract = [{{ member = "b", file = "{corpus[1]}" }}]\n')
    assert nmt("recipe", "check", "toy.toml").status == 0
    Path("saved.toml").write_text(dump(read(path)))
    ended = nmt("recipe", "check", "saved.toml")
    assert (ended.status, ended.out) == (0, ""), ended.err


def test_one_value_where_a_list_belongs_is_told_with_the_list(nmt, toy: Path) -> None:
    ended = nmt("recipe", "check", "toy.toml", "--set", "train.freeze=encoder")
    assert ended.status == 1 and "[train] freeze is 'encoder'; it is a list" in ended.err
    assert 'hint: write freeze = ["encoder"]' in ended.err
    ended = nmt("recipe", "check", "toy.toml", "--set", "data.test=x")
    assert "it is a list of tables" in ended.err and "write [[data.test]] on a line of its own" in ended.err


def test_check_tells_all_problems_at_once(nmt, toy: Path) -> None:
    overrides = ["bpe.size=200", "train.batch_tokens=100", "data.valid.target=test.bb"]
    ended = nmt("recipe", "check", "toy.toml", *(part for o in overrides for part in ("--set", o)))
    assert ended.err.count("error: ") == 4


def test_check_looks_at_the_run_folder(nmt, toy: Path) -> None:
    (toy / "file").write_text("")
    assert (
        "is a file; the run folder file/run cannot be made"
        in nmt("recipe", "check", "toy.toml", "--run-dir", "file/run").err
    )


def test_one_file_for_both_sides_is_refused(nmt, corpus: Path) -> None:
    ended = nmt("recipe", "new", "--source", "train.aa", "--target", "train.aa", "--target-lang", "bb")
    assert ended.status == 1 and "is both source and target" in ended.err
    assert not (corpus / "recipe.toml").exists()


def test_files_whose_names_tell_the_other_language_are_found(nmt, corpus: Path) -> None:
    assert nmt("recipe", "new", *FILES).status == 0
    recipe = corpus / "recipe.toml"
    swapped = recipe.read_text().replace('"train.aa"', '"@"').replace('"train.bb"', '"train.aa"')
    recipe.write_text(swapped.replace('"@"', '"train.bb"'))
    ended = nmt("recipe", "check", "recipe.toml")
    assert ended.status == 1
    assert "train.bb: its name says bb, and data.train.0.source is aa: are the sides swapped?" in ended.err


def test_a_language_is_a_code_and_no_name(nmt, corpus: Path) -> None:
    assert nmt("recipe", "new", *FILES).status == 0
    ended = nmt("recipe", "check", "recipe.toml", "--set", "languages.target=chinese")
    assert ended.status == 1 and "a language is a code, such as en, zh or pt-BR" in ended.err
