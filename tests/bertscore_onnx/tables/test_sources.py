import gzip
import io
import os
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables import sources
from bertscore_onnx.tables.sources import Source, open_source, read_lines

BLOCK = 8192
"""How many bytes Python reads at a time."""

TEXT = "eins\nzwölf\n".encode()


def read_texts(name):
    with open_source(str(name)) as source:
        return list(read_lines(source))


def read_twice(source):
    return [list(read_lines(source)), list(read_lines(source))]


@pytest.fixture
def standard_input(monkeypatch):
    def replace(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))

    return replace


@pytest.fixture
def pipe(tmp_path):
    """Return the name of a named pipe into which a thread writes parts, one after the other."""
    threads = []

    def pipe(*parts):
        path = tmp_path / f"pipe{len(threads)}"
        os.mkfifo(path)

        def write():
            with path.open("wb", buffering=0) as file:
                for part in parts:
                    file.write(part)

        threads.append(threading.Thread(target=write, daemon=True))
        threads[-1].start()
        return str(path)

    yield pipe
    for thread in threads:
        thread.join(30)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\rtwo\r", ["one", "two"]),
        (b"one\r\n\rtwo\n\nthree", ["one", "", "two", "", "three"]),
        (b"one\n\n", ["one", ""]),
        (b"\n", [""]),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        (2 * b"\xef\xbb\xbf" + b"one\n", ["one"]),
        ("one\n\ufefftwo\n".encode(), ["one", "two"]),
        (b"  one\t\n", ["  one\t"]),
        ("one\u2028same\x0b\x0c\x85line\ntwo".encode(), ["one\u2028same\x0b\x0c\x85line", "two"]),
    ],
)
def test_lines_end_as_in_universal_newlines(write, content, texts):
    assert read_texts(write("texts.txt", content)) == texts


@pytest.mark.parametrize("shift", range(-4, 2))
@pytest.mark.parametrize(
    "crossing", ["\r\n", "\r", "\n", "\r\r\n", "ü\n", "🐈\n", "\nb\r\nc\rd\n\re\r\r\nf\u2029\n\n"]
)
def test_lines_across_blocks_equal_those_of_python(write, crossing, shift):
    before = "x" * (BLOCK + shift)
    path = write("texts.txt", f"{before}{crossing}after\n")
    with path.open(encoding="utf-8") as lines:
        assert read_texts(path) == [line.rstrip("\n") for line in lines]


def test_lines_across_the_parts_of_a_pipe_stay_whole(pipe):
    cat = "🐈".encode()
    parts = (b"\xef", b"\xbb\xbfone\r", b"\ntwo ", cat[:1], cat[1:3], cat[3:], b"\r", b"three")
    assert read_texts(pipe(*parts)) == ["one", "two 🐈", "three"]


def test_a_hyphen_is_standard_input_which_stays_open(standard_input):
    standard_input(TEXT)
    assert read_texts("-") == ["eins", "zwölf"]
    assert sys.stdin.buffer.read() == b""


AGAIN = [
    b"\xef\xbb\xbfeins\r\nzw\xc3\xb6lf\n",
    gzip.compress(b"eins\n") + gzip.compress("zwölf\n".encode()),
]


@pytest.mark.parametrize("content", AGAIN, ids=["text", "gzip"])
def test_a_file_can_be_read_again(write, content):
    with open_source(str(write("texts.txt", content))) as source:
        assert source.is_seekable
        assert read_twice(source) == [["eins", "zwölf"]] * 2


@pytest.mark.parametrize("content", AGAIN, ids=["text", "gzip"])
def test_redirected_input_is_read_again_from_its_position(standard_input, content):
    standard_input(b"read before\n" + content)
    sys.stdin.buffer.readline()
    with open_source("-") as source:
        assert source.is_seekable
        assert read_twice(source) == [["eins", "zwölf"]] * 2


def test_a_pipe_that_is_to_be_read_again_is_spooled(pipe):
    with open_source(
        pipe(b"\xef\xbb\xbfone\r\n", "zwölf\r".encode()), to_read_again=True
    ) as source:
        assert read_twice(source) == [["one", "zwölf"], ["one", "zwölf"]]


