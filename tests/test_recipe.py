"""Recipes: read(dump(recipe)) = recipe, paths, overrides, and rules between sections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import RecipeError
from nmt.model.config import PRESETS
from nmt.recipe import Recipe, dump, is_default, read
from nmt.train.resume import told_changes

RECIPES = sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))
MINIMAL = """\
name = "mini"
[languages]
source = "en"
target = "de"
[[data.train]]
source = "a.en"
target = "a.de"
[data.valid]
source = "../v.en"
target = "v.de"
[[data.test]]
source = "t.en"
target = "t.de"
[train]
steps = 100
"""


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    file = tmp_path / "recipes" / "mini.toml"
    file.parent.mkdir()
    file.write_text(MINIMAL)
    return file


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.name)
def test_every_recipe_here_survives_writing_and_reading(file: Path, tmp_path: Path) -> None:
    recipe = read(file)
    (tmp_path / "again.toml").write_text(dump(recipe), encoding="utf-8")
    assert read(tmp_path / "again.toml") == recipe


names = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=12)
numbers = st.floats(0.001, 0.9)
corpora = st.fixed_dictionaries(
    {"source": names, "target": names}, optional={"weight": st.floats(0.01, 100), "kind": st.just("plain")}
) | st.fixed_dictionaries({"file": names}, optional={"source_column": st.integers(1, 9)})
schedules = st.fixed_dictionaries({"kind": st.just("paper")}, optional={"warmup_steps": st.integers(1, 9999)}) | (
    st.fixed_dictionaries({"kind": st.sampled_from(["linear", "cosine"]), "peak": numbers})
)
metrics = st.sampled_from([{"kind": "bleu"}, {"kind": "bleu", "tokenize": "char"}, {"kind": "chrf", "word_order": 2}])
values = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.\-]{0,8}\Z"),
        "languages": st.just({"source": "en", "target": "no"}),
        "data": st.fixed_dictionaries({"train": st.lists(corpora, min_size=1, max_size=3), "valid": corpora}),
        "train": st.fixed_dictionaries(
            {"steps": st.integers(1, 10**7), "schedule": schedules},
            optional={"minutes": numbers, "clip_norm": numbers, "optimizer": st.just({"kind": "sgd"})},
        ),
    },
    optional={
        "seed": st.integers(0, 2**40),
        "model": st.fixed_dictionaries({"preset": st.sampled_from(sorted(PRESETS))}, optional={"dropout": numbers}),
        "preprocess": st.just({"moses": {"truecase": True}}),
        "score": st.fixed_dictionaries({"metrics": st.lists(metrics, max_size=3)}),
    },
)


@settings(max_examples=60)
@given(values)
def test_any_recipe_survives_writing_and_reading(tmp_path_factory: pytest.TempPathFactory, values: Any) -> None:
    file = tmp_path_factory.mktemp("r") / "r.toml"
    given_recipe = Recipe.model_validate(values)
    file.write_text(dump(given_recipe), encoding="utf-8")
    recipe = read(file)
    file.write_text(dump(recipe), encoding="utf-8")
    assert read(file) == recipe
    assert recipe.train == given_recipe.train and recipe.model == given_recipe.model
    assert len(recipe.data.train) == len(given_recipe.data.train)


def test_paths_count_from_the_recipes_folder_wherever_one_stands(
    mini: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mini.parent)
    recipe = read(Path("mini.toml"))
    assert recipe == read(mini)
    assert recipe.data.train[0].files() == (mini.parent / "a.en", mini.parent / "a.de")
    assert recipe.data.valid.files()[0] == tmp_path / "v.en"


def test_dots_in_paths_follow_symbolic_links_as_the_system_does(mini: Path, tmp_path: Path) -> None:
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "deep")
    (tmp_path / "far" / "v.en").write_text("x\n")
    (tmp_path / "link" / "mini.toml").write_text(MINIMAL)
    assert read(tmp_path / "link" / "mini.toml").data.valid.files()[0].read_text() == "x\n"


def test_overrides_are_toml_or_bare_words_and_reach_into_lists(mini: Path) -> None:
    recipe = read(
        mini,
        [
            "train.steps=2k",
            "train.clip_norm=0.5",
            "train.precision=bfloat16",
            "train.schedule={kind='linear', peak=1e-3}",
            "data.test.0.source=b.en",
            "data.test.0.target=['b.de', 'c.de']",
            "data.train.1.source=more.en",
            "data.train.1.target=more.de",
            "bpe.byte_fallback=false",
        ],
    )
    assert (recipe.train.steps, recipe.train.clip_norm, recipe.train.precision) == (2000, 0.5, "bfloat16")
    assert recipe.train.schedule.kind == "linear" and not recipe.bpe.byte_fallback
    assert recipe.data.test[0].files() == tuple(mini.parent / name for name in ("b.en", "b.de", "c.de"))
    assert recipe.data.train[1].files()[0] == mini.parent / "more.en"


def test_an_empty_override_leaves_the_key_to_its_default(mini: Path) -> None:
    assert read(mini, ["train.steps=", "train.epochs=3"]).train.steps is None
    assert read(mini, ["data.test.0="]).data.test == ()


def test_later_overrides_win(mini: Path) -> None:
    assert read(mini, ["train.steps=5", "train.steps=6"]).train.steps == 6


@pytest.mark.parametrize(
    ("override", "problem", "hint"),
    [
        ("train.stpes=5", "--set train.stpes: [train] stpes is not a known key", "did you mean steps?"),
        ("trian.steps=5", "--set trian.steps: trian is not a known key", "did you mean train?"),
        ("train.steps=no", "--set train.steps: [train] steps = 'no'", ""),
        ("train.steps", "--set train.steps: not of the form key=value", "write it like"),
        ("=5", "--set =5: not of the form key=value", "write it like"),
        ("data.test.7.source=x", "--set data.test.7.source: 7 is not a place in a list of 1", "0 to 1 are"),
        ("train.steps.more=1", "--set train.steps.more: what stands before more is 100, not a table", ""),
        ("name=a/b", "--set name: name = 'a/b'", ""),
    ],
)
def test_a_wrong_override_is_named_as_the_place(mini: Path, override: str, problem: str, hint: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read(mini, [override])
    assert caught.value.problem.startswith(problem)
    assert caught.value.hint.startswith(hint)


def test_an_override_of_one_key_does_not_take_the_blame_for_another(mini: Path) -> None:
    mini.write_text(MINIMAL + "lerning = 3\n")
    with pytest.raises(RecipeError, match=r"mini\.toml:16: \[train\] lerning is not a known key"):
        read(mini, ["train.steps=5"])


def test_rules_between_sections_are_told_with_both_values(mini: Path) -> None:
    with pytest.raises(RecipeError, match=r'tie_embeddings = "all" needs \[bpe\] shared = true'):
        read(mini, ["bpe.shared=false"])
    with pytest.raises(RecipeError, match=r"width = 250 is not a multiple of heads = 8; 248 and 256 are"):
        read(mini, ["model.width=250"])
    with pytest.raises(RecipeError, match="nothing ends the training"):
        read(mini, ["train.steps="])


def test_a_preset_gives_values_that_single_keys_change(mini: Path) -> None:
    model = read(mini, ["model.preset=tiny", "model.dropout=0.4", "model.attention.key_width=8"]).model
    assert (model.width, model.dropout) == (PRESETS["tiny"]["width"], 0.4)
    assert (model.attention.heads, model.attention.key_width) == (4, 8)


def test_learning_rate_and_its_kin_are_pointed_to_their_places(mini: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        read(mini, ["train.learning_rate=1"])
    assert caught.value.hint == "did you mean peak in [train.schedule]?"


def test_a_recipe_is_frozen(mini: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        read(mini).seed = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("key", "value", "neutral"),
    [
        ("train.wait_minutes", 10.0, True),
        ("train.wait_minutes", 5.0, False),
        ("model.layer_drop", 0.0, True),
        ("average.weights", "saved", True),
        ("train.steps", 100, False),
        ("train.schedule.kind", "paper", True),
        ("train.no_such_key", 1, False),
        ("no_such_table.key", 1, False),
    ],
)
def test_a_key_is_at_its_default_or_not(mini: Path, key: str, value: Any, neutral: bool) -> None:
    assert is_default(read(mini), key, value) is neutral


def test_keys_that_nmt_has_got_since_are_no_change_at_their_default(mini: Path) -> None:
    recipe = read(mini)
    old = {"told": {"train": {"steps": 90}, "model": {}}}
    new = {"told": {"train": {"steps": 90, "ema_decay": None, "label_smoothing": 0.1}, "model": {"layer_drop": 0.5}}}
    changes, _ = told_changes(old, new, lambda key, value: is_default(recipe, key, value))
    assert changes == ["model.layer_drop null → 0.5"]
