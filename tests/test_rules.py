"""Deferral rules: every formula against an independent numpy version, and the registry."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from spec_cascades import rules
from spec_cascades.rules import Distributions, Parameter, mentored

BUILT_IN = [
    n
    for n in rules.names()
    if rules.REGISTRY[n].function.__module__.startswith(rules.__name__ + ".")
]
WITH_PI = [name for name in BUILT_IN if rules.REGISTRY[name].has_target_distribution]
WITH_ALPHA = [name for name in BUILT_IN if rules.REGISTRY[name].alpha is not None]
INF = math.inf

jitted_pi = jax.jit(
    lambda rule, d, alpha, positions: rule.target_distribution(d, alpha, positions),
    static_argnums=0,
    compiler_options=oracles.QUICK_COMPILE,
)
jitted_verdict = jax.jit(
    lambda rule, d, tokens, alpha, positions: rule.verdict(d, tokens, alpha, positions),
    static_argnums=0,
    compiler_options=oracles.QUICK_COMPILE,
)


@functools.cache
def pairs(vocab, count=400, seed=0):
    """Random model pairs, float64 [count, vocab] each: soft, filtered, greedy and equal ones."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        sharpness = rng.choice([0.5, 1.5, 4.0])
        q, p = sharpness * rng.normal(size=(2, vocab))
        if i % 5 == 0:
            q = p + 0.1 * rng.normal(size=vocab)
        if i % 11 == 0:
            q = p
        temperature = rng.choice([0.0, 0.7, 1.0, 1.0])
        top_k = rng.choice([0, 0, max(1, vocab // 2)])
        found.append(
            (
                oracles.working(q, temperature, top_k),
                oracles.working(p, temperature, top_k),
                oracles.softmax(q),
                oracles.softmax(p),
            )
        )
    # Rounded as the code sees them, so that comparisons fall on the same side.
    return tuple(np.float32(np.stack(x)).astype(np.float64) for x in zip(*found, strict=True))


def as_jax(d):
    return Distributions(*(jnp.asarray(x, jnp.float32) for x in d))


def pi_of(name, d, alpha, positions=None, **settings):
    count = len(d[0])
    positions = jnp.zeros(count, jnp.int32) if positions is None else positions
    return np.asarray(
        jitted_pi(rules.get(name, **settings), as_jax(d), jnp.float32(alpha), positions)
    )


def sweep(name):
    alpha = rules.REGISTRY[name].alpha
    if alpha is None:
        return [0.0]
    return sorted({alpha.low, *alpha.grid, alpha.default, alpha.high} - {0.0}) + [0.0]


@pytest.mark.parametrize("vocab", [5, 150])
@pytest.mark.parametrize("name", WITH_PI)
def test_pi_is_that_of_the_formula(name, vocab):
    d = pairs(vocab)
    for alpha in sweep(name):
        got = pi_of(name, d, alpha)
        assert got.dtype == np.float32 and np.isfinite(got).all() and (got >= 0).all()
        np.testing.assert_allclose(got.sum(axis=-1), 1, atol=2e-5)
        wanted = np.stack(
            [oracles.PI[name](*row, np.float32(alpha)) for row in zip(*d, strict=True)]
        )
        wrong = np.abs(got - wanted).max(axis=-1) > 2e-5
        # A comparison that float64 decides by less than float32 can hold may go either way.
        rows = list(zip(*d, strict=True))
        assert all(_near_a_tie(name, rows[i], alpha) for i in np.flatnonzero(wrong))
        assert wrong.mean() < 0.02


def _near_a_tie(name, row, alpha):
    q, p, qh, ph = row
    margin = 2e-6
    lenient = oracles.PI[name](q, p, qh, ph, alpha + margin)
    strict = oracles.PI[name](q, p, qh, ph, alpha - margin)
    return np.abs(lenient - strict).max() > 1e-5


@pytest.mark.parametrize("name", [n for n in WITH_ALPHA if n in WITH_PI])
def test_the_lossless_end_is_exactly_lossless(name):
    lossless = rules.REGISTRY[name].alpha.lossless
    assert lossless is not None
    d = pairs(6)
    got = pi_of(name, d, lossless)
    np.testing.assert_allclose(got, d[1], atol=3e-6 if name != "speculative" else 0)
    if rules.REGISTRY[name].kind == "choice":
        same_top = np.isclose(d[0], d[1]).all(axis=1)
        np.testing.assert_array_equal(got[~same_top], np.float32(d[1])[~same_top])


@pytest.mark.parametrize("name", [n for n in WITH_ALPHA if rules.REGISTRY[n].kind == "verdict"])
def test_the_lossless_end_of_a_verdict_is_speculative_sampling(name):
    rule = rules.get(name)
    d = pairs(5)
    for x in range(5):
        accept, law = judge(rule, d, x, rule.alpha.lossless)
        drafted = d[0][:, x] > 0
        for i in np.flatnonzero(drafted):
            wanted, replacement = oracles.rejection(d[1][i], d[0][i], x)
            assert accept[i] == pytest.approx(wanted, abs=1e-5)
            if wanted < 0.999:
                np.testing.assert_allclose(law[i], replacement, atol=1e-4)


DRAFTER_ENDS = {
    "mixture": 1.0,
    "chow": 1.0,
    "chow_log": math.log(6) + 1e-3,
    "diff": 1.0,
    "diff_log": math.log(6) + 1e-3,
    "opt": INF,
    "opt_log": INF,
    "token_v1": 1.0,
    "token_v2": 1.0,
    "token_v3": 1.0,
    "token_v3_lossless_tail": 1.0,
}


@pytest.mark.parametrize("name", [n for n in WITH_ALPHA if n in WITH_PI])
def test_the_other_end_is_the_drafter_alone(name):
    d = pairs(6)
    np.testing.assert_allclose(pi_of(name, d, DRAFTER_ENDS[name]), d[0], atol=3e-6)


@pytest.mark.parametrize("name", ["lossy", "mentored"])
def test_the_other_end_of_a_verdict_accepts_everything(name):
    rule = rules.get(name)
    d = pairs(5)
    for x in range(5):
        accept, _ = judge(rule, d, x, rule.alpha.high)
        assert (accept[d[0][:, x] > 0] == 1).all()


@pytest.mark.parametrize("name", ["opt", "opt_log", "diff_log"])
@pytest.mark.parametrize("alpha", [INF, -INF])
def test_infinite_alpha_where_the_models_agree(name, alpha):
    one = np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])
    got = pi_of(name, (one, one, one, one), alpha)
    np.testing.assert_allclose(got, one, atol=1e-7)
    # Equal working distributions with different raw ones, as at T = 0.
    raw = np.array([[0.3, 0.4, 0.3], [0.1, 0.8, 0.1]])
    np.testing.assert_allclose(pi_of(name, (one, one, raw, one), alpha), one, atol=1e-7)


def test_token_v3_at_zero_still_lets_the_targets_best_pass():
    d = tuple(np.array([x]) for x in ([0.9, 0.1], [0.6, 0.4], [0.9, 0.1], [0.6, 0.4]))
    np.testing.assert_allclose(pi_of("token_v3", d, 0.0), [[0.96, 0.04]], atol=1e-6)
    np.testing.assert_allclose(pi_of("token_v3", d, -1e-3), [[0.6, 0.4]], atol=1e-6)


# ------------------------------------------------------------------------------------------------
# Verdicts
# ------------------------------------------------------------------------------------------------


def judge(rule, d, x, alpha):
    """Acceptance [count] and normalised replacement [count, V] for the drafted token x."""
    count = len(d[0])
    accept, replacement = jitted_verdict(
        rule,
        as_jax(d),
        jnp.full(count, x, jnp.int32),
        jnp.float32(alpha),
        jnp.zeros(count, jnp.int32),
    )
    accept, replacement = np.asarray(accept), np.asarray(replacement, np.float64)
    assert np.isfinite(accept).all() and (accept >= 0).all() and (accept <= 1).all()
    assert np.isfinite(replacement).all() and (replacement >= 0).all()
    total = replacement.sum(axis=-1, keepdims=True)
    assert (total > 0).all(), "nothing to draw from"
    return accept, replacement / total


def emitted(rule, d, alpha):
    """The law that accept-or-replace emits, [count, V]."""
    q, law = d[0], np.zeros_like(d[0])
    for x in range(q.shape[-1]):
        accept, replacement = judge(rule, d, x, alpha)
        law[:, x] += q[:, x] * accept
        law += (q[:, x] * (1 - accept))[:, None] * replacement
    return law


@pytest.mark.parametrize(
    "name, settings",
    [
        ("lossy", {}),
        ("lossy", {"beta": 1.5}),
        ("lossy", {"beta": "normalised"}),
        ("typical", {}),
        ("typical", {"eps": 0.3, "delta": 0.9}),
        ("cactus", {}),
    ],
)
def test_verdicts_are_those_of_the_formulas(name, settings):
    rule = rules.get(name, **settings)
    d = pairs(5)
    d = tuple(x[:100] for x in d)
    for alpha in sweep(name)[::2]:
        for x in range(5):
            accept, law = judge(rule, d, x, alpha)
            for i in np.flatnonzero(d[0][:, x] > 0):
                q, p = d[0][i], d[1][i]
                if (
                    name == "typical"
                    and abs(
                        p[x]
                        - min(
                            settings.get("eps", 0.09),
                            settings.get("delta", 0.3) * np.exp(-oracles.entropy(p)),
                        )
                    )
                    < 1e-6
                ):
                    continue
                arguments = (q, p, x) if name == "typical" else (q, p, x, np.float32(alpha))
                arguments += (0.0,) if name == "typical" else ()
                wanted, replacement = oracles.VERDICT[name](*arguments, **settings)
                assert accept[i] == pytest.approx(wanted, abs=1e-5)
                residual_mass = _residual_mass(name, q, p, x, alpha, settings)
                if wanted < 0.999 and residual_mass > 1e-3:
                    np.testing.assert_allclose(law[i], replacement, atol=1e-3)


def _residual_mass(name, q, p, x, alpha, settings):
    """How much a residual weighs: its rounding is relative to that."""
    if name == "typical":
        return 1.0
    if name == "lossy":
        beta = settings.get("beta", 1.0)
        inverse = (
            oracles.normalising_inverse_beta(q, p, alpha) if beta == "normalised" else 1 / beta
        )
        return np.maximum(0, p * inverse - q).sum()
    return 1 - min(oracles.cactus_raised(p[x], alpha), q[x])


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7, 0.95])
def test_lossy_with_normalised_beta_has_its_closed_form(alpha):
    d = pairs(5)
    law = emitted(rules.get("lossy", beta="normalised"), d, alpha)
    for i, (q, p) in enumerate(zip(d[0], d[1], strict=True)):
        inverse = oracles.normalising_inverse_beta(q, p, alpha)
        wanted = oracles.lossy_closed_form(q, p, alpha, inverse)
        assert wanted.sum() == pytest.approx(1, abs=1e-6)
        np.testing.assert_allclose(law[i], wanted, atol=2e-5)


