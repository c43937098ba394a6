"""`bertscore-onnx inspect`: describes a bundle and checks its scores, in a child process if it is not trusted."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.bundle.store import MODEL_VARIABLE
from bertscore_onnx.cli.options import TextOrJson, chosen_model, complete_model
from bertscore_onnx.cli.terminal import print_json, print_table
from bertscore_onnx.errors import BundleError, GoldenScoreError, InputError

if TYPE_CHECKING:
    from bertscore_onnx.bundle.bundle import Bundle
    from bertscore_onnx.bundle.manifest import Manifest

_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
_POLL = 0.02  # seconds

CPU_SECONDS = 600
"""Far more than the golden pairs of the largest model take on one CPU."""

MEMORY_BYTES = 4_000_000_000
"""The memory that a process needs beside a model, with room for many threads."""

MEMORY_FACTOR = 4
"""A model may need this many times the size of its files while it is loaded."""


def inspect(
    bundle: Annotated[
        str | None,
        typer.Argument(
            metavar="BUNDLE",
            help=f"The path of a bundle, or a model's name, as for `score`.  [default: {MODEL_VARIABLE}]",
            autocompletion=complete_model,
        ),
    ] = None,
    output_format: TextOrJson = "text",
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="DEVICE", help="cpu, cuda or cuda:N.  [default: cuda if available]"),
    ] = None,
    isolate: Annotated[
        bool,
        typer.Option(
            "--isolate", help="Check it on the CPU in a child process with limits of memory and time (Linux)."
        ),
    ] = False,
) -> None:
    """Describe a bundle and check its scores.

    Checks the digests of all files, and recomputes the scores that were recorded at the export.

    Examples:
        # Describe and check a bundle in a folder, or an installed one
        bertscore-onnx inspect path/to/bundle
        bertscore-onnx inspect roberta-large
        # Check a bundle that you do not trust
        bertscore-onnx inspect path/to/bundle --isolate
    """
    import msgspec

    from bertscore_onnx.bundle.resolver import resolve_bundle
    from bertscore_onnx.hub import local_path
    from bertscore_onnx.scoring.golden import difference_by_pairs, golden_difference, golden_pipeline, golden_tolerance

    bundle = chosen_model(bundle)
    if isolate:
        device = _check_isolated(bundle, device)
    resolved = resolve_bundle(local_path(bundle), all_layers=None)
    if output_format == "text":
        print_table(_describe(resolved))
    with golden_pipeline(resolved.path, device=device) as pipeline:
        difference, tolerance = golden_difference(pipeline), golden_tolerance(pipeline)
        provider = pipeline.encoder.provider
    by_graph = difference_by_pairs(pipeline.bundle, device=device) if resolved.manifest.has_scoring_graph else None
    if output_format == "json":
        golden = {"largest_difference": difference, "tolerance": tolerance, "provider": provider}
        if by_graph is not None:
            golden["scoring_graph_difference"] = by_graph
        manifest = msgspec.to_builtins(resolved.manifest)
        print_json({"path": str(resolved.path), "manifest": manifest, "golden": golden})
    else:
        pairs = len(resolved.manifest.golden)
        print(f"\n{pairs} golden pairs on {provider}: the largest difference is {difference:.1e}.")
        if by_graph is not None:
            print(f"The scores of the scoring graph differ from these by {by_graph:.1e} at most.")
    if not difference <= tolerance:
        raise GoldenScoreError(
            f"The golden scores of {resolved.path} differ by {difference:.1e} on {provider}; at most "
            f"{tolerance:.0e} is expected. Export the model again, or try another device with --device."
        )
    if by_graph is not None and not by_graph <= tolerance:
        raise GoldenScoreError(
            f"The scores of the scoring graph of {resolved.path} differ by {by_graph:.1e} on {provider}; at most "
            f"{tolerance:.0e} is expected. Export the model again, or try another device with --device."
        )


def _check_isolated(bundle: str, device: str | None) -> str:
    """Continue in a child process with limits, and return its device."""
    if device not in (None, "cpu"):
        raise typer.BadParameter("with --isolate a bundle is checked on the CPU; leave out one.", param_hint="--device")
    folder = Path(bundle)
    if not folder.is_dir():
        raise typer.BadParameter("expected the folder of a bundle, not a model's name.", param_hint="BUNDLE")
    continue_in_child(folder)
    return "cpu"


def continue_in_child(folder: Path) -> None:
    """Return in a child process with limits for a bundle of this size; the parent exits as the child does."""
    if sys.platform != "linux":
        raise InputError(
            "--isolate needs Linux, which can limit the memory of a process. Leave it out, or use a container."
        )
    interrupts = {signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, interrupts)  # what a hook of the fork raises is lost
    parent, child = os.getpid(), os.fork()
    if not child:
        _end_with(parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)
        _limit_this_process(sum(512 * file.stat().st_blocks for file in folder.iterdir() if file.is_file()))  # on disk
        return
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts)
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            time.sleep(_POLL)  # a wait without end would miss a signal that comes just before it
        status = os.waitstatus_to_exitcode(ended[1])
    except KeyboardInterrupt:
        os.kill(child, signal.SIGKILL)  # it may be in native code, which ignores the signal
        raise
    if status >= 0:
        raise typer.Exit(status)
    ending = signal.Signals(-status).name
    reason = f"it used more than {CPU_SECONDS:,} s of CPU time" if -status == signal.SIGXCPU else "it crashed"
    raise BundleError(f"The process that checked {folder} was killed by {ending}: {reason}. Do not use this bundle.")


def _end_with(parent: int) -> None:
    """Let this process be killed when its parent ends in any way."""
    import ctypes  # only on Linux

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def _limit_this_process(bundle_bytes: int) -> None:
    import resource  # only on Unix

    memory = MEMORY_BYTES + MEMORY_FACTOR * bundle_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 10))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _describe(bundle: "Bundle") -> list[tuple[str, str]]:
    """Return the manifest as names and values."""
    manifest = bundle.manifest
    measured = sorted(manifest.unrelated_scores.items())
    inner = ", inner ones without the final norm" if manifest.final_norm is False else ""
    return [
        ("path", str(bundle.path)),
        ("model", manifest.model_id),
        ("revision", manifest.revision or "-"),
        ("family", manifest.family),
        ("layer", f"all of {manifest.num_layers}{inner}" if manifest.all_layers else str(manifest.num_layers)),
        (
            "precision",
            f"{manifest.precision}; exported within {manifest.golden_difference:.1e} of {_reference(manifest)}",
        ),
        ("hidden size", str(manifest.hidden_size)),
        ("vocabulary", f"{manifest.vocab_size} ids"),
        ("max length", "-" if manifest.max_length is None else f"{manifest.max_length} tokens"),
        ("graph", f"{', '.join(manifest.inputs)} -> {manifest.output}"),
        (
            "tokenizer",
            f"{manifest.tokenizer_mode}; gives other ids for {manifest.tokenizer_differences} edge-case texts",
        ),
        *_slow_tokenizer(manifest),
        ("scoring graph", _scoring_graph(manifest)),
        ("baselines", " ".join(sorted(manifest.baselines)) or "-"),
        ("measured", ", ".join(f"{code} from {one.num_pairs:,} pairs" for code, one in measured) or "-"),
        ("exported with", ", ".join(f"{package} {version}" for package, version in manifest.exported_with.items())),
        *((name, f"sha256 {digest}, as exported") for name, digest in manifest.files.items()),
        ("bundle", f"sha256 {manifest.digest}, format version {manifest.format_version}"),
    ]


def _reference(manifest: "Manifest") -> str:
    """Return whose scores the export was compared with."""
    return "PyTorch's scores" if manifest.is_compared else "the published graph's scores; not compared with PyTorch"


def _slow_tokenizer(manifest: "Manifest") -> Iterator[tuple[str, str]]:
    """Yield how the ids differ from the slow tokenizer's, if both were tried."""
    from msgspec import UNSET

    if (slow := manifest.slow_differences) is not UNSET:
        yield "slow tokenizer", f"gives other ids for {slow.num_different} of {slow.num_texts} texts"


def _scoring_graph(manifest: "Manifest") -> str:
    from bertscore_onnx.bundle.manifest import SCORING_INPUTS, SCORING_OUTPUTS, WEIGHTS_INPUT

    if not manifest.has_scoring_graph:
        return "-"
    inputs = ", ".join((*SCORING_INPUTS, WEIGHTS_INPUT))
    return f"{inputs} -> {', '.join(SCORING_OUTPUTS)}; exported within {manifest.scoring_difference:.1e} of its scores"
