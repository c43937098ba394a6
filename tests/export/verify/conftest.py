"""Tiny models of any architecture, loaded as the export loads them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bertscore_onnx_export.model.families import Family, family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.source import Source
from transformers import PreTrainedModel

from tests.support.tiny_models import save_tiny_model

Loaded = tuple[PreTrainedModel, Any, Family]
Load = Callable[..., Loaded]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Draws a tiny model and loads its first layer."""

    def loaded(model_type: str, settings: dict[str, Any]) -> Loaded:
        save_tiny_model(model_type, settings, tmp_path / model_type)
        source = Source(str(tmp_path / model_type))
        config = load_config(source)
        family = family_of(config)
        return load_cut(source, config, family, 1), config, family

    return loaded
