"""The manifest of a bundle, `bertscore.json`.

It has the facts that the runtime needs, and a digest of every file.
"""

import hashlib
from dataclasses import astuple
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from bertscore_onnx.bundle.catalogue import Architecture, Baseline
from bertscore_onnx.bundle.store import MANIFEST, Precision, TokenizerMode, Variant
from bertscore_onnx.files import replace_whole
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, TokenizerSpec, tokenizer_file

FORMAT_VERSION = 3
"""Changes with the fields of a manifest that are required, and with `Manifest.required_files`."""

GRAPH_FILE = "model.onnx"
DATA_FILE = "model.onnx.data"
SCORING_FILE = "scoring.onnx"
"""The scoring graph: token ids of pairs in, their P, R and F out; it shares the weight file of
`model.onnx`.
"""

SCORING_INPUTS = ("candidate_ids", "candidate_mask", "reference_ids", "reference_mask")
"""Each int64, (pairs, tokens) of its side; masks are 1 on tokens, which come first, and 0 on
padding.
"""

WEIGHTS_INPUT = "token_weights"
"""An optional input, fp32 (vocab_size,): the weight of each id, uniform by default."""

SCORING_OUTPUTS = ("precision", "recall", "f1")
"""Each fp32, (pairs,), or (layers, pairs) with all layers."""

MAX_VOCAB_SIZE = 10_000_000
"""Forty times as many ids as mT5 has. Scoring needs 5 bytes for each."""

MAX_SIZE = 1_000_000
"""Far more dimensions, or tokens of a text, than any model has."""

MAX_LAYERS = 1_000
"""Twenty times as many as the deepest known model has."""

MAX_QUANTILES = 10_001
"""A hundred times as many as are written."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
TokenId = Annotated[int, msgspec.Meta(ge=0, lt=MAX_VOCAB_SIZE)]
Size = Annotated[int, msgspec.Meta(ge=1, le=MAX_SIZE)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class GoldenPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pair of sentences and its scores by the original model, without idf or rescaling."""

    candidate: str
    reference: str

    precision: list[float]
    """One score for each layer of the output; likewise `recall` and `f1`."""

    recall: list[float]
    f1: list[float]


class SlowDifferences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of texts whose ids by the fast tokenizer differ from the slow tokenizer's."""

    num_texts: Annotated[int, msgspec.Meta(ge=1)]
    """The number of texts that both encoded, plain ones and edge cases."""

    num_different: Count
    examples: list[str]
    """The first few of these."""


