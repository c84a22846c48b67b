"""The speculative loop: lossless where it should be, exact in its stopping and its counting."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import toys

from spec_cascades import decoding, rules
from spec_cascades.decoding import Finish, ModelDrafter, Origin, PairParams, Prompt, PromptLookup
from spec_cascades.testing import ToyModel

SPECULATIVE = rules.get("speculative")
DRAFTER = ModelDrafter(toys.TOY)
CONFIG = toys.config()


def run(params, inputs, *, rule=SPECULATIVE, gamma=3, config=CONFIG, drafter=DRAFTER, **settings):
    settings = {"alpha": 0.0, "temperature": 0.0, "keys": toys.keys(len(inputs))} | settings
    target = settings.pop("target", toys.TOY)
    result = toys.speculative(
        target, drafter, rule, *params, inputs, gamma=gamma, config=config, **settings
    )
    toys.check_invariants(result, config)
    toys.check_speculation(result, gamma)
    return result


def assert_same_rows(got, wanted, rows=slice(None)):
    """Tokens, lengths, reasons, origins, log-probabilities and counts of the rows."""
    for name in ("tokens", "lengths", "finish", "origins"):
        np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name)[rows], name)
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a, b[rows]), got.statistics, wanted.statistics
    )
    if wanted.log_probs is not None:
        np.testing.assert_allclose(got.log_probs, wanted.log_probs[rows], atol=1e-5)


# ------------------------------------------------------------------------------------------------
# Lossless at T = 0
# ------------------------------------------------------------------------------------------------


def assert_lossless(gamma, batch, verification="token", bonus="target", seeds=3):
    lengths = set()
    for seed in range(seeds):
        inputs = toys.ragged_inputs(batch, seed)
        for similarity in (0.0, 0.6, 0.9):
            params = toys.tables(seed, similarity)
            result = run(params, inputs, gamma=gamma, verification=verification, bonus=bonus)
            for i in range(batch):
                wanted = toys.greedy(toys.logits_after(params[0], inputs[i]), 12)
                assert toys.row(result, i) == wanted
                lengths.add(len(wanted))
    return lengths


@pytest.mark.parametrize("gamma, batch", [(1, 16), (3, 16), (8, 16), (4, 1)])
def test_greedy_output_is_the_targets(gamma, batch):
    lengths = assert_lossless(gamma, batch)
    assert batch == 1 or len(lengths) > 8, "EOS should fall in many places"


@pytest.mark.parametrize("bonus", ["target", "rule"])
def test_greedy_output_is_the_targets_by_block_verification(bonus):
    assert_lossless(3, 16, "block", bonus, seeds=2)


@pytest.mark.slow
@pytest.mark.parametrize("verification", ["token", "block"])
@pytest.mark.parametrize("gamma", range(1, 9))
def test_greedy_output_is_the_targets_for_all_sizes(gamma, verification):
    for batch in (1, 2, 3, 5, 8, 13, 16):
        assert_lossless(gamma, batch, verification, seeds=2)


def test_greedy_output_equals_the_autoregressive_decoder():
    inputs = toys.ragged_inputs(16)
    params = toys.tables(4)
    result = run(params, inputs)
    plain = toys.autoregressive(
        toys.TOY, params[0], inputs, toys.keys(16), temperature=0.0, config=CONFIG
    )
    toys.check_invariants(plain, CONFIG)
    np.testing.assert_array_equal(result.tokens, plain.tokens)
    np.testing.assert_array_equal(result.finish, plain.finish)


# ------------------------------------------------------------------------------------------------
# Against a plain Python version of the whole loop, greedy
# ------------------------------------------------------------------------------------------------


def reference(q_logits, p_logits, name, alpha, gamma, cap, bonus, strict=0):
    """One row, greedy: tokens, origins and counts."""

    def at(prefix):
        q, p, qh, ph = toys.distributions(q_logits, p_logits, prefix)
        pi = p if len(prefix) < strict else oracles.PI[name](q, p, qh, ph, alpha)
        return q, p, pi

    out, origins = (), ()
    counts = dict.fromkeys(
        ("target_calls", "drafter_calls", "drafted", "accepted", "corrected", "bonus"), 0
    )
    verified_at, accepted_at = [0] * gamma, [0] * gamma
    while len(out) < cap and toys.EOS not in out:
        draft = ()
        while len(draft) < min(gamma, cap - len(out)) and toys.EOS not in draft:
            draft += (int(np.argmax(at(out + draft)[0])),)
        # With bonus = "rule" the drafter also runs at the bonus position, where there is one.
        extra = bonus == "rule" and len(draft) == gamma
        extra = extra and toys.EOS not in draft and len(out) + gamma < cap
        counts["drafter_calls"] += len(draft) + extra
        counts["target_calls"] += 1
        counts["drafted"] += len(draft)
        for i, x in enumerate(draft):
            verified_at[i] += 1
            pi = at(out)[2]
            if pi[x] < 0.5:
                out, origins = out + (int(np.argmax(pi)),), origins + (Origin.TARGET,)
                counts["corrected"] += 1
                break
            accepted_at[i] += 1
            counts["accepted"] += 1
            out, origins = out + (x,), origins + (Origin.DRAFT,)
        else:
            if len(out) < cap and toys.EOS not in out:
                law = at(out)[2 if bonus == "rule" else 1]
                out, origins = out + (int(np.argmax(law)),), origins + (Origin.BONUS,)
                counts["bonus"] += 1
    return out, origins, counts | {"verified_at": verified_at, "accepted_at": accepted_at}


@pytest.mark.parametrize(
    "name, alpha, verification, bonus",
    [
        ("speculative", 0.0, "token", "target"),
        ("token_v3", 0.5, "token", "rule"),
        ("token_v3", 0.5, "block", "rule"),
        ("diff", 0.05, "block", "target"),
        ("chow", 0.5, "token", "rule"),
    ],
)
def test_equals_the_plain_loop(name, alpha, verification, bonus):
    """Tokens, origins and every count, row by row."""
    inputs = toys.ragged_inputs(16, 7)
    params = toys.tables(7, similarity=0.55)
    strict = 2 if name == "diff" else 0
    result = run(
        params,
        inputs,
        rule=rules.get(name, strict_prefix=strict),
        alpha=alpha,
        verification=verification,
        bonus=bonus,
    )
    for i in range(16):
        q_logits, p_logits = (toys.logits_after(t, inputs[i]) for t in (params[1], params[0]))
        out, origins, counts = reference(q_logits, p_logits, name, alpha, 3, 12, bonus, strict)
        assert toys.row(result, i) == out
        np.testing.assert_array_equal(result.origins[i, : len(out)], origins)
        for field, value in counts.items():
            np.testing.assert_array_equal(getattr(result.statistics, field)[i], value, field)


def test_drafter_alone_where_every_token_follows_the_rule():
    """draft_only with bonus = "rule" writes what the drafter writes, greedily and at T = 1."""
    inputs = toys.ragged_inputs(16, 2)
    params = toys.tables(2, similarity=0.2)
    result = run(params, inputs, rule=rules.get("draft_only"), bonus="rule")
    for i in range(16):
        assert toys.row(result, i) == toys.greedy(toys.logits_after(params[1], inputs[i]), 12)
    assert int(result.statistics.corrected.sum()) == 0


# ------------------------------------------------------------------------------------------------
# The same model twice
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verification", ["token", "block"])
def test_the_target_as_its_own_drafter_is_accepted_for_ever(verification):
    table, _ = toys.tables(3, eos=-100.0)
    inputs = toys.ragged_inputs(4)
    config = toys.config(300)
    for temperature in (0.0, 1.0):
        result = run(
            (table, table),
            inputs,
            config=config,
            gamma=4,
            temperature=temperature,
            verification=verification,
        )
        assert (result.lengths == 300).all()
        np.testing.assert_array_equal(result.statistics.accepted, result.statistics.drafted)
        np.testing.assert_array_equal(result.statistics.target_calls, 60)
        np.testing.assert_array_equal(result.statistics.accepted, 240)
        assert (result.statistics.deferred == 0).all()
        if temperature:
            assert len({toys.row(result, i) for i in range(4)}) == 4


# ------------------------------------------------------------------------------------------------
# Stopping
# ------------------------------------------------------------------------------------------------


def test_a_rejected_eos_does_not_end_the_row():
    target, _ = toys.tables(5, eos=-100.0)
    drafter = target.at[:, toys.EOS].set(100.0)  # drafts EOS every time
    result = run((target, drafter), toys.ragged_inputs(16))
    assert (result.lengths == 12).all()
    assert (result.finish == Finish.LENGTH).all()
    assert (result.statistics.accepted == 0).all()
    np.testing.assert_array_equal(result.statistics.drafted, 12)  # a draft ends at its EOS


def test_an_accepted_eos_ends_the_row_within_the_block():
    target, _ = toys.tables(5, eos=100.0)
    result = run((target, target), toys.ragged_inputs(16))
    assert (result.lengths == 1).all() and (result.tokens[:, 0] == toys.EOS).all()
    assert (result.origins[:, 0] == Origin.DRAFT).all()
    np.testing.assert_array_equal(result.statistics.drafted, 1)


@pytest.mark.parametrize("cap", [0, 1, 7])
def test_budgets_are_exact(cap):
    """Nothing, one token, less than a block, no multiple of a block."""
    inputs = toys.ragged_inputs(16)
    params = toys.tables(6, eos=-3.0)
    config = toys.config(cap)
    result = run(params, inputs, config=config, gamma=3)
    for i in range(16):
        wanted = toys.greedy(toys.logits_after(params[0], inputs[i]), cap)
        assert toys.row(result, i) == wanted
        ended = toys.EOS in wanted
        assert result.finish[i] == (Finish.EOS if ended else Finish.LENGTH)
    if cap == 0:
        assert (result.statistics.target_calls == 0).all()


def test_eos_as_the_last_allowed_token_is_eos():
    params = toys.tables(6, eos=-1.0)
    inputs = toys.ragged_inputs(16, 3)
    lengths = [
        len(toys.greedy(toys.logits_after(params[0], inputs[i]), 12)) for i in range(len(inputs))
    ]
    cap = 9
    assert cap in lengths, "the test needs a row whose EOS falls on the cap"
    result = run(params, inputs, config=toys.config(cap))
    for i, length in enumerate(lengths):
        assert result.finish[i] == (Finish.EOS if length <= cap else Finish.LENGTH)


def test_masked_rows_do_nothing():
    inputs = toys.ragged_inputs(16)
    params = toys.tables(1)
    mask = jnp.arange(16) % 3 != 0
    for temperature in (0.0, 1.0):
        result = run(params, inputs, row_mask=mask, temperature=temperature)
        full = run(params, inputs, row_mask=jnp.ones(16, bool), temperature=temperature)
        real = np.flatnonzero(mask)
        assert_same_rows(jax.tree.map(lambda x, real=real: x[real], result), full, real)
        assert (np.asarray(result.finish)[~np.asarray(mask)] == Finish.PADDING).all()


# ------------------------------------------------------------------------------------------------
# A row depends on nothing but itself
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verification", [pytest.param("token", marks=pytest.mark.slow), "block"])
def test_neighbours_order_and_padding_do_not_matter(verification):
    inputs = toys.ragged_inputs(16, 9)
    params = toys.tables(9)
    config = toys.config(return_log_probs=True)
    temperature = jnp.asarray(np.resize([0.0, 1.0, 0.5, 2.0], 16))
    alpha = jnp.asarray(np.resize([0.1, 0.5, 0.9], 16))
    settings = dict(rule=rules.get("token_v3"), config=config, verification=verification)
    together = run(params, inputs, temperature=temperature, alpha=alpha, **settings)

    order = np.random.default_rng(0).permutation(16)
    shuffled = run(
        params,
        inputs[order],
        temperature=temperature[order],
        alpha=alpha[order],
        keys=toys.keys(16)[order],
        **settings,
    )
    assert_same_rows(shuffled, together, order)

    for i in range(4):  # alone, at every temperature
        alone = run(
            params,
            inputs[i : i + 1],
            temperature=temperature[i : i + 1],
            alpha=alpha[i : i + 1],
            keys=toys.keys(16)[i : i + 1],
            **settings,
        )
        assert_same_rows(alone, together, slice(i, i + 1))

    more = jnp.pad(inputs, [(0, 0), (0, 3)])
    assert_same_rows(run(params, more, temperature=temperature, alpha=alpha, **settings), together)


def test_keys_make_the_difference():
    inputs = jnp.broadcast_to(toys.ragged_inputs(1), (16, 6))
    params = toys.tables(8, eos=-5.0)
    first = run(params, inputs, temperature=1.0)
    again = run(params, inputs, temperature=1.0)
    other = run(params, inputs, temperature=1.0, keys=toys.keys(16, seed=1))
    np.testing.assert_array_equal(first.tokens, again.tokens)
    assert len({toys.row(first, i) for i in range(16)}) > 12
    assert (first.tokens != other.tokens).any(axis=1).sum() > 12
    np.testing.assert_array_equal(
        jax.random.key_data(toys.keys(4)[2]), jax.random.key_data(decoding.row_keys(0, [2])[0])
    )


# ------------------------------------------------------------------------------------------------
# Log-probabilities
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_log_probabilities_are_those_of_teacher_forcing(temperature):
    inputs = toys.ragged_inputs(16, 9)
    params = toys.tables(9)
    config = toys.config(return_log_probs=True)
    temperature = jnp.full(16, temperature)
    alpha = jnp.full(16, 0.5)
    result = run(
        params,
        inputs,
        rule=rules.get("token_v3"),
        config=config,
        temperature=temperature,
        alpha=alpha,
        verification="block",
    )
    scores = jax.nn.log_softmax(toys.TOY.score(params[0], Prompt.padded(inputs), result.tokens))
    wanted = np.take_along_axis(np.asarray(scores), np.asarray(result.tokens)[..., None], -1)[
        ..., 0
    ]
    inside = np.arange(12) < np.asarray(result.lengths)[:, None]
    np.testing.assert_allclose(result.log_probs, np.where(inside, wanted, 0), atol=1e-5)


# ------------------------------------------------------------------------------------------------
# Numbers that are not finite
# ------------------------------------------------------------------------------------------------


def poison(table, share, bad, column=3):
    """A table with some contexts at which one logit is bad."""
    table = np.array(table)
    where = np.random.default_rng(0).uniform(size=len(table)) < share
    table[where, column] = bad
    return jnp.asarray(table)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_stands_before_the_targets_fault_is_kept_whatever_the_block(bad):
    inputs = toys.ragged_inputs(16, 4)
    target, drafter = toys.tables(4, eos=-3.0)
    clean = run((target, drafter), inputs)
    broken = poison(target, 0.06, bad)
    plain = toys.autoregressive(
        toys.TOY, broken, inputs, toys.keys(16), temperature=0.0, config=CONFIG
    )
    ended = np.asarray(plain.finish) == Finish.NONFINITE
    assert 3 < ended.sum() < 16
    for i in range(16):
        row, wanted = toys.row(plain, i), toys.row(clean, i)
        assert row == (wanted[: len(row)] if ended[i] else wanted)
    results = [run((broken, drafter), inputs, gamma=gamma) for gamma in (1, 3, 8)]
    results.append(run((broken, drafter), inputs, verification="block"))
    for result in results:
        for name in ("tokens", "lengths", "finish"):
            np.testing.assert_array_equal(getattr(result, name), getattr(plain, name), name)
    intact = np.flatnonzero(~ended)
    assert_same_rows(jax.tree.map(lambda x: x[intact], results[1]), clean, intact)


@pytest.mark.parametrize("bonus", ["target", "rule"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_target_goes_on_where_the_drafter_breaks_down(bad, bonus):
    inputs = toys.ragged_inputs(16, 4)
    target, drafter = toys.tables(4, eos=-3.0)
    clean = run((target, drafter), inputs)
    broken = run((target, poison(drafter, 0.1, bad)), inputs, bonus=bonus)
    for name in ("tokens", "lengths", "finish"):
        np.testing.assert_array_equal(getattr(broken, name), getattr(clean, name), name)
    assert broken.statistics.drafter_faults.sum() > 5
    assert broken.statistics.drafted.sum() < clean.statistics.drafted.sum()
    assert (clean.statistics.drafter_faults == 0).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_ids_that_the_models_do_not_share_are_no_faults(bad):
    """The drafter's table is wider than the target's: what stands there does not count."""
    inputs = toys.ragged_inputs(16)
    target, drafter = toys.tables(11, vocab=5)
    wide = jnp.pad(drafter, [(0, 0), (0, 3)], constant_values=bad)
    result = run((target, wide), inputs, drafter=ModelDrafter(ToyModel(8)))
    assert_same_rows(result, run((target, drafter), inputs))


def test_minus_infinity_masks_an_id():
    inputs = toys.ragged_inputs(16)
    target, drafter = toys.tables(11)
    masked, low = ([t.at[:, 3].set(value) for t in (target, drafter)] for value in (-jnp.inf, -1e6))
    settings = dict(temperature=1.0, config=toys.config(return_log_probs=True))
    result = run(masked, inputs, **settings)
    assert_same_rows(result, run(low, inputs, **settings))
    assert (result.finish != Finish.NONFINITE).all() and (result.tokens != 3).all()


@pytest.mark.parametrize("verification", ["token", "block"])
def test_non_finite_logits_never_pick_a_token(verification):
    """All of the target's logits are NaN: no row writes anything, at any temperature."""
    target, drafter = toys.tables(4)
    result = run(
        (jnp.full_like(target, jnp.nan), drafter),
        toys.ragged_inputs(16),
        rule=rules.get("token_v3"),
        temperature=jnp.asarray(np.resize([0.0, 1.0], 16)),
        alpha=jnp.full(16, 0.5),
        verification=verification,
        config=toys.config(return_log_probs=True),
    )
    assert (result.lengths == 0).all() and (result.finish == Finish.NONFINITE).all()
    np.testing.assert_array_equal(result.statistics.target_calls, 1)
    assert (result.statistics.drafted == 0).all()


