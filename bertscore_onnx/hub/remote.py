"""The client of the hub: loads huggingface_hub when it is needed, streams from URLs and tells what failed.

huggingface_hub sends requests by `requests` before its version 1, and by httpx since. Its own download of a file starts
over when it was broken off; this one says where to go on.
"""

import netrc
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NoReturn
from urllib.parse import quote, urlsplit, urlunsplit

from bertscore_onnx import __version__
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import (
    BertScoreOnnxError,
    BundleNotFoundError,
    HubError,
    HubUnreachableError,
    InputError,
    MissingExtraError,
    needs_extra,
    one_line,
)
from bertscore_onnx.hub.source import Origin, Source

TIMEOUT = 30.0
"""Seconds that a server may take for the next bytes."""

CHUNK = 1 << 14
"""Bytes that are read at a time. The beginning of a chunk is lost where a connection breaks off."""

_LONGEST_CAUSE = 300


def load_client() -> Any:
    """Import huggingface_hub."""
    with needs_extra("hub", "Pulling and pushing bundles"):
        import huggingface_hub
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.utils

    return huggingface_hub


def check_online() -> None:
    """Raise a HubUnreachableError where `HF_HUB_OFFLINE` forbids downloads."""
    if load_client().constants.HF_HUB_OFFLINE:
        raise HubUnreachableError("HF_HUB_OFFLINE=1 forbids the network. Unset it to pull or push.")


def headers_of(token: str | Literal[False] | None) -> dict[str, str]:
    """Return the headers of a request to the hub."""
    headers: dict[str, str] = load_client().utils.build_hf_headers(
        token=token, library_name="bertscore-onnx", library_version=__version__
    )
    return headers


@dataclass(frozen=True, slots=True)
class Body:
    """What a server sends of a file."""

    start: int
    """The byte of the file that it begins with: the one asked for, or one before it, as 0 where all is sent."""

    size: int | None
    """Bytes of the whole file, where the server says."""

    chunks: Iterator[bytes]


@contextmanager
def open_url(url: str, place: str, *, offset: int = 0, headers: dict[str, str]) -> Iterator[Body]:
    """Open a file by its URL."""
    with told(place):
        opened = _request(url, {**headers, "accept-encoding": "identity", **_range(offset)})
        response = opened.__enter__()
    try:
        check_status(response.status_code, place)
        yield _body(response, place, offset)
    finally:
        opened.__exit__(None, None, None)


@contextmanager
def told(place: str) -> Iterator[None]:
    """Turn what the client and its HTTP library raise into errors that name the place."""
    errors = load_client().errors
    try:
        yield
    except BertScoreOnnxError:
        raise
    except errors.GatedRepoError as error:
        raise HubError(
            f"{place} is gated: its owner has to grant access. Ask for it on the repository's page, and set HF_TOKEN."
        ) from error
    except errors.HfHubHTTPError as error:
        check_status(getattr(error.response, "status_code", 500), place)
        raise HubError(f"{place} cannot be read: {_cause(error)}.") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise HubError(f"{place} did not answer as a hub does: {_cause(error)}.") from error
    except RuntimeError as error:  # an upload that broke off
        raise HubUnreachableError(f"{place} broke off: {one_line(error)} {_cause(error)}. Try again.") from error
    except (OSError, *errors.HfHubHTTPError.__bases__) as error:  # the base of all that its HTTP library raises
        raise HubUnreachableError(f"{place} cannot be reached: {_cause(error)}.") from error


def check_status(status: int, place: str) -> None:
    """Raise the error that an HTTP status means, if any."""
    if status in (401, 403):
        raise HubError(
            f"{place} refused the request ({status}): it is private or not there, or the token is wrong or may not do "
            "this. Set HF_TOKEN to a token that may; for a web server of yours .netrc says user and password."
        )
    if status in (404, 410):
        raise BundleNotFoundError(f"{place} is not there ({status}).")
    if status == 429 or status >= 500:
        raise HubUnreachableError(f"{place} cannot be had at the moment: the server answered {status}.")
    if status >= 400 and status != 416:  # nothing is left of the range asked for
        raise HubError(f"{place} cannot be had: the server answered {status}.")


def _request(url: str, headers: dict[str, str]) -> Any:
    session = load_client().utils.get_session()
    if callable(getattr(session, "stream", None)):  # httpx
        return session.stream("GET", url, headers=headers, timeout=TIMEOUT, follow_redirects=True)
    return session.get(url, headers=headers, timeout=TIMEOUT, stream=True)


def _range(offset: int) -> dict[str, str]:
    return {"range": f"bytes={offset}-"} if offset else {}


def _body(response: Any, place: str, offset: int) -> Body:
    if response.status_code == 416:
        return Body(offset, None, iter(()))
    length = response.headers.get("content-length", "")
    is_plain = response.headers.get("content-encoding", "identity") == "identity"
    size = int(length) if length.isdecimal() and is_plain else None
    start = _start(response, offset) if response.status_code == 206 else 0
    if start > offset:
        raise HubError(f"{place} cannot be read: the server sends from byte {start:,}, asked for from {offset:,}.")
    return Body(start, None if size is None else start + size, _chunks(response, place))


