"""Correlates every layer of many models with human judgements, and writes docs/which_encoder.md.

Each model, precision and set of judgements has a small file of results, which is kept: a run computes those that are
missing or out of date, and writes the page from all of them.
"""

import argparse
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, get_args

import msgspec

from benchmarks.encoder_page import MEAN, PLAIN, Record, write_page
from benchmarks.layer_correlation import JudgementSet, Part, correlate_layers, export_bundle, measure_speed, read_set
from bertscore_onnx import __version__
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.store import MANIFEST, Precision, file_digest
from bertscore_onnx.errors import BertScoreOnnxError, ExportError, one_line
from bertscore_onnx.files import replace_whole
from bertscore_onnx.matching.variants import PRESETS
from harness.models import Models, exporter_digest
from harness.processes import ROOT, Child, ChildError, call_in_child
from harness.results import BEGIN, END, machine_facts

SETS = {
    "WMT16": (
        "WMT16 into English, segment-level direct assessment",
        "metrics task of WMT16 (Bojar et al., 2016)",
        None,
    ),
    "WMT23": (
        "WMT23 Hebrew to English, MQM",
        "metrics task of WMT23 (Freitag et al., 2023), reference refB",
        Part("he-en", "mqm", "refB"),
    ),
}
"""The sets without `--set`: environment variables with their paths; titles, origins, and the part in use."""

MINILM = "all-MiniLM-L6-v2"
MODELS = (
    MINILM,
    *("roberta-base", "roberta-large", "microsoft/deberta-large-mnli", "microsoft/deberta-xlarge-mnli"),
    *("microsoft/deberta-v3-large", "microsoft/mpnet-base", "facebook/data2vec-text-base"),
    *("answerdotai/ModernBERT-base", "answerdotai/ModernBERT-large", "Alibaba-NLP/gte-modernbert-base"),
    *(
        "bert-base-multilingual-cased",
        "xlm-roberta-base",
        "xlm-roberta-large",
        "google/rembert",
        "jhu-clsp/mmBERT-base",
    ),
    *("sentence-transformers/LaBSE", "BAAI/bge-m3", "intfloat/multilingual-e5-large", "EuroBERT/EuroBERT-210m"),
    *("ibm-granite/granite-embedding-278m-multilingual", "google/embeddinggemma-300m", "Qwen/Qwen3-Embedding-0.6B"),
)
"""The models without `--model`: those that people ask for."""

ALL_MODELS = "all models"
LIMIT = 24 * 3600.0


@dataclass(frozen=True)
class Model:
    """A model, and where it comes from: a name of the hub, a folder of `save_pretrained`, or a bundle."""

    name: str
    source: str

    @property
    def is_bundle(self) -> bool:
        """Whether the source is a bundle."""
        return (Path(self.source) / MANIFEST).is_file()

    @property
    def precision_of_bundle(self) -> Precision | None:
        """The precision of a bundle; None of anything else, and of a damaged bundle."""
        with suppress(BertScoreOnnxError):
            return read_manifest(Path(self.source)).precision if self.is_bundle else None
        return None

    @property
    def digest(self) -> str:
        """The SHA-256 of its files; of its name if it comes from a hub."""
        files = [file for file in sorted(Path(self.source).rglob("*")) if file.is_file()]
        parts = [file_digest(file) for file in files] or [self.source]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class Variant(NamedTuple):
    """A precision, and how tokens are matched."""

    precision: Precision
    preset: str


