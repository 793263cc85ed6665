"""One vocabulary and one model for all tests of search."""

from __future__ import annotations

from pathlib import Path

import pytest
from search.models import learn_vocabulary, translator

from nmt.search.translate import Translator


@pytest.fixture(scope="session")
def vocabulary_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learn_vocabulary(tmp_path_factory.mktemp("words"))


@pytest.fixture(scope="session")
def random_translator(vocabulary_path: Path) -> Translator:
    return translator(vocabulary_path)
