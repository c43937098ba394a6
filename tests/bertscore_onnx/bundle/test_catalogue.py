from dataclasses import replace

import pytest

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.catalogue import Architecture, Baseline, misnamed, read_baseline_file
from bertscore_onnx.errors import BaselineError, InputError


def test_entries_are_read_only() -> None:
    with pytest.raises(TypeError):
        catalogue.entries()["mine"] = catalogue.entries()["t5-small"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "family", "num_layers", "max_length"),
    [
        ("roberta-large", "roberta", 17, 512),
        ("amazon/bort", "bort", 0, 512),
        ("google/mt5-xl", "mt5", 24, None),
        ("vinai/bertweet-base", "bertweet", 9, 128),
        ("khalidalt/DeBERTa-v3-large-mnli", "deberta-v2", 18, None),
        ("tuner007/pegasus_paraphrase", "pegasus", 15, 60),
        ("allenai/led-base-16384", "led", 6, 16384),
        ("answerdotai/ModernBERT-base", "modernbert", 12, 8192),
        ("answerdotai/ModernBERT-large", "modernbert", 19, 8192),
    ],
)
def test_find_returns_the_facts_of_a_model(
    name: str, family: str, num_layers: int, max_length: int | None
) -> None:
    entry = catalogue.find(name)
    assert entry is not None
    assert (entry.name, entry.family, entry.num_layers, entry.max_length) == (
        name,
        family,
        num_layers,
        max_length,
    )


def test_every_model_has_a_size() -> None:
    entries = catalogue.entries()
    assert all(entry.size_mb > 0 for entry in entries.values())
    sizes = {"roberta-large": 1065, "albert-xxlarge-v2": 823, "sshleifer/tiny-mbart": 2}
    assert {name: entries[name].size_mb for name in sizes} == sizes


def test_the_models_over_2_gib_are_exactly_the_known_ones() -> None:
    assert {
        entry.name for entry in catalogue.entries().values() if entry.size_mb * 10**6 > 2 * 1024**3
    } == {
        "microsoft/deberta-xlarge-mnli",
        "microsoft/deberta-v2-xlarge-mnli",
        "microsoft/deberta-v2-xxlarge",
        "microsoft/deberta-v2-xxlarge-mnli",
        "google/mt5-xl",
        "google/byt5-large",
    }


def test_a_model_has_the_layers_of_its_baselines_and_the_layer_chosen_for_it() -> None:
    for name, entry in catalogue.entries().items():
        layers = entry.architecture.model_layers
        if layers is None:
            assert name == "sshleifer/tiny-mbart"
            continue
        assert entry.num_layers <= layers
        if catalogue.baseline_languages(name):
            assert catalogue.baselines(name, layers)
            assert not catalogue.baselines(name, layers + 1)


BERT_BASE = Architecture("bert", 12, 768, 30522)


def test_a_model_of_the_same_type_and_sizes_may_be_the_catalogues() -> None:
    for name, entry in catalogue.entries().items():
        assert misnamed(name, entry.architecture) is None
        assert (
            misnamed(
                name, replace(entry.architecture, family=catalogue.common_family(entry.family))
            )
            is None
        )
    assert misnamed("bert-base-uncased", BERT_BASE) is None


@pytest.mark.parametrize("field", ["family", "model_layers", "hidden_size", "vocab_size"])
def test_a_model_that_differs_in_one_fact_is_not_the_catalogues(field: str) -> None:
    for name, entry in catalogue.entries().items():
        fact = getattr(entry.architecture, field)
        other = "longformer" if entry.family != "longformer" else "bert"
        changed = replace(
            entry.architecture, **{field: other if field == "family" else (fact or 0) + 1}
        )
        assert (misnamed(name, changed) is None) == (fact is None)


def test_the_difference_states_both_models() -> None:
    assert misnamed("bert-base-uncased", Architecture("bert", 6, 48, 1000)) == (
        "bert-base-uncased is a model of the catalogue with type bert, layers 12, hidden size "
        "768, vocabulary 30522; this one has type bert, layers 6, hidden size 48, vocabulary 1000"
    )


@pytest.mark.parametrize(
    "model", [Architecture("unknown", None, None, None), Architecture(None, 12, 768, None)]
)
def test_a_fact_that_is_not_known_is_not_compared(model: Architecture) -> None:
    assert misnamed("bert-base-uncased", model) is None


def test_a_name_that_is_not_in_the_catalogue_is_any_models() -> None:
    assert misnamed("mine", BERT_BASE) is None


@pytest.mark.parametrize("name", ["", "roberta-lagre", "Roberta-Large", "../../x"])
def test_find_returns_none_for_an_unknown_name(name: str) -> None:
    assert catalogue.find(name) is None


@pytest.mark.parametrize(
    ("name", "num_layers", "baselines"),
    [
        ("roberta-large", 0, {"en": Baseline(0.3712891, 0.37132213, 0.36826715)}),
        ("roberta-large", -1, {}),
        *((name, 1, {}) for name in ("t5-small", "mine", "../en/roberta-large")),
    ],
)
def test_baselines_are_those_of_the_layer(
    name: str, num_layers: int, baselines: dict[str, Baseline]
) -> None:
    assert catalogue.baselines(name, num_layers) == baselines


@pytest.mark.parametrize(
    ("content", "num_layers", "baseline"),
    [
        ("LAYER,P,R,F\n0,0.1,0.2,0.3\n1,0.4,0.5,0.6\n", 1, Baseline(0.4, 0.5, 0.6)),
        ("LAYER,P,R,F\n7,0.1,0.2,0.3\n", 7, Baseline(0.1, 0.2, 0.3)),
    ],
)
def test_the_row_of_the_layer_is_read_wherever_it_stands(write, content, num_layers, baseline):
    assert read_baseline_file(write("baseline.tsv", content), num_layers) == baseline


@pytest.mark.parametrize(
    "content",
    [
        "",
        "0,0.1,0.2,0.3\n",
        "LAYER,P,R\n1,0.1,0.2\n",
        "LAYER,P,R,F\n1,a,b,c\n",
        b"\xff\xfe\x00",
        "LAYER,P,R,F\n1,0.1",
        "LAYER,P,R,F\n1,0.1_5,0.2,0.3\n",
        "LAYER,P,R,F\n0_1,0.1,0.2,0.3\n",
    ],
)
def test_other_content_is_refused(write, content):
    with pytest.raises((InputError, BaselineError)):
        read_baseline_file(write("baseline.tsv", content), 1)


@pytest.mark.parametrize("figure", ["1", "1.5", "nan", "inf"])
def test_a_baseline_that_cannot_divide_is_refused(write, figure):
    with pytest.raises(InputError, match="must be below 1"):
        read_baseline_file(write("baseline.tsv", f"LAYER,P,R,F\n1,0.1,{figure},0.3\n"), 1)


@pytest.mark.parametrize("num_layers", [3, 4])
def test_a_layer_with_two_rows_is_refused(write, num_layers):
    path = write("baseline.tsv", "LAYER,P,R,F\n3,0.1,0.2,0.3\n4,0.9,0.5,0.5\n4,0.3,0.3,0.3\n")
    with pytest.raises(InputError, match=r"2 rows for layer 4; expected one"):
        read_baseline_file(path, num_layers)
