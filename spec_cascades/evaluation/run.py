"""The main job: a sweep over methods x gamma x temperature x seeds, quality against cost.

`evaluate` checks every setting before it loads or compiles anything, then runs point by point. A
point is one method at one swept value, gamma, temperature and seed, on one task.

How latency is measured. Each point times its own decoding, batch by batch, after compilation and
one discarded run. On `latency_batches` of the batches, spread evenly, the target alone decodes
the same inputs at the same temperature and seed, once immediately before and once after:
`relative_latency` is the ratio of the method's seconds to the mean of the target's two, summed
over these batches. So numerator and denominator were measured within the same seconds of the same
process, whatever the machine did before, and a sweep that was killed and resumed (perhaps on a
busier day) mixes nothing. Only `wall_clock_s` and `tokens_per_s` of points from different runs
should not be compared. The target's own line is measured the same way: how far it is from 1 is
the noise of the measurement.
"""

import dataclasses
import hashlib
import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spec_cascades import checkpoints, checks, decoding, partitioning, records
from spec_cascades.checkpoints import arrays, digests, pair
from spec_cascades.decoding import batching, drafters, methods
from spec_cascades.evaluation import report, store, sweep
from spec_cascades.evaluation.point import plan

_logger = logging.getLogger(__name__)

DEFAULT_METHODS = ("target", "drafter", "speculative", "lossy", "token_v3", "opt")


def evaluate(
    *,
    task: str | Sequence[str],
    target: str,
    drafter: str,
    output_dir: str | None = None,
    methods: Sequence[str | Mapping[str, Any]] | None = None,
    alphas: Sequence[float] | None = None,
    gammas: int | Sequence[int] = (5,),
    temperatures: float | Sequence[float] = (0.0,),
    seeds: int | Sequence[int] = (0,),
    top_k: int = 0,
    top_p: float = 1.0,
    split: str = "test",
    num_examples: int | None = None,
    batch_size: int = 16,
    input_length: int | None = None,
    input_buckets: Sequence[int] | None = None,
    max_decode_length: int = 128,
    dtype: str = "float32",
    model_parallelism: int = 1,
    vocabulary: str | None = None,
    latency_batches: int = 2,
    examples_shown: int = 4,
    provenance: report.Provenance | None = None,
) -> list[dict[str, Any]]:
    """Evaluates methods on tasks, and writes results, table, picture and report.

    Started again with the same `output_dir` after whatever end, it keeps every finished point;
    methods, gammas, temperatures and seeds may be added between runs.

    Args:
        task: a SeqIO task or mixture, or several; a mixture stands for each of its tasks.
        target: the large model, or `demo/target`; see `checkpoints.load`.
        drafter: the small model, or `demo/drafter`; or `prompt_lookup`, which drafts
            n-grams of the input, without a second model.
        output_dir: folder for everything written; `output/<task>` if None.
        methods: names, or mappings with a `name` and options: see `methods.parse`. By default
            all of DEFAULT_METHODS that the drafter serves.
        alphas: values for every method that sweeps alpha; the registry's grids if None.
        gammas: block sizes.
        temperatures: sampling temperatures, 0 for greedy.
        seeds: seeds of sampling.
        top_k: sample among the k likeliest tokens; 0 for all.
        top_p: sample among the likeliest tokens that hold this probability; 1 for all.
        split: which split of the tasks.
        num_examples: the first so many examples of each task; None for all.
        batch_size: rows decoded together.
        input_length: inputs are cut to so many tokens, EOS included; None cuts nothing.
        input_buckets: lengths that inputs are padded to; powers of two if None.
        max_decode_length: most tokens of an output, EOS included.
        dtype: of the parameters in memory.
        model_parallelism: devices that share one copy of the models.
        vocabulary: of checkpoints that carry none; see `checkpoints.load`.
        latency_batches: batches of each point on which the target is timed beside it.
        examples_shown: examples whose tokens the report shows, coloured by origin.
        provenance: how this was started, for the report and config.gin.

    Returns:
        the lines of results.jsonl, one for each point of the folder.

    Raises:
        ValueError: a setting is wrong, or the folder holds another experiment.
        FileNotFoundError: a model or data file is missing.
    """
    settings = {name: x for name, x in locals().items() if name != "provenance"}
    checked = check(**settings)
    output_dir = output_dir or default_output_dir(task)
    points = plan(checked.tasks, checked.methods, **checked.axes)
    examples = {name: _read(name, split, num_examples, input_length) for name in checked.tasks}
    data = {name: _batch(rows, batch_size, input_buckets) for name, rows in examples.items()}
    fingerprint = _fingerprint(settings, examples)
    with store.open_folder(output_dir, fingerprint) as folder:
        if provenance is not None:
            records.write_atomically(folder.path / "config.gin", provenance.config())
        todo = [point for point in points if point.id not in folder.points]
        finished = len(points) - len(todo)
        _logger.info("%d points in %s, %d of them finished", len(points), output_dir, finished)
        if todo:
            models = pair.load_models(
                target,
                drafters.model_path(drafter),
                dtype=dtype,
                model_parallelism=model_parallelism,
                vocabulary=vocabulary,
            )
            config = decoding.DecodeConfig(
                max_decode_length=max_decode_length,
                stop_ids=(models.vocabulary.eos_id,),
                top_k=top_k,
                top_p=float(top_p),
                vocab_size=models.vocabulary.vocab_size,
            )
            sweep.Sweep(
                models,
                data,
                config=config,
                latency_batches=latency_batches,
                examples_shown=examples_shown,
            ).run(todo, folder)
        order = {point.id: place for place, point in enumerate(points)}
        found = sorted(folder.points.values(), key=lambda p: order.get(p["id"], len(order)))
        about = fingerprint | {"target": str(target), "drafter": str(drafter)}
        report.write(folder, found, about=about, provenance=provenance)
    return found


