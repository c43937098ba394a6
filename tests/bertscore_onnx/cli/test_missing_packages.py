"""What commands print where the package of an extra is missing, and which do without it."""

import re
import sys
from importlib.util import find_spec

import pytest

from bertscore_onnx import DocumentCounts

TABLE = (
    "label,lang_pair,system,segment,human,m,candidate,reference\n"
    "1,cs-en,A,1,90,1,the cat sat,a cat sat\n"
    "0,cs-en,B,1,60,2,a house,the red house\n"
)
SYSTEMS = ["-c", "{table}", "{other}", "-r", "{table}"]
PAIR = ["-c", "the cat sat", "-r", "a dog sat on it"]

needs_export = pytest.mark.skipif(
    not find_spec("torch"), reason="the extra export is not installed"
)


@pytest.fixture
def without(monkeypatch):
    """Let packages, and those of their modules that are imported already, be missing."""

    def without(*packages):
        loaded = [name for name in sys.modules if name.partition(".")[0] in packages]
        for name in (*packages, *loaded):
            monkeypatch.setitem(sys.modules, name, None)

    return without


@pytest.fixture
def filled(write, tiny_bundle, tmp_path):
    names = {"table": write("table.csv", TABLE), "other": write("other.csv", TABLE)}
    names |= {"bundle": tiny_bundle, "out": tmp_path / "out"}
    return lambda arguments: [argument.format(**names) for argument in arguments]


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("pyarrow", "parquet,cpu", ["batch", "-m", "{bundle}", "-i", "{table}", "-o", "{out}"]),
        *(
            (
                package,
                "evaluation",
                [
                    "compare",
                    *SYSTEMS,
                    "-m",
                    "absent",
                    "--metric",
                    "bertscore",
                    "bleu",
                    "--html",
                    "{out}",
                ],
            )
            for package in ("scipy", "sacrebleu", "jinja2")
        ),
        ("sacrebleu", "evaluation", ["meta", "{table}", "--metric", "bleu", "--format", "json"]),
        ("scipy", "evaluation", ["meta", "{table}", "--score", "m", "--format", "json"]),
        ("scipy", "evaluation", ["tune-layers", "{table}", "-m", "absent"]),
        ("huggingface_hub", "hub", ["pull", "org/tiny"]),
        ("matplotlib", "plot", ["show", "-m", "/no/such/bundle", *PAIR, "-o", "{out}.svg"]),
        ("matplotlib", "plot", ["compare", *SYSTEMS, "--metric", "bleu", "--figure", "{out}.svg"]),
        ("torch", "export,cpu", ["export", "--model", "x"]),
        *(
            pytest.param(name, "export,cpu", ["export", "--model", "x"], marks=needs_export)
            for name in ("transformers", "onnx")
        ),
    ],
)
def test_a_missing_package_is_named_with_what_to_install(
    refused, without, filled, home, tmp_path, package, extra, arguments
):
    without(package)
    stderr = refused(*filled(arguments))
    assert re.match(rf"Error: .* needs {package}, which is not installed", stderr)
    assert re.search(rf"Install the extras? {extra.partition(',')[0]}", stderr)
    assert re.search(rf"`pip install [^`]*\b{package.replace('_', '.')}", stderr)
    assert not [*tmp_path.glob("out*")]


@pytest.mark.parametrize(
    ("packages", "arguments"),
    [
        (("matplotlib", "torch"), ["show", "-m", "{bundle}", *PAIR, "-o", "{out}.html"]),
        (
            ("onnxruntime", "pyarrow"),
            ["count-documents", "-m", "{bundle}", "-r", "{table}", "-o", "{out}", "-q"],
        ),
    ],
)
def test_what_needs_no_package_works_without_it(
    run, without, filled, tmp_path, packages, arguments
):
    without(*packages)
    result = run(*filled(arguments))
    assert (result.exit_code, result.stderr) == (0, "")
    if arguments[0] == "count-documents":
        assert DocumentCounts.load(tmp_path / "out").num_documents == 2


@pytest.mark.full  # it imports PyTorch in a process of its own
def test_a_package_that_is_not_installed_completely_is_missing_too(run_process):
    blocked = ("transformers.utils.logging", "transformers.utils")
    result = run_process("export", "--model", "roberta-large", blocked=blocked)
    assert (result.returncode, result.stdout) == (2, b"")
    stderr = result.stderr.decode()
    assert stderr.startswith(
        "Error: Exporting needs transformers, which is not installed, or not completely."
    )
    assert "PIP_EXTRA_INDEX_URL set to PyTorch's index of CPU builds" in stderr
    assert "or export in an environment of its own (docs/export.md)" in stderr
    assert stderr.count("\n") == 1


@needs_export
@pytest.mark.parametrize("version", ["4.56.2", "6.0.0"])
def test_another_transformers_is_answered_with_an_environment_of_its_own(
    refused, tmp_path, monkeypatch, version
):
    installed = tmp_path / f"transformers-{version}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: transformers\nVersion: {version}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    stderr = refused("export", "--model", "roberta-large")
    assert stderr.startswith(
        f"Error: Exporting needs transformers 4.57 or 5, and {version} is installed."
    )
    assert "or export in an environment of its own (docs/export.md)" in stderr


@needs_export
def test_other_missing_modules_are_not_taken_for_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "bertscore_onnx_export.pipeline", None)
    result = run("export", "--model", "roberta-large")
    assert isinstance(result.exception, ModuleNotFoundError)
    assert "import of bertscore_onnx_export.pipeline halted" in str(result.exception)


def test_serving_asks_for_its_extra_and_its_help_does_not(run_process):
    done = run_process("serve", "--model", "nothing", blocked=("starlette",))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"Error: Serving needs starlette, which is not installed.")
    assert re.search(
        rb"`pip install [^`]*'starlette>=[^`]* 'onnxruntime!=1\.29\.\*,>=", done.stderr
    )
    done = run_process("serve", "--help", blocked=("starlette", "uvicorn", "prometheus_client"))
    assert (done.returncode, b"--api-key-file" in done.stdout) == (0, True)
