"""Where a model comes from, and how to say that it cannot be had."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.card import CARD, read_license
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import stored_bundles
from bertscore_onnx.errors import BertScoreOnnxError, BundleError, ExportError

# What the model of a local folder is called, and whether the store holds another one of that name.


_ANY_MODEL = {
    *("best", "checkpoint", "encoder", "export", "final", "hf", "last", "model", "models", "out", "output", "outputs"),
    *("pytorch_model", "save", "saved", "snapshot", "tmp", "transformer", "weights", "0_transformer"),
    *("best_model", "best-model", "final_model", "final-model", "my_model", "my-model", "saved_model", "saved-model"),
}
"""Names of folders, in lower case, that say nothing of the model in them."""

_CHECKPOINT = re.compile(r"(checkpoint|ckpt|epoch|step)?[-_]?\d+|[\da-f]{40}", re.IGNORECASE)
"""The name of a checkpoint, by its number, or of a commit."""

_SAME = 1e-3
"""What golden scores of one model may differ by on two machines; those of two models differ by more."""


def name_of_folder(folder: Path) -> str:
    """Return the name of a folder, or in the cache of a hub (`models--ORG--NAME/snapshots/REVISION`) the hub's id."""
    folder = folder.resolve()
    repository = folder.parents[1].name if len(folder.parents) > 1 and folder.parent.name == "snapshots" else ""
    return repository[8:].replace("--", "/") if repository.startswith("models--") else folder.name


def check_name_of_folder(name: str) -> None:
    """Raise an ExportError where a name says nothing of the model that a folder holds."""
    if name.lower() in _ANY_MODEL or _CHECKPOINT.fullmatch(name):
        raise ExportError(
            f"The folder's name, {name!r}, would become the model's, and that of any other model in such a folder. Say "
            "what it is called with --name, or where the bundle goes with --output."
        )


def check_same_model(manifest: Manifest) -> None:
    """Raise an ExportError where the store holds another model under the name of a new bundle.

    Another one is of another architecture or size, or gives the golden pairs other scores at the same layer.
    """
    for folder in stored_bundles(manifest.model_id):
        try:
            stored = read_manifest(folder)
        except BundleError:  # damaged, or of another version
            continue
        if not _may_be_same(stored, manifest):
            raise ExportError(
                f"{folder} holds another model that is called {manifest.model_id!r} after its folder. Give this one "
                f"another name with --name, or `--name {manifest.model_id}` if it is to be called the same."
            )


def _may_be_same(one: Manifest, other: Manifest) -> bool:
    def facts(manifest: Manifest) -> tuple[object, ...]:
        return manifest.family, manifest.hidden_size, manifest.vocab_size

    def place(manifest: Manifest) -> tuple[object, ...]:
        texts = [(pair.candidate, pair.reference) for pair in manifest.golden]
        return manifest.num_layers, manifest.all_layers, manifest.tokenizer_mode, texts

    if facts(one) != facts(other):
        return False
    return place(one) != place(other) or all(
        abs(first - second) < _SAME
        for old, new in zip(one.golden, other.golden, strict=True)
        for first, second in zip(old.f1, new.f1, strict=True)
    )


_POINTER = b"version https://git-lfs.github.com/"
"""What a file begins with that git-lfs has not fetched."""

_LONGEST_CAUSE = 300
"""Characters of another library's message that are shown."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model of the Hub, or a local folder."""

    name_or_path: str
    """A Hub id, or a folder written by `save_pretrained`."""

    revision: str | None = None
    """A branch, tag or commit of the Hub; None for the default branch."""

    name: str | None = None
    """What to call the model; None for its own name."""

    @property
    def is_named_by_folder(self) -> bool:
        """Whether nothing but its folder says what the model is called."""
        return self.name is None and Path(self.name_or_path).is_dir()

    @property
    def model_id(self) -> str:
        """The name the model goes by: the one given, the Hub's, or that of the folder."""
        own = name_of_folder(Path(self.name_or_path)) if self.is_named_by_folder else self.name_or_path
        name = own if self.name is None else self.name
        if not name.isprintable() or "|" in name or name in {"", ".", ".."}:
            raise ExportError(
                f"{name!r} cannot be a model's name, which has printable characters only, and no '|'. Choose another "
                "with --name."
            )
        return name

    @property
    def remedy(self) -> str:
        """What to do where its files are damaged: a sentence for an error message."""
        files = [file for file in sorted(Path(self.name_or_path).glob("*")) if file.is_file()]
        if pointers := [file.name for file in files if _begins(file, _POINTER)]:
            return f"It holds pointers of git-lfs in place of {', '.join(pointers)}: run `git lfs pull` there."
        return "Expected a Hub id or a folder written by `save_pretrained`, complete and undamaged."


@contextlib.contextmanager
def loading(part: str, source: Source) -> Iterator[None]:
    """Turn whatever other libraries raise over a model's files into an ExportError that names the cause.

    Over damaged files transformers, safetensors and tokenizers raise errors of any type; a panic of their Rust code is
    not even an Exception.
    """
    try:
        yield
    except (BertScoreOnnxError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        speaks = isinstance(error, OSError | ValueError | ImportError)
        cause = first_line(error) if speaks else f"{type(error).__name__}, {first_line(error)}"
        remedy = "Install what is missing." if isinstance(error, ImportError) else source.remedy
        raise ExportError(
            f"Cannot load the {part} of {source.name_or_path!r}: {cause.rstrip('.')}. {remedy}"
        ) from error


def license_of(source: Source) -> dict[str, str]:
    """Return what the model's own card says of its license; nothing where there is none, or it cannot be had."""
    card = Path(source.name_or_path) / CARD
    if not Path(source.name_or_path).is_dir():
        from huggingface_hub import hf_hub_download

        try:
            card = Path(hf_hub_download(source.name_or_path, CARD, revision=source.revision))
        except Exception:  # offline, refused, or without a card: whatever it is, the export does not need it
            return {}
    return read_license(card)


def refuse_own_code(source: Source, settings: Mapping[str, Any], file: str) -> None:
    """Raise an ExportError for a model that comes with code of its own, by the content of a settings file."""
    if settings.get("auto_map"):
        raise ExportError(
            f"{source.name_or_path} comes with code of its own (`auto_map` in {file}), and the export runs none. "
            "Export a model whose architecture transformers itself has."
        )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, and what follows where it opens a list.

    Messages of transformers run to a page.
    """
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    text = " ".join(str(error).split()) if lines[0].rstrip().endswith((":", "(")) else lines[0]
    return text if len(text) <= _LONGEST_CAUSE else f"{text[:_LONGEST_CAUSE]}…"


def _begins(file: Path, content: bytes) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(content)) == content
