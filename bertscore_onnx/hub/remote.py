"""Reads files from the hub, from a web server, or from an object store, and translates their errors.

huggingface_hub sends requests with `requests` before its version 1, and with httpx since. Its own download starts over
after an interruption; the files here can be opened at any byte, so that a download can be resumed.
"""

import netrc
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Protocol, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from bertscore_onnx import __version__
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import (
    BertScoreOnnxError,
    BundleNotFoundError,
    HubError,
    HubUnreachableError,
    InputError,
    MissingExtraError,
    listed,
    needs_extra,
    one_line,
    shortened,
)
from bertscore_onnx.hub.source import Origin, Source

T = TypeVar("T")

TIMEOUT = 30.0
"""Seconds to wait for the next bytes of a server."""

CHUNK = 1 << 14
"""The bytes that are read at a time. If a connection breaks off, the beginning of a chunk is lost."""

_STORE_CHUNK = 1 << 20
"""The same for object stores."""

_MAX_FILES = 100_000

MAX_ANSWER_BYTES = 16_000_000
"""Far more than the list of a repository's files has: some 200 bytes for each."""

_LONGEST_CAUSE = 300
"""The characters of another library's message that are shown."""


@dataclass(frozen=True, slots=True)
class Body:
    """The content of a file, or of its end, while it is received."""

    start: int
    """The first byte: the requested one, or an earlier one, such as 0 if the server sends the whole file."""

    size: int | None
    """The bytes of the whole file, if the server declares them."""

    chunks: Iterator[bytes]


class Remote(Protocol):
    """A remote folder with a bundle. Its methods raise a BundleNotFoundError, a HubUnreachableError or a HubError."""

    name: str
    """Its name in messages."""

    origin: Origin

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, if they are known before it is opened."""

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[Body]:
        """Open a file at a byte of it."""


def open_remote(source: Source, token: str | None) -> Remote:
    """Connect to a source; the token, if any, is for a repository or for a web server."""
    check_online()
    if source.repo is not None:
        return HubVariant(HubRepository(source, token), source)
    if source.location.startswith(("https://", "http://")):
        return WebFolder(source, token)
    return StoreFolder(source)


_Size = Annotated[int, msgspec.Meta(ge=0)]


class _ListedFile(msgspec.Struct, rename={"path": "rfilename"}):
    path: str
    size: _Size | None = None


class _Info(msgspec.Struct):
    """The answer of a hub about a repository."""

    sha: str
    private: bool = False
    siblings: list[_ListedFile] | None = None


class _TreeEntry(msgspec.Struct):
    path: str
    type: str = "file"
    size: _Size | None = None


class _Ref(msgspec.Struct):
    name: str


class _Refs(msgspec.Struct):
    branches: list[_Ref]
    tags: list[_Ref]


class HubRepository:
    """The files of a repository at one commit; later pushes are not seen."""

    def __init__(self, source: Source, token: str | None = None) -> None:
        """Request the list of files; without a token, the one of the hub's client is used, if it has one."""
        self._endpoint: str = load_client().HfApi().endpoint
        self._headers = _hub_headers(token)
        self._repo = str(source.repo)
        self.name = str(Source(source.location, source.revision))
        """Its name in messages."""
        info = self._info(source.revision or load_client().constants.DEFAULT_REVISION)
        self.commit = info.sha
        """The commit of the revision."""
        self.is_private = info.private
        """Whether it is visible to some users only."""
        self.sizes = self._sizes(info)
        """The bytes of all files by path; None if the hub does not declare them."""

    @property
    def folders(self) -> list[str]:
        """The folders that hold a bundle; an empty string if the repository itself does."""
        manifests = [PurePosixPath(path) for path in self.sizes if PurePosixPath(path).name == MANIFEST]
        return sorted("" if str(manifest.parent) == "." else str(manifest.parent) for manifest in manifests)

    def open(self, path: str, offset: int = 0) -> AbstractContextManager[Body]:
        """Open a file at a byte of it."""
        url = load_client().hf_hub_url(self._repo, path, revision=self.commit, endpoint=self._endpoint)
        return _open_url(url, f"{self.name}/{path}", offset=offset, headers=self._headers)

    def _info(self, revision: str) -> _Info:
        try:
            info, _ = self._answer(f"revision/{quote(revision, safe='')}?blobs=true", _Info)
        except _UnknownRevisionError as error:
            missing = f"{self._repo} has no revision {revision!r}."
            try:
                refs, _ = self._answer("refs", _Refs)
            except (BundleNotFoundError, HubError):  # some mirrors of the hub do not list them
                raise BundleNotFoundError(missing) from error
            names = [ref.name for ref in [*refs.branches, *refs.tags]]
            raise BundleNotFoundError(f"{missing} Its branches and tags are: {listed(names)}.") from error
        return info

    def _sizes(self, info: _Info) -> Mapping[str, int | None]:
        sizes = {file.path: file.size for file in info.siblings or []}
        page = f"tree/{self.commit}?recursive=true&expand=false"
        while page and None in sizes.values():  # some mirrors of the hub declare sizes only here
            entries, page = self._answer(page, list[_TreeEntry])
            sizes.update((entry.path, entry.size) for entry in entries if entry.type == "file")
            if len(sizes) > _MAX_FILES:
                raise HubError(f"{self.name} has more than {_MAX_FILES:,} files.")
        return sizes

    def _answer(self, request: str, form: type[T]) -> tuple[T, str]:
        """Return the hub's answer to a request about the repository, and the request for its next page, if any."""
        base = f"{self._endpoint}/api/models/{self._repo}/"
        with _response(base + request, self.name, self._headers) as response:
            self._check_access(response)
            _check_status(response.status_code, self.name)
            content = b""
            for chunk in _chunks(response, self.name):
                content += chunk
                if len(content) > MAX_ANSWER_BYTES:
                    raise HubError(f"{self.name} did not answer as a hub does: more than {MAX_ANSWER_BYTES:,} bytes.")
            following = re.match(r'<([^>]+)>; *rel="next"', response.headers.get("link", ""))
        with hub_errors(self.name):
            answer = msgspec.json.decode(content, type=form)
        is_here = following is not None and following[1].startswith(base)  # the headers may hold a token
        return answer, following[1].removeprefix(base) if following is not None and is_here else ""

    def _check_access(self, response: Any) -> None:
        """Raise the error for a repository that is not there, or not for this user."""
        status, code = response.status_code, response.headers.get("x-error-code")
        if status < 400:
            return
        if code == "RevisionNotFound":
            raise _UnknownRevisionError
        if code == "GatedRepo":
            raise _gated(self.name)
        is_bad_token = response.headers.get("x-error-message") == "Invalid credentials in Authorization header"
        if code == "RepoNotFound" or (status == 401 and not is_bad_token):  # a hub does not reveal private repositories
            raise BundleNotFoundError(
                f"There is no repository {self._repo} on {self._endpoint}, or it is private and the token may not see "
                f"it ({status}). For a private one set HF_TOKEN to a token that may."
            )


