from importlib import import_module

import pytest

from bertscore_onnx.errors import MissingExtraError, needs_extra


def test_a_missing_module_of_this_package_is_no_missing_extra():
    with pytest.raises(ModuleNotFoundError) as raised, needs_extra("server", "Serving"):
        import_module("bertscore_onnx.no_such_module")
    assert not isinstance(raised.value, MissingExtraError)
