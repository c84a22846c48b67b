"""Tiny models, checkpoints and a task for T5X; imported by the tests, their gin files and scripts.

python t5x_tiny.py FOLDER    writes FOLDER/{target,draft}_{t5,scalable}_{legacy,orbax}/checkpoint_7
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import seqio
import tensorflow as tf
from t5x import decoding, models, partitioning, utils
from t5x.examples.scalable_t5 import network as scalable
from t5x.examples.t5 import network

from spec_cascades.models.t5 import T5Config

TASK = "tiny_reverse"
VOCABULARY = seqio.ByteVocabulary()
LENGTHS = {"inputs": 16, "targets": 20}
STEP = 7

SIZES = {
    "target": dict(emb_dim=32, num_heads=4, mlp_dim=64, num_encoder_layers=2, num_decoder_layers=3),
    "draft": dict(emb_dim=16, num_heads=2, mlp_dim=32, num_encoder_layers=1, num_decoder_layers=1),
}
COMMON = dict(vocab_size=384, head_dim=8, mlp_activations=("gelu", "linear"))


def config(which: str, scanned: bool = False) -> T5Config:
    """Our configuration."""
    return T5Config(**COMMON, **SIZES[which], shared_relative_bias=not scanned)


def reference_model(which: str = "target", scanned: bool = False) -> models.EncoderDecoderModel:
    """T5X's own model of the same shape, with greedy decoding."""
    shape = COMMON | SIZES[which] | dict(dtype="float32", dropout_rate=0.0)
    module = (scalable if scanned else network).T5Config(**shape)
    return models.EncoderDecoderModel(
        module=(scalable if scanned else network).Transformer(module),
        input_vocabulary=VOCABULARY,
        output_vocabulary=VOCABULARY,
        optimizer_def=None,
        decode_fn=functools.partial(
            decoding.temperature_sample, temperature=0.0, rescale_log_probs=False
        ),
    )


def partitioner() -> partitioning.PjitPartitioner:
    """One device in the data's direction, all in the model's."""
    return partitioning.PjitPartitioner(num_partitions=1)


def initializer(model, with_partitioner) -> utils.TrainStateInitializer:
    """T5X's initializer for a model and a batch of this task."""
    names = {"encoder_input_tokens": "inputs", "decoder_input_tokens": "targets"}
    shapes = {name: (4, LENGTHS[feature]) for name, feature in names.items()}
    return utils.TrainStateInitializer(
        model.optimizer_def,
        model.get_initial_variables,
        shapes,
        with_partitioner,
        {name: jnp.int32 for name in shapes},
    )


def batch(size: int = 10) -> dict[str, jax.Array]:
    """The task's test split as one batch."""
    data = seqio.get_mixture_or_task(TASK).get_dataset(LENGTHS, "test", shuffle=False)
    data = seqio.EncDecFeatureConverter(pack=False)(data, LENGTHS).batch(size)
    return {name: jnp.asarray(array) for name, array in next(data.as_numpy_iterator()).items()}


def _dataset(split, shuffle_files=False, seed=None):
    del shuffle_files, seed
    rng = np.random.default_rng(["train", "test"].index(split))
    words = [
        "".join(chr(97 + c) for c in rng.integers(26, size=rng.integers(3, 12))) for _ in range(10)
    ]
    return tf.data.Dataset.from_tensor_slices(
        {"inputs": words, "targets": [w[::-1] for w in words]}
    )


def same_length(targets, predictions):
    """A metric that random models do not fail altogether: the length of the predictions."""
    del targets
    return {"length": float(np.mean([len(text.encode()) for text in predictions]))}


def acceptance(targets, predictions, aux_values):
    """A metric that reads the auxiliary output."""
    del targets, predictions
    return {"acceptance": float(np.sum(aux_values["accepted"]) / np.sum(aux_values["drafted"]))}


def likelihood(targets, scores):
    """A metric of scores."""
    del targets
    return {"likelihood": float(np.mean(scores))}


FEATURE = seqio.Feature(vocabulary=VOCABULARY, add_eos=True)
for name, metrics in ((TASK, [same_length, likelihood]), (f"{TASK}_aux", [acceptance])):
    seqio.TaskRegistry.add(
        name,
        source=seqio.FunctionDataSource(_dataset, splits=("train", "test")),
        preprocessors=[seqio.preprocessors.tokenize, seqio.preprocessors.append_eos],
        output_features={"inputs": FEATURE, "targets": FEATURE},
        metric_fns=metrics,
    )
