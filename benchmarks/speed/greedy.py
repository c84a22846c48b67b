"""Greedy decoding of T5-small: ours, T5X's own decoder and transformers' generate, interleaved.

    python benchmarks/speed/greedy.py [--systems=ours,t5x,transformers] [--batches=1,8]

Random weights, the same in all three; float32; 64 input tokens; 64 steps, with EOS impossible.
See README.md in this folder for what has to be installed.
"""

import argparse
import functools
import pathlib
import sys

import common
import jax
import jax.numpy as jnp
import numpy as np

from spec_cascades.decoding import (
    AutoregressiveDecoder,
    DecodeConfig,
    PairParams,
    Prompt,
    decode,
    row_keys,
)

NO_EOS = 40_000  # beyond the vocabulary


def ours(model, params, inputs, steps):
    """Greedy `spec_cascades.decoding.AutoregressiveDecoder`, jitted."""
    config = DecodeConfig(max_decode_length=steps, stop_ids=())
    decoder = AutoregressiveDecoder(model, config)
    run = jax.jit(functools.partial(decode, decoder))
    prompt, keys = Prompt.padded(inputs), row_keys(0, np.arange(len(inputs)))
    both = PairParams(params)
    return lambda: np.asarray(run(both, prompt, keys, temperature=jnp.float32(0.0)).tokens)


def t5x(model, params, inputs, steps):
    """`EncoderDecoderModel.predict_batch_with_aux` with its greedy `temperature_sample`, jitted."""
    import seqio
    from t5x import decoding, models
    from t5x.examples.t5 import network

    cfg = model.config
    theirs = network.Transformer(
        network.T5Config(
            vocab_size=cfg.vocab_size,
            emb_dim=cfg.emb_dim,
            num_heads=cfg.num_heads,
            num_encoder_layers=cfg.num_encoder_layers,
            num_decoder_layers=cfg.num_decoder_layers,
            head_dim=cfg.head_dim,
            mlp_dim=cfg.mlp_dim,
            mlp_activations=cfg.mlp_activations,
            logits_via_embedding=cfg.logits_via_embedding,
            dropout_rate=0.0,
            dtype=cfg.dtype,
        )
    )
    vocabulary = seqio.ByteVocabulary()  # only its ids are asked for
    wrapped = models.EncoderDecoderModel(
        theirs,
        vocabulary,
        vocabulary,
        None,
        decode_fn=functools.partial(decoding.temperature_sample, temperature=0.0),
    )
    batch = {
        "encoder_input_tokens": inputs,
        "decoder_input_tokens": jnp.zeros((len(inputs), steps), jnp.int32),
    }
    decode = jax.jit(
        lambda params, batch: wrapped.predict_batch_with_aux(
            params, batch, decoder_params={"eos_id": NO_EOS}
        )[0]
    )
    return lambda: np.asarray(decode(params, batch))


def transformers(model, params, inputs, steps):
    """`T5ForConditionalGeneration.generate`, greedy, with its key-value cache."""
    import torch

    sys.path.append(str(pathlib.Path(__file__).parents[2] / "tests" / "golden"))
    import transformers_t5

    theirs = transformers_t5.build(model.config, params)
    ids = torch.from_numpy(np.array(inputs, np.int64))
    theirs.generation_config.eos_token_id = None

    def decode():
        with torch.inference_mode():
            output = theirs.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=steps,
            )
        return output[:, 1:].numpy()  # without BOS

    return decode


SYSTEMS = {"ours": ours, "t5x": t5x, "transformers": transformers}
PACKAGES = {"ours": ["jax", "flax"], "t5x": ["seqio"], "transformers": ["torch", "transformers"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", default="ours,t5x,transformers")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--input_length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=7)
    args = parser.parse_args()
    systems = args.systems.split(",")

    model = common.t5_small()
    params = jax.tree.map(np.asarray, model.init(jax.random.key(0)))
    on_device = jax.tree.map(jnp.asarray, params)
    rows = []
    for batch in map(int, args.batches.split(",")):
        inputs = common.random_inputs(batch, args.input_length)
        calls = {
            name: SYSTEMS[name](
                model, params if name == "transformers" else on_device, inputs, args.steps
            )
            for name in systems
        }
        seconds = common.interleave(calls, args.repetitions)
        tokens = {name: call() for name, call in calls.items()}
        for name in systems:
            assert tokens[name].shape == (batch, args.steps), (name, tokens[name].shape)
            rows.append(
                {
                    "batch": batch,
                    "system": name,
                    "tokens/s (median)": batch * args.steps / float(np.median(seconds[name])),
                    "tokens/s (best)": batch * args.steps / float(seconds[name].min()),
                    "ms per step (median)": float(np.median(seconds[name])) / args.steps * 1e3,
                    "ours is faster by (median of rounds)": float(
                        np.median(seconds[name] / seconds[systems[0]])
                    ),
                    "same tokens as ours": f"{(tokens[name] == tokens[systems[0]]).mean():.0%}",
                }
            )
    print(common.environment(*(package for name in systems for package in PACKAGES[name])))
    common.report("greedy", rows)


if __name__ == "__main__":
    main()
