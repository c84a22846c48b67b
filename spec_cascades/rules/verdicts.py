"""Rules that judge the drafted token itself; none of them has a single `pi`."""

import jax
import jax.numpy as jnp

from spec_cascades import distributions as dist
from spec_cascades.rules import arithmetic
from spec_cascades.rules.mentored import bounds as mentored_bounds
from spec_cascades.rules.registry import register_verdict
from spec_cascades.rules.rule import INFINITY, Distributions, Parameter, Verdict


def _normalising_inverse_beta(q: jax.Array, p: jax.Array, alpha: jax.Array) -> jax.Array:
    """1 / beta in [0, 1] at which max(min(q, p / (1 - alpha)), p / beta) sums to 1: [..., V]."""
    strictness = (1 - alpha)[..., None]
    kept = jnp.where(p >= strictness * q, q, p / jnp.where(strictness > 0, strictness, 1.0))

    def too_low(inverse):
        return jnp.maximum(kept, inverse[..., None] * p).sum(axis=-1) < 1

    zeros = jnp.zeros(q.shape[:-1])
    return arithmetic.bisect(too_low, zeros, zeros + 1)


@register_verdict(
    alpha=Parameter(
        "alpha",
        0.0,
        1.0,
        0.3,
        "lenience: a draft may be 1 / (1 - alpha) times as likely for the drafter",
        0.0,
        (0.1, 0.2, 0.3, 0.5, 0.7, 0.9),
    ),
    parameters=(
        Parameter(
            "beta",
            1.0,
            INFINITY,
            1.0,
            "divides p in the replacement's distribution; 'normalised' solves for it",
            choices=("normalised",),
        ),
    ),
    summary="lossy speculative decoding: lenient rejection",
    source="Leviathan et al., ICML 2023, A.5; Tran-Thien, 2023; Zhou et al., ICLR 2024",
)
def lossy(
    d: Distributions, tokens: jax.Array, alpha: jax.Array, beta: float | str = 1.0
) -> Verdict:
    """Accept with min(1, p(x) / ((1 - alpha) q(x))), else draw from norm(max(0, p / beta - q))."""
    if beta == "normalised":
        inverse_beta = _normalising_inverse_beta(d.q, d.p, alpha)[..., None]
    else:
        inverse_beta = 1.0 / beta
    accept = arithmetic.ratio(dist.pick(d.p, tokens), (1 - alpha) * dist.pick(d.q, tokens))
    return Verdict(accept, jnp.maximum(inverse_beta * d.p - d.q, 0.0))


@register_verdict(
    alpha=Parameter(
        "alpha",
        0.0,
        INFINITY,
        0.1,
        "budget for KL(p || pi), in nats",
        0.0,
        (0.01, 0.03, 0.1, 0.3, 1.0),
    ),
    summary="lossy speculation that accepts most within a divergence budget",
    source="Tran-Thien, 2023 (mentored decoding)",
)
def mentored(d: Distributions, tokens: jax.Array, alpha: jax.Array) -> Verdict:
    """The optimal pi = max(min(q, c p), b p), with c >= 1 >= b such that KL(p || pi) = alpha.

    `c` is `1 / (1 - alpha)` and `b` is `1 / beta` of `lossy`, chosen here per position.
    """
    ceiling, floor = mentored_bounds(d.q, d.p, alpha)
    accept = arithmetic.ratio(dist.pick(d.p, tokens), dist.pick(d.q, tokens) / ceiling)
    return Verdict(accept, jnp.maximum(floor[..., None] * d.p - d.q, 0.0))


@register_verdict(
    parameters=(
        Parameter("eps", 0.0, 1.0, 0.09, "a draft the target finds likelier than this stands"),
        Parameter("delta", 0.0, INFINITY, 0.3, "scales the threshold exp(-entropy(p))"),
    ),
    summary="typical acceptance: a threshold that falls with the target's entropy",
    source="Cai et al., ICML 2024 (Medusa)",
)
def typical(
    d: Distributions, tokens: jax.Array, alpha: jax.Array, eps: float, delta: float
) -> Verdict:
    """Accept iff p(x) > min(eps, delta exp(-entropy(p))), else draw from p."""
    del alpha
    threshold = jnp.minimum(eps, delta * jnp.exp(-dist.entropy(d.p)))
    return Verdict((dist.pick(d.p, tokens) > threshold).astype(jnp.float32), d.p)


@register_verdict(
    alpha=Parameter(
        "alpha",
        0.0,
        INFINITY,
        1.0,
        "divergence budget of the drafted token; its paper uses 1",
        0.0,
        (0.01, 0.05, 0.2, 1.0),
    ),
    summary="raises the drafted token's probability within a divergence budget",
    source="Cactus, ICLR 2026",
)
def cactus(d: Distributions, tokens: jax.Array, alpha: jax.Array) -> Verdict:
    """Accept with min(1, h(x) / q(x)); h(x) = min(1, p(x) + sqrt(2 alpha p(x) (1 - p(x))))."""
    p_x = jnp.minimum(dist.pick(d.p, tokens), 1.0)
    variance = p_x * (1 - p_x)
    # Where it is 0 no budget changes p(x), not even an infinite one.
    raised = jnp.sqrt(2 * jnp.where(variance > 0, alpha * variance, 0.0))
    h_x = jnp.minimum(1.0, p_x + raised)
    rest = jnp.where(p_x < 1, (1 - h_x) / jnp.where(p_x < 1, 1 - p_x, 1.0), 0.0)
    is_x = jnp.arange(d.p.shape[-1]) == tokens[..., None]
    h = jnp.where(is_x, h_x[..., None], rest[..., None] * d.p)
    return Verdict(arithmetic.ratio(h_x, dist.pick(d.q, tokens)), jnp.maximum(h - d.q, 0.0))
