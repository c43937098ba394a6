"""Warns about public names that are missing from the reference."""

from collections.abc import Iterator
from inspect import getmembers, getmro, isclass

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

import bertscore_onnx
import bertscore_onnx_evaluation
import bertscore_onnx_service
from bertscore_onnx import compat, errors, hub, similarity
from bertscore_onnx.compat import bert_score
from bertscore_onnx_service.jobs import job, ray, spark

SERVICE = (bertscore_onnx_service, ray, spark, job)
MODULES = (bertscore_onnx, similarity, bertscore_onnx_evaluation, *SERVICE, hub, compat, bert_score)
"""The modules whose `__all__` lists public names."""

_logger = logging.getLogger(__name__)


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("env-check-consistency", warn_of_missing)
    return {"parallel_read_safe": True}


def public_names() -> Iterator[set[str]]:
    """Yield the possible full names of each public object; the reference must have one of them."""
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            names = {
                f"{module.__name__}.{name}",
                f"{getattr(value, '__module__', module.__name__)}.{name}",
            }
            yield names
            for member in _members(value):
                yield {f"{one}.{member}" for one in names}
    yield from (
        {f"{errors.__name__}.{name}"}
        for name, value in getmembers(errors, isclass)
        if value.__module__ == errors.__name__
    )


def _members(value: object) -> set[str]:
    """Return the public attributes that this library defines on a class, or on the class of an
    object.
    """
    classes = getmro(value if isinstance(value, type) else type(value))
    own = [
        one
        for one in classes
        if one.__module__.partition(".")[0].startswith(bertscore_onnx.__name__)
    ]
    return {name for one in own for name in vars(one) if not name.startswith("_")}


def warn_of_missing(sphinx: Sphinx, environment: BuildEnvironment) -> None:
    """Warn about each public name without an entry."""
    domain = environment.domains.python_domain
    entries = {*domain.objects, *domain.modules}
    for names in public_names():
        if not names & entries:
            _logger.warning("%s is public, but has no entry in the reference", min(names))
