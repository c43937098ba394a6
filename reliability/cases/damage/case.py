"""Damaged bundles are opened: each is refused with the error of its kind, and none crashes or hangs."""

import shutil
import sys
import tempfile
from pathlib import Path

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import BundleError
from harness.child import Child, ChildError
from harness.results import Figure
from reliability.bounds import none_of
from reliability.cases.damage import DAMAGES
from reliability.cases.damage.kind import Damage, link_out
from reliability.settings import Settings

OPENING_SECONDS = 60.0
ACCEPTED = "accepted"
BROKE = "broke"


def measure(settings: Settings) -> list[Figure]:
    """Open every damaged bundle, in a process that may crash."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        child = Child()
        for number, damage in enumerate(DAMAGES):
            bundle = shutil.copytree(settings.tiny, Path(folder) / str(number) / "bundle")
            damage.inflict(bundle)
            try:
                found[damage.name] = child.do(outcome, bundle, damage.is_sealed, limit=OPENING_SECONDS)
            except ChildError as error:
                found[damage.name] = BROKE
                print(f"{damage.name}: {error}", file=sys.stderr)
                child.close()
                child = Child()
        linked = shutil.copytree(settings.tiny, Path(folder) / "linked" / "bundle")
        for file in [*linked.iterdir()]:
            link_out(linked, file.name)
        sound = [child.do(outcome, bundle, True, limit=OPENING_SECONDS) for bundle in (settings.tiny, linked)]
        child.close()
    wrong = [damage for damage in DAMAGES if not _is_right(damage, found[damage.name])]
    for damage in wrong:
        print(f"{damage.name}: {found[damage.name]}, expected {damage.errors}", file=sys.stderr)
    outcomes = list(found.values())
    return [
        none_of(f"of {len(found)} damaged bundles, accepted", outcomes.count(ACCEPTED)),
        none_of("crashes, hangs and errors that are not the library's own", outcomes.count(BROKE)),
        none_of(
            "refused with the error of another kind", len(wrong) - outcomes.count(ACCEPTED) - outcomes.count(BROKE)
        ),
        none_of("sound bundles that were refused", len(sound) - sound.count(ACCEPTED)),
    ]


def outcome(bundle: Path, verify: bool) -> str:
    """Open a bundle, and return the name of the error that this ends in."""
    try:
        BERTScorer(bundle, device="cpu", verify=verify).close()
    except BundleError as error:
        return type(error).__name__
    return ACCEPTED


def _is_right(damage: Damage, name: str) -> bool:
    return name in [error.__name__ for error in damage.errors]
