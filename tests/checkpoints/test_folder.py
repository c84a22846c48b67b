"""Model folders: what is written comes back, and what does not fit is refused by name."""

import dataclasses
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spec_cascades import checkpoints, partitioning
from spec_cascades.checkpoints import checks
from spec_cascades.models.t5 import T5, T5Config
from spec_cascades.text import vocabularies

CONFIG = T5Config(
    vocab_size=48,
    emb_dim=8,
    num_heads=2,
    head_dim=4,
    mlp_dim=16,
    num_encoder_layers=1,
    num_decoder_layers=1,
)
TEXT = [f"sentence number {i} of a little text" for i in range(60)]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "v.model"
    return vocabularies.train_sentencepiece(TEXT, path, 30)


@pytest.fixture(scope="module")
def params():
    return T5(CONFIG).init(jax.random.key(0))


@pytest.fixture
def folder(tmp_path, params, vocabulary):
    checkpoints.save(tmp_path / "m", T5(CONFIG), params, vocabulary)
    return tmp_path / "m"


def edit(folder, **changes):
    file = folder / "model.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_round_trip(folder, params, vocabulary):
    loaded = checkpoints.load(folder)
    assert loaded.model == T5(CONFIG)
    jax.tree.map(np.testing.assert_array_equal, loaded.params, params)
    assert vocabularies.difference(loaded.vocabulary, vocabulary) is None
    assert loaded.path == folder


def test_stored_and_loaded_dtypes_are_chosen_apart(tmp_path, params, vocabulary):
    checkpoints.save(tmp_path / "m", T5(CONFIG), params, vocabulary, dtype="bfloat16")
    rounded = jax.tree.map(lambda x: x.astype(jnp.bfloat16).astype(jnp.float32), params)
    wide = checkpoints.load(tmp_path / "m", dtype="float32").params
    jax.tree.map(np.testing.assert_array_equal, wide, rounded)
    stored = checkpoints.load(tmp_path / "m").params
    assert {x.dtype.name for x in jax.tree.leaves(stored)} == {"bfloat16"}
    half = checkpoints.load(tmp_path / "m", dtype="bfloat16").params
    assert {x.dtype.name for x in jax.tree.leaves(half)} == {"bfloat16"}
    with pytest.raises(ValueError, match="unknown dtype 'int4'; known: float32"):
        checkpoints.load(tmp_path / "m", dtype="int4")


def test_loading_onto_a_mesh_gives_our_shardings(folder, params):
    mesh = partitioning.make_mesh(model_parallelism=4)
    loaded = checkpoints.load(folder, mesh=mesh)
    kernel = loaded.params["decoder"]["logits_dense"]["kernel"]
    assert kernel.sharding.spec == jax.sharding.PartitionSpec(None, "model")
    jax.tree.map(np.testing.assert_array_equal, loaded.params, params)


def test_a_folder_saved_from_a_mesh_loads_on_one_device(tmp_path, params, vocabulary):
    mesh = partitioning.make_mesh(model_parallelism=2)
    sharded = partitioning.shard_params(params, T5(CONFIG), mesh)
    checkpoints.save(tmp_path / "m", T5(CONFIG), sharded, vocabulary)
    loaded = checkpoints.load(tmp_path / "m").params
    assert all(len(x.devices()) == 1 for x in jax.tree.leaves(loaded))
    jax.tree.map(np.testing.assert_array_equal, loaded, params)


def test_saving_replaces_the_model_that_was_there(folder, params, vocabulary):
    checkpoints.save(folder, T5(CONFIG), jax.tree.map(jnp.zeros_like, params), vocabulary)
    assert not any(x.any() for x in jax.tree.leaves(checkpoints.load(folder).params))


def test_byte_vocabulary_needs_no_file(tmp_path):
    model = T5(dataclasses.replace(CONFIG, vocab_size=264))
    params = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), checks.expected_params(model))
    checkpoints.save(tmp_path / "m", model, params, vocabularies.load("byte", extra_ids=5))
    assert not (tmp_path / "m" / "vocabulary.model").exists()
    assert checkpoints.load(tmp_path / "m").vocabulary.extra_ids == 5


def test_a_vocabulary_beyond_the_embedding_is_refused(tmp_path, params):
    checkpoints.save(tmp_path / "m", T5(CONFIG), params, vocabularies.load("byte"))
    with pytest.raises(ValueError, match="vocabulary has 259 pieces, but the embedding 48 rows"):
        checkpoints.load(tmp_path / "m")


