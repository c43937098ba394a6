"""The similarities behind a score: their weights, and the score they are those of."""

from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import IdfError, InputError, UnknownLayerError
from bertscore_onnx.similarity import TokenNames, pair_similarities
from bertscore_onnx.text.normalizers import BYTE_CHARACTERS
from bertscore_onnx.text.spec import SpecialToken
from tests.support.token_similarity import stated_similarity

CANDIDATE, REFERENCE = "the cat sat on it", "a dog sat on the mat"


def mean_of_best(matches):
    weights = [match.weight for match in matches]
    return np.average([match.similarity for match in matches], weights=weights)


def assert_makes_its_score(found):
    assert mean_of_best(found.candidate_matches) == pytest.approx(found.score.P, abs=1e-6)
    assert mean_of_best(found.reference_matches) == pytest.approx(found.score.R, abs=1e-6)


@pytest.mark.parametrize("pair", [(CANDIDATE, REFERENCE), ("a", "a cat"), ("", "a cat"), ("", "")])
def test_the_score_is_the_scorers(scorer, pair):
    found = scorer.match(*pair).best
    [score] = scorer.score([pair[0]], [pair[1]]).each() if all(pair) else [(0, 0, 0)]
    assert found.score == pytest.approx(score, abs=1e-6)
    if all(pair):
        assert_makes_its_score(found)


@pytest.mark.parametrize("weights", [([0.5], [1]), ([1], [0.5])])
def test_weights_of_one_side_are_weights(weights):
    assert stated_similarity(["a"], ["b"], [[1]], weights).has_weights


def test_idf_of_the_references_is_that_of_the_pairs_list(scorer):
    references = [REFERENCE, "the cat sat"]
    with scorer.with_idf(True) as weighed:
        found = weighed.match(CANDIDATE, references).similarities
        [score] = weighed.score([CANDIDATE], [references]).each()
        with pytest.raises(IdfError, match="one reference"):
            weighed.match(CANDIDATE, REFERENCE)
    assert max(one.score.F for one in found) == pytest.approx(score.F, abs=1e-6)
    assert dict(
        zip(found[0].reference, found[0].reference_weights.tolist(), strict=True)
    ) == pytest.approx(
        {"[CLS]": 0, "[SEP]": 0, "sat": 0, "the": 0}
        | dict.fromkeys(("a", "dog", "on", "mat"), np.log(3 / 2))
    )


def test_a_rescaled_score_keeps_raw_similarities(tiny_bundle, baseline_path):
    with BERTScorer(tiny_bundle, baseline_path=baseline_path, rescale_with_baseline=True) as scorer:
        found = scorer.match(CANDIDATE, REFERENCE).best
        [score] = scorer.score([CANDIDATE], [REFERENCE]).each()
        [raw] = scorer.with_rescaling().score([CANDIDATE], [REFERENCE]).each()
    assert found.score == pytest.approx(score, abs=1e-6)
    assert found.baseline == 0.3
    np.testing.assert_allclose(
        found.shades, np.clip((found.similarity - 0.3) / 0.7, 0, 1), atol=1e-6
    )
    assert mean_of_best(found.candidate_matches) == pytest.approx(raw.P, abs=1e-6)


def test_of_all_layers_one_is_shown(all_layers_scorer):
    names = TokenNames(all_layers_scorer.bundle)
    with pytest.raises(InputError, match="layers"):
        all_layers_scorer.match(CANDIDATE, REFERENCE)
    with pytest.raises(UnknownLayerError, match="99"):
        pair_similarities(all_layers_scorer, names, [(CANDIDATE, REFERENCE)], layer=99)
    scores = all_layers_scorer.score([CANDIDATE], [REFERENCE])
    for layer in all_layers_scorer.manifest.layers:
        [found] = pair_similarities(all_layers_scorer, names, [(CANDIDATE, REFERENCE)], layer=layer)
        assert found.score == pytest.approx([values[layer, 0] for values in scores], abs=1e-6)
        assert_makes_its_score(found)


def test_the_layer_of_a_scorer_of_one_may_be_named(scorer):
    names, pairs, layer = TokenNames(scorer.bundle), [(CANDIDATE, REFERENCE)], scorer.num_layers
    [named] = pair_similarities(scorer, names, pairs, layer=layer)
    assert named.score == scorer.match(CANDIDATE, REFERENCE).best.score
    with pytest.raises(UnknownLayerError, match=f"layer {layer}"):
        pair_similarities(scorer, names, pairs, layer=layer + 1)


