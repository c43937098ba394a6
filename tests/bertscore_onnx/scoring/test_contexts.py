"""Contexts: encoded before a text, never matched by default, and cut before the text is."""

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import InputError
from bertscore_onnx.matching.variants import Matching
from bertscore_onnx.scoring.pipeline import Pipeline
from bertscore_onnx.text.texts import TextInContext
from bertscore_onnx.text.tokenizer import tokenise
from tests.support.bundles import exported, saved
from tests.support.parity import KNOWN_WARNINGS, equations
from tests.support.scores import CANDIDATES, REFERENCES
from tests.support.tiny_models import FAST

pytestmark = KNOWN_WARNINGS

ALPHABET = "abzAé1 .,(#_\n\t日が\u0301'-"


@pytest.fixture(scope="module", params=["bert", "modernbert", "t5"])
def pipeline(request):
    mode = "fast" if request.param in FAST else "slow"
    bundle = exported(
        "bundle", saved(request.param), num_layers=2, tokenizer_mode=mode, scoring_graph=True
    )
    with Pipeline(open_bundle(bundle)) as pipeline:
        yield pipeline


def tokens_of(pipeline, text, context, separator=" "):
    """Return the ids of a text in its context, and how many of them are the context's."""
    [(ids, _, number, *_)] = tokenise(pipeline.tokenizer, [TextInContext(text, context)], separator)
    return ids.tolist(), number


@settings(
    max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    context=st.text(ALPHABET, min_size=1, max_size=60),
    other=st.text(ALPHABET, min_size=1, max_size=60),
    text=st.text(ALPHABET, min_size=1, max_size=12),
)
def test_a_context_never_changes_which_tokens_are_matched(pipeline, context, other, text):
    matched = []
    for before in (context, other):
        ids, number = tokens_of(pipeline, text, before if before.strip() else "a", " \n")
        start = pipeline.tokenizer.num_special_tokens[0] + number
        matched.append(ids[start:])
    assert matched[0] == matched[1]


@settings(
    max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    context=st.text(ALPHABET, min_size=1, max_size=300).filter(str.strip),
    text=st.text(ALPHABET, min_size=1, max_size=100).filter(str.strip),
)
def test_a_context_is_cut_at_its_far_end_and_before_its_text(pipeline, context, text):
    tokenizer = pipeline.tokenizer
    before, after = tokenizer.num_special_tokens
    ids, number = tokens_of(pipeline, text, context)
    short, num_short = tokens_of(pipeline, text, "a")
    body, of_context = ids[before + number : len(ids) - after], ids[before : before + number]
    expected = short[before + num_short : len(short) - after]
    assert len(ids) <= tokenizer.max_length
    assert body[: len(expected)] == expected
    assert not number or len(body) < tokenizer.max_length - before - after
    with Pipeline(pipeline.bundle, encoder=pipeline.encoder, long_text="window") as whole:
        everything, of_everything = tokens_of(whole, text, context)
    whole_context = everything[before : before + of_everything]
    assert whole_context[len(whole_context) - len(of_context) :] == of_context


def plain(scorer, text):
    """Return the vectors of a text that is not in a context, and of its tokens which are words."""
    table = scorer.encode([text]).embeddings
    ids = table.sequences[0]
    return table.vectors_of(0, 0), ~np.isin(ids, scorer.manifest.special_ids)


CONTEXTS = ["red house.", "it was a tree.", "the mat"]


@pytest.mark.parametrize("role", ["excluded", "weightless"])
def test_a_context_is_encoded_and_not_scored(tiny_bundle, role):
    with (
        BERTScorer(tiny_bundle) as whole,
        BERTScorer(tiny_bundle, matching=Matching(context=role)) as scorer,
    ):
        scores = scorer.score(CANDIDATES, REFERENCES, contexts=CONTEXTS)
        for place, (candidate, reference, context) in enumerate(
            zip(CANDIDATES, REFERENCES, CONTEXTS, strict=True)
        ):
            sides = []
            for text in (candidate, reference):
                vectors, is_word = plain(whole, f"{context} {text}")
                number = plain(whole, context)[1].sum()
                is_text = np.arange(len(vectors)) > number
                kept = is_text | (np.arange(len(vectors)) == 0)
                kept = kept if role == "excluded" else np.ones(len(vectors), dtype=bool)
                sides += [vectors[kept], (is_word & is_text)[kept]]
            assert (scores.P[place], scores.R[place]) == pytest.approx(equations(*sides), abs=1e-6)


