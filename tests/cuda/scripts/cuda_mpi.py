"""Device memory and mpi4py, without an MPI that knows CUDA.

mpirun -n 2 python tests/cuda/scripts/cuda_mpi.py
"""

import numpy as np
from mpi4py import MPI

import hamr

WORLD = MPI.COMM_WORLD
OTHER = 1 - WORLD.rank


class Interface:
    """A buffer's CUDA array interface alone: mpi4py asks for DLPack before."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


def main():
    for allocator in ("cuda", "cuda_async", "cuda_uva"):
        for dtype in ("f4", "i1", "bool", "c16"):
            b = hamr.Buffer((2, 3), dtype, allocator, fill=1)
            assert MPI.memory.frombuffer(Interface(b)).address == b.ptr
            taken = MPI.memory.frombuffer(Interface(b.get_cuda_accessible()))
            assert (taken.address, taken.nbytes) == (b.ptr, b.nbytes)

    # Through the host, which every MPI can do.
    for allocator in ("cuda", "cuda_async", "cuda_uva", "cuda_host"):
        sent = hamr.Buffer(1000, "f8", allocator, fill=WORLD.rank)
        received = hamr.Buffer(1000, "f8", allocator, fill=-1)
        arrived = hamr.Buffer(1000)
        WORLD.Sendrecv(sent.get_host_accessible(), OTHER, recvbuf=arrived, source=OTHER)
        received[...] = arrived
        np.testing.assert_array_equal(
            np.asarray(received.get_host_accessible()), np.full(1000, OTHER, "f8")
        )
        back = WORLD.sendrecv(sent, OTHER, source=OTHER)
        assert back.allocator == sent.allocator
        assert back[7].item() == OTHER
    # Memory that both reach is a message as it is.
    for allocator in ("cuda_uva", "cuda_host"):
        total = hamr.Buffer(10, "i4", allocator, fill=WORLD.rank + 1)
        WORLD.Allreduce(MPI.IN_PLACE, total)
        assert total[9].item() == 3
    if WORLD.rank == 0:
        print("OK", flush=True)


try:
    main()
except BaseException:
    import traceback

    traceback.print_exc()
    WORLD.Abort(1)