def test_long_texts_in_windows_have_all_their_tokens(tiny_bundle):
    long = "the cat sat on the mat " * 40
    with BERTScorer(tiny_bundle, long_text="window", max_length=32) as scorer:
        found = scorer.match(long, REFERENCE).best
        [score] = scorer.score([long], [REFERENCE]).each()
    assert (len(found.candidate), found.is_truncated) == (242, (False, False))
    assert found.score == pytest.approx(score, abs=1e-6)
    assert_makes_its_score(found)


BYTES = {character: byte for byte, character in BYTE_CHARACTERS.items()}


def names_of(tokenizer, folder, special_ids=(), spec=None):
    tokenizer.save(str(folder / "tokenizer.json"))
    manifest = SimpleNamespace(special_ids=[*special_ids], tokenizer_spec=spec)
    return TokenNames(SimpleNamespace(tokenizer_path=folder / "tokenizer.json", manifest=manifest))


@pytest.fixture
def of_bytes(tmp_path):
    """Byte-level BPE whose ids below 256 are bytes; then come a few longer pieces, and a special
    token.
    """
    pieces = ["<s>", "The", "ĠThe", "CafÃ©", "ĠCafÃ©", "æĿ", "Ġæ", "±äº", "ĊĊ"]
    vocab = BYTES | {piece: 256 + place for place, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    names = names_of(tokenizer, tmp_path, [vocab["<s>"]])
    return lambda *tokens: names(
        [vocab[token] if isinstance(token, str) else token for token in tokens]
    )


def test_each_token_with_a_part_of_a_character_shows_it(of_bytes):
    east, capital = "東".encode(), "京".encode()
    assert of_bytes(*east, *capital) == [
        "東(1/3)",
        "東(2/3)",
        "東(3/3)",
        "京(1/3)",
        "京(2/3)",
        "京(3/3)",
    ]
    assert of_bytes("æĿ", east[2], "Ġæ", *east[1:]) == [
        "東(1/2)",
        "東(2/2)",
        "東(1/3)",
        "東(2/3)",
        "東(3/3)",
    ]
    assert of_bytes("æĿ", "±äº", capital[2]) == ["東(1/2)", "東(2/2)京(1/2)", "京(2/2)"]


def test_a_character_that_was_cut_off_is_escaped(of_bytes):
    assert of_bytes("The", "æĿ", "<s>") == ["The", r"\xe6\x9d", "<s>"]
    assert of_bytes("æĿ") == [r"\xe6\x9d"]


def test_what_cannot_be_seen_is_escaped(of_bytes):
    assert of_bytes("Ġ", "ĊĊ", "ĉ", 0) == ["␣", r"\n\n", r"\t", r"\x00"]
    assert of_bytes(*"\u200b\u202e".encode()) == [
        *(rf"\u200b({part}/3)" for part in (1, 2, 3)),
        *(rf"\u202e({part}/3)" for part in (1, 2, 3)),
    ]


def test_a_sign_within_a_word_stays(tmp_path):
    vocab = {"[UNK]": 0, "می\u200cخواهم": 1, "\u200d": 2, "a\u202eb": 3, " ": 4, "\u3000": 5}
    names = names_of(Tokenizer(models.WordLevel(vocab, "[UNK]")), tmp_path)
    assert names(range(1, 6)) == ["می\u200cخواهم", r"\u200d", r"a\u202eb", "␣", r"\u3000"]


def test_byte_level_is_known_from_the_decoder_too(tmp_path):
    tokenizer = Tokenizer(models.BPE(BYTES | {"Ġthe": 256}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel()])
    assert names_of(tokenizer, tmp_path)([256]) == ["the"]


def test_special_tokens_are_named_by_the_bundle(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, " 1": 1}, "<unk>"))
    tokenizer.add_special_tokens(["<｜end▁of▁text｜>"])
    spec = SimpleNamespace(special_tokens=[SpecialToken("<s>", 1), SpecialToken("en_XX", 9)])
    assert names_of(tokenizer, tmp_path, [1, 9], spec)([1, 2, 9, 7]) == [
        "<s>",
        "<｜end▁of▁text｜>",
        "en_XX",
        "#7",
    ]
