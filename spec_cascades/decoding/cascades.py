"""Cascades without speculation: the drafter answers, and hands over to the target when unsure.

`sequence_cascade` decides once for the whole answer, `token_cascade` at every position. Both wait
for the drafter before the target can begin, which is what speculative cascades do away with.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from spec_cascades import distributions as dist
from spec_cascades.decoding import state as st
from spec_cascades.decoding.autoregressive import autoregressive
from spec_cascades.decoding.drafters import known_ids
from spec_cascades.rules import Distributions, Rule

SCORES = ("mean", "sum", "min", "quantile")
# Tokens that the target catches up on in one call of `extend`.
_CATCH_UP = 8


# --------------------------------------------------------------------------------------------
# Sequence level
# --------------------------------------------------------------------------------------------


def sequence_cascade(
    target: Any,
    drafter_model: Any,
    target_params: Any,
    drafter_params: Any,
    inputs: jax.Array,
    keys: jax.Array,
    *,
    threshold: jax.Array | float,
    temperature: jax.Array | float,
    config: st.DecodeConfig,
    score: str = "mean",
    quantile: float = 0.2,
    row_mask: jax.Array | None = None,
) -> st.DecodeResult:
    """The drafter writes the whole answer; where its score falls short the target starts afresh.

    `log_probs`, where asked for, are those of the model that wrote the answer.

    Args:
        target: a `models.Model`.
        drafter_model: a `models.Model`.
        target_params: the target's parameters.
        drafter_params: the drafter's.
        inputs: int32 [batch, input_length].
        keys: PRNG key [batch], see `row_keys`.
        threshold: score below which the target answers, in nats; scalar or [batch]; traced.
        temperature: scalar or [batch]; traced; 0 is greedy.
        config: decoding settings.
        score: of the drafter's token log-probabilities: "mean", "sum", "min" (the least likely
            token) or "quantile".
        quantile: for that score, 0 to 1.
        row_mask: bool [batch], False for padding rows.
    """
    if score not in SCORES:
        raise ValueError(f"score = {score!r} must be one of {', '.join(SCORES)}")
    if not 0 <= quantile <= 1:
        raise ValueError(f"quantile = {quantile} must be within 0 and 1")
    scored = dataclasses.replace(config, return_log_probs=True)
    drafted = autoregressive(
        drafter_model,
        drafter_params,
        inputs,
        keys,
        temperature=temperature,
        config=scored,
        row_mask=row_mask,
        role="drafter",
    )
    falls_short = answer_score(drafted.log_probs, drafted.lengths, score, quantile) < threshold
    real = jnp.ones(inputs.shape[0], bool) if row_mask is None else row_mask
    # A draft that ended in a NaN has no score to speak of.
    deferred = real & (falls_short | (drafted.finish == st.Finish.NONFINITE))

    def answer():
        return autoregressive(
            target,
            target_params,
            inputs,
            # Fresh numbers: whether the target runs at all depends on those of the drafter.
            jax.vmap(jax.random.fold_in, (0, None))(keys, 1),
            temperature=temperature,
            config=scored,
            row_mask=deferred,
        )

    def no_answer():
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(answer))

    # Where no row defers the target does not even read the input.
    answered = jax.lax.cond(deferred.any(), answer, no_answer)

    def choose(target_value, drafter_value):
        rows = deferred.reshape((-1,) + (1,) * (drafter_value.ndim - 1))
        return jnp.where(rows, target_value, drafter_value)

    written = jnp.where(answered.origins > 0, st.Origin.TARGET, st.Origin.NONE)
    drafts, calls = drafted.statistics, answered.statistics
    return st.DecodeResult(
        tokens=choose(answered.tokens, drafted.tokens),
        lengths=choose(answered.lengths, drafted.lengths),
        finish=choose(answered.finish, drafted.finish),
        origins=choose(written, drafted.origins).astype(jnp.int32),
        log_probs=(
            choose(answered.log_probs, drafted.log_probs) if config.return_log_probs else None
        ),
        statistics=drafts.replace(
            target_calls=calls.target_calls,
            target_prefills=calls.target_prefills,
            accepted=choose(0, drafts.accepted),
            accepted_at=choose(0, drafts.accepted_at),
            corrected=calls.emitted,
            deferred=choose(drafts.drafted, 0 * drafts.drafted),
        ),
    )


def answer_score(
    log_probs: jax.Array, lengths: jax.Array, score: str, quantile: float = 0.2
) -> jax.Array:
    """How sure a model was of its answer, in nats.

    Args:
        log_probs: float32 [batch, length], of each token.
        lengths: int32 [batch], tokens that count; an empty answer scores 0.
        score: one of `SCORES`.
        quantile: for that score; between two tokens it interpolates.

    Returns:
        float32 [batch].
    """
    inside = jnp.arange(log_probs.shape[1]) < lengths[:, None]
    total = jnp.where(inside, log_probs, 0.0).sum(axis=1)
    if score == "sum":
        return total
    if score == "mean":
        return total / jnp.maximum(lengths, 1)
    ranked = jnp.sort(jnp.where(inside, log_probs, jnp.inf), axis=1)
    place = (0.0 if score == "min" else quantile) * jnp.maximum(lengths - 1, 0)
    low = jnp.floor(place).astype(jnp.int32)
    high = jnp.minimum(low + 1, jnp.maximum(lengths - 1, 0))
    at_low, at_high = dist.pick(ranked, low), dist.pick(ranked, high)
    return jnp.where(lengths > 0, at_low + (place - low) * (at_high - at_low), 0.0)


# --------------------------------------------------------------------------------------------
# Token level
# --------------------------------------------------------------------------------------------


@struct.dataclass
class _State:
    """State of the token-level cascade; the target's cache lags behind: see `_catch_up`."""

    output: st.Output
    drafter_cache: Any
    target_cache: Any
    target_consumed: jax.Array
    statistics: st.Statistics


