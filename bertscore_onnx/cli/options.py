"""The options that commands share, each declared once, and how every command is called."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.cli.inputs import lines_of
from bertscore_onnx.cli.terminal import UsageError, silence_warnings
from bertscore_onnx.errors import InputError
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.tables.sources import STANDARD_INPUT, Dialect, InputFormat

if TYPE_CHECKING:
    from bertscore_onnx.matching.variants import Matching
    from bertscore_onnx.settings import ScorerSettings


def complete_model(incomplete: str) -> list[str]:
    """Return the models whose names begin like this: installed bundles first, then the catalogue."""
    from bertscore_onnx.bundle import catalogue
    from bertscore_onnx.bundle.resolver import installed_models

    names = dict.fromkeys((*installed_models(), *catalogue.entries()))
    return [name for name in names if name.lower().startswith(incomplete.lower())]


# The settings of `BERTScorer`, as options of every command that makes one.


def option_name(parameter: str) -> str:
    """Return the option of a command's parameter."""
    return "--model" if parameter == "model_type" else f"--{parameter.replace('_', '-')}"


def _option(name: str, kind: Any, text: str, default: object = None, *, short: str = "", **more: Any) -> Parameter:
    """Return an option; its long name is the parameter's, and a flag's default is False."""
    names = [short, option_name(name)] if short else [option_name(name)]
    option = typer.Option(*names, help=text, **more)
    default = False if kind is bool else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


_MODEL: dict[str, Any] = {"metavar": "MODEL", "autocompletion": complete_model}
_NUMBER: dict[str, Any] = {"metavar": "N", "min": 1}


def parse_matching(spec: str) -> "Matching":
    """Return the matching that a spec describes, with the words or sentences of the files that it names."""
    from bertscore_onnx.matching.variants import Matching

    def read_lines(file: str) -> list[str]:
        if file == STANDARD_INPUT:
            raise InputError("standard input is for the texts to score; name a file.")
        return lines_of(file, "words or sentences, one per line")

    try:
        return Matching.parse(spec, read_lines)
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


_MATCHING_HELP = (
    "How tokens are matched: a preset (bertscore, code-bert-score, doc-bert-score, moverscore-1, moverscore-2) or a "
    "method (greedy, assignment, transport), and changes to it after commas, such as code-bert-score,beta=3 or "
    "transport,exclude=punctuation+special. docs/variants.md lists them all."
)

_SETTINGS = (
    _option("model_type", str | None, "A model's name, or the path of a bundle.", short="-m", **_MODEL),
    _option("lang", str | None, "Language, such as en: selects its default model and baseline.", metavar="CODE"),
    _option("num_layers", int | None, "Score at this layer.  [default: the bundle's]", short="-l", metavar="N", min=0),
    _option("all_layers", bool, "Print the means of every layer; needs a bundle of all layers."),
    _option("idf", bool, "Give tokens that occur in fewer references more weight."),
    _option("idf_counts", str | None, "Take idf weights from a file that `count-documents` wrote.", metavar="FILE"),
    _option("rescale_with_baseline", bool, "Rescale so that unrelated sentences score about 0."),
    _option("baseline_path", str | None, "Your own baseline file, with the columns LAYER,P,R,F.", metavar="FILE"),
    _option("allow_fp32_baseline", bool, "Rescale scores of another precision with an fp32 baseline too."),
    _option(
        "device",
        str | None,
        "cpu, cuda, cuda:N, openvino (bfloat16) or coreml.  [default: cuda if available]",
        metavar="DEVICE",
    ),
    _option("nthreads", int | None, "CPU threads.  [default: all that this process may use]", **_NUMBER),
    _option("batch_size", int | None, "Maximum number of texts in one run of the model.", short="-b", **_NUMBER),
    _option(
        "precision",
        Precision | None,
        "Use the bundle exported in this precision.  [default: the bundle's own; fp32 for a model's name]",
    ),
    _option("use_fast_tokenizer", bool, "Use the bundle exported with the fast tokenizer's ids."),
    _option(
        "long_text",
        Literal["truncate", "window"],
        "How to handle texts longer than the model's limit: truncate them, or encode them in windows.",
        "truncate",
    ),
    _option(
        "max_length",
        int | None,
        "Maximum number of tokens in a text, or in a window.  [default: the model's limit]",
        **_NUMBER,
    ),
    _option("matching", str, _MATCHING_HELP, "bertscore", metavar="SPEC", parser=parse_matching),
)
_FLAGS = (
    _option("verbose", bool, "Show a progress bar immediately.  [default: on a terminal, after 2 s]", short="-v"),
    _option("quiet", bool, "Print only errors on standard error.", short="-q"),
)
_SHARED: Mapping[str, Parameter] = {option.name: option for option in (*_SETTINGS, *_FLAGS)}
_AT_THE_END = _SHARED.keys() - {"model_type", "lang"}
"""The shared options that `--help` lists after a command's own."""

