import os
import shutil
import sys

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tokenizers import Tokenizer

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import external_files, open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import FORMAT_VERSION
from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.errors import (
    BundleNotFoundError,
    DigestError,
    FormatVersionError,
    GraphError,
    ManifestError,
    UnsafePathError,
)
from bertscore_onnx.scoring.golden import difference_by_pairs
from bertscore_onnx.scoring.tokenization import load_tokenizer
from bertscore_onnx.text.spec import SentencePieceSpec
from tests.support.manifests import FORMATS, seal
from tests.support.processes import forks, in_forked_child
from tests.support.programs import WEB

pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
DEEP = b'{"format_version": 3, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def flip_a_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def move_weights(graph, name):
    onnx.save(onnx.load(graph), graph, save_as_external_data=True, location=name, size_threshold=0)


@pytest.mark.parametrize("content", [b"\xff\xfe", b'{"format_version": 3, "x": "\xff"}', DEEP])
def test_a_manifest_that_is_no_manifest_is_refused(bundle, content):
    (bundle / "bertscore.json").write_bytes(content)
    with pytest.raises(ManifestError, match="is not a manifest"):
        open_bundle(bundle)


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_bundle_of_an_earlier_format_is_refused(version):
    with pytest.raises(FormatVersionError, match=rf"version {version}; .* 3\. Export the model"):
        open_bundle(FORMATS / version)


def test_a_later_format_is_refused_first(bundle):
    (bundle / "bertscore.json").write_text('{"format_version": 4}')
    with pytest.raises(FormatVersionError, match=r"version 4; .*Upgrade bertscore-onnx"):
        open_bundle(bundle)


def test_a_bundle_of_this_format_is_read_as_long_as_the_number_stays():
    """If this fails, bundles that users have cannot be read any more: raise `FORMAT_VERSION`, and
    add a bundle of the new format.
    """
    bundle = open_bundle(FORMATS / str(FORMAT_VERSION))
    pair = bundle.manifest.golden[0]
    with BERTScorer(bundle.path, device="cpu") as scorer:
        [score] = scorer.score([pair.candidate], [pair.reference]).each()
    assert abs(score.F - pair.f1[0]) < 1e-5


def test_the_required_files_belong_to_the_number(bundle):
    manifest = read_manifest(bundle)
    pieces = SentencePieceSpec(id_runs=[(0, 0)], split_number_comma=False, split_punctuation=False)
    with_pieces = msgspec.structs.replace(manifest.tokenizer_spec, sentencepiece=pieces)
    specs = (None, manifest.tokenizer_spec, with_pieces)
    required = [
        sorted(msgspec.structs.replace(manifest, tokenizer_spec=spec).required_files)
        for spec in specs
    ]
    assert (FORMAT_VERSION, required) == (
        3,
        [
            ["model.onnx", "tokenizer.json"],
            ["model.onnx", "tokenizer.slow.json"],
            ["model.onnx", "spiece.model", "tokenizer.slow.json"],
        ],
    )


def test_the_page_in_a_browser_reads_the_same_format():
    script = (WEB / "bertscore.mjs").read_text(encoding="utf-8")
    assert f"const FORMAT_VERSION = {FORMAT_VERSION};" in script


@pytest.mark.skipif(sys.platform != "linux", reason="paths are bytes on Linux")
def test_a_path_that_is_no_utf8_is_named_as_the_fault():
    with pytest.raises(BundleNotFoundError, match="UTF-8"):
        open_bundle(os.fsdecode(b"b\xfcndel"))


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.slow.json"])
def test_a_changed_file_is_noticed(bundle, name):
    flip_a_bit(bundle / name)
    with pytest.raises(DigestError, match=name):
        open_bundle(bundle)


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "sub/file", "..", ".", "", "nul\0", "a\x1b[2J"]
)
def test_a_path_that_leaves_the_folder_is_refused(bundle, name):
    files = {**read_manifest(bundle).files, name: "0" * 64}
    with pytest.raises(UnsafePathError, match="of that folder"):
        open_bundle(seal(bundle, files=files))


