"""Runs the points of a sweep: compiles, warms up, decodes, times, scores, records.

A point is decoded batch by batch; nothing is fetched from the device before its end. There is one
compilation for each (method, gamma, input shape): swept value and temperature are arguments.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import spec_cascades
from spec_cascades import decoding, partitioning, progress
from spec_cascades.checkpoints.pair import Models
from spec_cascades.decoding import batching, methods
from spec_cascades.evaluation import costs, scoring, store, timing
from spec_cascades.evaluation.point import Point
from spec_cascades.text import coloring


@dataclasses.dataclass(frozen=True)
class TaskData:
    """The examples of one task, as text and as batches."""

    examples: Sequence[Any]
    batches: Sequence[batching.Batch]


class Sweep:
    """What points of a sweep share: models, data, compiled functions, step times."""

    def __init__(
        self,
        models: Models,
        data: Mapping[str, TaskData],
        *,
        config: decoding.DecodeConfig,
        latency_batches: int = 2,
        examples_shown: int = 4,
    ):
        """Compiles nothing yet.

        Args:
            models: target and drafter.
            data: by name of the task.
            config: static decoding settings of all points.
            latency_batches: batches of each point on which the target is timed beside it.
            examples_shown: examples whose tokens are recorded for the report, with their origin.
        """
        self.models = models
        self.data = data
        self.config = config
        self.latency_batches = latency_batches
        self.examples_shown = examples_shown
        self._compiled: dict[Any, Any] = {}
        self._steps: dict[Any, float] = {}

    @property
    def compilations(self) -> int:
        """Decoding functions compiled so far."""
        return len(self._compiled)

    def run(self, points: Sequence[Point], folder: store.Folder, *, quiet: bool = False):
        """Runs points and records each in the folder as soon as it is finished."""
        total = sum(len(self.data[point.task].batches) for point in points)
        with progress.bar(
            total, unit="batch", description=f"points 0/{len(points)}", disable=quiet
        ) as bar:
            for done, point in enumerate(points):
                bar.set_description_str(f"points {done}/{len(points)}", refresh=False)
                line, predictions = self.decode(point, bar)
                folder.add(point.id, line, predictions)
                bar.set_postfix_str(
                    f"{line['label']}: {line['tokens_per_s']:.0f} tokens/s", refresh=False
                )
            bar.set_description_str(f"points {len(points)}/{len(points)}")

    def decode(self, point: Point, bar: Any = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Decodes a task by one point.

        Args:
            point: what to run.
            bar: progress bar to advance by one for every batch.

        Returns:
            the point's line for results.jsonl, and a prediction for each example in input order.
        """
        # The mesh tells the models' functions how activations are to be laid out.
        with jax.set_mesh(self.models.mesh) if self.models.mesh.size > 1 else nullcontext():
            return self._decode(point, bar)

    def _decode(self, point: Point, bar: Any):
        batches = self.data[point.task].batches
        reference = dataclasses.replace(
            point, method=methods.parse("target"), value=None, gamma=None
        )
        timed = set(_spread(len(batches), self.latency_batches))
        decoded, seconds, pairs, compile_s = [], [], [], 0.0
        for number, batch in enumerate(batches):
            arguments = jax.block_until_ready(self._arguments(point, batch))
            run, spent = self._executable(point, arguments)
            compile_s += spent
            if number in timed:
                run_reference, spent = self._executable(reference, arguments)
                compile_s += spent
                before = _seconds(run_reference, arguments)[1]
                result, method_s = _seconds(run, arguments)
                after = _seconds(run_reference, arguments)[1]
                pairs.append((method_s, (before + after) / 2))
            else:
                result, method_s = _seconds(run, arguments)
            decoded.append(result)
            seconds.append(method_s)
            if bar is not None:
                bar.update()
        return self._record(point, jax.device_get(decoded), sum(seconds), pairs, compile_s)

    def _arguments(self, point: Point, batch: batching.Batch) -> tuple:
        mesh = self.models.mesh
        place = jnp.asarray
        if mesh.size > 1:
            place = lambda x: jax.device_put(x, partitioning.batch_sharding(mesh))
        return (
            decoding.PairParams(self.models.target.params, self.models.drafter.params),
            jax.tree.map(place, batch.prompt),
            place(decoding.row_keys(point.seed, jnp.asarray(batch.indices))),
            jnp.float32(0.0 if point.value is None else point.value),
            jnp.float32(point.temperature),
            place(batch.row_mask),
        )

    def _executable(self, point: Point, arguments: tuple) -> tuple[Any, float]:
        """The compiled and warmed-up function of a point, and the seconds that took just now."""
        # Whatever does not change the compiled function is taken out of the key.
        method = dataclasses.replace(
            point.method, name="", label="", parameter=None, values=(), gammas=None
        )
        key = (method, point.gamma, arguments[1].tokens.shape)
        if key in self._compiled:
            return self._compiled[key], 0.0
        start = time.perf_counter()
        decoder = methods.decoder(
            point.method,
            self.models.target.model,
            self.models.drafter.model,
            config=self.config,
            gamma=point.gamma or 0,
        )

        def decode(params, prompt, keys, alpha, temperature, row_mask):
            return decoding.decode(
                decoder,
                params,
                prompt,
                keys,
                alpha=alpha,
                temperature=temperature,
                row_mask=row_mask,
            )

        self._compiled[key] = jax.jit(decode).lower(*arguments).compile()
        jax.block_until_ready(self._compiled[key](*arguments))
        return self._compiled[key], time.perf_counter() - start

    def _record(self, point, decoded, wall_clock_s, pairs, compile_s):
        data = self.data[point.task]
        counts = costs.count(decoded)
        predictions = self._predictions(data, decoded)
        quality = scoring.score(
            point.task,
            [example.targets_text for example in data.examples],
            [prediction["prediction"] for prediction in predictions],
        )
        cost = costs.cost(counts, blocks=point.method.about.drafts_blocks)
        settings = {
            "id": point.id,
            **point.settings(),
            "top_k": self.config.top_k,
            "top_p": self.config.top_p,
        }
        figures = {
            "quality_metric": quality.metric,
            "quality": quality.value,
            "quality_se": quality.standard_error,
            "qualities": quality.all,
            **cost,
            "length_quantiles": np.quantile(counts.lengths, (0.1, 0.5, 0.9, 1.0)).tolist(),
            "wall_clock_s": wall_clock_s,
            "tokens_per_s": counts.emitted / wall_clock_s,
            "compile_s": compile_s,
            **_latency(pairs),
            **self._prediction_of_cost_model(point, cost),
            "device": f"{jax.device_count()} x {jax.devices()[0].device_kind}",
            "version": spec_cascades.__version__,
        }
        overwritten = settings.keys() & figures.keys()
        assert not overwritten, f"figures {overwritten} would hide settings of the same name"
        return settings | figures, predictions

    def _predictions(self, data: TaskData, decoded) -> list[dict[str, Any]]:
        vocabulary = self.models.vocabulary
        rows = [list(zip(d.tokens, d.lengths, d.finish, d.origins, strict=True)) for d in decoded]
        ordered = batching.in_input_order(data.batches, rows)
        predictions = []
        for example, (tokens, length, finish, origins) in zip(data.examples, ordered, strict=True):
            tokens = tokens[:length].tolist()
            prediction = {
                "index": example.index,
                "inputs": example.inputs_text,
                "target": example.targets_text,
                "prediction": vocabulary.decode(tokens),
                "finish": decoding.Finish(int(finish)).name.lower(),
                "tokens": tokens,
                "origins": origins[:length].tolist(),
            }
            if example.index < self.examples_shown:
                prediction["spans"] = coloring.spans(vocabulary, tokens, origins[:length])
            predictions.append(prediction)
        return predictions

    def _prediction_of_cost_model(self, point: Point, cost: Mapping[str, Any]) -> dict[str, Any]:
        """What the cost model makes of the acceptance and of the steps, each timed alone."""
        if point.method.kind != "rule" or cost["token_acceptance"] is None:
            return {}
        prompt = self.data[point.task].batches[0].prompt
        capacity = self.config.max_decode_length + point.gamma + 1

        def step(who: str, width: int) -> float:
            key = (who, width, prompt.tokens.shape, capacity)
            if key not in self._steps:
                loaded = getattr(self.models, who)
                self._steps[key] = timing.step_seconds(
                    loaded.model,
                    loaded.params,
                    prompt,
                    capacity=capacity,
                    width=width,
                )
            return self._steps[key]

        single, verification = step("target", 1), step("target", point.gamma + 1)
        drafting = step("drafter", 1) if point.method.drafter == "model" else 0.0
        predict = lambda verification_cost: costs.predicted_speedup(
            cost["token_acceptance"], point.gamma, drafting / single, verification_cost
        )
        return {
            "drafter_step_s": drafting,
            "target_step_s": single,
            "verification_s": verification,
            "drafter_cost": drafting / single,
            "verification_cost": verification / single,
            "predicted_speedup": predict(1.0),
            "predicted_speedup_measured_verification": predict(verification / single),
        }


def _spread(total: int, wanted: int) -> list[int]:
    """At most `wanted` numbers below `total`, evenly spread."""
    wanted = min(total, wanted)
    return [(2 * i + 1) * total // (2 * wanted) for i in range(wanted)]


def _seconds(run, arguments: tuple) -> tuple[decoding.DecodeResult, float]:
    start = time.perf_counter()
    result = jax.block_until_ready(run(*arguments))
    return result, time.perf_counter() - start


def _latency(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Relative latency from (method's, target's) seconds on the same batches."""
    method_s, target_s = (sum(side) for side in zip(*pairs, strict=True))
    ratios = [method / target for method, target in pairs]
    error = float(np.std(ratios, ddof=1) / len(ratios) ** 0.5) if len(ratios) > 1 else None
    return {
        "relative_latency": method_s / target_s,
        "relative_latency_se": error,
        "measured_speedup": target_s / method_s,
        "latency_batches": len(pairs),
    }
