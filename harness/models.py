"""The models of the benchmarks and of the reliability cases with their bundles, made on first use
and kept.

The functions that need PyTorch run in a process of their own.
"""

import hashlib
import json
import sys
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.scoring.tokenization import load_tokenizer
from bertscore_onnx.text.tokenizer import TextTokenizer
from harness.processes import ROOT, call_in_child
from harness.texts import SYLLABLES, WORDS

ROBERTA_LARGE = {  # roberta-large up to the layer that bert-score uses
    "vocab_size": 50265,
    "hidden_size": 1024,
    "num_hidden_layers": 17,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
WEIGHTS = "model.safetensors"  # the file that `save_pretrained` writes last
BUILD_SECONDS = 3600.0


@dataclass(frozen=True)
class Model:
    """A model folder, written by `save_pretrained`, and the layer to score with."""

    name: str
    model_id: str  # its name in bundles; the catalogue's only if it is that model
    folder: Path
    num_layers: int
    bundles: Path  # the folder in which exported bundles are kept
    ready: dict[str, Path]  # bundles that the user gave, by precision

    def bundle(self, precision: str = "fp32") -> Path:
        """Return the bundle of a precision; export it unless the exporter as it is now has done so
        before.
        """
        if precision in self.ready:
            return self.ready[precision]
        output = self.bundles / f"{self.name}-{self.num_layers}-{precision}"
        made_by = output.with_name(f"{output.name}.made-by")
        if not made_by.is_file() or made_by.read_text(encoding="utf-8") != exporter_digest():
            print(f"Exporting {self.name} in {precision} ...", file=sys.stderr)
            facts = (self.folder, self.model_id, self.num_layers, precision, output)
            call_in_child(export, *facts, limit=BUILD_SECONDS)
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
    """Return the SHA-256 of all source code that affects the contents of a bundle."""
    folders = (
        ROOT / "export",
        ROOT / "bertscore_onnx" / "bundle",
        ROOT / "bertscore_onnx" / "text",
    )
    sources = [source for folder in folders for source in sorted(folder.rglob("*.py"))]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


@dataclass(frozen=True)
class Models:
    """Makes the models in a folder."""

    folder: Path
    texts: list[str]  # to train the tokenizer of the random RoBERTa on
    ready: dict[str, Path]  # bundles that the user gave, as MODEL-PRECISION
    roberta_folder: Path | None = None  # roberta-large itself, instead of the random one

    @cached_property
    def minilm(self) -> Model:
        """The pretrained all-MiniLM-L6-v2 at layer 4."""
        sys.path.append(str(ROOT / "examples"))
        from minilm import model_folder

        return self._model("all-MiniLM-L6-v2", model_folder(), 4)

    @cached_property
    def roberta_large(self) -> Model:
        """Roberta-large up to layer 17, with random weights unless the user gave a folder."""
        layers = ROBERTA_LARGE["num_hidden_layers"]
        folder = self.roberta_folder or self.folder / f"roberta-large-random-{layers}"
        if self.roberta_folder is None and not (folder / WEIGHTS).is_file():
            print("Making a random roberta-large ...", file=sys.stderr)
            call_in_child(save_random_roberta, folder, self.texts, limit=BUILD_SECONDS)
        model_id = "roberta-large-random" if self.roberta_folder is None else "roberta-large"
        return self._model("roberta-large", folder, layers, model_id)

    @cached_property
    def roberta_embeddings(self) -> Model:
        """Only the embeddings of the same model, so that more than half of the time is spent around
        it.
        """
        return replace(self.roberta_large, name="roberta-large-embeddings", num_layers=0)

    @cached_property
    def tiny(self) -> Model:
        """A random BERT with one layer and 32 dimensions."""
        folder = self.folder / "tiny-bert"
        if not (folder / WEIGHTS).is_file():
            call_in_child(save_tiny_bert, folder, limit=BUILD_SECONDS)
        return self._model("tiny-bert", folder, 1)

    def _model(
        self, name: str, folder: Path, num_layers: int, model_id: str | None = None
    ) -> Model:
        prefix = f"{name}-"
        ready = {
            key.removeprefix(prefix): path
            for key, path in self.ready.items()
            if key.startswith(prefix)
        }
        return Model(name, model_id or name, folder, num_layers, self.folder / "bundles", ready)


def save_random_roberta(folder: Path, texts: list[str]) -> None:
    """Save a random RoBERTa with a tokenizer trained on the texts, slow and fast."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    trained = ByteLevelBPETokenizer()
    special_tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator(
        texts, vocab_size=8000, special_tokens=special_tokens, show_progress=False
    )
    _save_tokenizer(trained, folder, "RobertaTokenizer", 512)
    RobertaTokenizerFast.from_pretrained(folder).backend_tokenizer.save(
        str(folder / "tokenizer.json")
    )
    torch.manual_seed(0)
    config = RobertaConfig(layer_norm_eps=1e-5, **ROBERTA_LARGE)
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)


def save_tiny_bert(folder: Path) -> None:
    """Save a random BERT with one layer and a tokenizer trained on the words of
    `distinct_pairs`.
    """
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel

    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(
        [*WORDS, *SYLLABLES], vocab_size=1000, min_frequency=1, show_progress=False
    )
    _save_tokenizer(trained, folder, "BertTokenizer", TINY["max_position_embeddings"])
    torch.manual_seed(0)
    config = BertConfig(vocab_size=trained.get_vocab_size(), **TINY)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)


def _save_tokenizer(trained: Any, folder: Path, tokenizer_class: str, max_length: int) -> None:
    """Save the files from which any version of transformers loads a slow tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    trained.save_model(str(folder))
    config = {"tokenizer_class": tokenizer_class, "model_max_length": max_length}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def export(folder: Path, name: str, num_layers: int, precision: str, output: Path) -> None:
    """Export a model folder into a bundle."""
    from bertscore_onnx_export.pipeline import export_model

    options: dict[str, Any] = {"precision": precision}
    export_model(
        str(folder), name=name, num_layers=num_layers, output=output, force=True, **options
    )
