"""A repository of the hub at one commit, and one variant in it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import Any, NoReturn

from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import BundleNotFoundError, HubError, InputError
from bertscore_onnx.hub.client import TIMEOUT, Body, headers_of, load_client, open_url, told
from bertscore_onnx.hub.origins import Origin
from bertscore_onnx.hub.source import Source


class HubRepository:
    """Reads the files of one commit; what is pushed meanwhile is not seen."""

    def __init__(self, source: Source, token: str | None = None) -> None:
        """Ask the hub what there is.

        Args:
            source: which repository and revision.
            token: for repositories that are not public; None for the one that the client knows.

        Raises:
            BundleNotFoundError: the repository or the revision is not there.
            HubUnreachableError: the hub cannot be reached.
            HubError: it refuses the request, or does not answer as a hub does.
        """
        self._api = load_client().HfApi(token=token)
        self._headers = headers_of(token)
        self._repo = str(source.repo)
        self.name = str(Source(source.place, source.revision))
        """What to call it in messages."""
        info = self._info(source)
        self.commit = str(info.sha)
        """The commit that the revision means now."""
        self.is_private = bool(info.private)
        """Whether only some may see it."""
        self.sizes = self._sizes(info)
        """Path to bytes, of all files; None where the hub does not say."""

    @property
    def folders(self) -> list[str]:
        """The folders that hold a bundle; one is empty where the repository itself does."""
        manifests = [PurePosixPath(path) for path in self.sizes if PurePosixPath(path).name == MANIFEST]
        return sorted("" if str(manifest.parent) == "." else str(manifest.parent) for manifest in manifests)

    def open(self, path: str, offset: int = 0) -> AbstractContextManager[Body]:
        """Open a file; raises what `open_url` does."""
        url = load_client().hf_hub_url(self._repo, path, revision=self.commit, endpoint=self._api.endpoint)
        return open_url(url, f"{self.name}/{path}", offset=offset, headers=self._headers)

    def _info(self, source: Source) -> Any:
        client = load_client()
        errors, revision = client.errors, source.revision or client.constants.DEFAULT_REVISION
        with told(self.name):
            try:
                info = self._api.model_info(self._repo, revision=revision, files_metadata=True, timeout=TIMEOUT)
            except errors.RevisionNotFoundError:
                self._explain_revision(revision)
            except errors.GatedRepoError:
                raise
            except errors.RepositoryNotFoundError as error:  # 401 too: a hub tells nobody what is private
                status = getattr(error.response, "status_code", 404)
                raise BundleNotFoundError(
                    f"There is no repository {self._repo} on {self._api.endpoint}, or it is private and the token may "
                    f"not see it ({status}). For a private one set HF_TOKEN to a token that may."
                ) from error
            if not isinstance(info.sha, str):
                raise HubError(f"{self.name} did not answer as a hub does: it names no commit.")
            return info

    def _sizes(self, info: Any) -> Mapping[str, int | None]:
        sizes = {sibling.rfilename: sibling.size for sibling in info.siblings or []}
        if None not in sizes.values():
            return sizes
        with told(self.name):  # some mirrors of the hub say sizes here only
            tree = self._api.list_repo_tree(self._repo, recursive=True, revision=self.commit)
            return {**sizes, **{entry.path: entry.size for entry in tree if hasattr(entry, "size")}}

    def _explain_revision(self, revision: str) -> NoReturn:
        missing = f"{self._repo} has no revision {revision!r}."
        try:
            with told(self.name):
                refs = self._api.list_repo_refs(self._repo)
        except (BundleNotFoundError, HubError) as error:  # some mirrors of the hub do not list them
            raise BundleNotFoundError(missing) from error
        known = ", ".join(ref.name for ref in [*refs.branches, *refs.tags])
        raise BundleNotFoundError(f"{missing} Its branches and tags are: {known or 'none'}.")


class HubVariant:
    """One folder of a repository that holds a bundle."""

    def __init__(self, repository: HubRepository, source: Source) -> None:
        """Choose the folder.

        Raises:
            BundleNotFoundError: there is no such variant.
            InputError: there are several variants, and none is named.
        """
        self._repository = repository
        self._folder = _choose(repository, source.variant)
        self.name = str(Source(source.place, source.revision, self._folder))
        """What to call it in messages."""
        self.origin = Origin(source.place, source.revision, self._folder, repository.commit)
        """Where its files come from."""

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, as the hub says."""
        return self._repository.sizes.get(self._path(name))

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[Body]:
        """Open a file; raises what `open_url` does."""
        return self._repository.open(self._path(name), offset)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}" if self._folder else name


def _choose(repository: HubRepository, variant: str | None) -> str:
    there = repository.folders
    if variant in there:
        return str(variant)
    if not there:
        raise BundleNotFoundError(f"{repository.name} holds no bundle: no folder of it has a {MANIFEST}.")
    names = ", ".join(folder or "(the repository itself)" for folder in there)
    if variant is not None:
        raise BundleNotFoundError(f"{repository.name} has no variant {variant!r}. Its variants are: {names}.")
    if len(there) > 1:
        raise InputError(
            f"{repository.name} has several variants: {names}. Name one, as {repository.name}/{there[-1]}."
        )
    return there[0]
