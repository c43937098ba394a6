"""`bertscore-onnx models`: lists the models of the catalogue and the installed bundles."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.cli.options import complete_model
from bertscore_onnx.cli.terminal import echo, print_json, print_table
from bertscore_onnx.errors import BundleError, UnknownModelError
from bertscore_onnx.tables.aligned import terminal_width

if TYPE_CHECKING:
    from bertscore_onnx.bundle.manifest import Manifest


def models(
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="List only models whose names contain this, in any case.",
            autocompletion=complete_model,
        ),
    ] = "",
    here: Annotated[bool, typer.Option("--here", help="List only installed bundles, with their paths.")] = False,
    output_format: Annotated[
        Literal["text", "json"],
        typer.Option("--format", help="Print text, or a JSON array with families, tested differences and paths."),
    ] = "text",
) -> None:
    """List the known models and the installed bundles.

    LAYER is the layer that bert-score tuned for the model, or modern-bert-score for ModernBERT, LENGTH the maximum
    number of tokens in a text, and MB the size of the fp32 weights, cut at that layer. HERE is the number of bundles in
    the home folder: $BERTSCORE_ONNX_HOME, by default the user's cache folder.

    Examples:
        # List all models
        bertscore-onnx models
        # List those whose names contain a text
        bertscore-onnx models deberta
        # List the installed bundles
        bertscore-onnx models --here
    """
    stored = [(folder, manifest) for folder, manifest in _stored() if pattern.lower() in manifest.model_id.lower()]
    if here:
        _list_bundles(stored, as_json=output_format == "json")
        return
    models = _known_models(stored)
    chosen = [model for name, model in models.items() if pattern.lower() in name.lower()]
    if not chosen:
        from bertscore_onnx.bundle import catalogue

        near = ", ".join(catalogue.nearest_names(pattern, models))
        raise UnknownModelError(
            f"No model's name contains {pattern!r}.{near and f' The nearest names are {near}.'} "
            "`bertscore-onnx models` lists all."
        )
    if output_format == "json":
        print_json(chosen)
    else:
        print_table([_HEADER, *map(_row, chosen)], width=terminal_width())


def _list_bundles(stored: list[tuple[Path, "Manifest"]], *, as_json: bool) -> None:
    if as_json:
        print_json([model for model in _known_models(stored).values() if model["bundles"]])
    elif stored:
        rows = [
            (
                manifest.model_id,
                "all" if manifest.all_layers else str(manifest.num_layers),
                manifest.tokenizer_mode,
                manifest.precision,
                str(folder),
            )
            for folder, manifest in stored
        ]
        print_table([("MODEL", "LAYER", "TOKENIZER", "PRECISION", "PATH"), *rows])
    else:
        echo("No such bundle is installed. Make one with `bertscore-onnx export`, for example `--model roberta-large`.")


def _stored() -> Iterator[tuple[Path, "Manifest"]]:
    """Yield the bundles of the home folder with their manifests; warn of broken ones."""
    from bertscore_onnx.bundle.bundle import read_manifest
    from bertscore_onnx.bundle.store import stored_bundles

    for folder in stored_bundles():
        try:
            yield folder, read_manifest(folder)
        except BundleError as error:
            echo(f"Warning: {error}")


def _known_models(stored: Iterable[tuple[Path, "Manifest"]]) -> dict[str, dict[str, Any]]:
    """Return the models of the catalogue, then models that only have an installed bundle, by name, as JSON has them.

    The layer is the one of the catalogue, the size that of the fp32 weights cut there, the largest difference that
    of the family's scores from bert-score's; each is None if it is unknown.
    """
    from bertscore_onnx.bundle import catalogue
    from bertscore_onnx.bundle.catalogue import baseline_languages

    def model(
        name: str, family: str, layer: int | None, length: int | None, size: int | None, languages: list[str]
    ) -> dict[str, Any]:
        return {
            "name": name,
            "family": family,
            "num_layers": layer,
            "max_length": length,
            "size_mb": size,
            "baseline_languages": languages,
            "largest_difference": catalogue.largest_differences().get(family),
            "bundles": [],
        }

    models = {
        name: model(name, entry.family, entry.num_layers, entry.max_length, entry.size_mb, baseline_languages(name))
        for name, entry in catalogue.entries().items()
    }
    for folder, manifest in stored:
        name, languages = manifest.model_id, sorted(manifest.baselines)
        stranger = model(name, manifest.family, None, manifest.max_length, None, languages)
        models.setdefault(name, stranger)["bundles"].append(str(folder))
    return models


_HEADER = ("MODEL", "LAYER", "LENGTH", "MB", "BASELINES", "HERE")


def _row(model: dict[str, Any]) -> tuple[str, ...]:
    return (
        model["name"],
        *("-" if model[name] is None else str(model[name]) for name in ("num_layers", "max_length", "size_mb")),
        " ".join(model["baseline_languages"]) or "-",
        str(len(model["bundles"]) or "-"),
    )
