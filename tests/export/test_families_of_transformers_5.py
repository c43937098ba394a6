"""Families that transformers 4.57 lacks, against the hidden states of transformers 5, in its environment."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.pipeline import export_model
from transformers import AutoModel

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.errors import ExportError
from bertscore_onnx.scoring.golden import GOLDEN_TOLERANCES
from tests.support.bundles import lower
from tests.support.parity import KNOWN_WARNINGS, ORDINARY_PAIRS
from tests.support.tiny_models import LAYERS, ONLY_IN_5, fast_byte_bpe, save_tiny_model

pytestmark = [
    pytest.mark.transformers5,
    pytest.mark.skipif(transformers.__version__.startswith("4."), reason="transformers 4 lacks these families"),
    *KNOWN_WARNINGS,
]

PAIRS = [list(side) for side in zip(*ORDINARY_PAIRS[:20], strict=True)]


@pytest.fixture(scope="module", params=[(name, seed) for name in ONLY_IN_5 for seed in range(3)], ids=str)
def model(request, tmp_path_factory):
    name, seed = request.param
    folder = tmp_path_factory.mktemp("models") / f"{name}-{seed}"
    return save(name, folder, seed)


def save(name, folder, seed=0):
    folder.mkdir()
    tokenizer = fast_byte_bpe(folder)
    model_type, settings = ONLY_IN_5[name]
    settings = {**settings, "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    tokenizer.model_max_length = 40
    tokenizer.save_pretrained(folder)
    save_tiny_model(model_type, settings, folder, seed)
    return folder


@pytest.fixture(scope="module")
def bundle(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles") / model.name
    return export_model(str(model), num_layers=2, tokenizer_mode="fast", scoring_graph=True, output=folder)


def hidden_states(folder, num_layers, ids, mask):
    """Return the unit vectors of a layer, with the norm that follows the last one."""
    whole = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        vectors = whole(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[num_layers]
        norm = family_of(whole.config).final_norm
        vectors = whole.get_submodule(norm)(vectors) if norm and num_layers < LAYERS else vectors
    return (vectors / vectors.norm(dim=-1, keepdim=True)).numpy()


def test_the_graph_gives_the_hidden_states_of_transformers(model, bundle):
    graph = onnxruntime.InferenceSession(bundle / "model.onnx")
    for lengths in ([1], [7], [9, 4], [40, 20]):
        ids = torch.randint(10, 120, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(1))
        mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
        values = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        [vectors] = graph.run(None, {node.name: values[node.name] for node in graph.get_inputs()})
        expected, real = hidden_states(model, 2, ids, mask), mask.bool().numpy()
        np.testing.assert_allclose(vectors[real], expected[real], rtol=0, atol=1e-5)


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_reduced_precision(model, bundle, precision, tmp_path):
    lowered = lower(bundle, model, precision, tmp_path / "lowered")
    scores = []
    for folder in (bundle, lowered):
        with BERTScorer(folder, device="cpu") as scorer:
            scores.append(scorer.score(*PAIRS))
    assert 0 < np.abs(scores[0].F - scores[1].F).max() <= GOLDEN_TOLERANCES[precision]


def test_scores_do_not_depend_on_the_batch_and_windows_cover_long_texts(bundle):
    with BERTScorer(bundle, device="cpu") as scorer:
        together = np.stack(scorer.score(*PAIRS))
        alone = np.concatenate(
            [np.stack(scorer.score([first], [second])) for first, second in zip(*PAIRS, strict=True)], 1
        )
    assert np.abs(together - alone).max() <= 2e-7
    text = "The river rose all night and burst its banks by dawn. " * 20
    with BERTScorer(bundle, device="cpu", long_text="window") as scorer:
        short = np.stack(scorer.score(*[side[:3] for side in PAIRS]))
        same, changed = scorer.score([text, text], [text, text + "Nobody was hurt."]).F
    assert np.abs(short - together[:, :3]).max() <= 2e-7
    assert same == pytest.approx(1, abs=1e-6)
    assert changed < 1 - 1e-6  # at an end that truncation would drop


def test_the_scoring_graph_is_verified(bundle):
    assert read_manifest(bundle).scoring_difference <= GOLDEN_TOLERANCES["fp32"]


@pytest.mark.parametrize("code", [{"auto_map": {"AutoModel": "own.OwnModel"}}])
def test_code_that_transformers_has_adopted_is_not_needed(tmp_path, code):
    model = save("eurobert", tmp_path / "eurobert")
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(settings | code))
    bundle = export_model(str(model), num_layers=1, tokenizer_mode="fast", output=tmp_path / "bundle")
    assert read_manifest(bundle).family == "eurobert"
    del settings["num_hidden_layers"]  # of which the model's own code would have another name
    (model / "config.json").write_text(json.dumps(settings | code))
    with pytest.raises(ExportError, match="comes with code of its own"):
        export_model(str(model), num_layers=1, tokenizer_mode="fast", output=tmp_path / "other")
