import pytest

from bertscore_onnx.bundle.catalogue import entries


@pytest.fixture(autouse=True)
def parity(monkeypatch):
    """Only RoBERTa has been measured."""
    monkeypatch.setattr(
        "bertscore_onnx.bundle.catalogue.largest_differences", lambda: {"roberta": 2.4e-7}
    )


def test_lists_the_catalogue_under_a_header(run, home):
    lines = run("models").stdout.splitlines()
    assert lines[0].split("  ")[0] == "MODEL"
    assert [line.split()[0] for line in lines[1:]] == list(entries())


def test_columns_are_aligned(run, home, monkeypatch):
    assert run("models", "ROBERTA-large-MNLI").stdout == (
        "MODEL               LAYER  LENGTH  MB    BASELINES  HERE\n"
        "roberta-large-mnli  19     512     1165  en         -\n"
    )
    monkeypatch.setenv("COLUMNS", "30")
    assert run("models", "ROBERTA-large-MNLI").stdout.splitlines() == [
        "MODEL      LAYER  LENGTH  MB",
        "roberta-   19     512     1165",
        "large-",
        "mnli",
        "",
        "MODEL          BASELINES  HERE",
        "roberta-       en         -",
        "large-mnli",
    ]


def test_what_is_unbounded_or_absent_is_a_dash(run, installed_bundle):
    for name, columns in (
        ("mt5-xl", "google/mt5-xl 24 - 6680 - -"),
        ("tiny-bert", "tiny-bert - 32 - - 1"),
    ):
        assert run("models", name).stdout.splitlines()[1].split() == columns.split()


@pytest.mark.parametrize("width", [80, 100, 200])
def test_lines_fit_the_terminal(run, home, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("models").stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert "".join(line.split()[0] for line in lines if "multilingual" in line).startswith(
        "bert-base-multilingual-cased"
    )


def test_here_lists_the_bundles_with_their_paths(run, run_json, installed_bundle):
    header, *lines = run("models", "--here").stdout.splitlines()
    assert header.split() == ["MODEL", "LAYER", "TOKENIZER", "PRECISION", "PATH"]
    assert [line.split() for line in lines] == [
        ["tiny-bert", "2", "slow", "fp32", str(installed_bundle)]
    ]
    [model] = run_json("models", "--here")
    assert (model["name"], model["bundles"]) == ("tiny-bert", [str(installed_bundle)])


def test_here_lists_what_the_text_matches_alone(run, run_json, installed_bundle):
    result = run("models", "roberta", "--here")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(
        "No such bundle is installed. Make one with `bertscore-onnx export`"
    )
    assert run_json("models", "roberta", "--here") == []


def test_json_has_the_same_facts(run_json, installed_bundle):
    assert run_json("models", "xlm-roberta-base") == [
        {
            "name": "xlm-roberta-base",
            "family": "xlm-roberta",
            "num_layers": 9,
            "max_length": 512,
            "size_mb": 1025,
            "baseline_languages": [
                "cs",
                "de",
                "en",
                "es",
                "et",
                "fi",
                "fr",
                "it",
                "lv",
                "pt",
                "zh",
            ],
            "largest_difference": None,
            "bundles": [],
        }
    ]
    [own] = run_json("models", "tiny-bert")
    assert [*own.values()] == [
        "tiny-bert",
        "bert",
        None,
        32,
        None,
        [],
        None,
        [str(installed_bundle)],
    ]


def test_a_broken_bundle_is_warned_of(run, installed_bundle):
    (installed_bundle / "bertscore.json").write_text("{}")
    result = run("models", "roberta-base", "--format", "json")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        f"Warning: {installed_bundle / 'bertscore.json'} is not a manifest"
    )
    assert result.stderr.count("\n") == 1


def test_nothing_found_exits_1_with_the_nearest_names_if_any(refused, home):
    stderr = refused("models", "roberta-lagre")
    assert stderr.startswith(
        "Error: No model's name contains 'roberta-lagre'. The nearest names are roberta-large,"
    )
    other = refused("models", "no-such-thing")
    assert (
        other
        == "Error: No model's name contains 'no-such-thing'. `bertscore-onnx models` lists all."
    )
