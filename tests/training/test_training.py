"""The training loop: what a step does, what a killed run leaves, and what is refused."""

import dataclasses
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spec_cascades import checkpoints, partitioning
from spec_cascades.models.t5 import T5, T5Config
from spec_cascades.training import data, loop, optimization
from spec_cascades.training import run as jobs

CONFIG = T5Config(
    vocab_size=32,
    emb_dim=8,
    num_heads=2,
    head_dim=4,
    mlp_dim=16,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout_rate=0.1,
)
MODEL = T5(CONFIG)


@pytest.fixture(scope="module")
def params():
    return jax.device_get(MODEL.init(jax.random.key(0)))


def copy_batches(start_step, rows=8, length=8):
    """Endless batches of a task that can be learned: copy the input."""
    for step in itertools.count(start_step):
        rng = np.random.default_rng((7, step))
        targets = rng.integers(3, CONFIG.vocab_size, (rows, length)).astype(np.int32)
        targets[:, -1] = 1
        yield {
            "encoder_input_tokens": targets,
            "decoder_input_tokens": np.pad(targets, ((0, 0), (1, 0)))[:, :-1],
            "decoder_target_tokens": targets,
            "decoder_loss_weights": np.ones((rows, length), np.float32),
        }


def run(params, run_dir, settings, batches=copy_batches, **options):
    options = {"mesh": partitioning.make_mesh(devices=jax.devices()[:1])} | options
    loss_fn = jobs.supervised_loss(MODEL)
    return loop.fit(MODEL, params, loss_fn, batches, run_dir=run_dir, settings=settings, **options)


def metrics(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


SETTINGS = optimization.Settings(
    steps=12,
    warmup_steps=2,
    learning_rate=1e-2,
    checkpoint_every=4,
    report_every=2,
    validate_every=6,
)


class Killed(Exception):
    pass


def killed_at(step):
    def batches(start_step):
        for index, batch in enumerate(copy_batches(start_step), start=start_step):
            if index == step:
                raise Killed
            yield batch

    return batches


@pytest.fixture(scope="module")
def uninterrupted(params, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("uninterrupted")
    return run_dir, run(params, run_dir, SETTINGS, validation=lambda: [next(copy_batches(1000))])


def test_a_killed_run_ends_with_bit_identical_parameters(params, tmp_path, uninterrupted):
    with pytest.raises(Killed):
        run(params, tmp_path, SETTINGS, killed_at(7))
    assert [row["step"] for row in metrics(tmp_path)] == [2, 4, 6]
    # Other initial parameters: the checkpoint of step 4 must replace them.
    resumed = run(jax.tree.map(np.zeros_like, params), tmp_path, SETTINGS)
    jax.tree.map(np.testing.assert_array_equal, resumed, uninterrupted[1])
    # The report of step 6 was made again, not twice.
    assert [row["step"] for row in metrics(tmp_path)] == [2, 4, 6, 8, 10, 12]


def test_a_resumed_run_keeps_its_metrics_on_disk_before_it_reports(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"step": step, "loss": 1.0}) + "\n" for step in (2, 4, 6)]
    path.write_text("".join(lines) + '{"step": 8, "lo')
    log = loop._MetricsLog(path, 4, 12, "train")
    assert path.read_text() == "".join(lines[:2])
    log.close()


def test_a_finished_run_returns_its_parameters_without_a_step(params, uninterrupted):
    run_dir, finished = uninterrupted
    again = run(params, run_dir, SETTINGS, killed_at(0))
    jax.tree.map(np.testing.assert_array_equal, again, finished)


def test_metrics_hold_loss_speed_and_validation_loss(uninterrupted):
    rows = metrics(uninterrupted[0])
    assert [row["step"] for row in rows if "validation_loss" in row] == [6, 12]
    reports = [row for row in rows if "loss" in row]
    assert all(row["tokens_per_second"] > 0 and 0 <= row["accuracy"] <= 1 for row in reports)
    assert reports[-1]["loss"] < reports[0]["loss"]


