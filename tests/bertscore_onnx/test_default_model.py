"""`BERTSCORE_ONNX_MODEL`: the model where none is given."""

import pytest

from bertscore_onnx import BERTScorer, count_documents, score
from bertscore_onnx.errors import BertScoreOnnxError, BundleNotFoundError, UnknownModelError
from bertscore_onnx_service import ScoreBatch
from bertscore_onnx_service.jobs.job import score_files

TEXTS = ["the cat", "a dog"]


@pytest.fixture(autouse=True)
def variable(tiny_bundle, monkeypatch, home):
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(tiny_bundle))


def test_the_environment_names_the_model(scorer):
    with BERTScorer() as other:
        assert other.signature == scorer.signature
    assert score(TEXTS, TEXTS[::-1]).signature == scorer.signature
    assert count_documents(TEXTS) == count_documents(TEXTS, scorer.bundle.path)
    score.clear()


def test_a_given_model_comes_first(all_layers_bundle):
    with BERTScorer(all_layers_bundle, num_layers=1) as other:
        assert other.signature.layer == 1


def all_ways(run, write, lang, model=None):
    """Return calls that find a model: in Python, in a job and at the shell."""
    texts = write("texts.txt", "the cat\na dog\n")
    arguments = ["-r", texts, "--lang", lang, *(() if model is None else ("-m", model))]
    return {
        "scorer": lambda: BERTScorer(model, lang=lang).close(),
        "function": lambda: score(TEXTS, TEXTS, model, lang=lang),
        "counts": lambda: count_documents(TEXTS, model, lang=lang),
        "batches": lambda: ScoreBatch(model, lang=lang)({"candidate": TEXTS, "reference": TEXTS}),
        "score": lambda: run("score", "-c", texts, *arguments),
        "count-documents": lambda: run(
            "count-documents", *arguments, "-o", texts.parent / "counts.json"
        ),
    }


WAYS = ("scorer", "function", "counts", "batches", "score", "count-documents")


def refused(way):
    try:
        result = way()
    except BertScoreOnnxError as error:
        return str(error)
    finally:
        score.clear()
    assert result.exit_code
    assert result.stdout == ""
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("way", WAYS)
def test_a_language_is_stronger_than_the_environment(run, write, way):
    message = refused(all_ways(run, write, "en")[way])
    assert "roberta-large" in message
    assert "BERTSCORE_ONNX_MODEL does not apply" in message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("lang", "advice"),
    [("xx", "expected a language code"), ("xyz", "'und'"), ("english", "'en' for this one")],
)
@pytest.mark.parametrize("has_model", [False, True])
def test_what_is_no_language_is_refused(run, write, tiny_bundle, way, lang, advice, has_model):
    message = refused(all_ways(run, write, lang, tiny_bundle if has_model else None)[way])
    assert repr(lang) in message
    assert advice in message


def test_a_language_beside_a_model_is_for_its_baseline(tiny_bundle, scorer):
    with BERTScorer(tiny_bundle, lang="de") as other:
        assert other.signature == scorer.signature


def test_another_model_in_the_environment_is_loaded(fast_bundle, monkeypatch):
    first = score(TEXTS, TEXTS).signature
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(fast_bundle))
    assert (first.tokenizer, score(TEXTS, TEXTS).signature.tokenizer) == ("slow", "fast")
    score.clear()


def test_a_job_uses_it(tmp_path, scorer):
    (tmp_path / "pairs.csv").write_text("candidate,reference\nthe cat,a cat\n")
    result = score_files([tmp_path / "pairs.csv"], tmp_path / "scores")
    assert result.signature == str(scorer.signature)


@pytest.mark.parametrize(
    ("name", "error"), [("robreta-large", UnknownModelError), ("./absent", BundleNotFoundError)]
)
def test_an_error_names_the_variable(monkeypatch, name, error):
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", name)
    with pytest.raises(error, match=rf"^BERTSCORE_ONNX_MODEL is '{name}'\. .*{name}"):
        BERTScorer()
