"""`bertscore-onnx tune-layers`: finds the layer of a model that correlates best with human judgements."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.inputs import check_tables, input_file
from bertscore_onnx.cli.options import FilesFormat, check_contexts, chosen_model, shared_options
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import columns_of, columns_option, dialect_of
from bertscore_onnx.cli.terminal import echo, print_table, print_text
from bertscore_onnx.tables.aligned import terminal_width
from bertscore_onnx.tables.columns import CANDIDATE_COLUMNS, roles_of_command
from bertscore_onnx_evaluation.cli.options import (
    HUMAN_COLUMNS,
    Figure,
    Matchings,
    TextJsonOrTsv,
    column_of,
    filled_column,
    references_of_table,
)

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx_evaluation.layers import LayerCorrelation, LayerTuning


_ROLES = roles_of_command("tune-layers")
SEGMENT_COLUMNS = ("document", "segment", "segment_id")
_CURVE = 40
"""Width of the curve's axis."""
_OPTIONAL = (8, 6, 1, 2)
"""The columns of the report that a narrow terminal does not show: the curve, then "at most", P and R."""


@shared_options("model_type", "device", "nthreads", "batch_size", needs_model=False)
def tune_layers(
    judgements: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Human judgements: TSV, CSV, JSON lines or Parquet, a row for each text; - is standard input.",
        ),
    ],
    *,
    model_type: str | None,
    settings: "ScorerSettings",
    language_pair: Annotated[
        list[str] | None,
        typer.Option(
            "--language-pair",
            metavar="LP...",
            help="Language pairs, such as cs-en.  [default: those into the most common target language]",
        ),
    ] = None,
    columns: Annotated[list[str] | None, columns_option(*_ROLES)] = None,
    input_format: FilesFormat = None,
    matching: Matchings = None,
    resamples: Annotated[
        int,
        typer.Option(
            "--resamples", metavar="N", min=1, help="Number of bootstrap resamples for the intervals and the test."
        ),
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the resamples.")] = 12345,
    output_format: TextJsonOrTsv = "text",
    figure: Figure = None,
    quiet: bool,
) -> None:
    """Find the layer that agrees best with human judgements.

    Scores the judged texts at every layer, without idf, and correlates P, R and F with the judgements: Pearson's r over
    all rows of a language pair, averaged over the pairs, as the authors of bert-score chose its layers on judgements of
    one output a segment. With several systems r mixes the difficulty of segments with the quality of outputs: compare
    bundles of single layers with `meta`. The bundle is one of `export --all-layers`.

    The 95 % intervals come from resampling documents or segments within each language pair. p tests on the same
    resamples whether another layer is better; "at most" is how much better, at 95 %, for a layer named beforehand. The
    best layer's r is optimistic, since the layer was chosen for it: judge it on other data than those it was tuned on.

    Examples:
        # Find the best layer, with a bundle made by `export --all-layers`
        bertscore-onnx tune-layers wmt16.tsv.gz -m BUNDLE
        # Choose a language pair
        bertscore-onnx tune-layers a.tsv -m BUNDLE --language-pair cs-en
    """
    named = columns_of(columns, *_ROLES)
    settings["model_type"] = chosen_model(model_type)
    from bertscore_onnx.errors import check_installed
    from bertscore_onnx.matching.variants import checked_matching
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.tables.whole_table import read_table
    from bertscore_onnx_evaluation.layers import pairs_into_one_language
    from bertscore_onnx_evaluation.layers import tune_layers as tune
    from bertscore_onnx_evaluation.report.figures import check_figure, save_figure

    matchings = [*dict.fromkeys(map(checked_matching, matching or ["bertscore"]))]
    scorers: list[ScorerSettings] = [{**settings, "matching": each, "all_layers": True} for each in matchings]
    for each in scorers:
        check_contexts(each, "`tune-layers` reads no contexts")
    first, *further = scorers
    check_installed(["scipy"], "evaluation", "This command")
    check_figure(figure)
    check_destination(figure, [judgements], "--figure")
    dialect = dialect_of(input_format)
    check_tables([input_file(judgements, (), dialect)], dialect)
    table = read_table(judgements, dialect)
    human = table.numbers(column_of(table, named, "human", HUMAN_COLUMNS))
    candidates = table.texts(column_of(table, named, "candidate", CANDIDATE_COLUMNS))
    references = references_of_table(table, named)
    pairs = ["all"] * len(table)
    if named("lang_pair") or "lang_pair" in table.names or language_pair:
        pairs = table.keys(column_of(table, named, "lang_pair"))
    for name in language_pair or ():
        if name not in pairs:
            available = ", ".join(dict.fromkeys(pairs))
            raise typer.BadParameter(f"no row has {name!r}; the table has {available}.", param_hint="--language-pair")
    chosen = language_pair or pairs_into_one_language(pairs)
    left_out = [name for name in dict.fromkeys(pairs) if name not in chosen]
    if left_out and not language_pair and not quiet:
        echo(
            f"Left out {', '.join(left_out)}: most pairs have another target language. --language-pair selects others."
        )
    rows = [row for row, name in enumerate(pairs) if name in chosen]
    units = filled_column(table, named, "segment", SEGMENT_COLUMNS)
    with BERTScorer(**first) as scorer:
        tuning = tune(
            scorer,
            [candidates[row] for row in rows],
            [references[row] for row in rows],
            human[rows],
            [pairs[row] for row in rows],
            units=[units[row] for row in rows] if units else None,
            others=_opened(further),
            num_resamples=resamples,
            seed=seed,
            verbose=False if quiet else None,
        )
    if not quiet:
        for warning in tuning.warnings:
            echo(f"Warning: {warning}")
    if output_format == "text":
        _print_report(tuning)
    else:
        print(tuning.to_json() if output_format == "json" else tuning.table("tsv"))
    save_figure(tuning, figure)


