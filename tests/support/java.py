"""Whether there is a Java that Spark can run on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

OLDEST = 17


def require_java() -> None:
    """Skip the test where Java is not installed, or is too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")  # as Spark looks for it
    if java is None:
        pytest.skip(f"Spark needs Java {OLDEST} or newer, and none is installed: apt-get install default-jre-headless")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < OLDEST:
        pytest.skip(f"Spark needs Java {OLDEST} or newer; {java} is {told.splitlines()[0]}")
