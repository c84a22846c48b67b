"""T5 encoder-decoders: T5 1.0, T5 1.1, FLAN-T5, mT5 and ByT5.

The parameters have T5X's names (those below `target.` in its checkpoints) and logical axes. What
differs from T5X's network is decoding: the cache holds any number of new tokens per call, at each
row's own position, and can be rolled back.
"""

import dataclasses
import difflib
import functools
from collections.abc import Callable

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from flax.linen import partitioning as nn_partitioning

from spec_cascades.models import kernels
from spec_cascades.models.interface import Logits, Prompt
from spec_cascades.partitioning import constrain

BOS_ID = 0
"""The decoder's first token: T5 starts from its padding id."""

_ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": jax.nn.relu,
    "gelu": functools.partial(jax.nn.gelu, approximate=True),
    "linear": lambda x: x,
}
_DTYPES = ("float32", "bfloat16")
# Keys and values that no later call will read stay as the projections give them.
_AS_COMPUTED = kernels.Layout.FEATURES_MINOR

# emb_dim, num_heads, head_dim, mlp_dim, encoder layers, decoder layers
_T5_1_0_SIZES = {
    "small": (512, 8, 64, 2048, 6, 6),
    "base": (768, 12, 64, 3072, 12, 12),
    "large": (1024, 16, 64, 4096, 24, 24),
    "3b": (1024, 32, 128, 16384, 24, 24),
    "11b": (1024, 128, 128, 65536, 24, 24),
}
_T5_1_1_SIZES = {
    "small": (512, 6, 64, 1024, 8, 8),
    "base": (768, 12, 64, 2048, 12, 12),
    "large": (1024, 16, 64, 2816, 24, 24),
    "xl": (2048, 32, 64, 5120, 24, 24),
    "xxl": (4096, 64, 64, 10240, 24, 24),
}
_BYT5_SIZES = {
    "small": (1472, 6, 64, 3584, 12, 4),
    "base": (1536, 12, 64, 3968, 18, 6),
    "large": (1536, 16, 64, 3840, 36, 12),
    "xl": (2560, 32, 64, 6720, 36, 12),
    "xxl": (4672, 64, 64, 12352, 36, 12),
}
# family -> (rows of the embedding table, sizes, MLP activations, tied logits)
_FAMILIES = {
    "t5_1_0": (32128, _T5_1_0_SIZES, ("relu",), True),
    "t5_1_1": (32128, _T5_1_1_SIZES, ("gelu", "linear"), False),
    "flan_t5": (32128, _T5_1_1_SIZES, ("gelu", "linear"), False),
    "mt5": (250112, _T5_1_1_SIZES, ("gelu", "linear"), False),
    "byt5": (384, _BYT5_SIZES, ("gelu", "linear"), False),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5Config:
    """Shape and arithmetic of a T5.

    Attributes:
        vocab_size: rows of the embedding table, padding rows included.
        emb_dim: width of the residual stream.
        num_heads: attention heads.
        head_dim: size of a head; `num_heads * head_dim` need not equal `emb_dim`.
        mlp_dim: width of the MLP.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        mlp_activations: ('relu',) for T5 1.0; ('gelu', 'linear'), a gated MLP, for the others.
        logits_via_embedding: whether the logits reuse the embedding, scaled by emb_dim ** -0.5 (T5
            1.0).
        dropout_rate: of `T5.score` when it is given a `dropout_rng`.
        dtype: of the activations, 'float32' or 'bfloat16'. Norms, softmax and logits are float32
            always.
        relative_attention_num_buckets: rows of the relative position table.
        relative_attention_max_distance: distance from which all share one bucket.
        shared_relative_bias: whether the layers of a stack share one relative position table; False
            gives each layer its own (umT5, and T5X's `scalable_t5`).
    """

    vocab_size: int
    emb_dim: int
    num_heads: int
    head_dim: int
    mlp_dim: int
    num_encoder_layers: int
    num_decoder_layers: int
    mlp_activations: tuple[str, ...] = ("gelu", "linear")
    logits_via_embedding: bool = False
    dropout_rate: float = 0.0
    dtype: str = "float32"
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    shared_relative_bias: bool = True

    def __post_init__(self):
        # Configurations read from JSON or gin bring lists; the config must stay hashable.
        object.__setattr__(self, "mlp_activations", tuple(self.mlp_activations))
        unknown = [name for name in self.mlp_activations if name not in _ACTIVATIONS]
        if unknown or not self.mlp_activations:
            raise ValueError(
                f"mlp_activations={self.mlp_activations}: expected names among {list(_ACTIVATIONS)}"
            )
        if self.dtype not in _DTYPES:
            raise ValueError(
                f"dtype={self.dtype!r}: expected one of {_DTYPES} (T5 overflows in float16)"
            )
        for field in dataclasses.fields(self):
            if field.type is int and getattr(self, field.name) < 1:
                raise ValueError(f"{field.name}={getattr(self, field.name)}: expected at least 1")
        if not 0.0 <= self.dropout_rate < 1.0:
            raise ValueError(f"dropout_rate={self.dropout_rate}: expected a value in [0, 1)")

    @classmethod
    def preset_names(cls) -> tuple[str, ...]:
        """Names of the public sizes, as `<family>_<size>`."""
        return tuple(f"{family}_{size}" for family, spec in _FAMILIES.items() for size in spec[1])

    @classmethod
    def preset(cls, name: str, **overrides) -> "T5Config":
        """A published size, such as 't5_1_0_small', 'flan_t5_base' or 'byt5_xl'.

        Args:
            name: one of `preset_names()`.
            **overrides: fields to set differently, such as dtype='bfloat16'.

        Raises:
            ValueError: for an unknown name.
        """
        family, _, size = name.rpartition("_")
        if family not in _FAMILIES or size not in _FAMILIES[family][1]:
            near = difflib.get_close_matches(name, cls.preset_names(), n=1)
            hint = (
                f"did you mean {near[0]!r}?" if near else f"known: {', '.join(cls.preset_names())}"
            )
            raise ValueError(f"unknown T5 size {name!r}; {hint}")
        vocab_size, sizes, activations, tied = _FAMILIES[family]
        emb_dim, num_heads, head_dim, mlp_dim, encoder_layers, decoder_layers = sizes[size]
        fields = dict(
            vocab_size=vocab_size,
            emb_dim=emb_dim,
            num_heads=num_heads,
            head_dim=head_dim,
            mlp_dim=mlp_dim,
            num_encoder_layers=encoder_layers,
            num_decoder_layers=decoder_layers,
            mlp_activations=activations,
            logits_via_embedding=tied,
        )
        return cls(**(fields | overrides))


@struct.dataclass
class T5Cache:
    """Keys and values of a batch: tuples of one array per decoder layer, with the heads merged.

    Shapes are those of `Layout.FEATURES_MINOR`; the last two axes may be stored swapped.

    Attributes:
        self_keys: [batch, capacity, heads * head_dim] of the tokens fed so far; zeros or stale
            beyond.
        self_values: the same for the values.
        cross_keys: [batch, input length, heads * head_dim] of the encoded input, never written
            again.
        cross_values: the same for the values.
        cross_bias: [batch, input length] float32, 0 or `MASKED` for padding.
        layout: of all keys and values; static.
    """

    self_keys: tuple[jax.Array, ...]
    self_values: tuple[jax.Array, ...]
    cross_keys: tuple[jax.Array, ...]
    cross_values: tuple[jax.Array, ...]
    cross_bias: jax.Array
    layout: kernels.Layout = struct.field(pytree_node=False)


@dataclasses.dataclass(frozen=True)
class T5:
    """A T5 as the pure functions that `models.interface.Model` asks for.

    Hashable, so usable as a static argument of `jax.jit`.

    Attributes:
        config: shape and arithmetic.
        platform: 'cpu', 'tpu' or 'gpu', what decoding is compiled for; None is JAX's default
            backend. To be given when compiling ahead of time for another one.
    """

    config: T5Config
    platform: str | None = None

    @property
    def vocab_size(self) -> int:
        """Number of logits: rows of the embedding table."""
        return self.config.vocab_size

    @property
    def module(self) -> "T5Module":
        """The linen module; its `init` also gives T5X's `params_axes` collection."""
        return T5Module(self.config)

    def init(self, rng: jax.Array):
        """Random float32 parameters, distributed as T5X initialises them."""
        # Lazily: the forward pass is traced only, and parameters of one shape share a compilation.
        tokens = jax.ShapeDtypeStruct((1, 1), jnp.int32)
        return self.module.lazy_init(rng, tokens, tokens)["params"]

    def logical_axes(self):
        """The parameters' tree with a tuple of logical axis names at each leaf."""
        return _logical_axes(self)

    def prefill(
        self,
        params,
        prompt: Prompt,
        capacity: int,
        rewind: int = 0,
        prompt_capacity: int | None = None,
    ) -> T5Cache:
        """Encodes the prompt and computes every layer's cross-attention keys and values.

        Args:
            params: the parameters.
            prompt: [batch, length].
            capacity: decoder positions per row; static.
            rewind: any: no entry is ever given up before it is written again.
            prompt_capacity: entries for the encoded prompt; its width if None; static.

        Returns:
            A cache with room for `capacity` decoder positions.

        Raises:
            ValueError: the prompt is wider than `prompt_capacity`.
        """
        del rewind
        width = prompt.tokens.shape[1]
        if prompt_capacity is not None and width > prompt_capacity:
            raise ValueError(
                f"a prompt {width} wide does not fit prompt_capacity = {prompt_capacity}"
            )
        layout = kernels.cache_layout(self.platform)
        return self.module.apply(
            {"params": params},
            prompt.tokens,
            prompt.mask,
            capacity,
            prompt_capacity or width,
            layout,
            method="prefill",
        )

    def begin(self, prompt: Prompt) -> tuple[jax.Array, jax.Array]:
        """BOS at position 0 for every row."""
        zeros = jnp.zeros(prompt.lengths.shape, jnp.int32)
        return zeros + BOS_ID, zeros

    def extend(
        self,
        params,
        cache: T5Cache,
        tokens: jax.Array,
        start: jax.Array,
        logits: Logits = "all",
    ) -> tuple[jax.Array | None, T5Cache]:
        """Feeds `tokens` [batch, k] at positions `start` [batch] .. `start + k - 1`.

        Returns:
            Logits [batch, k, vocab_size] float32 (of the last position alone for "last", none for
            None) and the new cache.
        """
        return self.module.apply({"params": params}, cache, tokens, start, logits, method="extend")

    def score(
        self,
        params,
        prompt: Prompt,
        targets: jax.Array,
        dropout_rng: jax.Array | None = None,
    ) -> jax.Array:
        """Logits [batch, n, vocab_size] float32 of whole targets [batch, n] (teacher forcing).

        Dropout is on iff `dropout_rng` is given.
        """
        fed = jnp.pad(targets, [(0, 0), (1, 0)], constant_values=BOS_ID)[:, :-1]
        return self.module.apply(
            {"params": params},
            prompt.tokens,
            fed,
            mask=prompt.mask,
            deterministic=dropout_rng is None,
            rngs=None if dropout_rng is None else {"dropout": dropout_rng},
        )


@functools.lru_cache(maxsize=64)
def _logical_axes(model: T5):
    tokens = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    variables = jax.eval_shape(model.module.init, jax.random.key(0), tokens, tokens)
    specs = flax.core.unfreeze(nn_partitioning.get_axis_names(variables["params_axes"]))
    return jax.tree.map(tuple, specs, is_leaf=lambda x: isinstance(x, jax.sharding.PartitionSpec))


def relative_buckets(
    distances: np.ndarray, *, bidirectional: bool, num_buckets: int, max_distance: int
) -> np.ndarray:
    """T5's buckets of relative positions: exact where small, logarithmic up to `max_distance`.

    Args:
        distances: int, position of the key minus position of the query.
        bidirectional: whether keys after the query have buckets of their own (encoder); otherwise
            they fall in bucket 0.
        num_buckets: number of buckets in all.
        max_distance: from here on all share the last bucket.

    Returns:
        int32 buckets, of the shape of `distances`.
    """
    buckets = np.zeros(distances.shape, np.int32)
    behind = -distances
    if bidirectional:
        num_buckets //= 2
        buckets += (behind < 0) * num_buckets
        behind = np.abs(behind)
    behind = np.maximum(behind, 0)
    exact = num_buckets // 2
    # float32 and the epsilon as in T5X: powers of two fall on a bucket's edge.
    ratio = np.maximum(behind, 1).astype(np.float32) / exact + np.finfo(np.float32).eps
    log_bucket = exact + (
        np.log(ratio) / np.log(max_distance / exact) * (num_buckets - exact)
    ).astype(np.int32)
    log_bucket = np.minimum(log_bucket, num_buckets - 1)
    return (buckets + np.where(behind < exact, behind, log_bucket)).astype(np.int32)


class Linear(nn.Module):
    """A product with a kernel [in, out], without bias."""

    features: int
    axes: tuple[str, str]
    dtype: jnp.dtype
    init_scale: float = 1.0

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Applies the layer to `x` [..., features]."""
        kernel = self._kernel(x.shape[-1])
        return kernels.project(x, kernel, self.dtype)

    def _kernel(self, in_features: int) -> jax.Array:
        normal = nn.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
        return nn_partitioning.param_with_axes(
            "kernel",
            lambda *args: normal(*args) * self.init_scale,
            (in_features, self.features),
            jnp.float32,
            axes=self.axes,
            module=self,
        )


class RMSNorm(nn.Module):
    """Scale only, no mean; computed in float32."""

    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Applies the layer to `x` [..., features]."""
        scale = nn_partitioning.param_with_axes(
            "scale", nn.initializers.ones, (x.shape[-1],), jnp.float32, axes=("embed",), module=self
        )
        x = x.astype(jnp.float32)
        mean_square = jnp.mean(jnp.square(x), axis=-1, keepdims=True)
        normed = x * jax.lax.rsqrt(mean_square + 1e-6)
        return (normed * scale.astype(jnp.float32)).astype(self.dtype)


class Embedding(nn.Module):
    """The token table [vocab, embed], used for look-up and, when tied, for the logits."""

    config: T5Config

    def setup(self):
        """Declares the submodules and parameters."""
        shape = (self.config.vocab_size, self.config.emb_dim)
        normal = nn.initializers.normal(stddev=1.0)
        self.embedding = nn_partitioning.param_with_axes(
            "embedding", normal, shape, jnp.float32, axes=("vocab", "embed"), module=self
        )

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Embeds `tokens` [batch, length] into [batch, length, emb_dim]."""
        # A gather, not T5X's one-hot product: that reads the whole table at every step.
        x = jnp.take(self.embedding, tokens, axis=0).astype(self.config.dtype)
        return constrain(x, "batch", "length", "embed")

    def logits(self, x: jax.Array) -> jax.Array:
        """Tied logits [..., vocab] float32 of the decoder's output [..., emb_dim]."""
        x = x.astype(jnp.float32) * self.config.emb_dim**-0.5
        return kernels.logits(x.astype(self.config.dtype), self.embedding, transposed=True)


class RelativeBias(nn.Module):
    """A learned score per head and relative position."""

    config: T5Config
    bidirectional: bool

    def setup(self):
        """Declares the submodules and parameters."""
        cfg = self.config
        self.rel_embedding = nn_partitioning.param_with_axes(
            "rel_embedding",
            nn.initializers.variance_scaling(1.0, "fan_avg", "uniform"),
            (cfg.num_heads, cfg.relative_attention_num_buckets),
            jnp.float32,
            axes=("heads", "relpos_buckets"),
            module=self,
        )

    def _per_distance(self, distances: np.ndarray) -> jax.Array:
        """[heads, len(distances)] float32; `MASKED` after the query unless bidirectional."""
        buckets = relative_buckets(
            distances,
            bidirectional=self.bidirectional,
            num_buckets=self.config.relative_attention_num_buckets,
            max_distance=self.config.relative_attention_max_distance,
        )
        bias = jnp.take(self.rel_embedding.astype(jnp.float32), buckets, axis=1)
        if self.bidirectional:
            return bias
        return jnp.where(distances > 0, kernels.MASKED, bias)

    def full(self, length: int) -> jax.Array:
        """Bias of every query on every key, [1, heads, length, length] float32."""
        # In a sequence of period 2 * length read in rows of 2 * length - 1, each row is the one
        # above shifted right by one: a matrix constant along its diagonals, without a gather of
        # length x length elements.
        distances = np.concatenate([np.arange(length), np.arange(-length, 0)])
        table = self._per_distance(distances)
        heads = table.shape[0]
        rows = jnp.tile(table, (1, length))[:, : length * (2 * length - 1)]
        return rows.reshape(heads, length, 2 * length - 1)[None, :, :, :length]

    def rows(self, start: jax.Array, num_queries: int, length: int) -> jax.Array:
        """Bias of queries at each row's own positions on a cache of `length` entries.

        The relative bias, the causal mask and the mask of dead entries in one: what stands after a
        query is `MASKED`. Row `b` asks at `start[b]` .. `start[b] + num_queries - 1`.

        Returns:
            [batch, heads, num_queries, length] float32.
        """
        # table[:, length - 1 - position + key] belongs to the distance key - position.
        table = self._per_distance(np.arange(1 - length, length))

        def row(position):
            return jax.lax.dynamic_slice_in_dim(table, length - 1 - position, length, axis=1)

        positions = start[:, None] + jnp.arange(num_queries)
        bias = jax.vmap(jax.vmap(row, out_axes=1))(positions)
        return constrain(bias, "batch", "heads", "length", "length")


class Attention(nn.Module):
    """Multi-head attention; heads and head size stay merged, and scores are not scaled."""

    config: T5Config

    def setup(self):
        """Declares the submodules and parameters."""
        cfg = self.config
        joined, inward, outward = (
            cfg.num_heads * cfg.head_dim,
            ("embed", "joined_kv"),
            ("joined_kv", "embed"),
        )
        # The initial queries carry the scaling that the scores lack.
        self.query = Linear(joined, inward, cfg.dtype, init_scale=cfg.head_dim**-0.5)
        self.key = Linear(joined, inward, cfg.dtype)
        self.value = Linear(joined, inward, cfg.dtype)
        self.out = Linear(cfg.emb_dim, outward, cfg.dtype)
        # As in T5X, one pattern for all queries of a row.
        self.dropout = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))

    def keys_values(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Keys and values of `x` [batch, length, emb_dim]: [batch, length, heads * head_dim]."""
        return (
            constrain(self.key(x), "batch", "length", "joined_kv"),
            constrain(self.value(x), "batch", "length", "joined_kv"),
        )

    def __call__(self, x, keys, values, bias, layout, deterministic: bool = True) -> jax.Array:
        """Attends from `x`.

        Args:
            x: [batch, q, emb_dim].
            keys: of heads * head_dim features, stored in `layout`.
            values: the same.
            bias: broadcastable to [batch, heads, q, length].
            layout: of keys and values.
            deterministic: False switches dropout on.

        Returns:
            [batch, q, emb_dim].
        """
        queries = constrain(self.query(x), "batch", "length", "joined_kv")
        weights = kernels.attention_weights(queries, keys, bias, self.config.num_heads, layout)
        weights = self.dropout(weights, deterministic=deterministic)
        return self.out(kernels.attention_values(weights, values, layout))


class Mlp(nn.Module):
    """One activation of one projection (T5 1.0), or a product of several (gated)."""

    config: T5Config

    @nn.compact
    def __call__(self, x: jax.Array, deterministic: bool = True) -> jax.Array:
        """Applies the layer to `x` [..., features]."""
        cfg = self.config
        hidden = None
        for i, name in enumerate(cfg.mlp_activations):
            part = "wi" if len(cfg.mlp_activations) == 1 else f"wi_{i}"
            branch = Linear(cfg.mlp_dim, ("embed", "mlp"), cfg.dtype, name=part)(x)
            branch = _ACTIVATIONS[name](branch)
            hidden = branch if hidden is None else hidden * branch
        hidden = constrain(hidden, "batch", "length", "mlp")
        hidden = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))(hidden, deterministic)
        return Linear(cfg.emb_dim, ("mlp", "embed"), cfg.dtype, name="wo")(hidden)


class EncoderLayer(nn.Module):
    """Self-attention and MLP, each after a norm and added to the residual stream."""

    config: T5Config

    def setup(self):
        """Declares the submodules and parameters."""
        cfg = self.config
        self.pre_attention_layer_norm = RMSNorm(cfg.dtype)
        self.attention = Attention(cfg)
        self.pre_mlp_layer_norm = RMSNorm(cfg.dtype)
        self.mlp = Mlp(cfg)
        self.dropout = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))
        if not cfg.shared_relative_bias:
            self.relpos_bias = RelativeBias(cfg, bidirectional=True)

    def __call__(self, x: jax.Array, bias: jax.Array, deterministic: bool) -> jax.Array:
        """Maps `x` [batch, length, emb_dim]; `bias` is [1 or batch, heads, length, length]."""
        normed = self.pre_attention_layer_norm(x)
        keys, values = self.attention.keys_values(normed)
        attended = self.attention(normed, keys, values, bias, _AS_COMPUTED, deterministic)
        x = x + self.dropout(attended, deterministic)
        mixed = self.mlp(self.pre_mlp_layer_norm(x), deterministic)
        x = x + self.dropout(mixed, deterministic)
        return constrain(x, "batch", "length", "embed")


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention and MLP, each after a norm and added to the residual."""

    config: T5Config

    def setup(self):
        """Declares the submodules and parameters."""
        cfg = self.config
        self.pre_self_attention_layer_norm = RMSNorm(cfg.dtype)
        self.self_attention = Attention(cfg)
        self.pre_cross_attention_layer_norm = RMSNorm(cfg.dtype)
        self.encoder_decoder_attention = Attention(cfg)
        self.pre_mlp_layer_norm = RMSNorm(cfg.dtype)
        self.mlp = Mlp(cfg)
        self.dropout = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))
        if not cfg.shared_relative_bias:
            self.relpos_bias = RelativeBias(cfg, bidirectional=False)

    def __call__(
        self,
        x: jax.Array,
        bias: jax.Array,
        cross: tuple[jax.Array, jax.Array],
        cross_bias: jax.Array,
        cached: tuple[jax.Array, jax.Array] | None = None,
        start: jax.Array | None = None,
        layout: kernels.Layout = _AS_COMPUTED,
        deterministic: bool = True,
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """Runs the layer over new tokens, alone or after cached ones.

        Args:
            x: [batch, k, emb_dim].
            bias: on the self-attention's keys, broadcastable to [batch, heads, k, length of the
                keys].
            cross: keys and values of the encoded input, stored in `layout`.
            cross_bias: [batch, 1, 1, input length].
            cached: keys and values to write into and to attend to, stored in `layout`; None attends
                to the new tokens alone.
            start: [batch] int32, where to write.
            layout: of `cross` and `cached`.
            deterministic: False switches dropout on.

        Returns:
            [batch, k, emb_dim] and the self-attention's keys and values.
        """
        normed = self.pre_self_attention_layer_norm(x)
        keys, values = self.self_attention.keys_values(normed)
        if cached is not None:
            keys = constrain(kernels.write(cached[0], keys, start, layout), *layout.axes)
            values = constrain(kernels.write(cached[1], values, start, layout), *layout.axes)
        attended = self.self_attention(normed, keys, values, bias, layout, deterministic)
        x = x + self.dropout(attended, deterministic)
        normed = self.pre_cross_attention_layer_norm(x)
        attended = self.encoder_decoder_attention(normed, *cross, cross_bias, layout, deterministic)
        x = x + self.dropout(attended, deterministic)
        mixed = self.mlp(self.pre_mlp_layer_norm(x), deterministic)
        x = x + self.dropout(mixed, deterministic)
        return constrain(x, "batch", "length", "embed"), (keys, values)


def _biases(stack, compute: Callable[[RelativeBias], jax.Array]) -> list[jax.Array]:
    """The relative bias of each layer of a stack: one array for all where they share the table."""
    if stack.config.shared_relative_bias:
        return [compute(stack.relpos_bias)] * len(stack.layers)
    return [compute(layer.relpos_bias) for layer in stack.layers]


class Encoder(nn.Module):
    """The encoder stack."""

    config: T5Config

    def setup(self):
        """Declares the submodules and parameters."""
        cfg = self.config
        if cfg.shared_relative_bias:
            self.relpos_bias = RelativeBias(cfg, bidirectional=True)
        self.layers = [EncoderLayer(cfg) for _ in range(cfg.num_encoder_layers)]
        self.encoder_norm = RMSNorm(cfg.dtype)
        self.embedding_dropout = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))
        self.output_dropout = nn.Dropout(cfg.dropout_rate)

    def __call__(self, x: jax.Array, cross_bias: jax.Array, deterministic: bool) -> jax.Array:
        """Encodes embedded inputs.

        Args:
            x: [batch, length, emb_dim].
            cross_bias: [batch, 1, 1, length] float32, hides padding.
            deterministic: False switches dropout on.

        Returns:
            [batch, length, emb_dim].
        """
        x = self.embedding_dropout(x, deterministic)
        length = x.shape[1]
        biases = _biases(self, lambda relative: relative.full(length) + cross_bias)
        for layer, bias in zip(self.layers, biases, strict=True):
            x = layer(x, bias, deterministic)
        return self.output_dropout(self.encoder_norm(x), deterministic)


