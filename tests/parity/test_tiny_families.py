"""On a tiny random model of each family, every score equals bert-score's within 1e-5.

Exported with the slow tokenizer, or with the fast one if there is no other, and scored on texts
that are empty, full of special tokens, or too long. Texts are left out if bert-score gets their
emptiness wrong: it takes any two ids for an empty text, and if special tokens have a weight it sets
P and R to 0, but leaves F.
"""

import re

import numpy as np
import pytest
from transformers import AutoModel, AutoTokenizer

from bertscore_onnx import BERTScorer, count_documents
from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.errors import UnsupportedFamilyError
from bertscore_onnx.scoring.golden import GOLDEN_TOLERANCES
from bertscore_onnx.scoring.tokenization import load_tokenizer
from tests.support.bundles import exported, lower, saved
from tests.support.parity import (
    EDGE_CASE_PAIRS,
    KNOWN_WARNINGS,
    ORDINARY_PAIRS,
    PlainSession,
    assert_same_scores,
    idf_of,
    without_stand_ins,
)
from tests.support.tiny_models import EVERY_INPUT, FAST, TINY_MODELS, each_family

pytestmark = KNOWN_WARNINGS

WITHOUT_PRODUCTS = {"bort"}
"""Models that do not multiply with a matrix: embeddings alone."""

WITH_FINAL_NORM = (
    *("blenderbot", "byt5", "mbart", "mbart-50", "megatron-bert", "modernbert", "mt5", "pegasus"),
    *("roberta-prelayernorm", "t5", "xlm-roberta-xl"),
)

PAIRS = [*EDGE_CASE_PAIRS, *ORDINARY_PAIRS[:10]]

REDUCED_TOLERANCE = 2e-4
"""In fp16 and int8 a graph rounds otherwise in a batch of another shape; by up to 1e-4 in int8,
7e-5 in fp16.
"""


@pytest.fixture(scope="module", params=each_family(TINY_MODELS, quick=EVERY_INPUT))
def model(request):
    return saved(request.param)


@pytest.fixture(scope="module")
def num_layers(model):
    return 0 if model.name == "bort" else 2


@pytest.fixture(scope="module")
def bundle(model, num_layers):
    mode = "fast" if model.name in FAST else "slow"
    return exported("bundle", model, num_layers=num_layers, tokenizer_mode=mode, scoring_graph=True)


@pytest.fixture
def comparable(bundle):
    """The pairs for which bert-score is right about which sides are empty."""
    opened = open_bundle(bundle)
    tokenizer = load_tokenizer(opened)

    def is_comparable(text):
        [ids], _ = tokenizer([text])
        if {*ids.tolist()} <= {*opened.manifest.special_ids}:
            return {*ids.tolist()} <= {*opened.manifest.zero_weight_ids}
        return len(ids) != 2

    kept = [pair for pair in PAIRS if all(map(is_comparable, pair))]
    assert len(kept) >= 30
    return [list(side) for side in zip(*kept, strict=True)]


@pytest.fixture(scope="module")
def token_ids(bundle):
    tokenizer = load_tokenizer(open_bundle(bundle))
    return [[ids.tolist() for ids in tokenizer(side)[0]] for side in zip(*PAIRS, strict=True)]


@pytest.fixture
def peer(model, num_layers, peer_of, monkeypatch):
    """Return a function that makes bert-score's scorer; it looks for SqueezeBERT's layers under
    another name.
    """
    if model.name == "squeezebert":

        def cut(path, layers, all_layers=None):
            whole = AutoModel.from_pretrained(path).eval()
            whole.encoder.layers = whole.encoder.layers[:layers]
            return whole

        monkeypatch.setattr("bert_score.scorer.get_model", cut)
    return lambda **options: peer_of(model, num_layers, **options)


def test_the_tokenizer_is_the_original(bundle, record_property):
    record_property("tokenizer_differences", open_bundle(bundle).manifest.tokenizer_differences)
    assert open_bundle(bundle).manifest.tokenizer_differences == 0


def test_lone_surrogates_are_dropped_as_in_the_original(bundle, model):
    from bert_score.utils import sent_encode

    original = AutoTokenizer.from_pretrained(model, use_fast=model.name in FAST)
    tokenizer = load_tokenizer(open_bundle(bundle))
    for text in ("a \ud800 cat", "\udfffthe", "do\udc80g ran\ud83d."):
        is_dropped = model.name.removesuffix("-cased") in (
            "bert",
            "xlm",
            "xlm-languages",
            "convbert",
            "electra",
            "flaubert",
        )
        expected = sent_encode(
            original, text if is_dropped else re.sub("[\ud800-\udfff]", "\ufffd", text)
        )
        [ids], _ = tokenizer([text])
        assert ids.tolist() == expected


@pytest.mark.parametrize("idf", [False, True])
def test_scores(bundle, model, peer, comparable, idf, record_property):
    candidates, references = comparable
    options = {"idf": True, "idf_sents": references} if idf else {}
    with BERTScorer(bundle, idf=idf) as scorer:
        ours = scorer.score(candidates, references)
    if model.name in FAST:
        options["use_fast_tokenizer"] = True
    theirs = peer(**options).score(candidates, references, batch_size=1)
    record_property("largest_difference", assert_same_scores(ours, theirs))


