"""The law of whole outputs, from many rows of the compiled loop, against exact enumeration.

20,000 rows of one input, each with its own key, write up to three tokens. The counts of all
possible outputs are compared with the exact law by a G-test. Seeds are fixed; the threshold is
the 1 - 1e-5 quantile of the chi-square law (Wilson and Hilferty's approximation), so that about
one wrong alarm in 5,000 choices of seeds would be expected for the whole file.
"""

import collections

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import toys

from spec_cascades import rules
from spec_cascades.decoding import ModelDrafter
from spec_cascades.testing import ToyModel

ROWS, CAP, VOCAB = 20_000, 3, 4
TOY = ToyModel(VOCAB)


def assert_follows(outputs, law):
    """G-test of observed outputs against their exact law."""
    counts = collections.Counter(outputs)
    assert not set(counts) - set(law), "an output of probability 0"
    assert sum(law.values()) == pytest.approx(1)
    total = sum(counts.values())
    common = [key for key, share in law.items() if share * total >= 10]
    observed = [counts[key] for key in common]
    expected = [law[key] * total for key in common]
    rest = total - sum(expected)
    if rest >= 10:  # rare outputs together
        observed.append(total - sum(observed))
        expected.append(rest)
    observed, expected = np.array(observed, float), np.array(expected)
    terms = np.where(observed > 0, observed * np.log(np.maximum(observed, 1) / expected), 0)
    g = 2 * terms.sum()
    freedom = len(observed) - 1
    assert freedom > 8, "too few outcomes to tell"
    z = 4.265  # 1 - 1e-5
    threshold = freedom * (1 - 2 / (9 * freedom) + z * np.sqrt(2 / (9 * freedom))) ** 3
    assert g < threshold, f"G = {g:.1f} with {freedom} degrees of freedom"


def outputs_of(result):
    tokens, lengths = np.asarray(result.tokens), np.asarray(result.lengths)
    return [tuple(row[:n].tolist()) for row, n in zip(tokens, lengths, strict=True)]


def prefix_laws(params, inputs, name, alpha, temperature, filters):
    q_logits, p_logits = (toys.logits_after(t, inputs[0]) for t in (params[1], params[0]))

    def at(prefix):
        return toys.distributions(q_logits, p_logits, prefix, temperature, **filters)

    return (
        lambda prefix: oracles.PI[name](*at(prefix), alpha),
        lambda prefix: at(prefix)[0],
        lambda prefix: at(prefix)[1],
    )


CASES = [
    # rule, alpha, verification, bonus, gamma, temperature, filters
    ("speculative", 0.0, "token", "target", 2, 1.0, {}),
    ("speculative", 0.0, "block", "target", 3, 0.7, {}),
    ("speculative", 0.0, "block", "rule", 2, 1.0, {"top_k": 3}),
    ("token_v3", 0.5, "token", "rule", 2, 1.0, {}),
    ("token_v3", 0.5, "block", "rule", 1, 0.7, {}),
    ("token_v3", 0.5, "block", "target", 2, 1.0, {"top_p": 0.9}),
    ("opt", 0.2, "token", "target", 2, 0.7, {}),
    ("mixture", 0.5, "token", "rule", 1, 1.0, {"top_k": 3, "top_p": 0.95}),
]


@pytest.mark.parametrize("name, alpha, method, bonus, gamma, temperature, filters", CASES)
def test_outputs_of_the_loop_follow_their_law(
    name, alpha, method, bonus, gamma, temperature, filters
):
    params = toys.tables(21, 0.4, eos=0.5, vocab=VOCAB, model=TOY)
    inputs = jnp.broadcast_to(toys.ragged_inputs(1, 21), (ROWS, 6))
    result = toys.speculative(
        TOY,
        ModelDrafter(TOY),
        rules.get(name),
        *params,
        inputs,
        toys.keys(ROWS, seed=5),
        alpha=alpha,
        temperature=temperature,
        config=toys.config(CAP, **filters),
        gamma=gamma,
        verification=method,
        bonus=bonus,
    )
    pi, q, p = prefix_laws(params, inputs, name, alpha, temperature, filters)
    wanted = oracles.speculative_law(pi, q, p, VOCAB, CAP, gamma, method, bonus, toys.EOS)
    if bonus == "rule" or name == "speculative":  # then it is simply the chain of `pi`
        chain = oracles.chain_law(pi, VOCAB, CAP, toys.EOS)
        assert max(abs(chain[k] - wanted.get(k, 0)) for k in chain) < 1e-9
    assert_follows(outputs_of(result), wanted)