def test_a_manifest_must_have_digests_of_graph_and_tokenizer(bundle):
    with pytest.raises(ManifestError, match=r"tokenizer\.slow\.json"):
        open_bundle(seal(bundle, files={"model.onnx": "0" * 64}))


@pytest.mark.parametrize("name", ["tiny_bundle", "fast_bundle"])
def test_other_programs_find_a_tokenizer_only_if_it_is_whole(request, name):
    bundle = open_bundle(request.getfixturevalue(name))
    file = bundle.path / "tokenizer.json"
    if bundle.manifest.tokenizer_mode == "slow":
        assert not file.exists()
        assert bundle.tokenizer_path == bundle.path / "tokenizer.slow.json"
        return
    assert bundle.tokenizer_path == file
    texts = ["the cat sat", "The CAT, sat!", "the [SEP] cat"]
    found = [ids.tolist() for ids in load_tokenizer(bundle)(texts)[0]]
    assert found == [
        encoding.ids for encoding in Tokenizer.from_file(str(file)).encode_batch(texts)
    ]


def test_a_manifest_beyond_reason_is_not_read(bundle, monkeypatch):
    size = (bundle / "bertscore.json").stat().st_size
    monkeypatch.setattr("bertscore_onnx.bundle.bundle.MAX_MANIFEST_BYTES", size)
    open_bundle(bundle)
    monkeypatch.setattr("bertscore_onnx.bundle.bundle.MAX_MANIFEST_BYTES", size - 1)
    with pytest.raises(ManifestError, match="more than the"):
        open_bundle(bundle)


def test_weights_outside_the_files_of_a_manifest_are_refused(bundle):
    move_weights(bundle / "model.onnx", "other.bin")
    with pytest.raises(UnsafePathError, match=r"other\.bin"):
        open_bundle(seal(bundle))
    named = {**read_manifest(bundle).files, "other.bin": file_digest(bundle / "other.bin")}
    assert open_bundle(seal(bundle, files=named)).manifest.files == named


PAIRS = (["the cat sat", "a red house"], ["the dog sat on the mat", "the house is red"])


@pytest.fixture
def large(bundle):
    """The tiny bundle with its weights in a file of their own, as a large model has them."""
    move_weights(bundle / "model.onnx", "model.onnx.data")
    names = ["model.onnx", "model.onnx.data", "tokenizer.slow.json"]
    return seal(bundle, files={name: file_digest(bundle / name) for name in names})


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


def as_one_link(bundle, root):
    (root / "link").symlink_to(bundle)
    return root / "link"


layouts = pytest.mark.parametrize("lay_out", [as_hub_cache, as_one_link])


def scores_of(path):
    with BERTScorer(path, device="cpu") as scorer:
        return np.stack(list(scorer.score(*PAIRS)))


@layouts
def test_a_scoring_graph_among_links_is_run(scoring_bundle, tmp_path, lay_out):
    linked = lay_out(shutil.copytree(scoring_bundle, tmp_path / "bundle"), tmp_path)
    assert difference_by_pairs(open_bundle(linked), device="cpu") <= 1e-6


@layouts
@pytest.mark.parametrize("kind", ["bundle", "large"])
def test_a_bundle_of_links_scores(request, tmp_path, lay_out, kind):
    plain = request.getfixturevalue(kind)
    expected = scores_of(plain)
    assert np.array_equal(scores_of(lay_out(plain, tmp_path)), expected)


@forks
def test_weights_that_are_links_are_loaded_in_a_forked_child(large, tmp_path):
    with BERTScorer(as_hub_cache(large, tmp_path), device="cpu") as scorer:
        expected = np.stack(list(scorer.score(*PAIRS)))
        assert np.array_equal(
            in_forked_child(lambda: np.stack(list(scorer.score(*PAIRS)))), expected
        )


