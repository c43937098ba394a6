import pytest


@pytest.fixture
def compare_files(run, tmp_path, monkeypatch):
    """Return a function that writes files into an empty working folder and compares them."""

    def compare_files(files, *options):
        monkeypatch.chdir(tmp_path)
        for name, content in files.items():
            (tmp_path / name).write_text(content, encoding="utf-8")
        return run("compare", *options)

    return compare_files
