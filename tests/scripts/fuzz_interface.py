"""Fuzz __array_interface__: python -m tests.scripts.fuzz_interface DICTIONARIES SEED.

Each dictionary is a valid one with up to three keys changed. An oracle in plain
Python, written from the protocol's text, says which keys are wrong, or which
bytes the array has.
"""

import math
import random
import sys

import numpy as np

import hamr

ARENA = np.frombuffer(random.Random(1).randbytes(1 << 16), np.uint8).copy()
BASE = ARENA.ctypes.data
READONLY = bytes(ARENA[:4096])
HOLDING = bytearray(ARENA[:4096])
WIDE = memoryview(ARENA[:512].view("i4"))
LIMIT = 2**63

TYPES = {
    o + c: int(c[1:])
    for o in "<="
    for c in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "b1"]
}
TYPES |= {o + c: 1 for o in "|>" for c in ("i1", "u1", "b1")}
TYPES |= {t[1:]: size for t, size in TYPES.items()}
GOOD_TYPES = [t for t in TYPES if t[0] != ">"]
BAD_TYPES = [
    "", "<", "f", "8", ">f8", "|f8", "<f3", "<f16", "<f", "<f08", "<f8 ", " <f8", "<F8", "<U4",
    "<S3", "|V8", "|V0", "|O8", "<M8[ns]", "<m8", "<c4", "<c32", "<i-8", "<i9999999999999999999",
    "!f8", "@f8", "<f8\0", "\0", "<é8", "\udc80", "<f8" * 1000, "🦆", None, 8, True,
    b"<f8", ["<f8"], float, np.dtype("f8"),
]  # fmt: skip
WRONG_INTS = [
    None,
    "3",
    3.0,
    True,
    False,
    b"3",
    [3],
    (3,),
    {},
    np.float64(3),
    3 + 0j,
    object(),
    np.array([1, 2]),
]
HUGE = [
    2**31,
    2**32,
    2**61,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**63) - 1,
    2**64 - 1,
    2**64,
    2**64 + 3,
    10**30,
]
FLAGS = [True, False, 0, 1, None, "", "x", [], [0], 2**70, 0.0, np.bool_(True)]


