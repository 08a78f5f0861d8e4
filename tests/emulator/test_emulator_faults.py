"""Kernels on the emulator, injected errors, reports, forks, and what the environment changes."""

import ctypes
import json
import struct

import pytest

from tests.emulator.emulated_driver import (
    GARBAGE,
    ILLEGAL_ADDRESS,
    INVALID_DEVICE,
    INVALID_HANDLE,
    INVALID_PTX,
    INVALID_VALUE,
    NO_DEVICE,
    NOT_FOUND,
    NOT_INITIALIZED,
    NOT_PERMITTED,
    NOT_SUPPORTED,
    OUT_OF_MEMORY,
    PEER_ACCESS_ALREADY_ENABLED,
    PEER_ACCESS_NOT_ENABLED,
    PEER_ACCESS_UNSUPPORTED,
    build,
    device,
    event,
    memory,
    run_script,
    streams,
    violation,
)

PTX = (
    b"// comment\n\n/* another */ .version 7.0\n.visible .entry  absent(\n.param .u64 a)\n{ret;}\n"
)


def floats(d, at, count):
    return list(struct.unpack(f"{count}f", d.peek(at, 4 * count)))


def test_kernels_of_others_run_late(d):
    with memory(d, 16) as a, memory(d, 16) as b, streams(d, 1) as [stream]:
        assert d.scale(stream, a, 0, 4, 0, 3) == 0
        assert d.scale(stream, b, a, 4, 2, 1) == 0
        assert d.peek(b, 16) == bytes([GARBAGE]) * 16
        d.do("cuStreamSynchronize", stream)
        assert floats(d, b, 4) == [7] * 4


def test_bad_access_of_a_kernel_comes_back_from_the_wait(d):
    with memory(d, 16) as at, streams(d, 2) as [stream, other]:
        assert d.scale(stream, at, 0, 5, 0, 3) == 0
        with violation(d, "out of bounds"):
            d.do("cuStreamSynchronize", other)
            assert d.code("cuStreamSynchronize", stream) == ILLEGAL_ADDRESS
        d.do("cuStreamSynchronize", stream)
        assert d.peek(at, 16) == bytes([GARBAGE]) * 16


def test_kernels_need_access_to_peers(d):
    peer = d.get("cuDevicePrimaryCtxRetain", 1)
    with device(d, 1):
        far = d.allocate(4)
    assert d.get("cuDeviceCanAccessPeer", 0, 1, kind=ctypes.c_int) == 1
    assert d.scale(0, far, 0, 1, 0, 3) == 0
    with violation(d, "memory of another device"):
        assert d.code("cuCtxSynchronize") == ILLEGAL_ADDRESS
    assert d.code("cuCtxDisablePeerAccess", peer) == PEER_ACCESS_NOT_ENABLED
    assert d.code("cuCtxEnablePeerAccess", d.get("cuCtxGetCurrent"), 0) == INVALID_DEVICE
    d.do("cuCtxEnablePeerAccess", peer, 0)
    assert d.code("cuCtxEnablePeerAccess", peer, 0) == PEER_ACCESS_ALREADY_ENABLED
    assert d.scale(0, far, 0, 1, 0, 3) == 0
    d.do("cuCtxSynchronize")
    assert floats(d, far, 1) == [3]
    d.do("cuCtxDisablePeerAccess", peer)
    d.do("cuMemFree_v2", far)
    d.do("cuDevicePrimaryCtxRelease_v2", 1)


def test_pool_memory_needs_access_of_its_own(d):
    pool = d.get("cuDeviceGetDefaultMemPool", 1)
    for flags, code in ((0, ILLEGAL_ADDRESS), (3, 0), (0, ILLEGAL_ADDRESS)):
        d.do("cuMemPoolSetAccess", pool, (ctypes.c_int * 3)(1, 0, flags), 1)
        with device(d, 1):
            far = d.get("cuMemAllocAsync", 4, 0)
            d.do("cuCtxSynchronize")
        assert d.scale(0, far, 0, 1, 0, 3) == 0
        assert d.code("cuCtxSynchronize") == code
        assert len(d.violations()) == (code != 0)
        d.library.emulator_reset()
        d.do("cuMemFree_v2", far)


def test_access_to_a_pool_is_not_changed_while_its_memory_is_in_use(d):
    pool = d.get("cuDeviceGetDefaultMemPool", 1)
    with device(d, 1):
        far = d.get("cuMemAllocAsync", 4, 0)
        d.do("cuCtxSynchronize")
    with violation(d, "changes while its memory is in use"):
        d.do("cuMemPoolSetAccess", pool, (ctypes.c_int * 3)(1, 0, 3), 1)
    d.do("cuMemFree_v2", far)


