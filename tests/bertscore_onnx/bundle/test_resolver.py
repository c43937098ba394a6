import pytest

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Variant, bundle_folder
from bertscore_onnx.errors import (
    BundleNotFoundError,
    InputError,
    ManifestError,
    UnknownLayerError,
    UnknownModelError,
)
from tests.support.manifests import stored_copy


@pytest.fixture
def installed(tiny_bundle, home):
    def install(name, num_layers, tokenizer_mode="slow", precision="fp32"):
        return stored_copy(tiny_bundle, name, Variant(num_layers, tokenizer_mode, precision))

    return install


@pytest.mark.parametrize(
    "arguments", [{}, {"num_layers": 2}, {"tokenizer_mode": "slow"}, {"precision": "fp32"}]
)
def test_a_path_is_opened_as_it_is(tiny_bundle, arguments):
    assert resolve_bundle(str(tiny_bundle), **arguments).path == tiny_bundle


def test_a_layer_below_0_is_refused(tiny_bundle):
    with pytest.raises(UnknownLayerError, match="num_layers is -1"):
        resolve_bundle(str(tiny_bundle), num_layers=-1)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({}, "layer-17-slow-fp32"),
        ({"num_layers": 3}, "layer-3-slow-fp32"),
        ({"tokenizer_mode": "fast"}, "layer-17-fast-fp32"),
        ({"precision": "int8"}, "layer-17-slow-int8"),
    ],
)
def test_a_catalogue_name_means_its_tuned_layer_by_default(installed, arguments, found):
    for variant in ((17,), (3,), (17, "fast"), (17, "slow", "int8")):
        installed("roberta-large", *variant)
    assert (
        resolve_bundle("roberta-large", **arguments).path
        == bundle_folder("roberta-large", Variant(17)).parent / found
    )


@pytest.mark.parametrize(
    ("name", "num_layers", "as_name"),
    [
        ("mine", 2, "roberta-large"),  # another model
        ("roberta-large", 12, "roberta-large"),  # another layer
        # a name with the same folder
        ("google--electra-small-generator", 9, "google/electra-small-generator"),
    ],
)
def test_a_bundle_in_the_place_of_another_is_refused(installed, name, num_layers, as_name):
    chosen = catalogue.entries()[as_name].num_layers
    copied = installed(name, num_layers)
    place = bundle_folder(as_name, Variant(chosen))
    place.parent.mkdir(exist_ok=True)
    copied.rename(place)
    with pytest.raises(
        ManifestError, match=f"is the place of {as_name}, and holds {name}, layer-{num_layers}-"
    ):
        resolve_bundle(as_name)
    assert resolve_bundle(str(place)).manifest.model_id == name


MULTILINGUAL = ["de", "DE", "fil", "und", "nds-NL", "zh-CN", "sr_Latn", "pt-BR", "zh-Hant-TW"]


@pytest.mark.parametrize(
    ("lang", "name", "num_layers"),
    [
        *((lang, "bert-base-chinese", 8) for lang in ("zh", "ZH")),
        *((lang, "bert-base-multilingual-cased", 9) for lang in MULTILINGUAL),
    ],
)
def test_a_language_means_its_default_model(installed, lang, name, num_layers):
    folder = installed(name, num_layers)
    assert resolve_bundle(None, lang=lang).path == folder


@pytest.mark.slow  # it imports PyTorch
@pytest.mark.parametrize(("has", "asked"), [("slow", "fast"), ("fast", "slow")])
def test_a_bundle_of_the_other_tokenizer_is_refused(tiny_bundle, fast_bundle, has, asked):
    bundle = fast_bundle if has == "fast" else tiny_bundle
    with pytest.raises(InputError) as caught:
        resolve_bundle(str(bundle), tokenizer_mode=asked)
    mode = " --tokenizer-mode fast" if asked == "fast" else ""
    command = f"bertscore-onnx export --model MODEL --num-layers 2{mode}"
    assert str(caught.value) == (
        f"The bundle {bundle} has the {has} tokenizer, and the {asked} one was asked for. Leave "
        f"`use_fast_tokenizer` out, or run `{command}` (MODEL is the folder or the Hub id of "
        "tiny-bert)."
    )


