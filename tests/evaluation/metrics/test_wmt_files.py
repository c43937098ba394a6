"""Files of judgements of WMT25 and WMT26, read as an EvalSet."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics import wmt_files
from bertscore_onnx_evaluation.metrics.eval_set import EvalSet, read_eval_set
from bertscore_onnx_evaluation.metrics.judged_systems import human_by_name
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from bertscore_onnx_evaluation.metrics.wmt_files import annotator_scores, is_wmt_file, open_eval_set
from tests.support.eval_sets import write_eval_set
from tests.support.wmt_files import (
    ANNOTATORS,
    SEGMENTS,
    SYSTEMS,
    human,
    judgement,
    metric,
    scores,
    text,
    wmt25_lines,
    wmt26_screens,
    write_lines,
)

MACHINES = sorted(SYSTEMS[:3])
EDITIONS = ("list", "rounds", "control")


def expected(of_output):
    """Return a value of each output of the machines, (systems, segments), NaN for None."""
    rows = [[of_output(system, position) for position in range(len(SEGMENTS))] for system in MACHINES]
    return np.array(rows, dtype=np.float64)


def mean(system, position):
    found = scores(system, position).values()
    return sum(found) / len(found) if found else None


@pytest.fixture
def lines(tmp_path):
    return write_lines(tmp_path / "humeval.jsonl", wmt25_lines())


@pytest.fixture
def screens(tmp_path):
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps({"eng_Latn---xxx_Latn v3": wmt26_screens(), "ces_Latn---deu_Latn": []}))
    return path


@pytest.mark.parametrize("edition", EDITIONS)
def test_each_output_has_the_mean_of_its_annotators(tmp_path, edition):
    judged = read_eval_set(
        open_eval_set(write_lines(tmp_path / "a.jsonl", wmt25_lines(edition))), "en-xx_YY", with_texts=True
    )
    assert judged.systems == tuple(MACHINES)
    assert judged.segments == tuple(f"en-xx_YY_#_news_#_{document}_#_{number}" for document, number in SEGMENTS)
    assert judged.documents == tuple(f"en-xx_YY_#_news_#_{document}" for document, _ in SEGMENTS)
    np.testing.assert_array_equal(judged.human_segment, expected(mean))
    np.testing.assert_allclose(judged.human_system, np.nanmean(expected(mean), axis=1), rtol=1e-15)
    assert (judged.gold, judged.reference) == ("mean of 2 annotators", "refA")
    assert judged.candidates == tuple(
        tuple(text(system, position) if scores(system, position) else None for position in range(len(SEGMENTS)))
        for system in MACHINES
    )
    assert judged.references == tuple(
        tuple((text("refA", position),) if scores(system, position) else () for position in range(len(SEGMENTS)))
        for system in MACHINES
    )


@pytest.mark.parametrize("edition", ["list", "rounds"])
def test_metrics_of_the_file_are_read_where_people_judged(tmp_path, edition):
    judged = read_eval_set(open_eval_set(write_lines(tmp_path / "a.jsonl", wmt25_lines(edition))), "en-xx_YY")
    wanted = expected(lambda system, position: metric(system, position) if scores(system, position) else None)
    np.testing.assert_array_equal(judged.metrics["M"].segment, wanted)
    np.testing.assert_allclose(judged.metrics["M"].system, np.nanmean(wanted, axis=1), rtol=1e-15)


def test_screens_give_what_lines_give(screens, lines):
    of_screens = read_eval_set(open_eval_set(screens), "eng_Latn---xxx_Latn", with_texts=True)
    of_lines = read_eval_set(open_eval_set(lines), "en-xx_YY", with_texts=True)
    assert of_screens.reference == "Human (postediting)"
    assert of_screens.documents == tuple(f"news_###_{document}" for document, _ in SEGMENTS)
    np.testing.assert_array_equal(of_screens.human_segment, of_lines.human_segment)
    for name in ("systems", "candidates", "references"):
        assert getattr(of_screens, name) == getattr(of_lines, name)


@pytest.mark.parametrize("shape", ["indented", "lines", "gzip", "shuffled", "byte order mark"])
def test_the_same_screens_in_another_shape_give_the_same(tmp_path, screens, shape):
    wanted = read_eval_set(open_eval_set(screens), "eng_Latn---xxx_Latn", with_texts=True)
    shuffled = [wmt26_screens()[at] for at in (2, 0, 3, 1)]
    content = json.dumps({"eng_Latn---xxx_Latn": wmt26_screens()}, indent=2)
    if shape == "indented":
        screens.write_text(content)
    elif shape == "shuffled":
        screens.write_text(json.dumps({"eng_Latn---xxx_Latn": shuffled}))
    elif shape == "byte order mark":
        screens.write_text("\ufeff" + content, encoding="utf-8")
    elif shape == "lines":
        screens = write_lines(tmp_path / "eng_Latn---xxx_Latn.jsonl", shuffled)
    else:
        screens = tmp_path / "annotations.json.gz"
        screens.write_bytes(gzip.compress(content.encode()))
    judged = read_eval_set(open_eval_set(screens), "eng_Latn---xxx_Latn", with_texts=True)
    np.testing.assert_array_equal(judged.human_segment, wanted.human_segment)
    for name in ("systems", "segments", "documents", "candidates", "references", "gold"):
        assert getattr(judged, name) == getattr(wanted, name)


def test_a_byte_order_mark_is_dropped(tmp_path, lines):
    marked = tmp_path / "marked.jsonl"
    marked.write_text("\ufeff" + lines.read_text(encoding="utf-8"), encoding="utf-8")
    assert is_wmt_file(marked)
    one, other = (read_eval_set(open_eval_set(path), "en-xx_YY", with_texts=True) for path in (lines, marked))
    np.testing.assert_array_equal(one.human_segment, other.human_segment)
    assert one.candidates == other.candidates


LINES = [json.dumps(line) for line in wmt25_lines()]
SCREENS = [json.dumps(screen) for screen in wmt26_screens()]
CAMPAIGN = json.dumps({"eng_Latn---xxx_Latn": wmt26_screens()})
NAN = ('"score": ', '"score": NaN, "was": ')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([LINES[0].replace(*NAN, 1), *LINES[1:]], "line 1: the line is malformed from byte .* in a file of WMT"),
        ([LINES[0][:200], *LINES[1:]], "line 1: the line ends too early, in a file of WMT"),
        ([SCREENS[0].replace(*NAN, 1), *SCREENS[1:]], "line 1: the line is malformed from byte .* in a file of WMT"),
        ([CAMPAIGN.replace(*NAN, 1)], "line 1: the line is malformed from byte .* in a file of WMT"),
        ([json.dumps(json.loads(CAMPAIGN), indent=1)[:-9]], "is not as Pearmut writes annotations: it ends too early"),
    ],
)
def test_a_file_whose_beginning_is_damaged_is_still_of_wmt(tmp_path, content, message):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{line}\n" for line in content))
    assert is_wmt_file(path)
    with pytest.raises(InputError, match=message):
        open_eval_set(path)


def test_the_order_of_lines_does_not_matter(tmp_path, lines):
    shuffled = [wmt25_lines()[at] for at in (3, 0, 4, 2, 1)]
    for line in shuffled:
        line["scores"] = {name: entry[::-1] for name, entry in reversed(line["scores"].items())}
    one = read_eval_set(open_eval_set(lines), "en-xx_YY", with_texts=True)
    other = read_eval_set(open_eval_set(write_lines(tmp_path / "b.jsonl", shuffled)), "en-xx_YY", with_texts=True)
    np.testing.assert_array_equal(one.human_segment, other.human_segment)
    assert (one.systems, one.segments, one.candidates) == (other.systems, other.segments, other.candidates)


@pytest.mark.parametrize("source", ["lines", "screens"])
def test_the_scores_of_each_annotator_can_be_had(source, request):
    eval_set = open_eval_set(request.getfixturevalue(source))
    judged = read_eval_set(eval_set, eval_set.language_pairs[0])
    found = annotator_scores(eval_set, judged)
    assert [*found] == [*ANNOTATORS]
    for name, of_annotator in found.items():
        wanted = expected(lambda system, position, name=name: judgement(system, position, name))
        np.testing.assert_array_equal(of_annotator.segment, wanted)
        only = read_eval_set(eval_set, judged.language_pair, gold=name)
        assert only.gold == name
        np.testing.assert_array_equal(only.human_segment, wanted[:, ~np.isnan(wanted).all(axis=0)])


@pytest.mark.parametrize("source", ["lines", "screens"])
def test_an_annotator_is_held_out_from_the_human_scores(source, request):
    eval_set = open_eval_set(request.getfixturevalue(source))
    judged = read_eval_set(eval_set, eval_set.language_pairs[0], hold_out="human2", with_texts=None)
    wanted = {name: expected(lambda system, at, name=name: judgement(system, at, name)) for name in ANNOTATORS}
    is_judged = ~np.isnan(wanted["human1"]).all(axis=0)
    np.testing.assert_array_equal(judged.human_segment, wanted["human1"][:, is_judged])
    np.testing.assert_array_equal(judged.annotators["human-human2"].segment, wanted["human2"][:, is_judged])
    assert judged.gold == "human1"
    with pytest.raises(InputError, match=r"'human1' are the human scores already"):
        read_eval_set(eval_set, judged.language_pair, gold="human1", hold_out="human1")
    with pytest.raises(InputError, match="human3"):
        read_eval_set(eval_set, judged.language_pair, hold_out="human3")


def test_a_large_table_is_told_by_its_first_line(tmp_path, monkeypatch):
    monkeypatch.setattr(wmt_files, "MAX_BYTES", 100)
    rows = [{"lang_pair": "de-en", "system": "a", "segment": number, "human": 1} for number in range(20)]
    assert not is_wmt_file(write_lines(tmp_path / "table.jsonl", rows))
    large = write_lines(tmp_path / "large.jsonl", wmt25_lines())
    assert is_wmt_file(large)
    with pytest.raises(InputError, match="more than the 100 bytes that are read"):
        open_eval_set(large)


def test_a_folder_has_no_scores_by_annotator(tmp_path):
    eval_set = open_eval_set(write_eval_set(tmp_path))
    assert type(eval_set) is EvalSet
    assert annotator_scores(eval_set, read_eval_set(eval_set, "he-en")) == {}


@pytest.mark.parametrize(("source", "name"), [("lines", "refA"), ("screens", human("refA"))])
def test_a_human_translation_that_is_no_reference_is_a_human_system(source, name, request):
    eval_set = open_eval_set(request.getfixturevalue(source))
    judged = read_eval_set(eval_set, eval_set.language_pairs[0], reference="MT-1")
    assert judged.human_systems == human_by_name([judged]) == {name}
    assert "MT-1" not in judged.systems


def test_a_file_without_references_has_none_in_use(tmp_path):
    lines = wmt25_lines()
    for line in lines:
        del line["tgt_text"]["refA"], line["scores"]["refA"]
    eval_set = open_eval_set(write_lines(tmp_path / "a.jsonl", lines))
    assert read_eval_set(eval_set, "en-xx_YY").reference == "src"
    with pytest.raises(InputError, match="there is no reference to score the outputs against"):
        read_eval_set(eval_set, "en-xx_YY", with_texts=True)


def test_segments_without_the_reference_are_left_out_of_the_texts(tmp_path, caplog):
    lines = wmt25_lines()
    del lines[1]["tgt_text"]["refA"]
    eval_set = open_eval_set(write_lines(tmp_path / "a.jsonl", lines))
    judged = read_eval_set(eval_set, "en-xx_YY", with_texts=True)
    assert judged.dropped == (lines[1]["doc_id"],)
    assert len(judged.segments) == len(SEGMENTS) - 1
    assert "segments left out, without the reference refA: 1." in caplog.text


def test_texts_are_read_without_those_that_the_file_lacks(tmp_path):
    lines = wmt25_lines()
    whole = read_eval_set(open_eval_set(write_lines(tmp_path / "a.jsonl", lines)), "en-xx_YY", with_texts=None)
    del lines[0]["tgt_text"]["MT-1"], lines[1]["tgt_text"]["refA"]
    judged = read_eval_set(open_eval_set(write_lines(tmp_path / "b.jsonl", lines)), "en-xx_YY", with_texts=None)
    row = judged.systems.index("MT-1")
    np.testing.assert_array_equal(judged.human_segment, whole.human_segment)
    assert judged.candidates[row] == (None, None, *whole.candidates[row][2:])
    assert judged.references[row] == ((), (), *whole.references[row][2:])
    [result] = meta_evaluate([judged], permutations=50).language_pairs
    assert any("4 of 14 judged outputs have no text, or no reference" in note for note in result.notes)


def test_what_annotators_withdrew_or_only_practised_does_not_count(tmp_path):
    practice = {"annotation": [{"MT-1": {"score": 3}}], "user_id": "human1"}
    item = {"tgt": {"MT-1": "x"}}
    extra = [
        {**practice, "item": [item]},
        {**practice, "item": [{**item, "item_id": "attention_check_7"}]},
        {**practice, "item": [{**item, "item_id": "x_#_tutorial_#_1"}]},
    ]
    withdrawn = [*wmt26_screens()[2:], {"annotation": "__RESET__", "user_id": "human2"}]
    for screen in withdrawn[:-1]:
        screen["annotation"] = [{name: {"score": 1} for name in scores} for scores in screen["annotation"]]
    records = [*withdrawn, *extra, *wmt26_screens(), *extra]
    one = read_eval_set(open_eval_set(write_lines(tmp_path / "a.jsonl", records)), "a")
    other = read_eval_set(open_eval_set(write_lines(tmp_path / "b.jsonl", wmt26_screens())), "b")
    assert one.segments == other.segments
    np.testing.assert_array_equal(one.human_segment, other.human_segment)


@pytest.mark.parametrize("records", [wmt25_lines(), wmt25_lines("rounds"), wmt26_screens()])
def test_what_a_file_repeats_counts_once(tmp_path, records):
    path = write_lines(tmp_path / "a.jsonl", records)
    once, [name] = open_eval_set(path), open_eval_set(path).language_pairs
    twice = open_eval_set(write_lines(path, [*records, records[0], *records]))
    one, other = read_eval_set(once, name), read_eval_set(twice, name)
    np.testing.assert_array_equal(one.human_segment, other.human_segment)
    assert (one.systems, one.segments) == (other.systems, other.segments)


@pytest.mark.parametrize("source", ["lines", "screens"])
def test_an_annotator_who_gave_several_scores_counts_once(tmp_path, caplog, source):
    given = [("human1", 0.0), ("human1", 37.0), ("human2", 48.0), ("human1", 37.0)]  # means of 18.5 and 48
    if source == "lines":
        records = wmt25_lines()
        records[1]["scores"]["MT-1"] = [{"annotator": name, "score": score} for name, score in given]
    else:
        records = wmt26_screens()
        for screen in records:
            for item, annotation in zip(screen["item"], screen["annotation"], strict=True):
                if item["item_id"].endswith("d1_###_1"):
                    annotation.pop("MT-1", None)
                    judged_item = item
        records += [
            {"user_id": name, "item": [judged_item], "annotation": [{"MT-1": {"score": score}}]}
            for name, score in given
        ]
    eval_set = open_eval_set(write_lines(tmp_path / "a.jsonl", records))
    judged = read_eval_set(eval_set, eval_set.language_pairs[0])
    assert judged.human_segment[judged.systems.index("MT-1"), 1] == (18.5 + 48) / 2
    assert "outputs that an annotator gave several scores, whose mean counts: 1." in caplog.text


def test_annotators_without_a_name_are_several(tmp_path):
    lines = wmt25_lines()
    lines[0]["scores"]["MT-1"] = [{"score": 10}, {"score": 10}, {"annotator": "unknown", "score": 40}]
    judged = read_eval_set(open_eval_set(write_lines(tmp_path / "a.jsonl", lines)), "en-xx_YY")
    assert judged.human_segment[judged.systems.index("MT-1"), 0] == 20


def test_scores_of_what_was_not_on_the_screen_are_left_out(tmp_path, caplog):
    screens = wmt26_screens()
    screens[0]["annotation"][0]["MT-9"] = {"score": 50}
    judged = read_eval_set(open_eval_set(write_lines(tmp_path / "a.jsonl", screens)), "a")
    assert judged.systems == tuple(MACHINES)
    assert "scores left out, of translations that were not on the screen: 1." in caplog.text


def test_tables_and_other_files_are_not_taken_for_files_of_wmt(tmp_path):
    assert not is_wmt_file(tmp_path)
    assert not is_wmt_file(tmp_path / "missing.jsonl")
    assert not is_wmt_file(write_lines(tmp_path / "a.jsonl", [{"system": "A", "human": 1, "references": []}] * 2))
    assert not is_wmt_file(write_lines(tmp_path / "humeval.tsv", wmt25_lines()))
    assert not is_wmt_file(write_lines(tmp_path / "b.jsonl", ["text", 3]))
    assert not is_wmt_file(write_lines(tmp_path / "array.jsonl", [wmt25_lines()]))
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"system": "A", "human": NaN, "candidate": "\\"user_id\\": 1, \\"annotation\\": 2"}\n' * 2)
    assert not is_wmt_file(rows)
    rows.write_text("".join(json.dumps(line, indent=1) for line in wmt25_lines()))
    assert not is_wmt_file(rows)
    with pytest.raises(InputError, match="holds no judgements of WMT; expected JSON lines with doc_id"):
        open_eval_set(tmp_path / "a.jsonl")


def changed(position, **values):
    lines = wmt25_lines()
    lines[position] |= values
    return lines


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (changed(2, doc_id="en-xx"), "line 3: the doc_id is 'en-xx'; expected language pair"),
        (changed(2, doc_id=wmt25_lines()[0]["doc_id"]), "line 3: the segment .* occurs a second time; .* in line 1"),
        (changed(2, doc_id=7), "line 3: `doc_id` is a whole number; expected a string, in a file of WMT"),
        (changed(2, scores={"A": [{"score": "x"}]}), "line 3: `scores.*` is a string; expected a number or null"),
        (changed(2, scores={"A": {"human1": "x"}}), "line 3: 'human1' of 'A' is 'x'; expected a number"),
        ([line | {"scores": {}} for line in wmt25_lines()], "has no score of any output"),
        ([*wmt26_screens(), {"user_id": "a", "annotation": [{}, {}], "item": [{}]}], "screen 5: 1 items and 2 annot"),
        (
            [
                *wmt26_screens(),
                {"user_id": "a", "annotation": [{}], "item": [{"item_id": "news_###_d1_###_0", "tgt": {"MT-1": "x"}}]},
            ],
            "screen 5: 'MT-1' has another text for 'news_###_d1_###_0'",
        ),
        (
            [*wmt26_screens(), {"user_id": "human1", "annotation": "skipped"}],
            "screen 5: the annotation is 'skipped'; expected a list of scores, or __RESET__, .* screens of 'human1'",
        ),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        open_eval_set(write_lines(tmp_path / "a.jsonl", lines))


def test_a_campaign_that_is_damaged_is_refused(tmp_path):
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps({"a": [{"user_id": 1, "annotation": [], "item": []}]}))
    with pytest.raises(
        InputError, match=r"is not as Pearmut writes annotations: .* is a whole number; expected a string"
    ):
        open_eval_set(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gold": "human3"}, "has no gold of en-xx_YY called 'human3'; it has human1, human2. Did you mean 'human"),
        ({"reference": "refB"}, "has no reference of en-xx_YY called 'refB'"),
        ({"metrics": ["N"]}, "has no metric with scores of en-xx_YY called 'N'; it has M"),
    ],
)
def test_a_name_that_the_file_lacks_is_refused_with_those_it_has(lines, arguments, message):
    with pytest.raises(InputError, match=message):
        read_eval_set(open_eval_set(lines), "en-xx_YY", **arguments)


def test_a_metric_that_lacks_a_judged_output_is_left_out_or_refused(tmp_path, caplog):
    lines = wmt25_lines()
    del lines[0]["metrics"]["MT-1"]["M"]
    eval_set = open_eval_set(write_lines(tmp_path / "a.jsonl", lines))
    assert not read_eval_set(eval_set, "en-xx_YY").metrics
    assert "1 of 14 judged outputs have no score, such as that of 'MT-1'" in caplog.text
    with pytest.raises(InputError, match="M: 1 of 14 judged outputs have no score"):
        read_eval_set(eval_set, "en-xx_YY", metrics=["M"])


REAL = Path(os.environ.get("WMT_FILES", "/missing"))


@pytest.mark.skipif(not REAL.is_dir(), reason="needs files of WMT25 or WMT26: set WMT_FILES to their folder")
def test_published_files_are_read_as_a_loop_over_their_json_reads_them():
    files = sorted(REAL.glob("*.json*"))
    assert files
    for path in files:
        eval_set = open_eval_set(path)
        for language_pair in eval_set.language_pairs:
            judged = read_eval_set(eval_set, language_pair)
            wanted = published_scores(path, language_pair)
            for row, system in enumerate(judged.systems):
                for column, segment in enumerate(judged.segments):
                    found = [np.mean([*scores]) for scores in wanted.get((system, segment), {}).values()]
                    score = judged.human_segment[row, column]
                    assert score == pytest.approx(np.mean(found), rel=1e-12) if found else np.isnan(score)


def published_scores(path, language_pair):
    """Return the scores of each system and segment by each annotator in a file, read in the plainest way."""
    found = {}

    def add(system, segment, annotator, score):
        found.setdefault((system, segment), {}).setdefault(annotator, set()).add(score)

    content = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        records = next(value for name, value in json.loads(content).items() if name.startswith(language_pair))
    else:
        records = [json.loads(line) for line in content.splitlines()]
    for record in records:
        if "doc_id" in record and record["doc_id"].startswith(language_pair + "_#_"):
            for system, entry in record["scores"].items():
                if isinstance(entry, dict):
                    for name in {"human1", "human2"} & entry.keys():
                        add(system, record["doc_id"], name, entry[name])
                    continue
                for position, one in enumerate(entry):
                    name = one.get("annotator", "unknown")
                    annotator = position if name == "unknown" else name
                    add(system, record["doc_id"], annotator, one.get("score", one.get("human")))
        elif "item" in record:
            for item, annotation in zip(record["item"], record["annotation"], strict=True):
                for system, each in annotation.items():
                    add(system, item["item_id"], record["user_id"], each["score"])
    return found
