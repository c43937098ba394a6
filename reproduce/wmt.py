"""Writes judgements that WMT publishes as a table for `bertscore-onnx meta`.

    python -m reproduce.wmt wmt23 > judgements.tsv
    bertscore-onnx meta judgements.tsv --score COMET BLEU
    python -m reproduce.wmt wmt25-genmt-humeval.jsonl --language-pair en-cs_CZ > judgements.tsv
    bertscore-onnx meta judgements.tsv --model roberta-large --metric chrf

A folder is a set of the metrics tasks in the layout of mt-metrics-eval (`reproduce.eval_set`). A
row has the scores of a segment by the metrics that have such. Texts are left out if a system has
none.

WMT25 (github.com/wmt-conference/wmt25-general-mt): JSON lines, one for each segment:

    {"doc_id": "LP_#_DOMAIN_#_DOCUMENT_#_SEGMENT", "tgt_text": {SYSTEM: TEXT, "refA": TEXT},
     "scores": {SYSTEM: [{"score": 90, "annotator": NAME}]}, "metrics": {SYSTEM: {METRIC: SCORE}}}

A score is called `human` in the file of control segments. An earlier edition has `{"human1": 90,
METRIC: SCORE}` for each system, whose numbers are those of rounds of annotation.

WMT26 (github.com/wmt-conference/wmt26-general-mt): the annotations of contrastive ESA that Pearmut
writes, an object of campaigns, or JSON lines of one campaign. A line is a screen of one annotator
with segments of a document:

    {"SOURCE---TARGET": [{"user_id": NAME, "annotation": [{SYSTEM: {"score": 90}}],
                          "item": [{"item_id": "DOMAIN_###_DOCUMENT_###_SEGMENT",
                                    "tgt": {SYSTEM: TEXT}}]}]}

A row is the mean of an annotator's scores of an output; repeated lines and screens change nothing.
Annotators called `unknown` are taken for several people. The reference, a human translation among
the outputs, is no system; segments without it are left out.
"""

import argparse
import csv
import gzip
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from bertscore_onnx.errors import InputError
from reproduce.eval_set import EvalSet, golds, read_eval_set
from reproduce.tables import Floats

HUMAN = re.compile(
    r"(human|translator|ref(erence)?)([-_.]?([a-z0-9]|pe)| \(.+\))?(\.\d+)?", re.IGNORECASE
)
"""The names of human translations: refA, refPE, translator-A.0, Human (postediting)."""
UNKNOWN = "unknown"
WITHDRAWN = "__RESET__"
"""In place of an annotation, it withdraws all earlier ones of the annotator."""


@dataclass
class Segment:
    """The outputs of a segment, and their scores by annotators and by metrics."""

    document: str
    texts: dict[str, str] = field(default_factory=dict)
    judgements: dict[tuple[str, str], list[float]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By system and annotator."""
    metrics: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))

    def judge(self, system: str, annotator: str, score: float | None) -> None:
        """Add a score, unless its annotator gave it before."""
        scores = self.judgements[system, annotator]
        if score is not None and (annotator == UNKNOWN or score not in scores):
            scores.append(float(score))


Segments = dict[str, dict[str, Segment]]
"""By language pair and name."""


def read(path: Path) -> Segments:
    """Return the segments of a file, which may be compressed with gzip."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8-sig")
    try:
        records = [json.loads(text, object_pairs_hook=without_repetitions)]
    except json.JSONDecodeError:
        records = [json.loads(line) for line in text.splitlines() if line.strip()]
    segments: Segments = defaultdict(dict)
    if "doc_id" in records[0]:
        for record in records:
            language_pair = record["doc_id"].partition("_#_")[0]
            segments[language_pair].setdefault(record["doc_id"], segment_of(record))
    elif "user_id" in records[0]:
        add_screens(segments[path.name.partition(".")[0]], records)
    else:
        for name, screens in records[0].items():
            add_screens(segments[re.sub(r" v\d+$", "", name)], screens)
    return segments


