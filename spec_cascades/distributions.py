"""From a model's logits to the distributions that rules and verification work on.

Two distributions per position (notation of Narasimhan et al., ICLR 2025):

* raw, `q_hat` or `p_hat`: softmax of the logits at temperature 1, unfiltered. Deferral criteria
  read these, so that confidence does not change with the sampling temperature.
* working, `q` or `p`: logits / T, then top-k, then top-p, then softmax; a one-hot at the argmax
  where T = 0. Tokens are sampled from these, by every decoder of this package.

All of it is float32, whatever the model's dtype.
"""

import jax
import jax.numpy as jnp

# At or below this temperature a row is greedy, as in T5X. Keeps logits / T finite.
GREEDY_TEMPERATURE = 1e-4
# A masked logit. As in T5X it is finite: exp of it is exactly 0, and it never makes a NaN.
MASKED = -1e7
# Ids that `argmax` and `sample` look at together, before they look inside one chunk.
_CHUNK = 128


def fit_vocabulary(logits: jax.Array, width: int, vocab_size: int) -> jax.Array:
    """Gives logits `width` columns, and probability 0 to every id at or above `vocab_size`.

    Embedding tables are padded to different sizes (32100, 32128) for one and the same tokenizer.

    Args:
        logits: [..., n] float, any n.
        width: number of columns wanted.
        vocab_size: number of ids that may have probability, at most n.

    Returns:
        [..., width] float32.
    """
    logits = logits[..., : min(width, vocab_size)].astype(jnp.float32)
    missing = width - logits.shape[-1]
    if not missing:
        return logits
    padding = [(0, 0)] * (logits.ndim - 1) + [(0, missing)]
    return jnp.pad(logits, padding, constant_values=MASKED)


def sound(logits: jax.Array, vocab_size: int) -> jax.Array:
    """Whether the logits of real ids make a distribution: [..., V] -> bool [...].

    NaN and plus infinity do not. Minus infinity is how many models mask an id; a distribution it
    leaves as long as some id is not masked.
    """
    # NaN and infinity both survive the maximum: one reduction, which is a vector instruction.
    return jnp.isfinite(logits[..., :vocab_size].max(axis=-1))


def raw(logits: jax.Array) -> jax.Array:
    """The raw distribution: [..., V] logits -> [..., V] float32 probabilities."""
    return jax.nn.softmax(logits.astype(jnp.float32), axis=-1)


def working(
    logits: jax.Array, temperature: jax.Array, top_k: int = 0, top_p: float = 1.0
) -> jax.Array:
    """The working distribution: temperature, then top-k, then top-p, then softmax.

    Args:
        logits: [..., V] float.
        temperature: scalar, or an array that broadcasts against the leading dimensions; at most
            `GREEDY_TEMPERATURE` means greedy. Rows may differ.
        top_k: keep the k most likely tokens (static; 0 keeps all). Ties go to the lowest id.
        top_p: keep the smallest set of most likely tokens with at least this much probability
            (static; 1.0 keeps all).

    Returns:
        [..., V] float32 probabilities.
    """
    logits = logits.astype(jnp.float32)
    temperature = jnp.broadcast_to(jnp.asarray(temperature, jnp.float32), logits.shape[:-1])
    greedy = temperature <= GREEDY_TEMPERATURE

    def sampled(logits):
        # From the largest logit down, so that the softmax needs no maximum of its own (no filter
        # takes the largest logit away). What is masked stays so, however high the temperature.
        below = logits - logits.max(axis=-1, keepdims=True)
        scaled = below / jnp.where(greedy, 1.0, temperature)[..., None]
        scaled = jnp.where(logits <= MASKED, MASKED, scaled)
        weights = jnp.exp(_filter(scaled, top_k, top_p))
        return weights / weights.sum(axis=-1, keepdims=True)

    def mixed(logits):
        return jnp.where(greedy[..., None], greedy_one_hot(logits), sampled(logits))

    # Batches are seldom mixed: one at T = 0 needs neither softmax nor sorting, others no argmax.
    kind = greedy.any().astype(jnp.int32) + greedy.all()
    return jax.lax.switch(kind, (sampled, mixed, greedy_one_hot), logits)


def greedy_one_hot(logits: jax.Array) -> jax.Array:
    """One-hot float32 [..., V] at the argmax; ties go to the lowest id."""
    return jax.nn.one_hot(argmax(logits), logits.shape[-1], dtype=jnp.float32)


