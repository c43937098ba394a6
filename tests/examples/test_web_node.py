"""`examples/web/score.mjs`: Node scores files of texts as the Python package does."""

import json

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.catalogue import Baseline
from tests.support.manifests import FORMATS, changed_copy
from tests.support.parity import ORDINARY_PAIRS
from tests.support.programs import LINE_PAIRS, WEB, needs_node, run_node

pytestmark = [pytest.mark.full, needs_node]


@pytest.fixture
def write(tmp_path):
    def write(name, texts):
        (tmp_path / name).write_bytes("".join(f"{text}\n" for text in texts).encode())
        return tmp_path / name

    return write


@pytest.fixture
def files(write):
    candidates, references = zip(*LINE_PAIRS, strict=True)
    return write("candidates.txt", candidates), write("references.txt", references)


@pytest.fixture
def changed(minilm_scoring_bundle, tmp_path):
    def change(**fields):
        return changed_copy(minilm_scoring_bundle, tmp_path / "changed", **fields)

    return change


def table(done):
    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    assert header.split("\t") == ["precision", "recall", "f1"]
    return np.array([[float(number) for number in line.split("\t")] for line in lines]).T


def test_scores_are_those_of_python(minilm_scoring_bundle, files):
    with (
        BERTScorer(minilm_scoring_bundle, device="cpu") as scorer,
        pytest.warns(UserWarning, match=r"empty|longer"),
    ):
        expected = scorer.score(*zip(*LINE_PAIRS, strict=True))
    done = run_node("score.mjs", minilm_scoring_bundle, *files)
    np.testing.assert_allclose(table(done), np.stack(expected), rtol=0, atol=1e-5)
    assert (
        done.stderr
        == "score.mjs: 3 texts are longer than the model takes; their ends are not scored.\n"
    )


def test_scores_are_rescaled_by_the_baseline_of_a_language(changed, files):
    bundle = changed(baselines={"en": [Baseline(0.1, 0.2, 0.3)]})
    with BERTScorer(bundle, device="cpu", rescale_with_baseline=True, lang="en") as scorer:
        expected = scorer.score(*zip(*ORDINARY_PAIRS, strict=True))
    scores = table(run_node("score.mjs", "--rescale", "en", bundle, *files))
    np.testing.assert_allclose(
        scores[:, : len(ORDINARY_PAIRS)], np.stack(expected), rtol=0, atol=1e-5
    )
    refused = run_node("score.mjs", "--rescale", "de", bundle, *files)
    assert refused.stderr == "score.mjs: The bundle has no baseline for de, only for: en.\n"


def test_ends_of_lines_may_be_those_of_windows(minilm_scoring_bundle, write):
    expected = table(
        run_node(
            "score.mjs",
            minilm_scoring_bundle,
            write("a", ["one", "two"]),
            write("b", ["two", "two"]),
        )
    )
    with_returns = write("c", ["one\r", "two\r"]), write("d", ["two\r", "two\r"])
    np.testing.assert_array_equal(
        table(run_node("score.mjs", minilm_scoring_bundle, *with_returns)), expected
    )


def test_files_without_lines_get_no_scores(minilm_scoring_bundle, write):
    assert (
        table(run_node("score.mjs", minilm_scoring_bundle, write("a", []), write("b", []))).size
        == 0
    )


def test_a_text_may_be_empty(minilm_scoring_bundle, write):
    scores = table(
        run_node(
            "score.mjs", minilm_scoring_bundle, write("a", ["one", ""]), write("b", ["one", ""])
        )
    )
    np.testing.assert_allclose(scores, [[1, 0]] * 3, atol=1e-5)


def refusal(*arguments):
    done = run_node("score.mjs", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("score.mjs: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_another_number_of_references_is_refused(minilm_scoring_bundle, write):
    message = refusal(minilm_scoring_bundle, write("a", ["one", "two"]), write("b", ["three"]))
    assert "There are 2 candidates and 1 references." in message


def test_bytes_that_are_no_utf_8_are_refused(minilm_scoring_bundle, tmp_path, write):
    (tmp_path / "latin").write_bytes("café\n".encode("latin-1"))
    assert "utf-8" in refusal(minilm_scoring_bundle, tmp_path / "latin", write("b", ["cafe"]))


@pytest.mark.parametrize("missing", ["bundle", "argument"])
def test_what_is_missing_is_named(minilm_scoring_bundle, files, missing):
    if missing == "bundle":
        assert "is no bundle: it has no bertscore.json" in refusal(
            minilm_scoring_bundle / "absent", *files
        )
    else:
        assert "BUNDLE CANDIDATES REFERENCES" in refusal(minilm_scoring_bundle)


def test_a_bundle_in_the_slow_mode_is_refused(changed, files):
    assert "--tokenizer-mode fast" in refusal(changed(tokenizer_mode="slow"), *files)


def test_a_bundle_without_a_scoring_graph_is_refused(minilm_scoring_bundle, changed, files):
    names = read_manifest(minilm_scoring_bundle).files
    without = changed(
        files={name: digest for name, digest in names.items() if name != "scoring.onnx"}
    )
    assert "--scoring-graph" in refusal(without, *files)


def test_a_bundle_of_another_format_is_refused(files):
    assert "format version 2; this page reads 3" in refusal(FORMATS / "2", *files)


def test_a_bundle_with_all_layers_is_refused(minilm_scoring_bundle, tmp_path, files):
    content = json.loads((minilm_scoring_bundle / "bertscore.json").read_bytes()) | {
        "all_layers": True
    }
    (tmp_path / "bertscore.json").write_text(json.dumps(content))
    assert "--all-layers" in refusal(tmp_path, *files)


def test_white_space_is_stripped_as_python_strips_it():
    characters = [chr(point) for point in range(0x10000) if not 0xD800 <= point < 0xE000]
    texts = [f"{one}a{one}b{one}{one}" for one in characters]
    program = (
        "import { strip } from './bertscore.mjs'; import { readFileSync } from 'node:fs';"
        "console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(strip)))"
    )
    done = run_node("--input-type=module", "--eval", program, input=json.dumps(texts))
    assert json.loads(done.stdout) == [text.strip() for text in texts]


def test_packages_have_one_version_each():
    package = json.loads((WEB / "package.json").read_bytes())
    locked = json.loads((WEB / "package-lock.json").read_bytes())["packages"]
    assert locked[""]["dependencies"] == package["dependencies"]
    for name, version in package["dependencies"].items():
        assert locked[f"node_modules/{name}"]["version"] == version
    assert not any("resolved" in entry for entry in locked.values())  # a lock for any registry