class _UnknownRevisionError(Exception):
    """The hub has the repository, but not the revision."""


class HubVariant:
    """A folder of a repository that holds a bundle."""

    def __init__(self, repository: HubRepository, source: Source) -> None:
        """Choose the folder that the source names, or the only one."""
        self._repository = repository
        self._folder = _choose_folder(repository, source.variant)
        self.name = str(Source(source.location, source.revision, self._folder))
        self.origin = Origin(source.location, source.revision, self._folder, repository.commit)

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, if the hub declares them."""
        return self._repository.sizes.get(self._path(name))

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[Body]:
        """Open a file at a byte of it."""
        return self._repository.open(self._path(name), offset)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}" if self._folder else name


def _choose_folder(repository: HubRepository, variant: str | None) -> str:
    folders = repository.folders
    if variant in folders:
        return str(variant)
    if not folders:
        raise BundleNotFoundError(f"{repository.name} holds no bundle: no folder of it has a {MANIFEST}.")
    names = listed([folder or "(the repository itself)" for folder in folders])
    if variant is not None:
        raise BundleNotFoundError(f"{repository.name} has no variant {variant!r}. Its variants are: {names}.")
    if len(folders) > 1:
        example = f"{repository.name}/{shortened(folders[-1], 100)}"
        raise InputError(f"{repository.name} has several variants: {names}. Name one, such as {example}.")
    return folders[0]


class WebFolder:
    """A folder on a web server, at a URL of http or https; the manifest lists its files."""

    def __init__(self, source: Source, token: str | None = None) -> None:
        """Prepare requests with the token as a bearer token, or with the user and password in `.netrc`, if any."""
        self.name = str(source)
        self.origin = Origin(self.name, None, None, None)
        self._parts = urlsplit(source.location)
        if not self._parts.hostname:
            raise InputError(f"{self.name} names no machine; expected a URL such as https://machine/folder.")
        self._headers = _hub_headers(False)
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        elif self._parts.username is None and (login := _netrc_login(self._parts.hostname)) is not None:
            self._headers["authorization"] = f"Basic {b64encode(login.encode()).decode()}"

    def size(self, name: str) -> int | None:
        """Return None: only the response to the request for a file declares its size."""
        return None

    def open(self, name: str, offset: int = 0) -> AbstractContextManager[Body]:
        """Open a file at a byte of it."""
        url = urlunsplit(self._parts._replace(path=f"{self._parts.path}/{quote(name)}"))
        return _open_url(url, f"{self.name}/{name}", offset=offset, headers=self._headers)


def _netrc_login(machine: str) -> str | None:
    """Return `user:password` of a machine from `.netrc`, which requests reads by itself, but httpx does not."""
    try:
        login = netrc.netrc(Path(os.environ.get("NETRC") or "~/.netrc").expanduser()).authenticators(machine)
    except (OSError, RuntimeError, UnicodeDecodeError, netrc.NetrcParseError):
        return None
    return None if login is None else f"{login[0]}:{login[2]}"


class StoreFolder:
    """A folder of an object store or another file system of fsspec, such as `s3://` and `gs://`."""

    def __init__(self, source: Source) -> None:
        """Connect to the store; raise a MissingExtraError if its package is not installed."""
        self.name = str(source)
        self.origin = Origin(self.name, None, None, None)
        try:
            from fsspec.core import url_to_fs

            with _store_errors(self.name):
                self._store, self._path = url_to_fs(source.location)
        except ImportError as error:
            package = getattr(error.__cause__, "name", None) or error.name or "fsspec"
            raise MissingExtraError(
                f"Reading {self.name} needs {package}, which is not installed. Run `pip install {package}`.",
                name=package,
            ) from error

    def size(self, name: str) -> int | None:
        """Return the bytes of a file."""
        with _store_errors(f"{self.name}/{name}"):
            size: int | None = self._store.info(f"{self._path}/{name}")["size"]
        return size

    @contextmanager
    def open(self, name: str, offset: int = 0) -> Iterator[Body]:
        """Open a file at a byte of it."""
        location = f"{self.name}/{name}"
        with _store_errors(location):
            file = self._store.open(f"{self._path}/{name}", "rb")
        try:
            with _store_errors(location):
                file.seek(offset)
            yield Body(offset, None, _store_chunks(file, location))
        finally:
            file.close()


def _store_chunks(file: Any, location: str) -> Iterator[bytes]:
    with _store_errors(location):
        yield from iter(lambda: file.read(_STORE_CHUNK), b"")


@contextmanager
def _store_errors(location: str) -> Iterator[None]:
    """Turn the errors of an object store, which may be of any class, into errors that name the location."""
    try:
        yield
    except (BertScoreOnnxError, ImportError):
        raise
    except FileNotFoundError as error:
        raise BundleNotFoundError(f"{location} is not there.") from error
    except PermissionError as error:
        raise HubError(f"{location} refused the request: {_message(error)}.") from error
    except ValueError as error:
        raise InputError(f"{location} cannot be read: {_message(error)}.") from error
    except Exception as error:
        raise HubUnreachableError(f"{location} cannot be read: {type(error).__name__}, {_message(error)}.") from error


# The client of the hub, and requests to it and to web servers.


def load_client() -> Any:
    """Import huggingface_hub; raise a MissingExtraError if it is not installed."""
    with needs_extra("hub", "Pulling and pushing bundles"):
        import huggingface_hub
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.utils

    return huggingface_hub


def check_online() -> None:
    """Raise a HubUnreachableError if `HF_HUB_OFFLINE` forbids downloads."""
    if load_client().constants.HF_HUB_OFFLINE:
        raise HubUnreachableError("HF_HUB_OFFLINE=1 forbids the network. Unset it to pull or push.")


def _hub_headers(token: str | Literal[False] | None) -> dict[str, str]:
    """Return the headers of a request; None means the client's own token, False none at all."""
    headers: dict[str, str] = load_client().utils.build_hf_headers(
        token=token, library_name="bertscore-onnx", library_version=__version__
    )
    return headers


