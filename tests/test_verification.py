"""Token and block verification: the exact law of what they emit.

Verification is a function of uniform random numbers. Its acceptance thresholds and the borders of
its next-token draws are found by bisection over those numbers, without a look inside; with them
every draft and every outcome is enumerated with its exact probability.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from spec_cascades import rules
from spec_cascades.rules import Distributions
from spec_cascades.verification import Block, Uniforms, verify_block, verify_tokens

VERIFY = {"token": verify_tokens, "block": verify_block}
BUILT_IN = [
    n
    for n in rules.names()
    if rules.REGISTRY[n].function.__module__.startswith(rules.__name__ + ".")
]
WITH_PI = [name for name in BUILT_IN if rules.REGISTRY[name].has_target_distribution]
VOCAB, GAMMA, EOS = 4, 3, 1
ACCEPT, REJECT = -1.0, 2.0  # "random" numbers that force a decision


def alphas(name):
    """Lossless end, drafter's end and values between, for any registered rule."""
    alpha = rules.REGISTRY[name].alpha
    if alpha is None:
        return [0.0]
    return sorted({alpha.low, alpha.grid[0], alpha.default, alpha.high})


class Toy:
    """Distributions of two models after every prefix, from random tables."""

    def __init__(self, seed, temperature=0.7, top_k=0, sharpness=1.5):
        self.rng = np.random.default_rng(seed)
        self.settings = temperature, top_k
        self.sharpness = sharpness
        self.tables = {}

    def at(self, prefix):
        """q, p, q_hat, p_hat after a prefix, float64 [VOCAB] each."""
        if prefix not in self.tables:
            q, p = self.sharpness * self.rng.normal(size=(2, VOCAB))
            self.tables[prefix] = (
                oracles.working(q, *self.settings),
                oracles.working(p, *self.settings),
                oracles.softmax(q),
                oracles.softmax(p),
            )
        return self.tables[prefix]


def all_blocks(toy, prefixes, gamma=GAMMA, eos=EOS):
    """Every possible draft after every prefix: [(prefix, draft, its probability)], and a Block."""
    entries, rows = [], []
    possible = oracles.drafts(VOCAB, gamma, eos)
    for prefix in prefixes:
        for draft in possible:
            chance = 1.0
            for i, x in enumerate(draft):
                chance *= toy.at(prefix + draft[:i])[0][x]
            if chance == 0:
                continue
            d = [toy.at(prefix + draft[:i]) for i in range(len(draft) + 1)]
            # What stands beyond a shorter draft must not matter.
            d += [tuple(np.eye(VOCAB)[[2, 3, 0, 0]])] * (gamma - len(draft))
            entries.append((prefix, draft, chance))
            rows.append((draft + (0,) * (gamma - len(draft)), len(draft), len(prefix), d))
    # One shape for all toys, hence one compilation: repeat a row in the place of impossible drafts.
    rows += rows[:1] * (len(prefixes) * len(possible) - len(rows))
    tokens, counts, starts, d = zip(*rows, strict=True)
    block = Block(
        tokens=jnp.asarray(tokens, jnp.int32),
        num_drafted=jnp.asarray(counts, jnp.int32),
        d=Distributions(*jnp.asarray(np.moveaxis(np.array(d), 2, 0), jnp.float32)),
        positions=jnp.asarray(starts, jnp.int32)[:, None] + jnp.arange(gamma + 1),
    )
    return entries, block


