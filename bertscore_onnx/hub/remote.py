"""Reads bundles from the hub, a web server or an object store, from any byte on, and translates their errors.

huggingface_hub lists a repository, and fsspec reads object stores. Files of the hub and of web servers are requested
here, with huggingface_hub's HTTP client: its own file system holds blocks of 6 MB, or whole files, in memory and loses
them when a connection breaks off, and the one of fsspec for https needs a second HTTP library.
"""

import netrc
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal
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

TIMEOUT = 30.0
"""Seconds to wait for the next bytes of a server."""

CHUNK = 1 << 14
"""The bytes that are read at a time. If a connection breaks off, the beginning of a chunk is lost."""

_STORE_CHUNK = 1 << 20
"""The same for object stores."""

_LONGEST_CAUSE = 300
"""The characters of another library's message that are shown."""

_NUMBER = "([0-9]{1,18})"
"""A number of bytes in a header; longer ones are none."""

_CLIENT = {"library_name": "bertscore-onnx", "library_version": __version__}
"""How requests introduce themselves to the hub."""

_Size = Annotated[int, msgspec.Meta(ge=0)] | None


@dataclass(frozen=True, slots=True)
class Body:
    """The content of a file from the requested byte on, while it is received."""

    size: int | None
    """The bytes of the whole file, if the server declares them."""

    chunks: Iterator[bytes]


def open_remote(source: Source, token: str | None) -> "Remote":
    """Connect to a source; the token, if any, is for a repository or for a web server."""
    if not source.location.startswith("file://"):
        check_online()
    if source.repo is not None:
        return HubRepository(source, token).variant(source.variant)
    if source.location.startswith(("https://", "http://")):
        return _web_server(source, token)
    return StoreFolder(source)


class HubRepository:
    """The files of a repository at one commit; later pushes are not seen."""

    def __init__(self, source: Source, token: str | None = None) -> None:
        """Request the list of files; without a token, the one of the hub's client is used, if it has one."""
        self._source, self._token = source, token
        self._api = load_client().HfApi(token=token, **_CLIENT)
        self._repo = str(source.repo)
        self.name = str(Source(source.location, source.revision))
        """Its name in messages."""
        with remote_errors(self.name):
            info = self._info(source.revision or load_client().constants.DEFAULT_REVISION)
            self.commit = msgspec.convert(info.sha, str)
            """The commit of the revision."""
            self.is_private = bool(info.private)
            """Whether it is visible to some users only."""
            self.sizes = msgspec.convert({file.rfilename: file.size for file in info.siblings or []}, dict[str, _Size])
            """The bytes of all files by path; None if the hub does not declare them."""
            "".join([self.commit, *self.sizes]).encode()  # JSON may hold characters that no URL can

    @property
    def folders(self) -> list[str]:
        """The folders that hold a bundle; an empty string if the repository itself does."""
        manifests = [PurePosixPath(path) for path in self.sizes if PurePosixPath(path).name == MANIFEST]
        return sorted("" if str(manifest.parent) == "." else str(manifest.parent) for manifest in manifests)

    def variant(self, name: str | None) -> "WebFolder":
        """Return the folder of a variant, or the only one that holds a bundle."""
        folders = self.folders
        if name in folders:
            return self.folder(str(name))
        if not folders:
            raise BundleNotFoundError(f"{self.name} holds no bundle: no folder of it has a {MANIFEST}.")
        names = listed([folder or "(the repository itself)" for folder in folders])
        if name is not None:
            raise BundleNotFoundError(f"{self.name} has no variant {name!r}. Its variants are: {names}.")
        if len(folders) > 1:
            example = f"{self.name}/{shortened(folders[-1], 100)}"
            raise InputError(f"{self.name} has several variants: {names}. Name one, such as {example}.")
        return self.folder(folders[0])

    def folder(self, path: str) -> "WebFolder":
        """Return a folder by its path; an empty one is the repository itself."""
        client, prefix = load_client(), f"{path}/" if path else ""
        sizes = {file.removeprefix(prefix): size for file, size in self.sizes.items() if file.startswith(prefix)}
        url = client.hf_hub_url(self._repo, path, revision=self.commit).rstrip("/")
        for name in [name for name, size in sizes.items() if size is None]:  # some mirrors of the hub list no sizes
            with suppress(BundleNotFoundError, HubError), remote_errors(self.name):
                file = client.get_hf_file_metadata(f"{url}/{quote(name)}", token=self._token, timeout=TIMEOUT)
                sizes[name] = msgspec.convert(file.size, _Size)
        source = Source(self._source.location, self._source.revision, path)
        origin = Origin(source.location, source.revision, path, self.commit)
        return WebFolder(url, str(source), origin, _headers(self._token), sizes)

    def _info(self, revision: str) -> Any:
        errors = load_client().errors
        try:
            return self._api.model_info(self._repo, revision=revision, files_metadata=True, timeout=TIMEOUT)
        except errors.RevisionNotFoundError as error:
            raise BundleNotFoundError(f"{self._repo} has no revision {revision!r}.{self._refs()}") from error
        except errors.GatedRepoError:  # of the same class as the next
            raise
        except errors.RepositoryNotFoundError as error:  # a hub does not reveal private repositories
            raise BundleNotFoundError(
                f"There is no repository {self._repo} on {self._api.endpoint}, or it is private and the token may not "
                f"see it ({error.response.status_code}). For a private one set HF_TOKEN to a token that may."
            ) from error

    def _refs(self) -> str:
        url = f"{self._api.endpoint}/api/models/{self._repo}/refs"  # the client's own request would wait for ever
        with (
            suppress(BundleNotFoundError, HubError),  # some mirrors of the hub do not list them
            remote_errors(self.name),
            _request(url, _headers(self._token)) as response,
        ):
            refs = msgspec.json.decode(b"".join(_chunks(response, self.name)))
            names = [ref["name"] for ref in [*refs["branches"], *refs["tags"]]]
            return f" Its branches and tags are: {listed(names)}."
        return ""


