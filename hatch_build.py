"""Metadata of a build: the address of the repository, and what a wheel consists of.

The URLs, and the links of the README to files, depend on the address. They exist when a GitHub
workflow builds the packages, which sets the name of the repository; elsewhere a build names no
addresses, and leaves the README as it is. The wheel gets a list of its components (PEP 770).
"""

import json
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.requirements import Requirement

SBOM = "bertscore-onnx.cdx.json"
MIT = [{"license": {"id": "MIT"}}]
BERT_SCORE = {
    "type": "library",
    "bom-ref": "pkg:pypi/bert-score@0.3.13",
    "name": "bert-score",
    "version": "0.3.13",
    "purl": "pkg:pypi/bert-score@0.3.13",
    "description": "The default layers and the baselines in bertscore_onnx_models",
    "licenses": MIT,
}
"""What the wheel has of another package."""


class RepositoryMetadata(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the fields."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository := os.environ.get("GITHUB_REPOSITORY"):
            address = f"https://github.com/{repository}"
            owner, name = repository.split("/")
            readme = with_absolute_links(readme, address)
            metadata["urls"] = {
                "Repository": address,
                "Documentation": f"https://{owner}.github.io/{name}/",
                "Changelog": f"{address}/blob/main/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        else:
            metadata["urls"] = {}
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}


def with_absolute_links(readme: str, address: str) -> str:
    """Return a README whose links to files of the repository work elsewhere too; pictures need
    their raw file.
    """
    relative = r"(?!https?:|#)([^)\s]+)"
    pictures = re.sub(rf"(!\[[^]]*\]\(){relative}\)", rf"\1{address}/raw/main/\2)", readme)
    return re.sub(rf"(\]\(){relative}\)", rf"\1{address}/blob/main/\2)", pictures)


class ComponentsOfWheel(BuildHookInterface):
    """Writes the components of the wheel as CycloneDX."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file."""
        metadata = self.metadata
        self._folder = TemporaryDirectory()  # builds of one folder may run at the same time
        path = Path(self._folder.name, SBOM)
        components = components_of(metadata.version, metadata.core.dependencies)
        path.write_text(json.dumps(components, indent=2) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file, which the wheel has."""
        self._folder.cleanup()


def components_of(version: str, requirements: list[str]) -> dict[str, Any]:
    """Return the components of the wheel of a version, with the packages that it requires."""
    purl = f"pkg:pypi/bertscore-onnx@{version}"
    wheel = {"type": "library", "bom-ref": purl, "name": "bertscore-onnx", "version": version}
    required = []
    for requirement in map(Requirement, requirements):
        name = f"pkg:pypi/{requirement.name}"
        range_of_versions = {"name": "python:requirement", "value": str(requirement)}
        component = {"type": "library", "bom-ref": name, "name": requirement.name, "purl": name}
        required.append({**component, "scope": "required", "properties": [range_of_versions]})
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**wheel, "purl": purl, "licenses": MIT}},
        "components": [BERT_SCORE, *required],
        "dependencies": [{"ref": purl, "dependsOn": [one["bom-ref"] for one in required]}],
    }
