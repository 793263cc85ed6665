"""What CTranslate2 makes of an exported model is what ours makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch import tensor
from torch.testing import assert_close

from nmt.checkpoint.export import export
from nmt.checkpoint.load import load_translator
from nmt.errors import DataError, ModelError
from nmt.events import Notice
from nmt.search.length import parse_penalty
from nmt.search.translate import Translator

from .conftest import Make, lines

ctranslate2 = pytest.importorskip("ctranslate2")
from nmt.checkpoint.verify import agreement, prove  # noqa: E402  it needs the package

MODELS: list[dict[str, Any]] = [
    {"norm": "post", "activation": "relu", "tie_embeddings": "all"},
    {"norm": "pre", "activation": "gelu", "tie_embeddings": "target"},
    {"norm": "pre", "activation": "relu", "tie_embeddings": "none", "position": {"kind": "learned", "length": 64}},
    {"norm": "post", "activation": "gelu", "tie_embeddings": "none", "position": {"kind": "rotary"}},
]
every_model = pytest.mark.parametrize("changes", MODELS, ids=lambda changes: "-".join(map(str, changes.values())))


def exported(folder: Path, **options: Any) -> Path:
    output = folder.with_name("exported")
    for _ in export(folder, output, "ctranslate2", **options):
        pass
    return output


def theirs(folder: Path) -> Any:
    return ctranslate2.Translator(str(folder), device="cpu", compute_type="float32", intra_threads=1)


def pieces(ours: Translator) -> list[list[str]]:
    return [ours.source_vocabulary.pieces(ours.source_cleaner.clean(line)) for line in lines()]


@every_model
def test_forced_scores_agree(changes: dict[str, Any], make: Make) -> None:
    folder = make(**changes)
    ours, sources = load_translator(folder, "cpu"), pieces(load_translator(folder, "cpu"))
    mine = ours.rescore(lines(), lines()[::-1])
    found = theirs(exported(folder)).score_batch(sources, sources[::-1])
    for candidate, score in zip(mine, found, strict=True):
        assert score.tokens[:-1] == list(candidate.tokens)
        assert_close(tensor(score.log_probs), tensor(candidate.token_log_probabilities), atol=1e-4, rtol=0)


@every_model
def test_greedy_translations_agree(changes: dict[str, Any], make: Make) -> None:
    folder = make(**changes)
    ours = load_translator(folder, "cpu")
    mine = list(ours.stream(lines(), beam=1, max_extra_tokens=5))
    engine = theirs(exported(folder))
    for translation, source in zip(mine, pieces(ours), strict=True):
        most = {"min_decoding_length": 0, "max_decoding_length": len(source) + 5, "disable_unk": True}
        found = engine.translate_batch([source], beam_size=1, suppress_sequences=[["<s>"], ["<pad>"]], **most)
        assert found[0].hypotheses[0] == list(translation.best.tokens)
    assert len({translation.best.tokens for translation in mine}) > 3


def test_beam_search_ranks_by_the_average_penalty(make: Make) -> None:
    folder = make(end=3.0)
    sources, engine = pieces(load_translator(folder, "cpu")), theirs(exported(folder))
    most = {"min_decoding_length": 0, "max_decoding_length": 9}  # a least length would lift the other scores
    found = engine.translate_batch(sources, beam_size=4, length_penalty=0.6, return_scores=True, **most)
    ended = [i for i, result in enumerate(found) if len(result.hypotheses[0]) < 9]
    forced = engine.score_batch([sources[i] for i in ended], [found[i].hypotheses[0] for i in ended])
    penalty = parse_penalty("average:0.6")
    mine = [penalty.score(sum(score.log_probs), len(score.log_probs)) for score in forced]
    assert len(ended) > 3
    assert_close(tensor(mine), tensor([found[i].scores[0] for i in ended]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("quantization", ["int8", "float16"])
def test_quantized_models_are_smaller_and_score_nearly_the_same(quantization: str, make: Make) -> None:
    folder = make()
    whole = (exported(folder) / "model.bin").stat().st_size
    small = exported(folder, quantization=quantization)
    assert (small / "model.bin").stat().st_size < 0.8 * whole
    sources = pieces(load_translator(folder, "cpu"))
    engine = ctranslate2.Translator(str(small), device="cpu", compute_type="default", intra_threads=1)
    mine = load_translator(folder, "cpu").rescore(lines(), lines()[::-1])
    for candidate, score in zip(mine, engine.score_batch(sources, sources[::-1]), strict=True):
        assert sum(score.log_probs) == pytest.approx(candidate.log_probability, rel=0.05)


def test_an_export_is_compared_with_its_model_before_it_is_there(make: Make, tmp_path: Path) -> None:
    folder, text, blank = make(), tmp_path / "text", tmp_path / "blank"
    text.write_text("".join(f"{line}\n" for line in [*lines(), "", "abc " * 300]))
    blank.write_text("\n \n")
    events = list(export(folder, tmp_path / "whole", "ctranslate2", verify=text))
    told = next(event.text for event in events if isinstance(event, Notice) and "same greedy" in event.text)
    assert told.startswith(f"{text}: 12 of 12 lines (100.0 %)") and float(told.split(" by ")[1].split()[0]) < 1e-4
    rough = agreement(load_translator(folder, "cpu"), exported(folder, quantization="int8"), lines(), "int8")
    assert rough.lines == 12 and 1e-4 < rough.difference < 1
    with pytest.raises(DataError, match="no line can be compared"):
        list(export(folder, tmp_path / "none", "ctranslate2", verify=blank))
    assert not (tmp_path / "none").exists()


def test_an_export_that_is_not_its_model_is_refused_and_not_kept(make: Make, tmp_path: Path) -> None:
    other = exported(make(seed=2)).rename(tmp_path / "other")
    ours = load_translator(make(seed=1), "cpu")
    assert agreement(ours, other, lines()).equal < 6
    with pytest.raises(ModelError, match="the export is not what the model is"):
        prove(ours, other, lines(), 90, "none")
    assert prove(ours, other, lines(), 0, "none").lines == 12


def test_the_folder_holds_what_its_readme_uses(make: Make) -> None:
    folder = exported(make(norm="post"))
    config = json.loads((folder / "config.json").read_text())
    assert config["layer_norm_epsilon"] == 1e-6 and config["add_source_eos"] and config["decoder_start_token"] == "<s>"
    python = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    ended = subprocess.run(
        [sys.executable, "-c", python], cwd=folder, input="abcd efgh\n\nbad\n", capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == 3


def test_what_ctranslate2_lacks_is_refused_and_nothing_written(make: Make) -> None:
    folder = make(attention={"heads": 2, "key_width": 4})
    with pytest.raises(ModelError, match="CTranslate2 cannot hold heads that are not exactly"):
        exported(folder)
    assert not [path for path in folder.parent.iterdir() if path.name.startswith("exported")]
