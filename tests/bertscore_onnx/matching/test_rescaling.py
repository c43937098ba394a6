import msgspec
import numpy as np
import pytest

from bertscore_onnx.bundle.baseline import Baseline
from bertscore_onnx.bundle.opening import read_manifest
from bertscore_onnx.errors import BaselineError, InputError
from bertscore_onnx.matching.rescaling import choose_baselines, read_baseline_file, rescale_layers
from bertscore_onnx.scores import Scores


@pytest.fixture
def baseline_file(tmp_path):
    """Return a function that writes a baseline file."""

    def write(content):
        path = tmp_path / "baseline.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_the_row_of_the_layer_is_read(baseline_file):
    path = baseline_file("LAYER,P,R,F\n0,0.1,0.2,0.3\n1,0.4,0.5,0.6\n")
    assert read_baseline_file(path, 1) == Baseline(0.4, 0.5, 0.6)


def test_the_layer_is_found_by_its_number_wherever_it_stands(baseline_file):
    assert read_baseline_file(baseline_file("LAYER,P,R,F\n7,0.1,0.2,0.3\n"), 7) == Baseline(0.1, 0.2, 0.3)


def test_a_missing_layer_names_those_that_exist(baseline_file):
    path = baseline_file("LAYER,P,R,F\n0,0.1,0.2,0.3\n2,0.1,0.2,0.3\n")
    with pytest.raises(BaselineError, match="no row for layer 5; it has: 0, 2"):
        read_baseline_file(path, 5)


@pytest.mark.parametrize(
    "content",
    ["", "0,0.1,0.2,0.3\n", "LAYER,P,R\n1,0.1,0.2\n", "LAYER,P,R,F\n1,a,b,c\n", b"\xff\xfe\x00", "LAYER,P,R,F\n1,0.1"],
)
def test_other_content_is_refused(baseline_file, content):
    with pytest.raises((InputError, BaselineError)):
        read_baseline_file(baseline_file(content), 1)


@pytest.mark.parametrize("figure", ["1", "1.5", "nan", "inf"])
def test_a_baseline_that_cannot_divide_is_refused(baseline_file, figure):
    with pytest.raises(InputError, match="must be below 1"):
        read_baseline_file(baseline_file(f"LAYER,P,R,F\n1,0.1,{figure},0.3\n"), 1)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.tsv"):
        read_baseline_file(tmp_path / "absent.tsv", 1)


@pytest.fixture
def manifest(tiny_bundle):
    """The manifest of a model with an English baseline."""
    return msgspec.structs.replace(read_manifest(tiny_bundle), baselines={"en": [Baseline(0.1, 0.2, 0.3)]})


def test_a_baseline_that_nobody_wants_is_not_looked_for(manifest):
    assert choose_baselines(manifest, "bf16", False, "xx", None) == (None, "no")


@pytest.mark.parametrize("lang", ["en", "EN"])
def test_the_language_chooses_the_bundles_baseline(manifest, lang):
    assert choose_baselines(manifest, "fp32", True, lang, None) == ([Baseline(0.1, 0.2, 0.3)], "en")


@pytest.mark.parametrize("precision", ["bf16", "fp16", "int8"])
def test_scores_of_another_arithmetic_are_not_rescaled_with_the_bundles_baseline(manifest, precision):
    with pytest.raises(BaselineError, match=f"computed in fp32, and these scores are computed in {precision}"):
        choose_baselines(manifest, precision, True, "en", None)


def test_whoever_insists_gets_the_bundles_baseline_for_another_arithmetic(manifest):
    found, name = choose_baselines(manifest, "bf16", True, "en", None, allow_fp32=True)
    assert (found, name) == ([Baseline(0.1, 0.2, 0.3)], "en")


def test_a_file_rescales_scores_of_any_arithmetic(manifest, baseline_file):
    path = baseline_file("LAYER,P,R,F\n2,0.4,0.5,0.6\n")
    found, name = choose_baselines(manifest, "bf16", True, "en", path)
    assert found == [Baseline(0.4, 0.5, 0.6)]
    assert name.startswith("file-")


def test_an_unknown_language_is_told_before_the_arithmetic(manifest):
    with pytest.raises(BaselineError, match="no baseline for 'xx', only for: en"):
        choose_baselines(manifest, "bf16", True, "xx", None)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4)])
def test_every_layer_is_rescaled_by_its_own_baseline(shape):
    raw = np.full(shape, 0.5, dtype=np.float32)
    scores = rescale_layers(Scores(raw, raw, raw, np.zeros(shape[:2])), [Baseline(0, 0.25, 0.5), Baseline(0.5, 0, 0)])
    for array, first, second in zip(scores, (0.5, 1 / 3, 0), (0, 0.5, 0.5), strict=True):
        assert array.dtype == np.float32
        assert array[0] == pytest.approx(np.full(shape[1:], first), abs=1e-6)
        assert array[1] == pytest.approx(np.full(shape[1:], second), abs=1e-6)
