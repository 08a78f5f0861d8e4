"""Groups that torch and CuPy make in place: bytes held, ends, errors, streams and threads."""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hamr
from hamr.allocators import use_in_cupy, use_in_torch
from hamr.store import ObjectNotFound, Sealed, Server, connect
from tests.gpu.cuda_driver_calls import free_bytes
from tests.gpu.gpu_delays import hold
from tests.support.processes import launch, run_code

MIB = 1 << 20


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "store" / "socket")
    with Server(path, limit={"host": "64MiB", "gpu": "3GiB"}):
        yield path


@pytest.fixture
def client(path):
    with connect(path) as client:
        yield client


def digest(array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).view("u1")).hexdigest()


def settle() -> None:
    """Have all memory that nobody uses returned to the driver."""
    import torch

    gc.collect()
    torch.cuda.synchronize()
    hamr.trim()  # of what other libraries' memory was shared by
    torch.cuda.empty_cache()
    hamr.trim()
    time.sleep(0.1)  # the server is told of leases that ended within 5 ms


# Bytes held.

BUILDS = """
import hashlib, os, sys
import torch
import hamr
from hamr.allocators import use_in_torch
from hamr.store import connect
from tests.gpu.cuda_driver_calls import free_bytes

MIB = 1 << 20
client = connect(os.environ["SOCKET"])
torch.rand(MIB, device="cuda").sum().item()
with client.build_group(bytes=4 * MIB, device=0) as space, use_in_torch(space):
    first = torch.rand(MIB // 4, device="cuda")
    space.add("first", first)
del first
client.delete(space.id)
torch.cuda.empty_cache()
hamr.trim()
before = free_bytes()
kept = {}
with client.build_group("weights", bytes=1024 * MIB + 22 * MIB, device=0) as space:
    with use_in_torch(space):
        for i in range(16):
            kept[f"layers.{i}"] = torch.rand((4096, 4096), device="cuda")
            space.add(f"layers.{i}", kept[f"layers.{i}"])
        for i in range(20):
            kept[f"bias.{i}"] = torch.rand(1000, device="cuda")
            space.add(f"bias.{i}", kept[f"bias.{i}"])
    peak = before - free_bytes()
    used = space.used
after = before - free_bytes()
print("peak", peak, after, space.bytes, used)
for name, tensor in kept.items():
    print(name, hashlib.sha256(tensor.cpu().numpy().view("u1")).hexdigest())
"""


def test_weights_of_torch_are_held_once_and_are_another_processs(client, path, torch_library):
    said = run_code(BUILDS, timeout=300, env={**os.environ, "SOCKET": path}).splitlines()
    print(said[0])
    _, peak, after, size, used = said[0].split()
    arrays = 1024 * MIB + 20 * 4000
    assert arrays <= int(used) <= int(size)
    assert int(peak) <= int(size) + 4 * MIB  # the directory, and what the driver rounds up to
    assert int(after) <= int(size) + 4 * MIB
    group = client.get_group("weights")
    told = dict(line.split() for line in said[1:])
    assert set(group) == set(told)
    assert {name: digest(each.get()) for name, each in group.items()} == told


def test_a_model_is_made_in_place(client, torch_library):
    import torch

    with client.build_group("model", bytes="100MiB", device=0) as space:
        with use_in_torch(space):
            layers = [torch.nn.Linear(1000, 1000, dtype=torch.bfloat16) for _ in range(4)]
            model = torch.nn.Sequential(*layers).to("cuda")
        for name, tensor in model.state_dict().items():
            space.add(name, tensor)
        given = {name: each.cpu() for name, each in model.state_dict().items()}
        print(space.used)
    tree = client.get_group("model").torch()
    assert set(tree) == set(given)
    assert all(torch.equal(tree[name].cpu(), each) for name, each in given.items())


# The end.

WRITES = """
import os
import torch
from hamr.allocators import use_in_torch
from hamr.store import connect

with connect(os.environ["SOCKET"]) as client:
    with client.build_group("weights", bytes="64MiB", device=0) as space:
        with use_in_torch(space):
            tensor = torch.full((1000,), 3.0, device="cuda")
        space.add("w", tensor)
    assert tensor.sum().item() == 3000
    print("writes", flush=True)
    tensor.add_(1)
    torch.cuda.synchronize()
"""


def test_a_write_after_the_seal_fails(client, path, torch_library):
    status, said = launch([sys.executable, "-c", WRITES], 120, env={"SOCKET": path})
    assert status != 0
    assert "writes" in said, said
    assert "CUDA error" in said, said
    assert (client.get_group("weights")["w"].get() == 3).all()


