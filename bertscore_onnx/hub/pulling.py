"""Pulls bundles into the store: from the hub, from a web server, or from any store that fsspec reads."""

import contextlib
import logging
import tempfile
from pathlib import Path

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import (
    BertScoreOnnxError,
    HubError,
    HubUnreachableError,
    InputError,
    ManifestError,
    UnsafePathError,
)
from bertscore_onnx.hub.client import check_online
from bertscore_onnx.hub.folders import StoreFolder, WebFolder
from bertscore_onnx.hub.origins import ORIGINS, add_origin, find
from bertscore_onnx.hub.placement import Place, put
from bertscore_onnx.hub.repository import HubRepository, HubVariant
from bertscore_onnx.hub.source import Source, is_variant, parse_source
from bertscore_onnx.hub.transfer import Remote, download, fetch_manifest

_log = logging.getLogger(__name__)


def pull(
    source: str,
    *,
    revision: str | None = None,
    variant: str | None = None,
    token: str | None = None,
    force: bool = False,
    offline: bool = False,
    progress: bool | None = None,
) -> Path:
    """Bring a bundle into the store of this machine, where its model's name then finds it.

    A download that was broken off goes on where it stopped. The bundle appears in the store when every file has the
    digest of the manifest, and not before. Without network a bundle that came from there earlier is found again; one of
    a commit is never asked for twice.

    Args:
        source: `ORG/REPO[@REVISION][/VARIANT]` on the Hugging Face hub, or the URL of a folder that holds a bundle:
            `https://…`, or of any store that fsspec reads, such as `s3://…`.
        revision: a branch, tag or commit of the hub; None for the default branch.
        variant: the folder in the repository, such as `layer-17-slow-fp32`; None for the only one.
        token: for a repository that is not public; None for `HF_TOKEN`, or that of `hf auth login`.
        force: replace another bundle of this model and variant in the store.
        offline: only look in the store.
        progress: show a progress bar on standard error; None for one on a terminal.

    Returns:
        The bundle's folder.

    Raises:
        InputError: the source is none, or leaves open which variant is meant.
        BundleNotFoundError: the repository, the revision or the variant is not there.
        BundleError: what is there is damaged, or not what its manifest says.
        HubUnreachableError: there is no network, and nothing came from there earlier.
        HubError: the hub refuses, the disk is full, or another bundle is in its place.
        MissingExtraError: huggingface_hub, or the package for a store, is not installed.
    """
    wanted = parse_source(source, revision, variant)
    return _pull(wanted, token=token, force=force, beside=False, offline=offline, progress=progress)


def find_or_pull(name: str) -> Path:
    """Return the folder of a bundle by its name on the hub, which is asked only where nothing came from there yet.

    The ordinary place of its model and variant stays as it is where another bundle is there.

    Raises:
        InputError, BundleError, HubError, MissingExtraError: as `pull` says.
    """
    wanted = parse_source(name)
    here = find(wanted)
    if len(here) == 1:
        return here[0]
    return _pull(wanted, token=None, force=False, beside=True, offline=False, progress=None)


def _pull(
    wanted: Source, *, token: str | None, force: bool, beside: bool, offline: bool, progress: bool | None
) -> Path:
    here = find(wanted)
    if len(here) == 1 and wanted.is_pinned:
        return here[0]
    try:
        if offline:
            raise HubUnreachableError(f"{wanted} is not in the store, and was to be looked for there only.")
        remote = _open(wanted, token)
        manifest, content = _read_manifest(remote)
    except HubUnreachableError as error:
        if len(here) > 1:
            names = ", ".join(folder.name for folder in here)
            raise InputError(f"{error} Several bundles came from there earlier: {names}. Name one of them.") from error
        if not here:
            raise
        if not offline:
            _log.warning("%s Taking the bundle that came from there earlier.", error)
        return here[0]
    place = Place(manifest)
    with place.locked():
        path = place.existing(beside=beside)
        if path is not None:
            with contextlib.suppress(OSError):  # a store that others write
                add_origin(path, remote.origin)
            return path
        path = place.choose(force=force, beside=beside)
        with place.staging() as folder:
            download(remote, manifest, folder, progress=progress)
            (folder / MANIFEST).write_bytes(content)  # last, since it makes a folder a bundle
            open_bundle(folder)
            add_origin(folder, remote.origin)
            put(folder, path)
    return path


def _open(source: Source, token: str | None) -> Remote:
    """Connect to the place that a bundle comes from."""
    check_online()
    if source.repo is not None:
        return HubVariant(HubRepository(source, token), source)
    if source.place.startswith(("https://", "http://")):
        return WebFolder(source, token)
    return StoreFolder(source)


def _read_manifest(remote: Remote) -> tuple[Manifest, bytes]:
    """Return a place's manifest, and its bytes."""
    try:
        with tempfile.TemporaryDirectory(prefix="bertscore-onnx-") as folder:
            manifest = fetch_manifest(remote, Path(folder))
            content = (Path(folder) / MANIFEST).read_bytes()
    except BertScoreOnnxError:
        raise
    except OSError as error:
        raise HubError(
            f"Cannot put the manifest of {remote.name} into a temporary folder: {error.strerror or error}. Make room, "
            "or set TMPDIR to a folder that can be written."
        ) from error
    names = {name.casefold().strip(". ") for name in manifest.files}  # as some systems take them, and as they are made
    if {MANIFEST, ORIGINS} & names:
        raise UnsafePathError(f"The manifest of {remote.name} names itself or {ORIGINS}. Do not use this bundle.")
    folder_name = (remote.origin.variant or "").rpartition("/")[2]
    if is_variant(folder_name) and folder_name != manifest.variant.folder_name:
        raise ManifestError(f"{remote.name} holds the variant {manifest.variant.folder_name}. Tell its owner.")
    return manifest, content
