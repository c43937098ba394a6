"""Frames of a real Spark session give the scores and counts that one machine gives."""

import shutil

import pyarrow as pa
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import (
    BundleNotFoundError,
    IdfError,
    InputError,
    InputTypeError,
    UnknownLayerError,
)
from bertscore_onnx_service import CountBatch, ScoreBatch
from bertscore_onnx_service.jobs.spark import count_documents, score_dataframe
from tests.service.jobs.conftest import QUIET_SPARK

pytestmark = [pytest.mark.spark, QUIET_SPARK]

NOUNS = ("cat", "dog", "mat", "house", "tree")
COLOURS = ("red", "blue", "a", "the")
PAIRS = pa.table(
    {
        "id": range(40),
        "candidate": [f"the {NOUNS[i % 5]} sat on {COLOURS[i % 4]} mat" for i in range(40)],
        "reference": [
            [f"a {NOUNS[i % 3]} is on the mat", f"{COLOURS[i % 3]} {NOUNS[i % 5]} ran"][: 1 + i % 2]
            for i in range(40)
        ],
    }
)
SCORES = ("precision", "recall", "f1", "best_reference")
SIGNATURE = "bertscore_onnx.signature"


@pytest.fixture
def pairs(spark):
    return spark.createDataFrame(PAIRS)


@pytest.fixture
def set_option(spark):
    names = []

    def set_(name, value):
        spark.conf.set(name, value)
        names.append(name)

    yield set_
    for name in names:
        spark.conf.unset(name)


def scores_of(table):
    """Return the columns of scores in the order of ids, without what else a table has."""
    return table.sort_by("id").select(SCORES).replace_schema_metadata(None).to_pydict()


@pytest.mark.parametrize(("num_partitions", "most_rows"), [(1, 10_000), (7, 1), (200, 10_000)])
def test_scores_are_those_of_one_machine(pairs, tiny_bundle, set_option, num_partitions, most_rows):
    set_option("spark.sql.execution.arrow.maxRecordsPerBatch", most_rows)
    scored = score_dataframe(pairs.repartition(num_partitions), tiny_bundle).toArrow()
    assert scores_of(scored) == scores_of(ScoreBatch(tiny_bundle)(PAIRS))
    assert scored.sort_by("id").select(PAIRS.column_names).to_pydict() == PAIRS.to_pydict()


def test_rows_keep_their_order_in_a_partition(spark, pairs, tiny_bundle):
    ids = pairs.repartition(3).cache()
    found = [row.id for row in score_dataframe(ids, tiny_bundle).select("id").collect()]
    assert found == [row.id for row in ids.collect()]
    ids.unpersist()


def test_columns_stay_what_they_are(spark, tiny_bundle):
    frame = spark.sql(
        "select 'the cat' as `of.system`, 'a cat' as reference, 1 as twice, 2 as twice, cast(1.5 "
        "as decimal(38, 18)) as `a``b`, timestamp'2020-01-01 10:00:00' as at, "
        "timestamp_ntz'2020-01-01 10:00:00' as local, named_struct('x', array(map('k', 1.5D)), "
        "'y', binary('a')) as nested, cast(null as int) as nothing, interval '1' day as days"
    ).withMetadata("reference", {"source": "news"})
    scored = score_dataframe(frame, tiny_bundle, "of.system")
    assert scored.schema.fields[:10] == frame.schema.fields
    assert scored.columns[10:] == list(SCORES)
    [before], [after] = frame.collect(), scored.collect()
    assert tuple(after)[:10] == tuple(before)
    assert 0 < after.f1 < 1


def test_column_of_char_type_is_scored(spark, tiny_bundle):
    spark.sql("create table chars (candidate varchar(9), reference char(9)) using parquet")
    spark.sql("insert into chars values ('the cat', 'the cat')")
    scored = score_dataframe(spark.table("chars"), tiny_bundle)
    assert scored.schema.fields[:2] == spark.table("chars").schema.fields
    assert scored.collect()[0].f1 == pytest.approx(1)
    spark.sql("drop table chars")


def test_strings_may_be_large_in_arrow(pairs, tiny_bundle, set_option):
    set_option("spark.sql.execution.arrow.useLargeVarTypes", "true")
    scored = score_dataframe(pairs, tiny_bundle, errors="null", idf=True).toArrow()
    assert scored["error"].null_count == len(PAIRS)
    assert count_documents(pairs, tiny_bundle) == CountBatch(tiny_bundle).count(PAIRS)


def test_frame_without_rows_gives_one_with_the_columns(pairs, tiny_bundle):
    scored = score_dataframe(pairs.limit(0), tiny_bundle)
    assert scored.columns == ["id", "candidate", "reference", *SCORES]
    assert scored.count() == 0


def test_scores_of_all_layers_are_arrays(pairs, all_layers_bundle):
    scored = score_dataframe(pairs, all_layers_bundle, all_layers=True)
    assert dict(scored.dtypes)["f1"] == "array<float>"
    expected = ScoreBatch(all_layers_bundle, all_layers=True)(PAIRS)
    assert scores_of(scored.toArrow()) == scores_of(expected)


