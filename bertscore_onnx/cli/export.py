"""`bertscore-onnx export`: makes a bundle of a model."""

import shlex
import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.bundle.store import Precision, TokenizerMode
from bertscore_onnx.cli.options import complete_model
from bertscore_onnx.cli.terminal import Stages, tell
from bertscore_onnx.errors import ExportError, MissingExtraError

if TYPE_CHECKING:
    from bertscore_onnx.bundle.manifest import Manifest


_EXTRA = ("torch", "transformers", "optimum", "onnx")
_APART = "uvx --from 'bertscore-onnx[export,cpu]' bertscore-onnx export --model MODEL"


def export(
    model: Annotated[
        str,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="A model's name, or a folder that `save_pretrained` wrote.",
            autocompletion=complete_model,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What to call the model of a local folder; a name of the catalogue brings its layer and baselines.",
        ),
    ] = None,
    num_layers: Annotated[
        int | None,
        typer.Option("-l", "--num-layers", metavar="N", min=0, help="The layer to cut at.  [default: the catalogue's]"),
    ] = None,
    all_layers: Annotated[
        bool, typer.Option("--all-layers", help="Make a bundle that scores every layer, to compare them.")
    ] = False,
    scoring_graph: Annotated[
        bool,
        typer.Option("--scoring-graph", help="Add a graph that gives P, R and F in any language with ONNX Runtime."),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The bundle's folder.  [default: its place in the home folder]")
    ] = None,
    tokenizer_mode: Annotated[
        TokenizerMode, typer.Option(help="Whose ids to reproduce: those of the slow or of the fast tokenizer.")
    ] = "slow",
    precision: Annotated[
        Precision,
        typer.Option(help="fp16 is meant for GPUs, int8 for CPUs; both are faster and move scores a little."),
    ] = "fp32",
    revision: Annotated[str | None, typer.Option(metavar="REV", help="A branch, tag or commit of the Hub.")] = None,
    license_id: Annotated[
        str | None,
        typer.Option(
            "--license",
            metavar="ID",
            help="The model's license, for its card.  [default: what the model's own card says]",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle that is there already.")] = False,
) -> None:
    """Make a bundle of a model.

    `score` then uses the bundle without PyTorch. Only the export needs it: the extra `export`.
    """
    if all_layers and num_layers is not None:
        raise typer.BadParameter("--all-layers and --num-layers exclude each other.", param_hint="--num-layers")
    _check_extra()
    try:
        from bertscore_onnx_export.pipeline import STAGES, export_model
        from bertscore_onnx_export.quiet import quiet_libraries
    except ModuleNotFoundError as error:
        if _package(error.name) not in _EXTRA:
            raise
        raise _missing(_package(error.name)) from error
    quiet_libraries()
    begun = time.perf_counter()
    with Stages(STAGES) as stages:
        folder = export_model(
            model,
            name=name,
            num_layers=num_layers,
            all_layers=all_layers,
            scoring_graph=scoring_graph,
            output=output,
            tokenizer_mode=tokenizer_mode,
            precision=precision,
            revision=revision,
            license_id=license_id,
            force=force,
            report=stages.begin,
        )
    print(folder)
    for line in _summary(folder, time.perf_counter() - begun):
        tell(line)


def _summary(folder: Path, seconds: float) -> list[str]:
    """Return what was made and how well, a line each."""
    from bertscore_onnx.bundle.bundle import read_manifest

    manifest = read_manifest(folder)
    layer = f"all {manifest.num_layers} layers" if manifest.all_layers else f"layer {manifest.num_layers}"
    size = sum(file.stat().st_size for file in folder.iterdir())
    pairs, difference, differences = len(manifest.golden), manifest.golden_difference, manifest.tokenizer_differences
    texts = "1 edge-case text gets" if differences == 1 else f"{differences or 'no'} edge-case texts get"
    return [
        f"Model: {manifest.model_id}, {layer}, {manifest.precision}, {manifest.tokenizer_mode} tokenizer",
        f"Verified: P, R and F of {pairs} pairs differ from PyTorch's by {difference:.1e} at most; {texts} other token "
        "ids",
        *_compared_with_slow(manifest),
        *_scoring_graph(manifest),
        f"Bundle: {size / 1e6:,.1f} MB, made in {seconds:.1f} s",
        f"Score with it: bertscore-onnx score --model {shlex.quote(str(folder))} -c FILE -r FILE",
    ]


def _compared_with_slow(manifest: "Manifest") -> Iterator[str]:
    """Yield how the ids differ from the slow tokenizer's, where both were tried."""
    from msgspec import UNSET

    if (slow := manifest.slow_differences) is UNSET:
        return
    examples = [f"{text[:30]!r}{'...' if len(text) > 30 else ''}" for text in slow.examples]
    more = ["..."] if slow.num_different > len(examples) else []
    among = f": {', '.join([*examples, *more])}" if examples else ""
    yield f"Tokenizer: ids other than the slow tokenizer's for {slow.num_different} of {slow.num_texts} texts{among}"


def _scoring_graph(manifest: "Manifest") -> Iterator[str]:
    """Yield how well the scoring graph scores and who can use it, where there is one."""
    if not manifest.has_scoring_graph:
        return
    if manifest.tokenizer_mode == "fast":
        users = "any language with ONNX Runtime and Hugging Face's tokenizers can use it"
    else:
        users = "for languages other than Python export with --tokenizer-mode fast"
    yield f"Scoring graph: P, R and F differ from the encoder's by {manifest.scoring_difference:.1e} at most; {users}"


def _check_extra() -> None:
    """Look for the packages before any is imported: transformers does without torch until it is used."""
    for package in _EXTRA:
        if find_spec(package) is None:
            raise _missing(package)
    if not (found := version("transformers")).startswith("4."):
        raise ExportError(
            f"Exporting needs transformers 4, and {found} is installed. Export in an environment of its own: "
            f"`{_APART}`; scoring does without it."
        )


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"Exporting needs {package}, which is not installed, or not in full. Install it with "
        f"`pip install 'bertscore-onnx[export,cpu]'`, or export in an environment of its own: `{_APART}`; scoring does "
        "without it.",
        name=package,
    )