def test_sentences_are_joined_by_the_separator(tiny_bundle, scorer):
    of_lists = scorer.score(["a cat"], ["the cat"], contexts=[["red house.", " it sat "]])
    np.testing.assert_array_equal(
        of_lists.F, scorer.score(["a cat"], ["the cat"], contexts=["red house. it sat"]).F
    )
    with BERTScorer(tiny_bundle, matching=Matching(separator=" {sep} ")) as scorer:
        of_separator = scorer.score(["a cat"], ["the cat"], contexts=[["red house.", "it sat"]])
        np.testing.assert_array_equal(
            of_separator.F,
            scorer.score(["a cat"], ["the cat"], contexts=["red house. [SEP] it sat"]).F,
        )
    assert of_lists.F[0] != of_separator.F[0]


def test_idf_counts_texts_without_their_contexts(tiny_bundle):
    with (
        BERTScorer(tiny_bundle, idf=True) as of_call,
        BERTScorer(tiny_bundle, idf=True, idf_sents=REFERENCES) as of_sentences,
    ):
        np.testing.assert_array_equal(
            of_call.score(CANDIDATES, REFERENCES, contexts=CONTEXTS).F,
            of_sentences.score(CANDIDATES, REFERENCES, contexts=CONTEXTS).F,
        )


@pytest.mark.parametrize("long_text", ["truncate", "window"])
def test_long_contexts_and_long_texts(tiny_bundle, long_text, small_chunks):
    """The model takes 32 tokens."""
    texts = ["the cat sat " * 3, "a dog ran " * 20, "red"]
    contexts = ["it is a tree. " * 30, "the house is red. " * 3, "blue " * 100]
    with BERTScorer(tiny_bundle, long_text=long_text) as scorer:
        together = scorer.score(texts, REFERENCES, contexts=contexts)
        for place in range(3):
            alone = scorer.score([texts[place]], [REFERENCES[place]], contexts=[contexts[place]])
            assert alone.F[0] == together.F[place]
        assert (together.F > 0).all()
        cut = " ".join(("it is a tree. " * 30).split())[-400:]
        if long_text == "truncate":
            far_end = scorer.score(texts[:1], REFERENCES[:1], contexts=[f"a dog ran. {cut}"])
            assert far_end.F[0] == together.F[0]


def test_the_signature_records_contexts(scorer):
    assert str(scorer.score(CANDIDATES, REFERENCES).signature) == str(scorer.signature)
    assert "matching:bertscore+context" in str(
        scorer.score(CANDIDATES, REFERENCES, contexts=CONTEXTS).signature
    )


@pytest.mark.parametrize("role", ["excluded", "weightless"])
def test_texts_excluded_in_a_context_are_warned_of_as_that(tiny_bundle, role):
    matching = Matching(words=["the", "cat"], context=role)
    with (
        BERTScorer(tiny_bundle, matching=matching) as scorer,
        pytest.warns(UserWarning, match="scores? 0") as caught,
    ):
        scorer.score(
            ["the cat", "a dog ran", ""],
            ["a cat sat", "the", "a cat"],
            contexts=["a tree", "red", "blue"],
        )
    assert [str(warning.message) for warning in caught] == [
        "1 pair scores 0 because a side is empty.",
        "2 pairs score 0 because the matching excludes every token of a side.",
    ]


def test_contexts_need_no_second_tokenizer(pipeline, tmp_path):
    """Of 250,000 pieces one takes 280 MB."""
    copy = tmp_path / "bundle"
    shutil.copytree(pipeline.bundle.path, copy)
    with BERTScorer(copy, device="cpu") as scorer:
        for file in (*copy.glob("tokenizer*.json"), *copy.glob("spiece.model")):
            file.unlink()
        found = scorer.score(CANDIDATES, REFERENCES, contexts=["It rained."] * len(CANDIDATES))
    with BERTScorer(pipeline.bundle.path, device="cpu") as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES, contexts=["It rained."] * len(CANDIDATES))
    assert found.F.tolist() == expected.F.tolist()


@pytest.mark.parametrize(
    "method",
    [
        lambda scorer, text: scorer.encode([text]),
        lambda scorer, text: scorer.pairwise([text], ["a"]),
    ],
)
def test_only_scoring_takes_contexts(scorer, method):
    with pytest.raises(InputError, match="context"):
        method(scorer, TextInContext("a cat", "it was red"))


@pytest.mark.parametrize(
    ("name", "mode", "mark"),
    [("bert", "slow", "[SEP]"), ("modernbert", "fast", "[SEP]"), ("t5", "slow", "</s>")],
)
def test_the_separator_is_the_token_that_ends_a_text(name, mode, mark):
    bundle = exported("bundle", saved(name), num_layers=2, tokenizer_mode=mode, scoring_graph=True)
    with Pipeline(open_bundle(bundle), matching="doc-bert-score") as pipeline:
        assert pipeline.matching.separator == f" {mark} "
