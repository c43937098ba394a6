import pytest

from benchmarks.__main__ import main
from benchmarks.gpu import main as gpu_main
from benchmarks.run import run_cases
from benchmarks.settings import Settings
from harness.results import Case, Curve, Timing, read_report


def one_case(settings):
    """Measure nothing."""
    timings = [Timing("ours", [1.0, 1.5]), Timing("bert-score", [2.0])]
    return Case("z", "nothing", timings=timings, encode_rate=3e9, curves=[Curve("pairs", [(1.0, 2.0)])])


def test_a_run_writes_its_results_and_shows_them(tmp_path, capsys):
    rates = iter([8e9, 6e9, 12e9])
    run_cases([one_case, one_case], Settings(output=tmp_path), "name", lambda: next(rates), share_goal=35)
    report = read_report(tmp_path / "name.json")
    assert report.peak_rates == [8e9, 6e9, 12e9]
    shares = [case.figures[-1] for case in report.cases]
    assert [one.median for one in shares] == [37.5, 25.0]  # of the better rate, before or after
    assert [one.met for one in shares] == [True, False]
    assert {"processor", "cores usable", "features", "onnxruntime"} <= report.machine.keys()
    assert (tmp_path / "name.png").read_bytes().startswith(b"\x89PNG")
    shown = capsys.readouterr().out
    assert "### (z) nothing" in shown
    assert "at least 35.00 %" in shown
    assert "### (z) nothing" in (tmp_path / "name.md").read_text(encoding="utf-8")


def test_pairs_can_be_limited():
    settings = Settings(pairs=3)
    assert [len(side) for side in settings.some_pairs(100)] == [3, 3]
    assert settings.limit(2) == 2


@pytest.mark.parametrize(
    "arguments", [["--case", "no such"], ["--bundle", "PATH"], ["--rounds", "0"]], ids=lambda arguments: arguments[0]
)
def test_a_wrong_command_line_is_refused(arguments):
    with pytest.raises(SystemExit):
        main(arguments)


def test_without_cuda_the_gpu_benchmark_refuses(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="no CUDA device"):
        gpu_main([])


def test_without_the_gpu_wheel_the_gpu_benchmark_refuses(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(SystemExit, match="Install the GPU wheel"):
        gpu_main([])
