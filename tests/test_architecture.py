"""The arrows between packages, the list of packages, and which file may import a slow library at its top."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = [  # each imports only what stands before it
    "errors",
    "wording",
    "schema",
    "checking",
    "events",
    "files",
    "corpus",
    "subwords",
    "batches",
    "model",
    "search",
    "score",
    "checkpoint",
    "train",
    "analysis",
    "recipe",
    "stages",
    "cli",
]
OWNERS = {  # who may import a library while being imported itself
    "torch": (
        *("nmt/model/", "nmt/search/", "nmt/train/", "nmt/checkpoint/", "nmt/batches/batch.py"),
        *("nmt/analysis/capture.py", "nmt/analysis/look.py"),
        *("nmt/analysis/measures.py", "nmt/analysis/importance.py", "nmt/analysis/alignment.py"),
    ),
    "numba": (
        *("nmt/model/compiling.py", "nmt/model/vectors.py", "nmt/model/inference/tiles.py"),
        *("nmt/model/kernels/products.py", "nmt/model/kernels/words.py"),
    ),
    "safetensors": ("nmt/checkpoint/", "nmt/train/"),
    "sentencepiece": ("nmt/subwords/learn.py", "nmt/subwords/vocabulary.py"),
    "sacremoses": ("nmt/corpus/moses.py",),
    "sacrebleu": (
        "nmt/score/bleu.py",
        "nmt/score/bleu2017.py",
        "nmt/score/chrf.py",
        "nmt/score/ter.py",
        "nmt/score/valued.py",
    ),
    "click": (),
    "rich": ("cli/screen.py",),  # which only a terminal needs
}
FILES = sorted([*(ROOT / "nmt").rglob("*.py"), *(ROOT / "cli").rglob("*.py")])


def inside(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def modules(node: ast.AST, package: str) -> list[str]:
    """The modules that an import statement names, in full."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], *filter(None, [base])])
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def package_of(file: Path) -> str:
    parts = file.relative_to(ROOT).parts[:-1]
    return ".".join(("nmt", *parts) if parts[0] == "cli" else parts)


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        yield from modules(node, package_of(file))


def imports_at_top(file: Path) -> Iterator[str]:
    """What importing the file imports: function bodies and `if TYPE_CHECKING` left out."""
    waiting: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        yield from modules(node, package_of(file))
        waiting += ast.iter_child_nodes(node)


def place(module: str) -> int | None:
    """The rank of a module of ours, None for the package itself and for others."""
    parts = module.split(".")
    return ORDER.index(parts[1]) if parts[0] == "nmt" and len(parts) > 1 and parts[1] in ORDER else None


@pytest.mark.parametrize("file", FILES, ids=inside)
def test_no_arrow_turns_back(file: Path) -> None:
    parts = file.relative_to(ROOT).with_suffix("").parts
    name = "cli" if parts[0] == "cli" else parts[1]
    if name in {"__init__", "__main__"} and parts[0] == "nmt":
        pytest.skip("the package's face may name anything")
    assert name in ORDER, f"{name} has no place in the order"
    own = ORDER.index(name)
    back = {module for module in imports(file) if (rank := place(module)) is not None and rank > own}
    assert not back


@pytest.mark.parametrize("file", FILES, ids=inside)
def test_slow_libraries_are_imported_at_the_top_by_their_owners_only(file: Path) -> None:
    for module in imports_at_top(file):
        owners = OWNERS.get(module.partition(".")[0])
        assert owners is None or inside(file).startswith(owners), f"{module} at the top of {inside(file)}"


@pytest.mark.parametrize("file", sorted((ROOT / "cli").glob("*.py")), ids=inside)
def test_commands_import_siblings_relatively_and_nobody_imports_top_level_cli(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    absolute = [m for node in ast.walk(tree) if not getattr(node, "level", 0) for m in modules(node, "nmt.cli")]
    assert not [module for module in absolute if module.startswith(("nmt.cli", "cli."))]


def test_the_library_never_prints_exits_or_reads_the_command_line() -> None:
    for file in (ROOT / "nmt").rglob("*.py"):
        if file.name == "__main__.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"print", "exit", "sys.exit", "os._exit", "input"}, f"{called} in {inside(file)}"
            if isinstance(node, ast.Attribute):
                assert ast.unparse(node) not in {"sys.argv", "os.environ"}, f"{ast.unparse(node)} in {inside(file)}"


def test_every_package_is_listed_and_every_listed_one_exists() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {package_of(file) for file in FILES}
    assert set(settings["packages"]) == folders
    assert settings["package-dir"] == {"nmt": "nmt", "nmt.cli": "cli"}
    for file in FILES:
        assert (file.parent / "__init__.py").exists(), f"{file.parent} lacks __init__.py"


def test_package_faces_hold_a_docstring_and_no_imports() -> None:
    for file in (ROOT / "nmt").rglob("__init__.py"):
        if file.parent.name != "nmt":
            tree = ast.parse(file.read_text(encoding="utf-8"))
            assert ast.get_docstring(tree) and len(tree.body) == 1, inside(file)


def test_tests_mirror_the_packages() -> None:
    packages = {file.parent.name for file in (ROOT / "nmt").glob("*/__init__.py")} | {
        "cli",
        "data",
        "golden",
        "__pycache__",
    }
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert folders <= packages, folders - packages
