"""Logical axes to mesh axes, and the T5 on 8 virtual devices against one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.linen import partitioning as nn_partitioning
from jax.sharding import NamedSharding, PartitionSpec

from spec_cascades import partitioning
from spec_cascades.models import T5, Prompt, T5Config

CONFIG = T5Config(
    vocab_size=64,
    emb_dim=16,
    num_heads=4,
    head_dim=8,
    mlp_dim=32,
    num_encoder_layers=1,
    num_decoder_layers=2,
)
UNEVEN = T5Config(  # nothing but the MLP is a multiple of 4
    vocab_size=53,
    emb_dim=18,
    num_heads=3,
    head_dim=6,
    mlp_dim=32,
    num_encoder_layers=1,
    num_decoder_layers=1,
    mlp_activations=("relu",),
    logits_via_embedding=True,
)


@pytest.fixture(scope="module")
def mesh():
    return partitioning.make_mesh(model_parallelism=4)


def test_mesh_is_data_by_model(mesh):
    assert dict(mesh.shape) == {"data": 2, "model": 4}
    assert dict(partitioning.make_mesh().shape) == {"data": 8, "model": 1}
    one = partitioning.make_mesh(devices=jax.devices()[:1])
    assert dict(one.shape) == {"data": 1, "model": 1}


@pytest.mark.parametrize("parallelism", [0, 3, 16])
def test_mesh_refuses_a_size_that_does_not_divide(parallelism):
    with pytest.raises(ValueError, match=f"model_parallelism={parallelism} .* devices, 8"):
        partitioning.make_mesh(parallelism)


def test_rules_are_the_standard_ones_of_t5x():
    shape = {"data": 2, "model": 4}
    spec = functools.partial(partitioning.partition_spec, mesh_shape=shape)
    assert spec(("vocab", "embed"), (64, 16)) == PartitionSpec("model", None)
    assert spec(("embed", "mlp"), (16, 32)) == PartitionSpec(None, "model")
    assert spec(("joined_kv", "embed"), (32, 16)) == PartitionSpec("model", None)
    assert spec(("heads", "relpos_buckets"), (4, 32)) == PartitionSpec("model", None)
    assert spec(("batch", "length", "joined_kv"), (2, 9, 32)) == PartitionSpec(
        "data", None, "model"
    )


def test_sizes_that_do_not_divide_are_replicated():
    spec = partitioning.partition_spec(("batch", "heads"), (3, 6), {"data": 2, "model": 4})
    assert spec == PartitionSpec(None, None)


def test_a_mesh_axis_is_used_once_by_the_first_rule():
    spec = partitioning.partition_spec(("heads", "mlp"), (8, 8), {"data": 2, "model": 4})
    assert spec == PartitionSpec(None, "model")
    lengths = partitioning.partition_spec(
        ("length", "length"), (4, 4), {"data": 2}, [("length", "data")]
    )
    assert lengths == PartitionSpec("data", None)


def test_rules_set_for_flax_take_the_place_of_the_standard_ones():
    devices = np.reshape(jax.devices(), (2, 2, 2))
    mesh = jax.sharding.Mesh(devices, ("replica", "data", "model"))
    rules = (("batch", ("replica", "data")), ("embed", "model"), ("mlp", "model"))

    @jax.jit
    def layout(x):
        return partitioning.constrain(x, "batch", "embed")

    with jax.set_mesh(mesh), nn_partitioning.axis_rules(rules):
        assert layout(jnp.ones((8, 6))).sharding.spec == PartitionSpec(("replica", "data"), "model")


def test_wrong_axes_are_named():
    with pytest.raises(ValueError, match=r"no rule for logical axes \['head'\]"):
        partitioning.partition_spec(("head",), (4,), {"data": 2, "model": 4})
    with pytest.raises(ValueError, match="2 logical axes .* shape"):
        partitioning.partition_spec(("batch", "embed"), (4,), {"data": 2, "model": 4})


def test_replicated_parameters_are_reported(mesh, caplog):
    partitioning.param_shardings(T5(UNEVEN), mesh)
    assert "decoder/relpos_bias/rel_embedding" in caplog.text
    assert "mlp" not in caplog.text


def test_constrain_does_nothing_without_a_mesh():
    x = jnp.ones((2, 4))
    assert partitioning.constrain(x, "batch", "mlp") is x


def test_each_device_holds_its_part_of_the_parameters(mesh):
    model = T5(CONFIG)
    params = partitioning.shard_params(model.init(jax.random.key(0)), model, mesh)
    wi = params["decoder"]["layers_0"]["mlp"]["wi_0"]["kernel"]
    assert wi.sharding == NamedSharding(mesh, PartitionSpec(None, "model"))
    assert {shard.data.shape for shard in wi.addressable_shards} == {(16, 8)}


@pytest.mark.parametrize("config", [CONFIG, UNEVEN])
@pytest.mark.parametrize("batch", [4, 3])
def test_sharded_decoding_equals_one_device(config, batch, mesh):
    model = T5(config)
    params = model.init(jax.random.key(0))
    random = np.random.RandomState(0)
    inputs = random.randint(1, config.vocab_size, (batch, 6)).astype(np.int32)
    inputs[-1, 4:] = 0
    first, second = random.randint(0, config.vocab_size, (2, batch, 3)).astype(np.int32)
    start = (np.arange(batch) % 4).astype(np.int32)  # ragged, and rolling row 0 back

    @jax.jit
    def decode(params, inputs):
        cache = model.prefill(params, Prompt.padded(inputs), 8)
        one, cache = model.extend(params, cache, first, jnp.zeros(batch, jnp.int32))
        two, cache = model.extend(params, cache, second, start)
        return (one, two), cache

    expected, _ = decode(params, inputs)
    sharded = partitioning.shard_params(params, model, mesh)
    rows = partitioning.batch_sharding(mesh) if batch % 2 == 0 else None
    with jax.set_mesh(mesh):
        logits, cache = decode(sharded, inputs if rows is None else jax.device_put(inputs, rows))
    for got, wanted in zip(logits, expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)
    mesh_axes = {
        "batch": "data" if batch % 2 == 0 else None,
        "joined_kv": "model" if config.num_heads * config.head_dim % 4 == 0 else None,
        "length": None,
    }
    expected = NamedSharding(mesh, PartitionSpec(*(mesh_axes[axis] for axis in cache.layout.axes)))
    for leaf in (*cache.self_keys, *cache.self_values, *cache.cross_keys, *cache.cross_values):
        assert leaf.sharding.is_equivalent_to(expected, leaf.ndim)
