"""`bertscore-onnx models`: lists the models of the catalogue and the bundles that are here."""

import json
from dataclasses import asdict, dataclass, field
from typing import Annotated

import typer

from bertscore_onnx.cli.messages import tell
from bertscore_onnx.cli.tables import print_table
from bertscore_onnx.errors import BundleError, UnknownModelError


@dataclass(slots=True)
class _Model:
    """A model of the catalogue, or one that has a bundle here."""

    name: str
    family: str
    num_layers: int | None
    """The layer that bert-score tuned; None for a model that is not in the catalogue."""

    max_length: int | None
    size_mb: int | None
    """Its weights in fp32, cut at that layer; None for a model that is not in the catalogue."""

    baseline_languages: list[str]
    largest_difference: float | None
    """Between the scores of its family's models and bert-score's, as tested; None where that was not tested."""

    bundles: list[str] = field(default_factory=list)
    """The folders of its bundles."""


def models(
    pattern: Annotated[str, typer.Argument(help="Only models whose name contains this, in any case.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> None:
    """List the known models and the bundles here.

    A layer is the one that bert-score tuned for the model; a size is that of the weights in fp32, cut at that layer. It
    is tested to the largest difference from bert-score's scores that tests of its family found.
    A bundle is here when it is in the home folder, $BERTSCORE_ONNX_HOME or by default the user's cache folder.
    """
    from bertscore_onnx.bundle import catalogue

    known = _known_models()
    chosen = [model for name, model in known.items() if pattern.lower() in name.lower()]
    if not chosen:
        nearest = ", ".join(catalogue.nearest_names(pattern, known))
        raise UnknownModelError(f"No model's name contains {pattern!r}. The nearest names are {nearest}.")
    if as_json:
        print(json.dumps([asdict(model) for model in chosen]))
    else:
        print_table([_HEADER, *map(_row, chosen)])


def _known_models() -> dict[str, _Model]:
    """Return the models of the catalogue and then those that only have a bundle here, by name."""
    from bertscore_onnx.bundle import catalogue
    from bertscore_onnx.bundle.opening import read_manifest
    from bertscore_onnx.bundle.store import stored_bundles

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
    for folder in stored_bundles():
        try:
            manifest = read_manifest(folder)
        except BundleError as error:
            tell(f"Warning: {error}")
            continue
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


_HEADER = ("MODEL", "FAMILY", "LAYER", "MAX LENGTH", "SIZE", "TESTED TO", "BASELINES", "BUNDLES HERE")


def _row(model: _Model) -> tuple[str, ...]:
    return (
        model.name,
        model.family,
        _or_dash(model.num_layers),
        _or_dash(model.max_length),
        "-" if model.size_mb is None else f"{model.size_mb} MB",
        "-" if model.largest_difference is None else f"{model.largest_difference:.0e}",
        " ".join(model.baseline_languages) or "-",
        " ".join(model.bundles) or "-",
    )


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
