"""Logs of evaluation harnesses become scores by item; pandas reads the same logs as an oracle.

The logs in tests/support/evaluation_logs were written by the packages, with the scripts of examples/evaluation-logs:
`write_lm_eval.py FOLDER 6`, `write_inspect.py FOLDER 4 2` and `write_inspect.py FOLDER 2 1 json`. JSON was compressed
afterwards, and paths and the description of the machine were left out of results.
"""

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from bertscore_onnx.cli import app
from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import compare, harness_scores

LOGS = Path(__file__).parents[1] / "support" / "evaluation_logs"
LM_EVAL = ("lm-eval-0.4.11", "lm-eval-0.4.13")
INSPECT = ("inspect-0.3.150", "inspect-0.3.285")


def files(name):
    return sorted(LOGS.joinpath(name).glob("**/*.eval")) or sorted(LOGS.joinpath(name).glob("**/samples_*.gz"))


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def means(scores):
    return pd.DataFrame(scores).groupby(["metric", "system"])["score"].mean()


def parsed(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_rows(path, changed):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in changed), encoding="utf-8")
    return path


@pytest.fixture
def samples(tmp_path):
    """Two logs of lm-evaluation-harness without their results, to change."""
    paths = [tmp_path / "hasty.jsonl", tmp_path / "careful.jsonl"]
    for path in paths:
        [log] = LOGS.glob(f"lm-eval-0.4.13/{path.stem}/samples_*.gz")
        write_rows(path, rows(log))
    return paths


def change(path, function):
    """Change each row of a log."""
    changed = parsed(path)
    for row in changed:
        function(row)
    return write_rows(path, changed)


def run(*arguments):
    return CliRunner().invoke(app, ["compare", "--examples", "0", *map(str, arguments)])


@pytest.mark.parametrize("version", LM_EVAL)
def test_lm_eval_scores_are_those_of_pandas(version):
    found = harness_scores(files(version))
    frames = []
    for path in files(version):
        frame = pd.read_json(path, lines=True)
        long = frame.melt(["filter"], ["exact_match", "digits"], "name", "score")
        frames.append(long.assign(system=path.parent.name, metric=long["name"] + "," + long["filter"]))
    expected = pd.concat(frames).groupby(["metric", "system"])["score"].mean()
    pd.testing.assert_series_equal(means(found), expected, atol=1e-12, rtol=0)
    assert len(found["score"]) == 2 * 6 * 4


@pytest.mark.parametrize("version", LM_EVAL)
def test_lm_eval_scores_are_those_of_its_results(version):
    found = means(harness_scores(files(version)))
    for path in files(version):
        [results] = path.parent.glob("results_*.json")
        of_task = json.loads(results.read_bytes())["results"]["sums"]
        for metric in ("exact_match,number", "digits,whole"):
            assert found[metric, path.parent.name] == pytest.approx(of_task[metric], abs=1e-12)


@pytest.mark.parametrize("version", INSPECT)
def test_inspect_scores_are_those_of_its_results(version):
    found = harness_scores(files(version))
    for path in files(version):
        [header] = [json.loads(data) for data in members(path, "header.json")]
        scores = {
            score["name"]: next(iter(score["metrics"].values()))["value"] for score in header["results"]["scores"]
        }
        of_model = means(found)[:, header["eval"]["model"]]
        assert of_model["grade"] == pytest.approx(scores["grade"], abs=1e-12)
        assert of_model["shape/digits"] == pytest.approx(scores["digits"], abs=1e-12)
        assert of_model["shape/length"] == pytest.approx(scores["length"], abs=1e-12)


def members(path, name):
    """Yield members of a zip archive, which newer versions compress with zstd: pyarrow reads it from its frames."""
    import pyarrow as pa

    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
        if info.compress_type != 93:
            yield archive.read(name)
            return
    data = path.read_bytes()
    start = info.header_offset + 30 + data[info.header_offset + 26] + data[info.header_offset + 28]
    compressed = data[start : start + info.compress_size]
    yield pa.CompressedInputStream(pa.BufferReader(compressed), "zstd").read(info.file_size)