def token_cascade(
    target: Any,
    drafter_model: Any,
    rule: Rule,
    target_params: Any,
    drafter_params: Any,
    inputs: jax.Array,
    keys: jax.Array,
    *,
    alpha: jax.Array | float,
    temperature: jax.Array | float,
    config: st.DecodeConfig,
    row_mask: jax.Array | None = None,
) -> st.DecodeResult:
    """At each position the drafter is run, then the rule says which model's distribution to use.

    `chow` and `chow_log` decide before the target is run at all; it then reads what it has missed
    and gives its distribution, which counts as one target call. The other choices need the target
    at every position. `log_probs` are those of the distribution's own model.

    Args:
        target: a `models.Model`.
        drafter_model: a `models.Model`.
        rule: a choice rule.
        target_params: the target's parameters.
        drafter_params: the drafter's.
        inputs: int32 [batch, input_length].
        keys: PRNG key [batch], see `row_keys`.
        alpha: the rule's trade-off, scalar or [batch]; traced.
        temperature: scalar or [batch]; traced; 0 is greedy.
        config: decoding settings.
        row_mask: bool [batch], False for padding rows.

    Raises:
        ValueError: if the rule does not choose one model a position.
    """
    if rule.kind != "choice":
        raise ValueError(
            f"a token-level cascade takes a rule that chooses one model at each position "
            f"(chow, diff, opt, or their _log forms), not {rule.name!r}"
        )
    width = target.vocab_size
    drafter_vocab = st.real_vocabulary(config, target, drafter_model)
    target_vocab = st.real_vocabulary(config, target)
    max_length = config.max_decode_length + 1 + _CATCH_UP
    output = st.start_output(target, inputs, config, 1 + _CATCH_UP, row_mask)
    real = output.finish != st.Finish.PADDING

    def run_target(state, wanted):
        """The target's logits [batch, width] at the newest token of the wanted rows."""
        logits, cache, consumed = _catch_up(
            target, target_params, state.target_cache, state.target_consumed, state.output, wanted
        )
        return logits, state.replace(target_cache=cache, target_consumed=consumed)

    def body(state):
        output = state.output
        running = output.running
        q_logits, cache = drafter_model.extend(
            drafter_params,
            state.drafter_cache,
            known_ids(drafter_model, output.newest[:, None]),
            output.position,
        )
        q_finite = dist.finite(q_logits[:, 0], drafter_vocab)
        q_logits = dist.fit_vocabulary(q_logits[:, 0], width, drafter_vocab)
        state = state.replace(drafter_cache=cache)

        q, q_hat = config.working(q_logits, temperature), dist.raw(q_logits)
        if rule.needs_target:
            wanted = running
        else:
            d = Distributions(q=q, p=None, q_hat=q_hat, p_hat=None)
            wanted = running & ~rule.keep(d, alpha, output.length)
        p_logits, state = jax.lax.cond(
            wanted.any(),
            lambda state: run_target(state, wanted),
            lambda state: (jnp.zeros_like(q_logits), state),
            state,
        )
        p_finite = dist.finite(p_logits, target_vocab) | ~wanted
        p_logits = dist.fit_vocabulary(p_logits, width, target_vocab)
        p = config.working(p_logits, temperature)
        keep = ~wanted
        if rule.needs_target:
            d = Distributions(q=q, p=p, q_hat=q_hat, p_hat=dist.raw(p_logits))
            keep = rule.keep(d, alpha, output.length)

        token = dist.sample(jnp.where(keep[:, None], q, p), st.uniforms(keys, output.length, 2))
        log_probs = None
        if config.return_log_probs:
            used = jnp.where(keep[:, None], q_logits, p_logits)
            log_probs = st.log_probability(used, token)[:, None]
        origins = jnp.where(keep, st.Origin.DRAFT, st.Origin.TARGET)[:, None]
        finite = q_finite & p_finite
        output, kept = st.append(
            output, config, token[:, None], jnp.ones_like(token), origins, log_probs, finite
        )
        accepted = (kept > 0) & keep
        corrected = (kept > 0) & ~keep
        return state.replace(
            output=output,
            statistics=state.statistics.add(
                target_calls=wanted,
                drafter_calls=running,
                drafted=kept,
                accepted=accepted,
                corrected=corrected,
                deferred=corrected,
                verified_at=kept[:, None],
                accepted_at=accepted[:, None],
            ),
        )

    statistics = st.Statistics.zeros(inputs.shape[0], 1)
    final = jax.lax.while_loop(
        lambda state: state.output.running.any(),
        body,
        _State(
            output=output,
            drafter_cache=drafter_model.prefill(drafter_params, inputs, max_length),
            target_cache=target.prefill(target_params, inputs, max_length),
            target_consumed=output.first,
            statistics=statistics.add(target_prefills=real, drafter_prefills=real),
        ),
    )
    return st.result(final.output, config, final.statistics)


