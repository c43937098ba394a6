"""The names of bundles on the hub, and those that a stored bundle has.

A name is `hf://ORG/REPO[@REVISION][/VARIANT]`.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bertscore_onnx.bundle.store import MANIFEST, stored_bundles
from bertscore_onnx.errors import InputError
from bertscore_onnx.files import read_regular, replace_whole

HUB = "hf://"

NAMES = "source.json"
"""The file with the names that a bundle was pulled by, which is not covered by a digest."""

MAX_BYTES = 1_000_000
"""Far more than the names of a bundle have."""

VARIANT = r"(all-layers|layer-\d+)-(slow|fast)-(fp32|fp16|int8)"

_NAME = re.compile(
    r"(hf://)?(?P<repo>(?!.*(--|\.\.))[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)"
    rf"(@(?P<revision>.+?)(/(?P<variant>{VARIANT}))?|/(?P<folder>.+?))?/?",
    re.ASCII,
)
_FORM = "ORG/REPO, ORG/REPO@REVISION or ORG/REPO@REVISION/VARIANT on the Hugging Face hub"


@dataclass(frozen=True, slots=True)
class HubSource:
    """A bundle in a repository of the hub."""

    repo: str
    revision: str | None = None  # a branch, tag or commit; None for the default branch
    variant: str | None = None  # the folder in the repository; None for the only variant

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a commit, whose content never changes."""
        return re.fullmatch("[0-9a-f]{40}", self.revision or "") is not None

    def __str__(self) -> str:
        """Return the name that `parse_source` parses."""
        name = f"{HUB}{self.repo}"
        if self.revision:
            name += f"@{self.revision}"
        if self.variant:
            name += f"/{self.variant}"
        return name


def parse_source(text: str) -> HubSource:
    """Parse `[hf://]ORG/REPO[@REVISION][/VARIANT]`.

    Raise an InputError for other texts.

    A revision may contain slashes: the part after its last one is the variant if it has the form of
    one.
    """
    if text[:1] in ("/", ".", "~") or os.path.isfile(os.path.join(text, MANIFEST)):
        raise InputError(
            f"{text!r} is a path on this machine, which --model takes without pulling it; "
            f"expected {_FORM}."
        )
    name = _NAME.fullmatch(text)
    if name is None:
        advice = ""
        if "://" in text:
            advice = " Copy a bundle from other storage, and give its path to --model."
        raise InputError(f"{text!r} is not the name of a bundle; expected {_FORM}.{advice}")
    return HubSource(name["repo"], name["revision"], name["variant"] or name["folder"])


def find_pulled(source: HubSource) -> Path | None:
    """Return the bundle that was pulled by a name most recently, if any."""
    folders = [folder for folder in stored_bundles() if str(source) in read_names(folder)]
    return max(folders, key=lambda folder: (folder / NAMES).stat().st_mtime_ns, default=None)


def read_names(folder: Path) -> list[str]:
    """Return the names that a bundle was pulled by; none if they are unknown."""
    try:
        return msgspec.json.decode(read_regular(folder / NAMES, MAX_BYTES), type=list[str])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


def add_names(folder: Path, source: HubSource, variant: str, commit: str) -> None:
    """Add the names of a pulled bundle to its file.

    They are the one that it was pulled by, and those with variant and commit.
    """
    names = []
    for revision in (source.revision, commit):
        for named in (source.variant, variant):
            names.append(str(HubSource(source.repo, revision, named)))
    names += read_names(folder)
    content = msgspec.json.encode(list(dict.fromkeys(names)))
    replace_whole(folder / NAMES, msgspec.json.format(content, indent=2) + b"\n")
