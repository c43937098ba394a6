import csv
import gzip
import json

import pytest

from reproduce import wmt
from tests.reproduce.wmt_files import (
    DOCUMENTS,
    SEGMENTS,
    SYSTEMS,
    human,
    metric,
    scores,
    text,
    wmt25_lines,
    wmt26_screens,
    write_lines,
)
from tests.support.eval_sets import HUMAN, write, write_eval_set


@pytest.fixture
def rows_of(capsys, monkeypatch):
    def rows_of(path, *options):
        monkeypatch.setattr("sys.argv", ["wmt", str(path), *options])
        wmt.main()
        return [*csv.DictReader(capsys.readouterr().out.splitlines(), delimiter="\t")]

    return rows_of


def expected():
    """Return the judgements of all outputs but the reference, with their texts, by segment, system
    and annotator.
    """
    return {
        (position, system, annotator): (score, text(system, position), text("refA", position))
        for position in range(len(SEGMENTS))
        for system in SYSTEMS[:3]
        for annotator, score in scores(system, position).items()
    }


def judgements(rows):
    names = [*dict.fromkeys(row["segment"] for row in sorted(rows, key=lambda row: row["segment"]))]
    return {
        (names.index(row["segment"]), row["system"], row["annotator"]): (
            float(row["human"]),
            row["candidate"],
            row["reference"],
        )
        for row in rows
    }


@pytest.mark.parametrize("edition", ["list", "rounds", "control"])
def test_lines_of_wmt25_are_a_row_for_each_judgement(rows_of, tmp_path, edition):
    lines = wmt25_lines(edition)
    # a line that is repeated
    rows = rows_of(write_lines(tmp_path / "humeval.jsonl", [*lines, lines[0]]))
    assert judgements(rows) == expected()
    assert {row["lang_pair"] for row in rows} == {"en-xx_YY"}
    assert len({row["document"] for row in rows}) == len(DOCUMENTS)
    if edition != "control":
        scores_of_metric = {(row["segment"], row["system"]): float(row["M"]) for row in rows}
        assert sorted(scores_of_metric.values()) == pytest.approx(
            sorted(
                metric(system, at) for at, system in {(at, system) for at, system, _ in expected()}
            )
        )


def test_screens_of_wmt26_give_what_lines_give(rows_of, tmp_path):
    path = tmp_path / "annotations.json.gz"
    path.write_bytes(
        gzip.compress(json.dumps({"eng_Latn---xxx_Latn v2": wmt26_screens()}).encode())
    )
    rows = rows_of(path)
    assert judgements(rows) == expected()
    assert {row["lang_pair"] for row in rows} == {"eng_Latn---xxx_Latn"}
    campaign = write_lines(tmp_path / "campaign.jsonl", wmt26_screens())
    assert judgements(rows_of(campaign)) == expected()


def test_a_language_pair_that_an_object_has_twice_is_refused(rows_of, tmp_path):
    path, screens = tmp_path / "annotations.json", json.dumps(wmt26_screens())
    path.write_text(f'{{"eng---xxx": {screens}, "eng---xxx": {screens}}}', encoding="utf-8")
    with pytest.raises(SystemExit, match="'eng---xxx' twice"):
        rows_of(path)


def test_what_was_withdrawn_or_practised_does_not_count(rows_of, tmp_path):
    first, *others = wmt26_screens()
    withdrawn = {"user_id": first["user_id"], "annotation": "__RESET__"}
    tutorial = {
        **first,
        "item": [{**one, "item_id": f"{one['item_id']}_#_tutorial_#_1"} for one in first["item"]],
    }
    rows = rows_of(
        write_lines(tmp_path / "screens.jsonl", [first, withdrawn, first, tutorial, *others])
    )
    assert judgements(rows) == expected()


def test_an_annotator_with_several_scores_is_one_and_unknown_ones_are_several(rows_of, tmp_path):
    [line] = wmt25_lines()[:1]
    several = [
        {"score": 10, "annotator": "a"},
        {"score": 30, "annotator": "a"},
        {"score": 50},
        {"score": 50},
    ]
    line["scores"] = {"MT-1": several}
    rows = rows_of(write_lines(tmp_path / "humeval.jsonl", [line]))
    assert {row["annotator"]: float(row["human"]) for row in rows} == {
        "a": 20,
        "unknown-1": 50,
        "unknown-2": 50,
    }


def test_the_reference_may_be_named_and_has_to_be_if_there_are_several(rows_of, tmp_path):
    lines = wmt25_lines()
    path = write_lines(tmp_path / "humeval.jsonl", lines)
    assert {row["system"] for row in rows_of(path, "--reference", "MT-3")} == {
        "MT-1",
        "MT 2",
        "refA",
    }
    for line in lines:
        line["tgt_text"][human("refA")] = "another"
    with pytest.raises(SystemExit, match="has the references"):
        rows_of(write_lines(path, lines))


def test_a_set_of_the_metrics_tasks_is_a_row_for_each_output(rows_of, tmp_path):
    folder = write_eval_set(tmp_path)
    write(folder, "documents/he-en.docs", "news\td1\n" * 2 + "news\td2\n" * 3)
    rows = rows_of(folder, "--gold", "mqm", "--reference", "refB")
    assert len(rows) == 5 * len(HUMAN)
    expected = {
        "lang_pair": "he-en",
        "system": "C",
        "segment": "3",
        "document": "news\td2",
        "human": "-5.0",
        "BLEU": "21.0",
        "chrF": "0.3",
        "candidate": "a cat number 3 sat still still on it",
        "reference1": "the cat number 3 sat on the mat of refB",
    }
    assert rows[12] == expected
    assert rows[13]["human"] == ""  # nobody judged it
    (folder / "system-outputs/he-en/A.txt").unlink()
    assert "candidate" not in rows_of(folder)[12]


def test_human_scores_of_whole_systems_alone_are_no_table(rows_of, tmp_path):
    folder = write_eval_set(tmp_path)
    (folder / "human-scores/he-en.mqm.seg.score").unlink()
    with pytest.raises(SystemExit, match="of whole systems alone"):
        rows_of(folder)
    with pytest.raises(SystemExit, match="no gold of he-en called 'da'"):
        rows_of(folder, "--gold", "da")
