"""Case 13: mutated bundles are opened and scored with.

Each gives finite scores or an error of the library, within a time and a memory limit.
"""

import contextlib
import copy
import io
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import sentencepiece
import tokenizers
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError  # type: ignore[import-untyped]
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]
from tokenizers import models, normalizers, pre_tokenizers, processors

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.manifest import GRAPH_FILE, Manifest, write_manifest
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.concurrency.cpus import usable_cpus
from bertscore_onnx.errors import BertScoreOnnxError, GoldenScoreError
from bertscore_onnx.text.spec import (
    SENTENCEPIECE_FILE,
    SLOW_TOKENIZER_FILE,
    TOKENIZER_FILE,
    SentencePieceSpec,
)
from harness.processes import ChildError, calls_in_children, memory_mb
from harness.results import Figure
from reliability.damage import read_fields, reseal, write_sealed
from reliability.report import none_of
from reliability.settings import Settings

SECONDS = 10.0  # per bundle
MEMORY = 500_000_000  # bytes that a bundle may take on top of what the process had before

SCORED, BROKE, HUNG = "scored", "broke", "hung"
SEPARATORS = 10  # in a signature

Draw = random.Random
Change = Callable[[bytes, Draw], bytes]


def measure(settings: Settings) -> list[Figure]:
    """Open mutated bundles, in as many processes as there are CPUs, which may crash."""
    workers = usable_cpus()
    numbers = range(settings.sizes.mutated_bundles)
    with tempfile.TemporaryDirectory() as folder:
        bases = make_bases(settings.tiny, Path(folder))
        shares = [numbers[worker::workers] for worker in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            outcomes = sum(
                pool.map(lambda share: _attempt_all(bases, share, Path(folder)), shares),
                Counter[str](),
            )
    print(f"mutated bundles: {dict(outcomes.most_common())}", file=sys.stderr)
    return [
        none_of(
            f"of {len(numbers):,} mutated bundles, errors that are not the library's own, and "
            "crashes",
            outcomes[BROKE],
        ),
        none_of(f"that take longer than {SECONDS:g} s", outcomes[HUNG]),
        none_of("mutations that none was scored with", not outcomes[SCORED]),
    ]


def _attempt_all(bases: list[Path], numbers: range, folder: Path) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    attempts = [(bases, number, folder) for number in numbers]
    results = calls_in_children(attempt, attempts, SECONDS, partial(_score, bases[0]))
    for number, result in zip(numbers, results, strict=True):
        if isinstance(result, ChildError):
            kind, detail = HUNG if "hangs" in str(result) else BROKE, str(result)
        else:
            kind, detail = result
        if kind in (HUNG, BROKE):
            base, name, change, _ = _choose(bases, number)
            print(
                f"bundle {number}, {base.name}, {name} by {change.__name__}: {kind}: {detail}",
                file=sys.stderr,
            )
        outcomes[kind] += 1
    return outcomes


def attempt(bases: list[Path], number: int, folder: Path) -> tuple[str, str]:
    """Make a mutated bundle, open it and score with it; return `SCORED`, an error class or `BROKE`,
    with details.
    """
    os.environ["BERTSCORE_ONNX_HOME"] = str(folder / f"home-{os.getpid()}")
    bundle = folder / f"bundle-{number}"
    make_mutated(bases, number, bundle)
    used = int(memory_mb("VmData") * 1e6)
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, resource.RLIM_INFINITY))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = _score(bundle)
    except BertScoreOnnxError as error:
        return type(error).__name__, str(error)
    except BaseException as error:  # a panic in Rust is not an `Exception`
        return BROKE, f"{type(error).__name__} {str(error)[:300]}"
    finally:
        shutil.rmtree(bundle)
    return BROKE if wrong else SCORED, wrong


def _score(bundle: Path) -> str:
    """Score a pair, raw and rescaled, and verify the bundle; return the fault of the scores, or
    nothing.
    """
    with BERTScorer(bundle, device="cpu", nthreads=1) as scorer:
        if not _is_finite(scorer):
            return "scores that are not numbers"
        if scorer.hash.count("|") != SEPARATORS or not scorer.hash.isprintable():
            return f"the signature {scorer.hash!r}"
        for language in scorer.manifest.baselines:
            with scorer.with_rescaling(language) as rescaled:
                if not _is_finite(rescaled):
                    return "rescaled scores that are not numbers"
    with contextlib.suppress(GoldenScoreError):
        BERTScorer(bundle, device="cpu", nthreads=1, verify=True).close()
    return ""


def _is_finite(scorer: BERTScorer) -> bool:
    scores = scorer.score(PAIR[:1], PAIR[1:])
    return all(bool(np.isfinite(part).all()) for part in scores)


