"""Files of scores, as mt-metrics-eval reads them."""

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.eval_set import check_names, score_files


def read_as_mt_metrics_eval_does(content):
    """Split each line into a system and a score, as its `ReadScoreFile` does."""
    scores = {}
    for line in content.splitlines():
        system, score = line.split()
        scores.setdefault(system, []).append(float(score) if score != "None" else None)
    return scores


def test_scores_come_back_as_they_were():
    segments = np.array([[0.1, 1 / 3, -2.5], [1e-17, 12345.678901234567, np.nan]])
    files = score_files("BLEU-refB", ["A", "B"], {"sys": segments[:, 0], "seg": segments})
    assert files.keys() == {"BLEU-refB.sys.score", "BLEU-refB.seg.score"}
    assert read_as_mt_metrics_eval_does(files["BLEU-refB.sys.score"]) == {"A": [0.1], "B": [1e-17]}
    assert read_as_mt_metrics_eval_does(files["BLEU-refB.seg.score"]) == {
        "A": [0.1, 1 / 3, -2.5],
        "B": [1e-17, 12345.678901234567, None],
    }


def test_a_level_without_scores_has_no_file():
    assert score_files("BLEU-refB", ["A"], {"sys": np.array([1.0]), "seg": None}).keys() == {"BLEU-refB.sys.score"}


@pytest.mark.parametrize("name", ["", "a b", "a\tb", " a"])
def test_a_system_whose_name_the_format_cannot_hold_is_told(name):
    with pytest.raises(InputError, match=r"he-en: the system .* cannot stand in a file of scores"):
        check_names("he-en", [name], ["BLEU"])


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "a\0b"])
def test_a_name_that_cannot_name_a_file_is_told(name):
    with pytest.raises(InputError, match=r"The language pair .* cannot name a file"):
        check_names(name, ["A"], ["BLEU"])
    with pytest.raises(InputError, match=r"The metric .* cannot name a file"):
        check_names("he-en", ["A"], [name])
