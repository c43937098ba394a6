"""How many tokens a model takes, from its configuration alone."""

from types import SimpleNamespace

import pytest

from bertscore_onnx_export.model.positions import max_positions


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"model_type": "bert"}, 512),
        ({"model_type": "roberta", "pad_token_id": 1}, 510),
        ({"model_type": "xlm-roberta-xl", "pad_token_id": 1}, 510),
        ({"model_type": "roberta-prelayernorm", "pad_token_id": 1}, 510),
        ({"model_type": "roberta", "pad_token_id": None}, 510),
        ({"model_type": "roberta", "pad_token_id": "x"}, 510),
        ({"model_type": "t5"}, None),
        ({"model_type": "prophetnet"}, None),
        ({"model_type": "deberta"}, 512),
        ({"model_type": "deberta-v2", "position_biased_input": False}, None),
        ({"model_type": "led", "max_encoder_position_embeddings": 16384}, 16384),
        ({"model_type": "xlnet", "max_position_embeddings": -1}, None),
        ({"model_type": ["roberta"]}, 512),
    ],
)
def test_positions_are_those_that_the_model_counts(settings, expected):
    assert (
        max_positions(SimpleNamespace(**{"max_position_embeddings": 512, **settings})) == expected
    )
