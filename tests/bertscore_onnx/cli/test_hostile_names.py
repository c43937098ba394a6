"""Nothing that a text, a file or a system is called reaches a terminal as an order: every command
is tried on one.
"""

import json
import re
import sys

import pytest

from tests.support.command_line import on_terminal

HOSTILE = "a\x1b[2J\x1b]0;title\x07\x9b31m\u202edcba\u2066\r\x7fz"
"""Clears the screen, names the window, colours, reverses the direction, and goes back to the start
of the line.
"""

CONTROL = re.compile(
    "[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)

PROGRAM = """
import json, sys
from bertscore_onnx.cli import main
for arguments in json.load(open(sys.argv[1])):
    sys.argv[1:] = arguments
    print("<<<", flush=True)
    try:
        main()
        status = 0
    except SystemExit as error:
        status = error.code or 0
    print(f">>> {status}", flush=True)
"""


@pytest.fixture
def commands(tiny_bundle, all_layers_bundle, tmp_path):
    """Commands with hostile texts, files, systems, metrics, language pairs and models, and their
    exit statuses.
    """

    def file(content, name=HOSTILE):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}{name}"
        path.write_text(content, newline="")
        return str(path)

    def table(*rows):
        return file("".join("\t".join(map(str, row)) + "\n" for row in rows), HOSTILE + ".tsv")

    bare = HOSTILE.replace("\r", "")
    texts, others = file(f"{bare} the cat\nit is cold\n" * 3), file(f"the cat {bare}\nit is\n" * 3)
    pairs = file(
        json.dumps({"candidate": HOSTILE, "reference": "the cat", HOSTILE: 1}) + "\n", "pairs.jsonl"
    )
    rows = [(f"s{system}{bare}", segment, 10 * system + segment, segment * system % 5, f"xx-{bare}")
            for system in range(3) for segment in range(12)]  # fmt: skip
    judged = table(("system", "segment", "human", f"m{bare}", "lang_pair"), *rows)
    pair_rows = [(f"{bare} {'cat ' * row}", "the cat", row, f"xx-{bare}") for row in range(12)]
    rated = table(("candidate", "reference", "human_score", "lang_pair"), *pair_rows)
    model, layers, output = (
        ("-m", str(tiny_bundle)),
        ("-m", str(all_layers_bundle)),
        str(tmp_path / HOSTILE),
    )
    systems = ("compare", *model, "-r", texts, "-c", texts, others, "--quiet")
    meta = ("meta", judged, "--score", f"m{bare}", "--quiet")
    return [
        (0, "score", *model, "-c", texts, "-r", others, "--format", "csv"),
        (0, "score", *model, "-c", texts, "-r", others, "--format", "jsonl"),
        (0, "score", *model, "-c", texts, "-r", others, "-o", output),
        (2, "score", *model, "-c", texts, "-r", file("one\n")),
        (2, "score", *model, "-c", texts, HOSTILE, "-r", others, f"--{HOSTILE}"),
        (2, "score", *model, "-c", pairs, "--columns", f"candidate={HOSTILE}"),
        (0, "batch", *model, "-i", pairs, "-o", output + "scores", "--keep", HOSTILE),
        (2, "batch", *model, "-i", HOSTILE, "-o", output + "other"),
        (0, "count-documents", *model, "-r", texts, "-o", output + "counts"),
        (0, "show", *model, "-c", HOSTILE, "-r", HOSTILE, "the cat"),
        (0, "show", *model, "-c", texts, "-r", others, "--worst", "2"),
        (2, "show", *model, "-c", texts, "-r", others, "--line", "99"),
        (0, *systems),
        (0, *systems, "--format", "tsv"),
        (0, *systems, "--format", "json"),
        (0, *systems, "--html", output + ".html"),
        (0, *meta),
        (0, *meta, "--format", "tsv"),
        (2, "meta", judged, "--score", HOSTILE),
        (2, "meta", judged, "--score", f"m{bare}", "--language-pair", HOSTILE),
        (0, "tune-layers", rated, *layers, "--quiet"),
        (0, "tune-layers", rated, *layers, "--format", "tsv", "--quiet"),
        (0, "baseline", *model, "--corpus", texts, "--quiet"),
        (2, "export", "--model", HOSTILE),
        (2, "pull", HOSTILE),
        (2, "push", HOSTILE, HOSTILE),
        (2, "models", HOSTILE),
        (0, "inspect", str(tiny_bundle)),
        (2, "inspect", HOSTILE),
        (1, "doctor"),
        (2, "serve", "--model", f"{HOSTILE}={HOSTILE}"),
        (2, HOSTILE),
    ]


@pytest.mark.slow
def test_no_command_sends_a_control_character_to_a_terminal(commands, home, tmp_path):
    broken = home / "bundles" / HOSTILE / "layer-2-slow-fp32"
    broken.mkdir(parents=True)
    (broken / "bertscore.json").write_text("{}")
    (tmp_path / "commands.json").write_text(json.dumps([arguments for _, *arguments in commands]))
    settings = {"BERTSCORE_ONNX_HOME": str(home), "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    shown = on_terminal([sys.executable, "-c", PROGRAM, tmp_path / "commands.json"], **settings)
    answers = re.findall(r"<<<\n(.*?)>>> (\d+)\n", shown, re.DOTALL)
    assert [int(status) for _, status in answers] == [status for status, *_ in commands]
    for (answer, _), (_, name, *_) in zip(answers, commands, strict=True):
        assert not CONTROL.search(answer), (name, CONTROL.findall(answer), answer)
