"""How each layer of a model correlates with human scores, as a result."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bertscore_onnx_evaluation.results import Result
from bertscore_onnx_evaluation.standing import Stand, interval, relations
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, SIGNIFICANT
from bertscore_onnx_evaluation.table import (
    MISSING,
    Column,
    Table,
    TableFormat,
    count,
    number,
    p_value,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_JUDGEMENTS = 100
"""Below it the best layer is largely luck.

On WMT16 the choice by 30 judgements loses 0.014 of r, by 100 0.003.
"""


@dataclass(frozen=True, slots=True)
class LayerCorrelation:
    """Pearson's r of P, R or F at a layer with human scores, the mean over language pairs."""

    pearson: float | None
    """None where the scores are constant in a language pair, and so have no correlation."""
    low: float | None
    """The lower end of the 95 % interval by bootstrap, widened for few units as Student's t is.

    None where no resample has a value.
    """
    high: float | None
    """The upper end."""
    language_pairs: Mapping[str, float | None]
    """Pearson's r in each language pair."""


@dataclass(frozen=True, slots=True)
class LayerResult:
    """One layer."""

    layer: int | str
    """Its number; 0 is the embeddings.

    Of a further scorer also its matching: `3 by code-bert-score`.
    """
    precision: LayerCorrelation
    recall: LayerCorrelation
    f1: LayerCorrelation
    p: float | None
    """The p-value of F's distance to the best layer, tested against the maximum over all layers.

    None for that layer itself, and without a value.
    """
    loss: float | None
    """How much lower F's correlation is than the best layer's.

    0 for the best; None without a value.
    """
    loss_high: float | None
    """How much lower it may be than any other layer's.

    It is the upper bound at 95 % for a layer named beforehand. For a layer that was chosen on these
    judgements, as the best layer was, the bound is too low more often.
    """