def test_non_finite_logits_behind_a_rejected_draft_do_not_matter():
    """The target gives NaN wherever its own text does not lead: after drafts that are rejected."""
    inputs = toys.ragged_inputs(16, 4)
    target, drafter = toys.tables(4, eos=-3.0)
    clean = run((target, drafter), inputs)
    reached = np.zeros(toys.TOY.contexts, bool)
    for i in range(16):
        fed = jnp.asarray([[0, *toys.row(clean, i)]])
        cache = toys.TOY.prefill(target, Prompt.padded(inputs[i : i + 1]), fed.shape[1])
        row_numbers = jnp.arange(toys.TOY.contexts)[:, None]
        contexts, _ = toys.TOY.extend(row_numbers, cache, fed, jnp.zeros(1, jnp.int32))
        reached[np.asarray(contexts).ravel()] = True
    poisoned = jnp.where(reached[:, None], target, jnp.nan)
    assert_same_rows(run((poisoned, drafter), inputs), clean)


@rules.register_rule(summary="NaN where the target is sure", source="this test")
def broken_rule(d, alpha):
    return jnp.where((d.p_hat.max(axis=-1) > 0.8)[..., None], jnp.nan, d.p)


@pytest.mark.parametrize("verification", ["token", "block"])
def test_a_rule_that_gives_nan_ends_the_row(verification):
    inputs = toys.ragged_inputs(16, 4)
    params = toys.tables(4, eos=-3.0)
    clean = run(params, inputs)
    result = run(params, inputs, rule=rules.get("broken_rule"), verification=verification)
    ended = np.asarray(result.finish) == Finish.NONFINITE
    assert ended.any()
    for i in range(16):
        row, wanted = toys.row(result, i), toys.row(clean, i)
        assert row == (wanted[: len(row)] if ended[i] else wanted)


