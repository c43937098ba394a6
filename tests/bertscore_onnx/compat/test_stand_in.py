import importlib
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import bertscore_onnx
from bertscore_onnx import compat
from bertscore_onnx.errors import BertScoreOnnxError, InputTypeError, StandInError
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL


def test_all_ways_of_importing_it_give_the_same(stand_in):
    from bert_score import BERTScorer, plot_example, score
    from bert_score.score import plot_example as plot_of_module
    from bert_score.score import score as score_of_module
    from bert_score.scorer import BERTScorer as BERTScorer_of_module
    from bert_score.utils import get_hash

    assert (score, plot_example, BERTScorer) == (
        score_of_module,
        plot_of_module,
        BERTScorer_of_module,
    )
    assert stand_in.score is score
    assert stand_in.utils.get_hash is get_hash
    assert importlib.import_module("bert_score").__version__ == "0.3.13"
    assert find_spec("bert_score") is not None


def test_it_can_be_undone(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    for name in [name for name in sys.modules if name.partition(".")[0] == "bert_score"]:
        monkeypatch.delitem(sys.modules, name)
    compat.install()
    compat.install()
    importlib.import_module("bert_score")
    compat.uninstall()
    compat.uninstall()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("bert_score")


def test_it_refuses_where_the_true_one_is_imported(stand_in, monkeypatch):
    true = type(sys)("bert_score")
    true.__file__ = "/usr/lib/bert_score/__init__.py"
    compat.uninstall()
    monkeypatch.setitem(sys.modules, "bert_score", true)
    with pytest.raises(StandInError, match="/usr/lib/bert_score"):
        compat.install()
    compat.uninstall()
    assert sys.modules["bert_score"] is true
    assert issubclass(StandInError, ImportError)


@pytest.mark.slow
def test_the_tables_are_those_of_bert_score(stand_in):
    compat.uninstall()
    import bert_score.utils as peer

    ours = importlib.import_module("bertscore_onnx.compat.bert_score.utils")
    assert {**ours.lang2model} == {**peer.lang2model}
    assert ours.lang2model["xx"] == peer.lang2model.copy()["xx"]
    assert {**ours.model2layers} == peer.model2layers
    with pytest.raises(KeyError):
        ours.model2layers["nothing of this name"]
    for options in [
        (False, False, False, False),
        (True, True, False, False),
        ({1: 2.0}, True, True, True),
    ]:
        line = peer.get_hash("roberta-large", 17, *options)
        version = line[line.index("_version=") : line.index(")") + 1]
        own = f"_version=0.3.13(bertscore-onnx={bertscore_onnx.__version__})"
        assert ours.get_hash("roberta-large", 17, *options) == line.replace(version, own)


def test_the_scores_are_ours_and_the_properties_the_settings(stand_in, tiny_bundle):
    name = str(tiny_bundle)
    scorer = stand_in.BERTScorer(name, None, 8, 2, lang="en")
    with bertscore_onnx.BERTScorer(tiny_bundle) as own:
        expected = own.score(CANDIDATES, SEVERAL)
    for P, R, F in (scorer.score(CANDIDATES, SEVERAL), stand_in.score(CANDIDATES, SEVERAL, name)):
        assert np.allclose([P, R, F], expected, atol=1e-6)
    assert (scorer.model_type, scorer.num_layers, scorer.lang, scorer.idf) == (name, 2, "en", False)
    assert (scorer.batch_size, scorer.nthreads, scorer.all_layers) == (8, 2, False)
    assert not scorer.rescale_with_baseline
    assert not scorer.use_fast_tokenizer


def test_a_bundle_by_path_has_its_own_tokenizer(stand_in, fast_bundle):
    with bertscore_onnx.BERTScorer(fast_bundle) as own:
        expected = own.score(CANDIDATES, REFERENCES)
    name = str(fast_bundle)
    for scores in (
        stand_in.BERTScorer(name).score(CANDIDATES, REFERENCES),
        stand_in.score(CANDIDATES, REFERENCES, name),
    ):
        assert np.allclose(scores, expected, atol=1e-6)


def test_the_hash_is_that_of_the_settings(stand_in, tiny_bundle, baseline_path):
    name = str(tiny_bundle)
    get_hash = stand_in.utils.get_hash
    scorer = stand_in.BERTScorer(name, idf=True, idf_sents=REFERENCES)
    assert scorer.hash == get_hash(name, 2, True, False, False, False)
    assert scorer.score(CANDIDATES, REFERENCES, return_hash=True)[1] == scorer.hash
    assert scorer.hash in repr(scorer)
    rescaled = {"lang": "en", "rescale_with_baseline": True, "baseline_path": str(baseline_path)}
    assert stand_in.BERTScorer(name, **rescaled).hash == get_hash(name, 2, False, True, True, False)
    _, line = stand_in.score(CANDIDATES, REFERENCES, name, return_hash=True, **rescaled)
    assert line == get_hash(name, 2, False, True, True, False)


def test_a_language_names_a_model_of_the_store_and_its_baseline(stand_in, tiny_roberta_large):
    options = {"lang": "en", "rescale_with_baseline": True}
    scores, line = stand_in.score(CANDIDATES, REFERENCES, **options, return_hash=True)
    assert line == stand_in.utils.get_hash("roberta-large", 17, False, True, False, False)
    with bertscore_onnx.BERTScorer(tiny_roberta_large, **options) as own:
        assert np.allclose(scores, own.score(CANDIDATES, REFERENCES), atol=1e-6)


def test_idf_weights_of_the_scorers_own_tokenizer(stand_in, tiny_bundle):
    scorer = stand_in.BERTScorer(str(tiny_bundle))
    weights = stand_in.utils.get_idf_dict(REFERENCES, scorer._tokenizer, nthreads=2)
    assert weights[10**6] == pytest.approx(np.log(4))
    with pytest.raises(InputTypeError, match="get_tokenizer"):
        stand_in.utils.get_idf_dict(REFERENCES, object())


def test_a_baseline_that_is_not_there_leaves_score_raw(stand_in, tiny_bundle, capsys):
    raw = stand_in.score(CANDIDATES, REFERENCES, str(tiny_bundle))
    found = stand_in.score(
        CANDIDATES, REFERENCES, str(tiny_bundle), lang="en", rescale_with_baseline=True
    )
    assert np.array_equal(found, raw)
    assert "no baseline for 'en'" in capsys.readouterr().err
    with pytest.raises(BertScoreOnnxError, match="`lang`"):
        stand_in.score(CANDIDATES, REFERENCES, str(tiny_bundle), rescale_with_baseline=True)


def test_other_accelerators_fall_back_to_the_cpu_with_one_warning(stand_in, tiny_bundle):
    from bertscore_onnx.compat.bert_score.scorer import _warn_of_accelerator

    _warn_of_accelerator.cache_clear()
    for kind in ("mps", "xpu"):
        with pytest.warns(RuntimeWarning, match=kind):
            stand_in.BERTScorer(str(tiny_bundle), device=kind)
        # another warning is an error
        stand_in.score(["a cat"], ["the cat"], str(tiny_bundle), device=f"{kind}:0")
    stand_in.BERTScorer(str(tiny_bundle), device="cpu:0")
    _warn_of_accelerator.cache_clear()


@pytest.mark.parametrize(
    ("device", "message"),
    [("cuda", "cuda"), (0, "'cuda:0'"), (1, "'cuda:1'"), ("gpu", "'gpu'"), (True, "'True'")],
)
def test_a_card_never_falls_back_and_an_unknown_device_is_refused(
    stand_in, tiny_bundle, device, message
):
    with pytest.raises(BertScoreOnnxError, match=message):
        stand_in.BERTScorer(str(tiny_bundle), device=device)


def test_baselines_are_those_of_the_layers(stand_in, tiny_bundle, all_layers_bundle, baseline_path):
    with pytest.raises(BertScoreOnnxError, match="`lang`"):
        _ = stand_in.BERTScorer(str(tiny_bundle)).baseline_vals
    scorer = stand_in.BERTScorer(str(tiny_bundle), baseline_path=baseline_path)
    rows = np.loadtxt(baseline_path, delimiter=",", skiprows=1, dtype=np.float32)[:, 1:]
    assert scorer.use_custom_baseline
    assert np.array_equal(scorer.baseline_vals, rows[scorer.num_layers])
    every = stand_in.BERTScorer(
        str(all_layers_bundle), all_layers=True, baseline_path=baseline_path
    )
    assert np.array_equal(every.baseline_vals, rows[: len(every.baseline_vals), None])


@pytest.mark.parametrize("name", ["get_model", "get_bert_embedding", "greedy_cos_idf"])
def test_what_needs_a_pytorch_model_is_refused_with_advice(stand_in, name):
    for module in ("bert_score", "bert_score.utils"):
        with pytest.raises(ImportError, match=f"{name}.*pairwise"):
            exec(f"from {module} import {name}")  # noqa: S102 -- as a program would
    assert not hasattr(stand_in.utils, "a name of nothing")


@pytest.mark.slow  # it imports matplotlib
def test_plot_example_saves_a_drawing(
    stand_in, minilm_bundle, tmp_path, monkeypatch, baseline_path_of_minilm
):
    monkeypatch.setenv("MPLBACKEND", "agg")
    stand_in.plot_example(
        "It is cold.", "It is freezing today.", str(minilm_bundle), fname=str(tmp_path / "a.png")
    )
    scorer = stand_in.BERTScorer(
        str(minilm_bundle),
        lang="en",
        rescale_with_baseline=True,
        baseline_path=baseline_path_of_minilm,
    )
    scorer.plot_example("It is cold.", "It is freezing today.", str(tmp_path / "b.svg"))
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "b.svg").read_bytes()
