"""What decoding asks of a model: a few pure functions and no hidden state."""

from typing import Any, Protocol, runtime_checkable

import jax

Params = Any
"""Nested dict of arrays, with the names of the family's reference implementation."""

Cache = Any
"""Pytree of arrays, each with the batch as its leading dimension; `prefill` makes it."""


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

    def prefill(self, params: Params, inputs: jax.Array, max_length: int) -> Cache:
        """Reads the input.

        Args:
            params: the parameters.
            inputs: [batch, input length] int32; 0 is padding.
            max_length: positions that the cache can hold per row beyond those that the input takes
                (an encoder-decoder's input takes none); static.

        Returns:
            A cache that `extend` can start from.
        """

    def begin(self, inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The token to feed first and its position: ([batch] int32, [batch] int32)."""

    def extend(
        self, params: Params, cache: Cache, tokens: jax.Array, start: jax.Array
    ) -> tuple[jax.Array, Cache]:
        """Feeds `k` tokens to each row, at the row's own position.

        Args:
            params: the parameters.
            cache: from `prefill` or `extend`.
            tokens: [batch, k] int32.
            start: [batch] int32, position of each row's first token; `start + k` must not exceed
                what the cache can hold.

        Returns:
            Logits [batch, k, vocab_size] float32, those at `i` predicting the token that follows
            `tokens[:, i]`, and the new cache.
        """

    def apply(
        self,
        params: Params,
        inputs: jax.Array,
        decoder_inputs: jax.Array,
        dropout_rng: jax.Array | None = None,
    ) -> jax.Array:
        """Scores whole sequences in one pass (teacher forcing).

        Args:
            params: the parameters.
            inputs: [batch, input length] int32; 0 is padding.
            decoder_inputs: [batch, length] int32, the targets shifted right by one.
            dropout_rng: PRNG key of dropout; None (the default) switches dropout off.

        Returns:
            Logits [batch, length, vocab_size] float32.
        """
