"""Peak memory of decoding, from the compiler: no logits of whole sequences."""

import jax
import jax.numpy as jnp
import pytest

from spec_cascades import rules
from spec_cascades.decoding import (
    AutoregressiveDecoder,
    DecodeConfig,
    ModelDrafter,
    PairParams,
    SpeculativeDecoder,
    decode,
)
from spec_cascades.models import T5, Prompt, T5Config

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


ALONE = AutoregressiveDecoder(MODEL, CONFIG)
IN_BLOCKS = SpeculativeDecoder(MODEL, ModelDrafter(MODEL), rules.get("speculative"), CONFIG, GAMMA)


@pytest.mark.parametrize(
    ("decoder", "num_caches", "width"), [(ALONE, 1, 1), (IN_BLOCKS, 2, GAMMA + 1)]
)
def test_peak_is_caches_and_the_logits_of_a_block(decoder, num_caches, width):
    params = jax.eval_shape(MODEL.init, jax.random.key(0))
    prompt = Prompt(*(jax.ShapeDtypeStruct(s, jnp.int32) for s in ((BATCH, 4), (BATCH,))))
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), BATCH))
    cache = jax.eval_shape(lambda p, x: MODEL.prefill(p, x, LENGTH + width), params, prompt)
    caches = num_caches * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(cache))
    lowered = jax.jit(decode, static_argnums=0).lower(
        decoder, PairParams(params, params), prompt, keys, temperature=1.0
    )
    temporary = lowered.compile().memory_analysis()
    logits = 4 * BATCH * MODEL.vocab_size
    assert 12 * width < LENGTH / 2  # so that the bound below excludes a buffer of all logits
    assert temporary.temp_size_in_bytes < caches + 12 * width * logits


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("width", [1, 3])
def test_a_step_copies_no_cache(batch, width):
    """Writing and rolling back cost the same however long the context is."""
    length = 2000

    def steps(params, inputs):
        cache = MODEL.prefill(params, Prompt.padded(inputs), length)

        def body(_, carry):
            cache, start, tokens = carry
            logits, cache = MODEL.extend(params, cache, tokens, start)
            return cache, start + 1, jnp.argmax(logits, axis=-1).astype(jnp.int32)

        start, tokens = jnp.zeros(batch, jnp.int32), jnp.zeros((batch, width), jnp.int32)
        return jax.lax.fori_loop(0, 9, body, (cache, start, tokens))[2]

    params = jax.eval_shape(MODEL.init, jax.random.key(0))
    inputs = jax.ShapeDtypeStruct((batch, 4), jnp.int32)
    compiled = jax.jit(steps).lower(params, inputs).compile()
    entries = 4 * batch * length * MODEL.config.num_heads * MODEL.config.head_dim
    logits = 4 * batch * width * MODEL.vocab_size
    temporary = compiled.memory_analysis().temp_size_in_bytes
    # Keys and values are there once; a copy of either would be 1 more.
    assert 2 * entries <= temporary < 2.7 * entries + 2 * logits
