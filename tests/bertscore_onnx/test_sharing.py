import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import BaselineError, ClosedError, IdfError
from tests.support.scores import CANDIDATES, REFERENCES


@pytest.fixture
def base(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        yield scorer


def test_weights_and_rescaling_combine_with_one_model(loaded, tiny_bundle, baseline_path):
    with (
        BERTScorer(tiny_bundle, device="cpu") as base,
        base.with_idf(True, REFERENCES) as weighted,
        weighted.with_rescaling(baseline_path=baseline_path) as both,
    ):
        assert both.signature.idf == weighted.signature.idf != "no"
        assert both.signature.rescale.startswith("file-")
        both.score(CANDIDATES, REFERENCES)
    assert len(loaded) == 1


def test_encoded_texts_are_those_of_all_that_share_the_model(base):
    encoded = base.encode(REFERENCES)
    with base.with_idf(True, REFERENCES) as other:
        assert np.array_equal(
            other.score(CANDIDATES, encoded).F, other.score(CANDIDATES, REFERENCES).F
        )


def test_the_model_goes_with_the_last_scorer_that_shares_it(tiny_bundle):
    base = BERTScorer(tiny_bundle, device="cpu")
    other = base.with_idf(True, REFERENCES)
    base.close()
    base.close()
    assert repr(base).startswith("BERTScorer(closed, ")
    with pytest.raises(ClosedError, match="was closed"):
        base.score(CANDIDATES, REFERENCES)
    with pytest.raises(ClosedError):
        base.with_idf(False)
    assert np.isfinite(other.score(CANDIDATES, REFERENCES).F).all()
    other.close()
    with pytest.raises(ClosedError):
        other.score(CANDIDATES, REFERENCES)


def test_a_scorer_that_could_not_be_made_holds_no_model(base):
    with pytest.raises(IdfError):
        base.with_idf(True, [])
    with pytest.raises(BaselineError):
        base.with_rescaling("xx")
    base.close()
    with pytest.raises(ClosedError):
        base.score(CANDIDATES, REFERENCES)
