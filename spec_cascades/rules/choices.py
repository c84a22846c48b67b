"""Rules that choose one model at each position (Narasimhan et al., ICLR 2025, sections 3 and 4)."""

import jax
import jax.numpy as jnp

from spec_cascades import distributions as dist
from spec_cascades.rules import arithmetic
from spec_cascades.rules.registry import register_choice
from spec_cascades.rules.rule import INFINITY, Distributions, Parameter


def _scaled_disagreement(alpha: jax.Array, d: Distributions) -> jax.Array:
    """The product alpha D_TV(p, q), which is 0 where the models agree even if alpha is infinite."""
    distance = dist.total_variation(d.p, d.q)
    return jnp.where(distance > 0, alpha * distance, 0.0)


@register_choice(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.3,
        "the drafter must be surer than 1 - alpha (any alpha < 0: lossless)",
        -1.0,
        (0.05, 0.1, 0.2, 0.3, 0.5, 0.7),
    ),
    needs_target=False,
    summary="confidence: keep where the drafter is sure",
    source="Chow, 1970; Narasimhan et al., ICLR 2025, eq. 2",
)
def chow(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff max q_hat >= 1 - alpha."""
    return (arithmetic.top(d.q_hat) >= 1 - alpha) & (alpha >= 0)


@register_choice(
    alpha=Parameter(
        "alpha",
        -INFINITY,
        INFINITY,
        0.5,
        "largest entropy of the drafter, in nats (any alpha < 0: lossless)",
        -1.0,
        (0.1, 0.3, 0.6, 1.0, 1.5, 2.5),
    ),
    needs_target=False,
    summary="confidence: keep where the drafter's entropy is low",
    source="log-loss form of chow; Narasimhan et al., ICLR 2025, appendix",
)
def chow_log(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff entropy(q_hat) <= alpha."""
    return (dist.entropy(d.q_hat) <= alpha) & (alpha >= 0)


@register_choice(
    alpha=Parameter(
        "alpha",
        -1.0,
        1.0,
        0.1,
        "how much less sure than the target the drafter may be",
        -1.0,
        (-0.2, -0.05, 0.0, 0.05, 0.1, 0.2, 0.4),
    ),
    summary="comparison: keep where the drafter is about as sure as the target",
    source="Narasimhan et al., ICLR 2025, eq. 5",
)
def diff(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff max q_hat >= max p_hat - alpha."""
    return arithmetic.top(d.q_hat) >= arithmetic.top(d.p_hat) - alpha


@register_choice(
    alpha=Parameter(
        "alpha",
        -INFINITY,
        INFINITY,
        0.2,
        "nats of entropy the drafter may have above the target (within -log V .. log V)",
        -INFINITY,
        (-0.3, 0.0, 0.1, 0.3, 0.6, 1.0),
    ),
    summary="comparison of entropies",
    source="log-loss form of diff",
)
def diff_log(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff entropy(q_hat) <= entropy(p_hat) + alpha."""
    return dist.entropy(d.q_hat) <= dist.entropy(d.p_hat) + alpha


@register_choice(
    alpha=Parameter(
        "alpha",
        -INFINITY,
        INFINITY,
        0.2,
        "worth of an accepted draft against the drafter's loss of confidence",
        -INFINITY,
        (-0.5, -0.1, 0.0, 0.1, 0.2, 0.5, 1.0),
    ),
    summary="cost-benefit: comparison, lenient where a rejection is likely",
    source="Narasimhan et al., ICLR 2025, eq. 10",
)
def opt(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff max q_hat >= max p_hat - alpha D_TV(p, q)."""
    return arithmetic.top(d.q_hat) >= arithmetic.top(d.p_hat) - _scaled_disagreement(alpha, d)


@register_choice(
    alpha=Parameter(
        "alpha",
        -INFINITY,
        INFINITY,
        0.5,
        "worth of an accepted draft, in nats of entropy",
        -INFINITY,
        (-1.0, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0),
    ),
    summary="cost-benefit on entropies",
    source="Narasimhan et al., ICLR 2025, appendix C.2",
)
def opt_log(d: Distributions, alpha: jax.Array) -> jax.Array:
    """Keep iff entropy(q_hat) <= entropy(p_hat) + alpha D_TV(p, q)."""
    return dist.entropy(d.q_hat) <= dist.entropy(d.p_hat) + _scaled_disagreement(alpha, d)