def test_the_test_can_fail():
    """The same outputs against the law of another temperature, and of the other bonus."""
    params = toys.tables(21, 0.4, eos=0.5, vocab=VOCAB, model=TOY)
    inputs = jnp.broadcast_to(toys.ragged_inputs(1, 21), (ROWS, 6))
    pi, q, p = prefix_laws(params, inputs, "token_v3", 0.5, 1.0, {})
    laws = {
        bonus: oracles.speculative_law(pi, q, p, VOCAB, CAP, 2, "token", bonus, toys.EOS)
        for bonus in ("rule", "target")
    }
    outputs = list(laws["rule"])
    drawn = np.random.default_rng(0).choice(len(outputs), ROWS, p=list(laws["rule"].values()))
    outputs = [outputs[i] for i in drawn]
    assert_follows(outputs, laws["rule"])
    with pytest.raises(AssertionError, match="G = "):
        assert_follows(outputs, laws["target"])
    chilled = prefix_laws(params, inputs, "token_v3", 0.5, 0.9, {})[0]
    with pytest.raises(AssertionError, match="G = "):
        assert_follows(outputs, oracles.chain_law(chilled, VOCAB, CAP, toys.EOS))


@pytest.mark.parametrize("filters", [{}, {"top_k": 3, "top_p": 0.95}])
def test_autoregressive_outputs_follow_the_model(filters):
    params = toys.tables(22, eos=0.5, vocab=VOCAB, model=TOY)
    inputs = jnp.broadcast_to(toys.ragged_inputs(1, 22), (ROWS, 6))
    result = toys.autoregressive(
        TOY,
        params[0],
        inputs,
        toys.keys(ROWS, seed=6),
        temperature=0.7,
        config=toys.config(CAP, **filters),
    )
    _, _, p = prefix_laws(params, inputs, "speculative", 0.0, 0.7, filters)
    assert_follows(outputs_of(result), oracles.chain_law(p, VOCAB, CAP, toys.EOS))


@pytest.mark.parametrize("name, alpha", [("chow", 0.5), ("opt", 0.2)])
def test_token_cascade_outputs_follow_pi(name, alpha):
    params = toys.tables(23, 0.4, eos=0.5, vocab=VOCAB, model=TOY)
    inputs = jnp.broadcast_to(toys.ragged_inputs(1, 23), (ROWS, 6))
    result = toys.token_cascade(
        TOY,
        TOY,
        rules.get(name),
        *params,
        inputs,
        toys.keys(ROWS, seed=7),
        alpha=alpha,
        temperature=1.0,
        config=toys.config(CAP),
    )
    pi, _, _ = prefix_laws(params, inputs, name, alpha, 1.0, {})
    assert_follows(outputs_of(result), oracles.chain_law(pi, VOCAB, CAP, toys.EOS))


def test_lossy_outputs_follow_their_closed_form():
    """With beta = "normalised" the law is max(min(q, p / (1 - alpha)), p / beta)."""
    params = toys.tables(24, 0.4, eos=0.5, vocab=VOCAB, model=TOY)
    inputs = jnp.broadcast_to(toys.ragged_inputs(1, 24), (ROWS, 6))
    alpha = 0.4
    result = toys.speculative(
        TOY,
        ModelDrafter(TOY),
        rules.get("lossy", beta="normalised"),
        *params,
        inputs,
        toys.keys(ROWS, seed=8),
        alpha=alpha,
        temperature=1.0,
        config=toys.config(2),
        gamma=2,
    )
    _, q, p = prefix_laws(params, inputs, "speculative", 0.0, 1.0, {})

    def pi(prefix):
        inverse = oracles.normalising_inverse_beta(q(prefix), p(prefix), alpha)
        return oracles.lossy_closed_form(q(prefix), p(prefix), alpha, inverse)

    wanted = oracles.speculative_law(pi, q, p, VOCAB, 2, 2, "token", "target", toys.EOS)
    assert_follows(outputs_of(result), wanted)
