"""The speculative loop: draft a block, verify it in one call of the target, commit what stands.

    rule = rules.get("token_v3")
    decoder = SpeculativeDecoder(target, ModelDrafter(drafter), rule, config, gamma=5)
    result = jax.jit(decoder.decode)(target_params, drafter_params, inputs, keys, alpha=0.3)

`start`, `draft`, `verify` and `commit` are the steps of that loop, each a pure function that can be
jitted by itself, for a loop driven by the host (streaming, serving).
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from spec_cascades import checks
from spec_cascades import distributions as dist
from spec_cascades.decoding import state as st
from spec_cascades.decoding.drafters import Draft, Drafter
from spec_cascades.rules import Distributions, Rule
from spec_cascades.verification import (
    BONUSES,
    METHODS,
    Block,
    Outcome,
    Uniforms,
    verify_block,
    verify_tokens,
)


@struct.dataclass
class SpeculativeState:
    """State of the loop.

    Attributes:
        output: what has been emitted.
        target_cache: the target's cache.
        drafter_carry: the drafter's state.
        keys: PRNG key [batch], one a row.
        statistics: counts so far.
    """

    output: st.Output
    target_cache: Any
    drafter_carry: Any
    keys: jax.Array
    statistics: st.Statistics


@struct.dataclass
class Verified:
    """A verified block, ready to commit.

    Attributes:
        tokens: int32 [batch, gamma + 1]; the drafts that stand, then the next token.
        outcome: of the verification.
        log_probs: float32 [batch, gamma + 1] or None, under the target.
        finite: bool [batch], False where a model or the rule gave a NaN or an infinity.
    """

    tokens: jax.Array
    outcome: Outcome
    log_probs: jax.Array | None
    finite: jax.Array


@dataclasses.dataclass(frozen=True)
class SpeculativeDecoder:
    """Speculative decoding or cascade of a target and a drafter; hashable, and without state.

    Attributes:
        target: a `models.Model`.
        drafter: a `Drafter`.
        rule: the deferral rule.
        config: decoding settings.
        gamma: block size, at least 1.
        verification: "token" or "block" (the latter for rules with a target distribution).
        bonus: the bonus token's distribution, "target" or "rule": see `verification`.
    """

    target: Any
    drafter: Drafter
    rule: Rule
    config: st.DecodeConfig
    gamma: int = 5
    verification: str = "token"
    bonus: str = "target"

    def __post_init__(self):
        checks.counts(gamma=self.gamma)
        for name, value, known in (
            ("verification", self.verification, METHODS),
            ("bonus", self.bonus, BONUSES),
        ):
            if value not in known:
                raise ValueError(f"{name} = {value!r} must be one of {', '.join(known)}")
        if not self.rule.has_target_distribution:
            for setting in ("verification='block'", "bonus='rule'"):
                name, value = setting.split("=")
                if getattr(self, name) == value.strip("'"):
                    raise ValueError(
                        f"{setting} needs a rule with a target distribution, which rule "
                        f"{self.rule.name!r} has not"
                    )

    @property
    def _rows(self) -> int:
        """Positions at which the drafter's distribution is needed."""
        return self.gamma + (self.bonus == "rule")

    @property
    def _vocab_size(self) -> int:
        return st.real_vocabulary(self.config, self.target)

    def decode(
        self,
        target_params: Any,
        drafter_params: Any,
        inputs: jax.Array,
        keys: jax.Array,
        *,
        alpha: jax.Array | float,
        temperature: jax.Array | float = 0.0,
        row_mask: jax.Array | None = None,
    ) -> st.DecodeResult:
        """Decodes a batch, in one `lax.while_loop`.

        Args:
            target_params: the target's parameters.
            drafter_params: the drafter's, None for `PromptLookup`.
            inputs: int32 [batch, input_length].
            keys: PRNG key [batch], see `row_keys`.
            alpha: the rule's trade-off, scalar or [batch]; traced.
            temperature: scalar or [batch]; traced; 0 is greedy.
            row_mask: bool [batch], False for padding rows.
        """
        initial = self.start(target_params, drafter_params, inputs, keys, row_mask)
        final = jax.lax.while_loop(
            lambda state: state.output.running.any(),
            lambda state: self.step(
                target_params, drafter_params, state, alpha=alpha, temperature=temperature
            ),
            initial,
        )
        return self.result(final)

    def start(
        self,
        target_params: Any,
        drafter_params: Any,
        inputs: jax.Array,
        keys: jax.Array,
        row_mask: jax.Array | None = None,
    ) -> SpeculativeState:
        """Encodes the inputs; arguments as for `decode`."""
        spare = self.gamma + 1
        max_length = self.config.max_decode_length + spare
        output = st.start_output(self.target, inputs, self.config, spare, row_mask)
        statistics = st.Statistics.zeros(inputs.shape[0], self.gamma)
        real = output.finish != st.Finish.PADDING
        return SpeculativeState(
            output=output,
            target_cache=self.target.prefill(target_params, inputs, max_length),
            drafter_carry=self.drafter.start(drafter_params, inputs, max_length),
            keys=keys,
            statistics=statistics.add(
                target_prefills=real, drafter_prefills=real & self.drafter.runs_model
            ),
        )

    def step(
        self,
        target_params: Any,
        drafter_params: Any,
        state: SpeculativeState,
        *,
        alpha: jax.Array | float,
        temperature: jax.Array | float,
    ) -> SpeculativeState:
        """One block: draft, verify, commit."""
        draft, state = self.draft(drafter_params, state, temperature=temperature)
        verified, state = self.verify(
            target_params, state, draft, alpha=alpha, temperature=temperature
        )
        return self.commit(state, draft, verified)

    def draft(
        self, drafter_params: Any, state: SpeculativeState, *, temperature: jax.Array | float
    ) -> tuple[Draft, SpeculativeState]:
        """Proposes a block after each running row's newest token."""
        draft, carry = self.drafter.propose(
            drafter_params,
            state.drafter_carry,
            state.output,
            width=self.target.vocab_size,
            gamma=self.gamma,
            rows=self._rows,
            temperature=temperature,
            uniforms=self._uniforms(state)[0],
            config=self.config,
        )
        return draft, state.replace(drafter_carry=carry)

    def verify(
        self,
        target_params: Any,
        state: SpeculativeState,
        draft: Draft,
        *,
        alpha: jax.Array | float,
        temperature: jax.Array | float,
    ) -> tuple[Verified, SpeculativeState]:
        """Scores the block in one call of the target and decides what stands."""
        output = state.output
        fed = jnp.concatenate([output.newest[:, None], draft.tokens], axis=1)
        logits, cache = self.target.extend(target_params, state.target_cache, fed, output.position)
        finite = dist.finite(logits, self._vocab_size)
        unasked = self.gamma + 1 - self._rows
        finite &= jnp.pad(draft.finite, [(0, 0), (0, unasked)], constant_values=True)
        logits = dist.fit_vocabulary(logits, self.target.vocab_size, self._vocab_size)
        block = Block(
            tokens=draft.tokens,
            num_drafted=draft.num_drafted,
            d=Distributions(
                q=draft.q,
                p=self.config.working(logits, temperature),
                q_hat=dist.raw(draft.logits),
                p_hat=dist.raw(logits),
            ),
            positions=output.length[:, None] + jnp.arange(self.gamma + 1),
        )
        decide = {
            "token": verify_tokens,
            "block": verify_block,
        }[self.verification]
        outcome = decide(self.rule, block, alpha, self._uniforms(state)[1], self.bonus)
        tokens = jax.vmap(lambda row, i, token: row.at[i].set(token))(
            jnp.pad(draft.tokens, [(0, 0), (0, 1)]), outcome.num_accepted, outcome.next_token
        )
        log_probs = st.log_probability(logits, tokens) if self.config.return_log_probs else None
        finite = (finite | ~outcome.used).all(axis=1) & outcome.finite
        return Verified(tokens, outcome, log_probs, finite), state.replace(target_cache=cache)

    def commit(self, state: SpeculativeState, draft: Draft, verified: Verified) -> SpeculativeState:
        """Appends what stands, a different number of tokens in each row, and counts."""
        accepted = verified.outcome.num_accepted
        index = jnp.arange(self.gamma + 1)
        whole = accepted == draft.num_drafted
        last = jnp.where(whole, st.Origin.BONUS, st.Origin.TARGET)[:, None]
        origins = jnp.where(index < accepted[:, None], st.Origin.DRAFT, last)
        running = state.output.running
        output, kept = st.append(
            state.output,
            self.config,
            verified.tokens,
            accepted + 1,
            origins,
            verified.log_probs,
            verified.finite,
        )
        from_target = kept > accepted
        counted = running & verified.finite
        # A judged draft beyond the row's end (after an accepted EOS) does not exist: drafts end
        # at EOS and at the cap.
        judged = verified.outcome.judged & counted[:, None]
        stands = judged & (index[:-1] < jnp.minimum(accepted, kept)[:, None])
        return SpeculativeState(
            output=output,
            target_cache=state.target_cache,
            drafter_carry=self.drafter.commit(state.drafter_carry, output.position),
            keys=state.keys,
            statistics=state.statistics.add(
                target_calls=running,
                drafter_calls=draft.calls,
                drafted=jnp.where(counted, draft.num_drafted, 0),
                accepted=jnp.minimum(accepted, kept),
                corrected=from_target & ~whole,
                bonus=from_target & whole,
                deferred=(verified.outcome.deferred & judged).sum(axis=1),
                verified_at=judged,
                accepted_at=stands,
            ),
        )

    def result(self, state: SpeculativeState) -> st.DecodeResult:
        """What has been emitted so far."""
        return st.result(state.output, self.config, state.statistics)

    def _uniforms(self, state: SpeculativeState) -> tuple[jax.Array, Uniforms]:
        """This block's random numbers: for the drafter, and for the verification."""
        gamma, rows = self.gamma, self._rows
        numbers = st.uniforms(state.keys, state.output.length, gamma + 2 + 2 * rows)
        accept, next_token, draft = jnp.split(numbers, [gamma, gamma + 2], axis=1)
        return draft.reshape(-1, rows, 2), Uniforms(accept, next_token)


def speculative(
    target: Any,
    drafter: Drafter,
    rule: Rule,
    target_params: Any,
    drafter_params: Any,
    inputs: jax.Array,
    keys: jax.Array,
    *,
    alpha: jax.Array | float,
    temperature: jax.Array | float,
    config: st.DecodeConfig,
    gamma: int,
    verification: str = "token",
    bonus: str = "target",
    row_mask: jax.Array | None = None,
) -> st.DecodeResult:
    """`SpeculativeDecoder.decode` as one function; see there for the arguments."""
    decoder = SpeculativeDecoder(target, drafter, rule, config, gamma, verification, bonus)
    return decoder.decode(
        target_params,
        drafter_params,
        inputs,
        keys,
        alpha=alpha,
        temperature=temperature,
        row_mask=row_mask,
    )
