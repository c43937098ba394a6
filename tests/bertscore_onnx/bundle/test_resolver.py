import shutil

import pytest

from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Variant, bundle_folder
from bertscore_onnx.errors import BundleNotFoundError, InputError, UnknownLayerError, UnknownModelError


@pytest.fixture
def installed(tiny_bundle, home):
    """Return a function that puts the tiny bundle into the home folder under a name and a layer."""

    def install(name, num_layers, tokenizer_mode="slow", precision="fp32"):
        return shutil.copytree(tiny_bundle, bundle_folder(name, Variant(num_layers, tokenizer_mode, precision)))

    return install


def test_a_path_is_opened_as_it_is(tiny_bundle):
    assert resolve_bundle(str(tiny_bundle)).path == tiny_bundle


def test_a_path_knows_its_own_layer(tiny_bundle):
    assert resolve_bundle(str(tiny_bundle), num_layers=2).manifest.num_layers == 2
    with pytest.raises(UnknownLayerError, match="cut at layer 2, and layer 1 was asked for"):
        resolve_bundle(str(tiny_bundle), num_layers=1)


def test_a_catalogue_name_means_its_tuned_layer(installed):
    folder = installed("roberta-large", 17)
    installed("roberta-large", 3)
    assert resolve_bundle("roberta-large").path == folder


def test_a_layer_can_be_named(installed):
    installed("roberta-large", 17)
    folder = installed("roberta-large", 3)
    assert resolve_bundle("roberta-large", num_layers=3).path == folder


def test_a_language_means_its_default_model(installed):
    folder = installed("bert-base-chinese", 8)
    assert resolve_bundle(None, lang="zh").path == folder


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("english", "expected a language code, 'en' for this one. en, en-sci, tr, zh have a model of their own"),
        ("German", "expected a language code, 'de' for this one. "),
        ("chinese", "expected a language code. en, en-sci, tr, zh have"),
        ("", "lang is ''; expected a language code. "),
    ],
)
def test_what_is_no_language_code_is_refused(home, lang, expected):
    with pytest.raises(InputError) as caught:
        resolve_bundle(None, lang=lang)
    assert expected in str(caught.value)


@pytest.mark.parametrize("lang", ["de", "DE", "fil", "zh-CN", "sr_Latn", "pt-BR", "zh-Hant-TW"])
def test_other_language_codes_mean_the_multilingual_model(installed, lang):
    folder = installed("bert-base-multilingual-cased", 9)
    assert resolve_bundle(None, lang=lang).path == folder


def test_the_fast_tokenizer_has_a_bundle_of_its_own(installed):
    installed("roberta-large", 17)
    folder = installed("roberta-large", 17, "fast")
    assert resolve_bundle("roberta-large", tokenizer_mode="fast").path == folder


@pytest.mark.slow  # it imports PyTorch
def test_a_path_knows_its_own_tokenizer(tiny_bundle, fast_bundle):
    assert resolve_bundle(str(fast_bundle)).manifest.tokenizer_mode == "fast"
    assert resolve_bundle(str(fast_bundle), tokenizer_mode="fast").path == fast_bundle
    assert resolve_bundle(str(tiny_bundle), tokenizer_mode="slow").path == tiny_bundle


@pytest.mark.slow  # it imports PyTorch
@pytest.mark.parametrize(("has", "asked"), [("slow", "fast"), ("fast", "slow")])
def test_a_bundle_of_the_other_tokenizer_is_refused(tiny_bundle, fast_bundle, has, asked):
    bundle = fast_bundle if has == "fast" else tiny_bundle
    with pytest.raises(InputError) as caught:
        resolve_bundle(str(bundle), tokenizer_mode=asked)
    command = "bertscore-onnx export --model tiny-bert" + (" --tokenizer-mode fast" if asked == "fast" else "")
    assert str(caught.value) == (
        f"The bundle {bundle} has the {has} tokenizer, and the {asked} one was asked for. Leave use_fast_tokenizer "
        f"out, or run `{command}`."
    )


def test_a_bundle_of_another_precision_is_refused(tiny_bundle):
    with pytest.raises(InputError, match=r"is in fp32, and int8 was .* export --model tiny-bert --precision int8`"):
        resolve_bundle(str(tiny_bundle), precision="int8")


def test_each_precision_has_a_bundle_of_its_own(installed):
    installed("roberta-large", 17)
    folder = installed("roberta-large", 17, precision="int8")
    assert resolve_bundle("roberta-large", precision="int8").path == folder
    assert resolve_bundle("roberta-large").path.name == "layer-17-slow-fp32"


def test_a_bundle_of_another_precision_does_not_stand_for_one_in_fp32(installed):
    installed("someone/own-model", 5, precision="int8")
    assert resolve_bundle("someone/own-model", precision="int8").path.name == "layer-5-slow-int8"
    with pytest.raises(BundleNotFoundError) as caught:
        resolve_bundle("someone/own-model")
    assert str(caught.value) == (
        "No bundle of someone/own-model with its slow tokenizer in fp32 is here, only layer-5-slow-int8. Choose one of "
        "these, or run `bertscore-onnx export --model someone/own-model --num-layers N`."
    )


def test_the_only_bundle_of_an_uncatalogued_model_is_taken(installed):
    folder = installed("someone/own-model", 5)
    assert resolve_bundle("someone/own-model").path == folder


