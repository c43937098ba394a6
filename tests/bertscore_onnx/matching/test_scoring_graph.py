import shutil
import threading
from dataclasses import replace

import numpy as np
import onnx
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.encoding.providers import CPU
from bertscore_onnx.encoding.session import OnnxSession
from bertscore_onnx.errors import (
    ClosedError,
    EncodingError,
    GraphError,
    IdfError,
    TokenizerError,
    UnsafePathError,
)
from bertscore_onnx.matching.scoring_graph import ScoringGraph
from bertscore_onnx.matching.weights import idf_of_counts, idf_of_mapping, uniform
from bertscore_onnx.scores import join_scores
from bertscore_onnx.scoring.chunks import TextStats
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx.scoring.pipeline import Pipeline
from harness.gpu import CHOICE, like_cuda
from tests.support.bundles import exported
from tests.support.manifests import seal
from tests.support.processes import forks, in_forked_child
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL

LONG = ["the cat sat on the mat. " * 9, "a dog"]
"""A text of more tokens than the model has positions, and a short one."""


def by_pairs(bundle, **options):
    return Pipeline(open_bundle(bundle), device="cpu", by_pairs=True, **options)


def by_texts(bundle, **options):
    return Pipeline(open_bundle(bundle), device="cpu", **options)


def weights_of(pipeline, references, idf):
    if not idf:
        return uniform(pipeline.manifest)
    return idf_of_counts(pipeline.count_documents([references]), pipeline.manifest, pipeline.tokenization)


def scored(pipeline, candidates, references, *, idf=False, **options):
    """Score by a pipeline; return P, R and F, (3, layers, candidates), and what it counted."""
    pairs = collect_pairs(candidates, references)
    with pipeline:
        weights = weights_of(pipeline, pairs.references, idf)
        chunks = [*pipeline.score(pairs.slices(), weights, **options)]
    scores = np.stack([*join_scores([scores for scores, _ in chunks], len(pipeline.manifest.layers))])
    return scores, sum((counts for _, counts in chunks), TextStats())


def assert_same(one, other):
    (scores, counts), (expected, expected_counts) = one, other
    assert np.abs(scores - expected).max() <= 1e-6
    assert counts == expected_counts


@pytest.fixture
def copied(scoring_bundle, tmp_path):
    return shutil.copytree(scoring_bundle, tmp_path / "bundle")


@pytest.fixture
def changed(copied):
    """Return a function that gives a copy of the bundle other weights, named as in PyTorch."""

    def change(name, values):
        for file in ("model.onnx", "scoring.onnx"):
            model = onnx.load(copied / file)
            [tensor] = [tensor for tensor in model.graph.initializer if tensor.name == name]
            array = onnx.numpy_helper.to_array(tensor).copy()
            values(array)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, name))
            onnx.save(model, copied / file)
        return seal(copied)

    return change


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("options", [{}, {"max_items": 1}])
def test_pairs_score_as_by_the_encoder_and_count_alike(scoring_bundle, idf, options):
    candidates = [*CANDIDATES, "", "the", "[SEP]", "a cat", LONG[0]] * 5
    references = [*REFERENCES, "the dog", "", "a", "[SEP]", LONG[1]] * 5
    found = scored(by_pairs(scoring_bundle), candidates, references, idf=idf, **options)
    assert_same(found, scored(by_texts(scoring_bundle), candidates, references, idf=idf))
    assert (found[1].empty, found[1].truncated) == (4 * 5, 1)


@pytest.mark.parametrize(
    ("candidates", "references", "options"),
    [
        pytest.param(CANDIDATES[:1], REFERENCES[:1], {"nthreads": 1}, id="a pair alone"),
        pytest.param(CANDIDATES[:1], REFERENCES[:1], {"nthreads": 3}, id="a pair alone on threads"),
        pytest.param(CANDIDATES, SEVERAL, {}, id="several references"),
        pytest.param(LONG, LONG[::-1], {"long_text": "window"}, id="windows"),
    ],
)
def test_pairs_of_every_kind_score_as_by_the_encoder(scoring_bundle, candidates, references, options):
    found = scored(by_pairs(scoring_bundle, **options), candidates, references)
    assert_same(found, scored(by_texts(scoring_bundle, **options), candidates, references))


