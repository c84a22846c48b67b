"""Checkpoints that T5X and transformers wrote; see golden/make_checkpoints.py."""

import pathlib
import tarfile

import pytest

ARCHIVE = pathlib.Path(__file__).parent.parent / "golden" / "checkpoints.tar.xz"


@pytest.fixture(scope="session")
def golden(tmp_path_factory):
    """The folder of all of them; not to be changed."""
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, filter="data")
    return folder