def test_a_mesh_of_eight_devices_learns_what_one_device_learns(params, tmp_path, uninterrupted):
    sharded = run(params, tmp_path, SETTINGS, mesh=partitioning.make_mesh(model_parallelism=4))
    kernel = sharded["decoder"]["logits_dense"]["kernel"]
    assert kernel.sharding.spec == jax.sharding.PartitionSpec(None, "model")
    for a, b in zip(jax.tree.leaves(sharded), jax.tree.leaves(uninterrupted[1]), strict=True):
        # Adam divides by the gradient's size: where that is near 0, rounding decides the sign.
        assert np.quantile(np.abs(np.asarray(a) - np.asarray(b)), 0.9) < 1e-3


def test_adamw_learns_too(params, tmp_path):
    settings = optimization.Settings(
        steps=30,
        warmup_steps=0,
        learning_rate=0.01,
        optimizer="adamw",
        weight_decay=0.01,
        report_every=10,
    )
    run(params, tmp_path, settings)
    rows = metrics(tmp_path)
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.05


def test_the_loss_is_the_mean_over_weighted_tokens():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 5)).astype(np.float32)
    targets = np.array([[1, 2, 3], [4, 0, 0]])
    weights = np.array([[1, 1, 1], [1, 0, 0]], np.float32)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    picked = [-np.log(p[i, j, targets[i, j]]) for i, j in [(0, 0), (0, 1), (0, 2), (1, 0)]]
    uniform = [-np.log(p[i, j]).mean() for i, j in [(0, 0), (0, 1), (0, 2), (1, 0)]]
    loss, sums = jobs.cross_entropy(logits, targets, weights)
    np.testing.assert_allclose(loss, np.mean(picked), rtol=1e-5)
    np.testing.assert_allclose(sums["loss"], np.sum(picked), rtol=1e-5)
    assert float(sums["tokens"]) == 4
    smoothed, sums = jobs.cross_entropy(logits, targets, weights, label_smoothing=0.2)
    expected = 0.8 * np.mean(picked) + 0.2 * np.mean(uniform)
    np.testing.assert_allclose(smoothed, expected, rtol=1e-5)
    np.testing.assert_allclose(sums["loss"], np.sum(picked), rtol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "at_half", "at_end"),
    [
        ("constant", 1, 1),
        ("linear", 0.5, 0),
        ("cosine", 0.5, 0),
        ("rsqrt", 60**-0.5 * 20**0.5, 0.4264),
    ],
)
def test_learning_rate_schedules(schedule, at_half, at_end):
    rate = optimization.learning_rate_schedule(
        optimization.Settings(steps=110, warmup_steps=20, learning_rate=1.0, schedule=schedule)
    )
    np.testing.assert_allclose(rate(0), 0.05, rtol=1e-5)
    np.testing.assert_allclose(rate(9), 0.5)
    np.testing.assert_allclose(rate(19), 1.0)
    np.testing.assert_allclose(rate(20), 1.0)
    half = 65 if schedule != "rsqrt" else 60
    np.testing.assert_allclose(rate(half), at_half, atol=1e-6)
    np.testing.assert_allclose(rate(110), at_end, atol=1e-4)


@pytest.mark.parametrize("warmup_steps", [0, 1, 2, 10])
def test_the_first_step_has_a_rate_and_the_warm_up_ends_at_the_peak(warmup_steps):
    settings = optimization.Settings(steps=10, warmup_steps=warmup_steps, learning_rate=1.0)
    rate = optimization.learning_rate_schedule(settings)
    assert rate(0) > 0
    np.testing.assert_allclose(rate(max(0, warmup_steps - 1)), 1.0)


def test_the_warm_up_follows_from_the_number_of_steps():
    found = [optimization.warmup(optimization.Settings(steps=n)) for n in (3, 200, 100_000)]
    assert found == [0, 20, 500]


