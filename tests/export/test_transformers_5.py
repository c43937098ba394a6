"""Models saved with transformers 4.57 and exported with transformers 5: the same ids, and the same
scores.

The first are exported here, the others by the Python of the environment that `make
test-transformers5` installs.
"""

import json
import os
import shutil
import subprocess
import warnings
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.tokenizer.load import load_tokenizer
from bertscore_onnx_export.tokenizer.write import TokenizerFacts, original_ids
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, PLAIN_TEXTS
from tests.export.tokenizer.test_conversions import (
    AMOUNTS,
    edge_case_texts,
    fast_kinds,
    needs_sacremoses,
)
from tests.parity.conftest import peer_of  # noqa: F401 # a fixture
from tests.support.bundles import ROOT, exported, saved
from tests.support.parity import EDGE_CASE_PAIRS, KNOWN_WARNINGS, ORDINARY_PAIRS
from tests.support.tiny_models import FAST, KINDS, TINY_MODELS, TRAINING_TEXTS, fast_byte_bpe

PYTHON = Path(
    os.environ.get("TRANSFORMERS5_PYTHON", ROOT / ".venv" / "transformers5" / "bin" / "python")
)

pytestmark = [pytest.mark.transformers5, *KNOWN_WARNINGS]

# two are too long
PAIRS = [list(side) for side in zip(*ORDINARY_PAIRS[:30], *EDGE_CASE_PAIRS[-2:], strict=True)]
GONE = {"xlm-prophetnet": "does not have. Export it with transformers 4.57."}
"""Models that transformers 5 lacks, to the end of the error."""

PEER_FAILS = {"squeezebert", "xlm-prophetnet"}
"""Models that bert-score cannot load on transformers 5, or looks for the layers of under another
name.
"""

CHANGED_IN_5 = {
    *(
        "albert",
        "bert-relative-key",
        "bert-relative-key-query",
        "bort",
        "data2vec",
        "deberta-v2",
        "deberta-v3",
    ),
    *("ibert", "mt5", "nystromformer", "rembert", "roberta", "roberta-prelayernorm", "xlm"),
}
"""Models to which transformers 5 gives other token ids or vectors than 4.57, and bert-score other
scores (docs/migrating.md)."""

BARE = {
    "albert": "albert",
    "bart": "led",
    "bert": "megatron-bert",
    "bigbird": "big_bird",
    "blenderbot": "blenderbot",
    "camembert": "camembert",
    "deberta": "deberta",
    "deberta-v2": "deberta-v2",
    "luke": "luke",
    "mbart": "mbart",
    "mobilebert": "mobilebert",
    "mpnet": "mpnet",
    "pegasus": "pegasus",
    "rembert": "rembert",
    "roberta": "roberta-prelayernorm",
    "t5": "umt5",
    "xlm-roberta": "xlm-roberta-xl",
    "xlnet": "xlnet",
}
"""Tokenizers that are also saved without their settings, as older models are, to the type that then
names the class.
"""

RENAMED = ["camembert", "mbart", "pegasus", "t5", "xlm-roberta"]
"""Tokenizers that are also saved with other names of their special tokens."""

FAST_KINDS = [str(kind.values[0] if hasattr(kind, "values") else kind) for kind in fast_kinds]


