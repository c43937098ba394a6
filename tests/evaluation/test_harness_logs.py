"""Logs of evaluation harnesses become scores by item; pandas reads the same logs as an oracle.

The logs in tests/support/evaluation_logs were written by the packages, with the scripts of
examples/evaluation-logs: `write_lm_eval.py FOLDER 6`, `write_inspect.py FOLDER 4 2` and
`write_inspect.py FOLDER 2 1 json`; those of all metrics with the scripts beside them. JSON was
compressed afterwards. Paths and the description of the machine were left out of results, and
prompts and events of the logs of all scorers.
"""

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
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
    return sorted(LOGS.joinpath(name).glob("**/*.eval")) or sorted(
        LOGS.joinpath(name).glob("**/samples_*.gz")
    )


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def means(scores):
    return scores.groupby(["metric", "system"])["score"].mean()


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
    changed = parsed(path)
    for row in changed:
        function(row)
    return write_rows(path, changed)


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.mark.parametrize("version", LM_EVAL)
def test_lm_eval_scores_are_those_of_pandas(version):
    found = harness_scores(files(version))
    frames = []
    for path in files(version):
        frame = pd.read_json(path, lines=True)
        long = frame.melt(["filter"], ["exact_match", "digits"], "name", "score")
        frames.append(
            long.assign(system=path.parent.name, metric=long["name"] + "," + long["filter"])
        )
    expected = pd.concat(frames).groupby(["metric", "system"])["score"].mean()
    pd.testing.assert_series_equal(means(found), expected, atol=1e-12, rtol=0)
    assert len(found["score"]) == 2 * 6 * 4


@pytest.mark.parametrize("version", INSPECT)
def test_inspect_scores_are_those_of_its_results(version):
    found = harness_scores(files(version))
    for path in files(version):
        [header] = [json.loads(data) for data in members(path, "header.json")]
        scores = {
            score["name"]: next(iter(score["metrics"].values()))["value"]
            for score in header["results"]["scores"]
        }
        of_model = means(found)[:, header["eval"]["model"]]
        assert of_model["grade"] == pytest.approx(scores["grade"], abs=1e-12)
        assert of_model["shape/digits"] == pytest.approx(scores["digits"], abs=1e-12)
        assert of_model["shape/length"] == pytest.approx(scores["length"], abs=1e-12)


def members(path, name):
    """Yield members of a zip archive, which newer versions compress with zstd: pyarrow reads it
    from its frames.
    """
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


def judged(logs):
    """Compare two logs; return by metric their means and whether the second is better, and standard
    error.
    """
    result = run("--format", "json", "--scores", *logs)
    if result.exit_code:
        return {}, result.stderr
    record = json.loads(result.stdout)
    first, second = record["systems"]
    judgements = {}
    for name, of_second in second["metrics"].items():
        is_better = record["headlines"][name].startswith(f"{second['name']} scores best")
        judgements[name] = first["metrics"][name]["score"], of_second["score"], is_better
    return judgements, result.stderr


OF_TASKS = {
    "loglikelihood": {"acc", "perplexity"},
    "loglikelihood_rolling": set(),
    "multiple_choice": {"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"},
    "generate_until": {"exact_match"},
    "own": {"error", "acc_all", "gain"},
}


@pytest.mark.parametrize("task", OF_TASKS)
def test_every_metric_of_lm_eval_has_its_direction_and_its_aggregate_or_is_left_out(task):
    folder = LOGS / "lm-eval-0.4.13-metrics"
    first, second = (json.loads(path.read_bytes()) for path in sorted(folder.glob("*/results*")))
    found, stderr = judged(sorted(folder.glob(f"*/samples_{task}_2*")))
    assert "Higher is taken as better" not in stderr
    for metric, is_higher_better in first["higher_is_better"][task].items():
        expected = [record["results"][task][f"{metric},none"] for record in (first, second)]
        if metric not in OF_TASKS[task]:
            assert f"{metric} was left out" in stderr
            continue
        *means, is_better = found.pop("loglikelihood" if metric == "perplexity" else metric)
        assert (np.exp(np.negative(means)) if metric == "perplexity" else means) == pytest.approx(
            expected
        )
        assert expected[0] == expected[1] or is_better == (
            (expected[1] > expected[0]) == is_higher_better
        )
    assert not found