def test_grouping_by_length_keeps_every_row_once_and_trims():
    rng = np.random.default_rng(0)
    batches, rows = [], []
    for _ in range(20):
        inputs, targets = (np.zeros((4, 40), np.int32) for _ in range(2))
        for i in range(4):
            length = rng.integers(3, 38)
            inputs[i, :length] = rng.integers(1, 99)
            targets[i, : length + rng.integers(-2, 3)] = rng.integers(1, 99)
            rows.append((inputs[i].sum(), targets[i].sum()))
        batches.append(
            {
                "encoder_input_tokens": inputs,
                "decoder_input_tokens": targets,
                "decoder_target_tokens": targets,
                "decoder_loss_weights": (targets > 0).astype(np.float32),
            }
        )
    grouped = list(data.group_by_length(batches))
    assert len(grouped) == 20 and all(len(b["encoder_input_tokens"]) == 4 for b in grouped)
    found = [
        (x.sum(), y.sum())
        for b in grouped
        for x, y in zip(b["encoder_input_tokens"], b["decoder_target_tokens"], strict=True)
    ]
    assert sorted(found) == sorted(rows)
    widths = [b["decoder_target_tokens"].shape[1] for b in grouped]
    assert {w % 8 for w in widths} == {0} and np.mean(widths) < 0.75 * 40
    for b in grouped:
        assert b["decoder_target_tokens"][:, -8:].any()
        assert b["decoder_loss_weights"].shape == b["decoder_target_tokens"].shape


def test_grouping_taken_up_in_the_middle_gives_the_same_batches():
    batches = list(itertools.islice(copy_batches(0), 3 * data.POOL))
    whole = list(data.group_by_length(batches))
    rest = list(data.group_by_length(batches[data.POOL :], first_pool=1))
    for a, b in zip(whole[data.POOL :], rest, strict=True):
        jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "steep"}, "unknown schedule 'steep': .*known: constant"),
        ({"optimizer": "sgd"}, "unknown optimizer 'sgd': .*known: adamw, adafactor"),
        ({"weight_decay": 0.1}, "weight_decay=0.1 needs optimizer='adamw'"),
        ({"weight_decay": -1, "optimizer": "adamw"}, "weight_decay must be a number of at least 0"),
        ({"weight_decay": "0.1", "optimizer": "adamw"}, "weight_decay must be .* got '0.1'"),
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"warmup_steps": 11}, "warmup_steps must be a whole number from 0 to steps = 10"),
    ],
)
def test_settings_out_of_range_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        optimization.Settings(**{"steps": 10, "warmup_steps": 0} | changes)


def test_data_that_ends_too_early_is_an_error(params, tmp_path):
    with pytest.raises(ValueError, match="the training data ended after 2 batches; steps=12"):
        run(params, tmp_path, SETTINGS, lambda step: itertools.islice(copy_batches(step), 2))


def test_a_loss_that_is_not_finite_stops_the_run(params, tmp_path):
    with pytest.raises(ValueError, match="the loss is nan at step 2"):
        run(jax.tree.map(lambda x: np.full_like(x, np.nan), params), tmp_path, SETTINGS)


@pytest.mark.parametrize("checkpoint_every", [1, 2])
def test_parameters_that_are_not_finite_never_become_a_checkpoint(
    params, tmp_path, checkpoint_every
):
    """Reports, which look at the loss, are rarer than checkpoints."""

    def batches(start_step):
        for step, batch in enumerate(copy_batches(start_step), start=start_step):
            if step >= 4:
                batch["decoder_loss_weights"] = batch["decoder_loss_weights"] * np.nan
            yield batch

    settings = dataclasses.replace(SETTINGS, checkpoint_every=checkpoint_every, report_every=12)
    step = 4 + checkpoint_every
    with pytest.raises(ValueError, match=rf"finite at step {step} .*checkpoint 4 is the last"):
        run(params, tmp_path, settings, batches)
    with checkpoints.manager(tmp_path / "checkpoints") as manager:
        assert manager.latest_step() == 4
        like = loop.init_state(
            MODEL, optimization.make_optimizer(settings), params, partitioning.make_mesh()
        )
        kept = checkpoints.restore_state(manager, like)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(kept.params))


@pytest.mark.parametrize("devices", [1, 8])
def test_the_callers_parameters_survive_also_as_frozen_ones(params, tmp_path, devices):
    mine = jax.tree.map(jnp.asarray, params)
    settings = dataclasses.replace(SETTINGS, steps=2)
    mesh = partitioning.make_mesh(devices=jax.devices()[:devices])
    learned = run(mine, tmp_path, settings, mesh=mesh, frozen=mine if devices == 1 else None)
    jax.tree.map(np.testing.assert_array_equal, mine, params)
    assert any(
        (np.asarray(a) != b).any()
        for a, b in zip(jax.tree.leaves(learned), jax.tree.leaves(params), strict=True)
    )


