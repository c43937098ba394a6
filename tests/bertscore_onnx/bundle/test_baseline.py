import pytest

from bertscore_onnx.bundle.catalogue import Baseline, read_baseline_file
from bertscore_onnx.errors import BaselineError, InputError


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