def _catch_up(target, params, cache, consumed, output, wanted):
    """Feeds the wanted rows all tokens they have not seen, a fixed number at a time.

    Rows that are not wanted stay where they are, so that a row's cost is its own.

    Returns:
        logits [batch, V] after the newest token of the wanted rows, cache, consumed.
    """

    def behind(consumed):
        return wanted & (consumed <= output.position)

    def body(loop):
        logits, cache, consumed = loop
        tokens = jax.vmap(lambda row, i: jax.lax.dynamic_slice_in_dim(row, i, _CATCH_UP))(
            output.sequence, consumed - output.first
        )
        scored, cache = target.extend(params, cache, tokens, consumed)
        newest = output.position - consumed
        here = jnp.clip(newest, 0, _CATCH_UP - 1)
        row = jnp.take_along_axis(scored, here[:, None, None], axis=1)[:, 0]
        reached = behind(consumed) & (newest < _CATCH_UP)
        ahead = jnp.minimum(consumed + _CATCH_UP, output.position + 1)
        return (
            jnp.where(reached[:, None], row, logits),
            cache,
            jnp.where(behind(consumed), ahead, consumed),
        )

    blank = jnp.zeros((wanted.shape[0], target.vocab_size), jnp.float32)
    return jax.lax.while_loop(lambda loop: behind(loop[2]).any(), body, (blank, cache, consumed))
