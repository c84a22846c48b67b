"""Cascades without speculation: the drafter answers, and hands over to the target when unsure.

`SequenceCascade` decides once for the whole answer, `TokenCascade` at every position. Both wait
for the drafter before the target can begin, which is what speculative cascades do away with.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from spec_cascades import distributions as dist
from spec_cascades.decoding import protocol
from spec_cascades.decoding import state as st
from spec_cascades.decoding.autoregressive import AutoregressiveDecoder, AutoregressiveState
from spec_cascades.decoding.drafters import known_ids
from spec_cascades.models.interface import Model, Prompt
from spec_cascades.rules import Distributions, Rule

SCORES = ("mean", "sum", "min", "quantile")
# Tokens that the target catches up on in one call of `extend`.
_CATCH_UP = 8


# --------------------------------------------------------------------------------------------
# Sequence level
# --------------------------------------------------------------------------------------------


@struct.dataclass
class SequenceState:
    """State of the sequence-level cascade.

    Attributes:
        drafted: the drafter's answer.
        answered: the target's; rows that have not come to it are padding rows.
        prompt: what the target reads where it must answer.
        deferred: bool [batch], rows whose finished draft falls short.
        read: bool [batch], those of them whose prompt the target has read.
    """

    drafted: AutoregressiveState
    answered: AutoregressiveState
    prompt: Prompt
    deferred: jax.Array
    read: jax.Array

    @property
    def waiting(self) -> jax.Array:
        """Bool [batch]: rows that the target is to answer and has not begun to."""
        return self.deferred & ~self.read


@dataclasses.dataclass(frozen=True)
class SequenceCascade:
    """The drafter writes the whole answer; where its score falls short the target starts afresh.

    A `protocol.Decoder`; `alpha` is the threshold, in nats, below which the target answers. Where
    no row defers the target does not even read the prompt. `log_probs`, where asked for, are those
    of the model that wrote the answer.

    Attributes:
        target: the large model.
        drafter: the small one.
        config: decoding settings.
        score: of the drafter's token log-probabilities: "mean", "sum", "min" (the least likely
            token) or "quantile".
        quantile: for that score, 0 to 1.
    """

    target: Model
    drafter: Model
    config: st.DecodeConfig
    score: str = "mean"
    quantile: float = 0.2

    def __post_init__(self):
        if self.score not in SCORES:
            raise ValueError(f"score = {self.score!r} must be one of {', '.join(SCORES)}")
        if not 0 <= self.quantile <= 1:
            raise ValueError(f"quantile = {self.quantile} must be within 0 and 1")

    @property
    def readers(self) -> Mapping[str, Model]:
        """See `Decoder`: the drafter alone; the target reads what is deferred to it, if any."""
        return {"drafter": self.drafter}

    @property
    def spare(self) -> int:
        """See `Decoder`."""
        return 1

    @property
    def _drafting(self) -> AutoregressiveDecoder:
        return AutoregressiveDecoder(self.drafter, self._scored, "drafter")

    @property
    def _answering(self) -> AutoregressiveDecoder:
        return AutoregressiveDecoder(self.target, self._scored)

    @property
    def _scored(self) -> st.DecodeConfig:
        return dataclasses.replace(self.config, return_log_probs=True)

    def start(
        self,
        params: protocol.PairParams,
        prompt: Prompt,
        keys: jax.Array,
        row_mask: jax.Array | None = None,
        caches: Mapping[str, Any] | None = None,
    ) -> SequenceState:
        """See `Decoder`."""
        caches = protocol.read_all(self, params, prompt) if caches is None else caches
        nothing = jnp.zeros(keys.shape[0], bool)
        # Fresh numbers: whether the target runs at all depends on those of the drafter.
        fresh = jax.vmap(jax.random.fold_in, (0, None))(keys, 1)
        empty = jax.eval_shape(
            lambda params, prompt: protocol.read_all(self._answering, params, prompt),
            params,
            prompt,
        )
        blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), empty)
        width = self.config.prompt_capacity or prompt.tokens.shape[1]
        wide = jnp.pad(prompt.tokens, [(0, 0), (0, width - prompt.tokens.shape[1])])
        return SequenceState(
            drafted=self._drafting.start(params, prompt, keys, row_mask, caches),
            answered=self._answering.start(params, prompt, fresh, nothing, blank),
            prompt=Prompt(wide, prompt.lengths),
            deferred=nothing,
            read=nothing,
        )

    def running(self, state: SequenceState) -> jax.Array:
        """See `Decoder`."""
        return state.drafted.output.running | state.waiting | state.answered.output.running

    def step(
        self,
        params: protocol.PairParams,
        state: SequenceState,
        *,
        alpha: jax.Array | float,
        temperature: jax.Array | float = 0.0,
    ) -> SequenceState:
        """One token of the rows that draft; one of the target's, for rows that it answers."""
        state = jax.lax.cond(
            state.drafted.output.running.any(),
            lambda state: self._draft(params, state, alpha, temperature),
            lambda state: state,
            state,
        )
        # The target reads for all rows at once, when none drafts any more.
        state = jax.lax.cond(
            state.waiting.any() & ~state.drafted.output.running.any(),
            lambda state: self._read(params, state),
            lambda state: state,
            state,
        )
        answered = jax.lax.cond(
            state.answered.output.running.any(),
            lambda answered: self._answering.step(params, answered, temperature=temperature),
            lambda answered: answered,
            state.answered,
        )
        return state.replace(answered=answered)

    def _draft(self, params, state, threshold, temperature) -> SequenceState:
        before = state.drafted.output.running
        drafted = self._drafting.step(params, state.drafted, temperature=temperature)
        output = drafted.output
        score = answer_score(output.log_probs, output.length, self.score, self.quantile)
        # A draft that ended in a NaN has no score to speak of.
        short = (score < threshold) | (output.finish == st.Finish.NONFINITE)
        deferred = state.deferred | (before & ~output.running & short)
        return state.replace(drafted=drafted, deferred=deferred)

    def _read(self, params, state) -> SequenceState:
        waiting = state.waiting
        caches = protocol.read_all(self._answering, params, state.prompt)
        fresh = self._answering.start(params, state.prompt, state.answered.keys, waiting, caches)

        def choose(new, old):
            rows = waiting.reshape((-1,) + (1,) * (new.ndim - 1))
            return jnp.where(rows, new, old)

        answered = jax.tree.map(choose, fresh, state.answered)
        return state.replace(answered=answered, read=state.read | waiting)

    def insert(self, state, rows, other):
        """See `Decoder`."""
        return protocol.insert_rows(state, rows, other)

    def result(self, state: SequenceState) -> st.DecodeResult:
        """See `Decoder`."""
        drafted = self._drafting.result(state.drafted)
        answered = self._answering.result(state.answered)
        deferred = state.deferred

        def choose(target_value, drafter_value):
            rows = deferred.reshape((-1,) + (1,) * (drafter_value.ndim - 1))
            return jnp.where(rows, target_value, drafter_value)

        written = jnp.where(answered.origins > 0, st.Origin.TARGET, st.Origin.NONE)
        drafts, calls = drafted.statistics, answered.statistics
        # A row whose target has not begun is a padding row of the target's.
        finish = jnp.where(state.waiting, st.Finish.RUNNING, answered.finish)
        return st.DecodeResult(
            tokens=choose(answered.tokens, drafted.tokens),
            lengths=choose(answered.lengths, drafted.lengths),
            finish=choose(finish, drafted.finish).astype(jnp.int32),
            origins=choose(written, drafted.origins).astype(jnp.int32),
            log_probs=(
                choose(answered.log_probs, drafted.log_probs)
                if self.config.return_log_probs
                else None
            ),
            statistics=drafts.replace(
                target_calls=calls.target_calls,
                target_prefills=calls.target_prefills,
                accepted=choose(0, drafts.accepted),
                accepted_at=choose(0, drafts.accepted_at),
                corrected=calls.emitted,
                deferred=choose(drafts.drafted, 0 * drafts.drafted),
            ),
        )


