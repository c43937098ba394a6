import gzip
import json

import numpy as np
import pytest

from bertscore_onnx_evaluation.layers import tune_layers
from tests.support.metaeval import WMT16, needs_wmt16
from tests.support.scores import WORDS

ROWS = [
    ("cs-en", "the cat sat", "a cat sat on the mat", -0.5),
    ("cs-en", "a dog ran", "the dog ran and sat", -0.1),
    ("cs-en", "a red house", "the blue house is red", 0.4),
    ("de-en", "the tree", "a tree is in the house", -0.2),
    ("de-en", 'a "dog" sits', "a dog sits", 0.6),
    ("de-en", "was it red", "it is a red mat", -0.9),
    ("en-ru", "it was", "it is not", -0.3),
    ("en-ru", "is it", "a cat", -0.4),
]
HEADER = "lang_pair\tcandidate\treference\thuman_score\n"


def tsv(rows=ROWS, header=HEADER):
    return header + "".join("\t".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def table(write):
    return write("judged.tsv", tsv())


@pytest.fixture
def tune(run, all_layers_bundle, table):
    def tune(*options, judgements=table):
        return run("tune-layers", judgements, "--model", all_layers_bundle, *options)

    return tune


@pytest.fixture(scope="module")
def expected(all_layers_scorer):
    pairs, candidates, references, human = zip(*ROWS[:6], strict=True)
    return tune_layers(all_layers_scorer, candidates, references, human, pairs)


def test_json_is_the_librarys_on_the_pairs_into_the_language_most_share(tune, expected):
    result = tune("--format", "json")
    assert json.loads(result.stdout) == json.loads(expected.to_json())
    assert result.stderr.startswith("Left out en-ru: most pairs have another target language.")


def test_the_order_of_rows_changes_nothing(tune, write, expected):
    mixed = write("mixed.tsv", tsv([ROWS[at] for at in (5, 2, 7, 0, 3, 6, 1, 4)]))
    assert json.loads(tune("--format", "json", judgements=mixed).stdout) == json.loads(
        expected.to_json()
    )


def test_the_report_has_a_row_for_each_layer_and_ends_with_the_command(tune, expected):
    lines = tune().stdout.splitlines()
    assert lines[0] == expected.signature
    assert lines[1] == "Pearson's r with 6 judgements of cs-en, de-en, mean over 2 language pairs"
    assert [line.split()[0] for line in lines[5:9]] == ["0", "1", "2", "3"]
    assert [float(line.split()[3]) for line in lines[5:9]] == [
        pytest.approx(layer.f1.pearson, abs=5e-4) for layer in expected.layers
    ]
    best, r, optimism = expected.best_layer, expected.best_pearson, expected.optimism
    words = " ".join(lines)
    assert f"Layer {best} correlates best with human judgements (r {r:.4f}): " in words
    assert f"about {optimism:.4f}; judge it on others." in words
    assert "by 1,000 bootstrap resamples of 6 references, seed 12345" in words
    assert lines[-1] == expected.export_command


def test_tsv_is_a_row_for_each_layer(tune, expected):
    header, *rows = [line.split("\t") for line in tune("--format", "tsv").stdout.splitlines()]
    assert header[:2] == ["layer", "precision"]
    assert header[-4:] == ["f1_cs-en", "f1_de-en", "notes", "signature"]
    assert all(
        row[-2:] == [" ".join([expected.method, *expected.warnings]), expected.signature]
        for row in rows
    )
    assert [float(row[header.index("f1")]) for row in rows] == [
        pytest.approx(layer.f1.pearson, abs=1e-6) for layer in expected.layers
    ]
    assert rows[expected.best_layer][header.index("p")] == ""


def test_language_pairs_may_be_named(tune):
    result = tune("--language-pair", "cs-en", "en-ru", "--format", "json")
    assert list(json.loads(result.stdout)["language_pairs"]) == ["cs-en", "en-ru"]
    assert "Left out" not in result.stderr


def test_columns_may_have_other_names_and_the_table_be_packed(tune, expected, write):
    header = "pair\tmt\tref\tda\n"
    packed = write("judged.tsv.gz", gzip.compress(tsv(header=header).encode()))
    columns = ("--columns", "lang_pair=pair", "candidate=mt", "reference=ref", "human=da")
    result = tune(*columns, "--format", "json", judgements=packed)
    assert json.loads(result.stdout)["layers"] == json.loads(expected.to_json())["layers"]


@pytest.mark.parametrize("name", ["Document", "document_id", "doc", "seg_id", "ID"])
def test_a_column_of_segments_or_documents_names_the_units(tune, write, name):
    documents = "".join(
        line + f"\td{row // 2}\n" for row, line in enumerate(tsv().splitlines()[1:])
    )
    with_documents = write("documents.tsv", HEADER.replace("\n", f"\t{name}\n") + documents)
    for options in ((), ("--columns", f"segment={name}"), ("--columns", f"document={name}")):
        content = json.loads(tune("--format", "json", *options, judgements=with_documents).stdout)
        assert {name: one["units"] for name, one in content["language_pairs"].items()} == {
            "cs-en": 2,
            "de-en": 2,
        }


def test_few_judgements_are_reported(tune, write):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS.split(), size=6)) for _ in range(80)]
    rows = [("cs-en", *pair, rng.normal()) for pair in zip(texts[::2], texts[1::2], strict=True)]
    result = tune(judgements=write("random.tsv", tsv(rows)))
    assert "Warning: 40 judgements of 40 references are few." in result.stdout


