"""Models and bundles that many tests share; nothing here needs a network."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before anything imports huggingface_hub
# PyTorch's threads: several processes test at the same time
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.pop("BERTSCORE_ONNX_MODEL", None)
os.environ["BERTSCORE_ONNX_HOME"] = tempfile.mkdtemp(prefix="bertscore-onnx-tests-")

from tests.support.fake_hub import free_port

if os.environ["HF_HUB_OFFLINE"] == "1":
    # one for each worker, where its hubs listen
    os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{free_port()}"

import hypothesis
import pytest
from minilm import model_folder

from tests.support.bundles import drop_changed, exported, kept

pytest_plugins = ["tests.support.command_line", "tests.support.scorers"]

hypothesis.settings.register_profile("tests", deadline=None)  # other processes may be at work
hypothesis.settings.load_profile("tests")

FULL = {"packaging", "benchmarks", "harness", "reliability", "reproduce"}
"""Folders whose tests `make test` leaves out: packages, and the tests of the project's own
tools.
"""

RUNTIME = {"bertscore_onnx", "evaluation", "service"}
"""Folders whose tests are of what the runtime ships."""

STARTS_PROCESSES = {"run_process", "run_in_shell", "run_until_first_line", "start_scoring"}
"""Fixtures of the command line that take a second for each call."""


@pytest.hookimpl(tryfirst=True)  # before pytest selects by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as `full` by their folder or if they start a browser, and as `slow` if they start
    processes.
    """
    for item in items:
        if not STARTS_PROCESSES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
        if item.path.relative_to(Path(__file__).parent).parts[0] in FULL or item.get_closest_marker(
            "browser"
        ):
            item.add_marker("full")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test has changed a bundle that all tests share."""
    if "PYTEST_XDIST_WORKER" not in os.environ and (names := drop_changed()):
        session.config.get_terminal_writer().line(
            f"\nA test changed a bundle that all tests share: {', '.join(names)}."
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    """Remove the home folder that all tests share."""
    shutil.rmtree(os.environ["BERTSCORE_ONNX_HOME"], ignore_errors=True)


@pytest.fixture(autouse=True)
def wide_terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lines of the runtime's messages be as long as they need to be."""
    if request.path.relative_to(Path(__file__).parent).parts[0] in RUNTIME:
        monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A browser for the tests of a module, which are skipped without one."""
    from tests.support.programs import chromium  # it looks for Node

    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BERTSCORE_ONNX_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let no signal be ignored in the processes that a test starts: background jobs ignore SIGINT,
    and nohup SIGHUP.
    """
    numbers = [
        number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN
    ]
    restored = [
        number for number in numbers if number in (signal.SIGINT, getattr(signal, "SIGHUP", None))
    ]
    for number in restored:
        signal.signal(number, signal.default_int_handler)  # the default in processes that it starts
    yield
    for number in restored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this user have no home folder, as one has none in a container that does not know it."""

    def unknown(*arguments: object) -> None:
        raise KeyError("uid not found")

    for variable in ("BERTSCORE_ONNX_HOME", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


@pytest.fixture(scope="session")
def tiny_model() -> Path:
    """A random BERT of three layers whose vocabulary is `WORDS`, saved by transformers."""

    def save(folder: Path) -> None:
        from tests.support.tiny_models import save_tiny_bert  # imports PyTorch

        save_tiny_bert(folder)

    return kept("tiny-bert", save)


@pytest.fixture(scope="session")
def tiny_bundle(tiny_model: Path) -> Path:
    return exported("layer-2", tiny_model, num_layers=2)


@pytest.fixture(scope="session")
def all_layers_bundle(tiny_model: Path) -> Path:
    return exported("all-layers", tiny_model, all_layers=True)


@pytest.fixture(scope="session")
def fast_bundle(tiny_model: Path) -> Path:
    return exported("tiny-fast", tiny_model, num_layers=2, tokenizer_mode="fast")


@pytest.fixture(scope="session")
def scoring_bundle(tiny_model: Path) -> Path:
    """The bundle of `tiny_model` at layer 2 with its fast tokenizer and a scoring graph."""
    return exported(
        "tiny-scoring", tiny_model, num_layers=2, tokenizer_mode="fast", scoring_graph=True
    )


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The pretrained MiniLM, a BERT of six layers, saved by transformers."""
    return model_folder()


@pytest.fixture(scope="session")
def minilm_bundle(minilm: Path) -> Path:
    return exported("minilm-4", minilm, num_layers=4, name="all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def minilm_scoring_bundle(minilm: Path) -> Path:
    """The bundle of MiniLM at layer 4 that other languages can use: with its fast tokenizer and a
    scoring graph.
    """
    options = {
        "num_layers": 4,
        "name": "all-MiniLM-L6-v2",
        "tokenizer_mode": "fast",
        "scoring_graph": True,
    }
    return exported("minilm-scoring", minilm, **options)


@pytest.fixture(scope="session")
def minilm_half_scoring_bundle(minilm: Path) -> Path:
    """The same in half precision, as the site's demo loads it."""
    options = {
        "num_layers": 4,
        "name": "all-MiniLM-L6-v2",
        "tokenizer_mode": "fast",
        "scoring_graph": True,
    }
    return exported("minilm-half-scoring", minilm, precision="fp16", **options)


@pytest.fixture(scope="session")
def minilm_all_layers_bundle(minilm: Path) -> Path:
    return exported("minilm-all-layers", minilm, all_layers=True)
