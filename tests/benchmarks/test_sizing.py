"""The study of sizes measures layouts of processes, and reckons with their rates."""

import re

import pytest

from benchmarks.studies.sizing import Layout, as_markdown, divisors, measure


def test_all_cpus_are_shared_out_evenly():
    assert [*divisors(12)] == [1, 2, 3, 4, 6, 12]


def test_jobs_are_reckoned_from_one_process_with_all_cpus():
    layouts = [Layout("m", 1, 4, 8.0, 900.0), Layout("m", 4, 1, 6.0, 800.0)]
    text = as_markdown(layouts, 30)
    assert re.findall(r"\| m +\| (\S+ × \S+) +\| (\S+) +\| (\S+) +\| (\S+ MB)", text) == [
        ("1 × 4", "8.0", "2.00", "900 MB"),
        ("4 × 1", "6.0", "1.50", "800 MB"),
    ]
    assert re.findall(r"\| (10\S+) +\| (\S+) +\| (\S+) +\|", text) == [
        ("10⁶", "139", "0.18"),
        ("10⁸", "13,889", "18"),
        ("10¹⁰", "1,388,889", "1,808"),
    ]


@pytest.mark.slow
def test_processes_are_measured(tiny_bundle):
    layout = measure("tiny", str(tiny_bundle), 2, 1, (["the cat", "a dog ran"], ["a cat", "the dog"]), rounds=2)
    assert (layout.processes, layout.threads) == (2, 1)
    assert layout.rate > 0
    assert layout.memory > 20
