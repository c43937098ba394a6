"""Case 8: damaged bundles are opened; each is refused with the error of its kind, and none crashes or hangs."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import MAX_MANIFEST_BYTES
from bertscore_onnx.bundle.manifest import GRAPH_FILE, Manifest, write_manifest
from bertscore_onnx.bundle.store import MANIFEST, file_digest
from bertscore_onnx.errors import (
    BundleError,
    BundleNotFoundError,
    DigestError,
    FormatVersionError,
    GoldenScoreError,
    GraphError,
    ManifestError,
    TokenizerError,
    UnsafePathError,
)
from bertscore_onnx.text.spec import TOKENIZER_FILE
from harness.processes import Child, ChildError
from harness.results import Figure
from reliability.report import none_of
from reliability.settings import Settings

OPENING_SECONDS = 60.0
ACCEPTED, BROKE = "accepted", "broke"

Fields = dict[str, Any]
Inflict = Callable[[Path], object]  # damages the bundle in a folder; the folder above it may be used too


@dataclass(frozen=True, slots=True)
class Damage:
    """A kind of damage, and the errors one of which it must raise."""

    name: str
    inflict: Inflict
    errors: tuple[type[BundleError], ...]
    is_sealed: bool = False  # all digests are right, so that only `verify=True` may detect it


def measure(settings: Settings) -> list[Figure]:
    """Open every damaged bundle, and two sound ones."""
    with tempfile.TemporaryDirectory() as folder:
        bundles = []
        for number, damage in enumerate(DAMAGES):
            bundle = shutil.copytree(settings.tiny, Path(folder) / str(number) / "bundle")
            damage.inflict(bundle)
            bundles.append((bundle, damage.is_sealed))
        linked = shutil.copytree(settings.tiny, Path(folder) / "linked" / "bundle")
        for file in [*linked.iterdir()]:
            link_out(linked, file.name)
        *outcomes, sound, sound_linked = _open_all([*bundles, (settings.tiny, True), (linked, True)])
    wrong = []
    for damage, found in zip(DAMAGES, outcomes, strict=True):
        if found not in [error.__name__ for error in damage.errors]:
            print(f"{damage.name}: {found}", file=sys.stderr)
            wrong.append(found)
    return [
        none_of(f"of {len(DAMAGES)} damaged bundles, accepted", wrong.count(ACCEPTED)),
        none_of("crashes, hangs and errors that are not the library's own", wrong.count(BROKE)),
        none_of("refused with the error of another kind", sum(found not in (ACCEPTED, BROKE) for found in wrong)),
        none_of("sound bundles that were refused", [sound, sound_linked].count(ACCEPTED) != 2),
    ]


def _open_all(bundles: list[tuple[Path, bool]]) -> list[str]:
    """Open bundles in a process that may crash, with `verify` or without; return the outcomes."""
    outcomes = []
    child = Child()
    for bundle, verify in bundles:
        try:
            outcomes.append(child.do(outcome, bundle, verify, limit=OPENING_SECONDS))
        except ChildError as error:
            print(error, file=sys.stderr)
            outcomes.append(BROKE)
            child.close()
            child = Child()
    child.close()
    return outcomes


def outcome(bundle: Path, verify: bool) -> str:
    """Open a bundle and return the name of the resulting error, or `ACCEPTED`."""
    try:
        BERTScorer(bundle, device="cpu", verify=verify).close()
    except BundleError as error:
        return type(error).__name__
    return ACCEPTED


# --- sealing: writing the manifest with the digests of damaged files, as a buggy tool would ---


def read_fields(bundle: Path) -> Fields:
    """Return the fields of a manifest, unchecked."""
    fields: Fields = json.loads((bundle / MANIFEST).read_bytes())
    return fields


def reseal(bundle: Path, **changes: Any) -> None:
    """Write the manifest again with the digests of the files as they are, and with other fields."""
    write_sealed(bundle, {**read_fields(bundle), **changes})


def write_sealed(bundle: Path, fields: object) -> None:
    """Write a manifest with right digests, of the files and of itself, as far as it has the form of a manifest."""
    if isinstance(fields, dict) and isinstance(files := fields.get("files"), dict):
        right = {name: file_digest(bundle / name) for name in files if _is_file(bundle, name)}
        fields = {**fields, "files": {**files, **right}}
    try:
        write_manifest(bundle, msgspec.convert(fields, Manifest))
    except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeEncodeError):
        (bundle / MANIFEST).write_text(json.dumps(fields), encoding="utf-8")


def _is_file(bundle: Path, name: str) -> bool:
    try:
        return (bundle / name).is_file()
    except (OSError, ValueError):
        return False


def sealed(inflict: Inflict) -> Inflict:
    """Return a damage after which the bundle is sealed."""

    def both(bundle: Path) -> None:
        inflict(bundle)
        reseal(bundle)

    return both


# --- damage to any file ---

FILES = (MANIFEST, GRAPH_FILE, TOKENIZER_FILE)


def rewritten(name: str, change: Callable[[bytes], bytes]) -> Inflict:
    """Return a damage that changes the contents of a file."""
    return lambda bundle: (bundle / name).write_bytes(change((bundle / name).read_bytes()))


def link_out(bundle: Path, name: str) -> None:
    """Move a file of a bundle out of its folder, and leave a link to it."""
    outside = bundle.parent / f"outside-{name}"
    (bundle / name).rename(outside)
    (bundle / name).symlink_to(outside)


def _flip(content: bytes, share: float) -> bytes:
    """Flip one bit at this share of the length."""
    changed = bytearray(content)
    changed[round(share * (len(content) - 1))] ^= 4
    return bytes(changed)


def _flip_and_hide(bundle: Path) -> None:
    """Flip a bit and restore the modification time."""
    file = bundle / GRAPH_FILE
    status = file.stat()
    rewritten(GRAPH_FILE, partial(_flip, share=0.6))(bundle)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replaced(name: str, put: Callable[[Path], object] = lambda file: None) -> Inflict:
    """Return a damage that removes a file and puts something else in its place."""

    def inflict(bundle: Path) -> None:
        (bundle / name).unlink()
        put(bundle / name)

    return inflict


def _linked_to_another(name: str) -> Inflict:
    """Return a damage that leaves a link to a file outside of the folder, with one bit flipped."""

    def inflict(bundle: Path) -> None:
        rewritten(name, partial(_flip, share=1))(bundle)
        link_out(bundle, name)

    return inflict


def _foreign_tokenizer(content: bytes) -> bytes:
    """Permute the ids of the vocabulary, as in a tokenizer of another model."""
    tokenizer = json.loads(content)
    vocabulary = tokenizer["model"]["vocab"]
    words = [word for word in vocabulary if not word.startswith("[")]
    ids = [vocabulary[word] for word in words]
    vocabulary.update(zip(words, [*ids[7:], *ids[:7]], strict=True))
    return json.dumps(tokenizer).encode()


_FOREIGN = rewritten(TOKENIZER_FILE, _foreign_tokenizer)
_REWRITES: dict[str, Callable[[bytes], bytes]] = {
    "with a bit flipped at 0%": partial(_flip, share=0),
    "with a bit flipped at 50%": partial(_flip, share=0.5),
    "with a bit flipped at 100%": partial(_flip, share=1),
    "cut in half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "longer": lambda content: content + b"\n",
}
_REPLACEMENTS: dict[str, Callable[[Path], object]] = {
    "missing": lambda file: None,
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
}
_OF_FILES = [
    *(
        Damage(f"{name} {kind}", rewritten(name, change), (DigestError,))
        for name in (GRAPH_FILE, TOKENIZER_FILE)
        for kind, change in _REWRITES.items()
    ),
    Damage("a bit flipped, and the time restored", _flip_and_hide, (DigestError,)),
    *(
        Damage(f"{name} {kind}", _replaced(name, put), (BundleNotFoundError,))
        for name in FILES
        for kind, put in _REPLACEMENTS.items()
    ),
    *(Damage(f"{name} a link to another", _linked_to_another(name), (DigestError, ManifestError)) for name in FILES),
    Damage("a link to nothing", _replaced(GRAPH_FILE, lambda file: file.symlink_to("nothing")), (BundleNotFoundError,)),
    Damage("a link to itself", _replaced(GRAPH_FILE, lambda file: file.symlink_to(file)), (BundleNotFoundError,)),
    Damage("another model's tokenizer", _FOREIGN, (DigestError,)),
    Damage("another model's tokenizer, sealed", sealed(_FOREIGN), (GoldenScoreError,), is_sealed=True),
    Damage(
        "no tokenizer in the file, sealed",
        sealed(rewritten(TOKENIZER_FILE, lambda content: b"{}")),
        (TokenizerError,),
        is_sealed=True,
    ),
]

# --- damage to the manifest ---

DEPTH = 1_000_000
_INVALID: Fields = {
    "hidden_size": "32",
    "pad_id": -1,
    "inputs": "input_ids",
    "empty_ids": [],
    "max_length": 0,
    "precision": "fp31",
    "files": {GRAPH_FILE: "short"},
    "format_version": "1",
    "golden": [{}],
    "a new field": 1,
}


def _edited(**changes: Any) -> Inflict:
    """Return a damage that changes fields of the manifest without sealing it."""
    return rewritten(MANIFEST, lambda content: json.dumps({**json.loads(content), **changes}).encode())


def _without(field: str) -> Inflict:
    def change(content: bytes) -> bytes:
        fields: Fields = json.loads(content)
        del fields[field]
        return json.dumps(fields).encode()

    return rewritten(MANIFEST, change)


def _naming(name: str) -> Inflict:
    """Return a damage that adds the name of another existing file to the manifest."""

    def inflict(bundle: Path) -> None:
        (bundle.parent / "secret").write_bytes(b"")
        (bundle / "sub").mkdir()
        reseal(bundle, files={**read_fields(bundle)["files"], name: "0" * 64})

    return inflict


def _resealed(**changes: Any) -> Inflict:
    return lambda bundle: reseal(bundle, **changes)


_CONTENTS: dict[str, Callable[[bytes], bytes]] = {
    "half a manifest": lambda content: content[: len(content) // 2],
    "an empty manifest": lambda content: b"",
    "a list instead of a manifest": lambda content: b"[" + content + b"]",
    "a manifest that is not UTF-8": lambda content: content.replace(b"tiny", b"\xff"),
    "a deep manifest": lambda content: b'{"format_version": 1, "x": ' + b"[" * DEPTH + b"]" * DEPTH + b"}",
    "a huge manifest": lambda content: content + b" " * MAX_MANIFEST_BYTES,
}
_OF_MANIFESTS = [
    *(Damage(name, rewritten(MANIFEST, change), (ManifestError,)) for name, change in _CONTENTS.items()),
    *(Damage(f"an invalid {field}", _edited(**{field: value}), (ManifestError,)) for field, value in _INVALID.items()),
    Damage("no vocab_size", _without("vocab_size"), (ManifestError,)),
    Damage("no digest", _without("digest"), (DigestError,)),
    Damage("another digest", _edited(digest="0" * 64), (DigestError,)),
    Damage("other golden pairs", _edited(golden=[]), (DigestError,)),
    Damage("a later format", _edited(format_version=99), (FormatVersionError,)),
    *(
        Damage(f"it names {name}", _naming(name), (UnsafePathError,), is_sealed=True)
        for name in ("../secret", "/etc/hostname", "sub/file", "..", ".", "", "a\0b")
    ),
    Damage("no golden pairs, sealed", _resealed(golden=[]), (GoldenScoreError,), is_sealed=True),
    Damage("another maximum length, sealed", _resealed(max_length=5), (GoldenScoreError,), is_sealed=True),
    Damage("other ids of weight zero, sealed", _resealed(zero_weight_ids=[]), (GoldenScoreError,), is_sealed=True),
    Damage("another hidden size, sealed", _resealed(hidden_size=31), (GraphError,), is_sealed=True),
]

# --- damage to the graph that takes knowledge of ONNX ---

Model = Any


def _edited_graph(change: Callable[[Model], object]) -> Inflict:
    def inflict(bundle: Path) -> None:
        model = onnx.load(bundle / GRAPH_FILE)
        change(model)
        (bundle / GRAPH_FILE).write_bytes(model.SerializeToString())

    return inflict


def _weights(model: Model) -> Any:
    """Return the largest tensor."""
    return max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))


def _with_weights(change: Callable[[Any], Any]) -> Inflict:
    def edit(model: Model) -> None:
        tensor = _weights(model)
        values = numpy_helper.to_array(tensor)
        tensor.raw_data = change(values).astype(values.dtype).tobytes()

    return _edited_graph(edit)


def _external(location: str, *, is_named: bool = False, content: bytes | None = None) -> Inflict:
    """Return a damage that moves the weights into a file, and seals.

    `is_named` adds the file to the manifest; `content` is written instead of the weights.
    """

    def locate(model: Model) -> None:
        tensor = _weights(model)
        size = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, "offset": "0", "length": str(size)}.items():
            tensor.external_data.add(key=key, value=value)

    def inflict(bundle: Path) -> None:
        weights = _weights(onnx.load(bundle / GRAPH_FILE)).raw_data
        file = bundle / location
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(weights if content is None else content)
        _edited_graph(locate)(bundle)
        reseal(bundle, files={**read_fields(bundle)["files"], **({location: "0" * 64} if is_named else {})})

    return inflict


def _external_absolute(bundle: Path) -> None:
    _external(str(bundle.parent / "weights-outside"))(bundle)


def _external_link(bundle: Path) -> None:
    """Name a file in the graph and in the manifest that is a link out of the folder, and changes afterwards."""
    _external("weights.data", is_named=True)(bundle)
    link_out(bundle, "weights.data")
    with (bundle / "weights.data").open("ab") as weights:
        weights.write(b"\n")


def _custom_domain(model: Model) -> None:
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    model.graph.node[-1].domain = "com.example"


def _unknown_operator(model: Model) -> None:
    model.graph.node[-1].op_type = "NoSuchOperator"


def _extra_input(model: Model) -> None:
    model.graph.input.append(helper.make_tensor_value_info("more", TensorProto.INT64, ["batch", "tokens"]))


def _other_output(model: Model) -> None:
    output = model.graph.output[0]
    producer = next(node for node in model.graph.node if output.name in node.output)
    producer.output[list(producer.output).index(output.name)] = "other"
    output.name = "other"


_NAN = _with_weights(lambda values: values * np.nan)
_INFINITE = _with_weights(lambda values: np.where(np.arange(values.shape[1]) == 3, np.inf, values))
_ANOTHER_SEED = _with_weights(lambda values: np.random.default_rng(7).normal(0, 0.02, values.shape))
_SEALED_GRAPHS: dict[type[BundleError], dict[str, Inflict]] = {
    GoldenScoreError: {
        "weights NaN": sealed(_NAN),
        "a weight infinite": sealed(_INFINITE),
        "weights of another seed": sealed(_ANOTHER_SEED),
    },
    UnsafePathError: {
        "weights from above the folder": _external("../weights-outside"),
        "weights from an absolute path": _external_absolute,
        "weights from a folder below": _external("sub/weights.data"),
        "weights from an unnamed file": _external("weights.data"),
    },
    GraphError: {
        "too few weights": _external("weights.data", is_named=True, content=b"abc"),
        "an operator of another domain": sealed(_edited_graph(_custom_domain)),
        "an unknown operator": sealed(_edited_graph(_unknown_operator)),
        "one more input": sealed(_edited_graph(_extra_input)),
        "another output": sealed(_edited_graph(_other_output)),
        "a graph cut off": sealed(rewritten(GRAPH_FILE, lambda content: content[:1000])),
        "an empty graph": sealed(rewritten(GRAPH_FILE, lambda content: b"")),
    },
}
_OF_GRAPHS = [
    Damage("weights NaN, not sealed", _NAN, (DigestError,)),
    Damage("weights of another seed, not sealed", _ANOTHER_SEED, (DigestError,)),
    Damage("weights by a link to a changed file", _external_link, (DigestError,)),
    *(
        Damage(name, inflict, (error,), is_sealed=True)
        for error, damages in _SEALED_GRAPHS.items()
        for name, inflict in damages.items()
    ),
]

DAMAGES = [*_OF_FILES, *_OF_MANIFESTS, *_OF_GRAPHS]
