"""The optimisation behind the rule `mentored` (Tran-Thien, 2023), without sorting the vocabulary.

Of all distributions `pi` with `KL(p || pi) <= alpha`, the one that accepts most drafts of `q` is

    pi = max(min(q, c p), b p),    that is    pi / p = clip(q / p, b, c),    b <= 1 <= c.

The two unknowns separate. Let `m` be the mass that moves from where `q > p` to where `q < p`:

    removed(c) = sum_v max(q - c p, 0)    convex and falling,
    added(b)   = sum_v max(b p - q, 0)    convex and rising,

and the mass is balanced where `removed(c) = added(b) = m`. As a function of `m` alone

    KL(m) = -sum_v p log clip(q / p, b(m), c(m))    has the slope    -(1 / b - 1 / c) <= 0,

and the slope rises with `m`, so that KL is convex; so are its parts where `q < p` and where
`q > p` taken separately. A pair (b, c), balanced or not, therefore gives tangents to both parts,
one at `added(b)` and one at `removed(c)`, and the point where their sum meets alpha lies at or
below the `m` sought: `m` grows step by step and never passes the solution. In each step one Newton
step takes (b, c) towards `added(b) = removed(c) = m`; it comes out where both are at least `m`,
because the two functions are convex. Near the solution this is Newton's method in two unknowns:
quadratic convergence, and usually three to nine steps of five sums over the vocabulary each.

The first `m` is a lower bound from Jensen's inequality, with one ratio `pi / p` on all tokens
where `q < p` and one where `q > p`. It keeps `b`, hence the logarithms, away from 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spec_cascades.rules import arithmetic

_MAX_STEPS = 32
_DAMPING = 16.0  # b falls no faster, lest it drop where its logarithm tells nothing
_TOLERANCE = 2e-6  # of masses
_LARGEST = 1e30  # of c; a token with q > c p even so has p = 0, and is not kept


class _State(NamedTuple):
    """An iterate, [...] each."""

    floor: jax.Array  # b
    ceiling: jax.Array  # c
    moved: jax.Array  # m, at or below the solution's
    done: jax.Array


class _Sums(NamedTuple):
    """What a step needs to know of the vocabulary, [...] each."""

    added: jax.Array
    removed: jax.Array
    low: jax.Array  # derivative of `added`: the target's mass where q < b p
    high: jax.Array  # minus that of `removed`: its mass where q > c p
    divergence: jax.Array  # KL(p || pi)


def bounds(q: jax.Array, p: jax.Array, budget: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The ceiling `c` and the floor `b` of `pi / p` at each position.

    Where `KL(p || q)` is within the budget everything is accepted, and `c` is infinite; a `q / p`
    below 1e-30 counts as 1e-30 there. A token to which the target gives no probability is otherwise
    never kept: where such tokens have much of `q`, the budget may not be spent.

    Args:
        q: the drafter's working distribution, float32 [..., V].
        p: the target's.
        budget: nats, float32 [...].

    Returns:
        `(c, b)`, float32 [...] each.
    """
    log_ratio = _log_ratio(q, p)
    free = -(p * log_ratio).sum(axis=-1) <= budget
    settled = free | (budget <= 0)
    ones = jnp.ones(budget.shape, jnp.float32)

    def step(carry):
        state, count = carry
        sums = _sums(q, p, log_ratio, state.floor, state.ceiling)
        return _advance(state, sums, budget), count + 1

    def unfinished(carry):
        state, count = carry
        return (count < _MAX_STEPS) & ~state.done.all()

    moved = _first_moved(q, p, _sums(q, p, log_ratio, ones, ones), budget)
    state, _ = jax.lax.while_loop(unfinished, step, (_State(ones, ones, moved, settled), 0))
    return jnp.where(free, jnp.inf, state.ceiling), state.floor