def test_a_bundle_in_int8_does_not_stand_for_one_in_fp32(installed):
    installed("someone/own-model", 5, precision="int8")
    assert resolve_bundle("someone/own-model", precision="int8").path.name == "layer-5-slow-int8"
    with pytest.raises(BundleNotFoundError) as caught:
        resolve_bundle("someone/own-model")
    assert str(caught.value) == (
        "No bundle of someone/own-model with its slow tokenizer in fp32 is here, only "
        "layer-5-slow-int8. Choose one of these, or run `bertscore-onnx export --model "
        "someone/own-model --num-layers N`."
    )


@pytest.mark.parametrize(
    ("arguments", "options"),
    [({"num_layers": 6}, "6"), ({"precision": "int8"}, "N --precision int8")],
)
def test_a_chosen_name_is_no_model_to_export(installed, arguments, options):
    installed("own-model", 5)
    with pytest.raises(BundleNotFoundError) as caught:
        resolve_bundle("own-model", **arguments)
    command = f"bertscore-onnx export --model MODEL --num-layers {options}"
    assert f"un `{command}` (MODEL is the folder or the Hub id of own-model)" in str(caught.value)


def test_several_bundles_of_an_uncatalogued_model_need_a_layer(installed):
    folder = installed("someone/own-model", 5)
    assert resolve_bundle("someone/own-model").path == folder
    installed("someone/own-model", 6)
    with pytest.raises(UnknownLayerError, match="choose one with `num_layers`"):
        resolve_bundle("someone/own-model")


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({}, ""),
        ({"num_layers": 17}, ""),
        ({"num_layers": 3}, " --num-layers 3"),
        ({"all_layers": True}, " --all-layers"),
        ({"tokenizer_mode": "fast"}, " --tokenizer-mode fast"),
        ({"precision": "int8"}, " --precision int8"),
    ],
)
def test_a_missing_bundle_is_answered_with_the_export_command(home, arguments, options):
    with pytest.raises(BundleNotFoundError) as caught:
        resolve_bundle("roberta-large", **arguments)
    assert f"`bertscore-onnx export --model roberta-large{options}`" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("roberta-lage", "roberta-large, roberta-base, xlm-roberta-large"),
        ("xlnet", r"xlnet-base-cased, xlnet-large-cased\."),
        ("tiny-brt", "tiny-bert"),
        ("KHALIDALT/DEBERTA-V3-LARGE-MNL", "khalidalt/DeBERTa-v3-large-mnli"),
    ],
)
def test_the_error_for_an_unknown_name_has_the_three_nearest(installed, name, nearest):
    installed("tiny-bert", 2)
    with pytest.raises(UnknownModelError, match=f"The nearest names are {nearest}") as caught:
        resolve_bundle(name)
    assert f"--model {name}" not in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "path/to/absent",
        "./absent",
        "../absent",
        "~/absent",
        "/absent",
        "absent/",
        "C:\\absent",
        "here/absent",
        "",
    ],
)
def test_a_missing_path_is_treated_as_a_path(home, tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with pytest.raises(BundleNotFoundError) as caught:
        resolve_bundle(path)
    assert str(caught.value) == (
        f"There is no folder {path!r}. Give the path of a bundle, absolute if it is not in the "
        "working folder, or the name of a model; `bertscore-onnx models` lists those that are "
        "known."
    )


def test_a_folder_of_an_organisations_name_hides_no_model(installed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "microsoft").mkdir()
    folder = installed("microsoft/deberta-base", 9)
    assert resolve_bundle("microsoft/deberta-base").path == folder


@pytest.mark.parametrize("name", ["../..", "/", "a\0b", "x" * 5000])
def test_a_strange_name_is_refused(home, name):
    with pytest.raises((UnknownModelError, BundleNotFoundError)):
        resolve_bundle(name)


@pytest.mark.usefixtures("homeless")
class TestWithoutAHomeFolder:
    def test_a_path_is_opened_all_the_same(self, tiny_bundle):
        assert resolve_bundle(str(tiny_bundle)).path == tiny_bundle

    @pytest.mark.parametrize("name", ["roberta-large", "someone/own-model", "roberta-lage"])
    def test_the_error_for_a_name_has_the_variable_to_set(self, name):
        with pytest.raises(BundleNotFoundError, match=r"no home folder.*BERTSCORE_ONNX_HOME"):
            resolve_bundle(name)

    def test_a_variable_that_refers_to_a_users_home_does_not_help(self, monkeypatch):
        monkeypatch.setenv("BERTSCORE_ONNX_HOME", "~/bundles")
        with pytest.raises(BundleNotFoundError, match="no home folder"):
            resolve_bundle("roberta-large")
