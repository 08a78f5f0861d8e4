"""NVIDIA's management library: absent, and a stand-in, in processes of their own."""

import pytest

from tests.support import nvml_stand_in
from tests.support.processes import run_code

needs_stand_in = pytest.mark.skipif(
    not nvml_stand_in.AVAILABLE, reason="no C compiler to build the stand-in with"
)
START = "import pytest, hamr, hamr.pygpu as g\nfrom hamr.pygpu import nvml\n"


def run(code, old=False, **environment):
    library = str(nvml_stand_in.build(old))
    return run_code(START + code, env={"HAMR_NVML_LIBRARY": library, **environment})


def test_an_absent_library_is_a_status():
    run_code(
        START
        + """
init = g.nvmlInit()
assert (init, init.as_int(), init.name) == (12, 12, "NVML_ERROR_LIBRARY_NOT_FOUND"), init
assert repr(init) == str(init) == "<NvmlReturn: 'code=12'>"
assert "library" in g.nvmlErrorString(init)
assert g.nvmlShutdown() == g.nvmlReturn_t(12) and hash(init) == hash(12)
d = g.nvmlDevice(0)
assert d.last_status() == 12
assert (d.utilization_rates(), d.memory_info(), int(d.get())) == ((0, 0), (0, 0, 0), 0)
for ask in (d.power, nvml.devices, nvml.driver_version, lambda: nvml.device(index=0)):
    with pytest.raises(hamr.BackendUnavailable) as caught:
        ask()
    assert (caught.value.backend, caught.value.tried) == ("nvml", ("/nowhere/libnvidia-ml.so",))
""",
        env={"HAMR_NVML_LIBRARY": "/nowhere/libnvidia-ml.so"},
    )


def test_what_is_no_library_is_absent(tmp_path):
    (tmp_path / "libnvidia-ml.so").write_text("no library")
    code = "assert g.nvmlInit() == 12\nwith pytest.raises(hamr.BackendUnavailable, match='nvml'): "
    code += "nvml.nvml_version()"
    run_code(START + code, env={"HAMR_NVML_LIBRARY": str(tmp_path / "libnvidia-ml.so")})


@needs_stand_in
@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_upstreams_names_give_statuses(old):
    run(
        """
d = g.nvmlDevice(0)
assert d.last_status().name == "NVML_ERROR_UNINITIALIZED" and d.memory_info() == (0, 0, 0)
assert g.nvmlShutdown() == 1
assert d.power().usage == 123456, "hamr's own names initialise by themselves"
assert g.nvmlDevice(0).last_status() == 1, "and count for nobody else"
assert g.nvmlInit() == 0 and g.nvmlInit() == 0 and g.nvmlShutdown() == 0
assert d.utilization_rates() == (70, 30) and d.last_status() == 0
assert d.memory_info() == (949_000, 1_000_000, 51_000)
assert int(d.get()) != 0 and d.get().__index__() == int(d.get())
other = g.nvmlDevice(1)
assert other.utilization_rates() == (71, 31) and int(other.get()) != int(d.get())
for wrong in (3, -1, 2**31, 2**80):
    lost = g.nvmlDevice(wrong)
    assert lost.last_status().name == "NVML_ERROR_INVALID_ARGUMENT", wrong
    assert lost.memory_info() == (0, 0, 0)
for wrong in ("0", 0.0, None, True):
    with pytest.raises(TypeError):
        g.nvmlDevice(wrong)
    with pytest.raises(TypeError):
        g.nvmlReturn_t(wrong)
assert g.nvmlErrorString(g.nvmlReturn_t(3)) == "Not Supported"
assert g.nvmlReturn_t(2**40) != g.nvmlReturn_t(0)
assert g.nvmlShutdown() == 0
assert d.utilization_rates() == (0, 0) and d.last_status() == 1
assert d.temperature() == 40
""",
        old,
    )