def answer_score(
    log_probs: jax.Array, lengths: jax.Array, score: str, quantile: float = 0.2
) -> jax.Array:
    """How sure a model was of its answer, in nats.

    Args:
        log_probs: float32 [batch, length], of each token.
        lengths: int32 [batch], tokens that count; an empty answer scores 0.
        score: one of `SCORES`.
        quantile: for that score; between two tokens it interpolates.

    Returns:
        float32 [batch].
    """
    inside = jnp.arange(log_probs.shape[1]) < lengths[:, None]
    total = jnp.where(inside, log_probs, 0.0).sum(axis=1)
    if score == "sum":
        return total
    if score == "mean":
        return total / jnp.maximum(lengths, 1)
    ranked = jnp.sort(jnp.where(inside, log_probs, jnp.inf), axis=1)
    place = (0.0 if score == "min" else quantile) * jnp.maximum(lengths - 1, 0)
    low = jnp.floor(place).astype(jnp.int32)
    high = jnp.minimum(low + 1, jnp.maximum(lengths - 1, 0))
    at_low, at_high = dist.pick(ranked, low), dist.pick(ranked, high)
    return jnp.where(lengths > 0, at_low + (place - low) * (at_high - at_low), 0.0)


# --------------------------------------------------------------------------------------------
# Token level
# --------------------------------------------------------------------------------------------


