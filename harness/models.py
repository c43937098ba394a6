"""The models of the benchmarks and their bundles, made on the first run and kept."""

import hashlib
import sys
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.scoring.tokenization import load_tokenizer
from bertscore_onnx.text.tokenizer import TextTokenizer
from harness.builders import ROBERTA_LARGE, export, save_random_roberta, save_tiny_bert
from harness.checkout import ROOT
from harness.child import call_in_child

WEIGHTS = "model.safetensors"
"""The file that `save_pretrained` writes last."""

BUILD_SECONDS = 3600.0
"""How long making a model or a bundle may take."""


@dataclass(frozen=True)
class Model:
    """A model folder, written by `save_pretrained`, and the layer that is scored."""

    name: str
    folder: Path
    num_layers: int
    bundles: Path
    """Where its bundles are kept."""

    ready: dict[str, Path]
    """Bundles that were given, by precision."""

    def bundle(self, precision: str = "fp32") -> Path:
        """Return the bundle of a precision; export it unless this very exporter has done so before.

        Raises:
            ChildError: it cannot be exported.
        """
        if precision in self.ready:
            return self.ready[precision]
        output = self.bundles / f"{self.name}-{self.num_layers}-{precision}"
        made_by = output.with_name(f"{output.name}.made-by")
        if not made_by.is_file() or made_by.read_text(encoding="utf-8") != exporter_digest():
            print(f"Exporting {self.name} in {precision} ...", file=sys.stderr)
            call_in_child(export, self.folder, self.name, self.num_layers, precision, output, limit=BUILD_SECONDS)
            made_by.write_text(exporter_digest(), encoding="utf-8")
        return output

    def token_counts(self, texts: list[str]) -> list[int]:
        """Count the tokens of texts, special tokens included."""
        return [len(ids) for ids in self._tokenizer(texts)[0]]

    @cached_property
    def _tokenizer(self) -> TextTokenizer:
        bundle = next(iter(self.ready.values()), None) or self.bundle()
        return load_tokenizer(open_bundle(bundle))


@cache
def exporter_digest() -> str:
    """Return the SHA-256 of all source that decides what a bundle holds: what another one made is another bundle."""
    folders = (ROOT / "export", ROOT / "bertscore_onnx" / "bundle", ROOT / "bertscore_onnx" / "text")
    sources = [source for folder in folders for source in sorted(folder.rglob("*.py"))]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


@dataclass(frozen=True)
class Models:
    """Makes the models in a folder."""

    folder: Path
    texts: list[str]
    """What the tokenizer of the random RoBERTa learns from."""

    ready: dict[str, Path]
    """Bundles that were given, as MODEL-PRECISION."""

    roberta_folder: Path | None = None
    """A model folder of roberta-large to take instead of the random one."""

    roberta_sizes: dict[str, int] | None = None
    """Sizes that differ from roberta-large's, for a rehearsal."""

    @cached_property
    def minilm(self) -> Model:
        """The pretrained all-MiniLM-L6-v2 at layer 4."""
        return self._minilm("all-MiniLM-L6-v2", 4)

    @cached_property
    def minilm_first_layer(self) -> Model:
        """The same at layer 1, where what is around the model takes the most of the time."""
        return self._minilm("all-MiniLM-L6-v2-first-layer", 1)

    @cached_property
    def roberta_large(self) -> Model:
        """Roberta-large up to layer 17, with random weights unless a folder was given."""
        layers = (self.roberta_sizes or ROBERTA_LARGE)["num_hidden_layers"]
        folder = self.roberta_folder or self.folder / f"roberta-large-random-{layers}"
        if self.roberta_folder is None and not (folder / WEIGHTS).is_file():
            print("Making a random roberta-large ...", file=sys.stderr)
            sizes = self.roberta_sizes or {}
            call_in_child(save_random_roberta, folder, self.texts, sizes, limit=BUILD_SECONDS)
        return self._model("roberta-large", folder, layers)

    @cached_property
    def roberta_embeddings(self) -> Model:
        """The embeddings of the same model alone, so that almost all time passes around it."""
        return replace(self.roberta_large, name="roberta-large-embeddings", num_layers=0)

    @cached_property
    def tiny(self) -> Model:
        """A random BERT of one layer and 32 dimensions."""
        folder = self.folder / "tiny-bert"
        if not (folder / WEIGHTS).is_file():
            call_in_child(save_tiny_bert, folder, limit=BUILD_SECONDS)
        return self._model("tiny-bert", folder, 1)

    def _minilm(self, name: str, num_layers: int) -> Model:
        sys.path.append(str(ROOT / "examples"))
        from minilm import model_folder

        return self._model(name, model_folder(), num_layers)

    def _model(self, name: str, folder: Path, num_layers: int) -> Model:
        prefix = f"{name}-"
        ready = {key.removeprefix(prefix): path for key, path in self.ready.items() if key.startswith(prefix)}
        return Model(name, folder, num_layers, self.folder / "bundles", ready)