class UnrelatedScores(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scores of random pairs in one language, from a baseline measured with the bundle."""

    num_pairs: Annotated[int, msgspec.Meta(ge=1)]

    precision: str
    """The compute precision of the scores, and so of the baseline."""

    f1_quantiles: list[Annotated[list[float], msgspec.Meta(min_length=2, max_length=MAX_QUANTILES)]]
    """For each layer of the output, raw F at evenly spaced quantiles, from the lowest to the
    highest score.
    """


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `bertscore.json`."""

    format_version: int
    """The version of this format: `FORMAT_VERSION`."""

    model_id: str
    """The model's name in the catalogue or on the Hub, or the name of its local folder. Like all
    names in a manifest it is printable and has no `|`, so that it can stand in a signature or a
    line of a log."""

    revision: str | None
    """The commit on the Hub, if the model came from there."""

    family: str
    """The architecture, by the name of its row in the export's table."""

    num_layers: Annotated[int, msgspec.Meta(ge=0, le=MAX_LAYERS)]
    """The layer the tokens are taken from; 0 is the embeddings."""

    all_layers: bool
    """Whether the graph returns every layer up to `num_layers`, with scores for each."""

    precision: Precision
    """The compute precision of the graph."""

    inputs: list[str]
    """The graph's inputs, each int64 (batch, tokens)."""

    output: str
    """The graph's output: unit token vectors, float32 (batch, tokens, hidden).

    With `all_layers` it has one more axis in front, the layers.
    """

    hidden_size: Size
    vocab_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_VOCAB_SIZE)]

    max_length: Size | None
    """The most tokens of a text, special tokens included; longer texts are truncated. None if there
    is no bound.
    """

    pad_id: TokenId

    zero_weight_ids: list[TokenId]
    """The ids with weight 0 without idf, wherever they stand."""

    empty_ids: Annotated[list[TokenId], msgspec.Meta(min_length=1)]
    """The ids of an empty text."""

    tokenizer_mode: TokenizerMode
    """Which of the two tokenizers of transformers the ids match."""

    tokenizer_spec: TokenizerSpec | None
    """The rules of the tokenizer that `tokenizer.slow.json` lacks; None in the fast mode."""

    tokenizer_differences: Count
    """The number of the export's edge-case texts that get other ids than from the original
    tokenizer.
    """

    baselines: dict[str, list[Baseline]]
    """Language to the baseline of each layer of the output."""

    exported_with: dict[str, str]
    """The versions of the packages that made the bundle."""

    files: dict[str, Sha256]
    """Every other file of the bundle and its SHA-256."""

    golden: list[GoldenPair]

    golden_difference: Annotated[float, msgspec.Meta(ge=0)]
    """The largest difference from the golden scores when the bundle was exported; the cost of its
    precision.
    """

    padding: bool = True
    """Whether texts may be padded to the length of others. If padding changes the vectors of the
    real tokens, a batch holds texts of one length only."""

    unrelated: dict[str, UnrelatedScores] | msgspec.UnsetType = msgspec.UNSET
    """Language to the scores of random pairs, for baselines that were measured with this bundle;
    absent if none was, and then not part of the digest."""

    scoring_difference: Annotated[float, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET
    """The largest difference between the scores of the scoring graph and of the runtime when the
    bundle was exported; absent without such a graph."""

    slow_differences: SlowDifferences | msgspec.UnsetType = msgspec.UNSET
    """The differences from the ids of the slow tokenizer; absent in the slow mode, and if there is
    no slow one.
    """

    final_norm: bool | msgspec.UnsetType = msgspec.UNSET
    """If the model has a norm after its last layer and the bundle all layers: whether the graph
    applies it to each, so that each scores as in a bundle of its own; otherwise absent."""

    model_layers: Annotated[int, msgspec.Meta(ge=0, le=MAX_LAYERS)] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    """The number of layers of the whole model; absent in bundles of earlier versions."""

    comparison: Literal["with PyTorch", "not compared"] | msgspec.UnsetType = msgspec.UNSET
    """Whether a graph that somebody else has published was compared with the PyTorch model. If not,
    the golden scores are those of the whole graph. Absent if the model itself was exported, which
    is always compared."""

    digest: Sha256 | Literal[""] = ""
    """The SHA-256 of all the above, which identifies the bundle."""

    def __post_init__(self) -> None:
        """Raise a ValueError for facts that do not fit together.

        A name is unprintable, an id is not the model's, or a list does not fit the layers.
        """
        self._check_names()
        self._check_ids()
        self._check_layers()

    def _check_names(self) -> None:
        names = [self.model_id, self.revision or "", self.family, self.output]
        names += [measured.precision for measured in self.unrelated_scores.values()]
        names += [*self.inputs, *self.baselines, *self.exported_with, *self.exported_with.values()]
        for name in names:
            # which separates the fields of a signature
            if not name.isprintable() or "|" in name:
                raise ValueError(
                    f"The name {name[:100]!a} has characters that cannot be printed, or a `|`"
                )

    def _check_ids(self) -> None:
        ids = {
            "pad_id": [self.pad_id],
            "zero_weight_ids": self.zero_weight_ids,
            "empty_ids": self.empty_ids,
        }
        if self.tokenizer_spec is not None:
            ids |= {
                "prefix_ids": self.tokenizer_spec.prefix_ids,
                "suffix_ids": self.tokenizer_spec.suffix_ids,
            }
        for field, values in ids.items():
            largest = max(values, default=0)
            if largest >= self.vocab_size:
                raise ValueError(
                    f"Expected ids below vocab_size, {self.vocab_size}, got {largest} - at "
                    f"`$.{field}`"
                )

    def _check_layers(self) -> None:
        expected = len(self.layers)
        scores = []
        for pair in self.golden:
            scores += [pair.precision, pair.recall, pair.f1]
        for field, lists in (("golden", scores), ("baselines", list(self.baselines.values()))):
            for numbers in lists:
                if len(numbers) != expected:
                    raise ValueError(
                        f"Expected {expected} per list, one for each layer, got {len(numbers)} - "
                        f"at `$.{field}`"
                    )
        for language, measured in self.unrelated_scores.items():
            if language not in self.baselines or len(measured.f1_quantiles) != expected:
                raise ValueError(
                    f"Expected a baseline and {expected} lists for {language!a} - at `$.unrelated`"
                )
            if any(sorted(numbers) != numbers for numbers in measured.f1_quantiles):
                raise ValueError("Expected numbers in ascending order - at `$.unrelated`")
        for baseline in chain.from_iterable(self.baselines.values()):
            if max(astuple(baseline)) >= 1:
                raise ValueError(f"Expected numbers below 1, got {baseline} - at `$.baselines`")

    @property
    def layers(self) -> range:
        """The layers of the graph's output."""
        return range(0 if self.all_layers else self.num_layers, self.num_layers + 1)

    @property
    def architecture(self) -> Architecture:
        """The type and the sizes of the whole model."""
        layers = None if self.model_layers is msgspec.UNSET else self.model_layers
        return Architecture(self.family, layers, self.hidden_size, self.vocab_size)

    @property
    def variant(self) -> Variant:
        """The variant of the model that the bundle holds."""
        num_layers = None if self.all_layers else self.num_layers
        return Variant(num_layers, self.tokenizer_mode, self.precision)

    @property
    def required_files(self) -> set[str]:
        """The files that every bundle of this format has, beside those of weights."""
        names = {GRAPH_FILE, tokenizer_file(self.tokenizer_spec)}
        if self.tokenizer_spec is not None and self.tokenizer_spec.sentencepiece is not None:
            names.add(SENTENCEPIECE_FILE)
        return names

    @property
    def has_scoring_graph(self) -> bool:
        """Whether the bundle has a scoring graph beside the encoder's."""
        return SCORING_FILE in self.files

    @property
    def is_published(self) -> bool:
        """Whether somebody else published the graph.

        Otherwise it was exported from the model.
        """
        return self.comparison is not msgspec.UNSET

    @property
    def is_compared(self) -> bool:
        """Whether the golden scores are from the PyTorch model.

        Otherwise they are from a published graph.
        """
        return self.comparison != "not compared"

    @property
    def special_ids(self) -> list[int]:
        """The ids that do not count as content: a text of these alone is empty."""
        return sorted({*self.empty_ids, *self.zero_weight_ids})

    @property
    def is_empty_padded(self) -> bool:
        """Whether padding stands in for an empty text.

        The original tokenizer gives no id to it.
        """
        spec = self.tokenizer_spec
        return self.empty_ids == [self.pad_id] and (
            spec is None or not (spec.prefix_ids or spec.suffix_ids)
        )

    @property
    def unrelated_scores(self) -> dict[str, UnrelatedScores]:
        """Language to the scores of random pairs.

        Empty if no baseline was measured with this bundle.
        """
        return {} if self.unrelated is msgspec.UNSET else self.unrelated

    def of_layer(self, num_layers: int) -> "Manifest":
        """Return the facts of a single layer of a bundle of all layers.

        The bundle's digest stays.
        """
        layer = slice(num_layers, num_layers + 1)
        golden = []
        for pair in self.golden:
            pair_of_layer = msgspec.structs.replace(
                pair,
                precision=pair.precision[layer],
                recall=pair.recall[layer],
                f1=pair.f1[layer],
            )
            golden.append(pair_of_layer)
        unrelated = {}
        for language, measured in self.unrelated_scores.items():
            quantiles = measured.f1_quantiles[layer]
            unrelated[language] = msgspec.structs.replace(measured, f1_quantiles=quantiles)
        return msgspec.structs.replace(
            self,
            num_layers=num_layers,
            all_layers=False,
            baselines={language: layers[layer] for language, layers in self.baselines.items()},
            golden=golden,
            unrelated=unrelated,
        )

    def baseline_precision(self, language: str) -> str:
        """Return the compute precision of the baseline of a language."""
        measured = self.unrelated_scores.get(language)
        return "fp32" if measured is None else measured.precision

    def computed_digest(self) -> str:
        """Return the correct value of `digest`."""
        content = msgspec.json.encode(msgspec.structs.replace(self, digest=""), order="sorted")
        return hashlib.sha256(content).hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest with its digest into a folder and return it.

    An existing manifest is replaced atomically: concurrent readers see the old or the new one.
    """
    sealed = msgspec.structs.replace(manifest, digest=manifest.computed_digest())
    content = msgspec.json.format(msgspec.json.encode(sealed), indent=2)
    replace_whole(folder / MANIFEST, content + b"\n")
    return sealed
