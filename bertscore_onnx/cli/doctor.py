"""`bertscore-onnx doctor`: tells what this machine offers, and tries it."""

import json
import platform
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Annotated, get_args

import typer

from bertscore_onnx import __version__
from bertscore_onnx.cli.terminal import print_table
from bertscore_onnx.errors import BertScoreOnnxError, BundleError, one_line

_CPU_SOURCES: dict[str, str] = {
    "affinity": "all that this process may run on",
    "quota": "the CPU quota of the container or control group",
    "OMP_NUM_THREADS": "as the environment variable OMP_NUM_THREADS says",
}
"""What says how many CPUs are usable, in words."""

_TIMED_CALLS = 10


@dataclass(frozen=True, slots=True)
class _BundleState:
    """One bundle of the home folder."""

    path: str
    error: str | None
    """Why it cannot be used; None where it can."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """One real run: the golden pairs of a bundle on the default device."""

    path: str
    pairs: int = 0
    provider: str | None = None
    seconds: float | None = None
    largest_difference: float | None = None
    error: str | None = None
    pair_ms: dict[str, float] | None = None
    """Milliseconds of one pair a call, the median, by what the scorer is optimized for."""


@dataclass(frozen=True, slots=True)
class _Report:
    """All that the command finds out."""

    versions: dict[str, str]
    onnxruntime_wheels: dict[str, str]
    providers: dict[str, str | None]
    """The execution providers that ONNX Runtime offers, and why one does not work; None where it does."""

    onnxruntime_error: str | None
    cpu_features: list[str] | None
    """None where they cannot be found out."""

    usable_cpus: int
    usable_cpus_source: str
    """What says so: affinity, quota or OMP_NUM_THREADS."""

    home: str | None
    """None where the user has none."""

    bundles: list[_BundleState]
    trial: _Trial | None
    """None where there is nothing to run, or nothing to run it with."""

    @property
    def healthy(self) -> bool:
        errors = [self.onnxruntime_error, self.trial and self.trial.error]
        return not any([*errors, *self.providers.values(), *(bundle.error for bundle in self.bundles)])


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Tell what this machine offers, and try it.

    Exits with 1 where ONNX Runtime is missing, or what it offers or a bundle here does not work.
    """
    report = _examine()
    if as_json:
        print(json.dumps(asdict(report), allow_nan=False))
    else:
        print_table(_describe(report))
    if not report.healthy:
        raise typer.Exit(1)


def _examine() -> _Report:
    from bertscore_onnx.bundle.store import stored_bundles
    from bertscore_onnx.cli.probe import probe_providers
    from bertscore_onnx.concurrency.cpus import cpu_bound, cpu_features
    from bertscore_onnx.encoding.providers import installed_wheels

    cpus = cpu_bound()
    providers, onnxruntime_error = {}, None
    try:
        providers = {name: error and one_line(error) for name, error in probe_providers().items()}
    except ImportError as error:  # a MissingExtraError, or a shared library that cannot be loaded
        onnxruntime_error = one_line(error)
    bundles = [_examine_bundle(folder) for folder in stored_bundles()]
    usable = [bundle.path for bundle in bundles if bundle.error is None]
    return _Report(
        versions={
            "bertscore-onnx": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{package: version(package) for package in ("numpy", "sentencepiece", "tokenizers")},
        },
        onnxruntime_wheels=installed_wheels(),
        providers=providers,
        onnxruntime_error=onnxruntime_error,
        cpu_features=cpu_features(),
        usable_cpus=cpus.number,
        usable_cpus_source=cpus.source,
        home=_home(),
        bundles=bundles,
        trial=_try(usable[0]) if usable and onnxruntime_error is None else None,
    )


def _home() -> str | None:
    from bertscore_onnx.bundle.store import store_root

    try:
        return str(store_root())
    except BundleError:
        return None


def _examine_bundle(folder: Path) -> _BundleState:
    from bertscore_onnx.bundle.bundle import open_bundle

    try:
        open_bundle(folder)
    except BundleError as error:
        return _BundleState(str(folder), one_line(error))
    return _BundleState(str(folder), None)


def _try(path: str) -> _Trial:
    from bertscore_onnx.scoring.golden import golden_difference, golden_pipeline, golden_tolerance

    try:
        with golden_pipeline(path) as pipeline:
            begun = time.perf_counter()
            difference = golden_difference(pipeline)
            seconds = time.perf_counter() - begun
        pair_ms = _time_one_pair(path, all_layers=pipeline.manifest.all_layers)
    except BertScoreOnnxError as error:
        return _Trial(path, error=one_line(error))
    holds = difference <= golden_tolerance(pipeline)
    wrong = None if holds else f"the golden scores differ by {difference:.1e}"
    pairs, provider = len(pipeline.manifest.golden), pipeline.encoder.provider
    return _Trial(path, pairs, provider, seconds, difference, wrong, pair_ms)


def _time_one_pair(path: str, *, all_layers: bool) -> dict[str, float]:
    """Score one pair a call, after a few calls that do not count."""
    from bertscore_onnx.encoding.session import OptimizeFor
    from bertscore_onnx.scorer import BERTScorer

    medians = {}
    for optimize_for in get_args(OptimizeFor):
        with BERTScorer(path, all_layers=all_layers, optimize_for=optimize_for) as scorer:
            golden = scorer.manifest.golden[0]
            seconds = []
            for _ in range(_TIMED_CALLS + _TIMED_CALLS // 2):
                begun = time.perf_counter()
                scorer.score([golden.candidate], [golden.reference])
                seconds.append(time.perf_counter() - begun)
        medians[optimize_for] = 1000 * median(seconds[-_TIMED_CALLS:])
    return medians


def _describe(report: _Report) -> list[tuple[str, str]]:
    """Return the report as names and values."""
    features = "unknown" if report.cpu_features is None else " ".join(report.cpu_features) or "none of note"
    wheels = [f"{name} {wheel}" for name, wheel in report.onnxruntime_wheels.items()]
    return [
        *report.versions.items(),
        ("onnxruntime", report.onnxruntime_error or " and ".join(wheels) or "not installed by pip"),
        *(("provider", f"{name}: {error or 'works'}") for name, error in report.providers.items()),
        ("CPU features", features),
        ("usable CPUs", f"{report.usable_cpus}, {_CPU_SOURCES[report.usable_cpus_source]}"),
        ("home", report.home or "none; set BERTSCORE_ONNX_HOME to a folder of bundles"),
        *(("bundle", f"{bundle.path}: {bundle.error or 'valid'}") for bundle in report.bundles),
        ("inference", _describe_trial(report)),
        *(("one pair", _describe_one_pair(trial.pair_ms)) for trial in [report.trial] if trial and trial.pair_ms),
    ]


def _describe_one_pair(milliseconds: dict[str, float]) -> str:
    times = " and ".join(f"{time:.1f} ms optimized for {aim}" for aim, time in milliseconds.items())
    return f"{times}; many pairs at a time are faster for throughput, which is the default"


def _describe_trial(report: _Report) -> str:
    trial = report.trial
    if trial is None and report.bundles:
        return "not tried"
    if trial is None:
        return "no bundle is exported yet; make one with `bertscore-onnx export --model roberta-large`"
    if trial.provider is None:
        return f"{trial.path}: {trial.error}"
    outcome = trial.error or f"the largest difference is {trial.largest_difference:.1e}"
    return f"{trial.pairs} golden pairs of {trial.path} on {trial.provider} in {trial.seconds:.3f} s: {outcome}"
