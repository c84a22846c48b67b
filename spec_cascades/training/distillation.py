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
import functools
import pathlib
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from spec_cascades import checkpoints, checks, rules
from spec_cascades.checkpoints import digests, loading, pair
from spec_cascades.models import T5, Prompt
from spec_cascades.training.data import Batch
from spec_cascades.training.loop import LossFn
from spec_cascades.training.run import Run

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
    raise ValueError(rules.unknown("divergence", name, tuple(DIVERGENCES)))


# --- the loss and the text ---


def distillation_loss(
    target, drafter, divergence: str = "forward_kl", vocab_size: int | None = None
) -> LossFn:
    """The mean divergence per target token; `frozen` are the target's parameters.

    Args:
        target: the teacher.
        drafter: the model that learns.
        divergence: a name of `DIVERGENCES`.
        vocab_size: ids from here on are padding of the embedding tables (which may differ in
            size) and are left out; by default the smaller table.

    Returns:
        A `loop.LossFn`. Its sums are `loss`, `tokens` and `acceptance`, the probability
        that lossless speculation accepts a draft, `1 - D_TV(p, q)`.
    """
    measure = get_divergence(divergence)
    size = vocab_size or min(target.vocab_size, drafter.vocab_size)

    def loss_fn(params, frozen, batch, dropout_rng):
        prompt = Prompt.padded(batch["encoder_input_tokens"])
        targets, weights = batch["decoder_target_tokens"], batch["decoder_loss_weights"]
        p_logits = target.score(frozen, prompt, targets)[..., :size]
        q_logits = drafter.score(params, prompt, targets, dropout_rng)
        log_p = jax.nn.log_softmax(jax.lax.stop_gradient(p_logits))
        log_q = jax.nn.log_softmax(q_logits[..., :size])
        total = (measure(log_p, log_q) * weights).sum()
        tokens = weights.sum()
        acceptance = ((1 - total_variation(log_p, log_q)) * weights).sum()
        sums = {"loss": total, "acceptance": acceptance, "tokens": tokens}
        return total / jnp.maximum(tokens, 1), sums

    return loss_fn


def with_targets(batch: Batch, tokens: jax.Array, lengths: jax.Array) -> dict:
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
    """A `prepare` for `loop.fit`: the drafter writes the targets of a share of the batches.

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

    checks.between(0, 1, on_policy=fraction)
    checks.sampling(temperature=temperature)

    @functools.partial(jax.jit, static_argnames="config")
    def write(params, inputs, keys, config):
        decoder = decoding.AutoregressiveDecoder(drafter, config, "drafter")
        result = decoding.decode(
            decoder,
            decoding.PairParams(drafter=params),
            Prompt.padded(inputs),
            keys,
            temperature=temperature,
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistillRun(Run):
    """Settings of `distill`: `Run`'s, of the drafter, and a few of its own.

    Attributes:
        target: the target; see `checkpoints.load`.
        divergence: "forward_kl", "reverse_kl", "jsd" or "total_variation".
        on_policy: share of the batches whose targets the drafter writes, 0 to 1.
        on_policy_temperature: at which it writes.
        vocabulary: of a target that carries none.
    """

    target: str
    divergence: str = "forward_kl"
    on_policy: float = 0.0
    on_policy_temperature: float = 1.0
    vocabulary: str | None = None

    def __post_init__(self):
        super().__post_init__()
        get_divergence(self.divergence)
        checks.between(0, 1, on_policy=self.on_policy)
        checks.sampling(temperature=self.on_policy_temperature)
        if self.target is not None:
            checks.names(target=self.target)
            checkpoints.resolve(self.target)

    def sources(self) -> dict[str, dict]:
        """The data and the teacher."""
        teacher = {"digest": digests.of_checkpoint(self.target)}
        return super().sources() | {f"the target {self.target}": teacher}


def distill(run: DistillRun) -> pathlib.Path:
    """Trains a T5 drafter to imitate a target, and writes its model folder.

    Returns:
        The path of the model folder.

    Raises:
        ValueError: unknown task, a target that speaks another vocabulary than the task, or a run
            folder of other settings.
    """
    from spec_cascades import tasks

    run.check_task()
    pair.check_vocabularies(
        run.target, None, run.vocabulary, {f"task {run.task!r}": tasks.vocabulary(run.task)}
    )
    found = checkpoints.open_checkpoint(run.target, vocabulary=run.vocabulary)
    run.claim("distill")
    teacher = loading.read_params(found, dtype="float32", mesh=run.mesh())
    vocabulary = run.data().vocabulary
    drafter = T5(run.config)
    prepare = None
    if run.on_policy > 0:
        prepare = on_policy_text(
            drafter,
            fraction=run.on_policy,
            temperature=run.on_policy_temperature,
            vocab_size=vocabulary.vocab_size,
            seed=run.seed,
        )
    loss_fn = distillation_loss(found.model, drafter, run.divergence, vocabulary.vocab_size)
    return run.execute("distill", drafter, loss_fn, frozen=teacher, prepare=prepare)