def test_texts_without_weight_score_0_and_are_counted(scoring_bundle):
    idf = dict.fromkeys(range(30), 1.0) | {5: 0.0}  # of "the"
    pairs = collect_pairs(["the the", "the cat"], ["a cat", "a cat"])
    for pipeline in (by_pairs(scoring_bundle), by_texts(scoring_bundle)):
        with pipeline:
            weights = idf_of_mapping(idf | {2: 0.0, 3: 0.0}, pipeline.manifest)
            [(scores, counts)] = pipeline.score(pairs.slices(), weights)
        assert counts.zero_weight == 1
        assert scores.F[0, 0] == 0 < scores.F[0, 1]


def test_every_layer_is_scored(tiny_model):
    bundle = exported("all-layers-scoring", tiny_model, all_layers=True, scoring_graph=True)
    found = scored(by_pairs(bundle), CANDIDATES, REFERENCES, idf=True)
    assert found[0].shape == (3, 4, 3)
    assert_same(found, scored(by_texts(bundle), CANDIDATES, REFERENCES, idf=True))


def test_texts_that_come_encoded_are_matched_as_they_are(scoring_bundle):
    with BERTScorer(scoring_bundle, device="cpu") as scorer:
        encoded = scorer.encode(REFERENCES)
    found = scored(by_pairs(scoring_bundle), CANDIDATES, encoded)
    assert_same(found, scored(by_texts(scoring_bundle), CANDIDATES, REFERENCES))


def test_every_candidate_is_advanced_by(scoring_bundle):
    steps = []
    scored(by_pairs(scoring_bundle), CANDIDATES * 20, SEVERAL * 20, advance=steps.append)
    assert len(steps) > 1
    assert sum(steps) == pytest.approx(60)


def test_a_bundle_without_a_scoring_graph_is_refused(tiny_bundle):
    with pytest.raises(GraphError, match="scoring graph"):
        by_pairs(tiny_bundle)


def test_a_token_that_the_table_does_not_weigh_is_an_error(scoring_bundle):
    with by_pairs(scoring_bundle) as pipeline:
        weights = idf_of_mapping({2: 0.0, 3: 0.0, 5: 1.0}, pipeline.manifest)
        pairs = collect_pairs(["the"], ["a cat"])
        with pytest.raises(IdfError, match="2 token ids"):
            [*pipeline.score(pairs.slices(), weights)]


def test_an_id_that_the_model_has_not_is_an_error(scoring_bundle):
    graph, one = ScoringGraph(open_bundle(scoring_bundle), device="cpu"), np.zeros(1, dtype=np.int64)
    with pytest.raises(TokenizerError, match="99"):
        graph.match([np.array([2, 99, 3])], one, one, uniform(read_manifest(scoring_bundle)))


@pytest.mark.parametrize("way", [by_pairs, by_texts])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_give_no_finite_vectors_are_an_error(changed, way, value):
    bundle = changed("embeddings.position_embeddings.weight", lambda array: array.fill(value))
    with pytest.raises(EncodingError, match="vectors"):
        scored(way(bundle), CANDIDATES, REFERENCES)


def test_a_damaged_embedding_harms_only_texts_with_it(changed):
    def poison(array):
        array[5] = np.nan  # of "the"

    bundle = changed("embeddings.word_embeddings.weight", poison)
    found = scored(by_pairs(bundle), ["a dog ran"], ["a cat"])
    assert_same(found, scored(by_texts(bundle), ["a dog ran"], ["a cat"]))
    for way in (by_pairs, by_texts):
        with pytest.raises(EncodingError, match="vectors"):
            scored(way(bundle), ["a dog ran", "the dog"], ["a cat", "a cat"])


def test_a_closed_pipeline_says_so(scoring_bundle):
    pipeline = by_pairs(scoring_bundle)
    scored(pipeline, CANDIDATES, REFERENCES)
    with pytest.raises(ClosedError, match="was closed"):
        [*pipeline.score(collect_pairs(CANDIDATES, REFERENCES).slices(), uniform(pipeline.manifest))]


def test_a_caller_that_went_away_ends_the_work(scoring_bundle):
    graph, is_stopped, steps = ScoringGraph(open_bundle(scoring_bundle), device="cpu"), threading.Event(), []
    is_stopped.set()
    rows = np.zeros(500, dtype=np.int64)
    with pytest.raises(ClosedError, match="went away"):
        graph.match(
            [np.array([2, 5, 3])],
            rows,
            rows,
            uniform(read_manifest(scoring_bundle)),
            max_items=1,
            is_stopped=is_stopped,
            advance=steps.append,
        )
    assert steps == [1]


