"""`max_length` cuts texts, or windows of them, sooner than the model would."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import InputError
from bertscore_onnx.scoring.tokenization import load_tokenizer
from tests.support.manifests import with_fields
from tests.support.scores import largest_difference

MAX_LENGTH = 8
"""Six words between the two special tokens."""

CANDIDATES = [
    "the cat sat on the mat and the red dog ran",
    "a dog ran",
    "the blue house or the red tree on a mat",
]
REFERENCES = [
    "a cat sits on a mat or a blue house sat on",
    "the dog ran",
    "a red house and the blue tree sat on mat",
]

pytestmark = pytest.mark.filterwarnings("ignore:.* longer than 8 tokens and truncated:UserWarning")


def cut(texts):
    return [" ".join(text.split()[: MAX_LENGTH - 2]) for text in texts]


@pytest.fixture(scope="module")
def short(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", max_length=MAX_LENGTH) as short:
        yield short


def test_what_is_beyond_does_not_count_and_is_warned_of(short, scorer):
    expected = scorer.score(cut(CANDIDATES), cut(REFERENCES))
    with pytest.warns(UserWarning, match="4 texts"):
        assert largest_difference(short.score(CANDIDATES, REFERENCES), expected) < 1e-6
    assert largest_difference(scorer.score(CANDIDATES, REFERENCES), expected) > 1e-2


@pytest.mark.filterwarnings("error")
def test_windows_are_that_long(tiny_bundle, short, scorer):
    with BERTScorer(tiny_bundle, long_text="window", max_length=MAX_LENGTH) as windowed:
        assert largest_difference(windowed.score(CANDIDATES, CANDIDATES), np.ones((3, 3))) < 1e-6
        text = windowed.encode(CANDIDATES[:1]).embeddings.vectors_of(0, 0)
        whole = scorer.encode(CANDIDATES[:1]).embeddings.vectors_of(0, 0)
        start = scorer.encode(cut(CANDIDATES[:1])).embeddings.vectors_of(0, 0)
    assert text.shape == whole.shape  # all tokens count
    assert np.abs(text[:4] - start[:4]).max() < 1e-5  # seen from a window of 8 tokens
    assert np.abs(text[:4] - whole[:4]).max() > 1e-2  # and not of the whole text


def test_the_signature_states_it_where_it_was_given(short, scorer):
    assert "|long_text:truncate|max_length:8|precision:fp32|" in short.hash
    with short.with_idf(True, REFERENCES) as weighted, short.with_rescaling() as raw:
        assert [one.signature.max_length for one in (short, weighted, raw)] == [MAX_LENGTH] * 3
        assert weighted.max_length == MAX_LENGTH
    with BERTScorer(scorer.bundle.path, max_length=scorer.max_length, device="cpu") as whole:
        assert whole.hash == scorer.hash
    assert scorer.signature.max_length is None


def test_texts_encoded_at_another_maximum_are_refused(tiny_bundle, short, scorer):
    encoded = scorer.encode(CANDIDATES)
    with pytest.raises(InputError, match=r"max_length=32.*max_length=8"):
        short.score(encoded, REFERENCES)
    with BERTScorer(tiny_bundle, max_length=32) as same:
        assert largest_difference(same.score(encoded, CANDIDATES), np.ones((3, 3))) < 1e-6


def test_a_model_without_a_bound_takes_longer_texts_on_request(tiny_bundle):
    unbounded = with_fields(open_bundle(tiny_bundle), max_length=None)
    assert load_tokenizer(unbounded).max_length == 8192
    assert load_tokenizer(unbounded, max_length=10_000).max_length == 10_000