@functools.partial(
    jax.jit, static_argnames=("rule", "method", "bonus"), compiler_options=oracles.QUICK_COMPILE
)
def measure(rule, method, bonus, block, alpha):
    """Thresholds [N, gamma] of the acceptance tests, and borders [N, gamma + 1, V] of the draws.

    `borders[n, i, v]` is the probability that the next token after i accepted drafts is at most v.
    """
    size, gamma = block.tokens.shape
    vocab = block.d.p.shape[-1]
    places = jnp.arange(gamma)
    # One experiment per threshold: those before pass, those after fail, one is tried.
    others = jnp.where(places < places[:, None], ACCEPT, REJECT)
    # And one per count and token: exactly `count` drafts pass.
    fixed = jnp.where(places < jnp.arange(gamma + 1)[:, None], ACCEPT, REJECT)
    fixed = jnp.repeat(fixed, vocab, axis=0)
    accept = jnp.concatenate([others, fixed])
    experiments = accept.shape[0]
    tried = jnp.arange(experiments)
    wanted_count = jnp.concatenate([places + 1, jnp.full(experiments - gamma, -1)])
    last_token = jnp.concatenate([jnp.full(gamma, -1), jnp.tile(jnp.arange(vocab), gamma + 1)])
    many = jax.tree.map(lambda x: jnp.repeat(x, experiments, axis=0), block)

    def passes(u):
        numbers = jnp.where(
            (places == tried[:, None]) & (tried < gamma)[:, None], u[..., None], accept
        )
        uniforms = Uniforms(
            numbers.reshape(-1, gamma), jnp.stack([jnp.zeros_like(u), u], axis=-1).reshape(-1, 2)
        )
        outcome = VERIFY[method](rule, many, alpha, uniforms, bonus)
        count = outcome.num_accepted.reshape(size, experiments)
        token = outcome.next_token.reshape(size, experiments)
        return jnp.where(tried < gamma, count >= wanted_count, token <= last_token)

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        good = passes(middle)
        return jnp.where(good, middle, low), jnp.where(good, high, middle)

    zeros = jnp.zeros((size, experiments))
    # From -0.5: a threshold of 0 is passed by no number in [0, 1).
    low, _ = jax.lax.fori_loop(0, 26, halve, (zeros - 0.5, zeros + 1))
    found = jnp.clip(low, 0, 1)
    return found[:, :gamma], found[:, gamma:].reshape(size, gamma + 1, vocab)


def law_of_block(rule, method, bonus, block, alpha):
    """P(count) [N, gamma + 1] and the law of the next token [N, gamma + 1, V], float64."""
    thresholds, borders = (
        np.asarray(x, np.float64) for x in measure(rule, method, bonus, block, jnp.float32(alpha))
    )
    drafted = np.arange(thresholds.shape[1]) < np.asarray(block.num_drafted)[:, None]
    a = np.where(drafted, thresholds, 0)
    ones = np.ones((len(a), 1))
    if method == "token":  # the leading run of passes
        reached = np.concatenate([ones, np.cumprod(a, axis=1)], axis=1)
        counts = reached * np.concatenate([1 - a, ones], axis=1)
    else:  # the last pass
        later = np.cumprod((1 - a)[:, ::-1], axis=1)[:, ::-1]
        counts = np.concatenate([ones, a], axis=1) * np.concatenate([later, ones], axis=1)
    return counts, np.diff(borders, axis=-1, prepend=0.0)


def own_law(name, alpha, entries, method, bonus, toy, strict=0):
    """The same from the oracles."""

    def pi(prefix):
        q, p, qh, ph = toy.at(prefix)
        return p if len(prefix) < strict else oracles.PI[name](q, p, qh, ph, alpha)

    for prefix, draft, _ in entries:
        before = [prefix + draft[:i] for i in range(len(draft) + 1)]
        last = pi(before[-1]) if bonus == "rule" else toy.at(before[-1])[1]
        yield oracles.block_law(
            [pi(b) for b in before[:-1]], [toy.at(b)[0] for b in before[:-1]], last, draft, method
        )


TOYS = {
    "T 0.7": Toy(0),
    "T 1.3, top-k 2, sharp": Toy(1, 1.3, top_k=2, sharpness=3.0),
    "greedy": Toy(2, 0.0),
}


@pytest.mark.parametrize("method", VERIFY)
@pytest.mark.parametrize("name", WITH_PI)
def test_law_of_a_block_is_that_of_the_formulas(name, method):
    """For each draft: the probability of each count, and the law of the next token after it."""
    assert name in oracles.PI, f"write down the formula of rule {name!r} in tests/oracles.py"
    rule = rules.get(name)
    for toy in TOYS.values():
        entries, block = all_blocks(toy, [()])
        for alpha in alphas(name):
            counts, following = law_of_block(rule, method, "rule", block, alpha)
            own = own_law(name, alpha, entries, method, "rule", toy)
            for row, (wanted, entry) in enumerate(zip(own, entries, strict=True)):
                for n, (chance, law) in enumerate(wanted):
                    where = f"{name} alpha {alpha}: {entry}, {n} accepted"
                    assert counts[row, n] == pytest.approx(chance, abs=1e-5), where
                    if chance > 1e-4:
                        np.testing.assert_allclose(following[row, n], law, atol=3e-4, err_msg=where)
                        np.testing.assert_allclose(
                            chance * following[row, n], chance * law, atol=5e-6, err_msg=where
                        )
                assert (counts[row, len(wanted) :] < 1e-7).all()


