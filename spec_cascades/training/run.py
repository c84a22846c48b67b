"""Fine-tuning of a model on a SeqIO task, and the loop that distillation shares.

`train` is what `spec-cascades train` runs: it builds the model and the data, and calls `fit`.
`fit` is the loop itself and knows neither SeqIO nor what is learned: a loss function and batches
of arrays go in, parameters come out. A run can be killed at any moment; started again with the
same arguments it goes on from its last checkpoint, and ends with bit-identical parameters.

A run folder holds:

    run.json               the settings; another run's folder is refused
    checkpoints/<step>/    Orbax: parameters, optimizer state, step (the data position follows)
    metrics.jsonl          one line per report: step, loss, accuracy, tokens/s, validation loss
    model/                 the finished model folder (see `spec_cascades.checkpoints`)
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax

from spec_cascades import checkpoints, checks, partitioning, progress, records, rules
from spec_cascades.checkpoints import arrays
from spec_cascades.checkpoints.checks import check_table
from spec_cascades.models.t5 import T5, T5Config

Params = Any
Batch = Mapping[str, np.ndarray]
# (params, frozen, batch, dropout key or None) -> (loss to minimise, sums to report). `frozen` is
# whatever the loss needs beside the trained parameters: the teacher's, in distillation.
LossFn = Callable[[Params, Any, Batch, jax.Array | None], tuple[jax.Array, dict[str, jax.Array]]]

SCHEDULES = ("constant", "linear", "cosine", "rsqrt")
OPTIMIZERS = ("adamw", "adafactor")
POOL = 16  # Batches among which `group_by_length` sorts.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how fast to learn.

    Attributes:
        steps: optimizer steps in all.
        learning_rate: the peak, reached after `warmup_steps`.
        warmup_steps: steps of linear warm-up from 0.
        schedule: what follows the warm-up: "linear" or "cosine" to 0 at `steps`, "rsqrt"
            (inverse square root of the step, T5's own), or "constant".
        optimizer: "adafactor", T5's own: its steps are relative to each parameter's size, which
            T5's embeddings of unit variance need (from scratch, on Multi30k and on the demo, it
            learned in a third to half of AdamW's steps); or "adamw", whose steps are absolute.
        weight_decay: decoupled decay of the matrices (never of norm scales), AdamW's alone.
        clip_norm: the gradient's global norm is clipped to this.
        seed: of the initial parameters, the dropout and the order of the data.
        checkpoint_every: steps between checkpoints.
        report_every: steps between lines of metrics.jsonl.
        validate_every: steps between passes over the validation batches.
    """

    steps: int
    learning_rate: float = 1e-2
    warmup_steps: int = 500
    schedule: str = "linear"
    optimizer: str = "adafactor"
    weight_decay: float = 0.0
    clip_norm: float = 1.0
    seed: int = 0
    checkpoint_every: int = 500
    report_every: int = 50
    validate_every: int = 500

    def __post_init__(self):
        for name, known in [("schedule", SCHEDULES), ("optimizer", OPTIMIZERS)]:
            if getattr(self, name) not in known:
                raise ValueError(rules.unknown(name, getattr(self, name), known))
        checks.counts(
            checkpoint_every=self.checkpoint_every,
            report_every=self.report_every,
            validate_every=self.validate_every,
        )
        if self.steps is not None:  # None stands for "not given yet", see `Run.check`
            checks.counts(steps=self.steps)
        checks.positive(learning_rate=self.learning_rate, clip_norm=self.clip_norm)
        checks.not_negative(weight_decay=self.weight_decay)
        checks.sampling(seed=self.seed)
        if self.weight_decay and self.optimizer != "adamw":
            raise ValueError(f"weight_decay={self.weight_decay} needs optimizer='adamw'")
        most = math.inf if self.steps is None else self.steps
        if not checks.is_whole(self.warmup_steps, 0) or self.warmup_steps > most:
            raise ValueError(
                f"warmup_steps must be a whole number from 0 to steps = {self.steps}, "
                f"got {self.warmup_steps!r}"
            )


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


# --- the pieces of a step ---