def without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; exit if a name occurs twice, such as a language pair, of which json
    would keep the last.
    """
    names = [name for name, _ in pairs]
    if repeated := [name for name in names if names.count(name) > 1]:
        sys.exit(f"An object has {repeated[0]!r} twice; expected each name once.")
    return dict(pairs)


def segment_of(record: dict[str, Any]) -> Segment:
    """Return a segment of WMT25."""
    segment = Segment(record["doc_id"].rpartition("_#_")[0], record["tgt_text"])
    for system, scores in record.get("metrics", {}).items():
        segment.metrics[system].update(
            (name, score) for name, score in scores.items() if score is not None
        )
    for system, entry in record["scores"].items():
        for each in entry if isinstance(entry, list) else ():
            segment.judge(
                system, each.get("annotator", UNKNOWN), each.get("score", each.get("human"))
            )
        for key, value in entry.items() if isinstance(entry, dict) else ():
            if re.fullmatch(r"human\d*", key):
                segment.judge(system, key, value)
            elif value is not None and not re.fullmatch(r"(annotator|errors|times)\d*", key):
                segment.metrics[system][key] = value
    return segment


def add_screens(segments: dict[str, Segment], screens: Iterable[dict[str, Any]]) -> None:
    """Add the screens of a campaign of WMT26, without those that were withdrawn, tutorials and
    checks of attention.
    """
    by_user: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for screen in screens:
        if screen["annotation"] == WITHDRAWN:
            by_user[screen["user_id"]].clear()
        elif screen["annotation"] is not None:
            by_user[screen["user_id"]].append(screen)
    for user, kept in by_user.items():
        for item, scores in (
            pair for one in kept for pair in zip(one["item"], one["annotation"], strict=True)
        ):
            name = item.get("item_id", "")
            if not name or name.startswith("attention_check_") or "_#_tutorial_#_" in name:
                continue
            segment = segments.setdefault(name, Segment(name.rpartition("_###_")[0] or name))
            segment.texts |= item["tgt"]
            for system, score in (scores or {}).items():
                if system in item["tgt"]:
                    segment.judge(system, user, score.get("score"))


def read_sets(options: argparse.Namespace) -> Iterator[EvalSet]:
    """Yield the language pairs of a folder, or those that are named, with all metrics and texts."""
    by_pair = golds(options.file)
    with_gold = [name for name in by_pair if options.gold in (None, *by_pair[name])]
    for language_pair in options.language_pair or with_gold or by_pair:
        yield read_eval_set(
            options.file,
            language_pair,
            gold=options.gold,
            reference=options.reference,
            with_texts=None,
        )


def rows_of_set(task: EvalSet) -> Iterator[dict[str, Any]]:
    """Yield a row for each output, judged or not."""
    if np.isnan(task.human_segment).all():
        sys.exit(
            f"{task.language_pair} has {task.gold} scores of whole systems alone, which are no "
            "table of segments. `reproduce.perm_both` correlates systems."
        )
    sides = {"human": task.human_segment}
    for name, scores in task.metrics.items():
        if scores.segment is not None:
            sides[name] = scores.segment
    cells = {name: written(scores) for name, scores in sides.items()}
    candidates = task.candidates or ()
    has_texts = bool(candidates) and None not in chain.from_iterable(candidates)
    for system, name in enumerate(task.systems):
        for segment, number in enumerate(task.segments):
            row = {"lang_pair": task.language_pair, "system": name, "segment": number}
            if task.documents:
                row["document"] = task.documents[segment]
            row |= {side: of_side[system][segment] for side, of_side in cells.items()}
            if has_texts:
                row["candidate"] = candidates[system][segment] or ""
                for position, text in enumerate(task.references[system][segment], 1):
                    row[f"reference{position}"] = text
            yield row


def written(scores: Floats) -> list[list[str]]:
    """Return scores with all their digits, by system and segment; an empty text for NaN."""
    texts = []
    for row in scores.tolist():
        texts.append(["" if score != score else repr(score) for score in row])
    return texts


def rows(
    language_pair: str, segments: dict[str, Segment], reference: str | None
) -> Iterator[dict[str, Any]]:
    """Yield a row for each judgement of an output."""
    names = sorted(
        {
            system
            for segment in segments.values()
            for system in segment.texts
            if HUMAN.fullmatch(system)
        }
    )
    if reference is None and len(names) > 1:
        sys.exit(
            f"{language_pair} has the references {', '.join(names)}. Name one with --reference."
        )
    reference = reference or next(iter(names), None)
    for name, segment in segments.items():
        if reference is not None and reference not in segment.texts:
            continue
        for (system, annotator), scores in segment.judgements.items():
            if system == reference:
                continue
            is_unknown = annotator == UNKNOWN
            for number, score in enumerate(
                scores if is_unknown else [fmean(scores)] if scores else [], 1
            ):
                yield {
                    "lang_pair": language_pair,
                    "system": system,
                    "segment": name,
                    "document": segment.document,
                    "annotator": f"{UNKNOWN}-{number}" if is_unknown else annotator,
                    "human": score,
                    "candidate": segment.texts.get(system, ""),
                    "reference": segment.texts.get(reference or "", ""),
                } | segment.metrics.get(system, {})


def main() -> None:
    """Write the table to standard output."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--language-pair", nargs="+", help="default: all")
    parser.add_argument("--reference", help="default: the only human translation")
    parser.add_argument("--gold", help="of a folder: the judgements, such as mqm")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    if options.file.is_dir():
        try:
            tasks = list(read_sets(options))
        except InputError as error:
            sys.exit(str(error))
        for task in tasks:
            found.extend(rows_of_set(task))
    else:
        for language_pair, segments in read(options.file).items():
            if language_pair in (options.language_pair or [language_pair]):
                found.extend(rows(language_pair, segments, options.reference))
    columns = [*dict.fromkeys(column for row in found for column in row)]
    writer = csv.DictWriter(sys.stdout, columns, delimiter="\t", restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)


if __name__ == "__main__":
    main()