# ------------------------------------------------------------------------------------------------
# Vocabularies
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(8, 6), (6, 8)])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_tables_padded_to_different_sizes(sizes, temperature):
    """Five real ids, tables of six and eight whose padding is the likeliest of all."""
    wide = ToyModel(8)
    target, drafter = toys.tables(11, vocab=8, model=wide)
    target, drafter = (
        t.at[:, 5:].add(20.0)[:, :n] for t, n in zip((target, drafter), sizes, strict=True)
    )
    inputs = toys.ragged_inputs(16)
    result = run(
        (target, drafter),
        inputs,
        target=ToyModel(sizes[0]),
        drafter=ModelDrafter(ToyModel(sizes[1])),
        config=toys.config(vocab_size=5, return_log_probs=True),
        temperature=temperature,
    )
    assert result.tokens.max() < 5
    if temperature == 0:
        for i in range(16):
            logits = toys.logits_after(target[:, :5], inputs[i])
            assert toys.row(result, i) == toys.greedy(logits, 12)
        assert result.statistics.accepted.sum() > 30  # the padding does not spoil the drafts


def test_the_target_may_use_ids_that_the_drafter_has_not():
    wide = ToyModel(8)
    target, drafter = toys.tables(11, vocab=8, model=wide, eos=-4.0)
    # The toy drafter is made to fail as an embedding look-up does: NaN beyond its table.
    inputs = toys.ragged_inputs(16)
    result = run((target, drafter[:, :6]), inputs, target=wide, drafter=ModelDrafter(StrictToy(6)))
    for i in range(16):
        assert toys.row(result, i) == toys.greedy(toys.logits_after(target, inputs[i]), 12)
    assert (np.asarray(result.tokens) >= 6).any()
    drafted_ids = np.asarray(result.tokens)[np.asarray(result.origins) == Origin.DRAFT]
    assert drafted_ids.max() < 6


