"""Where a bundle of the store came from: `source.json` in its folder, which no digest covers."""

import datetime
import os
from pathlib import Path

import msgspec

from bertscore_onnx.bundle.store import stored_bundles
from bertscore_onnx.hub.source import Source

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
