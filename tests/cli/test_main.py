"""The command line: parsing, help, one-line errors before any work, and the shipped gin files."""

import json
import shutil
import subprocess
import sys

import jax
import pytest
import tiny

from spec_cascades import checkpoints, main, partitioning, resources, rules
from spec_cascades.checkpoints import loading, pair
from spec_cascades.cli import arguments, gin_utils


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("main")
    tiny.make_pair(home)
    tiny.make_data(home / "data.jsonl")
    return home


def evaluate(home, *flags):
    return main.main(
        [
            "evaluate",
            f"--target={home / 'target'}",
            f"--drafter={home / 'drafter'}",
            f"--output_dir={home / 'output'}",
            "--task=mine",
            f"--test_file={home / 'data.jsonl'}",
            *flags,
        ]
    )


def assert_one_line(capsys, message):
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and printed.count("\n") == 1
    assert message in printed


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--methods=tokn_v3"], "unknown method 'tokn_v3': did you mean 'token_v3'?"),
        (["--methods=token_v3", "--alphas=2"], "alpha = 2.0 is out of range"),
        (["--methods=token_v3", "--alphas=x"], "argument --alphas"),
        (["--gammas=0"], "gamma must be a whole number of at least 1, got 0"),
        (["--temperatures=-1"], "temperature must be a number of at least 0, got -1.0"),
        (["--tempratures=1"], "unknown flag --tempratures: did you mean --temperatures?"),
        (["stray"], "unexpected argument 'stray'"),
        (["--gin.evaluate.gama=3"], "did you mean 'gammas'?"),
        (["--gin.evalute.gammas=3"], "did you mean 'evaluate'?"),
        (["--gin.evaluate.gammas"], "expected --gin.NAME=VALUE"),
        (["--gin.evaluate.split=test"], "quote text"),
        (["--gin.evaluate.gammas=%GAMMA"], "gin macro GAMMA has no value"),
        (["--gin_file=demoo.gin"], "did you mean 'demo.gin'?"),
        (["--test_file=/nowhere.jsonl"], "no file '/nowhere.jsonl'"),
        (["--input_field=question"], "data.jsonl:1: no field 'question'"),
        (["--target=/nowhere"], "no checkpoint at /nowhere"),
        (["--gin.evaluate.methods=[{'name': 'lossy', 'verification': 'block'}]"], "needs a rule"),
        (["--import=no_such_module"], "no module 'no_such_module'"),
        (["--vocabulary=demo"], "have different vocabularies"),
        (["--methods="], "methods is empty"),
        (["--methods=target,target"], "two methods are called 'target'"),
        (["--gin.evaluate.methods=[3]"], "a method is a name, or a mapping"),
        (["--gin.evaluate.methods=[{'name': 'bild', 'rollback': 'x'}]"], "rollback must lie"),
        (["--methods=token_v3", "--alphas="], "alphas is empty"),
        (["--methods=token_v3", "--alphas=nan"], "argument --alphas"),
        (["--gammas=1.5"], "argument --gammas"),
        (["--gin.evaluate.gammas=1.5"], "gamma must be a whole number of at least 1, got 1.5"),
        (["--gin.evaluate.gammas=None"], "gamma must be a whole number of at least 1, got None"),
        (["--gammas="], "gammas is empty"),
        (["--temperatures=inf"], "temperature must be a number of at least 0, got inf"),
        (["--gin.evaluate.temperatures=[nan]"], "not a value"),
        (["--seeds=-1"], "a seed must be a whole number"),
        (["--top_p=0"], "top_p must be above 0"),
        (["--batch_size=0"], "batch_size must be a whole number of at least 1, got 0"),
        (["--batch_size=3"], "batch_size = 3 must be a multiple of the 8 data-parallel devices"),
        (["--max_decode_length=0"], "max_decode_length must be a whole number of at least 1"),
        (["--num_examples=-1"], "num_examples must be a whole number of at least 1"),
        (["--gin.evaluate.input_buckets=(4,)"], "longer than the largest bucket, 4"),
        (["--gin.evaluate.input_buckets=4"], "longer than the largest bucket, 4"),
        (["--gin.evaluate.dtype='float8'"], "unknown dtype 'float8'"),
        (["--gin.evaluate.model_parallelism=3"], "model_parallelism=3 must be"),
        (["--split=tset"], "no split 'tset'"),
        (["--metrics=blue"], "unknown metric 'blue'"),
        (["--input_template={"], "input_template '{' is malformed"),
        (["--output_dir="], "output_dir must be a name, got ''"),
        (["--gin.evaluate.batch_size=None"], "batch_size must be a whole number"),
        (["--output_dir=pyproject.toml/x"], "pyproject.toml/x: Not a directory"),
        (["--gin.evaluate.target=5"], "target must be a name, got 5"),
        (["--gin.evaluate.gammas=(3,"], "a bracket or a quote is not closed"),
        (["--gin.gammas=(3,)"], "nothing refers to %gammas; did you mean --gin.evaluate.gammas?"),
    ],
)
def test_wrong_settings_are_one_line_before_any_work(home, capsys, monkeypatch, flags, message):
    compiled = []
    lower = jax.stages.Traced.lower
    monkeypatch.setattr(jax.stages.Traced, "lower", lambda *a: compiled.append(a) or lower(*a))
    assert evaluate(home, *flags) == 2
    assert_one_line(capsys, message)
    assert not any("decode" in str(a[0]) for a in compiled)
    assert not (home / "output" / "results.jsonl").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no example"),
        (b'{"inputs": "a", "targets": "b"}\n{"inputs": \n', "own.jsonl:2: not a JSON object"),
        (b'{"input": "a", "targets": "b"}\n', "own.jsonl:1: no field 'inputs', found 'input'"),
        (b'{"inputs": 3, "targets": "b"}\n', "own.jsonl:1: field 'inputs' must be text"),
        (b'{"inputs": "\xe9", "targets": "b"}\n', "own.jsonl:1: not UTF-8"),
    ],
)
def test_data_that_cannot_be_read_is_named_with_its_line(home, tmp_path, capsys, content, message):
    (tmp_path / "own.jsonl").write_bytes(content)
    assert evaluate(home, f"--test_file={tmp_path / 'own.jsonl'}") == 2
    assert_one_line(capsys, message)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "model.json").write_text("{"), "is not a model description"),
        (lambda folder: shutil.rmtree(folder / "params"), "has no params/ folder"),
        (lambda folder: largest(folder / "params").unlink(), "cannot be read"),
        (lambda folder: change_config(folder, emb_dim=48), "do not fit the model: shapes"),
    ],
    ids=["model.json", "no params", "a lost file", "another size"],
)
def test_a_damaged_model_is_named(home, tmp_path, capsys, damage, message):
    shutil.copytree(home / "target", tmp_path / "damaged")
    damage(tmp_path / "damaged")
    flags = [f"--target={tmp_path / 'damaged'}", f"--output_dir={tmp_path / 'output'}"]
    assert evaluate(home, *flags) == 2
    assert_one_line(capsys, message)
    assert not (tmp_path / "output" / "results.jsonl").exists()


