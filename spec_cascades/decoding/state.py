"""What every decoder shares: settings, random numbers, the growing output, statistics."""

import dataclasses
import enum
import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from spec_cascades import checks
from spec_cascades import distributions as dist
from spec_cascades.models.interface import Prompt


class Origin(enum.IntEnum):
    """Who wrote a token."""

    NONE = 0  # no token here
    DRAFT = 1  # drafted, and it stands
    TARGET = 2  # the target's, where a draft was rejected or the rule deferred
    BONUS = 3  # the target's, where nothing was rejected


class Finish(enum.IntEnum):
    """Why a row ended."""

    RUNNING = 0
    EOS = 1  # a stop id
    LENGTH = 2  # max_decode_length reached
    NONFINITE = 3  # the target or the rule gave NaN or infinity: the row stops before using it
    PADDING = 4  # the row was masked out from the start


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """Settings that are fixed when a decoder is compiled.

    Attributes:
        max_decode_length: largest number of tokens a row may emit, EOS included.
        stop_ids: ids that end a row, each as EOS does.
        pad_id: fills the output after a row's end.
        top_k: see `distributions.working`; 0 is off.
        top_p: see `distributions.working`; 1.0 is off.
        vocab_size: number of real ids; the table's padding beyond it has probability 0. None: the
            whole table of the target is real.
        return_log_probs: also return the log-probability of each emitted token.
        spare: positions that caches hold beyond max_decode_length. None: what the decoder needs.
            Decoders of one `spare` can share a compiled prefill.
        prompt_capacity: entries that caches keep for the prompt, see `Model.prefill`.
    """

    max_decode_length: int
    stop_ids: tuple[int, ...] = (1,)
    pad_id: int = 0
    top_k: int = 0
    top_p: float = 1.0
    vocab_size: int | None = None
    return_log_probs: bool = False
    spare: int | None = None
    prompt_capacity: int | None = None

    def __post_init__(self):
        object.__setattr__(self, "stop_ids", tuple(self.stop_ids))
        if not all(checks.is_whole(stop, 0) for stop in self.stop_ids):
            raise ValueError(f"stop_ids must be whole numbers, got {self.stop_ids!r}")
        if not checks.is_whole(self.max_decode_length, 0):
            raise ValueError(
                f"max_decode_length must be a whole number, 0 or more, got "
                f"{self.max_decode_length!r}"
            )
        checks.sampling(top_k=self.top_k, top_p=self.top_p)
        for name in ("vocab_size", "spare", "prompt_capacity"):
            if getattr(self, name) is not None:
                checks.counts(**{name: getattr(self, name)})

    def is_stop(self, tokens: jax.Array) -> jax.Array:
        """Which tokens end a row: int [...] -> bool [...]."""
        stops = (tokens == stop for stop in self.stop_ids)
        return functools.reduce(jnp.logical_or, stops, jnp.zeros(tokens.shape, bool))

    def room(self, needed: int) -> int:
        """Positions beyond max_decode_length of a decoder that needs so many.

        Raises:
            ValueError: `spare` is smaller.
        """
        if self.spare is None:
            return needed
        if self.spare < needed:
            raise ValueError(f"spare = {self.spare} is too small: this decoder needs {needed}")
        return self.spare

    def working(self, logits: jax.Array, temperature: jax.Array) -> jax.Array:
        """Working distribution: [batch, ..., V], scalar or [batch] -> [batch, ..., V]."""
        temperature = jnp.asarray(temperature, jnp.float32)
        extra = logits.ndim - 1 - temperature.ndim
        temperature = temperature.reshape(temperature.shape + (1,) * max(extra, 0))
        return dist.working(logits, temperature, self.top_k, self.top_p)


