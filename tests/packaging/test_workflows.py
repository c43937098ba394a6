"""What only GitHub runs is at least in the form that GitHub expects, and names what is here."""

import re
import subprocess
import sys

import pytest
import yaml

from tests.packaging.conftest import ROOT

pytestmark = pytest.mark.slow

GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
CHECKED = [
    *(("vendor.github-workflows", file) for file in WORKFLOWS),
    ("vendor.dependabot", GITHUB / "dependabot.yml"),
    *(("vendor.github-issue-forms", file) for file in sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml"))),
    ("vendor.citation-file-format", ROOT / "CITATION.cff"),
]


def check(schema, file):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, file]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(("schema", "file"), CHECKED, ids=lambda value: getattr(value, "name", value))
def test_the_form_is_that_of_the_schema(schema, file):
    done = check(schema, file)
    assert done.returncode == 0, done.stdout


def test_another_form_is_found(tmp_path):
    file = tmp_path / "workflow.yml"
    file.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on", "runs_on"), encoding="utf-8")
    assert check("vendor.github-workflows", file).returncode == 1


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_commands_name_what_is_here(file):
    text = file.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in re.findall(r"run: make (\S+)", text) if f"\n{name}:" not in makefile] == []
    assert [name for name in re.findall(r"tests/[\w/.]+", text) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_jobs_have_few_rights_and_an_end(file):
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_releases_are_published_without_a_stored_secret():
    text = (GITHUB / "workflows" / "release.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(text)["jobs"]["publish"]
    assert job["permissions"] == {"id-token": "write"}
    assert job["environment"] == "pypi"
    assert "secrets." not in text


def test_the_citation_names_this_version():
    import bertscore_onnx

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == bertscore_onnx.__version__
