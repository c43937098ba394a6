"""The sources of bundles: `ORG/REPO[@REVISION][/VARIANT]` on the hub, or the URL of a folder; and a record of them."""

import datetime
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bertscore_onnx.bundle.store import MANIFEST, stored_bundles
from bertscore_onnx.errors import InputError
from bertscore_onnx.files import read_regular

HUB = "hf://"

ORIGINS = "source.json"
"""The file with the origins of a pulled bundle, which is not covered by a digest."""

MAX_BYTES = 1_000_000
"""Far more than the origins of a bundle have."""

_FORM = "ORG/REPO, ORG/REPO@REVISION, ORG/REPO@REVISION/VARIANT, or the URL of a folder, such as https://… or s3://…"
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_VARIANT = re.compile(r"(all-layers|layer-\d+)-(slow|fast)-(fp32|fp16|int8)")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Source:
    """A place to pull a bundle from."""

    location: str
    """`hf://ORG/REPO`, or the URL of a folder."""

    revision: str | None = None
    """A branch, tag or commit of the hub; None for the default branch, and for a URL."""

    variant: str | None = None
    """The folder in a repository of the hub; None for the only one."""

    @property
    def repo(self) -> str | None:
        """The repository, if the location is on the hub."""
        return self.location.removeprefix(HUB) if self.location.startswith(HUB) else None

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a commit, whose content never changes."""
        return self.revision is not None and _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        """Return the name that `parse_source` parses, without the secrets that a URL may contain."""
        if self.repo is None:
            return public_url(self.location)
        revision = f"@{self.revision}" if self.revision else ""
        return f"{self.location}{revision}" + (f"/{self.variant}" if self.variant else "")


def parse_source(text: str, revision: str | None = None, variant: str | None = None) -> Source:
    """Parse `[hf://]ORG/REPO[@REVISION][/VARIANT]`, or the URL of a folder or of the manifest in it.

    A revision may contain slashes: the part after its last one is the variant if it has the form of one. Revision and
    variant may also be given as arguments. Raises an InputError for other texts, and for contradictions.
    """
    if text[:1] in ("/", ".", "~") or os.path.isfile(os.path.join(text, MANIFEST)):
        raise InputError(
            f"{text!r} is a path on this machine, which --model takes without pulling it; expected {_FORM}."
        )
    if "://" in text and not text.startswith(HUB):
        if revision is not None:
            raise InputError(f"A URL has no revisions, and {revision!r} was asked for. Give the URL of its folder.")
        return Source(_folder_url(text, variant))
    repo, own_revision, own_variant = _parts(text.removeprefix(HUB).strip("/"))
    if not _REPO.fullmatch(repo) or own_revision == "":
        raise InputError(f"{text!r} is not the name of a bundle's source; expected {_FORM}.")
    for field, own, argument in (("revision", own_revision, revision), ("variant", own_variant, variant)):
        if own is not None and argument is not None and own != argument:
            raise InputError(f"{text!r} names the {field} {own!r}, but the argument is {argument!r}. Leave out one.")
    return Source(
        HUB + repo,
        own_revision if revision is None else revision,
        own_variant if variant is None else variant,
    )


def is_variant(name: str) -> bool:
    """Return whether a folder's name has the form of a variant, such as `layer-17-slow-fp32`."""
    return _VARIANT.fullmatch(name) is not None


def public_url(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _folder_url(url: str, variant: str | None) -> str:
    """Return the URL of a bundle's folder, given that URL or the one of the manifest in it."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(f"{url!r} is not a URL; expected one such as https://… or s3://….") from error
    path = parts.path.removesuffix(f"/{MANIFEST}").rstrip("/")
    return urlunsplit(parts._replace(path=path if variant is None else f"{path}/{variant}"))


def _parts(name: str) -> tuple[str, str | None, str | None]:
    """Split `ORG/REPO[@REVISION][/VARIANT]` into repository, revision and variant."""
    repo, at, rest = name.partition("@")
    if not at:
        parts = name.split("/", 2)
        return "/".join(parts[:2]), None, parts[2] if len(parts) > 2 else None
    revision, _, last = rest.rpartition("/")
    return (repo, revision, last) if revision and is_variant(last) else (repo, rest, None)


class Origin(msgspec.Struct, frozen=True):
    """A source that a stored bundle was pulled from, as `source.json` in its folder lists it."""

    place: str
    """`hf://ORG/REPO`, or a URL without its secrets."""

    revision: str | None
    """The requested branch, tag or commit; None for the default branch, and for a URL."""

    variant: str | None
    """The folder in the repository; empty for the repository's own."""

    commit: str | None
    """The commit of the revision at that time; None for a URL."""

    pulled: str = ""
    """The time in UTC, in ISO format."""

    def matches(self, source: Source) -> bool:
        """Return whether a bundle of this origin is the one that a source names."""
        location = source.location if source.repo else str(source)
        is_commit = source.is_pinned and source.revision == self.commit
        return (
            self.place == location
            and (is_commit or source.revision == self.revision)
            and source.variant in (None, self.variant)
        )


def find_pulled(source: Source) -> list[Path]:
    """Return the stored bundles that were pulled from a source; for each variant the most recent one."""
    newest: dict[str | None, tuple[str, Path]] = {}
    for folder in stored_bundles():
        for origin in read_origins(folder):
            if origin.matches(source) and origin.pulled >= newest.get(origin.variant, ("",))[0]:
                newest[origin.variant] = (origin.pulled, folder)
    return [folder for _, folder in newest.values()]


def read_origins(folder: Path) -> list[Origin]:
    """Return the origins of a bundle; none if they are unknown."""
    try:
        return msgspec.json.decode(read_regular(folder / ORIGINS, MAX_BYTES), type=list[Origin])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def add_origin(folder: Path, origin: Origin) -> None:
    """Add an origin to those of a bundle, with the current time."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
    others = [other for other in read_origins(folder) if msgspec.structs.replace(other, pulled="") != origin]
    origins = [*others, msgspec.structs.replace(origin, pulled=now)]
    temporary = folder / f".{ORIGINS}"
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(origins), indent=2) + b"\n")
    os.replace(temporary, folder / ORIGINS)
