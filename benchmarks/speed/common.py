"""What the speed benchmarks share: models, timing, versions."""

import importlib.metadata
import json
import os
import platform
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from spec_cascades.models import T5, T5Config


def t5_small() -> T5:
    """T5 1.0 small, 60M parameters, float32: the size of all speed figures."""
    return T5(T5Config.preset("t5_1_0_small"))


def tiny_drafter() -> T5:
    """A drafter with the target's vocabulary and about a tenth of its work per token."""
    return T5(
        T5Config(
            vocab_size=32128,
            emb_dim=128,
            num_heads=2,
            head_dim=64,
            mlp_dim=512,
            num_encoder_layers=2,
            num_decoder_layers=2,
            mlp_activations=("relu",),
            logits_via_embedding=True,
        )
    )


def random_inputs(batch: int, length: int) -> jax.Array:
    """Token ids [batch, length] without padding."""
    ids = np.random.RandomState(0).randint(3, 32000, (batch, length))
    return jnp.asarray(ids, jnp.int32)


def interleave(calls: dict, repetitions: int) -> dict[str, np.ndarray]:
    """Times each call once per round, so that a busy moment of the machine meets all of them.

    Args:
        calls: name -> function without arguments that returns when its work is done.
        repetitions: rounds; the order turns by one from round to round.

    Returns:
        name -> seconds [repetitions].
    """
    names = list(calls)
    for name in names:
        start = time.perf_counter()
        calls[name]()  # compile, allocate, fill caches
        print(
            f"{name}: first call {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True
        )
    seconds = {name: [] for name in names}
    for i in range(repetitions):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            start = time.perf_counter()
            calls[name]()
            seconds[name].append(time.perf_counter() - start)
    return {name: np.array(values) for name, values in seconds.items()}


def environment(*packages: str) -> str:
    """Versions and machine, one line."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    load = os.getloadavg()[0]
    return ", ".join(
        [
            f"Python {platform.python_version()}",
            *versions,
            f"{os.cpu_count()} CPUs, load {load:.1f}",
        ]
    )


def report(name: str, rows: list[dict]) -> None:
    """Prints rows as a Markdown table, and as one JSON line for later use."""
    print(f"\n| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
    for row in rows:
        cells = [
            f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()
        ]
        print(f"| {' | '.join(cells)} |")
    print(json.dumps({name: rows}), flush=True)
