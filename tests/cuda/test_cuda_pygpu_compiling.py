"""Kernels as text, compiled by NVRTC, or by a stand-in for it on the emulated driver."""

import os

import numpy as np
import pytest

import hamr
from hamr import pygpu
from hamr._base.nvidia_packages import libraries_of_packages
from tests.cuda import driver
from tests.support import emulation
from tests.support.processes import run_code

SOURCE = """
extern "C" __global__ void saxpy(unsigned n, float a, const float *x, float *y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
#: What PTX says of its parameters.
SAID = (("u32", "i", 4), ("f32", "f", 4), ("u64", "i", 8), ("u64", "i", 8))
N = 1000


@pytest.fixture
def nvrtc():
    """The stand-in's file; None with a real driver, where a test is skipped without NVRTC."""
    if not driver.EMULATED:
        try:
            pygpu.compile(SOURCE)
        except hamr.BackendUnavailable as error:
            pytest.skip(str(error))
        yield None
        return
    library = str(emulation.build(emulation.NVRTC))
    hamr._base.library.core().Configure("HAMR_NVRTC_LIBRARY", library)
    yield library
    hamr._base.library.core().Configure("HAMR_NVRTC_LIBRARY", "")


def saxpy(module):
    x, y = pygpu.to_gpu(np.arange(N, dtype="f4")), pygpu.zeros(N, "float32")
    module.function("saxpy")(N, 2.0, x, y, grid=8, block=128)
    return y.get()


def test_a_program_becomes_a_module(nvrtc):
    module = pygpu.compile(SOURCE)
    assert (saxpy(module) == 2 * np.arange(N)).all()
    assert "kernels.cu" in repr(module)


@pytest.mark.parametrize("arch", [None, "compute_80"])
def test_types_of_parameters_are_known(nvrtc, arch):
    """Of code for one device as well, by the PTX that was on the way to it."""
    function = pygpu.compile(SOURCE, arch=arch).function("saxpy")
    assert function.attributes()["types"] == ("u32", "f32", "u64", "u64")
    x, y = pygpu.ones(N, "float32"), pygpu.zeros(N, "float32")
    function(N, 3, x, y, grid=8, block=128)
    assert (y.get() == 3).all()
    with pytest.raises(TypeError, match="argument 0 of saxpy is a float, and the parameter is an"):
        function(1.0, 3, x, y, grid=8, block=128)


def test_what_is_wrong_with_a_program(nvrtc):
    with pytest.raises(pygpu.CompileError, match="mistake") as raised:
        pygpu.compile('extern "C" __global__ void f() { mistake; }', name="mine.cu")
    error = raised.value
    assert isinstance(error, hamr.DeviceError)
    assert (error.api, error.name, error.code) == ("nvrtc", "NVRTC_ERROR_COMPILATION", 6)
    assert "mine.cu" in error.log
    assert "mistake" in error.log
    assert "nvrtcCompileProgram" not in error.log


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((b"x",), TypeError, "source is b'x'"),
        (("x\0",), ValueError, "null character|zero"),
        (("x", "name", "-DX"), TypeError, "options is '-DX': accepted is a list"),
        (("x", "name", [3]), TypeError, "options is"),
        (("x", "name", ["-arch=sm_90"]), ValueError, "options has '-arch=sm_90': accepted is"),
        (("x", "name", [], 90), TypeError, "arch is 90"),
        (("x", "name", [], None, 77), ValueError, "device"),
    ],
)  # fmt: skip
def test_wrong_arguments(nvrtc, arguments, error, words):
    with pytest.raises(error, match=words):
        pygpu.compile(*arguments)


def test_options_and_architectures(nvrtc, emulator):
    def options(**given):
        return pygpu.compile(SOURCE, **given).log

    own = "sm_75"  # the emulated device's
    assert options() == f"options: --gpu-architecture={own}"
    told = options(options=("-DA=1", "--std=c++17"), arch="compute_70")
    assert told == "options: -DA=1 --std=c++17 --gpu-architecture=compute_70"
    # A compiler that is older than the device makes text for the newest that it knows.
    older = {"HAMR_NVRTC_LIBRARY": nvrtc, "HAMR_TEST_NVRTC_ARCHITECTURES": "2"}
    output = run_code("import hamr.pygpu as g; print(g.compile('x').log)", env=older)
    assert output == "options: --gpu-architecture=compute_70\n"


