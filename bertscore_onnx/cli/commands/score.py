"""`bertscore-onnx score`: scores a file of candidates against files of references."""

import sys
from typing import Annotated, Literal

import typer

from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.cli.messages import tell
from bertscore_onnx.cli.text_files import STANDARD_INPUT
from bertscore_onnx.cli.text_pairs import open_pairs


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
    all_layers: Annotated[
        bool, typer.Option("--all-layers", help="Print the means of every layer, of a bundle that holds all.")
    ] = False,
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
    allow_fp32_baseline: Annotated[
        bool,
        typer.Option("--allow-fp32-baseline", help="Rescale scores of another precision with an fp32 baseline too."),
    ] = False,
    seg_level: Annotated[
        bool, typer.Option("-s", "--seg-level", help="Print P, R and F1 of every candidate as well, as they come.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE", help="cpu, cuda, cuda:N or openvino (bfloat16).  [default: cuda where it is offered]"
        ),
    ] = None,
    precision: Annotated[
        Precision | None,
        typer.Option(
            help="Take the bundle exported in this precision.  [default: the bundle's own; fp32 for a model's name]"
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v", "--verbose", help="Show a progress bar at once.  [default: on a terminal, if it takes longer]"
        ),
    ] = False,
    use_fast_tokenizer: Annotated[
        bool, typer.Option("--use-fast-tokenizer", help="Take the bundle exported with the fast tokenizer's ids.")
    ] = False,
    nthreads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="CPU threads.  [default: all this process may use]")
    ] = None,
    long_text: Annotated[
        Literal["truncate", "window"],
        typer.Option(help="What becomes of texts beyond the model's maximum: truncated, or encoded in windows."),
    ] = "truncate",
) -> None:
    """Score candidates against their references.

    Files are UTF-8 with one text a line; a blank line is an empty text, which scores 0. They are read as they are
    needed; only for --idf is a pipe first read to its end, into a temporary file.
    """
    _check_files([cand, *ref])
    _check_model(model, lang)
    _check_layers(all_layers, num_layers, seg_level)
    _check_baseline(baseline_path, allow_fp32_baseline, rescale_with_baseline)
    with open_pairs(cand, ref, to_read_again=idf) as pairs:
        from bertscore_onnx.cli.score_reports import JsonReport, Means, TextReport
        from bertscore_onnx.scorer import BERTScorer

        means = Means()
        with BERTScorer(
            model,
            num_layers,
            batch_size,
            nthreads,
            all_layers,
            idf=idf,
            device=device,
            lang=lang,
            rescale_with_baseline=rescale_with_baseline,
            baseline_path=baseline_path,
            use_fast_tokenizer=use_fast_tokenizer or None,
            precision=precision,
            long_text=long_text,
            allow_fp32_baseline=allow_fp32_baseline,
        ) as scorer:
            report = (JsonReport if as_json else TextReport)(scorer.hash, all_layers=all_layers)
            try:
                for pair in scorer.stream(pairs, verbose=verbose or _bar_unasked(seg_level)):
                    means.add(pair)
                    if seg_level:
                        report.add(pair)
            except KeyboardInterrupt:
                tell(f"Interrupted; {means.pairs} {'pair was' if means.pairs == 1 else 'pairs were'} scored.")
                raise
    report.finish(means)


def _bar_unasked(seg_level: bool) -> bool | None:
    """Show no bar among scores on a terminal; else leave it to the scorer."""
    return False if seg_level and sys.stdout.isatty() else None


def _check_files(names: list[str]) -> None:
    if names.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("standard input, -, can be only one of the files.", param_hint="--cand, --ref")


def _check_model(model: str | None, lang: str | None) -> None:
    if not (model or lang):
        raise typer.BadParameter(
            "name a model, or a language to use its default model, for example --lang en. `bertscore-onnx models` "
            "lists the models.",
            param_hint="--model, --lang",
        )


def _check_layers(all_layers: bool, num_layers: int | None, seg_level: bool) -> None:
    if all_layers and seg_level:
        raise typer.BadParameter(
            "it prints one layer's scores of a candidate; leave out --all-layers, or use BERTScorer.stream in Python.",
            param_hint="--seg-level",
        )
    if all_layers and num_layers is not None:
        raise typer.BadParameter("it has no effect with --all-layers; leave out one.", param_hint="--num-layers")


def _check_baseline(path: str | None, allow_fp32: bool, rescaling: bool) -> None:
    for option, given in (("--baseline-path", path is not None), ("--allow-fp32-baseline", allow_fp32)):
        if given and not rescaling:
            raise typer.BadParameter(
                "it has no effect without --rescale-with-baseline; give that too.", param_hint=option
            )
