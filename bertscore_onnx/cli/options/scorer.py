"""The options that say which scorer to make, which the commands that score have in common."""

from typing import Annotated, Literal

import typer

from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.cli.options.completion import complete_model

Model = Annotated[
    str | None,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="A model's name, or the path of a bundle.",
        autocompletion=complete_model,
    ),
]

Lang = Annotated[
    str | None,
    typer.Option(metavar="CODE", help="Language, such as en: for its default model, and for its baseline."),
]

NumLayers = Annotated[
    int | None, typer.Option("-l", "--num-layers", metavar="N", min=0, help="The layer to take tokens from.")
]

Idf = Annotated[bool, typer.Option("--idf", help="Weigh tokens by their inverse document frequency in the references.")]

IdfCounts = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Take idf weights from document counts, as `count-documents` writes them."),
]

RescaleWithBaseline = Annotated[
    bool, typer.Option("--rescale-with-baseline", help="Rescale so that unrelated sentences score about 0.")
]

BaselinePath = Annotated[
    str | None, typer.Option(metavar="FILE", help="A baseline file of your own, with columns LAYER,P,R,F.")
]

AllowFp32Baseline = Annotated[
    bool, typer.Option("--allow-fp32-baseline", help="Rescale scores of another precision with an fp32 baseline too.")
]

Device = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        help="cpu, cuda, cuda:N, openvino (bfloat16) or coreml.  [default: cuda where it is offered]",
    ),
]

NumThreads = Annotated[
    int | None, typer.Option("--nthreads", metavar="N", min=1, help="CPU threads.  [default: all this process may use]")
]

BatchSize = Annotated[
    int | None, typer.Option("-b", "--batch-size", metavar="N", min=1, help="The most texts in one run of the model.")
]

PrecisionOf = Annotated[
    Precision | None,
    typer.Option(
        "--precision",
        help="Take the bundle exported in this precision.  [default: the bundle's own; fp32 for a model's name]",
    ),
]

UseFastTokenizer = Annotated[
    bool, typer.Option("--use-fast-tokenizer", help="Take the bundle exported with the fast tokenizer's ids.")
]

LongText = Annotated[
    Literal["truncate", "window"],
    typer.Option(help="What becomes of texts beyond the model's maximum: truncated, or encoded in windows."),
]

MaxLength = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="The most tokens of a text, or of a window.  [default: the model's maximum]"),
]

Verbose = Annotated[
    bool,
    typer.Option("-v", "--verbose", help="Show a progress bar at once.  [default: on a terminal, if it takes longer]"),
]

Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing on standard error but errors.")]


def check_model(model_type: str | None, lang: str | None) -> None:
    """Raise typer.BadParameter where neither names a model."""
    if not (model_type or lang):
        raise typer.BadParameter(
            "name a model, or a language to use its default model, for example --lang en. `bertscore-onnx models` "
            "lists the models.",
            param_hint="--model, --lang",
        )


def check_effects(*options: tuple[str, bool, str]) -> None:
    """Raise for the first option that is given and has no effect.

    Args:
        options: the name of each, whether it is given and idle, and what makes it so.
    """
    for option, is_idle, reason in options:
        if is_idle:
            raise typer.BadParameter(f"it has no effect {reason}.", param_hint=option)