@struct.dataclass
class TokenState:
    """State of the token-level cascade.

    Attributes:
        output: what has been emitted.
        drafter_cache: the drafter's cache.
        target_cache: the target's; it lags behind, see `_catch_up`.
        target_consumed: int32 [batch]; it holds the row's positions before this one.
        keys: PRNG key [batch], one a row.
        statistics: counts so far.
    """

    output: st.Output
    drafter_cache: Any
    target_cache: Any
    target_consumed: jax.Array
    keys: jax.Array
    statistics: st.Statistics


@dataclasses.dataclass(frozen=True)
class TokenCascade:
    """At each position the drafter is run, then the rule says which model's distribution to use.

    A `protocol.Decoder`; `alpha` is the rule's. `chow` and `chow_log` decide before the target is
    run at all; it then reads what it has missed and gives its distribution, which counts as one
    target call. The other choices need the target at every position. `log_probs` are those of the
    distribution's own model.

    Attributes:
        target: the large model.
        drafter: the small one.
        rule: one that chooses a model at each position; anything else is a ValueError.
        config: decoding settings.
    """

    target: Model
    drafter: Model
    rule: Rule
    config: st.DecodeConfig

    def __post_init__(self):
        if self.rule.kind != "choice":
            raise ValueError(
                f"a token-level cascade takes a rule that chooses one model at each position "
                f"(chow, diff, opt, or their _log forms), not {self.rule.name!r}"
            )

    @property
    def readers(self) -> Mapping[str, Model]:
        """See `Decoder`."""
        return {"target": self.target, "drafter": self.drafter}

    @property
    def spare(self) -> int:
        """See `Decoder`."""
        return 1 + _CATCH_UP

    def start(
        self,
        params: protocol.PairParams,
        prompt: Prompt,
        keys: jax.Array,
        row_mask: jax.Array | None = None,
        caches: Mapping[str, Any] | None = None,
    ) -> TokenState:
        """See `Decoder`."""
        caches = protocol.read_all(self, params, prompt) if caches is None else caches
        output = st.start_output(self.target, prompt, self.config, self.spare, row_mask)
        real = output.finish != st.Finish.PADDING
        statistics = st.Statistics.zeros(keys.shape[0], 1)
        return TokenState(
            output=output,
            drafter_cache=caches["drafter"],
            target_cache=caches["target"],
            target_consumed=output.first,
            keys=keys,
            statistics=statistics.add(target_prefills=real, drafter_prefills=real),
        )

    def running(self, state: TokenState) -> jax.Array:
        """See `Decoder`."""
        return state.output.running

    def step(
        self,
        params: protocol.PairParams,
        state: TokenState,
        *,
        alpha: jax.Array | float,
        temperature: jax.Array | float = 0.0,
    ) -> TokenState:
        """One token."""
        output, config, rule = state.output, self.config, self.rule
        running = output.running
        state, q_logits, q_sound = self._run_drafter(params, state)
        q, q_hat = config.working(q_logits, temperature), dist.raw(q_logits)
        wanted = running
        if not rule.needs_target:
            d = Distributions(q=q, p=None, q_hat=q_hat, p_hat=None)
            # A drafter at fault has nothing to say: the target speaks.
            wanted &= ~(rule.keep(d, alpha, output.length) & q_sound)
        state, p_logits, p_sound = self._run_target(params, state, wanted)
        p = config.working(p_logits, temperature)
        keep = ~wanted
        if rule.needs_target:
            d = Distributions(q=q, p=p, q_hat=q_hat, p_hat=dist.raw(p_logits))
            keep = rule.keep(d, alpha, output.length) & q_sound

        token = dist.sample(
            jnp.where(keep[:, None], q, p), st.uniforms(state.keys, output.length, 2)
        )
        log_probs = None
        if config.return_log_probs:
            used = jnp.where(keep[:, None], q_logits, p_logits)
            log_probs = st.log_probability(used, token)[:, None]
        origins = jnp.where(keep, st.Origin.DRAFT, st.Origin.TARGET)[:, None]
        output, kept = st.append(
            output, config, token[:, None], p_sound.astype(jnp.int32), origins, log_probs, p_sound
        )
        accepted = (kept > 0) & keep
        corrected = (kept > 0) & ~keep
        return state.replace(
            output=output,
            statistics=state.statistics.add(
                target_calls=wanted,
                drafter_calls=running,
                drafter_faults=running & ~q_sound,
                drafted=kept,
                accepted=accepted,
                corrected=corrected,
                deferred=corrected,
                verified_at=kept[:, None],
                accepted_at=accepted[:, None],
            ),
        )

    def _run_drafter(self, params, state) -> tuple[TokenState, jax.Array, jax.Array]:
        """The drafter's logits [batch, V] in the target's width, and whether they are numbers."""
        vocab_size = st.real_vocabulary(self.config, self.target, self.drafter)
        output = state.output
        logits, cache = self.drafter.extend(
            params.drafter,
            state.drafter_cache,
            known_ids(self.drafter, output.newest[:, None]),
            output.position,
        )
        logits = logits[:, 0]
        sound = dist.sound(logits, vocab_size)
        logits = jnp.where(sound[:, None], logits, dist.MASKED)
        logits = dist.fit_vocabulary(logits, self.target.vocab_size, vocab_size)
        return state.replace(drafter_cache=cache), logits, sound

    def _run_target(self, params, state, wanted) -> tuple[TokenState, jax.Array, jax.Array]:
        """The target's logits [batch, V] in the wanted rows; it is not run if there are none."""
        vocab_size = st.real_vocabulary(self.config, self.target)

        def run(state):
            logits, cache, consumed = _catch_up(
                self.target,
                params.target,
                state.target_cache,
                state.target_consumed,
                state.output,
                wanted,
            )
            return state.replace(target_cache=cache, target_consumed=consumed), logits

        def rest(state):
            shape = (wanted.shape[0], self.target.vocab_size)
            return state, jnp.zeros(shape, jnp.float32)

        state, logits = jax.lax.cond(wanted.any(), run, rest, state)
        sound = dist.sound(logits, vocab_size) | ~wanted
        return state, dist.fit_vocabulary(logits, self.target.vocab_size, vocab_size), sound

    def insert(self, state, rows, other):
        """See `Decoder`."""
        return protocol.insert_rows(state, rows, other)

    def result(self, state: TokenState) -> st.DecodeResult:
        """See `Decoder`."""
        return st.result(state.output, self.config, state.statistics)