@pytest.mark.filterwarnings("ignore:.* have an empty context:UserWarning")
@pytest.mark.parametrize("contexts", [[None, " ", None], [None, None, "it was"]])
def test_the_signature_is_that_of_score_for_blank_contexts(spark, tiny_bundle, contexts):
    frame = spark.createDataFrame(
        [("a cat", "a dog", before) for before in contexts],
        "candidate string, reference string, before string",
    )
    scored = score_dataframe(frame, tiny_bundle, context="before")
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        expected = scorer.score(["a cat"] * 3, ["a dog"] * 3, contexts=contexts)
    assert scored.schema["f1"].metadata == {SIGNATURE: str(expected.signature)}
    assert [row.f1 for row in scored.collect()] == expected.F.tolist()


def test_signature_goes_through_parquet(spark, pairs, tiny_bundle, tmp_path):
    score_dataframe(pairs, tiny_bundle).write.parquet(str(tmp_path / "scored"))
    read = spark.read.parquet(str(tmp_path / "scored"))
    assert read.schema["f1"].metadata == {SIGNATURE: str(ScoreBatch(tiny_bundle).signature)}


def test_archive_is_found_where_spark_unpacks_it(spark, pairs, tiny_bundle, tmp_path):
    archive = shutil.make_archive(
        str(tmp_path / "bundle"), "zip", tiny_bundle.parent, tiny_bundle.name
    )
    spark.sparkContext.addArchive(f"{archive}#shipped")
    name = f"shipped/{tiny_bundle.name}"
    scored = score_dataframe(pairs, name, idf=True)
    counts = CountBatch(tiny_bundle).count(PAIRS)
    assert scores_of(scored.toArrow()) == scores_of(ScoreBatch(tiny_bundle, idf=counts)(PAIRS))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ("*", {"candidate": "candidates"}, "'candidates'"),
        ("*", {"candidate": "reference"}, "array<string>; expected"),
        ("*", {"reference": "id"}, "bigint"),
        ("*", {"context": "id"}, "bigint"),
        ("*, 1 as F1", {}, "'F1'"),
        ("*, 1 as error", {"errors": "null"}, "'error'"),
        ("*", {"errors": "ignore"}, "errors"),
        ("*", {"idf_weights": True}, "'idf_weights'"),
    ],
)
def test_wrong_columns_and_settings_are_reported_at_the_call(pairs, change, options, message):
    with pytest.raises(InputError, match=message):
        score_dataframe(pairs.selectExpr(*change.split(", ")), "no bundle is opened", **options)


def test_frame_of_another_library_is_refused(tiny_bundle):
    for work in (score_dataframe, count_documents):
        with pytest.raises(InputTypeError, match="Table"):
            work(PAIRS, tiny_bundle)


def test_error_of_the_bundle_is_raised_at_the_call(pairs, tiny_bundle):
    with pytest.raises(BundleNotFoundError, match="/nowhere/bundle"):
        score_dataframe(pairs, "/nowhere/bundle")
    with pytest.raises(UnknownLayerError, match="layer 2"):
        score_dataframe(pairs, tiny_bundle, num_layers=1)
    with pytest.raises(IdfError, match="idf"):
        score_dataframe(pairs.where("id < 1"), tiny_bundle, idf=True)


def test_row_that_cannot_be_scored_is_named_by_its_number(pairs, tiny_bundle):
    from pyspark.errors import PythonException

    wrong = pairs.selectExpr("id", "if(id = 31, null, candidate) candidate", "reference").coalesce(
        1
    )
    with pytest.raises(PythonException, match=r"InputError: partition 0, row 31: .*'candidate'"):
        score_dataframe(wrong, tiny_bundle).collect()


def test_counts_are_those_of_the_whole_however_it_is_cut(pairs, tiny_bundle, set_option):
    expected = CountBatch(tiny_bundle).count(PAIRS)
    assert count_documents(pairs.coalesce(1), tiny_bundle) == expected
    assert count_documents(pairs.repartition(7), tiny_bundle) == expected
    set_option("spark.sql.execution.arrow.maxRecordsPerBatch", 1)
    assert count_documents(pairs.repartition(3), tiny_bundle) == expected


def test_faults_of_counting_are_reported(pairs, tiny_bundle):
    from pyspark.errors import PythonException

    with pytest.raises(InputError, match="no rows"):
        count_documents(pairs.limit(0), tiny_bundle)
    with pytest.raises(InputError, match="'references'"):
        count_documents(pairs, tiny_bundle, "references")
    with pytest.raises(InputTypeError, match="'nthreads'"):
        count_documents(pairs, tiny_bundle, nthreads=1)
    wrong = pairs.selectExpr("if(id = 31, null, reference) as reference").coalesce(1)
    with pytest.raises(PythonException, match=r"InputError: partition 0, row 31: .*'reference'"):
        count_documents(wrong, tiny_bundle)
    assert count_documents(wrong, tiny_bundle, errors="null").num_documents == 58