def make_mutated(bases: list[Path], number: int, bundle: Path) -> None:
    """Write the bundle of a number, always the same."""
    base, name, change, draw = _choose(bases, number)
    shutil.copytree(base, bundle)
    if change is mutated_fields:
        fields = json.loads(change(json.dumps(read_fields(bundle)).encode(), draw))
        write_sealed(bundle, fields)
        return
    file = bundle / name
    file.write_bytes(change(file.read_bytes(), draw))
    if name != MANIFEST:
        reseal(bundle)


def _choose(bases: list[Path], number: int) -> tuple[Path, str, Change, Draw]:
    """Return the base of a number, the file to change and how."""
    draw = Draw(number)
    base = draw.choice(bases)
    ways: list[tuple[str, Change]] = [
        *[(MANIFEST, mutated_fields)] * 3,
        (MANIFEST, mutated_text),
        *[(GRAPH_FILE, mutated_graph)] * 2,
        (GRAPH_FILE, mutated_bytes),
    ]
    if (base / SENTENCEPIECE_FILE).is_file():
        ways += [(SENTENCEPIECE_FILE, mutated_bytes)] * 3
    else:
        file = TOKENIZER_FILE if (base / TOKENIZER_FILE).is_file() else SLOW_TOKENIZER_FILE
        ways += [*[(file, mutated_json)] * 2, (file, mutated_text)]
    name, change = draw.choice(ways)
    return base, name, change, draw


# --- mutations of bytes ---

# of protobuf fields that no writer writes: number 0, groups, needlessly long ones, bits beyond the
# 32nd
TAGS = [
    b"\x00",
    b"\x07",
    b"\x3b",
    b"\x3c",
    b"\xba\x80\x80\x80\x10",
    b"\xba\x80\x00",
    b"\xff" * 10 + b"\x01",
]


def mutated_text(content: bytes, draw: Draw) -> bytes:
    """Change bytes: flip, cut out, insert, repeat, or end too early."""
    at = draw.randrange(len(content) + 1)
    size = draw.choice([1, 1, 4, 50, 1000])
    kind = draw.randrange(6)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + content[at + size :]
    if kind == 2:
        return content[:at] + draw.randbytes(size) + content[at:]
    if kind == 3:
        return (
            content[:at] + content[at : at + size] * draw.choice([2, 2, 20]) + content[at + size :]
        )
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 3, 20])):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def mutated_bytes(content: bytes, draw: Draw) -> bytes:
    """Change bytes, or insert the tag of a strange protobuf field."""
    if draw.random() < 0.7:
        return mutated_text(content, draw)
    at = draw.choice([0, 2, 12, len(content), draw.randrange(len(content))])
    return content[:at] + draw.choice(TAGS) + draw.randbytes(draw.choice([0, 1, 5])) + content[at:]


# --- mutations of trees of JSON ---

NUMBERS = [
    0,
    -1,
    1,
    2,
    255,
    2**31 - 1,
    2**31,
    2**32,
    10**12,
    2**63 - 1,
    2**63,
    2**64,
    10**30,
    -(2**63),
]
FRACTIONS = [0.0, -0.0, 1.0, 0.5, -1.0, 1e-320, 1e38, 1e308, -1e308]
STRINGS = [
    "",
    " ",
    "\0",
    "a|b\n\x1b[2J",
    "../x",
    "[",
    "(?<x",
    "\\",
    "▁",
    "##",
    "[UNK]",
    "\U0001f600",
    "e\u0301" * 99,
]
LONG = ["x" * 100_000, "[" * 5000]
CONTAINERS: list[Any] = [
    [],
    {},
    [[]],
    [None],
    [0] * 5000,
    [[0, 0]] * 3000,
    {"type": "Sequence"},
    {"": {}},
]
KINDS: list[list[Any]] = [NUMBERS, FRACTIONS, STRINGS, LONG, CONTAINERS]
DEPTHS = [50, 500, 20_000]


def mutated_fields(content: bytes, draw: Draw) -> bytes:
    """Change the tree of a JSON text in one to three places."""
    tree = json.loads(content)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        mutate_tree(tree, draw)
    return json.dumps(tree).encode()


def mutated_json(content: bytes, draw: Draw) -> bytes:
    """Change the tree of a JSON text, now and then to a very deep one."""
    tree = json.loads(mutated_fields(content, draw))
    _shorten_sequences(tree)
    text = json.dumps(tree)
    if draw.random() < 0.05:
        depth = draw.choice(DEPTHS)
        text = text.replace("null", "[" * depth + "]" * depth, 1)
    return text.encode()


def _shorten_sequences(node: Any) -> None:
    """Keep four steps of each sequence: each step may double a text, and SECURITY.md names no bound
    for that.
    """
    if isinstance(node, dict | list):
        for key, below in node.items() if isinstance(node, dict) else enumerate(node):
            if key in ("normalizers", "pretokenizers") and isinstance(below, list):
                del below[4:]
            _shorten_sequences(below)


