"""Case 8: damaged bundles are opened; each is refused with the error of its kind, and none crashes
or hangs.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
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
from bertscore_onnx.text.spec import SLOW_TOKENIZER_FILE
from harness.processes import ChildError, calls_in_children
from harness.results import Figure
from reliability.report import none_of
from reliability.settings import Settings

OPENING_SECONDS = 60.0
ACCEPTED, BROKE = "accepted", "broke"

Fields = dict[str, Any]
# damages the bundle in a folder; the folder above it may be used too
Inflict = Callable[[Path], object]
Change = Callable[[bytes], bytes]


def measure(settings: Settings) -> list[Figure]:
    """Open every damaged bundle, and two sound ones."""
    damages = [
        (kind.__name__, name, inflict)
        for kind, inflicts in DAMAGES.items()
        for name, inflict in inflicts.items()
    ]
    damages += [
        (ACCEPTED, "none", lambda bundle: None),
        (ACCEPTED, "links to all files", _link_all_out),
    ]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        bundles = [
            shutil.copytree(settings.tiny, Path(folder, str(at), "bundle"))
            for at in range(len(damages))
        ]
        for bundle, (_, _, inflict) in zip(bundles, damages, strict=True):
            inflict(bundle)
        outcomes = calls_in_children(outcome, zip(bundles), OPENING_SECONDS)
        for (expected, name, _), found in zip(damages, outcomes, strict=True):
            if found != expected:
                print(f"{name}: {found}", file=sys.stderr)
                wrong.append((expected, BROKE if isinstance(found, ChildError) else found))
    found_wrong = [found for expected, found in wrong if expected != ACCEPTED]
    return [
        none_of(f"of {len(damages) - 2} damaged bundles, accepted", found_wrong.count(ACCEPTED)),
        none_of(
            "crashes, hangs and errors that are not the library's own", found_wrong.count(BROKE)
        ),
        none_of(
            "refused with the error of another kind",
            sum(found not in (ACCEPTED, BROKE) for found in found_wrong),
        ),
        none_of("sound bundles that were refused", len(wrong) - len(found_wrong)),
    ]


def outcome(bundle: Path) -> str:
    """Open a bundle, compute its golden scores, and return the name of the resulting error, or
    `ACCEPTED`.
    """
    try:
        BERTScorer(bundle, device="cpu", verify=True).close()
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
    """Write a manifest with right digests, of the files and of itself, as far as it has the form of
    a manifest.
    """
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


def sealed(inflict: Inflict, bundle: Path) -> None:
    """Inflict a damage and seal the bundle."""
    inflict(bundle)
    reseal(bundle)


# --- kinds of damage, each a function of a folder once its first arguments are given ---


def rewrite(name: str, change: Change, bundle: Path) -> None:
    """Change the contents of a file."""
    (bundle / name).write_bytes(change((bundle / name).read_bytes()))


def replace(name: str, put: Callable[[Path], object], bundle: Path) -> None:
    """Remove a file and put something else in its place."""
    (bundle / name).unlink()
    put(bundle / name)


def link_out(bundle: Path, name: str) -> None:
    """Move a file of a bundle out of its folder, and leave a link to it."""
    outside = bundle.parent / f"outside-{name}"
    (bundle / name).rename(outside)
    (bundle / name).symlink_to(outside)


def _link_all_out(bundle: Path) -> None:
    for file in [*bundle.iterdir()]:
        link_out(bundle, file.name)


def _link_to_another(name: str, bundle: Path) -> None:
    """Leave a link to a file outside of the folder, with one bit flipped."""
    rewrite(name, partial(_flip, 1), bundle)
    link_out(bundle, name)


def _flip(share: float, content: bytes) -> bytes:
    """Flip one bit at this share of the length."""
    changed = bytearray(content)
    changed[round(share * (len(content) - 1))] ^= 4
    return bytes(changed)


def _flip_and_hide(bundle: Path) -> None:
    """Flip a bit and restore the modification time."""
    file = bundle / GRAPH_FILE
    status = file.stat()
    rewrite(GRAPH_FILE, partial(_flip, 0.6), bundle)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _permute_vocabulary(content: bytes) -> bytes:
    """Give the words of a tokenizer other ids, as in a tokenizer of another model."""
    tokenizer = json.loads(content)
    vocabulary = tokenizer["model"]["vocab"]
    words = [word for word in vocabulary if not word.startswith("[")]
    ids = [vocabulary[word] for word in words]
    vocabulary.update(zip(words, [*ids[7:], *ids[:7]], strict=True))
    return json.dumps(tokenizer).encode()


def _edited(without: str = "", **changes: Any) -> Inflict:
    """Return a damage that changes fields of the manifest without sealing it."""

    def change(content: bytes) -> bytes:
        fields = {**json.loads(content), **changes}
        return json.dumps(
            {name: value for name, value in fields.items() if name != without}
        ).encode()

    return partial(rewrite, MANIFEST, change)


def _resealed(**changes: Any) -> Inflict:
    return lambda bundle: reseal(bundle, **changes)


def _add_name(name: str, bundle: Path) -> None:
    """Add the name of another existing file to the manifest."""
    (bundle.parent / "secret").write_bytes(b"")
    (bundle / "sub").mkdir()
    reseal(bundle, files={**read_fields(bundle)["files"], name: "0" * 64})


def edit_graph(change: Callable[[Any], object], bundle: Path) -> None:
    """Change the parsed graph."""
    model = onnx.load(bundle / GRAPH_FILE)
    change(model)
    (bundle / GRAPH_FILE).write_bytes(model.SerializeToString())


def _weights(model: Any) -> Any:
    """Return the largest tensor."""
    return max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))


def _change_weights(change: Callable[[Any], Any], model: Any) -> None:
    tensor = _weights(model)
    values = numpy_helper.to_array(tensor)
    tensor.raw_data = change(values).astype(values.dtype).tobytes()


def _move_weights(
    location: str, bundle: Path, *, is_named: bool = False, content: bytes | None = None
) -> None:
    """Move the weights into a file, and seal the bundle.

    `is_named` adds the file to the manifest; `content` is written instead of the weights.
    """
    weights = _weights(onnx.load(bundle / GRAPH_FILE)).raw_data
    file = bundle / location
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(weights if content is None else content)

    def locate(model: Any) -> None:
        tensor = _weights(model)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {
            "location": location,
            "offset": "0",
            "length": str(len(weights)),
        }.items():
            tensor.external_data.add(key=key, value=value)

    edit_graph(locate, bundle)
    reseal(
        bundle, files={**read_fields(bundle)["files"], **({location: "0" * 64} if is_named else {})}
    )


def _move_weights_to_link(bundle: Path) -> None:
    """Name a file in the graph and in the manifest that is a link out of the folder, and changes
    afterwards.
    """
    _move_weights("weights.data", bundle, is_named=True)
    link_out(bundle, "weights.data")
    with (bundle / "weights.data").open("ab") as weights:
        weights.write(b"\n")


def _use_custom_domain(model: Any) -> None:
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    model.graph.node[-1].domain = "com.example"


def _use_unknown_operator(model: Any) -> None:
    model.graph.node[-1].op_type = "NoSuchOperator"


def _add_input(model: Any) -> None:
    model.graph.input.append(
        helper.make_tensor_value_info("more", TensorProto.INT64, ["batch", "tokens"])
    )


def _rename_output(model: Any) -> None:
    output = model.graph.output[0]
    producer = next(node for node in model.graph.node if output.name in node.output)
    producer.output[list(producer.output).index(output.name)] = "other"
    output.name = "other"


# --- the damages, by the error that each has to raise ---

DEPTH = 1_000_000
_REWRITES: dict[str, Change] = {
    "with a bit flipped at 0%": partial(_flip, 0),
    "with a bit flipped at 50%": partial(_flip, 0.5),
    "with a bit flipped at 100%": partial(_flip, 1),
    "cut in half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "longer": lambda content: content + b"\n",
}
_REPLACEMENTS: dict[str, Callable[[Path], object]] = {
    "missing": lambda file: None,
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
}
_MANIFESTS: dict[str, Change] = {
    "half a manifest": lambda content: content[: len(content) // 2],
    "an empty manifest": lambda content: b"",
    "a list instead of a manifest": lambda content: b"[" + content + b"]",
    "a manifest that is not UTF-8": lambda content: content.replace(b"tiny", b"\xff"),
    "a deep manifest": lambda content: (
        b'{"format_version": 1, "x": ' + b"[" * DEPTH + b"]" * DEPTH + b"}"
    ),
    "a huge manifest": lambda content: content + b" " * MAX_MANIFEST_BYTES,
}
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
_OTHER_TOKENIZER = partial(rewrite, SLOW_TOKENIZER_FILE, _permute_vocabulary)
_NAN, _INFINITE, _ANOTHER_SEED = (
    partial(edit_graph, partial(_change_weights, change))
    for change in (
        lambda values: values * np.nan,
        lambda values: np.where(np.arange(values.shape[1]) == 3, np.inf, values),
        lambda values: np.random.default_rng(7).normal(0, 0.02, values.shape),
    )
)
DAMAGES: dict[type[BundleError], dict[str, Inflict]] = {
    DigestError: {
        **{
            f"{name} {kind}": partial(rewrite, name, change)
            for name in (GRAPH_FILE, SLOW_TOKENIZER_FILE)
            for kind, change in _REWRITES.items()
        },
        **{
            f"{name} a link to another": partial(_link_to_another, name)
            for name in (GRAPH_FILE, SLOW_TOKENIZER_FILE)
        },
        "a bit flipped, and the time restored": _flip_and_hide,
        "another model's tokenizer": _OTHER_TOKENIZER,
        "no digest": _edited(without="digest"),
        "another digest": _edited(digest="0" * 64),
        "other golden pairs": _edited(golden=[]),
        "weights NaN, not sealed": _NAN,
        "weights of another seed, not sealed": _ANOTHER_SEED,
        "weights by a link to a changed file": _move_weights_to_link,
    },
    BundleNotFoundError: {
        **{
            f"{name} {kind}": partial(replace, name, put)
            for name in (MANIFEST, GRAPH_FILE, SLOW_TOKENIZER_FILE)
            for kind, put in _REPLACEMENTS.items()
        },
        "a link to nothing": partial(replace, GRAPH_FILE, lambda file: file.symlink_to("nothing")),
        "a link to itself": partial(replace, GRAPH_FILE, lambda file: file.symlink_to(file)),
    },
    ManifestError: {
        **{name: partial(rewrite, MANIFEST, change) for name, change in _MANIFESTS.items()},
        **{f"an invalid {field}": _edited(**{field: value}) for field, value in _INVALID.items()},
        "no vocab_size": _edited(without="vocab_size"),
        "a link to another manifest": partial(_link_to_another, MANIFEST),
    },
    FormatVersionError: {"a later format": _edited(format_version=99)},
    TokenizerError: {
        "no tokenizer in the file, sealed": partial(
            sealed, partial(rewrite, SLOW_TOKENIZER_FILE, lambda content: b"{}")
        ),
    },
    UnsafePathError: {
        **{
            f"it names {name}": partial(_add_name, name)
            for name in ("../secret", "/etc/hostname", "sub/file", "..", ".", "", "a\0b")
        },
        "weights from above the folder": partial(_move_weights, "../weights-outside"),
        "weights from an absolute path": lambda bundle: _move_weights(
            str(bundle.parent / "weights"), bundle
        ),
        "weights from a folder below": partial(_move_weights, "sub/weights.data"),
        "weights from an unnamed file": partial(_move_weights, "weights.data"),
    },
    GoldenScoreError: {
        "another model's tokenizer, sealed": partial(sealed, _OTHER_TOKENIZER),
        "no golden pairs, sealed": _resealed(golden=[]),
        "another maximum length, sealed": _resealed(max_length=5),
        "other ids of weight zero, sealed": _resealed(zero_weight_ids=[]),
        "weights NaN": partial(sealed, _NAN),
        "a weight infinite": partial(sealed, _INFINITE),
        "weights of another seed": partial(sealed, _ANOTHER_SEED),
    },
    GraphError: {
        "another hidden size, sealed": _resealed(hidden_size=31),
        "too few weights": partial(_move_weights, "weights.data", is_named=True, content=b"abc"),
        "an operator of another domain": partial(sealed, partial(edit_graph, _use_custom_domain)),
        "an unknown operator": partial(sealed, partial(edit_graph, _use_unknown_operator)),
        "one more input": partial(sealed, partial(edit_graph, _add_input)),
        "another output": partial(sealed, partial(edit_graph, _rename_output)),
        "a graph cut off": partial(
            sealed, partial(rewrite, GRAPH_FILE, lambda content: content[:1000])
        ),
        "an empty graph": partial(sealed, partial(rewrite, GRAPH_FILE, lambda content: b"")),
    },
}
