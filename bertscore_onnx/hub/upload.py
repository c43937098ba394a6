"""Pushes bundles to the hub.

There is one repository for each model, and in it one folder for each variant.
"""

import logging
import tempfile
from pathlib import Path
from typing import Any

from bertscore_onnx.bundle.bundle import Bundle, open_bundle, read_manifest
from bertscore_onnx.bundle.card import CARD, CARD_MARK, model_card, read_license
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import Argument, BundleError, HubError, InputError
from bertscore_onnx.files import StrPath
from bertscore_onnx.hub.repository import Repository, hub_errors, load_client
from bertscore_onnx.hub.source import HubSource, parse_source

_log = logging.getLogger(__name__)


def push(bundle: StrPath, repo: str, *, private: bool = False, token: str | None = None) -> str:
    """Push a bundle into its variant's folder of a repository, in one commit.

    Other files in that folder are deleted. The repository's model card is rewritten from all its
    bundles, unless somebody else wrote it: a card without the comment that this package puts there
    is never changed.

    Args:
        bundle: the bundle's folder; every file is read first to check its digest.
        repo: `ORG/REPO` on the Hugging Face hub, which is created if it does not exist.
        private: create a repository that only the organisation can see.
        token: with permission to write; None for `HF_TOKEN`, or the token of `hf auth login`.

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
    if source != HubSource(source.repo):
        raise InputError(
            f"{repo!r} is no repository; expected ORG/REPO. Bundles are pushed to its default "
            "branch."
        )
    opened = open_bundle(bundle, verify=True)
    variant = opened.manifest.variant.folder_name
    name = str(source)
    with hub_errors(name):
        load_client().HfApi(token=token).create_repo(
            source.repo, private=private or None, exist_ok=True
        )
    repository = Repository(source, token)
    # A repository that exists keeps its visibility, whatever is requested above.
    if private and not repository.is_private:
        raise HubError(
            f"{name} is public, and a push does not change that. Leave out ",
            Argument("private", True),
            ".",
        )
    with hub_errors(name), tempfile.TemporaryDirectory(prefix="bertscore-onnx-") as folder:
        card = _card(repository, name, opened, Path(folder))
        commit = repository.api.create_commit(
            source.repo,
            operations=_operations(repository, opened, card),
            commit_message=f"Push {variant}",
        )
    return str(HubSource(source.repo, commit.oid, variant))


def _operations(repository: Repository, bundle: Bundle, card: str | None) -> list[Any]:
    """Return the operations that add the bundle and the card to the repository, and delete other
    files in the variant's folder.
    """
    client = load_client()
    variant = bundle.manifest.variant.folder_name
    added = {f"{variant}/{name}": bundle.path / name for name in [MANIFEST, *bundle.manifest.files]}
    operations = []
    for path, file in added.items():
        operations.append(client.CommitOperationAdd(path, str(file.resolve())))
    for path in repository.files:
        if path.startswith(f"{variant}/") and path not in added:
            operations.append(client.CommitOperationDelete(path))
    if card is not None:
        operations.append(client.CommitOperationAdd(CARD, card.encode()))
    return operations


def _card(repository: Repository, name: str, bundle: Bundle, temporary: Path) -> str | None:
    """Return a card for all bundles of the repository, or None to keep somebody else's card."""
    files = [path for path in repository.files if path == CARD or Path(path).name == MANIFEST]
    repository.download(files, temporary)
    present = temporary / CARD
    if present.exists() and CARD_MARK not in present.read_text(encoding="utf-8", errors="replace"):
        _log.warning("%s keeps the model card that it has, since somebody else wrote it.", name)
        return None
    manifests = {}
    for folder in repository.folders:
        try:
            manifests[folder] = read_manifest(temporary / folder)
        except BundleError as error:
            _log.warning("The model card leaves out the bundle of %s/%s: %s", name, folder, error)
    manifests[bundle.manifest.variant.folder_name] = bundle.manifest
    by_name = {}
    for folder, manifest in sorted(manifests.items()):
        by_name[f"{name}/{folder}" if folder else name] = manifest
    license_fields = read_license(bundle.path / CARD) or read_license(present)
    return model_card(by_name, license_fields)
