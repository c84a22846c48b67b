"""The real `t5x/infer.py`, `t5x/eval.py` and `InteractiveModel`, run as T5X's users run them."""

import json
import pathlib

import numpy as np
import pytest

from spec_cascades.decoding import Origin

HERE = pathlib.Path(__file__).parent
GIN = HERE.parent.parent / "gin" / "t5x"
TASK = "tiny_reverse"
TWO_BY_TWO = (
    "--gin.partitioning.PjitPartitioner.num_partitions=None",
    "--gin.partitioning.PjitPartitioner.model_parallel_submesh=(1, 1, 1, 2)",
)
SCANNED = "--gin.t5x_tiny.config.scanned=True"


class Runs:
    """Runs of the scripts on the tiny task, each in a folder of its own."""

    def __init__(self, scripts, t5x, root):
        self._scripts, self._root = scripts, root
        self._t5x = pathlib.Path(t5x.__file__).parent

    def run(self, script, *flags, task=TASK, **settings):
        """Runs `infer` or `eval` with further flags; returns the folder of its output."""
        output = self._root / f"run_{len(list(self._root.iterdir()))}"
        output.mkdir()
        text = self._scripts.run(
            self._t5x / f"{script}.py",
            *flags,
            f"--gin.MIXTURE_OR_TASK_NAME='{task}'",
            "--gin.TASK_FEATURE_LENGTHS={'inputs': 16, 'targets': 20}",
            f"--gin.{script.upper()}_OUTPUT_DIR='{output}'",
            "--gin.utils.DatasetConfig.batch_size=4",
            **settings,
        )
        (output / "log").write_text(text)
        return output

    def cascade(self, script, target, draft, *flags, devices=1, **settings):
        """Our model; two checkpoints, float32."""
        return self.run(
            script,
            f"--gin_file={HERE}/tiny_cascade.gin",
            f"--gin_file={GIN}/{script}.gin",
            f"--gin.CHECKPOINT_PATH='{target}'",
            f"--gin.DRAFT_CHECKPOINT_PATH={draft!r}",
            "--gin.DTYPE='float32'",
            *(TWO_BY_TWO if devices == 4 else ()),
            *flags,
            devices=devices,
            **settings,
        )

    def reference(self, script, target, *flags, **settings):
        """T5X's own model, greedy, float32."""
        return self.run(
            script,
            f"--gin_file={HERE}/tiny_reference.gin",
            f"--gin_file=t5x/configs/runs/{script}.gin",
            f"--gin.CHECKPOINT_PATH='{target}'",
            "--gin.utils.RestoreCheckpointConfig.dtype='float32'",
            *flags,
            **settings,
        )


def predictions(output, mode="predict", task=TASK):
    return (output / f"{task}-{mode}.jsonl-00000-of-00001").read_bytes()


def records(output, mode="predict_with_aux"):
    return [json.loads(line) for line in predictions(output, mode).splitlines()]


def eval_metrics(output, task=TASK):
    (path,) = output.glob(f"inference_eval/{task}-metrics.jsonl")
    values = {k: v for line in path.read_text().splitlines() for k, v in json.loads(line).items()}
    return {name: value for name, value in values.items() if name != "step"}


