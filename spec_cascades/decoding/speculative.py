"""The speculative loop: draft a block, verify it in one call of the target, commit what stands.

    rule = rules.get("token_v3")
    decoder = SpeculativeDecoder(target, ModelDrafter(drafter), rule, config, gamma=5)
    params = PairParams(target_params, drafter_params)
    result = jax.jit(decode, static_argnums=0)(decoder, params, prompt, keys, alpha=0.3)

`draft`, `verify` and `commit` are the parts of its `step`, each a pure function.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from spec_cascades import checks
from spec_cascades import distributions as dist
from spec_cascades.decoding import protocol
from spec_cascades.decoding import state as st
from spec_cascades.decoding.drafters import Draft, Drafter
from spec_cascades.models.interface import Model, Prompt
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
        num_drafted: int32 [batch], drafts that could be judged.
        outcome: of the verification.
        log_probs: float32 [batch, gamma + 1] or None, under the target.
        sound: bool [batch], False where the target or the rule gave a NaN or an infinity in the
            place of the next token. The drafts that stand do so all the same.
    """

    tokens: jax.Array
    num_drafted: jax.Array
    outcome: Outcome
    log_probs: jax.Array | None
    sound: jax.Array


@dataclasses.dataclass(frozen=True)
class SpeculativeDecoder:
    """Speculative decoding or cascade of a target and a drafter: a `protocol.Decoder`.

    Attributes:
        target: a `models.Model`.
        drafter: a `Drafter`.
        rule: the deferral rule.
        config: decoding settings.
        gamma: block size, at least 1.
        verification: "token" or "block" (the latter for rules with a target distribution).
        bonus: the bonus token's distribution, "target" or "rule": see `verification`.
    """

    target: Model
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

    @property
    def readers(self) -> Mapping[str, Model]:
        """See `Decoder`."""
        both = {"target": self.target, "drafter": self.drafter.model}
        return {name: model for name, model in both.items() if model is not None}

    @property
    def spare(self) -> int:
        """See `Decoder`: a whole block can be written at any length."""
        return self.gamma + 1

    def start(
        self,
        params: protocol.PairParams,
        prompt: Prompt,
        keys: jax.Array,
        row_mask: jax.Array | None = None,
        caches: Mapping[str, Any] | None = None,
    ) -> SpeculativeState:
        """See `Decoder`."""
        caches = protocol.read_all(self, params, prompt) if caches is None else caches
        output = st.start_output(self.target, prompt, self.config, self.spare, row_mask)
        statistics = st.Statistics.zeros(keys.shape[0], self.gamma)
        real = output.finish != st.Finish.PADDING
        return SpeculativeState(
            output=output,
            target_cache=caches["target"],
            drafter_carry=self.drafter.start(prompt, caches.get("drafter"), self.config),
            keys=keys,
            statistics=statistics.add(**{f"{name}_prefills": real for name in self.readers}),
        )

    def running(self, state: SpeculativeState) -> jax.Array:
        """See `Decoder`."""
        return state.output.running

    def step(
        self,
        params: protocol.PairParams,
        state: SpeculativeState,
        *,
        alpha: jax.Array | float,
        temperature: jax.Array | float = 0.0,
    ) -> SpeculativeState:
        """One block: draft, verify, commit."""
        draft, state = self.draft(params, state, temperature=temperature)
        verified, state = self.verify(params, state, draft, alpha=alpha, temperature=temperature)
        return self.commit(state, draft, verified)

    def draft(
        self,
        params: protocol.PairParams,
        state: SpeculativeState,
        *,
        temperature: jax.Array | float,
        confidence: jax.Array | float | None = None,
    ) -> tuple[Draft, SpeculativeState]:
        """Proposes a block after each running row's newest token; see `Drafter.propose`."""
        draft, carry = self.drafter.propose(
            params.drafter,
            state.drafter_carry,
            state.output,
            width=self.target.vocab_size,
            gamma=self.gamma,
            rows=self._rows,
            temperature=temperature,
            uniforms=self._uniforms(state)[0],
            config=self.config,
            confidence=confidence,
        )
        return draft, state.replace(drafter_carry=carry)

    def verify(
        self,
        params: protocol.PairParams,
        state: SpeculativeState,
        draft: Draft,
        *,
        alpha: jax.Array | float,
        temperature: jax.Array | float,
    ) -> tuple[Verified, SpeculativeState]:
        """Scores the block in one call of the target, and judges it; nothing is committed yet."""
        output = state.output
        fed = jnp.concatenate([output.newest[:, None], draft.tokens], axis=1)
        logits, cache = self.target.extend(params.target, state.target_cache, fed, output.position)
        sound = dist.sound(logits, self._vocab_size)
        # A draft ends before a position that the target cannot score: so what stands before a NaN
        # is the same whatever the block size.
        scored = jnp.cumprod(sound[:, : self.gamma], axis=1, dtype=jnp.int32).sum(axis=1)
        num_drafted = jnp.minimum(draft.num_drafted, scored)
        logits = dist.fit_vocabulary(logits, self.target.vocab_size, self._vocab_size)
        block = Block(
            tokens=draft.tokens,
            num_drafted=num_drafted,
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
        at_end = (outcome.num_accepted == num_drafted) & ~dist.pick(sound, num_drafted)
        verified = Verified(tokens, num_drafted, outcome, log_probs, outcome.finite & ~at_end)
        return verified, state.replace(target_cache=cache)

    def commit(self, state: SpeculativeState, draft: Draft, verified: Verified) -> SpeculativeState:
        """Appends what stands, a different number of tokens in each row, and counts."""
        accepted, sound = verified.outcome.num_accepted, verified.sound
        index = jnp.arange(self.gamma + 1)
        whole = accepted == verified.num_drafted
        last = jnp.where(whole, st.Origin.BONUS, st.Origin.TARGET)[:, None]
        origins = jnp.where(index < accepted[:, None], st.Origin.DRAFT, last)
        running = state.output.running
        output, kept = st.append(
            state.output,
            self.config,
            verified.tokens,
            accepted + sound,
            origins,
            verified.log_probs,
            sound,
        )
        from_target = kept > accepted
        drafted = jnp.where(sound, draft.num_drafted, verified.num_drafted)
        # A judged draft beyond the row's end (after an accepted stop) does not exist: drafts end
        # at a stop and at the cap. A verdict that is no number is none.
        judged = verified.outcome.judged & running[:, None]
        judged &= sound[:, None] | (index[:-1] < accepted[:, None])
        stands = judged & (index[:-1] < jnp.minimum(accepted, kept)[:, None])
        return SpeculativeState(
            output=output,
            target_cache=state.target_cache,
            drafter_carry=self.drafter.commit(state.drafter_carry, output.position),
            keys=state.keys,
            statistics=state.statistics.add(
                target_calls=running,
                drafter_calls=draft.calls,
                drafted=jnp.where(running, drafted, 0),
                drafter_faults=running & draft.faults,
                accepted=jnp.minimum(accepted, kept),
                corrected=from_target & ~whole,
                bonus=from_target & whole,
                deferred=(verified.outcome.deferred & judged).sum(axis=1),
                verified_at=judged,
                accepted_at=stands,
            ),
        )

    def insert(self, state, rows, other):
        """See `Decoder`."""
        return protocol.insert_rows(state, rows, other)

    def result(self, state: SpeculativeState) -> st.DecodeResult:
        """See `Decoder`."""
        return st.result(state.output, self.config, state.statistics)

    def _uniforms(self, state: SpeculativeState) -> tuple[jax.Array, Uniforms]:
        """This block's random numbers: for the drafter, and for the verification."""
        gamma, rows = self.gamma, self._rows
        numbers = st.uniforms(state.keys, state.output.length, gamma + 2 + 2 * rows)
        accept, next_token, draft = jnp.split(numbers, [gamma, gamma + 2], axis=1)
        return draft.reshape(-1, rows, 2), Uniforms(accept, next_token)
