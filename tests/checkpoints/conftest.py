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
        # Python 3.11.0 to 3.11.3 know no filters, 3.12 warns without one.
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder
