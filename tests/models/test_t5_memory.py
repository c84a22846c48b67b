"""Peak memory of decoding, from the compiler: no logits of whole sequences."""

import jax
import jax.numpy as jnp
import pytest

from spec_cascades import rules
from spec_cascades.decoding import DecodeConfig, ModelDrafter, autoregressive, speculative
from spec_cascades.models import T5, T5Config

LENGTH, GAMMA, BATCH = 256, 2, 2
MODEL = T5(
    T5Config(
        vocab_size=2048,
        emb_dim=8,
        num_heads=2,
        head_dim=8,
        mlp_dim=8,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
)
CONFIG = DecodeConfig(max_decode_length=LENGTH)


def alone(params, inputs, keys):
    return autoregressive(MODEL, params, inputs, keys, temperature=1.0, config=CONFIG)


def in_blocks(params, inputs, keys):
    return speculative(
        MODEL,
        ModelDrafter(MODEL),
        rules.get("speculative"),
        params,
        params,
        inputs,
        keys,
        alpha=0.0,
        temperature=1.0,
        config=CONFIG,
        gamma=GAMMA,
    )


@pytest.mark.parametrize(
    ("decode", "num_caches", "width"), [(alone, 1, 1), (in_blocks, 2, GAMMA + 1)]
)
def test_peak_is_caches_and_the_logits_of_a_block(decode, num_caches, width):
    params = jax.eval_shape(MODEL.init, jax.random.key(0))
    inputs = jax.ShapeDtypeStruct((BATCH, 4), jnp.int32)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), BATCH))
    cache = jax.eval_shape(lambda p, x: MODEL.prefill(p, x, LENGTH + width), params, inputs)
    caches = num_caches * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(cache))
    temporary = jax.jit(decode).lower(params, inputs, keys).compile().memory_analysis()
    logits = 4 * BATCH * MODEL.vocab_size
    assert 12 * width < LENGTH / 2  # so that the bound below excludes a buffer of all logits
    assert temporary.temp_size_in_bytes < caches + 12 * width * logits