@forks
def test_a_forked_child_scores_by_pairs(scoring_bundle):
    with by_pairs(scoring_bundle) as pipeline:
        pairs, weights = collect_pairs(CANDIDATES, REFERENCES), uniform(pipeline.manifest)
        [(expected, _)] = pipeline.score(pairs.slices(), weights)

        def score():
            [(scores, _)] = pipeline.score(pairs.slices(), weights)
            return scores.F.tolist()

        assert in_forked_child(score) == expected.F.tolist()


def test_openvino_runs_it(scoring_bundle, opened_as_openvino):
    pipeline = Pipeline(open_bundle(scoring_bundle), device="openvino", by_pairs=True)
    found = scored(pipeline, CANDIDATES, REFERENCES)
    assert len(opened_as_openvino) == 1  # no vectors were needed
    assert_same(found, scored(by_texts(scoring_bundle), CANDIDATES, REFERENCES))


@pytest.fixture
def on_a_gpu(monkeypatch):
    """Open sessions on the CPU with the limits of CUDA, but runs of 128 tokens; return the shapes of their runs."""
    provider, shapes = like_cuda(batch_values=32 * 128, min_batch_tokens=1), []
    original = OnnxSession.run

    def run(session, batch, *arguments):
        shapes.append([values.shape for values in batch.values()])
        original(session, batch, *arguments)

    monkeypatch.setattr(CHOICE, lambda device: [provider])
    monkeypatch.setattr(OnnxSession, "run", run)
    return shapes


@pytest.mark.parametrize("idf", [False, True])
def test_on_a_gpu_pairs_have_few_shapes_and_score_the_same(scoring_bundle, on_a_gpu, idf):
    candidates, references = [*CANDIDATES, "", "the", LONG[0]] * 5, [*REFERENCES, "the dog", "", LONG[1]] * 5
    pipeline = Pipeline(open_bundle(scoring_bundle), by_pairs=True)
    found = scored(pipeline, candidates, references, idf=idf)
    assert all(len({*shapes}) == 1 for shapes in on_a_gpu)  # both sides, ids and masks
    runs = {shapes[0] for shapes in on_a_gpu}
    assert all(pairs * tokens <= 64 for pairs, tokens in runs)
    on_a_gpu.clear()
    with Pipeline(open_bundle(scoring_bundle), by_pairs=True) as warm:
        warm.warm_up()
    assert runs <= {shapes[0] for shapes in on_a_gpu}
    assert_same(found, scored(by_texts(scoring_bundle), candidates, references, idf=idf))


def test_vectors_are_encoded_on_the_same_device_if_needed(scoring_bundle, monkeypatch):
    devices = []

    def choose(device):
        devices.append(device)
        return [replace(CPU, device="cuda", index=1)]

    monkeypatch.setattr(CHOICE, choose)
    with Pipeline(open_bundle(scoring_bundle), by_pairs=True) as pipeline:
        scored_by_graph = [*pipeline.score(collect_pairs(["a cat"], ["the cat"]).slices(), uniform(pipeline.manifest))]
        assert (len(scored_by_graph), devices) == (1, [None])
        pipeline.encode([collect_pairs(["a cat"], ["the cat"]).candidates])
        assert devices == [None, "cuda:1"]


def test_a_closed_pipeline_loads_no_model(scoring_bundle):
    pipeline = by_pairs(scoring_bundle)
    pipeline.close()
    with pytest.raises(ClosedError):
        pipeline.encoder.release_memory()


def test_a_scoring_graph_with_outside_weights_is_not_loaded(copied):
    graph = onnx.load(copied / "scoring.onnx", load_external_data=False)
    for tensor in graph.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../outside"
    onnx.save(graph, copied / "scoring.onnx")
    seal(copied)
    with pytest.raises(UnsafePathError, match="outside"):
        open_bundle(copied)


def test_a_scoring_graph_of_other_outputs_is_refused(copied):
    graph = onnx.load(copied / "scoring.onnx", load_external_data=False)
    del graph.graph.output[2]
    onnx.save(graph, copied / "scoring.onnx")
    seal(copied)
    with pytest.raises(GraphError, match="not 'f1'"):
        by_pairs(copied)