def test_every_scorer_of_inspect_has_its_direction_and_its_aggregate_or_is_left_out():
    logs = sorted(LOGS.glob("inspect-0.3.285-scorers/*.gz"))
    found, stderr = judged(logs)
    first, second = (
        json.loads(gzip.decompress(log.read_bytes()))["results"]["scores"] for log in logs
    )
    for one, other in zip(first, second, strict=True):
        name = one["name"]
        if name == "spread":
            assert f"{name} was left out" in stderr
            continue
        [metric] = one["metrics"].keys() & {"accuracy", "mean", "perplexity_per_seq"}
        expected = [record["metrics"][metric]["value"] for record in (one, other)]
        is_nll = metric == "perplexity_per_seq"
        *means, is_better = found.pop(name.replace("perplexity", "negative_loglikelihood"))
        assert (np.exp(means) if is_nll else means) == pytest.approx(expected)
        assert expected[0] == expected[1] or is_better == ((expected[1] > expected[0]) != is_nll)
    assert not found
    assert "Higher is taken as better: f1.\n" in stderr
    assert "higher scores of f1 are better" in run("--scores", *logs, "--fail-if-worse").stderr


def test_the_median_of_a_log_is_no_mean():
    logs = sorted(LOGS.glob("lm-eval-0.4.13-metrics/*/samples_own_2*"))
    assert (
        "loss was left out: its value for all items is not the mean of their scores."
        in judged(logs)[1]
    )


def test_each_filter_has_its_own_aggregate_and_the_direction_of_the_metric(tmp_path):
    paths = []
    for path in files("lm-eval-0.4.13"):
        folder = shutil.copytree(path.parent, tmp_path / path.parent.name)
        paths.append(folder / path.name)
        [results] = folder.glob("results_*")
        record = json.loads(results.read_bytes())
        record["higher_is_better"]["sums"]["digits"] = False
        record["results"]["sums"]["digits,whole"] = 0.5  # as a median may be
        results.write_text(json.dumps(record), encoding="utf-8")
    found, stderr = judged(paths)
    assert found.keys() == {"exact_match,number", "exact_match,whole", "digits,number"}
    assert "digits,whole was left out: its value for all items" in stderr
    careful, hasty, is_hasty_better = found["digits,number"]
    assert hasty < careful
    assert is_hasty_better


def test_a_key_is_not_called_like_another_scorer(tmp_path):
    paths = inspect_json(
        tmp_path,
        lambda sample: sample.update(scores={"a/b": {"value": 1}, "a": {"value": {"b": 0.5}}}),
    )
    found = harness_scores(paths)
    assert found.groupby("metric")["score"].first().to_dict() == {"a/b": 1, "a: b": 0.5}


def test_clusters_that_a_sample_lacks_are_left_out_with_a_note(tmp_path):
    assert "document" in harness_scores(inspect_json(tmp_path, lambda sample: None))
    paths = inspect_json(
        tmp_path, lambda sample: sample["id"].endswith("74267 =") or sample["metadata"].clear()
    )
    assert "Clusters were left out: " in run("--scores", *paths).stderr


def inspect_json(folder, change):
    """Write the JSON logs of Inspect with changed samples, and without results."""
    paths = []
    for log in sorted(LOGS.glob("inspect-0.3.150-json/*.json.gz")):
        record = json.loads(gzip.decompress(log.read_bytes())) | {"results": None}
        for sample in record["samples"]:
            change(sample)
        paths.append(folder / log.stem)
        paths[-1].write_text(json.dumps(record), encoding="utf-8")
    return paths


def test_a_log_is_read_up_to_a_size_in_all(tmp_path):
    path = tmp_path / "large.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", '{"version": 2, "eval": {"model": "m", "task": "t"}}')
        sample = b'{"id": 1, "epoch": 1, "input": "%s"}' % (b"x" * 100_000_000)
        for number in range(11):
            archive.writestr(f"samples/{number}.json", sample)
    with pytest.raises(InputError, match=r"large.eval has more than 1,000,000,000 bytes of JSON"):
        harness_scores([path])


def test_an_object_is_read_up_to_a_size(tmp_path):
    path = tmp_path / "large.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"version": 2, "samples": [')
        for _ in range(201):
            file.write(b" " * 1_000_000)
    with pytest.raises(InputError, match="has more than 200,000,000 bytes of JSON"):
        harness_scores([path])


@pytest.mark.parametrize("version", INSPECT)
def test_inspect_epochs_are_runs_and_clusters_documents(version):
    found = harness_scores(files(version))
    assert {*found["run"]} == {"1", "2"}
    assert {*found["document"]} == {"group-0", "group-1"}


def test_inspect_json_has_the_scores_of_its_samples():
    logs = sorted(LOGS.glob("inspect-0.3.150-json/*.json.gz"))
    found = harness_scores(logs).set_index(["system", "segment", "metric"])["score"].sort_index()
    for log in logs:
        record = json.loads(gzip.decompress(log.read_bytes()))
        for sample in record["samples"]:
            grade, shape = (sample["scores"][name]["value"] for name in ("grade", "shape"))
            of_sample = found[record["eval"]["model"], sample["id"]]
            assert of_sample["grade"] == {"C": 1, "P": 0.5, "I": 0}[grade]
            assert of_sample["shape/digits"] == shape["digits"]
    assert len(found) == 2 * 2 * 3


