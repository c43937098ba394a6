"""A folder at a URL that holds a bundle: on a web server, or in any store that fsspec reads."""

import netrc
import os
from base64 import b64encode
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from bertscore_onnx.errors import (
    BertScoreOnnxError,
    BundleNotFoundError,
    HubError,
    HubUnreachableError,
    InputError,
    MissingExtraError,
    one_line,
)
from bertscore_onnx.hub.client import Body, headers_of, open_url
from bertscore_onnx.hub.origins import Origin
from bertscore_onnx.hub.source import Source

_CHUNK = 1 << 20


class WebFolder:
    """Reads files below a URL of http or https; the manifest says which there are."""

    def __init__(self, source: Source, token: str | None = None) -> None:
        """Take the folder's URL.

        Args:
            source: the place.
            token: sent as a bearer token; None for none, or what `.netrc` says.

        Raises:
            InputError: the URL names no machine.
        """
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
        """Connect to the store.

        Raises:
            MissingExtraError: the package for it is not installed.
            InputError: fsspec knows no such store.
        """
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
            yield Body(offset, None, _chunks(file, place))
        finally:
            file.close()


def _chunks(file: Any, place: str) -> Iterator[bytes]:
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