@needs_stand_in
def test_facts_of_devices():
    run(
        """
assert (nvml.driver_version(), nvml.nvml_version()) == ("580.65.06", "13.580.65.06")
assert nvml.cuda_driver_version() == 13000 and nvml.library().endswith(".so")
one, two, three = nvml.devices()
assert [d.index() for d in (one, two, three)] == [0, 1, 2]
assert one.name() == "Device 0 0" and len(three.name()) == 159
assert one.serial() == "1650522003820"
assert two.uuid() == "GPU-68616d72-2d65-6d75-6c61-7465642d3030"
assert two.pci() == (0, 1, 4, "00000000:01:04.0") and two.pci().bus == 1
assert one.utilization().gpu == 70 and one.utilization().memory == 30
assert one.memory() == (949_000, 1_000_000, 50_000, 1000) and one.memory().reserved == 1000
assert (one.temperature(), one.power()) == (40, (123456, 700000))
assert one.clocks() == (1000, 1100, 1200) and one.max_clocks().memory == 2200
assert one.persistence_mode() is True and one.ecc_mode() == (True, False)
assert one.processes() == [
    (100, "compute", 409600, None, None),
    (101, "compute", None, None, None),
    (7, "graphics", 28672, None, None),
]
with pytest.raises(hamr.DeviceError, match="nvmlDeviceGetSerial failed with NVML") as caught:
    two.serial()
assert (caught.value.api, caught.value.name, caught.value.code) == (
    "nvml", "NVML_ERROR_NOT_SUPPORTED", 3)
assert nvml.device(uuid=two.uuid()).index() == 1
assert nvml.device(pci_bus_id="0000:02:00.0").index() == 0
assert nvml.device(index=2).uuid() == three.uuid()
for what in ({"uuid": "GPU-0"}, {"pci_bus_id": "0000:77:00.0"}, {"index": 3}):
    with pytest.raises(hamr.DeviceError):
        nvml.device(**what)
for what in ({"uuid": 0}, {"index": 0, "uuid": "GPU-0"}, {"pci_bus_id": b"0"}, {"index": "0"},
             {"index": 1.0}, {"index": True}, {"device": 1.0}):
    with pytest.raises(TypeError):
        nvml.device(**what)
for index in (-1, 2**32, 2**70):
    with pytest.raises((hamr.DeviceError, ValueError)):
        nvml.device(index=index)
with pytest.raises(ValueError, match="zeros"):
    nvml.device(uuid="GPU-0\\0")
"""
    )


@needs_stand_in
def test_mig_instances():
    run(
        """
whole = nvml.device(index=2)
assert whole.mig_mode() == (True, True) and not whole.is_mig_instance()
parts = whole.mig_instances()
assert [p.instance_ids() for p in parts] == [(3, 0), (4, 0)]
assert [p.index() for p in parts] == [1, 4]
assert all(p.is_mig_instance() and p.uuid().startswith("MIG-") for p in parts)
assert parts[1].whole_device().uuid() == whole.uuid()
assert parts[0].memory().total == 1_000_000
for ask in ("utilization", "temperature", "power", "clocks"):
    with pytest.raises(hamr.DeviceError) as caught:
        getattr(parts[0], ask)()
    assert caught.value.name == "NVML_ERROR_NOT_SUPPORTED", ask
assert whole.processes()[0] == (100, "compute", 409600, 3, 1)
plain = nvml.device(index=0)
assert plain.mig_instances() == []
with pytest.raises(hamr.DeviceError, match="NOT_SUPPORTED"):
    plain.mig_mode()
"""
    )


@needs_stand_in
def test_failures_keep_their_names():
    fail = "nvmlInit_v2:18,nvmlDeviceGetPowerUsage:15"
    run(
        """
import os
assert g.nvmlInit().name == "NVML_ERROR_LIB_RM_VERSION_MISMATCH"
with pytest.raises(hamr.DeviceError, match="nvmlInit_v2 failed with NVML_ERROR_LIB_RM") as caught:
    nvml.devices()
assert caught.value.code == 18
os.environ["HAMR_NVML_STAND_IN_FAIL"] = "nvmlDeviceGetEnforcedPowerLimit:3"
assert nvml.device(index=0).power() == (123456, None)
os.environ["HAMR_NVML_STAND_IN_FAIL"] = "nvmlDeviceGetPowerUsage:15"
with pytest.raises(hamr.DeviceError, match="NVML_ERROR_GPU_IS_LOST"):
    nvml.device(index=0).power()
""",
        HAMR_NVML_STAND_IN_FAIL=fail,
    )


@needs_stand_in
def test_threads_and_forks():
    run(
        """
import os, threading
def work():
    for _ in range(50):
        assert g.nvmlInit() == 0
        d = g.nvmlDevice(0)
        assert d.utilization_rates() == (70, 30) and d.last_status() == 0
        assert g.nvmlShutdown() == 0
failed = []
threading.excepthook = failed.append
threads = [threading.Thread(target=work) for _ in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
assert not failed, failed[0].exc_value
assert g.nvmlShutdown() == 1
assert g.nvmlInit() == 0
d, own = g.nvmlDevice(0), nvml.device(index=1)
child = os.fork()
if child == 0:
    status = 1
    try:
        assert d.utilization_rates() == (0, 0) and d.last_status() == 1, "it begins anew"
        assert own.temperature() == 41
        assert g.nvmlInit() == 0 and d.utilization_rates() == (70, 30)
        assert g.nvmlShutdown() == 0 and g.nvmlShutdown() == 1
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(child, 0)[1] == 0
assert d.utilization_rates() == (70, 30)
"""
    )
