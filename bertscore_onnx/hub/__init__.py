"""Bundles from and to the Hugging Face hub, and from storage of one's own; needs the extra `hub`."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from bertscore_onnx.files import path_text

if TYPE_CHECKING:
    from bertscore_onnx.hub.download import pull
    from bertscore_onnx.hub.upload import push

__all__ = ["local_path", "pull", "push"]

_MODULES = {"pull": "download", "push": "upload"}


def __getattr__(name: str) -> object:
    """Import a function when it is first used, so that local bundles need none of the extra's packages."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def local_path(name: str | os.PathLike[str]) -> str:
    """Return the path of the bundle that `hf://ORG/REPO[@REVISION][/VARIANT]` names; return any other name unchanged.

    If the bundle was pulled earlier, the hub is not contacted. Otherwise it is pulled; if the home folder holds another
    bundle of its model and variant, it is stored beside that one.

    Raises:
        InputTypeError: the name is neither a string nor a path.
        InputError, BundleError, HubError, MissingExtraError: as in `pull`.
    """
    name = path_text(name, "model_type")
    if not name.startswith("hf://"):
        return name
    from bertscore_onnx.hub.download import find_or_pull

    return str(find_or_pull(name))
