"""Token-level and sequence-level cascades, BiLD and autoregressive decoding, row by row, against
plain Python versions of what they claim to do (greedy), and their counts."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import toys

from spec_cascades import decoding, rules
from spec_cascades.decoding import Finish, Origin
from spec_cascades.testing import ToyModel

CONFIG = toys.config(14, return_log_probs=True)
BATCH = 16


def both(params, row_input):
    """The drafter's and the target's logits after a prefix."""
    return toys.logits_after(params[1], row_input), toys.logits_after(params[0], row_input)


# ------------------------------------------------------------------------------------------------
# Autoregressive
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["target", "drafter"])
def test_autoregressive_counts_by_role(role):
    inputs = toys.ragged_inputs(BATCH)
    table, _ = toys.tables(0)
    mask = jnp.arange(BATCH) != 2
    result = toys.autoregressive(
        toys.TOY,
        table,
        inputs,
        toys.keys(BATCH),
        temperature=0.0,
        config=CONFIG,
        row_mask=mask,
        role=role,
    )
    toys.check_invariants(result, CONFIG)
    for i in np.flatnonzero(mask):
        wanted = toys.greedy(toys.logits_after(table, inputs[i]), 14)
        assert toys.row(result, i) == wanted
    counts, lengths = result.statistics, np.asarray(result.lengths)
    calls, others = counts.target_calls, counts.drafter_calls
    prefills, other_prefills = counts.target_prefills, counts.drafter_prefills
    if role == "drafter":
        calls, others, prefills, other_prefills = others, calls, other_prefills, prefills
    np.testing.assert_array_equal(calls, lengths)
    np.testing.assert_array_equal(prefills, mask)
    assert (others == 0).all() and (other_prefills == 0).all()
    np.testing.assert_array_equal(counts.bonus if role == "target" else counts.accepted, lengths)
    np.testing.assert_array_equal(counts.drafted, 0 if role == "target" else lengths)


def test_autoregressive_ends_a_row_at_numbers_that_are_not_finite():
    inputs = toys.ragged_inputs(BATCH)
    table, _ = toys.tables(0)
    clean = toys.autoregressive(
        toys.TOY, table, inputs, toys.keys(BATCH), temperature=0.0, config=CONFIG
    )
    poisoned = np.array(table)
    poisoned[np.random.default_rng(1).uniform(size=len(poisoned)) < 0.15, 2] = np.nan
    result = toys.autoregressive(
        toys.TOY, jnp.asarray(poisoned), inputs, toys.keys(BATCH), temperature=0.0, config=CONFIG
    )
    toys.check_invariants(result, CONFIG)
    ended = np.asarray(result.finish) == Finish.NONFINITE
    assert 2 < ended.sum() < BATCH
    for i in range(BATCH):
        row, wanted = toys.row(result, i), toys.row(clean, i)
        assert row == (wanted[: len(row)] if ended[i] else wanted)


def test_unknown_role_is_refused():
    with pytest.raises(ValueError, match="'oracle'.*target, drafter"):
        decoding.AutoregressiveDecoder(toys.TOY, CONFIG, role="oracle")


# ------------------------------------------------------------------------------------------------
# Token level
# ------------------------------------------------------------------------------------------------


def token_cascade_reference(q_logits, p_logits, keep, cap):
    out, origins, log_probs, target_calls = (), (), (), 0
    while len(out) < cap and toys.EOS not in out:
        q, p, qh, ph = toys.distributions(q_logits, p_logits, out)
        kept = keep(q, p, qh, ph)
        token = int(np.argmax(q if kept else p))
        log_probs += (np.log((qh if kept else ph)[token]),)
        origins += (Origin.DRAFT if kept else Origin.TARGET,)
        target_calls += not kept
        out += (token,)
    return out, origins, log_probs, target_calls


@pytest.mark.parametrize("name, alpha", [("chow", 0.4), ("chow_log", 0.9), ("diff", 0.05)])
def test_token_cascade(name, alpha):
    inputs = toys.ragged_inputs(BATCH, 1)
    params = toys.tables(1, 0.5, eos=-2.0)
    rule = rules.get(name)
    result = toys.token_cascade(
        toys.TOY,
        toys.TOY,
        rule,
        *params,
        inputs,
        toys.keys(BATCH),
        alpha=alpha,
        temperature=0.0,
        config=CONFIG,
    )
    toys.check_invariants(result, CONFIG)
    counts, deferred = result.statistics, 0
    for i in range(BATCH):

        def keep(q, p, qh, ph):
            # Which of the two `pi` is, told by distributions that differ.
            q, p = np.eye(5)[0], np.eye(5)[1]
            if name == "diff":
                return qh.max() >= ph.max() - alpha
            return oracles.PI[name](q, p, qh, ph, alpha)[0] == 1

        out, origins, log_probs, calls = token_cascade_reference(*both(params, inputs[i]), keep, 14)
        assert toys.row(result, i) == out
        np.testing.assert_array_equal(result.origins[i, : len(out)], origins)
        np.testing.assert_allclose(result.log_probs[i, : len(out)], log_probs, atol=1e-5)
        # A rule that looks at the target runs it at every position.
        assert counts.target_calls[i] == (len(out) if rule.needs_target else calls)
        assert counts.drafter_calls[i] == len(out)
        assert counts.corrected[i] == counts.deferred[i] == calls
        deferred += calls
    assert 0 < deferred < int(result.lengths.sum())
    np.testing.assert_array_equal(counts.drafted, result.lengths)


def test_token_cascade_catches_up_after_long_stretches():
    """The target is asked once in a long while, by some rows only, and has read everything."""
    inputs = toys.ragged_inputs(BATCH, 2)
    config = toys.config(60)
    params = toys.tables(2, 0.5, eos=-100.0)
    top = np.sort(np.asarray(jax.nn.softmax(params[1]).max(axis=1)))
    alpha = float(1 - top[len(top) // 25])  # one position in 25 defers
    result = toys.token_cascade(
        toys.TOY,
        toys.TOY,
        rules.get("chow"),
        *params,
        inputs,
        toys.keys(BATCH),
        alpha=alpha,
        temperature=0.0,
        config=config,
    )
    toys.check_invariants(result, config)
    gaps = set()
    for i in range(BATCH):
        out, origins, _, calls = token_cascade_reference(
            *both(params, inputs[i]), lambda q, p, qh, ph: qh.max() >= 1 - np.float32(alpha), 60
        )
        assert toys.row(result, i) == out
        assert result.statistics.target_calls[i] == calls
        places = [j for j, origin in enumerate(origins) if origin == Origin.TARGET]
        gaps |= set(np.diff([-1, *places]).tolist())
    assert min(gaps) < 8 < max(gaps)


def test_token_cascade_refuses_other_rules():
    with pytest.raises(ValueError, match="'token_v3'"):
        decoding.TokenCascade(toys.TOY, toys.TOY, rules.get("token_v3"), CONFIG)


# ------------------------------------------------------------------------------------------------
# Sequence level
# ------------------------------------------------------------------------------------------------

SCORE = {
    "mean": np.mean,
    "sum": np.sum,
    "min": np.min,
    "quantile": lambda x: np.quantile(x, 0.3),
}


@pytest.mark.parametrize("score", SCORE)
def test_sequence_cascade(score):
    inputs = toys.ragged_inputs(BATCH, 3)
    params = toys.tables(3, 0.5)
    answers = []
    for i in range(BATCH):
        q_logits, p_logits = both(params, inputs[i])
        drafted, answered = toys.greedy(q_logits, 14), toys.greedy(p_logits, 14)
        log_probs = [
            np.log(oracles.softmax(q_logits(drafted[:j]))[x]) for j, x in enumerate(drafted)
        ]
        answers.append((SCORE[score](log_probs), drafted, answered))
    scores = sorted(s for s, _, _ in answers)
    threshold = (scores[7] + scores[8]) / 2
    mask = jnp.arange(BATCH) != 5
    result = toys.sequence_cascade(
        toys.TOY,
        toys.TOY,
        *params,
        inputs,
        toys.keys(BATCH),
        threshold=threshold,
        temperature=0.0,
        config=CONFIG,
        score=score,
        quantile=0.3,
        row_mask=mask,
    )
    toys.check_invariants(result, CONFIG)
    counts = result.statistics
    for i, (own, drafted, answered) in enumerate(answers):
        if not mask[i]:
            continue
        deferred = own < threshold
        assert toys.row(result, i) == (answered if deferred else drafted)
        wanted_origin = Origin.TARGET if deferred else Origin.DRAFT
        assert (result.origins[i, : result.lengths[i]] == wanted_origin).all()
        assert counts.drafter_calls[i] == counts.drafted[i] == len(drafted)
        assert counts.target_calls[i] == counts.corrected[i] == deferred * len(answered)
        assert counts.target_prefills[i] == deferred
        assert counts.deferred[i] == deferred * len(drafted)


@dataclasses.dataclass(frozen=True)
class _Watched(ToyModel):
    """Tells `prefills` of every input that it really reads."""

    prefills: ClassVar[list] = []

    def prefill(self, params, *shape, **settings):
        jax.debug.callback(lambda: self.prefills.append(1))
        return super().prefill(params, *shape, **settings)


@pytest.mark.parametrize("threshold, prefills", [(-jnp.inf, 0), (jnp.inf, 1)])
def test_sequence_cascade_runs_no_target_where_no_row_defers(threshold, prefills):
    _Watched.prefills.clear()
    result = toys.sequence_cascade(
        _Watched(toys.VOCAB),
        toys.TOY,
        *toys.tables(3),
        toys.ragged_inputs(BATCH, 3),
        toys.keys(BATCH),
        threshold=threshold,
        temperature=0.0,
        config=CONFIG,
    )
    jax.block_until_ready(result)
    jax.effects_barrier()
    assert len(_Watched.prefills) == prefills


def test_sequence_cascade_extremes_and_broken_drafters():
    inputs = toys.ragged_inputs(BATCH, 3)
    target, drafter = toys.tables(3, 0.5)

    def run(drafter, threshold):
        result = toys.sequence_cascade(
            toys.TOY,
            toys.TOY,
            target,
            drafter,
            inputs,
            toys.keys(BATCH),
            threshold=threshold,
            temperature=0.0,
            config=CONFIG,
        )
        toys.check_invariants(result, CONFIG)
        return result

    assert (run(drafter, -jnp.inf).statistics.target_calls == 0).all()
    assert (run(drafter, jnp.inf).statistics.accepted == 0).all()
    # A drafter that breaks down has no score: the target answers.
    broken = run(jnp.full_like(drafter, jnp.nan), -jnp.inf)
    for i in range(BATCH):
        assert toys.row(broken, i) == toys.greedy(toys.logits_after(target, inputs[i]), 14)


def test_sequence_cascade_refuses_unknown_scores():
    for settings, words in (({"score": "median"}, "'median'.*quantile"), ({"quantile": 2}, "2")):
        with pytest.raises(ValueError, match=words):
            decoding.SequenceCascade(toys.TOY, toys.TOY, CONFIG, **settings)


@pytest.mark.parametrize("score", SCORE)
def test_score_of_an_answer(score):
    rng = np.random.default_rng(0)
    log_probs = -rng.gamma(1.0, size=(5, 9)).astype(np.float32)
    lengths = np.array([0, 1, 2, 8, 9])
    got = decoding.answer_score(jnp.asarray(log_probs), jnp.asarray(lengths), score, 0.3)
    wanted = [
        SCORE[score](row[:n]) if n else 0.0 for row, n in zip(log_probs, lengths, strict=True)
    ]
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    empty = decoding.answer_score(jnp.zeros((2, 0)), jnp.zeros(2, jnp.int32), score)
    np.testing.assert_array_equal(empty, [0, 0])


# ------------------------------------------------------------------------------------------------
# BiLD
# ------------------------------------------------------------------------------------------------


def bild_reference(q_logits, p_logits, fallback, rollback, cap, longest):
    out, origins, target_calls = (), (), 0
    while len(out) < cap and toys.EOS not in out:
        stretch = ()
        while len(stretch) < min(longest, cap - len(out)) and toys.EOS not in stretch:
            q = oracles.softmax(q_logits(out + stretch))
            if q.max() < fallback:
                break
            stretch += (int(np.argmax(q)),)
        target_calls += 1
        for x in stretch:
            p = oracles.softmax(p_logits(out))
            if -np.log(p[x]) > rollback:
                out, origins = out + (int(np.argmax(p)),), origins + (Origin.TARGET,)
                break
            out, origins = out + (x,), origins + (Origin.DRAFT,)
        else:
            if len(out) < cap and toys.EOS not in out:
                out += (int(np.argmax(p_logits(out))),)
                origins += (Origin.BONUS,)
    return out, origins, target_calls


@pytest.mark.parametrize("rollback", [0.7, 2.0, 100.0])
def test_bild_row_by_row(rollback):
    """Rows with thresholds of their own in one batch, each as if it were alone."""
    inputs = toys.ragged_inputs(BATCH, 4)
    params = toys.tables(4, 0.5, eos=-2.0)
    fallback = np.resize([0.3, 0.5, 0.8], BATCH)
    config = toys.config(20)
    result = toys.bild(
        toys.TOY,
        toys.TOY,
        *params,
        inputs,
        toys.keys(BATCH),
        fallback=jnp.asarray(fallback),
        rollback=rollback,
        config=config,
        max_draft=4,
    )
    toys.check_invariants(result, config)
    toys.check_speculation(result, 4)
    kinds = set()
    for i in range(BATCH):
        out, origins, calls = bild_reference(*both(params, inputs[i]), fallback[i], rollback, 20, 4)
        assert toys.row(result, i) == out
        np.testing.assert_array_equal(result.origins[i, : len(out)], origins)
        assert result.statistics.target_calls[i] == calls
        kinds |= set(origins)
    # A draft that nothing may take back leaves nothing to correct.
    assert kinds == {Origin.DRAFT, Origin.BONUS} | ({Origin.TARGET} if rollback < 100 else set())
