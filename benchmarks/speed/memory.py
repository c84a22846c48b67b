"""Peak memory of decoding, from the compiler: parameters, caches, and what else is alive.

    python benchmarks/speed/memory.py [--batches=1,8] [--lengths=64,256] [--gamma=5]

Compiles T5-small decoding alone and speculatively, and runs nothing. `rest` is what the program
holds at its peak beyond parameters and caches; it is to grow with batch x gamma x vocabulary and
not with the output's length.
"""

import argparse

import common
import jax
import jax.numpy as jnp

from spec_cascades import rules
from spec_cascades.decoding import (
    AutoregressiveDecoder,
    DecodeConfig,
    ModelDrafter,
    PairParams,
    Prompt,
    SpeculativeDecoder,
    decode,
)


def size(tree) -> int:
    """Bytes of a tree of arrays or shapes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def measure(method, batch, length, args):
    """One row of the table; all sizes in MB."""
    target, drafter = common.t5_small(), common.tiny_drafter()
    shapes = ((batch, args.input_length), (batch,))
    prompt = Prompt(*(jax.ShapeDtypeStruct(shape, jnp.int32) for shape in shapes))
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), batch))
    config = DecodeConfig(max_decode_length=length)
    models = {"autoregressive": [target], "speculative": [target, drafter]}[method]
    params = [jax.eval_shape(model.init, jax.random.key(0)) for model in models]

    decoder = {
        "autoregressive": AutoregressiveDecoder(target, config),
        "speculative": SpeculativeDecoder(
            target, ModelDrafter(drafter), rules.get("speculative"), config, args.gamma
        ),
    }[method]
    lowered = jax.jit(decode, static_argnums=0).lower(
        decoder, PairParams(*params), prompt, keys, temperature=1.0
    )
    analysis = lowered.compile().memory_analysis()
    positions = length + (args.gamma if method == "speculative" else 0) + 1
    caches = sum(
        size(jax.eval_shape(lambda p, x, m=model: m.prefill(p, x, positions), p, prompt))
        for model, p in zip(models, params, strict=True)
    )
    peak = (
        analysis.argument_size_in_bytes
        + analysis.temp_size_in_bytes
        + analysis.output_size_in_bytes
        - analysis.alias_size_in_bytes
    )
    vocabulary = 4 * batch * target.vocab_size
    width = args.gamma + 1 if method == "speculative" else 1
    rest = peak - size(params) - caches
    return {
        "method": method,
        "batch": batch,
        "length": length,
        "peak": peak / 1e6,
        "parameters": size(params) / 1e6,
        "caches": caches / 1e6,
        "rest": rest / 1e6,
        "rest / (batch x width x V x 4 bytes)": rest / (vocabulary * width),
        "batch x length x V x 4 bytes": vocabulary * length / 1e6,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--lengths", default="64,256")
    parser.add_argument("--gamma", type=int, default=5)
    parser.add_argument("--input_length", type=int, default=64)
    args = parser.parse_args()
    rows = [
        measure(method, int(batch), int(length), args)
        for method in ("autoregressive", "speculative")
        for batch in args.batches.split(",")
        for length in args.lengths.split(",")
    ]
    print(common.environment("jax", "flax"))
    common.report("memory", rows)


if __name__ == "__main__":
    main()
