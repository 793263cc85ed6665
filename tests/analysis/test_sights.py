"""Alignment and attention of sentences in a report: which are chosen, and that the page holds the model's numbers."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
import sacrebleu
from analysis.browser import foreign, needs_chromium, opened
from analysis.runs import REFERENCES, SOURCES, TRANSLATIONS, write_run
from search.models import save_folder

from nmt.analysis.alignment import Alignments, align
from nmt.analysis.chosen import Sights, choose
from nmt.analysis.look import look
from nmt.analysis.record import Record, read_record
from nmt.analysis.report import report
from nmt.analysis.seen import see, seen_by
from nmt.analysis.sights import LEVELS, thumbnail
from nmt.checkpoint.load import load_translator
from nmt.errors import SettingsError
from nmt.search.control.request import Request
from nmt.search.translate import Translator
from nmt.subwords.tags import add_tags
from nmt.subwords.vocabulary import SEPARATOR


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, vocabulary_path: Path) -> list[Record]:
    """Two runs of one test set, whose second translates a line otherwise."""
    folder = tmp_path_factory.mktemp("runs")
    runs = [write_run(folder, "first"), write_run(folder, "second")]
    for run in runs:
        save_folder(run / "model", vocabulary_path)
    file = runs[1] / "translations" / "news.de.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("Nummer 0 schläft", "Null <i>ruht</i>"), encoding="utf-8")
    return [read_record(run) for run in runs]


@pytest.fixture(scope="module")
def sights(records: list[Record]) -> Sights:
    return see(records, choose(records))


@pytest.fixture(scope="module")
def html(records: list[Record], sights: Sights) -> str:
    return report(records, sights)


def test_the_best_the_median_and_the_worst_are_chosen(records: list[Record]) -> None:
    chrf = sacrebleu.CHRF()
    scores = [chrf.sentence_score(t, [r]).score for t, r in zip(TRANSLATIONS, REFERENCES, strict=True)]
    found = choose(records[:1])
    chosen = [scores[SOURCES.index(sentence.source)] for sentence in found]
    assert chosen == [max(scores), sorted(scores)[len(scores) // 2], min(scores)]
    assert [sentence.label.split(",")[1] for sentence in found] == [f" chrF {score:.1f}" for score in chosen]
    assert all(sentence.translations == {0: TRANSLATIONS[SOURCES.index(sentence.source)]} for sentence in found)


def test_runs_of_the_same_languages_look_at_the_same_sentences(records: list[Record]) -> None:
    assert all(set(sentence.translations) == {0, 1} for sentence in choose(records))
    other = replace(records[1], recipe={**records[1].recipe, "languages": {"source": "en", "target": "fr"}})
    assert [sentence.runs for sentence in choose([records[0], other])] == [(0,)] * 3 + [(1,)] * 3


def test_lines_that_fit_no_small_map_and_blank_ones_are_left_out(records: list[Record]) -> None:
    test = records[0].tests[0]
    lines = [replace(line, source="word " * 40) if i % 2 else line for i, line in enumerate(test.lines)]
    lines[0] = replace(lines[0], translation=" ")
    found = choose([replace(records[0], tests=[replace(test, lines=tuple(lines))])])
    assert len(found) == 3 and all(len(sentence.source.split()) < 13 for sentence in found)
    assert SOURCES[0] not in {sentence.source for sentence in found}
    assert not choose([replace(records[0], tests=[])])


def test_sentences_asked_for_are_translated_by_each_model(records: list[Record]) -> None:
    found = see(records, choose(records, ["bal kor"]))
    text = load_translator(records[0].path, "cpu").translate(["bal kor"])[0]
    assert {key: seen.translation for key, seen in found.seen.items()} == {(0, 0): text, (0, 1): text}


def test_context_is_that_of_the_line_and_reaches_the_models_that_read_it(
    records: list[Record], tmp_path: Path, vocabulary_path: Path
) -> None:
    vocabulary = Path(shutil.copy(vocabulary_path, tmp_path / "vocabulary.model"))
    add_tags(vocabulary, [SEPARATOR])
    run = write_run(tmp_path, "reader")
    described = save_folder(run / "model", vocabulary) / "model.json"
    described.write_text(json.dumps(json.loads(described.read_text()) | {"context_sentences": 1}))
    (run / "recipe.toml").write_text("preprocess.context_sentences = 1\n" + (run / "recipe.toml").read_text())
    both = [read_record(run), records[0]]
    before = {source: (SOURCES[i - 1],) if i else () for i, source in enumerate(SOURCES)}
    chosen = choose(both)
    assert all(sentence.context == before[sentence.source] for sentence in chosen) and any(s.context for s in chosen)
    asked = choose(both, ["bal kor"], ["dem"])
    found = see(both, asked)
    reader, plain = (load_translator(record.path, "cpu") for record in both)
    assert found.seen[0, 0].translation == reader.translate([Request("bal kor", context=("dem",))])[0]
    assert found.seen[0, 1].translation == plain.translate(["bal kor"])[0]
    assert SEPARATOR in found.seen[0, 0].columns and SEPARATOR not in found.seen[0, 1].columns
    assert [len(found.seen[0, run].source_words) for run in (0, 1)] == [2, 2]
    shown = report(both, found)
    assert shown.count("--context &#x27;dem&#x27;") == 1
    with pytest.raises(SettingsError, match="no run's model reads context"):
        choose(records, ["bal kor"], ["dem"])


def test_links_are_those_of_the_aligner_and_weights_those_of_the_look(records: list[Record], sights: Sights) -> None:
    translator = load_translator(records[0].path, "cpu")
    for i, sentence in enumerate(sights.sentences):
        seen, target = sights.seen[i, 0], sentence.translations[0]
        *_, aligned = align(translator, [sentence.source], [target])
        assert isinstance(aligned, Alignments)
        assert seen.links == aligned.layers[aligned.usual][0]
        grid = look(translator, sentence.source, target).words
        assert json.loads(json.dumps(seen.weights)) == grid.weights["cross"].tolist()
        assert (seen.rows, seen.columns) == grid.axes("cross")


def test_the_page_holds_the_mean_of_the_heads(html: str, sights: Sights) -> None:
    maps = [part.split("</table>")[0] for part in html.split('<div class="map">')[1:]]
    assert len(maps) == len(sights.seen)
    for drawn, key in zip(maps, sorted(sights.seen), strict=True):
        seen = sights.seen[key]
        titles = re.findall(r'<td title="(.*?) ← (.*?) ([\d.]+)"', drawn)
        shape = len(seen.rows), len(seen.columns)
        assert [unescape(row) for row, _, _ in titles[:: shape[1]]] == list(seen.rows)
        assert [unescape(column) for _, column, _ in titles[: shape[1]]] == list(seen.columns)
        shown = [float(number) for _, _, number in titles]
        assert shown == pytest.approx([weight for row in seen.mean() for weight in row], abs=5.1e-5)


def test_each_word_of_a_translation_stands_over_the_word_it_is_linked_with(html: str, sights: Sights) -> None:
    glosses = re.findall(r'<div class="gloss" data-links="([^"]*)">(.*?)</div>', html)
    assert len(glosses) == len(sights.seen)
    for (links, pairs), key in zip(glosses, sorted(sights.seen), strict=True):
        seen = sights.seen[key]
        assert links == " ".join(f"{i}-{j}" for i, j in seen.links)
        told = [(unescape(a), unescape(b)) for a, b in re.findall(r"<b[^>]*>(.*?)</b><small[^>]*>(.*?)</small>", pairs)]
        of = {j: seen.source_words[i] for i, j in seen.links}
        assert told == [(word, of[j]) for j, word in enumerate(seen.target_words)]


def test_a_thumbnail_has_a_cell_for_every_weight_that_can_be_seen() -> None:
    drawn = thumbnail([[1.0, 0.0, 0.25], [0.009, 0.25, 0.02]])
    shades = {opacity: cells for cells, opacity in re.findall(r'<path d="([^"]*)" opacity="([\d.]+)"', drawn)}
    assert shades["1.00"] == "M0 0h1v1h-1z" and shades["0.50"] == "M2 0h1v1h-1zM1 1h1v1h-1z"
    assert drawn.count("M") == 4 and len(shades) <= LEVELS


def test_text_without_spaces_is_linked_piece_by_piece(ours: Translator, sights: Sights) -> None:
    seen = seen_by(ours, sights.sentences[0], "kor bal", ("en", "zh"))
    assert len(seen.source_words) == len(seen.columns) - 1 and seen.target_words == seen.rows[:-1]
    assert [j for _, j in sorted(seen.links, key=lambda link: link[1])] == list(range(len(seen.target_words)))
    mean = seen.mean()
    assert all(mean[j][i] == max(mean[j][:-1]) for i, j in seen.links)


def test_a_model_that_cannot_be_loaded_is_told_of_and_the_rest_shown(records: list[Record], tmp_path: Path) -> None:
    broken = replace(records[1], path=tmp_path)
    found = see([records[0], broken], choose(records))
    text = report([records[0], broken], found)
    assert set(found.problems) == {1} and "second: " in text and "holds no model" in text
    assert {run for _, run in found.seen} == {0}


@needs_chromium
def test_a_browser_opens_the_report_without_a_complaint(html: str, tmp_path: Path) -> None:
    assert not foreign(html) and "<i>ruht" not in html
    (tmp_path / "report.html").write_text(html, encoding="utf-8")
    document, complaints = opened(tmp_path / "report.html", tmp_path / "profile")
    assert complaints == [] and "BLEU by length of the source, n = 22" in document
    assert document.count('class="gloss"') == 6
