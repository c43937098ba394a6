"""Bundles in the store and on the hub."""

import pytest

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.bundle.store import Variant, bundle_folder
from bertscore_onnx.errors import BundleError
from tests.support.manifests import changed_copy

VARIANT = "layer-2-slow-fp32"


@pytest.fixture
def place(home):
    """Where the tiny bundle goes in the store."""
    return bundle_folder("tiny-bert", Variant(2))


@pytest.fixture
def changed(tiny_bundle, tmp_path):
    """Return a function that makes a bundle like the tiny one but for some fields of the
    manifest.
    """

    def make(name="changed", **fields):
        return changed_copy(tiny_bundle, tmp_path / name, **fields)

    return make


@pytest.fixture
def bundles_in(home):
    """Return a function that lists the bundles of the store; each has to be whole."""

    def found():
        folders = sorted(manifest.parent for manifest in home.rglob("bertscore.json"))
        for folder in folders:
            try:
                open_bundle(folder, verify=True)
            except BundleError as error:
                pytest.fail(f"half a bundle: {error}")
        return folders

    return found
