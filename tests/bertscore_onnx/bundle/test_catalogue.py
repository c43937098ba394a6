from typing import Any

import pytest

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.catalogue import Baseline, read_baseline_file
from bertscore_onnx.errors import BaselineError, InputError

FAMILIES = {
    "albert",
    "bart",
    "bert",
    "bertweet",
    "bigbird",
    "blenderbot",
    "blenderbot-small",
    "bort",
    "byt5",
    "convbert",
    "deberta",
    "deberta-v2",
    "distilbert",
    "electra",
    "led",
    "longformer",
    "mbart",
    "mbart50",
    "mpnet",
    "mt5",
    "pegasus",
    "prophetnet",
    "roberta",
    "squeezebert",
    "t5",
    "xlm",
    "xlm-prophetnet",
    "xlm-roberta",
    "xlnet",
}


def test_there_are_140_models() -> None:
    assert len(catalogue.entries()) == 140


def test_entries_are_named_by_their_key() -> None:
    assert [entry.name for entry in catalogue.entries().values()] == list(catalogue.entries())


def test_entries_are_read_only() -> None:
    with pytest.raises(TypeError):
        catalogue.entries()["mine"] = catalogue.entries()["t5-small"]  # type: ignore[index]


def test_the_families_are_exactly_the_known_ones() -> None:
    assert {entry.family for entry in catalogue.entries().values()} == FAMILIES


@pytest.mark.parametrize(
    ("name", "family", "num_layers", "max_length"),
    [
        ("roberta-large", "roberta", 17, 512),
        ("distilroberta-base", "roberta", 5, 512),
        ("princeton-nlp/unsup-simcse-roberta-large", "roberta", 13, 512),
        ("zhiheng-huang/bert-base-uncased-embedding-relative-key", "bert", 4, 512),
        ("dbmdz/distilbert-base-turkish-cased", "distilbert", 4, 512),
        ("amazon/bort", "bort", 0, 512),
        ("Vamsi/T5_Paraphrase_Paws", "t5", 12, None),
        ("google/mt5-xl", "mt5", 24, None),
        ("google/byt5-small", "byt5", 1, None),
        ("xlnet-base-cased", "xlnet", 5, None),
        ("vinai/bertweet-base", "bertweet", 9, 128),
        ("microsoft/deberta-xlarge-mnli", "deberta", 40, None),
        ("khalidalt/DeBERTa-v3-large-mnli", "deberta-v2", 18, None),
        ("facebook/mbart-large-cc25", "mbart", 12, 1024),
        ("facebook/mbart-large-50-one-to-many-mmt", "mbart50", 12, 1024),
        ("facebook/blenderbot-400M-distill", "blenderbot", 2, 128),
        ("facebook/blenderbot_small-90M", "blenderbot-small", 7, 512),
        ("tuner007/pegasus_paraphrase", "pegasus", 15, 60),
        ("google/pegasus-large", "pegasus", 8, 1024),
        ("google/pegasus-xsum", "pegasus", 11, 512),
        ("allenai/led-base-16384", "led", 6, 16384),
        ("google/bigbird-roberta-base", "bigbird", 10, 4096),
    ],
)
def test_find_returns_the_facts_of_a_model(name: str, family: str, num_layers: int, max_length: int | None) -> None:
    entry = catalogue.find(name)
    assert entry is not None
    assert (entry.name, entry.family, entry.num_layers, entry.max_length) == (name, family, num_layers, max_length)


@pytest.mark.parametrize(
    ("name", "size_mb"), [("roberta-large", 1065), ("albert-xxlarge-v2", 823), ("sshleifer/tiny-mbart", 2)]
)
def test_find_returns_the_size_of_a_model(name: str, size_mb: int) -> None:
    assert catalogue.entries()[name].size_mb == size_mb


def test_every_model_has_a_size() -> None:
    assert all(entry.size_mb > 0 for entry in catalogue.entries().values())


