"""Fuzz DLPack's tensors: python -m tests.scripts.fuzz_dlpack TENSORS SEED.

Each tensor is a valid one with up to three fields changed, in memory of C's heap that
its deleter frees: a field that is read afterwards, or beyond an end, is an error to
AddressSanitizer. An oracle in plain Python, written from the protocol's text, says
which exceptions are right, or which bytes the array has. No CUDA driver is expected.
"""

import ctypes
import math
import random
import sys

import numpy as np

import hamr
from tests.support import dlpack_producers as producers, dlpack_structs as dl

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

ARENA = np.frombuffer(random.Random(1).randbytes(1 << 16), np.uint8).copy()
BASE = ARENA.ctypes.data
LIMIT = 2**63

#: Those that every build has; others may come.
TYPES = {(c, b): b // 8 for c in (0, 1) for b in (8, 16, 32, 64)}
TYPES |= {(2, 16): 2, (2, 32): 4, (2, 64): 8, (5, 64): 8, (5, 128): 16, (6, 8): 1, (4, 16): 2}
KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
BAD_TYPES = [
    (0, 4), (0, 1), (0, 128), (1, 24), (2, 128), (2, 80), (2, 8), (3, 64), (4, 8), (4, 32), (5, 32),
    (5, 256), (6, 1), (6, 64), (7, 16), (17, 4), (18, 8), (99, 8), (255, 255), (0, 0), (128, 64),
]  # fmt: skip
HUGE = [2**31, 2**32, 2**59, 2**60, 2**61, 2**62, 2**63 - 1, -(2**63), -(2**62), -(2**31)]
HOST = (1, 3, 11)
ACCEPTED = (*HOST, 2, 10, 13)


class Loose:
    """A managed tensor in C's heap, and how often its deleter was called."""

    def __init__(self, versioned, fields):
        self.versioned, self.fields = versioned, fields
        self.ended = 0
        kind = dl.Versioned if versioned else dl.Legacy
        self.size = ctypes.sizeof(kind)
        self.address = libc.malloc(self.size)
        managed = kind.from_address(self.address)
        self.rooms = []
        managed.context = None
        managed.deleter = None if fields["deleter"] is None else DELETER
        if versioned:
            managed.version = dl.Version(*fields["version"])
            managed.flags = fields["flags"]
        tensor = managed.tensor
        tensor.data = fields["data"]
        tensor.device = dl.Device(*fields["device"])
        tensor.ndim = fields["ndim"]
        tensor.dtype = dl.DataType(*fields["dtype"])
        tensor.shape, tensor.strides = map(self.room, (fields["shape"], fields["strides"]))
        tensor.byte_offset = fields["byte_offset"]
        live[self.address] = self

    def room(self, values):
        if values is None:
            return None
        address = libc.malloc(8 * len(values) or 1)
        ctypes.memmove(address, (ctypes.c_int64 * len(values))(*values), 8 * len(values))
        self.rooms.append(address)
        return ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))

    def end(self):
        self.ended += 1
        del live[self.address]
        for address in (*self.rooms, self.address):
            libc.free(address)

    def __dlpack__(self, **keywords):
        return self.capsule()

    def __dlpack_device__(self):
        return self.fields["device"]

    def capsule(self):
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return producers.new_capsule(self.address, name, DESTRUCTOR)


live = {}


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def deleter(address):
    live[address].end()


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def destructor(capsule):
    address = producers.unused(capsule)
    if address and live[address].fields["deleter"]:
        live[address].end()


DELETER = ctypes.cast(deleter, ctypes.c_void_p)
DESTRUCTOR = ctypes.cast(destructor, ctypes.c_void_p)


def signed(stride):
    """In bytes; CuPy divides negative ones as unsigned numbers, and they must come back."""
    return stride - 2**64 if LIMIT <= stride < 2**64 else stride


