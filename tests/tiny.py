"""Tiny models, data and helpers that tests of several folders share."""

import json

import jax
import jax.numpy as jnp
import numpy as np

from spec_cascades.models import Prompt

LENGTH = 12


def teacher_forced(model, params, inputs, decoder_inputs, dropout_rng=None):
    """`model.score` in the terms of other implementations: inputs that end in 0, and what the
    decoder is fed (its first token, then the targets but the last)."""
    targets = jnp.pad(jnp.asarray(decoder_inputs)[:, 1:], [(0, 0), (0, 1)])
    return model.score(params, Prompt.padded(inputs), targets, dropout_rng)


def make_pair(folder):
    """Writes `target` and `drafter`, two model folders that mostly agree."""
    from spec_cascades import checkpoints
    from spec_cascades.models.t5 import T5, T5Config
    from spec_cascades.text import vocabularies

    vocabulary = vocabularies.load("byte")
    config = dict(num_heads=2, head_dim=8, num_encoder_layers=1, num_decoder_layers=1)
    for seed, (name, width) in enumerate([("target", 32), ("drafter", 16)]):
        model = T5(T5Config(vocab_size=384, emb_dim=width, mlp_dim=2 * width, **config))
        checkpoints.save(folder / name, model, _random_params(model, seed), vocabulary)


def _random_params(model, seed):
    """Random parameters by numpy: jax would compile every little step of `model.init`."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda x: rng.normal(size=x.shape).astype(np.float32) * x.shape[0] ** -0.5,
        jax.eval_shape(model.init, jax.random.key(0)),
    )


def make_data(path, count=10):
    """Writes a JSON lines file of inputs of several lengths."""
    lines = [
        json.dumps({"inputs": f"number {i} " * (1 + i % 3), "targets": f"it is {i}"})
        for i in range(count)
    ]
    path.write_text("\n".join(lines) + "\n")
