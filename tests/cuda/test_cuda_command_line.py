"""``hamr info`` with CUDA devices, beside what the driver says of them."""

import ctypes
import json
import os
import subprocess
import sys

import pytest

import hamr
from tests.cuda import driver


def command(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "hamr", "info", *arguments],
        text=True,
        capture_output=True,
        check=True,
        cwd="/",
        env={**os.environ, **environment},
    )
    assert done.stderr == ""
    return done.stdout


def name_of(number):
    name = ctypes.create_string_buffer(256)
    driver.do("cuDeviceGetName", name, 256, number)
    return name.value.decode()


def version():
    number = driver.get("cuDriverGetVersion", kind=ctypes.c_int)
    return f"{number // 1000}.{number % 1000 // 10}"


def test_json_tells_of_every_device():
    facts = json.loads(command("--json"))
    cuda = facts["backends"]["cuda"]
    assert cuda["available"] is True
    assert cuda["allocators"] == ["cuda", "cuda_async", "cuda_uva", "cuda_host", "cuda_vmm"]
    assert len(cuda["devices"]) == driver.DEVICES
    for number, device in enumerate(cuda["devices"]):
        assert device["name"] == name_of(number)
        assert device["driver"] == version()
        _, total = driver.memory_info(number)
        assert int(device["memory"]) >= total
        assert 0 < int(device["memory_free"]) <= int(device["memory"])
        assert device["uuid"].startswith("GPU-")
        assert device["pci_bus_id"].count(":") == 2
        major, minor = device["compute_capability"].split(".")
        assert int(major) >= 5
        assert int(minor) >= 0
    assert len({device["uuid"] for device in cuda["devices"]}) == driver.DEVICES
    assert facts["preferred"] == {"host": "cuda_host", "device": "cuda_async"}


def test_text_tells_the_same():
    lines = command(HAMR_VERBOSE="0").splitlines()
    heading = "  cuda: available; allocators cuda, cuda_async, cuda_uva, cuda_host, cuda_vmm"
    below = lines[lines.index(heading) + 1 :]
    for number in range(driver.DEVICES):
        line = next(x for x in below if x.startswith(f"    device {number}: "))
        assert f"name {name_of(number)}" in line
        assert f"driver {version()}" in line
    assert "preferred allocators: host cuda_host, device cuda_async" in lines


@pytest.mark.multigpu
def test_the_matrix_of_peers():
    cuda = json.loads(command("--json"))["backends"]["cuda"]
    count = driver.DEVICES
    possible = [
        [
            i == j or driver.get("cuDeviceCanAccessPeer", i, j, kind=ctypes.c_int) == 1
            for j in range(count)
        ]
        for i in range(count)
    ]
    assert cuda["peers"] == possible
    text = command()
    for i in range(count):
        assert f"    device {i} reaches the memory of " in text


@pytest.mark.multigpu
def test_the_matrix_without_peers():
    cuda = json.loads(command("--json", HAMR_CUDA_PEER_ACCESS="0"))["backends"]["cuda"]
    count = driver.DEVICES
    assert cuda["peers"] == [[i == j for j in range(count)] for i in range(count)]
    assert "    device 0 reaches the memory of no other" in command(HAMR_CUDA_PEER_ACCESS="0")


def test_the_loaded_library_is_named():
    cuda = json.loads(command("--json"))["backends"]["cuda"]
    assert os.path.exists(cuda["library"])
    chosen = os.environ.get("HAMR_CUDA_LIBRARY")
    assert not chosen or os.path.samefile(cuda["library"], chosen)
    facts = json.loads(command("--json", HAMR_CUDA_POOL_RELEASE_THRESHOLD="1000"))
    assert facts["environment"]["HAMR_CUDA_POOL_RELEASE_THRESHOLD"] == "1000"


def test_functions_tell_the_same():
    found = [d for d in hamr.devices() if d["backend"] == "cuda"]
    assert [d["device"] for d in found] == list(range(driver.DEVICES))
    for number, facts in enumerate(found):
        properties = hamr.device_properties(number)
        assert properties.items() <= facts.items()
        assert properties["name"] == name_of(number)
    assert hamr.device_properties() == hamr.device_properties(hamr.current_device())
    with pytest.raises(ValueError, match=f"device is {driver.DEVICES}"):
        hamr.device_properties(driver.DEVICES)


def test_tracing_tells_the_device(capfd):
    hamr.set_verbose(1)
    try:
        buffer = hamr.Buffer(4, "f4", "cuda", fill=1)
        buffer.copy("malloc")
        buffer.close()
    finally:
        hamr.set_verbose(0)
    lines = capfd.readouterr().err.splitlines()
    assert any("allocate cuda device 0 size 16 at 0x" in line for line in lines)
    assert any(line.startswith("hamr: free cuda device 0 size 16") for line in lines)
    assert any("copy 16 bytes cuda device 0" in line for line in lines)
