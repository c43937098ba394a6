"""Runs `tune-layers` on many models and human judgements, and writes docs/which_encoder.md.

Each model, precision and set of judgements has a small file of results, which is kept until it is
deleted: a run computes those that are missing, and writes the page from all of them.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import msgspec

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.store import MANIFEST, Precision
from bertscore_onnx.errors import BertScoreOnnxError, ExportError, one_line
from bertscore_onnx.files import replace_whole
from harness.models import Models
from harness.processes import ROOT, ChildError, call_in_child
from harness.results import BEGIN, END, machine_facts
from reproduce.encoder_page import Record, described, write_page
from reproduce.layer_correlation import (
    JudgementSet,
    Part,
    correlate_layers,
    export_bundle,
    measure_best,
    read_set,
)
from reproduce.summaries import (
    ORIGIN,
    Summaries,
    correlate_lexical,
    correlate_summaries,
    is_summaries,
    read_summaries,
)

SETS = {
    "WMT16": (
        "WMT16 into English",
        "direct assessment, metrics task of WMT16 (Bojar et al., 2016)",
        None,
    ),
    "WMT23": (
        "WMT23 Hebrew to English",
        "MQM, metrics task of WMT23 (Freitag et al., 2023), reference refB",
        Part("he-en", "mqm", "refB"),
    ),
}
"""The sets without `--set`: environment variables with their paths; titles, origins, and the part
in use.
"""
SUMMEVAL = "SUMMEVAL"
"""The environment variable with the path of SummEval."""

MINILM = "all-MiniLM-L6-v2"
MODELS = (
    MINILM,
    *(
        "roberta-base",
        "roberta-large",
        "microsoft/deberta-large-mnli",
        "microsoft/deberta-xlarge-mnli",
    ),
    *("microsoft/deberta-v3-large", "microsoft/mpnet-base", "facebook/data2vec-text-base"),
    *(
        "answerdotai/ModernBERT-base",
        "answerdotai/ModernBERT-large",
        "Alibaba-NLP/gte-modernbert-base",
    ),
    *(
        "bert-base-multilingual-cased",
        "xlm-roberta-base",
        "xlm-roberta-large",
        "google/rembert",
        "jhu-clsp/mmBERT-base",
    ),
    *(
        "sentence-transformers/LaBSE",
        "BAAI/bge-m3",
        "intfloat/multilingual-e5-large",
        "EuroBERT/EuroBERT-210m",
    ),
    *(
        "ibm-granite/granite-embedding-278m-multilingual",
        "google/embeddinggemma-300m",
        "Qwen/Qwen3-Embedding-0.6B",
    ),
)
"""The models without `--model`: those that people ask for."""

ALL_MODELS, NO_MODEL = "all models", "no model"
LIMIT = 24 * 3600.0
FAULTS = (ChildError, BertScoreOnnxError)
AnySet = JudgementSet | Summaries
GivenSet = tuple[str, str, str, Part | None]


@dataclass(frozen=True)
class Model:
    """A model, and where it comes from: a name of the hub, a folder of `save_pretrained`, or a
    bundle.
    """

    name: str
    source: str

    @property
    def is_bundle(self) -> bool:
        """Whether the source is a bundle."""
        return (Path(self.source) / MANIFEST).is_file()

    def precisions(self, wanted: Sequence[Precision]) -> Sequence[Precision]:
        """Return the precisions to measure; a bundle has only its own."""
        with suppress(BertScoreOnnxError):
            return [read_manifest(Path(self.source)).precision] if self.is_bundle else wanted
        return wanted[:1]

    def bundle(self, precision: Precision, num_layers: int | None, folder: Path) -> Path:
        """Return a bundle at a layer, or of all layers for None, which is exported into the
        folder.
        """
        if self.is_bundle:
            if not read_manifest(Path(self.source)).all_layers:
                raise ExportError("This bundle holds one layer. Export it with --all-layers.")
            return Path(self.source).absolute()
        output = folder / f"{precision}-{'all' if num_layers is None else num_layers}"
        if not output.is_dir():
            offline = os.environ.get("HF_HUB_OFFLINE", "0")
            call_in_child(
                export_bundle,
                self.source,
                self.name,
                precision,
                num_layers,
                output,
                offline,
                limit=LIMIT,
            )
        return output


class Run:
    """The files of results in a folder; a result is kept until its file is deleted."""

    def __init__(self, output: Path, device: str) -> None:
        """Take the folder, which exists, and the device of all measurements."""
        self._output, self._device = output, device
        self._machine = {**machine_facts(), "device": device}

    def note_set(self, judgements: AnySet) -> None:
        """Store the reason why a set cannot be used; delete an earlier one."""
        record = self._record(judgements, ALL_MODELS, "")
        self._file_of(record).unlink(missing_ok=True)
        if judgements.reason:
            self._store(record, reason=judgements.reason)

    def measure_lexical(self, summaries: Summaries) -> None:
        """Measure the metrics of summaries that have no model, unless the results are there."""
        record = self._record(summaries, NO_MODEL, "")
        if not self._is_kept(record):
            self._store(record, agreements=correlate_lexical(summaries))

    def measure(self, model: Model, precision: Precision, sets: Sequence[AnySet]) -> None:
        """Measure a model on every set, unless the results are there."""
        records = [
            (self._record(judgements, model.name, precision), judgements) for judgements in sets
        ]
        missing = [
            (record, judgements) for record, judgements in records if not self._is_kept(record)
        ]
        with TemporaryDirectory(prefix=".bundles-", dir=self._output) as folder:
            for record, judgements in missing:
                try:
                    self._store(record, **self._figures(model, record, judgements, Path(folder)))
                except FAULTS as error:
                    reason = error.reason if isinstance(error, ChildError) else one_line(error)
                    hidden = {
                        repr(model.source): "the model",
                        model.source: model.name,
                        folder: "the bundle",
                    }
                    for text, shown in hidden.items():
                        reason = reason.replace(text, shown)
                    self._store(record, reason=reason[:500])

    def _figures(
        self, model: Model, record: Record, judgements: AnySet, folder: Path
    ) -> dict[str, Any]:
        """Return the figures of a model on one set."""
        precision: Any = record.precision
        bundle = model.bundle(precision, None, folder)
        facts: dict[str, Any] = {"max_length": read_manifest(bundle).max_length}
        if isinstance(judgements, Summaries):
            facts["agreements"] = call_in_child(
                correlate_summaries, bundle, judgements, self._device, limit=LIMIT
            )
            return facts
        tuning = facts["tuning"] = call_in_child(
            correlate_layers, bundle, judgements, self._device, limit=LIMIT
        )
        cut = model.bundle(precision, tuning["best_layer"], folder)
        facts["best"] = call_in_child(
            measure_best, cut, tuning, judgements, self._device, limit=LIMIT
        )
        return facts

    def _record(self, judgements: AnySet, model: str, precision: str) -> Record:
        """Return a result without its figures."""
        facts: dict[str, Any] = {"origin": ORIGIN, "of_summaries": True}
        if not isinstance(judgements, Summaries):
            facts = {
                name: getattr(judgements, name) for name in ("origin", "left_out", "has_documents")
            }
        return Record(judgements.title, model, precision, machine=self._machine, **facts)

    def _is_kept(self, record: Record) -> bool:
        """Return whether a result is there already."""
        found = read_record(self._file_of(record))
        return found is not None and not found.reason

    def _file_of(self, record: Record) -> Path:
        names = (record.model, record.precision, record.judgements)
        return self._output / f"{'--'.join(filter(None, map(slug, names)))}.json"

    def _store(self, record: Record, **facts: Any) -> None:
        record = msgspec.structs.replace(record, made=time.strftime("%Y-%m-%d %H:%M"), **facts)
        replace_whole(
            self._file_of(record),
            msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n",
        )
        print(f"{described(record)}: {record.reason or 'measured'}", file=sys.stderr, flush=True)


def slug(name: str) -> str:
    """Return a name that a file can have."""
    return re.sub(r"[^\w.]+", "-", name).strip("-.")[:60]


def read_record(file: Path) -> Record | None:
    """Read a result; None if there is none, or it is damaged or of another version."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(file.read_bytes(), type=Record)
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, write the page, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    given = options.set or [*_sets_of_environment()]
    if not options.page.is_file() or not {BEGIN, END} <= {
        *options.page.read_text(encoding="utf-8").split("\n")
    }:
        parser.error(
            f"{options.page} is no page with the marks {BEGIN} and {END}, between which the "
            "tables go."
        )
    options.output.mkdir(parents=True, exist_ok=True)
    if not options.page_only:
        run = Run(options.output, options.device)
        _measure_all(run, options, given)
    records = [
        record for file in sorted(options.output.glob("*.json")) if (record := read_record(file))
    ]
    if all(record.reason for record in records):
        print(f"Nothing is measured, so {options.page} stays as it is.", file=sys.stderr)
        return 1
    write_page(options.page, records)
    print(f"{options.page} written.")
    return 0


