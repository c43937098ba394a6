"""Mistakes that users make at each door, and the words that their messages need: what was given,
expected, and to do.

No message may be a traceback or the text of another library; only the usage of commands is checked
by Typer.
"""

import json
import re
import shlex
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bertscore_onnx import BERTScorer, count_documents, score
from bertscore_onnx.cli import app
from bertscore_onnx.errors import BertScoreOnnxError, BundleError
from bertscore_onnx_evaluation import compare, paired_permutation
from bertscore_onnx_service import ScoreBatch
from bertscore_onnx_service.http.limits import Limits
from bertscore_onnx_service.http.models import Models
from tests.support.http_server import CPU, error_of, serving

FOREIGN = re.compile(
    r"Traceback|Errno|Error\(|pydantic|msgspec|Expected `|[Mm]agic bytes|unexpected "
    r"keyword|expected str,|has no len"
    r"|object has no attribute|invalid literal|could not convert|inhomogeneous|got `"
)
"""Texts of Python, pydantic, msgspec, Arrow and numpy."""

FILES = {
    "cand.txt": "the cat\na dog\n",
    "ref.txt": "a cat\nthe dog\n",
    "three.txt": "a\nb\nc\n",
    "empty.txt": "",
    "latin.txt": "café\nolé\n".encode("latin-1"),
    "utf16.txt": "café\n".encode("utf-16"),
    "book.xlsx": b"PK\x03\x04",
    "book.csv": b"PK\x03\x04",
    "xz.csv": b"\xfd7zXZ\x00",
    "zst.csv": b"(\xb5/\xfd\x04",
    "film.srt": "1\n00:00:01,000 --> 00:00:02,000\nHello\n",
    "news.sgm.gz": b"",
    "keyed.json": '{"1": {"candidate": "a", "reference": "b"}, "2": {"candidate": "a", "reference": "b"}}',
    "split.json": '{"columns": ["candidate", "reference"], "data": [["a", "b"]]}',
    "excel.csv": "sep=;\ncandidate;reference\na;b\n",
    "cut.txt.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "lines.txt": '{"candidate": "a", "reference": "b"}\n',
    "pairs.csv": "candidate,reference\nthe cat,a cat\na dog,the dog\n",
    "named.csv": "mt,gold\nthe cat,a cat\n",
    "refs.csv": "id,reference\n3,a cat\n1,the dog\n",
    "ids.csv": "id,candidate\n1,the cat\n2,a dog\n",
    "scored.csv": "candidate,reference,f1\nthe cat,a cat,1\n",
    "twice.csv": "candidate,candidate,reference\na,b,c\n",
    "wider.csv": "candidate,reference\na,b,c\n",
    "header.csv": "candidate,reference\n",
    "quote.csv": 'candidate,reference\n"a,b\n',
    "bare.tsv": "a\tb\nc\td\n",
    "array.json": '[{"candidate": "a", "reference": "b"}]',
    "broken.jsonl": '{"candidate": "a", "reference": "b"}\nnope\n',
    "number.jsonl": '{"candidate": 1, "reference": "b"}\n',
    "null.jsonl": '{"candidate": "a", "reference": null}\n',
    "lists.jsonl": '{"candidate": ["a"], "reference": "b"}\n',
    "none.jsonl": '{"candidate": "a", "reference": []}\n',
    "broken.parquet": b"PAR1xxxx",
    "lower.csv": "layer,p,r,f\n2,.1,.2,.3\n",
    "other.csv": "LAYER,P,R,F\n1,.1,.2,.3\n",
    "one.csv": "LAYER,P,R,F\n2,1,1,1\n",
    "wide.csv": "segment,A,B\n1,.5,.6\n2,.4,.3\n3,.1,.2\n",
    "gap.csv": "segment,A,B\n1,.5,.6\n2,.4,\n3,.1,.2\n",
    "again.csv": "segment,A,B\n1,.5,.6\n1,.4,.3\n",
    "word.csv": "segment,A,B\n1,.5,.6\n2,.4,good\n",
    "comma.csv": "segment;A;B\n1;0,5;0,6\n2;0,4;0,3\n",
    "single.csv": "segment,A\n1,.5\n2,.4\n",
    "judged.csv": "system,segment,human,m\nA,1,.5,.4\nA,2,x,.3\n",
    "rated.csv": "system,segment,human,m\nA,1,.5,.4\nB,1,.4,.3\n",
    "keys.txt": "short\n",
    "counts.json": "{}",
    "grouped.csv": "candidate,reference,domain\na,b,x\na,b, \n",
    "nothing.jsonl": '{"candidate": "a", "reference": "b", "domain": null}\n',
    "listed.jsonl": '{"candidate": "a", "reference": "b", "domain": ["x"]}\n',
    "object.jsonl": '{"candidate": "a", "reference": "b", "domain": {"x": 1}}\n',
}

