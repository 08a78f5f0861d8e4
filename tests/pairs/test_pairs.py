"""Every content operation between every ordered pair of spaces, against NumPy.

Spaces and allocators come from hamr's own rows: a new one joins by itself. Between two spaces all
allocators of the one meet all of the other; the second is on the last device of its runtime, so
that devices of the same number are not taken for the same.
"""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest

import hamr
from tests.cuda import driver
from tests.support import emulation, space_rows

#: More bytes than the host converts or rearranges sooner than a device.
LARGE = (301, 97)


@pytest.fixture(autouse=True)
def no_violations():
    """What the emulated driver was asked for was right, and nothing is left."""
    yield
    gc.collect()
    if emulation.CHOSEN == "emulator":
        driver.emulator.finish()
        found = driver.emulator.violations()
        driver.emulator.reset()
        assert found == []


class Places:
    """One allocator in each of two spaces, and arrays there."""

    def __init__(self, source, target, spaces):
        self.source, self.target = source, target
        self.from_space, self.to_space = spaces
        self.device = None
        if self.to_space != "host" and not target.endswith("_host"):
            self.device = space_rows.last_device(self.to_space, target)

    def of_source(self, values):
        return hamr.buffer(values.copy()).copy(self.source)

    def of_target(self, values):
        return hamr.buffer(values.copy()).copy(self.target, device=self.device)


def numbers(shape=(7, 6), dtype="int32", start=1):
    return (np.arange(int(np.prod(shape))) % 100 + start).astype(dtype).reshape(shape)


def equal(b, values):
    found = b.get()
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def create(p):
    values = numbers(dtype="complex64")
    b = hamr.Buffer((7, 6), "complex64", p.target, data=p.of_source(values), device=p.device)
    assert b.allocator.name == p.target
    equal(b, values)


def fill(p):
    b = p.of_target(numbers())
    b.fill(p.of_source(np.array([5], "int32")))
    equal(b, np.full((7, 6), 5, "int32"))
    b[1:, ::2] = p.of_source(np.array([6], "int32"))
    expected = np.full((7, 6), 5, "int32")
    expected[1:, ::2] = 6
    equal(b, expected)


def assign(p):
    for shape in ((7, 6), (3,), (40, 5), (0,)):
        b, values = p.of_target(numbers()), numbers(shape, "int32", 3)
        b.assign(p.of_source(values))
        assert b.allocator.name == p.target
        equal(b, values)


def get(p):
    values = numbers(dtype="float16")
    b = p.of_source(values).copy(p.target, device=p.device)
    out = np.empty_like(values)
    assert b.get(out) is out
    np.testing.assert_array_equal(out, values)
    equal(b[::-2, 1:], values[::-2, 1:])


def set_some(p):
    values, others = numbers((30,)), numbers((20,), "int32", 50)
    b = p.of_target(values)
    b.set(p.of_source(others), 4, 3, 9)
    values[4:13] = others[3:12]
    equal(b, values)


def slice_set(p):
    for left, right in (
        (np.s_[1:, ::2], np.s_[:6, 3:]),
        (np.s_[::-1], np.s_[...]),
        (np.s_[2], np.s_[:6, 1]),
        (np.s_[...], np.s_[::-1, ::-1]),
        (np.s_[:, :2], np.s_[:, 2:3]),
    ):
        values, others = numbers(), numbers(start=200)
        b, s = p.of_target(values), p.of_source(others)
        b[left] = s[right]
        values[left] = others[right]
        equal(b, values)


def slice_get(p):
    values = numbers()
    s = p.of_source(values)
    for key in (np.s_[1:, ::2], np.s_[::-1], np.s_[3], np.s_[..., 2], np.s_[5:2:-1, ::-3]):
        equal(s[key].copy(p.target, device=p.device), np.ascontiguousarray(values[key]))


def append(p):
    values, others = numbers((5,)), numbers((11,), "int32", 40)
    b = p.of_target(values)
    for _ in range(3):
        b.append(p.of_source(others)[::2])
        values = np.append(values, others[::2])
        equal(b, values)


def resize(p):
    values = numbers((9,))
    b = p.of_target(values)
    b.resize(21, p.of_source(np.array([8], "int32")))
    equal(b, np.append(values, np.full(12, 8, "int32")))
    b.resize(4)
    equal(b, values[:4])
    b.reserve(100)
    b.append(p.of_source(values))
    equal(b, np.append(values[:4], values))