class Decoder(nn.Module):
    """The decoder stack, up to the output norm, and the untied logits."""

    config: T5Config

    def setup(self):
        """Declares the submodules and parameters."""
        cfg = self.config
        if cfg.shared_relative_bias:
            self.relpos_bias = RelativeBias(cfg, bidirectional=False)
        self.layers = [DecoderLayer(cfg) for _ in range(cfg.num_decoder_layers)]
        self.decoder_norm = RMSNorm(cfg.dtype)
        self.embedding_dropout = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))
        self.output_dropout = nn.Dropout(cfg.dropout_rate, broadcast_dims=(-2,))
        if not cfg.logits_via_embedding:
            self.logits_dense = LogitsKernel(cfg)

    def cross_keys_values(self, encoded: jax.Array) -> tuple[tuple[jax.Array, jax.Array], ...]:
        """Every layer's keys and values of the encoded input."""
        return tuple(layer.encoder_decoder_attention.keys_values(encoded) for layer in self.layers)

    def whole(self, x, cross, cross_bias, deterministic: bool) -> jax.Array:
        """Runs whole sequences [batch, length, emb_dim], causally."""
        x = self.embedding_dropout(x, deterministic)
        length = x.shape[1]
        biases = _biases(self, lambda relative: relative.full(length))
        for layer, bias, cross_layer in zip(self.layers, biases, cross, strict=True):
            x, _ = layer(x, bias, cross_layer, cross_bias, deterministic=deterministic)
        return self.output_dropout(self.decoder_norm(x), deterministic)

    def extend(self, x: jax.Array, cache: T5Cache, start: jax.Array) -> tuple[jax.Array, T5Cache]:
        """Runs new tokens [batch, k, emb_dim] from `start` on and writes them to the cache."""
        max_length = cache.self_keys[0].shape[cache.layout.axes.index("length")]
        num_queries = x.shape[1]
        biases = _biases(self, lambda relative: relative.rows(start, num_queries, max_length))
        cross_bias = cache.cross_bias[:, None, None, :]
        keys, values = [], []
        for i, layer in enumerate(self.layers):
            cross = cache.cross_keys[i], cache.cross_values[i]
            cached = cache.self_keys[i], cache.self_values[i]
            x, (layer_keys, layer_values) = layer(
                x, biases[i], cross, cross_bias, cached, start, cache.layout
            )
            keys.append(layer_keys)
            values.append(layer_values)
        cache = cache.replace(self_keys=tuple(keys), self_values=tuple(values))
        return self.decoder_norm(x), cache


