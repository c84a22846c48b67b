"""Small T5s with reproducible weights and inputs, for comparison with transformers.

Weights come from numpy's legacy generator, whose stream is frozen: the golden file holds none.
"""

import dataclasses
import pathlib

import jax
import numpy as np

from spec_cascades.models.t5 import T5, T5Config

PATH = pathlib.Path(__file__).with_name("t5.npz")


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and the shape of its input."""

    config: T5Config
    batch: int = 3
    input_length: int = 11
    length: int = 20
    seed: int = 0


def _t5_1_0(**fields):
    return T5Config(vocab_size=53, mlp_activations=("relu",), logits_via_embedding=True, **fields)


def _t5_1_1(**fields):
    return T5Config(vocab_size=53, **fields)


CASES = {
    "t5_1_0": Case(
        _t5_1_0(
            emb_dim=32,
            num_heads=4,
            head_dim=8,
            mlp_dim=64,
            num_encoder_layers=2,
            num_decoder_layers=2,
        )
    ),
    "t5_1_0_wide_heads": Case(  # heads * head_dim > emb_dim, as in T5 3B and 11B
        _t5_1_0(
            emb_dim=16,
            num_heads=3,
            head_dim=16,
            mlp_dim=40,
            num_encoder_layers=1,
            num_decoder_layers=3,
        ),
        seed=1,
    ),
    "t5_1_1": Case(  # heads * head_dim < emb_dim, as in T5 1.1 small
        _t5_1_1(
            emb_dim=32,
            num_heads=3,
            head_dim=8,
            mlp_dim=40,
            num_encoder_layers=2,
            num_decoder_layers=2,
        ),
        seed=2,
    ),
    "t5_1_1_long": Case(  # beyond the last relative bucket; more encoder than decoder, as in ByT5
        _t5_1_1(
            emb_dim=24,
            num_heads=2,
            head_dim=12,
            mlp_dim=32,
            num_encoder_layers=3,
            num_decoder_layers=1,
        ),
        batch=2,
        input_length=270,
        length=200,
        seed=3,
    ),
}


def weights(config: T5Config, seed: int):
    """Random parameters with T5X's names, the same on every machine and version."""
    random = np.random.RandomState(seed)

    def leaf(path, array):
        name, shape = path[-1].key, array.shape
        values = random.standard_normal(shape)
        if name == "scale":
            values = 1 + 0.2 * values
        elif name == "kernel":
            values = values * shape[0] ** -0.5
            if path[-2].key == "query":
                values = values * config.head_dim**-0.5
        return values.astype(np.float32)

    shapes = jax.eval_shape(T5(config).init, jax.random.key(0))
    return jax.tree_util.tree_map_with_path(leaf, shapes)


def token_ids(case: Case):
    """Inputs padded on the right to different lengths, and decoder inputs that start with BOS."""
    random = np.random.RandomState(case.seed + 100)
    vocab_size = case.config.vocab_size
    inputs = random.randint(1, vocab_size, (case.batch, case.input_length))
    for row, size in enumerate(np.linspace(case.input_length, 1, case.batch).astype(int)):
        inputs[row, size:] = 0
    decoder_inputs = random.randint(0, vocab_size, (case.batch, case.length))
    decoder_inputs[:, 0] = 0
    return inputs.astype(np.int32), decoder_inputs.astype(np.int32)