def default_output_dir(task: str | Sequence[str]) -> str:
    """Where an evaluation writes unless told otherwise: `output/<task>`."""
    names = "+".join(checks.several(task))
    return "output/" + names.replace("/", "_").replace(":", "_")


# ---------------------------------------------------------------------------------------------
# Checks, all before anything is loaded
# ---------------------------------------------------------------------------------------------

_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(evaluate).parameters.items()
    if parameter.default is not parameter.empty
}
# Whole numbers of at least 1; of those that may be None it is so where they are given.
_COUNTS = ("batch_size", "latency_batches", "max_decode_length", "model_parallelism")
_OPTIONAL_COUNTS = ("num_examples", "input_length")
_NAMES = ("target", "drafter", "split", "output_dir")


@dataclasses.dataclass(frozen=True)
class Checked:
    """Settings of an evaluation that are right.

    Attributes:
        methods: what is to run.
        axes: gammas, temperatures and seeds.
        tasks: names of the tasks, mixtures resolved; empty where no task was named.
    """

    methods: list[methods.Method]
    axes: dict[str, tuple]
    tasks: list[str]


def check(**settings: Any) -> Checked:
    """Checks some or all settings of `evaluate`, without reading data or parameters.

    Args:
        **settings: arguments of `evaluate`. What has no default may be left out, so that what is
            wrong can be reported before what is missing.

    Raises:
        ValueError: a setting is wrong, or two vocabularies differ.
        FileNotFoundError: there is no model of that name.
    """
    given = _DEFAULTS | settings
    chosen = _check_methods(given["methods"], given["alphas"], given.get("drafter"))
    axes = _check_axes(
        chosen, **{name: given[name] for name in ("gammas", "temperatures", "seeds")}
    )
    checks.sampling(top_k=given["top_k"], top_p=given["top_p"])
    _check_counts(given)
    arrays.as_dtype(given["dtype"])
    checks.names(**{name: given[name] for name in _NAMES if given.get(name) is not None})
    _check_batch(given["batch_size"], given["model_parallelism"])
    names = _subtasks(given["task"], given["split"]) if "task" in given else []
    _check_vocabularies(given.get("target"), given.get("drafter"), names, given["vocabulary"])
    return Checked(chosen, axes, names)


def _check_vocabularies(target, drafter, names: Sequence[str], vocabulary: str | None) -> None:
    from spec_cascades import tasks

    spoken = {f"task {name!r}": tasks.vocabulary(name) for name in names}
    pair.check_vocabularies(target, drafters.model_path(drafter), vocabulary, spoken)


def _check_methods(descriptions, alphas, drafter) -> list[methods.Method]:
    drafter = drafter if drafter in drafters.WITHOUT_MODEL else "model"
    if descriptions is None:
        without = ("drafter",) if drafter in drafters.WITHOUT_MODEL else ()
        descriptions = [name for name in DEFAULT_METHODS if name not in without]
    alphas = None if alphas is None else checks.several(alphas)
    chosen = [
        methods.parse(description, alphas=alphas, drafter=drafter)
        for description in checks.several(descriptions)
    ]
    if not chosen:
        raise ValueError("methods is empty, name at least one")
    labels = [method.label for method in chosen]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(
                f"two methods are called {label!r}: take one out, or give it another 'label'"
            )
    return chosen


