"""Writes checkpoints.tar.xz: small checkpoints by T5X and transformers, and their logits.

    pip install . torch==2.14.1 transformers==5.24.0
    pip install 't5x @ git+https://github.com/google-research/t5x' (and what it imports)
    JAX_PLATFORMS=cpu python tests/golden/make_checkpoints.py

The versions that made the committed file are in it, `versions.txt`. Each checkpoint `NAME` comes
with `NAME.npy`, the logits that its own code gives for `INPUTS` and `DECODER_INPUTS`.
"""

import argparse
import importlib
import importlib.metadata
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

PATH = pathlib.Path(__file__).with_name("checkpoints.tar.xz")
SIZES = dict(vocab_size=40, emb_dim=8, num_heads=2, head_dim=6, mlp_dim=16)
LAYERS = dict(num_encoder_layers=3, num_decoder_layers=2)
T5_1_0 = dict(mlp_activations=("relu",), logits_via_embedding=True)
T5_1_1 = dict(mlp_activations=("gelu", "linear"), logits_via_embedding=False)
INPUTS = np.array([[5, 9, 38, 7, 1, 0, 0], [11, 12, 13, 14, 15, 16, 1]], np.int32)
DECODER_INPUTS = np.array([[0, 3, 4, 17, 20, 8], [0, 39, 2, 9, 9, 1]], np.int32)
STEP = 7

# name -> network, its style, whether to save with Orbax, whether with optimizer state
T5X = {
    "t5x_1_1": ("t5", T5_1_1, False, True),
    "t5x_1_0": ("t5", T5_1_0, False, False),
    "t5x_1_1_scanned": ("scalable_t5", T5_1_1, False, True),
    "t5x_1_0_apart": ("scalable_t5", T5_1_0 | dict(scan_layers=False), False, False),
    "orbax_1_1": ("t5", T5_1_1, True, True),
    "orbax_1_0_scanned": ("scalable_t5", T5_1_0, True, False),
}
# name -> prefix of the class, whether tied and relu, shard size
TRANSFORMERS = {
    "hf_t5_1_0": ("T5", True, "5GB"),
    "hf_t5_1_1": ("T5", False, "4KB"),
    "hf_mt5": ("MT5", False, "5GB"),
    "hf_umt5": ("UMT5", False, "5GB"),
}


def random_like(tree, seed):
    """Numbers of a size that makes logits of about 1, so that every parameter matters."""
    import jax
    import jax.numpy as jnp

    random = np.random.RandomState(seed)

    def leaf(x):
        values = random.standard_normal(x.shape) * (0.4 if x.ndim > 1 else 0.2)
        return jnp.asarray(values + (1 if x.ndim == 1 else 0), x.dtype)

    return jax.tree.map(leaf, tree)


def write_t5x(folder, name, seed):
    import jax
    import jax.numpy as jnp
    import seqio
    from t5x import adafactor, checkpoints, models, partitioning, utils

    package, style, orbax_too, optimizer = T5X[name]
    network = importlib.import_module(f"t5x.examples.{package}.network")
    config = network.T5Config(**SIZES, **LAYERS, **style, dropout_rate=0.0, dtype="float32")
    vocabulary = seqio.ByteVocabulary()
    rules = adafactor.standard_logical_factor_rules()
    factored = adafactor.Adafactor(decay_rate=0.8, step_offset=0, logical_factor_rules=rules)
    model = models.EncoderDecoderModel(
        module=network.Transformer(config),
        input_vocabulary=vocabulary,
        output_vocabulary=vocabulary,
        optimizer_def=factored if optimizer else None,
    )
    shapes = {"encoder_input_tokens": (2, 8), "decoder_input_tokens": (2, 8)}
    types = dict.fromkeys(shapes, jnp.int32)
    partitioner = partitioning.PjitPartitioner(num_partitions=1)
    init = utils.TrainStateInitializer(
        model.optimizer_def, model.get_initial_variables, shapes, partitioner, types
    )
    state = init.from_scratch(jax.random.PRNGKey(seed)).replace_step(jnp.array(STEP))
    state = state.replace_params(random_like(state.params, seed))
    if orbax_too:
        (folder / name).mkdir()
        manager = checkpoints.OrbaxCheckpointManagerInterface(
            str(folder / name), state, partitioner, save_dtype=jnp.float32
        )
        manager.save(state)
        manager.wait_until_finished()
        manager.close()
    else:
        shape = init.global_train_state_shape
        checkpoints.Checkpointer(shape, partitioner, str(folder / name)).save(state)
    # Targets of ones: T5X masks decoder positions whose target is padding.
    targets = np.ones_like(DECODER_INPUTS)
    return model.module.apply(
        {"params": state.params}, INPUTS, DECODER_INPUTS, targets, enable_dropout=False
    )


def write_transformers(folder, name, seed):
    import torch
    import transformers

    prefix, tied, shard = TRANSFORMERS[name]
    torch.manual_seed(seed)
    model = getattr(transformers, f"{prefix}ForConditionalGeneration")(
        getattr(transformers, f"{prefix}Config")(
            vocab_size=SIZES["vocab_size"],
            d_model=SIZES["emb_dim"],
            d_kv=SIZES["head_dim"],
            d_ff=SIZES["mlp_dim"],
            num_heads=SIZES["num_heads"],
            num_layers=LAYERS["num_encoder_layers"],
            num_decoder_layers=LAYERS["num_decoder_layers"],
            feed_forward_proj="relu" if tied else "gated-gelu",
            tie_word_embeddings=tied,
            decoder_start_token_id=0,
        )
    )
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    random = np.random.RandomState(seed)
    for parameter in model.parameters():
        values = random.standard_normal(tuple(parameter.shape)) * 0.4
        values = values + 1 if parameter.ndim == 1 else values
        parameter.data = torch.from_numpy(values.astype(np.float32))
    model = model.eval()
    model.save_pretrained(folder / name, max_shard_size=shard)
    ids = torch.from_numpy(INPUTS.astype(np.int64))
    with torch.no_grad():
        output = model(
            input_ids=ids,
            attention_mask=(ids > 0).long(),
            decoder_input_ids=torch.from_numpy(DECODER_INPUTS.astype(np.int64)),
        )
    return output.logits.numpy()


def write_all(folder, names, write):
    for name in names:
        logits = np.asarray(write(folder, name, seed=len(name)))
        np.save(folder / f"{name}.npy", logits)
        print(name, logits.shape, "largest", np.abs(logits).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", help="of the work, for the processes that this one starts")
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    if options.part == "t5x":
        return write_all(options.folder, T5X, write_t5x)
    if options.part == "transformers":
        return write_all(options.folder, TRANSFORMERS, write_transformers)
    with tempfile.TemporaryDirectory() as scratch:
        # One process each: TensorFlow and torch's triton do not get along in one.
        for part in ("t5x", "transformers"):
            command = [sys.executable, __file__, f"--part={part}", f"--folder={scratch}"]
            subprocess.run(command, check=True)
        pack(pathlib.Path(scratch))
    print(PATH, PATH.stat().st_size, "bytes")


def pack(folder):
    packages = ("torch", "transformers", "jax", "flax", "orbax-checkpoint")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    (folder / "versions.txt").write_text(", ".join([*versions, "t5x of April 2026"]) + "\n")
    for file in folder.rglob("commit_success.txt"):
        file.write_text("")  # It says on which machine and when.
    with tarfile.open(PATH, "w:xz") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, arcname=path.name, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
