import math

import pytest

from harness.document import BEGIN, END, with_figures
from harness.results import read_report
from reliability import __main__ as command
from reliability.bounds import at_least, at_most, none_of
from reliability.cases import CASES
from reliability.document import DOCUMENT
from reliability.memory import late_spread
from reliability.report import as_markdown
from reliability.run import run_cases
from reliability.settings import Settings
from reliability.sizes import LONG, SHORT, Sizes

TINY = Sizes(
    case_seconds=60,
    requests=20,
    clients=4,
    overload_seconds=1,
    calm_seconds=0.5,
    faults=6,
    shapes=20,
    sharing_threads=4,
    calls_a_thread=2,
    openings_a_thread=1,
    in_flight=4,
    started_processes=1,
    fuzzed_strings=400,
    mutated_bundles=60,
    fuzzed_requests=60,
    served_requests=2,
    served_rounds=1,
    attack_seconds=0.3,
    starved_seconds=0.3,
    killed_rows=2_000,
    job_rows=0,
)


@pytest.fixture
def settings(tiny_bundle):
    return Settings(TINY, tiny=tiny_bundle, minilm=tiny_bundle)


def hold(settings):
    return [none_of("lost", 0), at_least("found", 3, "MB", 2.5)]


def break_a_bound(settings):
    return [at_most("waited", 2.0, "s", 1)]


def be_slow(settings):
    return [at_most("waited", 2.0, "s", 1, of_speed=True), at_least("done", 1, "", 2, of_speed=True)]


def break_down(settings):
    raise RuntimeError("no more")


def run(monkeypatch, settings, folder, *cases, **options):
    for number, case in enumerate(cases):
        monkeypatch.setitem(CASES, str(number), ("a case", case))
    return run_cases([str(number) for number in range(len(cases))], settings, {"form": "tiny"}, folder, **options)


def test_bounds_that_are_held_are_shown_and_written(monkeypatch, settings, tmp_path, capsys):
    assert run(monkeypatch, settings, tmp_path, hold)
    [case] = read_report(tmp_path / "reliability.json").cases
    assert [(one.name, one.median, one.met) for one in case.figures] == [("lost", 0, True), ("found", 3, True)]
    assert "| 0 a case | found    | 3 MB   | at least 2.5 MB | yes  |" in capsys.readouterr().out
    assert "Settings: form: tiny." in (tmp_path / "reliability.md").read_text(encoding="utf-8")


def test_a_broken_bound_fails_the_run(monkeypatch, settings, tmp_path, capsys):
    assert not run(monkeypatch, settings, tmp_path, break_a_bound, hold)
    assert "| 0 a case | waited   | 2 s    | at most 1 s     | NO   |" in capsys.readouterr().out


def test_broken_bounds_of_speed_are_shown_and_fail_the_run_unless_told(monkeypatch, settings, tmp_path, capsys):
    assert not run(monkeypatch, settings, tmp_path, hold, be_slow)
    assert run(monkeypatch, settings, tmp_path, hold, be_slow, ignore_speed=True)
    assert capsys.readouterr().out.count("NO") == 4
    assert not run(monkeypatch, settings, tmp_path, be_slow, break_a_bound, ignore_speed=True)


def hold_from_the_second_run_on(settings):
    first = settings.tiny.with_name("ran-before")
    is_first = not first.exists()
    first.touch()
    return break_a_bound(settings) if is_first else hold(settings)


def test_a_case_that_breaks_a_bound_is_run_again_when_told_and_this_is_said(
    monkeypatch, settings, tiny_bundle, tmp_path, capsys
):
    with_room = Settings(TINY, tiny=tmp_path / "bundle", minilm=tiny_bundle)
    monkeypatch.setitem(CASES, "0", ("a case", hold_from_the_second_run_on))
    assert run_cases(["0"], with_room, {}, tmp_path, tries=2)
    assert "0 a case: Run 2 times, since a bound was broken." in capsys.readouterr().out
    (tmp_path / "other").mkdir()
    without = Settings(TINY, tiny=tmp_path / "other" / "bundle", minilm=tiny_bundle)
    assert not run_cases(["0"], without, {}, tmp_path)
    assert "Run 2 times" not in capsys.readouterr().out


def be_slow_once(settings):
    settings.tiny.mkdir()  # fails the second time
    return be_slow(settings)


def test_a_case_that_breaks_bounds_that_do_not_count_is_not_run_again(monkeypatch, tiny_bundle, tmp_path, capsys):
    with_room = Settings(TINY, tiny=tmp_path / "made", minilm=tiny_bundle)
    assert run(monkeypatch, with_room, tmp_path, be_slow_once, tries=2, ignore_speed=True)
    assert "Run 2 times" not in capsys.readouterr().out


def last_for_ever(settings):
    return [at_most("waited", math.inf, "s", 1)]


def test_what_never_came_is_written_and_breaks_its_bound(monkeypatch, settings, tmp_path, capsys):
    assert not run(monkeypatch, settings, tmp_path, last_for_ever)
    assert "| 0 a case | waited   | never  | at most 1 s | NO   |" in capsys.readouterr().out
    [case] = read_report(tmp_path / "reliability.json").cases
    assert [one.met for one in case.figures] == [False]


def test_a_case_that_breaks_down_fails_the_run_and_the_others_go_on(monkeypatch, settings, tmp_path, capsys):
    assert not run(monkeypatch, settings, tmp_path, break_down, hold)
    first, second = read_report(tmp_path / "reliability.json").cases
    assert "no more" in first.note
    assert [one.met for one in (*first.figures, *second.figures)] == [False, True, True]


@pytest.mark.parametrize("number", ["1", "3", "5", "8", "9", "13"])
def test_a_case_holds_its_bounds(settings, tmp_path, capsys, number):
    assert run_cases([number], settings, {}, tmp_path), capsys.readouterr()
    [case] = read_report(tmp_path / "reliability.json").cases
    assert case.letter == number


def test_a_leak_spreads_the_second_half_and_a_start_does_not():
    assert late_spread([0, 50, 90, 90, 91, 90]) == 1
    assert late_spread([0, 10, 20, 30, 40, 50]) == 20


def test_the_long_form_does_more_of_everything():
    pairs = [(getattr(SHORT, name), getattr(LONG, name)) for name in Sizes.__slots__]
    assert all(short <= long for short, long in pairs)


def test_the_exit_status_tells_of_a_broken_bound(monkeypatch, tmp_path, tiny_bundle):
    options = ["--case", "8", "--tiny", str(tiny_bundle), "--minilm", str(tiny_bundle), "--output", str(tmp_path)]
    monkeypatch.setattr(command, "run_cases", lambda *arguments, **options: True)
    command.main(options)
    monkeypatch.setattr(command, "run_cases", lambda *arguments, **options: False)
    with pytest.raises(SystemExit) as caught:
        command.main(options)
    assert caught.value.code == 1


def test_the_document_has_room_for_the_table(monkeypatch, settings, tmp_path):
    run(monkeypatch, settings, tmp_path, hold)
    report = read_report(tmp_path / "reliability.json")
    document = with_figures(DOCUMENT.read_text(encoding="utf-8"), [report], as_markdown)
    table = document.partition(BEGIN)[2].partition(END)[0]
    assert "| 0 a case | lost     | 0      | at most 0       | yes  |" in table
