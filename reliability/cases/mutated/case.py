"""Mutated bundles are opened and scored with: each gives finite scores or an error of ours, within time and memory."""

import contextlib
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
from pathlib import Path

import numpy as np

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.manifest import GRAPH_FILE
from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.concurrency.cpus import usable_cpus
from bertscore_onnx.errors import BertScoreOnnxError, GoldenScoreError
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, TOKENIZER_FILE
from harness.child import Child, ChildError
from harness.results import Figure
from reliability.bounds import none_of
from reliability.cases.mutated.bases import PAIR, make_bases
from reliability.cases.mutated.graphs import mutated_bytes, mutated_graph
from reliability.cases.mutated.sealing import read_fields, reseal, write_sealed
from reliability.cases.mutated.trees import mutated_json, mutated_text, mutated_tree
from reliability.settings import Settings

SECONDS = 10.0
"""How long a bundle may take."""

STARTING_SECONDS = 120.0

MEMORY = 500_000_000
"""How many bytes more it may take than the process had before."""

SCORED = "scored"
BROKE = "broke"
HUNG = "hung"

SEPARATORS = 9
"""In a signature."""

Change = Callable[[bytes, random.Random], bytes]


def measure(settings: Settings) -> list[Figure]:
    """Open mutated bundles, many in a process that may crash, and in as many processes as there are CPUs."""
    workers = usable_cpus()
    numbers = range(settings.sizes.mutated_bundles)
    with tempfile.TemporaryDirectory() as folder:
        bases = make_bases(settings.tiny, Path(folder))
        shares = [numbers[worker::workers] for worker in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            found = [*pool.map(lambda share: _attempt_all(bases, share, Path(folder)), shares)]
    outcomes: Counter[str] = sum(found, Counter())
    print(f"mutated bundles: {dict(outcomes.most_common())}", file=sys.stderr)
    return [
        none_of(
            f"of {len(numbers):,} mutated bundles, errors that are not the library's own, and crashes", outcomes[BROKE]
        ),
        none_of(f"that take longer than {SECONDS:g} s", outcomes[HUNG]),
        none_of("mutations that none was scored with", not outcomes[SCORED]),
    ]


def _attempt_all(bases: list[Path], numbers: range, folder: Path) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    child = _started(bases)
    for number in numbers:
        try:
            kind, detail = child.do(attempt, bases, number, folder, limit=SECONDS)
        except ChildError as error:
            kind, detail = HUNG if "hangs" in str(error) else BROKE, str(error)
            child.close()
            child = _started(bases)
        if kind in (HUNG, BROKE):
            print(f"bundle {number}, {describe(bases, number)}: {kind}: {detail}", file=sys.stderr)
        outcomes[kind] += 1
    child.close()
    return outcomes


def _started(bases: list[Path]) -> Child:
    """Start a process that has opened a sound bundle, so that imports count for no mutated one."""
    child = Child()
    child.do(_score, bases[0], limit=STARTING_SECONDS)
    return child


def attempt(bases: list[Path], number: int, folder: Path) -> tuple[str, str]:
    """Make a mutated bundle, open it and score with it.

    Returns:
        `SCORED`, the name of an error of ours or `BROKE`; and what there is to say of it.
    """
    os.environ["BERTSCORE_ONNX_HOME"] = str(folder / f"home-{os.getpid()}")
    bundle = folder / f"bundle-{number}"
    make_mutated(bases, number, bundle)
    _limit_memory()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = _score(bundle)
    except BertScoreOnnxError as error:
        return type(error).__name__, str(error)
    except BaseException as error:  # a panic of Rust is none of Python's usual exceptions
        return BROKE, f"{type(error).__name__} {str(error)[:300]}"
    finally:
        shutil.rmtree(bundle)
    return BROKE if wrong else SCORED, wrong


def _is_finite(scorer: BERTScorer) -> bool:
    scores = scorer.score(PAIR[:1], PAIR[1:])
    return all(bool(np.isfinite(part).all()) for part in scores)


def _score(bundle: Path) -> str:
    """Score a pair, raw and rescaled, and verify the bundle; return what is wrong with the scores."""
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


def _limit_memory() -> None:
    used = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        if line.startswith("VmData")
    )
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, resource.RLIM_INFINITY))


def make_mutated(bases: list[Path], number: int, bundle: Path) -> None:
    """Write the bundle of a number, always the same."""
    base, name, change, draw = _choice(bases, number)
    shutil.copytree(base, bundle)
    if name == MANIFEST and change is None:
        fields = read_fields(bundle)
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            fields = mutated_tree(fields, draw)
        write_sealed(bundle, fields)
        return
    assert change is not None
    file = bundle / name
    file.write_bytes(change(file.read_bytes(), draw))
    if name != MANIFEST:
        reseal(bundle)


def describe(bases: list[Path], number: int) -> str:
    """Say what is changed in the bundle of a number, and how."""
    base, name, change, _ = _choice(bases, number)
    return f"{base.name}, {name} by {change.__name__ if change else 'sealed fields'}"


def _choice(bases: list[Path], number: int) -> tuple[Path, str, Change | None, random.Random]:
    draw = random.Random(number)  # noqa: S311 -- nothing secret
    base = draw.choice(bases)
    ways: list[tuple[str, Change | None]] = [
        (MANIFEST, None),
        (MANIFEST, None),
        (MANIFEST, None),
        (MANIFEST, mutated_text),
        (GRAPH_FILE, mutated_graph),
        (GRAPH_FILE, mutated_graph),
        (GRAPH_FILE, mutated_bytes),
    ]
    if (base / SENTENCEPIECE_FILE).is_file():
        ways += [(SENTENCEPIECE_FILE, mutated_bytes)] * 3
    else:
        ways += [(TOKENIZER_FILE, mutated_json), (TOKENIZER_FILE, mutated_json), (TOKENIZER_FILE, mutated_text)]
    name, change = draw.choice(ways)
    return base, name, change, draw