SCORE = "score -m $M -c cand.txt -r ref.txt"
BATCH = "batch -m $M -i pairs.csv -o jobs"
SHOW = "show -m absent -c 'the cat' -r 'a dog'"  # none of the mistakes needs the model
AT_THE_SHELL = {
    # commands
    "scroe -c cand.txt": ("'scroe'", "Did you mean 'score'?"),
    "models zzz": ("'zzz'", "lists all"),
    f"{SCORE} --num_layer 2": ("No such option: --num-layer", "--num-layers", "-h"),
    "score -m $M -r ref.txt": ("Missing option", "--cand"),
    f"{SCORE} -b": ("'-b' requires an argument",),
    # models and bundles
    "score -c cand.txt -r ref.txt": (
        "name a model",
        "--lang en",
        "BERTSCORE_ONNX_MODEL",
        "bertscore-onnx models",
    ),
    "score -m robreta-large -c cand.txt -r ref.txt": (
        "'robreta-large'",
        "nearest",
        "roberta-large",
    ),
    "score -m roberta-large -c cand.txt -r ref.txt": (
        "roberta-large",
        "not exported",
        "bertscore-onnx export",
    ),
    "score -m ./absent -c cand.txt -r ref.txt": ("'./absent'", "no folder", "path of a bundle"),
    "score -m build/absent -c cand.txt -r ref.txt": (
        "'build/absent'",
        "working folder",
        "absolute path",
    ),
    "score -m $M/model.onnx -c cand.txt -r ref.txt": (
        "model.onnx is a file of a bundle",
        "folder, $M",
    ),
    "score -m . -c cand.txt -r ref.txt": (". is no bundle", "bertscore.json", "export"),
    "score -m $MODEL -c cand.txt -r ref.txt": (
        "transformers model",
        "not a bundle",
        "bertscore-onnx export",
    ),
    "inspect": ("name a model", "BERTSCORE_ONNX_MODEL", "models --here"),
    "inspect absent": ("'absent'", "bertscore-onnx models"),
    "pull ./absent": ("'./absent'", "--model takes", "expected ORG/REPO"),
    "pull $M": ("is a path on this machine", "--model takes", "expected ORG/REPO"),
    "pull roberta-large": ("'roberta-large'", "expected ORG/REPO"),
    "export": ("name a model", "--from-onnx"),
    # layers, devices and other settings
    f"{SCORE} -l 1": ("layer 1", "cut at layer 2", "export --model MODEL --num-layers 1"),
    f"{SCORE} -l 12": ("Layer 12", "has 3", "cut at layer 2", "leave --num-layers out"),
    f"{SCORE} -l four": ("'--num-layers'", "'four'", "a whole number of at least 0"),
    f"{SCORE} --batch-size 0": ("'--batch-size'", "0"),
    f"{SCORE} --min-f1 90%": ("'--min-f1'", "'90%'", "a number from 0 to 1"),
    "doctor $M again": ("again is unexpected", "a single BUNDLE"),
    f"{SCORE} --json": ("No such option: --json", "--format json)"),
    f"{SCORE} --format xml": ("'--format'", "'xml'; expected one of 'tsv'"),
    "compare cand.txt ref.txt -r ref.txt": (
        "cand.txt ref.txt is unexpected",
        "an option before it, such as -c",
    ),
    **{
        f"score -m $M -c {file}": (f"{file} is {kind}", "expected text in UTF-8")
        for file, kind in (
            ("xz.csv", "compressed with xz"),
            ("book.csv", "an Excel file"),
            ("zst.csv", "compressed with"),
        )
    },
    f"{SCORE} --all-layers": ("layer 2 only", "all layers are needed", "--all-layers"),
    f"{SCORE} -l 2 --all-layers": ("--num-layers", "no effect", "leave out one"),
    f"{SCORE} --nthreads 100000": (
        "nthreads is 100,000",
        "expected at most",
        "Leave it out for all CPUs",
    ),
    f"{SCORE} --device gpu": ("device is 'gpu'", 'expected "cpu"', "Leave it out"),
    f"{SCORE} --device cuda:first": ("'cuda:first'", '"cuda:N"'),
    f"{SCORE} --precision half": ("'half'", "'fp32', 'fp16', 'int8'"),
    f"{SCORE} --precision int8": ("in fp32", "int8", "Leave --precision out", "export"),
    f"{SCORE} --use-fast-tokenizer": (
        "slow tokenizer",
        "Leave --use-fast-tokenizer out",
        "--tokenizer-mode fast",
    ),
    f"{SCORE} --long-text split": ("'split'", "'truncate', 'window'"),
    f"{SCORE} --max-length 2": ("max_length is 2", "tiny-bert takes 3"),
    f"{SCORE} --max-length 99999": ("99,999", "tiny-bert takes 3"),
    f"{SCORE} --matching soft": ("'soft'", "code-bert-score"),
    f"{SCORE} --matching beeta=2": ("'beeta=2'", "Did you mean 'beta'?"),
    f"{SCORE} --matching beta=high": ("beta is 'high'", "expected a number"),
    f"{SCORE} --matching doc-bert-score": ("without contexts", "--context FILE"),
    f"{SCORE} --matching words=absent.txt": ("absent.txt",),
    f"{SCORE} --matching code-bert-score --rescale-with-baseline --lang en": (
        "for code-bert-score.",
    ),
    f"{SCORE} --context three.txt": ("cand.txt has 2 lines and three.txt has 3 lines", "expected"),
    f"{SCORE} --context cand.txt --columns context=a": ("--columns", "no effect"),
    f"{BATCH} --matching doc-bert-score": ("without contexts", "--columns context=NAME"),
    "show -m $M -c 'the cat' -r 'a dog' --matching doc-bert-score": (
        "without contexts",
        "`show` takes no contexts",
    ),
    "baseline -m $M --corpus cand.txt --matching doc-bert-score": (
        "without contexts",
        "random pairs have none",
    ),
    "tune-layers pairs.csv -m $M --matching doc-bert-score": (
        "without contexts",
        "`tune-layers` reads no contexts",
    ),
    "compare -m $M -c cand.txt -r ref.txt --matching doc-bert-score --context-sentences 0": (
        "without contexts",
        "--context-sentences 1 or more",
    ),
    # languages, rescaling and idf
    "score --lang english -c cand.txt -r ref.txt": (
        "'english'",
        "expected a language code",
        "'en'",
    ),
    f"{SCORE} --rescale-with-baseline": ("--lang", "--baseline-path", "bertscore-onnx baseline"),
    f"{SCORE} --rescale-with-baseline --lang xx": ("'xx'", "expected a language code"),
    f"{SCORE} --rescale-with-baseline --lang nl": (
        "'nl'",
        "--baseline-path",
        "leave rescaling off",
    ),
    f"{SCORE} --baseline-path one.csv": (
        "--baseline-path",
        "no effect",
        "--rescale-with-baseline; add it",
    ),
    f"{SCORE} --rescale-with-baseline --baseline-path absent.csv": ("absent.csv", "Check the name"),
    f"{SCORE} --rescale-with-baseline --baseline-path lower.csv": (
        "'layer,p,r,f'",
        "LAYER,P,R,F",
        "baseline` writes",
    ),
    f"{SCORE} --rescale-with-baseline --baseline-path other.csv": (
        "no row for layer 2",
        "only for 1",
    ),
    f"{SCORE} --rescale-with-baseline --baseline-path one.csv": ("1.0", "must be below 1"),
    f"{SCORE} --idf-counts absent.json": ("'absent.json'", "expected a file of document counts"),
    f"{SCORE} --idf-counts cand.txt": ("cand.txt", "document counts", "count-documents"),
    f"{SCORE} --idf-counts counts.json": ("counts.json", "document counts", "count-documents"),
    f"{SCORE} --idf --idf-counts counts.json": (
        "--idf",
        "no effect with --idf-counts",
        "leave out one",
    ),
    # files of texts
    "score -m $M -c absent.txt -r ref.txt": (
        "'absent.txt'",
        "expected a readable file",
        "Check the name",
    ),
    "score -m $M -c . -r ref.txt": ("'.' is a folder", "expected a file"),
    "score -m $M -c 'A single text.' -r ref.txt": (
        "'A single text.'",
        "expected the name of a file",
        "pipe it in",
    ),
    "score -m $M -c cand.txt": ("references, -r FILE", "cand.txt is read as text"),
    "score -m $M -c cand.txt -c ref.txt -r ref.txt": (
        "2 files of candidates",
        "expected one",
        "compare",
    ),
    "score -m $M -c cand.txt ref.txt -r ref.txt": (
        "2 files of candidates",
        "expected one",
        "compare",
    ),
    "show -m $M -c cand.txt ref.txt -r ref.txt": ("2 candidates", "expected one"),
    "score -m $M -c - -r -": ("standard input", "only one"),
    "score -m $M -c cand.txt -r three.txt": ("2 lines", "3 lines", "line 3 of three.txt"),
    "score -m $M -c empty.txt -r empty.txt": ("empty.txt is empty", "expected texts"),
    "score -m $M -c latin.txt -r ref.txt": ("latin.txt", "not UTF-8", "iconv"),
    "score -m $M -c utf16.txt -r ref.txt": ("utf16.txt", "UTF-16", "iconv"),
    "score -m $M -c film.srt -r ref.txt": (
        "film.srt holds subtitles",
        "numbers and times",
        "one a line",
    ),
    "score -m $M -c ref.txt -r news.sgm.gz": ("news.sgm.gz holds SGML", "tags", "one a line"),
    "score -m $M -c keyed.json": (
        "keyed.json, line 1",
        "an object of objects",
        "`jq -c 'to_entries[]",
    ),
    "score -m $M -c split.json": (
        "'columns', 'data'",
        "an object for each row",
        "orient='records'",
    ),
    "score -m $M -c excel.csv": ("excel.csv, line 1", "'sep='", "Delete this line"),
    "score -m $M -c book.xlsx -r ref.txt": (
        "book.xlsx is a spreadsheet",
        "expected text",
        "Save its table as CSV",
    ),
    "score -m $M -c cut.txt.gz -r ref.txt": ("cut.txt.gz", "damaged", "gzip -t"),
    "score -m $M -c lines.txt -r ref.txt": ("lines.txt", "JSON lines", "--input-format jsonl"),
    # tables and columns
    "score -m $M -c named.csv": ("'candidate'", "'mt', 'gold'", "--columns candidate=NAME"),
    "score -m $M -c named.csv --columns mt gold": ("'mt'", "ROLE=NAME", "candidate, reference"),
    "score -m $M -c named.csv --columns candidate=mt reference=godl": (
        "'godl'",
        "Did you mean 'gold'?",
    ),
    "score -m $M -c named.csv --columns candidate=mt candidate=gold": (
        "candidate is given 2 times",
        "expected once",
    ),
    "score -m $M -c pairs.csv --columns f1=x precision=x -o out.csv": (
        "'x', 'recall', 'x'",
        "different names",
    ),
    "score -m $M -c named.csv --columns label=mt": ("'label=mt'", "ROLE=NAME"),
    "score -m $M -c named.csv --columns candidate=": ("'candidate='", "ROLE=NAME"),
    "score -m $M -c named.csv --columns candidate=mt reference=c++": (
        "reference=c++ has an empty name",
        "twice",
    ),
    f"{SCORE} --columns candidate=mt": (
        "--columns",
        "none of the files is a table",
        "--input-format",
    ),
    "score -m $M -c twice.csv": ("2 columns 'candidate'", "expected one"),
    "score -m $M -c wider.csv": ("line 2", "3 fields", "expected 2"),
    "score -m $M -c header.csv": ("header.csv has no rows", "expected one for each text"),
    "score -m $M -c quote.csv": ("line 2", "quote is not closed", "quotes=no in --input-format"),
    "score -m $M -c bare.tsv": ("'a', 'b'", "header=no in --input-format"),
    "score -m $M -c pairs.csv --input-format 'delimiter=;'": (
        "'candidate,reference'",
        "delimiter=CHARACTER",
    ),
    "score -m $M -c pairs.csv --input-format csv,delimiter=colon": (
        "'colon'",
        "expected one character",
        "semicolon",
    ),
    "score -m $M -c pairs.csv --input-format csv,header=maybe": (
        "header is 'maybe'",
        "expected yes or no",
    ),
    "score -m $M -c pairs.csv --input-format csv,head=no": (
        "'head=no'",
        "header, quotes, delimiter",
    ),
    "score -m $M -c pairs.csv --input-format csv,header=no,header=no": (
        "header is given 2 times",
        "expected once",
    ),
    "score -m $M -c pairs.csv --input-format csv,delimiter=": (
        "'delimiter='",
        "NAME=VALUE",
        "semicolon",
    ),
    "score -m $M -c pairs.csv --input-format header=no,csv": (
        "header is 'no,csv'",
        "expected yes or no",
    ),
    "score -m $M -c pairs.csv --input-format csv,tsv": ("'csv,tsv'", "as in csv,header=no"),
    "score -m $M -c pairs.csv --input-format jsonl,header=no": (
        "'jsonl,header=no'",
        "TSV and CSV only",
    ),
    "score -m $M -c pairs.csv --input-format ''": ("''", "text, tsv, csv, jsonl, parquet"),
    f"{SCORE} --input-format header=no": (
        "--input-format",
        "none of the files is a table",
        "FORMAT",
    ),
    "score -m $M -c ids.csv -r refs.csv": (
        "ids.csv, line 3: segment '2' is not in refs.csv",
        "--columns segment=NAME",
    ),
    "score -m $M -c array.json": ("array.json, line 1", "one object per line", "jq"),
    "score -m $M -c broken.jsonl": ("line 2", "'nope' is no JSON", "one object per line"),
    "score -m $M -c number.jsonl": ("'candidate' holds a number", "expected a text"),
    "score -m $M -c null.jsonl": ("'reference' holds null", "expected a text", "Leave the row out"),
    "score -m $M -c lists.jsonl": ("'candidate' holds a list", "expected a text", "a row for each"),
    "score -m $M -c none.jsonl": ("'reference' holds an empty list", "expected a text"),
    "score -m $M -c broken.parquet": ("broken.parquet", "damaged", "copy it again"),
    "score -m $M -c pairs.csv --input-format json": ("'json'", "text, tsv, csv, jsonl, parquet"),
    "score -m $M -c pairs.csv --input-format csv text": ("2 formats, csv, text",),
    "score -m absent -c grouped.csv --by domain": ("row 2", "'domain' holds nothing"),
    "score -m absent -c nothing.jsonl --by domain": ("'domain' holds nothing", "expected"),
    "score -m absent -c listed.jsonl --by domain": ("'domain' holds a list", "expected"),
    "score -m absent -c object.jsonl --by domain": ("'domain' holds an object", "expected"),
    "score -m absent -c pairs.csv --by domain": ("no column 'domain', only",),
    "score -m absent -c cand.txt -r ref.txt --by domain": (
        "--by",
        "no effect",
        "none of the files is a table",
    ),
    # outputs
    "score -m $M -c scored.csv -o out.csv": ("'f1' already", "Rename it"),
    f"{SCORE} --format xlsx": ("'xlsx'", "'csv'"),
    f"{SCORE} -o out.xlsx": (".xlsx", ".parquet", "--format"),
    f"{SCORE} --format parquet": ("Parquet needs a file", "-o FILE"),
    f"{SCORE} --all-layers -s": ("--seg-level, --output, --format", "pairs have the scores"),
    f"{SCORE} -o b.tsv.gz": ("Cannot write .gz", "-o b.tsv", "`gzip b.tsv`"),
    f"{SCORE} -o absent/out.csv": ("'absent/out.csv'", "Check the name, its folder"),
    "score -m $M -c pairs.csv -o pairs.csv": (
        "pairs.csv is one of the files to read",
        "another file",
    ),
    # comparisons and judgements
    "compare -c cand.txt -r ref.txt --metric chrf --margin 1": (
        "is about two systems, and cand is alone",
    ),
    "compare -c cand.txt ref.txt -m $M": ("at least one file of references",),
    "compare -c cand.txt cand.txt -r ref.txt -m $M": ("cand.txt is given twice", "counts once"),
    "compare -c cand.txt three.txt -r ref.txt --metric chrf": (
        "2 lines",
        "3 lines",
        "has no partner",
    ),
    "compare -c cand.txt three.txt -r ref.txt --metric chrf++": (
        "'chrf++'",
        "word_order=2",
        "--metric chrf,",
    ),
    "compare -c cand.txt three.txt -r ref.txt --metric rouge": (
        "'rouge'",
        "bertscore, bleu, chrf, ter",
        "--scores",
    ),
    "compare -c cand.txt ref.txt -r ref.txt --metric bleu,tok=zh": ("'tok'", "BLEU", "tokenize"),
    "compare": ("give the texts of the systems", "--scores"),
    "compare --scores cand.txt": ("cand.txt, line 1", "is no number", "--input-format"),
    "compare --scores pairs.csv": (
        "pairs.csv has no column 'score'",
        "only candidate, reference",
        "--columns score=NAME",
    ),
    "compare --scores single.csv": ("no column 'score'", "segment, A", "--columns score=NAME"),
    "compare --scores gap.csv --systems A B": ("line 3", "'B'", "--missing drop"),
    "compare --scores again.csv --systems A B": (
        "line 3",
        "segment '1' occurs again",
        "--columns segment=NAME",
    ),
    "compare --scores word.csv --systems A B": ("line 3", "'good'", "expected a number"),
    "compare --scores comma.csv --systems A B": (
        "'0,5'",
        "expected a number",
        "Write decimals with a point",
    ),
    "compare --scores wide.csv": ("no column 'score'", "segment, A, B", "--systems A B …"),
    "compare --scores wide.csv --systems A,B": ("'A,B' is one name", "A B"),
    "compare --scores wide.csv --systems A B --baseline C": ("'C'", "'A', 'B'"),
    "compare --scores wide.csv --systems A C": ("no system 'C'", "segment, A, B", "--systems"),
    "compare --scores wide.csv --systems A B --documents cand.txt": (
        "cand.txt has 2 lines",
        "3 segments",
        "a column of ids",
    ),
    "compare --scores wide.csv --systems A B --margin -1": ("-1", "expected a number above 0"),
    "compare --scores wide.csv --systems A B --lower-better C": ("'C'", "'wide'"),
    "meta judged.csv": ("--score COLUMN", "--model MODEL"),
    "meta rated.csv --score q": ("'q'", "'human'", "--score"),
    "meta judged.csv --score m": ("line 3", "'x'", "expected a number"),
    "tune-layers wide.csv -m $M": ("'human'", "'segment', 'A', 'B'", "--columns human=NAME"),
    "baseline -m $M --corpus cand.txt": ("2 of the texts", "expected 4 or more"),
    "show -m $M -c cand.txt -r ref.txt --line 99": ("2 lines", "line 99"),
    "show -m absent -c cand.txt -r ref.txt --line 1 --worst 1": ("--worst",),
    "show -m absent -c cand.txt -r ref.txt --worst 2 -o a.html": ("-o",),
    "show -m absent -c cand.txt -r ref.txt --line 0": ("--line",),
    "show -m absent -c a": ("--ref",),
    f"{SHOW} --columns candidate=mt": ("--columns",),
    **{
        f"{SHOW} -o {name}": (f"Cannot write {name}", "expected a name")
        for name in ("a.docx", "a", "svg", "a.html.gz")
    },
    f"{SHOW} -o missing/a.html": ("Cannot write", "missing/a.html"),
    f"{SHOW} --idf-sents missing.txt": ("missing.txt",),
    "batch -m $M --input absent.csv --output jobs": ("'absent.csv'", "Check the name"),
    "batch -m absent -i pairs.csv -o out.csv": (
        "out.csv is the name of one file",
        "bertscore-onnx score -c TABLE -o FILE",
    ),
    f"{BATCH} --errors skip": ("'skip'",),
    f"{BATCH} --part-rows 0": ("--part-rows",),
    f"{BATCH} --columns id": ("--keep names the columns",),
    f"{BATCH} --input-format csv,header=no": (
        "'csv,header=no' names a format",
        "expected settings alone",
    ),
    # servers
    "serve": ("name a model", "BERTSCORE_ONNX_MODEL"),
    "serve -m absent": ("'absent'", "bertscore-onnx models"),
    "serve -m $M --host 0.0.0.0": ("could use 0.0.0.0", "without a key", "--api-key-file"),
    "serve -m $M --limits pairs=3": ("'pairs=3'", "NAME=VALUE", "max_pairs"),
    "serve -m $M --limits max_pairs=few": ("'few'", "expected a whole number"),
    "serve -m $M --idf ref.txt": ("'ref.txt'", "NAME=FILE"),
    "serve -m absent --idf zoo=": ("'zoo='", "NAME=FILE"),
    "serve -m absent --idf zoo=missing.txt": ("Cannot read 'missing.txt'",),
    "serve -m absent --limits drain=1,drain=2": ("drain is given 2 times", "expected once"),
    "serve -m absent --limits max_queue=8,drain=0": (
        "drain is 0.0 seconds",
        "expected more than 0",
    ),
    "serve -m $M --api-key-file keys.txt": ("keys.txt", "16"),
    "serve -m absent --api-key-file missing.txt": (
        "Cannot read the keys in missing.txt (No such file",
    ),
}

