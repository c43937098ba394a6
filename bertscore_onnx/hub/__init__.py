"""Bundles from and to the Hugging Face hub, and from stores of one's own; needs the extra `hub`."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertscore_onnx.hub.download import pull
    from bertscore_onnx.hub.upload import push

__all__ = ["local_path", "pull", "push"]

_MODULES = {"pull": "download", "push": "upload"}


def __getattr__(name: str) -> object:
    """Import a function when it is first used, so that a scorer of a bundle that is here does without."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def local_path(name: str | os.PathLike[str]) -> str:
    """Return the path of a bundle that is named by `hf://ORG/REPO[@REVISION][/VARIANT]`; any other name as it is.

    A bundle that came from there earlier is taken without asking the hub. Else it is pulled; where another bundle of
    its model and variant is in the store, it goes beside that.

    Raises:
        InputError, BundleError, HubError, MissingExtraError: as `pull` says.
    """
    name = os.fspath(name)
    if not name.startswith("hf://"):
        return name
    from bertscore_onnx.hub.download import find_or_pull

    return str(find_or_pull(name))
