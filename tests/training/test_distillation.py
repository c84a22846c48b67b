"""Divergences against their definitions, and a drafter that approaches its target."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny import teacher_forced

from spec_cascades import checkpoints
from spec_cascades.checkpoints import loading
from spec_cascades.models.t5 import T5, T5Config
from spec_cascades.text import vocabularies
from spec_cascades.training import distillation

SIZES = dict(
    num_heads=2, head_dim=4, mlp_dim=16, num_encoder_layers=1, num_decoder_layers=1, emb_dim=8
)
TARGET = T5(T5Config(vocab_size=32, **SIZES))
DRAFTER = T5(T5Config(vocab_size=40, **SIZES | {"emb_dim": 4}))
NAMES = sorted(distillation.DIVERGENCES)


def numpy_divergence(name, p, q):
    """The definition, in float64, term by term."""
    kl = lambda a, b: sum(x * np.log(x / y) for x, y in zip(a, b, strict=True))
    m = (p + q) / 2
    return {
        "forward_kl": lambda: kl(p, q),
        "reverse_kl": lambda: kl(q, p),
        "jsd": lambda: (kl(p, m) + kl(q, m)) / 2,
        "total_variation": lambda: sum(max(0.0, x - y) for x, y in zip(p, q, strict=True)),
    }[name]()


@pytest.mark.parametrize("name", NAMES)
def test_divergence_is_its_definition_and_zero_at_equality(name):
    rng = np.random.default_rng(0)
    divergence = distillation.get_divergence(name)
    p, q = rng.dirichlet(np.ones(6), size=(2, 5))
    expected = [numpy_divergence(name, a, b) for a, b in zip(p, q, strict=True)]
    found = divergence(jnp.log(jnp.float32(p)), jnp.log(jnp.float32(q)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert min(expected) > 0
    np.testing.assert_allclose(divergence(jnp.log(p), jnp.log(p)), 0, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_divergence_and_gradient_stay_finite_for_near_one_hot_distributions(name):
    log_p = jax.nn.log_softmax(jnp.array([200.0, 0.0, -200.0]))
    fn = lambda logits: distillation.get_divergence(name)(log_p, jax.nn.log_softmax(logits))
    value, gradient = jax.value_and_grad(fn)(jnp.array([-200.0, 200.0, 0.0]))
    assert np.isfinite(value) and np.isfinite(gradient).all()


def a_batch(rows=4, length=6, seed=0):
    targets = np.random.default_rng(seed).integers(3, 30, (rows, length)).astype(np.int32)
    weights = np.ones((rows, length), np.float32)
    weights[0, 3:] = 0
    return {
        "encoder_input_tokens": targets,
        "decoder_input_tokens": np.pad(targets, ((0, 0), (1, 0)))[:, :-1],
        "decoder_target_tokens": targets,
        "decoder_loss_weights": weights,
    }


@pytest.fixture(scope="module")
def both_params():
    return TARGET.init(jax.random.key(0)), DRAFTER.init(jax.random.key(1))


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_step_decreases_the_divergence(name, both_params):
    target_params, params = both_params
    loss_fn = distillation.distillation_loss(TARGET, DRAFTER, name)
    value = jax.jit(lambda p: loss_fn(p, target_params, a_batch(), None)[0])
    gradient = jax.jit(jax.grad(value))(params)
    norm = np.sqrt(sum(float((g**2).sum()) for g in jax.tree.leaves(gradient)))
    stepped = jax.tree.map(lambda p, g: p - 1e-2 * g / norm, params, gradient)
    # To first order the loss falls by 1e-2 * norm.
    fall = float(value(params)) - float(value(stepped))
    assert 0.5 * 1e-2 * norm < fall < 1.5 * 1e-2 * norm


def test_the_loss_is_a_mean_over_weighted_tokens_of_the_shared_vocabulary(both_params):
    target_params, params = both_params
    batch = a_batch()
    loss, sums = distillation.distillation_loss(TARGET, DRAFTER, "forward_kl", 30)(
        params, target_params, batch, None
    )
    inputs = batch["encoder_input_tokens"], batch["decoder_input_tokens"]
    p, q = (
        jax.nn.softmax(teacher_forced(model, x, *inputs)[..., :30])
        for model, x in [(TARGET, target_params), (DRAFTER, params)]
    )
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    kept = np.argwhere(batch["decoder_loss_weights"] > 0)
    assert float(sums["tokens"]) == len(kept) == 21
    expected = np.mean([numpy_divergence("forward_kl", p[i, j], q[i, j]) for i, j in kept])
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    acceptance = np.sum([np.minimum(p[i, j], q[i, j]).sum() for i, j in kept])
    np.testing.assert_allclose(sums["acceptance"], acceptance, rtol=1e-4)


def test_the_target_does_not_learn(both_params):
    target_params, params = both_params
    loss_fn = distillation.distillation_loss(TARGET, DRAFTER)
    gradient = jax.grad(lambda t: loss_fn(params, t, a_batch(), None)[0])(target_params)
    assert all((g == 0).all() for g in jax.tree.leaves(gradient))


def test_generated_targets_are_shifted_and_weighted():
    tokens = np.array([[5, 6, 1, 9], [7, 8, 9, 4]])
    batch = distillation.with_targets(
        {"encoder_input_tokens": np.ones((2, 3))}, tokens, np.array([3, 4])
    )
    assert batch["decoder_target_tokens"].tolist() == [[5, 6, 1, 0], [7, 8, 9, 4]]
    assert batch["decoder_input_tokens"].tolist() == [[0, 5, 6, 1], [0, 7, 8, 9]]
    assert batch["decoder_loss_weights"].tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]


def test_on_policy_text_is_the_drafters_and_repeats(both_params):
    _, params = both_params
    prepare = distillation.on_policy_text(DRAFTER, fraction=0.5, vocab_size=30, seed=3)
    batch = a_batch()
    written = [prepare(step, params, batch) for step in range(12)]
    replaced = [b is not batch for b in written]
    assert 2 <= sum(replaced) <= 10
    texts = [b["decoder_target_tokens"] for b, new in zip(written, replaced, strict=True) if new]
    assert max(t.max() for t in texts) < 30
    assert not np.array_equal(texts[0], texts[1])
    again = distillation.on_policy_text(DRAFTER, fraction=0.5, vocab_size=30, seed=3)
    for step in range(12):
        jax.tree.map(np.testing.assert_array_equal, again(step, params, batch), written[step])
    # Greedy text is what teacher forcing on it predicts.
    greedy = distillation.on_policy_text(DRAFTER, fraction=1, temperature=0.0)(0, params, batch)
    logits = teacher_forced(
        DRAFTER, params, batch["encoder_input_tokens"], greedy["decoder_input_tokens"]
    )
    kept = greedy["decoder_loss_weights"] > 0
    assert (np.argmax(logits, -1) == greedy["decoder_target_tokens"])[kept].all()


def test_unknown_names_and_ranges_are_refused():
    with pytest.raises(
        ValueError, match="unknown divergence 'forwrd_kl': did you mean 'forward_kl'"
    ):
        distillation.get_divergence("forwrd_kl")
    with pytest.raises(ValueError, match="on_policy must lie between 0 and 1, got 1.5"):
        distillation.on_policy_text(DRAFTER, fraction=1.5)


def test_distill_raises_acceptance_and_resumes(tmp_path):
    from spec_cascades import tasks

    data = tmp_path / "data.jsonl"
    words = ["a dog runs", "two cats sleep", "a red car", "the man walks"]
    data.write_text("".join(json.dumps({"inputs": w, "targets": w}) + "\n" for w in words))
    tasks.register_file_task(
        "distill_test", train=str(data), validation=str(data), vocabulary="byte"
    )
    config = T5Config(vocab_size=384, **SIZES)
    # A target that is nearly certain of its next token, whatever it reads: easy to imitate.
    params = jax.tree.map(jnp.zeros_like, T5(config).init(jax.random.key(0)))
    params["decoder"]["decoder_norm"]["scale"] += 1
    params["token_embedder"]["embedding"] += 1
    params["decoder"]["logits_dense"]["kernel"] = (
        params["decoder"]["logits_dense"]["kernel"].at[:, 9].set(1)
    )
    checkpoints.save(tmp_path / "target", T5(config), params, vocabularies.load("byte"))
    arguments = dict(
        task="distill_test",
        target=str(tmp_path / "target"),
        config=config,
        lengths={"inputs": 16, "targets": 16},
        steps=24,
        learning_rate=0.02,
        warmup_steps=0,
        schedule="constant",
        batch_size=8,
        on_policy=0.5,
        divergence="jsd",
        checkpoint_every=8,
        report_every=4,
        validate_every=8,
        validation_batches=1,
    )
    folder = distillation.distill(
        distillation.DistillRun(output_dir=str(tmp_path / "run"), **arguments)
    )
    rows = [json.loads(x) for x in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    acceptance = [row["validation_acceptance"] for row in rows if "validation_acceptance" in row]
    assert len(acceptance) == 3 and acceptance[-1] > acceptance[0] + 0.1
    assert checkpoints.load(folder).model == T5(config)
    changed = jax.tree.map(lambda x: x + 1, params)
    checkpoints.save(tmp_path / "other", T5(config), changed, vocabularies.load("byte"))
    shutil.move(tmp_path / "target", tmp_path / "first")
    shutil.move(tmp_path / "other", tmp_path / "target")
    with pytest.raises(ValueError, match="the target .*target has changed since the run in"):
        distillation.distill(distillation.DistillRun(output_dir=str(tmp_path / "run"), **arguments))
    shutil.move(tmp_path / "target", tmp_path / "other")
    shutil.move(tmp_path / "first", tmp_path / "target")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "read_params", lambda *a, **k: pytest.fail("target was read"))
        with pytest.raises(ValueError, match=r"other settings \(steps: 24 -> 25\)"):
            distillation.distill(
                distillation.DistillRun(
                    output_dir=str(tmp_path / "run"), **arguments | {"steps": 25}
                )
            )


def test_distill_refuses_a_target_of_another_vocabulary(tmp_path, monkeypatch):
    from spec_cascades import tasks

    text = [f"sentence number {i} of a little text" for i in range(60)]
    vocabulary = vocabularies.train_sentencepiece(text, tmp_path / "small.model", 30)
    checkpoints.save(tmp_path / "target", DRAFTER, DRAFTER.init(jax.random.key(0)), vocabulary)
    data = tmp_path / "data.jsonl"
    data.write_text('{"inputs": "a", "targets": "b"}\n')
    tasks.register_file_task("other_vocabulary", train=str(data), vocabulary="byte")
    monkeypatch.setattr(loading, "read_params", lambda *a, **k: pytest.fail("target was read"))
    with pytest.raises(ValueError, match="have different vocabularies"):
        distillation.distill(
            distillation.DistillRun(
                output_dir=str(tmp_path / "run"),
                task="other_vocabulary",
                target=str(tmp_path / "target"),
                config=T5Config(vocab_size=384, **SIZES),
                lengths={"inputs": 8, "targets": 8},
                steps=1,
                warmup_steps=0,
                validation_split=None,
            )
        )
    assert not (tmp_path / "run").exists()
