import pytest

from bertscore_onnx import BERTScorer

PAIR = ("-c", "the cat sat", "-r", "a dog sat on it")


@pytest.fixture(autouse=True)
def usual_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def show(run, tiny_bundle):
    """Show matches by the tiny bundle."""
    return lambda *arguments: run("show", "-m", tiny_bundle, *arguments)


def test_a_pair_is_shown_with_the_score_of_score(show, scorer):
    result = show(*PAIR)
    [score] = scorer.score(["the cat sat"], ["a dog sat on it"]).each()
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"P {score.P:.3f}   R {score.R:.3f}   F {score.F:.3f}"
    assert [line.split()[0] for line in lines[3:6]] == ["the", "cat", "sat"]
    assert lines[-1] == f"{scorer.model_type}, layer {scorer.num_layers}; idf: no; rescale: no"
    assert "\x1b" not in result.stdout


def test_of_several_references_the_best_is_named(show, scorer):
    references = ["it", "a dog"]  # the first has the best R, the second the best P and F
    result = show("-c", "the cat sat", "-r", *references)
    [score] = scorer.score(["the cat sat"], [references]).each()
    single = [*scorer.score(["the cat sat"] * 2, references).each()]
    assert score.R > single[1].R
    lines = result.stdout.splitlines()
    assert lines[0] == f"P {score.P:.3f}   R {score.R:.3f}   F {score.F:.3f}"
    rows = [line.split(maxsplit=4) for line in lines[2:5]]
    assert rows == [
        ["P", "R", "F", "reference"],
        *(
            [str(number), *(f"{value:.3f}" for value in values), text]
            for number, (values, text) in enumerate(zip(single, references, strict=True), 1)
        ),
    ]
    assert "reference 2 of 2, which has the best F" in lines[6]
    assert sum(line.startswith("P ") for line in lines) == 1


def test_idf_weights_come_from_a_file_and_are_shown_even_if_equal(show, tiny_bundle, write):
    sentences = write("references.txt", "the cat sat\nthe dog\n")
    lines = show(*PAIR, "--idf-sents", sentences).stdout.splitlines()
    with BERTScorer(
        tiny_bundle, device="cpu", idf=True, idf_sents=["the cat sat", "the dog"]
    ) as scorer:
        [score] = scorer.score(["the cat sat"], ["a dog sat on it"]).each()
        name = scorer.signature.idf
    assert lines[0] == f"P {score.P:.3f}   R {score.R:.3f}   F {score.F:.3f}"
    weights = {line.split()[0]: line.split()[-1] for line in lines[3:6]}
    assert weights == {"the": "0.00", "cat": "0.41", "sat": "0.41"}
    assert f"; idf: {name}; rescale: no" in lines[-1]
    equal = show("-c", "cat", "-r", "sat", "--idf-sents", sentences).stdout.splitlines()
    assert equal[2].endswith("weight")
    assert equal[3].split()[-1] == "0.41"


def test_a_layer_of_all_layers_is_shown(run, refused, all_layers_bundle, all_layers_scorer):
    scores = all_layers_scorer.score(["the cat sat"], ["a dog sat on it"])
    result = run("show", "-m", all_layers_bundle, *PAIR, "-l", "1")
    assert result.stdout.splitlines()[0].endswith(f"F {scores.F[1, 0]:.3f}")
    assert ", layer 1; " in result.stdout
    assert "--num-layers" in refused("show", "-m", all_layers_bundle, *PAIR)