@dataclass(frozen=True, slots=True)
class LayerTuning(Result):
    """The correlations of each layer with human scores."""

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv", "markdown")

    signature: str
    """How the scores were made."""
    num_resamples: int
    seed: int
    language_pairs: Mapping[str, int]
    """How many rows have a human score, by language pair."""
    units: Mapping[str, int]
    """How many units were drawn from, by language pair."""
    kind_of_units: str
    """What they are: `references`, or `segments or documents`."""
    left_out: Mapping[str, str]
    """The language pairs that are left out of all means, each with the reason."""
    layers: tuple[LayerResult, ...]
    """Every layer, from 0; then the layers of further scorers."""
    best_layer: int | str
    """The layer with the highest correlation of F; the first of equals."""
    best_pearson: float
    """Its correlation."""
    optimism: float | None
    """By how much that correlation is too high, because the layer was chosen for it.

    It is the mean over resamples of the best layer's correlation in the resample minus its
    correlation in all rows. It is too small: in simulations of equally good layers about two thirds
    of the gain. None without resamples.
    """
    export_command: str
    """The command that exports the model at that layer."""

    @property
    def best(self) -> LayerResult:
        """The result of the best layer."""
        return next(result for result in self.layers if result.layer == self.best_layer)

    @property
    def not_worse(self) -> tuple[int | str, ...]:
        """The other layers that may be as good: p is 0.05 or more."""
        layers = []
        for result in self.layers:
            if result.p is not None and result.p >= SIGNIFICANT:
                layers.append(result.layer)
        return tuple(layers)

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the judgements.

        Language pairs may be left out, judgements may be too few, or reversed.
        """
        warnings = []
        for name, reason in self.left_out.items():
            warnings.append(f"{name} is left out of all means: {reason}.")
        num_judged = self._in_use(self.language_pairs)
        num_units = self._in_use(self.units)
        if num_judged < MIN_JUDGEMENTS or num_units < MIN_UNITS:
            warnings.append(
                f"{num_judged} judgements of {num_units} {self.kind_of_units} are few. Below "
                f"{MIN_JUDGEMENTS} and {MIN_UNITS}, the best layer is largely luck, and intervals "
                "are too narrow."
            )
        if all(layer.f1.pearson is None or layer.f1.pearson < 0 for layer in self.layers):
            negative = "F correlates negatively with the judgements at every layer."
            warnings.append(f"{negative} Are higher judgements better?")
        return warnings

    @property
    def method(self) -> str:
        """How intervals and p are made, in a sentence."""
        units = f"{count(self._in_use(self.units))} {self.kind_of_units}"
        resamples = f"{count(self.num_resamples)} bootstrap resamples of {units}"
        return (
            f"95 % intervals and p are by {resamples}, seed {self.seed}; p is against the best of "
            'all layers. "At most" holds at 95 %, for a layer named beforehand.'
        )

    @property
    def notes(self) -> str:
        """The method and all warnings, in sentences."""
        return " ".join([self.method, *self.warnings])

    def _in_use(self, counts: Mapping[str, int]) -> int:
        """Return the sum of counts over the language pairs that are not left out."""
        return sum(counts[name] for name in counts if name not in self.left_out)

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        language_pairs = {}
        for name, num_judged in self.language_pairs.items():
            language_pairs[name] = {
                "n": num_judged,
                "units": self.units[name],
                "left_out": self.left_out.get(name),
            }
        return {
            "signature": self.signature,
            "warnings": self.warnings,
            "method": self.method,
            "resamples": self.num_resamples,
            "seed": self.seed,
            "best_layer": self.best_layer,
            "best_pearson": self.best_pearson,
            "optimism": self.optimism,
            "not_worse": list(self.not_worse),
            "language_pairs": language_pairs,
            "layers": [asdict(result) for result in self.layers],
            "export": self.export_command,
        }

    def figure(self) -> "Figure":
        """Return a matplotlib figure of the correlation of F by layer.

        The intervals are a band.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from bertscore_onnx_evaluation.report.figures import layers_figure

        curve = {}
        for result in self.layers:
            curve[str(result.layer)] = (result.f1.pearson, result.f1.low, result.f1.high)
        return layers_figure(curve, str(self.best_layer), [self.notes, self.signature])

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        said = {"notes": self.notes, "signature": self.signature}
        for result in self.layers:
            row: dict[str, Any] = {"layer": str(result.layer)}
            scores = {"precision": result.precision, "recall": result.recall, "f1": result.f1}
            for name, score in scores.items():
                row[name] = score.pearson
                row[f"{name}_low"] = score.low
                row[f"{name}_high"] = score.high
            row |= {"p": result.p, "loss": result.loss, "loss_high": result.loss_high}
            for language_pair, pearson in result.f1.language_pairs.items():
                row[f"f1_{language_pair}"] = pearson
            yield row | said

    def _blocks(self, write: Callable[[Table], str]) -> Iterator[str]:
        names = [name for name in self.language_pairs if name not in self.left_out]
        basis = f"{count(self._in_use(self.language_pairs))} judgements of {', '.join(names)}"
        if len(names) != 1:
            basis += f", mean over {len(names)} language pairs"
        yield f"{self.signature}\nPearson's r with {basis}"
        yield write(self._table())
        warnings = [f"Warning: {warning}" for warning in self.warnings]
        yield "\n".join([self._conclusion(), self.method, *warnings, self.export_command])

    def _conclusion(self) -> str:
        """Return which layer is best, and what its correlation gains from being chosen."""
        stands = {}
        for result in self.layers:
            if result.layer != self.best_layer:
                is_worse = None if result.p is None else result.p < SIGNIFICANT
                stands[f"layer {result.layer}"] = Stand(is_worse)
        write = number(4)
        r = f"(r {write(self.best_pearson)})"
        best = f"Layer {self.best_layer} correlates best with human judgements {r}"
        sentences = [": ".join(filter(None, [best, relations(stands)])) + "."]
        if self.optimism is not None:
            sentences.append(
                "Its r includes the gain from being chosen on these judgements, about "
                f"{write(self.optimism)}; judge it on others."
            )
        return " ".join(sentences)

    def _table(self) -> Table:
        write = number(4)
        columns: list[Column] = [
            ("layer", "layer", str),
            ("P", "precision", write),
            ("R", "recall", write),
            ("F", "f1", write),
            ("95 % of F", "interval", plain),
            ("lower by", "loss", write),
            ("at most", "loss_high", write),
            ("p", "p", plain),
        ]
        rows = []
        for row in self._rows():
            ends = interval(row["f1_low"], row["f1_high"], number(3)) or MISSING
            p = p_value(3, SIGNIFICANT)(row["p"])
            if row["layer"] == str(self.best_layer):
                p = "best"
            rows.append({**row, "interval": ends, "p": p})
        return Table(columns, rows, ("loss_high", "precision", "recall"))
