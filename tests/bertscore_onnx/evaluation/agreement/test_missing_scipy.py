"""What needs scipy says how to install it; the rest works without."""

import sys

import numpy as np
import pytest

from bertscore_onnx.errors import MissingExtraError
from bertscore_onnx.evaluation.correlation import correlate
from bertscore_onnx.evaluation.metric_tests import williams

SCORES = np.random.default_rng(0).normal(size=(2, 3, 4))


@pytest.fixture(autouse=True)
def _without_scipy(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)


@pytest.mark.parametrize(
    "statistic", [lambda: correlate(*SCORES, coefficient="kendall_b"), lambda: williams(0.9, 0.8, 0.7, 9)]
)
def test_the_pip_line_is_named(statistic):
    with pytest.raises(MissingExtraError, match=r"needs scipy, .*pip install 'bertscore-onnx\[evaluation\]'"):
        statistic()


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_other_correlations_need_only_numpy(coefficient):
    assert correlate(*SCORES, coefficient=coefficient).value is not None
