"""Bundles whose files are links, as in the folders that other programs download into."""

import hashlib
import os
import shutil

import msgspec
import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.errors import BundleNotFoundError, DigestError
from bertscore_onnx.scoring.golden import difference_by_pairs
from tests.support.processes import forks, in_forked_child

PAIRS = (["the cat sat", "a red house"], ["the dog sat on the mat", "the house is red"])


@pytest.fixture
def bundle(tiny_bundle, tmp_path):
    """The tiny bundle."""
    return shutil.copytree(tiny_bundle, tmp_path / "bundle")


@pytest.fixture
def large(bundle):
    """The tiny bundle with its weights in a file of their own, as a large model has them."""
    import onnx

    graph = bundle / "model.onnx"
    onnx.save(onnx.load(graph), graph, save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    names = ["model.onnx", "model.onnx.data", "tokenizer.json"]
    write_manifest(
        bundle,
        msgspec.structs.replace(read_manifest(bundle), files={name: file_digest(bundle / name) for name in names}),
    )
    return bundle


def as_hub_cache(bundle, root):
    """Lay a bundle out as a hub's cache does: every file a link into one folder of blobs."""
    snapshot = root / "models--org--tiny" / "snapshots" / ("a" * 40) / "layer-2-slow-fp32"
    blobs = root / "models--org--tiny" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for file in bundle.iterdir():
        blob = blobs / file_digest(file)
        shutil.move(file, blob)
        (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))
    return snapshot


def as_dvc(bundle, root):
    """Lay a bundle out as DVC does with `cache.type symlink`: every file a link into a folder of its own."""
    workspace = root / "workspace" / "bundle"
    workspace.mkdir(parents=True)
    for file in bundle.iterdir():
        md5 = hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()
        cached = root / ".dvc" / "cache" / "files" / "md5" / md5[:2] / md5[2:]
        cached.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, cached)
        cached.chmod(0o444)
        (workspace / file.name).symlink_to(cached)
    return workspace


layouts = pytest.mark.parametrize("lay_out", [as_hub_cache, as_dvc])


def scores_of(path):
    with BERTScorer(path, device="cpu") as scorer:
        return np.stack(list(scorer.score(*PAIRS)))


@layouts
def test_a_scoring_graph_among_links_is_run(scoring_bundle, tmp_path, lay_out):
    linked = lay_out(shutil.copytree(scoring_bundle, tmp_path / "bundle"), tmp_path)
    assert difference_by_pairs(open_bundle(linked), device="cpu") <= 1e-6


@layouts
def test_a_bundle_of_links_scores(bundle, tmp_path, lay_out):
    expected = scores_of(bundle)
    assert np.array_equal(scores_of(lay_out(bundle, tmp_path)), expected)


@layouts
def test_weights_that_are_links_are_loaded(large, tmp_path, lay_out):
    expected = scores_of(large)
    folder = lay_out(large, tmp_path)
    assert (folder / "model.onnx.data").is_symlink()
    assert np.array_equal(scores_of(folder), expected)


@forks
def test_weights_that_are_links_are_loaded_in_a_forked_child(large, tmp_path):
    with BERTScorer(as_dvc(large, tmp_path), device="cpu") as scorer:
        expected = np.stack(list(scorer.score(*PAIRS)))
        assert np.array_equal(in_forked_child(lambda: np.stack(list(scorer.score(*PAIRS)))), expected)


@layouts
@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data", "tokenizer.json"])
def test_a_link_to_another_content_is_refused(large, tmp_path, lay_out, name):
    folder = lay_out(large, tmp_path)
    target = (folder / name).resolve()
    content = bytearray(target.read_bytes())
    content[len(content) // 2] ^= 1
    target.unlink()
    target.write_bytes(content)
    with pytest.raises(DigestError, match=name):
        open_bundle(folder)


@pytest.mark.parametrize("name", ["bertscore.json", "model.onnx", "model.onnx.data"])
def test_a_link_to_nothing_is_named(large, tmp_path, name):
    folder = as_hub_cache(large, tmp_path)
    (folder / name).resolve().unlink()
    with pytest.raises(BundleNotFoundError, match=name):
        open_bundle(folder)


def test_a_link_that_leads_elsewhere_after_opening_is_found(large, tmp_path):
    folder = as_hub_cache(large, tmp_path)
    opened = open_bundle(folder)
    opened.check_unchanged()
    (tmp_path / "other").write_bytes(b"other")
    (folder / "model.onnx.data").unlink()
    (folder / "model.onnx.data").symlink_to(tmp_path / "other")
    with pytest.raises(DigestError, match="was replaced"):
        opened.check_unchanged()


def test_two_links_to_one_file_are_read_once(bundle, tmp_path, home, monkeypatch):
    first = as_hub_cache(bundle, tmp_path)
    second = shutil.copytree(first, first.parent / "second", symlinks=True)
    open_bundle(first)
    read = []
    monkeypatch.setattr("bertscore_onnx.bundle.store.file_digest", read.append)
    assert open_bundle(second).path == second
    assert read == []


def test_a_bundle_that_is_a_link_itself_scores(large, tmp_path):
    expected = scores_of(large)
    (tmp_path / "link").symlink_to(large)
    assert np.array_equal(scores_of(tmp_path / "link"), expected)


def test_a_bundle_in_a_read_only_folder_scores(large):
    expected = scores_of(large)
    before = sorted(large.iterdir())
    for file in [*before, large]:
        file.chmod(0o555 if file.is_dir() else 0o444)
    try:
        assert np.array_equal(scores_of(large), expected)
        assert sorted(large.iterdir()) == before
    finally:
        large.chmod(0o755)
