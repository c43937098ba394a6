"""The templates, filled in by Jinja: all that is put into them is escaped, but for the drawings."""

from typing import TYPE_CHECKING, Any

from bertscore_onnx.errors import needs_extra
from bertscore_onnx.evaluation.report import numbers
from bertscore_onnx.evaluation.report.texts import shortened, visible
from bertscore_onnx.similarity import MATCH_STYLE, match_html

if TYPE_CHECKING:
    import jinja2

FILTERS = {
    "score": numbers.score,
    "signed": numbers.signed,
    "p_value": numbers.p_value,
    "percent": numbers.percent,
    "count": numbers.count,
    "visible": visible,
    "shortened": shortened,
}


def render(template: str, **values: Any) -> str:
    """Fill in a template of this package.

    Args:
        template: the file's name in `templates/`.
        values: what the template names.

    Raises:
        MissingExtraError: Jinja is not installed.
    """
    return _environment().get_template(template).render(values)


def _environment() -> "jinja2.Environment":
    with needs_extra("evaluation", "Writing a report"):
        import jinja2
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bertscore_onnx.evaluation.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(match_html=match_html, match_style=MATCH_STYLE)
    return environment
