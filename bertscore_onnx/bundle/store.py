"""Where bundles live: `$BERTSCORE_ONNX_HOME`, by default the platform's cache folder."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertscore_onnx.errors import BundleNotFoundError

MANIFEST = "bertscore.json"
"""The file that makes a folder a bundle."""

TokenizerMode = Literal["slow", "fast"]
Precision = Literal["fp32", "fp16", "int8"]


def store_root() -> Path:
    """Return the folder under which bundles are exported and looked up; it need not exist yet.

    Raises:
        BundleNotFoundError: the user has no home folder, and none is named.
    """
    named = os.environ.get("BERTSCORE_ONNX_HOME")
    try:
        root = Path(named).expanduser() if named else _user_cache()
    except RuntimeError:
        root = None
    if root is None or root.parts[0] == "~":  # what some versions of platformdirs leave as it is
        raise BundleNotFoundError(
            "There is no folder of bundles, since this user has no home folder. Give the path of a bundle, or set "
            "BERTSCORE_ONNX_HOME to a folder."
        )
    return root


def _user_cache() -> Path:
    import platformdirs  # costs start-up time and is needed only here

    return platformdirs.user_cache_path("bertscore-onnx", appauthor=False)


@dataclass(frozen=True, slots=True)
class Variant:
    """Which of the bundles of one model."""

    num_layers: int | None
    """The layer; None for a bundle of every layer."""

    tokenizer_mode: TokenizerMode = "slow"
    """Which of the two tokenizers of transformers the ids are those of."""

    precision: Precision = "fp32"
    """The compute precision of the graph."""

    @property
    def folder_name(self) -> str:
        """The name of its folder."""
        layers = "all-layers" if self.num_layers is None else f"layer-{self.num_layers}"
        return f"{layers}-{self.tokenizer_mode}-{self.precision}"


def bundle_folder(model_id: str, variant: Variant) -> Path:
    """Return the place of one bundle: a folder per model, and in it one per variant."""
    return _model_folder(model_id) / variant.folder_name


def stored_bundles(model_id: str | None = None, variants: str = "*") -> Iterator[Path]:
    """Yield the folders of the bundles under the home folder, of one model or of all, sorted; none without one.

    Args:
        model_id: the model; None for all of them.
        variants: a pattern for the names of their folders.
    """
    pattern = f"{variants}/{MANIFEST}" if model_id else f"*/{variants}/{MANIFEST}"
    try:
        root = _model_folder(model_id) if model_id else store_root() / "bundles"
    except BundleNotFoundError:
        return
    if not os.path.isdir(root):  # unlike Path, it takes any name
        return
    yield from sorted(manifest.parent for manifest in root.glob(pattern) if not manifest.parent.name.startswith("."))


def _model_folder(model_id: str) -> Path:
    return store_root() / "bundles" / model_id.replace("/", "--")
