"""How one names the place that a bundle comes from: `ORG/REPO@REVISION/VARIANT` on the hub, or the URL of a folder."""

import datetime
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bertscore_onnx.bundle.store import MANIFEST, stored_bundles
from bertscore_onnx.errors import InputError

HUB = "hf://"

_FORM = "ORG/REPO, ORG/REPO@REVISION, ORG/REPO@REVISION/VARIANT, or the URL of a folder, such as https://… or s3://…"
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_VARIANT = re.compile(r"(all-layers|layer-\d+)-(slow|fast)-(fp32|fp16|int8)")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Source:
    """The place that a bundle comes from."""

    place: str
    """`hf://ORG/REPO`, or the URL of a folder."""

    revision: str | None = None
    """A branch, tag or commit of the hub; None for the default branch, and for a URL."""

    variant: str | None = None
    """The folder in a repository of the hub; None for the only one."""

    @property
    def repo(self) -> str | None:
        """The repository, where the place is on the hub."""
        return self.place.removeprefix(HUB) if self.place.startswith(HUB) else None

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a commit, which always means the same content."""
        return self.revision is not None and _COMMIT.fullmatch(self.revision) is not None

    def __str__(self) -> str:
        """Write it as one names it, without the secrets that a URL may hold."""
        if self.repo is None:
            return public_url(self.place)
        revision = f"@{self.revision}" if self.revision else ""
        return f"{self.place}{revision}" + (f"/{self.variant}" if self.variant else "")


def parse_source(text: str, revision: str | None = None, variant: str | None = None) -> Source:
    """Read the name of a place."""
    if "://" in text and not text.startswith(HUB):
        if revision is not None:
            raise InputError(f"A URL has no revisions, and {revision!r} was asked for. Give the URL of its folder.")
        return Source(_folder(text, variant))
    repo, said_revision, said_variant = _parts(text.removeprefix(HUB).strip("/"))
    if not _REPO.fullmatch(repo) or said_revision == "":
        raise InputError(f"{text!r} names no place of a bundle; expected {_FORM}.")
    return Source(
        HUB + repo,
        _one("revision", said_revision, revision, text),
        _one("variant", said_variant, variant, text),
    )


def is_variant(name: str) -> bool:
    """Say whether a folder has the name that the store gives to a variant."""
    return _VARIANT.fullmatch(name) is not None


def public_url(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _folder(url: str, variant: str | None) -> str:
    """Return the URL of a bundle's folder, also where that of the manifest in it is given."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InputError(f"{url!r} is not a URL: {error}.") from error
    path = parts.path.removesuffix(f"/{MANIFEST}").rstrip("/")
    return urlunsplit(parts._replace(path=path if variant is None else f"{path}/{variant}"))


def _parts(name: str) -> tuple[str, str | None, str | None]:
    """Return the repository, the revision and the variant that a name on the hub says."""
    repo, at, rest = name.partition("@")
    if not at:
        parts = name.split("/", 2)
        return "/".join(parts[:2]), None, parts[2] if len(parts) > 2 else None
    revision, _, last = rest.rpartition("/")
    return (repo, revision, last) if revision and is_variant(last) else (repo, rest, None)


def _one(what: str, said: str | None, given: str | None, text: str) -> str | None:
    if None not in (said, given) and said != given:
        raise InputError(f"{text!r} says the {what} {said!r}, and {given!r} was given beside it. Leave out one.")
    return said if given is None else given


# Where a bundle of the store came from: `source.json` in its folder, which no digest covers.


ORIGINS = "source.json"


class Origin(msgspec.Struct, frozen=True):
    """One place that the bundle was pulled from."""

    place: str
    """`hf://ORG/REPO`, or a URL without its secrets."""

    revision: str | None
    """The branch, tag or commit that was asked for; None for the default branch, and for a URL."""

    variant: str | None
    """The folder in the repository; empty for the repository's own."""

    commit: str | None
    """The commit that the revision meant; None for a URL."""

    pulled: str = ""
    """When, in UTC."""

    def answers(self, source: Source) -> bool:
        """Say whether what came from here is what a name of a place means."""
        place = source.place if source.repo else str(source)
        is_commit = source.is_pinned and source.revision == self.commit
        return (
            self.place == place
            and (is_commit or source.revision == self.revision)
            and source.variant in (None, self.variant)
        )


def find(source: Source) -> list[Path]:
    """Return the bundles of the store that came from a place; of each variant the one that was pulled last."""
    newest: dict[str | None, tuple[str, Path]] = {}
    for folder in stored_bundles():
        for origin in read_origins(folder):
            if origin.answers(source) and origin.pulled >= newest.get(origin.variant, ("",))[0]:
                newest[origin.variant] = (origin.pulled, folder)
    return [folder for _, folder in newest.values()]


def read_origins(folder: Path) -> list[Origin]:
    """Return where a bundle came from; nothing where that is not known."""
    try:
        return msgspec.json.decode((folder / ORIGINS).read_bytes(), type=list[Origin])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return []


def add_origin(folder: Path, origin: Origin) -> None:
    """Write down where a bundle came from, beside what is known already."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
    known = [one for one in read_origins(folder) if msgspec.structs.replace(one, pulled="") != origin]
    content = msgspec.json.format(msgspec.json.encode([*known, msgspec.structs.replace(origin, pulled=now)]), indent=2)
    temporary = folder / f".{ORIGINS}"
    temporary.write_bytes(content + b"\n")
    os.replace(temporary, folder / ORIGINS)
