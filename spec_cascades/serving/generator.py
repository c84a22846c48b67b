"""Answers to single texts, with who wrote which token."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spec_cascades import checks, decoding
from spec_cascades.checkpoints import pair
from spec_cascades.decoding import batching, drafters, methods
from spec_cascades.evaluation import costs
from spec_cascades.text import coloring


@dataclasses.dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        text: the output.
        spans: the text in pieces, (text, origin) for each token.
        counts: what it cost.
    """

    text: str
    spans: list[coloring.Span]
    counts: costs.Counts

    def render(self, style: str) -> str:
        """The text with its tokens marked, in the style 'ansi', 'markers' or 'html'."""
        renderers = {
            "ansi": coloring.to_ansi,
            "markers": coloring.to_markers,
            "html": coloring.to_html,
        }
        return renderers[style](self.spans)

    def summary(self) -> str:
        """The call counts in one line."""
        counts, cost = self.counts, costs.cost(self.counts)
        parts = [f"{counts.emitted} tokens, {counts.target_calls} target calls"]
        if counts.target_calls:
            parts[0] += f" ({cost['tokens_per_target_call']:.2f} tokens a call)"
        parts.append(f"{counts.drafter_calls} drafter calls")
        if counts.drafted:
            share = f"{100 * cost['acceptance_rate']:.0f} %"
            parts.append(f"{counts.accepted} of {counts.drafted} drafts stood ({share})")
        parts.append(f"{counts.corrected} corrections, {counts.bonus} bonus tokens")
        return "; ".join(parts)


class Generator:
    """A method with its models, compiled once for each length of input."""

    def __init__(
        self,
        method: str | Mapping[str, Any],
        *,
        target: str,
        drafter: str,
        gamma: int = 5,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        max_decode_length: int = 128,
        vocabulary: str | None = None,
    ):
        """Checks all settings, then loads the models.

        Args:
            method: as `methods.parse` reads it; the first value that it sweeps is used, and a
                rule's default alpha if it names none.
            target: the large model; see `checkpoints.load`.
            drafter: the small model, or `prompt_lookup`.
            gamma: tokens a block.
            temperature: of sampling; 0 is greedy.
            top_k: sample among so many tokens; 0 for all.
            top_p: sample within this probability; 1 for all.
            seed: of sampling.
            max_decode_length: most tokens of an answer.
            vocabulary: of checkpoints that carry none.

        Raises:
            ValueError: a setting is wrong, or the models do not go together.
            FileNotFoundError: no model there.
        """
        drafts = drafter if drafter in drafters.WITHOUT_MODEL else "model"
        self.method = methods.parse(method, drafter=drafts)
        methods.check_gammas(gamma)
        checks.sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        checks.counts(max_decode_length=max_decode_length)
        if self.method.greedy_only and temperature > 0:
            raise ValueError(f"{self.method.name} is greedy: temperature must be 0")
        self.value = self._value(method)
        self.gamma, self.temperature, self.seed = gamma, temperature, seed
        self.models = pair.load_models(target, drafters.model_path(drafter), vocabulary=vocabulary)
        vocabulary = self.models.vocabulary
        config = decoding.DecodeConfig(
            max_decode_length=max_decode_length,
            stop_ids=(vocabulary.eos_id,),
            top_k=top_k,
            top_p=top_p,
            vocab_size=vocabulary.vocab_size,
        )
        decoder = methods.decoder(
            self.method,
            self.models.target.model,
            self.models.drafter.model,
            config=config,
            gamma=gamma,
        )
        self._decode = jax.jit(functools.partial(decoding.decode, decoder))

    def _value(self, method: str | Mapping[str, Any]) -> float:
        parameter = self.method.parameter
        if parameter is None:
            return 0.0
        named = not isinstance(method, str) and f"{parameter.name}s" in method
        return self.method.values[0] if named else parameter.default

    def answer(self, text: str, index: int = 0) -> Answer:
        """Answers one text; `index` sets its random numbers apart from other texts'."""
        vocabulary = self.models.vocabulary
        tokens = np.asarray([*vocabulary.encode(text), vocabulary.eos_id], np.int32)
        (batch,) = batching.make_batches([tokens], batch_size=1)
        result = self._decode(
            decoding.PairParams(self.models.target.params, self.models.drafter.params),
            batch.prompt,
            decoding.row_keys(self.seed, jnp.asarray([index])),
            alpha=jnp.float32(self.value),
            temperature=jnp.float32(self.temperature),
        )
        result = jax.device_get(result)
        length = int(result.lengths[0])
        output, origins = result.tokens[0, :length].tolist(), result.origins[0, :length]
        return Answer(
            vocabulary.decode(output),
            coloring.spans(vocabulary, output, origins),
            costs.count([result]),
        )
