import json
import os
import shutil

import msgspec
import pytest

from bertscore_onnx.bundle.bundle import open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.errors import (
    BundleError,
    BundleNotFoundError,
    DigestError,
    FormatVersionError,
    ManifestError,
    UnsafePathError,
)
from bertscore_onnx.text.spec import SentencePieceSpec

pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
DEEP = b'{"format_version": 2, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.fixture
def bundle(tiny_bundle, tmp_path):
    """A copy of the tiny bundle, to be damaged."""
    return shutil.copytree(tiny_bundle, tmp_path / "bundle")


@pytest.fixture
def rewrite(bundle):
    """Return a function that changes fields of the manifest and seals it again, as the program that wrote it would."""

    def change(**fields):
        write_manifest(bundle, msgspec.structs.replace(read_manifest(bundle), **fields))
        return bundle

    return change


def edit(bundle, change):
    """Change the manifest's JSON without sealing it."""
    file = bundle / "bertscore.json"
    content = json.loads(file.read_bytes())
    change(content)
    file.write_text(json.dumps(content))


def move_weights(graph, name):
    """Move the weights of a graph into a file."""
    import onnx

    onnx.save(onnx.load(graph), graph, save_as_external_data=True, location=name, size_threshold=0)


def test_a_sound_bundle_opens(bundle):
    opened = open_bundle(bundle, verify=True)
    assert (opened.manifest.model_id, opened.manifest.num_layers) == ("tiny-bert", 2)


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path):
    with pytest.raises(BundleNotFoundError, match="is no bundle"):
        open_bundle(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"model_id": "x"}', b'{"format_version": 2, "x": "\xff"}', DEEP]
)
def test_a_manifest_that_is_no_manifest_is_refused(bundle, content):
    (bundle / "bertscore.json").write_bytes(content)
    with pytest.raises(ManifestError, match="is not a manifest"):
        open_bundle(bundle)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hidden_size", 0),
        ("hidden_size", "32"),
        ("golden", None),
        ("zero_weight_ids", [-1]),
        ("empty_ids", []),
        ("tokenizer_spec", {"normalizers": [{"type": "magic"}]}),
    ],
)
def test_a_misstated_field_is_named(bundle, field, value):
    edit(bundle, lambda manifest: manifest.update({field: value}))
    with pytest.raises(ManifestError, match=field):
        open_bundle(bundle)


def test_a_missing_field_is_named(bundle):
    edit(bundle, lambda manifest: manifest.pop("pad_id"))
    with pytest.raises(ManifestError, match="pad_id"):
        open_bundle(bundle)


@pytest.mark.parametrize(("version", "advice"), [(3, "Upgrade bertscore-onnx"), (1, "Export the model again")])
def test_another_format_version_is_refused_whatever_else_it_says(bundle, version, advice):
    (bundle / "bertscore.json").write_text(json.dumps({"format_version": version}))
    with pytest.raises(FormatVersionError, match=advice):
        open_bundle(bundle)


def test_a_changed_manifest_is_noticed(bundle):
    edit(bundle, lambda manifest: manifest.update(zero_weight_ids=[]))
    with pytest.raises(DigestError, match="changed after it was exported"):
        open_bundle(bundle)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_changed_file_is_noticed(bundle, name):
    file = bundle / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(DigestError, match=name):
        open_bundle(bundle)


def test_a_missing_file_is_named(bundle):
    (bundle / "model.onnx").unlink()
    with pytest.raises(BundleNotFoundError, match=r"lacks its file model\.onnx"):
        open_bundle(bundle)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "sub/file", "..", ".", "", "nul\0", "a\x1b[2J"])
def test_a_path_that_leaves_the_folder_is_refused(rewrite, name):
    files = {**read_manifest(rewrite()).files, name: "0" * 64}
    with pytest.raises(UnsafePathError, match="not a file of that folder"):
        open_bundle(rewrite(files=files))


def test_a_link_to_itself_is_refused(bundle):
    (bundle / "model.onnx").unlink()
    (bundle / "model.onnx").symlink_to(bundle / "model.onnx")
    with pytest.raises(BundleNotFoundError, match=r"lacks its file model\.onnx"):
        open_bundle(bundle)


def test_a_manifest_must_vouch_for_the_graph_and_the_tokenizer(rewrite):
    with pytest.raises(ManifestError, match=r"has no digest for tokenizer\.json"):
        open_bundle(rewrite(files={"model.onnx": "0" * 64}))


def test_a_manifest_must_vouch_for_a_sentencepiece_model(bundle, rewrite):
    pieces = SentencePieceSpec(id_runs=[(0, 0)], split_number_comma=False, split_punctuation=False)
    spec = msgspec.structs.replace(read_manifest(bundle).tokenizer_spec, sentencepiece=pieces)
    with pytest.raises(ManifestError, match=r"has no digest for spiece\.model"):
        open_bundle(rewrite(tokenizer_spec=spec))


def test_a_manifest_beyond_reason_is_not_read(bundle, monkeypatch):
    size = (bundle / "bertscore.json").stat().st_size
    monkeypatch.setattr("bertscore_onnx.bundle.bundle.MAX_MANIFEST_BYTES", size)
    open_bundle(bundle)
    monkeypatch.setattr("bertscore_onnx.bundle.bundle.MAX_MANIFEST_BYTES", size - 1)
    with pytest.raises(ManifestError, match="more than the"):
        open_bundle(bundle)


@pytest.mark.parametrize(
    "make", [os.mkdir, pytest.param(getattr(os, "mkfifo", None), marks=pipes)], ids=["dir", "fifo"]
)
@pytest.mark.parametrize("name", ["bertscore.json", "model.onnx", "tokenizer.json"])
def test_what_is_no_regular_file_is_not_opened(bundle, name, make):
    (bundle / name).unlink()
    make(bundle / name)
    with pytest.raises(BundleNotFoundError, match=name):
        open_bundle(bundle)


def test_weights_in_a_file_that_the_manifest_does_not_name_are_refused(bundle, rewrite):
    move_weights(bundle / "model.onnx", "other.bin")
    files = {**read_manifest(bundle).files, "model.onnx": file_digest(bundle / "model.onnx")}
    with pytest.raises(UnsafePathError, match=r"takes weights from 'other\.bin'"):
        open_bundle(rewrite(files=files))
    named = {**files, "other.bin": file_digest(bundle / "other.bin")}
    assert open_bundle(rewrite(files=named)).manifest.files == named


def test_every_refusal_is_a_bundle_error(tmp_path):
    with pytest.raises(BundleError):
        open_bundle(tmp_path / "absent")
