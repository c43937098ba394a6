"""Programs with the idioms of those in use, on bert-score and on the stand-in, with PyTorch and
without it.
"""

import importlib
import sys

import numpy as np
import pytest

from bertscore_onnx.errors import BertScoreOnnxError, InputError
from tests.support.parity import KNOWN_WARNINGS, TOLERANCE
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL

pytestmark = [pytest.mark.slow, *KNOWN_WARNINGS]


def prints_a_mean(bert_score, model, baseline):
    P, R, F1 = bert_score.score(
        CANDIDATES, REFERENCES, model_type=model, num_layers=2, lang="en", verbose=True
    )
    return float(f"{F1.mean():.7f}"), round(P.mean().item(), 7), sum(R.tolist()) / len(R)


def fills_a_table(bert_score, model, baseline):
    import pandas as pd

    scorer = bert_score.BERTScorer(
        model_type=model, num_layers=2, batch_size=8, nthreads=2, device="cpu"
    )
    P, R, F1 = scorer.score(cands=CANDIDATES, refs=SEVERAL, batch_size=2)
    frame = pd.DataFrame({"P": P.numpy(), "R": R.detach().cpu().numpy(), "F1": F1})
    return frame.to_numpy(dtype=float), np.average(F1), len(F1)


def keeps_candidates_above_a_threshold(bert_score, model, baseline):
    scorer = bert_score.BERTScorer(model_type=model, num_layers=2)
    kept = []
    for candidate in CANDIDATES:
        _, _, F = scorer.score([candidate], [REFERENCES[0]])
        if F > 0.1 and float(F[0]) <= 1 and F.item() == F[0].item():
            kept.append(F)
    return [x.mean().item() for x in kept], max(kept).item()


def rescales(bert_score, model, baseline):
    options = {"lang": "en", "rescale_with_baseline": True, "baseline_path": baseline}
    scores, line = bert_score.score(CANDIDATES, REFERENCES, model, 2, return_hash=True, **options)
    assert line.endswith("-custom-rescaled")
    return [values.mean(dim=0).cpu().item() for values in scores]


def computes_idf_weights(bert_score, model, baseline):
    tokenizer = bert_score.utils.get_tokenizer(model)
    tokenizer.model_max_length = min(tokenizer.model_max_length, 10**6)
    weights = bert_score.get_idf_dict(REFERENCES, tokenizer, nthreads=0)
    scorer = bert_score.BERTScorer(model, 2, idf=True, nthreads=0)
    scorer.compute_idf(REFERENCES)
    of_sentences = bert_score.BERTScorer(model, 2, idf=True, idf_sents=REFERENCES, nthreads=0)
    by_table = bert_score.score(CANDIDATES, REFERENCES, model, 2, idf=weights)
    return [
        *scorer.score(CANDIDATES, REFERENCES),
        *of_sentences.score(CANDIDATES, REFERENCES),
        *by_table,
    ]


def teaches_a_model(bert_score, model, baseline):
    model2layers = bert_score.utils.model2layers
    if model not in model2layers:
        model2layers[model] = model2layers["bert-base-uncased"] - 7
    scores, line = bert_score.score(CANDIDATES, REFERENCES, model_type=model, return_hash=True)
    assert f"{model}_L2_" in line
    return scores


def teaches_a_language(bert_score, model, baseline):
    bert_score.lang2model.update({"tlh": model, "en": model})
    bert_score.model2layers.update({model: 2})
    scorer = bert_score.BERTScorer(lang="TLH")
    assert (scorer.model_type, scorer.num_layers) == (model, 2)
    return [
        *scorer.score(CANDIDATES, REFERENCES),
        *bert_score.score(CANDIDATES, REFERENCES, lang="en"),
    ]


def takes_means_of_batches(bert_score, model, baseline):
    scorer = bert_score.BERTScorer(model_type=model, num_layers=2)
    means = [scorer.score([a], [b])[2].mean() for a, b in zip(CANDIDATES, REFERENCES, strict=True)]
    import torch

    return torch.tensor(means), torch.stack(means).std(), torch.topk(torch.stack(means), 2).values


def gathers_states_of_a_metric(bert_score, model, baseline):
    import torch

    states = [
        bert_score.score(CANDIDATES, REFERENCES, model_type=model, num_layers=2)[2].to(
            torch.float64
        )
    ]
    states.append(torch.nan_to_num(states[0] * 2))
    return (
        torch.cat(states),
        torch.mean(torch.cat(states)),
        torch.stack([torch.cat(states)]).squeeze(0),
    )


