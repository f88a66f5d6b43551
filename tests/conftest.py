"""Strict tests: eight virtual devices, no silent broadcasting of ranks, one compilation cache for all workers."""

import importlib.metadata
import os
import shutil
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# compiling is most of the time of these tests: level 0 halves it, the older emitters halve it again where jaxlib
# still has them (it ends the process for a flag that it does not know), and neither changes a formula
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_force_host_platform_device_count=8",
        "--xla_backend_optimization_level=0",
        "--xla_cpu_use_fusion_emitters=false" if importlib.metadata.version("jaxlib").startswith("0.10.") else "",
    ]
)

import jax
import pytest
from hypothesis import HealthCheck, settings

jax.config.update("jax_numpy_rank_promotion", "raise")

# the same examples on every machine, and no verdict on how busy that machine is
settings.register_profile(
    "jaxpu", derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("jaxpu")


def pytest_configure(config: pytest.Config) -> None:
    # programs are compiled once per test session, not once per worker; a new folder a session keeps it honest
    if not hasattr(config, "workerinput"):
        os.environ["JAXPU_TEST_CACHE"] = tempfile.mkdtemp(prefix="jaxpu-tests-")
    os.environ["JAXPU_CACHE_DIR"] = os.environ["JAXPU_TEST_CACHE"]  # for the commands that tests start
    jax.config.update("jax_compilation_cache_dir", os.environ["JAXPU_TEST_CACHE"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["JAXPU_TEST_CACHE"], ignore_errors=True)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of full datasets, or a skip that says how to have it."""
    folder = os.environ.get("JAXPU_DATA_DIR")
    if not folder:
        pytest.skip("JAXPU_DATA_DIR is not set: it names the folder of full datasets")
    return Path(folder)
