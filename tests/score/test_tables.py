"""Tables as text, Markdown and LaTeX."""

from __future__ import annotations

from nmt.score.tables import Table, as_latex, as_markdown, as_text

TABLE = Table("scores", ("system", "BLEU"), (("a_1", "9.50"), ("b|2", "30.12 (30.10 ± 1.20)")), ("BLEU: tok:13a|x",))


def test_text_is_aligned_with_numbers_at_the_right() -> None:
    assert list(as_text(TABLE)) == [
        "scores",
        "system                  BLEU",
        "a_1                     9.50",
        "b|2     30.12 (30.10 ± 1.20)",
        "BLEU: tok:13a|x",
    ]


def test_markdown_escapes_bars() -> None:
    assert list(as_markdown(TABLE)) == [
        "**scores**",
        "",
        "| system | BLEU |",
        "| :-- | --: |",
        "| a_1 | 9.50 |",
        "| b\\|2 | 30.12 (30.10 ± 1.20) |",
        "",
        "- BLEU: tok:13a|x",
    ]


def test_latex_escapes_what_it_would_take_for_commands() -> None:
    assert list(as_latex(TABLE)) == [
        "% scores",
        "% BLEU: tok:13a|x",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"system & BLEU \\",
        r"\midrule",
        r"a\_1 & 9.50 \\",
        r"b\textbar{}2 & 30.12 (30.10 $\pm$ 1.20) \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_table_without_rows_is_its_head() -> None:
    assert list(as_text(Table("", ("line", "check"), (), ("nothing in 3 lines",)))) == [
        "line  check",
        "nothing in 3 lines",
    ]
