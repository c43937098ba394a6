import onnx
import pytest
from onnx import TensorProto, helper

from bertscore_onnx.bundle.bundle import external_files
from bertscore_onnx.errors import GraphError


def tensor(location):
    made = TensorProto(name=f"w-{location}", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    for key, value in {"offset": "0", "location": location, "length": "4"}.items():
        made.external_data.add(key=key, value=value)
    return made


def graph(nodes=(), initializers=()):
    return helper.make_graph(list(nodes), "graph", [], [], list(initializers))


def constant(location):
    return helper.make_node("Constant", [], ["c"], value=tensor(location))


def test_files_are_found_wherever_a_tensor_may_stand(tmp_path):
    branch = graph([constant("in-branch")], [tensor("of-branch")])
    node = helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch)
    function = helper.make_function("d", "f", [], [], [constant("in-function")], [])
    sparse = onnx.SparseTensorProto(values=tensor("sparse-values"), indices=tensor("sparse-indices"))
    model = helper.make_model(
        graph([node, constant("../up")], [tensor("beside"), tensor("/root")]), functions=[function]
    )
    model.graph.sparse_initializer.append(sparse)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert external_files(tmp_path / "model.onnx") == {
        "in-branch",
        "of-branch",
        "in-function",
        "../up",
        "beside",
        "/root",
        "sparse-values",
        "sparse-indices",
    }


def test_a_graph_that_holds_its_weights_names_no_files(tiny_bundle):
    assert external_files(tiny_bundle / "model.onnx") == set()


@pytest.mark.parametrize("content", [b"", b"\x3a\x05ab", b"\x3a", b"\xff" * 12, b"\x07", b"\x3a\x01\x80"])
def test_bytes_that_are_no_graph_are_refused(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(GraphError, match="is not an ONNX graph"):
        external_files(tmp_path / "model.onnx")


def test_a_graph_nested_beyond_reason_is_refused(tmp_path):
    content = b""
    for _ in range(5000):
        content = field(1, field(5, field(6, content)))  # a node, its attribute, the graph in it
    (tmp_path / "model.onnx").write_bytes(field(7, content))
    with pytest.raises(GraphError, match="is not an ONNX graph"):
        external_files(tmp_path / "model.onnx")


def field(number, content):
    size, length = len(content), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def test_a_tag_whose_last_bits_a_reader_drops_hides_no_file(tmp_path):
    whole = field(7, graph([], [tensor("secret")]).SerializeToString())
    (tmp_path / "model.onnx").write_bytes(b"\xba\x80\x80\x80\x10" + whole[1:])  # field 7, and the 33rd bit
    with pytest.raises(GraphError, match="is not an ONNX graph"):
        external_files(tmp_path / "model.onnx")


def test_a_tag_of_more_bytes_than_it_needs_hides_no_file(tmp_path):
    whole = field(7, graph([], [tensor("secret")]).SerializeToString())
    (tmp_path / "model.onnx").write_bytes(b"\xba\x80\x80\x00" + whole[1:])
    assert external_files(tmp_path / "model.onnx") == {"secret"}


@pytest.mark.parametrize("content", [b"\x02\x00", b"\x00\x00"])
def test_a_field_without_a_number_is_refused(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(GraphError, match="is not an ONNX graph"):
        external_files(tmp_path / "model.onnx")


def test_a_node_that_takes_a_compiled_model_from_a_file_is_refused(tmp_path):
    node = helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", embed_mode=0, ep_cache_context="x.bin")
    (tmp_path / "model.onnx").write_bytes(helper.make_model(graph([node])).SerializeToString())
    with pytest.raises(GraphError, match="a node of the type EPContext"):
        external_files(tmp_path / "model.onnx")
