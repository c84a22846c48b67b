"""Whatever is wrong with a checkpoint is said in one line that names file and tensor."""

import json
import shutil

import numpy as np
import pytest
import seqio

from spec_cascades import checkpoints
from spec_cascades.checkpoints import arrays, formats, safetensors_files

VOCABULARY = seqio.PassThroughVocabulary(40, eos_id=1)
QUERY = "decoder.block.0.layer.0.SelfAttention.q.weight"
INDEX = "model.safetensors.index.json"


def truncate(file, share=2):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // share])


def config(folder, **changes):
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | changes))


def rewrite(folder, change):
    """Writes the tensors again, as `change` makes them."""
    file = folder / "model.safetensors"
    tensors = {name: x.whole() for name, x in safetensors_files.read(file).items()}
    change(tensors)
    safetensors_files.write(file, tensors)


def header(folder, text):
    file = folder / "model.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text.encode())


def index(folder, change):
    content = json.loads((folder / INDEX).read_text())
    change(content)
    (folder / INDEX).write_text(json.dumps(content))


def without(name):
    return lambda folder: rewrite(folder, lambda tensors: tensors.pop(name))


def with_array(name, array):
    return lambda folder: rewrite(folder, lambda tensors: tensors.update({name: array}))


def two_embeddings(tensors):
    tensors["encoder.embed_tokens.weight"] = tensors.pop("shared.weight")
    tensors["decoder.embed_tokens.weight"] = -tensors["encoder.embed_tokens.weight"]