@pytest.mark.parametrize("budget", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("vocab", [3, 5])
def test_mentored_spends_its_budget_and_accepts_the_most(vocab, budget):
    d = pairs(vocab, count=60)
    law = emitted(rules.get("mentored"), d, budget)
    np.testing.assert_allclose(law.sum(axis=-1), 1, atol=1e-5)
    rng = np.random.default_rng(1)
    binding = 0
    for q, p, pi in zip(d[0], d[1], law, strict=True):
        spent = oracles.kl(p, pi)
        if oracles.kl(p, q) <= budget:
            np.testing.assert_allclose(pi, q, atol=1e-5)
            continue
        binding += 1
        if q[p > 0].min() > 1e-9:
            assert spent == pytest.approx(budget, rel=2e-2, abs=5e-4)
        else:
            assert spent <= budget * 1.02 + 5e-4 or (p[(q == 0)] > 0).any()
        # No law within the budget accepts more often: try many, near it and far from it.
        best = 1 - oracles.tv(pi, q)
        for scale in (0.01, 0.1, 1.0):
            for _ in range(60):
                other = pi * np.exp(scale * rng.normal(size=vocab)) + 1e-12
                other /= other.sum()
                if oracles.kl(p, other) <= budget:
                    assert 1 - oracles.tv(other, q) <= best + 2e-3
    assert binding > 10


@pytest.mark.parametrize("vocab", [2, 5, 150])
def test_mentored_is_the_optimum_found_by_nested_bisection(vocab):
    """Against float64; among the pairs are one-hots, and filtered ones with zeros in q or p."""
    q, p = (x[:60] for x in pairs(vocab)[:2])
    for budget in (1e-3, 0.03, 0.3, 2.0):
        got = emitted_fast(rules.get("mentored"), (q, p, q, p), budget)
        wanted = [oracles.mentored(*row, budget) for row in zip(q, p, strict=True)]
        np.testing.assert_allclose(got, wanted, atol=2e-5)


@pytest.mark.parametrize("budget", [0.01, 0.3])
def test_mentored_with_a_wide_vocabulary_and_filtered_drafts(budget):
    """The bounds alone, where ratios are extreme; a row does not depend on its neighbours."""
    rng = np.random.default_rng(3)
    q, p = (oracles.softmax(4 * rng.normal(size=(6, 3000))) for _ in range(2))
    q[::2] = np.where(q[::2] > np.quantile(q[::2], 0.7, axis=1, keepdims=True), q[::2], 0)
    q = (q / q.sum(axis=1, keepdims=True)).astype(np.float32)
    p = p.astype(np.float32)
    budgets = jnp.full(6, budget)
    ceiling, floor = jax.jit(mentored.bounds)(q, p, budgets)
    pi = np.clip(q, np.asarray(floor)[:, None] * p, np.asarray(ceiling)[:, None] * p)
    for i in range(6):
        np.testing.assert_allclose(pi[i], oracles.mentored(q[i], p[i], budget), atol=2e-5)
        assert oracles.kl(p[i], pi[i]) == pytest.approx(budget, rel=1e-3)
        alone = jax.jit(mentored.bounds)(q[i : i + 1], p[i : i + 1], budgets[:1])
        np.testing.assert_allclose(alone, (ceiling[i : i + 1], floor[i : i + 1]), rtol=1e-5)


def test_mentored_on_a_larger_vocabulary():
    d = tuple(x[:16] for x in pairs(100, count=60))
    for budget in (0.03, 0.3):
        rule = rules.get("mentored")
        law = emitted_fast(rule, d, budget)
        np.testing.assert_allclose(law.sum(axis=-1), 1, atol=1e-4)
        for q, p, pi in zip(d[0], d[1], law, strict=True):
            if oracles.kl(p, q) > budget and q[p > 0].min() > 1e-9:
                assert oracles.kl(p, pi) == pytest.approx(budget, rel=0.03, abs=1e-3)


def emitted_fast(rule, d, alpha):
    """`emitted` where the replacement does not depend on the token: all tokens at once."""
    count, vocab = d[0].shape
    wide = [np.repeat(x, vocab, axis=0) for x in d]
    tokens = np.tile(np.arange(vocab), count)
    accept, replacement = jitted_verdict(
        rule,
        as_jax(wide),
        jnp.asarray(tokens),
        jnp.float32(alpha),
        jnp.zeros(len(tokens), jnp.int32),
    )
    accept = np.asarray(accept, np.float64).reshape(count, vocab)
    weights = np.asarray(replacement, np.float64).reshape(count, vocab, vocab)[:, 0]
    kept = d[0] * accept
    return kept + (1 - kept.sum(axis=-1, keepdims=True)) * weights / weights.sum(-1, keepdims=True)


def test_typical_is_greedy_at_temperature_zero():
    rule = rules.get("typical")
    d = tuple(np.eye(3)[[x]] for x in (0, 1, 0, 1))
    assert judge(rule, d, 0, 0.0)[0] == [0]
    assert judge(rule, d, 1, 0.0)[0] == [1]


# ------------------------------------------------------------------------------------------------
# alpha per row, strict prefix
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_alpha_per_row_and_strict_prefix(name):
    """[batch] alphas on [batch, positions] distributions; the first two positions are lossless."""
    d = tuple(x[:40].reshape(10, 4, 5) for x in pairs(5))
    alphas = np.resize(sweep(name)[:3], 10).astype(np.float32)
    positions = jnp.broadcast_to(jnp.arange(4), (10, 4))
    tokens = jnp.asarray(d[0].argmax(axis=-1), jnp.int32)
    strict = jitted_verdict(
        rules.get(name, strict_prefix=2), as_jax(d), tokens, jnp.asarray(alphas), positions
    )
    lossless = jitted_verdict(rules.get("speculative"), as_jax(d), tokens, 0.0, positions)
    for i in range(10):
        row = Distributions(*(x[i : i + 1] for x in as_jax(d)))
        plain = jitted_verdict(
            rules.get(name), row, tokens[i : i + 1], jnp.asarray(alphas[i]), positions[i : i + 1]
        )
        for got, own, first in zip(strict, plain, lossless, strict=True):
            np.testing.assert_allclose(got[i, 2:], own[0, 2:], atol=1e-6)
            np.testing.assert_allclose(got[i, :2], first[i, :2], atol=1e-6)


# ------------------------------------------------------------------------------------------------
# The registry
# ------------------------------------------------------------------------------------------------


def test_every_rule_of_the_project_is_registered_and_has_an_oracle():
    assert set(BUILT_IN) == set(oracles.PI) | set(oracles.VERDICT) | {"mentored"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_rules_say_what_they_are(name):
    rule = rules.get(name)
    assert rule.name == name and rule.summary and rule.source
    assert "\n" not in rule.summary
    assert hash(rule) == hash(rules.get(name)) and rule == rules.get(name)
    for parameter in (*rule.parameters, *([rule.alpha] if rule.alpha else [])):
        assert parameter.meaning
        values = (parameter.default, *parameter.grid)
        values += (parameter.lossless,) if parameter.lossless is not None else ()
        for value in values:
            assert parameter.low <= value <= parameter.high
    if rule.alpha:
        assert len(rule.alpha.grid) >= 3
        assert rules.check_alpha(rule, None) == rule.alpha.default
    else:
        assert rules.check_alpha(rule, None) == 0.0


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: rules.get("token_v33"), ["token_v33", "did you mean 'token_v3'"]),
        (lambda: rules.get("xyzzy"), ["xyzzy", "speculative", "lossy"]),
        (lambda: rules.get("lossy", bta=1.0), ["'bta'", "'lossy'", "did you mean 'beta'"]),
        (lambda: rules.get("opt", beta=1.0), ["'beta'", "'opt'", "none"]),
        (lambda: rules.get("lossy", beta=0.5), ["beta = 0.5", "1 to inf", "'normalised'"]),
        (lambda: rules.get("lossy", beta="normal"), ["beta = 'normal'", "'normalised'"]),
        (lambda: rules.get("typical", eps=math.nan), ["eps = nan", "0 to 1"]),
        (lambda: rules.get("opt", strict_prefix=-1), ["strict_prefix = -1"]),
        (lambda: rules.get("opt", strict_prefix=1.5), ["strict_prefix = 1.5"]),
        (lambda: rules.get("opt", strict_prefix="3"), ["strict_prefix = '3'", "whole number"]),
        (lambda: rules.check_alpha(rules.get("chow"), 1.5), ["alpha = 1.5", "chow", "-1 to 1"]),
        (lambda: rules.check_alpha(rules.get("mixture"), -0.1), ["alpha = -0.1", "0 to 1"]),
        (lambda: rules.check_alpha(rules.get("opt"), math.nan), ["alpha = nan"]),
        (lambda: rules.check_alpha(rules.get("opt"), "much"), ["alpha = 'much'"]),
        (lambda: rules.check_alpha(rules.get("speculative"), 0.1), ["speculative", "no alpha"]),
    ],
)
def test_mistakes_are_told_in_one_line(call, words):
    with pytest.raises(ValueError) as error:
        call()
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.fixture
def own_rule():
    @rules.register_rule(
        alpha=Parameter("alpha", 0, 1, 0.5, "drafter's share", 0, (0.2, 0.4)),
        parameters=(Parameter("power", 1, 4, 1, "exponent"),),
        summary="a mixture of the test",
        source="this file",
    )
    def halfway(d, alpha, power):
        weight = (alpha**power)[..., None]
        return (1 - weight) * d.p + weight * d.q

    yield "halfway"
    rules.registry._RULES.pop("halfway")


