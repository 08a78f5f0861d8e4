"""Threads that work on parts of one buffer, wherever its memory is."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import hamr

N, PARTS = 1_000_000, 8
STEP = N // PARTS


def tabulate(waves: hamr.Buffer, start: int) -> float:
    """Write one part. NumPy lets other threads run while it computes."""
    angles = np.arange(start, start + STEP) * (2 * math.pi / N)
    with waves[start : start + STEP].on_host("w") as part:  # "w": all of it is written
        np.sin(angles, out=part)
        return float(np.square(part).sum())


def try_to_write(waves: hamr.Buffer) -> str:
    try:
        with waves[:10].on_host("rw") as part:
            part[:] = 0
    except hamr.InUse:
        return "refused"
    return "done"


# In the memory of a GPU, if there is one: each thread's part is then written back alone.
waves = hamr.Buffer(N, "float64", hamr.get_device_allocator())
starts = range(0, N, STEP)
with ThreadPoolExecutor(max_workers=4) as pool:
    squares = sum(pool.map(tabulate, [waves] * PARTS, starts))
print(f"the mean square of a sine is {squares / N:.6f}")

with ThreadPoolExecutor(max_workers=1) as pool:
    with waves[5:15].on_host("rw") as part:
        part += 1
        meanwhile = pool.submit(try_to_write, waves).result()
    afterwards = pool.submit(try_to_write, waves).result()
print("another thread that writes to the same elements:", meanwhile)
print("afterwards:", afterwards)
print(np.asarray(waves.get_host_accessible())[8:12].round(3))