def test_rows_in_another_order_give_the_same_scores(samples, tmp_path):
    expected = harness_scores(samples).sort_values(
        ["system", "segment", "metric"], ignore_index=True
    )
    write_rows(samples[0], parsed(samples[0])[::-1])
    found = harness_scores(samples).sort_values(["system", "segment", "metric"], ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("is_row", [False, True])
def test_a_missing_item_or_score_is_refused_with_its_id(samples, is_row):
    rows = [row if row["doc_id"] != 3 else row | {"digits": None} for row in parsed(samples[1])]
    write_rows(samples[1], [row for row in rows if not is_row or row["doc_id"] != 3])
    result = run("--scores", *samples)
    assert result.exit_code == 2
    assert "'3'" in result.stderr
    assert "careful" in result.stderr
    assert run("--scores", *samples, "--missing", "drop").exit_code == 0


def test_other_items_under_the_same_ids_are_refused(samples):
    change(samples[1], lambda row: row.update(doc_hash=row["doc_hash"][::-1]))
    with pytest.raises(
        InputError, match=r"careful.jsonl, line 1: the item '0' is another one than in .*hasty"
    ):
        harness_scores(samples)


@pytest.mark.parametrize("changes", [{}, {"filter": "another", "doc_hash": "of another item"}])
def test_an_item_that_occurs_again_in_a_log_is_refused(samples, changes):
    items = parsed(samples[0])
    write_rows(samples[0], [*items, items[2] | changes])
    with pytest.raises(
        InputError,
        match=r"hasty.jsonl, line 13: the item '2' occurs again; it is in .*, line 3 too",
    ):
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
    assert "more:0" in {*found["segment"]}
    groups = compare(scores=found, by="task").metrics[0].groups
    assert [(group.name, group.num_segments) for group in groups] == [("more", 6), ("sums", 6)]


def test_logs_of_one_model_are_named_by_file():
    [log] = LOGS.glob("lm-eval-0.4.13/hasty/samples_*.gz")
    [older] = LOGS.glob("lm-eval-0.4.11/hasty/samples_*.gz")
    systems = {*harness_scores([log, older])["system"]}
    assert len(systems) == 2
    assert all(system.startswith("hasty (samples_sums_20") for system in systems)


@pytest.mark.parametrize("value", ["many", "1_5"])
def test_a_score_that_is_no_number_is_refused(samples, value):
    change(samples[0], lambda row: row["doc_id"] == 2 and row.update(digits=value))
    with pytest.raises(
        InputError, match=rf"hasty.jsonl, line \d+: the metric 'digits,number' .* '2' is '{value}'"
    ):
        harness_scores(samples)


def test_an_integer_of_5000_digits_is_no_score(samples):
    line, *lines = samples[0].read_text(encoding="utf-8").splitlines()
    record = json.loads(line)
    samples[0].write_text(
        "\n".join(
            [line.replace(f'"digits": {record["digits"]}', f'"digits": {"9" * 5000}'), *lines]
        )
    )
    with pytest.raises(
        InputError,
        match=r"line 1: the metric 'digits,number' of the item '0' is inf; expected a number",
    ):
        harness_scores(samples)


def test_a_metric_without_numbers_is_left_out(samples):
    for path in samples:
        change(path, lambda row: row.update(digits=[row["digits"], 1]))
    assert {*harness_scores(samples)["metric"]} == {"exact_match,number", "exact_match,whole"}
    assert "digits,number was left out" in run("--scores", *samples).stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda log: log.update(version=3), "version 3 of Inspect's logs"),
        (
            lambda log: log["samples"][0].update(scores="C"),
            "epoch 1 has 'C' as 'scores'; expected a log as Inspect",
        ),
        (
            lambda log: log["samples"][0].update(metadata=["x"]),
            r"epoch 1 has \['x'\] as 'metadata'; expected a log",
        ),
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
    with pytest.raises(
        InputError, match="line 1 has no 'filter'; expected a log as lm-evaluation-harness"
    ):
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
        tmp_path / "scores.jsonl",
        [{"segment": 1, "a": 0.5, "b": 0.6}, {"segment": 2, "a": 0.1, "b": 0.3}],
    )
    assert run("--scores", path, "--systems", "a", "b").exit_code == 0
    with pytest.raises(InputError, match="no log that is known"):
        harness_scores([path])


def test_a_metric_with_the_name_of_ours_is_renamed(samples):
    for path in samples:
        change(path, lambda row: row.update(metrics=["bleu"], bleu=row["digits"], filter="none"))
        write_rows(path, parsed(path)[:6])
    assert {*harness_scores(samples)["metric"]} == {"bleu (log)"}
