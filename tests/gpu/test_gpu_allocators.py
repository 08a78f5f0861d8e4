"""CuPy and torch on hamr's pool: memory, statistics, errors, results, order, and ends."""

from __future__ import annotations

import concurrent.futures
import os

import pytest

import hamr.allocators
from tests.gpu.gpu_reuse import ROUNDS, rounds
from tests.support.processes import run_code

MIB = 1 << 20
TOO_MUCH = 1 << 50
SECONDS = 300.0
ENDS = 100

#: The ways in which torch's memory is hamr's.
TORCH = ["region", "everywhere"]

PRELUDE = """
import gc, hashlib, os, sys
import hamr, hamr.allocators
way = os.environ["WAY"]
if way == "everywhere":
    hamr.allocators.use_in_torch(everywhere=True)
import torch
torch.zeros(1, device="cuda")
"""


def run(code: str, way: str, **settings: str) -> str:
    """What a new process prints that uses torch in some way."""
    environment = {**os.environ, "WAY": way, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", **settings}
    return run_code(PRELUDE + code, timeout=SECONDS, env=environment)


def live() -> int:
    """Bytes of CUDA's memory that are in use through hamr."""
    return hamr.stats()["allocators"].get("cuda", {"current": 0})["current"]


# One pool in place of many.

LOOP = """
import ctypes
import cupy
from tests.gpu.cuda_driver_calls import check, driver, free_bytes
MIB = 1 << 20
ROOM, LARGE = 3072 * MIB, 2048 * MIB
from contextlib import nullcontext
if way != "separate":
    hamr.allocators.use_in_cupy()
in_torch = hamr.allocators.use_in_torch if way == "region" else nullcontext
with in_torch():
    torch.ones(1, device="cuda").sum().item()
int(cupy.ones(1, "u1").sum())
hamr.Buffer(1, "u1", "cuda", fill=1).close()
filler = ctypes.c_uint64()
size = free_bytes() - ROOM
check(driver().cuMemAlloc_v2(ctypes.byref(filler), ctypes.c_size_t(size)))
try:
    for i in range(1, 5):
        with in_torch():
            tensor = torch.full((LARGE,), i, dtype=torch.uint8, device="cuda")
            assert tensor[-1].item() == i
            del tensor
        array = cupy.full(LARGE, i + 1, "u1")
        assert int(array[-1]) == i + 1
        del array
        with hamr.Buffer(LARGE, "u1", "cuda", fill=i + 2) as buffer:
            assert buffer[-1].item() == i + 2
except cupy.cuda.memory.OutOfMemoryError:
    print("out of memory")
else:
    print("finished")
"""


@pytest.mark.parametrize("way", ["separate", *TORCH])
def test_a_loop_that_has_room_for_one_pool_only(cupy_library, torch_library, way):
    said = run(LOOP, way).split("\n")
    assert ("out of memory" if way == "separate" else "finished") in said


@pytest.mark.freed_again
def test_memory_goes_from_library_to_library(cupy_library):
    import cupy

    hamr.trim()
    with hamr.allocators.use_in_cupy():
        array = cupy.empty(8 * MIB, "u1")
        address = array.data.ptr
        before = live()
        del array
        assert live() == before - 8 * MIB
        with hamr.Buffer(8 * MIB, "u1", "cuda") as buffer:
            assert buffer.ptr == address


# Statistics and errors.


def test_torchs_statistics_in_a_region(torch_library):
    import torch

    torch.cuda.empty_cache()
    before, hamrs = torch.cuda.memory_stats(), live()
    with hamr.allocators.use_in_torch():
        tensor = torch.ones(64 * MIB, dtype=torch.uint8, device="cuda")
        during = torch.cuda.memory_stats()
        for key in ("allocated_bytes.all.current", "reserved_bytes.all.current"):
            assert during[key] - before[key] == 64 * MIB
        assert during["allocation.all.current"] == before["allocation.all.current"] + 1
        assert live() == hamrs + 64 * MIB
        assert int(tensor.sum(dtype=torch.int64)) == 64 * MIB
        del tensor
        after = torch.cuda.memory_stats()
        assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
        assert after["allocated_bytes.all.peak"] >= during["allocated_bytes.all.current"]
    torch.cuda.empty_cache()
    assert live() == hamrs
    reserved = "reserved_bytes.all.current"
    assert torch.cuda.memory_stats()[reserved] <= before[reserved]


def test_torch_runs_out_of_memory_in_a_region(torch_library):
    import torch

    with hamr.allocators.use_in_torch():
        counted = torch.cuda.memory_stats()["num_ooms"]
        with pytest.raises(torch.cuda.OutOfMemoryError, match="CUDA out of memory"):
            torch.empty(TOO_MUCH, dtype=torch.uint8, device="cuda")
        assert torch.cuda.memory_stats()["num_ooms"] == counted + 1
        assert torch.ones(3, device="cuda").sum().item() == 3


def test_tensors_outlive_their_region(torch_library):
    import torch

    with hamr.allocators.use_in_torch():
        tensor = torch.full((MIB,), 7, dtype=torch.uint8, device="cuda")
    hamrs = live()
    assert hamrs > 0
    assert int(tensor.sum(dtype=torch.int64)) == 7 * MIB
    del tensor
    torch.cuda.empty_cache()
    assert live() < hamrs


EVERYWHERE = """
import ctypes
text = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
# Some releases of torch have the error's constructor nowhere but inline.
made = hasattr(ctypes.CDLL("libc10.so"), "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationE" + text)
try:
    torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
except RuntimeError as error:
    assert isinstance(error, torch.cuda.OutOfMemoryError) or not made
    assert "CUDA out of memory" in str(error) and "hamr" in str(error), error
else:
    raise AssertionError("nothing was raised")
x = torch.ones(1 << 20, device="cuda")
assert hamr.stats()["allocators"]["cuda"]["current"] >= 4 << 20
assert x.sum().item() == 1 << 20
try:
    torch.cuda.memory_stats()
except RuntimeError:
    pass
else:
    raise AssertionError("the documents say that it raises")
try:
    hamr.allocators.use_in_torch(everywhere=True)
except RuntimeError:
    raise AssertionError("it is so already")
import threading
found = []
def work():
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        for _ in range(200):
            found.append(torch.ones(1000, device="cuda").sum())
    s.synchronize()
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
assert all(each.item() == 1000 for each in found)
"""


def test_torch_everywhere(torch_library):
    run(EVERYWHERE, "everywhere")


def test_everywhere_comes_too_late(torch_library):
    with pytest.raises(RuntimeError, match="before its first use"):
        hamr.allocators.use_in_torch(everywhere=True)


def test_cupy_runs_out_of_memory(cupy_library):
    import cupy

    with hamr.allocators.use_in_cupy():
        with pytest.raises(cupy.cuda.memory.OutOfMemoryError) as caught:
            cupy.empty(TOO_MUCH, "u1")
        assert isinstance(caught.value.__cause__, hamr.OutOfMemory)
        assert int(cupy.ones(3, "u1").sum()) == 3


# The same results.

TRAINING = """
from contextlib import nullcontext
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
torch.autograd.set_multithreading_enabled(False)
with hamr.allocators.use_in_torch() if way == "region" else nullcontext():
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    ).cuda()
    optimiser = torch.optim.Adam(model.parameters())
    inputs = torch.randn(256, 64).cuda()
    wanted = torch.randint(10, (256,)).cuda()
    for _ in range(100):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), wanted)
        loss.backward()
        optimiser.step()
    bits = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
print(hashlib.sha256(bits).hexdigest(), loss.item())
if way != "separate":
    assert hamr.stats()["allocators"]["cuda"]["made"] > 0
"""


def test_training_is_the_same_bit_for_bit(torch_library):
    first = run(TRAINING, "separate")
    assert first.strip()
    for way in TORCH:
        assert run(TRAINING, way) == first


def workload(cupy) -> bytes:
    """Elementwise work, sums and sorting, on many streams: all that CuPy does in one order.

    A running sum of floats is not: it differs in the last bits from run to run.
    """
    results = []
    for number in range(20):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            x = cupy.arange(100_000, dtype="f4") * (number + 1) % 977
            y = cupy.sort(cupy.sin(x) + cupy.sqrt(x))
            results += [
                cupy.asnumpy(y),
                cupy.asnumpy(cupy.cumsum(x.astype("i4"))),
                cupy.asnumpy(y.sum()),
            ]
            stream.synchronize()
    return b"".join(each.tobytes() for each in results)


def test_a_workload_of_cupys_is_the_same_bit_for_bit(cupy_library):
    import cupy

    first = workload(cupy)
    made = hamr.stats()["allocators"].get("cuda", {"made": 0})["made"]
    with hamr.allocators.use_in_cupy():
        assert workload(cupy) == first
    assert hamr.stats()["allocators"]["cuda"]["made"] > made


# Order.


@pytest.fixture
def streams(cupy_library):
    import cupy

    return [cupy.cuda.Stream(non_blocking=True) for _ in range(3)]


def take_by_cupy(cupy, streams):
    def take(number: int, n: int):
        with streams[number]:
            return cupy.empty(n, "f4")

    return take


def test_another_stream_has_memory_after_its_event(cupy_library, streams):
    import cupy

    with hamr.allocators.use_in_cupy():
        wrong, moved = rounds(cupy, streams, take_by_cupy(cupy, streams))
    assert wrong == 0
    assert moved > 0  # else nothing went from one to the other


def test_without_an_event_the_values_are_wrong(cupy_library, streams):
    """The same rounds, where the other stream gets the memory at once."""
    import cupy

    with hamr.allocators.use_in_cupy():
        take = take_by_cupy(cupy, streams)
        wrong, _ = rounds(cupy, streams, take, lambda first: first.view())
    assert wrong > ROUNDS // 2


FROM_TORCH = """
import cupy
from tests.gpu.gpu_reuse import rounds
hamr.allocators.use_in_cupy()
producers = [torch.cuda.Stream() for _ in range(3)]
streams = [cupy.cuda.ExternalStream(each.cuda_stream) for each in producers]
def take(number, n):
    with torch.cuda.stream(producers[number]):
        return cupy.asarray(torch.empty(n, device="cuda"))
alias = (lambda first: first.view(),) if "ALIAS" in os.environ else ()
print(*rounds(cupy, streams, take, *alias))
"""


def test_cupy_has_torchs_memory_after_its_event(cupy_library, torch_library):
    wrong, moved = map(int, run(FROM_TORCH, "everywhere").split()[-2:])
    assert wrong == 0
    assert moved > 0


def test_without_an_event_torchs_values_are_wrong(cupy_library, torch_library):
    wrong, _ = map(int, run(FROM_TORCH, "everywhere", ALIAS="1").split()[-2:])
    assert wrong > ROUNDS // 2


# Forks, exits, and what is left then.

END = """
kept = [torch.ones(1000, device="cuda")]
if way == "region":
    kept.append(hamr.allocators.use_in_torch())
    kept.append(torch.ones(1000, device="cuda"))
number = int(os.environ["NUMBER"])
if cupy_too := number % 2 == 0:
    import cupy
    hamr.allocators.use_in_cupy()
    kept += [cupy.ones(1000), cupy.ones(64 << 20, "u1")]
if number % 3 == 0:
    child = os.fork()
    if child == 0:
        if cupy_too:
            try:
                cupy.cuda.alloc(1 << 20)
            except (hamr.ForkError, RuntimeError):
                pass
            else:
                os._exit(3)
        kept.clear()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
sys.kept = kept
if number % 5 == 0:
    kept.append(kept)
if number % 4 == 1:
    for name in [n for n in sys.modules if n.startswith("hamr")]:
        del sys.modules[name]
    del hamr
    gc.collect()
if number % 7 == 0:
    sys.exit(0)
"""


def test_processes_end_with_live_memory(cupy_library, torch_library):
    """100 of 100: with forks before, and with hamr's modules gone."""

    def end(number: int) -> None:
        run(END, TORCH[number // 2 % 2], NUMBER=str(number))

    with concurrent.futures.ThreadPoolExecutor(max(2, min(8, (os.cpu_count() or 2) // 2))) as pool:
        assert len(list(pool.map(end, range(ENDS)))) == ENDS


def test_many_threads_of_cupys(cupy_library):
    import cupy

    def work(number: int) -> bool:
        with cupy.cuda.Stream(non_blocking=True) as stream:
            right = True
            for step in range(200):
                x = cupy.full(1000 + 37 * step, number, "f4")
                right &= bool((x == number).all())
            stream.synchronize()
            return right

    with (
        hamr.allocators.use_in_cupy(),
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        assert all(pool.map(work, range(8)))
