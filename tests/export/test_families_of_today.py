"""Encoders of today, drawn with several seeds, against the hidden states of transformers and
bert-score's arithmetic.

Those that transformers 4.57 lacks are tested with transformers 5, in its environment. The others
have one model each in the tests of parity with bert-score itself.
"""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from transformers import AutoModel

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.errors import ExportError
from bertscore_onnx.scoring.golden import GOLDEN_TOLERANCES
from bertscore_onnx.scoring.tokenization import load_tokenizer
from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.pipeline import export_model
from tests.support.bundles import lower
from tests.support.parity import (
    EDGE_CASE_PAIRS,
    KNOWN_WARNINGS,
    ORDINARY_PAIRS,
    TOLERANCE,
    PlainSession,
    assert_same_scores,
    idf_of,
    without_stand_ins,
)
from tests.support.tiny_models import (
    FAST,
    IN_TRANSFORMERS_5,
    ONLY_IN_5,
    POSITIONS,
    save_model_and_tokenizer,
)

pytestmark = KNOWN_WARNINGS

PAIRS = [list(side) for side in zip(*EDGE_CASE_PAIRS, *ORDINARY_PAIRS[:10], strict=True)]

IN_BOTH = (
    *(
        "data2vec",
        "embeddinggemma",
        "ernie",
        "flaubert",
        "gemma3",
        "ibert",
        "luke",
        "megatron-bert",
        "mmbert",
    ),
    *(
        "mobilebert",
        "modernbert",
        "nystromformer",
        "qwen3",
        "qwen3-embedding",
        "rembert",
        "roberta-prelayernorm",
    ),
    *("roc-bert", "roformer", "xlm-roberta-xl", "xmod"),
)


def drawn(names, seeds, marks):
    """Return models as parameters of the fixture `model`."""
    return [
        pytest.param((name, seed), id=f"{name}-seed{seed}", marks=marks)
        for name in names
        for seed in seeds
    ]


MODELS_OF_5 = drawn(ONLY_IN_5, range(3), IN_TRANSFORMERS_5)
# the seed of the parity tests is 0
MODELS = [*drawn(IN_BOTH, (1, 2), pytest.mark.families), *MODELS_OF_5]


@pytest.fixture(scope="module", params=MODELS)
def model(request, tmp_path_factory):
    name, seed = request.param
    return save_model_and_tokenizer(
        name, tmp_path_factory.mktemp("models") / f"{name}-{seed}", seed=seed
    )


