"""A tiny model for tests and examples: any law over a few tokens, with an honest cache."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from spec_cascades.models.interface import Logits, Prompt


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

    def begin(self, prompt: Prompt) -> tuple[jax.Array, jax.Array]:
        """Feeds token 0 first, at position 0."""
        zeros = jnp.zeros(prompt.lengths.shape, jnp.int32)
        return zeros, zeros

    def prefill(
        self,
        params: jax.Array,
        prompt: Prompt,
        capacity: int,
        rewind: int = 0,
        prompt_capacity: int | None = None,
    ) -> dict:
        """Hashes the prompt and makes room for the tokens."""
        del params, rewind, prompt_capacity  # every row's prompt is one number
        place = jnp.arange(1, prompt.tokens.shape[1] + 1)
        read = jnp.where(prompt.mask, prompt.tokens * (7 * place + 3), 0)
        return {
            "input": read.sum(axis=1) % self.contexts,
            "tokens": jnp.full((prompt.tokens.shape[0], capacity), -1, jnp.int32),
        }

    def extend(
        self,
        params: jax.Array,
        cache: dict,
        tokens: jax.Array,
        start: jax.Array,
        logits: Logits = "all",
    ) -> tuple[jax.Array | None, dict]:
        """See `models.Model`."""
        fed = jax.vmap(jax.lax.dynamic_update_slice)(cache["tokens"], tokens, start[:, None])
        cache = cache | {"tokens": fed}
        if logits is None:
            return None, cache
        context = jax.vmap(self._context)(cache["input"], fed, start, tokens)
        return params[context[:, -1:] if logits == "last" else context], cache

    def _context(self, seen, fed, start, tokens):
        """Table rows of one row's positions: [k]."""
        position = start + jnp.arange(tokens.shape[0])
        place = jnp.arange(fed.shape[0])
        weight = (place * 31 + 17) % 101
        read = jnp.where(place <= position[:, None], (fed + 2) * weight, 0)
        return (seen + read.sum(axis=1)) % self.contexts

    def score(
        self,
        params: jax.Array,
        prompt: Prompt,
        targets: jax.Array,
        dropout_rng: jax.Array | None = None,
    ) -> jax.Array:
        """Teacher forcing: logits [batch, n, vocab_size]."""
        del dropout_rng
        fed = jnp.pad(targets, [(0, 0), (1, 0)])[:, :-1]
        cache = self.prefill(params, prompt, targets.shape[1])
        start = jnp.zeros(targets.shape[0], jnp.int32)
        return self.extend(params, cache, fed, start)[0]
