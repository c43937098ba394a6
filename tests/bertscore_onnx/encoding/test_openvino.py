"""OpenVINO itself, where it is installed."""

import shutil
import sys
import threading
from importlib.metadata import version

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.openvino import (
    has_bfloat16,
    load_openvino,
    log_missing_bfloat16,
)
from bertscore_onnx.encoding.places import HostPlace
from bertscore_onnx.encoding.providers import OPENVINO, is_installed
from bertscore_onnx.errors import DeviceError, EncodingError
from bertscore_onnx.scoring.golden import difference_by_pairs
from tests.support.processes import forks, in_forked_child, run_python

if not is_installed(OPENVINO):
    pytest.skip("OpenVINO is not installed", allow_module_level=True)

CANDIDATES = [
    "The cat sat on the mat.",
    "A dog.",
    "It rains in the north and snows in the south.",
] * 20
REFERENCES = ["A cat was on the mat.", "The dogs bark.", "In the north it rains."] * 20


def scores_on(bundle, device, **options):
    with BERTScorer(bundle, device=device, **options) as scorer:
        return np.array(scorer.score(CANDIDATES, REFERENCES))


def test_scores_in_fp32_are_those_of_the_cpu_and_the_signature_names_what_computes(
    tiny_bundle, monkeypatch, caplog
):
    monkeypatch.setattr("bertscore_onnx.encoding.openvino.has_bfloat16", lambda: False)
    log_missing_bfloat16.cache_clear()
    expected = scores_on(tiny_bundle, "cpu")
    with BERTScorer(tiny_bundle, device="openvino") as scorer:
        found = np.array(scorer.score(CANDIDATES, REFERENCES))
        assert "|precision:fp32|" in scorer.hash
        assert f"|libraries:openvino-{version('openvino')}+tokenizers-" in scorer.hash
    assert np.abs(found - expected).max() <= 1e-6
    scores_on(tiny_bundle, "openvino")
    assert caplog.text.count("int8") == 1


def test_scores_in_bfloat16_differ_within_its_digits(tiny_bundle, bfloat16):
    difference = np.abs(scores_on(tiny_bundle, "openvino") - scores_on(tiny_bundle, "cpu")).max()
    assert 1e-5 < difference < 0.02


@pytest.mark.parametrize(
    "options", [{"nthreads": 1}, {"nthreads": 3}, {"optimize_for": "latency"}], ids=str
)
def test_scores_are_the_same_from_run_to_run(tiny_bundle, options):
    first = scores_on(tiny_bundle, "openvino", **options)
    for _ in range(2):
        assert np.array_equal(scores_on(tiny_bundle, "openvino", **options), first)


