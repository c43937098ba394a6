"""`bertscore-onnx tune-layers`: finds the layer of a model that agrees best with people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.options import BatchSize, Device, NumThreads, Quiet, Verbose, complete_model
from bertscore_onnx.cli.terminal import print_table, silence_warnings, tell
from bertscore_onnx.tables.sources import InputFormat

if TYPE_CHECKING:
    from bertscore_onnx.evaluation.layers import LayerCorrelation, LayerTuning


_CURVE = 40
"""Characters between the ends of the curve's axis."""


def tune_layers(
    model_type: Annotated[
        str,
        typer.Option(
            "-m",
            "--model",
            metavar="BUNDLE",
            help="A bundle of all layers: its path, or the name of its model.",
            autocompletion=complete_model,
        ),
    ],
    judgements: Annotated[
        str,
        typer.Option(
            metavar="TABLE",
            help="What people said: TSV, CSV, JSON lines or Parquet, a row for each text; - is standard input.",
        ),
    ],
    language_pair: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LP...",
            help="Language pairs, such as cs-en.  [default: those into the language that most of them share]",
        ),
    ] = None,
    human_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The column of judgements, higher is better.  [default: human or human_score]"
        ),
    ] = None,
    candidate_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of candidates.  [default: candidate]")
    ] = None,
    reference_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column of references; in JSON lines and Parquet a value may be a list.  "
            "[default: reference or references]",
        ),
    ] = None,
    language_pair_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The column of language pairs.  [default: lang_pair; without one all rows are one]"
        ),
    ] = None,
    input_format: Annotated[
        InputFormat | None, typer.Option(help="The format of the table.  [default: by the end of its name]")
    ] = None,
    no_quotes: Annotated[
        bool, typer.Option("--no-quotes", help="TSV and CSV whose double quotes are characters of the texts.")
    ] = False,
    resamples: Annotated[
        int, typer.Option(metavar="N", min=1, help="Bootstrap resamples, for the intervals and the test.")
    ] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed of the resamples.")] = 12345,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_tsv: Annotated[bool, typer.Option("--tsv", help="Print a table of tab-separated values.")] = False,
    device: Device = None,
    nthreads: NumThreads = None,
    batch_size: BatchSize = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Find the layer of a model that agrees best with people.

    Scores the judged texts at every layer, without idf, and correlates P, R and F with the judgements: Pearson's r
    within each language pair, and then the mean, as bert-score chose its layers. `export --all-layers` makes the
    bundle that this takes.

    Intervals of 95 % come from resampling segments within each language pair. p tests the distance of a layer to the
    best one on the same resamples; where it is 0.05 or more the layer is not significantly worse.
    """
    if as_json and as_tsv:
        raise typer.BadParameter("leave out one of them.", param_hint="--json, --tsv")
    if quiet:
        silence_warnings()
    from bertscore_onnx.cli.judgements import read_table
    from bertscore_onnx.evaluation.layers import pairs_into_one_language
    from bertscore_onnx.evaluation.layers import tune_layers as tune
    from bertscore_onnx.scorer import BERTScorer

    table = read_table(judgements, input_format, has_quotes=False if no_quotes else None)
    human = table.numbers(table.find(human_column or ("human", "human_score"), "--human-column"))
    candidates = table.texts(table.find(candidate_column or "candidate", "--candidate-column"))
    references = table.lists(table.find(reference_column or ("reference", "references"), "--reference-column"))
    pairs = ["all"] * len(table)
    if language_pair_column or "lang_pair" in table.names or language_pair:
        pairs = table.keys(table.find(language_pair_column or "lang_pair", "--language-pair-column"))
    chosen = _chosen_pairs(language_pair, pairs) if language_pair else pairs_into_one_language(pairs)
    left_out = [name for name in dict.fromkeys(pairs) if name not in chosen]
    if left_out and not language_pair and not quiet:
        tell(f"Left out {', '.join(left_out)}: most pairs are into another language. --language-pair names others.")
    rows = [row for row, name in enumerate(pairs) if name in chosen]
    with BERTScorer(model_type, batch_size=batch_size, all_layers=True, device=device, nthreads=nthreads) as scorer:
        tuning = tune(
            scorer,
            [candidates[row] for row in rows],
            [references[row] for row in rows],
            human[rows],
            [pairs[row] for row in rows],
            num_resamples=resamples,
            seed=seed,
            verbose=verbose or (False if quiet else None),
        )
    if not quiet:
        _tell_of_judgements(tuning)
    if as_json:
        print(tuning.to_json())
    elif as_tsv:
        print(tuning.table("tsv"))
    else:
        _print_report(tuning)


def _chosen_pairs(named: Sequence[str], there: Sequence[str]) -> list[str]:
    for name in named:
        if name not in there:
            known = ", ".join(dict.fromkeys(there))
            raise typer.BadParameter(f"no row is of {name!r}; there are {known}.", param_hint="--language-pair")
    return list(named)


def _tell_of_judgements(tuning: "LayerTuning") -> None:
    """Tell which language pairs do not count, and whether the judgements seem to be the wrong way round."""
    for name, reason in tuning.left_out.items():
        tell(f"Warning: {name} is left out of all means: {reason}.")
    if all(layer.f1.pearson is None or layer.f1.pearson < 0 for layer in tuning.layers):
        tell("Warning: F correlates negatively with people at every layer. Is a higher judgement a better one?")


def _print_report(tuning: "LayerTuning") -> None:
    """Print a table with the curve of F, then what it says."""
    from bertscore_onnx.evaluation.tables import number

    print(tuning.signature)
    names = [name for name in tuning.language_pairs if name not in tuning.left_out]
    judged = sum(tuning.language_pairs[name] for name in names)
    over = "" if len(names) == 1 else f", mean over {len(names)} language pairs"
    print(f"Pearson's r with {judged:,} judgements of {', '.join(names)}{over}\n")
    low = min((layer.f1.low for layer in tuning.layers if layer.f1.low is not None), default=-1.0)
    high = max((layer.f1.high for layer in tuning.layers if layer.f1.high is not None), default=1.0)
    axis = f"{low:.3f}".ljust(_CURVE - 5) + f"{high:.3f}"
    rows = [["layer", "P", "R", "F", "95 % of F", "p", axis]]
    for layer in tuning.layers:
        f1 = layer.f1
        interval = "-" if f1.low is None or f1.high is None else f"{f1.low:.3f} to {f1.high:.3f}"
        p = "best" if layer.layer == tuning.best_layer else "-" if layer.p is None else f"{layer.p:.3f}"
        scores = [number(4)(one.pearson) for one in (layer.precision, layer.recall, f1)]
        rows.append([str(layer.layer), *scores, interval, p, _curve(f1, low, high)])
    print_table(rows)
    print(f"\nLayer {tuning.best_layer} agrees best with people. {_others(tuning)}")
    print(tuning.export_command)


def _others(tuning: "LayerTuning") -> str:
    """Say which of the other layers are not significantly worse than the best."""
    if all(layer.p is None for layer in tuning.layers):
        return "There are too few judgements to test the others."
    if tuning.not_worse:
        return f"Not significantly worse (p of 0.05 or more): {', '.join(map(str, tuning.not_worse))}."
    return "All others are significantly worse (p below 0.05)."


def _curve(correlation: "LayerCorrelation", low: float, high: float) -> str:
    """Draw the interval as a line of hyphens, and the correlation as an `o` on it."""

    def place(value: float) -> int:
        return round((value - low) / ((high - low) or 1.0) * (_CURVE - 1))

    if correlation.pearson is None or correlation.low is None or correlation.high is None:
        return ""
    first, last = place(correlation.low), place(correlation.high)
    line = list(" " * first + "-" * (last - first + 1))
    line[min(max(place(correlation.pearson), first), last)] = "o"
    return "".join(line)