SETTINGS = tuple(option.name for option in _SETTINGS)
TOKENIZER_SETTINGS = ("model_type", "lang", "num_layers", "precision", "use_fast_tokenizer", "long_text", "max_length")


def shared_options(
    *names: str, without: Sequence[str] = (), needs_model: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of these settings, or of all, to a command, which receives them as one mapping, `settings`.

    A parameter `verbose` adds --verbose and --quiet, and receives what the library expects: True for a progress bar
    immediately, None for one after a while on a terminal, False for none; `quiet` adds or receives --quiet alone. A
    parameter whose type is a dataclass adds the options that its fields declare. The common checks are made before
    the command runs.
    """
    chosen = tuple(name for name in names or SETTINGS if name not in without)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = tuple(signature(command).parameters.values())

        def run(**values: Any) -> None:
            _check_shared(values, chosen, needs_model=needs_model and "model_type" in chosen)
            if values.get("quiet"):
                silence_warnings()
            values["verbose"] = values.get("verbose") or (False if values.get("quiet") else None)
            values["settings"] = _settings(values, chosen)
            command(**{parameter.name: _value(parameter, values) for parameter in parameters})

        options = {option.name: option for parameter in parameters for option in _options(parameter, chosen)}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        ordered = sorted(options.values(), key=lambda option: option.name in _AT_THE_END)
        run.__signature__ = Signature(ordered)  # type: ignore[attr-defined]  # what Typer reads
        return run

    return decorate


def _options(parameter: Parameter, chosen: Sequence[str]) -> list[Parameter]:
    """Return the options that a parameter of a command adds."""
    if parameter.name == "settings":
        return [_SHARED[name] for name in chosen]
    if parameter.name in ("verbose", "quiet"):
        return [_SHARED["verbose"], _SHARED["quiet"]] if parameter.name == "verbose" else [_SHARED["quiet"]]
    if parameter.name in chosen:  # one of the settings, which the command also gets as it was given
        return []
    if is_dataclass(parameter.annotation):
        return [option for field in _fields(parameter) for option in _options(field, chosen)]
    return [parameter.replace(kind=Parameter.KEYWORD_ONLY)]


def _value(parameter: Parameter, values: Mapping[str, Any]) -> Any:
    if is_dataclass(parameter.annotation):
        return parameter.annotation(**{field.name: _value(field, values) for field in _fields(parameter)})  # type: ignore[operator]
    return values[parameter.name]


def _fields(record: Parameter) -> Sequence[Parameter]:
    return tuple(signature(record.annotation).parameters.values())


def _settings(values: Mapping[str, Any], chosen: Sequence[str]) -> dict[str, Any]:
    """Return the settings of `BERTScorer`, with the document counts."""
    settings = {name: values[name] for name in chosen if name != "idf_counts"}
    if "use_fast_tokenizer" in settings:
        settings["use_fast_tokenizer"] = settings["use_fast_tokenizer"] or None
    if values.get("idf_counts") is not None:
        from bertscore_onnx.matching.document_counts import DocumentCounts

        settings["idf"] = DocumentCounts.load(values["idf_counts"])
    return settings


def _check_shared(values: Mapping[str, Any], chosen: Sequence[str], *, needs_model: bool) -> None:
    if needs_model:
        check_model(values["model_type"], values.get("lang"))
    given = {name for name in (*chosen, "verbose", "quiet") if values.get(name) not in (None, _SHARED[name].default)}
    unscaled = "rescale_with_baseline" in chosen and "rescale_with_baseline" not in given
    check_effects(
        ("--num-layers", {"num_layers", "all_layers"} <= given, "with --all-layers; leave out one"),
        ("--verbose", {"verbose", "quiet"} <= given, "with --quiet; leave out one"),
        ("--idf", {"idf", "idf_counts"} <= given, "with --idf-counts; leave out one"),
        *(
            (option_name(name), unscaled and name in given, "without --rescale-with-baseline; add it")
            for name in ("baseline_path", "allow_fp32_baseline")
        ),
    )


def given_settings(settings: Mapping[str, Any]) -> list[str]:
    """Return the options of the settings that differ from their defaults."""
    names = [name for name, value in settings.items() if str(value or None) != str(_SHARED[name].default or None)]
    if "idf" in names and settings["idf"] is not True:
        names[names.index("idf")] = "idf_counts"
    return [option_name(name) for name in names]


def check_model(model_type: object, lang: str | None) -> None:
    """Raise typer.BadParameter unless one of them selects a model."""
    if not (model_type or lang):
        raise typer.BadParameter(
            "name a model, or a language to use its default model, for example --lang en. `bertscore-onnx models` "
            "lists the models.",
            param_hint="--model, --lang",
        )


def check_effects(*options: tuple[str, bool, str]) -> None:
    """Raise typer.BadParameter for the first option, of (name, whether it has no effect, reason), without effect."""
    for option, is_idle, reason in options:
        if is_idle:
            raise typer.BadParameter(f"it has no effect {reason}.", param_hint=option)


def matching_of(settings: "ScorerSettings") -> "Matching":
    """Return the matching among the settings of a command."""
    from bertscore_onnx.matching.variants import checked_matching

    return checked_matching(settings["matching"])


def check_contexts(settings: "ScorerSettings", remedy: str) -> None:
    """Raise typer.BadParameter if contexts have a part in the matching, and there are none."""
    if matching_of(settings).context == "weightless":
        raise typer.BadParameter(f"doc-bert-score without contexts is bertscore; {remedy}.", param_hint="--matching")


# How tables are read: the same options wherever a command reads one.


Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME...",
        help="Score the texts with bertscore, bleu, chrf or ter, the last three with settings by sacreBLEU's names: "
        "bleu,tokenize=zh or chrf,word_order=2 (chrF++).  [default: bertscore, if there is a model]",
    ),
]
Matchings = Annotated[
    list[str] | None,
    typer.Option(
        "--matching",
        metavar="SPEC...",
        parser=parse_matching,
        help=f"{_MATCHING_HELP} Several are compared.  [default: bertscore]",
    ),
]
ContextSentences = Annotated[
    int | None,
    typer.Option(
        "--context-sentences",
        metavar="N",
        min=0,
        help="The context of a segment: N preceding sentences of the reference, in its document.  "
        "[default: 2 with doc-bert-score, else 0]",
    ),
]


def sentences_before(settings: "ScorerSettings", given: int | None) -> int:
    """Return how many preceding sentences are the context of a segment."""
    return given if given is not None else 2 * (matching_of(settings).context == "weightless")


FilesFormat = Annotated[
    InputFormat | None,
    typer.Option("--input-format", help="Format of all files.  [default: by file name, such as .tsv.gz; else text]"),
]
TableFormat = Annotated[
    InputFormat | None, typer.Option("--input-format", help="Format of the table.  [default: by file name]")
]
NoQuotes = Annotated[
    bool, typer.Option("--no-quotes", help="In TSV and CSV, double quotes are ordinary characters of the texts.")
]


TextOrJson = Annotated[Literal["text", "json"], typer.Option("--format", help="Print text, or one JSON object.")]
TextJsonOrTsv = Annotated[
    Literal["text", "json", "tsv"],
    typer.Option("--format", help="Print text, one JSON object, or a table of tab-separated values."),
]


def _delimiter(value: str | None) -> str | None:
    delimiter = {"\\t": "\t", "tab": "\t"}.get(value or "", value)
    try:
        return Dialect(delimiter=delimiter).delimiter
    except InputError as error:
        raise typer.BadParameter(str(error)) from error


@dataclass(frozen=True, slots=True)
class DialectOptions:
    """How TSV and CSV are read."""

    no_header: Annotated[
        bool, typer.Option("--no-header", help="TSV and CSV have no header; their columns are called 1, 2, and so on.")
    ] = False
    no_quotes: NoQuotes = False
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            metavar="CHARACTER",
            callback=_delimiter,
            help="Character between the fields of TSV and CSV.  [default: tab in TSV; in CSV a comma, semicolon or "
            "tab, by the header]",
        ),
    ] = None

    @property
    def dialect(self) -> Dialect:
        """The options as one value."""
        return Dialect(not self.no_header, not self.no_quotes, self.delimiter)


# How every command is called: as with bert-score, `-r a.txt b.txt` means `-r a.txt -r b.txt`.

_JOINED = "; commas join it with other settings, as in --matching code-bert-score,beta=3"

REPLACED: Mapping[str, str] = {
    "--preset": "--matching {0}",
    "--exclude": f"--matching exclude={{1}}, with words=FILE for the words in a file{_JOINED}",
    "--beta": f"--matching beta={{0}}{_JOINED}",
    "--layers": f"--matching layers=8..12, with + between layers and ranges{_JOINED}",
    "--pool": f"--matching layers=8..12,pool={{0}}{_JOINED}",
    "--json": "--format json",
    "--tsv": "--format tsv",
    "--latex": "--format latex",
    "--bleu-tokenize": "--metric bleu,tokenize={0}",
    "--bleu-smooth": "--metric bleu,smooth_method={0}",
    "--chrf-word-order": "--metric chrf,word_order={0}",
    "--output-format": "--format {0}",
    "--candidate-column": "--columns candidate={0}",
    "--reference-column": "--columns reference={1}",
    "--context-column": "--columns context={0}",
    "--id-column": "--columns id={0}",
    "--segment-column": "--columns id={0}",
    "--document-column": "--columns document={0}",
    "--system-column": "--columns system={0}",
    "--language-pair-column": "--columns lang_pair={0}",
    "--human-column": "--columns human={0}",
    "--label-column": "--columns label={0}",
    "--reference-format": "--input-format FORMAT {0}, the second for the references",
    "--score-names": "--columns precision=NAME recall=NAME f1=NAME truncated=NAME",
    **{f"--{limit.name.replace('_', '-')}": f"--limits {limit.name}={{0}}" for limit in fields(Limits)},
    "--center": f"--matching center={{0}}{_JOINED}",
}
"""The new spelling of an option that is gone; {0} is what was typed after it, and {1} the same joined by +."""


class Command(TyperCommand):
    """A command whose repeatable options accept several values at once; its other options are given once."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, with arguments by their plain names."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, then parse; name the new spelling of a replaced option."""
        names = [name for option in self.params if getattr(option, "multiple", False) for name in option.opts]
        repeated = _repeated(args, names)
        try:
            if not ctx.resilient_parsing:  # this is not a completion in a shell
                self._check_once(ctx, repeated)
            return super().parse_args(ctx, repeated)
        except UsageError as error:
            if (option := getattr(error, "option_name", "")) in REPLACED:
                error.message, error.possibilities = f"{option} is now {_new_spelling(option, args)}.", ()
            raise

    def _check_once(self, ctx: Any, args: Sequence[str]) -> None:
        *_, given = self.make_parser(ctx).parse_args(args=[*args])
        for option in dict.fromkeys(given):
            takes_one = not (getattr(option, "multiple", False) or getattr(option, "is_flag", False))
            if takes_one and option.param_type_name == "option" and given.count(option) > 1:
                raise typer.BadParameter(
                    f"it is given {given.count(option)} times; expected once.", param_hint=", ".join(option.opts)
                )


def _new_spelling(option: str, args: Sequence[str]) -> str:
    """Return the new spelling of a replaced option, with the values that follow it."""
    place = next(place for place, arg in enumerate(args) if arg.partition("=")[0].replace("_", "-") == option)
    _, equals, value = args[place].partition("=")
    values = [value] if equals else [*takewhile(lambda arg: not arg.startswith("-"), args[place + 1 :])]
    return REPLACED[option].format(" ".join(values), "+".join(values))


def _repeated(args: Sequence[str], names: Sequence[str]) -> list[str]:
    repeated: list[str] = []
    option = None
    is_value = False
    for position, arg in enumerate(args):
        if is_value:
            is_value = False
        elif arg == "--":
            return [*repeated, *args[position:]]
        elif arg.startswith("-") and arg != "-":
            name, equals, _ = arg.partition("=")
            option = name if name.replace("_", "-") in names else None
            is_value = option is not None and not equals
        elif option is not None:
            repeated.append(option)
        repeated.append(arg)
    return repeated


# The examples that `--help` prints below each command's options.


EXAMPLES: Mapping[str, str] = {
    "score": """
        bertscore-onnx score --lang en -c candidates.txt -r references.txt
        bertscore-onnx score -m BUNDLE -c candidates.txt -r first.txt second.txt -s > scores.tsv
        bertscore-onnx score -m BUNDLE -c pairs.jsonl -o scored.jsonl --matching code-bert-score,beta=3
        bertscore-onnx score -m BUNDLE -c data.csv --columns candidate=mt reference=ref1+ref2 -o out.csv
        bertscore-onnx score -m BUNDLE -c - --input-format tsv --format json < pairs.tsv
    """,
    "batch": """
        bertscore-onnx batch -m BUNDLE --input 'pairs/*.parquet' --output scores
        bertscore-onnx batch -m BUNDLE -i a.jsonl b.csv.gz -o scores --columns candidate=mt --keep id --errors null
        bertscore-onnx batch -m BUNDLE -i pairs -o scores --idf --engine ray --nthreads 4
    """,
    "count-documents": """
        bertscore-onnx count-documents -m BUNDLE -r references.txt -o counts.json
        bertscore-onnx count-documents -m BUNDLE -r part-1.jsonl.gz part-2.jsonl.gz -o counts.json
        bertscore-onnx score -m BUNDLE -c candidates.txt -r references.txt --idf-counts counts.json
    """,
    "show": """
        bertscore-onnx show --lang en -c "It is cold today." -r "The weather is cold."
        bertscore-onnx show -m BUNDLE -c "It is cold." -r "The weather is cold." "It is freezing." -o match.html
        bertscore-onnx show -m BUNDLE -c candidates.txt -r references.txt --worst 5
        bertscore-onnx show -m BUNDLE --idf-sents references.txt -c "It is cold." -r "It is freezing." -o match.svg
    """,
    "compare": """
        bertscore-onnx compare -m BUNDLE -r references.txt -c base.txt other.txt
        bertscore-onnx compare -m BUNDLE -r first.txt second.txt -c a.txt b.txt c.txt --all-pairs --html report.html
        bertscore-onnx compare --metric bleu chrf --test sacrebleu-ar -r refs.txt -c base.txt other.txt --format json
        bertscore-onnx compare -m BUNDLE -c outputs.csv --systems base other --documents outputs.csv
        bertscore-onnx compare --scores comet.csv --baseline base --missing drop
    """,
    "meta": """
        bertscore-onnx meta EVALSET --language-pair he-en --gold mqm --reference refB
        bertscore-onnx meta EVALSET --metric-scores BERTscore-refB BLEU-refB --model BUNDLE --output FOLDER
        bertscore-onnx meta judgements.tsv --score comet bleurt --metric bleu chrf --model BUNDLE
        bertscore-onnx meta systems.csv --score comet --format json
        bertscore-onnx meta judgements.tsv --task darr --score comet
        bertscore-onnx meta judgements.tsv --task hybrid --score comet --metric bleu --model BUNDLE
        bertscore-onnx meta paraphrases.tsv --task auc --model BUNDLE --metric bleu
        bertscore-onnx meta phenomena.jsonl --task phenomena --model BUNDLE --metric bleu,smooth_method=none
    """,
    "export": """
        bertscore-onnx export --model roberta-large
        bertscore-onnx export --model path/to/folder --name roberta-large --output BUNDLE
        bertscore-onnx export --model microsoft/deberta-xlarge-mnli --precision fp16
    """,
    "pull": """
        bertscore-onnx pull ORG/REPO
        bertscore-onnx pull ORG/REPO@REVISION --variant layer-17-slow-fp32
        bertscore-onnx pull https://models.example.org/roberta-large/layer-17-slow-fp32
    """,
    "push": """
        bertscore-onnx push BUNDLE ORG/REPO --private
    """,
    "models": """
        bertscore-onnx models
        bertscore-onnx models deberta
        bertscore-onnx models --here
    """,
    "inspect": """
        bertscore-onnx inspect path/to/bundle
        bertscore-onnx inspect roberta-large --format json
        bertscore-onnx inspect path/to/bundle --isolate
    """,
    "doctor": """
        bertscore-onnx doctor
        bertscore-onnx doctor --format json
    """,
    "serve": """
        bertscore-onnx serve --model path/to/bundle
        bertscore-onnx serve --model en=roberta-large --host 0.0.0.0 --api-key-file keys.txt
    """,
    "tune-layers": """
        bertscore-onnx tune-layers --model BUNDLE --judgements wmt16.tsv.gz
        bertscore-onnx tune-layers --model BUNDLE --judgements judged.jsonl --language-pair cs-en de-en --format json
    """,
    "baseline": """
        bertscore-onnx baseline --model BUNDLE --corpus news.en.gz -o baseline.csv
        bertscore-onnx baseline --model BUNDLE --corpus news.en.gz --into-bundle en
    """,
}
"""Examples by the name of the command, one per line."""


def epilog_of(command: str) -> str:
    r"""Return the text below a command's options; `\b` keeps its line breaks."""
    lines = "\n".join(f"  {line.strip()}" for line in EXAMPLES.get(command, "").strip().splitlines())
    return f"\b\nExamples:\n{lines}" if lines else ""