def _start(response: Any, offset: int) -> int:
    """Return the byte that a part of a file begins with: the one asked for, unless the server says another."""
    said = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
    return offset if said is None else int(said[1])


def _chunks(response: Any, place: str) -> Iterator[bytes]:
    with told(place):
        yield from response.iter_bytes() if hasattr(response, "iter_bytes") else response.iter_content(CHUNK)


def _cause(error: BaseException) -> str:
    """Return what the first error of a chain said; those of HTTP libraries wrap it many times."""
    while (first := error.__cause__ or error.__context__) is not None:
        error = first
    return (one_line(error)[:_LONGEST_CAUSE] or type(error).__name__).rstrip(".")


# A repository of the hub at one commit, and one variant in it.


class HubRepository:
    """Reads the files of one commit; what is pushed meanwhile is not seen."""

    def __init__(self, source: Source, token: str | None = None) -> None:
        """Ask the hub what there is."""
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
        """Choose the folder."""
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


# A folder at a URL that holds a bundle: on a web server, or in any store that fsspec reads.


_CHUNK = 1 << 20


class WebFolder:
    """Reads files below a URL of http or https; the manifest says which there are."""

    def __init__(self, source: Source, token: str | None = None) -> None:
        """Take the folder's URL."""
        self.name = str(source)
        self.origin = Origin(self.name, None, None, None)
        self._parts = urlsplit(source.place)
        if not self._parts.hostname:
            raise InputError(f"{self.name} names no machine; expected such as https://machine/folder.")
        self._headers = headers_of(False)
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        elif self._parts.username is None and (known := _netrc(self._parts.hostname)) is not None:
            self._headers["authorization"] = f"Basic {b64encode(known.encode()).decode()}"

    def size(self, name: str) -> int | None:
        """Return nothing: the answer to the request for a file says its size."""
        return None

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[Body]:
        """Open a file; raises what `open_url` does."""
        url = urlunsplit(self._parts._replace(path=f"{self._parts.path}/{quote(name)}"))
        return open_url(url, f"{self.name}/{name}", offset=offset, headers=self._headers)


def _netrc(machine: str) -> str | None:
    """Return the user and the password that `.netrc` says for a machine; requests reads it itself, httpx does not."""
    try:
        found = netrc.netrc(Path(os.environ.get("NETRC") or "~/.netrc").expanduser()).authenticators(machine)
    except (OSError, RuntimeError, UnicodeDecodeError, netrc.NetrcParseError):
        return None
    return None if found is None else f"{found[0]}:{found[2]}"


class StoreFolder:
    """Reads files in a folder of a store that fsspec knows, such as `s3://` and `gs://`."""

    def __init__(self, source: Source) -> None:
        """Connect to the store."""
        self.name = str(source)
        self.origin = Origin(self.name, None, None, None)
        try:
            from fsspec.core import url_to_fs

            with _told(self.name):
                self._store, self._path = url_to_fs(source.place)
        except ImportError as error:
            package = getattr(error.__cause__, "name", None) or error.name or "fsspec"
            raise MissingExtraError(
                f"Reading {self.name} needs {package}, which is not installed. Install it with `pip install "
                f"'bertscore-onnx[hub]' {package}`.",
                name=package,
            ) from error

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, as the store says."""
        with _told(f"{self.name}/{name}"):
            size: int | None = self._store.info(f"{self._path}/{name}")["size"]
        return size

    @contextmanager
    def open(self, name: str, offset: int = 0) -> Iterator[Body]:
        """Open a file at a byte of it; raises what `open_url` does."""
        place = f"{self.name}/{name}"
        with _told(place):
            file = self._store.open(f"{self._path}/{name}", "rb")
        try:
            with _told(place):
                file.seek(offset)
            yield Body(offset, None, _file_chunks(file, place))
        finally:
            file.close()


def _file_chunks(file: Any, place: str) -> Iterator[bytes]:
    with _told(place):
        yield from iter(lambda: file.read(_CHUNK), b"")


@contextmanager
def _told(place: str) -> Iterator[None]:
    """Turn what a store raises, which may be anything, into errors that name the place."""
    try:
        yield
    except (BertScoreOnnxError, ImportError):
        raise
    except FileNotFoundError as error:
        raise BundleNotFoundError(f"{place} is not there.") from error
    except PermissionError as error:
        raise HubError(f"{place} refused the request: {one_line(error)}.") from error
    except ValueError as error:
        raise InputError(f"{place} cannot be read: {one_line(error)}.") from error
    except Exception as error:
        raise HubUnreachableError(f"{place} cannot be read: {type(error).__name__}, {one_line(error)}.") from error
