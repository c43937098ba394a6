"""`BERTSCORE_ONNX_MODEL`: the model where none is given."""

import pytest

from bertscore_onnx import BERTScorer, count_documents, score
from bertscore_onnx.errors import BundleNotFoundError, UnknownModelError
from bertscore_onnx_service.jobs.job import score_files

TEXTS = ["the cat", "a dog"]


@pytest.fixture(autouse=True)
def variable(tiny_bundle, monkeypatch, home):
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(tiny_bundle))


@pytest.mark.parametrize("lang", [None, "en"])
def test_the_environment_names_the_model(scorer, lang):
    with BERTScorer(lang=lang) as other:
        assert other.signature == scorer.signature
    assert score(TEXTS, TEXTS[::-1], lang=lang).signature == scorer.signature
    assert count_documents(TEXTS, lang=lang) == count_documents(TEXTS, scorer.bundle.path)
    score.clear()


def test_a_given_model_comes_first(all_layers_bundle):
    with BERTScorer(all_layers_bundle, num_layers=1) as other:
        assert other.signature.layer == 1


def test_another_model_in_the_environment_is_loaded(fast_bundle, monkeypatch):
    first = score(TEXTS, TEXTS).signature
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(fast_bundle))
    assert (first.tokenizer, score(TEXTS, TEXTS).signature.tokenizer) == ("slow", "fast")
    score.clear()


def test_a_job_uses_it(tmp_path, scorer):
    (tmp_path / "pairs.csv").write_text("candidate,reference\nthe cat,a cat\n")
    result = score_files([tmp_path / "pairs.csv"], tmp_path / "scores")
    assert result.signature == str(scorer.signature)


@pytest.mark.parametrize(("name", "error"), [("robreta-large", UnknownModelError), ("./absent", BundleNotFoundError)])
def test_an_error_names_the_variable(monkeypatch, name, error):
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", name)
    with pytest.raises(error, match=rf"^BERTSCORE_ONNX_MODEL is '{name}'\. .*{name}"):
        BERTScorer()