@contextmanager
def _open_url(url: str, location: str, *, offset: int, headers: dict[str, str]) -> Iterator[Body]:
    """Open a file by its URL at a byte of it; `location` is its name in errors."""
    range_header = {"range": f"bytes={offset}-"} if offset else {}
    with _response(url, location, {**headers, **range_header}) as response:
        _check_status(response.status_code, location)
        yield _body(response, location, offset)


@contextmanager
def _response(url: str, location: str, headers: dict[str, str]) -> Iterator[Any]:
    """Open the response to a request, whose content is read later."""
    with hub_errors(location):
        opened = _request(url, {**headers, "accept-encoding": "identity"})
        response = opened.__enter__()
    try:
        yield response
    finally:
        opened.__exit__(None, None, None)


def _request(url: str, headers: dict[str, str]) -> Any:
    session = load_client().utils.get_session()
    if callable(getattr(session, "stream", None)):  # httpx
        return session.stream("GET", url, headers=headers, timeout=TIMEOUT, follow_redirects=True)
    return session.get(url, headers=headers, timeout=TIMEOUT, stream=True)


def _body(response: Any, location: str, offset: int) -> Body:
    if response.status_code == 416:  # the range is empty
        return Body(offset, None, iter(()))
    length = response.headers.get("content-length", "")
    is_plain = response.headers.get("content-encoding", "identity") == "identity"
    size = int(length) if _NUMBER.fullmatch(length) and is_plain else None
    start = _first_byte(response, offset) if response.status_code == 206 else 0
    if start > offset:
        raise HubError(
            f"{location} cannot be read: the server sends from byte {start:,}, but {offset:,} was requested."
        )
    return Body(start, None if size is None else start + size, _chunks(response, location))


