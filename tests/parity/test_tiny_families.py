"""On a tiny random model of each family, every score equals bert-score's within 1e-5."""

import pytest
from bertscore_onnx_export.pipeline import export_model

from bertscore_onnx import BERTScorer

from .conftest import assert_same_scores
from .texts import AWKWARD_PAIRS, ORDINARY_PAIRS
from .tiny_models import TINY_MODELS, save_tiny_model

pytestmark = pytest.mark.filterwarnings("ignore:.*pairs score 0:UserWarning")

NUM_LAYERS = 2
CANDIDATES, REFERENCES = map(list, zip(*AWKWARD_PAIRS, *ORDINARY_PAIRS[:10], strict=True))


@pytest.fixture(scope="module", params=sorted(TINY_MODELS))
def model(request, tmp_path_factory):
    return save_tiny_model(request.param, tmp_path_factory.mktemp("tiny") / request.param)


@pytest.fixture(scope="module")
def bundle(model):
    return export_model(str(model), num_layers=NUM_LAYERS, output=model.parent / "bundle")


@pytest.mark.parametrize("idf", [False, True])
def test_scores(model, bundle, peer_of, idf):
    options = {"idf": True, "idf_sents": REFERENCES} if idf else {}
    peer = peer_of(model, NUM_LAYERS, **options)
    with BERTScorer(bundle, idf=idf) as scorer:
        assert_same_scores(scorer.score(CANDIDATES, REFERENCES), peer.score(CANDIDATES, REFERENCES, batch_size=1))
