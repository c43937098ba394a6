"""The client of the hub: loads huggingface_hub when it is needed, streams from URLs and tells what failed.

huggingface_hub sends requests by `requests` before its version 1, and by httpx since. Its own download of a file starts
over when it was broken off; this one says where to go on.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from bertscore_onnx import __version__
from bertscore_onnx.errors import (
    BertScoreOnnxError,
    BundleNotFoundError,
    HubError,
    HubUnreachableError,
    needs_extra,
    one_line,
)

TIMEOUT = 30.0
"""Seconds that a server may take for the next bytes."""

CHUNK = 1 << 14
"""Bytes that are read at a time. The beginning of a chunk is lost where a connection breaks off."""

_LONGEST_CAUSE = 300


def load_client() -> Any:
    """Import huggingface_hub.

    Raises:
        MissingExtraError: it is not installed.
    """
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
    """Return the headers of a request to the hub.

    Args:
        token: the token; None for the one that the client knows, False for none.
    """
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
    """Open a file by its URL.

    Args:
        url: the URL.
        place: what to call it in errors.
        offset: the byte to begin with.
        headers: of the request.

    Raises:
        BundleNotFoundError: there is no such file.
        HubUnreachableError: the server cannot be reached, or broke down.
        HubError: it refuses the request.
    """
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
    """Turn what the client and its HTTP library raise into errors that name the place.

    Raises:
        BundleNotFoundError: there is no such repository, or the token may not see it.
        HubUnreachableError: the server cannot be reached, or broke down.
        HubError: it refuses the request, or does not answer as a hub does.
    """
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
