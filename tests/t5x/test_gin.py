"""The shipped gin files, read as T5X's scripts read them."""

import pathlib
import sys

import pytest

from spec_cascades import resources
from spec_cascades.models.t5 import T5Config

GIN = resources.root() / "gin" / "t5x"
MODELS = sorted(path.name for path in (GIN / "models").glob("*.gin"))
REQUIRED = [
    "CHECKPOINT_PATH = 'target'",
    "DRAFT_CHECKPOINT_PATH = 'draft'",
    "INFER_OUTPUT_DIR = 'out'",
    "EVAL_OUTPUT_DIR = 'out'",
    "MIXTURE_OR_TASK_NAME = 'task'",
    "TASK_FEATURE_LENGTHS = {'inputs': 8, 'targets': 8}",
]


@pytest.fixture(params=["infer", "eval"])
def parse(request, t5x, monkeypatch):
    """Parses a file of models/, then a script's file, as the script would; returns `gin`."""
    import gin
    from t5x import eval as t5x_eval
    from t5x import infer as t5x_infer

    script = {"infer": t5x_infer, "eval": t5x_eval}[request.param]
    monkeypatch.setitem(sys.modules, "__main__", script)

    def parse(model, *bindings, required=REQUIRED):
        gin.add_config_file_search_path(str(pathlib.Path(t5x.__file__).parent.parent))
        names = [str(GIN / "models" / model), str(GIN / f"{request.param}.gin")]
        with gin.unlock_config():  # an earlier test has locked it, as the scripts do
            gin.clear_config()
            gin.parse_config_files_and_bindings(names, [*required, *bindings])
        return gin

    yield parse
    with gin.unlock_config():
        gin.clear_config()


BYTES = [
    "SpeculativeCascadeModel.input_vocabulary = @seqio.ByteVocabulary()",
    "SpeculativeCascadeModel.output_vocabulary = @seqio.ByteVocabulary()",
]


@pytest.mark.parametrize("model", MODELS)
def test_every_file_gives_a_model(parse, model):
    gin = parse(model, *BYTES, "RULE = 'token_v3'", "ALPHA = 0.3", "GAMMA = 3")
    made = gin.get_configurable("SpeculativeCascadeModel")()
    decoder = made._decoder(max_decode_length=4)
    assert (decoder.rule.name, made._alpha, decoder.gamma) == ("token_v3", 0.3, 3)
    family, size = model.removesuffix(".gin").split("_small_to_")
    for part, name in (("target", f"{family}_{size}"), ("draft", f"{family}_small")):
        assert made._parts[part].config == T5Config.preset(name, dtype="bfloat16")


def test_there_are_files_for_every_family():
    families = {name.split("_small_to_")[0] for name in MODELS}
    assert families == {"t5_1_1", "flan_t5", "mt5", "byt5"}
    assert len(MODELS) == 2 * len(families)


def test_a_rules_parameters_can_be_set(parse):
    lossy = ["RULE = @rules.get()", "rules.get.name = 'lossy'", "rules.get.beta = 0.9"]
    made = parse(MODELS[0], *BYTES, *lossy).get_configurable("SpeculativeCascadeModel")()
    assert dict(made._rule.settings) == {"beta": 0.9}


def test_a_missing_binding_names_itself(parse):
    without = [line for line in REQUIRED if not line.startswith("DRAFT")]
    with pytest.raises(
        ValueError, match="DRAFT_CHECKPOINT_PATH/macro.value set to `%gin.REQUIRED`"
    ):
        parse(MODELS[0], required=without)