def test_several_bundles_of_an_uncatalogued_model_need_a_layer(installed):
    installed("someone/own-model", 5)
    installed("someone/own-model", 6)
    with pytest.raises(UnknownLayerError, match="choose one with num_layers"):
        resolve_bundle("someone/own-model")


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({}, "`bertscore-onnx export --model roberta-large`"),
        ({"num_layers": 17}, "`bertscore-onnx export --model roberta-large`"),
        ({"num_layers": 3}, "`bertscore-onnx export --model roberta-large --num-layers 3`"),
        ({"all_layers": True}, "`bertscore-onnx export --model roberta-large --all-layers`"),
        ({"tokenizer_mode": "fast"}, "`bertscore-onnx export --model roberta-large --tokenizer-mode fast`"),
        ({"precision": "int8"}, "`bertscore-onnx export --model roberta-large --precision int8`"),
    ],
)
def test_a_missing_bundle_is_answered_with_the_command_that_makes_it(home, arguments, command):
    with pytest.raises(BundleNotFoundError) as caught:
        resolve_bundle("roberta-large", **arguments)
    assert command in str(caught.value)


def test_an_unknown_name_is_answered_with_the_three_nearest(home):
    with pytest.raises(UnknownModelError, match="The nearest names are roberta-large, roberta-base, xlm-roberta-large"):
        resolve_bundle("roberta-lage")


def test_a_part_of_a_name_is_near_it(home):
    with pytest.raises(UnknownModelError, match=r"The nearest names are xlnet-base-cased, xlnet-large-cased\."):
        resolve_bundle("xlnet")


@pytest.mark.parametrize("name", ["nope", "no such name", "someone/own-model"])
def test_names_that_are_not_near_are_not_mentioned(home, name):
    with pytest.raises(UnknownModelError) as caught:
        resolve_bundle(name)
    assert "nearest" not in str(caught.value)
    assert f"`bertscore-onnx export --model {name} --num-layers N`" in str(caught.value)


@pytest.mark.parametrize(
    "path",
    ["path/to/absent", "./absent", "../absent", "~/absent", "/absent", "absent/", "C:\\absent", "here/absent", ""],
)
def test_a_path_where_nothing_is_is_answered_as_a_path(home, tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with pytest.raises(BundleNotFoundError) as caught:
        resolve_bundle(path)
    assert str(caught.value) == (
        f"There is no folder {path!r}. Give the path of a bundle, or the name of a model; `bertscore-onnx models` "
        "lists those that are known."
    )


def test_a_folder_of_an_organisations_name_hides_no_model(installed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "microsoft").mkdir()
    folder = installed("microsoft/deberta-base", 9)
    assert resolve_bundle("microsoft/deberta-base").path == folder


def test_own_models_are_among_the_nearest_names(installed, tiny_bundle):
    installed("tiny-bert", 2)
    with pytest.raises(UnknownModelError, match="nearest names are tiny-bert"):
        resolve_bundle("tiny-brt")


def test_a_transformers_model_is_not_taken_for_a_bundle(tiny_model, home):
    with pytest.raises(BundleNotFoundError, match="holds a transformers model, not a bundle"):
        resolve_bundle(str(tiny_model))


def test_another_folder_is_not_taken_for_a_bundle(tmp_path, home):
    with pytest.raises(BundleNotFoundError, match="is no bundle"):
        resolve_bundle(str(tmp_path))


@pytest.mark.parametrize("name", ["", "../..", "/", "a\0b", "x" * 5000])
def test_a_strange_name_is_refused_in_words(home, name):
    with pytest.raises((UnknownModelError, BundleNotFoundError)):
        resolve_bundle(name)


def test_neither_model_nor_language_is_refused():
    with pytest.raises(InputError, match="`model_type` or a language with `lang`"):
        resolve_bundle(None)


def test_a_negative_layer_is_refused(tiny_bundle):
    with pytest.raises(UnknownLayerError, match="num_layers is -1"):
        resolve_bundle(str(tiny_bundle), num_layers=-1)


def test_a_bundle_of_one_layer_does_not_stand_for_all(tiny_bundle):
    with pytest.raises(UnknownLayerError, match="holds layer 2 only, and all layers were asked for"):
        resolve_bundle(str(tiny_bundle), all_layers=True)


@pytest.mark.usefixtures("homeless")
class TestWithoutAHomeFolder:
    def test_a_path_is_opened_all_the_same(self, tiny_bundle):
        assert resolve_bundle(str(tiny_bundle)).path == tiny_bundle

    @pytest.mark.parametrize("name", ["roberta-large", "someone/own-model", "roberta-lage"])
    def test_a_name_is_answered_with_what_to_set(self, name):
        with pytest.raises(
            BundleNotFoundError, match=r"no home folder.*Give the path of a bundle, or set BERTSCORE_ONNX_HOME"
        ):
            resolve_bundle(name)

    def test_a_home_that_is_named_by_that_of_a_user_is_none(self, monkeypatch):
        monkeypatch.setenv("BERTSCORE_ONNX_HOME", "~/bundles")
        with pytest.raises(BundleNotFoundError, match="no home folder"):
            resolve_bundle("roberta-large")
