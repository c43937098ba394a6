"""The frame of all pages and of the fragments for notebooks: one file without links to others.

Jinja fills in the templates: all values are escaped, except the drawings.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from bertscore_onnx.errors import needs_extra
from bertscore_onnx.tables.table import count
from bertscore_onnx_evaluation.report import wording

COPY_SCRIPT = """
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const text = document.getElementById(button.dataset.of);
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
    button.textContent = "Copied";
  });
}
"""
"""Works on pages of files too, where the newer clipboard is not allowed."""

MAX_CHARACTERS = 2000
"""Of a text that is shown; the page states how many more there are."""


def render(template: str, filters: Mapping[str, Callable[..., str]], **values: Any) -> str:
    """Fill in a template, with filters besides the common ones.

    The same values give the same bytes. Raises MissingExtraError unless Jinja is installed.
    """
    with needs_extra("evaluation", "Writing a report"):
        import jinja2
    environment: jinja2.Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bertscore_onnx_evaluation.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for write in (wording.visible, wording.typographic, wording.sentence, count):
        environment.filters[write.__name__] = write
    environment.filters.update(filters)
    environment.globals.update(
        max_characters=MAX_CHARACTERS,
        copy_script=COPY_SCRIPT,
        copy_digest=b64encode(sha256(COPY_SCRIPT.encode()).digest()).decode(),
    )
    return environment.get_template(template).render(**values)
