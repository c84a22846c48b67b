"""Toy models, inputs and jitted decoders that the tests of this folder share.

A compiled program is what costs time here: the tests keep to a few shapes and settings.
"""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import oracles

from spec_cascades import decoding
from spec_cascades.decoding import Prompt
from spec_cascades.testing import ToyModel


def _jit(make):
    """`f(*models, *params, inputs, keys, ...)` with the decoder that `make` makes.

    Inputs [batch, length] end in zeros; what is no argument of `make` is one of `decode`.
    """
    names = inspect.signature(make).parameters

    def run(*positional, **settings):
        own = {name: settings.pop(name) for name in list(settings) if name in names}
        models = [name for name in names if name in _POSITIONAL]
        made = make(*positional[: len(models)], **own)
        *params, inputs, keys = (*positional[len(models) :], *_taken(settings, "inputs", "keys"))
        for swept in ("threshold", "fallback"):
            if swept in settings:
                settings["alpha"] = settings.pop(swept)
        return decode(made, as_params(made, params), Prompt.padded(inputs), keys, **settings)

    return run


_POSITIONAL = ("target", "drafter", "drafter_model", "model", "rule")
decode = jax.jit(decoding.decode, static_argnames="decoder", compiler_options=oracles.QUICK_COMPILE)


def _taken(settings, *names):
    return [settings.pop(name) for name in names if name in settings]


def as_params(decoder, params):
    """One model's or both models' parameters as `PairParams`."""
    if len(params) == 1:
        return decoding.PairParams(**{decoder.role: params[0]})
    return decoding.PairParams(*params)


def _speculative(target, drafter, rule, *, config, gamma, verification="token", bonus="target"):
    return decoding.SpeculativeDecoder(target, drafter, rule, config, gamma, verification, bonus)


def _autoregressive(model, *, config, role="target"):
    return decoding.AutoregressiveDecoder(model, config, role)


def _sequence_cascade(target, drafter_model, *, config, score="mean", quantile=0.2):
    return decoding.SequenceCascade(target, drafter_model, config, score, quantile)


def _token_cascade(target, drafter_model, rule, *, config):
    return decoding.TokenCascade(target, drafter_model, rule, config)


def _bild(target, drafter_model, *, config, rollback=5.0, max_draft=10):
    return decoding.bild(target, drafter_model, config, rollback=rollback, max_draft=max_draft)


speculative = _jit(_speculative)
autoregressive = _jit(_autoregressive)
sequence_cascade = _jit(_sequence_cascade)
token_cascade = _jit(_token_cascade)
bild = _jit(_bild)

EOS = 1
VOCAB = 5
TOY = ToyModel(VOCAB)


def config(cap=12, **settings):
    return decoding.DecodeConfig(max_decode_length=cap, stop_ids=(EOS,), **settings)


def tables(seed, similarity=0.7, eos=-1.0, vocab=VOCAB, model=TOY):
    """Parameters of a target and of a drafter that resembles it; `eos` is added to EOS's logit."""
    target = model.init(jax.random.key(seed))[:, :vocab]
    noise = model.init(jax.random.key(seed + 1000))[:, :vocab]
    drafter = similarity * target + (1 - similarity) * noise
    return target.at[:, EOS].add(eos), drafter.at[:, EOS].add(eos)


def ragged_inputs(batch, seed=0, length=6):
    """int32 [batch, length], right-padded with 0."""
    rng = np.random.default_rng(seed)
    inputs = rng.integers(2, 50, size=(batch, length))
    lengths = rng.integers(1, length + 1, size=batch)
    return jnp.asarray(np.where(np.arange(length) < lengths[:, None], inputs, 0), jnp.int32)


def keys(batch, seed=0):
    return decoding.row_keys(seed, jnp.arange(batch))


def logits_after(table, row_input, contexts=TOY.contexts):
    """The toy model in plain Python: a function from a prefix to float64 logits [V]."""
    table = np.asarray(table, np.float64)
    read = [int(x) for x in row_input if x]
    seen = sum(x * (7 * (i + 1) + 3) for i, x in enumerate(read)) % contexts

    @functools.cache
    def logits(prefix):
        fed = (0, *prefix)
        hashed = sum((t + 2) * ((i * 31 + 17) % 101) for i, t in enumerate(fed))
        return table[(seen + hashed) % contexts]

    return logits