FRAME = pd.DataFrame({"candidate": ["the cat", "a dog"], "reference": ["a cat", "the dog"]})
WIDE = pd.DataFrame(
    {"segment": range(8), "A": np.linspace(0, 1, 8), "B": np.linspace(1, 0, 8) ** 2}
)
TEXTS, REFS = ["the cat", "a dog"], ["a cat", "the dog"]


def polars_lazy():
    return pytest.importorskip("polars").DataFrame(FRAME.to_dict("list")).lazy()


def arrow_table():
    return pytest.importorskip("pyarrow").Table.from_pandas(FRAME)


def dataset():
    return pytest.importorskip("datasets").Dataset.from_pandas(FRAME)


def dataset_dict():
    return pytest.importorskip("datasets").DatasetDict(test=dataset())


IN_PYTHON = {
    # texts
    "one string": (
        lambda s: s.score("a", "b"),
        "cands is str 'a'",
        "expected a list",
        "Put a single text into a list",
    ),
    "a file name": (
        lambda s: s.score("cand.txt", "ref.txt"),
        "cands is str 'cand.txt'",
        "It names a file",
    ),
    "a name of scores": (
        lambda s: s.score(["a"], ["a"])["f1"],
        "no item 'f1'",
        "expected",
        "scores.F",
    ),
    "another argument of frames": (
        lambda s: s.score_frame(FRAME, references="reference"),
        "'references'",
        "Did you mean",
    ),
    "another argument of systems": (
        lambda s: compare({}, REFS, metric="chrf"),
        "'metric'",
        "Did you mean 'metrics'",
    ),
    "a margin in percent": (
        lambda s: compare({}, REFS, margin="1%"),
        "margin is str '1%'",
        "expected a number",
    ),
    "a model as scorer": (
        lambda s: compare({}, REFS, scorer="x"),
        "scorer is 'x'",
        "expected a scorer",
        "BERTScorer('x')",
    ),
    "lists to match": (
        lambda s: s.match(["a"], ["b"]),
        "candidate is list ['a']",
        "expected a string",
    ),
    "fewer references": (
        lambda s: s.score(TEXTS, REFS[:1]),
        "differ in number, 2 and 1",
        "every candidate needs one",
    ),
    "sacreBLEU's order": (
        lambda s: s.score(TEXTS, [REFS]),
        "number, 2 and 1",
        "sacreBLEU",
        "zip(*refs)",
    ),
    "None": (
        lambda s: s.score([None], REFS[:1]),
        "cands[0] is NoneType None",
        "expected a string",
        "Drop missing",
    ),
    "NaN": (
        lambda s: s.score(TEXTS, ["a", float("nan")]),
        "refs[1] is float nan",
        "expected",
        "Drop missing",
    ),
    "a number": (lambda s: s.score([1], ["a"]), "cands[0] is int 1", "expected a string"),
    "bytes": (
        lambda s: s.score([b"a"], ["a"]),
        "bytes b'a'",
        "expected a string",
        "Decode it first",
    ),
    "a set": (lambda s: s.score({"a"}, ["a"]), "cands is set", "expected a list"),
    "a dict": (lambda s: s.score({"a": 1}, ["a"]), "cands is dict", "expected a list"),
    "a frame": (
        lambda s: s.score(FRAME[["candidate"]], REFS),
        "cands is DataFrame",
        "one column",
        "score_frame",
    ),
    "a frame of references": (
        lambda s: s.score(TEXTS, FRAME),
        "refs is DataFrame with columns",
        "expected a list",
    ),
    "frames to score": (
        lambda s: score(FRAME, FRAME, s.bundle.path),
        "cands is DataFrame",
        "one column",
    ),
    "a frame of contexts": (
        lambda s: s.score(TEXTS, REFS, contexts=FRAME),
        "contexts is DataFrame",
        "one column",
    ),
    "a frame to encode": (lambda s: s.encode(FRAME), "texts is DataFrame", "one column"),
    "a frame of pairs": (lambda s: [*s.stream(FRAME)], "pairs is DataFrame", "score_frame"),
    "frames pairwise": (
        lambda s: s.pairwise(TEXTS, FRAME[["reference"]]),
        "refs is DataFrame",
        "one column",
    ),
    "a frame to match": (lambda s: s.match("a", FRAME), "reference is DataFrame", "one column"),
    "a frame for idf": (
        lambda s: s.with_idf(True, FRAME[["reference"]]),
        "sents is DataFrame",
        "one column",
    ),
    "a frame to count": (
        lambda s: count_documents(FRAME, s.bundle.path),
        "texts is DataFrame",
        "one column",
    ),
    "a frame for idf of a batch": (
        lambda s: ScoreBatch(s.bundle.path, idf=True, idf_sents=FRAME),
        "idf_sents is DataFrame",
        "one column",
    ),
    "a frame of polars": (
        lambda s: s.score(polars_lazy().collect(), REFS),
        "cands is DataFrame",
        "one column",
    ),
    "a dataset": (lambda s: s.score(TEXTS, dataset()), "refs is Dataset", "one column"),
    "a dataset that streams as texts": (
        lambda s: s.score(dataset().to_iterable_dataset(), REFS),
        "cands is IterableDataset",
        "one column",
    ),
    "an Arrow table": (lambda s: s.score(TEXTS, arrow_table()), "refs is Table", "one column"),
    "an array of one text": (
        lambda s: s.score(np.array("a"), REFS[:1]),
        "cands is ndarray",
        "expected a list",
    ),
    "lists of candidates": (
        lambda s: s.score([["a"]], ["a"]),
        "cands[0] is list",
        "expected a string",
    ),
    "no references": (lambda s: s.score(["a"], [[]]), "refs[0] is empty", "at least one reference"),
    "references None": (lambda s: s.score(["a"], None), "refs is NoneType None", "expected a list"),
    "uneven contexts": (
        lambda s: s.score(TEXTS, REFS, contexts=["a"]),
        "Contexts",
        "number, 1 and 2",
        "each candidate",
    ),
    "triples": (lambda s: [*s.stream([("a", "b", "c")])], "pairs[0] is tuple", "TextInContext"),
    "a stream of text": (lambda s: [*s.stream("ab")], "pairs is str 'ab'", "expected a list"),
    "no text to match": (lambda s: s.match("a", []), "no reference", "expected one text"),
    "means of nothing": (lambda s: s.score([], []).mean(), "no scores", "Score one pair"),
    # settings
    "no model": (
        lambda s: BERTScorer(),
        "no model",
        "`model_type`",
        "`lang`",
        "BERTSCORE_ONNX_MODEL",
    ),
    "an unknown setting": (
        lambda s: BERTScorer(s.bundle.path, num_layer=2),
        "'num_layer'",
        "mean 'num_layers'?",
    ),
    "an unknown setting to score": (
        lambda s: score(TEXTS, REFS, s.bundle.path, max_len=9),
        "'max_len'",
        "'max_length'?",
    ),
    "a number as language": (
        lambda s: s.with_rescaling(5),
        "lang is 5",
        "expected a language code",
        '"en"',
    ),
    "a number as language of random pairs": (
        lambda s: s.unrelated_scores(5),
        "lang is 5",
        "expected a language code",
    ),
    "a list of languages": (
        lambda s: BERTScorer(lang=["en"]),
        "lang is ['en']",
        "expected a language code",
    ),
    "a number as model": (
        lambda s: BERTScorer(5),
        "model_type is 5",
        "expected a string or a path",
    ),
    "bytes as model": (
        lambda s: BERTScorer(b"x"),
        "model_type is b'x'",
        "expected a string or a path",
    ),
    "a list of models": (
        lambda s: score(TEXTS, REFS, ["x"]),
        "model_type is ['x']",
        "expected a string or a path",
    ),
    "a number as baseline": (
        lambda s: BERTScorer(s.bundle.path, rescale_with_baseline=True, baseline_path=5),
        "baseline_path is 5",
        "expected a string or a path",
    ),
    "a flag as layer": (
        lambda s: BERTScorer(s.bundle.path, num_layers=True),
        "num_layers is True",
        "an integer",
    ),
    "a layer as text": (
        lambda s: BERTScorer(s.bundle.path, "2"),
        "num_layers is '2'",
        "expected an integer",
    ),
    "no batch": (
        lambda s: s.score(TEXTS, REFS, batch_size=0),
        "batch_size is 0",
        "expected 1 or more",
    ),
    "a batch of text": (
        lambda s: s.score(TEXTS, REFS, batch_size="8"),
        "batch_size is str '8'",
        "expected an integer",
    ),
    "half a thread": (
        lambda s: BERTScorer(s.bundle.path, nthreads=0.5),
        "nthreads is float 0.5",
        "expected an integer",
    ),
    "a device of PyTorch": (
        lambda s: BERTScorer(s.bundle.path, device=0),
        "device is '0'",
        'expected "cpu"',
        "Leave",
    ),
    "an aim": (
        lambda s: BERTScorer(s.bundle.path, optimize_for="speed"),
        "optimize_for is 'speed'",
        '"throughput" or "latency"',
    ),
    "half precision": (
        lambda s: BERTScorer(s.bundle.path, precision="half"),
        "'half'",
        '"fp32", "fp16" or "int8"',
    ),
    "cut texts": (
        lambda s: BERTScorer(s.bundle.path, long_text="cut"),
        "long_text is 'cut'",
        '"truncate" or "window"',
    ),
    "a length of one": (
        lambda s: BERTScorer(s.bundle.path, max_length=1),
        "max_length is 1",
        "takes 3",
    ),
    "no matching": (
        lambda s: BERTScorer(s.bundle.path, matching=3),
        "matching is 3",
        "expected a Matching",
    ),
    "rescaling nothing": (
        lambda s: s.with_rescaling("en"),
        "'en'",
        "baseline_path",
        "bertscore-onnx baseline",
    ),
    "idf as text": (lambda s: s.with_idf("yes"), "idf is 'yes'", "expected a bool"),
    "idf of words": (lambda s: s.with_idf({"cat": 1.0}), "'cat'", "expected integers"),
    "idf of one": (
        lambda s: s.with_idf(True).score(["a"], ["b"]),
        "one reference",
        "two different",
        "Leave `idf` out",
    ),
    "an iterator for idf": (
        lambda s: s.with_idf(True).stream(iter([])),
        "only once",
        "Give an iterable",
    ),
    "no sentences for idf": (lambda s: s.with_idf(True, []), "no"),
    "counting one text": (
        lambda s: count_documents("a", s.bundle.path),
        "texts is str 'a'",
        "expected a list",
    ),
    # data frames
    "another column": (
        lambda s: s.score_frame(FRAME, "mt"),
        "no column 'mt'",
        "'candidate', 'reference'",
        "Name one",
    ),
    "a date": (
        lambda s: s.score_frame(pd.DataFrame({"date": [1], "x": [2]})),
        "'candidate'",
        "only 'date', 'x'. Name",
    ),
    "columns without names": (
        lambda s: s.score_frame(FRAME.set_axis([0, 1], axis=1)),
        "'candidate'",
        "only 0, 1. Name",
    ),
    "a repeated column": (
        lambda s: s.score_frame(pd.concat([FRAME, FRAME], axis=1)),
        "2 columns",
        "expected one",
    ),
    "a scored frame": (
        lambda s: s.score_frame(FRAME.assign(f1=1)),
        "'f1' already",
        "Rename it, or drop it",
    ),
    "a null": (
        lambda s: s.score_frame(FRAME.replace("a dog", None)),
        "row 1",
        "'candidate' holds null",
        "Leave the row",
    ),
    "a number in a frame": (
        lambda s: s.score_frame(FRAME.assign(reference=1)),
        "row 0",
        "a number",
        "expected a text",
    ),
    "two names": (
        lambda s: s.score_frame(FRAME, names=("p", "r")),
        "('p', 'r')",
        "expected three different names",
    ),
    "numbers as names": (
        lambda s: s.score_frame(FRAME, names=(1, 2, 3)),
        "(1, 2, 3)",
        "three different names",
    ),
    "a taken name": (
        lambda s: s.score_frame(FRAME, names=("p", "r", "f", "unknown")),
        "'unknown')",
        "other than",
    ),
    "no names": (
        lambda s: s.score_frame(FRAME, names=None),
        "are called None",
        "three different names",
    ),
    "lists as names": (
        lambda s: s.score_frame(FRAME, names=[["p"], "r", "f"]),
        "[['p'], 'r', 'f']",
        "different names",
    ),
    "names without an order": (
        lambda s: s.score_frame(FRAME, names={"p", "r", "f"}),
        "three different names",
    ),
    "errors": (
        lambda s: s.score_frame(FRAME, errors="ignore"),
        "errors is 'ignore'",
        '"raise" or "null"',
    ),
    "no reference column": (
        lambda s: s.score_frame(FRAME.rename(columns={"reference": "date"})),
        "'reference'",
        "only 'candidate', 'date'. Name",
    ),
    "a list of names": (
        lambda s: s.score_frame(FRAME, ["candidate"]),
        "candidate is ['candidate']",
        "name of a column",
    ),
    "uneven columns": (
        lambda s: s.score_frame({"candidate": ["a"], "reference": []}),
        "1, 0",
        "Give each row a value",
    ),
    "a text as a column": (
        lambda s: s.score_frame({"candidate": "a", "reference": "b"}),
        "str 'a'",
        "expected a list",
    ),
    "a list of rows": (
        lambda s: s.score_frame(FRAME.to_dict("records")),
        "is list",
        "expected a dict",
        "DataFrame(rows)",
    ),
    "no frame": (lambda s: s.score_frame(None), "NoneType None", "expected a dict of columns"),
    "the name of a table": (
        lambda s: s.score_frame("pairs.csv"),
        "str 'pairs.csv'",
        "expected a dict of columns",
    ),
    "a series": (
        lambda s: s.score_frame(FRAME["candidate"]),
        "Series",
        "expected a dict",
        "Give the data frame",
    ),
    "groups": (
        lambda s: s.score_frame(FRAME.groupby("candidate")),
        "DataFrameGroupBy",
        "expected a dict of columns",
    ),
    "levels of columns": (
        lambda s: s.score_frame(pd.concat({"x": FRAME}, axis=1)),
        "2 levels",
        "one name",
        "join",
    ),
    "a lazy frame": (
        lambda s: s.score_frame(polars_lazy()),
        "LazyFrame",
        "expected a dict",
        "collect()",
    ),
    "a dataset that streams": (
        lambda s: s.score_frame(dataset().to_iterable_dataset()),
        "IterableDataset",
        "ScoreBatch",
    ),
    "a dict of datasets": (
        lambda s: s.score_frame(dataset_dict()),
        "DatasetDict",
        "Give one of its datasets",
    ),
    "a setting of a batch": (
        lambda s: ScoreBatch(s.bundle.path, model="x"),
        "'model'",
        "expected some of",
    ),
    "idf of a batch": (
        lambda s: ScoreBatch(s.bundle.path, idf=True),
        "idf=True",
        "count_documents",
    ),
    # comparisons
    "nothing to compare": (lambda s: compare(), "no texts of systems", "`candidates`", "`scores`"),
    "no system": (lambda s: compare({}, REFS), "There is no system", "expected one, or a baseline"),
    "no pairs to compare": (
        lambda s: compare({"A": [], "B": []}, [], metrics=["bleu"]),
        "no references",
    ),
    "one text to compare with": (
        lambda s: compare({"A": TEXTS, "B": REFS}, "a"),
        "references",
        "expected a list",
    ),
    "systems in lists": (
        lambda s: compare([TEXTS, REFS], REFS, scorer=s),
        "candidates are a list",
        "expected a data frame, or a mapping",
    ),
    "no scorer": (
        lambda s: compare({"A": TEXTS, "B": REFS}, REFS),
        "bertscore needs a scorer",
        "`scorer`",
    ),
    "a shorter system": (
        lambda s: compare({"A": TEXTS, "B": REFS[:1]}, REFS, scorer=s),
        "['A'][1] has no partner",
    ),
    "no references to compare": (
        lambda s: compare({"A": TEXTS, "B": REFS}, scorer=s),
        "no references",
        "Give a list or a table",
    ),
    "an option without a value": (
        lambda s: compare({"A": TEXTS, "B": REFS}, REFS, metrics="bleu,tokenize"),
        "'bleu,tokenize'",
        "NAME,FIELD=VALUE",
    ),
    "unnamed systems": (
        lambda s: compare(scores=WIDE),
        "no column 'score'",
        "segment, A, B",
        'systems=["A", "B", …]',
    ),
    "a system that is no column": (
        lambda s: compare(scores=WIDE, systems=["A", "C"]),
        "no system 'C'; the columns are segment, A, B",
        'systems=["A", "B", …]',
    ),
    "an array of scores": (
        lambda s: compare(scores=np.zeros((2, 8))),
        "ndarray",
        "expected a data frame",
    ),
    "a series of scores": (
        lambda s: compare(scores=WIDE["A"]),
        "Series",
        "expected a data frame",
    ),
    "a dict of score sets": (
        lambda s: compare(scores=dataset_dict()),
        "DatasetDict",
        "Give one of its datasets",
    ),
    "a missing score": (
        lambda s: compare(scores=WIDE.replace({"A": {0.0: None}}), systems=["A", "B"]),
        "row 0",
        "'A'",
        'missing="drop"',
    ),
    "ragged scores": (
        lambda s: paired_permutation([[1, 2], [1]]),
        "no matrix of numbers",
        "as many numbers",
    ),
    "scores of one system": (
        lambda s: paired_permutation([1, 2]),
        "shape (2,)",
        "a row for each system",
    ),
    # settings in the wrong place
    "a setting of the scorer": (
        lambda s: s.score(TEXTS, REFS, lang="en"),
        "no 'lang'",
        "BERTScorer(..., lang=...)",
    ),
    "a misspelt argument": (
        lambda s: s.score(TEXTS, REFS, contxts=TEXTS),
        "no 'contxts'",
        "'contexts'",
    ),
    "a closed scorer": (lambda s: _closed(s).score(TEXTS, REFS), "was closed", "Make a new one"),
}


