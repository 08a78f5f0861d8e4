"""Walks at random over what libraries do with hamr's memory: library_walk.py --walks 100.

Two libraries have streams of their own, which they end at any moment. They take temporaries,
handles, views and buffers of every allocator, read and write them late, and drop them at any
moment. What they and hamr find is compared with plain values; the emulated driver notes misuse.

Each walk has a seed, and each step has one. So a walk that fails, or that ends the process, is cut
to the steps that matter, which --seed 7 --steps 3,8,9 repeats. --minutes 10 goes on for that long.
"""

from __future__ import annotations

import argparse
import gc
import random
import subprocess
import sys
import time

LENGTH = 40
COUNTS = (64, 1000, 80_000)


def steps_of(seed: int) -> list[tuple[str, int]]:
    from tests.cuda.scripts.library_steps import Walk

    choose = random.Random(seed)
    names = ["make"] * 3 + choose.choices(Walk.STEPS, k=LENGTH - 3)
    return [(name, choose.getrandbits(32)) for name in names]


def walk(seed: int, rooms: list, chosen: list[int] | None = None) -> None:
    """One walk, or the chosen steps of it."""
    import hamr
    from tests.cuda import driver
    from tests.cuda.scripts.library_steps import Walk

    steps = steps_of(seed)
    going = Walk(rooms, COUNTS[seed % len(COUNTS)])
    try:
        for number in range(LENGTH) if chosen is None else chosen:
            going.step(*steps[number])
            if driver.emulator is not None:
                assert not driver.emulator.violations(), driver.emulator.violations()
        going.finish()
        gc.collect()
        hamr.trim()
        if driver.emulator is not None:
            driver.emulator.finish()
            assert not driver.emulator.violations(), driver.emulator.violations()
            live = driver.emulator.live("memory")
            assert live == len(rooms), f"{live - len(rooms)} pieces of memory that nobody has"
    except BaseException:
        print(*going.told, sep="\n  ")
        raise


def work(seeds: range, end: float, chosen: list[int] | None) -> None:
    """In a process of its own: the walks of some seeds, until a time."""
    from tests.support import emulation

    emulation.choose()
    import hamr
    from tests.cuda import driver
    from tests.cuda.scripts.walking_library import Room

    if driver.DEVICES == 1:
        driver.set_current(driver.context(0))  # as beside other libraries
    rooms = [Room(device) for device in range(min(driver.DEVICES, 2))]
    assert rooms, "no CUDA device"
    hamr.Buffer(1, "u1", "cuda", fill=0).close()
    hamr.trim()
    for seed in seeds:
        if time.time() > end:
            break
        print("seed", seed, flush=True)
        walk(seed, rooms, chosen)


def run(seeds: range, end: float, chosen: list[int] | None = None) -> tuple[int, int, str]:
    """How many walks began, the seed of the last, and what it said if it failed."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.cuda.scripts.library_walk"]
    command += ["--work", "--seed", str(seeds.start), "--walks", str(len(seeds)), f"--end={end}"]
    if chosen is not None:
        command += ["--steps", ",".join(map(str, chosen))]
    begun, said = 0, []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("seed "):
                begun, said = begun + 1, []
            else:
                said.append(line)
    failed = child.returncode != 0
    text = f"the process ended with {child.returncode}\n" + "".join(said) if failed else ""
    return begun, seeds.start + max(begun - 1, 0), text


def shrunk(seed: int, text: str) -> tuple[list[int], str]:
    """The steps without which the walk does not fail, and what it says then."""
    chosen, part = list(range(LENGTH)), LENGTH // 2
    while part:
        for at in reversed(range(0, len(chosen), part)):
            fewer = chosen[:at] + chosen[at + part :]
            if not fewer:
                continue
            *_, said = run(range(seed, seed + 1), time.time() + 60, fewer)
            if said:
                chosen, text = fewer, said
        part //= 2
    return chosen, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first walk")
    parser.add_argument("--walks", type=int, default=None, help="how many, 100 by default")
    parser.add_argument("--minutes", type=float, default=None, help="go on for that long")
    parser.add_argument("--steps", help="the steps of one walk, by their numbers")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--end", type=float, default=float("inf"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    chosen = [int(n) for n in asked.steps.split(",")] if asked.steps else None
    walks = asked.walks or (1 if chosen else 1 << 40 if asked.minutes else 100)
    seeds = range(asked.seed, asked.seed + walks)
    if asked.work:
        work(seeds, asked.end, chosen)
        return 0
    end = time.time() + 60 * asked.minutes if asked.minutes else float("inf")
    begun, seed, text = run(seeds, end, chosen)
    if not text:
        print(begun, "walks\nOK")
        return 0
    if chosen is None:
        print(
            text, f"walk {begun}, --seed {seed}; the shortest that fails is looked for", flush=True
        )
        chosen, text = shrunk(seed, text)
    print(text, f"walk {begun}, --seed {seed} --steps {','.join(map(str, chosen))}", sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
