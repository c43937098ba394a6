"""`score_files()`: the scores of whole files, whatever their format, and what stops a job."""

import hashlib
import json
import math
import shutil

import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.cli.terminal import with_options
from bertscore_onnx.errors import InputError, UnknownModelError
from bertscore_onnx.scoring.tokenization import count_documents
from bertscore_onnx_service.jobs.job import score_files


def read_manifest(folder):
    return json.loads((folder / "scores" / "_manifest.json").read_bytes())


@pytest.fixture
def scored(score, read_scores, tmp_path):
    def scored(inputs, **options):
        score(inputs, **options)
        return read_scores(tmp_path / "scores").to_pydict()

    return scored


def test_scores_are_those_of_a_scorer_beside_the_columns(scored, write_pairs, scorer):
    rows = scored(write_pairs("pairs.parquet", 100), part_rows=30)
    expected = scorer.score(rows["candidate"], rows["reference"])
    assert list(rows) == [
        "id",
        "candidate",
        "reference",
        "precision",
        "recall",
        "f1",
        "best_reference",
    ]
    assert rows["id"] == list(range(100))
    assert [rows["precision"], rows["recall"], rows["f1"]] == [
        values.tolist() for values in expected
    ]
    assert rows["best_reference"] == [0] * 100


def test_the_result_and_the_manifest_describe_the_job(
    score, write_pairs, read_scores, scorer, tmp_path
):
    inputs = [write_pairs("a.parquet", 70), write_pairs("b.parquet", 7)]
    result = score(inputs, part_rows=30)
    assert (result.rows, result.failures, result.parts, result.parts_before) == (77, 0, 4, 0)
    assert result.signature == scorer.hash
    f1 = read_scores(tmp_path / "scores")["f1"].to_pylist()
    assert result.f1 == pytest.approx(math.fsum(f1) / 77, rel=1e-15)
    parts = sorted((tmp_path / "scores").glob("*.parquet"))
    assert {
        pq.read_schema(part).metadata[b"bertscore_onnx.signature"].decode() for part in parts
    } == {scorer.hash}
    names = ["part-00000-00000", "part-00000-00001", "part-00000-00002", "part-00001-00000"]
    sizes = [(f"{name}.parquet", rows) for name, rows in zip(names, [30, 30, 10, 7], strict=True)]
    assert [(part.name, pq.read_metadata(part).num_rows) for part in parts] == sizes
    manifest = read_manifest(tmp_path)
    assert manifest["signature"] == scorer.hash
    assert [(entry["file"], entry["rows"], entry["sha256"]) for entry in manifest["inputs"]] == [
        (str(path), rows, hashlib.sha256(path.read_bytes()).hexdigest())
        for path, rows in zip(inputs, (70, 7), strict=True)
    ]


def test_parts_may_span_row_groups_and_keep_the_named_columns(scored, write_pairs):
    path = write_pairs("pairs.parquet", 1000, lp=["de-en"] * 1000)
    pq.write_table(pq.read_table(path), path, row_group_size=90)
    rows = scored(path, part_rows=300, columns=["lp", "id"])
    assert rows["id"] == list(range(1000))
    assert list(rows) == ["lp", "id", "precision", "recall", "f1", "best_reference"]


def test_scores_alone_are_kept_where_no_column_is_named(score, write_pairs, read_scores, tmp_path):
    path = write_pairs("pairs.parquet", 50)
    score(path, output="with_columns")
    score(path, output="alone", columns=[])
    names = ["precision", "recall", "f1", "best_reference"]
    alone = read_scores(tmp_path / "alone")
    assert alone.to_pydict() == read_scores(tmp_path / "with_columns").select(names).to_pydict()


def test_json_fields_have_the_type_of_all_their_values(score, write, tmp_path):
    lines = [
        {"candidate": "it", "reference": "a", "score": 1, "meta": {"lp": "de-en"}},
        {
            "candidate": "it",
            "reference": ["a", "it"],
            "score": 0.5,
            "meta": {"year": 16},
            "late": True,
        },
    ]
    score(write("pairs.jsonl", "\n".join(map(json.dumps, lines))), part_rows=1)
    tables = [pq.read_table(part) for part in sorted((tmp_path / "scores").glob("part-*"))]
    assert tables[0].schema == tables[1].schema
    rows = pa.concat_tables(tables).to_pylist()
    assert rows[0]["reference"] == ["a"]
    assert [row["score"] for row in rows] == [1.0, 0.5]
    assert [row["meta"] for row in rows] == [
        {"lp": "de-en", "year": None},
        {"lp": None, "year": 16},
    ]
    assert [row["late"] for row in rows] == [None, True]
    assert rows[1]["best_reference"] == 1


