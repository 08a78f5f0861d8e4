"""Device properties and NVML on the emulated or the real driver."""

import ctypes
import shutil
import subprocess

import pytest

import hamr
import hamr.pygpu as gpuarray
from hamr.pygpu import nvml
from tests.cuda import driver
from tests.support import nvml_stand_in
from tests.support.processes import run_code


def attribute(number, device):
    return driver.get("cuDeviceGetAttribute", number, device, kind=ctypes.c_int)


def facts_of(device):
    return next(d for d in hamr.devices() if (d["backend"], d["device"]) == ("cuda", device))


def bus_of(device):
    """Domain, bus and device, as the driver writes them."""
    text = ctypes.create_string_buffer(64)
    driver.do("cuDeviceGetPCIBusId", text, 64, device)
    return tuple(int(part, 16) for part in text.value.decode().partition(".")[0].split(":"))


def test_bus_device_and_domain_are_three_numbers(device):
    found = gpuarray.cudaDeviceProp(device)
    assert found.last_status() == 0
    assert (found.pciDomainID(), found.pciBusID(), found.pciDeviceID()) == bus_of(device)
    if driver.EMULATED:
        assert (found.pciDomainID(), found.pciBusID(), found.pciDeviceID()) == (0, device + 1, 0)


def test_properties_are_the_drivers(device):
    found = gpuarray.cudaDeviceProp(device)
    facts = facts_of(device)
    assert found.name() == facts["name"] != ""
    raw = ctypes.create_string_buffer(16)
    driver.do("cuDeviceGetUuid", raw, device)
    if "MIG" not in found.name():
        assert found.uuid() == raw.raw.hex()
    assert found.totalGlobalMem() == driver.get("cuDeviceTotalMem_v2", device)
    numbers = {
        "major": 75, "minor": 76, "multiProcessorCount": 16, "warpSize": 10,
        "maxThreadsPerBlock": 1, "maxThreadsPerMultiProcessor": 39,
        "maxBlocksPerMultiProcessor": 106, "sharedMemPerBlock": 8, "sharedMemPerBlockOptin": 97,
        "sharedMemPerMultiprocessor": 81, "reservedSharedMemPerBlock": 111, "regsPerBlock": 12,
        "regsPerMultiprocessor": 82, "totalConstMem": 9, "l2CacheSize": 38, "memPitch": 11,
        "textureAlignment": 14, "clockRate": 13, "memoryClockRate": 36, "memoryBusWidth": 37,
        "asyncEngineCount": 40, "computeMode": 20, "concurrentKernels": 31,
        "concurrentManagedAccess": 89, "cooperativeLaunch": 95, "canMapHostMemory": 19,
        "ECCEnabled": 32, "integrated": 18, "kernelExecTimeoutEnabled": 17, "managedMemory": 83,
        "memoryPoolsSupported": 115, "pageableMemoryAccess": 88, "streamPrioritiesSupported": 78,
        "unifiedAddressing": 41,
    }  # fmt: skip
    assert {name: getattr(found, name)() for name in numbers} == {
        name: attribute(number, device) for name, number in numbers.items()
    }
    assert found.maxThreadsDim() == tuple(attribute(n, device) for n in (2, 3, 4))
    assert found.maxGridSize() == tuple(attribute(n, device) for n in (5, 6, 7))
    assert f"{found.major()}.{found.minor()}" == facts["compute_capability"]
    assert found.warpSize() == 32
    assert found.maxThreadsPerBlock() >= 1024


def test_the_struct_begins_as_cudas(device):
    """The offsets are those of driver_types.h."""
    found = gpuarray.cudaDeviceProp(device)
    pointer = found.get()
    head = ctypes.string_at(int(pointer), 340)
    assert head.partition(b"\0")[0].decode() == found.name()
    assert head[256:272].hex() == found.uuid()
    assert int.from_bytes(head[288:296], "little") == found.totalGlobalMem()
    assert int.from_bytes(head[296:304], "little") == found.sharedMemPerBlock()
    assert int.from_bytes(head[304:308], "little") == found.regsPerBlock()
    assert int.from_bytes(head[308:312], "little") == 32
    assert int.from_bytes(head[320:324], "little") == found.maxThreadsPerBlock()
    assert int.from_bytes(head[336:340], "little") == found.maxGridSize()[0]


