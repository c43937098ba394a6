"""Models and bundles that many tests share; nothing here needs a network."""

import os
import shutil
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before anything imports huggingface_hub
os.environ.setdefault("MKL_NUM_THREADS", "1")  # PyTorch's threads: several processes test at the same time
os.environ["BERTSCORE_ONNX_HOME"] = tempfile.mkdtemp(prefix="bertscore-onnx-tests-")

from tests.support.fake_hub import free_port

if os.environ["HF_HUB_OFFLINE"] == "1":
    os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{free_port()}"  # one for each worker, where its hubs listen

import pytest
from minilm import model_folder

from tests.support.shared_folders import export_once, write_once

WORDS = "the a cat dog sat mat on sits ran red blue house tree and or not is was it"


def pytest_unconfigure() -> None:
    """Remove the home folder that all tests share."""
    shutil.rmtree(os.environ["BERTSCORE_ONNX_HOME"], ignore_errors=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder of the test's own."""
    monkeypatch.setenv("BERTSCORE_ONNX_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this user have no home folder, as one has none in a container that does not know it."""

    def unknown(*arguments: object) -> None:
        raise KeyError("uid not found")

    for variable in ("BERTSCORE_ONNX_HOME", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of three layers whose vocabulary is `WORDS`, saved by transformers."""
    return write_once(tmp_path_factory, "tiny-bert", save_tiny_bert)


@pytest.fixture(scope="session")
def tiny_bundles(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two bundles of `tiny_model`; one process exports both, which takes less than importing PyTorch."""

    def export(folder: Path) -> None:
        from bertscore_onnx_export.pipeline import export_model

        export_model(str(tiny_model), num_layers=2, output=folder / "layer-2")
        export_model(str(tiny_model), all_layers=True, output=folder / "all-layers")

    return write_once(tmp_path_factory, "tiny-bundles", export)


@pytest.fixture(scope="session")
def tiny_bundle(tiny_bundles: Path) -> Path:
    """The bundle of `tiny_model` at layer 2."""
    return tiny_bundles / "layer-2"


@pytest.fixture(scope="session")
def all_layers_bundle(tiny_bundles: Path) -> Path:
    """The bundle of `tiny_model` with every layer."""
    return tiny_bundles / "all-layers"


@pytest.fixture(scope="session")
def fast_bundle(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of `tiny_model` at layer 2, with its fast tokenizer."""
    return export_once(tmp_path_factory, "tiny-fast", tiny_model, num_layers=2, tokenizer_mode="fast")


@pytest.fixture(scope="session")
def scoring_bundle(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of `tiny_model` at layer 2 with its fast tokenizer and a scoring graph."""
    options = {"num_layers": 2, "tokenizer_mode": "fast", "scoring_graph": True}
    return export_once(tmp_path_factory, "tiny-scoring", tiny_model, **options)


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The pretrained MiniLM, a BERT of six layers, saved by transformers."""
    return model_folder()


@pytest.fixture(scope="session")
def minilm_bundle(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of MiniLM at layer 4."""
    return export_once(tmp_path_factory, "minilm-4", minilm, num_layers=4, name="all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def minilm_scoring_bundle(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of MiniLM at layer 4 that other languages can use: with its fast tokenizer and a scoring graph."""
    options = {"num_layers": 4, "name": "all-MiniLM-L6-v2", "tokenizer_mode": "fast", "scoring_graph": True}
    return export_once(tmp_path_factory, "minilm-scoring", minilm, **options)


@pytest.fixture(scope="session")
def minilm_all_layers_bundle(minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of MiniLM with every layer."""
    return export_once(tmp_path_factory, "minilm-all-layers", minilm, all_layers=True)


def save_tiny_bert(folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS.split(), *".,!?", "##s", "##ing"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizer(folder / "vocab.txt", model_max_length=32).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    BertModel(config).save_pretrained(folder)
