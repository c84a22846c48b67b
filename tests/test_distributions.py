"""Logits to working and raw distributions, and drawing from them."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from spec_cascades import distributions as dist

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_numbers_whatever_runs_before():
    global RNG
    RNG = np.random.default_rng(0)


working = jax.jit(
    dist.working, static_argnames=("top_k", "top_p"), compiler_options=oracles.QUICK_COMPILE
)


def assert_matches(logits, temperature, top_k=0, top_p=1.0, atol=1e-6):
    logits = np.asarray(logits, np.float32)
    per_row = np.broadcast_to(np.asarray(temperature, np.float32), logits.shape[:-1])
    got = working(jnp.asarray(logits), per_row, top_k=top_k, top_p=top_p)
    want = np.stack(
        [
            oracles.working(row, t, top_k, top_p)
            for row, t in zip(
                logits.reshape(-1, logits.shape[-1]), per_row.reshape(-1), strict=True
            )
        ]
    ).reshape(logits.shape)
    np.testing.assert_allclose(got, want, atol=atol)
    assert got.dtype == jnp.float32
    return np.asarray(got)


@pytest.mark.parametrize(
    "top_k, top_p",
    [(0, 1.0), (1, 1.0), (3, 1.0), (99, 1.0), (0, 0.9), (0, 1e-6), (3, 0.6), (7, 0.4)],
)
def test_temperature_then_top_k_then_top_p(top_k, top_p):
    logits = 3 * RNG.normal(size=(40, 7))
    for temperature in (0.3, 1.0, 2.5):
        got = assert_matches(logits, temperature, top_k, top_p)
        if top_k:
            assert ((got > 0).sum(axis=-1) <= top_k).all()


def test_temperature_comes_before_top_p():
    # At T = 1 two tokens make 90 %; at T = 0.5 the first alone does.
    logits = np.log([[0.7, 0.2, 0.1]])
    assert (assert_matches(logits, 1.0, top_p=0.9)[0] > 0).sum() == 2
    assert (assert_matches(logits, 0.5, top_p=0.9)[0] > 0).sum() == 1


def test_top_k_comes_before_top_p():
    # Of the top two, renormalised, the first has 60 %: enough. Of all four it has not.
    logits = np.log([[0.3, 0.2, 0.25, 0.25]])
    assert (assert_matches(logits, 1.0, top_k=2, top_p=0.54)[0] > 0).sum() == 1
    assert (assert_matches(logits, 1.0, top_p=0.54)[0] > 0).sum() == 2


def test_temperature_of_each_row_zero_among_them():
    logits = RNG.normal(size=(6, 5))
    temperature = np.array([0.0, 1.0, 0.5, 0.0, 1e-4, 2.0])
    got = assert_matches(logits, temperature)
    assert (got[[0, 3, 4]].max(axis=-1) == 1).all()
    # The rows do not see each other.
    for row, t in enumerate(temperature):
        np.testing.assert_array_equal(working(jnp.asarray(logits[row]), t), got[row])


def test_one_temperature_for_all_positions_of_a_row():
    logits = RNG.normal(size=(2, 3, 5))
    assert_matches(logits, np.array([[0.5], [2.0]]))


@pytest.mark.parametrize("temperature", [1.01e-4, 1e-3, 0.01])
@pytest.mark.parametrize("top_k, top_p", [(0, 1.0), (3, 0.5)])
def test_near_zero_temperature_does_not_overflow(temperature, top_k, top_p):
    logits = np.array([[80.0, -80.0, 79.0, 0.0], [-300.0, -301.0, -300.5, -310.0]])
    got = assert_matches(logits, temperature, top_k, top_p)
    assert np.isfinite(got).all()


@pytest.mark.parametrize("offset", [0.0, -3e4, 3e4])
def test_filters_do_not_depend_on_a_common_offset_of_the_logits(offset):
    logits = np.array([[1.0, 3.0, 2.0, 0.0]]) + offset
    for temperature in (1.0, 1e-3):
        got = working(jnp.asarray(logits, jnp.float32), temperature, 2, 1.0)
        want = oracles.working(np.array([1.0, 3.0, 2.0, 0.0]), temperature, 2)
        np.testing.assert_allclose(got[0], want, atol=1e-2)


def test_greedy_ties_break_to_the_lowest_id():
    logits = jnp.array([[1.0, 3.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0]])
    np.testing.assert_array_equal(jnp.argmax(working(logits, 0.0), axis=-1), [1, 0])
    np.testing.assert_array_equal(dist.greedy_one_hot(logits).sum(axis=-1), [1, 1])


def test_filter_ties_break_to_the_lowest_id():
    logits = np.array([[1.0, 3.0, 3.0, 3.0]])
    np.testing.assert_allclose(assert_matches(logits, 1.0, top_k=2), [[0, 0.5, 0.5, 0]], atol=1e-6)
    uniform = np.zeros((1, 4))
    np.testing.assert_allclose(
        assert_matches(uniform, 1.0, top_p=0.5), [[0.5, 0.5, 0, 0]], atol=1e-6
    )


def test_padded_tables_give_no_probability_above_the_real_vocabulary():
    logits = RNG.normal(size=(3, 8)).astype(np.float32)
    logits[:, 5:] = 50.0  # the padding of a trained table holds anything
    for width in (6, 8, 10):
        fitted = dist.fit_vocabulary(jnp.asarray(logits), width, 5)
        assert fitted.shape == (3, width)
        np.testing.assert_allclose(
            dist.raw(fitted)[:, :5], oracles.softmax(logits[:, :5]), atol=1e-6
        )
        for temperature in (0.0, 0.7, 30.0, 1e9):
            for top_k, top_p in ((0, 1.0), (7, 0.999999)):
                got = np.asarray(working(fitted, temperature, top_k, top_p))
                assert (got[:, 5:] == 0).all()
                np.testing.assert_allclose(got.sum(axis=-1), 1, atol=1e-6)
        assert (dist.raw(fitted)[:, 5:] == 0).all()


def test_fit_vocabulary_narrower_than_the_real_vocabulary():
    logits = RNG.normal(size=(2, 8)).astype(np.float32)
    np.testing.assert_array_equal(dist.fit_vocabulary(jnp.asarray(logits), 6, 8), logits[:, :6])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_soundness_is_that_of_real_ids_alone(bad):
    """NaN and infinity make no distribution; minus infinity masks an id, and may not mask all."""
    logits = np.zeros((4, 6), np.float32)
    logits[1, 2] = bad
    logits[2, 5] = bad
    logits[3, :5] = -np.inf
    wanted = [True, bad == -np.inf, True, False]
    np.testing.assert_array_equal(dist.sound(jnp.asarray(logits), 5), wanted)


def test_bfloat16_logits_give_float32_distributions():
    logits = jnp.asarray(RNG.normal(size=(2, 5)), jnp.bfloat16)
    for got in (dist.raw(logits), working(logits, 1.0), working(logits, 0.0)):
        assert got.dtype == jnp.float32
        np.testing.assert_allclose(got.sum(axis=-1), 1, atol=1e-6)


def test_entropy_and_total_variation():
    p, q = (np.stack([oracles.softmax(RNG.normal(size=6)) for _ in range(4)]) for _ in range(2))
    p[0] = np.eye(6)[2]
    np.testing.assert_allclose(
        dist.entropy(jnp.asarray(p)), [oracles.entropy(x) for x in p], atol=1e-6
    )
    want = [0.5 * np.abs(a - b).sum() for a, b in zip(p, q, strict=True)]
    np.testing.assert_allclose(
        dist.total_variation(jnp.asarray(p), jnp.asarray(q)), want, atol=1e-6
    )


# ------------------------------------------------------------------------------------------------
# sample
# ------------------------------------------------------------------------------------------------

draw = jax.jit(dist.sample)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_sample_hits_each_id_in_proportion(scale):
    weights = np.array([0.1, 0.0, 0.25, 0.05, 0.0, 0.6], np.float32) * scale
    u = (np.arange(20000) + 0.5) / 20000
    uniforms = np.stack([np.zeros_like(u), u], axis=-1).astype(np.float32)
    tokens = draw(jnp.broadcast_to(weights, (20000, 6)), jnp.asarray(uniforms))
    share = np.bincount(tokens, minlength=6) / 20000
    np.testing.assert_allclose(share, [0.1, 0.0, 0.25, 0.05, 0.0, 0.6], atol=1.01e-4)


def test_sample_over_many_chunks_is_exact():
    # 300 ids are three chunks; a grid of both uniforms gives each id its share.
    weights = RNG.gamma(0.3, size=300).astype(np.float32)
    weights[100:140] = 0
    u, v = (np.arange(200) + 0.5) / 200, (np.arange(1000) + 0.5) / 1000
    grid = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.float32)
    tokens = np.asarray(draw(jnp.broadcast_to(weights, (len(grid), 300)), jnp.asarray(grid)))
    share = np.bincount(tokens, minlength=300) / len(grid)
    assert share.shape == (300,)
    assert (share[weights == 0] == 0).all()
    law = weights / weights.sum()
    # The grid's own resolution: of the chunk's share, and of the id's share of its chunk.
    chunk = np.repeat(np.pad(law, (0, 84)).reshape(3, 128).sum(axis=1), 128)[:300]
    assert (np.abs(share - law) <= law / chunk / 200 + chunk / 1000 + 1e-6).all()


EDGES = np.array([0.0, 2.0**-24, 0.5, 1 - 2.0**-23, 1 - 2.0**-24], np.float32)


@pytest.mark.parametrize("size", [3, 128, 129, 700])
def test_sample_never_draws_an_id_of_weight_zero(size):
    weights = np.zeros((60, size), np.float32)
    for row in weights:
        ids = RNG.choice(size, size=RNG.integers(1, min(size, 5)), replace=False)
        row[ids] = RNG.gamma(0.1, size=len(ids)) * 10.0 ** RNG.integers(-20, 3) + 1e-30
    for first in EDGES:
        for second in EDGES:
            uniforms = jnp.broadcast_to(jnp.array([first, second]), (60, 2))
            tokens = np.asarray(draw(jnp.asarray(weights), uniforms))
            assert (weights[np.arange(60), tokens] > 0).all()


def test_sample_of_a_one_hot_is_its_id_whatever_the_numbers():
    ids = np.array([0, 127, 128, 255, 256, 299])
    weights = jnp.asarray(np.eye(300, dtype=np.float32)[ids])
    for first in EDGES:
        for second in EDGES:
            got = draw(weights, jnp.broadcast_to(jnp.array([first, second]), (6, 2)))
            np.testing.assert_array_equal(got, ids)


def test_sample_of_a_large_vocabulary_in_float32_rounding():
    # The parallel cumulative sum of 32128 equal weights is rounded: all draws must be valid ids.
    weights = jnp.full((64, 32128), 1 / 32128, jnp.float32).at[:, 32100:].set(0)
    u = np.linspace(0, 1 - 2.0**-24, 64, dtype=np.float32)
    tokens = np.asarray(draw(weights, jnp.stack([jnp.asarray(u), jnp.asarray(u[::-1])], -1)))
    assert tokens.min() >= 0 and tokens.max() < 32100
    # The chunk follows the first number.
    np.testing.assert_allclose(tokens / 32100, u, atol=2 * 128 / 32100)
