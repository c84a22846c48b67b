"""One model, one token at a time: the reference that speculation is measured against."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from spec_cascades import distributions as dist
from spec_cascades.decoding import protocol
from spec_cascades.decoding import state as st
from spec_cascades.models.interface import Model, Prompt

ROLES = ("target", "drafter")


@struct.dataclass
class AutoregressiveState:
    """State of the loop.

    Attributes:
        output: what has been emitted.
        cache: the model's.
        keys: PRNG key [batch], one a row.
        statistics: counts so far.
    """

    output: st.Output
    cache: Any
    keys: jax.Array
    statistics: st.Statistics


@dataclasses.dataclass(frozen=True)
class AutoregressiveDecoder:
    """Decodes with one model; a `protocol.Decoder` that sweeps nothing.

    Attributes:
        model: what decodes.
        config: decoding settings.
        role: whose parameters it takes, and whose tokens these are in the statistics. The "target"
            makes one call a token, and each token is a bonus token (nothing was drafted); the
            "drafter"'s tokens are drafts that nobody contests.
    """

    model: Model
    config: st.DecodeConfig
    role: str = "target"

    def __post_init__(self):
        if self.role not in ROLES:
            raise ValueError(f"role = {self.role!r} must be one of {', '.join(ROLES)}")

    @property
    def readers(self) -> Mapping[str, Model]:
        """See `Decoder`."""
        return {self.role: self.model}

    @property
    def spare(self) -> int:
        """See `Decoder`."""
        return 1

    def start(
        self,
        params: protocol.PairParams,
        prompt: Prompt,
        keys: jax.Array,
        row_mask: jax.Array | None = None,
        caches: Mapping[str, Any] | None = None,
    ) -> AutoregressiveState:
        """See `Decoder`."""
        caches = protocol.read_all(self, params, prompt) if caches is None else caches
        output = st.start_output(self.model, prompt, self.config, self.spare, row_mask)
        real = output.finish != st.Finish.PADDING
        statistics = st.Statistics.zeros(keys.shape[0], 1).add(**{f"{self.role}_prefills": real})
        return AutoregressiveState(output, caches[self.role], keys, statistics)

    def running(self, state: AutoregressiveState) -> jax.Array:
        """See `Decoder`."""
        return state.output.running

    def step(
        self,
        params: protocol.PairParams,
        state: AutoregressiveState,
        *,
        alpha: jax.Array | float = 0.0,
        temperature: jax.Array | float = 0.0,
    ) -> AutoregressiveState:
        """One token."""
        del alpha
        output, config = state.output, self.config
        logits, cache = self.model.extend(
            getattr(params, self.role), state.cache, output.newest[:, None], output.position
        )
        token, log_probs, sound = next_token(
            logits[:, 0],
            state.keys,
            output,
            temperature,
            config,
            st.real_vocabulary(config, self.model),
        )
        origin = st.Origin.BONUS if self.role == "target" else st.Origin.DRAFT
        output, kept = st.append(
            output,
            config,
            token[:, None],
            sound.astype(jnp.int32),
            jnp.full_like(token, origin)[:, None],
            log_probs,
            sound,
        )
        counts = {f"{self.role}_calls": state.output.running}
        if self.role == "target":
            counts |= {"bonus": kept}
        else:
            counts |= {"drafted": kept, "accepted": kept}
            counts |= {"verified_at": kept[:, None], "accepted_at": kept[:, None]}
        return state.replace(output=output, cache=cache, statistics=state.statistics.add(**counts))

    def insert(self, state, rows, other):
        """See `Decoder`."""
        return protocol.insert_rows(state, rows, other)

    def result(self, state: AutoregressiveState) -> st.DecodeResult:
        """See `Decoder`."""
        return st.result(state.output, self.config, state.statistics)


def next_token(
    logits: jax.Array,
    keys: jax.Array,
    output: st.Output,
    temperature: jax.Array | float,
    config: st.DecodeConfig,
    vocab_size: int,
) -> tuple[jax.Array, jax.Array | None, jax.Array]:
    """Samples each row's next token from logits [batch, V].

    Returns:
        int32 [batch] tokens; float32 [batch, 1] log-probabilities or None; bool [batch], whether
        the logits make a distribution.
    """
    sound = dist.sound(logits, vocab_size)
    logits = dist.fit_vocabulary(logits, logits.shape[-1], vocab_size)
    numbers = st.uniforms(keys, output.length, 2)
    token = dist.sample(config.working(logits, temperature), numbers)
    log_probs = st.log_probability(logits, token)[:, None] if config.return_log_probs else None
    return token, log_probs, sound
