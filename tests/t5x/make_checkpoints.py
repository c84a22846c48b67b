"""Writes every kind of checkpoint, by T5X.

python make_checkpoints.py FOLDER    {target,draft}_{t5,scalable}_{legacy,orbax}/checkpoint_7
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import t5x_tiny
from t5x import checkpoints

folder = pathlib.Path(sys.argv[1])
for scanned in (False, True):
    for seed, which in enumerate(t5x_tiny.SIZES):
        start = t5x_tiny.initializer(
            t5x_tiny.reference_model(which, scanned), t5x_tiny.partitioner()
        )
        state = start.from_scratch(jax.random.PRNGKey(seed)).replace_step(jnp.array(t5x_tiny.STEP))
        stem = f"{which}_{'scalable' if scanned else 't5'}"
        legacy, orbax = (folder / f"{stem}_{kind}" for kind in ("legacy", "orbax"))
        checkpoints.Checkpointer(
            start.global_train_state_shape, t5x_tiny.partitioner(), str(legacy)
        ).save(state)
        orbax.mkdir(parents=True)
        manager = checkpoints.OrbaxCheckpointManagerInterface(
            str(orbax), state, t5x_tiny.partitioner(), save_dtype=jnp.float32
        )
        manager.save(state)
        manager.wait_until_finished()
        manager.close()