@pytest.mark.parametrize("version", INSPECT)
def test_inspect_epochs_are_runs_and_clusters_documents(version):
    found = harness_scores(files(version))
    assert {*found["run"]} == {"1", "2"}
    assert {*found["document"]} == {"group-0", "group-1"}


def test_inspect_json_has_the_scores_of_its_samples():
    logs = sorted(LOGS.glob("inspect-0.3.150-json/*.json.gz"))
    found = pd.DataFrame(harness_scores(logs)).set_index(["system", "segment", "metric"])["score"].sort_index()
    for log in logs:
        record = json.loads(gzip.decompress(log.read_bytes()))
        for sample in record["samples"]:
            grade, shape = (sample["scores"][name]["value"] for name in ("grade", "shape"))
            of_sample = found[record["eval"]["model"], sample["id"]]
            assert of_sample["grade"] == {"C": 1, "P": 0.5, "I": 0}[grade]
            assert of_sample["shape/digits"] == shape["digits"]
    assert len(found) == 2 * 2 * 3


def test_rows_in_another_order_give_the_same_scores(samples, tmp_path):
    expected = pd.DataFrame(harness_scores(samples)).sort_values(["system", "segment", "metric"], ignore_index=True)
    write_rows(samples[0], parsed(samples[0])[::-1])
    found = pd.DataFrame(harness_scores(samples)).sort_values(["system", "segment", "metric"], ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)


def test_the_first_log_is_the_baseline(samples):
    result = run("--format", "json", "--scores", *samples)
    assert [system["name"] for system in json.loads(result.stdout)["systems"]] == ["hasty", "careful"]


def test_an_item_missing_in_a_log_is_refused_with_its_id(samples):
    write_rows(samples[1], [row for row in parsed(samples[1]) if row["doc_id"] != 3])
    result = run("--scores", *samples)
    assert result.exit_code == 1
    assert "'3'" in result.stderr
    assert "careful" in result.stderr
    assert run("--scores", *samples, "--missing", "drop").exit_code == 0


def test_other_items_under_the_same_ids_are_refused(samples):
    change(samples[1], lambda row: row.update(doc_hash=row["doc_hash"][::-1]))
    with pytest.raises(InputError, match=r"careful.jsonl, line 1: the item '0' is another one than in .*hasty"):
        harness_scores(samples)


def test_other_tasks_of_a_system_are_refused(tmp_path):
    paths = files("lm-eval-0.4.13")
    for path, task in zip(paths, ("sums", "products"), strict=True):
        folder = tmp_path / path.parent.name
        shutil.copytree(path.parent, folder)
        (folder / path.name).rename(folder / path.name.replace("sums", task))
    with pytest.raises(InputError, match="'careful' has no log of the task 'products'"):
        harness_scores(sorted(tmp_path.glob("*/samples_*")))


def test_several_tasks_are_items_of_their_own(tmp_path):
    for path in files("lm-eval-0.4.13"):
        folder = tmp_path / path.parent.name
        shutil.copytree(path.parent, folder)
        shutil.copy(path, folder / path.name.replace("sums", "more"))
    found = harness_scores(sorted(tmp_path.glob("*/samples_*")))
    assert {*found["system"]} == {"careful", "hasty"}
    assert len({*found["segment"]}) == 12
    assert "more:0" in found["segment"]
    groups = compare(scores=found, by="task").metrics[0].groups
    assert [(group.name, group.num_segments) for group in groups] == [("more", 6), ("sums", 6)]


def test_logs_of_one_model_are_named_by_file():
    [log] = LOGS.glob("lm-eval-0.4.13/hasty/samples_*.gz")
    [older] = LOGS.glob("lm-eval-0.4.11/hasty/samples_*.gz")
    systems = {*harness_scores([log, older])["system"]}
    assert len(systems) == 2
    assert all(system.startswith("hasty (20") for system in systems)


