"""The training loop, which `train` and `distill` share.

`fit` knows neither SeqIO nor what is learned: a loss function and batches of arrays go in,
parameters come out. A run can be killed at any moment; started again with the same arguments it
goes on from its last checkpoint, and ends with bit-identical parameters.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax

from spec_cascades import checkpoints, partitioning, progress, records
from spec_cascades.training.data import Batch
from spec_cascades.training.optimization import Settings, make_optimizer

Params = Any
# (params, frozen, batch, dropout key or None) -> (loss to minimise, sums to report). `frozen` is
# whatever the loss needs beside the trained parameters: the teacher's, in distillation.
LossFn = Callable[[Params, Any, Batch, jax.Array | None], tuple[jax.Array, dict[str, jax.Array]]]


@flax.struct.dataclass
class TrainState:
    """What a step changes, and what a checkpoint holds.

    Attributes:
        step: int32 scalar, steps taken so far.
        params: the trained parameters, float32.
        opt_state: optax's state.
    """

    step: jax.Array
    params: Params
    opt_state: optax.OptState


def make_train_step(loss_fn: LossFn, optimizer: optax.GradientTransformation):
    """A jitted `(state, frozen, batch, key) -> (state, sums)`; the old state is donated."""

    def train_step(state: TrainState, frozen, batch, key):
        # Folding in the step makes a resumed run draw what an uninterrupted one would.
        dropout_rng = jax.random.fold_in(key, state.step)
        grads, sums = jax.grad(loss_fn, has_aux=True)(state.params, frozen, batch, dropout_rng)
        updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        return TrainState(step=state.step + 1, params=params, opt_state=opt_state), sums

    return jax.jit(train_step, donate_argnums=0)


def init_state(
    model, optimizer: optax.GradientTransformation, params: Params, mesh: jax.sharding.Mesh
) -> TrainState:
    """A fresh state on `mesh`: optimizer moments are sharded like their parameters."""
    shardings = partitioning.param_shardings(model, mesh)
    replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    # Steps donate the state, and what is donated is deleted: it must not share the caller's memory.
    params = jax.tree.map(
        lambda x, sharding: jax.device_put(jnp.copy(x), sharding, may_alias=False),
        params,
        shardings,
    )
    abstract = jax.eval_shape(optimizer.init, params)
    state_shardings = optax.tree_map_params(
        optimizer,
        # Adafactor's factored moments have fewer dimensions than their parameter.
        lambda leaf, param, sharding: sharding if leaf.shape == param.shape else replicated,
        abstract,
        params,
        shardings,
        transform_non_params=lambda _: replicated,
    )
    opt_state = jax.jit(optimizer.init, out_shardings=state_shardings)(params)
    step = jax.device_put(jnp.zeros((), jnp.int32), replicated)
    return TrainState(step=step, params=params, opt_state=opt_state)


def fit(
    model,
    params: Params,
    loss_fn: LossFn,
    batches: Callable[[int], Iterable[Batch]],
    *,
    run_dir: str | pathlib.Path,
    settings: Settings,
    validation: Callable[[], Iterable[Batch]] | None = None,
    frozen: Any = None,
    prepare: Callable[[int, Params, Batch], Batch] | None = None,
    mesh: jax.sharding.Mesh | None = None,
    description: str = "train",
) -> Params:
    """Minimises `loss_fn` over `batches`; returns the parameters after the last step.

    Args:
        model: the model whose parameters are learned (its logical axes shard them).
        params: the initial parameters, which stay as they are; ignored where the folder has a
            checkpoint.
        loss_fn: see `LossFn`.
        batches: gives the training batches from a step on (0: from the first), the same ones
            each time, so that a resumed run sees what an uninterrupted one would.
        run_dir: see the module's text.
        settings: see `Settings`.
        validation: gives the (finite) validation batches.
        frozen: handed to `loss_fn`.
        prepare: called with (step, parameters, batch) before each step; may replace the batch
            (on-policy distillation writes the targets anew).
        mesh: devices to use; all, as data parallel replicas, by default.
        description: heads the progress bar.

    Raises:
        ValueError: a checkpoint of other parameters in `run_dir`, a batch that the mesh's data
            axis does not divide, or a loss or parameters that are no longer finite (then the last
            good checkpoint stays).
    """
    run_dir = pathlib.Path(run_dir)
    mesh = mesh or partitioning.make_mesh()
    optimizer = make_optimizer(settings)
    state = init_state(model, optimizer, params, mesh)
    key = jax.random.key(settings.seed)
    train_step = make_train_step(loss_fn, optimizer)
    eval_step = jax.jit(lambda params, frozen, batch: loss_fn(params, frozen, batch, None)[1])

    with checkpoints.manager(run_dir / "checkpoints") as manager:
        if manager.latest_step() is not None:
            state = checkpoints.restore_state(manager, state)
        first = int(state.step)
        log = _MetricsLog(run_dir / "metrics.jsonl", first, settings.steps, description)
        data = itertools.islice(batches(first), settings.steps - first)
        for step, batch in enumerate(data, start=first):
            if prepare is not None:
                batch = prepare(step, state.params, batch)
            state, sums = train_step(state, frozen, _on_mesh(batch, mesh), key)
            log.add(sums)
            done = step + 1
            last = done == settings.steps
            if done % settings.report_every == 0 or last:
                log.report(done)
            if validation is not None and (done % settings.validate_every == 0 or last):
                log.validate(
                    done,
                    (eval_step(state.params, frozen, _on_mesh(b, mesh)) for b in validation()),
                )
            if done % settings.checkpoint_every == 0 or last:
                _check_finite(state, done, manager.latest_step())
                checkpoints.save_state(manager, done, state)
        log.close()
    if int(state.step) < settings.steps:
        raise ValueError(
            f"the training data ended after {int(state.step)} batches; steps={settings.steps}"
        )
    return state.params


@jax.jit
def _is_finite(tree: Any) -> jax.Array:
    return jnp.all(jnp.array([jnp.isfinite(x).all() for x in jax.tree.leaves(tree)]))


def _check_finite(state: TrainState, step: int, last: int | None) -> None:
    """Raises ValueError for a state that must not take a good checkpoint's place."""
    if not _is_finite(state):
        kept = (
            "no checkpoint was written" if last is None else f"checkpoint {last} is the last good"
        )
        raise ValueError(
            f"the parameters are no longer finite at step {step} ({kept}): "
            "lower learning_rate or clip_norm"
        )


