"""bert-score's place taken for a test, and a store of bundles under the names that programs use."""

import sys

import pytest

import bertscore_onnx
from bertscore_onnx import compat
from tests.support.bundles import exported


@pytest.fixture
def stand_in(monkeypatch):
    """What `import bert_score` gives while the stand-in is installed; the true one is set aside."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "bert_score"]:
        monkeypatch.delitem(sys.modules, name)
    compat.install()
    import bert_score

    yield bert_score
    compat.uninstall()
    bertscore_onnx.score.clear()


@pytest.fixture(scope="session")
def named_bundle(tiny_model):
    """The tiny model with the baselines of roberta-large."""
    return exported("tiny-named", tiny_model, num_layers=2, name="roberta-large")


@pytest.fixture
def baseline_path_of_minilm(tmp_path):
    path = tmp_path / "baseline.tsv"
    path.write_text("LAYER,P,R,F\n" + "".join(f"{layer},0.3,0.2,0.1{layer}\n" for layer in range(7)))
    return path
