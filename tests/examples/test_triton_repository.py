"""`examples/triton_repository.py`: its configuration matches the graph, which scores as BERTScorer
does.
"""

import re
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from triton_repository import write_repository

from bertscore_onnx import BERTScorer, count_documents
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.scoring.tokenization import load_tokenizer
from tests.examples.conftest import EXAMPLES

pytestmark = pytest.mark.slow  # it exports models
CANDIDATES = ["the cat sat on a mat", "a dog ran", "", "the tree"]
REFERENCES = ["a cat sits on the mat", "the dog runs and ran", "it was a blue house", "a tree"]


def field(config, name):
    [value] = re.findall(rf'^{name}: "?(.+?)"?$', config, re.MULTILINE)
    return value


def scores(folder, bundle):
    """Run the graph of a model on the texts, with the names and types of its configuration; return
    (scores, pairs).
    """
    config = (folder / "config.pbtxt").read_text(encoding="utf-8")
    inputs = re.findall(r'name: "(\w+)" data_type: TYPE_INT64 dims: \[ -1 \]', config)
    outputs = re.findall(
        r'name: "(\w+)" data_type: TYPE_FP32 dims: \[ 1 \] reshape { shape: \[ \] }', config
    )
    tokenize, feed = load_tokenizer(open_bundle(bundle)), {}
    for side, texts in (("candidate", CANDIDATES), ("reference", REFERENCES)):
        ids = tokenize(texts)[0]
        feed[f"{side}_mask"] = np.array(
            [[position < len(one) for position in range(16)] for one in ids], dtype=np.int64
        )
        feed[f"{side}_ids"] = np.array(
            [np.pad(one, (0, 16 - len(one))) for one in ids], dtype=np.int64
        )
    assert feed.keys() == {*inputs}
    graph = folder / "1" / field(config, "default_model_filename")
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    assert [(one.type, len(one.shape)) for one in session.get_outputs()] == [
        ("tensor(float)", 1)
    ] * len(outputs)
    return session.run(outputs, feed)


def test_the_graph_takes_and_gives_what_the_configuration_says(scoring_bundle, tmp_path):
    folder = write_repository(str(scoring_bundle), tmp_path)
    assert folder == tmp_path / "bertscore"
    assert field((folder / "config.pbtxt").read_text(encoding="utf-8"), "name") == "bertscore"
    with BERTScorer(scoring_bundle) as scorer, pytest.warns(match="empty"):
        expected = scorer.score(CANDIDATES, REFERENCES)
    np.testing.assert_allclose(scores(folder, scoring_bundle), expected, atol=1e-6)


def test_weights_by_idf_stand_in_the_graph(scoring_bundle, tmp_path):
    counts = count_documents(REFERENCES, scoring_bundle)
    counts.save(tmp_path / "counts.json")
    folder = write_repository(
        str(scoring_bundle), tmp_path / "models", "idf", tmp_path / "counts.json"
    )
    with BERTScorer(scoring_bundle, idf=counts) as scorer, pytest.warns(match="empty"):
        expected, name = scorer.score(CANDIDATES, REFERENCES), scorer.signature.idf
    np.testing.assert_allclose(scores(folder, scoring_bundle), expected, atol=1e-6)
    assert f'"bertscore_idf" value {{ string_value: "{name}" }}' in (
        folder / "config.pbtxt"
    ).read_text(encoding="utf-8")


def test_a_model_is_not_written_over(scoring_bundle, tmp_path):
    write_repository(str(scoring_bundle), tmp_path, "one")
    write_repository(str(scoring_bundle), tmp_path, "two")
    with pytest.raises(ValueError, match="already exists"):
        write_repository(str(scoring_bundle), tmp_path, "one")


@pytest.mark.parametrize("name", ["", ".", "..", "../out", "a/b", 'a"', "a b"])
def test_a_name_that_is_no_folder_of_the_repository_is_refused(name, scoring_bundle, tmp_path):
    with pytest.raises(ValueError, match="letters"):
        write_repository(str(scoring_bundle), tmp_path / "models", name)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("bundle", "message"),
    [("tiny_bundle", "--scoring-graph"), ("all_layers_bundle", "Export one layer")],
)
def test_a_bundle_that_triton_cannot_serve_is_refused(bundle, message, request, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_repository(str(request.getfixturevalue(bundle)), tmp_path / "models")
    assert not any(tmp_path.iterdir())


def run(*arguments):
    command = [sys.executable, EXAMPLES / "triton_repository.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_script_prints_the_folder(scoring_bundle, tmp_path):
    done = run(scoring_bundle, tmp_path, "metric")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(tmp_path / "metric"), "")


def test_the_script_says_in_a_line_what_is_wrong(scoring_bundle, tmp_path):
    count_documents(REFERENCES, scoring_bundle, max_length=16).save(tmp_path / "counts.json")
    done = run(scoring_bundle, tmp_path / "models", "--idf-counts", tmp_path / "counts.json")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "Count the documents with this bundle" in done.stderr
    assert not (tmp_path / "models").exists()


def test_idf_weights_without_onnx_are_refused_leaving_nothing(
    scoring_bundle, tmp_path, monkeypatch
):
    count_documents(REFERENCES, scoring_bundle).save(tmp_path / "counts.json")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ValueError, match="pip install onnx"):
        write_repository(
            str(scoring_bundle), tmp_path / "models", idf_counts=tmp_path / "counts.json"
        )
    assert not (tmp_path / "models").exists()