def orders_scores(bert_score, model, baseline):
    F = bert_score.score(CANDIDATES, REFERENCES, model_type=model, num_layers=2)[2]
    ordered, places = F.sort(descending=True)
    return (
        F,
        ordered,
        places,
        F.repeat(2),
        (F.mean() < F).nonzero(),
        F.max(),
        F.std(unbiased=False),
        F.argmax(),
    )


WITHOUT_PYTORCH = [
    prints_a_mean,
    fills_a_table,
    keeps_candidates_above_a_threshold,
    rescales,
    computes_idf_weights,
    teaches_a_model,
    teaches_a_language,
]
PROGRAMS = [*WITHOUT_PYTORCH, takes_means_of_batches, gathers_states_of_a_metric, orders_scores]


@pytest.fixture(scope="module")
def expected(tiny_model, tmp_path_factory):
    """Return a function that runs a program on bert-score, once."""
    path = tmp_path_factory.mktemp("baseline") / "baseline.tsv"
    path.write_text(
        "LAYER,P,R,F\n" + "".join(f"{layer},0.3,0.2,0.1{layer}\n" for layer in range(4))
    )
    peer = importlib.import_module("bert_score")
    assert "bertscore_onnx" not in peer.__file__
    results = {}

    def run(program):
        if program not in results:
            results[program] = run_with_tables(program, peer, str(tiny_model), str(path))
        return str(path), results[program]

    return run


def run_with_tables(program, bert_score, *arguments):
    """Run a program, and undo what it taught bert-score."""
    tables = [bert_score.lang2model, bert_score.model2layers]
    before = [dict(table) for table in tables]
    try:
        return program(bert_score, *arguments)
    finally:
        for table, entries in zip(tables, before, strict=True):
            table.clear()
            table.update(entries)


def assert_equal(ours, theirs):
    """Compare results within the promised 1e-5, also relative to their size: programs double and
    sum scores.
    """
    assert len(ours) == len(theirs)
    for our_result, their_result in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            np.asarray(our_result), np.asarray(their_result), rtol=TOLERANCE, atol=TOLERANCE
        )


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_computes_the_same(expected, stand_in, tiny_bundle, program):
    baseline, theirs = expected(program)
    assert_equal(run_with_tables(program, stand_in, str(tiny_bundle), baseline), theirs)


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_pytorch_it_computes_the_same_or_ends_in_a_clear_error(
    expected, stand_in, tiny_bundle, monkeypatch, program
):
    baseline, theirs = expected(program)
    monkeypatch.setitem(sys.modules, "torch", None)
    if program in WITHOUT_PYTORCH:
        assert_equal(run_with_tables(program, stand_in, str(tiny_bundle), baseline), theirs)
    else:
        with pytest.raises(
            (AttributeError, ModuleNotFoundError), match=r"PyTorch is not installed|torch"
        ):
            run_with_tables(program, stand_in, str(tiny_bundle), baseline)


@pytest.mark.parametrize("layers", [1, 3])
def test_a_layer_that_the_bundle_lacks_is_answered_with_its_export(
    stand_in, tiny_bundle, monkeypatch, layers
):
    monkeypatch.setitem(stand_in.utils.model2layers, str(tiny_bundle), layers)
    for call in (stand_in.BERTScorer, lambda model: stand_in.score(CANDIDATES, REFERENCES, model)):
        with pytest.raises(
            BertScoreOnnxError, match=f"`bertscore-onnx export .*--num-layers {layers}"
        ):
            call(str(tiny_bundle))


def test_a_language_is_no_word_and_stronger_than_the_environment(
    stand_in, tiny_bundle, fast_bundle, monkeypatch
):
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(fast_bundle))
    monkeypatch.setitem(stand_in.lang2model, "en", str(tiny_bundle))
    assert stand_in.BERTScorer(lang="en").hash.startswith(str(tiny_bundle))
    assert stand_in.score(CANDIDATES, REFERENCES, lang="en", return_hash=True)[1].startswith(
        str(tiny_bundle)
    )
    assert stand_in.BERTScorer().hash.startswith(str(fast_bundle))
    with pytest.raises(InputError, match="english"):
        stand_in.BERTScorer(lang="english")


def test_another_maximum_of_tokens_is_refused(stand_in, tiny_bundle):
    scorer = stand_in.BERTScorer(str(tiny_bundle))
    with pytest.raises(InputError, match=r"BERTScorer\(\.\.\., max_length=16\)"):
        scorer._tokenizer.model_max_length = 16
