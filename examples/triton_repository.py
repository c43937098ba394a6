"""Lays a bundle's graph out as a model repository of the Triton inference server.

    python examples/triton_repository.py BUNDLE REPOSITORY [NAME]

Triton then serves the encoder: token ids in, unit token embeddings out. Tokenising, matching, idf and rescaling stay
with its caller, and a service of pairs should rather run `bertscore-onnx serve`.
"""

import shutil
import sys
from pathlib import Path

from bertscore_onnx.bundle.manifest import DATA_FILE, GRAPH_FILE, Manifest
from bertscore_onnx.bundle.opening import open_bundle

CONFIG = """\
name: "{name}"
platform: "onnxruntime_onnx"
max_batch_size: {max_batch_size}
input [
{inputs}
]
output [
  {{ name: "{output}" data_type: TYPE_FP32 dims: [ -1, {hidden_size} ] }}
]
"""

MAX_BATCH_SIZE = 64


def write_repository(bundle: Path, repository: Path, name: str = "token-embeddings") -> Path:
    """Copy the graph of a bundle of one layer into a repository; return the model's folder."""
    opened = open_bundle(bundle)
    if opened.manifest.all_layers:
        sys.exit(f"{bundle} holds all layers, whose axis stands before the batch; Triton wants the batch first.")
    version = repository / name / "1"
    if version.exists():
        sys.exit(f"{version} is there already. Remove it, or choose another NAME.")
    version.mkdir(parents=True)
    for file in {GRAPH_FILE, DATA_FILE} & opened.manifest.files.keys():
        shutil.copyfile(opened.path / file, version / file)
    (version.parent / "config.pbtxt").write_text(_config(opened.manifest, name), encoding="utf-8")
    return version.parent


def _config(manifest: Manifest, name: str) -> str:
    inputs = ",\n".join(f'  {{ name: "{node}" data_type: TYPE_INT64 dims: [ -1 ] }}' for node in manifest.inputs)
    return CONFIG.format(
        name=name,
        max_batch_size=MAX_BATCH_SIZE,
        inputs=inputs,
        output=manifest.output,
        hidden_size=manifest.hidden_size,
    )


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(f"Usage: python {sys.argv[0]} BUNDLE REPOSITORY [NAME]")
    print(write_repository(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4]))
