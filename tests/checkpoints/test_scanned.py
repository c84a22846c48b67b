"""The tree of T5X's scalable_t5 becomes ours, name by name and number by number."""

import jax
import numpy as np
import pytest

from spec_cascades.checkpoints import scanned
from spec_cascades.models.t5 import T5, T5Config

CONFIG = T5Config(
    vocab_size=19,
    emb_dim=6,
    num_heads=2,
    head_dim=4,
    mlp_dim=10,
    num_encoder_layers=3,
    num_decoder_layers=2,
    shared_relative_bias=False,
)


@pytest.fixture(scope="module")
def params():
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(T5(CONFIG).init, jax.random.key(0))
    return jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), shapes)


def split_heads(layer):
    """A layer as scalable_t5 has it."""
    heads, size = CONFIG.num_heads, CONFIG.head_dim

    def split(path, x):
        names = [key.key for key in path]
        if "attention" not in names[0] or names[-1] != "kernel":
            return x
        shape = (heads, size, -1) if names[1] == "out" else (-1, heads, size)
        return x.reshape(shape)

    return jax.tree_util.tree_map_with_path(split, layer)


def scan(params):
    """The tree as scalable_t5 stores it: layers stacked on axis 1."""
    tree = dict(params)
    for stack in ("encoder", "decoder"):
        layers = [split_heads(x) for k, x in sorted(params[stack].items()) if "layers_" in k]
        rest = {k: x for k, x in params[stack].items() if "layers_" not in k}
        tree[stack] = {stack: jax.tree.map(lambda *xs: np.stack(xs, axis=1), *layers), **rest}
    return tree


def test_scanned_shapes_are_those_of_scalable_t5(params):
    stack = scan(params)["decoder"]["decoder"]
    d, n, h, k, f = CONFIG.emb_dim, CONFIG.num_decoder_layers, 2, 4, CONFIG.mlp_dim
    assert stack["self_attention"]["query"]["kernel"].shape == (d, n, h, k)
    assert stack["encoder_decoder_attention"]["out"]["kernel"].shape == (h, n, k, d)
    assert stack["mlp"]["wi_0"]["kernel"].shape == (d, n, f)
    assert stack["relpos_bias"]["rel_embedding"].shape == (h, n, 32)
    assert stack["pre_mlp_layer_norm"]["scale"].shape == (d, n)


def test_a_scanned_tree_becomes_ours(params):
    jax.tree.map(np.testing.assert_array_equal, scanned.to_per_layer(scan(params)), params)


def test_a_tree_with_heads_apart_becomes_ours(params):
    tree = dict(params)
    for stack in ("encoder", "decoder"):
        parts = params[stack].items()
        tree[stack] = {k: split_heads(x) if "layers_" in k else x for k, x in parts}
    jax.tree.map(np.testing.assert_array_equal, scanned.to_per_layer(tree), params)


def test_our_tree_stays_as_it_is(params):
    jax.tree.map(np.testing.assert_array_equal, scanned.to_per_layer(params), params)


def test_shapes_alone_are_enough(params):
    shapes = jax.eval_shape(lambda: scan(jax.tree.map(np.asarray, params)))
    expected = jax.eval_shape(T5(CONFIG).init, jax.random.key(0))
    assert scanned.to_per_layer(shapes) == expected


def test_stacks_of_different_depths_are_refused(params):
    tree = scan(params)
    tree["encoder"]["encoder"]["pre_mlp_layer_norm"]["scale"] = np.zeros((6, 5), np.float32)
    with pytest.raises(ValueError, match=r"encoder/encoder: .* pre_mlp_layer_norm/scale has 5"):
        scanned.to_per_layer(tree)
