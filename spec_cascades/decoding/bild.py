"""BiLD, the big little decoder (Kim et al., NeurIPS 2023): fallback and rollback, greedy.

The drafter writes until it is unsure (fallback); the target scores the stretch in parallel, rolls
back to the first token that it finds too unlikely, and puts its own there. In the terms of this
package: a draft that ends before an unsure token, and a rule that judges drafts by the target's
log-probability. The reference implementation takes its maximum over the whole batch, and so is
right for batch 1 only; here each row goes its own way.
"""

import dataclasses

import jax
import jax.numpy as jnp

from spec_cascades import distributions as dist
from spec_cascades.decoding.drafters import ModelDrafter
from spec_cascades.decoding.speculative import SpeculativeDecoder
from spec_cascades.decoding.state import DecodeConfig
from spec_cascades.models.interface import Model
from spec_cascades.rules import INFINITY, Distributions, Parameter, Rule, Verdict

FALLBACK = Parameter(
    "fallback",
    0.0,
    1.0,
    0.6,
    "the drafter hands over where its best token is less likely than this",
    grid=(0.3, 0.5, 0.7, 0.9),
)
ROLLBACK = Parameter(
    "rollback",
    0.0,
    INFINITY,
    5.0,
    "the target takes back drafts whose -log p, in nats, is above this",
    grid=(2.0, 5.0),
)
MAX_DRAFT = 10
"""Tokens that the drafter writes at most before the target looks."""


def _within_rollback(d: Distributions, tokens: jax.Array, rollback: jax.Array) -> Verdict:
    """Accept iff -log p_hat(x) <= rollback, else the target's own token."""
    return Verdict((-jnp.log(dist.pick(d.p_hat, tokens)) <= rollback).astype(jnp.float32), d.p)


_RULE = Rule(
    name="bild",
    kind="verdict",
    function=_within_rollback,
    summary="rolls back to the first draft the target finds too unlikely",
    source="Kim et al., NeurIPS 2023",
    alpha=ROLLBACK,
)


@dataclasses.dataclass(frozen=True)
class BigLittleDecoder(SpeculativeDecoder):
    """BiLD as a `protocol.Decoder`: greedy, and `alpha` is the fallback threshold.

    Attributes:
        rollback: largest -log p, in nats, at which a draft stands.
    """

    rollback: float = ROLLBACK.default

    def step(self, params, state, *, alpha=FALLBACK.default, temperature=0.0):
        """One stretch of the drafter, and the target's look at it; see `Decoder`."""
        del temperature
        draft, state = self.draft(params, state, temperature=0.0, confidence=alpha)
        verified, state = self.verify(params, state, draft, alpha=self.rollback, temperature=0.0)
        return self.commit(state, draft, verified)


def bild(
    target: Model,
    drafter: Model,
    config: DecodeConfig,
    *,
    rollback: float = ROLLBACK.default,
    max_draft: int = MAX_DRAFT,
) -> BigLittleDecoder:
    """The decoder of BiLD.

    Args:
        target: the large model.
        drafter: the small one.
        config: decoding settings.
        rollback: in nats, at least 0.
        max_draft: longest stretch of the drafter.

    Raises:
        ValueError: a setting is out of range.
    """
    rollback = ROLLBACK.check(rollback, "bild")
    return BigLittleDecoder(
        target, ModelDrafter(drafter), _RULE, config, gamma=max_draft, rollback=rollback
    )
