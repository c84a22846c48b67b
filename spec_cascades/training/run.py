"""Fine-tuning of a model on a SeqIO task: what `spec-cascades train` runs, and `distill` shares.

A run folder holds:

    run.json               the settings and what tells data and teacher from others; another run's
                           folder is refused
    checkpoints/<step>/    Orbax: parameters, optimizer state, step (the data position follows)
    metrics.jsonl          one line per report: step, loss, accuracy, tokens/s, validation loss
    model/                 the finished model folder (see `spec_cascades.checkpoints`)
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from spec_cascades import checkpoints, checks, partitioning, records
from spec_cascades.checkpoints import arrays
from spec_cascades.checkpoints.checks import check_table
from spec_cascades.models import T5, Prompt, T5Config
from spec_cascades.training.data import TaskData, digest
from spec_cascades.training.loop import LossFn, fit
from spec_cascades.training.optimization import Settings, warmup


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
        logits = model.score(
            params,
            Prompt.padded(batch["encoder_input_tokens"]),
            batch["decoder_target_tokens"],
            dropout_rng,
        )
        smoothing = label_smoothing if dropout_rng is not None else 0.0
        return cross_entropy(
            logits, batch["decoder_target_tokens"], batch["decoder_loss_weights"], smoothing
        )

    return loss_fn


def claim_run_dir(
    path: str | pathlib.Path,
    settings: Mapping[str, Any],
    sources: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Writes the settings into a new run folder, or checks them against an old one's.

    Args:
        path: the run folder.
        settings: of the run.
        sources: what the run reads, by its name in words, each with a "digest" and perhaps a
            number of "examples".

    Raises:
        ValueError: the folder is another run's (the message lists what differs), or its run.json
            is damaged.
    """
    path = pathlib.Path(path)
    plain = json.loads(json.dumps(dict(settings), default=_plain))
    file = path / "run.json"
    if file.exists():
        old = _read_settings(file)
        _check_sources(path, old.pop("sources", {}), sources or {})
        differing = sorted(n for n in {*old, *plain} if old.get(n) != plain.get(n))
        if differing:
            changes = ", ".join(f"{n}: {old.get(n)!r} -> {plain.get(n)!r}" for n in differing)
            raise ValueError(
                f"{path} holds a run of other settings ({changes}); choose another output_dir"
            )
        return
    if sources:
        plain["sources"] = {name: dict(source) for name, source in sources.items()}
    records.write_atomically(file, json.dumps(plain, indent=1) + "\n")


def _check_sources(path: pathlib.Path, old: Mapping, new: Mapping) -> None:
    """Raises ValueError where data or teacher are no longer those the run began with."""
    for name in new:
        # A folder of a version that recorded no digests has nothing to compare.
        if name not in old or old[name] == new[name]:
            continue
        counts = [source.get("examples") for source in (old[name], new[name])]
        said = f" ({counts[0]} examples then, {counts[1]} now)" if counts[0] != counts[1] else ""
        raise ValueError(
            f"{name} has changed since the run in {path} began{said}: bring back what it was, or "
            "choose another output_dir"
        )


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

    def sources(self) -> dict[str, dict[str, Any]]:
        """The data, as `claim_run_dir` compares it: exchanged, it is another run."""
        splits = dict.fromkeys(["train", self.validation_split])
        return {
            f"the {split} split of task {self.task!r}": digest(self.task, split)
            for split in splits
            if split is not None
        }

    def claim(self, command: str) -> None:
        """Makes the run folder this run's, before anything expensive; see `claim_run_dir`.

        Args:
            command: "train" or "distill", recorded in run.json.
        """
        settings = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        settings.pop("output_dir")
        settings["warmup_steps"] = warmup(self)
        claim_run_dir(self.output_dir, {"command": command, **settings}, self.sources())

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
