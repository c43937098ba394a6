"""`bertscore-onnx score`: scores a file of candidates against files of references."""

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertscore_onnx.cli.text_files import STANDARD_INPUT, read_parallel

if TYPE_CHECKING:
    from bertscore_onnx.scores import Scores


def score(
    cand: Annotated[
        str, typer.Option("-c", "--cand", metavar="FILE", help="Candidates, one a line; - is standard input.")
    ],
    ref: Annotated[
        list[str],
        typer.Option(
            "-r", "--ref", metavar="FILE", help="References, one a line; again for more, of which the best counts."
        ),
    ],
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="MODEL", help="A model's name, or the path of a bundle.")
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Language, such as en: for its default model, and for its baseline."),
    ] = None,
    num_layers: Annotated[
        int | None, typer.Option("-l", "--num-layers", metavar="N", min=0, help="The layer to take tokens from.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option("-b", "--batch-size", metavar="N", min=1, help="The most texts in one run of the model."),
    ] = None,
    idf: Annotated[
        bool, typer.Option("--idf", help="Weigh tokens by their inverse document frequency in the references.")
    ] = False,
    rescale_with_baseline: Annotated[
        bool, typer.Option("--rescale-with-baseline", help="Rescale so that unrelated sentences score about 0.")
    ] = False,
    baseline_path: Annotated[
        str | None, typer.Option(metavar="FILE", help="A baseline file of your own, with columns LAYER,P,R,F.")
    ] = None,
    seg_level: Annotated[
        bool, typer.Option("-s", "--seg-level", help="Print P, R and F1 of every candidate as well.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    device: Annotated[
        str | None, typer.Option(metavar="DEVICE", help="cpu, cuda or cuda:N.  [default: cuda where it is offered]")
    ] = None,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show a progress bar.")] = False,
    use_fast_tokenizer: Annotated[
        bool, typer.Option("--use-fast-tokenizer", help="Take the bundle exported with the fast tokenizer's ids.")
    ] = False,
    nthreads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="CPU threads.  [default: all this process may use]")
    ] = None,
    long_text: Annotated[
        Literal["truncate", "window"],
        typer.Option(help="What becomes of texts beyond the model's maximum: cut there, or encoded in windows."),
    ] = "truncate",
) -> None:
    """Score candidates against their references.

    Files are UTF-8 with one text a line; a blank line is an empty text, which scores 0.
    """
    _check_usage([cand, *ref], model or lang, baseline_path, rescale_with_baseline)
    candidates, references = read_parallel(cand, ref)

    from bertscore_onnx.scorer import BERTScorer

    with BERTScorer(
        model,
        num_layers,
        batch_size,
        idf=idf,
        device=device,
        lang=lang,
        rescale_with_baseline=rescale_with_baseline,
        baseline_path=baseline_path,
        use_fast_tokenizer=use_fast_tokenizer,
        nthreads=nthreads,
        long_text=long_text,
    ) as scorer:
        scores, signature = scorer.score(candidates, references, verbose, return_hash=True)
    if as_json:
        _print_json(scores, signature, seg_level)
    else:
        _print_text(scores, signature, seg_level)


def _check_usage(files: list[str], model: str | None, baseline_path: str | None, rescaling: bool) -> None:
    if files.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("standard input, -, can be only one of the files.", param_hint="--cand, --ref")
    if not model:
        raise typer.BadParameter(
            "name a model, or a language to use its default model, for example --lang en. `bertscore-onnx models` "
            "lists the models.",
            param_hint="--model, --lang",
        )
    if baseline_path is not None and not rescaling:
        raise typer.BadParameter(
            "it has no effect without --rescale-with-baseline; give that too.", param_hint="--baseline-path"
        )


def _means(scores: "Scores") -> list[float]:
    return [float(values.mean(dtype="float64")) for values in scores]


def _print_text(scores: "Scores", signature: str, seg_level: bool) -> None:
    if seg_level:
        for precision, recall, f1 in zip(*scores, strict=True):
            print(f"{precision:.6f}\t{recall:.6f}\t{f1:.6f}")
    precision, recall, f1 = _means(scores)
    print(f"{signature} P: {precision:.6f} R: {recall:.6f} F1: {f1:.6f}")


def _print_json(scores: "Scores", signature: str, seg_level: bool) -> None:
    fields = ("precision", "recall", "f1")
    result: dict[str, object] = {
        "signature": signature,
        **dict(zip(fields, _means(scores), strict=True)),
        "pairs": len(scores.P),
    }
    if seg_level:
        columns = [values.tolist() for values in (*scores, scores.best_reference)]
        result["segments"] = [
            dict(zip((*fields, "best_reference"), row, strict=True)) for row in zip(*columns, strict=True)
        ]
    print(json.dumps(result, allow_nan=False))