def test_json_fields_of_several_types_are_refused(score, write):
    lines = [
        {"candidate": "it", "reference": "a", "id": 1},
        {"candidate": "it", "reference": "a", "id": "x"},
    ]
    path = write("pairs.jsonl", "\n".join(map(json.dumps, lines)))
    with pytest.raises(
        InputError, match=r"all values of 'id': they are int64 and string\. Name the columns"
    ):
        score(path)
    assert score(path, columns=["candidate"]).rows == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([True, 1], "they are bool and int64"),
        ([1] * 300 + ["x"], "they are int64 and string"),
        ([[1], 2], "they are list<.*> and int64"),
        ([1, [1, "x"]], r'several types are in \[1, "x"\]'),
        ([{"n": 1}, {"n": "x"}], "they are struct<n: int64> and struct<n: string>"),
        ([1, 2**64], "a whole number is out of the range of int64 in 18446744073709551616"),
        ([{"n": 2**64}], "out of the range of int64 in"),
        ([0.5, 2**53 + 1], r"whole numbers above 2\*\*53 are among other numbers"),
        ([{}], "there are objects without keys"),
    ],
)
def test_the_types_that_parquet_cannot_join_are_named(score, write, values, words):
    lines = [{"candidate": "it", "reference": "a", "more": value} for value in values]
    path = write("pairs.jsonl", "\n".join(map(json.dumps, lines)))
    with pytest.raises(
        InputError, match=f"pairs.jsonl: Parquet has no type for all values of 'more': .*{words}"
    ):
        score(path)


def test_whole_numbers_that_another_batch_makes_inexact_are_named(score, write):
    lines = [
        {"candidate": "it", "reference": "a", "more": value} for value in [2**53 + 1] * 256 + [0.5]
    ]
    path = write("pairs.jsonl", "\n".join(map(json.dumps, lines)))
    with pytest.raises(
        InputError, match=r"'more' are not all of the type double: whole numbers above 2\*\*53"
    ):
        score(path, part_rows=1000)


def test_patterns_and_folders_stand_for_their_files_in_order(score, write_pairs, write, tmp_path):
    for name in ("in/b.parquet", "in/a.parquet", "in/_c.parquet"):
        write_pairs(name, 3)
    write("in/readme.txt", "no table")
    for inputs in (str(tmp_path / "in" / "[ab].parquet"), tmp_path / "in"):
        assert score(inputs).rows == 6
    inputs = [entry["file"] for entry in read_manifest(tmp_path)["inputs"]]
    assert inputs == [str(tmp_path / "in" / name) for name in ("a.parquet", "b.parquet")]


def test_missing_remote_and_repeated_inputs_are_refused(score, write_pairs, tmp_path):
    with pytest.raises(InputError, match="No file"):
        score(str(tmp_path / "*.parquet"))
    with pytest.raises(InputError, match="score_dataset"):
        score("s3://bucket/a.parquet")
    with pytest.raises(InputError, match="no inputs"):
        score([])
    path = write_pairs("pairs.parquet", 3)
    with pytest.raises(InputError, match="twice"):
        score([path, str(tmp_path / "*.parquet")])


def test_a_row_that_cannot_be_scored_is_named_by_file_and_row(score, write_pairs, tmp_path):
    good, bad = (
        write_pairs("good.parquet", 50),
        write_pairs("bad.parquet", 50, candidate=["it"] * 44 + [None] * 6),
    )
    with pytest.raises(InputError, match=r"bad.parquet, row 45: .*'candidate'"):
        score([good, bad], part_rows=20)
    files = sorted(
        file.stem for file in (tmp_path / "scores").iterdir() if file.name != "_manifest.json"
    )
    assert files == [
        *(f"part-00000-0000{part}" for part in range(3)),
        *(f"part-00001-0000{part}" for part in range(2)),
    ]