def _opened(scorers: "list[ScorerSettings]") -> "Iterator[BERTScorer]":
    """Yield scorers with these settings, each open until the next one is taken."""
    from bertscore_onnx.scorer import BERTScorer

    for settings in scorers:
        with BERTScorer(**settings) as scorer:
            yield scorer


def _print_report(tuning: "LayerTuning") -> None:
    """Print a table with the curve of F, then the conclusion."""
    from bertscore_onnx.tables.table import number  # costs start-up time

    short = number(3)
    names = [name for name in tuning.language_pairs if name not in tuning.left_out]
    judged = sum(tuning.language_pairs[name] for name in names)
    over = "" if len(names) == 1 else f", mean over {len(names)} language pairs"
    print(tuning.signature)
    print_text(f"Pearson's r with {judged:,} judgements of {', '.join(names)}{over}\n")
    low = min((layer.f1.low for layer in tuning.layers if layer.f1.low is not None), default=-1.0)
    high = max((layer.f1.high for layer in tuning.layers if layer.f1.high is not None), default=1.0)
    start = f"F from {low:.3f}"
    axis = start + f"to {high:.3f}".rjust(_CURVE - len(start))
    rows = [["layer", "P", "R", "F", "95 % of F", "lower by", "at most", "p", axis]]
    for layer in tuning.layers:
        f1 = layer.f1
        interval = "-" if f1.low is None else f"{short(f1.low)} to {short(f1.high)}"
        p = "best" if layer.layer == tuning.best_layer else short(layer.p)
        values = (layer.precision.pearson, layer.recall.pearson, f1.pearson, layer.loss, layer.loss_high)
        *scores, loss, bound = map(_digits, values)
        rows.append([str(layer.layer), *scores, interval, loss, bound, p, _curve(f1, low, high)])
    print_table(rows, width=terminal_width(), whole=range(9), optional=_OPTIONAL)
    print_text(f"\nLayer {tuning.best_layer} correlates best with human judgements. {_losses(tuning)}")
    if tuning.optimism is not None:
        print_text(
            f"Its r is {_digits(tuning.best_pearson)}, including the gain from being chosen on these judgements, about "
            f"{_digits(tuning.optimism)}; judge it on others."
        )
    print(tuning.export_command)


def _losses(tuning: "LayerTuning") -> str:
    """Describe the loss of the layers that are not significantly worse."""
    from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT

    if all(layer.p is None for layer in tuning.layers):
        return "There are too few judgements to test the others."
    losses = "; ".join(
        f"layer {layer.layer} has r lower by {_digits(layer.loss)}, at most {_digits(layer.loss_high)}"
        for layer in tuning.layers
        if layer.layer in tuning.not_worse
    )
    if not losses:
        return f"All others are significantly worse (p below {SIGNIFICANT})."
    bound = "At most: at 95 %, for a layer named beforehand."
    return f"Perhaps as good (p of {SIGNIFICANT} or more): {losses}. {bound}"


def _curve(correlation: "LayerCorrelation", low: float, high: float) -> str:
    """Draw the interval as hyphens, and the correlation on it as an `o`."""

    def place(value: float) -> int:
        return round((value - low) / ((high - low) or 1.0) * (_CURVE - 1))

    if correlation.pearson is None or correlation.low is None or correlation.high is None:
        return ""
    first, last = place(correlation.low), place(correlation.high)
    line = list(" " * first + "-" * (last - first + 1))
    line[min(max(place(correlation.pearson), first), last)] = "o"
    return "".join(line)


def _digits(value: float | None) -> str:
    from bertscore_onnx.tables.table import number  # costs start-up time

    return number(4)(value)
