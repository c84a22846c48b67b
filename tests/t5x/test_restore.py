"""Two checkpoints into one tree: what is read, how it is sharded, what is refused."""

import dataclasses

import jax
import numpy as np
import pytest
from flax.core import unfreeze
from flax.traverse_util import flatten_dict
from jax.sharding import PartitionSpec

from spec_cascades.checkpoints import scanned


@pytest.fixture(scope="session")
def restore(t5x):
    """restore(target config, target path, draft config, draft path) on 4 x 2 devices."""
    import t5x_tiny
    from t5x import partitioning

    from spec_cascades.t5x import CompositeCheckpointManager, SpeculativeCascadeModel

    partitioner = partitioning.PjitPartitioner(model_parallel_submesh=(1, 1, 1, 2))

    def restore(target, path, draft, draft_path, **settings):
        model = SpeculativeCascadeModel(target, draft, t5x_tiny.VOCABULARY, t5x_tiny.VOCABULARY)
        state = t5x_tiny.initializer(model, partitioner).global_train_state_shape
        manager = CompositeCheckpointManager(
            path, state, partitioner, draft_path=draft_path, **settings
        )
        return manager.restore(path)

    return restore


@pytest.fixture(scope="session")
def config(t5x):
    import t5x_tiny

    return t5x_tiny.config


@pytest.mark.parametrize("network", ["t5", "scalable"])
@pytest.mark.parametrize("kind", ["legacy", "orbax"])
def test_parameters_are_the_checkpoints(restore, config, stored, network, kind):
    from t5x import checkpoints

    is_scanned = network == "scalable"
    state = restore(
        config("target", is_scanned),
        stored("target", network, kind),
        config("draft", is_scanned),
        stored("draft", network, "orbax" if kind == "legacy" else "legacy"),
    )
    assert int(state.step) == 7
    for which in ("target", "draft"):
        raw = checkpoints.load_t5x_checkpoint(stored(which, network))["target"]
        jax.tree.map(
            np.testing.assert_array_equal, unfreeze(state.params[which]), scanned.to_per_layer(raw)
        )
    specs = {
        key: array.sharding.spec for key, array in flatten_dict(unfreeze(state.params)).items()
    }
    attention = ("target", "encoder", "layers_1", "attention")
    assert specs[(*attention, "query", "kernel")] == PartitionSpec(None, "model")
    assert specs[(*attention, "out", "kernel")] == PartitionSpec("model", None)
    assert specs[("draft", "token_embedder", "embedding")] == PartitionSpec("model", None)


def test_parameters_are_cast(restore, config, stored):
    state = restore(
        config("target", True),
        stored("target", "scalable", "orbax"),
        config("draft"),
        stored("draft"),
        restore_dtype="bfloat16",
    )
    assert {array.dtype.name for array in jax.tree.leaves(state.params)} == {"bfloat16"}


@pytest.mark.parametrize("kind", ["legacy", "orbax"])
@pytest.mark.parametrize("network", ["t5", "scalable"])
def test_a_wrong_shape_is_named_before_anything_is_read(restore, config, stored, network, kind):
    is_scanned = network == "scalable"
    wider = dataclasses.replace(config("draft", is_scanned), mlp_dim=48)
    message = (
        r"draft checkpoint \S+ do not fit the model: shapes: decoder/layers_0/mlp/wi_0/kernel is "
        r"\(16, 32\), not \(16, 48\), .* and \d more"
    )
    with pytest.raises(ValueError, match=message):
        restore(
            config("target", is_scanned),
            stored("target", network, kind),
            wider,
            stored("draft", network, kind),
        )


def test_more_or_fewer_layers_are_named(restore, config, stored):
    deeper = dataclasses.replace(config("target"), num_decoder_layers=4)
    with pytest.raises(ValueError, match="target checkpoint .* missing: decoder/layers_3/"):
        restore(deeper, stored("target"), config("draft"), stored("draft"))
    flat = dataclasses.replace(config("target"), num_decoder_layers=2)
    with pytest.raises(ValueError, match="unexpected: decoder/layers_2/"):
        restore(flat, stored("target"), config("draft"), stored("draft"))


def test_a_table_of_positions_for_each_layer_is_explained(restore, config, stored):
    with pytest.raises(ValueError, match="T5Config.shared_relative_bias = False is what the"):
        restore(config("target"), stored("target", "scalable"), config("draft"), stored("draft"))


def test_paths_are_checked(restore, config, stored, tmp_path):
    pair = (config("target"), stored("target"), config("draft"))
    with pytest.raises(FileNotFoundError, match="nowhere is no T5X checkpoint"):
        restore(*pair, "nowhere")
    with pytest.raises(FileNotFoundError, match=f"{tmp_path} is no T5X checkpoint"):
        restore(*pair, str(tmp_path))
    with pytest.raises(ValueError, match="bind DRAFT_CHECKPOINT_PATH"):
        restore(*pair, None)
    with pytest.raises(ValueError, match="the model has no drafter: bind None"):
        restore(*pair[:2], "prompt_lookup", stored("draft"))
