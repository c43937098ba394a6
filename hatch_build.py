"""Metadata that depend on the address of the repository: its URLs, and the links of the README to
its files.

They exist when a GitHub workflow builds the packages, which sets the name of the repository;
elsewhere a build names no addresses, and leaves the README as it is.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


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
