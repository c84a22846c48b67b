"""A tiny model for tests and examples: any law over a few tokens, with an honest cache."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class ToyModel:
    """A language model that looks its logits up in a table, by a hash of all it has read.

    It implements `models.Model`. Its cache holds the tokens it was fed; each prediction depends on
    the input, and on every earlier token and its position, so that a stale, shifted or missing
    cache entry changes the output. Dead entries are never read.

    Attributes:
        vocab_size: number of logits.
        contexts: rows of the table.
        sharpness: standard deviation of random logits; large values make the model confident.
    """

    vocab_size: int = 5
    contexts: int = 997
    sharpness: float = 1.5

    def init(self, rng: jax.Array) -> jax.Array:
        """Random table, float32 [contexts, vocab_size]."""
        return self.sharpness * jax.random.normal(rng, (self.contexts, self.vocab_size))

    def logical_axes(self) -> Any:
        """The table is small: no axis is ever split."""
        return ("length", "embed")

    def begin(self, inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Feeds token 0 first, at position 0."""
        zeros = jnp.zeros(inputs.shape[0], jnp.int32)
        return zeros, zeros

    def prefill(self, params: jax.Array, inputs: jax.Array, max_length: int) -> dict:
        """Hashes the input, whatever its padding (0), and makes room for the tokens."""
        del params
        order = jnp.cumsum(inputs != 0, axis=1)
        return {
            "input": (inputs * (7 * order + 3)).sum(axis=1) % self.contexts,
            "tokens": jnp.full((inputs.shape[0], max_length), -1, jnp.int32),
        }

    def extend(
        self, params: jax.Array, cache: dict, tokens: jax.Array, start: jax.Array
    ) -> tuple[jax.Array, dict]:
        """See `models.Model`."""
        fed = jax.vmap(jax.lax.dynamic_update_slice)(cache["tokens"], tokens, start[:, None])
        context = jax.vmap(self._context)(cache["input"], fed, start, tokens)
        return params[context], cache | {"tokens": fed}

    def _context(self, seen, fed, start, tokens):
        """Table rows of one row's positions: [k]."""
        position = start + jnp.arange(tokens.shape[0])
        place = jnp.arange(fed.shape[0])
        weight = (place * 31 + 17) % 101
        read = jnp.where(place <= position[:, None], (fed + 2) * weight, 0)
        return (seen + read.sum(axis=1)) % self.contexts

    def apply(
        self,
        params: jax.Array,
        inputs: jax.Array,
        decoder_inputs: jax.Array,
        dropout_rng: jax.Array | None = None,
    ) -> jax.Array:
        """Teacher forcing: logits [batch, length, vocab_size]."""
        del dropout_rng
        cache = self.prefill(params, inputs, decoder_inputs.shape[1])
        start = jnp.zeros(inputs.shape[0], jnp.int32)
        return self.extend(params, cache, decoder_inputs, start)[0]