@pytest.mark.parametrize("model", ["modernbert", "qwen3-embedding", "t5"], indirect=True)
def test_idf_counts_empty_references_as_documents_without_ids(bundle, model, peer):
    candidates, references = (
        [*side, *more]
        for side, more in zip(zip(*ORDINARY_PAIRS[:8], strict=True), ("ab", ["", " "]), strict=True)
    )
    options = {"use_fast_tokenizer": True} if model.name in FAST else {}
    theirs = peer(idf=True, idf_sents=references, **options).score(
        candidates[:8], references[:8], batch_size=1
    )
    with BERTScorer(bundle, idf=True) as scorer:
        ours = scorer.score(candidates, references)
        encoded = scorer.score(candidates, scorer.encode(references))
    with BERTScorer(bundle, idf=count_documents(references, bundle)) as scorer:
        counted = scorer.score(candidates, references)
    for scores in (ours, encoded, counted):
        assert_same_scores([values[:8] for values in scores], theirs)


@pytest.mark.parametrize("idf", [False, True])
def test_scores_of_the_scoring_graph_are_those_of_the_scorer(
    bundle, token_ids, idf, record_property
):
    with BERTScorer(bundle, idf=idf) as scorer:
        expected = np.stack(scorer.score(*zip(*PAIRS, strict=True)))
    graph, manifest = PlainSession(bundle), read_manifest(bundle)
    options = {"pad_id": manifest.pad_id}
    if idf:
        options["weights"] = idf_of(without_stand_ins(token_ids[1], manifest), manifest.vocab_size)
    together = graph.run(*token_ids, padding=3, **options)
    alone = [
        graph.run([candidate], [reference], **options)
        for candidate, reference in zip(*token_ids, strict=True)
    ]
    for scores in (together, np.concatenate(alone, axis=1)):
        record_property("scoring_graph_difference", float(np.abs(scores - expected).max()))
        assert np.abs(scores - expected).max() <= 1e-6


# transformers, of such a text in T5
@pytest.mark.filterwarnings("ignore:This sequence already has </s>:UserWarning")
def test_scores_of_texts_that_are_cut_sooner(bundle, peer, comparable):
    theirs = peer(idf=True)
    theirs._tokenizer.model_max_length = 9
    theirs.compute_idf(comparable[1])
    with BERTScorer(bundle, idf=True, max_length=9) as scorer:
        ours = scorer.score(*comparable)
    assert_same_scores(ours, theirs.score(*comparable, batch_size=1))


@pytest.mark.families
@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_scores_in_reduced_precision(
    model, bundle, token_ids, precision, tmp_path, record_property
):
    manifest = read_manifest(bundle)
    if precision == "int8" and model.name in WITHOUT_PRODUCTS:
        with pytest.raises(UnsupportedFamilyError, match="int8"):
            lower(bundle, model, precision, tmp_path / "lowered")
        return
    lowered = lower(bundle, model, precision, tmp_path / "lowered")
    scores = []
    for folder in (bundle, lowered):
        with BERTScorer(folder) as scorer:
            scores.append(scorer.score(*zip(*PAIRS, strict=True)))
    difference = float(np.abs(scores[0].F - scores[1].F).max())
    record_property(precision, difference)
    assert 0 < difference <= GOLDEN_TOLERANCES[precision]
    by_graph = PlainSession(lowered).run(*token_ids, pad_id=manifest.pad_id)
    assert np.abs(by_graph - np.stack(scores[1])).max() <= REDUCED_TOLERANCE


def test_an_empty_text_scores_zero_and_one_word_does_not(bundle):
    with BERTScorer(bundle) as scorer:
        scores = np.stack(scorer.score(["", "a", "a"], ["a", "", "a"]))
    assert scores == pytest.approx(np.float32([[0, 0, 1]] * 3), abs=1e-5)


@pytest.mark.parametrize(
    "name",
    each_family(
        ["t5", "mbart", "megatron-bert", "roberta-prelayernorm", "xlm-roberta-xl"], quick={"t5"}
    ),
)
def test_each_layer_has_its_final_norm_as_in_bert_score(name, peer_of):
    """bert-score itself, with all layers, applies the norm to the last one alone."""
    small, texts = saved(name), [list(side) for side in zip(*ORDINARY_PAIRS[:8], strict=True)]
    bundle = exported("all-layers", small, all_layers=True)
    assert open_bundle(bundle).manifest.final_norm
    with BERTScorer(bundle, all_layers=True) as scorer:
        scores = np.stack(scorer.score(*texts))  # (3, layers, pairs)
    for num_layers in range(1, 4):
        theirs = peer_of(small, num_layers).score(*texts, batch_size=1)
        assert np.abs(scores[:, num_layers] - np.stack(theirs)).max() <= 1e-5


@pytest.mark.parametrize("name", each_family(WITH_FINAL_NORM, quick={"modernbert", "t5"}))
def test_layers_without_an_inner_norm_are_those_of_bert_score(name, peer_of):
    small, texts = saved(name), [list(side) for side in zip(*ORDINARY_PAIRS[:8], strict=True)]
    mode = "fast" if name in FAST else "slow"
    bundle = exported("all-layers", small, all_layers=True, inner_norm=False, tokenizer_mode=mode)
    assert open_bundle(bundle).manifest.final_norm is False
    theirs = peer_of(small, 3, all_layers=True, use_fast_tokenizer=mode == "fast").score(
        *texts, batch_size=1
    )
    with BERTScorer(bundle, all_layers=True) as scorer:
        assert np.abs(np.stack(scorer.score(*texts)) - np.stack(theirs)).max() <= 1e-5
