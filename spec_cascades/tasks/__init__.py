"""SeqIO tasks: the embedded demo, tasks over the user's files, and their vocabularies and metrics.

Importing this package imports TensorFlow (SeqIO needs it) and registers the demo's tasks.
"""

import tensorflow as tf

from spec_cascades.tasks import demo, quality
from spec_cascades.tasks.datasets import Example, examples, training_dataset, validation_dataset
from spec_cascades.tasks.files import register_file_task
from spec_cascades.tasks.registry import check_split, get_task, metrics, primary_metric, vocabulary
from spec_cascades.text import vocabularies

try:
    # TensorFlow only reads data here: leave the accelerators to JAX.
    tf.config.set_visible_devices([], "GPU")
    tf.config.set_visible_devices([], "TPU")
except (RuntimeError, ValueError):
    pass  # someone has initialised TensorFlow's devices already

demo.register()

__all__ = [
    "Example",
    "check_split",
    "examples",
    "get_task",
    "metrics",
    "primary_metric",
    "quality",
    "register_file_task",
    "training_dataset",
    "validation_dataset",
    "vocabularies",
    "vocabulary",
]
