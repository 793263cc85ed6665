"""One vocabulary and one model for all tests of analysis."""

from __future__ import annotations

from pathlib import Path

import pytest
from search.models import learn_vocabulary, translator

from nmt.analysis.look import Look, look
from nmt.search.translate import Translator

SENTENCE = "bal gem, kor <b>dan</b> &amp; € ▁x"


@pytest.fixture(scope="session")
def vocabulary_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learn_vocabulary(tmp_path_factory.mktemp("words"))


@pytest.fixture(scope="session")
def ours(vocabulary_path: Path) -> Translator:
    return translator(vocabulary_path)


@pytest.fixture(scope="session")
def found(ours: Translator) -> Look:
    return look(ours, SENTENCE)
