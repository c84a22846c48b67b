"""Drafters: what proposes a block. A model, or the input itself.

A drafter is a frozen dataclass with three functions, so that it can be static under `jax.jit`:

    carry = drafter.start(prompt, cache, config)
    draft, carry = drafter.propose(params, carry, output, gamma=..., ...)
    carry = drafter.commit(carry, position)
"""

import dataclasses
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from flax import struct

from spec_cascades import distributions as dist
from spec_cascades.decoding.state import DecodeConfig, Output, real_vocabulary
from spec_cascades.models.interface import Cache, Model, Prompt


class Draft(NamedTuple):
    """A proposed block.

    Attributes:
        tokens: int32 [batch, gamma].
        num_drafted: int32 [batch], how many of them count; the others are no drafts.
        q: float32 [batch, rows, V], the very distribution that each token was sampled from; 0
            throughout where the drafter has nothing to propose.
        logits: float32 [batch, rows, V], of the raw distribution.
        calls: int32 [batch], model calls made for the row.
        faults: bool [batch], where the draft ended early at a NaN or an infinity of the drafter.

    There are gamma rows, or gamma + 1 where the bonus token needs the drafter's distribution.
    """

    tokens: jax.Array
    num_drafted: jax.Array
    q: jax.Array
    logits: jax.Array
    calls: jax.Array
    faults: jax.Array


class Drafter(Protocol):
    """Proposes blocks; hashable and without state of its own.

    Attributes:
        model: the model that reads the prompt and drafts; None where no model does.
    """

    model: Model | None

    def start(self, prompt: Prompt, cache: Cache | None, config: DecodeConfig) -> Any:
        """The drafter's state for a batch of prompts, with what its model made of them."""

    def propose(
        self,
        params: Any,
        carry: Any,
        output: Output,
        *,
        width: int,
        gamma: int,
        rows: int,
        temperature: jax.Array,
        uniforms: jax.Array,
        config: DecodeConfig,
        confidence: jax.Array | None = None,
    ) -> tuple[Draft, Any]:
        """Drafts up to gamma tokens after each running row's newest token.

        Args:
            params: the drafter's parameters.
            carry: its state.
            output: what stands so far.
            width: columns of the target's logits, hence of `q`.
            gamma: block size.
            rows: distributions wanted, gamma or gamma + 1.
            temperature: scalar or [batch].
            uniforms: [batch, rows, 2], random numbers.
            config: decoding settings.
            confidence: scalar or [batch]; a row's draft ends before the first token that the
                drafter itself finds less likely than this (raw probability). None: any will do.
        """

    def commit(self, carry: Any, position: jax.Array) -> Any:
        """Tells the drafter, after verification, where each row's newest token now stands."""


@struct.dataclass
class ModelCarry:
    """State of a model drafter.

    Attributes:
        cache: the model's.
        consumed: int32 [batch]; the cache holds the row's positions before this one.
    """

    cache: Any
    consumed: jax.Array


def known_ids(model: Any, tokens: jax.Array) -> jax.Array:
    """Tokens as a drafter's model can read them.

    The target may emit ids beyond the drafter's table, where a look-up would give NaN: they are
    read as the table's last id. Only drafts depend on it, never what the output may be.
    """
    return jnp.minimum(tokens, model.vocab_size - 1)


