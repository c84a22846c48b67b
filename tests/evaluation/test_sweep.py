"""Points of a sweep on toy models: each setting operates, and none recompiles that need not."""

import dataclasses
import pathlib

import jax
import numpy as np
import pytest

from spec_cascades import checkpoints, decoding, partitioning
from spec_cascades.checkpoints import pair
from spec_cascades.decoding import batching, methods
from spec_cascades.evaluation import sweep
from spec_cascades.evaluation.point import Point, plan
from spec_cascades.testing import ToyModel

CONFIG = decoding.DecodeConfig(max_decode_length=24, vocab_size=30)


@pytest.fixture(scope="module")
def models():
    from spec_cascades.text import vocabularies

    model, vocabulary = ToyModel(vocab_size=30), vocabularies.load("byte")
    target, noise = (model.init(jax.random.key(seed)) for seed in (0, 1))
    loaded = [
        checkpoints.Loaded(model, params, vocabulary, pathlib.Path("toy"))
        for params in (target, 0.8 * target + 0.3 * noise)
    ]
    return pair.Models(*loaded, partitioning.make_mesh(1, jax.devices()[:1]))


@pytest.fixture(scope="module")
def data():
    from spec_cascades import tasks

    rng = np.random.default_rng(0)
    # Inputs repeat themselves, which is what prompt look-up lives on.
    inputs = [np.tile(rng.integers(3, 30, 3).astype(np.int32), 4) for _ in range(6)]
    examples = [
        tasks.Example(index=i, inputs=row, inputs_text="", targets_text="abc", targets=row)
        for i, row in enumerate(inputs)
    ]
    batches = batching.make_batches(inputs, batch_size=4, buckets=[16])
    return {"toy": sweep.TaskData(examples, batches)}


@pytest.fixture(autouse=True)
def no_scores_nor_step_times(monkeypatch):
    quality = sweep.scoring.Quality("bleu", 0.0, 0.0, {})
    monkeypatch.setattr(sweep.scoring, "score", lambda *a: quality)
    monkeypatch.setattr(sweep.timing, "step_seconds", lambda *a, **k: 1.0)


@pytest.fixture(scope="module")
def run(models, data):
    """Runs a point: (its line, tokens and origins of all examples). Compiles nothing twice."""
    runners = {}

    def run(point, **config):
        config = dataclasses.replace(CONFIG, **config)
        if config not in runners:
            runners[config] = sweep.Sweep(models, data, config=config, latency_batches=1)
        line, predictions = runners[config].decode(point)
        return line, [(p["tokens"], p["origins"]) for p in predictions]

    return run


def make_point(description, *, gamma=3, temperature=1.0, seed=0):
    method = methods.parse(description)
    return Point(
        task="toy",
        method=method,
        value=method.values[0],
        gamma=gamma if method.uses_gamma else None,
        temperature=temperature,
        seed=seed,
    )


LOSSY = {"name": "lossy", "alphas": [0.5]}
V3 = {"name": "token_v3", "alphas": [0.5]}
SCORE = {"name": "sequence_cascade", "thresholds": [-3.0]}
QUANTILE = SCORE | {"score": "quantile"}


@pytest.mark.parametrize(
    ("base", "changed", "echoed"),
    [
        (V3, V3 | {"alphas": [0.95]}, {"alpha": 0.95}),
        (V3, V3 | {"verification": "block"}, {"verification": "block"}),
        (V3, V3 | {"bonus": "rule"}, {"bonus": "rule"}),
        (V3, V3 | {"strict_prefix": 24}, {"strict_prefix": 24}),
        (V3, {"name": "speculative", "drafter": "prompt_lookup"}, {"drafter": "prompt_lookup"}),
        (LOSSY, LOSSY | {"beta": 3.0}, {"beta": 3.0}),
        ("typical", {"name": "typical", "delta": 0.01}, {"delta": 0.01}),
        ("typical", {"name": "typical", "eps": 0.01}, {"eps": 0.01}),
        (SCORE, SCORE | {"score": "min"}, {"score": "min"}),
        (QUANTILE, QUANTILE | {"quantile": 0.8}, {"score": "quantile", "quantile": 0.8}),
    ],
)
def test_each_option_operates_and_is_echoed(run, base, changed, echoed):
    before, after = (run(make_point(method)) for method in (base, changed))
    assert before[1] != after[1]
    assert {name: after[0][name] for name in echoed} == echoed
    assert before[0]["id"] != after[0]["id"]


