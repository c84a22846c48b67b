"""The command line: parsing, help, one-line errors before any work, and the shipped gin files."""

import subprocess
import sys

import jax
import pytest
import tiny

from spec_cascades import gin_utils, main, partitioning, resources, rules
from spec_cascades.cli import arguments


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
        (["--target=/nowhere"], "no model folder at /nowhere"),
        (["--gin.evaluate.methods=[{'name': 'lossy', 'verification': 'block'}]"], "needs a rule"),
        (["--import=no_such_module"], "no module 'no_such_module'"),
        (["--vocabulary=demo"], "have different vocabularies"),
    ],
)
def test_errors_are_one_line_and_come_first(home, capsys, monkeypatch, flags, message):
    compiled = []
    lower = jax.stages.Traced.lower
    monkeypatch.setattr(jax.stages.Traced, "lower", lambda *a: compiled.append(a) or lower(*a))
    assert evaluate(home, *flags) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and printed.count("\n") == 1
    assert message in printed
    assert not any("decode" in str(a[0]) for a in compiled)
    assert not (home / "output" / "results.jsonl").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
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
            ["train", "--gin.train.steps=1"],
            "give --output_dir=…, --task=…, --gin.train.config=…",
        ),
        (["train", "--gin.train.step=1"], "did you mean 'steps'?"),
    ],
)
def test_other_commands_say_what_is_wrong(capsys, argv, message):
    assert main.main(argv) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and printed.count("\n") == 1
    assert message in printed


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
def test_every_shipped_gin_file_is_parsed(file):
    gin_utils.parse([file])


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
