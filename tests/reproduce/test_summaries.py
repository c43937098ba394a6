"""`reproduce.summaries` with made-up summaries: what is read, what is correlated, and the
tables.
"""

import pickle
import random
from importlib.util import find_spec

import msgspec
import numpy as np
import pytest
from scipy import stats

from bertscore_onnx import BERTScorer
from bertscore_onnx_evaluation.metric_scores import score_systems
from harness.results import BEGIN, END
from reproduce import correlations
from reproduce.encoder_page import KENDALL, OF_SYSTEMS, PEARSON, PEARSON_OF_SYSTEMS, Record, _ahead
from reproduce.summaries import agreement, correlate_lexical, read_summaries
from tests.support.scores import WORDS

SYSTEMS, ARTICLES, ASPECTS = ("M1", "M10", "M2", "M3", "M4"), 6, ("coherence", "relevance")
KINDS = ("1 reference", "3 references", "article")


@pytest.fixture(scope="module")
def content():
    """Articles, references and summaries as SummEval has them, with the scores of annotators."""
    draw = random.Random(0)  # noqa: S311 -- made-up texts
    words = WORDS.split()

    def text(length):
        return " ".join(draw.choices(words, k=length))

    found = {}
    for number in range(ARTICLES):
        references = [text(8) for _ in range(3)]
        found[f"article-{number}"] = {
            "src": text(30),
            "ref_summ": references[0],
            "ref_summs": references,
            "sys_summs": {
                system: {
                    "sys_summ": " ".join(references[0].split()[: draw.randint(0, 8)])
                    + " "
                    + text(5),
                    "scores": {aspect: draw.randint(1, 15) / 3 for aspect in ASPECTS},
                }
                for system in SYSTEMS
            },
        }
    for one in found["article-2"]["sys_summs"].values():  # all alike in one aspect
        one["scores"]["coherence"] = 5.0
    return found


@pytest.fixture
def file(content, tmp_path):
    path = tmp_path / "data.pkl"
    path.write_bytes(pickle.dumps(content, protocol=2))
    return path


def by_scipy(human, metric, system):
    """Return the four correlations of an aspect, (systems, articles), by scipy alone."""
    within = {KENDALL: stats.kendalltau, PEARSON: stats.pearsonr}
    over = {OF_SYSTEMS: stats.kendalltau, PEARSON_OF_SYSTEMS: stats.pearsonr}
    judged = [at for at in range(human.shape[1]) if len({*human[:, at]}) > 1]
    found = {
        name: np.mean(
            [
                0 if len({*metric[:, at]}) == 1 else of(human[:, at], metric[:, at]).statistic
                for at in judged
            ]
        )
        for name, of in within.items()
    }
    return found | {name: of(human.mean(axis=1), system).statistic for name, of in over.items()}


def test_correlations_are_those_of_scipy(file):
    summaries = read_summaries("Made up", str(file))
    metric = np.random.default_rng(1).integers(0, 4, (len(SYSTEMS), ARTICLES)).astype(float)
    metric[:, 4] = 1.0  # constant, where annotators were not
    found = agreement(summaries, "article", ("F", 3, metric, metric.mean(axis=1)))
    of_aspects = {
        aspect: by_scipy(human, metric, metric.mean(axis=1))
        for aspect, human in summaries.human.items()
    }
    assert [*found.aspects] == [*ASPECTS]
    for aspect, wanted in of_aspects.items():
        assert found.aspects[aspect] == pytest.approx(wanted, abs=1e-12)
    for name, value in found.means.items():
        assert value.value == pytest.approx(
            np.mean([one[name] for one in of_aspects.values()]), abs=1e-12
        )
    for name in (KENDALL, PEARSON):
        assert found.means[name].low < found.means[name].value < found.means[name].high
    assert found.means[OF_SYSTEMS].low is None
    assert found.within["coherence"][2] is None  # annotators gave all of them one score
    assert found.within["relevance"][4] == 0
    assert _ahead(found, found) == "+0.000 (+.00 to +.00)"
    lower = msgspec.structs.replace(found, within={name: [-0.5] * ARTICLES for name in ASPECTS})
    mean = found.means[KENDALL]
    ahead = f"{mean.value + 0.5:+.3f} ({mean.low + 0.5:+.2f} to {mean.high + 0.5:+.2f})".replace(
        "+0.", "+."
    )
    assert _ahead(found, lower).replace("+0.", "+.") == ahead