def test_where_nvrtc_is_looked_for(emulator, tmp_path):
    """What the loader finds, PyPI's packages beside Python, and a toolkit's folder."""
    script = (
        "import hamr, hamr.pygpu as g\n"
        "try: print(g.compile('x').log)\n"
        "except hamr.BackendUnavailable as e: print(e.backend, *e.tried, sep='\\n')\n"
    )
    toolkit, packages = tmp_path / "toolkit", tmp_path / "packages"
    places = {"CUDA_HOME": str(toolkit), "PYTHONPATH": str(packages)}
    lines = run_code(script, env=places).splitlines()
    if lines[0] == "nvrtc":  # else the machine has one
        assert lines[1:3] == ["libnvrtc.so", "libnvrtc.so.13"]
        assert str(toolkit / "lib64" / "libnvrtc.so") in lines
        library = emulation.build(emulation.NVRTC)
        for file in (
            toolkit / "lib64" / "libnvrtc.so",
            packages / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12",
        ):
            file.parent.mkdir(parents=True)
            os.symlink(library, file)
            assert run_code(script, env=places).startswith("options:")
    # As os.environ says when a program is compiled, whatever hamr was told before.
    changed = (
        "import os, hamr.pygpu as g\n"
        "def tried():\n"
        "    try: return g.compile('x').log\n"
        "    except Exception as e: return str(getattr(e, 'tried', e))\n"
        "tried()\n"
        f"os.environ['CUDA_HOME'] = {str(toolkit)!r}\n"
        "found = tried()\n"
        "del os.environ['CUDA_HOME']\n"
        "print(found, tried(), sep='\\n')\n"
    )
    found, without = run_code(changed, env={"CUDA_HOME": "/elsewhere"}).splitlines()
    if lines[0] == "nvrtc":
        assert found.startswith("options:")
        assert str(toolkit) not in without
        assert "/elsewhere" not in without
    absent = run_code(script, env={"HAMR_NVRTC_LIBRARY": "/nowhere/libnvrtc.so"})
    assert absent.splitlines() == ["nvrtc", "/nowhere/libnvrtc.so"]


def test_nvrtc_itself_beside_the_emulated_driver(emulator):
    """It needs no device; HAMR_TEST_NVRTC names one, or PyPI's package is beside Python."""
    beside = libraries_of_packages("libnvrtc.so.")
    found = os.environ.get("HAMR_TEST_NVRTC") or next(iter(beside), None)
    if found is None:
        pytest.skip("no NVRTC: neither HAMR_TEST_NVRTC nor PyPI's nvidia-cuda-nvrtc")
    script = f"""
import numpy as np
from hamr import pygpu
module = pygpu.compile({SOURCE!r}, arch="compute_75")
x, y = pygpu.to_gpu(np.arange({N}, dtype="f4")), pygpu.zeros({N}, "float32")
module.function("saxpy")({N}, 2.0, x, y, grid=8, block=128)
print((y.get() == 2 * np.arange({N})).all(), module.function("saxpy").attributes()["parameters"])
for arch in ("sm_80", "compute_80"):
    print(pygpu.compile({SOURCE!r}, arch=arch).function("saxpy")._parameters == {SAID!r})
try:
    pygpu.compile("mistake", name="mine.cu")
except pygpu.CompileError as error:
    print(error.name, "mine.cu(1)" in error.log)
try:
    pygpu.compile("", options=["--nonsense"])
except pygpu.CompileError as error:
    print(error.name, "--nonsense" in error.log)
"""
    assert run_code(script, env={"HAMR_NVRTC_LIBRARY": found}).splitlines() == [
        "True (4, 4, 8, 8)",
        *["True"] * 2,
        "NVRTC_ERROR_COMPILATION True",
        "NVRTC_ERROR_INVALID_OPTION True",
    ]