def test_rows_of_json_lines_may_have_several_references_and_no_language_pair(tune, write):
    rows = [{"candidate": c, "reference": [r, "a cat"], "human": h} for _, c, r, h in ROWS]
    judged = write("judged.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    content = json.loads(tune("--format", "json", judgements=judged).stdout)
    assert content["language_pairs"] == {"all": {"n": 8, "units": 8, "left_out": None}}


def test_what_does_not_fit_the_table_or_the_bundle_is_refused(
    refused, tiny_bundle, all_layers_bundle, table
):
    arguments = ["tune-layers", table, "--model", all_layers_bundle]
    assert "no row has 'fi-en'; the table has cs-en" in refused(
        *arguments, "--language-pair", "fi-en"
    )
    stderr = refused("tune-layers", table, "--model", tiny_bundle, "-q")
    assert "to export all layers" in stderr


def test_judgements_the_wrong_way_round_are_reported(tune, all_layers_scorer, write):
    _, candidates, references, _ = zip(*ROWS, strict=True)
    f1 = all_layers_scorer.score(candidates, references).F.mean(axis=0)
    rows = [("cs-en", *row[1:3], -10 * float(score)) for row, score in zip(ROWS, f1, strict=True)]
    result = tune(judgements=write("errors.tsv", tsv(rows)))
    assert "F correlates negatively with the judgements at every layer" in result.stdout


def test_too_few_judgements_for_a_test_are_reported(tune, write):
    rows = [(f"x{i}-en", *row[1:]) for i, row in enumerate(ROWS)]
    twice = [
        (name, *other[1:]) for (name, *_), other in zip(rows, ROWS[1:] + ROWS[:1], strict=True)
    ]
    judged = write("few.tsv", tsv([*rows, *twice]))
    few = json.loads(tune("--format", "json", "--resamples", "1", judgements=judged).stdout)
    assert few["not_worse"] == []
    assert {layer["p"] for layer in few["layers"]} == {None}
    assert few["layers"][0]["f1"]["low"] is None
    assert ": not tested against " in tune("--resamples", "1", judgements=judged).stdout


@pytest.mark.full
@needs_wmt16
def test_wmt16_with_minilm_gives_the_known_correlations_and_layer_4(
    run_json, minilm_all_layers_bundle
):
    content = run_json("tune-layers", WMT16, "--model", minilm_all_layers_bundle)
    f1 = [layer["f1"]["pearson"] for layer in content["layers"]]
    assert f1 == pytest.approx([0.558, 0.576, 0.608, 0.633, 0.6355, 0.582, 0.606], abs=5e-4)
    assert (content["best_layer"], content["not_worse"]) == (4, [3])


def test_matchings_are_candidates_beside_layers(tune, refused, all_layers_bundle, table):
    options = ["--matching", "bertscore", "code-bert-score", "exclude=special", "--format", "json"]
    content = json.loads(tune(*options).stdout)
    names = [
        f"{layer} by {name}"
        for name in ("code-bert-score", "exclude=special")
        for layer in range(4)
    ]
    assert [layer["layer"] for layer in content["layers"]] == [0, 1, 2, 3, *names]
    best = max(content["layers"], key=lambda layer: layer["f1"]["pearson"])
    assert (content["best_layer"], best["p"], best["loss"]) == (best["layer"], None, 0)
    assert sum(layer["p"] is None for layer in content["layers"]) == 1
    alone = json.loads(tune("--matching", "code-bert-score", "--format", "json").stdout)
    assert [layer["layer"] for layer in alone["layers"]] == [0, 1, 2, 3]
    assert "|matching:code-bert-score|" in alone["signature"]
    assert [layer["f1"] for layer in alone["layers"]] == [
        layer["f1"] for layer in content["layers"][4:8]
    ]
