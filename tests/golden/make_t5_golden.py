"""Writes t5.npz: logits of transformers for the models of t5_cases.py.

    pip install . torch==2.13.0 transformers==5.24.0
    python tests/golden/make_t5_golden.py

The versions that made the committed file are stored in it, under `versions`.
"""

import jax
import numpy as np
import t5_cases
import torch
import transformers
import transformers_t5


def main():
    arrays = {
        "versions": np.array(
            f"torch {torch.__version__}, transformers {transformers.__version__}, "
            f"numpy {np.__version__}, jax {jax.__version__} (initial shapes only)"
        )
    }
    for name, case in t5_cases.CASES.items():
        reference = transformers_t5.build(case.config, t5_cases.weights(case.config, case.seed))
        inputs, decoder_inputs = t5_cases.token_ids(case)
        arrays[name] = transformers_t5.logits(reference, inputs, decoder_inputs)
        print(name, arrays[name].shape, "largest", np.abs(arrays[name]).max())
    np.savez_compressed(t5_cases.PATH, **arrays)
    print(t5_cases.PATH, t5_cases.PATH.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
