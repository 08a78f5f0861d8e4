"""Device properties by CUDA's names on HIP, and that its devices are none of NVIDIA's library's."""

from tests.support import nvml_stand_in
from tests.support.processes import run_code


def test_properties_are_those_of_the_device_below():
    """The stand-in's numbers of attributes are HIP's, as in hip_runtime_api.h."""
    run_code(
        """
import hamr, hamr.pygpu as g
from hamr import _native
found = g.cudaDeviceProp(1)
assert found.last_status() == 0 and found.name() == "Emulated CUDA device 1"
numbers = [
    dict(_native.device_properties(name, 1)) for name in ("hip", "cuda")
]
assert numbers[0] == numbers[1] and len(numbers[0]) > 30, numbers
assert (found.warpSize(), found.maxThreadsDim(), found.maxGridSize()) == (
    32, (1024, 1024, 64), (2**31 - 1, 65535, 65534))
assert (found.pciDomainID(), found.pciBusID(), found.pciDeviceID()) == (0, 2, 0)
digits = hamr.device_properties("hip:1")["uuid"].removeprefix("GPU-")
assert bytes.fromhex(found.uuid()).decode() == digits and len(found.uuid()) == 32
assert g.cudaDeviceProp(7).last_status() == 101
""",
        env={"HAMR_PYGPU_RUNTIME": "hip"},
    )


def test_nvidias_library_knows_no_amd_device():
    run_code(
        """
import hamr
from hamr.pygpu import nvml
for device in (0, "hip:0"):
    try:
        nvml.device(device)
    except hamr.DeviceError as error:
        assert error.name == "NVML_ERROR_NOT_FOUND", error
    else:
        raise AssertionError(device)
assert nvml.device("cuda:0").index() == 1
""",
        env={"HAMR_PYGPU_RUNTIME": "hip", "HAMR_NVML_LIBRARY": str(nvml_stand_in.build())},
    )
