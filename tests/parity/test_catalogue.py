"""The catalogue's layers, default models and baselines are those of the bert-score that is
installed beside us.
"""

import csv
from importlib.resources import files
from pathlib import Path

import pytest

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.catalogue import Baseline


@pytest.fixture(scope="module")
def oracle():
    """bert-score's own tables; importing them imports torch."""
    return pytest.importorskip("bert_score.utils", reason="needs bert-score to compare with")


@pytest.fixture(scope="module")
def oracle_baselines(oracle):
    """(language, model) to the rows of bert-score's file, without the header."""
    assert oracle.__file__ is not None
    folder = Path(oracle.__file__).parent / "rescale_baseline"
    tables = {}
    for path in folder.rglob("*.tsv"):
        language, _, model = path.relative_to(folder).with_suffix("").as_posix().partition("/")
        tables[language, model] = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[
            1:
        ]
    return tables


def test_layers_and_order_equal_bert_score(oracle):
    entries = catalogue.entries().values()
    ours = [(entry.name, entry.num_layers) for entry in entries if entry.source == "bert-score"]
    assert ours == list(oracle.model2layers.items())


def test_language_defaults_equal_bert_score(oracle):
    table = oracle.lang2model.copy()  # a defaultdict, which grows when it is asked
    expected = {language: table[language] for language in [*table, "fr", "nl"]}
    assert {language: catalogue.default_model(language) for language in expected} == expected


def test_baseline_files_are_those_of_bert_score(oracle_baselines):
    folder = Path(str(files("bertscore_onnx_models").joinpath("baselines")))
    ours = {
        path.relative_to(folder).with_suffix("").as_posix()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert len(ours) == 72
    assert ours == {f"{language}/{model}" for language, model in oracle_baselines}


def test_every_baseline_row_equals_bert_score(oracle_baselines):
    expected = {}
    for (language, model), rows in oracle_baselines.items():
        for layer, precision, recall, f1 in rows:
            row = Baseline(float(precision), float(recall), float(f1))
            expected.setdefault((model, int(layer)), {})[language] = row
    assert {key: catalogue.baselines(*key) for key in expected} == expected


def test_no_baseline_goes_past_the_rows_of_bert_score(oracle_baselines):
    for (language, model), rows in oracle_baselines.items():
        assert language not in catalogue.baselines(model, num_layers=len(rows))