@pytest.fixture(scope="session")
def runs(scripts, t5x, tmp_path_factory):
    return Runs(scripts, t5x, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def greedy(runs, stored):
    """What T5X's own greedy decoding writes, without and with scanned layers."""
    plain = runs.reference("infer", stored("target"))
    scanned = runs.reference(
        "infer", stored("target", "scalable"), "--gin.t5x_tiny.reference_model.scanned=True"
    )
    return {"t5": predictions(plain), "scalable": predictions(scanned)}


def test_the_references_differ_in_every_row(greedy):
    for text in greedy.values():
        rows = [json.loads(line)["prediction"] for line in text.splitlines()]
        assert len(rows) == 10 and len(set(rows)) == 10


@pytest.mark.parametrize(
    ("target", "draft", "devices"),
    [
        (("target", "t5", "legacy"), ("draft", "t5", "orbax"), 1),
        (("target", "t5", "orbax"), ("draft", "t5", "legacy"), 4),
        (("target", "scalable", "orbax"), ("draft", "scalable", "legacy"), 1),
        (("target", "scalable", "legacy"), ("draft", "scalable", "orbax"), 4),
    ],
    ids=lambda value: "-".join(value[1:]) if isinstance(value, tuple) else f"{value} devices",
)
def test_greedy_speculation_writes_what_t5x_writes(runs, greedy, stored, target, draft, devices):
    flags = [SCANNED] if target[1] == "scalable" else []
    output = runs.cascade(
        "infer",
        stored(*target),
        stored(*draft),
        "--gin.infer.mode='predict'",
        *flags,
        devices=devices,
    )
    assert predictions(output) == greedy[target[1]]
    if devices == 4:
        layouts = (output / "model-info.txt").read_text()
        assert "partition spec (None, 'model')" in layouts
        assert "(2, 2)" in (output / "log").read_text()


def test_the_input_can_draft(runs, greedy, stored):
    output = runs.cascade("infer", stored("target"), None, "--gin.DRAFT='prompt_lookup'")
    rows = [json.loads(line) for line in greedy["t5"].splitlines()]
    assert [row["prediction"] for row in records(output)] == [row["prediction"] for row in rows]
    assert all(row["aux"]["draft_calls"] == 0 for row in records(output))


def test_a_cascade_reports_calls_and_origins_for_each_row(runs, greedy, stored):
    output = runs.cascade(
        "infer",
        stored("target", kind="orbax"),
        stored("draft", kind="orbax"),
        "--gin.RULE='token_v3'",
        "--gin.ALPHA=0.9",
    )
    rows = [row["aux"] for row in records(output)]
    assert len(rows) == 10
    for row in rows:
        origins = np.array(row["origins"])
        emitted = (origins != Origin.NONE).sum()
        assert row["accepted"] == (origins == Origin.DRAFT).sum()
        assert emitted == row["accepted"] + row["target_calls"] or origins[-1] == Origin.DRAFT
        assert row["accepted"] <= row["drafted"] <= 5 * row["target_calls"]
        assert row["scores"] == pytest.approx(sum(row["token_scores"]), abs=1e-3)
        assert (np.array(row["token_scores"])[emitted:] == 0).all()
    assert sum(row["accepted"] for row in rows) > 0
    texts = [row["prediction"] for row in records(output)]
    assert texts != [json.loads(line)["prediction"] for line in greedy["t5"].splitlines()]


def test_eval_computes_the_tasks_metrics(runs, stored):
    ours = runs.cascade("eval", stored("target"), stored("draft"))
    theirs = runs.reference("eval", stored("target"))
    assert eval_metrics(ours) == pytest.approx(eval_metrics(theirs), abs=1e-4)
    assert set(eval_metrics(ours)) == {"length", "likelihood"}


def test_eval_metrics_may_read_the_auxiliary_output(runs, stored):
    task = f"{TASK}_aux"
    ours = runs.cascade(
        "eval", stored("target"), stored("target"), "--gin.DRAFT=%TARGET", task=task
    )
    assert eval_metrics(ours, task) == {"acceptance": 1.0}


def test_interactive_model_answers_from_one_merged_checkpoint(scripts, greedy, stored, tmp_path):
    rows = [json.loads(line) for line in greedy["t5"].splitlines()]
    inputs = [row["inputs"]["inputs_pretokenized"] for row in rows]
    scripts.run(
        HERE / "interactive.py", stored("target"), stored("draft"), tmp_path, json.dumps(inputs)
    )
    answers = json.loads((tmp_path / "answers.json").read_text())
    assert answers["predictions"] == [row["prediction"] for row in rows]
    assert all(1 <= calls <= 20 for calls in answers["target_calls"])
    assert all(score < 0 for score in answers["scores"])


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--gin.RULE='token_v33'", "unknown rule 'token_v33': did you mean 'token_v3'?"),
        ("--gin.ALPHA=0.3", "rule 'speculative' takes no alpha"),
        ("--gin.DRAFT_CHECKPOINT_PATH=%gin.REQUIRED", "DRAFT_CHECKPOINT_PATH/macro.value"),
        ("--gin.DRAFT_CHECKPOINT_PATH='nowhere/checkpoint_1'", "nowhere/checkpoint_1 is no T5X"),
        ("--gin.TARGET=%gin.REQUIRED", "TARGET/macro.value"),
    ],
)
def test_mistakes_are_named(runs, stored, flag, message):
    output = runs.cascade("infer", stored("target"), stored("draft"), flag, fails=True)
    assert message in (output / "log").read_text()