@pytest.mark.parametrize(
    ("change", "config"),
    [
        ({"gamma": 5}, {}),
        ({"temperature": 0.3}, {}),
        ({"seed": 1}, {}),
        ({}, {"top_k": 2}),
        ({}, {"top_p": 0.4}),
    ],
)
def test_each_sampling_setting_operates_and_is_echoed(run, change, config):
    before = run(make_point(V3))
    after = run(make_point(V3, **change), **config)
    assert before[1] != after[1]
    for name, value in (change | config).items():
        assert after[0][name] == value


BILD = {"name": "bild", "fallbacks": [0.1]}


@pytest.mark.parametrize(
    ("base", "changed", "echoed"),
    [
        (BILD, BILD | {"fallbacks": [0.9]}, {"fallback": 0.9}),
        ({"name": "bild"}, {"name": "bild", "rollback": 0.5}, {"rollback": 0.5}),
        (BILD, BILD | {"max_draft": 2}, {"max_draft": 2}),
    ],
)
def test_bild_settings_operate_and_are_echoed(run, base, changed, echoed):
    before, after = (run(make_point(method, temperature=0.0))[0] for method in (base, changed))
    assert before["target_calls"] != after["target_calls"]
    assert {name: after[name] for name in echoed} == echoed
    assert before["id"] != after["id"]


def test_a_sweep_over_twenty_alphas_compiles_once(models, data):
    points = plan(
        ["toy"],
        [methods.parse({"name": "token_v3", "alphas": [i / 20 for i in range(20)]})],
        gammas=(2,),
        temperatures=(0.0, 0.7),
        seeds=(0,),
    )
    assert len(points) == 40
    runner = sweep.Sweep(models, data, config=CONFIG, latency_batches=1)
    lowered = []
    lower = jax.stages.Traced.lower
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.stages.Traced, "lower", lambda *a: lowered.append(a) or lower(*a))
        for point in points:
            runner.decode(point)
    # The method itself, and the target that its latency is measured against.
    assert runner.compilations == 2
    assert sum("decode" in traced[0].fun_name for traced in lowered) == 2


def test_two_devices_give_what_one_gives(models, data, run):
    mesh = partitioning.make_mesh(1, jax.devices()[:2])
    runner = sweep.Sweep(
        dataclasses.replace(models, mesh=mesh), data, config=CONFIG, latency_batches=1
    )
    line, predictions = runner.decode(make_point(V3))
    alone, expected = run(make_point(V3))
    assert [(p["tokens"], p["origins"]) for p in predictions] == expected
    assert line["accepted_at"] == alone["accepted_at"]


def test_plan_runs_each_point_once():
    chosen = [methods.parse(name) for name in ("target", "bild", "speculative")]
    points = plan(["a"], chosen, gammas=(1, 3), temperatures=(0.0, 1.0), seeds=(0, 1))
    found = [(p.method.name, p.gamma, p.temperature, p.seed, p.value) for p in points]
    assert len(set(found)) == len(found)
    assert ("target", None, 0.0, 0, None) in found and ("target", None, 1.0, 1, None) in found
    assert ("speculative", 3, 1.0, 1, None) in found
    assert ("speculative", 3, 0.0, 1, None) not in found
    assert not [f for f in found if f[0] == "bild" and f[2] > 0]


def test_gammas_of_a_method_alone():
    chosen = [methods.parse({"name": "speculative", "gammas": [7]}), methods.parse("typical")]
    points = plan(["a"], chosen, gammas=(1,), temperatures=(0.0,), seeds=(0,))
    assert [point.gamma for point in points] == [7, 1]