def test_callers_in_threads_get_the_scores_of_one(tiny_bundle):
    found = []
    with BERTScorer(tiny_bundle, device="openvino", nthreads=2) as scorer:
        expected = np.array(scorer.score(CANDIDATES, REFERENCES))

        def score():
            found.append(np.array(scorer.score(CANDIDATES, REFERENCES)))
            scorer.release_memory()

        threads = [threading.Thread(target=score) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [np.array_equal(scores, expected) for scores in found] == [True] * 4


@pytest.mark.parametrize(
    ("optimize_for", "streams"), [("throughput", 3), ("latency", 1)], ids=["throughput", "latency"]
)
def test_openvino_gets_threads_and_few_kernels(tiny_bundle, optimize_for, streams, monkeypatch):
    given = []
    core = load_openvino().Core()
    compile_model = core.compile_model

    def compile_and_record(*arguments):
        given.append(arguments)
        return compile_model(*arguments)

    monkeypatch.setattr(core, "compile_model", compile_and_record)
    monkeypatch.setattr("bertscore_onnx.encoding.openvino._core", lambda: core)
    BERTScorer(tiny_bundle, device="openvino", nthreads=3, optimize_for=optimize_for).close()
    [(_, device, settings)] = given
    assert device == "CPU"
    assert (settings["INFERENCE_NUM_THREADS"], settings["NUM_STREAMS"]) == (3, streams)
    assert settings["INFERENCE_PRECISION_HINT"] == ("bf16" if has_bfloat16() else "f32")
    assert settings["CPU_RUNTIME_CACHE_CAPACITY"] < 1000
    assert not settings["ENABLE_CPU_PINNING"]


def test_a_bundle_with_a_scoring_graph_is_verified(scoring_bundle, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.encoding.openvino.has_bfloat16", lambda: False)
    assert difference_by_pairs(open_bundle(scoring_bundle), device="openvino") <= 1e-6


def test_an_output_of_another_shape_is_refused_and_the_next_run_right(tiny_bundle):
    model = Encoder(open_bundle(tiny_bundle), device="openvino")
    ids = np.array([[2, 5, 3, 0], [2, 6, 7, 3]])
    with pytest.raises(EncodingError, match="shape"):
        model.run_batch(ids, ids, HostPlace(np.zeros((2, 3, 32), dtype=np.float32)))
    vectors = model.unit_vectors(ids, np.ones_like(ids))
    assert np.abs(np.linalg.norm(vectors, axis=-1) - 1).max() < 1e-5
    model.close()


class TestAFork:
    @forks
    def test_is_refused_in_a_child_with_the_remedy(self, tiny_bundle):
        closed = BERTScorer(tiny_bundle, device="openvino")  # a later one would hang in the child
        scorer = BERTScorer(tiny_bundle, device="openvino")
        closed.close()
        for score in (
            lambda: scores_on(tiny_bundle, "openvino"),
            lambda: scorer.score(CANDIDATES, REFERENCES),
        ):
            with pytest.raises(DeviceError, match="spawn"):
                in_forked_child(score)
        scorer.close()

    @forks
    @pytest.mark.parametrize("device", ["openvino", "cpu"])
    def test_lets_a_child_exit_that_has_its_parents_graph(self, tiny_bundle, device):
        done = run_python(EXIT_OF_A_CHILD, tiny_bundle, device)
        assert done.stdout == "0\n", done.stderr


EXIT_OF_A_CHILD = """
import os, sys
from bertscore_onnx import BERTScorer

scorer = BERTScorer(sys.argv[1], device=sys.argv[2], nthreads=2, optimize_for="latency")
scorer.score(["the cat"] * 99, ["a dog"] * 99)
child = os.fork()
if child:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
elif sys.argv[2] == "cpu":
    scorer.score(["the cat"], ["a dog"])
"""

IMPORTS = {
    "ours": "import bertscore_onnx; score()",
    "theirs last": "score(); import openvino",
    "telemetry first": "import openvino_telemetry; score(); assert openvino_telemetry.Telemetry",
    "theirs, without telemetry": (
        "import sys; sys.modules['openvino_telemetry'] = None; import openvino; score(); "
        "assert sys.modules['openvino_telemetry'] is None"
    ),
}
SCORE = """
import sys
def score():
    from bertscore_onnx import BERTScorer
    BERTScorer(sys.argv[1], device="openvino").score(["a"], ["b"])
"""


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS)
def test_nothing_is_sent_or_written(tiny_bundle, tmp_path, imports):
    log = tmp_path / "connections"
    home = tmp_path / "home"
    home.mkdir()
    tracer = ["strace", "-f", "-e", "trace=connect", "-o", str(log)]
    if shutil.which("strace") is None:
        log.touch()
        tracer = []
    done = run_python(SCORE + imports, tiny_bundle, under=tracer, HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert list(home.rglob("*")) == []
    assert "connect(" not in log.read_text()


@pytest.mark.slow
def test_the_users_conversions_work(minilm_bundle):
    code = SCORE + "score(); import openvino; print(openvino.convert_model(sys.argv[2]).inputs)"
    done = run_python(code, minilm_bundle, minilm_bundle / "model.onnx")
    assert "input_ids" in done.stdout, done.stderr


MEASURE = """
import sys
from pathlib import Path
from bertscore_onnx import BERTScorer

with BERTScorer(sys.argv[1], device="openvino", nthreads=1) as scorer:
    for words in range(300, 0, -1):
        for number in (1, 3):
            texts = ["the " * words] * number
            scorer.score(texts, texts)
        if words in (100, 1):
            print(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_new_shapes_take_no_further_memory(minilm_bundle):
    done = run_python(MEASURE, minilm_bundle)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after - before < 30e6  # it was 89 MB with OpenVINO's own number of kernels