def copy(p):
    for values in (numbers(), numbers(LARGE, "float64"), numbers((0, 3)), numbers((), "uint8")):
        b = p.of_source(values).copy(p.target, device=p.device)
        assert b.allocator.name == p.target
        equal(b, values)
        turned = p.of_source(np.asfortranarray(values))
        equal(turned.copy(p.target, device=p.device), values)


def move(p):
    values = numbers()
    b = p.of_source(values)
    b.move(p.target, device=p.device)
    assert b.allocator.name == p.target
    b[2:4] = p.of_source(values)[:2]
    values[2:4] = values[:2].copy()
    equal(b, values)


def convert(p):
    for shape in ((7, 6), LARGE):
        for kind, other in (("int32", "float64"), ("float64", "uint8"), ("uint8", "complex64")):
            values = numbers(shape, kind)
            b, s = p.of_target(np.zeros(shape, other)), p.of_source(values)
            b[...] = s
            equal(b, values.astype(other))
            b[::2, 1:] = s[::2, 1:][::-1]
            expected = values.astype(other)
            expected[::2, 1:] = values[::2, 1:][::-1]
            equal(b, expected)
    equal(p.of_source(numbers()).astype("float32").copy(p.target), numbers().astype("float32"))


def strided(p):
    values, others = numbers(LARGE), numbers(LARGE, "int32", 3)
    b, s = p.of_target(values), p.of_source(others)
    b[::2, 1::2] = s[::-2, ::2][:, :48]
    values[::2, 1::2] = others[::-2, ::2][:, :48]
    equal(b, values)


def shape(p):
    values = numbers()
    b = p.of_source(values)[::2].reshape(3, 8).copy(p.target, device=p.device)
    equal(b, values[::2].reshape(3, 8))


def equality(p):
    values = numbers()
    b, s = p.of_target(values), p.of_source(values)
    assert b[2, 3] == s[2, 3]
    assert b[2, 3] != s[3, 2]
    assert (s[1, 1] == b[1, 1]) is True
    assert float(b[6, 5]) == float(s[6, 5]) == 42


def access(p):
    values = numbers()
    s = p.of_source(values)
    handle = getattr(s, f"get_{p.to_space}_accessible")(*([] if p.device is None else [p.device]))
    equal(hamr.buffer(handle).copy(p.target, device=p.device), values)
    del handle
    with s.on(p.to_space, "rw", *([] if p.device is None else [p.device])) as lent:
        inside = hamr.buffer(lent)
        inside[1:3] = p.of_target(values)[4:6]
    values[1:3] = values[4:6].copy()
    equal(s, values)


def together(p):
    arrays = [numbers((n,), "float32", n) for n in (1, 50, 700)]
    targets = [p.of_target(np.zeros_like(a)) for a in arrays]
    hamr.copy_many(targets, [p.of_source(a) for a in arrays])
    for t, a in zip(targets, arrays, strict=True):
        equal(t, a)


def swap(p):
    values, others = numbers(), numbers((4,), "int32", 9)
    b, s = p.of_target(values), p.of_source(others)
    b.swap(s)
    assert (b.allocator.name, s.allocator.name) == (p.source, p.target)
    equal(b, others)
    equal(s, values)


OPERATIONS = (
    *(create, fill, assign, get, set_some, slice_set, slice_get, append, resize, copy, move),
    *(convert, strided, shape, equality, access, together, swap),
)
PAIRS = list(itertools.product(space_rows.NAMES, repeat=2))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("spaces", PAIRS, ids=" to ".join)
def test_pair(spaces, operation):
    for space in spaces:
        if space_rows.absent(space):
            pytest.skip(space_rows.absent(space))
    for source, target in itertools.product(*map(space_rows.allocators, spaces)):
        try:
            operation(Places(source, target, spaces))
        except Exception as error:
            error.add_note(f"from {source} to {target}")
            raise


def test_every_backend_has_a_space():
    """One that has none would be in no pair."""
    backends = {facts[5] for facts in hamr._base.allocator.FACTS}
    assert backends - {"trial"} <= {*space_rows.NAMES}
