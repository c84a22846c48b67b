"""Arithmetic on probabilities that rounding cannot upset."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

_BISECTIONS = 30


def top(probabilities: jax.Array) -> jax.Array:
    """Largest probability; a softmax can pass 1 by rounding, which no threshold foresees."""
    return jnp.minimum(probabilities.max(axis=-1), 1.0)


def ratio(numerator: jax.Array, denominator: jax.Array) -> jax.Array:
    """min(1, a / b), 1 where both are 0. A NaN stays one, to be reported."""
    whole = numerator >= denominator
    return jnp.where(whole, 1.0, numerator / jnp.where(whole, 1.0, denominator))


def or_else(weights: jax.Array, fallback: jax.Array) -> jax.Array:
    """Weights, or the fallback's at positions where all weights are 0."""
    return jnp.where((weights > 0).any(axis=-1, keepdims=True), weights, fallback)


def bisect(too_low: Callable[[jax.Array], jax.Array], low: jax.Array, high: jax.Array):
    """The point in [low, high] where `too_low` turns false; arrays of any one shape."""

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        below = too_low(middle)
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    return jax.lax.fori_loop(0, _BISECTIONS, halve, (low, high))[1]