@functools.cache
def emitted_after_one_block(name, alpha, method, bonus, toy_name, strict=0):
    """Law of GAMMA tokens: one block, and where it is shorter the rest by `pi`; and mean count."""
    toy = TOYS[toy_name]
    rule = rules.get(name, strict_prefix=strict)
    pi = pi_of(name, alpha, toy, strict)
    entries, block = all_blocks(toy, [()])
    counts, following = law_of_block(rule, method, bonus, block, alpha)
    law = {}
    for row, (_, draft, chance) in enumerate(entries):
        for n in range(len(draft) + 1):
            if n == GAMMA or EOS in draft[:n]:  # the next token lies beyond
                law[draft[:n]] = law.get(draft[:n], 0.0) + chance * counts[row, n]
                continue
            for v in range(VOCAB):
                start, mass = draft[:n] + (v,), chance * counts[row, n] * following[row, n, v]
                rest = oracles.chain_law(
                    lambda more, start=start: pi(start + more),
                    VOCAB,
                    0 if EOS in start else GAMMA - len(start),
                    EOS,
                )
                for more, share in rest.items():
                    law[start + more] = law.get(start + more, 0.0) + mass * share
    mean = sum(
        chance * (counts[row] * np.arange(GAMMA + 1)).sum()
        for row, (_, _, chance) in enumerate(entries)
    )
    return law, mean


def pi_of(name, alpha, toy, strict=0):
    def pi(prefix):
        q, p, qh, ph = toy.at(prefix)
        return p if len(prefix) < strict else oracles.PI[name](q, p, qh, ph, alpha)

    return pi


def assert_same_law(got, wanted, atol):
    worst = max(abs(got.get(k, 0.0) - wanted.get(k, 0.0)) for k in got.keys() | wanted.keys())
    assert worst < atol


@pytest.mark.parametrize("method", VERIFY)
@pytest.mark.parametrize("name", WITH_PI)
def test_what_a_block_emits_follows_pi(name, method):
    for toy_name, toy in TOYS.items():
        for alpha in alphas(name):
            law, _ = emitted_after_one_block(name, alpha, method, "rule", toy_name)
            wanted = oracles.chain_law(pi_of(name, alpha, toy), VOCAB, GAMMA, EOS)
            assert_same_law(law, wanted, 5e-6)


@pytest.mark.parametrize("name", WITH_PI)
def test_block_verification_accepts_at_least_as_many(name):
    gained = []
    for toy_name in TOYS:
        for alpha in alphas(name):
            _, token = emitted_after_one_block(name, alpha, "token", "rule", toy_name)
            _, block = emitted_after_one_block(name, alpha, "block", "rule", toy_name)
            gained.append(block - token)
    assert min(gained) > -1e-5
    if name != "draft_only":  # where every draft stands there is nothing to gain
        assert max(gained) > 1e-3


@pytest.mark.parametrize("method", VERIFY)
@pytest.mark.parametrize("name", ["speculative", "token_v3", "opt"])
def test_bonus_from_the_target_follows_p(name, method):
    toy = TOYS["T 0.7"]
    entries, block = all_blocks(toy, [()])
    alpha = rules.check_alpha(rules.get(name), None)
    counts, following = law_of_block(rules.get(name), method, "target", block, alpha)
    same_counts, same_following = law_of_block(rules.get(name), method, "rule", block, alpha)
    np.testing.assert_array_equal(counts, same_counts)
    for row, (prefix, draft, _) in enumerate(entries):
        np.testing.assert_allclose(following[row, len(draft)], toy.at(prefix + draft)[1], atol=1e-6)
        np.testing.assert_array_equal(
            following[row, : len(draft)], same_following[row, : len(draft)]
        )


@pytest.mark.parametrize("name, method", [("token_v3", "block"), ("opt", "token")])
def test_strict_prefix_is_lossless_at_first(name, method):
    toy_name = "T 0.7"
    alpha = rules.check_alpha(rules.get(name), None)
    law, _ = emitted_after_one_block(name, alpha, method, "rule", toy_name, strict=2)
    pi = pi_of(name, alpha, TOYS[toy_name], strict=2)
    assert_same_law(law, oracles.chain_law(pi, VOCAB, GAMMA, EOS), 5e-6)
    lossless = emitted_after_one_block(name, alpha, method, "rule", toy_name, GAMMA)[0]
    target = oracles.chain_law(lambda prefix: TOYS[toy_name].at(prefix)[1], VOCAB, GAMMA, EOS)
    assert_same_law(lossless, target, 5e-6)


