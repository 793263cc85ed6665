"""What is installed: the package and nothing beside it.  Built offline from a copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from nmt import __version__

ROOT = Path(__file__).parents[1]
pytest.importorskip("setuptools", "77")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the repository holds of the product, without anything built or downloaded."""
    folder = tmp_path_factory.mktemp("copy") / "nmt"
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist", ".*")
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, folder)
    for name in ("nmt", "cli", "recipes", "tests", "docs", "data/sample-en-de"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=skip)
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    return folder


@pytest.fixture(scope="module")
def wheel(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--quiet", "-w", str(out), "."]
    subprocess.run(pip, cwd=copy, check=True, capture_output=True)
    (file,) = out.glob("*.whl")
    return file


def test_the_wheel_holds_the_package_alone_and_all_of_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names} == {"nmt", f"nmt-{__version__}.dist-info"}
    sources = {p.relative_to(ROOT).as_posix() for p in (ROOT / "nmt").rglob("*.py")}
    sources |= {"nmt/" + p.relative_to(ROOT).as_posix() for p in (ROOT / "cli").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == sources
    assert "nmt/py.typed" in names
    assets = {p.relative_to(ROOT).as_posix() for p in (ROOT / "nmt" / "analysis" / "assets").iterdir()}
    assert {name for name in names if "/assets/" in name} == assets and assets


def test_the_wheel_runs_from_any_folder(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    code = "import nmt, nmt.cli; print(nmt.__file__); print(nmt.cli.__file__); nmt.cli.main(['--version'])"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    package, commands, version = ended.stdout.splitlines()
    assert package == str(tmp_path / "site" / "nmt" / "__init__.py")
    assert commands == str(tmp_path / "site" / "nmt" / "cli" / "__init__.py")
    assert version == f"nmt {__version__}"


def test_the_wheel_says_which_pythons_and_libraries_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"nmt-{__version__}.dist-info/METADATA").decode()
        entries = archive.read(f"nmt-{__version__}.dist-info/entry_points.txt").decode()
    assert "Requires-Python: >=3.11\n" in metadata
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra" not in line]
    assert needed and not any("<" in line or "==" in line for line in needed), "no upper bounds without a reason"
    assert "nmt = nmt.cli.process:run" in entries


def test_the_source_archive_holds_recipes_data_and_tests(copy: Path, tmp_path: Path) -> None:
    code = f"from setuptools.build_meta import build_sdist; build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=copy, check=True, capture_output=True)
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "recipes/sample.toml",
        "data/sample-en-de/train.en",
        "tests/test_packaging.py",
        "tests/cli/conftest.py",
        "cli/main.py",
        "nmt/model/transformer.py",
        "constraints.txt",
        "Makefile",
        ".ci/run",
        "LICENSE",
    }
    assert wanted <= names, wanted - names
    assert not [name for name in names if "__pycache__" in name]


def test_the_parent_folder_of_a_checkout_does_not_hide_the_package(copy: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=copy, check=True)
    make = ["make", "-s", f"PYTHON={sys.executable}", "--eval=path:; $(ON_PATH)", "path"]
    subprocess.run(make, cwd=copy, check=True)
    found = [str(copy / ".venv/bin/python"), "-c", "import nmt; print(nmt.__file__)"]
    said = subprocess.run(found, cwd=copy.parent, check=True, capture_output=True, text=True).stdout
    assert said == f"{copy / 'nmt' / '__init__.py'}\n"
