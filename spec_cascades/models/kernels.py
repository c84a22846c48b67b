"""The arithmetic of a decoding step, and every choice in it that depends on the platform.

Models call these functions and stay free of such choices. What was measured, and on what, is in
`benchmarks/speed/README.md`.
"""

import enum

import jax
import jax.numpy as jnp
from jax import lax

MASKED = -1e10
"""Added to the score of a hidden key (T5X's value): its weight underflows to exactly 0."""


class Layout(enum.Enum):
    """How keys and values are stored. Features are all heads' together.

    FEATURES_MINOR: [batch, length, features]. A TPU pads the minor axis to a multiple of 128, so
        that a minor axis of one head's 64 features would double the cache.
    LENGTH_MINOR: [batch, features, length]. XLA:CPU multiplies it per head as it lies; the other
        one it transposes first, at every step, which costs more than the product.
    """

    FEATURES_MINOR = "features_minor"
    LENGTH_MINOR = "length_minor"

    @property
    def axes(self) -> tuple[str, str, str]:
        """Logical axes of the stored array, see `partitioning`."""
        if self is Layout.LENGTH_MINOR:
            return ("batch", "joined_kv", "length")
        return ("batch", "length", "joined_kv")


def cache_layout(platform: str | None = None) -> Layout:
    """The layout of a decoding cache on a platform ('cpu', 'tpu', 'gpu'; None: JAX's default)."""
    platform = platform or jax.default_backend()
    return Layout.LENGTH_MINOR if platform == "cpu" else Layout.FEATURES_MINOR


def store(x: jax.Array, layout: Layout) -> jax.Array:
    """Brings [batch, length, features] into a layout."""
    return x.swapaxes(1, 2) if layout is Layout.LENGTH_MINOR else x


def write(cache: jax.Array, rows: jax.Array, start: jax.Array, layout: Layout) -> jax.Array:
    """Writes new entries at each row's own place.

    Args:
        cache: keys or values, stored in `layout`.
        rows: [batch, k, features].
        start: [batch] int32; `start + k` must not exceed the cache's length.
        layout: of the cache.

    Returns:
        The new cache, in place when the cache is donated or carried by a loop.
    """
    rows = store(rows, layout).astype(cache.dtype)
    axis = layout.axes.index("length")
    update = jax.vmap(lambda old, new, at: lax.dynamic_update_slice_in_dim(old, new, at, axis - 1))
    batch, features, _ = cache.shape
    if layout is Layout.LENGTH_MINOR and batch == 1 and features % 2 == 0:
        # XLA:CPU computes the update of a single row twice, once inside the product that reads it,
        # and copies the whole cache three times a step for that. Not so for two halves of it.
        old, new = (x.reshape(2, features // 2, -1) for x in (cache, rows))
        return update(old, new, jnp.repeat(start, 2)).reshape(cache.shape)
    return update(cache, rows, start)


def attention_weights(
    queries: jax.Array, keys: jax.Array, bias: jax.Array, num_heads: int, layout: Layout
) -> jax.Array:
    """Softmax over the keys, in float32 and without scaling of the scores.

    Args:
        queries: [batch, q, heads * head_dim].
        keys: of heads * head_dim features, stored in `layout`.
        bias: float32, broadcastable to [batch, heads, q, length]; `MASKED` hides a key.
        num_heads: number of heads.
        layout: of the keys.

    Returns:
        [batch, heads, q, length] float32.
    """
    scores = jnp.einsum(
        f"bqhd,{_PER_HEAD[layout]}->bhql",
        _split_heads(queries, num_heads, Layout.FEATURES_MINOR),
        _split_heads(keys, num_heads, layout),
        preferred_element_type=jnp.float32,
    )
    return jax.nn.softmax(scores + bias, axis=-1)


def attention_values(weights: jax.Array, values: jax.Array, layout: Layout) -> jax.Array:
    """Weighted sums of the values.

    Args:
        weights: [batch, heads, q, length] float32.
        values: of heads * head_dim features, stored in `layout`.
        layout: of the values.

    Returns:
        [batch, q, heads * head_dim], in the dtype of `values`.
    """
    mixed = jnp.einsum(
        f"bhql,{_PER_HEAD[layout]}->bqhd",
        weights.astype(values.dtype),
        _split_heads(values, weights.shape[1], layout),
        preferred_element_type=jnp.float32,
    )
    return mixed.reshape(*mixed.shape[:2], -1).astype(values.dtype)


def project(x: jax.Array, kernel: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Product [..., in] x [in, out] -> [..., out] in `dtype`, accumulated in float32."""
    product = jnp.matmul(x.astype(dtype), kernel.astype(dtype), preferred_element_type=jnp.float32)
    return product.astype(dtype)


def logits(x: jax.Array, table: jax.Array, *, transposed: bool) -> jax.Array:
    """Float32 scores of every vocabulary entry.

    Args:
        x: [..., emb_dim] decoder output.
        table: [vocab, emb_dim] if `transposed` (a tied embedding), else [emb_dim, vocab]. Where its
            dtype and that of `x` differ the wider of the two is used.
        transposed: whether the vocabulary is the table's leading axis.

    Returns:
        [..., vocab] float32.
    """
    dtype = jnp.promote_types(x.dtype, table.dtype)
    contract = 1 if transposed else 0
    return lax.dot_general(
        x.astype(dtype),
        table.astype(dtype),
        (((x.ndim - 1,), (contract,)), ((), ())),
        preferred_element_type=jnp.float32,
    )


_PER_HEAD = {Layout.FEATURES_MINOR: "blhd", Layout.LENGTH_MINOR: "bhdl"}


def _split_heads(x: jax.Array, num_heads: int, layout: Layout) -> jax.Array:
    if layout is Layout.LENGTH_MINOR:
        batch, features, length = x.shape
        return x.reshape(batch, num_heads, features // num_heads, length)
    return x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads)
