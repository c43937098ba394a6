"""Options: shared ones, options with several values, completion and the examples of the help."""

import ast
import gzip
import re
import shlex
from inspect import signature, unwrap
from pathlib import Path
from textwrap import indent

import pytest
from typer.main import get_command
from typer.models import OptionInfo
from typer.testing import CliRunner

from bertscore_onnx.cli import COMMANDS as NAMES
from bertscore_onnx.cli import app
from bertscore_onnx.cli.options import complete_model


@pytest.fixture
def files(write, tiny_bundle):
    candidates = write("candidates.txt", "the cat\na red house\n")
    return (
        candidates,
        write("first.txt", "a dog\nthe blue house\n"),
        write("second.txt", "the cat\na tree\n"),
    )


@pytest.mark.parametrize(
    "options",
    [
        ["-r", "FIRST", "SECOND", "-c", "CANDIDATES"],
        ["-c", "CANDIDATES", "-r", "FIRST", "SECOND"],
        ["--ref=FIRST", "SECOND", "--cand=CANDIDATES"],
        ["-c", "CANDIDATES", "--ref", "FIRST", "-r", "SECOND"],
    ],
)
@pytest.mark.parametrize("more", [[], ["-q"]])
def test_references_follow_one_option_or_several(run, run_score, files, tiny_bundle, options, more):
    names = dict(zip(("CANDIDATES", "FIRST", "SECOND"), map(str, files), strict=True))
    arguments = [re.sub("[A-Z]{5,}", lambda name: names[name[0]], option) for option in options]
    expected = run_score("-c", files[0], "-r", files[1], "-r", files[2])
    result = run("score", *arguments, *more, "-m", tiny_bundle)
    assert (result.exit_code, result.stdout) == (0, expected.stdout)


def test_a_hyphen_may_be_a_later_value(run_score, files):
    result = run_score("-r", files[1], "-", "-c", files[0], stdin="the cat\na red house\n")
    assert result.stdout.endswith(" P: 1.000000 R: 1.000000 F1: 1.000000\n")


BOTH_IDF, BOTH_LAYERS = ["--idf", "--idf-counts", "FILE"], ["--num-layers", "2", "--all-layers"]
UNSCALED = "it has no effect without --rescale-with-baseline"
INPUTS = {
    "batch": ["-i", "a.csv", "-o", "out"],
    "count-documents": ["-r", "a", "-o", "b"],
    "tune-layers": ["a"],
    "baseline": ["--corpus", "a"],
}


@pytest.mark.parametrize(
    ("commands", "options", "message"),
    [
        (["score", "batch", "compare"], BOTH_IDF, "--idf: it has no effect with --idf-counts"),
        (
            ["score", "batch", "compare", "show"],
            ["--baseline-path", "FILE"],
            f"--baseline-path: {UNSCALED}",
        ),
        (
            ["score", "batch", "compare", "show"],
            ["--allow-fp32-baseline"],
            f"--allow-fp32-baseline: {UNSCALED}",
        ),
        (["score"], BOTH_LAYERS, "--num-layers: it has no effect with --all-layers"),
        (
            ["score", "batch", "show", "count-documents"],
            ["--model", ""],
            "name a model, or a language",
        ),
    ],
)
def test_shared_options_are_checked_in_every_command(refused, commands, options, message):
    for command in commands:
        inputs = INPUTS.get(command, ["-c", "a", "-r", "b"])
        model = [] if "--model" in options else ["-m", "x"]
        assert message in refused(command, *model, *inputs, *options)


@pytest.mark.parametrize(
    "words",
    [
        "compare --scores a.tsv --matching bertscore",
        "compare --scores a.tsv --long-text truncate",
        "compare --scores a.tsv --context-sentences 0",
        "compare -c a.txt b.txt -r r.txt --format tsv --metric bleu --examples 0",
        "export --from-onnx folder --precision fp32",
        "export -m roberta-large --inner-norm",
    ],
)
def test_a_default_that_is_given_without_effect_is_refused(refused, words):
    option = [word for word in words.split() if word.startswith("--")][-1]
    assert option in refused(*words.split())


