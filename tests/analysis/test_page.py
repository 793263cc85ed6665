"""The page of a sentence's attention, with and without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from analysis.browser import foreign, needs_chromium, opened
from analysis.conftest import SENTENCE
from torch.testing import assert_close

from nmt.analysis.capture import KINDS
from nmt.analysis.look import Look, look
from nmt.analysis.markup import fill
from nmt.analysis.page import MOST, Choice, page
from nmt.analysis.picture import picture, title
from nmt.errors import DataError, NmtError
from nmt.search.translate import Translator

EVERYTHING = """<script>
let presses = 0;
for (const kind of [0, 1, 2]) for (const units of [0, 1]) {
  document.querySelectorAll("#kinds button")[kind].click();
  document.querySelectorAll("#units button")[units].click();
  const heads = document.querySelectorAll("#heads button").length;
  for (let i = 0; i < heads; i++) { document.querySelectorAll("#heads button")[i].click(); presses++; }
  for (const row of document.querySelectorAll("#map tbody tr")) {
    row.click();
    row.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
    if (row.getAttribute("aria-selected") === null) throw new Error("no row is shown");
  }
}
document.documentElement.dataset.pressed = presses;
document.querySelectorAll("#heads button")[1].click();
</script>"""
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def drawn(document: str) -> list[float]:
    """The numbers of the map's cells, row by row, 0 where they are masked."""
    cells = re.findall(r'<td (?:class="masked" )?title="([^"]*)"', document)
    return [0.0 if cell.endswith("masked, not yet written") else float(cell.rpartition(" ")[2]) for cell in cells]


def data_of(html: str) -> dict:
    return json.loads(DATA.search(html)[1])


def test_the_page_holds_the_tensors_numbers_and_the_texts_as_they_are(found: Look) -> None:
    data = data_of(page(found, Choice(), {"languages": "en → de"}))
    assert (data["source"], data["target"], data["given"]) == (SENTENCE, found.target, False)
    for units in ("subwords", "words"):
        grid, held = found.grid(units), data["grids"][units]
        for kind in KINDS:
            assert_close(torch.tensor(held["weights"][kind]), grid.weights[kind], atol=1e-4, rtol=0)
            assert (tuple(held["rows"][kind]), tuple(held["columns"][kind])) == grid.axes(kind)
        assert tuple(held["visible"]) == grid.visible


def test_the_page_needs_nothing_but_itself_and_runs_no_text_as_script(ours: Translator) -> None:
    html = page(look(ours, "bal </script><script>alert(1)</script> {{script}} <!--", "kor"), Choice(), {"a": "<b>"})
    assert not foreign(html)
    assert html.count("</script>") == 2 and "alert(1)</script>" not in html and "<!--" not in html.lower()
    assert "default-src 'none'" in html
    assert data_of(html)["source"] == "bal </script><script>alert(1)</script> {{script}} <!--"


def test_what_is_shown_first_is_what_was_chosen(found: Look) -> None:
    start = data_of(page(found, Choice("decoder", 0, 1, "words"), {}))["start"]
    assert start == {"kind": "decoder", "layer": 0, "head": 1, "units": "words"}
    assert data_of(page(found, Choice(), {}))["start"]["layer"] == 1


def test_more_weights_than_a_browser_opens_are_refused(found: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.analysis.page.MOST", 100)
    with pytest.raises(DataError, match="more than the 100 that"):
        page(found, Choice(), {})
    assert MOST > 100


def test_values_put_into_a_template_are_not_looked_into() -> None:
    assert fill("a {{ x }} b {{y}}", x="{{y}}", y="}}") == "a {{y}} b }}"


@needs_chromium
@pytest.mark.parametrize("choice", [Choice(), Choice("decoder", 0, 1, "words")])
def test_a_browser_draws_it_and_finds_its_numbers_sound(found: Look, choice: Choice, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page(found, choice, {}), encoding="utf-8")
    document, complaints = opened(tmp_path / "page.html", tmp_path / "profile")
    assert complaints == [] and "data-error" not in document
    assert 'data-check="ok"' in document
    rows, columns = found.grid(choice.units).axes(choice.kind)
    assert len(re.findall(r"<td", document)) == len(rows) * len(columns) + 1
    heads_HQK = found.grid(choice.units).weights[choice.kind][-1 if choice.layer is None else choice.layer]
    weights_QK = heads_HQK.mean(0) if choice.head is None else heads_HQK[choice.head]
    assert_close(torch.tensor(drawn(document)), weights_QK.flatten(), atol=2e-4, rtol=0)
    masked = sum(len(columns) - seen for seen in found.words.visible) if choice.kind == "decoder" else 0
    assert len(re.findall(r'<td class="masked"', document)) == masked


@needs_chromium
def test_every_button_and_row_can_be_pressed(found: Look, tmp_path: Path) -> None:
    html = page(found, Choice(), {"a": "b"}).replace("</body>", f"{EVERYTHING}</body>")
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    document, complaints = opened(tmp_path / "page.html", tmp_path / "profile")
    assert complaints == [] and "data-error" not in document
    heads = {kind: weights.size(0) * (weights.size(1) + 1) for kind, weights in found.subwords.weights.items()}
    assert f'data-pressed="{2 * sum(heads.values())}"' in document
    assert_close(torch.tensor(drawn(document)), found.words.weights["decoder"][0, 1].flatten(), atol=2e-4, rtol=0)


@pytest.mark.parametrize("choice", [Choice(), Choice("decoder", 0, None, "words"), Choice("encoder", 0, 1)])
def test_a_picture_is_a_png_of_some_size(found: Look, choice: Choice) -> None:
    pytest.importorskip("matplotlib")
    data = picture(found, choice)
    assert data.startswith(b"\x89PNG\r\n") and len(data) > 5000


def test_without_matplotlib_the_command_to_install_it_is_named(found: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(NmtError, match="not installed") as caught:
        picture(found, Choice())
    assert caught.value.hint == 'pip install "nmt[plots]"'


def test_a_picture_says_what_it_is_of(found: Look) -> None:
    text = title(found, Choice("decoder"), "runs/x")
    assert text.startswith("decoder attention of runs/x, n = 1 sentence\n") and found.source in text