@dataclasses.dataclass(frozen=True)
class ModelDrafter:
    """Drafts with a model, one token at a time.

    Attributes:
        model: a `models.Model`.
    """

    model: Model

    def start(self, prompt, cache, config):
        """See `Drafter`."""
        del config
        _, first = self.model.begin(prompt)
        return ModelCarry(cache, first)

    def propose(
        self,
        params,
        carry,
        output,
        *,
        width,
        gamma,
        rows,
        temperature,
        uniforms,
        config,
        confidence=None,
    ):
        """See `Drafter`."""
        batch = output.length.shape[0]
        # Ids that only one of the models has are never drafted, whatever the logits there.
        vocab_size = min(width, real_vocabulary(config, self.model))
        room = config.max_decode_length - output.length

        def record(step, logits, loop):
            """Samples the token of this step from its logits [batch, V]."""
            sound = dist.sound(logits, vocab_size)
            logits = jnp.where(sound[:, None], logits, dist.MASKED)
            logits = dist.fit_vocabulary(logits, width, vocab_size)
            # Nothing is proposed where the drafter is at fault: the target goes on alone.
            q = jnp.where(sound[:, None], config.working(logits, temperature), 0.0)
            token = dist.sample(q, jax.lax.dynamic_index_in_dim(uniforms, step, 1, False))
            sure = sound
            if confidence is not None:
                sure &= dist.pick(dist.raw(logits), token) >= confidence
            return _DraftLoop(
                step=step + 1,
                cache=loop.cache,
                newest=token,
                tokens=loop.tokens.at[:, step].set(token, mode="drop"),
                q=loop.q.at[:, step].set(q),
                logits=loop.logits.at[:, step].set(logits),
                faults=loop.faults | (loop.drafting & ~sound & (step < gamma)),
                # The bonus row's draw is no draft.
                num_drafted=loop.num_drafted + (loop.drafting & sure & (step < gamma)),
                calls=loop.calls + loop.drafting,
                drafting=loop.drafting
                & sure
                & ~config.is_stop(token)
                & (step + 1 < jnp.minimum(rows, room)),
            )

        def body(loop):
            logits, cache = self.model.extend(
                params, loop.cache, loop.newest[:, None], output.position + loop.step
            )
            return record(loop.step, logits[:, 0], loop.replace(cache=cache))

        # The newest token is new to the cache, and after a block that stood whole so is the one
        # before it. Both are fed at once; where only one is new, the second is a dead entry that
        # the next step overwrites.
        index = carry.consumed - output.first
        pair = jax.vmap(lambda row, i: jax.lax.dynamic_slice_in_dim(row, i, 2))(
            output.sequence, index
        )
        pair = known_ids(self.model, pair)
        logits, cache = self.model.extend(params, carry.cache, pair, carry.consumed)
        logits = jnp.take_along_axis(
            logits, (output.position - carry.consumed)[:, None, None], axis=1
        )[:, 0]
        blank = jnp.zeros((batch, rows, width), jnp.float32)
        loop = _DraftLoop(
            step=jnp.int32(0),
            cache=cache,
            newest=output.newest,
            tokens=jnp.full((batch, gamma), config.pad_id, jnp.int32),
            q=blank,
            logits=blank,
            faults=jnp.zeros(batch, bool),
            num_drafted=jnp.zeros(batch, jnp.int32),
            calls=jnp.zeros(batch, jnp.int32),
            drafting=output.running,
        )
        loop = record(loop.step, logits, loop)
        loop = jax.lax.while_loop(lambda loop: (loop.step < rows) & loop.drafting.any(), body, loop)
        draft = Draft(loop.tokens, loop.num_drafted, loop.q, loop.logits, loop.calls, loop.faults)
        return draft, ModelCarry(loop.cache, output.position + loop.calls)

    def commit(self, carry, position):
        """See `Drafter`: what was drafted beyond the newest token's place is dead."""
        return carry.replace(consumed=jnp.minimum(carry.consumed, position))


@struct.dataclass
class _DraftLoop:
    """State of the drafting loop; `drafting` says which rows still go on."""

    step: jax.Array
    cache: Any
    newest: jax.Array
    tokens: jax.Array
    q: jax.Array
    logits: jax.Array
    faults: jax.Array
    num_drafted: jax.Array
    calls: jax.Array
    drafting: jax.Array


@struct.dataclass
class LookupCarry:
    """State of prompt look-up.

    Attributes:
        text: int32 [batch, width]; each row's prompt stands at the end, so that the output
            follows its last token.
        start: int32 [batch], where in `text` the prompt begins.
    """

    text: jax.Array
    start: jax.Array


