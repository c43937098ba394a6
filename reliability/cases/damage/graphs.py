"""Damage to the graph that only who knows ONNX can do; the digests are right all the same, unless said otherwise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.manifest import GRAPH_FILE
from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.errors import DigestError, GoldenScoreError, GraphError, UnsafePathError
from reliability.cases.damage.kind import Damage, link_out, seal

Model = Any
OUTSIDE = "weights-outside"


def _edited(change: Callable[[Model], object], *, sealed: bool = True) -> Callable[[Path], None]:
    def inflict(bundle: Path) -> None:
        model = onnx.load(bundle / GRAPH_FILE)
        change(model)
        (bundle / GRAPH_FILE).write_bytes(model.SerializeToString())
        if sealed:
            seal(bundle)

    return inflict


def _weights(model: Model) -> Any:
    """Return the largest tensor."""
    return max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))


def _with_weights(change: Callable[[Any], Any]) -> Callable[[Model], None]:
    def edit(model: Model) -> None:
        tensor = _weights(model)
        values = numpy_helper.to_array(tensor)
        tensor.raw_data = change(values).astype(values.dtype).tobytes()

    return edit


_TO_NAN = _with_weights(lambda values: values * np.nan)
_ONE_TO_INFINITY = _with_weights(lambda values: np.where(np.arange(values.shape[1]) == 3, np.inf, values))
_ANOTHER_SEED = _with_weights(lambda values: np.random.default_rng(7).normal(0, 0.02, values.shape))


def _located(location: str) -> Callable[[Model], None]:
    """Let the weights come from a file."""

    def edit(model: Model) -> None:
        tensor = _weights(model)
        size = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, "offset": "0", "length": str(size)}.items():
            tensor.external_data.add(key=key, value=value)

    return edit


def _external(location: str, *, named: bool = False, content: bytes | None = None) -> Callable[[Path], None]:
    """Move the weights into a file.

    Args:
        location: how the graph names it.
        named: whether the manifest names it as well.
        content: what to write into it; None for the weights.
    """

    def inflict(bundle: Path) -> None:
        weights = _weights(onnx.load(bundle / GRAPH_FILE)).raw_data
        file = bundle / location
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(weights if content is None else content)
        _edited(_located(location))(bundle)
        if named:
            seal(bundle, files={**read_manifest(bundle).files, location: file_digest(file)})

    return inflict


def _external_absolute(bundle: Path) -> None:
    _external(str(bundle.parent / OUTSIDE))(bundle)


def _external_link(bundle: Path) -> None:
    """Name a file in graph and manifest that is a link out of the folder, and has changed there."""
    _external("weights.data", named=True)(bundle)
    link_out(bundle, "weights.data")
    with (bundle / "weights.data").open("ab") as weights:
        weights.write(b"\n")


def _custom_domain(model: Model) -> None:
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    model.graph.node[-1].domain = "com.example"


def _unknown_operator(model: Model) -> None:
    model.graph.node[-1].op_type = "NoSuchOperator"


def _extra_input(model: Model) -> None:
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.INT64, ["batch", "tokens"]))


def _other_output(model: Model) -> None:
    output = model.graph.output[0]
    producer = next(node for node in model.graph.node if output.name in node.output)
    producer.output[list(producer.output).index(output.name)] = "other"
    output.name = "other"


def _cut(bundle: Path) -> None:
    file = bundle / GRAPH_FILE
    file.write_bytes(file.read_bytes()[:1000])
    seal(bundle)


def _emptied(bundle: Path) -> None:
    (bundle / GRAPH_FILE).write_bytes(b"")
    seal(bundle)


GRAPHS = [
    Damage("weights NaN, not sealed", _edited(_TO_NAN, sealed=False), (DigestError,)),
    Damage("weights of another seed, not sealed", _edited(_ANOTHER_SEED, sealed=False), (DigestError,)),
    *(
        Damage(name, inflict, (GoldenScoreError,), is_sealed=True)
        for name, inflict in {
            "weights NaN": _edited(_TO_NAN),
            "a weight infinite": _edited(_ONE_TO_INFINITY),
            "weights of another seed": _edited(_ANOTHER_SEED),
        }.items()
    ),
    *(
        Damage(name, inflict, (UnsafePathError,), is_sealed=True)
        for name, inflict in {
            "weights from above the folder": _external(f"../{OUTSIDE}"),
            "weights from an absolute path": _external_absolute,
            "weights from a folder below": _external("sub/weights.data"),
            "weights from an unnamed file": _external("weights.data"),
        }.items()
    ),
    Damage("weights by a link to what changed", _external_link, (DigestError,)),
    *(
        Damage(name, inflict, (GraphError,), is_sealed=True)
        for name, inflict in {
            "too few weights": _external("weights.data", named=True, content=b"abc"),
            "an operator of another domain": _edited(_custom_domain),
            "an unknown operator": _edited(_unknown_operator),
            "one more input": _edited(_extra_input),
            "another output": _edited(_other_output),
            "a graph cut off": _cut,
            "an empty graph": _emptied,
        }.items()
    ),
]
"""Damage to the graph."""
