"""Every recipe of the repository can be read, round-trips, and says what it costs; the paper's are the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.recipe import Recipe, dump, read

FOLDER = Path(__file__).parents[1] / "recipes"
RECIPES = sorted(FOLDER.glob("*.toml"))
PAPER = ["wmt14-en-de-base", "wmt14-en-de-big", "wmt14-en-fr-big"]
by_name = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)


def parameters(recipe: Recipe) -> float:
    """Millions of parameters by the paper's formulas: no biases in attention, one shared embedding."""
    model, width, inner = recipe.model, recipe.model.width, recipe.model.feedforward
    feedforward = 2 * width * inner + width + inner
    attention, norm = 4 * width * width, 2 * width
    encoder = model.encoder_layers * (attention + feedforward + 2 * norm)
    decoder = model.decoder_layers * (2 * attention + feedforward + 3 * norm)
    return (encoder + decoder + recipe.bpe.size * width) / 1e6


def test_there_are_recipes() -> None:
    assert {path.stem for path in RECIPES} >= {"sample", "multi30k-en-de", "tatoeba-en-de", "tatoeba-en-zh", *PAPER}


@by_name
def test_reading_what_was_written_gives_the_same_recipe(path: Path, tmp_path: Path) -> None:
    recipe = read(path)
    copy = tmp_path / "resolved.toml"
    copy.write_text(dump(recipe), encoding="utf-8")
    assert read(copy) == recipe


@by_name
def test_a_recipe_is_named_after_its_file_and_begins_with_cost_and_result(path: Path) -> None:
    assert read(path).name == path.stem
    text = path.read_text(encoding="utf-8")
    header = text[: text.index("\nname = ")]
    assert all(line.startswith("#") for line in header.splitlines() if line)
    assert "# Cost" in header and "BLEU reached" in header
    assert max(len(line) for line in text.splitlines()) <= 130


@by_name
def test_every_file_is_bundled_or_fetched_or_explained(path: Path) -> None:
    data = read(path).data
    fetched = {entry.file for entry in data.download} | {
        member.file for entry in data.download for member in entry.extract
    }
    header = path.read_text(encoding="utf-8").split("\nname = ")[0]
    for file in data.files():
        assert file.exists() or file in fetched or file.name.split(".")[0] in header, file
    for file in fetched:
        assert file.is_relative_to(FOLDER.parent / "data")


@by_name
def test_checkpoints_to_be_averaged_are_kept(path: Path) -> None:
    recipe = read(path)
    assert recipe.train.keep_checkpoints >= recipe.average.count
    assert recipe.train.steps is not None
    assert recipe.train.steps // recipe.train.save_every >= recipe.average.count


@pytest.mark.parametrize(
    ("name", "millions", "dropout", "steps", "averaged", "pieces"),
    [
        ("wmt14-en-de-base", 63.0, 0.1, 100_000, 5, 37_000),
        ("wmt14-en-de-big", 214.2, 0.3, 300_000, 20, 37_000),
        ("wmt14-en-fr-big", 209.1, 0.1, 300_000, 20, 32_000),
    ],
)
def test_the_paper_s_recipes_have_the_paper_s_numbers(
    name: str, millions: float, dropout: float, steps: int, averaged: int, pieces: int
) -> None:
    recipe = read(FOLDER / f"{name}.toml")
    model, train = recipe.model, recipe.train
    assert parameters(recipe) == pytest.approx(millions, rel=1e-3)
    assert (model.encoder_layers, model.decoder_layers, model.norm, model.activation) == (6, 6, "post", "relu")
    assert (model.tie_embeddings, model.position.kind, model.attention.kind) == ("all", "sinusoidal", "dot")
    assert model.attention.heads * 64 == model.width and model.feedforward == 4 * model.width
    assert (model.dropout, model.attention_dropout, model.activation_dropout) == (dropout, 0, 0)
    assert (train.steps, train.label_smoothing, train.clip_norm) == (steps, 0.1, None)
    assert train.batch_tokens * train.accumulate == 25_000
    assert train.optimizer.model_dump() == {
        "kind": "adam", "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9, "weight_decay": 0.0,
    }  # fmt: skip
    assert train.schedule.model_dump() == {"kind": "paper", "warmup_steps": 4000, "factor": 1.0}
    assert (recipe.average.count, recipe.average.of) == (averaged, "last")
    assert (recipe.bpe.kind, recipe.bpe.size, recipe.bpe.shared) == ("bpe", pieces, True)
    search = recipe.translate
    assert (search.beam, search.length_penalty, search.max_extra_tokens) == (4, "gnmt:0.6", 50)


@pytest.mark.parametrize(("name", "peak"), [("wmt14-en-de-base", 6.99e-4), ("wmt14-en-de-big", 4.94e-4)])
def test_the_paper_s_learning_rate_peaks_where_the_formula_does(name: str, peak: float) -> None:
    recipe = read(FOLDER / f"{name}.toml")
    assert recipe.train.steps is not None
    rate = recipe.train.schedule.build(recipe.model.width, recipe.train.steps)
    assert rate(4000) == pytest.approx(peak, rel=1e-3)
    assert rate(3999) < rate(4000) > rate(4001)


def test_the_bundled_corpus_is_aligned_and_small() -> None:
    folder = FOLDER.parent / "data" / "sample-en-de"
    for name, lines in (("train", 3341), ("dev", 250), ("test", 250)):
        for language in ("en", "de"):
            text = (folder / f"{name}.{language}").read_bytes().decode()
            assert text.endswith("\n") and "\r" not in text
            assert len(text.split("\n")) - 1 == lines
            assert all(line.strip() for line in text.split("\n")[:-1])
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
    assert {"LICENSE", "README.md"} <= {path.name for path in folder.iterdir()}