class WebFolder:
    """A folder whose files have URLs: on a web server, or in a repository of the hub at one commit."""

    def __init__(
        self, url: str, name: str, origin: Origin, headers: dict[str, str], sizes: Mapping[str, int | None]
    ) -> None:
        """Prepare requests with these headers; `name` is the folder's in messages."""
        self.name, self.origin = name, origin
        self._parts, self._headers, self._sizes = urlsplit(url), headers, sizes

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, if they are known before it is opened."""
        return self._sizes.get(name)

    @contextmanager
    def open(self, name: str, offset: int = 0) -> Iterator[Body]:
        """Open a file at a byte of it."""
        location = f"{self.name}/{name}"
        url = urlunsplit(self._parts._replace(path=f"{self._parts.path}/{quote(name)}"))
        headers = {**self._headers, "accept-encoding": "identity"}
        if offset:
            headers["range"] = f"bytes={offset}-"
        with ExitStack() as stack:
            with remote_errors(location):
                response = stack.enter_context(_request(url, headers))
            _check_status(response, location)
            yield _body(response, location, offset)


def _web_server(source: Source, token: str | None) -> WebFolder:
    """Prepare requests with the token as a bearer token, or with the user and password in `.netrc`, if any."""
    name, parts = str(source), urlsplit(source.location)
    if not parts.hostname:
        raise InputError(f"{name} names no machine; expected a URL such as https://machine/folder.")
    headers = _headers(False)
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    elif parts.username is None and (login := _netrc_login(parts.hostname)) is not None:
        headers["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    return WebFolder(source.location, name, Origin(name, None, None, None), headers, {})


def _netrc_login(machine: str) -> str | None:
    """Return `user:password` of a machine from `.netrc`, which requests reads by itself, but httpx does not."""
    try:
        login = netrc.netrc(Path(os.environ.get("NETRC") or "~/.netrc").expanduser()).authenticators(machine)
    except (OSError, RuntimeError, UnicodeDecodeError, netrc.NetrcParseError):
        return None
    return None if login is None else f"{login[0]}:{login[2]}"


def _request(url: str, headers: dict[str, str]) -> Any:
    """Return the response to a request, whose content is read later, as a context manager."""
    session = load_client().utils.get_session()
    if callable(getattr(session, "stream", None)):  # httpx, since version 1 of huggingface_hub
        return session.stream("GET", url, headers=headers, timeout=TIMEOUT, follow_redirects=True)
    return session.get(url, headers=headers, timeout=TIMEOUT, stream=True)


def _body(response: Any, location: str, offset: int) -> Body:
    if response.status_code == 416:  # the range is empty
        return Body(None, iter(()))
    stated = re.match(f"bytes {_NUMBER}-", response.headers.get("content-range", ""))
    start = 0 if response.status_code != 206 else offset if stated is None else int(stated[1])
    if start > offset:
        raise HubError(
            f"{location} cannot be read: the server sends from byte {start:,}, but {offset:,} was requested."
        )
    length = re.fullmatch(_NUMBER, response.headers.get("content-length", ""))
    is_plain = response.headers.get("content-encoding", "identity") == "identity"
    size = start + int(length[1]) if length is not None and is_plain else None
    return Body(size, _chunks(response, location, offset - start))


def _chunks(response: Any, location: str, skipped: int = 0) -> Iterator[bytes]:
    """Yield the content after its first bytes, which servers that ignore ranges send again."""
    with remote_errors(location):
        for chunk in response.iter_bytes() if hasattr(response, "iter_bytes") else response.iter_content(CHUNK):
            yield chunk[skipped:]
            skipped = max(0, skipped - len(chunk))


class StoreFolder:
    """A folder of an object store or another file system of fsspec, such as `s3://` and `gs://`."""

    def __init__(self, source: Source) -> None:
        """Connect to the store; raise a MissingExtraError if its package is not installed."""
        self.name = str(source)
        self.origin = Origin(self.name, None, None, None)
        with _store_errors(self.name):
            try:
                from fsspec.core import url_to_fs

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
        with ExitStack() as stack:
            with _store_errors(location):
                file = stack.enter_context(self._store.open(f"{self._path}/{name}", "rb"))
                file.seek(offset)
            yield Body(None, _store_chunks(file, location))


def _store_chunks(file: Any, location: str) -> Iterator[bytes]:
    with _store_errors(location):
        yield from iter(lambda: file.read(_STORE_CHUNK), b"")


@contextmanager
def _store_errors(location: str) -> Iterator[None]:
    """Turn the errors of an object store, which may be of any class, into errors that name the location."""
    with remote_errors(location):
        try:
            yield
        except BertScoreOnnxError:
            raise
        except FileNotFoundError as error:
            raise BundleNotFoundError(f"{location} is not there.") from error
        except PermissionError as error:
            raise HubError(f"{location} refused the request: {_message(error)}.") from error
        except ValueError as error:
            raise InputError(f"{location} cannot be read: {_message(error)}.") from error


Remote = WebFolder | StoreFolder
"""A remote folder with a bundle. Its methods raise a BundleNotFoundError, a HubUnreachableError or a HubError."""


# The client of the hub, and errors.


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
        raise HubUnreachableError("HF_HUB_OFFLINE=1 forbids the network. Unset it, or name a bundle on this machine.")


def _headers(token: str | Literal[False] | None) -> dict[str, str]:
    """Return the headers of a request; None means the client's own token, False none at all."""
    headers: dict[str, str] = load_client().utils.build_hf_headers(token=token, **_CLIENT)
    return headers


@contextmanager
def remote_errors(location: str) -> Iterator[None]:
    """Turn the errors of the client, its HTTP library or an object store into errors that name the location."""
    errors = load_client().errors
    try:
        yield
    except BertScoreOnnxError:
        raise
    except errors.HfHubHTTPError as error:
        if error.response is not None:
            _check_status(error.response, location)
        raise HubError(f"{location} cannot be read: {_cause(error)}.") from error
    except errors.HFValidationError as error:
        raise InputError(f"{location} cannot be the name of a repository: {_message(error)}") from error
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise HubError(f"{location} did not answer as a hub does: {_cause(error)}.") from error
    except RuntimeError as error:  # an upload that broke off
        raise HubUnreachableError(f"{location} broke off: {_message(error)} {_cause(error)}. Try again.") from error
    except Exception as error:
        raise HubUnreachableError(f"{location} cannot be reached: {_cause(error)}.") from error


def _check_status(response: Any, location: str) -> None:
    """Raise the error for an HTTP status, if it is one."""
    status = response.status_code
    if status >= 400 and response.headers.get("x-error-code") == "GatedRepo":
        raise HubError(
            f"{location} is gated: its owner has to grant access. Request it on the repository's page, and set "
            "HF_TOKEN."
        )
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
