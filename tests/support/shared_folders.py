"""Folders that are written once for all the workers of a test run: models, and their bundles."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock


def write_once(factory: pytest.TempPathFactory, name: str, write: Callable[[Path], object]) -> Path:
    """Return the folder of this name, which the first worker that asks for it writes.

    Args:
        factory: pytest's maker of folders.
        name: the folder's name, one for each content.
        write: writes the content to a folder that does not exist yet.
    """
    base = factory.getbasetemp()  # a worker's own lies in that of the run
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            write(folder)
    return folder


def export_once(factory: pytest.TempPathFactory, name: str, model: Path, /, **options: Any) -> Path:
    """Return the bundle of a model's folder, exported with these options of `export_model`."""

    def export(folder: Path) -> None:
        from bertscore_onnx_export.pipeline import export_model  # imports PyTorch

        export_model(str(model), output=folder, **options)

    return write_once(factory, name, export)
