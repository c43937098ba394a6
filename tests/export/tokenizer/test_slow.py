import pytest

from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.tokenizer.check import EXAMPLES, compare_with_slow
from bertscore_onnx_export.tokenizer.load import load_tokenizer
from bertscore_onnx_export.tokenizer.write import write_tokenizer
from tests.support.bundles import saved


@pytest.fixture
def compare(tmp_path):
    """Return a function that writes the fast tokenizer of a tiny model and compares it with the slow one."""

    def compare(name):
        source = Source(str(saved(name)))
        (tmp_path / "bundle").mkdir()
        facts = write_tokenizer(load_tokenizer(source, "fast"), 48, tmp_path / "bundle")
        return compare_with_slow(source, facts, tmp_path / "bundle")

    return compare


def test_texts_of_other_ids_are_counted_and_the_first_few_kept(compare):
    found = compare("roberta")  # whose slow tokenizer adds a space in front
    assert found.num_texts == 61
    assert 30 < found.num_different < 61
    assert found.examples[:2] == ["The cat sat on the mat.", "A cat was sitting on the mat."]
    assert len(found.examples) == EXAMPLES


def test_with_equal_ids_of_plain_texts_edge_cases_are_kept(compare):
    found = compare("bert")
    assert found.num_different < 5
    assert len(found.examples) == found.num_different


def test_a_model_without_a_slow_tokenizer_is_not_compared(compare):
    assert compare("modernbert") is None
