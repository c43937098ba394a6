"""Leaves out tests that import PyTorch, in an environment without it (`make test-lowest`)."""

from importlib.util import find_spec

collect_ignore = (
    [] if find_spec("torch") else ["compat/test_tensors.py", "matching/test_tokens.py", "scoring/test_contexts.py"]
)