def pytorch_only(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def chunks(folder, name="target.decoder.layers_1.mlp.wo.kernel"):
    return [x for x in (folder / "checkpoint_7" / name).iterdir() if x.name != ".zarray"]


HUGGING_FACE = {
    "truncated": (
        lambda f: truncate(f / "model.safetensors"),
        "model.safetensors is no safetensors file, or is damaged or truncated: ",
    ),
    "truncated header": (lambda f: truncate(f / "model.safetensors", 50), "truncated: "),
    "empty": (lambda f: (f / "model.safetensors").write_bytes(b""), "truncated: "),
    "no header": (lambda f: header(f, "{nonsense"), "damaged or truncated: .*header"),
    "odd header": (lambda f: header(f, '{"a": {"dtype": "F32"}}'), "truncated: .*shape"),
    "wrong size": (
        lambda f: header(f, '{"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 4]}}'),
        "model.safetensors is no safetensors file, or is damaged or truncated: ",
    ),
    "missing": (without(QUERY), f"tensors in .*model.safetensors .* missing: {QUERY}"),
    "unexpected": (with_array("pooler", np.zeros(2)), "unexpected: pooler"),
    "shape": (
        with_array(QUERY, np.zeros((12, 9), np.float32)),
        rf"{QUERY} is \(12, 9\), not \(12, 8\)",
    ),
    "dtype": (
        with_array(QUERY, np.zeros((12, 8), np.int32)),
        f"{QUERY} has the dtype I32; known: F64",
    ),
    "untied": (
        with_array("lm_head.weight", np.zeros((40, 8), np.float32)),
        "lm_head.weight differs from shared.weight, which tie_word_embeddings",
    ),
    "untied shape": (
        with_array("lm_head.weight", np.zeros((41, 8), np.float32)),
        "lm_head.weight differs from shared.weight, which tie_word_embeddings",
    ),
    "second embedding": (
        with_array("decoder.embed_tokens.weight", np.ones((40, 8), np.float32)),
        "decoder.embed_tokens.weight differs from shared.weight, but a T5 has one embedding",
    ),
    "two embeddings": (
        lambda f: rewrite(f, two_embeddings),
        "decoder.embed_tokens.weight differs from encoder.embed_tokens.weight, but",
    ),
    "other size": (lambda f: config(f, d_ff=24), r"wi.weight is \(16, 8\), not \(24, 8\)"),
    "family": (
        lambda f: config(f, model_type="llama"),
        "config.json: the model_type is 'llama'; supported: t5, mt5, umt5",
    ),
    "activation": (
        lambda f: config(f, feed_forward_proj="gated-silu"),
        "feed_forward_proj is 'gated-silu'; supported: relu",
    ),
    "activation list": (
        lambda f: config(f, feed_forward_proj=["relu"]),
        r"feed_forward_proj is \['relu'\]; supported: relu",
    ),
    "start": (
        lambda f: config(f, decoder_start_token_id=3),
        "decoder_start_token_id is 3; only 0 is supported",
    ),
    "no size": (lambda f: config(f, d_model=None), "d_model is None; a positive integer"),
    "no json": (lambda f: (f / "config.json").write_text("{"), "config.json is not JSON"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "neither model.safetensors nor"),
    "pytorch": (pytorch_only, "has pytorch_model.bin but no model.safetensors; write it with"),
    "no config": (
        lambda f: (f / "config.json").unlink(),
        "no checkpoint at .*: the folder has model.safetensors, but no config.json",
    ),
}
SHARDED = {
    "missing shard": (
        lambda f: (f / "model-00002-of-00006.safetensors").unlink(),
        r"model-00002-of-00006.safetensors is missing; \S+ wants \d+ tensors of it",
    ),
    "truncated shard": (
        lambda f: truncate(f / "model-00003-of-00006.safetensors"),
        "model-00003-of-00006.safetensors is no safetensors file, or is damaged or truncated: ",
    ),
    "tensor in another shard": (
        lambda f: index(
            f, lambda x: x["weight_map"].update({QUERY: "model-00006-of-00006.safetensors"})
        ),
        f"model-00006-of-00006.safetensors has no tensor {QUERY}",
    ),
    "no map": (lambda f: index(f, lambda x: x.clear()), "index.json has no weight_map"),
}
UNTIED = {
    "no logits": (
        lambda f: (config(f, tie_word_embeddings=False), without("lm_head.weight")(f)),
        "missing: lm_head.weight",
    ),
}
T5X = {
    "truncated": (
        lambda f: truncate(f / "checkpoint_7" / "checkpoint"),
        "checkpoint_7/checkpoint is no T5X checkpoint, or is damaged",
    ),
    "text": (
        lambda f: (f / "checkpoint_7" / "checkpoint").write_text("model_checkpoint_path: 'x'"),
        "checkpoint_7/checkpoint is no T5X checkpoint",
    ),
    "missing array": (
        lambda f: shutil.rmtree(chunks(f)[0].parent),
        "checkpoint_7: decoder/layers_1/mlp/wo/kernel cannot be read",
    ),
    "missing chunk": (
        lambda f: chunks(f)[0].unlink(),
        "decoder/layers_1/mlp/wo/kernel is damaged: 1 of its chunks are missing",
    ),
    "truncated chunk": (
        lambda f: truncate(chunks(f)[0]),
        "decoder/layers_1/mlp/wo/kernel cannot be read",
    ),
    "nothing": (
        lambda f: shutil.rmtree(f / "checkpoint_7"),
        "no checkpoint at .*the folder exists but has no .*it has nothing",
    ),
}
ORBAX = {
    "metadata": (
        lambda f: truncate(f / "checkpoint_7/state/_METADATA"),
        "checkpoint_7/state is not an Orbax checkpoint, or is damaged",
    ),
    "manifest": (
        lambda f: (f / "checkpoint_7/state/manifest.ocdbt").unlink(),
        r"checkpoint_7/state: target/\S+ cannot be read",
    ),
    "data": (
        lambda f: [truncate(x) for x in f.glob("checkpoint_7/state/**/d/*")],
        r"checkpoint_7/state: target/\S+ cannot be read",
    ),
}
CASES = [
    pytest.param(name, *case, id=f"{name}: {what}")
    for name, cases in {
        "hf_t5_1_0": HUGGING_FACE,
        "hf_t5_1_1": SHARDED,
        "hf_mt5": UNTIED,
        "t5x_1_1": T5X,
        "orbax_1_1": ORBAX,
    }.items()
    for what, case in cases.items()
]


@pytest.mark.parametrize(("name", "damage", "message"), CASES)
def test_one_clear_line(golden, tmp_path, name, damage, message):
    folder = tmp_path / name
    shutil.copytree(golden / name, folder)
    damage(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        checkpoints.load(folder, vocabulary=VOCABULARY)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1200


@pytest.mark.parametrize(
    ("tree", "names"),
    [
        (lambda m: {"params": m, "opt": {"mu": m, "nu": m}}, None),
        (lambda m: {"params": {"params": m}, "opt": {"mu": m, "nu": m}}, None),
        (lambda m: {"target": m, "state": {"a": {"v": m}}}, None),
        (lambda m: {"params": m, "ema": m}, "ema, params"),
        (lambda m: m | {"ema": m}, "at the top, ema"),
        (lambda m: {"target": m, "draft": m}, "draft, target"),
        (lambda m: {"a": m, "b": m}, "a, b"),
    ],
)
def test_the_model_in_a_tree_is_found_or_its_rivals_are_named(golden, tree, names):
    model = checkpoints.open_checkpoint(golden / "t5x_1_1").arrays
    found = arrays.flatten(tree(arrays.unflatten(model)))
    if names is None:
        assert formats._subtree(found, "x") == model
    else:
        with pytest.raises(ValueError, match=rf"x holds several models \({names}\); give a"):
            formats._subtree(found, "x")


def test_trees_of_other_models_are_named(tmp_path):
    from spec_cascades.checkpoints import t5x_files

    decoder = {"decoder": {"token_embedder": {"embedding": np.zeros((4, 2), np.float32)}}}
    t5x_files.write(tmp_path / "decoder", decoder)
    with pytest.raises(ValueError, match="is not a T5's: .*it is a decoder without an encoder"):
        checkpoints.load(tmp_path / "decoder")
    t5x_files.write(tmp_path / "vision", {"encoder": {"stem": {"kernel": np.zeros((4, 2))}}})
    with pytest.raises(ValueError, match="has no token_embedder/embedding .it has encoder/stem"):
        checkpoints.load(tmp_path / "vision")
