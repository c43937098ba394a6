"""Files that are packed, or no text."""

import bz2
import gzip
import io
import lzma
import sys
import zipfile

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.sources import open_source, read_lines

TEXT = "eins\nzwölf\n".encode()


def read_texts(name):
    with open_source(str(name)) as source:
        return list(read_lines(source))


class Pipe(io.BytesIO):
    """Bytes that can be read only once, and come one by one at first."""

    def seekable(self):
        return False

    def read1(self, size=-1):
        return super().read1(1 if self.tell() < 4 else size)


def zipped(content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("texts.txt", content)
    return file.getvalue()


@pytest.mark.parametrize("name", ["texts.txt.gz", "texts.txt", "texts"])
def test_gzip_is_unpacked_whatever_the_name(write, name):
    assert read_texts(write(name, gzip.compress(TEXT))) == ["eins", "zwölf"]


def test_gzip_is_read_again_from_its_start(write):
    with open_source(str(write("texts.gz", gzip.compress(TEXT) + gzip.compress(b"drei\n")))) as source:
        assert list(read_lines(source)) == list(read_lines(source)) == ["eins", "zwölf", "drei"]


def test_gzip_in_redirected_standard_input_is_read_again_from_where_it_stood(monkeypatch):
    file = io.BytesIO(b"read before" + gzip.compress(TEXT))
    file.seek(len(b"read before"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
    with open_source("-") as source:
        assert source.is_rereadable
        assert list(read_lines(source)) == list(read_lines(source)) == ["eins", "zwölf"]


@pytest.mark.parametrize("to_read_again", [False, True])
def test_gzip_in_a_pipe_is_unpacked(monkeypatch, to_read_again):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(gzip.compress(TEXT))))
    with open_source("-", to_read_again=to_read_again) as source:
        assert list(read_lines(source)) == ["eins", "zwölf"]


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: packed[:40] + b"x" * 9 + packed[49:]])
def test_damaged_gzip_is_refused(write, damage):
    path = write("texts.gz", damage(gzip.compress(b"".join(b"%d\n" % number for number in range(9999)))))
    with pytest.raises(InputError, match=r"texts\.gz is packed with gzip and damaged: .* `gzip -t FILE` checks it"):
        read_texts(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "eins\n".encode("utf-16"),
            "in UTF-16; expected text in UTF-8. Convert it first, for example `iconv -f UTF-16 ",
        ),
        (b"\xfe\xff" + "eins\n".encode("utf-16-be"), "in UTF-16; expected"),
        ("eins\n".encode("utf-16-le"), "in UTF-16, without its mark; expected text in UTF-8. .* -f UTF-16LE "),
        ("eins\n".encode("utf-16-be"), "in UTF-16, without its mark; .* -f UTF-16BE "),
        ("eins\n".encode("utf-32"), "in UTF-32; .* -f UTF-32 "),
        (gzip.compress(gzip.compress(TEXT)), "packed with gzip twice"),
        (gzip.compress("eins\n".encode("utf-16")), "in UTF-16;"),
        (bz2.compress(TEXT), "packed with bzip2; .* `bzcat FILE "),
        (lzma.compress(TEXT), "packed with xz; .* `xzcat FILE "),
        (b"\x28\xb5\x2f\xfd\x04\x00\x19", "packed with zstd; .* `zstd -dc FILE "),
        (zipped(TEXT), "a zip archive, or an Excel file; .* `unzip -p FILE .* as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel file; .* as CSV"),
        (b"PAR1\x15\x04\x15", "Parquet; .* --input-format parquet"),
        (b"ARROW1\x00\x00", "in the format of Arrow or Feather; "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # packed bytes hold the time
)
def test_other_formats_are_refused_with_what_to_do(write, content, told):
    with pytest.raises(InputError, match=rf"texts\.txt is {told}"):
        read_texts(write("texts.txt", content))


@pytest.mark.parametrize("text", ["PAR1 is a receptor", "PK is a band", "BZh91", "a", "ab\tc", "\x00\x00\x00\x00"])
def test_texts_that_only_begin_so_are_texts(write, text):
    assert read_texts(write("texts.txt", text)) == [text]
