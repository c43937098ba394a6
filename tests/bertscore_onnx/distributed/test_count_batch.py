import pickle

import pyarrow
import pytest

from bertscore_onnx import DocumentCounts, count_documents
from bertscore_onnx.distributed import CountBatch
from bertscore_onnx.errors import InputError, InputTypeError
from tests.support.scores import SEVERAL


@pytest.mark.parametrize("size", [1, 2, 3])
def test_rows_of_batches_add_up_to_the_counts_of_the_whole(tiny_bundle, size):
    count = pickle.loads(pickle.dumps(CountBatch(tiny_bundle, "ref")))
    tables = [count({"ref": SEVERAL[start : start + size]}) for start in range(0, len(SEVERAL), size)]
    rows = pyarrow.concat_tables(tables).group_by(["token", "tokenization"]).aggregate([("documents", "sum")])
    rows = rows.rename_columns({"documents_sum": "documents"})
    assert DocumentCounts.from_arrow(rows) == count_documents(SEVERAL, tiny_bundle)


def test_a_batch_without_rows_counts_no_documents(tiny_bundle):
    counts = CountBatch(tiny_bundle).count(pyarrow.table({"reference": pyarrow.array([], pyarrow.string())}))
    assert (counts.num_documents, len(counts.tokens)) == (0, 0)
    assert counts + CountBatch(tiny_bundle).count({"reference": ["the cat"]}) == count_documents(
        ["the cat"], tiny_bundle
    )


def test_where_texts_are_cut_is_a_setting(tiny_bundle):
    texts = ["the cat sat on the mat. a dog ran"]
    expected = count_documents(texts, tiny_bundle, max_length=4)
    assert (
        CountBatch(tiny_bundle, max_length=4).count({"reference": texts})
        == expected
        != count_documents(texts, tiny_bundle)
    )


def test_a_row_that_holds_no_text_is_named_or_left_out(tiny_bundle):
    batch = pyarrow.table({"reference": ["the cat", None, "a dog"]})
    with pytest.raises(InputError, match="row 2: the column 'reference' holds null"):
        CountBatch(tiny_bundle)(batch)
    counts = CountBatch(tiny_bundle, errors="null").count(batch)
    assert counts == count_documents(["the cat", "a dog"], tiny_bundle)


def test_what_is_not_there_is_refused(tiny_bundle):
    with pytest.raises(InputError, match=r"errors is .ignore.; expected"):
        CountBatch(tiny_bundle, errors="ignore")
    with pytest.raises(InputError, match="there is no column 'reference', only 'ref'"):
        CountBatch(tiny_bundle)({"ref": ["a"]})
    with pytest.raises(InputTypeError, match="There is no setting 'nthreads'; expected some of num_layers, lang"):
        CountBatch(tiny_bundle, nthreads=1)