def test_a_rule_of_ones_own(own_rule):
    assert own_rule in rules.names() and rules.REGISTRY[own_rule].kind == "distribution"
    d = pairs(5)
    np.testing.assert_allclose(
        pi_of(own_rule, d, 0.5, power=2), 0.75 * d[1] + 0.25 * d[0], atol=1e-6
    )
    with pytest.raises(ValueError, match="did you mean 'halfway'"):
        rules.get("halfways")
    with pytest.raises(ValueError, match="1 to 4"):
        rules.get("halfway", power=5)


def test_a_name_is_not_taken_twice(own_rule):
    def speculative(d, alpha):
        return d.q

    with pytest.raises(ValueError, match="'speculative' is already registered"):
        rules.register_rule(summary="x", source="y")(speculative)
    assert rules.get("speculative").function is not speculative
    # Registering one's own again (a notebook cell run twice) replaces it.
    rules.register_rule(summary="new", source="y", name=own_rule)(lambda d, alpha: d.q)
    assert rules.get(own_rule).summary == "new"


@pytest.mark.parametrize("name", ["target", "bild"])
def test_names_of_other_methods_are_no_rules_names(name):
    with pytest.raises(ValueError, match=f"'{name}' bears the name of a method"):
        rules.register_rule(summary="x", source="y", name=name)(lambda d, alpha: d.q)


