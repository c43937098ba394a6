"""The picture of the README shows the scores of its pair, and `make demo` prints those of a few."""

import re
import sys

import demo
import draw_report
import pytest
from draw_matching import CANDIDATE, PICTURE, REFERENCE, picture

from bertscore_onnx import BERTScorer
from tests.support.snippets import difference

pytestmark = pytest.mark.slow


def test_the_picture_is_that_of_the_scores(minilm_bundle):
    drawn = PICTURE.read_text(encoding="utf-8")
    assert difference(drawn, picture(minilm_bundle)) is None
    with BERTScorer(minilm_bundle) as scorer:
        [score] = scorer.score([CANDIDATE], [REFERENCE]).each()
    shown = [float(figure) for figure in re.findall(r"(?:mean P|F|mean R) (\d\.\d+)<", drawn)]
    assert shown == pytest.approx([score.P, score.F, score.R], abs=1e-3)


def test_the_picture_of_the_report_has_the_words_of_the_page(minilm_bundle, tmp_path):
    page = tmp_path / "report.html"
    draw_report.write_page(minilm_bundle, page)
    found = draw_report.words_of(page)
    assert "is better than rules" in found
    assert found == draw_report.WORDS.read_text(encoding="utf-8"), (
        "`make picture` draws the report anew"
    )


def test_the_picture_loads_nothing():
    assert not re.findall(r"href|url\(|<script|@import", PICTURE.read_text(encoding="utf-8"))


def test_the_demo_prints_pairs_with_their_scores(minilm_bundle, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo.py", str(minilm_bundle)])
    demo.main()
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["P", "R", "F"]
    assert lines[2].split(maxsplit=3) == ["0.852", "0.897", "0.874", "The weather is cold today."]
    assert len(lines) == 2 * len(demo.PAIRS)
