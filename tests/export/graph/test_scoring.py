"""What the scoring graph gives for any input, run as somebody without this package runs it."""

import numpy as np
import onnx
import pytest
from onnxruntime import InferenceSession
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx_export.pipeline import export_model
from tests.support.parity import PlainSession
from tests.support.scores import CANDIDATES, REFERENCES

CLS, SEP, VOCAB_SIZE = 2, 3, 30
CANDIDATE, REFERENCE = [CLS, 5, 7, 8, SEP], [CLS, 5, 9, SEP]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def graph(scoring_bundle):
    return PlainSession(scoring_bundle)


@pytest.fixture(scope="module")
def expected(graph):
    """P, R and F of the candidate and the reference."""
    return graph.run([CANDIDATE], [REFERENCE])[:, 0]


def assert_zero_beside_an_ordinary_pair(scores, expected):
    assert scores[:, 0].tolist() == [0, 0, 0]
    assert np.abs(scores[:, 1] - expected).max() <= 1e-6


EMPTY = ([CLS, SEP], [], [SEP], [CLS, SEP, SEP])
DAMAGED = (
    [CLS, 5, token, SEP] for token in (-1, -30, VOCAB_SIZE, 2**31, 2**32 + 5, 2**63 - 1, -(2**63))
)


@pytest.mark.parametrize("text", [*EMPTY, *DAMAGED])
def test_an_empty_text_and_one_of_an_id_that_the_model_has_not_score_0(graph, expected, text):
    assert_zero_beside_an_ordinary_pair(graph.run([text, CANDIDATE], [REFERENCE] * 2), expected)
    assert_zero_beside_an_ordinary_pair(graph.run([CANDIDATE] * 2, [text, REFERENCE]), expected)


@pytest.mark.parametrize("pad_id", [7, -1, VOCAB_SIZE, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("padding", [1, 40])
def test_padding_is_nothing_whatever_its_ids_and_however_wide(graph, expected, pad_id, padding):
    scores = graph.run([CANDIDATE], [REFERENCE], padding=padding, pad_id=pad_id)
    assert np.abs(scores[:, 0] - expected).max() <= 1e-6


def test_padding_before_a_token_scores_0(graph):
    """Some tokenizers pad there by default, and the model would see other positions."""
    palindrome = [CLS, 5, CLS]
    scores = graph.run([palindrome, [CLS, 5, 7, 5, CLS]], [palindrome, palindrome], left=True)
    assert scores[:, 0].tolist() == [0, 0, 0]
    assert (scores[:, 1] > 0).all()


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf, -1.0])
def test_a_token_whose_weight_is_none_scores_0(graph, expected, weight):
    weights = np.ones(VOCAB_SIZE, dtype=np.float32)
    weights[[CLS, SEP]] = 0
    weights[20] = weight
    damaged = [CLS, 5, 20, SEP]
    scores = graph.run([damaged, CANDIDATE], [REFERENCE] * 2, weights=weights)
    assert_zero_beside_an_ordinary_pair(scores, expected)


@pytest.mark.parametrize("weight", [0.0, 3e38])
def test_weights_that_add_up_to_nothing_or_to_infinity_score_0(graph, weight):
    weights = np.full(VOCAB_SIZE, weight, dtype=np.float32)
    assert graph.run([CANDIDATE], [REFERENCE], weights=weights).tolist() == [[0], [0], [0]]


def test_tiny_weights_weigh_like_others(graph, expected):
    weights = np.full(VOCAB_SIZE, 1e-30, dtype=np.float32)
    weights[[CLS, SEP]] = 0
    assert (
        np.abs(graph.run([CANDIDATE], [REFERENCE], weights=weights)[:, 0] - expected).max() <= 1e-6
    )


def test_a_mask_may_have_any_number_but_0_on_tokens(scoring_bundle, expected):
    session = PlainSession(scoring_bundle)
    for number in (2, -1, 2**62):
        scores = session.run([CANDIDATE], [REFERENCE], padding=2, token=number)
        assert np.abs(scores[:, 0] - expected).max() <= 1e-6