def _closed(scorer):
    other = scorer.with_idf(False)
    other.close()
    return other


MANIFESTS = {
    "empty": (lambda text: "", "ends too early"),
    "a pointer of git-lfs": (
        lambda text: "version https://git-lfs.github.com/spec/v1",
        "malformed from byte 0",
    ),
    "cut": (lambda text: text[:300], "ends too early"),
    "no object": (lambda text: "[]", "it is a list", "expected an object"),
    "without fields": (lambda text: "{}", "lacks the field `format_version`"),
    "an unknown field": (
        lambda text: text.replace('"family"', '"familie"'),
        "unknown field `familie`",
    ),
    "a text in place of a number": (
        lambda text: re.sub(r'"hidden_size": *\d+', '"hidden_size":"8"', text),
        "`hidden_size` is a string",
        "expected a whole number",
    ),
    "out of range": (
        lambda text: re.sub(r'"hidden_size": *\d+', '"hidden_size":0', text),
        "`hidden_size`",
        "at least 1",
    ),
    "of a later version": (
        lambda text: re.sub(r'"format_version": *\d+', '"format_version":99', text),
        "format version 99",
        "reads 3. Upgrade bertscore-onnx",
    ),
    "edited": (
        lambda text: re.sub(r'"num_layers": *\d+', '"num_layers":1', text),
        "was changed",
        "its own digest",
    ),
}
"""How a manifest may be damaged, and the words of the message."""