@struct.dataclass
class Statistics:
    """Exact counts per row: int32 [batch], unless said otherwise.

    Only tokens that are kept count: nothing after EOS or beyond the length cap, nothing of a
    finished or padding row.

    Attributes:
        target_calls: calls of the target's `extend` (one a block; prefill apart).
        drafter_calls: calls of the drafter's `extend` while the row was drafting.
        target_prefills: encodings of the input by the target.
        drafter_prefills: encodings of the input by the drafter.
        drafted: drafted tokens that verification could have kept.
        accepted: emitted tokens that the drafter wrote.
        corrected: emitted tokens that the target wrote where a draft fell or the rule deferred.
        bonus: emitted tokens that the target wrote where nothing was rejected.
        drafter_faults: blocks whose drafting ended early at a NaN or an infinity of the drafter.
        deferred: judged draft positions at which the rule chose the target; for a rule that chooses
            no model, those whose acceptance probability is below 1.
        verified_at: int32 [batch, gamma]; how often position i of a block was judged, that is
            drafted with all earlier drafts of its block standing.
        accepted_at: int32 [batch, gamma]; how often the draft at position i was kept.
    """

    target_calls: jax.Array
    drafter_calls: jax.Array
    target_prefills: jax.Array
    drafter_prefills: jax.Array
    drafted: jax.Array
    accepted: jax.Array
    corrected: jax.Array
    bonus: jax.Array
    drafter_faults: jax.Array
    deferred: jax.Array
    verified_at: jax.Array
    accepted_at: jax.Array

    @property
    def emitted(self) -> jax.Array:
        """Emitted tokens, EOS included."""
        return self.accepted + self.corrected + self.bonus

    @classmethod
    def zeros(cls, batch: int, gamma: int) -> "Statistics":
        """Counts of a decoder that has not started."""
        fields = {f.name: jnp.zeros(batch, jnp.int32) for f in dataclasses.fields(cls)}
        per_position = jnp.zeros((batch, gamma), jnp.int32)
        return cls(**fields | {"verified_at": per_position, "accepted_at": per_position})

    def add(self, **counts: jax.Array) -> "Statistics":
        """Adds to the named counts; booleans count as 0 or 1."""
        added = {k: getattr(self, k) + v.astype(jnp.int32) for k, v in counts.items()}
        return self.replace(**added)


@struct.dataclass
class Output:
    """The growing output of a batch.

    Attributes:
        sequence: int32 [batch, 1 + capacity]; the token that decoding starts from, then what has
            been emitted, then padding. Column j is fed to the models at position `first + j`.
        first: int32 [batch], position at which the models are fed the starting token.
        length: int32 [batch], tokens emitted.
        finish: int32 [batch], a `Finish`.
        origins: int32 [batch, capacity], an `Origin` per emitted token.
        log_probs: float32 [batch, capacity], or None.
    """

    sequence: jax.Array
    first: jax.Array
    length: jax.Array
    finish: jax.Array
    origins: jax.Array
    log_probs: jax.Array | None

    @property
    def running(self) -> jax.Array:
        """Bool [batch]: rows that are not finished."""
        return self.finish == Finish.RUNNING

    @property
    def position(self) -> jax.Array:
        """Int32 [batch]: position of the newest token, the next one to feed."""
        return self.first + self.length

    @property
    def newest(self) -> jax.Array:
        """Int32 [batch]: the newest token."""
        return dist.pick(self.sequence, self.length)


def start_output(
    model: Any, prompt: Prompt, config: DecodeConfig, spare: int, row_mask: jax.Array | None
) -> Output:
    """An output with nothing in it.

    Args:
        model: says what to feed first.
        prompt: what was read.
        config: decoding settings.
        spare: columns beyond the cap, so that a whole block can be written at any length.
        row_mask: bool [batch], False for padding rows; None: all rows are real.
    """
    tokens, first = model.begin(prompt)
    batch, capacity = prompt.lengths.shape[0], config.max_decode_length + spare
    blank = jnp.full((batch, capacity), config.pad_id, jnp.int32)
    ended = Finish.RUNNING if config.max_decode_length else Finish.LENGTH
    finish = jnp.full(batch, ended, jnp.int32)
    if row_mask is not None:
        finish = jnp.where(row_mask, finish, Finish.PADDING)
    return Output(
        sequence=jnp.concatenate([tokens[:, None].astype(jnp.int32), blank], axis=1),
        first=first.astype(jnp.int32),
        length=jnp.zeros(batch, jnp.int32),
        finish=finish,
        origins=jnp.zeros((batch, capacity), jnp.int32),
        log_probs=jnp.zeros((batch, capacity), jnp.float32) if config.return_log_probs else None,
    )