def oracle(fields, versioned):
    """The exceptions that are right, or else address, shape, strides, item size and flags."""
    wrong = set()
    kind, number = fields["device"]
    ndim, shape, strides = fields["ndim"], fields["shape"], fields["strides"]
    code, bits, lanes = fields["dtype"]
    size = TYPES.get((code, bits)) if lanes == 1 else None
    if kind not in ACCEPTED:
        wrong.add(BufferError)
    elif kind not in HOST:
        wrong.add(hamr.BackendUnavailable)
        if number < 0:
            wrong.add(ValueError)
    if versioned and fields["version"][0] != 1:
        return {*wrong, BufferError}, None
    if size is None:
        wrong.add(TypeError)
    if not 0 <= ndim <= 64 or (ndim and shape is None):
        wrong.add(ValueError)
        return wrong, None
    shape = (shape or ())[:ndim]
    if min(shape, default=0) < 0:
        wrong.add(ValueError)
        return wrong, None
    size = size or 1
    if size * math.prod(max(n, 1) for n in shape) >= LIMIT:
        wrong.add(ValueError)
        return wrong, None
    if strides is None:
        steps, step = [], 1
        for n in reversed(shape):
            steps.insert(0, step)
            step *= max(n, 1)
    else:
        steps = strides[:ndim]
    steps = [signed(size * s) for s in steps]
    long = [(s, n) for s, n in zip(steps, shape, strict=True) if n > 1]
    if any(not -LIMIT <= s < LIMIT for s, _ in long):
        wrong.add(ValueError)
    reach = [s * (n - 1) for s, n in long]
    if sum(map(abs, reach)) + size >= LIMIT:
        wrong.add(ValueError)
    count = math.prod(shape)
    low = sum(r for r in reach if r < 0) if count else 0
    high = sum(r for r in reach if r > 0) + size if count else 0
    data = fields["data"] or 0
    address = data + fields["byte_offset"] if data else 0
    if data and address >= 2**64:
        wrong.add(ValueError)
    if count and (not data or address + low <= 0 or address + high >= 2**64):
        wrong.add(ValueError)
    if wrong:
        return wrong, None
    return None, (address, tuple(shape), steps, size, low, high)


class Fuzzer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def below(self, n):
        return int(self.random.random() * n)

    def valid(self):
        code, bits = self.pick(list(TYPES))
        shape = [self.pick((0, 1, 2, 3, 5)) for _ in range(self.below(5))]
        strides = [self.below(41) - 20 for _ in shape] if self.below(2) else None
        return {
            "version": (1, self.below(5)), "flags": self.pick((0, 1, 2, 3, 4, 2**64 - 1)),
            "data": BASE + 4096 + self.below(9000), "device": (self.pick((1, 1, 1, 3, 11)), 0),
            "ndim": len(shape), "dtype": (code, bits, 1), "shape": shape, "strides": strides,
            "byte_offset": self.pick((0, 0, 8, 3, 1000)), "deleter": self.below(9) or None,
        }  # fmt: skip

    def number(self):
        kind = self.below(3)
        return (self.pick(HUGE), self.below(300) - 100, self.below(4))[kind]

    def change(self, fields):
        key = self.pick(list(fields))
        if key == "version":
            fields[key] = self.pick(((0, 8), (2, 0), (2**32 - 1, 1), (1, 2**32 - 1)))
        elif key == "flags":
            fields[key] = self.random.getrandbits(64)
        elif key == "data":
            fields[key] = self.pick((None, None, 1, 8, 2**47, 2**63, 2**64 - 8, 2**64 - 1))
        elif key == "device":
            kinds = (1, 2, 3, 4, 7, 8, 10, 11, 13, 14, 0, -1, 99, 2**31 - 1, -(2**31))
            fields[key] = (self.pick(kinds), self.pick((0, 0, 1, -1, 2**31 - 1)))
        elif key == "ndim":
            self.dimensions(fields)
        elif key == "dtype":
            bad = self.pick(BAD_TYPES)
            lanes = self.pick((1, 1, 0, 2, 2**16 - 1))
            fields[key] = (*bad, lanes) if self.below(2) else (*fields[key][:2], lanes)
        elif key in ("shape", "strides"):
            values = fields[key]
            if not values or self.below(8) == 0:
                fields[key] = None
            else:
                values[self.below(len(values))] = self.number()
        elif key == "byte_offset":
            far = (2**64 - 1, 2**63, 2**64 - 4096, 1 << 40, 2**48)
            fields[key] = self.pick((*far, self.below(4096)))

    def dimensions(self, fields):
        """As many as there is room for, unless they are to be refused."""
        room = min(len(v) for v in (fields["shape"], fields["strides"], [0] * 99) if v is not None)
        n = self.pick((0, room, -1, 65, 66, -(2**31), 2**31 - 1, 64))
        if n == 64:
            fields["shape"], fields["strides"] = [1] * 63 + [self.below(4)], None
        elif 0 < n <= 64:
            n = self.below(room + 1)
        fields["ndim"] = n


