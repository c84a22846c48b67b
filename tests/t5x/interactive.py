"""Answers by T5X's InteractiveModel, from one checkpoint that holds both models.

What `spec-cascades convert TARGET DST --to=t5x --drafter=DRAFTER` writes.

python interactive.py TARGET_CHECKPOINT DRAFT_CHECKPOINT FOLDER    writes FOLDER/answers.json
"""

import json
import pathlib
import sys

import jax.numpy as jnp
import t5x_tiny
from t5x import interactive_model

from spec_cascades import checkpoints
from spec_cascades.t5x import SpeculativeCascadeModel

target, draft, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
model = SpeculativeCascadeModel(
    t5x_tiny.config("target"), t5x_tiny.config("draft"), t5x_tiny.VOCABULARY, t5x_tiny.VOCABULARY
)
merged = folder / "checkpoint_0"
checkpoints.convert(target, merged, to="t5x", drafter=draft)

shapes = {"encoder_input_tokens": (4, 16), "decoder_input_tokens": (4, 20)}
session = interactive_model.InteractiveModel(
    batch_size=4,
    task_feature_lengths=t5x_tiny.LENGTHS,
    output_dir=str(folder / "session"),
    partitioner=t5x_tiny.partitioner(),
    model=model,
    dtype="float32",
    restore_mode="specific",
    checkpoint_path=str(merged),
    input_shapes=shapes,
    input_types={name: jnp.int32 for name in shapes},
)
examples = [{"input": text, "target": text[::-1]} for text in json.loads(sys.argv[4])]
answers, aux = session.predict_with_aux(examples)
scores = session.score(examples)
(folder / "answers.json").write_text(
    json.dumps(
        {
            "predictions": [
                text.decode() if isinstance(text, bytes) else text for _, text in answers
            ],
            "target_calls": aux["target_calls"],
            "scores": [float(score) for _, score in scores],
        }
    )
)
