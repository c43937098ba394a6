"""`bertscore-onnx export`: exports a model into a bundle."""

import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertscore_onnx.bundle.store import Exporter, Precision, TokenizerMode
from bertscore_onnx.cli.options import check_effects, complete_model, given_options
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.errors import ExportError, MissingExtraError, install_command

if TYPE_CHECKING:
    from bertscore_onnx.bundle.manifest import Manifest


_EXTRA = ("torch", "transformers", "onnx")
_APART = "export in an environment of its own (docs/export.md); scoring does not need it."


def export(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="A model's name, or a folder written by `save_pretrained`.",
            autocompletion=complete_model,
        ),
    ] = None,
    from_onnx: Annotated[
        Path | None,
        typer.Option(
            "--from-onnx",
            metavar="FOLDER",
            help="Instead of a model: the folder of one whose graph is published, with config.json "
            "and tokenizer.json. Needs no PyTorch; the bundle has the fast tokenizer.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help=(
                "Name for the model of a local folder; a catalogue name selects its layer and "
                "baselines."
            ),
        ),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(
            "--adapter",
            metavar="NAME",
            help="Merge this LoRA adapter, a folder inside the model's, into the weights.",
        ),
    ] = None,
    num_layers: Annotated[
        int | None,
        typer.Option(
            "-l",
            "--num-layers",
            metavar="N",
            min=0,
            help="Cut the model at this layer.  [default: the catalogue's]",
        ),
    ] = None,
    all_layers: Annotated[
        bool, typer.Option("--all-layers", help="Export all layers, to compare their scores.")
    ] = False,
    inner_norm: Annotated[
        bool,
        typer.Option(
            "--inner-norm/--no-inner-norm",
            help="With --all-layers: apply the norm after the last layer to inner layers too, or "
            "score them as bert-score with `all_layers` does.",
        ),
    ] = True,
    scoring_graph: Annotated[
        bool,
        typer.Option(
            "--scoring-graph",
            help=(
                "Add a graph that computes P, R and F with ONNX Runtime in any programming "
                "language."
            ),
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="The bundle's folder.  [default: in the home folder]",
        ),
    ] = None,
    tokenizer_mode: Annotated[
        TokenizerMode | None,
        typer.Option(
            "--tokenizer-mode", help="The tokenizer whose ids are reproduced.  [default: slow]"
        ),
    ] = None,
    precision: Annotated[
        Precision,
        typer.Option(
            "--precision",
            help="fp16 is for GPUs, int8 for CPUs; both are faster and change scores slightly.",
        ),
    ] = "fp32",
    exporter: Annotated[
        Exporter | None,
        typer.Option(
            "--exporter", help="Who writes the graph; the scores are the same.  [default: torch]"
        ),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(
            "--revision", metavar="REV", help="A branch, tag or commit on the Hugging Face hub."
        ),
    ] = None,
    license_id: Annotated[
        str | None,
        typer.Option(
            "--license",
            metavar="ID",
            help=(
                "The model's license, for the bundle's card.  [default: from the model's own card]"
            ),
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing bundle.")] = False,
) -> None:
    """Export a model into a bundle.

    `score` uses the bundle without PyTorch, which only the export needs. Needs the extra `export`.

    Examples:
        # Export a model of the catalogue, with bert-score's layer and baselines
        bertscore-onnx export -m roberta-large
        # Export in int8 for a CPU, or in fp16 for a GPU
        bertscore-onnx export -m roberta-large --precision int8
        bertscore-onnx export -m microsoft/deberta-xlarge-mnli --precision fp16
        # Export all layers, for `tune-layers` and `score --all-layers`
        bertscore-onnx export -m roberta-large --all-layers
        # Export a fine-tuned model from a folder
        bertscore-onnx export -m path/to/folder --name roberta-large --output BUNDLE
    """
    given = given_options(context)
    check_effects(
        ("--num-layers", all_layers and num_layers is not None, "with --all-layers; leave out one"),
        (
            "--inner-norm, --no-inner-norm",
            "inner_norm" in given and not all_layers,
            "without --all-layers",
        ),
    )
    shared: dict[str, Any] = {
        "name": name,
        "num_layers": num_layers,
        "output": output,
        "license_id": license_id,
        "force": force,
    }
    if from_onnx is not None:
        options = {
            "--model": model is not None,
            "--adapter": adapter is not None,
            "--all-layers": all_layers,
            "--scoring-graph": scoring_graph,
            "--tokenizer-mode": tokenizer_mode is not None,
            "--precision": "precision" in given,
            "--exporter": exporter is not None,
            "--revision": revision is not None,
        }
        for option, is_given in options.items():
            if is_given:
                raise typer.BadParameter("it cannot be used with --from-onnx.", param_hint=option)
        if find_spec("onnx") is None:
            raise _missing("onnx")
        from bertscore_onnx_export.published import pipeline

        _run(pipeline.STAGES, partial(pipeline.export_graph, from_onnx, **shared))
        return
    if model is None:
        raise typer.BadParameter(
            "name a model, or give a folder with a graph as --from-onnx.", param_hint="--model"
        )
    _check_extra()
    from bertscore_onnx_export.model.source import Source, check_early

    check_early(
        Source(model, revision, name, adapter),
        num_layers,
        all_layers=all_layers,
        has_output=output is not None,
    )
    try:
        from bertscore_onnx_export.pipeline import STAGES, export_model
        from bertscore_onnx_export.quiet import quiet_libraries
    except ModuleNotFoundError as error:
        if _package(error.name) not in _EXTRA:
            raise
        raise _missing(_package(error.name)) from error
    quiet_libraries()
    export_of_model = partial(
        export_model,
        model,
        adapter=adapter,
        all_layers=all_layers,
        inner_norm=inner_norm,
        scoring_graph=scoring_graph,
        tokenizer_mode=tokenizer_mode or "slow",
        precision=precision,
        exporter=exporter or "torch",
        revision=revision,
        **shared,
    )
    _run(STAGES, export_of_model)


def _run(num_stages: int, export: Callable[..., Path]) -> None:
    """Export, show the stages on standard error, and print the folder."""
    started = time.perf_counter()
    with stages(num_stages) as begin:
        folder = export(report=begin)
    print(folder)
    for line in _summary(folder, time.perf_counter() - started):
        echo(line)


@contextmanager
def stages(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that begins a stage.

    It writes `[3/5] Writing the graph ...` on standard error; the stage's time ends the line.
    Warnings are shown after the last stage, on lines of their own.
    """
    count, started = 0, 0.0

    def end() -> None:
        if count:
            print(f"  {time.perf_counter() - started:.1f} s", file=sys.stderr)

    def begin(name: str) -> None:
        nonlocal count, started
        end()
        count, started = count + 1, time.perf_counter()
        print(f"[{count}/{total}] {name} ...", end="", file=sys.stderr, flush=True)

    try:
        with warnings.catch_warnings(record=True) as caught:
            yield begin
    finally:
        end()
        for warning in caught:
            warnings.warn(warning.message, stacklevel=2)


def _summary(folder: Path, seconds: float) -> list[str]:
    """Return lines that describe the bundle and its verification."""
    from msgspec import UNSET

    from bertscore_onnx.bundle.bundle import read_manifest
    from bertscore_onnx_export.model.source import is_vague

    manifest = read_manifest(folder)
    advice = []
    if is_vague(manifest.model_id):
        advice.append(
            f"Name: {manifest.model_id!r}, after the folder, is in every signature. --name NAME "
            "gives a telling one."
        )
    layer = f"layer {manifest.num_layers}"
    if manifest.all_layers:
        layer = f"all {manifest.num_layers} layers"
    size = sum(file.stat().st_size for file in folder.iterdir())
    pairs, difference, differences = (
        len(manifest.golden),
        manifest.golden_difference,
        manifest.tokenizer_differences,
    )
    texts = (
        f"gives other ids for {differences} edge-case text{'' if differences == 1 else 's'}"
        if differences
        else "matches on all edge-case texts"
    )
    if manifest.comparison is UNSET:
        reference, rest = "PyTorch's", f"; the tokenizer {texts}"
    elif manifest.is_compared:
        reference, rest = "PyTorch's", ""
    else:
        reference, rest = "the uncut graph's", "; not compared with PyTorch"
    return [
        f"Model: {manifest.model_id}, {layer}, {manifest.precision}, {manifest.tokenizer_mode} "
        "tokenizer",
        f"Verified: P, R and F of {pairs} pairs differ from {reference} by {difference:.1e} at "
        f"most{rest}",
        *_compared_with_slow(manifest),
        *advice,
        *_scoring_graph(manifest),
        f"Bundle: {size / 1e6:,.1f} MB, exported in {seconds:.1f} s",
        f"Score with it: bertscore-onnx score --model {shlex.quote(str(folder))} -c FILE -r FILE",
    ]


def _compared_with_slow(manifest: "Manifest") -> Iterator[str]:
    """Yield how the ids differ from the slow tokenizer's, if both were tried."""
    from msgspec import UNSET

    slow = manifest.slow_differences
    if slow is UNSET:
        return
    examples = []
    for text in slow.examples:
        examples.append(f"{text[:30]!r}{'...' if len(text) > 30 else ''}")
    among = ""
    if examples:
        if slow.num_different > len(examples):
            examples.append("...")
        among = f": {', '.join(examples)}"
    yield (
        f"Tokenizer: ids other than the slow tokenizer's for {slow.num_different} of "
        f"{slow.num_texts} texts{among}"
    )


def _scoring_graph(manifest: "Manifest") -> Iterator[str]:
    """Yield how accurate the scoring graph is and how to use it.

    Nothing if there is none.
    """
    if not manifest.has_scoring_graph:
        return
    if manifest.tokenizer_mode == "fast":
        users = (
            "any programming language with ONNX Runtime and Hugging Face's tokenizers can use it"
        )
    else:
        users = "for programming languages other than Python, export with --tokenizer-mode fast"
    yield (
        "Scoring graph: P, R and F differ from the encoder's by "
        f"{manifest.scoring_difference:.1e} at most; {users}"
    )


def _check_extra() -> None:
    """Check the packages before importing any.

    transformers can be imported without torch.
    """
    for package in _EXTRA:
        if find_spec(package) is None:
            raise _missing(package)
    found = version("transformers")
    if not found.startswith(("4.57.", "5.")):
        raise ExportError(
            f"Exporting needs transformers 4.57 or 5, and {found} is installed. Use "
            f"{install_command('export')}, or {_APART}"
        )


def _package(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"Exporting needs {package}, which is not installed, or not completely. Install the extra "
        f"export: {install_command('export', 'cpu')}, on Linux with PIP_EXTRA_INDEX_URL set to "
        f"PyTorch's index of CPU builds, or pip takes the CUDA build, several GB; or {_APART}",
        name=package,
    )