def test_texts_without_width_score_0(graph):
    assert graph.run([[], []], [[], []]).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (1, 2), (2, 1), (3, 2), (0, 0)])
def test_sides_of_different_numbers_or_none_are_an_error(graph, numbers):
    candidates, references = (
        [ids] * number for ids, number in zip((CANDIDATE, REFERENCE), numbers, strict=True)
    )
    with pytest.raises((Fail, InvalidArgument)):
        graph.run(candidates, references)


@pytest.mark.parametrize("width", [1, len(CANDIDATE) - 1, len(CANDIDATE) + 1])
def test_masks_of_another_width_than_the_ids_are_an_error(scoring_bundle, width):
    session = InferenceSession(scoring_bundle / "scoring.onnx", providers=["CPUExecutionProvider"])
    ids, mask = np.array([CANDIDATE]), np.ones((1, width), dtype=np.int64)
    feed = {
        "candidate_ids": ids,
        "candidate_mask": mask,
        "reference_ids": ids,
        "reference_mask": mask,
    }
    with pytest.raises((Fail, InvalidArgument, RuntimeException)):
        session.run(None, feed)


@pytest.mark.parametrize("size", [0, 1, VOCAB_SIZE + 1])
def test_weights_of_another_vocabulary_are_an_error(graph, size):
    with pytest.raises(InvalidArgument, match="token_weights"):
        graph.run([CANDIDATE], [REFERENCE], weights=np.ones(size, dtype=np.float32))


def test_a_scoring_graph_does_not_change_the_encoders_scores(fast_bundle, scoring_bundle):
    scores = []
    for bundle in (fast_bundle, scoring_bundle):
        with BERTScorer(bundle, device="cpu") as scorer:
            scores.append(np.stack(scorer.score(CANDIDATES, REFERENCES)))
    assert np.array_equal(*scores)


def test_both_graphs_take_their_weights_from_one_file(fast_bundle, scoring_bundle):
    sizes = [
        sum(file.stat().st_size for file in folder.iterdir())
        for folder in (fast_bundle, scoring_bundle)
    ]
    weights = scoring_bundle / "model.onnx.data"
    assert open_bundle(scoring_bundle).weights == {weights.name}
    assert sizes[1] - sizes[0] < weights.stat().st_size
    assert weights.stat().st_mode == (scoring_bundle / "model.onnx").stat().st_mode


def test_nan_in_the_weights_scores_0(scoring_bundle, tmp_path):
    model = onnx.load(scoring_bundle / "scoring.onnx")
    for tensor in model.graph.initializer:
        if tensor.name == "embeddings.word_embeddings.weight":
            array = onnx.numpy_helper.to_array(tensor).copy()
            array[20] = np.nan
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    onnx.save(model, tmp_path / "scoring.onnx")
    graph = PlainSession(tmp_path)
    assert_zero_beside_an_ordinary_pair(
        graph.run([[CLS, 5, 20, SEP], CANDIDATE], [REFERENCE] * 2),
        graph.run([CANDIDATE], [REFERENCE])[:, 0],
    )


@pytest.mark.full  # of one layer in `tests/parity/test_tiny_families.py`
def test_a_loop_over_texts_stands_the_same(tmp_path):
    """ConvBERT's padding would change the vectors of the tokens beside it."""
    from tests.support.tiny_models import save_model_and_tokenizer

    model = save_model_and_tokenizer("convbert", tmp_path / "convbert")
    bundle = export_model(
        str(model), all_layers=True, scoring_graph=True, output=tmp_path / "bundle"
    )
    graph, pad_id = PlainSession(bundle), open_bundle(bundle).manifest.pad_id
    special = open_bundle(bundle).manifest.empty_ids
    texts = [[special[0], *range(20, 20 + length), special[1]] for length in (5, 1, 0, 9)]
    together = graph.run(texts, texts[::-1], padding=4, pad_id=pad_id)  # (3, layers, pairs)
    alone = [graph.run([one], [other]) for one, other in zip(texts, texts[::-1], strict=True)]
    assert np.abs(together - np.concatenate(alone, axis=2)).max() <= 1e-6
    assert (together[:, :, 1:3] == 0).all()
    assert (together[:, :, 0] != 0).all()