def test_tensors_outlive_the_seal(client, torch_library):
    import torch

    torch.rand(10, device="cuda")
    settle()
    before = free_bytes()
    with client.build_group("g", bytes="160MiB", device=0) as space, use_in_torch(space):
        tensors = [torch.full((4 * MIB,), i, device="cuda") for i in range(4)]
        for i, tensor in enumerate(tensors):
            space.add(str(i), tensor)
    with pytest.raises(Sealed):
        space.empty(3)
    group = client.get_group("g")
    assert [int(tensor.sum()) for tensor in tensors] == [4 * MIB * i for i in range(4)]
    del tensors[:2], tensor
    settle()
    assert [int(tensor.sum()) for tensor in tensors] == [8 * MIB, 12 * MIB]
    del tensors
    settle()
    assert [float(group[str(i)].get()[-1]) for i in range(4)] == [0, 1, 2, 3]
    client.delete(group.id)
    del group
    settle()
    assert before - free_bytes() <= 32 * MIB


@pytest.mark.parametrize("keep", [False, True])
def test_an_exception_discards_it(client, torch_library, keep):
    import torch

    torch.rand(10, device="cuda")
    settle()
    before, kept = free_bytes(), []
    with (  # noqa: PT012
        pytest.raises(ZeroDivisionError),
        client.build_group("g", bytes="256MiB", device=0) as space,
        use_in_torch(space),
    ):
        tensor = torch.full((16 * MIB,), 7, dtype=torch.int32, device="cuda")
        space.add("w", tensor)
        kept += [tensor] if keep else []
        del tensor
        raise ZeroDivisionError
    assert not client.exists(space.id)
    with pytest.raises(ObjectNotFound):
        client.get_group("g")
    assert all((each == 7).all() for each in kept)  # what shares the memory keeps it
    kept.clear()
    settle()
    assert before - free_bytes() <= 32 * MIB


# No room.


def test_torch_runs_out_of_the_space(client, torch_library):
    import torch

    with client.build_group("g", bytes="64MiB", device=0) as space:
        with pytest.raises(torch.cuda.OutOfMemoryError) as caught, use_in_torch(space):
            torch.empty(128 * MIB, dtype=torch.uint8, device="cuda")
        print(caught.value, caught.value.__notes__)
        assert "the group 'g' has 67108864 of its 67108864 bytes free" in caught.value.__notes__[0]
        with use_in_torch(space):
            space.add("w", torch.ones(40 * MIB, dtype=torch.uint8, device="cuda"))
        with pytest.raises(hamr.OutOfMemory, match="the group 'g' has 25165824 of its"):
            space.empty(30 * MIB, "u1")
    assert client.get_group("g")["w"][-1].item() == 1


def test_other_memory_is_refused(client, torch_library):
    import torch

    with client.build_group("g", bytes="64MiB", device=0) as space:
        other = torch.ones(3, device="cuda")
        with pytest.raises(ValueError, match=r"^arrays\['w'\] lies in other memory"):
            space.add("w", other)
        space.add("w", other, copy=True)
        space.add("h", np.arange(3), copy=True)
        with use_in_torch(space):
            inside = torch.rand((512, 512), device="cuda")
            with use_in_torch(), pytest.raises(ValueError, match="other memory"):
                space.add("o", torch.ones(3, device="cuda"))
            again = torch.rand((512, 512), device="cuda")
        with pytest.raises(ValueError, match="strides"):
            space.add("t", inside.T)
        with pytest.raises(ValueError, match="begins at byte"):
            space.add("t", inside.view(-1)[1:])
        space.add("i", inside)
        space.add("row", inside[:1])
        space.add("a", again)
        expected = inside.cpu()
    group = client.get_group("g")
    assert torch.equal(group.torch()["i"].cpu(), expected)
    assert torch.equal(group.torch()["row"].cpu(), expected[:1])
    assert group["h"].get().tolist() == [0, 1, 2]


# Streams, threads, several groups.


def test_work_of_all_streams_is_waited_for(client, torch_library):
    import torch

    streams = [torch.cuda.Stream() for _ in range(3)]
    with client.build_group("g", bytes="256MiB", device=0) as space, use_in_torch(space):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                tensor = torch.zeros(8 * MIB, device="cuda")
                torch.cuda._sleep(200_000_000)
                tensor += i + 1
                space.add(str(i), tensor)
    group = client.get_group("g")
    for i in range(3):
        assert (group[str(i)].get() == i + 1).all()


def test_memory_given_back_is_made_again_in_order(client, cupy_library):
    """CuPy gives back memory that a kernel is still writing to."""
    cp = cupy_library.module
    stream = cp.cuda.Stream(non_blocking=True)
    with client.build_group("g", bytes="64MiB", device=0) as space:
        for i in range(5):
            with use_in_cupy(space), stream:
                late = cp.zeros(12 * MIB, "f4")
                hold(cp, stream, 50_000)
                late += 9
                del late
            array = space.empty(12 * MIB, "f4")
            array.fill(i)
            cp.cuda.Device().synchronize()
            assert (array.get() == i).all()
            if i == 4:
                space.add("w", array)
            del array
    assert (client.get_group("g")["w"].get() == 4).all()


def test_torch_keeps_its_memory_for_the_next_region(client, torch_library):
    import torch

    with client.build_group("g", bytes="64MiB", device=0) as space:
        for i in range(20):
            with use_in_torch(space):
                tensor = torch.full((12 * MIB,), float(i), device="cuda")
            assert (tensor == i).all()
            if i < 19:
                del tensor
        space.add("w", tensor)
    assert (client.get_group("g")["w"].get() == 19).all()


