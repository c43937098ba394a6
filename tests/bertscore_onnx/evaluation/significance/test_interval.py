"""The interval against sacreBLEU's estimate_ci."""

import numpy as np
import pytest
from sacrebleu.significance import estimate_ci

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.significance import confidence_interval


@pytest.mark.parametrize("num_resamples", [1, 2, 39, 40, 41, 1000])
def test_it_is_sacrebleus(num_resamples):
    scores = np.random.default_rng(0).normal(size=(num_resamples, 2))
    mean, half_width = confidence_interval(scores)
    for system in range(2):
        expected = estimate_ci(scores[:, system])
        assert (mean[system], half_width[system]) == pytest.approx(expected, abs=1e-12)


def test_no_resamples_are_refused():
    with pytest.raises(InputError, match="at least one"):
        confidence_interval([])