def _check_axes(chosen, *, gammas, temperatures, seeds) -> dict[str, tuple]:
    axes = {
        name: checks.several(values)
        for name, values in [("gammas", gammas), ("temperatures", temperatures), ("seeds", seeds)]
    }
    for name, values in axes.items():
        if not values:
            raise ValueError(f"{name} is empty, give at least one value")
    methods.check_gammas(axes["gammas"])
    for temperature in axes["temperatures"]:
        checks.sampling(temperature=temperature)
    for seed in axes["seeds"]:
        checks.sampling(seed=seed)
    if any(method.greedy_only for method in chosen) and 0 not in axes["temperatures"]:
        raise ValueError("bild is greedy: add 0 to temperatures, or take it out of methods")
    return axes


def _check_counts(given: Mapping[str, Any]) -> None:
    optional = [name for name in _OPTIONAL_COUNTS if given[name] is not None]
    checks.counts(**{name: given[name] for name in (*_COUNTS, *optional)})
    for length in checks.several(given["input_buckets"] or ()):
        checks.counts(input_buckets=length)
    if not checks.is_whole(given["examples_shown"], 0):
        raise ValueError(f"examples_shown must be a whole number, got {given['examples_shown']!r}")


def _check_batch(batch_size: int, model_parallelism: int) -> None:
    shards = partitioning.make_mesh(model_parallelism).shape["data"]
    if batch_size % shards:
        raise ValueError(
            f"batch_size = {batch_size} must be a multiple of the {shards} data-parallel devices"
        )


# ---------------------------------------------------------------------------------------------
# Tasks and models
# ---------------------------------------------------------------------------------------------


def _subtasks(task: str | Sequence[str], split: str) -> list[str]:
    """The names of the tasks that tasks and mixtures stand for, each with the split."""
    from spec_cascades import tasks

    names = []
    for name in checks.several(task):
        checks.names(task=name)
        provider = tasks.get_task(name)
        tasks.check_split(name, split)
        names += [part.name for part in getattr(provider, "tasks", [provider])]
    if not names:
        raise ValueError("task is empty, name at least one")
    return list(dict.fromkeys(names))


def _read(name: str, split: str, num_examples: int | None, input_length: int | None) -> list:
    from spec_cascades import tasks

    lengths = None if input_length is None else {"inputs": input_length}
    return tasks.examples(name, split, num_examples=num_examples, lengths=lengths)


def _batch(examples: Sequence[Any], batch_size: int, buckets: Any) -> sweep.TaskData:
    inputs = [np.asarray(example.inputs) for example in examples]
    buckets = None if buckets is None else checks.several(buckets)
    batches = batching.make_batches(inputs, batch_size=batch_size, buckets=buckets)
    return sweep.TaskData(examples, batches)


# What all points of a folder share, besides tasks, data and models.
_SHARED = (
    "split",
    "num_examples",
    "dtype",
    "top_k",
    "top_p",
    "input_length",
    "max_decode_length",
    "batch_size",
)


def _fingerprint(
    settings: Mapping[str, Any], examples: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """What tells this experiment from another in the same folder."""
    return {
        "tasks": list(examples),
        "examples": _digest_texts(examples),
        "target": _digest_model(settings["target"]),
        "drafter": _digest_model(settings["drafter"]),
        # Decides which tokens can be written at all; a checkpoint alone need not say it.
        "vocab_size": checkpoints.read_vocabulary(
            settings["target"], settings["vocabulary"]
        ).vocab_size,
        **{name: settings[name] for name in _SHARED},
    }


def _digest_texts(examples: Mapping[str, Sequence[Any]]) -> str:
    """A short digest of all inputs and references: edited data is another experiment."""
    digest = hashlib.sha256()
    for name, rows in examples.items():
        digest.update(repr([name, *((row.inputs_text, row.targets_text) for row in rows)]).encode())
    return digest.hexdigest()[:16]


def _digest_model(path: str) -> str:
    """A short digest of a model; see `checkpoints.digests`."""
    return path if path in drafters.WITHOUT_MODEL else digests.of_checkpoint(path)