def run_jobs(jobs, folder):
    """Run jobs with transformers 5, and return the error of each that failed, by its output."""
    (folder / "jobs.json").write_text(json.dumps(jobs))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "export", ROOT / "models"))),
    }
    command = [PYTHON, "-m", "tests.support.other_version", folder / "jobs.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """The bundle of each tiny model that transformers 5 makes, or its error."""
    folder = tmp_path_factory.mktemp("bundles")
    jobs = [
        {"model": str(saved(name)), "output": str(folder / name), "options": options_of(name)}
        for name in TINY_MODELS
    ]
    errors = run_jobs({"models": jobs}, folder)
    return {name: errors.get(str(folder / name), folder / name) for name in TINY_MODELS}


def options_of(name):
    return {
        "num_layers": 0 if name == "bort" else 2,
        "tokenizer_mode": "fast" if name in FAST else "slow",
    }


@pytest.mark.parametrize("name", TINY_MODELS)
def test_a_bundle_of_either_version_gives_the_same_scores(name, bundles, peer_of, record_property):  # noqa: F811
    made = bundles[name]
    if name in GONE:
        assert made.endswith(GONE[name])
        return
    assert isinstance(made, Path), made
    reference = exported("bundle", saved(name), scoring_graph=True, **options_of(name))
    ours, theirs = read_manifest(made), read_manifest(reference)
    assert ours.exported_with["transformers"].startswith("5.")
    assert ours.tokenizer_differences == 0
    for fact in (
        "inputs",
        "output",
        "max_length",
        "pad_id",
        "empty_ids",
        "zero_weight_ids",
        "tokenizer_spec",
    ):
        assert getattr(ours, fact) == getattr(theirs, fact)
    scores = []
    for bundle in (made, reference):
        with BERTScorer(bundle, device="cpu") as scorer:
            scores.append(np.stack(scorer.score(*PAIRS)))
    record_property("between_versions", float(np.abs(scores[0] - scores[1]).max()))
    assert np.abs(scores[0] - scores[1]).max() <= 1e-6
    if name != "squeezebert":  # bert-score looks for its layers under another name
        options = {"use_fast_tokenizer": True} if name in FAST else {}
        peer = peer_of(saved(name), options_of(name)["num_layers"], **options).score(
            *PAIRS, batch_size=1
        )
        assert np.abs(scores[0] - np.stack(peer)).max() <= 1e-5


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    """P, R and F of bert-score 0.3.14 on transformers 5, or its error; models have
    `tokenizer.json`, as on a hub.
    """
    folder = tmp_path_factory.mktemp("peers")
    jobs = []
    for name in TINY_MODELS:
        shutil.copytree(saved(name), folder / name)
        if name != "blenderbot-small":  # whose fast tokenizer transformers 4 cannot make
            with warnings.catch_warnings(action="ignore"):
                AutoTokenizer.from_pretrained(folder / name).save_pretrained(folder / name)
        num_layers = options_of(name)["num_layers"]
        job = {
            "model": str(folder / name),
            "output": f"{folder / name}.npy",
            "num_layers": num_layers,
            "pairs": PAIRS,
        }
        jobs.append(job)
    errors = run_jobs({"peers": jobs}, folder)
    return {
        Path(job["model"]).name: errors.get(job["output"]) or np.load(job["output"]) for job in jobs
    }


@pytest.mark.parametrize("name", TINY_MODELS)
def test_scores_are_those_of_bert_score_on_transformers_5(name, peers, record_property):
    if name in PEER_FAILS:
        assert isinstance(peers[name], str)
        return
    with BERTScorer(
        exported("bundle", saved(name), scoring_graph=True, **options_of(name)), device="cpu"
    ) as scorer:
        difference = float(np.abs(np.stack(scorer.score(*PAIRS)) - peers[name]).max())
    record_property("on_transformers_5", difference)
    assert difference > 1e-4 if name in CHANGED_IN_5 else difference <= 1e-5


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """The files that transformers 5 makes of each kind of tokenizer, by kind and form; or its
    error.
    """
    folder = tmp_path_factory.mktemp("tokenizers")
    jobs = []
    for kind in [*KINDS, "modernbert"]:
        model = folder / "saved" / kind
        (model / "made").mkdir(parents=True)
        (fast_byte_bpe if kind == "modernbert" else KINDS[kind])(model / "made").save_pretrained(
            model
        )
        if kind in FAST_KINDS:  # transformers 5 needs `tokenizer.json` for the fast mode
            AutoTokenizer.from_pretrained(model).save_pretrained(folder / "fast" / kind)
            jobs.append(
                {
                    "model": str(folder / "fast" / kind),
                    "output": str(folder / f"{kind}-fast"),
                    "mode": "fast",
                }
            )
        mode = "fast" if kind == "modernbert" else "slow"
        jobs.append({"model": str(model), "output": str(folder / f"{kind}-{mode}"), "mode": mode})
        if kind in BARE:
            bare = folder / "bare" / kind
            shutil.copytree(
                model, bare, ignore=shutil.ignore_patterns("made", "*token*s*.json", "*config.json")
            )
            (bare / "config.json").write_text(json.dumps({"model_type": BARE[kind]}))
            jobs.append(
                {"model": str(bare), "output": str(folder / f"{kind}-bare"), "mode": "slow"}
            )
    for kind in RENAMED:
        model = folder / "renamed" / kind
        (model / "made").mkdir(parents=True)
        slow = KINDS[kind](model / "made")
        slow.add_special_tokens({"pad_token": "<PAD>", "mask_token": "<MASK>"})
        slow.save_pretrained(model)
        jobs.append(
            {"model": str(model), "output": str(folder / f"{kind}-renamed"), "mode": "slow"}
        )
    errors = run_jobs({"tokenizers": jobs}, folder)
    return {Path(job["output"]).name: (job, errors.get(job["output"])) for job in jobs}


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        *(
            pytest.param(kind, "slow", marks=needs_sacremoses if kind.startswith("xlm") else ())
            for kind in KINDS
        ),
        *((kind, "fast") for kind in [*FAST_KINDS, "modernbert"]),
        *((kind, "bare") for kind in BARE),
        *((kind, "renamed") for kind in RENAMED),
    ],
)
def test_a_tokenizer_gives_the_same_ids_in_either_version(kind, form, tokenizers):
    job, error = tokenizers[f"{kind}-{form}"]
    if kind in GONE:
        assert "has no slow tokenizer" in error
        return
    assert error is None
    original = load_tokenizer(Source(job["model"]), job["mode"])
    special_tokens = [token.content for token in original.added_tokens_decoder.values()][:12]
    special_tokens += [
        "[X_SEP]",
        "<mask>",
        "<mask_1>",
        "<extra_id_0>",
        "<eop>",
        "en_XX",
        "<s>NOTUSED",
    ]
    texts = [
        *PLAIN_TEXTS,
        *EDGE_CASE_TEXTS,
        *TRAINING_TEXTS,
        *AMOUNTS,
        *edge_case_texts(400, special_tokens),
    ]
    folder = Path(job["output"])
    facts = msgspec.json.decode((folder / "facts.json").read_bytes(), type=TokenizerFacts)
    written = TextTokenizer(
        folder, spec=facts.spec, max_length=facts.max_length, empty_ids=facts.empty_ids
    )
    expected = [original_ids(original, text, facts.max_length) for text in texts]
    pairs = zip(texts, written(texts)[0], expected, strict=True)
    assert [text for text, ids, original_of_it in pairs if ids.tolist() != original_of_it] == []
    assert facts.differences == 0


def test_a_bundle_keeps_the_ids_of_a_file_that_auto_tokenizer_of_5_changes(tmp_path):
    model, output = tmp_path / "model", tmp_path / "output"
    (model / "made").mkdir(parents=True)
    KINDS["xlm-roberta"](model / "made").save_pretrained(model)
    AutoTokenizer.from_pretrained(model).save_pretrained(model)
    config = model / "tokenizer_config.json"
    settings = json.loads(config.read_text()) | {
        "add_prefix_space": False,
        "tokenizer_class": "XLMRobertaTokenizer",
    }
    config.write_text(json.dumps(settings))
    assert (
        run_jobs(
            {"tokenizers": [{"model": str(model), "output": str(output), "mode": "fast"}]}, tmp_path
        )
        == {}
    )

    facts = msgspec.json.decode((output / "facts.json").read_bytes(), type=TokenizerFacts)
    written = TextTokenizer(
        output, spec=facts.spec, max_length=facts.max_length, empty_ids=facts.empty_ids
    )
    texts = [text for text in TRAINING_TEXTS if text.strip()][:5]
    of_file = [
        encoding.ids
        for encoding in Tokenizer.from_file(str(model / "tokenizer.json")).encode_batch(texts)
    ]
    assert [ids.tolist() for ids in written(texts)[0]] == of_file

    program = "import json, sys, transformers; load = transformers.AutoTokenizer.from_pretrained"
    program += "; print(json.dumps(load(sys.argv[1])(json.loads(sys.argv[2])).input_ids))"
    command = [PYTHON, "-c", program, model, json.dumps(texts)]
    of_auto_tokenizer = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    assert of_auto_tokenizer != of_file


def test_a_model_without_a_file_for_the_fast_mode_is_refused(tmp_path):
    """transformers 4 would make one of the vocabulary, and transformers 5 another."""
    model, output = str(saved("roberta")), str(tmp_path / "out")
    errors = run_jobs(
        {"tokenizers": [{"model": model, "output": output, "mode": "fast"}]}, tmp_path
    )
    assert "has no fast tokenizer (or lacks its vocabulary files)" in errors[output]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"position_embedding_type": "relative_key"},
            "ignores the relative positions of models of the type 'electra'",
        ),
        (
            {"intermediate_size": 64},
            "size mismatch: tensors have other shapes than config.json describes",
        ),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(tmp_path, settings, message):
    model = tmp_path / "electra"
    model.mkdir()
    for file in saved("electra").iterdir():
        if file.is_file():
            (model / file.name).write_bytes(file.read_bytes())
    changed = json.loads((model / "config.json").read_text()) | settings
    (model / "config.json").write_text(json.dumps(changed))
    output = str(tmp_path / "out")
    job = {"model": str(model), "output": output, "options": {"num_layers": 1}}
    assert message in run_jobs({"models": [job]}, tmp_path)[output]
