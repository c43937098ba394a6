"""Leaves out tests that import PyTorch, in an environment without it (`make test-lowest`)."""

import shutil
from importlib.util import find_spec

import pytest

collect_ignore = (
    []
    if find_spec("torch")
    else ["compat/test_tensors.py", "matching/test_tokens.py", "scoring/test_contexts.py"]
)


@pytest.fixture
def bundle(tiny_bundle, tmp_path):
    return shutil.copytree(tiny_bundle, tmp_path / "bundle")
