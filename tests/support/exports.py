"""Bundles that are exported once for all the workers of a test run."""

import os
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock


def export_once(factory: pytest.TempPathFactory, name: str, model: Path, **options: Any) -> Path:
    """Return the bundle of a model, which the first worker that asks for this name exports.

    Args:
        factory: pytest's maker of folders.
        name: the bundle's name, one for each model and options.
        model: the folder of the model.
        options: those of `export_model`.
    """
    from bertscore_onnx_export.pipeline import export_model  # imports PyTorch

    folder = folder_of_the_run(factory) / name
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            export_model(str(model), output=folder, **options)
    return folder


def folder_of_the_run(factory: pytest.TempPathFactory) -> Path:
    """Return the temporary folder that all workers share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
