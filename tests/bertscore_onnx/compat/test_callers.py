"""The calls that programs in use make of bert-score, word for word, on the stand-in."""

import json

import pytest

from bertscore_onnx import BERTScorer
from tests.support.scores import CANDIDATES, REFERENCES

pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture
def expected(named_bundle):
    """Our raw scores, and those rescaled with the baseline for English."""
    with BERTScorer(named_bundle) as raw, raw.with_rescaling("en") as rescaled:
        return raw.score(CANDIDATES, REFERENCES), rescaled.score(CANDIDATES, REFERENCES)


def test_a_script_that_asks_for_the_hash(stand_in, expected):
    (P, R, F), hash_code = stand_in.score(
        CANDIDATES, REFERENCES, lang="en", return_hash=True, rescale_with_baseline=True
    )
    assert hash_code.startswith("roberta-large_L17_no-idf_version=0.3.13(")
    assert hash_code.endswith("-rescaled")
    assert json.dumps([x.item() for x in F]) == json.dumps(expected[1].F.tolist())
    assert (P.cpu().numpy() + R.cpu().numpy()).shape == (3,)


@pytest.mark.filterwarnings("ignore:device .mps:RuntimeWarning")
def test_deepeval(stand_in, expected):
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type="microsoft/deberta-xlarge-mnli", lang="en", device="mps")
    precision, recall, f1 = scorer.score(CANDIDATES, [[reference] for reference in REFERENCES])
    assert f1.detach().numpy().tolist() == pytest.approx(expected[0].F.tolist())
    assert precision.detach().numpy().tolist() == pytest.approx(expected[0].P.tolist())
    assert recall.detach().numpy().tolist() == pytest.approx(expected[0].R.tolist())
