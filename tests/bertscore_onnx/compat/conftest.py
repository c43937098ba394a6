"""bert-score's place taken for a test, and a store of bundles under the names that programs use."""

import sys
from dataclasses import replace

import pytest

import bertscore_onnx
from bertscore_onnx import compat
from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.store import Variant, bundle_folder
from tests.support.manifests import changed_copy


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


@pytest.fixture
def tiny_roberta_large(tiny_bundle, home, monkeypatch):
    """The tiny model in the store's place of roberta-large, whose sizes the catalogue then has,
    with its baselines.
    """
    name = "roberta-large"
    entry = catalogue.entries()[name]
    sizes = read_manifest(tiny_bundle).architecture
    entries = {**catalogue.entries(), name: replace(entry, architecture=sizes)}
    monkeypatch.setattr(catalogue, "entries", lambda: entries)
    variant = Variant(entry.num_layers)
    baselines = {"en": [catalogue.baselines(name, entry.num_layers)["en"]]}
    fields = {"model_id": name, "num_layers": entry.num_layers, "model_layers": sizes.model_layers}
    return changed_copy(tiny_bundle, bundle_folder(name, variant), baselines=baselines, **fields)


@pytest.fixture
def baseline_path_of_minilm(tmp_path):
    path = tmp_path / "baseline.tsv"
    path.write_text(
        "LAYER,P,R,F\n" + "".join(f"{layer},0.3,0.2,0.1{layer}\n" for layer in range(7))
    )
    return path
