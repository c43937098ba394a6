"""API keys: read from a file, compared in constant time, never shown."""

import hashlib
import hmac
import logging
import re
import stat
from pathlib import Path
from typing import Self

from bertscore_onnx.errors import InputError

MIN_LENGTH = 16
"""Characters of a key; shorter ones can be guessed."""

_log = logging.getLogger(__name__)

_KEY = re.compile(r"[!-~]+")  # what may stand in a header


class ApiKeys:
    """The keys that open a server."""

    def __init__(self, keys: list[str]) -> None:
        """Take the keys; only their digests are kept."""
        self._digests = [_digest(key) for key in keys]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of keys, one a line; blank lines and lines that begin with `#` count for nothing.

        Raises:
            InputError: the file cannot be read, holds no key, or one that is too short or has odd characters.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            if path.stat().st_mode & stat.S_IROTH:
                _log.warning("Every user of this machine can read the keys in %s. `chmod o= FILE` ends that.", path)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"Cannot read the keys in {path}: {error}") from error
        numbered = [(number, line.strip()) for number, line in enumerate(lines, 1)]
        keys = [(number, key) for number, key in numbered if key and not key.startswith("#")]
        for number, key in keys:
            if len(key) < MIN_LENGTH or not _KEY.fullmatch(key):
                raise InputError(
                    f"Line {number} of {path} is no key; expected at least {MIN_LENGTH} printable ASCII characters "
                    "without spaces. `openssl rand -hex 32` makes one."
                )
        if not keys:
            raise InputError(f"{path} holds no key; expected one a line. `openssl rand -hex 32` makes one.")
        return cls([key for _, key in keys])

    def client_of(self, authorization: str | None) -> str | None:
        """Return what stands for the key in a header `Authorization: Bearer KEY`; None where it is none of the keys.

        The time it takes does not tell which key is nearly right: all are compared, by digests of one length.
        """
        scheme, _, key = (authorization or "").partition(" ")
        given = _digest(key.strip())
        matches = [hmac.compare_digest(given, digest) for digest in self._digests]
        return given.hex() if scheme.lower() == "bearer" and any(matches) else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
