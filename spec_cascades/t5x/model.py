"""The model that T5X's scripts take: a target and a drafter, decoded by the speculative loop."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import flax
import jax
import jax.numpy as jnp
import seqio
from t5x import models

from spec_cascades import checks, decoding, rules
from spec_cascades.decoding.drafters import model_path, resolve
from spec_cascades.decoding.state import log_probability
from spec_cascades.models import T5, Prompt, T5Config

Batch = Mapping[str, jax.Array]


class SpeculativeCascadeModel(models.BaseTransformerModel):
    """A T5 target whose decoding is drafted by a smaller T5 and judged by a deferral rule.

    Takes the place of `t5x.models.EncoderDecoderModel`. Parameters and their logical axes are those
    of both models, `{'target': ..., 'draft': ...}`, without 'draft' where the input itself drafts.
    `score_batch` and the loss are the target's.
    """

    FEATURE_CONVERTER_CLS = seqio.EncDecFeatureConverter

    def __init__(
        self,
        target: T5Config | str,
        draft: T5Config | str,
        input_vocabulary: seqio.Vocabulary,
        output_vocabulary: seqio.Vocabulary,
        *,
        rule: rules.Rule | str = "speculative",
        alpha: float | None = None,
        gamma: int = 5,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        verification: str = "token",
        vocab_size: int | None = None,
        dtype: str | None = None,
        optimizer_def: Any = None,
    ):
        """Checks all settings, so that mistakes show before anything is restored or compiled.

        Args:
            target: the large model: a config, or the name of a published size ('flan_t5_xl').
            draft: the small one, likewise; or 'prompt_lookup', which copies from the input.
            input_vocabulary: the task's, shared by both models.
            output_vocabulary: the task's, shared by both models.
            rule: a rule's name, or `rules.get(name, ...)` where its parameters are to be set.
            alpha: the rule's trade-off; None is the rule's default.
            gamma: drafted tokens a block.
            temperature: 0 is greedy.
            top_k: keep the k likeliest tokens; 0 is off.
            top_p: keep the likeliest tokens that hold this probability; 1.0 is off.
            verification: 'token' or 'block'.
            vocab_size: number of ids that may be emitted. None: every row of the target's
                embedding, as T5X's own decoding has it; the vocabulary's size keeps padding rows
                out of samples.
            dtype: of both models' activations, 'float32' or 'bfloat16'; None: as the configs say.
            optimizer_def: unused but by `InteractiveModel`'s training; None for inference.

        Raises:
            ValueError: a setting is unknown or out of range.
        """
        self._target = T5(_config(target, dtype))
        self._draft = T5(_config(draft, dtype)) if _is_model(draft) else None
        self._drafter = decoding.ModelDrafter(self._draft) if self._draft else resolve(draft, None)
        self._rule = rules.get(rule) if isinstance(rule, str) else rule
        self._alpha = rules.check_alpha(self._rule, alpha)
        checks.sampling(temperature=temperature)
        self._temperature = temperature
        rows, words = self._target.vocab_size, output_vocabulary.vocab_size
        if words > rows:
            raise ValueError(
                f"the output vocabulary has {words} ids, but the target's embedding only {rows}"
            )
        self._gamma, self._verification = gamma, verification
        self._decode_settings = dict(
            stop_ids=(output_vocabulary.eos_id or 1,),
            pad_id=output_vocabulary.pad_id,
            top_k=top_k,
            top_p=top_p,
            vocab_size=vocab_size,
        )
        self._decoder(max_decode_length=1, return_log_probs=False)  # for its checks
        super().__init__(self._target.module, input_vocabulary, output_vocabulary, optimizer_def)

    def get_initial_variables(
        self,
        rng: jax.Array,
        input_shapes: Mapping[str, Any],
        input_types: Mapping[str, Any] | None = None,
    ) -> flax.core.FrozenDict:
        """Random parameters of both models, with their logical axes as `params_axes`."""
        del input_shapes, input_types  # no parameter's shape depends on them
        tokens = jnp.ones((1, 1), jnp.int32)
        variables = {}
        for i, (name, model) in enumerate(self._parts.items()):
            initial = model.module.init(jax.random.fold_in(rng, i), tokens, tokens)
            for collection, tree in initial.items():
                variables.setdefault(collection, {})[name] = flax.core.unfreeze(tree)
        return flax.core.freeze(variables)

    def predict_batch(self, params: Any, batch: Batch, rng: jax.Array | None = None) -> jax.Array:
        """Decodes a batch: int32 [batch, decoder length], 0 after EOS."""
        return self._decode(params, batch, rng, return_log_probs=False).tokens

    def predict_batch_with_aux(
        self, params: Any, batch: Batch, rng: jax.Array | None = None
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Decodes a batch and tells what it took.

        Args:
            params: parameters of both models.
            batch: as the feature converter makes it; the length of `decoder_input_tokens` is the
                largest number of tokens a row may emit.
            rng: for sampling; each row's random numbers come from it and the row's place in the
                batch.

        Returns:
            The tokens, int32 [batch, length], and a dictionary with, for each row,
            scores: float32 [batch], log-likelihood of the output under the target.
            token_scores: float32 [batch, length], its summands, 0 after the end.
            origins: int32 [batch, length], who wrote a token: 1 the drafter, 2 the target after a
                rejection or deferral, 3 the target after a block that stood whole, 0 none.
            target_calls: int32 [batch], calls of the target's decoder.
            draft_calls: int32 [batch], calls of the drafter's decoder.
            drafted: int32 [batch], tokens that the drafter proposed.
            accepted: int32 [batch], those that stand in the output.
            finish: int32 [batch], why the row ended: 1 EOS, 2 the length, 3 a model gave a number
                that is not finite.
        """
        result = self._decode(params, batch, rng, return_log_probs=True)
        counts = result.statistics
        return result.tokens, {
            "scores": result.log_probs.sum(axis=-1),
            "token_scores": result.log_probs,
            "origins": result.origins,
            "target_calls": counts.target_calls,
            "draft_calls": counts.drafter_calls,
            "drafted": counts.drafted,
            "accepted": counts.accepted,
            "finish": result.finish,
        }

    def score_batch(
        self, params: Any, batch: Batch, return_intermediates: bool = False
    ) -> jax.Array | tuple[jax.Array, dict[str, Any]]:
        """Log-likelihood of the batch's targets under the target model: float32 [batch].

        Args:
            params: parameters of both models.
            batch: as the feature converter makes it.
            return_intermediates: also return the scores of the single tokens, by T5X's names.
        """
        logits = self._compute_logits(params, batch)
        tokens, weights = batch["decoder_target_tokens"], batch["decoder_loss_weights"]
        token_scores = log_probability(logits, tokens) * weights
        scores = token_scores.sum(axis=-1)
        if not return_intermediates:
            return scores
        by_token = dict(target_tokens=tokens, loss_weights=weights, token_scores=token_scores)
        return scores, {"decoder": {name: (value,) for name, value in by_token.items()}}

    def _compute_logits(
        self, params: Any, batch: Batch, dropout_rng: jax.Array | None = None
    ) -> jax.Array:
        return self._target.score(
            flax.core.unfreeze(params["target"]),
            Prompt.padded(batch["encoder_input_tokens"]),
            batch["decoder_target_tokens"],
            dropout_rng,
        )

    @property
    def _parts(self) -> dict[str, T5]:
        """The models by the name of their parameters' subtree."""
        both = {"target": self._target, "draft": self._draft}
        return {name: model for name, model in both.items() if model is not None}

    def _decoder(self, **settings: Any) -> decoding.SpeculativeDecoder:
        config = decoding.DecodeConfig(**self._decode_settings, **settings)
        return decoding.SpeculativeDecoder(
            self._target, self._drafter, self._rule, config, self._gamma, self._verification
        )

    def _decode(
        self, params: Any, batch: Batch, rng: jax.Array | None, return_log_probs: bool
    ) -> decoding.DecodeResult:
        prompt = Prompt.padded(batch["encoder_input_tokens"])
        decoder = self._decoder(
            max_decode_length=batch["decoder_input_tokens"].shape[1],
            return_log_probs=return_log_probs,
        )
        params = flax.core.unfreeze(params)
        return decoding.decode(
            decoder,
            decoding.PairParams(params["target"], params.get("draft")),
            prompt,
            _row_keys(rng, prompt.lengths.shape[0]),
            alpha=self._alpha,
            temperature=self._temperature,
        )


def _is_model(draft: T5Config | str) -> bool:
    return not isinstance(draft, str) or model_path(draft) is not None


def _config(model: T5Config | str, dtype: str | None) -> T5Config:
    config = T5Config.preset(model) if isinstance(model, str) else model
    return config if dtype is None else dataclasses.replace(config, dtype=dtype)


def _row_keys(rng: jax.Array | None, batch: int) -> jax.Array:
    """A key for each row: threefry, whose numbers do not depend on how rows are batched.

    T5X may have switched JAX to a hardware generator, of which that is not true.
    """
    bits = jnp.zeros(2, jnp.uint32) if rng is None else jax.random.bits(rng, (2,), jnp.uint32)
    key = jax.random.wrap_key_data(bits, impl="threefry2x32")
    return jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(batch))
