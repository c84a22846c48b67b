"""Does a speculative block cost what its model calls cost? Measured against separately timed calls.

    python benchmarks/speed/cost_model.py [--batches=1,8] [--temperatures=0,1] [--gamma=5]

Random weights: T5-small as the target, a small T5 as the drafter; 64 tokens in, 64 out.

    predicted = prefills + blocks * (first draft + (gamma - 1) draft steps + verification)

where the first draft feeds two tokens to the drafter, a draft step one, and the verification
gamma + 1 tokens to the target. Each is timed alone, in a loop of steps as a plain decoder makes
them: the call, the working distribution at this temperature, a token sampled at every position
that was fed. What speculation does beyond that (keeping the drafts' distributions, accepting, the
residual, committing) is the overhead that this benchmark looks for. `together` times the steps of
a whole block in turn: a drafter's step alone finds its weights in the processor's cache, which the
target's weights would have pushed out.
"""

import argparse

import common
import jax
import jax.numpy as jnp
import numpy as np

from spec_cascades import distributions as dist
from spec_cascades import rules
from spec_cascades.decoding import (
    AutoregressiveDecoder,
    DecodeConfig,
    ModelDrafter,
    PairParams,
    Prompt,
    SpeculativeDecoder,
    decode,
    row_keys,
)


def prefill_call(model, params, prompt, capacity):
    """Encodes the inputs."""
    prefill = jax.jit(lambda params, prompt: model.prefill(params, prompt, capacity))
    return lambda: jax.block_until_ready(prefill(params, prompt))


def decoding_steps(calls, prompt, steps, capacity, temperature):
    """`steps` rounds of decoding steps, in one loop.

    Args:
        calls: (model, params, width) of each step of a round, taken in turn; steps of one model
            share its cache.
        prompt: what the models have read.
        steps: rounds.
        capacity: positions of the caches.
        temperature: of the steps.
    """
    batch = len(prompt.lengths)
    models = {model: params for model, params, _ in calls}
    widths = [(model, width) for model, _, width in calls]
    uniforms = jax.random.uniform(jax.random.key(2), (steps, batch, max(w for _, w in widths), 2))

    @jax.jit
    def prefill(params):
        return [m.prefill(p, prompt, capacity) for m, p in zip(models, params, strict=True)]

    @jax.jit
    def loop(params, caches, temperature):
        def body(i, carry):
            caches, tokens = carry
            for model, width in widths:
                which = list(models).index(model)
                logits, caches[which] = model.extend(
                    params[which], caches[which], tokens[:, :width], jnp.full(batch, i, jnp.int32)
                )
                p = dist.working(logits, temperature)
                tokens = tokens.at[:, :width].set(dist.sample(p, uniforms[i, :, :width]))
            return caches, tokens

        tokens = jnp.zeros((batch, uniforms.shape[2]), jnp.int32)
        return jax.lax.fori_loop(0, steps, body, (caches, tokens))[1]

    params = list(models.values())
    caches = prefill(params)
    return lambda: jax.block_until_ready(loop(params, caches, temperature))


def measure(batch, temperature, args):
    """One row of the table."""
    target, drafter = common.t5_small(), common.tiny_drafter()
    target_params = target.init(jax.random.key(0))
    drafter_params = drafter.init(jax.random.key(1))
    prompt = Prompt.padded(common.random_inputs(batch, args.input_length))
    keys = row_keys(0, np.arange(batch))
    config = DecodeConfig(max_decode_length=args.steps, stop_ids=())
    gamma, capacity = args.gamma, args.steps + args.gamma + 1
    params, heat = PairParams(target_params, drafter_params), jnp.float32(temperature)
    decoders = {
        "speculative": SpeculativeDecoder(
            target, ModelDrafter(drafter), rules.get("speculative"), config, gamma
        ),
        "target alone": AutoregressiveDecoder(target, config),
    }
    run = jax.jit(decode, static_argnums=0)
    verification = (target, target_params, gamma + 1)
    first, draft = ((drafter, drafter_params, width) for width in (2, 1))
    rounds = {
        "verification": [verification],
        "first draft": [first],
        "draft step": [draft],
        "together": [first, *[draft] * (gamma - 1), verification],
    }
    calls = {
        name: lambda decoder=decoder: jax.block_until_ready(
            run(decoder, params, prompt, keys, temperature=heat)
        )
        for name, decoder in decoders.items()
    }
    calls |= {
        "target prefill": prefill_call(target, target_params, prompt, capacity),
        "drafter prefill": prefill_call(drafter, drafter_params, prompt, capacity),
    } | {
        name: decoding_steps(steps, prompt, args.steps, capacity, heat)
        for name, steps in rounds.items()
    }
    seconds = {
        name: float(np.median(times))
        for name, times in common.interleave(calls, args.repetitions).items()
    }
    step = {name: seconds[name] / args.steps for name in rounds}
    statistics = calls["speculative"]().statistics
    # Rows go on together: the batch needs as many blocks as its slowest row.
    blocks = int(statistics.target_calls.max())
    block = step["first draft"] + (gamma - 1) * step["draft step"] + step["verification"]
    prefills = seconds["target prefill"] + seconds["drafter prefill"]
    predicted, together = (prefills + blocks * each for each in (block, step["together"]))
    return {
        "batch": batch,
        "temperature": temperature,
        "blocks": blocks,
        "tokens per target call": float(statistics.emitted.mean() / statistics.target_calls.mean()),
        "draft step (ms)": 1e3 * step["draft step"],
        "verification (ms)": 1e3 * step["verification"],
        "predicted (ms)": 1e3 * predicted,
        "measured (ms)": 1e3 * seconds["speculative"],
        "predicted / measured": predicted / seconds["speculative"],
        "predicted together / measured": together / seconds["speculative"],
        "target alone (ms)": 1e3 * seconds["target alone"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--temperatures", default="0,1")
    parser.add_argument("--gamma", type=int, default=5)
    parser.add_argument("--input_length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    rows = [
        measure(int(batch), float(temperature), args)
        for batch in args.batches.split(",")
        for temperature in args.temperatures.split(",")
    ]
    print(common.environment("jax", "flax"))
    common.report("cost_model", rows)


if __name__ == "__main__":
    main()