class TestAPairOfFiles:
    CANDIDATES = ("the cat sat", "it", "", "the dog", "a dog")
    REFERENCES = ("the cat sat", "the cat", "cold", "a dog sat", "a dog")

    @pytest.fixture
    def files(self, write):
        return (
            *("-c", write("c.txt", "".join(line + "\n" for line in self.CANDIDATES))),
            *("-r", write("r.txt", "".join(line + "\n" for line in self.REFERENCES))),
        )

    def test_it_is_found_by_its_line(self, show, refused, tiny_bundle, files):
        title, *lines = show(*files, "--line", 4).stdout.splitlines()
        assert title == f"Line 4 of {files[1]}"
        assert lines == show("-c", "the dog", "-r", "a dog sat").stdout.splitlines()
        assert "has 5 lines, and line 88 was asked for" in refused(
            "show", "-m", tiny_bundle, *files, "--line", 88
        )

    @pytest.mark.filterwarnings("ignore:1 pair scores 0")
    def test_the_worst_are_shown_with_the_lowest_first(self, show, scorer, files):
        order = scorer.score(self.CANDIDATES, self.REFERENCES).F.argsort(kind="stable")
        lines = show(*files, "--worst", 3).stdout.splitlines()
        titles = [line for line in lines if line.startswith("Line ")]
        assert titles == [f"Line {number + 1} of {files[1]}" for number in order[:3]]
        assert "The candidate has no token, so the pair scores 0." in lines

    def test_it_is_found_in_a_table(self, show, write):
        table = write("pairs.csv", "mt,gold\nthe dog,a dog sat\nit,cold\n")
        columns = ("--columns", "candidate=mt", "reference=gold")
        assert show("-c", table, *columns, "--line", 2).stdout.startswith("Row 2 of ")


@pytest.mark.parametrize(
    ("name", "start"), [("a.html", b"<!doctype"), ("a.SVG", b"<?xml"), ("a.png", b"\x89PNG")]
)
def test_a_file_is_written_whole(show, tmp_path, name, start):
    if not name.endswith("html"):
        pytest.importorskip("matplotlib")
    result = show(*PAIR, "-o", tmp_path / name)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_truncated_text_is_named(show):
    result = show("-c", "the cat sat on the mat " * 20, "-r", "the cat")
    assert "The candidate is longer than the model's maximum" in result.stdout
    assert result.stderr.startswith("Warning: 1 text is longer than 32 tokens and truncated")
    assert 'with long_text="window" it does' in result.stderr


@pytest.mark.filterwarnings("default::UserWarning")
def test_the_name_of_a_file_is_a_text_with_a_note(show, write):
    file = write("a.txt", "the cat\n")
    result = show("-c", file, "-r", "the cat")
    assert result.exit_code == 0
    assert (
        f"Note: {file} is shown as a text. To show the pairs of files, add --line N"
        in result.stderr
    )


def test_options_of_bert_score_show_are_known(run, tiny_bundle, tmp_path):
    options = (
        "--num_layers",
        "2",
        "--baseline_path",
        tmp_path / "b.tsv",
        "--rescale_with_baseline",
        "--file",
    )
    (tmp_path / "b.tsv").write_text(
        "LAYER,P,R,F\n0,0,0,0\n1,0,0,0\n2,0.1,0.2,0.3\n", encoding="utf-8"
    )
    result = run("show", "--model", tiny_bundle, *PAIR, *options, tmp_path / "a.html")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "|rescale:file-" in (tmp_path / "a.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("utf-16", marks=pytest.mark.full)])
def test_any_encoding_of_standard_output_will_do(run_process, tiny_bundle, monkeypatch, encoding):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    done = run_process("show", "-m", tiny_bundle, "-c", "東京 😀", "-r", "اليوم é", "東")
    assert done.returncode == 0
    assert "those of reference 1 of 2" in done.stdout.decode(encoding)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "is_coloured"),
    [
        ({}, True),
        *(
            pytest.param(one, False, marks=pytest.mark.full)
            for one in ({"NO_COLOR": "1"}, {"TERM": "dumb"})
        ),
    ],
)
def test_a_terminal_gets_colours_unless_it_wants_none(
    run_on_terminal, tiny_bundle, settings, is_coloured
):
    shown = run_on_terminal("show", "-m", tiny_bundle, *PAIR, COLUMNS="70", **settings)
    assert ("\x1b[38;5;" in shown) == is_coloured
    assert "candidate" in shown