_NUMBER = re.compile("[0-9]{1,18}")
"""A number of bytes in a header; longer ones are none."""


def _first_byte(response: Any, offset: int) -> int:
    """Return the first byte of a partial response: the requested one, unless the server states another."""
    stated = re.match(rf"bytes ({_NUMBER.pattern})-", response.headers.get("content-range", ""))
    return offset if stated is None else int(stated[1])


def _chunks(response: Any, location: str) -> Iterator[bytes]:
    with hub_errors(location):
        yield from response.iter_bytes() if hasattr(response, "iter_bytes") else response.iter_content(CHUNK)


@contextmanager
def hub_errors(location: str) -> Iterator[None]:
    """Turn the errors of the client and its HTTP library into errors that name the location."""
    errors = load_client().errors
    try:
        yield
    except BertScoreOnnxError:
        raise
    except errors.GatedRepoError as error:
        raise _gated(location) from error
    except errors.HfHubHTTPError as error:
        _check_status(getattr(error.response, "status_code", 500), location)
        raise HubError(f"{location} cannot be read: {_cause(error)}.") from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise HubError(f"{location} did not answer as a hub does: {_cause(error)}.") from error
    except RuntimeError as error:  # an upload that broke off
        raise HubUnreachableError(f"{location} broke off: {_message(error)} {_cause(error)}. Try again.") from error
    except (OSError, *errors.HfHubHTTPError.__bases__) as error:  # the base of all errors of its HTTP library
        raise HubUnreachableError(f"{location} cannot be reached: {_cause(error)}.") from error


def _gated(location: str) -> HubError:
    return HubError(
        f"{location} is gated: its owner has to grant access. Request it on the repository's page, and set HF_TOKEN."
    )


def _check_status(status: int, location: str) -> None:
    """Raise the error for an HTTP status, if it is one."""
    if status in (401, 403):
        raise HubError(
            f"{location} refused the request ({status}): it is private or does not exist, or the token is wrong or "
            "lacks the permission. Set HF_TOKEN to a token with access; for a web server of your own, put user and "
            "password into .netrc."
        )
    if status in (404, 410):
        raise BundleNotFoundError(f"{location} is not there ({status}).")
    if status == 429 or status >= 500:
        raise HubUnreachableError(f"{location} is unavailable at the moment: the server answered {status}.")
    if status >= 400 and status != 416:  # 416: nothing is left of the requested range
        raise HubError(f"{location} cannot be read: the server answered {status}.")


def _cause(error: BaseException) -> str:
    """Return the message of the first error in a chain, since HTTP libraries wrap errors many times."""
    while (first := error.__cause__ or error.__context__) is not None:
        error = first
    return (_message(error) or type(error).__name__).rstrip(".")


def _message(error: BaseException) -> str:
    return one_line(error)[:_LONGEST_CAUSE]
