"""The device of the tests: `HALITE_TEST_DEVICE` names one, otherwise the best Vulkan device; they are skipped, loudly, without one."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

import halite

REPOSITORY = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def elsewhere(tmp_path_factory):
    # Programs that tests start would import the sources where these lie, instead of what is installed.
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    yield
    os.chdir(before)


@pytest.fixture(scope="session")
def device():
    name = os.environ.get("HALITE_TEST_DEVICE")
    try:
        return halite.Device(f"vulkan://{name}" if name else "vulkan")
    except halite.Error as error:
        print(f"SKIPPED: there is no Vulkan device: {error}", file=sys.stderr)
        pytest.skip(f"there is no Vulkan device: {error}")


@pytest.fixture(scope="session")
def digits() -> pathlib.Path:
    return REPOSITORY / "demo/digits/digits.onnx"
