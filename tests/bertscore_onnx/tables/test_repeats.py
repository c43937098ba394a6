"""Rows that repeat others are counted, where they are too long to be equal by chance."""

import random

import pytest

from bertscore_onnx.tables.repeats import RepeatCounter


@pytest.mark.parametrize("seed", range(50))
def test_a_warning_stands_from_one_repeated_row_in_twenty_on(seed):
    rng = random.Random(seed)  # noqa: S311 -- draws a case
    num_rows = rng.randrange(1, 200)
    num_repeats = rng.randrange(num_rows)
    is_long = rng.random() < 0.5  # 41 bytes, or 39
    source = rng.choice(["", "eine Frage"])
    rows = [[f"{row:039}", "é"] if is_long else [f"{row:037}", "é"] for row in range(num_rows)]
    rows[num_rows - num_repeats :] = rng.choices(rows[: num_rows - num_repeats], k=num_repeats)
    rng.shuffle(rows)
    counter = RepeatCounter()
    for row in rows:
        counter.add(row, source=source)
    expected = ""
    if num_repeats * 20 >= max(1, num_rows) and (is_long or source):
        expected = f"{num_repeats:,} of {num_rows:,} rows repeat others"
    assert counter.warning.partition(",")[0] == expected.partition(",")[0]


@pytest.mark.filterwarnings("always::UserWarning")
def test_score_and_baseline_warn(run, run_score, write, tiny_bundle):
    lines = [f"the cat sat on the red mat of house {row} and saw dogs" for row in range(60)]
    once = write("once.txt", "\n".join(lines))
    repeated = write("repeated.txt", "\n".join(lines * 4))
    warning = "Warning: 180 of 240 rows repeat others"
    gate = ("--min-f1", "0.1")
    for file, options, is_warned in (
        (repeated, gate, True),
        (repeated, (), False),
        (once, gate, False),
    ):
        stderr = run_score("-c", file, "-r", file, *options).stderr
        assert (warning in stderr) == is_warned
    for file in (once, repeated):
        stderr = run("baseline", "-m", tiny_bundle, "--corpus", file).stderr
        assert (warning in stderr) == (file == repeated)
