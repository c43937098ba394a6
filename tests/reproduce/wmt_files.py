"""Small files of judgements in the layouts of WMT25 and WMT26, from one set of invented
judgements.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCUMENTS = {"d1": 2, "d2": 3}
"""The number of segments of each document."""
SEGMENTS = [(document, number) for document, count in DOCUMENTS.items() for number in range(count)]
SYSTEMS = ("MT-1", "MT 2", "MT-3", "refA")
ANNOTATORS = ("human1", "human2")


def judgement(system: str, position: int, annotator: str) -> float | None:
    """Return an invented score: the second annotator judged fewer outputs, and nobody all segments
    of all systems.
    """
    at = SYSTEMS.index(system)
    if (annotator == "human2" and (position + at) % 2) or (system == "MT-3" and position == 4):
        return None
    return (37 * position + 53 * at + 11 * ANNOTATORS.index(annotator)) % 101


def text(system: str, position: int) -> str:
    return (
        f"the {'black cat' if system == 'refA' else system} sat {'very ' * (position % 3)}still "
        f"on mat {position}"
    )


def metric(system: str, position: int) -> float:
    return ((29 * position + 17 * SYSTEMS.index(system)) % 23) / 23


def scores(system: str, position: int) -> dict[str, float]:
    found = {name: judgement(system, position, name) for name in ANNOTATORS}
    return {name: score for name, score in found.items() if score is not None}


def wmt25_lines(edition: str = "list", language_pair: str = "en-xx_YY") -> list[dict[str, Any]]:
    """Return the lines of a file of an edition: `list`, `rounds` (the earlier one) or `control`."""
    return [
        {
            "scores": {
                system: _entry(edition, scores(system, position), metric(system, position))
                for system in SYSTEMS
            },
            "src_text": f"source {position}",
            "tgt_text": {name: text(name, position) for name in (*SYSTEMS, "unjudged")},
            "doc_id": f"{language_pair}_#_news_#_{document}_#_{number}",
            **(
                {"metrics": {s: {"M": metric(s, position)} for s in SYSTEMS}}
                if edition == "list"
                else {}
            ),
        }
        for position, (document, number) in enumerate(SEGMENTS)
    ]


def _entry(edition: str, found: Mapping[str, float], of_metric: float) -> Any:
    errors = [{"start_i": 1, "end_i": 3, "severity": "minor"}]
    if edition != "rounds":
        key = "human" if edition == "control" else "score"
        return [
            {key: score, "annotator": name, "errors": errors, "times": [1.0, 2.0]}
            for name, score in found.items()
        ]
    return {"M": of_metric} | {
        key: value
        for name, score in found.items()
        for key, value in (
            (name, score),
            (f"annotator{name[-1]}", f"enxx{name[-1]}"),
            (f"errors{name[-1]}", errors),
            (f"times{name[-1]}", [1.0, 2.0]),
        )
    }


def wmt26_screens() -> list[dict[str, Any]]:
    """Return the screens of a campaign: each annotator saw each document, with the outputs that
    this one judged.
    """
    screens = []
    for name in ANNOTATORS:
        for document, count in DOCUMENTS.items():
            items, annotation = [], []
            for number in range(count):
                position = SEGMENTS.index((document, number))
                found = {s: judgement(s, position, name) for s in SYSTEMS}
                items.append(
                    {
                        "item_id": f"news_###_{document}_###_{number}",
                        "src": f"source {position}",
                        "tgt": {human(s): text(s, position) for s in SYSTEMS},
                    }
                )
                annotation.append(
                    {
                        human(s): {"score": score, "error_spans": [], "textfield": None}
                        for s, score in found.items()
                        if score is not None
                    }
                )
            screens.append(
                {
                    "annotation": annotation,
                    "actions": [],
                    "item": items,
                    "user_id": name,
                    "item_i": 0,
                }
            )
    return screens


def human(system: str) -> str:
    """Return the name of a system in WMT26, where the human translation has another."""
    return "Human (postediting)" if system == "refA" else system


def write_lines(path: Path, records: Sequence[Any]) -> Path:
    path.write_text(
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records),
        encoding="utf-8",
    )
    return path
