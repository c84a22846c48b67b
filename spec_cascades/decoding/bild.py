"""BiLD, the big little decoder (Kim et al., NeurIPS 2023): fallback and rollback, greedy.

The drafter writes until it is unsure (fallback); the target scores the stretch in parallel, rolls
back to the first token that it finds too unlikely, and puts its own there. In the terms of this
package: a draft that ends before an unsure token, and a rule that judges drafts by the target's
log-probability. The reference implementation takes its maximum over the whole batch, and so is
right for batch 1 only; here each row goes its own way.
"""

from typing import Any

import jax
import jax.numpy as jnp

from spec_cascades import distributions as dist
from spec_cascades.decoding.drafters import ModelDrafter
from spec_cascades.decoding.speculative import SpeculativeDecoder
from spec_cascades.decoding.state import DecodeConfig, DecodeResult
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


class _FallbackDrafter(ModelDrafter):
    """A model drafter whose params are (the model's, the fallback threshold)."""

    def start(self, params, inputs, max_length):
        return super().start(params[0], inputs, max_length)

    def propose(self, params, carry, output, **settings):
        return super().propose(params[0], carry, output, confidence=params[1], **settings)


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


def bild(
    target: Any,
    drafter_model: Any,
    target_params: Any,
    drafter_params: Any,
    inputs: jax.Array,
    keys: jax.Array,
    *,
    fallback: jax.Array | float = FALLBACK.default,
    rollback: jax.Array | float = ROLLBACK.default,
    config: DecodeConfig,
    max_draft: int = MAX_DRAFT,
    row_mask: jax.Array | None = None,
) -> DecodeResult:
    """Decodes a batch greedily with BiLD.

    Args:
        target: a `models.Model`.
        drafter_model: a `models.Model`.
        target_params: the target's parameters.
        drafter_params: the drafter's.
        inputs: int32 [batch, input_length].
        keys: PRNG key [batch]; unused, as decoding is greedy.
        fallback: probability, scalar or [batch]; traced.
        rollback: nats, scalar or [batch]; traced.
        config: decoding settings.
        max_draft: longest stretch of the drafter.
        row_mask: bool [batch], False for padding rows.
    """
    decoder = SpeculativeDecoder(
        target, _FallbackDrafter(drafter_model), _RULE, config, gamma=max_draft
    )
    return decoder.decode(
        target_params,
        (drafter_params, fallback),
        inputs,
        keys,
        alpha=rollback,
        temperature=0.0,
        row_mask=row_mask,
    )