def argmax(values: jax.Array) -> jax.Array:
    """`jnp.argmax` over the vocabulary, [..., V] -> int32 [...]; ties go to the lowest id.

    First the best chunk of ids, then the best id in it: a maximum is a vector instruction, an
    argmax is not, and on a CPU costs nine times as much.
    """
    chunks = _chunks(values, -jnp.inf)
    best = jnp.argmax(chunks.max(axis=-1), axis=-1)
    return (best * _CHUNK + jnp.argmax(take_row(chunks, best), axis=-1)).astype(jnp.int32)


def _filter(logits: jax.Array, top_k: int, top_p: float) -> jax.Array:
    """Masks what top-k, then top-p, leave out."""
    if (top_k <= 0 or top_k >= logits.shape[-1]) and top_p >= 1.0:
        return logits
    # Stable, so that among equals the lowest id is kept.
    order = jnp.argsort(-logits, axis=-1, stable=True)
    ranked = jnp.take_along_axis(logits, order, axis=-1)
    if 0 < top_k < logits.shape[-1]:
        ranked = jnp.where(jnp.arange(logits.shape[-1]) < top_k, ranked, MASKED)
    if top_p < 1.0:
        probabilities = jax.nn.softmax(ranked, axis=-1)
        before = jnp.cumsum(probabilities, axis=-1) - probabilities
        most_likely = jnp.arange(logits.shape[-1]) == 0  # stays, however small top_p
        ranked = jnp.where((before < top_p) | most_likely, ranked, MASKED)
    ranks = jnp.argsort(order, axis=-1)
    return jnp.take_along_axis(ranked, ranks, axis=-1)


def entropy(probabilities: jax.Array) -> jax.Array:
    """Entropy in nats: [..., V] -> [...]. A zero contributes zero."""
    return -jax.scipy.special.xlogy(probabilities, probabilities).sum(axis=-1)


def total_variation(p: jax.Array, q: jax.Array) -> jax.Array:
    """Total variation distance, `sum_v max(0, q(v) - p(v))`: [..., V] -> [...]."""
    return jnp.maximum(q - p, 0.0).sum(axis=-1)


def pick(values: jax.Array, tokens: jax.Array) -> jax.Array:
    """The entry of each position's token: [..., V], int [...] -> [...]."""
    return jnp.take_along_axis(values, tokens[..., None], axis=-1)[..., 0]


def take_row(values: jax.Array, index: jax.Array) -> jax.Array:
    """One row of each matrix: [..., n, m], int [...] -> [..., m]."""
    return jnp.take_along_axis(values, index[..., None, None], axis=-2)[..., 0, :]


def sample(weights: jax.Array, uniforms: jax.Array) -> jax.Array:
    """Draws from unnormalised weights by inversion, first a chunk of ids, then an id in it.

    Inversion costs one pass over the vocabulary (Gumbel noise needs a random number per id), and
    a one-hot gives its id whatever the random number: T = 0 needs no special case. The second
    uniform keeps the full resolution of float32 inside the chunk. An id of weight 0 is never
    drawn.

    Args:
        weights: [..., V] non-negative float32, at least one positive.
        uniforms: [..., 2] in [0, 1).

    Returns:
        int32 [...].
    """
    chunks = _chunks(weights, 0.0)
    chunk = _invert(chunks.sum(axis=-1), uniforms[..., 0])
    return chunk * _CHUNK + _invert(take_row(chunks, chunk), uniforms[..., 1])


def _chunks(values: jax.Array, filler: float) -> jax.Array:
    """[..., V] -> [..., V / 128 rounded up, 128], the last chunk filled up."""
    missing = -values.shape[-1] % _CHUNK
    if missing:
        padding = [(0, 0)] * (values.ndim - 1) + [(0, missing)]
        values = jnp.pad(values, padding, constant_values=filler)
    return values.reshape(*values.shape[:-1], -1, _CHUNK)


def _invert(weights: jax.Array, uniform: jax.Array) -> jax.Array:
    """Index at which the cumulative weight passes `uniform` of the whole: [..., n] -> [...]."""
    cumulative = jnp.cumsum(weights, axis=-1)
    threshold = uniform * cumulative[..., -1]
    # A parallel sum is not monotone to the last bit: ask for weight as well.
    passed = (weights > 0) & (cumulative > threshold[..., None])
    # Rounding can carry the threshold up to the total: then the last id with weight.
    last = weights.shape[-1] - 1 - jnp.argmax(weights[..., ::-1] > 0, axis=-1)
    first = jnp.argmax(passed, axis=-1)
    return jnp.where(passed.any(axis=-1), first, last).astype(jnp.int32)
