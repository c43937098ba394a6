import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from reproduce.eval_set import EvalSetFiles, golds, read_eval_set
from tests.support.eval_sets import BLEU, HUMAN, means, score_lines, write, write_eval_set


@pytest.fixture
def sets(tmp_path):
    """The folder of a set with three kinds of judgements in two language pairs."""
    write(tmp_path, "human-scores/en-de.da.raw.seg.score", "A\t1\n")
    write(tmp_path, "human-scores/en-de.mqm.sys.score", "A\t1\n")
    for reference in ("refA", "refB"):
        write(tmp_path, f"references/en-de.{reference}.txt", "one\n")
    return write_eval_set(tmp_path)


def test_a_set_lists_its_judgements_and_metrics(sets):
    write(sets, "human-scores/notes.score", "ours\n")
    assert golds(sets) == {"en-de": ["da.raw", "mqm"], "he-en": ["mqm"]}
    assert EvalSetFiles(sets, "he-en").metrics == ["BLEU-refB", "chrF-refB"]
    assert EvalSetFiles(sets, "en-de").metrics == []


@pytest.mark.parametrize(
    ("language_pair", "options", "message"),
    [
        ("en-he", {}, "called 'en-he'; it has en-de, he-en"),
        ("en-de", {"gold": "da"}, "has no gold of en-de called 'da'; it has da.raw, mqm"),
        ("en-de", {}, "has 2 kinds of judgements of en-de: da.raw, mqm. Name one as `gold`"),
        (
            "en-de",
            {"gold": "mqm"},
            "has 2 references of en-de: refA, refB. Name one as `reference`",
        ),
        (
            "he-en",
            {"reference": "refC"},
            "has no reference of he-en called 'refC'; it has refA, refB",
        ),
        ("he-en", {"metrics": ["BLUE-refB"]}, "called 'BLUE-refB'; .* Did you mean 'BLEU-refB'?"),
    ],
)
def test_an_unknown_name_is_refused_with_those_of_the_set(sets, language_pair, options, message):
    with pytest.raises(InputError, match=message):
        read_eval_set(sets, language_pair, **options)


@pytest.mark.parametrize(
    ("name", "systems"),
    [("src", "A B C D refA refB"), ("all", "A B C D"), ("refA.refB", "A B C D")],
)
def test_a_name_may_stand_for_none_or_several_references(sets, name, systems):
    write(
        sets,
        "human-scores/he-en.mqm.sys.score",
        "".join(f"{one} 1\n" for one in ["A", "B", "C", "D", "refA", "refB"]),
    )
    assert read_eval_set(sets, "he-en", reference=name).systems == tuple(systems.split())


def test_a_folder_without_judgements_is_no_set(tmp_path):
    with pytest.raises(
        InputError, match=r"has no judgements; expected a folder in the layout of mt-metrics-eval"
    ):
        read_eval_set(tmp_path, "he-en")


HUMAN_SEGMENTS = "human-scores/he-en.mqm.seg.score"
HUMAN_SYSTEMS = "human-scores/he-en.mqm.sys.score"
BLEU_SEGMENTS = "metric-scores/he-en/BLEU-refB.seg.score"
BLEU_SYSTEMS = "metric-scores/he-en/BLEU-refB.sys.score"


@pytest.fixture
def folder(tmp_path):
    return write_eval_set(tmp_path)


def read(folder, **options):
    return read_eval_set(folder, "he-en", **options)


def test_the_only_gold_and_the_reference_of_metrics_are_taken(folder):
    judged = read(folder)
    assert (judged.gold, judged.reference, [*judged.metrics]) == (
        "mqm",
        "refB",
        ["BLEU", "chrF"],
    )
    assert judged.systems == ("A", "B", "C", "D", "refA")
    np.testing.assert_array_equal(judged.human_segment[0], [-1, 0, -5, np.nan, -2])
    np.testing.assert_array_equal(judged.metrics["BLEU"].segment[2], [10, 22, 21, 30, 8])
    # as read, no means
    np.testing.assert_array_equal(judged.metrics["BLEU"].system, [24, 35, 19, 29, 36])


def test_scores_of_systems_are_means_where_there_is_no_file(folder):
    (folder / BLEU_SYSTEMS).unlink()
    (folder / HUMAN_SYSTEMS).unlink()
    judged = read(folder)
    np.testing.assert_allclose(judged.metrics["BLEU"].system, [24.2, 33.2, 18.2, 29, 40])
    np.testing.assert_allclose(judged.human_system, [-2, -0.5, -4.5, -2.5, 0])


def test_a_metric_and_people_may_have_scores_of_systems_alone(folder):
    (folder / HUMAN_SEGMENTS).unlink()
    (folder / BLEU_SEGMENTS).unlink()
    judged = read(folder)
    assert np.isnan(judged.human_segment).all()
    assert judged.metrics["BLEU"].segment is None
    np.testing.assert_allclose(judged.human_system, [-2, -0.5, -4.5, -2.5, 0])


def test_metrics_are_those_of_the_reference_or_those_named(folder):
    write(folder, "metric-scores/he-en/QE-src.seg.score", score_lines(BLEU))
    assert [*read(folder).metrics] == ["BLEU", "chrF"]
    assert [*read(folder, metrics=["QE-src", "BLEU-refB"]).metrics] == ["QE", "BLEU"]
    write(folder, "metric-scores/he-en/QE-refA.seg.score", score_lines(BLEU))
    both = read(folder, metrics=["QE-src", "QE-refA"], reference="refB").metrics
    assert [*both] == ["QE-src", "QE-refA"]