class LogitsKernel(nn.Module):
    """The untied output projection [embed, vocab], with float32 results."""

    config: T5Config

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Applies the layer to `x` [..., features]."""
        kernel = nn_partitioning.param_with_axes(
            "kernel",
            nn.initializers.variance_scaling(1.0, "fan_in", "truncated_normal"),
            (self.config.emb_dim, self.config.vocab_size),
            jnp.float32,
            axes=("embed", "vocab"),
            module=self,
        )
        return kernels.logits(x, kernel, transposed=False)


class T5Module(nn.Module):
    """The whole network; `T5` wraps its methods as pure functions."""

    config: T5Config

    def setup(self):
        """Declares the submodules and parameters."""
        self.token_embedder = Embedding(self.config)
        self.encoder = Encoder(self.config)
        self.decoder = Decoder(self.config)

    def __call__(
        self,
        inputs: jax.Array,
        decoder_inputs: jax.Array,
        *,
        mask: jax.Array | None = None,
        deterministic: bool = True,
    ) -> jax.Array:
        """Teacher forcing; see `T5.score`. Without a mask every input token is real."""
        mask = jnp.ones(inputs.shape, bool) if mask is None else mask
        encoded, cross_bias = self._encode(inputs, mask, deterministic)
        cross = self.decoder.cross_keys_values(encoded)
        x = self.token_embedder(decoder_inputs)
        return self._logits(
            self.decoder.whole(x, cross, cross_bias[:, None, None, :], deterministic)
        )

    def prefill(
        self,
        inputs: jax.Array,
        mask: jax.Array,
        capacity: int,
        prompt_capacity: int,
        layout: kernels.Layout,
    ) -> T5Cache:
        """See `T5.prefill`."""
        cfg = self.config
        encoded, cross_bias = self._encode(inputs, mask, deterministic=True)
        missing = prompt_capacity - inputs.shape[1]

        def stored(x):
            return constrain(kernels.store(x, layout), *layout.axes)

        def widened(x, filler=0.0):
            padding = [(0, 0), (0, missing)] + [(0, 0)] * (x.ndim - 2)
            return jnp.pad(x, padding, constant_values=filler) if missing else x

        cross = [
            [stored(widened(x)) for x in pair] for pair in self.decoder.cross_keys_values(encoded)
        ]
        blank = jnp.zeros((inputs.shape[0], capacity, cfg.num_heads * cfg.head_dim), cfg.dtype)
        return T5Cache(
            self_keys=tuple(stored(blank) for _ in cross),
            self_values=tuple(stored(blank) for _ in cross),
            cross_keys=tuple(keys for keys, _ in cross),
            cross_values=tuple(values for _, values in cross),
            cross_bias=widened(cross_bias, kernels.MASKED),
            layout=layout,
        )

    def extend(self, cache: T5Cache, tokens: jax.Array, start: jax.Array, logits: Logits):
        """See `T5.extend`."""
        x, cache = self.decoder.extend(self.token_embedder(tokens), cache, start)
        if logits is None:
            return None, cache
        return self._logits(x[:, -1:] if logits == "last" else x), cache

    def _encode(
        self, inputs: jax.Array, mask: jax.Array, deterministic: bool
    ) -> tuple[jax.Array, jax.Array]:
        cross_bias = jnp.where(mask, 0.0, kernels.MASKED)
        x = self.token_embedder(inputs)
        encoded = self.encoder(x, cross_bias[:, None, None, :], deterministic)
        return encoded, cross_bias

    def _logits(self, x: jax.Array) -> jax.Array:
        if self.config.logits_via_embedding:
            scores = self.token_embedder.logits(x)
        else:
            scores = self.decoder.logits_dense(x)
        return constrain(scores, "batch", "length", "vocab")