def largest(folder):
    return max((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


def change_config(folder, **changes):
    description = json.loads((folder / "model.json").read_text())
    description["config"] |= changes
    (folder / "model.json").write_text(json.dumps(description))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--task=mine", "--test_file=nope.jsonl"], "no file 'nope.jsonl'"),
        (["--target=nowhere"], "no checkpoint at nowhere"),
        (["--drafter=nowhere"], "no checkpoint at nowhere"),
        (["--task=dem"], "unknown task 'dem': did you mean 'demo'?"),
        (["--task=demo", "--methods=tokn_v3"], "did you mean 'token_v3'?"),
        (["--task=demo", "--target=demo/target"], "evaluate.drafter has no value: give --drafter"),
        (["--task=demo"], "evaluate.target, evaluate.drafter have no value: give --target=…, --dr"),
    ],
)
def test_what_is_wrong_comes_before_what_is_missing(capsys, argv, message):
    assert main.main(["evaluate", *argv]) == 2
    assert_one_line(capsys, message)


def test_prompt_lookup_needs_no_drafter_model(home, tmp_path, capsys, monkeypatch):
    def stop(found, **options):
        raise ValueError(f"to be read: {found.path}")

    monkeypatch.setattr(loading, "read_params", stop)
    flags = ["--drafter=prompt_lookup", f"--output_dir={tmp_path}"]
    assert evaluate(home, *flags) == 2
    assert_one_line(capsys, f"to be read: {home / 'target'}")
    assert evaluate(home, *flags, "--methods=target,bild") == 2
    assert_one_line(capsys, "method 'bild' needs a drafter model, prompt_lookup is none")


