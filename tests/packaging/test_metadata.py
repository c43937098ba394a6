"""The metadata of the packages fit a package index, and the workflows fit GitHub."""

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

from bertscore_onnx import __version__
from tests.packaging.conftest import REPOSITORY, ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
each_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
SCHEMAS = {
    "github-workflows": [*WORKFLOWS, ROOT / "examples" / "github_actions.yml"],
    "github-issue-forms": sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")),
    "dependabot": [ROOT / ".github" / "dependabot.yml"],
    "citation-file-format": [ROOT / "CITATION.cff"],
}
RIGHTS = {
    ("codeql.yml", "analyze"): {"contents": "read", "security-events": "write"},
    ("release.yml", "attest"): {"attestations": "write", "id-token": "write"},
    ("release.yml", "image"): {"contents": "read", "packages": "write"},
    ("release.yml", "publish"): {"id-token": "write"},
    ("release.yml", "publish-sbom"): {"contents": "write"},
    ("scorecard.yml", "analyze"): {
        "contents": "read",
        "id-token": "write",
        "security-events": "write",
    },
    ("site.yml", "deploy"): {"pages": "write", "id-token": "write"},
}
"""Of the jobs that may do more than read the repository."""


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_string(archive.read(name).decode("utf-8"))


def test_the_packages_pass_the_check_of_an_upload(packages):
    files = [file for kind in ("*.whl", "*.tar.gz") for file in packages.glob(kind)]
    assert len(files) == 2
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pythons_of_the_workflow_are_named(metadata):
    named = re.findall(
        r"Python :: (3\.\d+)\n", "".join(f"{line}\n" for line in metadata.get_all("Classifier", []))
    )
    tested = re.search(
        r"python: \[(.*)\]",
        (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"),
    )
    assert tested
    assert named == re.findall(r"3\.\d+", tested[1])


def test_addresses_are_those_of_the_repository_that_builds(metadata):
    addresses = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    assert {*addresses} == {"Repository", "Documentation", "Changelog", "Issues"}
    assert addresses["Repository"] == f"https://github.com/{REPOSITORY}"


def test_a_build_elsewhere_names_no_address(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "GITHUB_REPOSITORY"}
    command = [sys.executable, "-m", "hatchling", "metadata"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert '"urls"' not in done.stdout
    assert "](docs/tutorial.md)" in done.stdout


def test_the_source_holds_what_builds_and_documents_it(packages):
    with tarfile.open(next(packages.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "hatch_build.py",
        "Makefile",
        "SECURITY.md",
        "CITATION.cff",
        "docs/conf.py",
        "tests/conftest.py",
    } <= names


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == __version__


def test_the_record_of_an_archive_agrees_with_the_citation():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    record = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert (record["title"], record["license"], record["upload_type"]) == (
        citation["title"],
        citation["license"],
        citation["type"],
    )
    assert record["keywords"] == citation["keywords"]
    assert [one["name"] for one in record["creators"]] == [
        one["name"] for one in citation["authors"]
    ]
    [paper] = citation["references"]
    [related] = record["related_identifiers"]
    assert related["identifier"].removeprefix("arXiv:") == paper["url"].rpartition("/")[2]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_has_the_form_of_its_schema(name):
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{name}",
        *SCHEMAS[name],
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@each_workflow
def test_commands_of_workflows_name_what_is_here(file):
    text = file.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [
        name for name in re.findall(r"run: make (\S+)", text) if f"\n{name}:" not in makefile
    ] == []
    assert [name for name in re.findall(r"tests/[\w/.]+", text) if not (ROOT / name).exists()] == []


@each_workflow
def test_jobs_have_few_rights_and_an_end(file):
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job.get("permissions") == RIGHTS.get((file.name, name))
        assert "timeout-minutes" in job


@each_workflow
def test_actions_are_pinned_by_hash(file):
    lines = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
    assert lines
    assert [
        line for line in lines if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
    ] == []


@each_workflow
def test_checkouts_keep_no_credentials(file):
    jobs = yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values()
    checkouts = [
        step
        for job in jobs
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert [
        step for step in checkouts if step.get("with", {}).get("persist-credentials") is not False
    ] == []


def test_an_image_is_labelled_and_published_only_where_that_is_wanted():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["jobs"]["image"]["if"] == "vars.PUBLISH_IMAGE == 'true'"
    labels = re.findall(r"--label org\.opencontainers\.image\.(\w+)=", text)
    assert labels == ["title", "version", "revision", "source", "licenses"]


def test_the_recipe_of_conda_forge_is_that_of_the_project():
    recipe = yaml.safe_load((ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8"))
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["cpu"]
    build = recipe["build"]
    assert (recipe["schema_version"], build["noarch"]) == (1, "python")
    assert recipe["context"] == {
        "version": __version__,
        "python_min": project["requires-python"].removeprefix(">="),
    }
    python, *run = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert {*map(str, map(Requirement, run))} == {*map(str, map(Requirement, needed))}
    system = tomllib.loads(text)["build-system"]["requires"]
    assert {*recipe["requirements"]["host"][2:]} == {one.replace(">=", " >=") for one in system}
    [command] = build["python"]["entry_points"]
    assert command.split(" = ") == [*project["scripts"].popitem()]
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (project["description"], project["license"])
    assert about["license_file"] == ["LICENSE", "LICENSES/bert-score.txt"]


def test_the_components_of_the_wheel_are_its_requirements(wheel, metadata):
    archive = zipfile.ZipFile(wheel)
    [name] = [name for name in archive.namelist() if "/sboms/" in name]
    content = archive.read(name).decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(content) is None
    components = json.loads(content)["components"]
    named = {one["properties"][0]["value"] for one in components if "properties" in one}
    lines = [line for line in metadata.get_all("Requires-Dist", []) if "extra" not in line]
    assert named == {*lines}
    assert components[0]["name"] == "bert-score"


def test_releases_are_published_without_a_stored_secret():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["jobs"]["publish"]["environment"] == "pypi"
    assert "secrets." not in text