@pytest.mark.parametrize("bonus", ["rule", "target"])
@pytest.mark.parametrize("method", VERIFY)
@pytest.mark.parametrize("name", ["speculative", "token_v3", "diff"])
def test_law_through_several_blocks(name, method, bonus):
    """Whole outputs of up to four tokens, drafted two at a time, block after block."""
    toy, length, gamma = TOYS["T 0.7"], 4, 2
    alpha = rules.check_alpha(rules.get(name), None)
    prefixes = [p for n in range(length) for p in itertools.product(range(VOCAB), repeat=n)]
    prefixes = [p for p in prefixes if EOS not in p]
    entries, block = all_blocks(toy, prefixes, gamma)
    counts, following = law_of_block(rules.get(name), method, bonus, block, alpha)
    blocks = {}
    for row, (prefix, draft, chance) in enumerate(entries):
        blocks.setdefault(prefix, []).append((draft, chance, counts[row], following[row]))

    reached, final = {(): 1.0}, {}
    while reached:
        prefix = min(reached, key=len)
        mass = reached.pop(prefix)
        for draft, chance, count, law in blocks[prefix]:
            for n, v in itertools.product(range(len(draft) + 1), range(VOCAB)):
                grown = (prefix + draft[:n] + (v,))[:length]
                if EOS in grown:
                    grown = grown[: grown.index(EOS) + 1]
                share = mass * chance * count[n] * law[n, v]
                ended = len(grown) == length or EOS in grown
                (final if ended else reached)[grown] = (final if ended else reached).get(
                    grown, 0.0
                ) + share
    pi = pi_of(name, alpha, toy)
    if bonus == "rule" or name == "speculative":
        wanted = oracles.chain_law(pi, VOCAB, length, EOS)
    else:
        wanted = oracles.speculative_law(
            pi,
            lambda prefix: toy.at(prefix)[0],
            lambda prefix: toy.at(prefix)[1],
            VOCAB,
            length,
            gamma,
            method,
            bonus,
            EOS,
        )
    assert sum(final.values()) == pytest.approx(1, abs=1e-5)
    assert_same_law(final, wanted, 1e-5)


@pytest.mark.parametrize("name", WITH_PI)
def test_acceptance_rate_is_one_minus_the_distance_from_pi(name):
    toy = TOYS["T 0.7"]
    entries, block = all_blocks(toy, [()])
    for alpha in alphas(name):
        counts, _ = law_of_block(rules.get(name), "token", "rule", block, alpha)
        rate = sum(chance * (1 - counts[i, 0]) for i, (_, _, chance) in enumerate(entries))
        q, p, qh, ph = toy.at(())
        pi = oracles.PI[name](q, p, qh, ph, alpha)
        assert rate == pytest.approx(1 - oracles.tv(pi, q), abs=5e-6)


# `mentored` has its own brute-force test in test_rules.py.
@pytest.mark.parametrize("name", [n for n in BUILT_IN if n not in WITH_PI and n != "mentored"])
def test_verdict_rules_accept_and_replace_as_they_say(name):
    """Token verification of a rule that judges the drafted token: counts and replacements."""
    rule = rules.get(name)
    for toy in (TOYS["T 0.7"], TOYS["greedy"]):
        entries, block = all_blocks(toy, [()])
        for alpha in alphas(name)[1:3]:
            counts, following = law_of_block(rule, "token", "target", block, alpha)
            for row, (prefix, draft, _) in enumerate(entries):
                chance = 1.0
                for n, x in enumerate(draft):
                    q, p, _, _ = toy.at(prefix + draft[:n])
                    accept, replacement = oracles.VERDICT[name](q, p, x, alpha)
                    assert counts[row, n] == pytest.approx(chance * (1 - accept), abs=2e-6)
                    if chance * (1 - accept) > 1e-4:
                        np.testing.assert_allclose(following[row, n], replacement, atol=3e-4)
                    chance *= accept
                assert counts[row, len(draft)] == pytest.approx(chance, abs=2e-6)


