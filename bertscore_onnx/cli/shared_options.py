"""The decorator that adds the shared options to a command, and passes them on as the settings of a scorer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any

from bertscore_onnx.cli.options import SETTINGS, SHARED, check_effects, check_model, option_name
from bertscore_onnx.cli.terminal import silence_warnings


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
        run.__signature__ = Signature([*options.values()])  # type: ignore[attr-defined]  # what Typer reads
        return run

    return decorate


def _options(parameter: Parameter, chosen: Sequence[str]) -> list[Parameter]:
    """Return the options that a parameter of a command adds."""
    if parameter.name == "settings":
        return [SHARED[name] for name in chosen]
    if parameter.name in ("verbose", "quiet"):
        return [SHARED["verbose"], SHARED["quiet"]] if parameter.name == "verbose" else [SHARED["quiet"]]
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
    given = {name for name in (*chosen, "verbose", "quiet") if values.get(name) not in (None, SHARED[name].default)}
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
