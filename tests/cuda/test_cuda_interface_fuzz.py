"""Any dictionary as __cuda_array_interface__: an error in words, or an array, never a crash."""

import gc

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import hamr
from tests.cuda import driver

ACCEPTED_ERRORS = (TypeError, ValueError, hamr.BackendUnavailable)
SIZE = 4096


@pytest.fixture(scope="module", autouse=True)
def memory(needs_device):
    made = driver.Array(np.arange(SIZE, dtype="u1"))
    addresses["start"] = made.ptr
    yield made
    addresses.clear()


addresses: dict[str, int] = {}

junk = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4),
    st.binary(max_size=4), st.just(object()), st.lists(st.integers(), max_size=3),
    st.tuples(), st.tuples(st.none()), st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)  # fmt: skip
numbers = st.one_of(
    st.integers(0, 5),
    st.integers(-20, 20),
    st.integers(0, SIZE),
    st.sampled_from([2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70]),
    st.integers(-(2**70), 2**70),
)
tuples = st.lists(numbers, max_size=4).map(tuple)
offsets = st.one_of(st.just(0), st.integers(-10, SIZE + 10))
typestrs = st.one_of(
    st.sampled_from(["<f4", "|u1", "|b1", "<c16", "<i8", "<u2", "<f2", ">f4", "|V3", "<U1", "f4"]),
    st.text(max_size=4),
)


def data_of(draw):
    pointer = draw(st.one_of(offsets.map(lambda o: addresses["start"] + o), numbers, junk))
    return draw(st.sampled_from([(pointer, False), (pointer, True), (pointer,), pointer]))


@st.composite
def interfaces(draw):
    """A right dictionary, of which some entries are replaced."""
    shape = draw(st.lists(st.integers(0, 6), max_size=3).map(tuple))
    fields = {
        "shape": shape,
        "typestr": draw(st.sampled_from(["|u1", "<f4", "<i2"])),
        "data": (addresses["start"], draw(st.booleans())),
        "version": draw(st.sampled_from([2, 3])),
    }
    for key, values in (
        ("shape", tuples), ("typestr", typestrs), ("version", numbers), ("strides", tuples),
        ("mask", junk), ("descr", junk),
        ("stream", st.one_of(st.sampled_from([None, 1, 2, 0, -1]), st.floats(), st.text())),
    ):  # fmt: skip
        choice = draw(st.integers(0, 9))
        if choice == 0:
            fields[key] = draw(junk) if key != "stream" else draw(values)
        elif choice <= 2:
            fields[key] = draw(values)
        elif choice == 3:
            fields.pop(key, None)
    if draw(st.integers(0, 3)) == 0:
        fields["data"] = data_of(draw)
    return fields


class Foreign:
    def __init__(self, fields):
        self.__cuda_array_interface__ = fields


@given(st.data())
@settings(max_examples=400)
def test_dictionaries(memory, data):
    fields = data.draw(interfaces())
    adopt(fields, memory)


def adopt(fields, memory):
    """Adopt it; what was accepted lies in the memory and can be used."""
    try:
        shared = hamr.buffer(Foreign(fields))
    except ACCEPTED_ERRORS:
        return
    assert shared.shape == tuple(fields["shape"])
    if shared.size() == 0:
        assert str(shared) == "{}"
        return
    interface = shared.__cuda_array_interface__
    strides = interface["strides"] or np.empty(shared.shape, shared.typestr).strides
    reach = [(n - 1) * s for n, s in zip(shared.shape, strides, strict=True)]
    low = shared.ptr + sum(r for r in reach if r < 0)
    high = shared.ptr + sum(r for r in reach if r > 0) + shared.itemsize
    # The driver rounds allocations up, and hamr believes the driver.
    assert memory.ptr <= low < high <= memory.ptr + max(SIZE, 2 << 20)
    if shared.size() < 10_000:
        copied = shared.copy("cuda_async")
        assert copied.shape == shared.shape
        np.asarray(copied.get_host_accessible())


@given(junk)
@example({})
@example({"shape": (3,)})
def test_no_dictionaries(memory, interface):
    if interface is None:
        return
    with pytest.raises(ACCEPTED_ERRORS):
        hamr.buffer(Foreign(interface))


def test_entries_with_a_life_of_their_own(memory):
    """Methods of the entries run in the middle of reading them."""
    owner = Foreign(None)

    class Number:
        def __init__(self, value, act=lambda: None):
            self.value, self.act = value, act

        def __index__(self):
            self.act()
            return self.value

    def vanish():
        owner.__cuda_array_interface__ = {}
        gc.collect()

    def fail():
        raise ZeroDivisionError

    for act in (vanish, fail, gc.collect):
        for key, value in (
            ("shape", (Number(4, act),)),
            ("strides", (Number(1, act),)),
            ("data", (Number(memory.ptr, act), False)),
            ("version", Number(3, act)),
            ("stream", Number(1, act)),
        ):
            owner.__cuda_array_interface__ = {
                "shape": (4,), "typestr": "|u1", "data": (memory.ptr, False), "version": 3,
                key: value,
            }  # fmt: skip
            try:
                shared = hamr.buffer(owner)
            except (*ACCEPTED_ERRORS, ZeroDivisionError):
                continue
            assert str(shared) == "{0, 1, 2, 3}"
