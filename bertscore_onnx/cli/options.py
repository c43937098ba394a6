"""The options that commands share.

Each is declared once; `shared_options` is the decorator that adds them to a command.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.bundle.store import MODEL_VARIABLE, Precision, default_model
from bertscore_onnx.cli.terminal import silence_warnings, with_options
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.sources import STANDARD_INPUT, lines_of

if TYPE_CHECKING:
    from bertscore_onnx.matching.variants import Matching
    from bertscore_onnx.settings import ScorerSettings


def complete_model(incomplete: str) -> list[str]:
    """Return the models whose names begin like this.

    Installed bundles come first, then the catalogue.
    """
    from bertscore_onnx.bundle import catalogue
    from bertscore_onnx.bundle.resolver import installed_models

    names = dict.fromkeys((*installed_models(), *catalogue.entries()))
    return [name for name in names if name.lower().startswith(incomplete.lower())]


# The settings of `BERTScorer`, as options of every command that makes one.


def option_name(parameter: str) -> str:
    """Return the option of a command's parameter."""
    return "--model" if parameter == "model_type" else f"--{parameter.replace('_', '-')}"


def _option(
    name: str,
    kind: Any,
    panel: str | None,
    text: str,
    default: object = None,
    *,
    short: str = "",
    **more: Any,
) -> Parameter:
    """Return an option whose long name is the parameter's; the default of a flag is False."""
    names = [option_name(name)]
    if short:
        names = [short, *names]
    option = typer.Option(*names, help=text, rich_help_panel=panel, **more)
    default = False if kind is bool else default
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


_NUMBER: dict[str, Any] = {"metavar": "N", "min": 1}


def parse_matching(spec: str) -> "Matching":
    """Return the matching of a spec, with the words or sentences of files that it names."""
    from bertscore_onnx.matching.variants import Matching

    def read_lines(file: str) -> list[str]:
        if file == STANDARD_INPUT:
            raise InputError("standard input is for the texts to score; name a file.")
        return lines_of(file, "words, one per line")

    try:
        return Matching.parse(spec, read_lines)
    except InputError as error:
        raise typer.BadParameter(with_options(error)) from error


_SETTINGS = (
    _option(
        "model_type",
        str | None,
        None,
        "A model's name, a bundle, or hf://ORG/REPO.",
        short="-m",
        metavar="MODEL",
        autocompletion=complete_model,
    ),
    _option(
        "lang", str | None, None, "A language, such as en, for its default model.", metavar="CODE"
    ),
    _option(
        "num_layers",
        int | None,
        "Model",
        "The layer.  [default: the bundle's]",
        short="-l",
        metavar="N",
        min=0,
    ),
    _option("all_layers", bool, "Model", "Print the means of every layer."),
    _option("idf", bool, "Scores", "Give tokens of fewer references more weight."),
    _option(
        "idf_counts", str | None, "Scores", "Take idf weights of `count-documents`.", metavar="FILE"
    ),
    _option("rescale_with_baseline", bool, "Scores", "Let unrelated sentences score about 0."),
    _option(
        "baseline_path", str | None, "Scores", "Your own baseline: LAYER,P,R,F.", metavar="FILE"
    ),
    _option("allow_fp32_baseline", bool, "Scores", "Use fp32 baselines for any precision."),
    _option(
        "device",
        str | None,
        "Speed",
        "cpu, cuda, cuda:N or openvino.  [default: cuda if any]",
        metavar="DEVICE",
    ),
    _option("nthreads", int | None, "Speed", "CPU threads.  [default: all]", **_NUMBER),
    _option(
        "batch_size",
        int | None,
        "Speed",
        "Most texts in one run of the model.",
        short="-b",
        **_NUMBER,
    ),
    _option("precision", Precision | None, "Model", "The precision of the bundle."),
    _option("use_fast_tokenizer", bool, "Model", "Use a bundle with the fast tokenizer's ids."),
    _option(
        "long_text", Literal["truncate", "window"], "Model", "Texts over the limit.", "truncate"
    ),
    _option("max_length", int | None, "Model", "Most tokens of a text or window.", **_NUMBER),
    _option(
        "matching",
        str,
        "Scores",
        "A variant: docs/variants.md.",
        "bertscore",
        metavar="SPEC",
        parser=parse_matching,
    ),
)
_QUIET = Parameter(
    "quiet",
    Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "-q/-v",
            "--quiet/--verbose",
            help="Print only errors on standard error.",
            show_default=False,
        ),
    ],
)
SHARED: Mapping[str, Parameter] = {option.name: option for option in (*_SETTINGS, _QUIET)}
"""The shared options by the names of their parameters."""

SETTINGS = tuple(option.name for option in _SETTINGS)
TOKENIZER_SETTINGS = (
    "model_type",
    "lang",
    "num_layers",
    "precision",
    "use_fast_tokenizer",
    "long_text",
    "max_length",
)


def check_model(model_type: object, lang: str | None) -> None:
    """Raise typer.BadParameter unless a name, a language or the environment chooses a model."""
    if not (model_type or lang or default_model()):
        raise typer.BadParameter(
            "name a model, or a language to use its default model, for example --lang en; or set "
            f"{MODEL_VARIABLE}. `bertscore-onnx models` lists the models.",
            param_hint="--model, --lang",
        )


