"""What decoding costs besides its models: the loop with free models, argmax, the rule `mentored`.

    python benchmarks/speed/overhead.py

Every figure is the median of `--repetitions` rounds, in milliseconds.
"""

import argparse
import dataclasses
import functools

import common
import jax
import jax.numpy as jnp
import numpy as np

from spec_cascades import distributions as dist
from spec_cascades import rules
from spec_cascades.decoding import (
    DecodeConfig,
    ModelDrafter,
    PairParams,
    Prompt,
    SpeculativeDecoder,
    decode,
    row_keys,
)

VOCAB, GAMMA, STEPS = 32128, 5, 48


@dataclasses.dataclass(frozen=True)
class FreeModel:
    """Gives rows of its parameters as logits: one pass that writes them, as a product would."""

    vocab_size: int = VOCAB

    def prefill(self, params, prompt, capacity, rewind, prompt_capacity=None):
        """Nothing to read."""
        return jnp.zeros((prompt.lengths.shape[0], 1))

    def begin(self, prompt):
        """Token 0 at position 0."""
        zeros = jnp.zeros(prompt.lengths.shape, jnp.int32)
        return zeros, zeros

    def extend(self, params, cache, tokens, start, logits="all"):
        """Logits that depend on the tokens and on the cache a little: nothing is hoisted."""
        rows = params[: tokens.shape[1]][None]
        return rows + (tokens[..., None] & 1) * 1e-3 + cache[:, None], cache + 1e-9


def loop(batch, temperature, rule):
    """A decoding run, and the blocks that it takes."""
    model = FreeModel()
    target = 3 * jax.random.normal(jax.random.key(0), (GAMMA + 1, VOCAB))
    drafter = target + 0.3 * jax.random.normal(jax.random.key(1), target.shape)
    config = DecodeConfig(max_decode_length=STEPS, stop_ids=())
    decoder = SpeculativeDecoder(model, ModelDrafter(model), rules.get(rule), config, GAMMA)
    jitted = jax.jit(functools.partial(decode, decoder))
    prompt, keys = Prompt.padded(jnp.ones((batch, 4))), row_keys(0, np.arange(batch))
    settings = dict(alpha=jnp.float32(0.3), temperature=jnp.float32(temperature))

    def run():
        return jax.block_until_ready(jitted(PairParams(target, drafter), prompt, keys, **settings))

    return run, int(run().statistics.target_calls.max())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=9)
    args = parser.parse_args()
    calls, blocks = {}, {}
    for rule in ("speculative", "token_v3"):
        for batch in (1, 8):
            for temperature in (0, 1):
                name = f"a block, {rule}, batch {batch}, T = {temperature}"
                calls[name], blocks[name] = loop(batch, temperature, rule)
    logits = jax.random.normal(jax.random.key(0), (8, GAMMA + 1, VOCAB))
    p, q = (jax.nn.softmax(3 * x) for x in (logits, logits + 0.3 * logits[::-1]))
    tokens = jnp.zeros(logits.shape[:-1], jnp.int32)
    judge = jax.jit(
        lambda q, p: rules.get("mentored").verdict(
            rules.Distributions(q, p, q, p), tokens, 0.03, tokens
        )
    )
    functions = {
        "jnp.argmax": (jax.jit(lambda x: jnp.argmax(x, axis=-1)), logits),
        "distributions.argmax": (jax.jit(dist.argmax), logits),
        "mentored": (judge, q, p),
    }
    for name, (function, *operands) in functions.items():
        label = f"{name}, [8, {GAMMA + 1}, {VOCAB}]"
        calls[label] = lambda f=function, x=operands: jax.block_until_ready(f(*x))
    seconds = common.interleave(calls, args.repetitions)
    print(common.environment("jax", "flax"))
    common.report(
        "overhead",
        [
            {"what": name, "ms": 1e3 * float(np.median(times)) / blocks.get(name, 1)}
            for name, times in seconds.items()
        ],
    )


if __name__ == "__main__":
    main()
