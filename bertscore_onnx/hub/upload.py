"""Pushes bundles to the hub: one repository for each model, and in it one folder for each variant."""

import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.bundle.card import CARD, CARD_MARK, model_card, read_license
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import BundleError, HubError, InputError
from bertscore_onnx.hub.download import fetch, fetch_manifest
from bertscore_onnx.hub.remote import HubRepository, check_online, load_client, remote_errors
from bertscore_onnx.hub.source import Source, parse_source

_log = logging.getLogger(__name__)

MAX_CARD_BYTES = 1_000_000
"""More than any card written for readers has."""


def push(
    bundle: str | PathLike[str],
    repo: str,
    *,
    private: bool = False,
    token: str | None = None,
    progress: bool | None = None,
) -> str:
    """Push a bundle into its variant's folder of a repository, in one commit.

    Other files in that folder are deleted. The repository's model card is rewritten from all its bundles, unless
    somebody else wrote it: a card without the comment that this package puts there is never changed.

    Args:
        bundle: the bundle's folder; every file is read first to check its digest.
        repo: `ORG/REPO` on the Hugging Face hub, which is created if it does not exist.
        private: create a repository that only the organisation can see.
        token: with permission to write; None for `HF_TOKEN`, or the token of `hf auth login`.
        progress: show progress bars on standard error; None for bars on a terminal.

    Returns:
        `hf://ORG/REPO@COMMIT/VARIANT`, by which `pull` and `BERTScorer` find exactly this bundle.

    Raises:
        InputError: the repository's name is not valid.
        BundleError: the bundle cannot be used.
        HubUnreachableError: the hub cannot be reached.
        HubError: the hub refuses, or the repository is public and `private` is set.
        MissingExtraError: huggingface_hub is not installed.
    """
    source = parse_source(repo)
    if source.repo is None or source.revision is not None or source.variant is not None:
        raise InputError(f"{repo!r} is no repository; expected ORG/REPO. Bundles are pushed to its default branch.")
    opened = open_bundle(bundle, verify=True)
    check_online()
    api, variant = load_client().HfApi(token=token), opened.manifest.variant.folder_name
    with remote_errors(str(source)):
        api.create_repo(source.repo, private=private or None, exist_ok=True)
    repository = HubRepository(source, token)
    if private and not repository.is_private:
        raise HubError(f"{source} is public, and a push does not change that. Leave out --private (private=True).")
    card = _card(repository, source, opened.path, variant, opened.manifest)
    with remote_errors(str(source)), _bars(shown=progress):
        commit = api.create_commit(
            source.repo,
            operations=_operations(repository, opened.path, variant, opened.manifest, card),
            commit_message=f"Push {variant}",
        )
    return str(Source(source.location, commit.oid, variant))


@contextmanager
def _bars(*, shown: bool | None) -> Iterator[None]:
    """Show the client's progress bars, or hide them."""
    utils = load_client().utils
    if (sys.stderr.isatty() if shown is None else shown) or utils.are_progress_bars_disabled():
        yield
        return
    utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.enable_progress_bars()


def _operations(
    repository: HubRepository, folder: Path, variant: str, manifest: Manifest, card: str | None
) -> list[Any]:
    """Return the operations of the commit: add the bundle and the card, delete other files in the variant's folder."""
    client = load_client()
    files = {f"{variant}/{name}": folder / name for name in [MANIFEST, *manifest.files]}
    stale = [path for path in repository.sizes if path.startswith(f"{variant}/") and path not in files]
    operations = [client.CommitOperationAdd(path, str(file.resolve())) for path, file in files.items()]
    operations += [client.CommitOperationDelete(path) for path in stale]
    if card is not None:
        operations.append(client.CommitOperationAdd(CARD, card.encode()))
    return operations


def _card(repository: HubRepository, source: Source, folder: Path, variant: str, manifest: Manifest) -> str | None:
    """Return the repository's new card; None if the present one was written by somebody else."""
    with tempfile.TemporaryDirectory(prefix="bertscore-onnx-") as temporary:
        present = Path(temporary) / CARD
        if CARD in repository.sizes:
            fetch(repository.folder(""), CARD, present.parent, MAX_CARD_BYTES)
            if CARD_MARK not in present.read_text(encoding="utf-8", errors="replace"):
                _log.warning("%s keeps the model card that it has, since somebody else wrote it.", source)
                return None
        license_fields = read_license(folder / CARD) or read_license(present)
    manifests = {**_manifests(repository), variant: manifest}
    names = {name: f"{source}/{name}" if name else str(source) for name in sorted(manifests)}
    return model_card({names[name]: manifests[name] for name in names}, license_fields)


def _manifests(repository: HubRepository) -> dict[str, Manifest]:
    """Return the manifests of the usable bundles in a repository, by folder."""
    manifests = {}
    for folder in repository.folders:
        with tempfile.TemporaryDirectory(prefix="bertscore-onnx-") as temporary:
            try:
                manifests[folder] = fetch_manifest(repository.folder(folder), Path(temporary))
            except BundleError as error:
                _log.warning("The model card leaves out a bundle: %s", error)
    return manifests
