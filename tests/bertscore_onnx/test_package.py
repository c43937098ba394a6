import json
from importlib import import_module

import pytest

import bertscore_onnx
import bertscore_onnx_evaluation as evaluation
import bertscore_onnx_service as service
from tests.support.processes import run_python

HEAVY = ["torch", "transformers", "onnx"]


def run(code):
    return json.loads(run_python(code).stdout)


@pytest.mark.parametrize("house", [service, evaluation])
def test_a_house_offers_what_it_lists(house):
    for name in house.__all__:
        assert getattr(house, name).__name__ == name
    assert {*house.__all__} <= {*dir(house)}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        house.nothing  # noqa: B018


def test_an_unknown_member_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bertscore_onnx.nothing  # noqa: B018


def test_all_members_exist_and_are_listed_before_an_import():
    listed = run("import bertscore_onnx, json; print(json.dumps(dir(bertscore_onnx)))")
    assert {*bertscore_onnx.__all__} <= {*listed}
    for name in bertscore_onnx.__all__:
        assert getattr(bertscore_onnx, name) is not None


@pytest.mark.parametrize(
    "name",
    ["get_hash", "get_idf_dict", "get_tokenizer", "lang2model", "model2layers", "plot_example"],
)
def test_other_names_of_bert_score_are_answered_with_a_module(name):
    module = "bertscore_onnx.compat.bert_score"
    with pytest.raises(AttributeError) as caught:
        getattr(bertscore_onnx, name)
    assert (
        str(caught.value) == f"bert-score's {name} is in {module}: `from {module} import {name}`."
    )
    assert hasattr(import_module(module), name)


@pytest.mark.parametrize("name", ["cache_scibert", "get_model", "sent_encode"])
def test_names_without_a_counterpart_are_answered_with_advice(name):
    assert not hasattr(bertscore_onnx, name)
    with pytest.raises(
        AttributeError, match=rf"{name} is not part .* Use bertscore_onnx\.BERTScorer\.encode"
    ):
        getattr(bertscore_onnx, name)


@pytest.mark.parametrize(
    ("code", "not_loaded"),
    [
        ("import bertscore_onnx", {*HEAVY, "onnxruntime", "numpy", "tokenizers", "typer"}),
        ("from bertscore_onnx import BERTScorer", {*HEAVY, "onnxruntime"}),
        (
            "import bertscore_onnx_evaluation",
            {*HEAVY, "onnxruntime", "numpy", "scipy", "sacrebleu", "jinja2"},
        ),
    ],
)
def test_an_import_imports_nothing_heavy(code, not_loaded):
    assert (
        not {*run(f"{code}; import sys, json; print(json.dumps(sorted(sys.modules)))")} & not_loaded
    )


@pytest.mark.parametrize(
    ("call", "needs_onnxruntime"),
    [
        ("score(['a cat'], ['the cat'], {!r})", True),
        ("count_documents(['the cat sat', 'a dog'], {!r})", False),
    ],
)
def test_scoring_imports_no_torch_and_counting_no_onnxruntime(tiny_bundle, call, needs_onnxruntime):
    call = call.format(str(tiny_bundle))
    loaded = run(
        f"import bertscore_onnx, sys, json; bertscore_onnx.{call}; "
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert ("onnxruntime" in loaded) is needs_onnxruntime
    assert not {*loaded} & {*HEAVY}