def learning_rate_schedule(settings: Settings) -> optax.Schedule:
    """Step -> learning rate: linear warm-up from 0, then the chosen decay."""
    peak, warmup = settings.learning_rate, settings.warmup_steps
    remaining = max(1, settings.steps - warmup)
    after = {
        "constant": optax.constant_schedule(peak),
        "linear": optax.linear_schedule(peak, 0.0, remaining),
        "cosine": optax.cosine_decay_schedule(peak, remaining),
        # `join_schedules` counts from the end of the warm-up.
        "rsqrt": lambda step: peak * jnp.sqrt(max(1, warmup) / jnp.maximum(step + warmup, 1)),
    }[settings.schedule]
    if warmup == 0:
        return after
    return optax.join_schedules([optax.linear_schedule(0.0, peak, warmup), after], [warmup])


def make_optimizer(settings: Settings) -> optax.GradientTransformation:
    """Gradient clipping followed by AdamW or Adafactor under the settings' schedule."""
    rate = learning_rate_schedule(settings)
    if settings.optimizer == "adafactor":
        inner = optax.adafactor(rate, multiply_by_parameter_scale=True, clipping_threshold=1.0)
    else:
        is_matrix = functools.partial(jax.tree.map, lambda x: x.ndim >= 2)
        inner = optax.adamw(
            rate, b1=0.9, b2=0.98, eps=1e-9, weight_decay=settings.weight_decay, mask=is_matrix
        )
    return optax.chain(optax.clip_by_global_norm(settings.clip_norm), inner)


