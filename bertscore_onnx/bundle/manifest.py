"""The manifest of a bundle, `bertscore.json`: what the runtime has to know of a model, and a digest of every file."""

import hashlib
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from bertscore_onnx.bundle.baseline import Baseline
from bertscore_onnx.bundle.store import MANIFEST, Precision, TokenizerMode
from bertscore_onnx.text.spec import TokenizerSpec

FORMAT_VERSION = 2
GRAPH_FILE = "model.onnx"
DATA_FILE = "model.onnx.data"

Count = Annotated[int, msgspec.Meta(ge=0)]
Size = Annotated[int, msgspec.Meta(ge=1)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class GoldenPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pair of sentences and the scores that the original PyTorch model gives it, without idf or rescaling."""

    candidate: str
    reference: str

    precision: list[float]
    """For each layer of the output; likewise `recall` and `f1`."""

    recall: list[float]
    f1: list[float]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `bertscore.json` says."""

    format_version: int
    """The generation of this form; this version writes and reads `FORMAT_VERSION` only."""

    model_id: str
    """The catalogue's or the Hub's name of the model, or the name of the local folder it came from."""

    revision: str | None
    """The Hub's commit, where there is one."""

    family: str
    """The architecture, by the name of its row in the export's table."""

    num_layers: Count
    """The layer the tokens are taken from; 0 is the embeddings."""

    all_layers: bool
    """Whether the graph gives every layer up to that one, and scores come for each."""

    precision: Precision
    """The compute precision of the graph."""

    inputs: list[str]
    """The graph's inputs, each int64 (batch, tokens)."""

    output: str
    """The graph's output: unit token vectors, float32 (batch, tokens, hidden).

    With `all_layers` it has a first axis more, the layers.
    """

    hidden_size: Size
    vocab_size: Size

    max_length: Size | None
    """The most tokens of a text, special tokens included; what is beyond is cut off. None: no bound of the model's."""

    pad_id: Count

    zero_weight_ids: list[Count]
    """The ids that weigh 0 without idf, wherever they stand."""

    empty_ids: Annotated[list[Count], msgspec.Meta(min_length=1)]
    """The ids of an empty text."""

    tokenizer_mode: TokenizerMode
    """Which of the two tokenizers of transformers the ids are those of."""

    tokenizer_spec: TokenizerSpec | None
    """How texts become ids, as far as `tokenizer.json` does not say; None in the fast mode."""

    tokenizer_differences: Count
    """How many of the export's edge-case texts get other ids than from the original tokenizer."""

    baselines: dict[str, list[Baseline]]
    """Language to the baseline of each layer of the output."""

    exported_with: dict[str, str]
    """The versions of the packages that made the bundle."""

    files: dict[str, Sha256]
    """Every other file of the bundle and its SHA-256."""

    golden: list[GoldenPair]

    golden_difference: Annotated[float, msgspec.Meta(ge=0)]
    """The largest difference from these scores when the bundle was exported; the cost of its precision."""

    padding: bool = True
    """Whether texts may be padded to the length of others. Where padding changes the vectors of the real tokens, a
    batch holds texts of one length only."""

    digest: Sha256 | Literal[""] = ""
    """The SHA-256 of all the above; it identifies the bundle."""

    @property
    def layers(self) -> range:
        """The layers of the graph's output."""
        return range(0 if self.all_layers else self.num_layers, self.num_layers + 1)

    @property
    def special_ids(self) -> list[int]:
        """The ids that do not make a text non-empty."""
        return sorted({*self.empty_ids, *self.zero_weight_ids})

    def computed_digest(self) -> str:
        """Return what `digest` has to be."""
        content = msgspec.json.encode(msgspec.structs.replace(self, digest=""), order="sorted")
        return hashlib.sha256(content).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest with its digest into a folder, and return it."""
    sealed = msgspec.structs.replace(manifest, digest=manifest.computed_digest())
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(sealed), indent=2) + b"\n")
    return sealed