def test_two_groups_in_turn_and_at_once(client, torch_library):
    import torch

    with (
        client.build_group("a", bytes="100MiB", device=0) as a,
        client.build_group("b", bytes="100MiB", device=0) as b,
    ):
        for i in range(4):
            for space, sign in ((a, 1), (b, -1)):
                with use_in_torch(space):
                    space.add(str(i), torch.full((MIB,), i * sign, device="cuda"))
        with use_in_torch(a):
            outer = torch.ones(MIB, device="cuda")
            with use_in_torch(b):
                b.add("inner", torch.ones(MIB, device="cuda"))
            a.add("outer", outer)
            a.add("more", torch.ones(MIB, device="cuda"))
    for name, sign in (("a", 1), ("b", -1)):
        group = client.get_group(name)
        assert [float(group[str(i)].get()[7]) for i in range(4)] == [i * sign for i in range(4)]
    with client.build_group("c", bytes="64MiB", device=0) as c, use_in_torch(c):
        c.add("w", torch.ones(MIB, device="cuda"))
    assert "outer" in client.get_group("a")


def test_threads_share_a_group(client, torch_library):
    import torch

    with client.build_group("g", bytes="1536MiB", device=0) as space:

        def work(number: int) -> None:
            with use_in_torch(space), torch.cuda.stream(torch.cuda.Stream()):
                for i in range(20):
                    size = 1000 * (i * i * i + 1)
                    tensor = torch.full((size,), 100 * number + i, device="cuda")
                    if i % 2:
                        space.add(f"{number}.{i}", tensor)

        def beside(number: int) -> None:
            for _ in range(50):
                tensor = torch.full((100_000,), number, device="cuda")
                with pytest.raises(ValueError, match="other memory"):
                    space.add("x", tensor)
                assert int(tensor[-1]) == number

        with ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(work, i) for i in range(4)] + [pool.submit(beside, 7)]
            for job in jobs:
                job.result()
    group = client.get_group("g")
    assert len(group) == 40
    for path, array in group.items():
        number, i = map(int, path.split("."))
        assert (array.get() == 100 * number + i).all()


# Other ways.


def test_cupy(client, cupy_library):
    import cupy

    with client.build_group("g", bytes="64MiB", device=0) as space:
        other = cupy.arange(5)
        with use_in_cupy(space) as use:
            array = cupy.random.random((1000, 1000))
            space.add("w", array)
            twice = array * 2
            space.add("twice", twice)
            none = cupy.empty(0)
            space.add("none", none)
            with pytest.raises(cupy.cuda.memory.OutOfMemoryError) as caught:
                cupy.empty(128 * MIB, "u1")
            assert "the group 'g' has" in str(caught.value.__cause__)
            assert repr(use) == "<hamr.allocators.CuPyUse>"
        with pytest.raises(ValueError, match="other memory"):
            space.add("other", other)
        with pytest.raises(ValueError, match="other memory"):
            space.add("after", cupy.arange(5))
        expected = cupy.asnumpy(array)
        del twice
    group = client.get_group("g")
    assert np.array_equal(group["w"].get(), expected)
    assert np.array_equal(group["twice"].get(), expected * 2)
    assert group["none"].shape == (0,)
    assert np.array_equal(cupy.asnumpy(array), expected)
    del array
    gc.collect()
    assert np.array_equal(group["w"].get(), expected)


EVERYWHERE = """
import os
import hamr, hamr.allocators
hamr.allocators.use_in_torch(everywhere=True)
import torch
from hamr.store import connect

MIB = 1 << 20
client = connect(os.environ["SOCKET"])
other = torch.ones(1000, device="cuda")
with client.build_group("g", bytes="64MiB", device=0) as space:
    with hamr.allocators.use_in_torch(space):
        for i in range(10):
            space.add(str(i), torch.full((1000,), float(i), device="cuda"))
        try:
            torch.empty(128 * MIB, device="cuda")
        except RuntimeError as error:  # torch's, as far as torch exports its constructor
            print(str(error).splitlines()[0])
    print(space.used)
    later = torch.ones(1000, device="cuda")
    try:
        space.add("later", later)
    except ValueError:
        print("refused")
print([float(each.get()[-1]) for each in client.get_group("g").values()] == list(range(10)))
"""


def test_torch_everywhere_takes_no_more_than_tensors_have(path, torch_library):
    said = run_code(EVERYWHERE, timeout=120, env={**os.environ, "SOCKET": path}).splitlines()
    print(said)
    assert "in one piece" in said[0]
    assert said[1:] == [str(10 * 4096), "refused", "True"]


def test_tensors_of_buffers(client, torch_library):
    import torch

    with client.build_group("g", bytes=MIB, device=0) as space:
        buffer = space.empty((100, 100), "bfloat16")
        torch.from_dlpack(buffer).fill_(3)
        space.add("w", buffer)
        space.add("again", torch.from_dlpack(buffer))
    tree = client.get_group("g").torch()
    assert (tree["w"] == 3).all()
    assert tree["w"].data_ptr() == tree["again"].data_ptr()