def test_own_choices_and_verdicts():
    try:

        @rules.register_choice(summary="always", source="test", needs_target=False)
        def always(d, alpha):
            return jnp.ones_like(alpha, bool)

        @rules.register_verdict(summary="never", source="test")
        def never(d, tokens, alpha):
            return rules.Verdict(jnp.zeros_like(alpha), jnp.zeros_like(d.p))

        d = pairs(5)
        np.testing.assert_allclose(pi_of("always", d, 0.0), d[0], atol=1e-7)
        accept, law = judge(rules.get("never"), d, 0, 0.0)
        assert (accept == 0).all()
        np.testing.assert_allclose(law, d[1], atol=1e-6)  # no weights: the target's
        assert not rules.get("never").has_target_distribution
    finally:
        for name in ("always", "never"):
            rules.registry._RULES.pop(name, None)


@pytest.mark.parametrize(
    "register, function, ask, words",
    [
        (rules.register_rule, lambda d, alpha: d.p[..., 0], "target_distribution", "[4, 5]"),
        (rules.register_rule, lambda d, alpha: d.p > 0, "target_distribution", "bool [4, 5]"),
        (rules.register_rule, lambda d, alpha: None, "target_distribution", "NoneType"),
        (rules.register_choice, lambda d, alpha: alpha, "keep", "float32 [4]: it must be bool"),
        (rules.register_verdict, lambda d, x, alpha: (alpha, d.p), "verdict", "tuple"),
        (rules.register_verdict, lambda d, x, alpha: rules.Verdict(x, d.p), "verdict", "accept"),
        (
            rules.register_verdict,
            lambda d, x, alpha: rules.Verdict(alpha, alpha),
            "verdict",
            "replacement as float32 [4]: it must be float32 [4, 5]",
        ),
    ],
)
def test_wrong_shapes_and_dtypes_are_told_while_tracing(register, function, ask, words):
    register(summary="wrong", source="test", name="wrong")(function)
    d = as_jax(x[:4] for x in pairs(5))
    zeros = jnp.zeros(4, jnp.int32)
    tokens = (zeros,) if ask == "verdict" else ()
    try:
        with pytest.raises(ValueError, match="rule 'wrong' returned") as error:
            jax.eval_shape(getattr(rules.get("wrong"), ask), d, *tokens, jnp.float32(0), zeros)
        assert words in str(error.value) and "\n" not in str(error.value)
    finally:
        rules.registry._RULES.pop("wrong")


def test_the_registry_is_read_only():
    with pytest.raises(TypeError):
        rules.REGISTRY["x"] = None