def test_a_pipe_is_spooled_up_to_a_bound(pipe, monkeypatch):
    monkeypatch.setattr(sources, "MAX_SPOOLED_BYTES", 4)
    with open_source(pipe(b"one\n"), to_read_again=True) as source:
        assert read_twice(source) == [["one"], ["one"]]
    with (
        pytest.raises(InputError, match="4 bytes"),
        open_source(pipe(b"one\n\n"), to_read_again=True),
    ):
        pass


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", 2 * b"\xef\xbb\xbf"])
def test_an_empty_input_is_refused(write, standard_input, content):
    standard_input(content)
    for name, shown in [(write("texts.txt", content), r".*texts\.txt"), ("-", "Standard input")]:
        with pytest.raises(InputError, match=rf"^{shown} is empty"):
            read_texts(name)


@pytest.mark.parametrize(
    "damaged", [b"\xfc", b"\xc3\n", b"\xf0\x9f\x90", b"\xed\xa0\x80", b"\xc3\r\nx\xff"]
)
def test_the_place_is_that_of_decoding_all_at_once(write, damaged):
    content = b"one\r\n" * 3000 + b"tw\xc3\xb6lf " + damaged + b"\nmore\n"
    with pytest.raises(UnicodeDecodeError) as expected:
        content.decode()
    with pytest.raises(InputError, match=f"line 3001 .* at offset {expected.value.start}\\."):
        read_texts(write("texts.txt", content))


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_a_line_of_the_greatest_length_is_read(write, monkeypatch, end):
    monkeypatch.setattr("bertscore_onnx.tables.sources.MAX_LINE_BYTES", 10)
    assert read_texts(write("texts.txt", f"one{end or chr(10)}{'ü' * 5}{end}")) == ["one", "üüüüü"]


def test_a_longer_line_is_refused_before_it_is_read_to_its_end(monkeypatch, endless):
    monkeypatch.setattr("bertscore_onnx.tables.sources.MAX_LINE_BYTES", 1000)
    with pytest.raises(InputError, match="line 2"):
        read_texts(endless("pipe", b"one\n" + b"x" * 5000))


def test_a_file_whose_name_has_spaces_is_read(write):
    assert read_texts(write("The cat sat.", "one\n")) == ["one"]


# Compressed files, and UTF-16.


class Pipe(io.BytesIO):
    """Bytes that can be read only once, and come one by one at first."""

    def seekable(self):
        return False

    def read1(self, size=-1):
        return super().read1(1 if self.tell() < 4 else size)


@pytest.mark.parametrize("name", ["texts.txt.gz", "texts.txt", "texts"])
def test_gzip_is_decompressed_whatever_the_name(write, name):
    assert read_texts(write(name, gzip.compress(TEXT))) == ["eins", "zwölf"]


@pytest.mark.parametrize("to_read_again", [False, True])
def test_gzip_in_a_pipe_is_decompressed(monkeypatch, to_read_again):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(gzip.compress(TEXT))))
    with open_source("-", to_read_again=to_read_again) as source:
        assert list(read_lines(source)) == ["eins", "zwölf"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda compressed: compressed[:-9],
        lambda compressed: compressed[:40] + b"x" * 9 + compressed[49:],
    ],
)
def test_damaged_gzip_is_refused(write, damage):
    path = write(
        "texts.gz", damage(gzip.compress(b"".join(b"%d\n" % number for number in range(9999))))
    )
    with pytest.raises(InputError, match="gzip and damaged"):
        read_texts(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("eins\n".encode("utf-16"), "UTF-16; .* -f UTF-16 "),
        (b"\xfe\xff" + "eins\n".encode("utf-16-be"), "UTF-16; "),
        ("eins\n".encode("utf-16-le"), "UTF-16; .* -f UTF-16LE "),
        ("eins\n".encode("utf-16-be"), "UTF-16; .* -f UTF-16BE "),
        (gzip.compress("eins\n".encode("utf-16")), "UTF-16;"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # compressed bytes hold the time
)
def test_utf_16_is_refused_with_what_to_do(write, content, message):
    with pytest.raises(InputError, match=message):
        read_texts(write("texts.txt", content))


@given(st.binary(max_size=4000))
def test_a_file_with_a_nul_byte_is_binary(before):
    content = b"ARROW" + before.replace(b"\n", b"") + b"\x00\n"
    with pytest.raises(InputError, match="to_parquet"):
        list(read_lines(Source("t", io.BytesIO(content))))


@pytest.mark.parametrize("text", ["a", "ab\tc", "x" * 5000 + "\x00"])
def test_texts_that_only_begin_so_are_texts(write, text):
    assert read_texts(write("texts.txt", text)) == [text]
