"""`bertscore-onnx models`.

Lists the models of the catalogue and the installed bundles.
"""

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
    here: Annotated[
        bool,
        typer.Option("--here", help="List only installed bundles, with their paths."),
    ] = False,
    output_format: Annotated[
        Literal["text", "json"],
        typer.Option(
            "--format",
            help="Print text, or a JSON array with families, tested differences and paths.",
        ),
    ] = "text",
) -> None:
    """List the known models and the installed bundles.

    LAYER is the layer that bert-score tuned for the model, or modern-bert-score for ModernBERT,
    LENGTH the maximum number of tokens in a text, and MB the size of the fp32 weights, cut at that
    layer. HERE is the number of bundles in the home folder: $BERTSCORE_ONNX_HOME, by default the
    user's cache folder.

    Examples:
        # List all models
        bertscore-onnx models
        # List those whose names contain a text
        bertscore-onnx models deberta
        # List the installed bundles
        bertscore-onnx models --here
    """
    as_json = output_format == "json"
    stored = [
        (
            folder,
            manifest,
        )
        for folder, manifest in _stored()
        if pattern.lower() in manifest.model_id.lower()
    ]
    if here:
        _list_bundles(stored, as_json=as_json)
        return

    models = _known_models(stored)
    chosen = [model for name, model in models.items() if pattern.lower() in name.lower()]
    if not chosen:
        raise _unknown_model(pattern, models)
    if as_json:
        print_json(chosen)
        return
    print_table([_HEADER, *map(_row, chosen)], width=terminal_width())


def _unknown_model(pattern: str, names: Iterable[str]) -> UnknownModelError:
    """Return the error for a text that no name contains."""
    from bertscore_onnx.bundle import catalogue

    message = f"No model's name contains {pattern!r}."
    nearest = ", ".join(catalogue.nearest_names(pattern, names))
    if nearest:
        message += f" The nearest names are {nearest}."
    return UnknownModelError(f"{message} `bertscore-onnx models` lists all.")


def _list_bundles(stored: list[tuple[Path, "Manifest"]], *, as_json: bool) -> None:
    if as_json:
        # A model of the catalogue may have no bundle.
        models = _known_models(stored).values()
        print_json([model for model in models if model["bundles"]])
        return
    if not stored:
        advice = "Make one with `bertscore-onnx export`, for example `--model roberta-large`."
        echo(f"No such bundle is installed. {advice}")
        return
    rows = [("MODEL", "LAYER", "TOKENIZER", "PRECISION", "PATH")]
    for folder, manifest in stored:
        layer = "all" if manifest.all_layers else str(manifest.num_layers)
        rows.append(
            (
                manifest.model_id,
                layer,
                manifest.tokenizer_mode,
                manifest.precision,
                str(folder),
            ),
        )
    print_table(rows)


def _stored() -> Iterator[tuple[Path, "Manifest"]]:
    """Yield the bundles of the home folder; warn of broken ones."""
    from bertscore_onnx.bundle.bundle import read_manifest
    from bertscore_onnx.bundle.store import stored_bundles

    for folder in stored_bundles():
        try:
            yield folder, read_manifest(folder)
        except BundleError as error:
            echo(f"Warning: {error}")


def _known_models(stored: Iterable[tuple[Path, "Manifest"]]) -> dict[str, dict[str, Any]]:
    """Return the known models by name, as JSON has them.

    Those of the catalogue come first, then those that only have an installed bundle. The layer is
    the one of the catalogue, the size that of the fp32 weights cut there, the largest difference
    that of the family's scores from bert-score's; each is None if it is unknown.
    """
    from bertscore_onnx.bundle import catalogue

    def model(
        name: str,
        family: str,
        layer: int | None,
        length: int | None,
        size: int | None,
        languages: list[str],
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

    models = {}
    for name, entry in catalogue.entries().items():
        models[name] = model(
            name,
            entry.family,
            entry.num_layers,
            entry.max_length,
            entry.size_mb,
            catalogue.baseline_languages(name),
        )
    for folder, manifest in stored:
        name = manifest.model_id
        languages = sorted(manifest.baselines)
        stranger = model(name, manifest.family, None, manifest.max_length, None, languages)
        models.setdefault(name, stranger)["bundles"].append(str(folder))
    return models


_HEADER = ("MODEL", "LAYER", "LENGTH", "MB", "BASELINES", "HERE")


def _row(model: dict[str, Any]) -> tuple[str, ...]:
    numbers = []
    for name in ("num_layers", "max_length", "size_mb"):
        numbers.append("-" if model[name] is None else str(model[name]))
    languages = " ".join(model["baseline_languages"])
    num_bundles = len(model["bundles"])
    return (model["name"], *numbers, languages or "-", str(num_bundles or "-"))
