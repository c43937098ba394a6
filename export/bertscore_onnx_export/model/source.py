"""The source of a model, a Hub id or a local folder.

What follows from it: the model's name, and the errors of loading it.
"""

import contextlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.card import CARD, read_license
from bertscore_onnx.bundle.catalogue import Architecture
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import MANIFEST, stored_bundles
from bertscore_onnx.errors import BertScoreOnnxError, BundleError, ExportError, UnknownLayerError

_POINTER = b"version https://git-lfs.github.com/"
"""The beginning of a file that git-lfs has not fetched."""

_COLOUR = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
"""What a terminal takes as a colour or another style."""

LAYERS = (
    "encoder_layers",
    "num_encoder_layers",
    "num_hidden_layers",
    "num_layers",
    "n_layers",
    "n_layer",
)
SIZES = ("hidden_size", "d_model", "dim", "emb_dim", "n_embd")
"""The names of these numbers in the configurations of transformers.

Later ones may be the decoder's.
"""

_LONGEST_CAUSE = 300
"""The characters of another library's message that are shown."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model of the Hub, or a local folder."""

    name_or_path: str
    """A Hub id, or a folder written by `save_pretrained`."""

    revision: str | None = None
    """A branch, tag or commit of the Hub; None for the default branch."""

    name: str | None = None
    """A name for the model; None for its own."""

    adapter: str | None = None
    """The folder of an adapter, inside the model's; None for the model alone."""

    @property
    def is_named_by_folder(self) -> bool:
        """Whether the model has no name but its folder's."""
        return self.name is None and Path(self.name_or_path).is_dir()

    @property
    def model_id(self) -> str:
        """The name of the model: as given, the Hub's, or the folder's."""
        if self.is_named_by_folder:
            name = name_of_folder(Path(self.name_or_path))
        else:
            name = self.name_or_path if self.name is None else self.name
        if self.adapter is not None:
            name += f"+{self.adapter}"
        if not name.isprintable() or "|" in name or name in {"", ".", ".."}:
            raise ExportError(
                f"{name!r} cannot be a model's name, which must be printable and have no '|'. "
                "Choose another with --name."
            )
        return name

    @property
    def remedy(self) -> str:
        """The advice for damaged files: a sentence for an error message."""
        folder = Path(self.name_or_path)
        bundle = folder.parent if folder.is_file() else folder
        if (bundle / MANIFEST).is_file():
            return (
                "It is a bundle already, which `bertscore-onnx score --model` takes. For another "
                "layer or precision, name the model that it was made from."
            )
        pointers = []
        for file in sorted(folder.glob("*")):
            if file.is_file() and _begins(file, _POINTER):
                pointers.append(file.name)
        if pointers:
            return (
                f"It holds pointers of git-lfs in place of {', '.join(pointers)}: run `git lfs "
                "pull` there."
            )
        return "Expected a Hub id or a folder written by `save_pretrained`, complete and undamaged."