@pytest.fixture(scope="module")
def bundle(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles") / model.name
    mode = "fast" if model.name.rpartition("-")[0] in FAST else "slow"
    return export_model(
        str(model), num_layers=2, tokenizer_mode=mode, scoring_graph=True, output=folder
    )


@pytest.fixture(scope="module")
def hidden_states(model):
    """Return a function that gives the unit vectors of layer 2, not the last, with the norm that
    follows the last.
    """
    whole = AutoModel.from_pretrained(model, dtype=torch.float32).eval()
    norm = family_of(whole.config).final_norm

    def vectors_of(ids, mask):
        with torch.no_grad():
            vectors = whole(
                input_ids=ids, attention_mask=mask, output_hidden_states=True
            ).hidden_states[2]
            vectors = whole.get_submodule(norm)(vectors) if norm else vectors
            # of EmbeddingGemma 2
            vectors = getattr(whole, "embedding_projection", torch.nn.Identity())(vectors)
        return (vectors / vectors.norm(dim=-1, keepdim=True)).numpy()

    return vectors_of


def test_the_graph_gives_the_hidden_states_of_transformers(bundle, hidden_states):
    graph = onnxruntime.InferenceSession(bundle / "model.onnx")
    for lengths in ([1], [7], [9, 4], [POSITIONS, POSITIONS // 2]):
        ids = torch.randint(
            10, 120, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(1)
        )
        mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
        values = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        [vectors] = graph.run(None, {node.name: values[node.name] for node in graph.get_inputs()})
        real = mask.bool().numpy()
        np.testing.assert_allclose(vectors[real], hidden_states(ids, mask)[real], rtol=0, atol=1e-5)


@pytest.mark.parametrize("idf", [False, True])
def test_scores(bundle, hidden_states, idf, record_property):
    """Compute them as bert-score does, pair by pair, of transformers' vectors (Zhang et al., ICLR
    2020, section 3).
    """
    manifest = open_bundle(bundle).manifest
    record_property("tokenizer_differences", manifest.tokenizer_differences)
    tokenizer = load_tokenizer(open_bundle(bundle))
    ids = [[tokens.tolist() for tokens in tokenizer(side)[0]] for side in PAIRS]
    documents = without_stand_ins(ids[1], manifest)
    weights = (
        idf_of(documents, manifest.vocab_size) if idf else np.ones(manifest.vocab_size, np.float32)
    )
    if not idf:
        weights[manifest.zero_weight_ids] = 0
    expected = np.zeros((3, len(ids[0])))
    for number, pair in enumerate(zip(*ids, strict=True)):
        if any({*tokens} <= {*manifest.special_ids} for tokens in pair):
            continue  # an empty text
        vectors = [
            hidden_states(rows := torch.tensor([tokens]), torch.ones_like(rows))[0]
            for tokens in pair
        ]
        similarity = vectors[0] @ vectors[1].T
        nearest = similarity.max(1), similarity.max(0)
        p, r = (
            np.average(most, weights=weights[tokens])
            for most, tokens in zip(nearest, pair, strict=True)
        )
        expected[:, number] = p, r, 2 * p * r / (p + r)
    with BERTScorer(bundle, idf=idf, device="cpu") as scorer:
        ours = np.stack(scorer.score(*PAIRS))
    record_property("largest_difference", float(np.abs(ours - expected).max()))
    np.testing.assert_allclose(ours, expected, rtol=0, atol=TOLERANCE)
    by_graph = PlainSession(bundle).run(*ids, weights=weights, pad_id=manifest.pad_id)
    np.testing.assert_allclose(by_graph, ours, rtol=0, atol=1e-6)


@pytest.mark.parametrize("model", MODELS_OF_5, indirect=True)
def test_scores_are_those_of_bert_score(model, bundle):
    import bert_score

    pairs = [list(side) for side in zip(*ORDINARY_PAIRS, strict=True)]
    theirs = bert_score.BERTScorer(str(model), num_layers=2, device="cpu").score(
        *pairs, batch_size=1
    )
    with BERTScorer(bundle, device="cpu") as scorer:
        assert_same_scores(scorer.score(*pairs), theirs)


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_reduced_precision(model, bundle, precision, tmp_path, record_property):
    lowered = lower(bundle, model, precision, tmp_path / "lowered")
    scores = []
    for folder in (bundle, lowered):
        with BERTScorer(folder, device="cpu") as scorer:
            scores.append(scorer.score(*PAIRS))
    # where either is negative, F may move by any multiple of it
    usual = (scores[0].P > 0) & (scores[0].R > 0)
    assert usual.sum() >= 30
    difference = float(np.abs(scores[0].F - scores[1].F)[usual].max())
    record_property(precision, difference)
    assert 0 < difference <= GOLDEN_TOLERANCES[precision]


def test_scores_are_batch_invariant_and_windows_cover_texts(bundle):
    pairs = [side[-10:] for side in PAIRS]
    with BERTScorer(bundle, device="cpu") as scorer:
        together = np.stack(scorer.score(*pairs))
        alone = np.concatenate(
            [
                np.stack(scorer.score([first], [second]))
                for first, second in zip(*pairs, strict=True)
            ],
            1,
        )
    assert np.abs(together - alone).max() <= 2e-7
    text = "The river rose all night and burst its banks by dawn. " * 20
    with BERTScorer(bundle, device="cpu", long_text="window") as scorer:
        short = np.stack(scorer.score(*[side[:3] for side in pairs]))
        same, changed = scorer.score([text, text], [text, text + "Nobody was hurt."]).F
    assert np.abs(short - together[:, :3]).max() <= 2e-7
    assert same == pytest.approx(1, abs=1e-6)
    assert changed < 1 - 1e-6  # at an end that truncation would drop


@pytest.mark.transformers5
@pytest.mark.skipif(IN_TRANSFORMERS_5[1].args[0], reason="transformers 4 has not adopted it")
def test_code_that_transformers_has_adopted_is_not_needed(tmp_path):
    code = {"auto_map": {"AutoModel": "own.OwnModel"}}
    model = save_model_and_tokenizer("eurobert", tmp_path / "eurobert")
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(settings | code))
    bundle = export_model(
        str(model), num_layers=1, tokenizer_mode="fast", output=tmp_path / "bundle"
    )
    assert read_manifest(bundle).family == "eurobert"
    del settings["num_hidden_layers"]  # of which the model's own code would have another name
    (model / "config.json").write_text(json.dumps(settings | code))
    with pytest.raises(ExportError, match="code of its own"):
        export_model(str(model), num_layers=1, tokenizer_mode="fast", output=tmp_path / "other")