def test_a_damaged_drafter_is_found_before_the_target_is_read(home, tmp_path, monkeypatch):
    shutil.copytree(home / "drafter", tmp_path / "damaged")
    change_config(tmp_path / "damaged", emb_dim=48)
    monkeypatch.setattr(loading, "read_params", lambda *a, **k: pytest.fail("target was read"))
    with pytest.raises(ValueError, match="damaged do not fit the model"):
        pair.load_models(home / "target", tmp_path / "damaged")


def test_own_data_and_models_need_no_other_flag(home, tmp_path, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise ValueError("models are to be loaded")

    monkeypatch.setattr(pair, "load_models", stop)
    monkeypatch.chdir(tmp_path)
    flags = [f"--target={home / 'target'}", f"--drafter={home / 'drafter'}"]
    flags += ["--task=mine", f"--test_file={home / 'data.jsonl'}"]
    assert main.main(["evaluate", *flags]) == 2
    assert_one_line(capsys, "models are to be loaded")
    settings = json.loads((tmp_path / "output" / "mine" / "settings.json").read_text())
    assert settings["max_decode_length"] == 128 and settings["num_examples"] is None


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("results.jsonl", b'{"id": "a"}\n{corrupt\n{"id": "b"}\n', "results.jsonl:2: not a JSON"),
        ("results.jsonl", b'{"id": "a"}\n{"name": "b"}\n', "results.jsonl:2: a point of ours has"),
        ("settings.json", b"{", "settings.json is damaged"),
        ("settings.json", b"{}", "holds another experiment: batch_size is 16 now"),
    ],
)
def test_a_damaged_output_folder_is_left_alone(
    home, tmp_path, capsys, monkeypatch, file, content, message
):
    def stop(*arguments, **options):
        raise ValueError("models are to be loaded")

    monkeypatch.setattr(pair, "load_models", stop)
    output = f"--output_dir={tmp_path / 'output'}"
    assert evaluate(home, output) == 2  # writes settings.json
    (tmp_path / "output" / "results.jsonl").write_bytes(b"")
    (tmp_path / "output" / file).write_bytes(content)
    capsys.readouterr()
    assert evaluate(home, output) == 2
    assert_one_line(capsys, message)
    assert (tmp_path / "output" / file).read_bytes() == content


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--tsak=demo"], "unknown flag --tsak"),
        (["evalute"], "unknown command 'evalute': did you mean 'evaluate'?"),
        (["rules", "tokn_v3"], "did you mean 'token_v3'?"),
        (["rules", "--gin.a=1"], "takes no gin bindings"),
        (["generate", "--rule=token_v4", "hello"], "did you mean"),
        (["generate", "--alpha=3", "hello"], "alpha = 3.0 is out of range"),
        (["generate", "--gamma=0", "hello"], "gamma must be"),
        (["generate", "--temperature=-1", "hello"], "temperature must be"),
        (["generate", "--rule=bild", "--temperature=1", "hello"], "bild is greedy"),
        (["generate", "--rule=lossy", "--verification=block", "hello"], "needs a rule with"),
        (
            ["train", "--gin.train.steps=1000"],
            "give --output_dir=…, --task=…, --gin.train.config=…",
        ),
        (["train", "--gin.train.step=1"], "did you mean 'steps'?"),
        (["train", "--steps=0"], "steps must be a whole number of at least 1, got 0"),
        (["train", "--task=dmeo"], "unknown task 'dmeo': did you mean 'demo'?"),
        (["train", "--batch_size=3"], "batch_size = 3 must be a multiple of the 8"),
        (["train", "--gin.train.learning_rate=-1"], "learning_rate must be a number above 0"),
        (["train", "--gin.train.optimizer='adam'"], "did you mean 'adamw'?"),
        (["train", "--gin.train.lengths=8"], "lengths must be {'inputs': n, 'targets': m}, got 8"),
        (["train", "--gin.train.config='small'"], "config must be a T5Config"),
        (["distill", "--target=nowhere"], "no checkpoint at nowhere"),
        (["distill", "--gin.distill.on_policy=-1"], "on_policy must lie between 0 and 1, got -1"),
        (["distill", "--gin.distill.divergence='kl'"], "known: forward_kl"),
        (["generate", "--alpha=nan", "hello"], "argument --alpha"),
        (["generate", "--seed=-1", "hello"], "a seed must be"),
        (["generate", "--target=nowhere", "hello"], "no checkpoint at nowhere"),
        (["generate", "--rule=target", "--threshold=1", "hello"], "'target' takes no threshold"),
        (["generate", "--drafter=nowhere", "hello"], "no checkpoint at nowhere"),
        (["generate", "--rule=bild", "--drafter=prompt_lookup", "hello"], "needs a drafter model"),
    ],
)
def test_other_commands_say_what_is_wrong(capsys, argv, message):
    assert main.main(argv) == 2
    assert_one_line(capsys, message)


