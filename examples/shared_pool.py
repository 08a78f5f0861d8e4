"""A pool of processes that fills one buffer, each worker its own part, in place."""

import multiprocessing

import numpy as np

import hamr


def fill(task: tuple[hamr.Buffer, int]) -> int:
    """The part arrives as a description of where it is: no element is sent."""
    part, start = task
    array = np.asarray(part)
    array[:] = np.arange(start, start + len(part)) ** 2
    return len(part)


def main() -> None:
    total = hamr.Buffer(1000, "float64", hamr.Allocator.shared, fill=0)
    step = 250
    tasks = [(total[start : start + step], start) for start in range(0, len(total), step)]
    with multiprocessing.Pool(4) as pool:
        print("elements filled:", sum(pool.map(fill, tasks)))
    print(np.asarray(total)[-3:])


if __name__ == "__main__":
    main()
