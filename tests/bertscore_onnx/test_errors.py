import pickle
from importlib import import_module

import pytest

from bertscore_onnx.cli.terminal import with_options
from bertscore_onnx.errors import (
    Argument,
    BundleNotFoundError,
    InputError,
    MissingExtraError,
    OptionalStep,
    needs_extra,
)


@pytest.mark.parametrize(
    ("argument", "in_python", "at_the_shell"),
    [
        (Argument("baseline_path"), "`baseline_path`", "--baseline-path"),
        (Argument("model_type", option="--model"), "`model_type`", "--model"),
        (Argument("all_layers", True), "all_layers=True", "--all-layers"),
        (Argument("missing", "drop"), 'missing="drop"', "--missing drop"),
        (Argument("by", "a b"), 'by="a b"', "--by 'a b'"),
        (Argument("systems", ["A", "B", "…"]), 'systems=["A", "B", …]', "--systems A B …"),
        (Argument("columns", {"id": "x", "reference": ["a", "é"]}), 'columns={"id": "x", "reference": ["a", "é"]}',
         "--columns id=x reference=a 'reference=é'"),
        (OptionalStep("a gate", "--gate"), "a gate", "a gate: compare a 'b c'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [InputError, BundleNotFoundError])
def test_each_door_writes_arguments_in_its_own_way(kind, argument, in_python, at_the_shell):
    error = pickle.loads(pickle.dumps(kind("Give {it}: ", argument, ".")))
    assert str(error) == f"Give {{it}}: {in_python}."
    assert with_options(error, ["compare", "a", "--gate", "b c"]) == f"Give {{it}}: {at_the_shell}."


def test_a_missing_module_of_this_package_is_no_missing_extra():
    with pytest.raises(ModuleNotFoundError) as raised, needs_extra("server", "Serving"):
        import_module("bertscore_onnx.no_such_module")
    assert not isinstance(raised.value, MissingExtraError)
