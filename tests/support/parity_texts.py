"""Pairs of sentences for parity tests: edge cases, ordinary ones, and some with several references."""

from pathlib import Path

_EXAMPLES = Path(__file__).parents[2] / "examples"

ORDINARY_PAIRS: list[tuple[str, str]] = list(
    zip(
        (_EXAMPLES / "candidates.txt").read_text(encoding="utf-8").splitlines(),
        (_EXAMPLES / "references.txt").read_text(encoding="utf-8").splitlines(),
        strict=True,
    )
)

EDGE_CASE_PAIRS: list[tuple[str, str]] = [
    ("", "nothing on the other side"),
    ("nothing on the other side", ""),
    (" \t\n ", "only white space"),
    ("", ""),
    ("\u3000\u00a0", "ideographic and no-break space"),
    ("same", "same"),
    ("a", "I"),
    (".", "?!"),
    ("before [SEP] after", "before after"),
    ("[CLS] hello [PAD] world [MASK]", "hello world"),
    ("<s> hello </s> <pad> <mask> world <unk>", "hello world"),
    ("[SEP]glued[SEP]", "glued"),
    ("naïve café Ångström Łódź İstanbul", "naive cafe Angstrom Lodz Istanbul"),
    ("e\u0301te\u0301 a\u0308\u0323 \u0301alone", "été ạ̈ alone"),
    ("ΣΊΣΥΦΟΣ ΟΔΟΣ", "σίσυφος οδός"),
    ("今日は暑い。中文 한국어", "今天很热。日本語 조선말"),
    ("مرحبا بالعالم", "שלום עולם"),
    ("😀👩‍👩‍👧‍👦🇩🇪✌🏽 fun", "fun 😀"),
    ("zero\u200bwidth\ufeffmark\u00adsoft", "zerowidthmarksoft"),
    ("control\u0001\u001f\u007f\u0085 nul\u0000byte", "control nulbyte"),
    ("line\u2028separator\u2029and\u000bmore", "line separator and more"),
    ("unassigned \u0378\U000e0001 private \ue000 \ufffd", "unassigned private"),
    ("𝓗𝓮𝓵𝓵𝓸 ①②③ ½ ﬁne ㎏", "Hello 123 1/2 fine kg"),
    ("﹏‿⁀ ⸺ 〽 ꠸ ৽", "punctuation of newer Unicode"),
    ("x" * 150, "x" * 100),
    ("!?" * 60, "!"),
    ("1,234.56 -- 7e-8 (9%)", "1234.56 or 0.00000007"),
    ("https://example.org/a_b?c=d&e=%20", "a link"),
    ("one two three " * 300, "one two three " * 10),
    ("beginning " + "middle " * 700 + "end", "beginning " + "middle " * 700 + "other"),
]

SEVERAL_REFERENCES: list[tuple[str, list[str]]] = [
    ("I like lemons.", ["I am proud of you.", "I love lemons.", "Go on."]),
    ("It is freezing today.", ["It is freezing today."]),
    ("The river flows north.", ["The river flows south.", "The river flows south.", "North flows the river."]),
    ("café", ["", "cafe", "CAFÉ !"]),
    ("Nobody knows who wrote the letter.", ["the letter " * 100, "Who wrote the letter is unknown to everybody."]),
]