def test_metrics_with_lower_scores_are_known_from_results(tmp_path):
    for path in files("lm-eval-0.4.13"):
        folder = tmp_path / path.parent.name
        shutil.copytree(path.parent, folder)
        [results] = folder.glob("results_*.json")
        record = json.loads(results.read_bytes())
        record["higher_is_better"]["sums"]["digits"] = False
        results.write_text(json.dumps(record), encoding="utf-8")
    result = run("--format", "json", "--scores", *sorted(tmp_path.glob("*/samples_*")))
    [_, hasty] = json.loads(result.stdout)["systems"]
    assert hasty["metrics"]["digits,number"]["delta"] < 0
    assert [hasty["metrics"]["digits,number"][key] for key in ("won", "lost")] == [2, 0]
    assert [hasty["metrics"]["exact_match,number"][key] for key in ("won", "lost")] == [0, 2]


@pytest.mark.parametrize("value", ["many", "1_5"])
def test_a_score_that_is_no_number_is_refused(samples, value):
    change(samples[0], lambda row: row["doc_id"] == 2 and row.update(digits=value))
    with pytest.raises(InputError, match=rf"hasty.jsonl, line \d+: the metric 'digits,number' .* '2' is '{value}'"):
        harness_scores(samples)


def test_a_metric_without_numbers_is_left_out(samples):
    for path in samples:
        change(path, lambda row: row.update(digits=[row["digits"], 1]))
    assert {*harness_scores(samples)["metric"]} == {"exact_match,number", "exact_match,whole"}
    assert "digits,number was left out" in run("--scores", *samples).stderr


def test_a_missing_score_is_a_missing_segment(samples):
    change(samples[0], lambda row: row["doc_id"] == 2 and row.update(digits=None))
    result = run("--scores", *samples)
    assert result.exit_code == 1
    assert "'2'" in result.stderr
    assert run("--scores", *samples, "--missing", "drop").exit_code == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda log: log.update(version=3), "version 3 of Inspect's logs"),
        (lambda log: log["samples"][0].update(scores="C"), "epoch 1 has 'C' as 'scores'; expected a log as Inspect"),
        (lambda log: log["samples"][0].update(metadata=["x"]), r"epoch 1 has \['x'\] as 'metadata'; expected a log"),
    ],
)
def test_another_version_or_form_of_inspect_is_refused(tmp_path, changes, message):
    record = json.loads(gzip.decompress(next(LOGS.glob("inspect-0.3.150-json/*.gz")).read_bytes()))
    changes(record)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        harness_scores([path])


def test_lines_of_an_older_lm_eval_are_refused(samples):
    change(samples[0], lambda row: row.pop("filter"))
    with pytest.raises(InputError, match="line 1 has no 'filter'; expected a log as lm-evaluation-harness"):
        harness_scores(samples)


def test_the_means_of_lm_eval_are_refused():
    with pytest.raises(InputError, match="expected samples_"):
        harness_scores(sorted(LOGS.glob("lm-eval-0.4.13/*/results_*.json")))


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.99])
def test_a_damaged_archive_is_refused(tmp_path, kept):
    data = files("inspect-0.3.285")[0].read_bytes()
    path = tmp_path / "cut.eval"
    path.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(InputError, match="damaged"):
        harness_scores([path])


def test_an_unfinished_log_is_named_in_a_note(tmp_path):
    paths = []
    for source in files("inspect-0.3.150"):
        paths.append(tmp_path / source.name)
        with zipfile.ZipFile(source) as archive, zipfile.ZipFile(paths[-1], "w") as shorter:
            for name in archive.namelist():
                if name.startswith(("samples/", "_journal/start")):
                    shorter.writestr(name, archive.read(name))
    result = run("--scores", *paths)
    assert result.exit_code == 0, result.output
    assert "has the status 'started', with 8 samples" in result.stderr


def test_tables_are_no_logs(tmp_path):
    path = write_rows(
        tmp_path / "scores.jsonl", [{"segment": 1, "a": 0.5, "b": 0.6}, {"segment": 2, "a": 0.1, "b": 0.3}]
    )
    assert run("--scores", path, "--systems", "a", "b").exit_code == 0
    with pytest.raises(InputError, match="no log that is known"):
        harness_scores([path])


def test_a_metric_with_the_name_of_ours_is_renamed(samples):
    for path in samples:
        change(path, lambda row: row.update(metrics=["bleu"], bleu=row["digits"], filter="none"))
        write_rows(path, parsed(path)[:6])
    assert {*harness_scores(samples)["metric"]} == {"bleu (log)"}
