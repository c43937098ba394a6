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
from bertscore_onnx.hub.download import fetch_manifest
from bertscore_onnx.hub.remote import HubRepository, HubVariant, check_online, load_client, told
from bertscore_onnx.hub.source import Source, parse_source

_log = logging.getLogger(__name__)

MAX_CARD_BYTES = 1_000_000
"""More than a card that people read has."""


def push(
    bundle: str | PathLike[str],
    repo: str,
    *,
    private: bool = False,
    token: str | None = None,
    progress: bool | None = None,
) -> str:
    """Push a bundle into its variant's folder of a repository, in one commit: `hf://ORG/REPO@COMMIT/VARIANT`.

    Files that an earlier bundle of the variant left there go. The repository's model card is written again from all
    the bundles there, unless somebody else wrote it: one without the comment that says so stays as it is.

    Args:
        bundle: the bundle's folder, of which every file is read for its digest first.
        repo: `ORG/REPO` on the Hugging Face hub, which is made where it is not there.
        private: let only the organisation see a repository that is made.
        token: one that may write; None for `HF_TOKEN`, or that of `hf auth login`.
        progress: show progress bars on standard error; None for such on a terminal.

    Returns:
        That name, under which `pull` and `BERTScorer` find just this bundle.

    Raises:
        InputError: the repository's name is none.
        BundleError: the bundle cannot be used.
        HubUnreachableError: the hub cannot be reached.
        HubError: it refuses, or the repository is public and `private` was asked for.
        MissingExtraError: huggingface_hub is not installed.
    """
    source = parse_source(repo)
    if source.repo is None or source.revision is not None or source.variant is not None:
        raise InputError(f"{repo!r} is no repository; expected ORG/REPO, to whose default branch a bundle is pushed.")
    opened = open_bundle(bundle, verify=True)
    check_online()
    api, variant = load_client().HfApi(token=token), opened.manifest.variant.folder_name
    with told(str(source)):
        api.create_repo(source.repo, private=private or None, exist_ok=True)
    repository = HubRepository(source, token)
    if private and not repository.is_private:
        raise HubError(
            f"{source} is public already, and a push leaves that as it is. Leave out --private (private=True)."
        )
    card = _card(repository, source, opened.path, variant, opened.manifest)
    with told(str(source)), _bars(shown=progress):
        commit = api.create_commit(
            source.repo,
            operations=_operations(repository, opened.path, variant, opened.manifest, card),
            commit_message=f"Push {variant}",
        )
    return str(Source(source.place, commit.oid, variant))


@contextmanager
def _bars(*, shown: bool | None) -> Iterator[None]:
    """Let the client show its bars, or not."""
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
    """Return what the commit does: add the bundle's files and the card, delete other files in the variant's folder."""
    client = load_client()
    files = {f"{variant}/{name}": folder / name for name in [MANIFEST, *manifest.files]}
    stale = [path for path in repository.sizes if path.startswith(f"{variant}/") and path not in files]
    operations = [client.CommitOperationAdd(path, str(file.resolve())) for path, file in files.items()]
    operations += [client.CommitOperationDelete(path) for path in stale]
    if card is not None:
        operations.append(client.CommitOperationAdd(CARD, card.encode()))
    return operations


def _card(repository: HubRepository, source: Source, folder: Path, variant: str, manifest: Manifest) -> str | None:
    """Return the repository's card; None where the one that is there is somebody else's."""
    with tempfile.TemporaryDirectory(prefix="bertscore-onnx-") as temporary:
        present = Path(temporary) / CARD
        if CARD in repository.sizes:
            present.write_bytes(_read(repository, CARD))
            if CARD_MARK not in present.read_text(encoding="utf-8", errors="replace"):
                _log.warning("%s keeps the model card that it has, which somebody else wrote.", source)
                return None
        known = read_license(folder / CARD) or read_license(present)
    manifests = {**_manifests(repository, source), variant: manifest}
    return model_card(
        {f"{source}/{name}" if name else str(source): manifests[name] for name in sorted(manifests)}, known
    )


def _manifests(repository: HubRepository, source: Source) -> dict[str, Manifest]:
    """Return the manifests of the bundles that are there; those that cannot be used are left out."""
    found = {}
    for folder in repository.folders:
        with tempfile.TemporaryDirectory(prefix="bertscore-onnx-") as temporary:
            try:
                found[folder] = fetch_manifest(
                    HubVariant(repository, Source(source.place, None, folder)), Path(temporary)
                )
            except BundleError as error:
                _log.warning("The model card leaves out a bundle: %s", error)
    return found


def _read(repository: HubRepository, path: str) -> bytes:
    content = b""
    with repository.open(path) as body:
        for chunk in body.chunks:
            content += chunk
            if len(content) > MAX_CARD_BYTES:
                raise HubError(f"{path} of {repository.name} has more than {MAX_CARD_BYTES:,} bytes.")
    return content
