"""Settings of the whole test run, made before jax is imported."""

import os

# Eight virtual CPU devices, for the tests of sharded programs; all others run on the first one.
os.environ["XLA_FLAGS"] = " ".join(
    [os.environ.get("XLA_FLAGS", ""), "--xla_force_host_platform_device_count=8"]
).strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