def test_modules(d):
    assert d.code("cuModuleLoadData", ctypes.byref(ctypes.c_uint64()), b"x") == INVALID_PTX
    module = d.get("cuModuleLoadDataEx", PTX, 0, None, None)
    assert d.live("modules") == 1
    out = ctypes.c_uint64()
    assert d.code("cuModuleGetFunction", ctypes.byref(out), module, b"absen") == NOT_FOUND
    function = d.get("cuModuleGetFunction", module, b"absent")
    launch = d.code("cuLaunchKernel", function, *(1,) * 6, 0, 0, None, None)
    assert launch == NOT_SUPPORTED, "it has no host version"
    d.do("cuModuleUnload", module)
    with violation(d, "unknown function"):
        launch = d.code("cuLaunchKernel", function, *(1,) * 6, 0, 0, None, None)
        assert launch == INVALID_HANDLE


KERNEL = """
extern "C" void *hamr_device_pointer(unsigned long long address, unsigned long long size);

struct argument { unsigned long long target; unsigned count; };

static void number(const void *a, unsigned long long thread, unsigned long long threads) {
  const argument *g = static_cast<const argument *>(a);
  for (unsigned long long i = thread; i < g->count; i += threads)
    *static_cast<unsigned char *>(hamr_device_pointer(g->target + i, 1)) = thread;
}

struct hamr_host_kernel {
  const char *name;
  unsigned long argument_size;
  void (*run)(const void *, unsigned long long, unsigned long long);
};
extern "C" {
extern const hamr_host_kernel hamr_host_kernels[];
const hamr_host_kernel hamr_host_kernels[] = {
    {"number", sizeof(argument), number}, {nullptr, 0, nullptr}};
}
"""


def test_launches_run_the_host_version_of_a_kernel(tmp_path):
    source = tmp_path / "kernels.cu"
    source.write_text(KERNEL)
    library = build(tmp_path, "libkernels.so", KERNELS=str(source))
    script = """
import struct
d.start()
module = d.get("cuModuleLoadData", b".version 7 .entry number(")
function = d.get("cuModuleGetFunction", module, b"number")
def launch(at, count, grid=2, block=3):
    argument = ctypes.create_string_buffer(struct.pack("QI", at, count))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
    sizes = grid, 1, 1, block, 1, 1
    code = d.code("cuLaunchKernel", function, *sizes, 0, 0, parameters, None)
    argument.raw = bytes(len(argument))
    return code
with memory(d, 8) as at:
    print(launch(at, 8), d.peek(at, 8) == bytes([GARBAGE]) * 8)
    print(d.code("cuCtxSynchronize"), list(d.peek(at, 8)), d.violations())
    print(launch(at, 9), d.code("cuCtxSynchronize"), len(d.violations()))
    print(launch(at, 8, 0), launch(at, 8, 1, 1025))
"""
    expected = ["0 True", "0 [0, 1, 2, 3, 4, 5, 0, 1] []"]
    expected += [f"0 {ILLEGAL_ADDRESS} 1", f"{INVALID_VALUE} {INVALID_VALUE}"]
    assert run_script(library, script).splitlines() == expected


def test_host_functions_run_in_stream_order_without_the_mutex(d):
    results = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def function(argument):
        results.append((argument, d.peek(at, 1), d.code("cuCtxSynchronize")))

    with memory(d, 4) as at, streams(d, 1) as [stream]:
        d.fill(at, 1, 4, stream)
        d.do("cuLaunchHostFunc", stream, function, 5)
        d.fill(at, 2, 4, stream)
        assert results == []
        with violation(d, "called by a host function"):
            d.do("cuStreamSynchronize", stream)
        assert results == [(5, b"\1", NOT_PERMITTED)]


def test_injected_errors(d):
    d.fail("cuMemAlloc", 2, OUT_OF_MEMORY)
    d.fail("cuMemGetInfo_v2", 0, 999)
    with memory(d, 4):
        out = ctypes.c_uint64()
        assert d.code("cuMemAlloc_v2", ctypes.byref(out), 4) == OUT_OF_MEMORY
        assert [d.code("cuMemGetInfo_v2", None, None) for _ in range(2)] == [999, 999]
        d.library.emulator_stop_failing()
        d.get("cuMemGetInfo_v2", ctypes.byref(out))
    assert d.calls("cuMemAlloc_v2") == d.calls("cuMemAlloc") == 2
    assert d.calls("cuMemFree_v2") == 1


def test_late_errors_reach_all_who_depend_on_the_work(d):
    with memory(d, 4) as at, streams(d, 3) as [first, second, third], event(d) as done:
        d.fail("execute", 1, 719)
        d.fill(at, 1, 4, first)
        d.do("cuEventRecord", done, first)
        d.do("cuStreamWaitEvent", second, done, 0)
        d.do("cuStreamSynchronize", third)
        assert d.code("cuStreamSynchronize", second) == 719
        assert d.code("cuEventSynchronize", done) == 719
        for stream in (first, second, third):
            d.do("cuStreamSynchronize", stream)
        assert d.peek(at, 4) == bytes([GARBAGE]) * 4


def test_error_of_a_copy_to_pageable_memory(d):
    host = ctypes.create_string_buffer(b"abcd", 4)
    with memory(d, 4) as at:
        d.fail("execute", 1, 719)
        assert d.code("cuMemcpyDtoH_v2", host, at, 4) == 719
        assert host.raw == b"abcd"