def test_metrics_without_a_model_are_those_of_their_packages(file, content):
    summaries = read_summaries("Made up", str(file))
    found = {(one.reference, one.metric): one for one in correlate_lexical(summaries)}
    names = {"chrF3++", "chrF", "BLEU"} | (
        {"ROUGE-1", "ROUGE-2", "ROUGE-L"} if find_spec("rouge_score") else set()
    )
    assert {*found} == {(kind, name) for kind in KINDS for name in names}
    articles = [content[name] for name in sorted(content)]
    outputs = [
        [article["sys_summs"][system]["sys_summ"] for article in articles] for system in SYSTEMS
    ]
    references = [article["ref_summs"] for article in articles]
    chrf = score_systems(
        {"chrf": {"word_order": 2, "beta": 3}}, outputs, [references] * len(SYSTEMS)
    )["chrf"]
    for aspect in ASPECTS:
        human = np.array(
            [
                [article["sys_summs"][system]["scores"][aspect] for article in articles]
                for system in SYSTEMS
            ]
        )
        assert found["3 references", "chrF3++"].aspects[aspect] == pytest.approx(
            by_scipy(human, chrf.segment, chrf.system), abs=1e-12
        )


def found_for(kind, record):
    return {(one.metric, one.layer): one for one in record.agreements if one.reference == kind}


@pytest.mark.slow
def test_a_model_has_rows_at_every_layer_and_the_page_its_tables(file, tmp_path, all_layers_bundle):
    page = tmp_path / "page.md"
    page.write_text("\n".join(["# Title", BEGIN, "old", END, ""]))
    arguments = [
        "--set",
        f"Made up={file}",
        "--model",
        f"tiny={all_layers_bundle}",
        "--output",
        str(tmp_path / "out"),
    ]
    assert correlations.main([*arguments, "--page", str(page)]) == 0
    record = msgspec.json.decode(
        (tmp_path / "out" / "tiny--fp32--Made-up.json").read_bytes(), type=Record
    )

    summaries = read_summaries("Made up", str(file))
    candidates = [output for of_system in summaries.outputs for output in of_system]
    references = [list(one) for one in summaries.references] * len(SYSTEMS)
    with BERTScorer(all_layers_bundle, all_layers=True) as scorer:
        scores = scorer.score(candidates, references)
        layers = [*scorer.manifest.layers]
    found = found_for("3 references", record)
    assert {*found} == {(name, layer) for name in "PRF" for layer in layers}
    for name, values in zip("PRF", scores, strict=True):
        for layer, of_layer in zip(layers, np.asarray(values, dtype=float), strict=True):
            metric = of_layer.reshape(len(SYSTEMS), ARTICLES)
            for aspect, human in summaries.human.items():
                wanted = by_scipy(human, metric, metric.mean(axis=1))
                assert found[name, layer].aspects[aspect] == pytest.approx(wanted, abs=1e-12)

    text = page.read_text()
    best = max(
        layers, key=lambda layer: found_for("1 reference", record)["F", layer].means[KENDALL].value
    )
    for name in ("chrF3++", "BLEU", f"F of tiny, layer {best}"):
        assert f"\n| {name} " in text
    before = page.read_bytes()
    assert correlations.main([*arguments, "--page", str(page)]) == 0
    assert page.read_bytes() == before


def test_a_pickle_that_could_run_a_program_is_not_read(tmp_path):
    path = tmp_path / "data.pkl"
    path.write_bytes(pickle.dumps({"article": read_summaries}))
    assert (
        "it holds reproduce.summaries.read_summaries" in read_summaries("Made up", str(path)).reason
    )