def _measure_all(run: Run, options: argparse.Namespace, given: Sequence[GivenSet]) -> None:
    sets = [
        read_summaries(one[0], one[2]) if is_summaries(one[2]) else read_set(*one) for one in given
    ]
    for judgements in sets:
        run.note_set(judgements)
    usable = [judgements for judgements in sets if not judgements.reason]
    for judgements in usable:
        if isinstance(judgements, Summaries):
            run.measure_lexical(judgements)
    for model in options.model or [_known(name, options.output) for name in MODELS]:
        for precision in model.precisions(options.precision):
            run.measure(model, precision, usable)


def _sets_of_environment() -> Iterator[GivenSet]:
    for variable, (title, origin, part) in SETS.items():
        yield title, origin, os.environ.get(variable) or f"${variable}", part
    if path := os.environ.get(SUMMEVAL):
        yield "SummEval", "", path, None


def _known(name: str, output: Path) -> Model:
    """Return a model of the list; MiniLM is that of its package if that is installed."""
    if name == MINILM:
        with suppress(SystemExit):
            return Model(name, str(Models(output, [], {}).minilm.folder))
        return Model(name, f"sentence-transformers/{name}")
    return Model(name, name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reproduce.correlations", description=__doc__)
    parser.add_argument(
        "--model",
        type=_model,
        action="append",
        metavar="[NAME=]MODEL",
        help="a model's name, a folder of `save_pretrained`, or a bundle of all layers; may be "
        "given several times (default: a list of models that people ask for)",
    )
    parser.add_argument(
        "--set",
        type=_titled_path,
        action="append",
        metavar="TITLE=PATH",
        help="human judgements: a folder in the layout of mt-metrics-eval, a table as `meta` reads "
        "it, or the data.pkl of SummEval; may be given several times (default: the paths in "
        "$WMT16, $WMT23 and $SUMMEVAL)",
    )
    precisions = get_args(Precision)
    parser.add_argument(
        "--precision",
        nargs="+",
        choices=precisions,
        default=["fp32"],
        metavar="P",
        help="default: fp32",
    )
    parser.add_argument("--device", default="cpu", help="as `score` has it (default: cpu)")
    parser.add_argument(
        "--output",
        type=lambda path: Path(path).resolve(),
        default=ROOT / "build" / "correlations",
        metavar="FOLDER",
        help="of the results",
    )
    parser.add_argument(
        "--page",
        type=Path,
        default=ROOT / "docs" / "which_encoder.md",
        metavar="FILE",
        help="the page to write",
    )
    parser.add_argument(
        "--page-only",
        action="store_true",
        help="write the page from the results, and measure nothing",
    )
    return parser


def _model(text: str) -> Model:
    name, equals, source = text.partition("=")
    if not name or (equals and not source):
        raise argparse.ArgumentTypeError(f"{text!r} is neither MODEL nor NAME=MODEL")
    source = source or name
    if not Path(source).is_dir():
        return Model(name, source)
    folder = Path(source).resolve()  # processes of their own run elsewhere
    return Model(name if equals else folder.name, str(folder))


def _titled_path(text: str) -> tuple[str, str, str, None]:
    title, _, path = text.rpartition("=")
    if not title or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not TITLE=PATH")
    return title, "", path, None


if __name__ == "__main__":
    sys.exit(main())