def test_rules_lists_all_with_range_and_source(capsys):
    assert main.main(["rules"]) == 0
    printed = capsys.readouterr().out
    for rule in rules.REGISTRY.values():
        assert f"{rule.name}: {rule.summary}" in printed
        assert rule.source in printed
    assert main.main(["rules", "lossy"]) == 0
    printed = capsys.readouterr().out
    assert "alpha: 0 .. 1, default 0.3, lossless at 0" in printed
    assert "'normalised'" in printed and "token_v3" not in printed


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def (:", "SyntaxError: invalid syntax"),
        ("\n1 / 0", "ZeroDivisionError: division by zero ("),
    ],
)
def test_errors_of_imported_modules_are_one_line(tmp_path, capsys, monkeypatch, source, message):
    (tmp_path / "broken_rules.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert main.main(["rules", "--import=broken_rules"]) == 2
    assert_one_line(capsys, f"--import=broken_rules: {message}")


def test_help_and_rules_do_not_import_tensorflow():
    program = (
        "import sys; from spec_cascades import main\n"
        "for argv in (['rules'], ['evaluate', '--help'], ['generate', '--help'], []):\n"
        "    try: main.main(argv)\n"
        "    except SystemExit as end: assert not end.code\n"
        "assert not {'tensorflow', 'seqio', 'gin'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("file", resources.gin_files())
def test_every_shipped_gin_file_is_parsed_and_right(file, monkeypatch):
    make_mesh = partitioning.make_mesh
    monkeypatch.setattr(partitioning, "make_mesh", lambda n: make_mesh(n, jax.devices()[:1]))
    gin_utils.parse([file])
    for job in ("evaluate", "train", "distill"):
        gin_utils.check(job, without=["task", "target", "drafter"])


def test_a_callers_none_leaves_the_binding(home):
    gin_utils.parse(
        bindings=[
            "register_file_task.name='bound'",
            f"register_file_task.test={str(home / 'data.jsonl')!r}",
            "register_file_task.vocabulary='byte'",
        ]
    )
    assert gin_utils.call("register_file_task", vocabulary=None).name == "bound"


def test_gin_files_are_found_by_folder_too():
    gin_utils.parse(["gin/demo.gin"])
    assert gin_utils.bound("evaluate")["task"] == "demo"


def test_bindings_come_after_files_and_flags():
    options = arguments.parse(
        ["evaluate", "--gin_file=demo.gin", "--gammas=3,7", "--gin.evaluate.seeds=(1, 2)"]
    )
    flags = [arguments.Flag(name, "X", str, "") for name in ("gammas", "top_p")]
    lines = arguments.bindings(options, "evaluate", flags)
    assert lines == ["evaluate.gammas=[3, 7]", "evaluate.seeds=(1, 2)"]
    gin_utils.parse(options.gin_file, lines)
    bound = gin_utils.bound("evaluate")
    assert bound["gammas"] == [3, 7] and bound["seeds"] == (1, 2)


def test_a_file_task_is_declared_in_gin_alone(home):
    from spec_cascades import tasks

    lines = [
        "register_file_task.name = 'from_gin'",
        f"register_file_task.test = '{home / 'data.jsonl'}'",
        f"evaluate.target = '{home / 'target'}'",  # brings its vocabulary
        f"evaluate.drafter = '{home / 'drafter'}'",
        "evaluate.task = 'from_gin'",
    ]
    arguments.prepare(arguments.parse(["evaluate"]), [], lines, [])
    assert len(tasks.examples("from_gin", "test")) == 10


@pytest.mark.parametrize("form", ["orbax", "huggingface"])
def test_a_file_task_takes_whatever_vocabulary_its_models_take(home, tmp_path, form):
    from spec_cascades import tasks

    checkpoints.convert(home / "target", tmp_path / "model", to=form)
    named = {"orbax": "evaluate.vocabulary = 'byte'"}  # The checkpoint carries none.
    lines = [
        f"register_file_task.name = 'from_{form}'",
        f"register_file_task.test = '{home / 'data.jsonl'}'",
        f"evaluate.target = '{tmp_path / 'model'}'",
        "evaluate.drafter = 'prompt_lookup'",
        f"evaluate.task = 'from_{form}'",
        named.get(form, f"register_file_task.vocabulary = '{tmp_path / 'model'}'"),
    ]
    arguments.prepare(arguments.parse(["evaluate"]), [], lines, [])
    assert tasks.vocabulary(f"from_{form}").vocab_size >= 259


RULE = """
from spec_cascades import rules

@rules.register_rule(
    alpha=rules.Parameter("alpha", low=0, high=1, default=0.5, meaning="share", lossless=0),
    summary="half way", source="this test",
)
def half_way(d, alpha):
    return (1 - alpha)[..., None] * d.p + alpha[..., None] * d.q
"""


def test_a_rule_of_ones_own_is_listed_and_runs(home, tmp_path, monkeypatch, capsys):
    (tmp_path / "my_rules.py").write_text(RULE)
    monkeypatch.chdir(tmp_path)
    make_mesh = partitioning.make_mesh
    monkeypatch.setattr(partitioning, "make_mesh", lambda n: make_mesh(n, jax.devices()[:1]))
    try:
        assert main.main(["rules", "--import=my_rules", "half_way"]) == 0
        assert "half_way: half way" in capsys.readouterr().out
        generate = ["generate", "--import=my_rules", "--rule=half_way", "--alpha=0.25"]
        generate += [f"--target={home / 'target'}", f"--drafter={home / 'drafter'}"]
        assert main.main([*generate, "--max_decode_length=6", "--gamma=2", "some text"]) == 0
        printed = capsys.readouterr()
        assert "target calls" in printed.err and "drafts stood" in printed.err
    finally:
        rules.registry._RULES.pop("half_way", None)
