"""What every decoding method is, and the one loop that runs them all.

    decoder = SpeculativeDecoder(target, ModelDrafter(drafter), rules.get("token_v3"), config)
    result = jax.jit(decode, static_argnums=0)(decoder, params, prompt, keys, alpha=0.3)

A `Decoder` is four pure functions; `decode` is `start`, then `step` in a `lax.while_loop` until no
row runs, then `result`. A host that drives the loop itself (streaming, serving) jits the same
functions; one that keeps a batch full (`slots`) puts new rows in the place of finished ones with
`insert`.

Prefill is apart: `read` depends on a model and a shape but on no method, so that its compiled
programs serve every method, and `start` takes the caches that it made.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from spec_cascades.decoding.state import DecodeConfig, DecodeResult
from spec_cascades.models.interface import Cache, Model, Params, Prompt

State = Any
"""Pytree of arrays, each with the batch as its leading dimension."""


class PairParams(NamedTuple):
    """Parameters of both models; None for one that a method does without."""

    target: Params = None
    drafter: Params = None


class Decoder(Protocol):
    """A decoding method with its models and settings: a frozen, hashable dataclass, static to jit.

    Attributes:
        config: decoding settings.
    """

    config: DecodeConfig

    @property
    def readers(self) -> Mapping[str, Model]:
        """The models that read the prompt before decoding starts, by their field of PairParams."""

    @property
    def spare(self) -> int:
        """Positions that caches need beyond `max_decode_length`."""

    def start(
        self,
        params: PairParams,
        prompt: Prompt,
        keys: jax.Array,
        row_mask: jax.Array | None = None,
        caches: Mapping[str, Cache] | None = None,
    ) -> State:
        """A state that has emitted nothing.

        Args:
            params: the models' parameters.
            prompt: [batch, length].
            keys: PRNG key [batch], one a row; see `row_keys`.
            row_mask: bool [batch], False for padding rows; None: all rows are real.
            caches: what `read` made of the prompt for each of `readers`; None reads it here.
        """

    def running(self, state: State) -> jax.Array:
        """Bool [batch]: rows that are not finished."""

    def step(
        self,
        params: PairParams,
        state: State,
        *,
        alpha: jax.Array | float,
        temperature: jax.Array | float,
    ) -> State:
        """Goes on by a token or a block in each running row; finished rows stay as they are.

        Args:
            params: the models' parameters.
            state: from `start`, `step` or `insert`.
            alpha: the method's swept value, scalar or [batch]; traced.
            temperature: scalar or [batch]; traced; 0 is greedy.
        """

    def insert(self, state: State, rows: jax.Array, other: State) -> State:
        """Puts the rows of another state in the place of some of this one's.

        Args:
            state: of any batch.
            rows: int32 [k], the places; rows of `other` whose place lies outside the batch are
                left out.
            other: of batch k, with the same capacities.
        """

    def result(self, state: State) -> DecodeResult:
        """What has been emitted so far."""


def read(
    model: Model, params: Params, prompt: Prompt, *, capacity: int, rewind: int, width: int | None
) -> Cache:
    """Reads a prompt: `Model.prefill` under a name that one `jax.jit` can hold for all models."""
    return model.prefill(params, prompt, capacity, rewind, width)


def cache_shape(decoder: Decoder) -> dict[str, int | None]:
    """The static arguments of `read` for the caches of a decoder."""
    config = decoder.config
    room = config.room(decoder.spare)
    return dict(capacity=config.max_decode_length + room, rewind=room, width=config.prompt_capacity)


def read_all(decoder: Decoder, params: PairParams, prompt: Prompt) -> dict[str, Cache]:
    """The caches that a decoder starts from."""
    shape = cache_shape(decoder)
    return {
        name: read(model, getattr(params, name), prompt, **shape)
        for name, model in decoder.readers.items()
    }


def decode(
    decoder: Decoder,
    params: PairParams,
    prompt: Prompt,
    keys: jax.Array,
    *,
    alpha: jax.Array | float = 0.0,
    temperature: jax.Array | float = 0.0,
    row_mask: jax.Array | None = None,
    caches: Mapping[str, Cache] | None = None,
) -> DecodeResult:
    """Decodes a batch; see `Decoder` for the arguments. To be jitted, with `decoder` static."""
    state = decoder.start(params, prompt, keys, row_mask, caches)
    return decoder.result(run(decoder, params, state, alpha=alpha, temperature=temperature))


def run(
    decoder: Decoder,
    params: PairParams,
    state: State,
    *,
    alpha: jax.Array | float,
    temperature: jax.Array | float,
    finished: jax.Array | int | None = None,
) -> State:
    """Steps until `finished` rows do not run (padding rows count among them); None: all of them."""

    def goes_on(state):
        running = decoder.running(state)
        if finished is None:
            return running.any()
        return running.any() & ((~running).sum() < finished)

    return jax.lax.while_loop(
        goes_on,
        lambda state: decoder.step(params, state, alpha=alpha, temperature=temperature),
        state,
    )


def insert_rows(state: State, rows: jax.Array, other: State) -> State:
    """`Decoder.insert` for states whose every array has the batch as its leading dimension."""
    return jax.tree.map(lambda old, new: old.at[rows].set(new, mode="drop"), state, other)


def per_row(values: jax.Array | float, batch: int) -> jax.Array:
    """A scalar or [batch] as float32 [batch]."""
    return jnp.broadcast_to(jnp.asarray(values, jnp.float32), (batch,))
