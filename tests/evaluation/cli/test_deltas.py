"""`bertscore-onnx meta --deltas` and `compare --deltas`: how often people agree with a difference."""

import json

import pytest

from tests.support.eval_sets import BLEU, HUMAN, write_eval_set

REFERENCES = ("a dog sits on the mat", "the blue house is red", "it is a dog")
CANDIDATES = {
    "A": ("a dog sits on the mat", "the blue house is red", "it is the dog"),
    "B": ("the cat sat on the mat", "a red house", "it is a dog"),
    "C": ("a mat", "the house", "dog"),
    "D": ("sat sat", "is is is", "the cat"),
}


@pytest.fixture
def judgements(write):
    """Write judgements of four systems in each of five language pairs, and return the table."""
    rows = [
        f"{language_pair}\t{system}\t{segment}\t{4 - place + segment % 2}\t{text}\t{REFERENCES[segment]}"
        for language_pair in ("cs-en", "de-en", "fi-en", "ru-en", "tr-en")
        for place, (system, texts) in enumerate(CANDIDATES.items())
        for segment, text in enumerate(texts)
    ]
    header = "lang_pair\tsystem\tsegment\thuman\tcandidate\treference"
    return write("judgements.tsv", "\n".join([header, *rows]) + "\n")


@pytest.fixture
def compared(write):
    """Write the texts of two systems and their references, and return the arguments of a comparison of them."""
    texts = {name: "\n".join(CANDIDATES[name]) + "\n" for name in ("B", "A")}
    systems = [write(f"{name}.txt", text) for name, text in texts.items()]
    return "compare", "-c", *systems, "-r", write("ref.txt", "\n".join(REFERENCES) + "\n")


def test_a_comparison_prints_what_was_measured_with_its_settings(
    run, run_json, judgements, compared, tiny_bundle, tmp_path
):
    file, page = tmp_path / "deltas.json", tmp_path / "page.html"
    result = run("meta", judgements, "-m", tiny_bundle, "--metric", "chrf", "--deltas", file)
    assert result.exit_code == 0, result.stderr
    assert "\nagreement of people  pairs" in result.stdout
    assert "Fewer than 200 pairs of systems say little about others: bertscore (30)" in result.stdout
    [system] = run_json(*compared, "-m", tiny_bundle, "--deltas", file, "--html", page)["systems"][1:]
    found = system["metrics"]["bertscore"]
    curve = json.loads(file.read_text(encoding="utf-8"))["curves"][0]
    assert found["agreement"]["pairs"] == curve["pairs"] == 30
    assert 0.5 < found["agreement"]["share"] < 1
    sentence = "People agree with the sign of such a difference in"
    assert sentence in found["verdict"]
    assert sentence in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "field"),
    [(("--idf",), "idf"), (("--matching", "code-bert-score"), "matching")],
    ids=lambda value: str(value),
)
def test_other_settings_are_refused_with_both(
    refused, run, judgements, compared, tiny_bundle, tmp_path, options, field
):
    file = tmp_path / "deltas.json"
    assert run("meta", judgements, "-m", tiny_bundle, "--deltas", file).exit_code == 0
    stderr = refused(*compared, "-m", tiny_bundle, *options, "--deltas", file)
    assert stderr.count("bertscore-onnx|model:") == 2
    assert field in stderr.partition("(other: ")[2].partition(")")[0]


def test_scores_of_a_set_and_of_a_table_give_the_same_curve(run_json, write, tmp_path):
    eval_set = write_eval_set(tmp_path / "set")
    (eval_set / "metric-scores/he-en/BLEU-refB.sys.score").unlink()
    rows = [
        f"he-en\t{system}\t{segment}\t{'' if human is None else human}\t{BLEU[system][segment]}"
        for system, of_system in reversed(HUMAN.items())
        for segment, human in enumerate(of_system)
    ]
    table = write("table.tsv", "\n".join(["lang_pair\tsystem\tsegment\thuman\tBLEU", *rows]) + "\n")
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    run_json("meta", eval_set, "--reference", "refB", "--metric-scores", "BLEU-refB", "--deltas", first)
    run_json("meta", table, "--score", "BLEU", "--deltas", second)
    [[of_set], [of_table]] = (json.loads(file.read_text(encoding="utf-8"))["curves"] for file in (first, second))
    sets = [curve.pop("sets")[0] for curve in (of_set, of_table)]
    assert [(one["language_pair"], one["gold"], one["systems"]) for one in sets] == [
        ("he-en", "mqm", 5),
        ("he-en", "", 5),
    ]
    assert of_set["name"] == of_table["name"] == "BLEU"
    for key in ("slope", "slope_low", "slope_high", "largest"):
        assert of_set[key] == pytest.approx(of_table[key])
    assert of_set["pairs"] == of_table["pairs"]


def test_json_stays_one_value_and_the_warning_is_on_standard_error(run, judgements, tmp_path):
    result = run("meta", judgements, "--metric", "chrf", "--deltas", tmp_path / "deltas.json", "--format", "json")
    assert json.loads(result.stdout)["language_pairs"]
    assert "Fewer than 200 pairs" in result.stderr


def test_what_cannot_be_written_or_read_is_refused_before_the_work(refused, judgements, compared, tmp_path):
    absent = tmp_path / "absent" / "deltas.json"
    assert "absent" in refused("meta", judgements, "-m", "not-there", "--deltas", absent)
    assert "one of the files to read" in refused("meta", judgements, "-m", "not-there", "--deltas", judgements)
    assert "--deltas: it has no effect" in refused("meta", judgements, "--task", "auc", "--deltas", absent, status=2)
    assert "Cannot read" in refused(*compared, "-m", "not-there", "--deltas", absent)
    assert "does not hold" in refused(*compared, "-m", "not-there", "--deltas", judgements)


def test_each_output_is_a_path_of_its_own(run, refused, judgements, compared, tmp_path):
    file, page, link = tmp_path / "deltas.json", tmp_path / "page.html", tmp_path / "link"
    link.symlink_to(file)
    meta = ("meta", judgements, "--metric", "chrf")
    for html in (file, link, tmp_path / "absent" / ".." / "deltas.json"):
        assert "the path of --deltas too" in refused(*meta, "--deltas", file, "--html", html)
    for option in ("--deltas", "--html"):
        assert "the path of --output too" in refused(*meta, "--output", tmp_path / "out", option, tmp_path / "out")
    assert not file.exists()
    assert run(*meta, "--deltas", file, "--html", page, "--output", tmp_path / "out").exit_code == 0
    assert run(*meta, "--deltas", "/dev/null", "--html", "/dev/null").exit_code == 0
    assert "--html" in refused(*compared, "--metric", "chrf", "--deltas", file, "--html", file)
    assert file.read_text(encoding="utf-8").startswith("{")