def test_references_in_use_are_no_systems_even_if_judged(folder):
    write(folder, HUMAN_SEGMENTS, score_lines({**HUMAN, "refB": [0, 0, 0, None, 0]}))
    assert "refB" not in read(folder).systems
    assert read(folder, reference="refA.refB", metrics=["BLEU-refB"]).systems == (
        "A",
        "B",
        "C",
        "D",
    )


def test_windows_line_ends_and_byte_order_marks_are_read(folder):
    lines = score_lines(HUMAN).replace("\t", "  ").replace("\n", "\r\n")
    write(folder, HUMAN_SEGMENTS, "\ufeff" + lines)
    np.testing.assert_array_equal(read(folder).human_segment[1], [0, 0, -1, np.nan, -1])


def test_systems_may_come_in_any_order(folder):
    write(folder, BLEU_SEGMENTS, score_lines(dict(reversed(BLEU.items()))))
    np.testing.assert_array_equal(read(folder).metrics["BLEU"].segment, [*BLEU.values()])


def test_texts_are_those_of_all_systems_judged_or_not(folder):
    write(folder, "system-outputs/he-en/E.txt", "one\ntwo\nthree\nfour\nfive\n")
    judged = read(folder, with_texts=True)
    assert judged.systems == ("A", "B", "C", "D", "E", "refA")
    assert judged.candidates[4] == ("one", "two", "three", "four", "five")
    assert judged.references[4][0] == ("the cat number 1 sat on the mat of refB",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            HUMAN_SEGMENTS,
            "A\t1\nA 2 3\n",
            "line 2: 3 fields; expected the name of a system and its score",
        ),
        (
            HUMAN_SEGMENTS,
            "A\t1\nA\tgood\n",
            "line 2: 'good' is not a score; expected a number, or None",
        ),
        (HUMAN_SEGMENTS, "A\t1\nA\t1_5\n", "line 2: '1_5' is not a score"),
        (HUMAN_SEGMENTS, "A\tnan\n", "line 1: 'nan' is not a score"),
        (HUMAN_SEGMENTS, "A\t1\n\nA\t1\n", "line 2: 0 fields"),
        (HUMAN_SEGMENTS, "", "is empty"),
        (
            BLEU_SYSTEMS,
            score_lines({"A": [1, 2], "B": [1], "C": [1], "D": [1], "refA": [1]}),
            "BLEU-refB.sys.score has 2 lines of the system A; expected one",
        ),
        (
            BLEU_SYSTEMS,
            score_lines({"A": [1], "B": [2], "C": [3], "D": [3]}),
            "no line of the system refA",
        ),
    ],
)
def test_a_damaged_file_is_named_with_its_line(folder, name, content, message):
    path = write(folder, name, content)
    with pytest.raises(InputError) as caught:
        read(folder, metrics=["BLEU-refB"])
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_human_scores_of_the_reference_alone_are_refused(folder):
    write(folder, "human-scores/he-en.mqm.seg.score", "refB\t1\n" * 5)
    (folder / "human-scores/he-en.mqm.sys.score").unlink()
    with pytest.raises(InputError, match="has no mqm scores of any system for he-en"):
        read_eval_set(folder, "he-en")


def test_a_metric_that_lacks_a_judged_system_is_left_out(folder, caplog):
    write(folder, BLEU_SYSTEMS, score_lines({"A": [1], "B": [2], "C": [3], "D": [3]}))
    assert [*read(folder).metrics] == ["chrF"]
    assert "BLEU-refB is left out" in caplog.text
    assert "no line of the system refA" in caplog.text
    write(folder, "metric-scores/he-en/chrF-refB.sys.score", score_lines({"A": [1]}))
    with pytest.raises(InputError, match="no metric has scores of all 5 systems"):
        read(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            BLEU_SEGMENTS,
            score_lines({**BLEU, "C": BLEU["C"][:4]}),
            r"C in .*seg.score has 4 lines, .* A in .* 5",
        ),
        (BLEU_SEGMENTS, b"A\t1\n\xff\t2\n", r"BLEU-refB.seg.score, line 2: this is not UTF-8"),
        (
            "references/he-en.refB.txt",
            "one\ntwo\n",
            r"he-en.refB.txt has 2 lines, and the system A in .* has 5",
        ),
        ("system-outputs/he-en/B.txt", None, "no outputs of the system 'B'"),
        (BLEU_SEGMENTS, "folder", r"Cannot read .*BLEU-refB.seg.score \(Is a directory\)"),
    ],
)
def test_a_file_of_another_length_or_without_text_is_named(folder, name, content, message):
    (folder / name).unlink()
    if content == "folder":
        (folder / name).mkdir()
    elif content is not None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        read(folder, with_texts=True)


@pytest.mark.parametrize("name", ["../../../secret", "/etc/secret", "A/../B"])
def test_the_name_of_a_system_is_not_the_name_of_a_file(folder, name):
    for level in ("seg", "sys"):
        scores = HUMAN if level == "seg" else means(HUMAN)
        write(
            folder,
            f"human-scores/he-en.mqm.{level}.score",
            score_lines({**scores, name: scores["A"]}),
        )
    write(folder.parent, "secret.txt", "secret\n" * 5)
    with pytest.raises(InputError, match=f"no outputs of the system '{name}'"):
        read(folder, metrics=[], with_texts=True)
