"""What decoding asks of a model: a few pure functions and no hidden state."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

Params = Any
"""Nested dict of arrays, with the names of the family's reference implementation."""

Cache = Any
"""Pytree of arrays, each with the batch as its leading dimension; `prefill` makes it."""

Logits = Literal["all", "last"] | None
"""Which positions of a call are scored: every one, the last one, or none."""


@struct.dataclass
class Prompt:
    """Inputs of a batch: row `b` is `tokens[b, : lengths[b]]`, and what follows is never read.

    No id has a meaning of its own: 0 is an ordinary token in many vocabularies.

    Attributes:
        tokens: int32 [batch, length].
        lengths: int32 [batch].
    """

    tokens: jax.Array
    lengths: jax.Array

    @property
    def mask(self) -> jax.Array:
        """Bool [batch, length]: which tokens are the prompt's."""
        return jnp.arange(self.tokens.shape[1]) < self.lengths[:, None]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], width: int | None = None) -> "Prompt":
        """A prompt of rows of any lengths, as NumPy arrays `width` wide (the longest row's)."""
        longest = max(map(len, rows), default=0)
        width = longest if width is None else width
        if longest > width:
            raise ValueError(f"a prompt of {longest} tokens does not fit a width of {width}")
        tokens = np.zeros((len(rows), width), np.int32)
        for row, given in zip(tokens, rows, strict=True):
            row[: len(given)] = given
        return cls(tokens, np.asarray([len(row) for row in rows], np.int32))

    @classmethod
    def padded(cls, tokens: jax.Array, pad_id: int = 0) -> "Prompt":
        """A prompt of tokens [batch, length] that end in padding, as SeqIO and T5X make them."""
        tokens = jnp.asarray(tokens, jnp.int32)
        places = jnp.where(tokens != pad_id, jnp.arange(1, tokens.shape[1] + 1), 0)
        return cls(tokens, places.max(axis=1, initial=0).astype(jnp.int32))


@runtime_checkable
class Model(Protocol):
    """A language model as decoding sees it.

    Implementations are frozen, hashable dataclasses, so that they can be static arguments of
    `jax.jit`: two models with equal settings share a compiled program.

    The cache holds one entry per position and row. `extend` writes at `start .. start + k - 1` and
    attends to what stands before; entries at or beyond `start` are dead, whatever they hold. So
    rolling a row back means calling `extend` with a smaller `start`: nothing is copied or cleaned.
    `k = 1` is a decoding step, `k = gamma + 1` a verification.
    """

    @property
    def vocab_size(self) -> int:
        """Number of logits: rows of the (padded) embedding table."""

    def init(self, rng: jax.Array) -> Params:
        """Random float32 parameters."""

    def logical_axes(self) -> Any:
        """The parameters' tree with a tuple of logical axis names at each leaf."""

    def prefill(
        self,
        params: Params,
        prompt: Prompt,
        capacity: int,
        rewind: int,
        prompt_capacity: int | None = None,
    ) -> Cache:
        """Reads the prompt.

        Args:
            params: the parameters.
            prompt: [batch, length].
            capacity: positions that the cache can hold per row beyond those that the prompt takes
                (an encoder-decoder's takes none); static.
            rewind: positions that a row may be rolled back by at most; static. A ring cache of a
                sliding window W keeps W + rewind entries; others need not care.
            prompt_capacity: entries that the cache keeps for the prompt, so that caches of prompts
                of different widths have one shape; the prompt's own width if None; static.

        Returns:
            A cache that `extend` can start from.
        """

    def begin(self, prompt: Prompt) -> tuple[jax.Array, jax.Array]:
        """The token to feed first and its position: ([batch] int32, [batch] int32)."""

    def extend(
        self,
        params: Params,
        cache: Cache,
        tokens: jax.Array,
        start: jax.Array,
        logits: Logits = "all",
    ) -> tuple[jax.Array | None, Cache]:
        """Feeds `k` tokens to each row, at the row's own position.

        Args:
            params: the parameters.
            cache: from `prefill` or `extend`.
            tokens: [batch, k] int32.
            start: [batch] int32, position of each row's first token; `start + k` must not exceed
                what the cache can hold.
            logits: which positions to score; static.

        Returns:
            Logits [batch, k, vocab_size] float32, those at `i` predicting the token that follows
            `tokens[:, i]` ([batch, 1, vocab_size] for "last", None for None), and the new cache.
        """

    def score(
        self,
        params: Params,
        prompt: Prompt,
        targets: jax.Array,
        dropout_rng: jax.Array | None = None,
    ) -> jax.Array:
        """Scores whole sequences in one pass (teacher forcing).

        Args:
            params: the parameters.
            prompt: [batch, length].
            targets: [batch, n] int32.
            dropout_rng: PRNG key of dropout; None (the default) switches dropout off.

        Returns:
            Logits [batch, n, vocab_size] float32, those at `i` predicting `targets[:, i]` from the
            prompt and the targets before it.
        """