def _log_ratio(q: jax.Array, p: jax.Array) -> jax.Array:
    """log(q / p), finite; 0 where p = 0, as it is only ever multiplied by p."""
    ratio = q / jnp.where(p > 0, p, 1.0)
    return jnp.where(p > 0, jnp.log(jnp.clip(ratio, 1 / _LARGEST, _LARGEST)), 0.0)


def _sums(
    q: jax.Array, p: jax.Array, log_ratio: jax.Array, floor: jax.Array, ceiling: jax.Array
) -> _Sums:
    floor, ceiling = floor[..., None], ceiling[..., None]
    clipped = jnp.clip(log_ratio, jnp.log(floor), jnp.log(ceiling))
    terms = _Sums(
        added=jnp.maximum(floor * p - q, 0.0),
        removed=jnp.maximum(q - ceiling * p, 0.0),
        low=jnp.where(q < floor * p, p, 0.0),
        high=jnp.where(q > ceiling * p, p, 0.0),
        divergence=-p * clipped,
    )
    # One reduction of five operands passes over the vocabulary once: faster than five on CPU.
    add = lambda x, y: tuple(a + b for a, b in zip(x, y, strict=True))
    return _Sums(*jax.lax.reduce(tuple(terms), (0.0,) * len(terms), add, (p.ndim - 1,)))


def _first_moved(q: jax.Array, p: jax.Array, sums: _Sums, budget: jax.Array) -> jax.Array:
    """A lower bound on `m`, given the sums at b = c = 1, where `added` is the total variation.

    With a mass `kept` = total variation - m left where `q > p`, Jensen's inequality gives
    KL >= -low log(1 - kept / low) - high log(1 + kept / high).
    """

    def below_budget(kept):
        low = sums.low * jnp.log1p(-jnp.minimum(_divide(kept, sums.low), 1.0))
        high = sums.high * jnp.log1p(_divide(kept, sums.high))
        return -low - high < budget

    kept = arithmetic.bisect(below_budget, jnp.zeros_like(budget), sums.added)
    unreachable = jnp.maximum(q - _LARGEST * p, 0.0).sum(axis=-1)
    return jnp.maximum(sums.added - kept, unreachable)


def _advance(state: _State, sums: _Sums, budget: jax.Array) -> _State:
    """One step. A row that is done stays as it is, however long its neighbours take."""
    b, c = state.floor, state.ceiling
    # Where the two tangents' sum is the budget.
    meets = sums.divergence - budget + sums.added / b - sums.removed / c
    moved = jnp.maximum(state.moved, _divide(meets, 1 / b - 1 / c))

    lacking, excess = moved - sums.added, sums.removed - moved
    close = (jnp.abs(lacking) <= _TOLERANCE) & (jnp.abs(excess) <= _TOLERANCE)
    # Asked for as well, since a small mass means much divergence where b is small.
    affordable = sums.divergence <= budget + 1e-5 * (1 + budget)
    done = state.done | (close & affordable)

    # Past the last token with q < b p (or q > c p) there is no slope: begin again from 1.
    floor = jnp.where(lacking > _TOLERANCE, 1.0, b)
    floor = jnp.where(sums.low > 0, b + _divide(lacking, sums.low), floor)
    ceiling = jnp.where(excess < -_TOLERANCE, 1.0, c)
    ceiling = jnp.where(sums.high > 0, c + _divide(excess, sums.high), ceiling)
    return _State(
        floor=jnp.where(done, b, jnp.clip(floor, b / _DAMPING, 1.0)),
        ceiling=jnp.where(done, c, jnp.clip(ceiling, 1.0, _LARGEST)),
        moved=jnp.where(state.done, state.moved, moved),
        done=done,
    )


def _divide(numerator: jax.Array, denominator: jax.Array) -> jax.Array:
    """The ratio of the two, 0 where the denominator is 0."""
    positive = denominator > 0
    return jnp.where(positive, numerator / jnp.where(positive, denominator, 1.0), 0.0)