class StrictToy(ToyModel):
    """A toy whose logits are NaN where it is fed an id beyond its table."""

    def extend(self, params, cache, tokens, start, logits="all"):
        logits, cache = super().extend(params, cache, tokens, start, logits)
        return jnp.where((tokens < self.vocab_size)[..., None], logits, jnp.nan), cache


# ------------------------------------------------------------------------------------------------
# Compilation, steps and errors
# ------------------------------------------------------------------------------------------------


def test_a_sweep_over_alpha_and_temperature_compiles_once():
    decoder = decoding.SpeculativeDecoder(
        toys.TOY, DRAFTER, rules.get("token_v3"), toys.config(4), gamma=2
    )
    decode = jax.jit(
        functools.partial(decoding.decode, decoder), compiler_options=oracles.QUICK_COMPILE
    )
    params, inputs = PairParams(*toys.tables(0)), Prompt.padded(toys.ragged_inputs(4))
    seen = set()
    for alpha in np.linspace(-1, 1, 20):
        result = decode(
            params, inputs, toys.keys(4), alpha=float(alpha), temperature=float(alpha > 0)
        )
        seen.add(np.asarray(result.tokens).tobytes())
    assert decode._cache_size() == 1
    assert len(seen) > 1, "alpha should change something"


def test_equal_settings_share_a_program():
    before = toys.decode._cache_size()
    params, inputs = toys.tables(0), toys.ragged_inputs(4)
    for _ in range(2):
        toys.speculative(
            ToyModel(5),
            ModelDrafter(ToyModel(5)),
            rules.get("lossy", beta=1.0),
            *params,
            inputs,
            toys.keys(4),
            alpha=0.5,
            temperature=1.0,
            config=toys.config(4),
            gamma=2,
        )
    assert toys.decode._cache_size() == before + 1


