"""Checks with the real T5X that it reads a checkpoint: python t5x_load.py FOLDER NPZ

NPZ gets the parameters as `t5x.checkpoints.load_t5x_checkpoint` gives them, names joined by `/`.
"""

import sys

import numpy as np
from flax import traverse_util
from t5x import checkpoints


def main():
    folder, file = sys.argv[1:]
    state = checkpoints.load_t5x_checkpoint(folder)
    np.savez(file, **traverse_util.flatten_dict(state["target"], sep="/"))


if __name__ == "__main__":
    main()
