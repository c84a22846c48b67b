"""Prompt look-up: what it proposes, and that it changes nothing but the cost."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toys

from spec_cascades import decoding, rules
from spec_cascades.decoding import Prompt, PromptLookup
from spec_cascades.testing import ToyModel

CONFIG = toys.config(24)
GAMMA = 4


def look_up(prompt, out, gamma, longest, shortest, cap=24, eos=toys.EOS, vocab=5):
    """What follows the latest earlier occurrence of the longest possible n-gram."""
    text = [int(x) for x in prompt if x] + list(out)
    for n in range(longest, shortest - 1, -1):
        if n > len(out):
            continue
        ngram = text[-n:]
        for place in range(len(text) - n - 1, -1, -1):
            if text[place : place + n] == ngram:
                draft = []
                for x in text[place + n :][: min(gamma, cap - len(out))]:
                    if x >= vocab:
                        break
                    draft.append(x)
                    if x == eos:
                        break
                return tuple(draft)
    return ()


def reference(p_logits, prompt, drafter, cap=24, vocab=5):
    """Greedy and lossless: tokens, target calls, drafted, accepted."""
    out, calls, drafted, accepted = (), 0, 0, 0
    while len(out) < cap and toys.EOS not in out:
        draft = look_up(prompt, out, GAMMA, drafter.max_ngram, drafter.min_ngram, cap, vocab=vocab)
        calls, drafted = calls + 1, drafted + len(draft)
        for x in draft:
            best = int(np.argmax(p_logits(out)))
            out += (best,)
            if best != x:
                break
            accepted += 1
        else:
            if len(out) < cap and toys.EOS not in out:
                out += (int(np.argmax(p_logits(out))),)
    return out, calls, drafted, accepted


def repetitive(seed):
    """A target that has favourites, so that its output repeats, and inputs of the same ids."""
    table, _ = toys.tables(seed, eos=-2.0)
    table = 0.5 * table + jnp.asarray([-1.0, -1.0, 2.0, 2.2, 0.0])
    rng = np.random.default_rng(seed)
    inputs = rng.choice([2, 3, 4, 7], size=(16, 10), p=[0.4, 0.4, 0.15, 0.05])
    inputs[:, 6:] *= np.arange(6, 10) < rng.integers(6, 11, size=(16, 1))
    return table, jnp.asarray(inputs, jnp.int32)


def run(table, inputs, drafter, rule="speculative", config=CONFIG, target=toys.TOY, **settings):
    settings = {"alpha": 0.0, "temperature": 0.0, "keys": toys.keys(len(inputs))} | settings
    result = toys.speculative(
        target,
        drafter,
        rules.get(rule),
        table,
        None,
        inputs,
        config=config,
        gamma=GAMMA,
        **settings,
    )
    toys.check_invariants(result, config)
    toys.check_speculation(result, GAMMA)
    return result


@pytest.mark.parametrize("drafter", [PromptLookup(), PromptLookup(2, 2)])
def test_prompt_lookup_drafts_what_followed_before(drafter):
    total = 0
    for seed in range(4):
        table, inputs = repetitive(seed)
        result = run(table, inputs, drafter)
        for i in range(16):
            out, calls, drafted, accepted = reference(
                toys.logits_after(table, inputs[i]), inputs[i], drafter
            )
            assert toys.row(result, i) == out
            counts = jax.tree.map(lambda x, i=i: int(x[i].sum()), result.statistics)
            assert (counts.target_calls, counts.drafted, counts.accepted) == (
                calls,
                drafted,
                accepted,
            )
            assert counts.drafter_calls == counts.drafter_prefills == 0
            total += accepted
    assert total > 100


def test_prompt_lookup_does_not_see_the_padding():
    """However much of it, and whatever stands there: the same drafts, and draws at T = 1."""
    table, inputs = repetitive(1)
    wide = np.pad(np.asarray(inputs), [(0, 0), (0, 3)])
    one, other = (
        run(table, jnp.asarray(x), PromptLookup(), temperature=1.0) for x in (inputs, wide)
    )
    prompt = Prompt.padded(wide)
    filled = prompt.replace(tokens=jnp.where(prompt.mask, prompt.tokens, 3))
    carries = [PromptLookup().start(p, None, CONFIG) for p in (prompt, filled)]
    for carry in carries:
        for text, start, length, row in zip(
            carry.text, carry.start, prompt.lengths, wide, strict=True
        ):
            np.testing.assert_array_equal(text[start:], row[:length])
    np.testing.assert_array_equal(one.tokens, other.tokens)
    jax.tree.map(np.testing.assert_array_equal, one.statistics, other.statistics)


def test_prompt_lookup_never_drafts_ids_that_the_target_has_not():
    """Inputs hold ids (7) above the table, and above the real vocabulary of a padded table."""
    table, inputs = repetitive(2)
    for target, width in ((toys.TOY, 5), (ToyModel(8), 8)):
        wide = jnp.pad(table, [(0, 0), (0, width - 5)], constant_values=9.0)
        config = toys.config(24, vocab_size=5)
        result = run(
            wide,
            inputs,
            PromptLookup(),
            rule="draft_only",
            bonus="rule",
            config=config,
            target=target,
        )
        assert (np.asarray(result.tokens) < 5).all()


@pytest.mark.parametrize("verification", ["token", "block"])
def test_prompt_lookup_with_a_rule_writes_nothing_out_of_thin_air(verification):
    """Where nothing was found there is no drafter's distribution: the target's stands."""
    table, inputs = repetitive(3)
    result = run(
        table,
        inputs,
        PromptLookup(2, 2),
        rule="draft_only",
        bonus="rule",
        verification=verification,
    )
    for i in range(16):
        p_logits = toys.logits_after(table, inputs[i])
        out = ()
        while len(out) < 24 and toys.EOS not in out:
            found = look_up(inputs[i], out, GAMMA + 1, 2, 2, cap=99)
            out += found[:GAMMA]
            if toys.EOS not in out:
                out += found[GAMMA:] or (int(np.argmax(p_logits(out))),)
        assert toys.row(result, i) == out[:24]


def test_prompt_lookup_refuses_impossible_ngrams():
    for longest, shortest in ((2, 3), (3, 0)):
        with pytest.raises(ValueError, match="min_ngram"):
            PromptLookup(longest, shortest)


def test_prompt_lookup_is_lossless_at_all_temperatures():
    """At T = 1 the first token's law is the target's, drafted or not."""
    table, inputs = repetitive(0)
    rows = 4096
    many = jnp.broadcast_to(inputs[0], (rows, inputs.shape[1]))
    result = run(table, many, PromptLookup(), temperature=1.0, keys=toys.keys(rows))
    plain = toys.autoregressive(
        toys.TOY, table, many, toys.keys(rows, seed=1), temperature=1.0, config=CONFIG
    )
    assert int(result.statistics.accepted.sum()) > rows
    for place in (0, 1, 2, 5):
        a, b = (
            np.bincount(np.asarray(r.tokens[:, place]), minlength=5) / rows for r in (result, plain)
        )
        assert np.abs(a - b).max() < 5 * np.sqrt(0.5 / rows)


def test_drafters_are_hashable_settings():
    assert hash(PromptLookup()) == hash(PromptLookup(3, 1))
    assert decoding.ModelDrafter(ToyModel(5)) == decoding.ModelDrafter(toys.TOY)


def test_prompt_lookup_takes_0_for_an_ordinary_token():
    carry = PromptLookup().start(Prompt.of([[5, 0, 7, 9], [4]], width=6), None, CONFIG)
    assert carry.text[0, carry.start[0] :].tolist() == [5, 0, 7, 9]
    assert carry.text[1, carry.start[1] :].tolist() == [4]