def test_rows_without_scores_have_nulls_and_a_reason(
    score, write_pairs, read_scores, tmp_path, scorer
):
    path = write_pairs("pairs.parquet", 5, reference=[["a"], [], ["it", None], None, ["it", "a"]])
    result = score(path, errors="null")
    rows = read_scores(tmp_path / "scores").to_pydict()
    assert (result.rows, result.failures) == (5, 3)
    assert [f1 is None for f1 in rows["f1"]] == [False, True, True, True, False]
    assert rows["error"][0] is None
    assert rows["error"][1].startswith("the column 'reference' holds an empty list")
    assert result.f1 == pytest.approx((rows["f1"][0] + rows["f1"][4]) / 2, rel=1e-15)


@pytest.mark.parametrize("has_list", [False, True])
def test_values_that_are_no_texts_are_kept_beside_their_reason(scored, write, has_list):
    values = [3, 12345678901234567890123, True, {"en": "é"}, None, "it", ["a", 4, None]][
        : 7 if has_list else 6
    ]
    rows = [{"candidate": "it", "reference": value} for value in values]
    path = write("pairs.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    read = scored(path, errors="null")
    texts = ["3", "12345678901234567890123", "true", '{"en": "é"}', None, "it"]
    lists = [[text] if text else None for text in texts]
    assert read["reference"] == ([*lists, ["a", "4", None]] if has_list else texts)
    assert [reason is None for reason in read["error"]] == [
        text == "it" for text in [*texts, None][: len(rows)]
    ]


def csv_of(*rows):
    return b"".join(
        row + b"\n"
        for row in (b"id,candidate,reference", b"1,the cat,a cat", *rows, b"2,a dog,the dog")
    )


def jsonl_of(*rows):
    first, last = (
        b'{"id": %d, "candidate": "the cat", "reference": "%s"}' % row
        for row in ((1, b"a cat"), (2, b"the dog"))
    )
    return b"".join(row + b"\n" for row in (first, *rows, last))


FAULTY = {
    "few fields": ("csv", csv_of(b"the cat"), ["there is 1 field"]),
    "many fields": (
        "csv",
        csv_of(b"3,a,b,c", b"3,a,b,c,d"),
        ["there are 4 fields", "there are 5 fields"],
    ),
    "a character after a quote": ("csv", csv_of(b'3,"a"b,c'), ["a character follows"]),
    "CSV that is not UTF-8": ("csv", csv_of(b"3,caf\xe9,a", b'3,"a\n\xff",b'), ["0xE9", "0xFF"]),
    "TSV that is not UTF-8": ("tsv", csv_of(b"3,caf\xe9,a").replace(b",", b"\t"), ["0xE9"]),
    "half a surrogate": (
        "jsonl",
        jsonl_of(b'{"id": 3, "candidate": "\\ud83d", "reference": "a"}'),
        ["half of a pair"],
    ),
    "no JSON": (
        "jsonl",
        jsonl_of(b"{", b"the cat", b"[1]", b"NaN"),
        ["no JSON", "no JSON", "JSON object", "NaN"],
    ),
    "a key twice": ("jsonl", jsonl_of(b'{"id": 3, "id": 4}'), ["occurs 2 times"]),
    "JSON that is not UTF-8": (
        "jsonl",
        jsonl_of(b'{"candidate": "caf\xe9", "reference": "a"}'),
        ["0xE9"],
    ),
    "no faultless row": ("jsonl", b"{\n{\n", ["no JSON"] * 2),
}


@pytest.mark.parametrize(("suffix", "content", "reasons"), FAULTY.values(), ids=FAULTY)
def test_a_row_that_cannot_be_read_gets_nulls_and_the_reason(
    score, read_scores, tmp_path, suffix, content, reasons
):
    path = tmp_path / f"pairs.{suffix}"
    path.write_bytes(content)
    result = score(path, errors="null", idf=b"cat" in content)
    assert result.failures == len(reasons)
    rows = read_scores(tmp_path / "scores").to_pylist()
    failed = [row for row in rows if row["error"]]
    assert (
        [row["f1"] for row in failed]
        == [row["candidate"] for row in failed]
        == [None] * len(reasons)
    )
    for row, reason in zip(failed, reasons, strict=True):
        assert reason in row["error"]
    scored = [row for row in rows if not row["error"]]
    assert [str(row["id"]) for row in scored] == ["1", "2"][: len(scored)]
    assert all(row["f1"] is not None for row in scored)
    with pytest.raises(InputError, match="pairs"):
        score(path, "raised")


@pytest.mark.parametrize(
    "content",
    [csv_of(b'3,"a,b'), csv_of()[3:].replace(b"id", b"\xff"), b"caf\xe9,reference\n"],
    ids=["an open quote", "a header that is not UTF-8", "a header alone that is not UTF-8"],
)
def test_a_fault_of_no_single_row_ends_the_job(score, tmp_path, content):
    path = tmp_path / "pairs.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"pairs\.csv"):
        score(path, errors="null")


def test_a_text_of_parquet_that_is_not_utf8_gets_the_reason(
    score, write_pairs, read_scores, tmp_path
):
    damaged = pa.array([b"the cat", b"caf\xe9", b"a dog"]).view(pa.string())
    path = write_pairs("pairs.parquet", 3, candidate=damaged)
    assert score(path, errors="null", columns=["id"]).failures == 1
    errors = read_scores(tmp_path / "scores")["error"].to_pylist()
    assert "not UTF-8" in errors[1]
    with pytest.raises(InputError, match="row 2: it is not UTF-8"):
        score(path, "raised")


@pytest.mark.parametrize("errors", ["raise", "null"])
def test_wrong_columns_are_refused_before_anything_is_scored(score, write_pairs, tmp_path, errors):
    good = write_pairs("good.parquet", 3)
    with pytest.raises(InputError, match=r"ints.parquet: .*int64"):
        score([good, write_pairs("ints.parquet", 3, candidate=[1, 2, 3])], errors=errors)
    with pytest.raises(InputError, match=r"good.parquet: .*'mt'.*`candidate`") as candidate:
        score(good, candidate="mt", errors=errors)
    with pytest.raises(InputError, match=r"good.parquet: .*'lp'.*`columns`") as kept:
        score(good, columns=["lp"], errors=errors)
    assert "--columns candidate=NAME" in with_options(candidate.value)
    assert "--keep NAME" in with_options(kept.value)
    with pytest.raises(InputError, match=r"f1.parquet: .*'f1' already"):
        score(write_pairs("f1.parquet", 3, f1=[1, 2, 3]), errors=errors)
    assert not (tmp_path / "scores").exists()


@pytest.mark.parametrize("damage", ["truncated", "overwritten"])
def test_a_damaged_file_is_named(score, write_pairs, tmp_path, damage):
    good, bad = write_pairs("good.parquet", 3), write_pairs("bad.parquet", 2000)
    content = bad.read_bytes()
    bad.write_bytes(
        content[:-20] if damage == "truncated" else content[:4] + bytes(1996) + content[2000:]
    )
    with pytest.raises(InputError, match=r"bad.parquet .*Parquet"):
        score([good, bad])
    assert damage == "overwritten" or not (tmp_path / "scores").exists()


@pytest.mark.slow
def test_a_row_of_ten_megabytes_is_scored_by_its_first_tokens(scored, write_pairs, scorer):
    large = "the cat " * 1_249_000
    path = write_pairs(
        "pairs.parquet", 3, candidate=["it", large, "a"], reference=["it", "the cat", large]
    )
    with pytest.warns(UserWarning, match="longer"):
        rows = scored(path, columns=["id"])
    with pytest.warns(UserWarning, match="longer"):
        expected = scorer.score(["it", large[:1000], "a"], ["it", "the cat", large[:1000]])
    assert rows["f1"] == expected.F.tolist()


def test_files_without_rows_give_empty_parts_with_the_columns(score, write_pairs, write, tmp_path):
    inputs = [
        write_pairs(
            "a.parquet", 0, candidate=pa.array([], pa.string()), reference=pa.array([], pa.string())
        ),
        write("b.csv", "candidate,reference,lp\n"),
        write("c.jsonl", ""),
    ]
    result = score(inputs)
    assert (result.rows, result.parts, result.f1) == (0, 3, None)
    added = ["precision", "recall", "f1", "best_reference"]
    kept = [
        ["id", "candidate", "reference"],
        ["candidate", "reference", "lp"],
        ["candidate", "reference"],
    ]
    for part, names in zip(sorted((tmp_path / "scores").glob("part-*")), kept, strict=True):
        assert pq.read_schema(part).names == [*names, *added]


@pytest.mark.full
def test_a_thousand_files_are_scored(scored, write_pairs, tmp_path):
    for number in range(1000):
        write_pairs(f"in/{number:04}.parquet", 1, id=[number])
    assert scored(tmp_path / "in", columns=["id"])["id"] == list(range(1000))


def test_idf_weights_are_those_of_all_references(scored, write_pairs, tiny_bundle, tmp_path):
    rows = scored(
        [write_pairs("a.parquet", 90), write_pairs("b.parquet", 20)], part_rows=30, idf=True
    )
    with BERTScorer(tiny_bundle, idf=True, device="cpu") as scorer:
        assert rows["f1"] == scorer.score(rows["candidate"], rows["reference"]).F.tolist()
    counts = count_documents(rows["reference"], tiny_bundle)
    shutil.rmtree(tmp_path / "scores")
    assert scored([tmp_path / "a.parquet", tmp_path / "b.parquet"], idf=counts)["f1"] == rows["f1"]


def test_references_that_cannot_be_counted_are_named(score, write_pairs):
    path = write_pairs("a.parquet", 4, reference=["a", "it", None, "the cat"])
    with pytest.raises(InputError, match=r"a.parquet, row 3: .*'reference'"):
        score(path, idf=True)


def test_faults_of_the_scorer_come_before_the_folder(write_pairs, tmp_path, tiny_bundle):
    path = write_pairs("a.parquet", 4)
    with pytest.raises(UnknownModelError):
        score_files(path, tmp_path / "scores", "no-such-model", device="cpu")
    with pytest.raises(InputError, match="all_layers"):
        score_files(path, tmp_path / "scores", tiny_bundle, all_layers=True)
    assert not (tmp_path / "scores").exists()


@pytest.mark.parametrize("idf", [False, True])
def test_a_job_loads_its_model_once(write_pairs, tmp_path, tiny_bundle, monkeypatch, idf):
    sessions = []

    class CountedSession(onnxruntime.InferenceSession):
        def __init__(self, *arguments, **options):
            sessions.append(self)
            super().__init__(*arguments, **options)

    monkeypatch.setattr(onnxruntime, "InferenceSession", CountedSession)
    inputs = [write_pairs("a.parquet", 20), write_pairs("b.parquet", 20)]
    bundle = shutil.copytree(tiny_bundle, tmp_path / "bundle")  # one that no test has loaded before
    score_files(
        inputs, tmp_path / "scores", bundle, part_rows=10, device="cpu", nthreads=1, idf=idf
    )
    assert len(sessions) == 1


@pytest.mark.filterwarnings("ignore:.* have an empty context:UserWarning")
@pytest.mark.parametrize("contexts", [[None, " ", []], [None, None, "it was"]])
def test_the_signature_is_that_of_score_for_blank_contexts(score, scorer, tmp_path, contexts):
    source, cats = tmp_path / "pairs.jsonl", ["the cat"] * 3
    rows = [
        {"candidate": "the cat", "reference": "the cat", "before": before} for before in contexts
    ]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    signature = str(scorer.score(cats, cats, contexts=contexts).signature)
    assert score(source, context="before", part_rows=1).signature == signature
    written = [pq.read_schema(part) for part in (tmp_path / "scores").glob("*.parquet")]
    assert [schema.metadata[b"bertscore_onnx.signature"].decode() for schema in written] == [
        signature
    ] * 3


def test_a_job_is_of_one_matching_and_one_column_of_contexts(
    score, read_scores, tmp_path, tiny_bundle
):
    rows = [
        {"candidate": "the cat", "reference": "a cat", "before": before}
        for before in (["it was"], ["red", "it"])
    ]
    source = tmp_path / "pairs.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    score(source, context="before", matching="doc-bert-score")
    with BERTScorer(tiny_bundle, device="cpu", matching="doc-bert-score") as scorer:
        expected = scorer.score(
            ["the cat"] * 2, ["a cat"] * 2, contexts=[row["before"] for row in rows]
        )
    found = read_scores(tmp_path / "scores").to_pydict()
    assert found["f1"] == expected.F.tolist()
    assert found["before"] == [row["before"] for row in rows]
    assert score(source, context="before", matching="doc-bert-score").parts_before == 1
    with pytest.raises(InputError, match="signature"):
        score(source, context="before", matching="code-bert-score")
    with pytest.raises(InputError, match="context was"):
        score(source, matching="doc-bert-score")
