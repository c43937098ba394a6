"""What the model of a local folder is called, and whether the store holds another one of that name."""

import re
from pathlib import Path

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import stored_bundles
from bertscore_onnx.errors import BundleError, ExportError

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

    Args:
        manifest: that of the new bundle.
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