PAIR = {"candidate": "a cat", "reference": "the cat"}
OVER_HTTP = {
    "a list": ([PAIR], "The body is a list", "expected an object", "`pairs`"),
    "one pair": (PAIR, "unknown field", "`candidate`", "The fields are `pairs`"),
    "no pairs": ({}, "lacks the field `pairs`", "The fields are `pairs`"),
    "a pair that is no list": ({"pairs": PAIR}, "`pairs` is an object", "expected a list"),
    "texts in a list": (
        {"pairs": [["a cat", "the cat"]]},
        "The pair is a list",
        "expected an object",
        "`candidate`",
    ),
    "an old name": (
        {"pairs": [{"cand": "a", "ref": "b"}]},
        "unknown field `cand`",
        "`candidate`, `reference`",
    ),
    "no candidate": (
        {"pairs": [{"reference": "b"}]},
        "lacks the field `candidate`",
        "The fields are",
    ),
    "no reference": ({"pairs": [{"candidate": "a"}]}, "needs either `reference` or `references`"),
    "both references": (
        {"pairs": [PAIR | {"references": ["b"]}]},
        "needs either `reference` or `references`",
    ),
    "a list as reference": (
        {"pairs": [PAIR | {"reference": ["b"]}]},
        "`reference` is a list",
        "a string or null",
    ),
    "a text as references": (
        {"pairs": [{"candidate": "a", "references": "b"}]},
        "`references` is a string",
        "a list",
    ),
    "references without one": (
        {"pairs": [{"candidate": "a", "references": []}]},
        "`references`",
        "at least 1",
    ),
    "null": ({"pairs": [PAIR | {"candidate": None}]}, "`candidate` is null", "expected a string"),
    "a number": (
        {"pairs": [PAIR | {"candidate": 1}]},
        "`candidate` is a whole number",
        "expected a string",
    ),
    "an unknown model": (
        {"pairs": [PAIR], "model": "roberta"},
        "'roberta'",
        "the server has: tiny-bert",
    ),
    "an unknown table": ({"pairs": [PAIR], "idf": "news"}, "'news'", "none"),
    "a number beyond all": (
        b'{"pairs": [], "model": 1e999}',
        "`model` is a number out of range",
        "The fields are",
    ),
    "no baseline": ({"pairs": [PAIR], "rescale": "de"}, "'de'"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture(scope="module")
def client(tiny_bundle):
    with Models.load([str(tiny_bundle)], {}, Limits(), CPU) as models, serving(models) as client:
        yield client


def check_words(message, words):
    """Fail unless a message has all words, and none that another library wrote."""
    assert [word for word in words if word not in message] == [], message
    assert not FOREIGN.search(message), message


@pytest.mark.usefixtures("loggers_as_before")
@pytest.mark.parametrize("line", AT_THE_SHELL)
def test_a_mistake_at_the_shell_is_explained(
    folder, tiny_bundle, tiny_model, home, monkeypatch, line
):
    monkeypatch.chdir(folder)
    arguments = shlex.split(line.replace("$MODEL", str(tiny_model)).replace("$M", str(tiny_bundle)))
    before = sorted(folder.iterdir())
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stdout, sorted(folder.iterdir())) == (2, "", before), (
        result.output
    )
    check_words(
        result.stderr, [word.replace("$M", str(tiny_bundle)) for word in AT_THE_SHELL[line]]
    )


@pytest.mark.parametrize("mistake", IN_PYTHON)
def test_a_mistake_in_python_is_explained(folder, scorer, home, monkeypatch, mistake):
    monkeypatch.chdir(folder)
    make, *words = IN_PYTHON[mistake]
    with pytest.raises(BertScoreOnnxError) as caught:
        make(scorer)
    check_words(str(caught.value), words)


@pytest.mark.parametrize("damage", MANIFESTS)
def test_a_damaged_manifest_is_explained(tiny_bundle, tmp_path, damage):
    change, *words = MANIFESTS[damage]
    bundle = shutil.copytree(tiny_bundle, tmp_path / "bundle")
    manifest = bundle / "bertscore.json"
    text = manifest.read_text(encoding="utf-8")
    assert change(text) != text
    manifest.write_text(change(text), encoding="utf-8")
    with pytest.raises(BundleError) as caught:
        BERTScorer(bundle)
    check_words(str(caught.value), [str(manifest), *words])
    assert re.search("Export the model again|Upgrade", str(caught.value))


@pytest.mark.parametrize("mistake", OVER_HTTP)
def test_a_mistake_over_http_is_explained(client, mistake):
    body, *words = OVER_HTTP[mistake]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = client.post(
        "/v1/score", content=content, headers={"content-type": "application/json"}
    )
    assert response.status_code in (400, 422)
    check_words(error_of(response)["message"], words)


def test_references_in_the_order_of_sacrebleu_are_noticed(scorer):
    cands, first, second = (
        ["the cat sat", "a dog ran"],
        ["the cat sits", "a dog runs"],
        ["the cat sat up", "dog ran"],
    )
    with pytest.warns(UserWarning, match=r"sacreBLEU.*zip\(\*refs\)"):
        scorer.score(cands, [first, second])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer.score(cands, [*zip(first, second, strict=True)])