def share(fuzzer, tensor):
    kind = fuzzer.below(4)
    if kind == 0:
        return hamr.from_dlpack(tensor)
    if kind == 1:
        return hamr.buffer(tensor)
    return (hamr.from_dlpack if kind == 2 else hamr.buffer)(tensor.capsule())


def check(fuzzer, fields, counts):
    versioned = fuzzer.below(4) > 0
    wrong, expected = oracle(fields, versioned)
    tensor = Loose(versioned, fields)
    found, words, b = None, "", None
    try:
        b = share(fuzzer, tensor)
    except (TypeError, ValueError, BufferError, hamr.BackendUnavailable) as error:
        found, words = type(error), str(error)
    if b is None:
        assert wrong, f"refused with {found}: {words}, but nothing is wrong"
        assert found in wrong, f"refused with {found}: {words}, but right are {wrong}"
        assert words
        counts[0] += 1
    else:
        assert not wrong, f"accepted, but right are {wrong}"
        counts[1] += 1
        counts[2] += look(b, fields, versioned, expected)
        assert tensor.ended == 0
    del b
    if fields["deleter"] is None or tensor.address in live:
        # No deleter, or hamr refused it for its device before it asked for the tensor.
        assert tensor.ended == 0
        assert fields["deleter"] is None or fields["device"][0] not in HOST
        tensor.end()
    assert tensor.ended == 1


def look(b, fields, versioned, expected):
    """Whether the elements could be compared, which must be what they are."""
    address, shape, strides, size, low, high = expected
    assert (b.shape, b.itemsize, b.ptr) == (shape, size, address)
    assert b.readonly == (versioned and fields["flags"] & 1 == 1)
    assert b.source_protocol == "__dlpack__"
    assert [s for s, n in zip(b.strides, shape, strict=True) if n > 1] == [
        s for s, n in zip(strides, shape, strict=True) if n > 1
    ]
    inside = address + low >= BASE and address + high <= BASE + ARENA.nbytes
    if not inside or b.nbytes > 1 << 16 or fields["dtype"][0] not in KINDS:
        return False
    if b.nbytes == 0:
        assert memoryview(b).tobytes() == b""
        return True
    long = [i for i, n in enumerate(shape) if n != 1]
    kind = f"{KINDS[fields['dtype'][0]]}{size}"
    part, steps = [shape[i] for i in long], [strides[i] for i in long]
    same = np.ndarray(part, kind, ARENA, address - BASE, steps)
    assert memoryview(b).tobytes() == same.tobytes()
    return True


def main(count, seed):
    fuzzer, counts = Fuzzer(seed), [0, 0, 0]
    for i in range(count):
        fields = fuzzer.valid()
        for _ in range(fuzzer.below(4)):
            fuzzer.change(fields)
        try:
            check(fuzzer, fields, counts)
        except BaseException:
            print(f"tensor {i} of seed {seed}: {fields}", flush=True)
            raise
    refused, accepted, read = counts
    print(f"{refused} refused, {accepted} accepted, {read} of them read")
    # Both verdicts must be common, or the fuzzing is idle.
    assert min(refused, accepted, read) > count // 20
    assert not live
    assert hamr.stats()["references"] == 0
    assert all(space["adopted"] == 0 for space in hamr.stats()["spaces"].values())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
