import pytest

from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.tokenizer.check import compare_with_slow
from bertscore_onnx_export.tokenizer.load import load_tokenizer
from bertscore_onnx_export.tokenizer.write import write_tokenizer
from tests.support.bundles import saved


@pytest.fixture
def compare(tmp_path):
    """Return a function that writes the fast tokenizer of a tiny model and compares it with the
    slow one.
    """

    def compare(name):
        source = Source(str(saved(name)))
        (tmp_path / "bundle").mkdir()
        facts = write_tokenizer(load_tokenizer(source, "fast"), 48, tmp_path / "bundle")
        return compare_with_slow(source, facts, tmp_path / "bundle")

    return compare


def test_with_equal_ids_of_plain_texts_edge_cases_are_kept(compare):
    found = compare("bert")
    assert found.num_different < 5
    assert len(found.examples) == found.num_different


def test_a_model_without_a_slow_tokenizer_is_not_compared(compare):
    assert compare("modernbert") is None
