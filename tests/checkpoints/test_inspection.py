"""`inspect` says what a checkpoint is, from its descriptions alone."""

import shutil

import jax
import numpy as np
import pytest
import safetensors.numpy

from spec_cascades import checkpoints, main
from spec_cascades.checkpoints import arrays
from spec_cascades.models.t5 import T5, T5Config
from spec_cascades.text import vocabularies


@pytest.fixture(autouse=True)
def no_arrays(monkeypatch):
    monkeypatch.setattr(arrays, "read_part", lambda *_: pytest.fail("an array was read"))


def test_a_model_folder_is_described(capsys):
    assert main.main(["inspect", "demo/target"]) == 0
    text = capsys.readouterr().out
    for part in (
        "demo/target (model folder)",
        "emb_dim=192",
        "4,003,200 (bfloat16, 8.01 MB)",
        "SentencePiece, 1200 pieces (0 sentinels); 1200 rows in the embedding",
        "demo/drafter, demo/target",
        "decoder/layers_{0..2}/mlp/wi_0/kernel",
        "192 x 640",
    ):
        assert part in text


def test_a_pair_is_judged(golden):
    yes = checkpoints.inspect("demo/drafter", pair="demo/target")
    assert "can be a pair; the larger one, the target, is" in yes and "target\n" in yes
    no = checkpoints.inspect("demo/drafter", pair=golden / "t5x_1_1")
    assert "cannot be told: " in no and "t5x_1_1/checkpoint_7 carries no vocabulary" in no


def test_other_vocabularies_are_no_pair(golden, tmp_path):
    model = T5(
        T5Config.preset("t5_1_1_small", vocab_size=384, num_encoder_layers=1, num_decoder_layers=1)
    )
    params = jax.tree.map(
        lambda x: np.zeros(x.shape, x.dtype), jax.eval_shape(model.init, jax.random.key(0))
    )
    checkpoints.save(tmp_path / "m", model, params, vocabularies.load("byte"))
    text = checkpoints.inspect("demo/drafter", pair=tmp_path / "m")
    assert "cannot be a pair: one is a SentencePieceVocabulary, the other a ByteVocabulary" in text
    alone = checkpoints.inspect(tmp_path / "m")
    assert "probably, by the number of rows: byt5: small, base, large, xl, xxl" in alone


@pytest.mark.parametrize("name", ["t5x_1_1", "orbax_1_0_scanned", "hf_t5_1_1", "hf_umt5"])
def test_every_format_is_described(golden, name):
    text = checkpoints.inspect(golden / name)
    assert "none in the checkpoint; 40 rows in the embedding" in text
    assert "encoder/layers_{0..2}/attention/query/kernel" in text


def test_copies_of_the_embedding_are_not_compared(golden, tmp_path):
    shutil.copytree(golden / "hf_t5_1_0", tmp_path / "m")
    file = tmp_path / "m" / "model.safetensors"
    tensors = safetensors.numpy.load_file(file)
    tensors["lm_head.weight"] = tensors["shared.weight"] + 1
    safetensors.numpy.save_file(tensors, file)
    assert "logits_via_embedding=True" in checkpoints.inspect(tmp_path / "m")


def test_public_sizes_are_named():
    from spec_cascades.checkpoints import inspection

    assert inspection._presets_of(T5(T5Config.preset("t5_1_0_base"))) == ["t5_1_0_base"]
    assert inspection._presets_of(T5(T5Config.preset("mt5_xl"))) == ["mt5_xl"]
    both = ["t5_1_1_small", "flan_t5_small"]
    assert inspection._presets_of(T5(T5Config.preset("flan_t5_small"))) == both
    padded = T5Config.preset("byt5_small", vocab_size=512, dropout_rate=0.1)
    assert inspection._presets_of(T5(padded)) == ["byt5_small"]


def test_the_command_line_converts(tmp_path, capsys):
    assert main.main(["convert", "demo/drafter", str(tmp_path / "x"), "--to=hugginface"]) == 2
    assert "error: to='hugginface': one of model, huggingface" in capsys.readouterr().err
    assert main.main(["inspect", str(tmp_path / "nothing")]) == 2
    assert "error: no checkpoint at" in capsys.readouterr().err
