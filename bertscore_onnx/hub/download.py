"""Pulls bundles from the hub into the home folder."""

import logging
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from bertscore_onnx.bundle.bundle import bundle_file, open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import MANIFEST, bundle_folder, store_root
from bertscore_onnx.errors import (
    Argument,
    BundleError,
    BundleNotFoundError,
    HubError,
    HubUnreachableError,
    ManifestError,
    UnsafePathError,
)
from bertscore_onnx.files import StrPath, path_text
from bertscore_onnx.hub.repository import Repository
from bertscore_onnx.hub.source import HUB, VARIANT, HubSource, add_names, find_pulled, parse_source

_log = logging.getLogger(__name__)


def pull(source: str, *, token: str | None = None, force: bool = False) -> Path:
    """Download a bundle from the Hugging Face hub into the home folder.

    There the name of its model finds it. The bundle appears only when every file has the digest of
    the manifest. Without network, the bundle that was pulled by the same name earlier is returned;
    a commit that was pulled is never requested again.

    Args:
        source: `ORG/REPO[@REVISION][/VARIANT]`. A revision is a branch, tag or commit, by default
            that of the default branch; a variant is a folder in the repository, such as
            `layer-17-slow-fp32`, by default the only one.
        token: for a repository that is not public; None for `HF_TOKEN`, or the token of `hf auth
            login`.
        force: replace another bundle of this model and variant in the home folder.

    Returns:
        The bundle's folder.

    Raises:
        InputError: the source is not valid, or has several variants and none is named.
        BundleNotFoundError: the repository, the revision or the variant does not exist.
        BundleError: the bundle is damaged, or does not match its manifest.
        HubUnreachableError: there is no network, and nothing was pulled by this name earlier.
        HubError: the hub refuses, the disk is full, or another bundle is stored under this model
            and variant.
        MissingExtraError: huggingface_hub is not installed.
    """
    return _pull(parse_source(source), token=token, force=force)


def local_path(name: StrPath) -> str:
    """Return the path of a bundle that may be on the hub.

    A name on the hub is `hf://ORG/REPO[@REVISION][/VARIANT]`; any other name is returned unchanged.
    If the bundle was pulled by this name earlier, the hub is not contacted. Otherwise the bundle is
    pulled; if the home folder holds another bundle of its model and variant, the new one is stored
    beside it.

    Raises:
        InputTypeError: the name is neither a string nor a path.
        InputError, BundleError, HubError, MissingExtraError: as in `pull`.
    """
    name = path_text(name, "model_type")
    if not name.startswith(HUB):
        return name
    source = parse_source(name)
    return str(find_pulled(source) or _pull(source, keep_both=True))


def _pull(
    source: HubSource, *, token: str | None = None, force: bool = False, keep_both: bool = False
) -> Path:
    stored = find_pulled(source)
    if stored is not None and source.is_pinned:
        return stored
    try:
        repository = Repository(source, token)
    except HubUnreachableError as error:
        if stored is None:
            raise
        _log.warning("%s Using the bundle that was pulled from there earlier.", error)
        return stored
    folder, home = repository.folder(), store_root() / "bundles"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".pulling-") as staging:
            return _download(repository, folder, Path(staging), force, keep_both)
    except (HubError, BundleNotFoundError):
        raise
    except BundleError as error:
        raise type(error)(f"{source} cannot be used. {error}") from error
    except OSError as error:
        raise HubError(
            f"Cannot put a bundle into {home}: {error.strerror or error}. BERTSCORE_ONNX_HOME "
            "sets another folder."
        ) from error


def _download(
    repository: Repository, folder: str, staging: Path, force: bool, keep_both: bool
) -> Path:
    """Download a bundle to a temporary folder, and check it.

    Then move it to its place, and return that.
    """
    # hidden, since it looks like a stored bundle itself if the repository is one
    root = staging / ".files"
    repository.download([Path(folder, MANIFEST).as_posix()], root)
    manifest = read_manifest(root / folder)
    variant = manifest.variant.folder_name
    if re.fullmatch(VARIANT, Path(folder).name) and Path(folder).name != variant:
        raise ManifestError(f"{folder} holds the variant {variant}. Inform its owner.")
    target = _choose_target(manifest, force, keep_both)
    if _digest(target) == manifest.digest:
        with suppress(BundleError):  # a damaged copy is replaced
            open_bundle(target)
            add_names(target, repository.source, folder, repository.commit)
            return target
    files = [bundle_file(Path(folder), name) for name in manifest.files]
    repository.download([file.as_posix() for file in files], root)
    open_bundle(root / folder, verify=True)
    shutil.rmtree(root / ".cache", ignore_errors=True)  # of huggingface_hub
    add_names(root / folder, repository.source, folder, repository.commit)
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        os.replace(target, staging / "replaced")
    os.replace(root / folder, target)
    return target


def _choose_target(manifest: Manifest, force: bool, keep_both: bool) -> Path:
    """Return the folder of a bundle's model and variant, or with `keep_both` a new one beside it if
    another bundle is there.
    """
    usual = bundle_folder(manifest.model_id, manifest.variant)
    model = usual.parent
    if (
        model.parent != store_root() / "bundles"
        or model.name in {"", ".", ".."}
        or "\\" in model.name
    ):
        raise UnsafePathError(
            f"It calls its model {manifest.model_id!r}, which cannot be the name of a folder."
        )
    is_free = not usual.exists() or (usual.is_dir() and not any(usual.iterdir()))
    if is_free or _digest(usual) == manifest.digest or (force and (usual / MANIFEST).is_file()):
        return usual
    if keep_both:
        return usual.with_name(f"{usual.name}-{manifest.digest[:12]}")
    raise HubError(
        f"{usual} holds something else. Pass ",
        Argument("force", True),
        " to replace another bundle, or score with the name that begins with hf://, which keeps "
        "both.",
    )


def _digest(folder: Path) -> str | None:
    """Return the digest in the manifest of a stored bundle, or None if no manifest can be read."""
    with suppress(BundleError):
        return read_manifest(folder).digest
    return None
