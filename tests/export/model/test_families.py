"""Every architecture, cut and exported: its graph against bert-score's own vectors, on tiny random
models.
"""

import numpy as np
import onnxruntime
import pytest
import torch
from bert_score.utils import bert_encode, get_model
from transformers import AutoConfig, AutoModel

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.errors import ExportError, UnsupportedFamilyError
from bertscore_onnx_export.graph.write import write_graph
from bertscore_onnx_export.model.families import FAMILIES, family_of
from bertscore_onnx_export.model.load import load_config, load_cut
from bertscore_onnx_export.model.positions import max_positions
from bertscore_onnx_export.model.source import Source
from tests.support.tiny_models import (
    EVERY_CUT,
    FIRST_ORDINARY_ID,
    LAYERS,
    POSITIONS,
    SETTINGS,
    VOCABULARY,
    each_family,
    save_tiny_model,
)

TOLERANCE = 1e-5
UNBOUNDED_LENGTH = 2 * POSITIONS + 3
"""The length at which models without a bound are tried."""

BERT_SCORE_FAILS = {"squeezebert"}
"""Where bert-score looks for the layers under a name that the model has not."""

NEEDS_LAYERS = {"deberta-v2", "deberta-v3", "xmod"}
"""What fails with no layer at all, in bert-score as well."""

CUTS = [
    pytest.param(
        name,
        num_layers,
        marks=() if name in EVERY_CUT and num_layers < LAYERS - 1 else pytest.mark.families,
    )
    for name in SETTINGS
    for num_layers in (0, 1, LAYERS - 1)
    if num_layers or name not in NEEDS_LAYERS
]
UNBOUNDED = {
    "gemma3_text",
    "qwen3",
    "mt5",
    "t5",
    "xlnet",
    "prophetnet",
    "xlm-prophetnet",
    "deberta",
    "deberta-v2",
    "modernbert",
}
BOUNDED = [name for name, (model_type, _) in SETTINGS.items() if model_type not in UNBOUNDED]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Gives the folder of a tiny model; bert-score wants the name of a T5 in its path."""
    root = tmp_path_factory.mktemp("models")

    def folder(name):
        if not (root / name).exists():
            save_tiny_model(*SETTINGS[name], root / name)
        return root / name

    return folder


@pytest.mark.parametrize(("name", "num_layers"), CUTS)
def test_graph_gives_the_vectors_of_bert_score(name, num_layers, models, tmp_path):
    graph, family, longest = export(models(name), num_layers, tmp_path)
    reference = reference_model(models(name), num_layers)
    # short first: then bert-score's BigBird is full
    for real_lengths in ([1], [7], [9, 4], [longest, longest // 2]):
        if not family.padding:
            real_lengths = [max(real_lengths)] * len(real_lengths)
        ids, mask = token_ids(real_lengths, reference.config.pad_token_id)
        expected = unit(bert_encode(reference, ids, mask))
        real = mask.bool().numpy()
        np.testing.assert_allclose(
            run(graph, ids, mask)[real], expected[real], rtol=0, atol=TOLERANCE
        )


@pytest.mark.parametrize("name", each_family(BOUNDED))
def test_a_text_longer_than_the_longest_fails(name, models):
    longest = family_and_length(models(name))[1]
    ids, mask = token_ids([longest + 1], 0)
    with pytest.raises((IndexError, RuntimeError)):
        bert_encode(reference_model(models(name), 1), ids, mask)


@pytest.mark.parametrize("name", each_family(SETTINGS))
def test_tiny_models_show_layers_and_positions(name, models):
    ids, mask = token_ids([9], 0)
    shallow, deep = (
        bert_encode(reference_model(models(name), layers), ids, mask) for layers in (1, LAYERS - 1)
    )
    turned = bert_encode(reference_model(models(name), 1), ids.flip(1), mask).flip(1)
    assert np.abs(unit(shallow) - unit(deep)).max() > 0.05
    assert np.abs(unit(shallow) - unit(turned)).max() > 0.05


@pytest.mark.parametrize(
    ("model_type", "message"),
    [
        ("clip", "which has no hidden_size; .* Load its text model"),
        ("vit", "which has no vocab_size; .* another model"),
    ],
)
def test_a_model_that_reads_more_than_text_is_refused(model_type, message, tmp_path):
    AutoConfig.for_model(model_type).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedFamilyError, match=message):
        load_config(Source(str(tmp_path)))


def test_an_xmod_without_a_known_language_is_refused(tmp_path):
    model_type, settings = SETTINGS["xmod"]
    save_tiny_model(model_type, settings | {"default_language": None}, tmp_path)
    with pytest.raises(ExportError, match="None as default_language; expected one of en_XX, de_DE"):
        export(tmp_path, 1, tmp_path)


def test_every_model_of_the_catalogue_has_a_family():
    named = [family.name for family in FAMILIES.values()]
    assert {catalogue.common_family(entry.family) for entry in catalogue.entries().values()} <= {
        *named
    }
    assert len(named) == len({*named})


def test_every_type_of_a_configuration_has_the_common_family_of_its_row():
    """A published graph has the type as its family, an exported model the row's name."""
    of_catalogue = {catalogue.common_family(entry.family) for entry in catalogue.entries().values()}
    rows = {
        model_type: family.name
        for model_type, family in FAMILIES.items()
        if family.name in of_catalogue
    }
    assert {model_type: catalogue.common_family(model_type) for model_type in rows} == rows


def test_the_catalogue_has_a_length_for_bounded_families():
    """A bundle of the others has a maximum only if its tokenizer states one, which the catalogue
    does not know.
    """

    def is_bounded(name):
        model_type, settings = SETTINGS[catalogue.common_family(name)]
        return max_positions(AutoConfig.for_model(model_type, **settings)) is not None

    entries = catalogue.entries().values()
    wrong = [
        entry.name
        for entry in entries
        if (entry.max_length is not None) != is_bounded(entry.family)
    ]
    assert wrong == []


def export(model, num_layers, folder):
    family, longest = family_and_length(model)
    source = Source(str(model))
    write_graph(load_cut(source, load_config(source), family, num_layers), folder)
    return onnxruntime.InferenceSession(folder / "model.onnx"), family, longest


def family_and_length(model):
    config = load_config(Source(str(model)))
    family = family_of(config)
    return family, max_positions(config) or UNBOUNDED_LENGTH


def reference_model(model, num_layers):
    """Cut as bert-score does, after loading."""
    if model.name not in BERT_SCORE_FAILS:
        return get_model(str(model), num_layers)
    whole = AutoModel.from_pretrained(model).eval()
    whole.encoder.layers = whole.encoder.layers[:num_layers]
    return whole


def token_ids(real_lengths, pad_id):
    generator = torch.Generator().manual_seed(1)
    shape = (len(real_lengths), max(real_lengths))
    ids = torch.randint(FIRST_ORDINARY_ID, VOCABULARY, shape, generator=generator)
    mask = torch.arange(shape[1]) < torch.tensor(real_lengths)[:, None]
    return torch.where(mask, ids, pad_id or 0), mask.long()


def run(graph, ids, mask):
    values = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
    return graph.run(None, {node.name: values[node.name] for node in graph.get_inputs()})[0]


def unit(vectors):
    return (vectors / vectors.norm(dim=-1, keepdim=True)).numpy()
