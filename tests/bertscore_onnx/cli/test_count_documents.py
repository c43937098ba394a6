"""`bertscore-onnx count-documents`, and `--idf-counts` of the commands that take its file."""

import gzip
import json

import pytest

from bertscore_onnx import DocumentCounts, count_documents

REFERENCES = ["the cat sat", "a dog ran", "the red house", "it is on", "the cat sat"]
CANDIDATES = ["a cat sat", "the dog ran", "a red house", "it is", "the cat"]


@pytest.fixture
def files(write):
    return [
        "-c",
        write("c.txt", "\n".join(CANDIDATES) + "\n"),
        "-r",
        write("r.txt", "\n".join(REFERENCES) + "\n"),
    ]


@pytest.fixture
def count(run, tiny_bundle, tmp_path):
    def count(*arguments, **options):
        file = tmp_path / "counts.json"
        result = run("count-documents", "-m", tiny_bundle, "-o", file, *arguments, **options)
        return DocumentCounts.load(file) if file.exists() else None, result

    return count


@pytest.fixture
def counts_file(tiny_bundle, tmp_path):
    count_documents(REFERENCES, tiny_bundle).save(tmp_path / "saved.json")
    return tmp_path / "saved.json"


def test_every_line_is_a_document(count, files, tiny_bundle):
    counts, result = count(*files[2:])
    assert counts == count_documents(REFERENCES, tiny_bundle)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.endswith(
        f"counts.json: {len(counts.tokens)} different tokens in 5 references\n"
    )


def test_counts_of_several_files_of_any_format_add_up(count, write, tiny_bundle):
    names = [
        write("a.txt", "the cat sat\na dog ran\n"),
        write(
            "b.jsonl.gz",
            gzip.compress(json.dumps({"references": ["the red house", "it is on"]}).encode()),
        ),
        write("c.csv", "candidate,reference\nit is,the cat sat\n"),
    ]
    counts, result = count("-r", *names, "-q")
    assert (result.exit_code, result.stderr) == (0, "")
    assert counts == count_documents(REFERENCES, tiny_bundle)


def test_columns_are_chosen_as_for_score(count, write, tiny_bundle):
    table = write("refs.txt", "1,the cat sat,a dog ran\n2,the red house,it is\n")
    options = ["--input-format", "csv,header=no", "--columns", "reference=2+3"]
    counts, _ = count("-r", table, *options)
    assert counts == count_documents(
        ["the cat sat", "a dog ran", "the red house", "it is"], tiny_bundle
    )


def test_standard_input_is_one_of_the_files(count, write, tiny_bundle):
    counts, _ = count(
        "-r", write("a.txt", "\n".join(REFERENCES[1:]) + "\n"), "-", stdin=REFERENCES[0] + "\n"
    )
    assert counts == count_documents(REFERENCES, tiny_bundle)


def test_what_cannot_be_read_leaves_the_file_as_it_was(refused, files, write, tiny_bundle):
    kept, damaged = write("counts.json", "kept"), write("other.txt", b"a\n\xff\n")
    stderr = refused("count-documents", "-m", tiny_bundle, *files[2:], damaged, "-o", kept)
    assert "other.txt is not UTF-8: line 2" in stderr
    assert kept.read_text() == "kept"


def test_scores_by_counts_are_those_by_idf_also_of_pipes(run, files, tiny_bundle, counts_file):
    arguments = ["score", "-m", tiny_bundle, *files, "-s", "-q"]
    by_counts = run(*arguments, "--idf-counts", counts_file)
    assert by_counts.exit_code == 0
    assert by_counts.stdout == run(*arguments, "--idf").stdout != run(*arguments).stdout
    arguments[4] = "-"
    piped = run(*arguments, "--idf-counts", counts_file, stdin=files[1].read_text())
    assert piped.stdout == by_counts.stdout


def test_a_match_is_shown_by_counts_or_sentences(run, refused, tiny_bundle, counts_file, files):
    pair = ["show", "-m", tiny_bundle, "-c", "the cat sat", "-r", "a cat sat"]
    assert (
        run(*pair, "--idf-counts", counts_file).stdout == run(*pair, "--idf-sents", files[3]).stdout
    )
    stderr = refused(*pair, "--idf-sents", files[3], "--idf-counts", counts_file)
    assert "Invalid value for --idf-sents: it has no effect with --idf-counts" in stderr


def test_counts_that_do_not_fit_are_refused_with_what_to_do(
    refused, files, fast_bundle, counts_file
):
    stderr = refused("score", "-m", fast_bundle, *files, "--idf-counts", counts_file)
    assert "The document counts are of the tokenization" in stderr
    assert (
        "Count the documents with this bundle, and the same --long-text and --max-length." in stderr
    )


def test_scores_are_not_written_over_the_counts(refused, files, tiny_bundle, counts_file):
    stderr = refused(
        "score", "-m", tiny_bundle, *files, "--idf-counts", counts_file, "-o", counts_file
    )
    assert "is one of the files to read" in stderr
    assert DocumentCounts.load(counts_file).num_documents == 5
