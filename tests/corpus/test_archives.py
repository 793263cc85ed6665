"""Members come out of archives whole, to where the recipe says and nowhere else."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from nmt.corpus.archives import Member, extract, segments
from nmt.corpus.lines import read_lines
from nmt.errors import DataError

TEXT = b"first line\nsecond \xc3\xa4 line\n"
SGM = """<srcset setid="news" srclang="any">
<DOC docid="one"><p>
<seg id="1">A &amp; B &lt;said&gt; &quot;hello&quot;.</seg>
<seg id="2"> spread over
two lines </seg>
</p></DOC><doc docid="two">
<SEG ID="1">&copy left as it is</SEG><seg id="2"></seg>
</doc></srcset>
"""


def tar(path: Path, mode: str, **members: bytes) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def take(archive: Path, *members: Member) -> None:
    list(extract(archive, members))


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.tar", "w"), ("a.tgz", "w:gz"), ("a.tar.gz", "w:gz"), ("a.tar.xz", "w:xz"), ("a.tar.bz2", "w:bz2")],
)
def test_members_of_tar_archives(tmp_path: Path, name: str, mode: str) -> None:
    archive = tar(tmp_path / name, mode, **{"./training/a.en": TEXT, "training/a.de": b"andere\n", "other": b"no"})
    take(
        archive,
        Member("training/a.de", tmp_path / "out" / "a.de"),
        Member("training/a.en", tmp_path / "out" / "a.en"),
    )
    assert (tmp_path / "out" / "a.en").read_bytes() == TEXT
    assert (tmp_path / "out" / "a.de").read_bytes() == b"andere\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.de", "a.en"]


def test_members_of_zip_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("folder/a.en", TEXT)
    take(tmp_path / "a.zip", Member("folder/a.en", tmp_path / "a.en"))
    assert (tmp_path / "a.en").read_bytes() == TEXT


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)])
def test_a_single_packed_file_is_unpacked(tmp_path: Path, suffix: str, pack: object) -> None:
    (tmp_path / f"a.en{suffix}").write_bytes(pack(TEXT))  # type: ignore[operator]
    take(tmp_path / f"a.en{suffix}", Member("", tmp_path / "a.en"))
    assert (tmp_path / "a.en").read_bytes() == TEXT


def test_suffixes_say_whether_to_pack_or_unpack(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT)  # once: its header holds the time
    archive = tar(tmp_path / "a.tar", "w", **{"plain": TEXT, "packed.gz": packed})
    names = [("plain", "one.gz"), ("packed.gz", "two.gz"), ("packed.gz", "three"), ("packed.gz", "four.xz")]
    for member, file in names:
        take(archive, Member(member, tmp_path / file))
        assert list(read_lines(tmp_path / file)) == TEXT.decode().splitlines()
    assert (tmp_path / "two.gz").read_bytes() == packed
    assert (tmp_path / "three").read_bytes() == TEXT


def test_paths_inside_an_archive_are_never_used(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tar", "w", **{"../../escape": b"evil", "/absolute": b"evil", "a.en": TEXT})
    before = set(tmp_path.parent.iterdir())
    take(archive, Member("a.en", tmp_path / "in" / "a.en"))
    assert set(tmp_path.parent.iterdir()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "in"]


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("a.en")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(info)
    with pytest.raises(DataError, match=r"holds no a\.en"):
        take(tmp_path / "a.tar", Member("a.en", tmp_path / "a.en"))


def test_a_missing_member_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tar", "w", **{"training/europarl-v7.de-en.en": TEXT})
    with pytest.raises(DataError) as caught:
        take(archive, Member("europarl-v7.de-en.en", tmp_path / "a"))
    assert "training/europarl-v7.de-en.en" in caught.value.hint


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_cut_archive_is_damaged_and_leaves_nothing(tmp_path: Path, share: float) -> None:
    data = "".join(f"{i} {i**7 % 1_000_003}\n" for i in range(20_000)).encode()
    archive = tar(tmp_path / "a.tgz", "w:gz", a=data)
    archive.write_bytes(archive.read_bytes()[: int(archive.stat().st_size * share)])
    with pytest.raises(DataError, match="damaged"):
        take(archive, Member("a", tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    take(tmp_path / "no such archive", Member("a", tmp_path / "mine"))
    assert (tmp_path / "mine").read_text() == "mine"


def test_segments_become_one_line_of_plain_text_each(tmp_path: Path) -> None:
    expected = ['A & B <said> "hello".', "spread over two lines", "&copy left as it is", ""]
    assert segments(SGM) == expected
    archive = tar(tmp_path / "a.tgz", "w:gz", **{"test/src.en.sgm": SGM.encode()})
    take(archive, Member("test/src.en.sgm", tmp_path / "test.en", sgm=True))
    assert list(read_lines(tmp_path / "test.en")) == expected


def test_a_file_without_segments_is_refused(tmp_path: Path) -> None:
    archive = tar(tmp_path / "a.tar", "w", a=TEXT)
    with pytest.raises(DataError, match="no <seg>"):
        take(archive, Member("a", tmp_path / "out", sgm=True))