def test_shapes_that_differ_are_listed(folder):
    edit(folder, config=dataclasses.asdict(CONFIG) | {"mlp_dim": 24})
    with pytest.raises(ValueError, match=r"shapes: .*wi_0/kernel is \(8, 16\), not \(8, 24\)"):
        checkpoints.load(folder)


def test_missing_and_unexpected_names_are_listed(folder):
    edit(folder, config=dataclasses.asdict(CONFIG) | {"mlp_activations": ["relu"]})
    with pytest.raises(
        ValueError, match=r"missing: .*mlp/wi/kernel.*unexpected: .*mlp/wi_0/kernel"
    ):
        checkpoints.load(folder)


def test_parameters_of_another_model_are_not_saved(tmp_path, params, vocabulary):
    other = T5(dataclasses.replace(CONFIG, num_decoder_layers=2))
    with pytest.raises(ValueError, match=r"do not fit the model: missing: .*layers_1"):
        checkpoints.save(tmp_path / "m", other, params, vocabulary)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 9}, "has format 9; this version reads format 1"),
        ({"family": "t6"}, "unknown family 't6'; known: t5"),
        ({"config": {"emb_dmi": 8}}, "unknown config field 'emb_dmi'; did you mean 'emb_dim'"),
        ({"config": None}, "is not a model description"),
        ({"family": ["t5"]}, r"unknown family \['t5'\]; known: t5"),
        ({"vocabulary": "x"}, "model.json is not a model description: its vocabulary is 'x'"),
        (
            {"vocabulary": {"kind": "byte", "extra_ids": None}},
            "extra_ids of .* is None",
        ),
        ({"vocabulary": {"kind": "sentencepiece", "file": 3}}, "no vocabulary '.*3'"),
    ],
)
def test_a_wrong_description_is_named(folder, changes, message):
    edit(folder, **changes)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        checkpoints.load(folder)


def test_a_description_that_lacks_a_size_is_named(folder):
    config = dataclasses.asdict(CONFIG)
    del config["emb_dim"]
    edit(folder, config=config)
    with pytest.raises(ValueError, match="is not a model description.*emb_dim"):
        checkpoints.load(folder)


def test_a_damaged_description_is_named(folder):
    (folder / "model.json").write_text('{"format": 1, "fam')
    with pytest.raises(ValueError, match="model.json is not a model description"):
        checkpoints.load(folder)


def test_damaged_or_missing_parameters_are_named(folder):
    for file in (folder / "params").glob("*METADATA*"):
        file.write_text("x")
    with pytest.raises(ValueError, match="is damaged|is not an Orbax checkpoint"):
        checkpoints.load(folder)
    shutil.rmtree(folder / "params")
    with pytest.raises(FileNotFoundError, match="has no params/ folder"):
        checkpoints.load(folder)


def test_truncated_arrays_are_named(folder):
    for file in (folder / "params").glob("**/d/*"):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ValueError, match="cannot be read|is damaged"):
        checkpoints.load(folder)


def test_resolve_says_where_models_are(tmp_path, folder):
    assert checkpoints.resolve(folder) == folder
    with pytest.raises(FileNotFoundError, match="no checkpoint at .*nothing: there is nothing"):
        checkpoints.resolve(tmp_path / "nothing")
    with pytest.raises(
        FileNotFoundError, match="has no model.json, config.json, .* checkpoint .it has "
    ):
        checkpoints.resolve(tmp_path)
    (tmp_path / "run").mkdir()
    folder.rename(tmp_path / "run" / "model")
    assert checkpoints.resolve(tmp_path / "run") == tmp_path / "run" / "model"


def test_a_pair_must_share_its_pieces_but_not_its_table_size(tmp_path, folder, vocabulary):
    drafter_config = dataclasses.replace(CONFIG, vocab_size=64)
    drafter = T5(drafter_config)
    checkpoints.save(tmp_path / "d", drafter, drafter.init(jax.random.key(1)), vocabulary)
    checkpoints.check_pair(checkpoints.load(folder), checkpoints.load(tmp_path / "d"))
    other = vocabularies.train_sentencepiece([t[::-1] for t in TEXT], tmp_path / "o.model", 30)
    checkpoints.save(tmp_path / "e", drafter, drafter.init(jax.random.key(1)), other)
    with pytest.raises(ValueError, match="different vocabularies: id .* must be trained"):
        checkpoints.check_pair(checkpoints.load(folder), checkpoints.load(tmp_path / "e"))
