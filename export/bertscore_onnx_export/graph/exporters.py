"""The exporters that can write a model's graph, by name.

Nothing else depends on which of them wrote it.
"""

import contextlib
import io
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim

from bertscore_onnx.bundle.store import Exporter
from bertscore_onnx.errors import MissingExtraError, install_command
from bertscore_onnx_export.graph.output import INPUTS
from bertscore_onnx_export.model.source import first_line

Example = tuple[Tensor, Tensor]
"""Ids and mask, (batch, tokens) each, two tensors."""

OPSET = 17
_DYNAMO_OPSET = 18
"""The lowest that exporters built on `torch.export` write."""

LARGE = 250_000_000
"""The bytes of weights from which they get a file of their own. For 1.3 GB an export into one file
took 5.8 GB of memory and 63 s, the streamed one 2.0 GB and 23 s; a graph in one file cannot have
more than 2 GB."""

_VECTORS = "last_hidden_state"
_AXES = {0: "batch", 1: "tokens"}


def size_of(module: nn.Module) -> int:
    """Return the bytes of a module's weights."""
    return sum(weight.numel() * weight.element_size() for weight in module.parameters())


def _torch(module: nn.Module, example: Example, path: Path) -> None:
    """Write the graph with PyTorch, by TorchScript or its successor.

    The successor does it where TorchScript fails or has been removed.

    TorchScript takes a tenth of the time, and no further package.
    """
    try:
        _torchscript(module, example, path)
    except OSError:
        raise
    except Exception as error:  # a model's code may raise anything when it is traced
        if find_spec("onnxscript") is None:
            raise MissingExtraError(
                f"TorchScript cannot write the graph ({first_line(error).rstrip('.')}), and "
                "PyTorch's other exporter needs onnxscript, which is not installed: "
                f"{install_command('export')}.",
                name="onnxscript",
            ) from error
        _dynamo(module, example, path)


def _torchscript(module: nn.Module, example: Example, path: Path) -> None:
    """Write the graph.

    Of a large module without its weights, which become inputs, named as in the module.
    """
    with_weights = size_of(module) < LARGE
    torch.onnx.export(
        module,
        example,
        path,
        input_names=INPUTS,
        output_names=[_VECTORS],
        dynamic_axes={**dict.fromkeys(INPUTS, _AXES), _VECTORS: _AXES},
        opset_version=OPSET,
        export_params=with_weights,
        do_constant_folding=with_weights,
        dynamo=False,
    )


def _dynamo(module: nn.Module, example: Example, path: Path) -> None:
    torch.onnx.export(
        module,
        example,
        path,
        input_names=INPUTS,
        output_names=[_VECTORS],
        dynamic_shapes=tuple(dict.fromkeys(_AXES, Dim.AUTO) for _ in INPUTS),
        opset_version=_DYNAMO_OPSET,
        dynamo=True,
        verbose=False,
    )


def _transformers(module: nn.Module, example: Example, path: Path) -> None:
    from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

    shapes = {name: dict.fromkeys(_AXES, Dim.AUTO) for name in INPUTS}
    config = OnnxConfig(dynamic=True, dynamic_shapes=shapes, opset_version=_DYNAMO_OPSET)
    program, _ = OnnxExporter().export_program(
        module, dict(zip(INPUTS, example, strict=True)), config
    )
    OnnxExporter.save_program(program, path)


def _optimum(module: nn.Module, example: Example, path: Path) -> None:
    """Write the graph with a configuration of two inputs.

    Optimum's own have further ones for some families, such as token types for XLM, and then the
    vectors are others.
    """
    from optimum.exporters.onnx import export
    from optimum.exporters.onnx.config import TextEncoderOnnxConfig
    from optimum.utils import NormalizedTextConfig

    class TwoInputs(TextEncoderOnnxConfig):  # type: ignore[misc]
        NORMALIZED_CONFIG_CLASS = NormalizedTextConfig
        inputs = dict.fromkeys(INPUTS, _AXES)
        outputs = {_VECTORS: _AXES}  # noqa: RUF012 -- as its base has them

        def generate_dummy_inputs(self, framework: str = "pt", **sizes: int) -> dict[str, Tensor]:
            return dict(zip(INPUTS, example, strict=True))

    export(module, TwoInputs(module.config), path, opset=OPSET, disable_dynamic_axes_fix=True)


EXPORTERS: Mapping[Exporter, Callable[[nn.Module, Example, Path], None]] = {
    "torch": _torch,
    "transformers": _transformers,
    "optimum": _optimum,
}
"""Each writes the graph of a module of ids and mask to a file, with weights in it, beside it, or as
inputs.
"""

_NEEDED: Mapping[Exporter, tuple[str, ...]] = {
    "transformers": ("onnxscript", "transformers.exporters.exporter_onnx"),
    "optimum": ("optimum.exporters.onnx",),
}
"""The modules that an exporter needs beside PyTorch's."""

PACKAGES: Mapping[Exporter, tuple[str, ...]] = {
    "torch": ("torch",),
    "transformers": ("transformers", "onnxscript"),
    "optimum": ("optimum", "optimum-onnx"),
}
"""The packages whose versions a manifest records."""


def check_exporter(name: Exporter) -> None:
    """Raise a MissingExtraError if a package of an exporter is missing."""
    for module in _NEEDED.get(name, ()):
        try:
            import_module(module)
        except ImportError as error:
            if name == "optimum":
                missing = (
                    "optimum-onnx, which is not installed. Install the extra optimum: "
                    f"{install_command(name)}"
                )
            else:
                missing = (
                    "transformers 5.13 or newer, and onnxscript: `pip install "
                    "'transformers>=5.13,<6' onnxscript`"
                )
            raise MissingExtraError(f"--exporter {name} needs {missing}.", name=module) from error


def export_graph(name: Exporter, module: nn.Module, path: Path) -> None:
    """Write the graph of a module of ids and mask to a file."""
    ids = torch.ones(2, 16, dtype=torch.int64)
    mask = torch.ones(2, 16, dtype=torch.int64)
    mask[1, -3:] = 0  # so that no part of a model skips the mask
    module(ids, mask)  # fills the tables of `model.distances`
    with contextlib.redirect_stdout(io.StringIO()):  # they print their progress
        EXPORTERS[name](module, (ids, mask), path)