def mutate_tree(tree: Any, draw: Draw) -> None:
    """Change one node below the root of a tree; each level is as likely as any other."""
    parent: Any = None
    key: Any = None
    node = tree
    while isinstance(node, dict | list) and node and (parent is None or draw.random() < 0.75):
        parent = node
        key = draw.choice(list(node)) if isinstance(node, dict) else draw.randrange(len(node))
        node = node[key]
    if parent is None:  # the tree is empty
        return
    kind = draw.randrange(10)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[draw.choice(["unknown", "", "type", *parent])] = node
    elif kind == 1:
        parent[key : key + 1] = [node] * draw.choice([2, 2, 1000])
    elif kind == 2:
        parent[key] = _any_value(draw)
    elif kind == 3:
        parent[key] = copy.deepcopy(
            draw.choice(list(parent.values()) if isinstance(parent, dict) else parent)
        )
    else:
        parent[key] = _of_its_type(node, draw)


def _any_value(draw: Draw) -> Any:
    # for it may be changed next
    return copy.deepcopy(draw.choice([None, True, *draw.choice(KINDS)]))


def _of_its_type(node: Any, draw: Draw) -> Any:
    """Return another value of the same type, which a check of types accepts."""
    if isinstance(node, bool):
        return not node
    if isinstance(node, int):
        return draw.choice([*NUMBERS, node + 1, node - 1, node * 1000])
    if isinstance(node, float):
        return draw.choice([*FRACTIONS, -node])
    if isinstance(node, str):
        # such as in a regular expression, or in a table in base64
        at = draw.randrange(len(node) + 1)
        odd = (
            node[:at]
            + draw.choice(["A", "/", "+", "=", "*", "(", "\\", "\0", "é", "{9999}", "|"])
            + node[at + 1 :]
        )
        return draw.choice([*STRINGS, draw.choice(LONG), node * 2, node[1:], odd])
    if isinstance(node, list):
        return draw.choice([[], node[:-1], node + node, [node], node[::-1], node * 100])
    if isinstance(node, dict):
        return draw.choice([{}, dict(list(node.items())[:-1]), {**node, "unknown": 0}, {"": node}])
    return _any_value(draw)


# --- mutations of ONNX graphs, as trees of JSON ---

LOCATIONS = [
    "",
    ".",
    "model.onnx",
    "tokenizer.slow.json",
    "bertscore.json",
    "missing",
    "../x",
    "/etc/hostname",
    "a\0b",
]
LOCATIONS += ["*/_ORT_MEM_ADDR_/*", "/dev/zero"]
OFFSETS = [
    "",
    "0",
    "1",
    "-1",
    "4096",
    "99999999",
    str(2**31),
    str(2**63),
    str(2**64),
    "x",
    "1e3",
    " 1",
    "0x10",
]
DATA_TYPES = [0, 1, 6, 7, 8, 10, 16, 17, 22, 99]
OPERATORS = ["", "x", "Loop", "Gather", "Reshape", "com.microsoft"]
# protobuf writes 64-bit integers as strings
INTEGER_FIELDS = ("dims", "dimValue", "i", "ints", "version")


def mutated_graph(content: bytes, draw: Draw) -> bytes:
    """Change one to three fields of an ONNX model; changes that are no longer one are made
    again.
    """
    tree = _with_integers(
        MessageToDict(onnx.load_from_string(content), use_integers_for_enums=True)
    )
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        while True:
            changed = copy.deepcopy(tree)
            try:
                draw.choice(
                    [mutate_tree, _mutate_part, _mutate_part, _mutate_tensor, _make_external]
                )(changed, draw)
                model = ParseDict(changed, onnx.ModelProto())
            except (ParseError, LookupError, TypeError, ValueError, AttributeError, OverflowError):
                continue
            tree = changed
            break
    return bytes(model.SerializeToString())


def _with_integers(node: Any, *, is_integer: bool = False) -> Any:
    if isinstance(node, dict):
        return {
            key: _with_integers(below, is_integer=key in INTEGER_FIELDS)
            for key, below in node.items()
        }
    if isinstance(node, list):
        return [_with_integers(below, is_integer=is_integer) for below in node]
    return int(node) if is_integer and isinstance(node, str) else node


def _mutate_part(tree: Any, draw: Draw) -> None:
    """Change a list of the graph: its nodes, initializers, inputs or outputs."""
    name, part = draw.choice(
        [(name, part) for name, part in tree["graph"].items() if isinstance(part, list)]
    )
    mutate_tree(part, draw)
    if name == "node" and part and draw.random() < 0.1:
        draw.choice(part)["opType"] = draw.choice(OPERATORS)


