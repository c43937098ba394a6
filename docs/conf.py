"""Settings of the documentation's site (`make site`)."""

import os
import sys
from pathlib import Path

from bertscore_onnx import BERTScorer, __version__
from bertscore_onnx_evaluation import metric_scores
from bertscore_onnx_evaluation.systems import compare_systems

sys.path.insert(0, str(Path(__file__).parent))

# These modules import BERTScorer for type checkers alone; autodoc needs it to resolve their
# annotations.
for module in (compare_systems, metric_scores):
    vars(module)["BERTScorer"] = BERTScorer
del module

project = "bertscore-onnx"
author = "the bertscore-onnx developers"
copyright = f"2026, {author}"  # noqa: A001 -- Sphinx wants the name
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "extensions.commands",
    "extensions.demo",
    "extensions.docstrings",
    "extensions.finding",
    "extensions.heading_levels",
    "extensions.moved",
    "extensions.public_names",
    "extensions.root_links",
    "extensions.short_cells",
]
exclude_patterns = ["extensions", "templates"]
templates_path = ["templates"]

myst_heading_anchors = 4  # as on GitHub: links between documents use these anchors

autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
default_role = "literal"  # docstrings quote code in single backticks
napoleon_numpy_docstring = False
napoleon_use_rtype = False
python_display_short_literal_types = True

# The site is built offline, without other projects' indexes, and private names of this one have no
# entry.
nitpick_ignore_regex = [
    ("py:.*", r"(collections|concurrent|numpy|os|pathlib|types|typing)\..*"),
    ("py:.*", r"bertscore_onnx\.(bundle|encoding|matching|scoring|settings|tables|text)\..*"),
    ("py:.*", r"bertscore_onnx_(evaluation\.results|service\.(batcher|jobs))\..*"),
    ("py:class", r"(pyarrow\..*|DataFrame|Dataset|Figure|Tensor)"),
    ("py:class", r"bertscore_onnx\.(scorer\.Frame|scores\.Numbers)"),
    ("py:class", "TableFormat"),  # documented at the arguments of this type
]

html_theme = "furo"
html_title = f"bertscore-onnx {release}"
if repository := os.environ.get("GITHUB_REPOSITORY"):  # set by the workflow that publishes the site
    owner, name = repository.split("/")
    html_baseurl = f"https://{owner}.github.io/{name}/"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("extensions") / "search_scorer.js")
html_favicon = "static/logo.svg"
html_logo = "static/logo.svg"
copybutton_prompt_text = "$ "  # only the commands are copied, without it
html_show_sphinx = False