def whole(value):
    """The int that the protocol may take a value for, else None."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, np.integer) else None


def wholes(values):
    if not isinstance(values, tuple):
        return None
    result = [whole(v) for v in values]
    return None if None in result or any(not -LIMIT <= v < LIMIT for v in result) else result


def oracle(interface):
    """The keys that are wrong, or else address, shape, strides, item size and read-only flag."""
    wrong = {key for key in ("shape", "typestr") if key not in interface}
    size = TYPES.get(interface.get("typestr")) if type(interface.get("typestr")) is str else None
    shape, strides = wholes(interface.get("shape")), interface.get("strides")
    version, offset = whole(interface.get("version", 3)), whole(interface.get("offset", 0))
    if size is None:
        wrong.add("typestr")
    if (
        shape is None
        or len(shape) > 64
        or min(shape, default=0) < 0
        or (size or 1) * math.prod(max(n, 1) for n in shape) >= LIMIT
    ):
        wrong.add("shape")
    if strides is not None:
        strides = wholes(strides)
        if strides is None or (shape is not None and len(strides) != len(shape)):
            wrong.add("strides")
    if version is None or not 0 <= version < LIMIT:
        wrong.add("version")
    if offset is None or not -LIMIT <= offset < LIMIT:
        wrong.add("offset")
    if interface.get("mask") is not None:
        wrong.add("mask")
    address, length, readonly = None, None, None
    data = interface.get("data")
    if isinstance(data, tuple):
        if len(data) == 2 and whole(data[0]) is not None and 0 <= data[0] < 2**64:
            address, readonly = int(data[0]), bool(data[1])
    elif isinstance(data, (bytes, bytearray, memoryview, np.generic, np.ndarray)):
        exported = memoryview(data)
        if exported.c_contiguous:
            flat = np.frombuffer(exported, np.uint8)
            address, length, readonly = flat.ctypes.data, exported.nbytes, exported.readonly
    if address is None:
        wrong.add("data")
    if wrong:
        return wrong, None
    if strides is None:
        strides, step = [], size
        for n in reversed(shape):
            strides.insert(0, step)
            step *= max(n, 1)
    count = math.prod(shape)
    steps = [s * (n - 1) for s, n in zip(strides, shape, strict=True) if n > 1]
    if sum(map(abs, steps)) + size >= LIMIT:
        return {"strides"}, None
    low = sum(s for s in steps if s < 0) if count else 0
    high = sum(s for s in steps if s > 0) + size if count else 0
    if length is not None:
        if offset < 0 or offset > length or offset + low < 0 or offset + high > length:
            return {"offset", "shape", "strides"}, None
        address += offset
    elif count and (address == 0 or address + low <= 0 or address + high >= 2**64):
        return {"data"}, None
    return None, (address, tuple(shape), tuple(strides), size, readonly, low, high)


class Fuzzer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def below(self, n):
        return int(self.random.random() * n)

    def valid(self):
        typestr = self.pick(GOOD_TYPES)
        shape = tuple(self.pick((0, 1, 2, 3, 5)) for _ in range(self.below(5)))
        data = (BASE + 4096 + self.below(9000), self.random.random() < 0.5)
        made = {"typestr": typestr, "shape": shape, "data": data, "version": 3}
        if self.random.random() < 0.5:
            size = TYPES[typestr]
            made["strides"] = tuple(size * (self.below(41) - 20) for _ in shape)
        return made

    def number(self):
        kind = self.below(4)
        if kind == 0:
            return self.pick(WRONG_INTS)
        if kind == 1:
            return self.pick(HUGE) * self.pick((1, 1, -1))
        if kind == 2:
            return np.int64(self.below(9) - 2)
        return self.below(300) - 100

    def change(self, interface):
        key = self.pick(
            (
                "typestr",
                "shape",
                "strides",
                "data",
                "data",
                "offset",
                "version",
                "mask",
                "descr",
                "",
            )
        )
        if key == "typestr":
            interface[key] = self.pick(BAD_TYPES) if self.below(3) else self.pick(list(TYPES))
        elif key == "shape" or key == "strides":
            values = interface.get(key)
            values = list(values) if isinstance(values, tuple) else []
            kind = self.below(6)
            if kind == 0:
                interface[key] = self.pick(
                    (None, values, "12", 3, {}, np.arange(2), range(2), (1,) * 64, (1,) * 65)
                )
                return
            if kind == 1 or not values:
                values.insert(self.below(len(values) + 1), self.number())
            elif kind == 2:
                del values[self.below(len(values))]
            else:
                values[self.below(len(values))] = self.number()
            interface[key] = tuple(values)
        elif key == "data":
            kind = self.below(8)
            interface[key] = (
                READONLY, HOLDING, WIDE, WIDE[::2], self.pick(WRONG_INTS), (self.number(), False),
                (BASE + 5000, self.pick(FLAGS)), (BASE + 5000, True, 1)[: self.pick((0, 1, 3))],
            )[kind]  # fmt: skip
            if kind < 4 and self.below(2):
                interface["offset"] = self.below(5000)
            elif kind == 5 and self.below(2):
                interface[key] = (
                    self.pick((0, 1, 8, 2**63, 2**64 - 1, 2**64 - 8, 2**64, -8, 2**47)),
                    True,
                )
        elif key == "offset" or key == "version":
            interface[key] = self.number()
        elif key == "mask":
            interface[key] = self.pick((None, b"1", np.ones(3), False))
        elif key == "descr":
            interface[key] = self.pick(([("", "<f8")], [("a", "<i4"), ("b", "<i4")], None, 3, "x"))
        else:
            interface.pop(self.pick(list(interface)), None)


class Exporter:
    pass


def check(interface, counts):
    wrong, expected = oracle(interface)
    exporter = Exporter()
    exporter.__array_interface__ = interface
    text, b = "", None
    try:
        b = hamr.buffer(exporter)
    except (TypeError, ValueError) as error:
        text = str(error)
    if b is None:
        assert wrong, f"refused, but nothing is wrong: {text}"
        assert any(key in text for key in wrong), f"{sorted(wrong)} are wrong, but it says: {text}"
        counts[0] += 1
        return
    assert not wrong, f"accepted, but {sorted(wrong)} are wrong"
    counts[1] += 1
    address, shape, strides, size, readonly, low, high = expected
    assert (b.ptr, b.shape, b.strides, b.itemsize, b.readonly) == (
        address,
        shape,
        strides,
        size,
        readonly,
    )
    if address + low >= BASE and address + high <= BASE + ARENA.nbytes and high - low <= 1 << 16:
        counts[2] += 1
        if b.nbytes <= 1 << 16:
            kind = interface["typestr"].replace(">", "|")
            # NumPy 1 has at most 32 dimensions; those of size 1 change no content.
            long = [i for i, n in enumerate(shape) if n != 1] if len(shape) > 32 else None
            if long is None:
                same = np.ndarray(shape, kind, ARENA, address - BASE, strides)
                assert np.asarray(b).tobytes() == same.tobytes()
            else:
                part, steps = [shape[i] for i in long], [b.strides[i] for i in long]
                same = np.ndarray(part, kind, ARENA, address - BASE, steps)
            assert memoryview(b).tobytes() == same.tobytes()


def main(count, seed):
    fuzzer, counts = Fuzzer(seed), [0, 0, 0]
    for i in range(count):
        interface = fuzzer.valid()
        for _ in range(fuzzer.below(4)):
            fuzzer.change(interface)
        try:
            check(interface, counts)
        except BaseException:
            print(f"dictionary {i} of seed {seed}: {interface}", flush=True)
            raise
    refused, accepted, read = counts
    print(f"{refused} refused, {accepted} accepted, {read} of them read")
    # Both verdicts must be common, or the fuzzing is idle.
    assert min(refused, accepted, read) > count // 20
    assert hamr.stats()["references"] == 0
    assert all(space["adopted"] == 0 for space in hamr.stats()["spaces"].values())


main(int(sys.argv[1]), int(sys.argv[2]))
