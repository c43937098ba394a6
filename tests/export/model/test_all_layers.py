"""Each layer of a model that returns all of them is what the model cut there returns."""

import pytest
import torch

from bertscore_onnx_export.model.families import family_of
from bertscore_onnx_export.model.load import load_config, load_cut, stack_hidden_states
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.verify.vectors import sample_ids, unit_vectors
from tests.export.model.test_families import NEEDS_LAYERS
from tests.support.tiny_models import LAYERS, SETTINGS, each_family, save_tiny_model


@pytest.mark.parametrize("name", each_family(SETTINGS))
def test_each_layer_is_what_the_model_cut_there_returns(name, tmp_path):
    save_tiny_model(*SETTINGS[name], tmp_path / name)
    source = Source(str(tmp_path / name))
    config = load_config(source)
    family = family_of(config)
    every = load_cut(source, config, family, LAYERS)
    stack_hidden_states(every, family)
    ids, mask = sample_ids(every, 9)
    layers = unit_vectors(every, ids, mask)  # (layers, batch, tokens, hidden)
    assert len(layers) == LAYERS + 1
    for num_layers in range(name in NEEDS_LAYERS, LAYERS + 1):
        cut = load_cut(source, config, family, num_layers)
        torch.testing.assert_close(
            layers[num_layers], unit_vectors(cut, ids, mask), atol=1e-6, rtol=0
        )
