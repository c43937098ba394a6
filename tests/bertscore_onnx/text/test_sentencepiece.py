import gc
import weakref
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from tokenizers import Tokenizer, models

from bertscore_onnx.text.bpe import Merging
from bertscore_onnx.text.sentencepiece import SentencePiece, SentencePieceEncoder
from bertscore_onnx.text.unigram import Unigram

PIECES = [("<unk>", 0.0), ("▁", -2.0), ("a", -3.0), ("b", -3.0), ("ab", -4.0), ("▁a", -4.5), ("1,", -1.0), (",", -2.0),
          ("1", -2.5), ("▁1", -3.5), ("aa", -6.0), (".", 0.0)]  # fmt: skip
OPTIONS = SentencePiece(
    model="unigram",
    add_dummy_prefix=True,
    remove_extra_whitespaces=True,
    unknown_id=0,
    unmatched_ids=[],
    user_defined_ids=[11],
    byte_ids=[],
    split_number_comma=False,
    split_punctuation=False,
)


def encoder(folder: Path, **changes: Any) -> SentencePieceEncoder:
    path = folder / "tokenizer.json"
    Tokenizer(models.Unigram(PIECES, 0)).save(str(path))
    return SentencePieceEncoder(path, msgspec.structs.replace(OPTIONS, **changes))


def test_the_cut_of_the_highest_score_wins(tmp_path: Path) -> None:
    assert encoder(tmp_path)("ab") == [1, 4]  # -6, where ▁a b has -7.5


def test_neighbouring_unknown_characters_are_one_token(tmp_path: Path) -> None:
    assert encoder(tmp_path)("xyz a") == [1, 0, 5]


def test_unknown_characters_can_be_bytes(tmp_path: Path) -> None:
    assert encoder(tmp_path, byte_ids=list(range(1000, 1256)))("é") == [1, 1195, 1169]


def test_unmatched_pieces_are_not_found(tmp_path: Path) -> None:
    assert encoder(tmp_path, unmatched_ids=[4])("ab") == [5, 3]


def test_spaces_collapse(tmp_path: Path) -> None:
    assert encoder(tmp_path).normalise("  a   b ") == "▁a▁b"


def test_spaces_stay_when_told(tmp_path: Path) -> None:
    assert encoder(tmp_path, remove_extra_whitespaces=False).normalise(" a  ") == "▁▁a▁▁"


def test_a_visible_space_at_the_end_goes_too(tmp_path: Path) -> None:
    assert encoder(tmp_path).normalise("a▁") == "▁a"


def test_no_space_goes_in_front_when_told(tmp_path: Path) -> None:
    assert encoder(tmp_path, add_dummy_prefix=False).normalise("a b") == "a▁b"


def test_an_empty_text_has_no_pieces(tmp_path: Path) -> None:
    assert encoder(tmp_path)("") == []
    assert encoder(tmp_path)(" ") == []


def test_a_comma_leaves_its_number_when_told(tmp_path: Path) -> None:
    assert encoder(tmp_path)("a1,") == [5, 6]
    assert encoder(tmp_path, split_number_comma=True)("a1,") == [5, 8, 7]


def test_punctuation_marks_are_texts_of_their_own_when_told(tmp_path: Path) -> None:
    assert encoder(tmp_path, split_punctuation=True)("a,b") == [5, 1, 7, 1, 3]


def test_a_repeated_text_gives_the_same_ids(tmp_path: Path) -> None:
    encode = encoder(tmp_path)

    assert [encode("ab a") for _ in range(2)] == [[1, 4, 5]] * 2


@pytest.mark.parametrize("count", [1, 2, 3, 40, 5000])
def test_equally_good_cuts_keep_the_first_found(tmp_path: Path, count: int) -> None:
    # aa is worth exactly a and a: no sum rounds below 2**24, and the earlier start wins
    assert encoder(tmp_path, unmatched_ids=[5])("a" * (2 * count)) == [1, *[10] * count]


def test_bpe_joins_the_best_neighbours_first(tmp_path: Path) -> None:
    # ab (-4) is joined before ▁a (-4.5), and ▁a before aa (-6)
    assert encoder(tmp_path, model="bpe")("abab") == [1, 4, 4]
    assert encoder(tmp_path, model="bpe")("aab") == [5, 4]


def test_bpe_joins_the_leftmost_of_equal_neighbours(tmp_path: Path) -> None:
    assert encoder(tmp_path, model="bpe", unmatched_ids=[5])("aaa") == [1, 10, 2]


def test_bpe_leaves_user_defined_pieces_alone(tmp_path: Path) -> None:
    assert encoder(tmp_path, model="bpe", user_defined_ids=[2])("ab") == [1, 2, 3]


@pytest.mark.parametrize("model", ["unigram", "bpe"])
def test_words_are_remembered_unless_they_are_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Literal["unigram", "bpe"]
) -> None:
    encode = encoder(tmp_path, model=model)
    kind = Unigram if model == "unigram" else Merging
    cut, seen = kind.cut, []

    def count(self: Any, word: str, total: float) -> Any:
        seen.append(word)
        return cut(self, word, total)

    monkeypatch.setattr(kind, "cut", count)
    expected = encode(f"ab {'b' * 32}")
    assert seen == ["▁ab", "▁" + "b" * 32]
    assert encode(f"ab {'b' * 32}") == expected
    assert seen == ["▁ab", *["▁" + "b" * 32] * 2]


def test_an_encoder_is_released_at_once(tmp_path: Path) -> None:
    encode = encoder(tmp_path)
    encode("ab a")
    released = weakref.ref(encode)
    gc.disable()
    try:
        del encode
        assert released() is None
    finally:
        gc.enable()