def test_rows_must_divide_over_the_replicas(params, tmp_path):
    with pytest.raises(ValueError, match="a batch of 8 rows does not divide over 3 data replicas"):
        run(params, tmp_path, SETTINGS, mesh=partitioning.make_mesh(devices=jax.devices()[:3]))


def test_a_checkpoint_of_another_model_is_refused(tmp_path, uninterrupted):
    other = T5(T5Config(**(vars(CONFIG) | {"mlp_dim": 24})))
    optimizer = optimization.make_optimizer(SETTINGS)
    mesh = partitioning.make_mesh(devices=jax.devices()[:1])
    state = loop.init_state(other, optimizer, other.init(jax.random.key(0)), mesh)
    with checkpoints.manager(uninterrupted[0] / "checkpoints") as manager:
        with pytest.raises(ValueError, match="checkpoint 12 in .* cannot be restored"):
            checkpoints.restore_state(manager, state)


def test_a_run_folder_of_other_settings_is_refused(tmp_path):
    jobs.claim_run_dir(tmp_path, {"config": CONFIG, "steps": 3})
    jobs.claim_run_dir(tmp_path, {"config": CONFIG, "steps": 3})
    with pytest.raises(ValueError, match=r"other settings \(steps: 3 -> 4\)"):
        jobs.claim_run_dir(tmp_path, {"config": CONFIG, "steps": 4})


@pytest.mark.parametrize("content", ["", '{"steps": 3', "[3]"])
def test_a_damaged_run_json_is_named(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match=r"run\.json is damaged"):
        jobs.claim_run_dir(tmp_path, {"steps": 3})
    assert (tmp_path / "run.json").read_text() == content


def test_train_writes_a_model_folder_and_says_what_is_wrong(tmp_path):
    from spec_cascades import tasks

    file = tmp_path / "data.jsonl"
    words = ["a dog runs", "two cats sleep", "a red car", "the man walks"]
    file.write_text("".join(json.dumps({"inputs": w, "targets": w}) + "\n" for w in words))
    tasks.register_file_task("train_test", train=str(file), validation=str(file), vocabulary="byte")
    config = T5Config(**(vars(CONFIG) | {"vocab_size": 384}))
    arguments = dict(
        output_dir=str(tmp_path / "run"),
        task="train_test",
        config=config,
        lengths={"inputs": 16, "targets": 16},
        steps=3,
        warmup_steps=1,
        batch_size=8,
        validation_batches=1,
        export_dtype="bfloat16",
    )
    folder = jobs.train(jobs.TrainRun(**arguments))
    loaded = checkpoints.load(folder)
    assert loaded.model == T5(config)
    assert loaded.vocabulary.vocab_size == 259
    assert "validation_loss" in metrics(tmp_path / "run")[-1]
    with pytest.raises(ValueError, match=r"other settings \(steps: 3 -> 4\)"):
        jobs.train(jobs.TrainRun(**arguments | {"steps": 4}))
    whole = file.read_text()
    for content, said in [
        (whole + whole.splitlines()[0] + "\n", r" \(4 examples then, 5 now\)"),
        (whole.replace("cats", "dogs"), ""),
    ]:
        file.write_text(content)
        tasks.register_file_task(
            "train_test", train=str(file), validation=str(file), vocabulary="byte"
        )
        message = f"the train split of task 'train_test' has changed since .* began{said}: "
        with pytest.raises(ValueError, match=message):
            jobs.train(jobs.TrainRun(**arguments))
    with pytest.raises(ValueError, match="vocabulary has 259 pieces, but the embedding 32"):
        jobs.train(jobs.TrainRun(**arguments | {"config": CONFIG}))
    with pytest.raises(ValueError, match="unknown task 'train_tset'.*'train_test'"):
        jobs.train(jobs.TrainRun(**arguments | {"task": "train_tset"}))
