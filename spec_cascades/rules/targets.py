"""Rules that give the distribution `pi` which the output is to follow at each position.

The degenerate ones, and the token-specific rules of Narasimhan et al., ICLR 2025, section 4.4.
"""

import jax
import jax.numpy as jnp

from spec_cascades.rules import arithmetic
from spec_cascades.rules.registry import register_rule
from spec_cascades.rules.rule import Distributions, Parameter

_TOKEN_GRID = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


@register_rule(
    summary="lossless speculative decoding: the output follows the target",
    source="Leviathan et al., ICML 2023; Chen et al., 2023",
)
def speculative(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Pi = p."""
    del alpha
    return d.p


@register_rule(summary="every draft stands", source="degenerate case")
def draft_only(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Pi = q."""
    del alpha
    return d.q


@register_rule(
    alpha=Parameter(
        "alpha", 0.0, 1.0, 0.5, "share of the drafter", 0.0, (0.1, 0.25, 0.5, 0.75, 0.9)
    ),
    summary="a fixed mixture of both models",
    source="degenerate case",
)
def mixture(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Pi = (1 - alpha) p + alpha q."""
    return (1 - alpha)[..., None] * d.p + alpha[..., None] * d.q


def _accept_set(accepted: jax.Array, d: Distributions) -> jax.Array:
    """pi(v) = q(v) 1[v in A] + (1 - sum_A q) p(v), for A given as bool [..., V]."""
    kept = jnp.where(accepted, d.q, 0.0)
    # A sum over V can pass 1 by rounding.
    rest = jnp.maximum(1 - kept.sum(axis=-1, keepdims=True), 0.0)
    return kept + rest * d.p


def _near_top_relative(d: Distributions, alpha: jax.Array) -> jax.Array:
    """The set of `token_v3`: p_hat(v) >= (1 - alpha) max p_hat."""
    near = d.p_hat >= ((1 - alpha) * d.p_hat.max(axis=-1))[..., None]
    return near & (alpha >= 0)[..., None]


@register_rule(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.3,
        "how far under the target's best a draft may stand in the drafter's eyes",
        -1.0,
        (-0.3, -0.1, 0.0, 0.1, 0.3, 0.5, 0.7),
    ),
    summary="token-specific: drafts the drafter finds likely enough",
    source="Narasimhan et al., ICLR 2025, eq. 13",
)
def token_v1(d: Distributions, alpha: jax.Array) -> jax.Array:
    """A = {v: q_hat(v) >= max p_hat - alpha}."""
    return _accept_set(d.q_hat >= (arithmetic.top(d.p_hat) - alpha)[..., None], d)


@register_rule(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.2,
        "how far under the target's best a draft may stand (any alpha < 0: lossless)",
        -1.0,
        _TOKEN_GRID,
    ),
    summary="token-specific: drafts near the target's best, by difference",
    source="Narasimhan et al., ICLR 2025, eq. 14",
)
def token_v2(d: Distributions, alpha: jax.Array) -> jax.Array:
    """A = {v: p_hat(v) >= max p_hat - alpha}; empty for alpha < 0."""
    near = d.p_hat >= (arithmetic.top(d.p_hat) - alpha)[..., None]
    return _accept_set(near & (alpha >= 0)[..., None], d)


@register_rule(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.3,
        "a draft may have 1 - alpha of the best probability (any alpha < 0: lossless; "
        "0 still lets the target's best pass)",
        -1.0,
        _TOKEN_GRID,
    ),
    summary="token-specific: drafts near the target's best, by ratio",
    source="Narasimhan et al., ICLR 2025, eq. 15",
)
def token_v3(d: Distributions, alpha: jax.Array) -> jax.Array:
    """A = {v: p_hat(v) >= (1 - alpha) max p_hat}; empty for alpha < 0."""
    return _accept_set(_near_top_relative(d, alpha), d)


@register_rule(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.3,
        "as token_v3 (any alpha < 0: lossless)",
        -1.0,
        _TOKEN_GRID,
    ),
    summary="token_v3 on the target's best, the lossless test on the tail",
    source="measured in independent vLLM studies",
)
def token_v3_lossless_tail(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Pi = q on A, min(q, p) off it, the mass left over spread as norm(max(0, p - q))."""
    kept = jnp.where(_near_top_relative(d, alpha), d.q, jnp.minimum(d.q, d.p))
    rest = jnp.maximum(1 - kept.sum(axis=-1, keepdims=True), 0.0)
    residual = arithmetic.or_else(jnp.maximum(d.p - d.q, 0.0), d.p)
    return kept + rest * residual / residual.sum(axis=-1, keepdims=True)