def append(
    output: Output,
    config: DecodeConfig,
    tokens: jax.Array,
    count: jax.Array,
    origins: jax.Array,
    log_probs: jax.Array | None,
    sound: jax.Array,
) -> tuple[Output, jax.Array]:
    """Appends up to `count` tokens to each running row; a stop and the length cap cut them short.

    Args:
        output: what stands so far.
        config: decoding settings.
        tokens: int32 [batch, k].
        count: int32 [batch], how many of them are offered, 0 to k.
        origins: int32 [batch, k].
        log_probs: float32 [batch, k], or None.
        sound: bool [batch]; where False the numbers of the token after those that are offered
            were not finite, and a row that gets so far ends there.

    Returns:
        The longer output, and int32 [batch] with the number of tokens kept.
    """
    index = jnp.arange(tokens.shape[1])
    is_stop = config.is_stop(tokens) & (index < count[:, None])
    first_stop = jnp.where(is_stop.any(axis=1), jnp.argmax(is_stop, axis=1), tokens.shape[1])
    room = config.max_decode_length - output.length
    kept = jnp.minimum(jnp.minimum(count, first_stop + 1), room)
    kept = jnp.where(output.running, kept, 0).astype(jnp.int32)
    length = output.length + kept

    finish = jnp.where(sound, Finish.RUNNING, Finish.NONFINITE)
    finish = jnp.where(length >= config.max_decode_length, Finish.LENGTH, finish)
    finish = jnp.where(first_stop < kept, Finish.EOS, finish)

    inside = index < kept[:, None]

    def write(buffer, values, start, blank):
        values = jnp.where(inside, values, blank)
        return jax.vmap(jax.lax.dynamic_update_slice)(buffer, values, start[:, None])

    if output.log_probs is not None:
        log_probs = write(output.log_probs, log_probs, output.length, 0.0)
    return output.replace(
        sequence=write(output.sequence, tokens, output.length + 1, config.pad_id),
        length=length,
        finish=jnp.where(output.running, finish, output.finish).astype(jnp.int32),
        origins=write(output.origins, origins, output.length, int(Origin.NONE)),
        log_probs=log_probs if output.log_probs is not None else None,
    ), kept


@struct.dataclass
class DecodeResult:
    """What a decoder returns.

    Attributes:
        tokens: int32 [batch, max_decode_length], `pad_id` after a row's end.
        lengths: int32 [batch], EOS included.
        finish: int32 [batch], a `Finish`.
        origins: int32 [batch, max_decode_length], an `Origin` per token.
        log_probs: float32 [batch, max_decode_length] or None: log of the probability that the
            target's raw distribution gives to each emitted token (the decoding model's own for
            `autoregressive`), 0 after the row's end.
        statistics: exact counts.
    """

    tokens: jax.Array
    lengths: jax.Array
    finish: jax.Array
    origins: jax.Array
    log_probs: jax.Array | None
    statistics: Statistics


def result(output: Output, config: DecodeConfig, statistics: Statistics) -> DecodeResult:
    """Trims the output's spare columns."""
    size = config.max_decode_length
    return DecodeResult(
        tokens=output.sequence[:, 1 : 1 + size],
        lengths=output.length,
        finish=output.finish,
        origins=output.origins[:, :size],
        log_probs=None if output.log_probs is None else output.log_probs[:, :size],
        statistics=statistics,
    )


def row_keys(seed: int | jax.Array, ids: jax.Array) -> jax.Array:
    """A PRNG key per row, from the run's seed and the example's own number: int [batch]."""
    return jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(seed), jnp.asarray(ids))


def uniforms(keys: jax.Array, length: jax.Array, count: int) -> jax.Array:
    """Random numbers of each row for the step that starts at `length`: float32 [batch, count].

    They depend on the row's key and position alone: not on the batch, the mesh or the host. The
    position is that of the block's start, so that a position which is drafted again after a
    rejection gets fresh numbers (block verification looks at drafts that it then discards).
    """
    step_keys = jax.vmap(jax.random.fold_in)(keys, length)
    return jax.vmap(lambda key: jax.random.uniform(key, (count,)))(step_keys)


def log_probability(logits: jax.Array, tokens: jax.Array) -> jax.Array:
    """Log of the raw probability of tokens: [..., V], int [...] -> float32 [...]."""
    logits = logits.astype(jnp.float32)
    return dist.pick(logits, tokens) - jax.nn.logsumexp(logits, axis=-1)


def real_vocabulary(config: DecodeConfig, *models: Any) -> int:
    """Number of ids that all of these models may emit."""
    sizes = [model.vocab_size for model in models]
    return min(sizes if config.vocab_size is None else [config.vocab_size, *sizes])