class Run:
    """The files of results in a folder, and the process that exports."""

    def __init__(self, output: Path, device: str, segments: int | None) -> None:
        """Take the folder, which exists, and the settings of all measurements."""
        self._output, self._device, self._segments = output, device, segments
        self._machine = {**machine_facts(), "device": device}
        self._exporter: Child | None = None
        self._failed: dict[tuple[str, str, int | None], str] = {}  # the reasons of exports, which are not repeated
        self.counts = {"measured": 0, "kept": 0, "not measured": 0}

    def close(self) -> None:
        """Stop the process that exports."""
        if self._exporter:
            self._exporter.close()
            self._exporter = None

    def note_set(self, judgements: JudgementSet) -> None:
        """Store the reason why a set cannot be used; delete an earlier one."""
        self._file(ALL_MODELS, judgements.title).unlink(missing_ok=True)
        if judgements.reason:
            self._store(Record(judgements.title, ALL_MODELS, reason=judgements.reason))

    def measure(self, model: Model, variants: Sequence[Variant], sets: Sequence[JudgementSet]) -> None:
        """Measure a model on every set, unless the results are there."""
        digest = model.digest
        with TemporaryDirectory(prefix=".bundles-", dir=self._output) as folder:
            for precision, preset in variants:
                for judgements in sets:
                    wanted = Record(judgements.title, model.name, precision, preset, self._key(digest, judgements))
                    found = read_record(self._file_of(wanted))
                    if found and found.key == wanted.key and not found.reason:
                        self._report("kept", wanted)
                        continue
                    try:
                        self._store(self._measured(model, wanted, judgements, Path(folder)))
                    except (ChildError, BertScoreOnnxError) as error:
                        reason = _reason(error).replace(repr(model.source), "the model")
                        reason = reason.replace(model.source, model.name).replace(folder, "the bundle")
                        if found and not found.reason:
                            self._report("kept", wanted, f"it cannot be measured again: {reason}")
                        else:
                            self._store(msgspec.structs.replace(wanted, reason=reason))

    def _measured(self, model: Model, wanted: Record, judgements: JudgementSet, folder: Path) -> Record:
        bundle = self._bundle(model, wanted.precision, None, folder)
        self._log(f"{title_of(wanted)} ...")
        found: Record = call_in_child(correlate_layers, bundle, judgements, wanted.preset, self._device, limit=LIMIT)
        layer = found.best[MEAN].layer
        cut = bundle if model.is_bundle else self._bundle(model, wanted.precision, layer, folder)
        subject = (cut, layer, wanted.preset, judgements.sample(wanted.preset), self._device)
        speed = call_in_child(measure_speed, *subject, limit=LIMIT)
        return msgspec.structs.replace(
            found,
            **{name: getattr(wanted, name) for name in ("model", "precision", "preset", "key")},
            made=time.strftime("%Y-%m-%d %H:%M"),
            machine=self._machine,
            speed=speed,
        )

    def _bundle(self, model: Model, precision: str, num_layers: int | None, folder: Path) -> Path:
        """Return a bundle at a layer, or of all layers for None; it is exported unless the folder has it."""
        if model.is_bundle:
            if not read_manifest(Path(model.source)).all_layers:
                raise ExportError("This bundle holds one layer. Export it with --all-layers.")
            return Path(model.source).absolute()
        output = folder / f"{precision}-{'all' if num_layers is None else num_layers}"
        if output.is_dir():
            return output
        export = model.source, precision, num_layers
        if export in self._failed:
            raise ExportError(self._failed[export])
        self._exporter = self._exporter or Child(hides_stderr=True)
        offline = os.environ.get("HF_HUB_OFFLINE", "0")
        try:
            about = (model.source, model.name, precision, num_layers, output, offline)
            reason = self._exporter.do(export_bundle, *about, limit=LIMIT)
        except BaseException:
            self.close()
            raise
        if reason:
            self._failed[export] = reason
            raise ExportError(reason)
        return output

    def _key(self, digest: str, judgements: JudgementSet) -> dict[str, str]:
        """Return what a result depends on, beside its name."""
        settings = {"segments": str(self._segments or "all"), "device": self._device}
        versions = {"bertscore-onnx": __version__, "exporter": exporter_digest()}
        return {"model": digest, "judgements": judgements.digest, **settings, **versions}

    def _file_of(self, record: Record) -> Path:
        preset = "" if record.preset == PLAIN else record.preset
        return self._file(record.model, record.precision, preset, record.judgements)

    def _file(self, *names: str) -> Path:
        return self._output / f"{'--'.join(filter(None, map(slug, names)))}.json"

    def _store(self, record: Record) -> None:
        replace_whole(self._file_of(record), msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
        self._report("not measured" if record.reason else "measured", record, record.reason)

    def _report(self, outcome: str, record: Record, reason: str = "") -> None:
        self.counts[outcome] += 1
        self._log(f"{title_of(record)}: {outcome}{reason and f': {reason}'}")

    def _log(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def title_of(record: Record) -> str:
    """Return what a record is about, in one line."""
    preset = "" if record.preset == PLAIN else record.preset
    return ", ".join(filter(None, (record.model, record.precision, preset, record.judgements)))


def slug(name: str) -> str:
    """Return a name that a file can have."""
    return re.sub(r"[^\w.]+", "-", name).strip("-.")[:60]


def _reason(error: Exception) -> str:
    """Return the message of an error in one line, without the name of its class and the address of a hub."""
    message = error.reason if isinstance(error, ChildError) else one_line(error)
    return re.sub(r"^[\w.]+(Error|Exception): ", "", re.sub(r"'https?://\S+'", "the hub", message))[:500]


def read_record(file: Path) -> Record | None:
    """Read a result; None if there is none, or it is damaged or of another version."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(file.read_bytes(), type=Record)
    return None


def read_records(output: Path) -> Iterator[Record]:
    """Yield the results in a folder."""
    return (record for file in sorted(output.glob("*.json")) if (record := read_record(file)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, write the page, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.page.is_file() or not all(mark in options.page.read_text(encoding="utf-8") for mark in (BEGIN, END)):
        parser.error(f"{options.page} is no page with the marks {BEGIN} and {END}, between which the tables go.")
    options.output.mkdir(parents=True, exist_ok=True)
    if not options.page_only:
        run = Run(options.output, options.device, options.segments)
        try:
            _measure_all(run, options)
        except KeyboardInterrupt:
            print(f"Stopped after {_summary(run)}. The same command goes on from here.", file=sys.stderr)
            return 130
        finally:
            run.close()
        print(f"{_summary(run)}. The results are in {options.output}.")
    records = [*read_records(options.output)]
    if all(record.reason for record in records):
        print(f"Nothing is measured, so {options.page} stays as it is.", file=sys.stderr)
        return 1
    write_page(options.page, records)
    print(f"{options.page} written.")
    return 0


def _summary(run: Run) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in run.counts.items())


def _measure_all(run: Run, options: argparse.Namespace) -> None:
    given: Iterable[tuple[str, str, str, Part | None]] = options.set or _sets_of_environment()
    sets = [read_set(title, origin, path, options.segments, part) for title, origin, path, part in given]
    for judgements in sets:
        run.note_set(judgements)
    usable = [judgements for judgements in sets if not judgements.reason]
    plain = [Variant(precision, PLAIN) for precision in options.precision]
    variants = plain + [Variant(options.precision[0], preset) for preset in options.preset if preset != PLAIN]
    for model in options.model or [_known(name, options.output) for name in MODELS]:
        own = [each._replace(precision=model.precision_of_bundle or each.precision) for each in variants]
        run.measure(model, [*dict.fromkeys(own)], usable)


def _sets_of_environment() -> Iterator[tuple[str, str, str, Part | None]]:
    for variable, (title, origin, part) in SETS.items():
        yield title, origin, os.environ.get(variable) or f"${variable}", part


def _known(name: str, output: Path) -> Model:
    """Return a model of the list; MiniLM is that of its package if that is installed."""
    if name == MINILM:
        with suppress(SystemExit):
            return Model(name, str(Models(output, [], {}).minilm.folder))
        return Model(name, f"sentence-transformers/{name}")
    return Model(name, name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.correlations", description=__doc__)
    parser.add_argument(
        "--model",
        type=_model,
        action="append",
        metavar="[NAME=]MODEL",
        help="a model's name, a folder of `save_pretrained`, or a bundle of all layers; may be given several times "
        "(default: a list of models that people ask for)",
    )
    parser.add_argument(
        "--set",
        type=_titled_path,
        action="append",
        metavar="TITLE=PATH",
        help="human judgements: a folder in the layout of mt-metrics-eval, or a table as `meta` reads it; may be given "
        "several times (default: the paths in $WMT16 and $WMT23)",
    )
    precisions = get_args(Precision)
    parser.add_argument(
        "--precision", nargs="+", choices=precisions, default=["fp32"], metavar="P", help="default: fp32"
    )
    parser.add_argument(
        "--preset", nargs="+", choices=PRESETS, default=[], metavar="NAME", help="also with these variants of matching"
    )
    parser.add_argument(
        "--segments", type=_count, metavar="N", help="about N segments of each language pair, in whole documents"
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
        "--page", type=Path, default=ROOT / "docs" / "which_encoder.md", metavar="FILE", help="the page to write"
    )
    parser.add_argument("--page-only", action="store_true", help="write the page from the results, and measure nothing")
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


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