def _catch_up(target, params, cache, consumed, output, wanted):
    """Feeds the wanted rows all tokens they have not seen, a fixed number at a time.

    Rows that are not wanted stay where they are, so that a row's cost is its own.

    Returns:
        logits [batch, V] after the newest token of the wanted rows, cache, consumed.
    """

    def behind(consumed):
        return wanted & (consumed <= output.position)

    def body(loop):
        logits, cache, consumed = loop
        tokens = jax.vmap(lambda row, i: jax.lax.dynamic_slice_in_dim(row, i, _CATCH_UP))(
            output.sequence, consumed - output.first
        )
        scored, cache = target.extend(params, cache, tokens, consumed)
        newest = output.position - consumed
        here = jnp.clip(newest, 0, _CATCH_UP - 1)
        row = jnp.take_along_axis(scored, here[:, None, None], axis=1)[:, 0]
        reached = behind(consumed) & (newest < _CATCH_UP)
        ahead = jnp.minimum(consumed + _CATCH_UP, output.position + 1)
        return (
            jnp.where(reached[:, None], row, logits),
            cache,
            jnp.where(behind(consumed), ahead, consumed),
        )

    blank = jnp.zeros((wanted.shape[0], target.vocab_size), jnp.float32)
    return jax.lax.while_loop(lambda loop: behind(loop[2]).any(), body, (blank, cache, consumed))
