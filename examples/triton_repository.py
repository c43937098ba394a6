"""Writes a bundle as a model repository of the Triton inference server, whose model returns P, R
and F.

    bertscore-onnx export --model roberta-large --scoring-graph --output BUNDLE
    python triton_repository.py BUNDLE REPOSITORY [NAME] [--idf-counts counts.json]
    tritonserver --model-repository REPOSITORY

Any bundle of one layer with a scoring graph will do. `triton_client.py` scores texts with the model
and the tokenizer of any such bundle; docs/any_language.md describes the inputs for other clients,
and the bundles that they can use.

Triton batches inputs along an axis of pairs. Token weights have no such axis, so clients cannot
send them: they are part of the graph, either uniform or the idf of counted documents. Writing idf
weights needs the package onnx:

    bertscore-onnx count-documents --model BUNDLE --ref references.txt --output counts.json
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

from bertscore_onnx import BertScoreOnnxError, DocumentCounts
from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import (
    SCORING_FILE,
    SCORING_INPUTS,
    SCORING_OUTPUTS,
    WEIGHTS_INPUT,
)
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.matching.weights import TokenWeights, idf_of_counts, uniform
from bertscore_onnx.scoring.tokenization import load_tokenizer, tokenization_of

MAX_BATCH_SIZE = 64
"""The most pairs in one batch; each takes the memory of two texts."""

MAX_QUEUE_DELAY = 2000
"""How long a request waits for others of its shape, in microseconds."""

CONFIG = """\
name: "{name}"
backend: "onnxruntime"
default_model_filename: "{file}"
max_batch_size: {max_batch_size}
dynamic_batching {{ max_queue_delay_microseconds: {max_queue_delay} }}
input [
{inputs}
]
output [
{outputs}
]
parameters {{ key: "bertscore_bundle" value {{ string_value: "{digest}" }} }}
parameters {{ key: "bertscore_idf" value {{ string_value: "{idf}" }} }}
"""


def write_repository(
    bundle: str,
    repository: str | Path,
    name: str = "bertscore",
    idf_counts: str | Path | None = None,
) -> Path:
    """Write the model of a bundle into a repository.

    Args:
        bundle: the path of a bundle of one layer with a scoring graph, or the name of its model.
        repository: a folder, created if it does not exist.
        name: the model's name, which must be new in the repository.
        idf_counts: a file of document counts, for idf weights; None for uniform weights.

    Returns:
        The folder of the model.

    Raises:
        BertScoreOnnxError: the bundle or the file cannot be read, or the counts are of another
            tokenizer.
        ValueError: the bundle or the name is unsuitable, the model already exists, or onnx is not
            installed.
    """
    opened = resolve_bundle(bundle, all_layers=None)
    if opened.manifest.all_layers:
        raise ValueError(
            f"{opened.path} scores all layers, but Triton needs pairs on the first axis. Export "
            "one layer."
        )
    if not opened.manifest.has_scoring_graph:
        raise ValueError(
            f"{opened.path} has no scoring graph. Export the model with --scoring-graph."
        )
    if not re.fullmatch(r"\w[\w.-]*", name, re.ASCII):
        raise ValueError(f"The name is {name!r}; expected letters, digits, `_`, `-` and `.` only.")
    model = Path(repository) / name
    if model.exists():
        raise ValueError(f"{model} already exists. Remove it, or choose another NAME.")
    weights = _weights(opened, idf_counts)
    source = opened.path / SCORING_FILE
    graph = source.read_bytes() if idf_counts is None else _weighted(source, weights)
    version = model / "1"
    version.mkdir(parents=True)
    (version / SCORING_FILE).write_bytes(graph)
    for file in opened.weights:
        shutil.copyfile(opened.path / file, version / file)
    (model / "config.pbtxt").write_text(_config(opened, name, weights), encoding="utf-8")
    return model


def _weights(opened: Bundle, idf_counts: str | Path | None) -> TokenWeights:
    if idf_counts is None:
        return uniform(opened.manifest)
    tokenization = tokenization_of(opened.manifest, load_tokenizer(opened))
    return idf_of_counts(DocumentCounts.load(idf_counts), opened.manifest, tokenization)


def _weighted(graph: Path, weights: TokenWeights) -> bytes:
    """Return a scoring graph with these weights built in."""
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ValueError(
            "Writing idf weights into a graph needs the package onnx: pip install onnx"
        ) from error
    model = onnx.load(graph, load_external_data=False)
    [uniform_weights] = [
        tensor for tensor in model.graph.initializer if tensor.name == WEIGHTS_INPUT
    ]
    uniform_weights.CopyFrom(onnx.numpy_helper.from_array(weights.table, WEIGHTS_INPUT))
    content: bytes = model.SerializeToString()
    return content


def _config(opened: Bundle, name: str, weights: TokenWeights) -> str:
    inputs = (
        f'  {{ name: "{node}" data_type: TYPE_INT64 dims: [ -1 ] }}' for node in SCORING_INPUTS
    )
    outputs = (
        f'  {{ name: "{node}" data_type: TYPE_FP32 dims: [ 1 ] reshape {{ shape: [ ] }} }}'
        for node in SCORING_OUTPUTS
    )
    return CONFIG.format(
        name=name,
        file=SCORING_FILE,
        max_batch_size=MAX_BATCH_SIZE,
        max_queue_delay=MAX_QUEUE_DELAY,
        inputs=",\n".join(inputs),
        outputs=",\n".join(outputs),
        digest=opened.manifest.digest,
        idf=weights.name,
    )


def main() -> None:
    """Write the model named on the command line."""
    parser = argparse.ArgumentParser(description="Write a bundle as a Triton model repository.")
    parser.add_argument(
        "bundle", help="the path of a bundle with a scoring graph, or its model's name"
    )
    parser.add_argument("repository", help="the folder of Triton's models")
    parser.add_argument(
        "name", nargs="?", default="bertscore", help="the model's name (default: %(default)s)"
    )
    parser.add_argument(
        "--idf-counts", metavar="FILE", help="weight tokens by idf, from document counts"
    )
    try:
        print(write_repository(**vars(parser.parse_args())))
    except (BertScoreOnnxError, ValueError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
