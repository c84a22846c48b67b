"""T5 against golden values of transformers, and its decoding steps against its full pass."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden import t5_cases
from tiny import teacher_forced

from spec_cascades.models import T5, Model, Prompt, T5Config, kernels
from spec_cascades.models.t5 import model

TOLERANCE = 1e-4
apply = jax.jit(teacher_forced, static_argnums=0)
extend = jax.jit(T5.extend, static_argnums=(0, 5))

TINY = T5Config(
    vocab_size=37,
    emb_dim=16,
    num_heads=2,
    head_dim=4,
    mlp_dim=24,
    num_encoder_layers=1,
    num_decoder_layers=2,
)


@functools.partial(jax.jit, static_argnums=(0, 3))
def prefill(model, params, inputs, capacity):
    return model.prefill(params, Prompt.padded(inputs), capacity)


@functools.cache
def golden(name):
    """Model, parameters, inputs, decoder inputs and the logits of transformers."""
    case = t5_cases.CASES[name]
    inputs, decoder_inputs = t5_cases.token_ids(case)
    params = jax.tree.map(jnp.asarray, t5_cases.weights(case.config, case.seed))
    return T5(case.config), params, inputs, decoder_inputs, np.load(t5_cases.PATH)[name]


@functools.cache
def tiny(config=TINY):
    return T5(config), T5(config).init(jax.random.key(0))


@pytest.mark.parametrize("name", t5_cases.CASES)
def test_full_pass_equals_transformers(name):
    model, params, inputs, decoder_inputs, expected = golden(name)
    assert np.abs(expected).max() > 1
    logits = apply(model, params, inputs, decoder_inputs)
    assert logits.dtype == jnp.float32
    np.testing.assert_allclose(logits, expected, atol=TOLERANCE)


@pytest.mark.parametrize("name", t5_cases.CASES)
def test_single_steps_equal_transformers(name):
    model, params, inputs, decoder_inputs, expected = golden(name)
    cache = prefill(model, params, inputs, decoder_inputs.shape[1])
    token, position = model.begin(Prompt.padded(inputs))
    np.testing.assert_array_equal(token, decoder_inputs[:, 0])
    for t in range(decoder_inputs.shape[1]):
        logits, cache = extend(model, params, cache, decoder_inputs[:, t : t + 1], position + t)
        np.testing.assert_allclose(logits[:, 0], expected[:, t], atol=TOLERANCE)


@pytest.mark.parametrize("name", t5_cases.CASES)
@pytest.mark.parametrize("block", [3, 6])
def test_blocks_with_ragged_rollbacks_equal_transformers(name, block):
    """Rows advance unevenly; what they do not keep was a wrong token, written over later."""
    model, params, inputs, decoder_inputs, expected = golden(name)
    rows, length = decoder_inputs.shape
    random = np.random.RandomState(block)
    cache = prefill(model, params, inputs, length + block)
    start = np.zeros(rows, np.int32)
    while start.min() < length:
        tokens = random.randint(1, model.vocab_size, (rows, block)).astype(np.int32)
        right = np.minimum(random.randint(1, block + 1, rows), length - start)
        for row in range(rows):
            tokens[row, : right[row]] = decoder_inputs[row, start[row] :][: right[row]]
        logits, cache = extend(model, params, cache, tokens, start)
        for row in range(rows):
            here = slice(start[row], start[row] + right[row])
            np.testing.assert_allclose(
                logits[row, : right[row]], expected[row, here], atol=TOLERANCE
            )
        start = start + right


def test_extend_ignores_dead_entries():
    model, params = tiny()
    inputs = np.array([[4, 5, 6], [7, 1, 0]], np.int32)
    cache = prefill(model, params, inputs, 12)
    _, cache = extend(model, params, cache, np.array([[0, 3], [0, 4]]), np.zeros(2, np.int32))

    def spoil(entries, value):
        entries = np.array(kernels.store(entries, cache.layout))  # its own inverse
        entries[:, 2:] = value
        return jnp.asarray(kernels.store(entries, cache.layout))

    stale = cache.replace(
        self_keys=tuple(spoil(x, 1e3) for x in cache.self_keys),
        self_values=tuple(spoil(x, -1e3) for x in cache.self_values),
    )
    tokens, start = np.array([[5], [6]]), np.array([2, 1], np.int32)
    clean, _ = extend(model, params, cache, tokens, start)
    dirty, _ = extend(model, params, stale, tokens, start)
    np.testing.assert_array_equal(clean, dirty)


def test_row_does_not_depend_on_neighbours_or_padding():
    model, params, inputs, decoder_inputs, _ = golden("t5_1_1")
    together = apply(model, params, inputs, decoder_inputs)
    used = np.trim_zeros(inputs[1], "b")[None]
    assert used.shape[1] < inputs.shape[1]
    for alone in (used, np.pad(used, ((0, 0), (0, 9)))):
        logits = apply(model, params, alone, decoder_inputs[1:2])
        np.testing.assert_allclose(logits[0], together[1], atol=1e-5)


def test_row_of_padding_alone_stays_finite():
    model, params = tiny()
    cache = prefill(model, params, np.zeros((1, 4), np.int32), 3)
    logits, _ = extend(model, params, cache, np.zeros((1, 1), np.int32), np.zeros(1, np.int32))
    assert np.isfinite(logits).all()


@pytest.mark.parametrize(
    ("platform", "shape"), [("cpu", (5, 8, 9)), ("tpu", (5, 9, 8)), ("gpu", (5, 9, 8))]
)
def test_cache_has_batch_first_and_heads_merged(platform, shape):
    model = T5(TINY, platform)
    params = jax.eval_shape(model.init, jax.random.key(0))
    cache = jax.eval_shape(
        lambda p, x: prefill(model, p, x, 9), params, jnp.ones((5, 7), jnp.int32)
    )
    assert all(leaf.shape[0] == 5 for leaf in jax.tree.leaves(cache))
    assert cache.self_keys[0].shape == cache.self_values[0].shape == shape
    assert math.prod(cache.cross_values[1].shape) == 5 * 7 * TINY.num_heads * TINY.head_dim


def test_both_layouts_give_the_same_logits():
    model, params, inputs, decoder_inputs, expected = golden("t5_1_0")
    for platform in ("cpu", "tpu"):
        placed = T5(model.config, platform)
        cache = prefill(placed, params, inputs, 12)
        start = np.zeros(3, np.int32)
        _, cache = extend(placed, params, cache, decoder_inputs[:, :5], start)
        logits, _ = extend(placed, params, cache, decoder_inputs[:, 2:7], start + 2)
        np.testing.assert_allclose(logits, expected[:, 2:7], atol=TOLERANCE)


def test_parameter_names_are_those_of_t5x():
    gated = _names(T5(TINY))
    assert "token_embedder/embedding" in gated
    assert "encoder/relpos_bias/rel_embedding" in gated
    assert "encoder/layers_0/attention/query/kernel" in gated
    assert "encoder/layers_0/pre_attention_layer_norm/scale" in gated
    assert "decoder/layers_1/encoder_decoder_attention/out/kernel" in gated
    assert "decoder/layers_1/pre_self_attention_layer_norm/scale" in gated
    assert "decoder/layers_1/pre_cross_attention_layer_norm/scale" in gated
    assert "decoder/layers_1/mlp/wi_1/kernel" in gated
    assert gated["decoder/logits_dense/kernel"] == ("embed", "vocab")
    assert gated["decoder/layers_0/self_attention/out/kernel"] == ("joined_kv", "embed")
    plain = _names(
        T5(dataclasses.replace(TINY, mlp_activations=("relu",), logits_via_embedding=True))
    )
    assert "decoder/layers_1/mlp/wi/kernel" in plain
    assert not any("logits_dense" in name or "wi_0" in name for name in plain)


def test_parameter_counts_are_the_published_ones():
    # The tiny configuration of T5X's own tests, measured with its network.
    fields = dict(emb_dim=64, num_heads=4, head_dim=16, mlp_dim=128, vocab_size=384)
    layers = dict(num_encoder_layers=2, num_decoder_layers=2)
    plain = dict(mlp_activations=("relu",), logits_via_embedding=True)
    assert _count(T5Config(**fields, **layers)) == 246_784
    assert _count(T5Config(**fields, **layers, **plain)) == 189_440
    assert _count(T5Config.preset("t5_1_0_small")) == 60_506_624
    assert _count(T5Config.preset("t5_1_1_small")) == 76_961_152
    assert _count(T5Config.preset("byt5_small")) == 299_637_760


def test_logical_axes_match_the_parameters():
    for config in (TINY, T5Config.preset("t5_1_0_base")):
        model = T5(config)
        shapes = jax.eval_shape(model.init, jax.random.key(0))
        ranks = jax.tree.map(lambda array, axes: array.ndim == len(axes), shapes, _axes(model))
        assert all(jax.tree.leaves(ranks))


def test_initial_scale_of_attention_is_that_of_t5x():
    params = T5(dataclasses.replace(TINY, emb_dim=256, head_dim=64)).init(jax.random.key(1))
    attention = params["decoder"]["layers_0"]["self_attention"]
    assert np.std(attention["query"]["kernel"]) == pytest.approx(256**-0.5 * 64**-0.5, rel=0.05)
    assert np.std(attention["key"]["kernel"]) == pytest.approx(256**-0.5, rel=0.05)


def test_dropout_is_on_only_with_a_key():
    model, params = tiny()
    noisy = T5(dataclasses.replace(TINY, dropout_rate=0.5))
    inputs, decoder_inputs = np.array([[4, 5, 6]], np.int32), np.array([[0, 3, 9]], np.int32)
    expected = apply(model, params, inputs, decoder_inputs)
    np.testing.assert_array_equal(apply(noisy, params, inputs, decoder_inputs), expected)
    first, again, other = (
        apply(noisy, params, inputs, decoder_inputs, jax.random.key(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - expected).max() > 1e-2
    assert np.abs(first - other).max() > 1e-2


@pytest.mark.parametrize("params_dtype", ["float32", "bfloat16"])
def test_bfloat16_stays_near_float32_and_gives_float32_logits(params_dtype):
    model, params, inputs, decoder_inputs, expected = golden("t5_1_1")
    model = T5(dataclasses.replace(model.config, dtype="bfloat16"))
    params = jax.tree.map(lambda x: x.astype(params_dtype), params)
    cache = prefill(model, params, inputs, 8)
    assert cache.self_keys[0].dtype == jnp.bfloat16
    logits, _ = extend(model, params, cache, decoder_inputs[:, :8], np.zeros(3, np.int32))
    assert logits.dtype == jnp.float32
    np.testing.assert_allclose(logits, expected[:, :8], atol=0.15)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_relative_bias_follows_the_bucket_of_every_distance(bidirectional):
    config = dataclasses.replace(TINY, relative_attention_num_buckets=32)
    table = np.arange(64.0).reshape(2, 32)  # [heads, buckets]: the bias names its bucket
    module = model.RelativeBias(config, bidirectional)
    variables = {"params": {"rel_embedding": jnp.asarray(table)}}
    full = module.apply(variables, 300, method="full")[0, 0]
    distances = np.arange(300)[None, :] - np.arange(300)[:, None]
    expected = model.relative_buckets(
        distances, bidirectional=bidirectional, num_buckets=32, max_distance=128
    ).astype(np.float32)
    if not bidirectional:
        expected = np.where(distances > 0, kernels.MASKED, expected)
        rows = module.apply(variables, np.array([0, 7, 297]), 3, 300, method="rows")
        for row, start in zip(rows[:, 0], (0, 7, 297), strict=True):
            np.testing.assert_array_equal(row, expected[start : start + 3])
    np.testing.assert_array_equal(full, expected)
    # The formula's fixed points: exact buckets, the edges at powers of two, the last bucket.
    behind = -distances[-1, ::-1]
    buckets = full[-1, ::-1]
    half = 16 if bidirectional else 32
    edges = {0: 0, 3: 3, half // 2: half // 2, 127: half - 1, 128: half - 1, 299: half - 1}
    assert {d: int(buckets[d]) for d in edges} == edges and behind[5] == 5
    if bidirectional:  # 8 exact ones, then 2 for each doubling
        assert [int(buckets[d]) for d in (15, 16, 31, 32, 63, 64)] == [9, 10, 11, 12, 13, 14]


def _give_each_layer_its_table(params, tables):
    """The parameters with `tables(stack, i, shared table)` in each layer instead of one a stack."""
    params = dict(params)
    for stack in ("encoder", "decoder"):
        layers = dict(params[stack])
        shared = layers.pop("relpos_bias")["rel_embedding"]
        for i in range(sum(name.startswith("layers_") for name in layers)):
            bias = {"rel_embedding": tables(stack, i, shared)}
            layers[f"layers_{i}"] = layers[f"layers_{i}"] | {"relpos_bias": bias}
        params[stack] = layers
    return params


def test_a_table_per_layer_equals_a_shared_one_where_all_are_equal():
    model, params, inputs, decoder_inputs, expected = golden("t5_1_1")
    model = T5(dataclasses.replace(model.config, shared_relative_bias=False))
    params = _give_each_layer_its_table(params, lambda stack, i, shared: shared)
    assert jax.tree.structure(params) == jax.tree.structure(model.logical_axes(), is_leaf=_is_axes)
    logits = apply(model, params, inputs, decoder_inputs)
    np.testing.assert_allclose(logits, expected, atol=TOLERANCE)


def test_each_layer_uses_its_own_table():
    """Another table in any one layer gives other logits, and the steps follow the full pass."""
    model, params, inputs, decoder_inputs, expected = golden("t5_1_1")
    model = T5(dataclasses.replace(model.config, shared_relative_bias=False))
    seen = [expected]
    for place in (("encoder", 0), ("encoder", 1), ("decoder", 0), ("decoder", 1)):
        own = _give_each_layer_its_table(
            params, lambda stack, i, x, here=place: -x if (stack, i) == here else x
        )
        logits = apply(model, own, inputs, decoder_inputs)
        assert all(np.abs(logits - other).max() > 1e-2 for other in seen)
        seen.append(logits)
        cache = prefill(model, own, inputs, decoder_inputs.shape[1])
        for at in range(0, decoder_inputs.shape[1], 4):
            tokens, start = decoder_inputs[:, at : at + 4], np.full(len(inputs), at, np.int32)
            steps, cache = extend(model, own, cache, tokens, start)
            np.testing.assert_allclose(steps, logits[:, at : at + 4], atol=TOLERANCE)


def test_prefill_computes_no_logits():
    model, params = tiny()
    jaxpr = jax.make_jaxpr(lambda p, x: prefill(model, p, x, 9))(params, jnp.ones((5, 7), int))
    assert f"5,7,{TINY.emb_dim}]" in str(jaxpr)
    assert f",{TINY.vocab_size}] = " not in str(jaxpr)


def test_0_is_an_ordinary_token_of_a_prompt():
    """Unlike padding it is read, wherever it stands; what stands beyond the length is not."""
    model, params, _, decoder_inputs, _ = golden("t5_1_1")
    score = jax.jit(model.score)
    targets = decoder_inputs[:1]
    with_zero = score(params, Prompt.of([[5, 0, 7, 0]]), targets)
    without = score(params, Prompt.of([[5, 7]]), targets)
    assert np.abs(with_zero - without).max() > 1e-2
    noise = Prompt(np.array([[5, 0, 7, 0, 9, 9]], np.int32), np.array([4], np.int32))
    np.testing.assert_allclose(score(params, noise, targets), with_zero, atol=1e-5)


def test_prompts_of_all_widths_have_caches_of_one_shape():
    model, params, inputs, decoder_inputs, expected = golden("t5_1_0")
    for platform in ("cpu", "tpu"):
        placed = T5(model.config, platform)
        caches = [
            placed.prefill(params, Prompt.padded(x), 12, 0, 20)
            for x in (inputs, np.pad(inputs, [(0, 0), (0, 3)]))
        ]
        assert jax.tree.map(jnp.shape, caches[0]) == jax.tree.map(jnp.shape, caches[1])
        for cache in caches:
            logits, _ = extend(placed, params, cache, decoder_inputs[:, :5], np.zeros(3, np.int32))
            np.testing.assert_allclose(logits, expected[:, :5], atol=TOLERANCE)
    with pytest.raises(ValueError, match="does not fit prompt_capacity = 4"):
        model.prefill(params, Prompt.padded(inputs), 12, 0, 4)


def test_logits_are_computed_where_they_are_asked_for():
    model, params, inputs, decoder_inputs, expected = golden("t5_1_0")
    start = np.zeros(3, np.int32)
    caches = []
    for which in ("all", "last", None):
        cache = prefill(model, params, inputs, 12)
        logits, cache = extend(model, params, cache, decoder_inputs[:, :5], start, which)
        caches.append(cache)
        if which is None:
            assert logits is None
        else:
            places = slice(0 if which == "all" else 4, 5)
            np.testing.assert_allclose(logits, expected[:, places], atol=TOLERANCE)
    for other in caches[1:]:
        jax.tree.map(np.testing.assert_array_equal, caches[0], other)


def test_model_is_hashable_and_keeps_to_the_interface():
    assert isinstance(T5(TINY), Model)
    assert hash(T5(TINY)) == hash(T5(dataclasses.replace(TINY)))
    assert T5Config(**(dataclasses.asdict(TINY) | {"mlp_activations": ["gelu", "linear"]})) == TINY


def test_presets_cover_the_public_sizes():
    assert len(T5Config.preset_names()) == 25
    assert T5Config.preset("t5_1_0_3b").head_dim == 128
    assert T5Config.preset("mt5_small").vocab_size == 250_112
    assert T5Config.preset("byt5_xl").num_encoder_layers == 36
    assert T5Config.preset("t5_1_1_small", dtype="bfloat16").dtype == "bfloat16"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T5Config.preset("t5_1_1_smal"), "did you mean 't5_1_1_small'"),
        (lambda: T5Config.preset("bert"), "unknown T5 size 'bert'; known: t5_1_0_small"),
        (lambda: dataclasses.replace(TINY, dtype="float16"), "overflows in float16"),
        (lambda: dataclasses.replace(TINY, mlp_activations=("swish",)), "expected names among"),
        (lambda: dataclasses.replace(TINY, num_heads=0), "num_heads=0: expected at least 1"),
        (lambda: dataclasses.replace(TINY, dropout_rate=1.0), "dropout_rate=1.0"),
    ],
)
def test_wrong_settings_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def _is_axes(x):
    return isinstance(x, tuple)


def _axes(model):
    return jax.tree.map(list, model.logical_axes(), is_leaf=_is_axes)


def _names(model):
    flat = jax.tree_util.tree_leaves_with_path(
        model.logical_axes(), is_leaf=lambda x: isinstance(x, tuple)
    )
    return {jax.tree_util.keystr(path, simple=True, separator="/"): axes for path, axes in flat}


def _count(config):
    shapes = jax.eval_shape(T5(config).init, jax.random.key(0))
    return sum(np.prod(leaf.shape, dtype=int) for leaf in jax.tree.leaves(shapes))
