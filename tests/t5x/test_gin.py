"""The shipped gin files and the documented commands, read as T5X's scripts read them."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from spec_cascades import resources, rules
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


ROOT = pathlib.Path(__file__).parent.parent.parent
DOCUMENT = ROOT / "docs" / "t5x.md"


@pytest.fixture(params=["infer", "eval"])
def script(request):
    return request.param


@pytest.fixture
def parse(script, t5x, monkeypatch):
    """Parses a model's file, then a script's file, as the script would; returns `gin`."""
    import gin
    from t5x import eval as t5x_eval
    from t5x import infer as t5x_infer

    main = {"infer": t5x_infer, "eval": t5x_eval}[script]
    monkeypatch.setitem(sys.modules, "__main__", main)

    def parse(model, *bindings, required=REQUIRED):
        gin.add_config_file_search_path(str(pathlib.Path(t5x.__file__).parent.parent))
        names = [str(GIN / "models" / model), str(GIN / f"{script}.gin")]
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
    lossy = ["RULE = 'lossy'", "rules.get.beta = 'normalised'", "rules.get.strict_prefix = 3"]
    made = parse(MODELS[0], *BYTES, *lossy).get_configurable("SpeculativeCascadeModel")()
    assert made._rule == rules.get("lossy", beta="normalised", strict_prefix=3)


def test_a_missing_binding_names_itself(parse):
    without = [line for line in REQUIRED if not line.startswith("DRAFT")]
    with pytest.raises(
        ValueError, match="DRAFT_CHECKPOINT_PATH/macro.value set to `%gin.REQUIRED`"
    ):
        parse(MODELS[0], required=without)


def test_documented_commands_parse(parse, script):
    block = re.search(rf"<!-- test: {script} -->\n```bash\n(.*?)```", DOCUMENT.read_text(), re.S)[1]
    command = block[block.index("python t5x/") :].replace("\\\n", " ").replace("$GIN", str(GIN))
    program, *flags = shlex.split(command)[1:]
    assert program == f"t5x/{script}.py"
    files = [flag.removeprefix("--gin_file=") for flag in flags if flag.startswith("--gin_file=")]
    bindings = [flag.removeprefix("--gin.") for flag in flags if flag.startswith("--gin.")]
    assert len(files) + len(bindings) == len(flags)
    model, run = map(pathlib.Path, files)
    assert run == GIN / f"{script}.gin" and model.parent == GIN / "models"
    made = parse(model.name, *BYTES, required=bindings).get_configurable(
        "SpeculativeCascadeModel"
    )()
    assert (made._rule.name, made._alpha) == ("token_v3", 0.3)


def test_the_documented_gin_file_gives_a_model(parse, tmp_path):
    (block,) = re.findall(r"```python\n(from __gin__ .*?)```", DOCUMENT.read_text(), re.S)
    (tmp_path / "own.gin").write_text(block)
    made = parse(tmp_path / "own.gin", *BYTES).get_configurable("SpeculativeCascadeModel")()
    assert made._parts["target"].config == T5Config.preset("t5_1_1_base", dtype="bfloat16")


def test_installed_files_are_found_from_anywhere(t5x, tmp_path):
    pytest.importorskip("setuptools")
    installed = tmp_path / "site"
    build = ["build", "--build-base", tmp_path / "build", "--build-lib", installed]
    subprocess.run([sys.executable, "setup.py", "-q", *build], cwd=ROOT, check=True)
    paths = [str(installed), os.environ.get("PYTHONPATH", "")]
    settings = dict(
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    place = subprocess.run([sys.executable, "-m", "spec_cascades.resources"], **settings).stdout
    gin_files = pathlib.Path(place.strip()) / "t5x"
    assert installed in gin_files.parents
    run = subprocess.run(
        [
            sys.executable,
            pathlib.Path(t5x.__file__).parent / "infer.py",
            f"--gin_file={gin_files / 'models' / MODELS[0]}",
            f"--gin_file={gin_files / 'infer.gin'}",
            "--gin.CHECKPOINT_PATH='target'",
        ],
        **settings,
    )
    # All files were found and read: only then does gin look for what is still missing.
    assert "set to `%gin.REQUIRED` but not subsequently overridden" in run.stderr
