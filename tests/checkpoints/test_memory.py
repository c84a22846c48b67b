"""Loading never needs the whole model on the host besides what is placed."""

import json
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from spec_cascades.checkpoints import checks, huggingface, safetensors_files
from spec_cascades.models.t5 import T5, T5Config, trees

SHARD_BYTES = 2 * 10**9


def write_random(folder, config):
    """A folder of random bfloat16 numbers; returns the bytes of the largest shard and of all."""
    folder.mkdir()
    description = trees.config_to_json(config, "bfloat16")
    (folder / huggingface.CONFIG).write_text(json.dumps(description))
    random = np.random.default_rng(0)
    shapes, places = {}, {}
    for name, shape in checks.expected_shapes(T5(config)).items():
        theirs = trees.their_name(name)
        shapes[theirs] = shape[::-1] if trees.is_transposed(name) else shape
    sizes = {name: 2 * int(np.prod(shape)) for name, shape in shapes.items()}
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    for number, group in enumerate(safetensors_files.shards(sizes, SHARD_BYTES)):
        file = f"model-{number}.safetensors"
        places |= dict.fromkeys(group, file)
        tensors = {
            name: random.integers(0x3C00, 0x3F00, shapes[name], np.uint16).view(bfloat16)
            for name in group
        }
        safetensors_files.write(folder / file, tensors)
    (folder / huggingface.INDEX).write_text(json.dumps({"weight_map": places}))
    return max(file.stat().st_size for file in folder.glob("*.safetensors")), sum(sizes.values())


LOAD = """
import resource, sys, jax
from spec_cascades import checkpoints
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
loaded = checkpoints.load(sys.argv[1], vocabulary="demo")
jax.block_until_ready(loaded.params)
placed = sum(x.nbytes for x in jax.tree.leaves(loaded.params))
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, placed)
"""


@pytest.mark.slow
def test_three_billion_parameters(tmp_path):
    if shutil.disk_usage(tmp_path).free < 8 * 10**9:
        pytest.skip("needs 8 GB of free disk")
    largest, stored = write_random(tmp_path / "m", T5Config.preset("t5_1_0_3b"))
    command = [sys.executable, "-c", LOAD, tmp_path / "m"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    before, peak, placed = map(int, done.stdout.split())
    gigabytes = {"largest shard": largest, "before": before, "peak": peak, "placed": placed}
    print({name: round(size / 1e9, 2) for name, size in gigabytes.items()})
    assert placed == stored > 5.6e9
    assert peak < 1.3 * largest + placed
