"""Every mistake in a file of settings is told with its place and the nearest right name, and none that isn't one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from nmt.checking import check, line_of
from nmt.errors import RecipeError
from nmt.schema import Config, Count, fingerprint, nearest, parse_count, read_toml


class Round(Config):
    kind: Literal["round"] = "round"
    radius: float = 1.0


class Square(Config):
    kind: Literal["square"] = "square"
    side: float = 1.0


Shape = Annotated[Round | Square, Field(discriminator="kind")]


class Item(Config):
    name: str
    weight: float = Field(1.0, gt=0)


class Settings(Config):
    steps: Count = 10
    rate: float = 0.5
    shape: Shape = Round()
    items: tuple[Item, ...] = Field((), min_length=1)


def mistakes(text: str, tmp_path: Path) -> RecipeError:
    file = tmp_path / "c.toml"
    file.write_text(text)
    values, content = read_toml(file)
    with pytest.raises(RecipeError) as caught:
        check(Settings, values, "c.toml", content)
    return caught.value


GOOD = '[[items]]\nname = "a"\n'


def test_all_unknown_keys_are_told_at_once_with_line_and_nearest_name(tmp_path: Path) -> None:
    error = mistakes("stpes = 3\nrat = 1.0\n" + GOOD + "wieght = 2.0\n", tmp_path)
    assert error.problem.splitlines() == [
        "c.toml:1: stpes is not a known key (did you mean steps?)",
        "c.toml:2: rat is not a known key (did you mean rate?)",
        "c.toml:5: [items] wieght is not a known key (did you mean weight?)",
    ]


def test_a_single_mistake_has_its_hint_to_itself(tmp_path: Path) -> None:
    error = mistakes("stpes = 3\n" + GOOD, tmp_path)
    assert (error.problem, error.hint) == ("c.toml:1: stpes is not a known key", "did you mean steps?")


def test_an_abbreviation_is_not_taken_for_the_key(tmp_path: Path) -> None:
    assert "step is not a known key" in mistakes("step = 3\n" + GOOD, tmp_path).problem


def test_a_bad_item_does_not_make_its_list_too_short(tmp_path: Path) -> None:
    assert mistakes("[[items]]\nweight = 2.0\n", tmp_path).problem == "c.toml:1: [items] name is missing"


def test_an_empty_list_is_too_short(tmp_path: Path) -> None:
    assert "at least 1 item" in mistakes("items = []\n", tmp_path).problem


def test_a_key_of_another_kind_is_told_as_such(tmp_path: Path) -> None:
    error = mistakes(GOOD + '[shape]\nkind = "round"\nside = 2.0\n', tmp_path)
    assert error.problem == "c.toml:5: [shape] side is not a known key"
    assert error.hint == "side belongs to kind = 'square'"


def test_a_table_that_names_no_kind_is_of_the_default_one(tmp_path: Path) -> None:
    items = [{"name": "a"}]
    assert check(Settings, {"shape": {"radius": 3}, "items": items}, "c.toml").shape == Round(radius=3)
    assert check(Settings, {"shape": {}, "items": items}, "c.toml").shape == Round()
    error = mistakes(GOOD + "[shape]\nside = 2.0\n", tmp_path)
    assert (error.problem, error.hint) == (
        "c.toml:4: [shape] side is not a known key",
        "side belongs to kind = 'square'",
    )


class Shapes(Config):
    shapes: tuple[Shape, ...]


def test_where_no_kind_is_the_default_those_there_are_are_named() -> None:
    with pytest.raises(RecipeError) as caught:
        check(Shapes, {"shapes": [{"side": 2.0}]}, "c.toml")
    assert caught.value.problem == "c.toml: [shapes] entry 1: kind is missing"
    assert caught.value.hint == "add kind = 'round' or 'square'"


def test_an_unknown_kind_names_the_nearest(tmp_path: Path) -> None:
    error = mistakes(GOOD + '[shape]\nkind = "rond"\n', tmp_path)
    assert error.problem == "c.toml:4: [shape] kind = 'rond' is not one of 'round', 'square'"
    assert error.hint == "did you mean round?"


def test_a_key_that_stands_in_another_table_is_found_there(tmp_path: Path) -> None:
    assert mistakes("radius = 2.0\n" + GOOD, tmp_path).hint == "did you mean radius in [shape]?"


@pytest.mark.parametrize("value", ["true", "nan", "inf", '"many"', "[1]", "{a = 1}", "1.5"])
def test_a_value_of_the_wrong_type_is_an_error_with_its_line(value: str, tmp_path: Path) -> None:
    assert mistakes(f"rate = 1.0\nsteps = {value}\n" + GOOD, tmp_path).problem.startswith("c.toml:2: steps")


def test_a_table_where_a_value_is_wanted_and_the_reverse(tmp_path: Path) -> None:
    assert mistakes("shape = 3\n" + GOOD, tmp_path).problem.startswith("c.toml:1: shape")


def test_a_key_given_twice_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("a = 1\na = 2\n")
    with pytest.raises(RecipeError, match=r"c\.toml:2: not valid TOML"):
        read_toml(tmp_path / "c.toml")


@pytest.mark.parametrize("name", ["train.en", "train.en.gz"])
def test_a_text_in_place_of_a_recipe_is_told_how_to_get_one(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"A dog runs.\n" if name.endswith("en") else b"\x1f\x8b\x08")
    with pytest.raises(RecipeError) as problem:
        read_toml(tmp_path / name)
    assert "nmt recipe new" in problem.value.hint


def test_a_file_that_is_not_utf8_or_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b'a = "\xe9"\n')
    with pytest.raises(RecipeError, match="byte 5 is not valid UTF-8"):
        read_toml(tmp_path / "c.toml")
    with pytest.raises(RecipeError, match="cannot be read"):
        read_toml(tmp_path / "none.toml")


@given(st.integers(0, 10**9))
def test_counts_are_read_with_and_without_units(number: int) -> None:
    assert parse_count(number) == parse_count(str(number)) == parse_count(f"{number:_}") == number
    assert parse_count(f"{number}k") == 1000 * number
    assert parse_count(f"{number} M") == 1_000_000 * number


def test_counts_may_have_fractions_of_their_unit_only() -> None:
    assert parse_count("1.5k") == 1500
    with pytest.raises(ValueError, match="not a whole number"):
        parse_count("1.5")
    with pytest.raises(ValueError, match="not a count"):
        parse_count("12 apples")


def test_lines_are_those_of_the_key_or_of_the_table_around_it() -> None:
    text = "a = 1\n[b]\nc = 2\n[[d]]\ne = 3\n[[d]]\ne = 4\nf.g = 5\nh = {i = 6}\n"
    assert [line_of(text, where) for where in (["a"], ["b", "c"], ["b", "z"])] == [1, 3, 2]
    assert [line_of(text, where) for where in (["d", 0, "e"], ["d", 1, "e"], ["d", 1, "z"])] == [5, 7, 6]
    assert [line_of(text, where) for where in (["d", 1, "f", "g"], ["d", 1, "h", "i"], ["z"])] == [8, 9, None]


def test_fingerprints_differ_exactly_when_a_field_does() -> None:
    settings = Settings(items=(Item(name="a"),))
    assert fingerprint(settings) == fingerprint(Settings(items=(Item(name="a"),)))
    assert fingerprint(settings) != fingerprint(Settings(items=(Item(name="b"),)))


def test_nearest_is_empty_where_nothing_is_near() -> None:
    assert nearest("stpes", ["steps", "rate"]) == "steps"
    assert nearest("qqq", ["steps", "rate"]) == ""


class Numbers(Config):
    whole: int = 1
    any_: float = 1.0


@pytest.mark.parametrize(("value", "shown"), [(True, "true"), ("zwei", "'zwei'"), ("true", "'true'"), (1.5, "1.5")])
def test_what_is_no_number_is_told_in_our_own_words(value: object, shown: str) -> None:
    with pytest.raises(RecipeError) as caught:
        check(Numbers, {"whole": value}, "in:1")
    assert caught.value.problem == f"in:1: whole = {shown}: a whole number is expected"
    if not isinstance(value, float):
        with pytest.raises(RecipeError, match="a number is expected"):
            check(Numbers, {"any_": value}, "in:1")
