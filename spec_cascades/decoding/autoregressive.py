"""One model, one token at a time: the reference that speculation is measured against."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from spec_cascades import distributions as dist
from spec_cascades.decoding import state as st

ROLES = ("target", "drafter")


@struct.dataclass
class _State:
    output: st.Output
    cache: Any
    statistics: st.Statistics


def autoregressive(
    model: Any,
    params: Any,
    inputs: jax.Array,
    keys: jax.Array,
    *,
    temperature: jax.Array | float,
    config: st.DecodeConfig,
    row_mask: jax.Array | None = None,
    role: str = "target",
) -> st.DecodeResult:
    """Decodes a batch with one model.

    Args:
        model: a `models.Model`.
        params: its parameters.
        inputs: int32 [batch, input_length].
        keys: PRNG key [batch], see `row_keys`.
        temperature: scalar or [batch]; traced; 0 is greedy.
        config: decoding settings.
        row_mask: bool [batch], False for padding rows.
        role: whose tokens these are in the statistics. The "target" makes one call a token, and
            each token is a bonus token (nothing was drafted); the "drafter"'s tokens are drafts
            that nobody contests.
    """
    if role not in ROLES:
        raise ValueError(f"role = {role!r} must be one of {', '.join(ROLES)}")
    output = st.start_output(model, inputs, config, spare=1, row_mask=row_mask)
    real = output.finish != st.Finish.PADDING
    statistics = st.Statistics.zeros(inputs.shape[0], 1).add(**{f"{role}_prefills": real})
    origin = st.Origin.BONUS if role == "target" else st.Origin.DRAFT

    def body(state):
        output = state.output
        logits, cache = model.extend(params, state.cache, output.newest[:, None], output.position)
        token, log_probs, finite = next_token(
            logits[:, 0], keys, output, temperature, config, st.real_vocabulary(config, model)
        )
        running = output.running
        output, kept = st.append(
            output,
            config,
            token[:, None],
            jnp.ones_like(token),
            jnp.full_like(token, origin)[:, None],
            log_probs,
            finite,
        )
        counts = {f"{role}_calls": running}
        if role == "target":
            counts |= {"bonus": kept}
        else:
            counts |= {"drafted": kept, "accepted": kept}
            counts |= {"verified_at": kept[:, None], "accepted_at": kept[:, None]}
        return _State(output, cache, state.statistics.add(**counts))

    final = jax.lax.while_loop(
        lambda state: state.output.running.any(),
        body,
        _State(output, model.prefill(params, inputs, config.max_decode_length + 1), statistics),
    )
    return st.result(final.output, config, final.statistics)


def next_token(
    logits: jax.Array,
    keys: jax.Array,
    output: st.Output,
    temperature: jax.Array | float,
    config: st.DecodeConfig,
    vocab_size: int,
) -> tuple[jax.Array, jax.Array | None, jax.Array]:
    """Samples each row's next token from logits [batch, V].

    Returns:
        int32 [batch] tokens; float32 [batch, 1] log-probabilities or None; bool [batch], whether
        the logits were finite.
    """
    finite = dist.finite(logits, vocab_size)
    logits = dist.fit_vocabulary(logits, logits.shape[-1], vocab_size)
    numbers = st.uniforms(keys, output.length, 2)
    token = dist.sample(config.working(logits, temperature), numbers)
    log_probs = st.log_probability(logits, token)[:, None] if config.return_log_probs else None
    return token, log_probs, finite