@contextlib.contextmanager
def loading(content: str, source: Source) -> Iterator[None]:
    """Turn any error over a model's files into an ExportError that names its cause.

    For damaged files, transformers, safetensors and tokenizers raise errors of any class; a panic
    of their Rust code is not even an Exception.
    """
    try:
        yield
    except (BertScoreOnnxError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        cause = _cause(content, Path(source.name_or_path), error)
        remedy = "Install what is missing." if isinstance(error, ImportError) else source.remedy
        raise ExportError(
            f"Cannot load the {content} of {source.name_or_path!r}: {cause.rstrip('.')}. {remedy}"
        ) from error


_FILES = {
    "configuration": ("config.json",),
    "weights": ("*.safetensors", "*.bin"),
    "tokenizer": ("tokenizer.json", "*vocab*", "*.model", "*.codes"),
}
"""The files that a part is loaded from: a folder has some of them."""


def _cause(content: str, folder: Path, error: BaseException) -> str:
    """Return why a part of a model cannot be loaded, by its folder or the error's first line."""
    missing = None if isinstance(error, ImportError) else _missing(content, folder, error)
    return missing or _cause_in_message(error)


def _missing(content: str, folder: Path, error: BaseException) -> str | None:
    """Return what a folder lacks to load a part of a model; None if nothing."""
    patterns = _FILES.get(content, ())
    if patterns and folder.is_dir() and not any(chain(*map(folder.glob, patterns))):
        return f"the folder has no {' or '.join(patterns)}"
    if content != "configuration":
        return None
    if folder.is_file():
        return "it is a file"
    if isinstance(error, OSError) and not folder.exists():
        return "there is no such folder, and the Hub has no such model or cannot be reached"
    return None


def _cause_in_message(error: BaseException) -> str:
    """Return the first line of an error, or in plain words what it means."""
    line = first_line(error)
    if line.startswith("Unrecognized model in"):
        return "its config.json has no model_type"
    if type(error).__name__ == "SafetensorError":
        return f"a file of weights is damaged or cut short ({line})"
    shapes = re.findall(r"torch\.Size\(\[([\d, ]*)\]\)", line)
    if len(shapes) == 2:
        return (
            f"size mismatch: a tensor of the shape ({shapes[0]}), where config.json describes "
            f"({shapes[1]})"
        )
    if "ignore_mismatched_sizes" in line:  # transformers 5
        return "size mismatch: tensors have other shapes than config.json describes"
    if isinstance(error, KeyError):
        return f"transformers knows no {line}"
    if isinstance(error, OSError | ValueError | ImportError):
        return line
    return f"{type(error).__name__}, {line}"


def license_of(source: Source) -> dict[str, str]:
    """Return the license fields of the model's own card.

    Empty without a card, or if it cannot be loaded.
    """
    card = Path(source.name_or_path) / CARD
    if not Path(source.name_or_path).is_dir():
        from huggingface_hub import hf_hub_download

        try:
            card = Path(hf_hub_download(source.name_or_path, CARD, revision=source.revision))
        except Exception:  # offline, refused, or without a card; the export does not need it
            return {}
    return read_license(card)


def refuse_own_code(source: Source, settings: Mapping[str, Any], file: str) -> None:
    """Raise an ExportError if settings refer to code of the model's own.

    The export runs no such code.
    """
    if settings.get("auto_map"):
        raise ExportError(
            f"{source.name_or_path} comes with code of its own (`auto_map` in {file}), and the "
            "export runs none. Export a model whose architecture transformers itself has, or a "
            "graph of it with --from-onnx."
        )


def check_early(
    source: Source, num_layers: int | None, *, all_layers: bool, has_output: bool
) -> None:
    """Raise an error for what can be known before PyTorch is imported.

    That is a folder without a configuration or of too vague a name, or a layer that its model
    lacks. The import takes half a minute on some machines.
    """
    folder = Path(source.name_or_path)
    is_of_the_hub = len(folder.parts) <= 2 and not source.name_or_path.startswith((".", "/", "~"))
    if folder.exists() or not is_of_the_hub:
        with loading("configuration", source):
            settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            model = _architecture(settings)
        if not has_output and source.is_named_by_folder:
            check_name_of_folder(source.model_id)
        check_name(source, model)
        layers = model.model_layers
        if layers is not None and not all_layers:
            chosen = choose_layer(source.model_id, num_layers, layers)
            check_layer(source.name_or_path, chosen, layers)


def _architecture(settings: Mapping[str, Any]) -> Architecture:
    """Return what a config.json states of a model's type and sizes."""

    def stated(names: Sequence[str]) -> int | None:
        return next((settings[name] for name in names if type(settings.get(name)) is int), None)

    family = settings.get("model_type")
    if not isinstance(family, str):
        family = None
    return Architecture(family, stated(LAYERS), stated(SIZES), stated(["vocab_size"]))


def check_name(source: Source, model: Architecture) -> None:
    """Raise an ExportError if the catalogue has another model of this name.

    A warning says so if a folder's name alone makes it a model of the catalogue.
    """
    difference = catalogue.misnamed(source.model_id, model)
    if difference:
        raise ExportError(
            f"{source.name_or_path} bears the name of another model: {difference}. Give it a name "
            "of its own with --name."
        )
    if source.is_named_by_folder and catalogue.find(source.model_id) is not None:
        warnings.warn(
            f"Only the name of its folder says that this model is {source.model_id}. The bundle "
            "gets that model's layer, unless another is given, and its baselines. Pass --name "
            f"{source.model_id} if they are right for it, and another name if not.",
            UserWarning,
            stacklevel=3,
        )


def check_layer(model: str, num_layers: int, layers: int) -> None:
    """Raise an UnknownLayerError unless a model has a layer."""
    if not 0 <= num_layers <= layers:
        raise UnknownLayerError(
            f"{model} has {layers} layers; num_layers must be from 0 to that, not {num_layers}."
        )


def choose_layer(model_id: str, num_layers: int | None, layers: int) -> int:
    """Return the layer that was asked for, or the catalogue's.

    Raise an UnknownLayerError if there is neither.
    """
    entry = catalogue.find(model_id)
    if num_layers is None and entry is not None:
        num_layers = entry.num_layers
    if num_layers is None:
        raise UnknownLayerError(
            f"No layer is known for this model, {model_id}, which has {layers}. Choose one with "
            "--num-layers: about two thirds of the way up is usual, and `bertscore-onnx "
            "tune-layers` finds the best on judgements of yours."
        )
    return num_layers


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message.

    Return more of it if that line introduces a list. Messages of transformers may fill a page.
    """
    message = _COLOUR.sub("", str(error))
    lines = message.strip().splitlines()
    if not lines:
        return type(error).__name__
    text = lines[0]
    if text.rstrip().endswith((":", "(")):
        text = " ".join(message.split())
    return text if len(text) <= _LONGEST_CAUSE else f"{text[:_LONGEST_CAUSE]}…"


def _begins(file: Path, content: bytes) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(content)) == content


# The name of a model in a local folder, which must be distinctive and not that of another stored
# model.

_ANY_MODEL = {
    "best",
    "checkpoint",
    "encoder",
    "export",
    "final",
    "hf",
    "last",
    "model",
    "models",
    "out",
    "output",
    "outputs",
    "pytorch_model",
    "save",
    "saved",
    "snapshot",
    "tmp",
    "transformer",
    "weights",
    "0_transformer",
    "best_model",
    "best-model",
    "final_model",
    "final-model",
    "my_model",
    "my-model",
    "saved_model",
    "saved-model",
}
"""Names of folders, in lower case, that do not describe the model in them."""

_CHECKPOINT = re.compile(r"(checkpoint|ckpt|epoch|step)?[-_]?\d+|[\da-f]{40}", re.IGNORECASE)
"""The name of a numbered checkpoint, or of a commit."""

_SAME = 1e-3
"""The most that golden scores of one model differ between machines.

Scores of two models differ by more.
"""


def name_of_folder(folder: Path) -> str:
    """Return the name of a folder.

    In the cache of a hub (`models--ORG--NAME/snapshots/REVISION`), the hub's id.
    """
    folder = folder.resolve()
    repository = ""
    if len(folder.parents) > 1 and folder.parent.name == "snapshots":
        repository = folder.parents[1].name
    if not repository.startswith("models--"):
        return folder.name
    return repository.removeprefix("models--").replace("--", "/")


def is_vague(name: str) -> bool:
    """Return whether a folder's name does not describe the model in it."""
    return name.lower() in _ANY_MODEL or _CHECKPOINT.fullmatch(name) is not None


def check_name_of_folder(name: str) -> None:
    """Raise an ExportError if a folder's name does not describe its model."""
    if is_vague(name):
        raise ExportError(
            f"The folder's name, {name!r}, would become the model's, and that of any other model "
            "in such a folder. Set its name with --name, or the bundle's folder with --output."
        )


def check_same_model(manifest: Manifest) -> None:
    """Raise an ExportError if the home folder has another model of this name.

    Another model has another architecture or size, or other scores of the golden pairs at the same
    layer.
    """
    for folder in stored_bundles(manifest.model_id):
        try:
            stored = read_manifest(folder)
        except BundleError:  # damaged, or of another version
            continue
        if not _may_be_same(stored, manifest):
            raise ExportError(
                f"{folder} holds another model that is called {manifest.model_id!r} after its "
                "folder. Give this one another name with --name, or pass `--name "
                f"{manifest.model_id}` to use the same for both."
            )


def _may_be_same(stored: Manifest, new: Manifest) -> bool:
    def facts(manifest: Manifest) -> tuple[object, ...]:
        return manifest.family, manifest.hidden_size, manifest.vocab_size

    def scored(manifest: Manifest) -> tuple[object, ...]:
        texts = [(pair.candidate, pair.reference) for pair in manifest.golden]
        return manifest.num_layers, manifest.all_layers, manifest.tokenizer_mode, texts

    if facts(stored) != facts(new):
        return False
    if scored(stored) != scored(new):
        return True
    for old_pair, new_pair in zip(stored.golden, new.golden, strict=True):
        for first, second in zip(old_pair.f1, new_pair.f1, strict=True):
            if not abs(first - second) < _SAME:
                return False
    return True
