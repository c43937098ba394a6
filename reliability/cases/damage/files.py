"""Damage to the files of a bundle, and things in their place."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from bertscore_onnx.bundle.manifest import GRAPH_FILE
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import BundleNotFoundError, DigestError, GoldenScoreError, ManifestError, TokenizerError
from bertscore_onnx.text.spec import TOKENIZER_FILE
from reliability.cases.damage.kind import Damage, link_out, seal

Change = Callable[[bytes], bytes]
ALL_FILES = (MANIFEST, GRAPH_FILE, TOKENIZER_FILE)


def _rewritten(name: str, change: Change) -> Callable[[Path], None]:
    def inflict(bundle: Path) -> None:
        (bundle / name).write_bytes(change((bundle / name).read_bytes()))

    return inflict


def _flipped(share: float) -> Change:
    """Flip one bit, at this share of the length."""

    def change(content: bytes) -> bytes:
        changed = bytearray(content)
        changed[round(share * (len(content) - 1))] ^= 4
        return bytes(changed)

    return change


def _flip_and_hide(bundle: Path) -> None:
    """Flip a bit and set the modification time back."""
    file = bundle / GRAPH_FILE
    status = file.stat()
    _rewritten(GRAPH_FILE, _flipped(0.6))(bundle)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _removed(name: str) -> Callable[[Path], None]:
    return lambda bundle: (bundle / name).unlink()


def _replaced(name: str, put: Callable[[Path], object]) -> Callable[[Path], None]:
    """Put something else into the place of a file."""

    def inflict(bundle: Path) -> None:
        (bundle / name).unlink()
        put(bundle / name)

    return inflict


def _led_to_another(name: str) -> Callable[[Path], None]:
    """Leave a link to a file outside of the folder that has one bit more or less."""

    def inflict(bundle: Path) -> None:
        _rewritten(name, _flipped(1))(bundle)
        link_out(bundle, name)

    return inflict


def _foreign_tokenizer(content: bytes) -> bytes:
    """Give the words of the vocabulary each other's ids, as a tokenizer of another model would."""
    tokenizer = json.loads(content)
    vocabulary = tokenizer["model"]["vocab"]
    words = [word for word in vocabulary if not word.startswith("[")]
    ids = [vocabulary[word] for word in words]
    vocabulary.update(zip(words, [*ids[7:], *ids[:7]], strict=True))
    return json.dumps(tokenizer).encode()


def _sealed(inflict: Callable[[Path], object]) -> Callable[[Path], None]:
    def both(bundle: Path) -> None:
        inflict(bundle)
        seal(bundle)

    return both


_NOTHING, _HALF = (lambda content: b""), (lambda content: content[: len(content) // 2])
_FOREIGN = _rewritten(TOKENIZER_FILE, _foreign_tokenizer)

FILES = [
    *(
        Damage(f"a bit of {name} flipped at {share:.0%}", _rewritten(name, _flipped(share)), (DigestError,))
        for name in (GRAPH_FILE, TOKENIZER_FILE)
        for share in (0, 0.5, 1)
    ),
    Damage("a bit flipped, and the time set back", _flip_and_hide, (DigestError,)),
    *(
        Damage(f"{name} {how}", _rewritten(name, change), (DigestError,))
        for name in (GRAPH_FILE, TOKENIZER_FILE)
        for how, change in {"cut in half": _HALF, "empty": _NOTHING, "longer": lambda content: content + b"\n"}.items()
    ),
    *(Damage(f"no {name}", _removed(name), (BundleNotFoundError,)) for name in ALL_FILES),
    *(
        Damage(f"a folder in place of {name}", _replaced(name, Path.mkdir), (BundleNotFoundError,))
        for name in ALL_FILES
    ),
    *(Damage(f"a pipe in place of {name}", _replaced(name, os.mkfifo), (BundleNotFoundError,)) for name in ALL_FILES),
    *(
        Damage(f"{name} a link to another file", _led_to_another(name), (DigestError, ManifestError))
        for name in ALL_FILES
    ),
    Damage("a link to nothing", _replaced(GRAPH_FILE, lambda file: file.symlink_to("nothing")), (BundleNotFoundError,)),
    Damage(
        "a link to itself",
        _replaced(GRAPH_FILE, lambda file: file.symlink_to(file)),
        (BundleNotFoundError,),
    ),
    Damage("another model's tokenizer", _FOREIGN, (DigestError,)),
    Damage("another model's tokenizer, sealed", _sealed(_FOREIGN), (GoldenScoreError,), is_sealed=True),
    Damage(
        "no tokenizer in the file, sealed",
        _sealed(_rewritten(TOKENIZER_FILE, lambda content: b"{}")),
        (TokenizerError,),
        is_sealed=True,
    ),
]
"""Damage to the files."""
