"""Writes a page at the address of each page that was merged or split, which leads to its
successor.
"""

import json
from pathlib import Path

from sphinx.application import Sphinx

MOVED = {
    "at_scale": {
        "": "many_texts.html",
        "one-machine": "many_texts.html#files-of-any-size",
        "ray": "many_texts.html#ray",
        "spark": "many_texts.html#spark",
        "other-engines": "many_texts.html#other-engines",
        "idf-over-a-whole-corpus": "many_texts.html#idf-over-a-whole-corpus",
        "when-something-goes-wrong": "many_texts.html#when-something-goes-wrong",
        "threads-processes-memory": "many_texts.html#threads-processes-memory",
        "on-kubernetes": "many_texts.html#on-kubernetes",
    },
    "deployment": {
        "": "serve.html",
        "which-extra": "install.html#which-extra-scores",
        "from-a-checkout": "install.html",
        "a-container": "serve.html#in-a-container",
        "restarts": "serve.html#on-kubernetes",
        "a-bundle-by-its-path": "install.html#where-you-score",
        "processes-and-threads": "in_process.html#threads",
        "one-pair-at-a-time": "in_process.html#one-pair-at-a-time",
    },
    "evaluators": {
        "": "integrations.html#packages-that-take-a-function",
        "a-script": "integrations.html#packages-that-take-a-function",
    },
    "examples": {
        "": "integrations.html#examples",
        "node-and-the-browser": "integrations.html#node-and-the-browser",
    },
    "notebooks": {"": "integrations.html#notebooks"},
    "project/code_of_conduct": {"": "contributing.html#code-of-conduct"},
    "project/security": {"": "contributing.html#security"},
    "reliability": {"": "limits.html#reliability", "run-it": "project/contributing.html"},
    "reproduce": {"": "which_metric.html#tables-of-papers"},
    "service": {
        "": "serve.html",
        "a-container": "serve.html#in-a-container",
        "in-your-own-service": "in_process.html",
        "a-gate-in-a-build": "gate.html",
    },
    "serving": {
        "": "in_process.html",
        "in-one-process": "in_process.html",
        "limits": "in_process.html#limits",
        "who-needs-it": "in_process.html",
        "errors": "in_process.html#errors",
        "stopping": "in_process.html#stopping",
    },
    "tokenizers": {
        "": "differences.html#tokenizers",
        "how-a-text-becomes-ids": "differences.html#how-a-text-becomes-ids",
        "sentencepiece": "differences.html#sentencepiece",
        "what-was-measured": "differences.html#tokenizers",
        "what-remains-different": "differences.html#what-remains-different",
    },
    "which_metric_in_ten_lines": {"": "which_metric.html"},
}
"""By page that is gone, its successors by the anchor that a link may have."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<meta name="description" content="This page has moved.">
<title>This page has moved</title>
<script>
const successors = {successors}
location.replace(successors[location.hash.slice(1)] ?? successors[""])
</script>
</head>
<body>
<h1>This page has moved</h1>
<ul>
{links}
</ul>
</body>
</html>
"""


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("build-finished", write_pages)
    return {"parallel_read_safe": True}


def write_pages(sphinx: Sphinx, error: Exception | None) -> None:
    """Write the pages; the check of the site follows their links."""
    if error or sphinx.builder.format != "html":
        return
    for name, successors in MOVED.items():
        addresses = sorted(set(successors.values()))
        links = "\n".join(f'<li><a href="{address}">{address}</a></li>' for address in addresses)
        page = PAGE.format(successors=json.dumps(successors), links=links)
        Path(sphinx.outdir, f"{name}.html").write_text(page, encoding="utf-8")
