"""Answers by T5X's InteractiveModel, from one checkpoint that holds both models.

python interactive.py TARGET_CHECKPOINT DRAFT_CHECKPOINT FOLDER    writes FOLDER/answers.json
"""

import json
import pathlib
import sys

import jax.numpy as jnp
import t5x_tiny
from t5x import checkpoints, interactive_model

from spec_cascades.t5x import CompositeCheckpointManager, SpeculativeCascadeModel

target, draft, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
model = SpeculativeCascadeModel(
    t5x_tiny.config("target"), t5x_tiny.config("draft"), t5x_tiny.VOCABULARY, t5x_tiny.VOCABULARY
)
partitioner = t5x_tiny.partitioner()
state = t5x_tiny.initializer(model, partitioner).global_train_state_shape
manager = CompositeCheckpointManager("", state, partitioner, draft_path=draft)
checkpoints.Checkpointer(state, partitioner, str(folder / "merged")).save(manager.restore(target))

shapes = {"encoder_input_tokens": (4, 16), "decoder_input_tokens": (4, 20)}
session = interactive_model.InteractiveModel(
    batch_size=4,
    task_feature_lengths=t5x_tiny.LENGTHS,
    output_dir=str(folder / "session"),
    partitioner=partitioner,
    model=model,
    dtype="float32",
    restore_mode="specific",
    checkpoint_path=str(folder / "merged" / f"checkpoint_{t5x_tiny.STEP}"),
    input_shapes=shapes,
    input_types={name: jnp.int32 for name in shapes},
)
examples = [{"input": text, "target": text[::-1]} for text in json.loads(sys.argv[4])]
answers, aux = session.predict_with_aux(examples)
scores = session.score(examples)
(folder / "answers.json").write_text(
    json.dumps(
        {
            "step": session.step,
            "predictions": [
                text.decode() if isinstance(text, bytes) else text for _, text in answers
            ],
            "target_calls": aux["target_calls"],
            "scores": [float(score) for _, score in scores],
        }
    )
)
