"""Verification of a drafted block: how many of its tokens stand, and which token follows.

`verify_tokens` decides token by token (Leviathan et al., ICML 2023); `verify_block` looks at the
block as a whole (Sun et al., ICLR 2025) and accepts at least as many in expectation. Both emit
tokens that follow the rule's distribution `pi` exactly.

A row drafts `num_drafted <= gamma` tokens: a draft ends early at a drafted EOS, or where a drafter
has nothing to propose. The token after a draft that stands whole is the bonus token.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spec_cascades import distributions as dist
from spec_cascades.rules import Distributions, Rule

METHODS = ("token", "block")
BONUSES = ("target", "rule")


class Block(NamedTuple):
    """A drafted block with both models' distributions.

    Attributes:
        tokens: int32 [batch, gamma], the draft.
        num_drafted: int32 [batch], how many of them count.
        d: `q` and `q_hat` [batch, gamma, V], or [batch, gamma + 1, V] where the bonus token
            follows the rule; `p` and `p_hat` [batch, gamma + 1, V]. Row i holds the distributions
            of drafted token i, the last one those of the bonus token.
        positions: int32 [batch, gamma + 1], index of each token in the output.
    """

    tokens: jax.Array
    num_drafted: jax.Array
    d: Distributions
    positions: jax.Array

    @property
    def gamma(self) -> int:
        """Block size."""
        return self.tokens.shape[1]

    @property
    def drafted(self) -> jax.Array:
        """Bool [batch, gamma]: which tokens count."""
        return jnp.arange(self.gamma) < self.num_drafted[:, None]


class Uniforms(NamedTuple):
    """The random numbers of a verification, in [0, 1)."""

    accept: jax.Array  # [batch, gamma]
    next_token: jax.Array  # [batch, 2]


class Outcome(NamedTuple):
    """Result of a verification, int32 [batch] unless said otherwise."""

    num_accepted: jax.Array  # drafted tokens that stand
    next_token: jax.Array  # the token after them: the target's correction, or the bonus token
    judged: jax.Array  # bool [batch, gamma]: drafted tokens all of whose predecessors stand
    deferred: jax.Array  # bool [batch, gamma]: judged tokens at which the rule chose the target; a
    # rule that chooses no model defers where its acceptance probability is below 1
    finite: jax.Array  # bool [batch], False where the next token has no finite weights


class _Decision(NamedTuple):
    """Which drafted tokens stand, and what follows where one does not."""

    accept: jax.Array  # float32 [batch, gamma], acceptance probability of each token by itself
    num_accepted: jax.Array  # int32 [batch]
    replacement: jax.Array  # float32 [batch, V], weights of the token after those that stand


def verify_tokens(
    rule: Rule, block: Block, alpha: jax.Array, uniforms: Uniforms, bonus: str = "target"
) -> Outcome:
    """Token verification: accept while `u_i < a_i`, then draw the next token.

    Args:
        rule: the deferral rule.
        block: the draft and its distributions.
        alpha: float32 scalar or [batch].
        uniforms: random numbers.
        bonus: "target" draws the bonus token from `p`, "rule" from `pi` (the latter needs `q` of
            the bonus position and a rule that has a `pi`).
    """
    return _outcome(
        rule, block, alpha, uniforms, bonus, _judge_tokens(rule, block, alpha, uniforms)
    )


def verify_block(
    rule: Rule, block: Block, alpha: jax.Array, uniforms: Uniforms, bonus: str = "target"
) -> Outcome:
    """Block verification (Sun et al., ICLR 2025, algorithm 2), with `pi` in the target's place.

    Args and result as for `verify_tokens`; the rule must have a target distribution.
    """
    return _outcome(rule, block, alpha, uniforms, bonus, _judge_block(rule, block, alpha, uniforms))


def _judge_tokens(rule: Rule, block: Block, alpha: jax.Array, uniforms: Uniforms) -> _Decision:
    d, positions = _drafted_part(block)
    accept = rule.verdict(d, block.tokens, alpha, positions).accept
    # Strictly: u can be 0, and a token of probability 0 must never stand.
    passed = (uniforms.accept < accept) & block.drafted
    num_accepted = jnp.cumprod(passed, axis=1, dtype=jnp.int32).sum(axis=1, dtype=jnp.int32)

    row = jnp.minimum(num_accepted, block.gamma - 1)
    rejected = rule.verdict(
        _at(d, row), dist.pick(block.tokens, row), alpha, dist.pick(positions, row)
    )
    return _Decision(accept, num_accepted, rejected.replacement)


def _judge_block(rule: Rule, block: Block, alpha: jax.Array, uniforms: Uniforms) -> _Decision:
    d, positions = _drafted_part(block)
    pi = rule.target_distribution(d, alpha, positions)
    # The block ends before a position at which the rule gives no numbers.
    scored = jnp.cumprod(jnp.isfinite(pi.sum(axis=-1)), axis=1, dtype=jnp.int32).sum(axis=1)
    block = block._replace(num_drafted=jnp.minimum(block.num_drafted, scored))
    pi_x, q_x = dist.pick(pi, block.tokens), dist.pick(d.q, block.tokens)
    ratio = jnp.where(block.drafted, pi_x / jnp.where(q_x > 0, q_x, 1.0), 1.0)
    weight = _running_weight(ratio)  # w_0 .. w_gamma

    # Acceptance of each prefix: h_0 .. h_{gamma - 1} from the residuals, h_gamma = w_gamma.
    mass = jnp.maximum(weight[:, :-1, None] * pi - d.q, 0.0).sum(axis=-1)
    denominator = mass + 1 - weight[:, :-1]
    h = jnp.where(denominator > 0, mass / jnp.where(denominator > 0, denominator, 1.0), 1.0)
    h = jnp.concatenate([h, weight[:, -1:]], axis=1)
    lengths = jnp.arange(block.gamma + 1)
    h = jnp.where(lengths == block.num_drafted[:, None], weight, h)

    passed = (uniforms.accept < h[:, 1:]) & block.drafted
    num_accepted = jnp.where(passed, lengths[1:], 0).max(axis=1).astype(jnp.int32)

    row = jnp.minimum(num_accepted, block.gamma - 1)
    pi_row = dist.take_row(pi, row)
    residual = jnp.maximum(dist.pick(weight, row)[:, None] * pi_row - dist.take_row(d.q, row), 0.0)
    # No residual mass is a matter of rounding: then draw from pi.
    replacement = jnp.where((residual > 0).any(axis=-1, keepdims=True), residual, pi_row)
    return _Decision(jnp.minimum(ratio, 1.0), num_accepted, replacement)


def _running_weight(ratio: jax.Array) -> jax.Array:
    """w_0 = 1, w_i = min(1, w_{i-1} ratio_i): [batch, gamma] -> [batch, gamma + 1]."""
    weights = [jnp.ones(ratio.shape[0], ratio.dtype)]
    for i in range(ratio.shape[1]):
        weights.append(jnp.minimum(1.0, weights[-1] * ratio[:, i]))
    return jnp.stack(weights, axis=1)


def _outcome(
    rule: Rule,
    block: Block,
    alpha: jax.Array,
    uniforms: Uniforms,
    bonus: str,
    decision: _Decision,
) -> Outcome:
    """Draws the next token, and says what was judged."""
    accept, num_accepted, replacement = decision
    whole = num_accepted == block.num_drafted
    after = _bonus_distribution(rule, block, alpha, bonus)
    weights = jnp.where(whole[:, None], after, replacement)
    judged = block.drafted & (jnp.arange(block.gamma) <= num_accepted[:, None])
    # What follows a rejected token was scored for a text that is not to be.
    finite = (jnp.isfinite(accept) | ~judged).all(axis=1)
    return Outcome(
        num_accepted=num_accepted,
        next_token=dist.sample(weights, uniforms.next_token),
        judged=judged,
        deferred=judged & _defers(rule, block, alpha, accept),
        finite=finite & jnp.isfinite(weights.sum(axis=-1)),
    )


def _defers(rule: Rule, block: Block, alpha: jax.Array, accept: jax.Array) -> jax.Array:
    """Bool [batch, gamma]: where the rule chose the target."""
    if rule.kind == "choice":
        d, positions = _drafted_part(block)
        return ~rule.keep(d, alpha, positions)
    return accept < 1


def _bonus_distribution(rule: Rule, block: Block, alpha: jax.Array, bonus: str) -> jax.Array:
    """What the bonus token of each row is drawn from, [batch, V]."""
    row = block.num_drafted
    if bonus == "target":
        return dist.take_row(block.d.p, row)
    d = _at(block.d, row)
    pi = rule.target_distribution(d, alpha, dist.pick(block.positions, row))
    # A drafter that has nothing to propose has no distribution either.
    return jnp.where((d.q > 0).any(axis=-1, keepdims=True), pi, d.p)


def _drafted_part(block: Block) -> tuple[Distributions, jax.Array]:
    """Distributions and positions without those of the bonus token."""
    d = Distributions(*(x[:, : block.gamma] for x in block.d))
    return d, block.positions[:, : block.gamma]


def _at(d: Distributions, row: jax.Array) -> Distributions:
    """Each batch row's distributions at one block position: [batch, V] each."""
    return Distributions(*(dist.take_row(x, row) for x in d))
