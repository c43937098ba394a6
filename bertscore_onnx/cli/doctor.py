"""`bertscore-onnx doctor`: checks this machine and runs a self-test."""

import platform
import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from bertscore_onnx import __version__
from bertscore_onnx.bundle.store import MODEL_VARIABLE, default_model
from bertscore_onnx.cli.options import TextOrJson
from bertscore_onnx.cli.terminal import print_json, print_table
from bertscore_onnx.errors import BertScoreOnnxError, BundleError, one_line

if TYPE_CHECKING:
    from bertscore_onnx.encoding.providers import Provider

Findings = dict[str, Any]
"""What was found, by the names that JSON has."""

_CPU_SOURCES: dict[str, str] = {
    "affinity": "all that this process may run on",
    "quota": "the CPU quota of the container or control group",
    "OMP_NUM_THREADS": "set by the environment variable OMP_NUM_THREADS",
}
_REASONS = {
    "bf16": ", since the processor has AVX512-BF16 or AMX",
    "fp32": ", since the processor has neither AVX512-BF16 nor AMX; here int8 on the CPU is faster",
}
"""Why OpenVINO computes in a precision."""

_DEFAULT_BUNDLES = f"that of {MODEL_VARIABLE}, and the installed ones"
_TIMED_CALLS = 10


def doctor(
    bundle: Annotated[
        Path | None,
        typer.Argument(
            metavar="BUNDLE",
            help=f"The folder of a bundle.  [default: {_DEFAULT_BUNDLES}]",
        ),
    ] = None,
    output_format: TextOrJson = "text",
) -> None:
    """Check this machine and run a self-test.

    Exits with 1 if ONNX Runtime is missing, or if an execution provider or an installed bundle does
    not work; on CUDA also without cuDNN.

    Examples:
        # Check this machine and the installed bundles
        bertscore-onnx doctor
        # Check one bundle
        bertscore-onnx doctor path/to/bundle
    """
    diagnosis = _examine(bundle)
    failing = _failing(diagnosis)
    if output_format == "json":
        print_json(diagnosis)
    else:
        print(_verdict(failing, has_bundles=bool(diagnosis["bundles"])), end="\n\n")
        print_table(_describe(diagnosis))
    if failing:
        raise typer.Exit(1)


def _failing(diagnosis: Findings) -> list[str]:
    """Return the names of what does not work."""
    errors = {"ONNX Runtime": diagnosis["onnxruntime_error"], "cuDNN": diagnosis["cudnn_error"]}
    errors |= diagnosis["providers"]
    for bundle in diagnosis["bundles"]:
        errors[bundle["path"]] = bundle["error"]
    trial = diagnosis["trial"]
    if trial:
        errors[trial["path"]] = trial["error"]
        for device, error in trial["errors_by_device"].items():
            errors[f"{trial['path']} on {device}"] = error
    return [name for name, error in errors.items() if error]


def _verdict(failing: list[str], *, has_bundles: bool) -> str:
    if failing:
        return f"Not everything works: {', '.join(failing)}"
    if has_bundles:
        return "Everything works"
    return "ONNX Runtime works; no bundle is installed"


