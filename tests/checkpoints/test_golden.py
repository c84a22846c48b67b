"""Checkpoints written by T5X and by transformers load, and give the logits of their own code."""

import shutil

import jax
import numpy as np
import pytest
import seqio
from golden import make_checkpoints
from tiny import teacher_forced

from spec_cascades import checkpoints, partitioning
from spec_cascades.checkpoints import safetensors_files
from spec_cascades.models.t5 import T5, T5Config
from spec_cascades.text import vocabularies

VOCABULARY = seqio.PassThroughVocabulary(40, eos_id=1)
apply = jax.jit(teacher_forced, static_argnums=0)


def logits(loaded):
    params = jax.device_put(loaded.params, jax.devices()[0])
    inputs = make_checkpoints.INPUTS, make_checkpoints.DECODER_INPUTS
    return apply(loaded.model, params, *inputs)


@pytest.mark.parametrize("name", [*make_checkpoints.T5X, *make_checkpoints.TRANSFORMERS])
@pytest.mark.parametrize("devices", [1, 8])
def test_logits_are_those_of_the_code_that_wrote_it(golden, name, devices):
    mesh = None if devices == 1 else partitioning.make_mesh(model_parallelism=4)
    loaded = checkpoints.load(golden / name, mesh=mesh, vocabulary=VOCABULARY)
    expected = np.load(golden / f"{name}.npy")
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(logits(loaded), expected, atol=1e-4)
    if mesh is not None:
        shardings = partitioning.param_shardings(loaded.model, mesh)
        jax.tree.map(
            lambda x, s: x.sharding.is_equivalent_to(s, x.ndim) or 1 / 0, loaded.params, shardings
        )
        assert len(loaded.params["token_embedder"]["embedding"].addressable_shards[0].data) == 10


def test_the_model_is_told_by_the_shapes(golden):
    found = checkpoints.open_checkpoint(golden / "t5x_1_0").model.config
    sizes = make_checkpoints.SIZES | make_checkpoints.LAYERS
    assert found == T5Config(**sizes, mlp_activations=("relu",), logits_via_embedding=True)
    found = checkpoints.open_checkpoint(golden / "orbax_1_0_scanned").model.config
    assert found.mlp_activations == ("relu",) and not found.shared_relative_bias


def test_a_model_that_is_given_is_checked(golden):
    config = checkpoints.open_checkpoint(golden / "t5x_1_1").model.config
    given = checkpoints.open_checkpoint(golden / "t5x_1_1", model=config)
    assert given.model == T5(config)
    with pytest.raises(
        ValueError, match=r"missing: .*layers_10.*shapes: .*is \(8,\), not \(768,\)"
    ):
        checkpoints.open_checkpoint(golden / "t5x_1_1", model="flan_t5_base")
    with pytest.raises(ValueError, match="did you mean 'flan_t5_base'"):
        checkpoints.open_checkpoint(golden / "t5x_1_1", model="flan_t5_bas")


def test_the_newest_step_is_meant(golden, tmp_path):
    shutil.copytree(golden / "t5x_1_1", tmp_path / "run")
    shutil.copytree(golden / "t5x_1_0" / "checkpoint_7", tmp_path / "run" / "checkpoint_10")
    assert checkpoints.resolve(tmp_path / "run") == tmp_path / "run" / "checkpoint_10"
    assert checkpoints.resolve(tmp_path / "run" / "checkpoint_7").name == "checkpoint_7"


def test_an_incomplete_newest_step_is_named(golden, tmp_path):
    shutil.copytree(golden / "t5x_1_1", tmp_path / "run")
    (tmp_path / "run" / "checkpoint_10").mkdir()
    with pytest.raises(FileNotFoundError, match="newest step, checkpoint_10, is incomplete .no m"):
        checkpoints.resolve(tmp_path / "run")
    assert checkpoints.resolve(tmp_path / "run" / "checkpoint_7").name == "checkpoint_7"


def test_a_checkpoint_without_a_vocabulary_asks_for_one(golden):
    with pytest.raises(ValueError, match="t5x_1_1/checkpoint_7 carries no vocabulary; name one"):
        checkpoints.load(golden / "t5x_1_1")


@pytest.mark.parametrize("name", ["t5x_1_1", "orbax_1_1"])
def test_a_file_gets_the_sentinels_that_the_table_has_room_for(golden, tmp_path, monkeypatch, name):
    """T5's 32000 pieces and table of 32128 rows, scaled down."""
    monkeypatch.setattr(vocabularies, "USUAL_SENTINELS", 8)
    lines = [f"{text} of {i} words" for text in ("a short text", "some more") for i in range(40)]
    file = tmp_path / "cc.model"
    vocabularies.train_sentencepiece(lines, file, 28)
    for vocabulary in (str(file), file):
        assert checkpoints.read_vocabulary(golden / name, vocabulary).vocab_size == 36
    assert checkpoints.load(golden / name, vocabulary=file).vocabulary.extra_ids == 8
    given = vocabularies.load(file)
    assert checkpoints.load(golden / name, vocabulary=given).vocabulary is given
    checkpoints.convert(golden / name, tmp_path / "m", to="model", vocabulary=file)
    assert checkpoints.load(tmp_path / "m").vocabulary.extra_ids == 8
    other = checkpoints.read_vocabulary(golden / name, tmp_path / "m")  # a folder says it itself
    assert other.extra_ids == 8


def test_the_dtype_is_cast_as_asked(golden):
    half = checkpoints.load(golden / "hf_umt5", dtype="bfloat16", vocabulary=VOCABULARY).params
    assert {x.dtype.name for x in jax.tree.leaves(half)} == {"bfloat16"}
    full = checkpoints.load(golden / "hf_umt5", vocabulary=VOCABULARY).params
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b.astype(a.dtype)), half, full)


def test_one_table_may_serve_as_embedding_and_as_unscaled_logits(golden, tmp_path):
    """As transformers 5 stores a new model that was made with tie_word_embeddings=False."""
    folder = tmp_path / "m"
    shutil.copytree(golden / "hf_mt5", folder)
    stored = safetensors_files.read(folder / "model.safetensors")
    tensors = {name: x.whole() for name, x in stored.items() if name != "lm_head.weight"}
    safetensors_files.write(folder / "model.safetensors", tensors)
    params = checkpoints.load(folder, vocabulary=VOCABULARY).params
    embedding = params["token_embedder"]["embedding"]
    np.testing.assert_array_equal(params["decoder"]["logits_dense"]["kernel"], embedding.T)