@dataclasses.dataclass(frozen=True)
class PromptLookup:
    """Drafts what followed the newest n-gram where it stood before, in the input or the output.

    No second model: for tasks that copy from their input. Its `q` is one-hot.

    Attributes:
        max_ngram: longest n-gram looked for; longer matches are preferred, later ones among equals.
        min_ngram: shortest n-gram looked for.
    """

    model: ClassVar[None] = None
    max_ngram: int = 3
    min_ngram: int = 1

    def __post_init__(self):
        if not 1 <= self.min_ngram <= self.max_ngram:
            raise ValueError(
                f"PromptLookup needs 1 <= min_ngram <= max_ngram, not {self.min_ngram} and "
                f"{self.max_ngram}"
            )

    def start(self, prompt, cache, config):
        """See `Drafter`."""
        del cache
        missing = (config.prompt_capacity or prompt.tokens.shape[1]) - prompt.tokens.shape[1]
        tokens = jnp.pad(prompt.tokens, [(0, 0), (0, missing)])
        start = tokens.shape[1] - prompt.lengths
        return LookupCarry(jax.vmap(jnp.roll)(tokens, start), start)

    def propose(
        self,
        params,
        carry,
        output,
        *,
        width,
        gamma,
        rows,
        temperature,
        uniforms,
        config,
        confidence=None,
    ):
        """See `Drafter`."""
        del params, temperature, uniforms, confidence
        vocab_size = width if config.vocab_size is None else min(width, config.vocab_size)
        look_up = functools.partial(
            _look_up,
            count=rows,
            vocab_size=vocab_size,
            min_ngram=self.min_ngram,
            max_ngram=self.max_ngram,
        )
        found, num_found = jax.vmap(look_up)(
            carry.text, carry.start, output.sequence[:, 1:], output.length
        )
        index = jnp.arange(rows)
        found = jnp.where(index < num_found[:, None], found, config.pad_id)
        tokens = found[:, :gamma]
        # Columns beyond what was found hold `pad_id`, which may be a stop id: they do not count.
        is_stop = config.is_stop(tokens)
        to_stop = jnp.where(is_stop.any(axis=1), jnp.argmax(is_stop, axis=1) + 1, gamma)
        room = config.max_decode_length - output.length
        num_drafted = jnp.minimum(jnp.minimum(num_found, to_stop), room)
        one_hot = jax.nn.one_hot(found, width, dtype=jnp.float32)
        q = jnp.where((index < num_found[:, None])[..., None], one_hot, 0.0)
        draft = Draft(
            tokens=tokens,
            num_drafted=jnp.where(output.running, num_drafted, 0),
            q=q,
            logits=jnp.where(q > 0, 0.0, dist.MASKED),
            calls=jnp.zeros_like(num_drafted),
            faults=jnp.zeros(num_drafted.shape, bool),
        )
        return draft, carry

    def commit(self, carry, position):
        """See `Drafter`."""
        del position
        return carry


def _look_up(prompt, start, emitted, length, *, count, vocab_size, min_ngram, max_ngram):
    """One row: int32 [width], [], [capacity], [] -> tokens [count], how many were found.

    Only an n-gram that the output has written is looked for; what follows it anywhere before, in
    the prompt or the output, is the draft.
    """
    text = jnp.concatenate([prompt, emitted, jnp.zeros(count + max_ngram, jnp.int32)])
    end = prompt.shape[0] + length
    places = jnp.arange(prompt.shape[0] + emitted.shape[0])
    best = jnp.int32(-1)
    for n in range(min_ngram, max_ngram + 1):  # a longer match overrides a shorter one
        ngram = jax.lax.dynamic_slice_in_dim(text, jnp.maximum(end - n, 0), n)
        same = jnp.ones(places.shape, bool)
        for i in range(n):
            same &= text[places + i] == ngram[i]
        valid = same & (places >= start) & (places + n < end) & (n <= length)
        place = jnp.max(jnp.where(valid, places, -1))
        best = jnp.where(place >= 0, place + n, best)
    first = jnp.maximum(best, 0)
    draft = jax.lax.dynamic_slice_in_dim(text, first, count)
    known = (draft < vocab_size) & (first + jnp.arange(count) < end)
    found = jnp.cumprod(known).sum(dtype=jnp.int32)
    return draft, jnp.where(best >= 0, found, 0)


WITHOUT_MODEL: Mapping[str, Drafter] = MappingProxyType({"prompt_lookup": PromptLookup()})
"""The drafters that need no model, by the name that users give in a model's place."""


def model_path(drafter: str | None) -> str | None:
    """What to load for a drafter as users name it: its path, or None for `WITHOUT_MODEL`."""
    return None if drafter in WITHOUT_MODEL else drafter


def resolve(name: str, model: Model | None) -> Drafter:
    """The drafter of a name in `WITHOUT_MODEL`; of any other, the model."""
    return WITHOUT_MODEL[name] if name in WITHOUT_MODEL else ModelDrafter(model)
