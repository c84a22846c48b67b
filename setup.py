"""Installation of `spec_cascades`: `pip install .`, or `pip install -e '.[test]'` to develop."""

import pathlib
import re

import setuptools

ROOT = pathlib.Path(__file__).parent
VERSION = re.search(
    r'__version__ = "(.+?)"', (ROOT / "spec_cascades" / "__init__.py").read_text()
).group(1)

# `gin/` and `configs/` stand at the top of the tree for people, and travel inside the package.
PACKAGED_FOLDERS = {"spec_cascades.gin": "gin", "spec_cascades.configs": "configs"}

setuptools.setup(
    name="spec_cascades",
    version=VERSION,
    description="Speculative cascades in JAX/Flax: faster and better answers from two models.",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=[*setuptools.find_packages(include=["spec_cascades*"]), *PACKAGED_FOLDERS],
    package_dir=PACKAGED_FOLDERS,
    package_data={
        "spec_cascades": ["demo/**", "text/data/*"],
        "spec_cascades.gin": ["**/*.gin"],
        "spec_cascades.configs": ["**/*.gin"],
    },
    entry_points={"console_scripts": ["spec-cascades = spec_cascades.main:main"]},
    install_requires=[
        "absl-py",
        "etils[epath]",
        "flax>=0.12",
        "gin-config>=0.5",
        "jax>=0.10",
        "matplotlib>=3.8",
        "numpy>=2.0",
        "optax>=0.2.5",
        "orbax-checkpoint>=0.11",
        "rouge-score>=0.1.2",
        "sacrebleu>=2.4",
        "safetensors>=0.4.3",
        "sentencepiece>=0.2",
        "seqio>=0.0.19",
        "tensorstore",
        "tqdm>=4.66",
    ],
    extras_require={
        "test": ["pytest>=8", "pytest-xdist>=3.5", "ruff==0.17.6", "scipy"],
        # Live comparison with Hugging Face (the golden values need neither).
        "peers": ["torch", "transformers>=5"],
        "tpu": ["jax[tpu]"],
        "cuda": ["jax[cuda12]"],
        # T5X imports tensorboard without declaring it.
        "t5x": ["t5x @ git+https://github.com/google-research/t5x", "tensorboard"],
    },
    classifiers=[
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
    ],
)
