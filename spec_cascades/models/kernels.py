"""The arithmetic of a decoding step, and every choice in it that depends on the platform.

Models call these functions and stay free of such choices. What was measured, and on what, is in
`benchmarks/speed/README.md`.
"""

import jax
import jax.numpy as jnp
from jax import lax

MASKED = -1e10
"""Added to the score of a hidden key (T5X's value): its weight underflows to exactly 0."""


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


def write(cache: jax.Array, rows: jax.Array, start: jax.Array) -> jax.Array:
    """Writes new entries at each row's own place.

    Args:
        cache: [batch, length, features].
        rows: [batch, k, features].
        start: [batch] int32; `start + k` must not exceed `length`.

    Returns:
        The new cache, in place when the cache is donated or carried by a loop.
    """
    update = jax.vmap(lambda old, new, at: lax.dynamic_update_slice_in_dim(old, new, at, axis=0))
    return update(cache, rows.astype(cache.dtype), start)


def attention_weights(
    queries: jax.Array, keys: jax.Array, bias: jax.Array, num_heads: int
) -> jax.Array:
    """Softmax over the keys, in float32 and without scaling of the scores.

    Args:
        queries: [batch, q, heads * head_dim].
        keys: [batch, length, heads * head_dim].
        bias: float32, broadcastable to [batch, heads, q, length]; `MASKED` hides a key.
        num_heads: number of heads.

    Returns:
        [batch, heads, q, length] float32.
    """
    queries = _split_heads(queries, num_heads)
    keys = _split_heads(keys, num_heads)
    scores = jnp.einsum("bqhd,blhd->bhql", queries, keys, preferred_element_type=jnp.float32)
    return jax.nn.softmax(scores + bias, axis=-1)


def attention_values(weights: jax.Array, values: jax.Array) -> jax.Array:
    """Weighted sums of the values.

    Args:
        weights: [batch, heads, q, length] float32.
        values: [batch, length, heads * head_dim].

    Returns:
        [batch, q, heads * head_dim], in the dtype of `values`.
    """
    num_heads = weights.shape[1]
    split = _split_heads(values, num_heads)
    mixed = jnp.einsum(
        "bhql,blhd->bqhd", weights.astype(values.dtype), split, preferred_element_type=jnp.float32
    )
    return mixed.reshape(*mixed.shape[:2], -1).astype(values.dtype)


def _split_heads(x: jax.Array, num_heads: int) -> jax.Array:
    return x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads)
