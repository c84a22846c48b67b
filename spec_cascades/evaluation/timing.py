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
from spec_cascades.models.interface import Model, Prompt

# A short run has so many steps; a long one as many more as it takes to last this much longer.
_SHORT, _MOST = 4, 1024
_ENOUGH_S = 0.03


@functools.partial(jax.jit, static_argnames=("model", "capacity", "width"))
def _steps(model, params, prompt, count, *, capacity: int, width: int) -> jax.Array:
    """Prefills, then calls `extend` `count` times with `width` tokens, each from the last."""

    def step(i, carry):
        cache, tokens = carry
        start = jnp.full(rows, (i * width) % (capacity - width + 1), jnp.int32)
        logits, cache = model.extend(params, cache, tokens, start)
        return cache, dist.argmax(logits)

    rows = prompt.lengths.shape[0]
    cache = model.prefill(params, prompt, capacity, width)
    tokens = jnp.zeros((rows, width), jnp.int32)
    return jax.lax.fori_loop(0, count, step, (cache, tokens))[1]


def step_seconds(
    model: Model, params: Any, prompt: Prompt, *, capacity: int, width: int, repeats: int = 3
) -> float:
    """Seconds of one `extend` call of `width` tokens, after compilation.

    Prefill and dispatch cancel out: a short run is subtracted from a long one, the fastest of
    `repeats` each.

    Args:
        model: model of the `models.interface`.
        params: its parameters.
        prompt: what it has read.
        capacity: positions of the cache.
        width: tokens per call.
        repeats: runs to take the fastest of.

    Returns:
        seconds a call.
    """
    run = functools.partial(
        _steps, model, params, prompt, capacity=capacity, width=min(width, capacity)
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
