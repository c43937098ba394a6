"""`bertscore-onnx models`: lists the models of the catalogue and the installed bundles."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.options import complete_model
from bertscore_onnx.cli.terminal import echo, print_table, terminal_width
from bertscore_onnx.errors import BundleError, UnknownModelError

if TYPE_CHECKING:
    from bertscore_onnx.bundle.manifest import Manifest


@dataclass(slots=True)
class _Model:
    """A model of the catalogue, or one with an installed bundle."""

    name: str
    family: str
    num_layers: int | None
    """The layer that bert-score tuned; None for a model that is not in the catalogue."""

    max_length: int | None
    size_mb: int | None
    """Its weights in fp32, cut at that layer; None for a model that is not in the catalogue."""

    baseline_languages: list[str]
    largest_difference: float | None
    """Between its family's scores and bert-score's, as tested; None if untested."""

    bundles: list[str] = field(default_factory=list)
    """The folders of its bundles."""


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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array, with families, tested differences and paths.")
    ] = False,
) -> None:
    """List the known models and the installed bundles.

    LAYER is the layer that bert-score tuned for the model, LENGTH the maximum number of tokens in a text, and MB the
    size of the fp32 weights, cut at that layer. HERE is the number of bundles in the home folder: $BERTSCORE_ONNX_HOME,
    by default the user's cache folder.
    """
    stored = [(folder, manifest) for folder, manifest in _stored() if pattern.lower() in manifest.model_id.lower()]
    if here:
        _list_bundles(stored, as_json=as_json)
        return
    known = _known_models(stored)
    chosen = [model for name, model in known.items() if pattern.lower() in name.lower()]
    if not chosen:
        from bertscore_onnx.bundle import catalogue

        near = ", ".join(catalogue.nearest_names(pattern, known))
        raise UnknownModelError(
            f"No model's name contains {pattern!r}.{near and f' The nearest names are {near}.'} "
            "`bertscore-onnx models` lists all."
        )
    if as_json:
        print(json.dumps([asdict(model) for model in chosen]))
    else:
        print_table([_HEADER, *map(_row, chosen)], width=terminal_width())


def _list_bundles(stored: list[tuple[Path, "Manifest"]], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([model for model in map(asdict, _known_models(stored).values()) if model["bundles"]]))
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


def _known_models(stored: Iterable[tuple[Path, "Manifest"]]) -> dict[str, _Model]:
    """Return the models of the catalogue, then those that only have an installed bundle, by name."""
    from bertscore_onnx.bundle import catalogue

    known = {
        name: _Model(
            name,
            entry.family,
            entry.num_layers,
            entry.max_length,
            entry.size_mb,
            catalogue.baseline_languages(name),
            _largest_difference(entry.family),
        )
        for name, entry in catalogue.entries().items()
    }
    for folder, manifest in stored:
        name = manifest.model_id
        stranger = _Model(
            name,
            manifest.family,
            None,
            manifest.max_length,
            None,
            sorted(manifest.baselines),
            _largest_difference(manifest.family),
        )
        known.setdefault(name, stranger).bundles.append(str(folder))
    return known


def _largest_difference(family: str) -> float | None:
    from bertscore_onnx.bundle import catalogue

    parity = catalogue.parity().get(family)
    return None if parity is None else parity.largest_difference


_HEADER = ("MODEL", "LAYER", "LENGTH", "MB", "BASELINES", "HERE")


def _row(model: _Model) -> tuple[str, ...]:
    return (
        model.name,
        _or_dash(model.num_layers),
        _or_dash(model.max_length),
        _or_dash(model.size_mb),
        " ".join(model.baseline_languages) or "-",
        str(len(model.bundles) or "-"),
    )


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