def test_the_steps_in_a_loop_on_the_host_give_the_same():
    decoder = decoding.SpeculativeDecoder(
        toys.TOY, DRAFTER, rules.get("token_v3"), CONFIG, gamma=3, bonus="rule"
    )
    params, prompt = PairParams(*toys.tables(12)), Prompt.padded(toys.ragged_inputs(8))
    settings = {"alpha": 0.4, "temperature": 0.8}
    whole = toys.decode(decoder, params, prompt, toys.keys(8), **settings)

    start, draft, verify, commit = (
        jax.jit(getattr(decoder, name), compiler_options=oracles.QUICK_COMPILE)
        for name in ("start", "draft", "verify", "commit")
    )
    state = start(params, prompt, toys.keys(8))
    steps = 0
    while bool(state.output.running.any()):
        before = state.output
        proposed, state = draft(params, state, temperature=0.8)
        verified, state = verify(params, state, proposed, **settings)
        state = commit(state, proposed, verified)
        steps += 1
        # Streaming: what has been emitted stands, and a finished row rests.
        for i, n in enumerate(np.asarray(before.length)):
            np.testing.assert_array_equal(
                state.output.sequence[i, : n + 1], before.sequence[i, : n + 1]
            )
        done = ~np.asarray(before.running)
        np.testing.assert_array_equal(state.output.length[done], before.length[done])
    assert_same_rows(decoder.result(state), whole)
    assert steps == int(whole.statistics.target_calls.max())


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"gamma": 0}, ["gamma must be a whole number of at least 1", "got 0"]),
        ({"verification": "blocks"}, ["verification", "'blocks'", "token, block"]),
        ({"bonus": "drafter"}, ["bonus", "'drafter'", "target, rule"]),
        ({"rule": "lossy", "verification": "block"}, ["block", "'lossy'", "target distribution"]),
        ({"rule": "typical", "bonus": "rule"}, ["bonus", "'typical'", "target distribution"]),
    ],
)
def test_impossible_settings_are_refused(settings, words):
    settings = {"rule": "speculative", "gamma": 2} | settings
    settings["rule"] = rules.get(settings["rule"])
    with pytest.raises(ValueError) as error:
        decoding.SpeculativeDecoder(toys.TOY, DRAFTER, config=CONFIG, **settings)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_decode_length": -1},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"vocab_size": 0},
        {"stop_ids": (-1,)},
        {"spare": 0},
        {"prompt_capacity": 0},
    ],
)
def test_impossible_configurations_are_refused(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=name) as error:
        decoding.DecodeConfig(**{"max_decode_length": 3} | settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_acceptance_is_one_minus_the_distance_from_pi(temperature):
    """The rate at the first position of a block, over many rows of one input."""
    rows = 4096
    inputs = jnp.broadcast_to(toys.ragged_inputs(1), (rows, 6))
    params = toys.tables(13, 0.3)
    result = run(
        params,
        inputs,
        config=toys.config(1),
        gamma=1,
        temperature=temperature,
        alpha=0.3,
        rule=rules.get("token_v3"),
        keys=toys.keys(rows),
    )
    rate = int(result.statistics.accepted.sum()) / int(result.statistics.drafted.sum())
    q_logits, p_logits = (toys.logits_after(t, inputs[0]) for t in (params[1], params[0]))
    q, p, qh, ph = toys.distributions(q_logits, p_logits, (), temperature)
    wanted = 1 - oracles.tv(oracles.PI["token_v3"](q, p, qh, ph, 0.3), q)
    assert 0.1 < wanted < 0.95
    assert abs(rate - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / rows)


# ------------------------------------------------------------------------------------------------
# The protocol
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_ids", [(1,), (1, 3), (2, 3), ()])
def test_every_stop_id_ends_a_row(stop_ids):
    inputs = toys.ragged_inputs(16, 2)
    target, drafter = toys.tables(2)
    config = decoding.DecodeConfig(max_decode_length=12, stop_ids=stop_ids, pad_id=4)
    params = PairParams(target, drafter)
    drafters = ((DRAFTER, params), (PromptLookup(), PairParams(target)))
    for drafter_, given in drafters:
        decoder = decoding.SpeculativeDecoder(toys.TOY, drafter_, SPECULATIVE, config, gamma=3)
        result = toys.decode(decoder, given, Prompt.padded(inputs), toys.keys(16))
        for i in range(16):
            logits, wanted = toys.logits_after(target, inputs[i]), ()
            while len(wanted) < 12 and not (wanted and wanted[-1] in stop_ids):
                wanted += (int(np.argmax(logits(wanted))),)
            assert toys.row(result, i) == wanted


def decoders(config):
    """One of every kind, with the value that it is run at."""
    chow, opt = rules.get("chow"), rules.get("opt")
    toy = toys.TOY
    return {
        "target": (decoding.AutoregressiveDecoder(toy, config), 0.0),
        "drafter": (decoding.AutoregressiveDecoder(toy, config, "drafter"), 0.0),
        "speculative": (
            decoding.SpeculativeDecoder(toy, DRAFTER, opt, config, 3),
            0.2,
        ),
        "lookup": (decoding.SpeculativeDecoder(toy, PromptLookup(), SPECULATIVE, config, 2), 0.0),
        "token_cascade": (decoding.TokenCascade(toy, toy, chow, config), 0.4),
        "sequence_cascade": (decoding.SequenceCascade(toy, toy, config), -0.6),
        "bild": (decoding.bild(toy, toy, config, rollback=2.0, max_draft=4), 0.5),
    }


@pytest.mark.parametrize("which", list(decoders(CONFIG)))
def test_inserted_rows_end_as_if_they_had_been_alone(which):
    """Rows of another batch, of another width, put in the place of finished ones."""
    config = toys.config(return_log_probs=True, spare=12, prompt_capacity=9)
    decoder, alpha = decoders(config)[which]
    params = PairParams(*toys.tables(5, 0.5))
    inputs, later = toys.ragged_inputs(8, 1), toys.ragged_inputs(3, 2, length=9)
    settings = {"alpha": alpha, "temperature": 0.7}
    keys, later_keys = toys.keys(8), toys.keys(3, seed=9)
    alone = [
        toys.decode(decoder, params, Prompt.padded(x), k, **settings)
        for x, k in ((inputs, keys), (later, later_keys))
    ]
    start = jax.jit(decoder.start)
    state = start(params, Prompt.padded(inputs), keys)
    step = jax.jit(functools.partial(decoder.step, **settings))
    while int(decoder.running(state).sum()) > 5:
        state = step(params, state)
    finished = np.flatnonzero(~np.asarray(decoder.running(state)))[:2]
    harvested = decoder.result(state)
    # The third row has no place: it is left out.
    rows = jnp.asarray([*finished, 8])
    state = jax.jit(decoder.insert)(state, rows, start(params, Prompt.padded(later), later_keys))
    while bool(decoder.running(state).any()):
        state = step(params, state)
    result = decoder.result(state)
    for place, row in enumerate(finished):
        take = functools.partial(jax.tree.map, lambda x, row=row: x[row : row + 1])
        assert_same_rows(take(harvested), alone[0], slice(row, row + 1))
        assert_same_rows(take(result), alone[1], slice(place, place + 1))
    others = np.setdiff1d(np.arange(8), finished)
    assert_same_rows(jax.tree.map(lambda x: x[others], result), alone[0], others)


def test_a_spare_too_small_is_refused():
    decoder, _ = decoders(toys.config(spare=2))["speculative"]
    with pytest.raises(ValueError, match="spare = 2 is too small: this decoder needs 4"):
        decoder.start(
            PairParams(*toys.tables(0)), Prompt.padded(toys.ragged_inputs(2)), toys.keys(2)
        )
