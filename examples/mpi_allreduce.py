"""Ranks of MPI add up their buffers: mpirun -n 3 python mpi_allreduce.py."""

import numpy as np
from mpi4py import MPI

import hamr

world = MPI.COMM_WORLD

# Of memory on a device, get_host_accessible() makes a copy for MPI to send.
mine = hamr.Buffer(8, "float64", fill=world.rank)
total = hamr.Buffer(8, "float64")
world.Allreduce(mine.get_host_accessible(), total)
if world.rank == 0:
    print(f"the mean of {world.size} ranks:", np.asarray(total) / world.size)

# MPI writes into the buffer's own memory.
world.Allreduce(MPI.IN_PLACE, mine)
if world.rank == 0:
    print("in place:", mine[0].item())
