"""`bertscore-onnx tune-layers`: finds the best layer of a model.

It is the one that correlates best with human judgements.
"""

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
_FORMATS = "TSV, CSV, JSON lines or Parquet"
_DEFAULT_PAIRS = "those into the most common target language"
_CURVE = 40
"""Width of the curve's axis."""
_OPTIONAL = (8, 6, 1, 2)
"""The columns of the report that a narrow terminal does not show.

They are the curve, then "at most", P and R.
"""


@shared_options("model_type", "device", "nthreads", "batch_size", needs_model=False)
def tune_layers(
    judgements: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help=f"Human judgements: {_FORMATS}, a row for each text; - is standard input.",
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
            help=f"Language pairs, such as cs-en.  [default: {_DEFAULT_PAIRS}]",
        ),
    ] = None,
    columns: Annotated[list[str] | None, columns_option(*_ROLES)] = None,
    input_format: FilesFormat = None,
    matching: Matchings = None,
    resamples: Annotated[
        int,
        typer.Option(
            "--resamples",
            metavar="N",
            min=1,
            help="Number of bootstrap resamples for the intervals and the test.",
        ),
    ] = 1000,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", min=0, help="Seed of the resamples."),
    ] = 12345,
    output_format: TextJsonOrTsv = "text",
    figure: Figure = None,
    quiet: bool,
) -> None:
    """Find the layer that agrees best with human judgements.

    Scores the judged texts at every layer, without idf, and correlates P, R and F with the
    judgements: Pearson's r over all rows of a language pair, averaged over the pairs, as the
    authors of bert-score chose its layers on judgements of one output a segment. With several
    systems r mixes the difficulty of segments with the quality of outputs: compare bundles of
    single layers with `meta`. The bundle is one of `export --all-layers`.

    The 95 % intervals come from resampling documents or segments within each language pair. p tests
    on the same resamples whether another layer is better; "at most" is how much better, at 95 %,
    for a layer named beforehand. The best layer's r is optimistic, since the layer was chosen for
    it: judge it on other data than those it was tuned on.

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

    # All options are checked before the table is read, which may take long.
    matchings = dict.fromkeys(map(checked_matching, matching or ["bertscore"]))
    scorers: list[ScorerSettings] = []
    for variant in matchings:
        scorers.append({**settings, "matching": variant, "all_layers": True})
        check_contexts(scorers[-1], "`tune-layers` reads no contexts")
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
    available = list(dict.fromkeys(pairs))
    for name in language_pair or ():
        if name not in available:
            raise typer.BadParameter(
                f"no row has {name!r}; the table has {', '.join(available)}.",
                param_hint="--language-pair",
            )
    chosen = language_pair or pairs_into_one_language(pairs)
    left_out = [name for name in available if name not in chosen]
    if left_out and not language_pair and not quiet:
        reason = "most pairs have another target language"
        echo(f"Left out {', '.join(left_out)}: {reason}. --language-pair selects others.")

    rows = [row for row, name in enumerate(pairs) if name in chosen]
    candidates = [candidates[row] for row in rows]
    references = [references[row] for row in rows]
    pairs = [pairs[row] for row in rows]
    units = filled_column(table, named, "segment", SEGMENT_COLUMNS)
    units_of_rows = None
    if units:
        units_of_rows = [units[row] for row in rows]
    with BERTScorer(**first) as scorer:
        tuning = tune(
            scorer,
            candidates,
            references,
            human[rows],
            pairs,
            units=units_of_rows,
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
    elif output_format == "json":
        print(tuning.to_json())
    else:
        print(tuning.table("tsv"))
    save_figure(tuning, figure)


def _opened(scorers: "list[ScorerSettings]") -> "Iterator[BERTScorer]":
    """Yield scorers with these settings.

    Each is open until the next one is taken.
    """
    from bertscore_onnx.scorer import BERTScorer

    for settings in scorers:
        with BERTScorer(**settings) as scorer:
            yield scorer


def _print_report(tuning: "LayerTuning") -> None:
    """Print a table with the curve of F, then the conclusion."""
    from bertscore_onnx.tables.table import number, p_value  # costs start-up time
    from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT

    short = number(3)
    write_p = p_value(3, SIGNIFICANT)
    names = [name for name in tuning.language_pairs if name not in tuning.left_out]
    judged = sum(tuning.language_pairs[name] for name in names)
    mean = ""
    if len(names) != 1:
        mean = f", mean over {len(names)} language pairs"
    print(tuning.signature)
    print_text(f"Pearson's r with {judged:,} judgements of {', '.join(names)}{mean}\n")
    lows = [layer.f1.low for layer in tuning.layers if layer.f1.low is not None]
    highs = [layer.f1.high for layer in tuning.layers if layer.f1.high is not None]
    low = min(lows, default=-1.0)
    high = max(highs, default=1.0)
    start = f"F from {low:.3f}"
    axis = start + f"to {high:.3f}".rjust(_CURVE - len(start))
    rows = [["layer", "P", "R", "F", "95 % of F", "lower by", "at most", "p", axis]]
    for layer in tuning.layers:
        f1 = layer.f1
        interval = "-"
        if f1.low is not None:
            interval = f"{short(f1.low)} to {short(f1.high)}"
        p = "best"
        if layer.layer != tuning.best_layer:
            p = write_p(layer.p)
        cells = [
            str(layer.layer),
            _digits(layer.precision.pearson),
            _digits(layer.recall.pearson),
            _digits(f1.pearson),
            interval,
            _digits(layer.loss),
            _digits(layer.loss_high),
            p,
            _curve(f1, low, high),
        ]
        rows.append(cells)
    print_table(rows, width=terminal_width(), whole=range(9), optional=_OPTIONAL)
    conclusion = f"Layer {tuning.best_layer} correlates best with human judgements."
    print_text(f"\n{conclusion} {_losses(tuning)}")
    if tuning.optimism is not None:
        print_text(
            f"Its r is {_digits(tuning.best_pearson)}, including the gain from being chosen on "
            f"these judgements, about {_digits(tuning.optimism)}; judge it on others."
        )
    print(tuning.export_command)


def _losses(tuning: "LayerTuning") -> str:
    """Describe the loss of the layers that are not significantly worse."""
    from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT

    if all(layer.p is None for layer in tuning.layers):
        return "There are too few judgements to test the others."
    losses = []
    for layer in tuning.layers:
        if layer.layer in tuning.not_worse:
            lower = f"layer {layer.layer} has r lower by {_digits(layer.loss)}"
            losses.append(f"{lower}, at most {_digits(layer.loss_high)}")
    if not losses:
        return f"All others are significantly worse (p below {SIGNIFICANT})."
    bound = "At most: at 95 %, for a layer named beforehand."
    return f"Perhaps as good (p of {SIGNIFICANT} or more): {'; '.join(losses)}. {bound}"


def _curve(correlation: "LayerCorrelation", low: float, high: float) -> str:
    """Draw the interval as hyphens, and the correlation on it as an `o`."""

    def place(value: float) -> int:
        return round((value - low) / ((high - low) or 1.0) * (_CURVE - 1))

    if correlation.pearson is None or correlation.low is None or correlation.high is None:
        return ""
    first = place(correlation.low)
    last = place(correlation.high)
    line = list(" " * first + "-" * (last - first + 1))
    mark = min(max(place(correlation.pearson), first), last)
    line[mark] = "o"
    return "".join(line)


def _digits(value: float | None) -> str:
    from bertscore_onnx.tables.table import number  # costs start-up time

    return number(4)(value)