def _examine(bundle: Path | None) -> Findings:
    """Return the state of this machine and its bundles.

    The bundles are the given one, or all that are here. Unknown values are None.
    """
    from bertscore_onnx.bundle.bundle import open_bundle
    from bertscore_onnx.bundle.store import store_root, stored_bundles
    from bertscore_onnx.concurrency.cpus import cpu_bound, cpu_features
    from bertscore_onnx.encoding.openvino import has_bfloat16
    from bertscore_onnx.encoding.providers import (
        CUDA,
        OPENVINO,
        cudnn_error,
        installed_wheels,
        is_installed,
    )

    num_cpus, cpu_source = cpu_bound()
    providers = {}
    onnxruntime_error = None
    try:
        for name, error_of_provider in try_providers().items():
            providers[name] = error_of_provider and one_line(error_of_provider)
    except ImportError as error:  # a MissingExtraError, or a shared library that cannot be loaded
        onnxruntime_error = one_line(error)
    cuda_works = providers.get(CUDA.name, "not offered") is None
    openvino_precision = None
    if providers.get(OPENVINO.name, "not offered") is None:
        openvino_precision = "bf16" if has_bfloat16() else "fp32"

    bundles = []
    if bundle is None:
        bundles = list(_default_bundle())
        paths = [default["path"] for default in bundles]
        folders = [folder for folder in stored_bundles() if str(folder) not in paths]
    else:
        folders = [bundle]
    for folder in folders:
        try:
            open_bundle(folder)
            bundles.append({"path": str(folder), "error": None})
        except BundleError as error:
            bundles.append({"path": str(folder), "error": one_line(error)})
    usable = [found["path"] for found in bundles if found["error"] is None]
    try:
        home = str(store_root())
    except BundleError:
        home = None

    versions = {
        "bertscore-onnx": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    packages = ["numpy", "sentencepiece", "tokenizers"]
    if is_installed(OPENVINO):
        packages.append(OPENVINO.engine)
    for package in packages:
        versions[package] = version(package)
    diagnosis: Findings = {
        "versions": versions,
        "onnxruntime_wheels": installed_wheels(),
        "providers": providers,
        "onnxruntime_error": onnxruntime_error,
        "cudnn_error": (cudnn_error() or None) if cuda_works else None,
        "openvino_precision": openvino_precision,
        "cpu_features": cpu_features(),
        "usable_cpus": num_cpus,
        "usable_cpus_source": cpu_source,
        "home": home,
        "bundles": bundles,
        "trial": None,
    }
    if usable and onnxruntime_error is None:
        diagnosis["trial"] = _try(str(usable[0]))
    return diagnosis


def try_providers() -> dict[str, str | None]:
    """Return the error of each installed execution provider.

    Each is tried at a matrix product, the graph of `self_test.onnx`.
    """
    from bertscore_onnx.encoding.providers import PROVIDERS, is_installed

    installed = (provider for provider in PROVIDERS if is_installed(provider))
    return {provider.name: _provider_error(provider) for provider in installed}


def _provider_error(provider: "Provider") -> str | None:
    import numpy as np

    from bertscore_onnx.encoding.openvino import open_in_openvino
    from bertscore_onnx.encoding.places import HostPlace
    from bertscore_onnx.encoding.session import open_in_onnxruntime

    opener = open_in_openvino if provider.engine == "openvino" else open_in_onnxruntime
    self_test = files("bertscore_onnx.cli").joinpath("self_test.onnx")
    graph, failure = opener(self_test.read_bytes(), provider)
    if graph is None:
        return failure
    matrix = np.array([[1, 2], [3, 4]], dtype=np.float32)
    product = np.empty_like(matrix)
    try:
        graph.run({"a": matrix, "b": matrix}, {"product": HostPlace(product)})
    # both engines raise bare RuntimeErrors, and untyped exceptions of their own
    except Exception as error:
        return str(error)
    if np.array_equal(product, matrix @ matrix):
        return None
    return f"a matrix product came out as {product.tolist()}"


def _default_bundle() -> Iterator[dict[str, str | None]]:
    """Yield the path and the error of the bundle that the environment names.

    Nothing if it names none.
    """
    from bertscore_onnx.bundle.resolver import resolve_bundle
    from bertscore_onnx.hub import local_path
    from bertscore_onnx.hub.source import find_pulled, parse_source

    model = default_model()
    if model is None:
        return
    try:
        if model.startswith("hf://") and find_pulled(parse_source(model)) is None:
            raise BundleError("It was not pulled yet. Run `bertscore-onnx pull` with it.")
        found = resolve_bundle(local_path(model), all_layers=None)
        yield {"path": str(found.path), "error": None}
    except BertScoreOnnxError as error:
        yield {"path": model, "error": one_line(error)}


def _try(path: str) -> Findings:
    """Score the golden pairs of a bundle on all devices, and time single pairs."""
    try:
        trial = _score_golden_pairs(path)
        errors_by_device = {device: _error_on(path, device) for device in _named_devices()}
        pair_ms = _time_one_pair(path)
    except BertScoreOnnxError as error:
        trial = {"pairs": 0, "provider": None, "seconds": None, "largest_difference": None}
        trial["error"] = one_line(error)
        errors_by_device = {}
        pair_ms = None
    return {"path": path, **trial, "pair_ms": pair_ms, "errors_by_device": errors_by_device}


def _score_golden_pairs(path: str, device: str | None = None) -> Findings:
    """Return how the golden pairs of a bundle score on a device."""
    from bertscore_onnx.scoring.golden import golden_difference, golden_pipeline, golden_tolerance

    with golden_pipeline(path, device=device) as pipeline:
        started = time.perf_counter()
        difference = golden_difference(pipeline)
        seconds = time.perf_counter() - started
    error = None
    if not difference <= golden_tolerance(pipeline):
        error = f"the golden scores differ by {difference:.1e}"
    return {
        "pairs": len(pipeline.manifest.golden),
        "provider": pipeline.encoder.provider,
        "seconds": seconds,
        "largest_difference": difference,
        "error": error,
    }


def _named_devices() -> list[str]:
    """Return the devices that score only if they are named."""
    from bertscore_onnx.encoding.providers import DEFAULTS, PROVIDERS, is_installed

    further = (provider for provider in PROVIDERS if provider not in DEFAULTS)
    return [provider.device for provider in further if is_installed(provider)]


def _error_on(path: str, device: str) -> str | None:
    """Return what is wrong with the golden scores of a bundle on a device."""
    try:
        error: str | None = _score_golden_pairs(path, device)["error"]
    except BertScoreOnnxError as failure:
        error = one_line(failure)
    return error


def _time_one_pair(path: str) -> dict[str, float]:
    """Return the median milliseconds of a call with one pair for each value of `optimize_for`."""
    from statistics import median  # costs start-up time

    from bertscore_onnx.bundle.bundle import read_manifest
    from bertscore_onnx.encoding.session import OptimizeFor
    from bertscore_onnx.scorer import BERTScorer

    manifest = read_manifest(path)
    golden = manifest.golden[0]
    medians = {}
    for optimize_for in get_args(OptimizeFor):
        with BERTScorer(path, all_layers=manifest.all_layers, optimize_for=optimize_for) as scorer:
            seconds = []
            for _ in range(_TIMED_CALLS + _TIMED_CALLS // 2):
                started = time.perf_counter()
                scorer.score([golden.candidate], [golden.reference])
                seconds.append(time.perf_counter() - started)
        # the first calls, which warm the scorer up, do not count
        medians[optimize_for] = 1000 * median(seconds[-_TIMED_CALLS:])
    return medians


def _describe(diagnosis: Findings) -> list[tuple[str, str]]:
    """Return the diagnosis as names and values."""
    trial = diagnosis["trial"] or {}
    wheels = [f"{name} {wheel}" for name, wheel in diagnosis["onnxruntime_wheels"].items()]
    runtime = diagnosis["onnxruntime_error"] or " and ".join(wheels) or "not installed by pip"
    features = "unknown"
    if diagnosis["cpu_features"] is not None:
        features = " ".join(diagnosis["cpu_features"]) or "none of note"
    cpu_source = _CPU_SOURCES[diagnosis["usable_cpus_source"]]
    home = diagnosis["home"] or "none; set BERTSCORE_ONNX_HOME to a folder of bundles"

    rows = list(diagnosis["versions"].items())
    rows.append(("onnxruntime", runtime))
    for name, error in diagnosis["providers"].items():
        rows.append(("provider", f"{name}: {error or 'works'}"))
    if diagnosis["cudnn_error"]:
        rows.append(("cuDNN", diagnosis["cudnn_error"]))
    precision = diagnosis["openvino_precision"]
    if precision:
        rows.append(("OpenVINO", f"computes in {precision}{_REASONS[precision]}"))
    rows.append(("CPU features", features))
    rows.append(("usable CPUs", f"{diagnosis['usable_cpus']}, {cpu_source}"))
    rows.append(("home", home))
    for bundle in diagnosis["bundles"]:
        rows.append(("bundle", f"{bundle['path']}: {bundle['error'] or 'valid'}"))
    rows.append(("inference", _describe_trial(diagnosis)))
    for device, error in trial.get("errors_by_device", {}).items():
        rows.append((f"on {device}", error or "the golden scores are right"))
    pair_ms = trial.get("pair_ms")
    if pair_ms:
        medians = [f"{median:.1f} ms optimized for {aim}" for aim, median in pair_ms.items()]
        advice = "for many pairs at once throughput, the default, is faster"
        rows.append(("one pair", f"{' and '.join(medians)}; {advice}"))
    return rows


def _describe_trial(diagnosis: Findings) -> str:
    trial = diagnosis["trial"]
    if trial is None and diagnosis["bundles"]:
        return "not tried"
    if trial is None:
        return (
            "no bundle is installed; name one, `bertscore-onnx doctor BUNDLE`, or make one, "
            "`bertscore-onnx export --model roberta-large`"
        )
    if trial["provider"] is None:
        return f"{trial['path']}: {trial['error']}"
    outcome = trial["error"] or f"the largest difference is {trial['largest_difference']:.1e}"
    golden = f"{trial['pairs']} golden pairs of {trial['path']} on {trial['provider']}"
    return f"{golden} in {trial['seconds']:.3f} s: {outcome}"