def _mutate_tensor(tree: Any, draw: Draw) -> None:
    """Change the shape or the type of an initializer."""
    tensor = draw.choice(tree["graph"]["initializer"])
    if draw.random() < 0.5:
        tensor["dataType"] = draw.choice(DATA_TYPES)
    else:
        mutate_tree(tensor["dims"], draw)


def _make_external(tree: Any, draw: Draw) -> None:
    """Let an initializer come from a file."""
    tensor = draw.choice(tree["graph"]["initializer"])
    tensor["dataLocation"] = onnx.TensorProto.EXTERNAL
    if draw.random() < 0.8:
        tensor.pop("rawData", None)
    tensor["externalData"] = [
        {"key": key, "value": draw.choice(values)}
        for key, values in (("location", LOCATIONS), ("offset", OFFSETS), ("length", OFFSETS))
        for _ in range(draw.choice([0, 1, 1, 1, 2]))
    ]


# --- the bundles to mutate: one for each kind of tokenizer, all with the same tiny graph ---

PAIR = ("the cat sat", "That hat, É ﬁ [SEP] a\u0301 中 9, \U0001f600")  # to score
WORDS = ["the cat sat", "that hat", "a chat", "the test", "cats eat"]
# of SentencePiece: A becomes a, T becomes t, the ligature fi its letters
RULES = "41\t61\n54\t74\nFB01\t66 69\n"
ENDS, UNKNOWN = ("[CLS]", "[SEP]"), "[UNK]"


def make_bases(tiny: Path, folder: Path) -> list[Path]:
    """Copy a bundle into a folder, once for each kind of tokenizer."""
    model = _sentencepiece_model()
    bundles = {
        name: shutil.copytree(tiny, folder / name)
        for name in ("words", "merges", "unigrams", "pieces")
    }
    manifest = read_manifest(tiny)
    _use_fast(bundles["merges"], manifest, _merges())
    _use_fast(bundles["unigrams"], manifest, _unigrams(model))
    _use_pieces(bundles["pieces"], manifest, model)
    return list(bundles.values())


def _use_fast(bundle: Path, manifest: Manifest, tokenizer: str) -> None:
    (bundle / SLOW_TOKENIZER_FILE).unlink()
    (bundle / TOKENIZER_FILE).write_text(tokenizer, encoding="utf-8")
    files = {**manifest.files, TOKENIZER_FILE: "0" * 64}
    del files[SLOW_TOKENIZER_FILE]
    changes = {"tokenizer_mode": "fast", "tokenizer_spec": None, "files": files}
    write_manifest(bundle, msgspec.structs.replace(manifest, **changes))
    reseal(bundle)


def _use_pieces(bundle: Path, manifest: Manifest, model: bytes) -> None:
    (bundle / SENTENCEPIECE_FILE).write_bytes(model)
    count = len(ModelProto.FromString(model).pieces)
    pieces = SentencePieceSpec(
        id_runs=[(0, 1), (count // 2, 2)], split_number_comma=True, split_punctuation=True
    )
    assert manifest.tokenizer_spec is not None
    spec = msgspec.structs.replace(manifest.tokenizer_spec, sentencepiece=pieces)
    files = {**manifest.files, SENTENCEPIECE_FILE: "0" * 64}
    write_manifest(bundle, msgspec.structs.replace(manifest, tokenizer_spec=spec, files=files))
    reseal(bundle)


def _sentencepiece_model() -> bytes:
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as rules:
        rules.write(RULES)
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(WORDS * 4),
            model_writer=model,
            vocab_size=18,
            hard_vocab_limit=False,
            normalization_rule_tsv=rules.name,
            minloglevel=3,
        )
    return model.getvalue()


def _merges() -> str:
    vocabulary = [*ENDS, UNKNOWN, "Ġ", *"acehst", "at", "he", "the", "Ġc"]
    merges = [("a", "t"), ("h", "e"), ("t", "he"), ("Ġ", "c")]
    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = tokenizers.Tokenizer(models.BPE(ids, merges, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Replace(tokenizers.Regex("[^a-z ]+"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(r"\s+"), "merged_with_next"),
            pre_tokenizers.ByteLevel(),
        ]
    )
    return _with_ends(tokenizer)


def _unigrams(model: bytes) -> str:
    parsed = ModelProto.FromString(model)
    vocabulary = [
        *((token, 0.0) for token in ENDS),
        *((piece.piece, piece.score) for piece in parsed.pieces),
    ]
    tokenizer = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=2))
    tokenizer.normalizer = normalizers.Precompiled(parsed.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return _with_ends(tokenizer)


def _with_ends(tokenizer: Any) -> str:
    """Add a [CLS] before and a [SEP] after each text; return the `tokenizer.json`."""
    tokenizer.add_special_tokens(list(ENDS))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A $B [SEP]",
        special_tokens=[(token, i) for i, token in enumerate(ENDS)],
    )
    text: str = tokenizer.to_str()
    return text