def test_live_counts(d):
    what = ("memory", "bytes", "streams", "events")
    before = [d.live(w) for w in what]
    with memory(d, 10), memory(d, 20, "cuMemHostAlloc", 0), streams(d, 2), event(d):
        assert [d.live(w) - b for w, b in zip(what, before, strict=True)] == [2, 30, 2, 1]
    assert d.live("nothing") == -1


def test_nothing_works_before_initialisation(library):
    script = "print(d.code('cuDeviceGetCount', None), d.code('cuMemAlloc_v2', None, 1))"
    assert run_script(library, script) == f"{NOT_INITIALIZED} {NOT_INITIALIZED}"


def test_nothing_works_in_a_forked_child(library):
    script = """
d.start()
if os.fork() == 0:
    codes = d.code("cuInit", 0), d.code("cuCtxSynchronize"), d.code("cuMemAlloc_v2", None, 1)
    os._exit(codes == (NOT_INITIALIZED,) * 3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert run_script(library, script) == "1"


def test_a_child_may_start_where_the_parent_has_not(library):
    script = """
if os.fork() == 0:
    os._exit(d.code("cuInit", 0) == 0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert run_script(library, script) == "1"


def test_environment(library):
    script = """
import ctypes
print(d.code("cuInit", 0), d.get("cuDriverGetVersion", kind=ctypes.c_int))
if d.code("cuInit", 0) == 0:
    d.use(1)
    can = d.get("cuDeviceCanAccessPeer", 0, 1, kind=ctypes.c_int)
    peer = d.get("cuDevicePrimaryCtxRetain", 0)
    print(can, d.code("cuCtxEnablePeerAccess", peer, 0), d.get("cuDeviceTotalMem_v2", 1))
"""
    assert run_script(library, script, HAMR_EMULATOR_DEVICES="0") == f"{NO_DEVICE} 13000"
    values = {"DEVICES": "2", "MEMORY": "12345", "VERSION": "11020", "PEERS": "0"}
    got = run_script(library, script, **{f"HAMR_EMULATOR_{k}": v for k, v in values.items()})
    assert got == f"0 11020\n0 {PEER_ACCESS_UNSUPPORTED} 12345"


def test_errors_from_the_environment(library):
    script = "print([d.code(c, 0) for c in ('cuInit', 'cuInit', 'cuStreamSynchronize')])"
    got = run_script(library, script, HAMR_EMULATOR_FAIL="cuInit:1:999,cuStreamSynchronize:1:700")
    assert got == "[999, 0, 700]"


def test_report_at_exit(library, tmp_path):
    report = tmp_path / "report"
    script = """
d.start()
at, stream, _ = d.allocate(10), d.stream(), d.event()
d.fill(at, 1, 10, stream)
d.code("cuMemFree_v2", 1234)
if os.fork() == 0:
    exit()
os.wait()
"""
    run_script(library, script, HAMR_EMULATOR_REPORT=str(report))
    run_script(library, "", HAMR_EMULATOR_REPORT=str(report))
    first, second = map(json.loads, report.read_text().splitlines())
    violations = ["cuMemFree_v2: free of unknown address 0x4d2"]
    counts = {"memory": 1, "bytes": 10, "streams": 1, "events": 1, "pools": 0, "pending": 1}
    assert first == counts | {"violations": violations}
    assert second == dict.fromkeys(counts, 0) | {"violations": []}


def test_threads_mode_runs_work_by_itself_and_in_order(library):
    script = """
import time
d.start()
at, stream, other, done = d.allocate(4), d.stream(), d.stream(), d.event()
for i in range(20):
    d.fill(at, i, 4, stream)
    d.do("cuEventRecord", done, stream)
    d.do("cuStreamWaitEvent", other, done, 0)
    d.fill(at, 100 + i, 4, other)
    d.do("cuEventRecord", done, other)
    d.do("cuStreamWaitEvent", stream, done, 0)
deadline = time.time() + 30
while d.pending() and time.time() < deadline:
    time.sleep(0.001)
print(d.pending(), d.peek(at, 4) == bytes([119] * 4), d.violations())
"""
    assert run_script(library, script, HAMR_EMULATOR_MODE="threads") == "0 True []"


@pytest.mark.parametrize("mode", ["late", "threads"])
def test_many_threads(library, mode):
    script = """
import threading
context = d.start()
def work(number):
    d.do("cuCtxSetCurrent", context)
    stream, done = d.stream(), d.event()
    for i in range(50):
        at = d.get("cuMemAllocAsync", 1000, stream)
        d.fill(at, i, 1000, stream)
        host = ctypes.create_string_buffer(1000)
        d.do("cuMemcpyDtoHAsync_v2", host, at, 1000, stream)
        assert host.raw == bytes([i]) * 1000
        d.do("cuEventRecord", done, stream)
        d.do("cuEventSynchronize", done)
        d.do("cuMemFreeAsync", at, stream)
    d.do("cuStreamDestroy_v2", stream)
    d.do("cuEventDestroy_v2", done)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
d.finish()
print([d.live(w) for w in ("memory", "streams", "events")], d.pending(), d.violations())
"""
    assert run_script(library, script, HAMR_EMULATOR_MODE=mode) == "[0, 0, 0] 0 []"
