"""How often the tests of other tools call equal systems different: their own code, where it is
installed.
"""

from contextlib import redirect_stdout
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from sacrebleu import significance as sacrebleu

from tests.evaluation.simulations import EQUAL_SYSTEMS, SHAPES, rate

pytestmark = pytest.mark.calibration

TRIALS = 250


class MeanMetric:
    """A metric of sacreBLEU that takes numbers as texts, and whose score is their mean."""

    def __init__(self, segments):
        self.segments = segments

    def _extract_corpus_statistics(self, hypotheses, _references):
        return [[number] for number in hypotheses]

    def _aggregate_and_compute(self, statistics):
        return self._compute_score_from_stats(np.sum(statistics, axis=0))

    def _compute_score_from_stats(self, sums):
        return SimpleNamespace(score=float(sums[0]) / self.segments)


def sacrebleu_rate(test, segments, differences):
    """Return how often sacreBLEU calls systems different, whose differences are drawn by seed,
    (segments,).
    """
    metric = MeanMetric(segments)
    baseline = {"mean": (np.zeros((segments, 1)), sacrebleu.Result(0.0))}
    run = {"bs": sacrebleu._paired_bs_test, "ar": sacrebleu._paired_ar_test}[test]

    def differs(seed):
        _, results = run(
            baseline, "other", differences(seed), None, {"mean": metric}, 1000, seed=seed
        )
        return results["mean"].p_value < 0.05

    return rate(differs, TRIALS)


@pytest.mark.parametrize("name", EQUAL_SYSTEMS)
@pytest.mark.parametrize("test", ["bs", "ar"])
def test_sacrebleu(test, name, record_property):
    case = EQUAL_SYSTEMS[name]
    record_property(
        f"{name} | sacreBLEU {test}", f"{sacrebleu_rate(test, case.segments, case.differences):.3f}"
    )


@pytest.mark.parametrize("segments", [20, 100, 1000])
@pytest.mark.parametrize("test", ["bs", "ar"])
def test_sacrebleu_where_one_system_fails(test, segments, record_property):
    found = sacrebleu_rate(
        test,
        segments,
        lambda seed: SHAPES["2 % fail"](np.random.default_rng([seed, segments]), segments),
    )
    record_property(f"2 % fail, {segments:,} segments | sacreBLEU {test}", f"{found:.3f}")


@pytest.mark.parametrize("name", EQUAL_SYSTEMS)
def test_comet_compare(name, record_property, monkeypatch, tmp_path):
    comet = pytest.importorskip("comet.cli.compare")
    case = EQUAL_SYSTEMS[name]
    files = [
        type("File", (type(tmp_path),), {"rel_path": property(str)})(tmp_path / side)
        for side in "xy"
    ]
    for file in files:
        file.write_text("")
    settings = SimpleNamespace(
        model="", model_path="", references=None, disable_cache=True, print_cache_info=False, translations=files,
        sources=lambda: files[0], sample_ratio=0.4, num_splits=300, t_test_alternative="two-sided", to_json="",
    )  # fmt: skip
    model = SimpleNamespace(eval=bool, half=bool, requires_references=lambda: False)
    monkeypatch.setattr(comet, "get_cfg", lambda: (settings, None))
    monkeypatch.setattr(comet, "load_from_checkpoint", lambda _: model)

    def differs(seed):
        scores = np.stack([case.differences(seed), np.zeros(case.segments)])
        monkeypatch.setattr(comet, "score", lambda *_: scores)
        with redirect_stdout(StringIO()) as printed:
            comet.compare_command()
        return "Null hypothesis rejected" in printed.getvalue().partition("Summary")[0]

    record_property(f"{name} | comet-compare", f"{rate(differs, TRIALS):.3f}")
