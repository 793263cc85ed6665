"""Files and folders appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import resource
import stat
from pathlib import Path

import pytest

from nmt.errors import ModelError, OutputError
from nmt.files import read_json, sha256, whole_folder, write_json, write_text_whole, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_only_when_its_block_ends(tmp_path: Path) -> None:
    with write_whole(tmp_path / "out") as stream:
        stream.write(b"half")
        stream.flush()
        assert not (tmp_path / "out").exists()
        assert names(tmp_path) == [f".out.{os.getpid()}.partial"]
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"half"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "out").write_text("old")
    with pytest.raises(error), write_whole(tmp_path / "out") as stream:
        stream.write(b"new")
        raise error
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_text() == "old"


def test_a_full_disk_is_an_output_error_and_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(OutputError, match="out: cannot be written"):
            write_text_whole(tmp_path / "out", "x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_text() == "old"


def test_a_missing_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="No such file") as caught:
        write_text_whole(tmp_path / "no" / "out", "")
    assert "folder" in caught.value.hint


def test_a_folder_in_the_way_of_a_file_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        write_text_whole(tmp_path / "out", "")


def test_an_error_about_another_file_is_not_taken_for_ours(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), write_whole(tmp_path / "out"):
        (tmp_path / "missing").read_bytes()


def test_a_link_goes_on_pointing_to_the_file_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_device_is_written_straight_and_stays_a_device() -> None:
    write_text_whole(Path("/dev/null"), "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    if Path("/dev/full").exists():
        with pytest.raises(OutputError, match="/dev/full"):
            write_text_whole(Path("/dev/full"), "x")


def test_json_comes_back(tmp_path: Path) -> None:
    data = {"é": [1, 2.5, None, True], "b": {"c": "\u2028"}}
    write_json(tmp_path / "a.json", data)
    assert read_json(tmp_path / "a.json") == data


@pytest.mark.parametrize("damage", [b"", b'{"a": 1', b"\xff{}"])
def test_damaged_json_is_a_model_error(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "a.json").write_bytes(damage)
    with pytest.raises(ModelError, match=r"a\.json: is damaged"):
        read_json(tmp_path / "a.json")


def test_missing_json_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        read_json(tmp_path / "a.json")


def test_sha256_is_the_digest_of_the_bytes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000
    (tmp_path / "a").write_bytes(data)
    assert sha256(tmp_path / "a") == hashlib.sha256(data).hexdigest()


def test_a_folder_appears_only_when_its_block_ends(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "deep" / "out") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "deep" / "out").exists()
    assert (tmp_path / "deep" / "out" / "a").read_text() == "1"
    assert names(tmp_path / "deep") == ["out"]


def test_a_folder_replaces_the_old_one_entirely(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with whole_folder(tmp_path / "out") as folder:
        (folder / "new").write_text("new")
        assert names(tmp_path / "out") == ["old"]
    assert names(tmp_path / "out") == ["new"]
    assert names(tmp_path) == ["out"]


def test_a_folder_is_replaced_also_where_names_cannot_be_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "other")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    with whole_folder(tmp_path / "out") as folder:
        (folder / "new").write_text("new")
    assert names(tmp_path / "out") == ["new"]
    assert names(tmp_path) == ["out"]


def test_a_kill_between_two_renames_is_mended(tmp_path: Path) -> None:
    (tmp_path / "out.old").mkdir()
    (tmp_path / "out.old" / "old").write_text("old")
    with pytest.raises(ValueError), whole_folder(tmp_path / "out"):
        raise ValueError
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["old"]


def test_an_exception_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError), whole_folder(tmp_path / "out") as folder:
        (folder / "new").write_text("new")
        raise ValueError
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == []


def test_what_a_killed_attempt_left_is_not_mixed_in(tmp_path: Path) -> None:
    (tmp_path / "out.partial" / "deep").mkdir(parents=True)
    (tmp_path / "out.partial" / "leftover").write_text("x")
    with whole_folder(tmp_path / "out") as folder:
        assert names(folder) == []
    assert names(tmp_path) == ["out"]


def test_a_file_in_the_way_of_a_folder_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(OutputError, match="is a file"), whole_folder(tmp_path / "out"):
        pass
    (tmp_path / "below").write_text("x")
    with pytest.raises(OutputError, match="cannot be written"), whole_folder(tmp_path / "below" / "out"):
        pass