def greedy(logits, cap, eos=EOS):
    """Greedy decoding in plain Python."""
    out = ()
    while len(out) < cap and eos not in out:
        out += (int(np.argmax(logits(out))),)
    return out


def distributions(q_logits, p_logits, prefix, temperature=0.0, **filters):
    """q, p, q_hat, p_hat after a prefix, by the oracles."""
    q, p = q_logits(prefix), p_logits(prefix)
    return (
        oracles.working(q, temperature, **filters),
        oracles.working(p, temperature, **filters),
        oracles.softmax(q),
        oracles.softmax(p),
    )


def row(result, i):
    """Tokens of row i, without padding."""
    return tuple(int(t) for t in result.tokens[i, : result.lengths[i]])


def check_invariants(result, cfg):
    """What holds for every decoder's result, whatever the models."""
    tokens, lengths, finish, origins = (
        np.asarray(x) for x in (result.tokens, result.lengths, result.finish, result.origins)
    )
    counts = jax.tree.map(np.asarray, result.statistics)
    size = cfg.max_decode_length
    assert tokens.shape == origins.shape == (len(lengths), size)
    inside = np.arange(size) < lengths[:, None]
    assert (lengths <= size).all()
    assert (tokens[~inside] == cfg.pad_id).all()
    assert (origins[~inside] == decoding.Origin.NONE).all()
    assert (origins[inside] != decoding.Origin.NONE).all()
    is_eos = np.isin(tokens, cfg.stop_ids) & inside
    last = np.arange(size) == lengths[:, None] - 1
    assert not (is_eos & ~last).any(), "a token after EOS"
    ends_in_eos = (is_eos & last).any(axis=1)
    np.testing.assert_array_equal(ends_in_eos, finish == decoding.Finish.EOS)
    assert (lengths[finish == decoding.Finish.LENGTH] == size).all()
    assert (finish != decoding.Finish.RUNNING).all()
    masked = finish == decoding.Finish.PADDING
    assert (lengths[masked] == 0).all()
    for name, value in vars(counts).items():
        assert value.dtype == np.int32, name
        assert (value >= 0).all(), name
        assert (value[masked] == 0).all(), f"a padding row counts in {name}"
    np.testing.assert_array_equal(counts.emitted, lengths)
    for origin, count in (
        (decoding.Origin.DRAFT, counts.accepted),
        (decoding.Origin.TARGET, counts.corrected),
        (decoding.Origin.BONUS, counts.bonus),
    ):
        np.testing.assert_array_equal((origins == origin).sum(axis=1), count)
    np.testing.assert_array_equal(counts.accepted_at.sum(axis=1), counts.accepted)
    assert (counts.accepted_at <= counts.verified_at).all()
    assert (counts.verified_at.sum(axis=1) <= counts.drafted).all()
    assert (counts.accepted <= counts.drafted).all()
    assert (counts.deferred <= counts.drafted).all()
    if result.log_probs is not None:
        log_probs = np.asarray(result.log_probs)
        assert (log_probs[~inside] == 0).all()
        assert np.isfinite(log_probs).all() and (log_probs <= 1e-6).all()


def check_speculation(result, gamma):
    """What holds for the speculative loop besides."""
    counts = jax.tree.map(np.asarray, result.statistics)
    # Each call of the target writes one token, unless the row ends with an accepted draft.
    from_target = counts.corrected + counts.bonus
    assert (from_target <= counts.target_calls).all()
    ended = np.asarray(result.finish) != decoding.Finish.NONFINITE
    assert (counts.target_calls - from_target <= 1)[ended].all()
    assert (counts.drafted <= gamma * counts.target_calls).all()
    assert (counts.verified_at[:, 1:] <= counts.accepted_at[:, :-1]).all()
    assert (counts.verified_at[:, 0] <= counts.target_calls).all()
    rejected = counts.verified_at - counts.accepted_at
    np.testing.assert_array_equal(rejected.sum(axis=1)[ended], counts.corrected[ended])