def test_the_models_over_2_gib_are_exactly_the_known_ones() -> None:
    assert {entry.name for entry in catalogue.entries().values() if entry.size_mb * 10**6 > 2 * 1024**3} == {
        "microsoft/deberta-xlarge-mnli",
        "microsoft/deberta-v2-xlarge-mnli",
        "microsoft/deberta-v2-xxlarge",
        "microsoft/deberta-v2-xxlarge-mnli",
        "google/mt5-xl",
        "google/byt5-large",
    }


@pytest.mark.parametrize("name", ["", "roberta-lagre", "Roberta-Large", "../../x"])
def test_find_returns_none_for_an_unknown_name(name: str) -> None:
    assert catalogue.find(name) is None


@pytest.mark.parametrize(
    ("language", "model"),
    [
        ("en", "roberta-large"),
        ("EN", "roberta-large"),
        ("zh", "bert-base-chinese"),
        ("tr", "dbmdz/bert-base-turkish-cased"),
        ("En-Sci", "allenai/scibert_scivocab_uncased"),
        ("fr", "bert-base-multilingual-cased"),
    ],
)
def test_default_model_follows_the_language_in_any_case(language: str, model: str) -> None:
    assert catalogue.default_model(language) == model


def test_default_models_are_in_the_catalogue() -> None:
    assert all(catalogue.find(catalogue.default_model(language)) for language in ("en", "zh", "tr", "en-sci", "xx"))


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        pytest.param("roberta-lagre", {"count": 1}, ["roberta-large"], id="the best first"),
        pytest.param("KHALIDALT/DEBERTA-V3-LARGE-MNLI", {"count": 1}, ["khalidalt/DeBERTa-v3-large-mnli"], id="case"),
        pytest.param("nope", {"cutoff": 0.6}, [], id="far names are left out"),
        pytest.param("roberta-lrge", {"cutoff": 0.9}, ["roberta-large"], id="near names stay"),
        pytest.param("XLNET", {"cutoff": 1}, ["xlnet-base-cased", "xlnet-large-cased"], id="names that contain it"),
        pytest.param("fr", {"candidates": ["de", "FR", "fi"]}, ["FR", "fi", "de"], id="given candidates"),
        pytest.param("en", {"candidates": []}, [], id="no candidates"),
    ],
)
def test_nearest_names_are_the_most_similar(name: str, options: dict[str, Any], expected: list[str]) -> None:
    assert catalogue.nearest_names(name, **options) == expected


def test_nearest_names_has_no_cutoff_by_default() -> None:
    assert len(catalogue.nearest_names("?", count=5)) == 5


def test_baseline_languages_are_sorted() -> None:
    expected = ["cs", "de", "en", "es", "et", "fi", "fr", "it", "lv", "pt", "zh"]
    assert catalogue.baseline_languages("bert-base-multilingual-cased") == expected


def test_baseline_languages_finds_a_name_with_a_slash() -> None:
    assert catalogue.baseline_languages("allenai/scibert_scivocab_uncased") == ["en-sci"]


@pytest.mark.parametrize("name", ["t5-small", "mine", "", "../en/roberta-large"])
def test_baseline_languages_is_empty_without_a_baseline(name: str) -> None:
    assert catalogue.baseline_languages(name) == []


def test_baselines_are_those_of_the_layer() -> None:
    assert catalogue.baselines("roberta-large", 17) == {"en": Baseline(0.83150584, 0.8314941, 0.83122575)}


def test_baselines_start_at_the_embeddings() -> None:
    assert catalogue.baselines("roberta-large", 0) == {"en": Baseline(0.3712891, 0.37132213, 0.36826715)}


@pytest.mark.parametrize("num_layers", [-1, 25])
def test_baselines_are_empty_for_a_layer_outside_the_model(num_layers: int) -> None:
    assert catalogue.baselines("roberta-large", num_layers) == {}


@pytest.mark.parametrize("name", ["t5-small", "mine", "../en/roberta-large"])
def test_baselines_are_empty_without_a_file(name: str) -> None:
    assert catalogue.baselines(name, 1) == {}


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