@pytest.mark.parametrize("number", [driver.DEVICES, -1, 2**31, 2**70])
def test_no_such_device_is_a_status(number):
    found = gpuarray.cudaDeviceProp(number)
    assert found.last_status() == 101
    assert (found.name(), found.uuid(), found.pciBusID(), found.warpSize()) == ("", "", 0, 0)
    assert found.maxGridSize() == (0, 0, 0)
    assert gpuarray.cudaGetLastError() == 101
    assert int(found.get()) != 0


def test_a_device_that_fails_to_tell_is_a_status(emulator):
    code = """
import hamr.pygpu as g
from tests.cuda import driver
driver.emulator.fail("cuDeviceGetAttribute", 0, 999)
found = g.cudaDeviceProp(0)
assert (found.last_status(), found.name(), found.warpSize()) == (999, "", 0), found
"""
    run_code(code)


@pytest.mark.parametrize("wrong", ["0", None, 0.0, False])
def test_a_device_is_a_number(wrong):
    with pytest.raises(TypeError, match="i is"):
        gpuarray.cudaDeviceProp(wrong)


def test_versions():
    versions = gpuarray.major_version, gpuarray.minor_version, gpuarray.release_version
    assert versions == (0, 2, 1)


@pytest.mark.skipif(not nvml_stand_in.AVAILABLE, reason="no C compiler for the stand-in")
@pytest.mark.skipif(not driver.EMULATED, reason="the stand-in's devices are the emulated ones")
def test_hamrs_number_leads_to_the_same_card():
    """NVML counts the stand-in's devices the other way round."""
    code = """
import hamr, hamr.pygpu as g
from hamr.pygpu import nvml
for k, found in enumerate(hamr.devices()):
    if found["backend"] == "cuda" and k < 2:  # the others are its own
        assert nvml.device(k).uuid() == nvml.device(f"cuda:{k}").uuid() == found["uuid"]
        assert nvml.device(k).index() == 1 - k
        assert nvml.device(k).pci().bus == g.cudaDeviceProp(k).pciBusID()
assert nvml.device().index() == 1
try:
    nvml.device(77)
except ValueError as error:
    assert "77" in str(error)
else:
    raise AssertionError("there is no such device")
"""
    run_code(code, env={"HAMR_NVML_LIBRARY": str(nvml_stand_in.build())})


def smi(query, uuid):
    """What nvidia-smi says of a device, as a list of texts."""
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", uuid]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    return [part.strip() for part in done.stdout.split(",")]


@pytest.mark.skipif(driver.EMULATED, reason="no real device")
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no nvidia-smi")
def test_what_nvidia_smi_says(device):
    found = nvml.device(device)
    facts = facts_of(device)
    assert found.uuid().partition("-")[2] == facts["uuid"].partition("-")[2]
    assert found.name() == facts["name"]
    if found.is_mig_instance():
        pytest.skip("nvidia-smi does not tell these of an instance")
    said = smi(
        "uuid,name,index,driver_version,memory.total,enforced.power.limit,pci.bus_id", found.uuid()
    )
    assert said[:4] == [found.uuid(), found.name(), str(found.index()), nvml.driver_version()]
    assert int(said[4]) == found.memory().total >> 20
    power = found.power()
    assert power.usage > 0
    assert power.limit is None or abs(power.limit / 1000 - float(said[5])) < 0.01
    assert said[6].upper() == found.pci().bus_id.upper()
    assert found.pci()[:3] == bus_of(device)
    highest = smi("clocks.max.graphics,clocks.max.sm,clocks.max.memory", found.uuid())
    assert list(found.max_clocks()) == [int(each) for each in highest]
    assert 0 < found.temperature() < 120
    assert all(0 <= part <= 100 for part in found.utilization())
    memory = found.memory()
    assert 0.99 < (memory.free + memory.used + (memory.reserved or 0)) / memory.total <= 1
    assert gpuarray.nvmlInit() == 0
    upstream = gpuarray.nvmlDevice(found.index())
    free, total, used = upstream.memory_info()
    assert (total, used) == (memory.total, total - free)
    assert upstream.last_status() == 0
    assert gpuarray.nvmlShutdown() == 0
    assert all(each.pid > 0 for each in found.processes())