def chosen_model(model: str | None) -> str:
    """Return a model, or else the environment's.

    typer.BadParameter is raised if there is none.
    """
    chosen = model or default_model()
    if chosen is None:
        raise typer.BadParameter(
            f"name a model, or set {MODEL_VARIABLE}. `bertscore-onnx models --here` lists the "
            "installed ones.",
            param_hint="--model",
        )
    return chosen


def given_options(context: typer.Context) -> frozenset[str]:
    """Return the parameters whose options stand on the command line, with any value."""
    given = set()
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            given.add(name)
    return frozenset(given)


def check_effects(*options: tuple[str, bool, str]) -> None:
    """Raise typer.BadParameter for the first option without effect.

    Each is (name, whether it has no effect, reason).
    """
    for option, is_idle, reason in options:
        if is_idle:
            raise typer.BadParameter(f"it has no effect {reason}.", param_hint=option)


def matching_of(settings: "ScorerSettings") -> "Matching":
    """Return the matching among the settings of a command."""
    from bertscore_onnx.matching.variants import checked_matching

    return checked_matching(settings["matching"])


def check_contexts(settings: "ScorerSettings", remedy: str) -> None:
    """Raise typer.BadParameter if the matching needs contexts, where there are none."""
    if matching_of(settings).context == "weightless":
        raise typer.BadParameter(
            f"doc-bert-score without contexts is bertscore; {remedy}.", param_hint="--matching"
        )


# How tables are read: the same options wherever a command reads one.


FORMAT_HELP = "text, tsv, csv, jsonl or parquet; else by name."
FilesFormat = Annotated[
    str | None, typer.Option("--input-format", metavar="FORMAT", help=FORMAT_HELP)
]
TextOrJson = Annotated[
    Literal["text", "json"], typer.Option("--format", help="Print text, or one JSON object.")
]


# The decorator.


def shared_options(
    *names: str, without: Sequence[str] = (), needs_model: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of these settings, or of all, to a command.

    The command receives them as one mapping, `settings`. A parameter `quiet` adds --quiet, and
    `given` gets the parameters whose options are given. A parameter whose type is a dataclass adds
    the options that its fields declare. The common checks are made before the command runs.
    """
    chosen = tuple(name for name in names or SETTINGS if name not in without)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = tuple(signature(command).parameters.values())

        def run(**values: Any) -> None:
            _check_shared(values, chosen, needs_model=needs_model and "model_type" in chosen)
            if values.get("quiet"):
                silence_warnings()
            if "given" in values:
                values["given"] = given_options(values["given"])
            settings = {name: values[name] for name in chosen if name != "idf_counts"}
            if "use_fast_tokenizer" in settings:
                # Without the flag a bundle's own tokenizer is used, of either kind.
                settings["use_fast_tokenizer"] = settings["use_fast_tokenizer"] or None
            if values.get("idf_counts") is not None:
                from bertscore_onnx.matching.document_counts import DocumentCounts

                settings["idf"] = DocumentCounts.load(values["idf_counts"])
            values["settings"] = settings
            command(**{parameter.name: _value(parameter, values) for parameter in parameters})

        options = {}
        for parameter in parameters:
            for option in _options(parameter, chosen):
                options[option.name] = option
        run.__name__ = command.__name__
        run.__doc__ = command.__doc__
        # what Typer reads
        run.__signature__ = Signature(list(options.values()))  # type: ignore[attr-defined]
        return run

    return decorate


def _options(parameter: Parameter, chosen: Sequence[str]) -> list[Parameter]:
    """Return the options that a parameter of a command adds."""
    if parameter.name == "settings":
        return [SHARED[name] for name in chosen]
    if parameter.name == "quiet":
        return [SHARED["quiet"]]
    if parameter.name == "given":
        return [parameter.replace(annotation=typer.Context)]
    if parameter.name in chosen:  # one of the settings, which the command also gets as it was given
        return []
    if is_dataclass(parameter.annotation):
        options = []
        for field in _fields(parameter):
            options += _options(field, chosen)
        return options
    return [parameter.replace(kind=Parameter.KEYWORD_ONLY)]


def _value(parameter: Parameter, values: Mapping[str, Any]) -> Any:
    if is_dataclass(parameter.annotation):
        fields = {field.name: _value(field, values) for field in _fields(parameter)}
        return parameter.annotation(**fields)  # type: ignore[operator]
    return values[parameter.name]


def _fields(record: Parameter) -> Sequence[Parameter]:
    return tuple(signature(record.annotation).parameters.values())


def _check_shared(values: Mapping[str, Any], chosen: Sequence[str], *, needs_model: bool) -> None:
    if needs_model:
        check_model(values["model_type"], values.get("lang"))
    given = {name for name in chosen if values.get(name) not in (None, SHARED[name].default)}
    unscaled = set()
    if "rescale_with_baseline" in chosen and "rescale_with_baseline" not in given:
        unscaled = given
    reason = "without --rescale-with-baseline; add it"
    check_effects(
        ("--num-layers", {"num_layers", "all_layers"} <= given, "with --all-layers; leave out one"),
        ("--idf", {"idf", "idf_counts"} <= given, "with --idf-counts; leave out one"),
        ("--baseline-path", "baseline_path" in unscaled, reason),
        ("--allow-fp32-baseline", "allow_fp32_baseline" in unscaled, reason),
    )
