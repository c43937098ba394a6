"""Reading files of texts."""

import io
import sys

import pytest

from bertscore_onnx.cli.text_files import read_parallel, read_texts
from bertscore_onnx.errors import InputError


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
        (b"  one\t\n", ["  one\t"]),
        ("one\u2028same\x0b\x0c\x85line\ntwo".encode(), ["one\u2028same\x0b\x0c\x85line", "two"]),
    ],
)
def test_lines_end_as_in_universal_newlines(write, content, texts):
    assert read_texts(str(write("texts.txt", content))) == texts


def test_lines_equal_those_of_python(write):
    path = write("texts.txt", "a\nb\r\nc\rd\n\re\r\r\nf\u2029\n\n")
    with path.open(encoding="utf-8") as lines:
        assert read_texts(str(path)) == [line.rstrip("\n") for line in lines]


def test_a_byte_order_mark_is_dropped(write):
    assert read_texts(str(write("texts.txt", b"\xef\xbb\xbfone\n"))) == ["one"]


def test_a_byte_order_mark_inside_is_kept(write):
    assert read_texts(str(write("texts.txt", "one\n\ufefftwo\n"))) == ["one", "\ufefftwo"]


def test_a_hyphen_is_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("eins\nzwölf\n".encode()), encoding="ascii"))
    assert read_texts("-") == ["eins", "zwölf"]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(write, content):
    path = write("texts.txt", content)
    with pytest.raises(InputError) as caught:
        read_texts(str(path))
    assert str(caught.value) == f"{path} is empty; expected texts, one a line."


def test_empty_standard_input_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(InputError, match=r"^Standard input is empty; expected texts, one a line\.$"):
        read_texts("-")


def test_other_encodings_are_refused_with_the_place(write):
    path = write("texts.txt", b"\xef\xbb\xbfone\r\ntwo\rZ\xfcrich\n")
    with pytest.raises(InputError) as caught:
        read_texts(str(path))
    assert str(caught.value) == (
        f"{path} is not UTF-8: line 3 has the byte 0xFC at offset 13. Convert it first, for example "
        "`iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW_FILE`."
    )


def test_a_missing_file_is_refused():
    with pytest.raises(InputError) as caught:
        read_texts("missing.txt")
    assert str(caught.value) == (
        "Cannot read 'missing.txt' (No such file or directory); expected a readable file with texts, one a line, or - "
        "for standard input. Check the name and its permissions."
    )


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"\(Is a directory\); expected a readable file"):
        read_texts(str(tmp_path))


def test_an_unreadable_file_is_refused(write, monkeypatch):
    path = write("texts.txt", "one\n")

    def refuse(self):
        raise PermissionError(13, "Permission denied")  # a mode would not stop the superuser

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(InputError, match=r"\(Permission denied\); expected a readable file"):
        read_texts(str(path))


@pytest.mark.parametrize("text", ["The cat sat.", "The cat sat. " * 400])
def test_a_text_in_place_of_a_file_is_refused_with_the_way_to_give_texts(text):
    with pytest.raises(
        InputError, match=r"expected the name of a file .* not a text\. .* pipe it in: `echo 'A text\.' \|"
    ):
        read_texts(text)


def test_a_file_whose_name_has_spaces_is_read(write):
    assert read_texts(str(write("The cat sat.", "one\n"))) == ["one"]


def test_references_of_several_files_stand_together(write):
    candidates, first, second = write("c", "a\nb\n"), write("r1", "c\nd\n"), write("r2", "e\nf\n")
    expected = (["a", "b"], [("c", "e"), ("d", "f")])
    assert read_parallel(str(candidates), [str(first), str(second)]) == expected


def test_different_numbers_of_lines_are_refused_with_both_files(write):
    candidates, first, second = write("c", "a\nb\n"), write("r1", "c\nd\n"), write("r2", "e\n")
    with pytest.raises(InputError) as caught:
        read_parallel(str(candidates), [str(first), str(second)])
    assert str(caught.value).startswith(f"{candidates} has 2 lines and {second} has 1; expected as many references as")
