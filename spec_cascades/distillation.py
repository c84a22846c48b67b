"""Distillation of a drafter from its target.

A drafter is accepted where its distribution q meets the target's p: a draft stands with
probability `sum_v min(p, q) = 1 - D_TV(p, q)` under lossless speculation. So the drafter learns the
target's distributions, not the data. As in DistillSpec (Zhou et al., ICLR'24) the divergence and
the text are chosen freely: the data's targets, text that the drafter itself writes (on-policy: the
prefixes it will really be asked to continue), or a mix.

The loop, its checkpoints and its run folder are those of `spec_cascades.training`.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import pathlib
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from spec_cascades import checkpoints, partitioning, training
from spec_cascades.models.t5 import T5, T5Config

Divergence = Callable[[jax.Array, jax.Array], jax.Array]

# --- divergences: (log p of the target, log q of the drafter), each [..., V] -> [...] in nats ---


def _kl(log_a: jax.Array, log_b: jax.Array) -> jax.Array:
    return (jnp.exp(log_a) * (log_a - log_b)).sum(-1)


def forward_kl(log_p: jax.Array, log_q: jax.Array) -> jax.Array:
    """`KL(p || q)`: the drafter must cover all that the target may say."""
    return _kl(log_p, log_q)


def reverse_kl(log_p: jax.Array, log_q: jax.Array) -> jax.Array:
    """`KL(q || p)`: the drafter must not say what the target would not."""
    return _kl(log_q, log_p)


def jsd(log_p: jax.Array, log_q: jax.Array) -> jax.Array:
    """Jensen-Shannon divergence: the mean KL of p and of q from their mixture; at most log 2."""
    log_m = jnp.logaddexp(log_p, log_q) - jnp.log(2.0)
    return 0.5 * (_kl(log_p, log_m) + _kl(log_q, log_m))


def total_variation(log_p: jax.Array, log_q: jax.Array) -> jax.Array:
    """`sum_v max(0, p - q)`: the probability that a draft is rejected."""
    return 0.5 * jnp.abs(jnp.exp(log_p) - jnp.exp(log_q)).sum(-1)


DIVERGENCES: Mapping[str, Divergence] = {
    "forward_kl": forward_kl,
    "reverse_kl": reverse_kl,
    "jsd": jsd,
    "total_variation": total_variation,
}


def get_divergence(name: str) -> Divergence:
    """The divergence of that name; ValueError offers the nearest known one."""
    if name in DIVERGENCES:
        return DIVERGENCES[name]
    near = difflib.get_close_matches(name, DIVERGENCES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(DIVERGENCES)}"
    raise ValueError(f"unknown divergence {name!r}; {hint}")


# --- the loss and the text ---


def distillation_loss(
    target, drafter, divergence: str = "forward_kl", vocab_size: int | None = None
) -> training.LossFn:
    """The mean divergence per target token; `frozen` are the target's parameters.

    Args:
        target: the teacher.
        drafter: the model that learns.
        divergence: a name of `DIVERGENCES`.
        vocab_size: ids from here on are padding of the embedding tables (which may differ in
            size) and are left out; by default the smaller table.

    Returns:
        A `training.LossFn`. Its sums are `loss`, `tokens` and `acceptance`, the probability
        that lossless speculation accepts a draft, `1 - D_TV(p, q)`.
    """
    measure = get_divergence(divergence)
    size = vocab_size or min(target.vocab_size, drafter.vocab_size)

    def loss_fn(params, frozen, batch, dropout_rng):
        inputs, decoder_inputs = batch["encoder_input_tokens"], batch["decoder_input_tokens"]
        weights = batch["decoder_loss_weights"]
        p_logits = target.apply(frozen, inputs, decoder_inputs)[..., :size]
        q_logits = drafter.apply(params, inputs, decoder_inputs, dropout_rng=dropout_rng)
        log_p = jax.nn.log_softmax(jax.lax.stop_gradient(p_logits))
        log_q = jax.nn.log_softmax(q_logits[..., :size])
        total = (measure(log_p, log_q) * weights).sum()
        tokens = weights.sum()
        acceptance = ((1 - total_variation(log_p, log_q)) * weights).sum()
        sums = {"loss": total, "acceptance": acceptance, "tokens": tokens}
        return total / jnp.maximum(tokens, 1), sums

    return loss_fn


def with_targets(batch: training.Batch, tokens: jax.Array, lengths: jax.Array) -> dict:
    """Replaces a batch's targets.

    Args:
        batch: the batch whose inputs stay.
        tokens: `[B, L]` int32, generated.
        lengths: `[B]` int32, EOS included.

    Returns:
        The batch with decoder inputs (shifted right by one), targets and weights of `tokens`.
    """
    tokens = np.asarray(tokens)
    kept = np.arange(tokens.shape[1]) < np.asarray(lengths)[:, None]
    targets = np.where(kept, tokens, 0)
    return dict(batch) | {
        "decoder_input_tokens": np.pad(targets, ((0, 0), (1, 0)))[:, :-1],
        "decoder_target_tokens": targets,
        "decoder_loss_weights": kept.astype(np.float32),
    }


def on_policy_text(
    drafter,
    *,
    fraction: float,
    temperature: float = 1.0,
    vocab_size: int | None = None,
    seed: int = 0,
) -> Callable:
    """A `prepare` for `training.fit`: the drafter writes the targets of a share of the batches.

    Which batches, and every draw, depend on (seed, step) alone, so that a resumed run repeats
    them. A text is as long as the batch is wide at most: the shapes stay those of the data.

    Args:
        drafter: the model that learns.
        fraction: share of the batches, 0 to 1.
        temperature: of the sampling.
        vocab_size: ids from here on are never written.
        seed: see above.

    Raises:
        ValueError: `fraction` outside 0..1, or a negative temperature.
    """
    from spec_cascades import decoding

    if not 0 <= fraction <= 1:
        raise ValueError(f"on_policy must lie in 0..1, not {fraction}")
    if temperature < 0:
        raise ValueError(f"on_policy_temperature must not be negative, but is {temperature}")

    @functools.partial(jax.jit, static_argnames="config")
    def write(params, inputs, keys, config):
        result = decoding.autoregressive(
            drafter, params, inputs, keys, temperature=temperature, config=config
        )
        return result.tokens, result.lengths

    def prepare(step: int, params, batch):
        if np.random.default_rng((seed, step)).random() >= fraction:
            return batch
        inputs = batch["encoder_input_tokens"]
        rows, width = batch["decoder_target_tokens"].shape
        config = decoding.DecodeConfig(max_decode_length=width, vocab_size=vocab_size)
        keys = decoding.row_keys(seed, jnp.arange(rows) + step * rows)
        return with_targets(batch, *write(params, inputs, keys, config))

    return prepare


# --- the command ---


def distill(
    *,
    output_dir: str,
    task: str,
    target: str,
    config: T5Config,
    lengths: Mapping[str, int],
    steps: int,
    divergence: str = "forward_kl",
    on_policy: float = 0.0,
    on_policy_temperature: float = 1.0,
    batch_size: int = 128,
    learning_rate: float = 1e-2,
    warmup_steps: int = 500,
    schedule: str = "linear",
    optimizer: str = "adafactor",
    weight_decay: float = 0.0,
    clip_norm: float = 1.0,
    seed: int = 0,
    checkpoint_every: int = 500,
    report_every: int = 50,
    validate_every: int = 500,
    validation_split: str | None = "validation",
    validation_batches: int = 8,
    model_parallelism: int = 1,
    export_dtype: str = "float32",
) -> pathlib.Path:
    """Trains a T5 drafter to imitate a target, and writes its model folder.

    Args:
        output_dir: the run folder.
        task: a registered SeqIO task or mixture, the source of inputs (and of targets, except
            where the drafter writes them).
        target: the target's model folder.
        config: the drafter's sizes.
        lengths: `{"inputs": n, "targets": m}` in tokens, EOS included; longer ones are cut.
        steps: optimizer steps.
        divergence: "forward_kl", "reverse_kl", "jsd" or "total_variation".
        on_policy: share of the batches whose targets the drafter writes, 0 to 1.
        on_policy_temperature: at which it writes.
        batch_size: examples a step.
        learning_rate: see `training.Settings`, as for the arguments that follow.
        warmup_steps: see `training.Settings`.
        schedule: see `training.Settings`.
        optimizer: see `training.Settings`.
        weight_decay: see `training.Settings`.
        clip_norm: see `training.Settings`.
        seed: see `training.Settings`.
        checkpoint_every: see `training.Settings`.
        report_every: see `training.Settings`.
        validate_every: see `training.Settings`.
        validation_split: the task's split whose divergence is reported, or None.
        validation_batches: how many batches of it.
        model_parallelism: devices over which each parameter is spread.
        export_dtype: "float32" or "bfloat16", of the finished model folder.

    Returns:
        The path of the model folder.

    Raises:
        FileNotFoundError: no target there.
        ValueError: unknown task or divergence, settings out of range, a target that speaks
            another vocabulary than the task, or a run folder of other settings.
    """
    arguments = {name: x for name, x in locals().items() if name != "output_dir"}
    settings = training.Settings(
        **{f.name: arguments[f.name] for f in dataclasses.fields(training.Settings)}
    )
    get_divergence(divergence)
    data = training.TaskData(task=task, lengths=lengths, batch_size=batch_size, seed=seed)
    training.check_vocabulary(config.vocab_size, data.vocabulary)
    mesh = partitioning.make_mesh(model_parallelism)
    teacher = checkpoints.load(target, mesh=mesh)
    drafter = T5(config)
    checkpoints.check_pair(
        teacher, checkpoints.Loaded(drafter, None, data.vocabulary, pathlib.Path(output_dir))
    )
    size = data.vocabulary.vocab_size
    prepare = None
    if on_policy > 0:
        prepare = on_policy_text(
            drafter,
            fraction=on_policy,
            temperature=on_policy_temperature,
            vocab_size=size,
            seed=seed,
        )
    training.claim_run_dir(output_dir, {"command": "distill", **arguments})
    params = training.fit(
        drafter,
        drafter.init(jax.random.key(seed)),
        distillation_loss(teacher.model, drafter, divergence, size),
        data.training,
        run_dir=output_dir,
        settings=settings,
        validation=data.validation(validation_split, validation_batches),
        frozen=teacher.params,
        prepare=prepare,
        mesh=mesh,
        description=f"distill {task}",
    )
    path = pathlib.Path(output_dir) / "model"
    checkpoints.save(path, drafter, params, data.vocabulary, dtype=export_dtype)
    return path
