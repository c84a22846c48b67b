"""Wall-clock of the steps that decoding is made of, each measured alone.

The cost model of speculative decoding needs three times: a step of the drafter, a step of the
target, and a verification of gamma + 1 tokens by the target.
"""

import functools
import time
from typing import Any

import jax
import jax.numpy as jnp

from spec_cascades import distributions as dist

# A short run has so many steps; a long one as many more as it takes to last this much longer.
_SHORT, _MOST = 4, 1024
_ENOUGH_S = 0.03


@functools.partial(jax.jit, static_argnames=("model", "max_length", "width"))
def _steps(model, params, inputs, count, *, max_length: int, width: int) -> jax.Array:
    """Prefills, then calls `extend` `count` times with `width` tokens, each from the last."""

    def step(i, carry):
        cache, tokens = carry
        start = jnp.full(inputs.shape[:1], (i * width) % (max_length - width + 1), jnp.int32)
        logits, cache = model.extend(params, cache, tokens, start)
        return cache, dist.argmax(logits)

    cache = model.prefill(params, inputs, max_length)
    tokens = jnp.zeros((inputs.shape[0], width), jnp.int32)
    return jax.lax.fori_loop(0, count, step, (cache, tokens))[1]


def step_seconds(
    model: Any, params: Any, inputs: jax.Array, *, max_length: int, width: int, repeats: int = 3
) -> float:
    """Seconds of one `extend` call of `width` tokens, after compilation.

    Prefill and dispatch cancel out: a short run is subtracted from a long one, the fastest of
    `repeats` each.

    Args:
        model: model of the `models.interface`.
        params: its parameters.
        inputs: int32 [B, Li].
        max_length: positions of the cache.
        width: tokens per call.
        repeats: runs to take the fastest of.

    Returns:
        seconds a call.
    """
    run = functools.partial(
        _steps, model, params, inputs, max_length=max_length, width=min(width, max_length)
    )
    jax.block_until_ready(run(_SHORT))
    more = 16
    while True:
        short, long = (
            min(_seconds(run, count) for _ in range(repeats)) for count in (_SHORT, _SHORT + more)
        )
        if long - short > _ENOUGH_S or more >= _MOST:
            return max(long - short, 1e-9) / more
        more *= 4


def _seconds(run, count: int) -> float:
    start = time.perf_counter()
    jax.block_until_ready(run(count))
    return time.perf_counter() - start
