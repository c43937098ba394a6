"""Writes a bundle of a published graph in a process with limits.

It reads both files, cuts the graph, and scores with it.
"""

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from numpy.typing import NDArray

from bertscore_onnx import __version__
from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.manifest import (
    DATA_FILE,
    FORMAT_VERSION,
    GRAPH_FILE,
    GoldenPair,
    Manifest,
    write_manifest,
)
from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.errors import VerificationError
from bertscore_onnx.text.spec import TOKENIZER_FILE
from bertscore_onnx_export.graph.output import OUTPUT
from bertscore_onnx_export.published.config import PublishedConfig, read_config
from bertscore_onnx_export.published.cut import (
    PublishedGraph,
    check_cut,
    check_independent,
    check_length,
    cut,
    padding_changes,
    read_graph,
    run_vectors,
    uncut_vectors,
)
from bertscore_onnx_export.published.limits import allow, end_within_limits
from bertscore_onnx_export.published.tokenizer import PublishedTokenizer, read_tokenizer
from bertscore_onnx_export.verify.sample_texts import GOLDEN_PAIRS

_PACKAGES = ("onnx", "tokenizers")

_LARGE = 250_000_000
"""The bytes of weights from which they get a file of their own."""

_TOKEN_BYTES = 1_200
"""The bytes that a token counts as in the size of a model.

Reading one of SentencePiece's takes 6 kB of memory.
"""


def write_bundle(
    folder: Path, file: Path, model_id: str, num_layers: int, output: Path
) -> list[str]:
    """Write the graph up to a layer, the tokenizer beside it and a manifest.

    The manifest holds the uncut graph's scores.

    Returns a warning if nothing but config.json tells the layer. Raises an ExportError if the graph
    has no vectors of tokens or cannot be cut at the layer, or if it or the tokenizer is damaged.
    """
    config = read_config(folder)
    allow(_size(folder / TOKENIZER_FILE) / 5e6 + _tokens(folder, config) / 50e3)
    tokenizer = read_tokenizer(folder, config)
    allow(_size_of_graph(file) / 30e6)
    graph = read_graph(str(file), config)
    check_cut(graph, num_layers, config.num_layers, str(file))
    _write(cut(graph, num_layers, config.hidden_size), output)
    allow(_size_of_graph(file) / 10e6)
    (output / TOKENIZER_FILE).write_text(tokenizer.content, encoding="utf-8")
    sealed = write_manifest(
        output, _manifest(model_id, config, num_layers, graph, tokenizer, output)
    )
    # which checks the bounds of its numbers
    msgspec.json.decode(msgspec.json.encode(sealed), type=Manifest)
    if graph.hidden_states:
        return []
    return [
        f"The nodes of {file} do not tell its layers apart: only config.json says that its "
        f"vectors are those of layer {num_layers}."
    ]


def _manifest(
    model_id: str,
    config: PublishedConfig,
    num_layers: int,
    graph: PublishedGraph,
    tokenizer: PublishedTokenizer,
    folder: Path,
) -> Manifest:
    session = uncut_vectors(graph, num_layers)
    check_length(session, tokenizer.ids("word " * 600))
    text = tokenizer.ids(GOLDEN_PAIRS[0][0])
    check_independent(session, text)
    rows = catalogue.baselines(model_id, num_layers)
    versions = {"bertscore-onnx": __version__}
    for package in _PACKAGES:
        versions[package] = importlib.metadata.version(package)
    written = onnx.load(folder / GRAPH_FILE, load_external_data=False)
    inputs = [node.name for node in written.graph.input]
    padding = not padding_changes(session, text, tokenizer.pad_id)
    golden = [_score(session, tokenizer, *pair) for pair in GOLDEN_PAIRS]
    files = {file.name: file_digest(file) for file in sorted(folder.iterdir())}
    # The differences are not known here: the bundle is verified, and compared with PyTorch, later.
    return Manifest(
        format_version=FORMAT_VERSION,
        model_id=model_id,
        revision=None,
        family=config.model_type,
        num_layers=num_layers,
        all_layers=False,
        precision="fp32",
        inputs=inputs,
        output=OUTPUT,
        hidden_size=config.hidden_size,
        vocab_size=config.vocab_size,
        max_length=tokenizer.max_length,
        pad_id=tokenizer.pad_id,
        zero_weight_ids=tokenizer.zero_weight_ids,
        empty_ids=tokenizer.empty_ids,
        tokenizer_mode="fast",
        tokenizer_spec=None,
        tokenizer_differences=0,
        baselines={language: [row] for language, row in rows.items()},
        exported_with=versions,
        files=files,
        padding=padding,
        golden=golden,
        golden_difference=0.0,
        comparison="not compared",
        model_layers=config.num_layers,
    )


def _score(
    session: Any, tokenizer: PublishedTokenizer, candidate: str, reference: str
) -> GoldenPair:
    """Score a golden pair with the uncut graph.

    The equations are those of Zhang et al., ICLR 2020, section 3.
    """

    def embed(text: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        ids = tokenizer.ids(text)
        vectors = run_vectors(session, ids)  # (tokens, hidden)
        # (tokens,)
        weights = np.array([index not in tokenizer.zero_weight_ids for index in ids], np.float32)
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), weights / weights.sum()

    candidate_vectors, candidate_weights = embed(candidate)
    reference_vectors, reference_weights = embed(reference)
    similarity = candidate_vectors @ reference_vectors.T  # (cand_tokens, ref_tokens)
    precision = float(similarity.max(axis=1) @ candidate_weights)
    recall = float(similarity.max(axis=0) @ reference_weights)
    f1 = 2 * precision * recall / (precision + recall)
    if not np.isfinite(f1):
        raise VerificationError(
            "The published graph's own scores are undefined: its vectors are zero or overflow, "
            "as with an attention_mask that is inverted or exchanged with another input."
        )
    return GoldenPair(candidate, reference, [precision], [recall], [f1])


def _write(model: Any, folder: Path) -> None:
    """Write a graph, and large weights to a file of their own."""
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size < _LARGE:
        onnx.save(model, folder / GRAPH_FILE)
    else:
        onnx.save(model, folder / GRAPH_FILE, save_as_external_data=True, location=DATA_FILE)
    onnx.checker.check_model(folder / GRAPH_FILE)


def _size(*files: Path) -> int:
    return sum(file.stat().st_size for file in files if file.is_file())


def _size_of_graph(file: Path) -> int:
    """Return the bytes of a graph with its weights.

    These may lie in files beside it.
    """
    return _size(*file.parent.glob("*.onnx*"))


def _tokens(folder: Path, config: PublishedConfig) -> int:
    """Return an upper bound of the size of a tokenizer's vocabulary."""
    return min(config.vocab_size, _size(folder / TOKENIZER_FILE) // 10)


def main() -> None:
    """Write a bundle by the arguments of this process."""
    folder, file, model_id, num_layers, output = sys.argv[1:]
    source = Path(folder)
    graph = Path(file)
    of_tokens = _TOKEN_BYTES * _tokens(source, read_config(source))
    end_within_limits(
        lambda: write_bundle(source, graph, model_id, int(num_layers), Path(output)),
        source,
        _size_of_graph(graph) + _size(source / TOKENIZER_FILE) + of_tokens,
    )


if __name__ == "__main__":
    main()
