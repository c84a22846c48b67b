"""T5 against transformers, live (needs torch and transformers; skipped without)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from golden import t5_cases, transformers_t5  # noqa: E402
from tiny import teacher_forced  # noqa: E402

from spec_cascades.models import T5, Prompt, T5Config  # noqa: E402

TOLERANCE = 1e-4
extend = jax.jit(T5.extend, static_argnums=0)


def _config(tied, **fields):
    activations = ("relu",) if tied else ("gelu", "linear")
    return T5Config(mlp_activations=activations, logits_via_embedding=tied, **fields)


def _layers(encoder, decoder):
    return dict(num_encoder_layers=encoder, num_decoder_layers=decoder)


SIZES = {
    "one_head": _config(
        True, vocab_size=11, emb_dim=8, num_heads=1, head_dim=8, mlp_dim=8, **_layers(1, 1)
    ),
    "odd": _config(
        False, vocab_size=101, emb_dim=30, num_heads=5, head_dim=7, mlp_dim=33, **_layers(2, 3)
    ),
    "deep": _config(
        True, vocab_size=300, emb_dim=64, num_heads=4, head_dim=16, mlp_dim=96, **_layers(8, 8)
    ),
    "few_buckets": _config(
        False,
        vocab_size=50,
        emb_dim=16,
        num_heads=2,
        head_dim=8,
        mlp_dim=16,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=20,
        **_layers(2, 2),
    ),
    "t5_1_0_small": T5Config.preset("t5_1_0_small"),
    "t5_1_1_small": T5Config.preset("t5_1_1_small"),
}


@functools.lru_cache(maxsize=1)
def pair(name):
    config = SIZES[name]
    small = config.emb_dim < 512
    lengths = dict(input_length=33, length=40) if small else dict(input_length=24, length=16)
    case = t5_cases.Case(config, batch=3, seed=len(name), **lengths)
    params = t5_cases.weights(config, case.seed)
    inputs, decoder_inputs = t5_cases.token_ids(case)
    expected = transformers_t5.logits(transformers_t5.build(config, params), inputs, decoder_inputs)
    return T5(config), jax.tree.map(jnp.asarray, params), inputs, decoder_inputs, expected


@pytest.mark.parametrize("name", SIZES)
def test_full_pass(name):
    model, params, inputs, decoder_inputs, expected = pair(name)
    assert np.abs(expected).max() > 1
    logits = jax.jit(teacher_forced, static_argnums=0)(model, params, inputs, decoder_inputs)
    np.testing.assert_allclose(logits, expected, atol=TOLERANCE)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("block", [1, 4])
def test_blocks_with_rollbacks(name, block):
    """Each row keeps a random part of every block; what it drops were wrong tokens."""
    model, params, inputs, decoder_inputs, expected = pair(name)
    rows, length = decoder_inputs.shape
    random = np.random.RandomState(block)
    cache = model.prefill(params, Prompt.padded(inputs), length + block)
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
