"""`bertscore-onnx tune-layers`: finds the layer that agrees with humans."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertscore_onnx.cli.inputs import InputFile, check_tables
from bertscore_onnx.cli.options import FilesFormat, check_contexts, chosen_model, shared_options
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import columns_of, columns_option, dialect_of
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.tables.roles import roles_of_command
from bertscore_onnx_evaluation.cli.options import Figure, Matchings

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.settings import ScorerSettings


_ROLES = roles_of_command("tune-layers")
_FORMATS = "TSV, CSV, JSON lines or Parquet"
_DEFAULT_PAIRS = "those into the most common target language"


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
    output_format: Annotated[
        Literal["text", "json", "tsv", "markdown"],
        typer.Option("--format", metavar="FORMAT", help="text, json, tsv or markdown."),
    ] = "text",
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
    from bertscore_onnx_evaluation.cli.judgements import (
        HUMAN_COLUMNS,
        column_of,
        names_of,
        references_of_table,
    )
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
    check_tables([InputFile(judgements, (), dialect)], dialect)
    table = read_table(judgements, dialect)
    human = table.numbers(column_of(table, named, "human", HUMAN_COLUMNS))
    candidates = table.texts(column_of(table, named, "candidate"))
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
    if named("segment") and named("document"):
        message = "segment and document are named; rows are drawn together by either."
        raise typer.BadParameter(message, param_hint="--columns")
    units = names_of(table, named, "document")
    if units is None or named("segment"):
        units = names_of(table, named, "segment")
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
    if output_format == "json":
        print(tuning.to_json())
    else:
        print(tuning.table(output_format))
    save_figure(tuning, figure)


def _opened(scorers: "list[ScorerSettings]") -> "Iterator[BERTScorer]":
    """Yield scorers with these settings, each open until the next one is taken."""
    from bertscore_onnx.scorer import BERTScorer

    for settings in scorers:
        with BERTScorer(**settings) as scorer:
            yield scorer