@pytest.mark.parametrize("method", VERIFY)
def test_thresholds_act_as_the_enumeration_assumes(method):
    """Token: the leading run of passes. Block: the last pass. For random numbers."""
    _, block = all_blocks(TOYS["T 0.7"], [()])
    rule = rules.get("token_v3")
    thresholds, _ = measure(rule, method, "target", block, jnp.float32(0.3))
    u = np.random.default_rng(3).uniform(size=thresholds.shape).astype(np.float32)
    numbers = Uniforms(jnp.asarray(u), jnp.zeros((len(u), 2)))
    outcome = jax.jit(VERIFY[method], static_argnums=0)(rule, block, 0.3, numbers)
    passed = (u < np.asarray(thresholds)) & (
        np.arange(GAMMA) < np.asarray(block.num_drafted)[:, None]
    )
    if method == "token":
        wanted = np.cumprod(passed, axis=1).sum(axis=1)
    else:
        wanted = (passed * np.arange(1, GAMMA + 1)).max(axis=1)
    np.testing.assert_array_equal(outcome.num_accepted, wanted)
    judged = np.arange(GAMMA) < np.minimum(wanted + 1, np.asarray(block.num_drafted))[:, None]
    np.testing.assert_array_equal(outcome.judged, judged)
    assert (~outcome.deferred | outcome.judged).all()


def test_a_choice_rule_defers_where_it_chooses_the_target():
    """Not only where the draft may fall: a deferred draft that the target likes better stands."""
    block, rule = random_block(3), rules.get("diff")
    uniforms = Uniforms(jnp.zeros((200, 3)), jnp.zeros((200, 2)))
    outcome = verify_tokens(rule, block, 0.1, uniforms)
    q, p = (np.asarray(x)[:, :3].max(axis=-1) for x in (block.d.q_hat, block.d.p_hat))
    np.testing.assert_array_equal(outcome.deferred, (q < p - 0.1) & np.asarray(outcome.judged))


def random_block(seed, batch=200, gamma=3, vocab=5):
    rng = np.random.default_rng(seed)
    d = [oracles.softmax(2 * rng.normal(size=(batch, gamma + 1, vocab))) for _ in range(4)]
    return Block(
        tokens=jnp.asarray(rng.integers(vocab, size=(batch, gamma)), jnp.int32),
        num_drafted=jnp.asarray(rng.integers(gamma + 1, size=batch), jnp.int32),
        d=Distributions(*(jnp.asarray(x, jnp.float32) for x in d)),
        positions=jnp.broadcast_to(jnp.arange(gamma + 1), (batch, gamma + 1)),
    )


@pytest.mark.parametrize("method", VERIFY)
def test_equal_models_accept_everything(method):
    block = random_block(0)
    block = block._replace(d=Distributions(block.d.p, block.d.p, block.d.p_hat, block.d.p_hat))
    largest = np.float32(1 - 2.0**-24)
    uniforms = Uniforms(jnp.full((200, 3), largest), jnp.full((200, 2), largest))
    outcome = VERIFY[method](rules.get("speculative"), block, 0.0, uniforms)
    np.testing.assert_array_equal(outcome.num_accepted, block.num_drafted)
    assert not outcome.deferred.any()


@pytest.mark.parametrize("method", VERIFY)
@pytest.mark.parametrize("u", [0.0, 1 - 2.0**-24])
def test_a_token_of_probability_zero_is_never_emitted(method, u):
    """Ids that `pi` excludes: no draft of theirs stands, and none is drawn, even at u = 0."""
    block = random_block(1)
    p = np.array(block.d.p)
    p[..., [1, 3]] = 0
    p /= p.sum(axis=-1, keepdims=True)
    block = block._replace(d=block.d._replace(p=jnp.asarray(p)))
    uniforms = Uniforms(jnp.full((200, 3), u), jnp.full((200, 2), u))
    outcome = VERIFY[method](rules.get("speculative"), block, 0.0, uniforms)
    assert not np.isin(outcome.next_token, [1, 3]).any()
    kept = np.arange(3) < np.asarray(outcome.num_accepted)[:, None]
    assert not np.isin(np.asarray(block.tokens)[kept], [1, 3]).any()
    assert kept.any() or u


@pytest.mark.parametrize("method", VERIFY)
def test_alpha_per_row(method):
    block = random_block(2)
    rng = np.random.default_rng(5)
    uniforms = Uniforms(
        jnp.asarray(rng.uniform(size=(200, 3)), jnp.float32),
        jnp.asarray(rng.uniform(size=(200, 2)), jnp.float32),
    )
    alpha = jnp.where(jnp.arange(200) < 100, 0.1, 0.8)
    verify = jax.jit(VERIFY[method], static_argnums=(0, 4))
    mixed = verify(rules.get("token_v3"), block, alpha, uniforms, "rule")
    for value, part in ((0.1, slice(0, 100)), (0.8, slice(100, 200))):
        alone = verify(rules.get("token_v3"), block, value, uniforms, "rule")
        jax.tree.map(lambda a, b, p=part: np.testing.assert_array_equal(a[p], b[p]), mixed, alone)