def test_names_of_bundles_and_of_the_catalogue_are_completed_and_no_paths(installed_bundle):
    assert complete_model("RoBERTa-large") == [
        "roberta-large",
        "roberta-large-mnli",
        "roberta-large-openai-detector",
    ]
    assert complete_model("")[0] == "tiny-bert"
    assert complete_model("./bundles/") == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("inspect roberta-large-m", "roberta-large-mnli"),
        ("export --model roberta-large-m", "roberta-large-mnli"),
        ("sc", "score"),
        ("compare a.txt --long", "--long-text"),
    ],
)
def test_a_shell_gets_completions(home, words, expected):
    line = {"COMP_WORDS": f"bertscore-onnx {words}", "COMP_CWORD": str(len(words.split()))}
    environment = {"_BERTSCORE_ONNX_COMPLETE": "complete_bash", **line}
    assert CliRunner().invoke(app, prog_name="bertscore-onnx", env=environment).stdout.split() == [
        expected
    ]


COMMANDS = {name: get_command(app).get_command(None, name) for name in NAMES}
CALLBACKS = {name: unwrap(command.callback) for name, command in COMMANDS.items()}
DECLARED = {
    (command, name): [
        name for name in (option.default, *(option.param_decls or ())) if isinstance(name, str)
    ]
    for command, callback in CALLBACKS.items()
    for name, parameter in signature(callback).parameters.items()
    for option in getattr(parameter.annotation, "__metadata__", ())
    if isinstance(option, OptionInfo)
}
"""The names in each option's declaration, the first of which stands where `Option` has its
default.
"""
EXAMPLES = [
    line.strip()
    for command in COMMANDS.values()
    for line in command.epilog.splitlines()[2:]
    if "# " not in line
]


def test_every_option_declares_its_name():
    """Typer derives a name from the parameter or from the metavar, as its version has it."""
    assert DECLARED
    assert [
        option
        for option, names in DECLARED.items()
        if not any(name.startswith("--") for name in names)
    ] == []


def options_in_messages():
    """Return the options that the command line writes in place of arguments."""
    for house in ("bertscore_onnx", "evaluation", "service"):
        for file in (Path(__file__).parents[3] / house).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Argument":
                    given = {field.arg: ast.unparse(field.value) for field in node.keywords}
                    option = (
                        given.get("option")
                        or f"--{ast.literal_eval(node.args[0]).replace('_', '-')}"
                    )
                    yield re.search(r"--[a-z0-9-]+", option)[0]


def test_every_argument_in_a_message_is_an_option():
    options = {name for names in DECLARED.values() for name in names}
    found = {*options_in_messages()}
    assert len(found) > 10
    assert found - options == set()


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_a_command_that_can_be_given(line):
    program, command, *arguments = shlex.split(line.partition(" > ")[0].partition(" < ")[0])
    assert program == "bertscore-onnx"
    assert COMMANDS[command].make_context(command, arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_fits_80_columns_names_all_options_and_ends_with_examples(
    run, monkeypatch, command
):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(command, "--help").stdout
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert command not in ("score", "compare", "meta") or len(shown.splitlines()) <= 80
    options = [option for option in COMMANDS[command].params if option.param_type_name == "option"]
    assert [option.name for option in options if f"\n  {option.opts[0]}" not in shown] == []
    assert shown.endswith(indent(COMMANDS[command].epilog.removeprefix("\b\n"), "  ") + "\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "-c", "{}", "-r", "{}"),
        ("compare", "-c", "{}", "-c", "{}.gz", "-r", "{}"),
        ("show", "-c", "a cat", "-r", "the cat"),
        ("count-documents", "-r", "{}", "-o", "{}.json"),
        ("inspect",),
    ],
)
def test_commands_use_the_model_of_the_environment(run, tiny_bundle, write, monkeypatch, arguments):
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(tiny_bundle))
    texts = write("texts.txt", "the cat\na dog\n")
    write("texts.txt.gz", gzip.compress(b"the cat\na cat\n"))
    result = run(*(argument.format(texts) for argument in arguments))
    assert result.exit_code == 0, result.stderr
    assert "tiny-bert" in result.stdout or arguments[0] == "count-documents"


def test_compare_adds_no_metric_for_the_environment(run, tiny_bundle, write, monkeypatch):
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(tiny_bundle))
    scores = write("m.csv", "segment,A,B\n1,.5,.6\n2,.4,.3\n3,.1,.2\n")
    assert "bertscore" not in run("compare", "--scores", scores, "--format", "tsv").stdout
