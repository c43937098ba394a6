"""Texts that every export is tested with.

They are plain ones, edge cases, and the golden pairs of the bundle.
"""

from itertools import chain

GOLDEN_PAIRS: tuple[tuple[str, str], ...] = (
    ("The cat sat on the mat.", "A cat was sitting on the mat."),
    (
        "Profits rose by 12 % in the third quarter.",
        "In the third quarter, earnings were up twelve percent.",
    ),
    ("She never agreed to sign the contract.", "She agreed to sign the contract."),
    ("Hello", "Hello"),
    (
        "It rained all night, so the river burst its banks by dawn and the road to the village "
        "was closed.",
        "Flooding.",
    ),
    ("Der Zug nach Zürich fährt heute später ab.", "Heute hat der Zug nach Zürich Verspätung."),
    ("今日はとても暑いです。", "今天天气很热。"),
    ("Wait -- what?! (see https://example.org/a_b?c=1)", "what?? see http://example.org"),
)
"""The candidates and references of the golden scores, of different lengths, languages and
meanings.
"""

PLAIN_TEXTS: tuple[str, ...] = (
    *chain(*GOLDEN_PAIRS[:6]),
    "The committee, which met on Tuesday, postponed its decision until 3 p.m. on 14 March 2019.",
    'He asked: "Who\'s there?" -- and nobody answered.',
    "Prices fell from $1,299.00 to €999 (about 23%).",
    "  Spaces   around and   inside  ",
    "UPPER CASE, lower case, Title Case, camelCase and snake_case",
    "Don't, won't, can't, it's, we'll, they've, I'd",
    "one-way state-of-the-art re-enter",
    "a\tb\nc",
    "word " * 600,
)
"""Texts whose ids must be the original tokenizer's."""

EDGE_CASE_TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\u00a0\u3000",
    ".",
    "a",
    "[CLS] [SEP] [MASK] [PAD] [UNK]",
    "<s> </s> <mask> <pad> <unk>",
    "before[SEP]after</s>after",
    "<s>Hello",
    "[sep] [Mask]",
    "naïve café, Ångström, Łódź, İstanbul, ΣΊΣΥΦΟΣ, straße, ﬁne",
    "cafe\u0301 e\u0301\u0327 a\u0308\u0323",
    "한국어 문장입니다. \u1112\u1161\u11ab",
    "これは日本語の文です。カタカナ ﾊﾝｶｸ",
    "中文句子，没有空格。𠀀𪚥",
    "नमस्ते दुनिया। สวัสดีชาวโลก ਸਤਿ",
    "السلام عليكم ورحمة الله شَدَّة",
    "שלום עולם שָׁלוֹם",
    "Привет, мир! Ёлка",
    "😀 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ✌🏽",
    "zero\u200bwidth\u200djoiner\ufeffbom\u00adsoft",
    "control\u0001\u0002\u001f\u007f\u0085 characters",
    "nul\u0000inside",
    "line\u2028separator\u2029paragraph",
    "replacement \ufffd private \ue000 unassigned \u0378 \U000e0001",
    "①②③ ½ ² ™ ℡ ㎏ Ⅷ ﷺ",
    "…—–‘’“”«»‹›„‚",
    "$^`~|<>+= _@#%&*",
    "１２３ ＡＢＣ ｱｲｳ",
    "x" * 120,
    "ab" * 400,
    "!" * 50,
    "https://user:pass@example.org:8080/a/b.html?q=1&r=%20#frag",
    "``quoted'' text -- and ''more``",
    "1,234,567.89 1,2,3, 9,",
    "a\u0300\u0301\u0302\u0303\u0304",
    "\u0301starts with a mark",
    "\U0001d4d7\U0001d4ee\U0001d4f5\U0001d4f5\U0001d4f8",
    "tab\tnew\nline\r\nreturn\rformfeed\x0cvertical\x0b",
    "mixed 漢字kanji and한글hangul",
)
"""Texts whose ids are compared with the original tokenizer's; the manifest counts the
differences.
"""
