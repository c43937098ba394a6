"""Idf weights without all texts in memory: two passes over a stream, and sentences a few at a
time.
"""

from collections import Counter

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputTypeError
from bertscore_onnx.matching.pairs import match_pairs
from bertscore_onnx.scoring.inputs import PAIRS_AT_ONCE
from bertscore_onnx.text.tokenizer import TextTokenizer

CANDIDATES = ["the cat sat on the mat.", "a dog ran", "red house", "a dog ran"] * 20
REFERENCES = [
    "a cat sits on a mat.",
    ["the dog runs", "it is a dog"],
    "the tree is blue!",
    "the dog runs",
] * 20


@pytest.fixture
def scorer(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", idf=True) as scorer:
        yield scorer


def test_a_rereadable_stream_takes_idf_from_its_references(scorer):
    expected, signature = scorer.score(CANDIDATES, REFERENCES, return_hash=True)
    streamed = list(scorer.stream(list(zip(CANDIDATES, REFERENCES, strict=True))))
    assert [score.F for score in streamed] == expected.F.tolist()
    assert str(scorer.signature.with_references(1, 2)) == signature
    assert "|idf:references|" in signature


def test_idf_of_a_stream_does_not_outlast_it(scorer):
    pairs = [("the cat", "a cat"), ("a dog", "the dog")]
    list(scorer.stream(pairs))
    assert len({score.F for score in scorer.stream([*pairs, ("the cat", "the cat sat")])}) == 3
    assert scorer.signature.idf == "references"


def test_an_iterator_is_scored_with_idf_computed_before(scorer):
    scorer.compute_idf(["the cat sat", "a dog"])
    expected = scorer.score(CANDIDATES, REFERENCES)
    streamed = scorer.stream(zip(CANDIDATES, REFERENCES, strict=True))
    assert [score.F for score in streamed] == expected.F.tolist()


def test_sentences_for_idf_are_read_a_few_at_a_time(scorer, many_texts):
    sentences, read_before = many_texts
    scorer.compute_idf(sentences)
    assert read_before == [PAIRS_AT_ONCE, 2 * PAIRS_AT_ONCE, 3 * PAIRS_AT_ONCE]


@pytest.mark.parametrize("as_iterable", [list, iter])
def test_sentences_in_slices_weigh_like_all_at_once(tiny_bundle, scorer, as_iterable):
    sentences = ["the cat sat", "a dog", "a dog", "red house"] * PAIRS_AT_ONCE
    scorer.compute_idf(as_iterable(sentences))
    with BERTScorer(tiny_bundle, device="cpu", idf=True) as other:
        expected = other.score(sentences, sentences[::-1])
    assert np.array_equal(scorer.score(sentences, sentences[::-1]).F, expected.F)


def test_a_wrong_sentence_for_idf_is_named_by_its_position(scorer):
    with pytest.raises(InputTypeError, match=r"sents\[40\]\[0\] is int 7"):
        scorer.compute_idf(["the cat", "a dog"] * 20 + [[7]])


def test_scores_are_signed_by_the_weights_that_made_them(tiny_bundle, monkeypatch):
    def replace_weights_and_match(*arguments):
        scorer.compute_idf(CANDIDATES)
        return match_pairs(*arguments)

    with BERTScorer(tiny_bundle, idf=True, idf_sents=REFERENCES) as scorer:
        expected = scorer.signature.idf
        monkeypatch.setattr(
            "bertscore_onnx.scoring.pipeline.match_pairs", replace_weights_and_match
        )
        assert (
            scorer.score(CANDIDATES, REFERENCES).signature.idf == expected != scorer.signature.idf
        )


def test_texts_are_tokenised_once_for_idf_and_scores(scorer, monkeypatch):
    tokenised, tokenise = Counter(), TextTokenizer.__call__
    monkeypatch.setattr(
        TextTokenizer,
        "__call__",
        lambda tokenizer, texts: tokenised.update(texts) or tokenise(tokenizer, texts),
    )
    scorer.score(CANDIDATES, REFERENCES)
    scorer.pairwise(CANDIDATES[:2], ["it is red", "it is blue"])
    assert tokenised == Counter(dict.fromkeys(tokenised, 1) | dict.fromkeys(CANDIDATES[:2], 2))