def cross_entropy(
    logits: jax.Array, targets: jax.Array, weights: jax.Array, label_smoothing: float = 0.0
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Mean negative log-likelihood per weighted token.

    Args:
        logits: `[B, L, V]` float32.
        targets: `[B, L]` int32.
        weights: `[B, L]` float32, 0 on padding.
        label_smoothing: share of the target's mass spread evenly over the vocabulary; it
            changes the loss that is minimised, not the one that is reported.

    Returns:
        The loss, and sums over tokens: `loss` (without smoothing), `correct`, `tokens`.
    """
    log_z = jax.nn.logsumexp(logits, axis=-1)
    at_target = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    nll = log_z - at_target
    tokens = weights.sum()
    smoothed = (1 - label_smoothing) * nll + label_smoothing * (log_z - logits.mean(-1))
    correct = (logits.argmax(-1) == targets) * weights
    sums = {"loss": (nll * weights).sum(), "correct": correct.sum(), "tokens": tokens}
    return (smoothed * weights).sum() / jnp.maximum(tokens, 1), sums


def supervised_loss(model, label_smoothing: float = 0.0) -> LossFn:
    """The loss of teacher forcing on the data's own targets."""

    def loss_fn(params, frozen, batch, dropout_rng):
        del frozen
        logits = model.apply(
            params,
            batch["encoder_input_tokens"],
            batch["decoder_input_tokens"],
            dropout_rng=dropout_rng,
        )
        smoothing = label_smoothing if dropout_rng is not None else 0.0
        return cross_entropy(
            logits, batch["decoder_target_tokens"], batch["decoder_loss_weights"], smoothing
        )

    return loss_fn


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
    params = jax.tree.map(jax.device_put, params, shardings)
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


# --- batches ---


def group_by_length(
    batches: Iterable[Batch], *, multiple: int = 8, seed: int = 0, first_pool: int = 0
) -> Iterator[Batch]:
    """Regroups batches so that rows of similar length share one, and trims the padding.

    `POOL` batches at a time are sorted by length, cut again and shuffled; each is trimmed to
    its longest row rounded up to `multiple`, so that few shapes are compiled. Every row comes
    out once, and the order depends on the input and `seed` alone. An incomplete last pool (of
    a finite input) is grouped too. `first_pool` numbers the first pool read, so that a stream
    taken up in the middle is shuffled as the whole one is.
    """
    iterator = iter(batches)
    for index in itertools.count(first_pool):
        group = list(itertools.islice(iterator, POOL))
        if not group:
            return
        rows = {name: np.concatenate([batch[name] for batch in group]) for name in group[0]}
        inputs = _row_lengths(rows["encoder_input_tokens"])
        targets = _row_lengths(rows["decoder_target_tokens"])
        chunks = np.array_split(np.lexsort((targets, inputs + targets)), len(group))
        for k in np.random.default_rng((seed, index)).permutation(len(chunks)):
            chunk = chunks[k]
            width = {
                "encoder": -(-inputs[chunk].max() // multiple) * multiple,
                "decoder": -(-targets[chunk].max() // multiple) * multiple,
            }
            yield {name: x[chunk, : width[name.split("_")[0]]] for name, x in rows.items()}


def _row_lengths(tokens: np.ndarray) -> np.ndarray:
    """`[B, L]` right-padded with 0 -> `[B]`, at least 1."""
    return np.maximum((tokens != 0).sum(-1), 1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskData:
    """Batches of a SeqIO task or mixture, grouped by length.

    Attributes:
        task: name of a registered task or mixture.
        lengths: `{"inputs": n, "targets": m}`, tokens with EOS.
        batch_size: rows of a batch.
        seed: of the order.
    """

    task: str
    lengths: Mapping[str, int]
    batch_size: int
    seed: int = 0

    @property
    def vocabulary(self):
        """The vocabulary of the targets."""
        from spec_cascades import tasks

        return tasks.vocabulary(self.task)

    def training(self, start_step: int = 0) -> Iterator[Batch]:
        """Infinite shuffled batches from `start_step` on, the same ones on every call."""
        from spec_cascades import tasks

        pool, into_pool = divmod(start_step, POOL)
        batches = tasks.training_dataset(
            self.task,
            batch_size=self.batch_size,
            lengths=self.lengths,
            seed=self.seed,
            start_step=pool * POOL,
        )
        grouped = group_by_length(batches, seed=self.seed, first_pool=pool)
        return itertools.islice(grouped, into_pool, None)

    def validation(self, split: str | None, num_batches: int) -> Callable[[], list[Batch]] | None:
        """A function giving the first batches of `split`, or None where there is no split."""
        if split is None:
            return None
        from spec_cascades import tasks

        batches = tasks.validation_dataset(
            self.task,
            batch_size=self.batch_size,
            lengths=self.lengths,
            split=split,
            num_examples=num_batches * self.batch_size,
        )
        grouped = list(group_by_length(batches))
        return lambda: grouped


# --- the loop ---


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
        params: the initial parameters; ignored where the folder has a checkpoint.
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
            axis does not divide, or a loss that is no longer finite.
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
                checkpoints.save_state(manager, done, state)
        log.close()
    if int(state.step) < settings.steps:
        raise ValueError(
            f"the training data ended after {int(state.step)} batches; steps={settings.steps}"
        )
    return state.params


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


# --- the command ---


def claim_run_dir(path: str | pathlib.Path, settings: Mapping[str, Any]) -> None:
    """Writes the settings into a new run folder, or checks them against an old one's.

    Raises:
        ValueError: the folder is another run's (the message lists what differs), or its run.json
            is damaged.
    """
    path = pathlib.Path(path)
    plain = json.loads(json.dumps(dict(settings), default=_plain))
    file = path / "run.json"
    if file.exists():
        old = _read_settings(file)
        differing = sorted(n for n in {*old, *plain} if old.get(n) != plain.get(n))
        if differing:
            changes = ", ".join(f"{n}: {old.get(n)!r} -> {plain.get(n)!r}" for n in differing)
            raise ValueError(
                f"{path} holds a run of other settings ({changes}); choose another output_dir"
            )
        return
    records.write_atomically(file, json.dumps(plain, indent=1) + "\n")


def _read_settings(file: pathlib.Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{file} is damaged ({error}): choose another output_dir, or remove the file"
        ) from None


def _plain(value):
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else dict(value)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """What `train` and `distill` share: a folder, a task, a model, and how it learns.

    Attributes:
        output_dir: the run folder.
        task: a registered SeqIO task or mixture.
        config: the model's sizes; `vocab_size` must cover the task's vocabulary.
        lengths: `{"inputs": n, "targets": m}` in tokens, EOS included; longer ones are cut.
        batch_size: examples a step.
        validation_split: the task's split whose loss is reported, or None.
        validation_batches: how many batches of it.
        model_parallelism: devices over which each parameter is spread.
        export_dtype: "float32" or "bfloat16", of the finished model folder.

    Raises:
        ValueError: a setting is out of range.
    """

    output_dir: str
    task: str
    config: T5Config
    lengths: Mapping[str, int]
    batch_size: int = 128
    validation_split: str | None = "validation"
    validation_batches: int = 8
    model_parallelism: int = 1
    export_dtype: str = "float32"

    def __post_init__(self):
        super().__post_init__()
        checks.counts(
            batch_size=self.batch_size,
            validation_batches=self.validation_batches,
            model_parallelism=self.model_parallelism,
        )
        for name in ("output_dir", "task"):
            if getattr(self, name) is not None:
                checks.names(**{name: getattr(self, name)})
        arrays.as_dtype(self.export_dtype)
        if self.lengths is not None:
            if not isinstance(self.lengths, Mapping) or set(self.lengths) != {"inputs", "targets"}:
                raise ValueError(
                    f"lengths must be {{'inputs': n, 'targets': m}}, got {self.lengths!r}"
                )
            checks.counts(**{f"lengths[{key!r}]": n for key, n in self.lengths.items()})
        if self.config is not None and not isinstance(self.config, T5Config):
            raise ValueError(
                f"config must be a T5Config, such as @T5Config() in gin, got {self.config!r}"
            )

    @classmethod
    def check(cls, **some: Any) -> None:
        """Checks some settings of a run; required ones may be missing.

        Raises:
            ValueError: a setting is wrong, or the task is unknown or lacks the split.
        """
        required = [f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING]
        run = cls(**dict.fromkeys(required) | some)
        run.mesh()
        if run.task is not None:
            run.check_task()

    def check_task(self) -> None:
        """Raises ValueError unless the task is known, has its splits, and fits the model."""
        from spec_cascades import tasks

        tasks.check_split(self.task, "train")
        if self.validation_split is not None:
            try:
                tasks.check_split(self.task, self.validation_split)
            except ValueError as error:
                raise ValueError(f"{error}; with validation_split=None none is used") from None
        if self.config is not None:
            where = f"config.vocab_size for task {self.task!r}"
            check_table(self.config, self.data().vocabulary, where)

    def mesh(self) -> jax.sharding.Mesh:
        """All devices, `model_parallelism` of them to a copy of the model."""
        mesh = partitioning.make_mesh(self.model_parallelism)
        if self.batch_size % mesh.shape["data"]:
            raise ValueError(
                f"batch_size = {self.batch_size} must be a multiple of the "
                f"{mesh.shape['data']} data-parallel devices"
            )
        return mesh

    def data(self) -> TaskData:
        """The task's batches."""
        return TaskData(
            task=self.task, lengths=self.lengths, batch_size=self.batch_size, seed=self.seed
        )

    def claim(self, command: str) -> None:
        """Makes the run folder this run's, before anything expensive; see `claim_run_dir`.

        Args:
            command: "train" or "distill", recorded in run.json.
        """
        settings = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        settings.pop("output_dir")
        claim_run_dir(self.output_dir, {"command": command, **settings})

    def execute(self, command: str, model: T5, loss_fn: LossFn, **options: Any) -> pathlib.Path:
        """Fits the model in the claimed run folder, and exports it.

        Args:
            command: "train" or "distill", for the progress bar.
            model: what learns, from its initial parameters.
            loss_fn: see `LossFn`.
            **options: of `fit`.

        Returns:
            The path of the model folder.
        """
        data = self.data()
        params = fit(
            model,
            model.init(jax.random.key(self.seed)),
            loss_fn,
            data.training,
            run_dir=self.output_dir,
            settings=self,
            validation=data.validation(self.validation_split, self.validation_batches),
            mesh=self.mesh(),
            description=f"{command} {self.task}",
            **options,
        )
        path = pathlib.Path(self.output_dir) / "model"
        checkpoints.save(path, model, params, data.vocabulary, dtype=self.export_dtype)
        return path


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainRun(Run):
    """Settings of `train`: `Run`'s, and one of its own.

    Attributes:
        label_smoothing: see `cross_entropy`.
    """

    label_smoothing: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        checks.between(0, 1, label_smoothing=self.label_smoothing)


def train(run: TrainRun) -> pathlib.Path:
    """Trains a T5 on a SeqIO task or mixture and writes the model folder.

    Returns:
        The path of the model folder.

    Raises:
        ValueError: unknown task, a vocabulary larger than the model's, or a run folder of other
            settings.
    """
    run.check_task()
    run.claim("train")
    model = T5(run.config)
    return run.execute("train", model, supervised_loss(model, run.label_smoothing))