def _on_mesh(batch: Batch, mesh: jax.sharding.Mesh) -> dict[str, jax.Array]:
    rows, replicas = len(batch["encoder_input_tokens"]), mesh.shape["data"]
    if rows % replicas:
        raise ValueError(f"a batch of {rows} rows does not divide over {replicas} data replicas")
    sharding = partitioning.batch_sharding(mesh)
    return {name: jax.device_put(np.asarray(x), sharding) for name, x in batch.items()}


class _MetricsLog:
    """metrics.jsonl and the progress bar; sums stay on the device between reports."""

    def __init__(self, path: pathlib.Path, first: int, steps: int, description: str):
        records.write_atomically(path, "".join(_lines_up_to(path, first)))
        self._file = path.open("a", encoding="utf-8")
        self._bar = progress.bar(steps, initial=first, unit="step", description=description)
        self._description = description
        self._shown: dict[str, str] = {}
        self._restart()

    def _restart(self):
        self._sums, self._since = [], time.monotonic()

    def add(self, sums):
        self._sums.append(sums)
        done = f"{self._description}, step {self._bar.n + 1}/{self._bar.total}"
        self._bar.set_description_str(done, refresh=False)
        self._bar.update()

    def report(self, step: int):
        mean, tokens = _mean(self._sums)
        if not np.isfinite(mean["loss"]):
            raise ValueError(
                f"the loss is {mean['loss']} at step {step}: lower learning_rate or clip_norm"
            )
        seconds = time.monotonic() - self._since
        self._write({"step": step, **mean, "tokens_per_second": round(tokens / seconds, 1)})
        self._shown |= {"loss": f"{mean['loss']:.3f}", "tokens/s": f"{tokens / seconds:.0f}"}
        self._bar.set_postfix(self._shown, refresh=False)
        self._restart()

    def validate(self, step: int, sums: Iterable[dict]):
        mean, _ = _mean(list(sums))
        self._write({"step": step, **{f"validation_{name}": x for name, x in mean.items()}})
        self._shown |= {"val": f"{mean['loss']:.3f}"}
        self._bar.set_postfix(self._shown, refresh=False)
        self._restart()

    def _write(self, row: dict):
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def close(self):
        self._bar.close()
        self._file.close()


def _mean(sums: list[dict]) -> tuple[dict[str, float], float]:
    """Sums over batches -> (mean loss and accuracy per token, tokens)."""
    total = {name: float(sum(float(s[name]) for s in sums)) for name in sums[0]}
    tokens = total.pop("tokens")
    names = {"correct": "accuracy"}
    return {names.get(n, n): round(x / max(tokens, 1), 6) for n, x in total.items()}, tokens


def _lines_up_to(path: pathlib.Path, step: int) -> list[str]:
    """The metrics of a killed run that its last checkpoint still stands behind."""
    if not path.exists():
        return []
    kept = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except (json.JSONDecodeError, KeyError):
            continue  # The line being written when the run was killed.
    return kept