@layouts
@pytest.mark.parametrize("name", ["model.onnx", "model.onnx.data", "tokenizer.slow.json"])
def test_a_link_to_another_content_is_refused(large, tmp_path, lay_out, name):
    folder = lay_out(large, tmp_path)
    target = (folder / name).resolve()
    target.chmod(0o644)
    flip_a_bit(target)
    with pytest.raises(DigestError, match=name):
        open_bundle(folder)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        os.mkdir,
        pytest.param(getattr(os, "mkfifo", None), marks=pipes),
        lambda path: path.symlink_to(path),
        lambda path: path.symlink_to("absent"),
    ],
    ids=["nothing", "folder", "pipe", "link to itself", "link to nothing"],
)
@pytest.mark.parametrize(
    "name", ["bertscore.json", "model.onnx", "model.onnx.data", "tokenizer.slow.json"]
)
def test_a_missing_file_or_one_that_is_not_regular_is_named(large, name, make):
    (large / name).unlink()
    make(large / name)
    with pytest.raises(BundleNotFoundError, match=name):
        open_bundle(large)


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


def tensor(location):
    made = TensorProto(
        name=f"w-{location}",
        data_type=TensorProto.FLOAT,
        dims=[1],
        data_location=TensorProto.EXTERNAL,
    )
    for key, value in {"offset": "0", "location": location, "length": "4"}.items():
        made.external_data.add(key=key, value=value)
    return made


def graph(nodes=(), initializers=()):
    return helper.make_graph(list(nodes), "graph", [], [], list(initializers))


def constant(location):
    return helper.make_node("Constant", [], ["c"], value=tensor(location))


def test_files_are_found_wherever_a_tensor_may_stand(tmp_path, tiny_bundle):
    branch = graph([constant("in-branch")], [tensor("of-branch")])
    node = helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)
    sparse = onnx.SparseTensorProto(
        values=tensor("sparse-values"), indices=tensor("sparse-indices")
    )
    nodes, initializers = [node, constant("../up")], [tensor("beside"), tensor("/root")]
    model = helper.make_model(graph(nodes, initializers))
    model.graph.sparse_initializer.append(sparse)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    in_graph = {
        "in-branch",
        "of-branch",
        "../up",
        "beside",
        "/root",
        "sparse-values",
        "sparse-indices",
    }
    assert external_files(tmp_path / "model.onnx") == in_graph
    assert external_files(tiny_bundle / "model.onnx") == set()


def field(number, content):
    size, length = len(content), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def nested(depth):
    content = b""
    for _ in range(depth):
        content = field(1, field(5, field(6, content)))  # a node, its attribute, the graph in it
    return field(7, content)


WITH_A_FILE = field(7, graph([], [tensor("secret")]).SerializeToString())


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\x3a\x05ab", b"\x3a", b"\xff" * 12, b"\x07", b"\x3a\x01\x80"),
        pytest.param(nested(5000), id="nested beyond reason"),
        pytest.param(
            b"\xba\x80\x80\x80\x10" + WITH_A_FILE[1:],
            id="field 7, and a 33rd bit that readers drop",
        ),
        *(b"\x02\x00", b"\x00\x00"),  # without the number of the field
    ],
)
def test_bytes_that_are_no_graph_are_refused(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(GraphError, match="is not an ONNX graph"):
        external_files(tmp_path / "model.onnx")


def test_a_tag_of_more_bytes_than_it_needs_hides_no_file(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"\xba\x80\x80\x00" + WITH_A_FILE[1:])
    assert external_files(tmp_path / "model.onnx") == {"secret"}


COMPILED = helper.make_node(
    "EPContext", ["x"], ["y"], domain="com.microsoft", embed_mode=0, ep_cache_context="x.bin"
)
LOOP = helper.make_node("Loop", ["", ""], ["y"], body=graph())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (helper.make_model(graph([COMPILED])), "EPContext"),
        (helper.make_model(graph([LOOP])), "type Loop, a loop, which may be endless"),
        (
            helper.make_model(
                graph([helper.make_node("If", ["x"], ["y"], then_branch=graph([LOOP]))])
            ),
            "type Loop",
        ),
        (
            helper.make_model(graph(), functions=[helper.make_function("d", "f", [], [], [], [])]),
            "functions of its own",
        ),
        (
            helper.make_model(graph([helper.make_node("Abs", ["x"], ["y"])] * 50_001)),
            "more than 50,000 nodes",
        ),
    ],
)
def test_a_graph_of_more_than_an_encoder_needs_is_refused(model, message, tmp_path):
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(GraphError, match=message):
        external_files(tmp_path / "model.onnx")
