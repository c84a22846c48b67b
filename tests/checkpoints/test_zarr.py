"""TensorStore specs follow a checkpoint to where it lies now."""

import numpy as np
import pytest

from spec_cascades.checkpoints import t5x_files, zarr_files

# As T5X writes them: the path is relative, the driver that of the machine that wrote.
LEAF = {
    "driver": "zarr",
    "dtype": "float32",
    "kvstore": {"driver": "gfile", "path": "target.encoder.encoder_norm.scale/"},
    "metadata": {"shape": [8], "chunks": [8], "compressor": {"id": "gzip"}},
}


@pytest.mark.parametrize(
    ("folder", "store"),
    [
        (
            "/data/t5/checkpoint_7",
            {"driver": "file", "path": "/data/t5/checkpoint_7/target.encoder.encoder_norm.scale/"},
        ),
        (
            "gs://t5-data/pretrained_models/t5x/t5_1_1_small/checkpoint_1000000",
            {
                "driver": "gcs",
                "bucket": "t5-data",
                "path": "pretrained_models/t5x/t5_1_1_small/checkpoint_1000000/"
                "target.encoder.encoder_norm.scale/",
            },
        ),
    ],
)
def test_specs_name_the_place_of_the_array(folder, store):
    import tensorstore as ts

    spec = t5x_files.spec(LEAF, folder, "x")
    assert spec == {"driver": "zarr", "kvstore": store}
    assert ts.Spec(spec).kvstore.to_json() == store  # TensorStore takes it


def test_specs_of_old_tensorstore_versions_are_read():
    old = {"driver": "zarr", "kvstore": {"driver": "file"}, "path": "target.x"}
    assert t5x_files.spec(old, "/c", "x")["kvstore"]["path"] == "/c/target.x/"


def test_layers_of_one_chunk_are_decompressed_once(tmp_path):
    stack = np.arange(4 * 3 * 5, dtype=np.float32).reshape(4, 3, 5)
    t5x_files.write(tmp_path / "c", {"stack": stack, "small": stack[0]})
    stored = t5x_files.read(tmp_path / "c")
    np.testing.assert_array_equal(stored["stack"][:, 0].whole(), stack[:, 0])
    (tmp_path / "c" / "target.stack" / "0.0.0").unlink()
    for layer in (1, 2):  # Still there, from the reading of the first.
        np.testing.assert_array_equal(stored["stack"][:, layer].whole(), stack[:, layer])
    np.testing.assert_array_equal(stored["small"].whole(), stack[0])


def test_other_leaves_and_places_are_refused():
    with pytest.raises(ValueError, match="file: x is neither an array nor a TensorStore spec"):
        t5x_files.spec({"driver": "n5", "kvstore": {"path": "x"}}, "/c", "file: x")
    with pytest.raises(ValueError, match="s3://bucket/x/: a local path or gs://… is expected"):
        zarr_files.kvstore("s3://bucket/x")
