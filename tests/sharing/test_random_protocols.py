"""Arrays of any layout by any protocols, at random, both ways. NumPy is the measure.

A failure prints the number of its round: check(seed) repeats it.
"""

import pickle
import random

import numpy as np
import pytest

import hamr
from tests.support.dlpack_structs import NEW_NUMPY
from tests.support.processes import scaled
from tests.support.producers import DTYPES, cast

ORDER = ["__dlpack__", "__array_interface__", "__arrow_c_array__"]
WITHOUT_ARROW = ("bool", "complex64", "complex128")


class Offering:
    """An object with some protocols."""

    def __init__(self, **offered):
        vars(self).update(offered)


def dense(rng, dtype):
    shape = tuple(rng.choice([0, 1, 1, 2, 3, 4]) for _ in range(rng.randrange(5)))
    return cast(np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape), dtype)


def relaid(rng, array):
    """The array, or a part of it, laid out otherwise."""
    for _ in range(rng.randrange(4)):
        kind = rng.choice(["slice", "back", "turn", "new", "repeat", "odd"])
        i = rng.randrange(array.ndim) if array.ndim else None
        if kind == "new" and array.ndim < 6:
            array = np.expand_dims(array, rng.randrange(array.ndim + 1))
        elif kind == "turn":
            array = array.transpose(rng.sample(range(array.ndim), array.ndim))
        elif i is None:
            continue
        elif kind in ("slice", "back"):
            first, step = rng.randrange(2), rng.choice([1, 2]) * (-1 if kind == "back" else 1)
            array = array[(slice(None),) * i + (slice(first, None) if step > 0 else slice(None),)]
            array = array[(slice(None),) * i + (slice(None, None, step),)]
        elif array.shape[i] == 1 and kind == "repeat":
            shape = list(array.shape)
            shape[i] = rng.choice([1, 2, 5])
            array = np.lib.stride_tricks.as_strided(
                array, shape, [s * (k != i) for k, s in enumerate(array.strides)]
            )
        elif array.shape[i] == 1:  # no step is taken along it
            strides = list(array.strides)
            strides[i] = rng.choice([0, 1, 5]) * array.itemsize
            array = np.lib.stride_tricks.as_strided(array, array.shape, strides)
    if rng.random() < 0.3:
        array = array.view()
        array.flags.writeable = False
    return array


def offered(rng, array):
    """Some of the protocols that can carry an array, and their names in their order."""
    interface = dict(array.__array_interface__)
    if rng.random() < 0.3:
        del interface["version"]
    if rng.random() < 0.3:
        interface["typestr"] = interface["typestr"].lstrip("<|")
    if rng.random() < 0.3:
        interface["strides"] = array.strides
    can = {"__array_interface__": {"__array_interface__": interface}}
    if NEW_NUMPY:
        can["__dlpack__"] = {
            "__dlpack__": array.__dlpack__,
            "__dlpack_device__": array.__dlpack_device__,
        }
    if array.dtype.name not in WITHOUT_ARROW:
        flat = hamr.array(np.ascontiguousarray(array).ravel())
        can["__arrow_c_array__"] = {"__arrow_c_array__": flat.__arrow_c_array__}
    names = [name for name in ORDER if name in can and rng.random() < 0.6]
    attributes = {key: value for name in names for key, value in can[name].items()}
    return Offering(**attributes, keep=array), names


def steps(array):
    """The strides along which steps are taken."""
    if 0 in array.shape:
        return []
    return [s for n, s in zip(array.shape, array.strides, strict=True) if n > 1]


def lie_apart(array):
    starts = np.zeros((), dtype=int)
    for n, stride in zip(array.shape, array.strides, strict=True):
        starts = starts[..., None] + np.arange(n) * stride
    ordered = np.sort(starts, axis=None)
    return bool((np.diff(ordered) >= array.itemsize).all())


def same(found, expected):
    assert found.dtype.char == expected.dtype.char
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected, strict=True)


def check_into_hamr(rng, array):
    offering, names = offered(rng, array)
    if not names:
        with pytest.raises(TypeError, match="cannot be shared"):
            hamr.buffer(offering)
        return
    b = hamr.buffer(offering)
    assert b.source_protocol == names[0]
    if names[0] == "__arrow_c_array__":
        assert b.readonly
        same(np.asarray(b), array.ravel())
        return
    assert b.readonly is not array.flags.writeable
    same(np.asarray(b), array)
    assert [s for n, s in zip(b.shape, b.strides, strict=True) if n > 1 and b.size()] == steps(
        array
    )
    if array.size:
        assert b.ptr == array.ctypes.data
    if array.flags.writeable and lie_apart(array):
        values = cast(np.zeros(array.shape) + 1, array.dtype)
        b[...] = values
        same(array, values)


def through_interface(b):
    return np.asarray(Offering(__array_interface__=b.__array_interface__, keep=b))


def through_pickle(b):
    return np.asarray(pickle.loads(pickle.dumps(b, 5)))


OUT = {
    "asarray": np.asarray,
    "memoryview": lambda b: np.asarray(memoryview(b)),
    "interface": through_interface,
    "dlpack": np.from_dlpack,
    "handle": lambda b: np.asarray(b.get_host_accessible()),
}
COPIES = {
    "get": lambda b: b.get(),
    "pickle": through_pickle,
    "copy": lambda b: np.asarray(b.copy()),
}


def check_out_of_hamr(rng, array):
    b = hamr.buffer(array)
    name = rng.choice([*OUT, *COPIES] if NEW_NUMPY else [*COPIES, "asarray", "memoryview"])
    if name in COPIES:
        same(COPIES[name](b), array)
        return
    back = OUT[name](b)
    same(back, array)
    assert steps(back) == steps(array)
    if array.size:
        assert back.flags.writeable is array.flags.writeable
        assert back.ctypes.data == array.ctypes.data
    if array.flags.writeable and lie_apart(array):
        back[...] = 0
        assert not np.asarray(b).any()
        assert not array.any()


def check_lending(rng, array):
    b = hamr.buffer(array)
    if not array.flags.writeable:
        return
    if lie_apart(array):
        with b.on_host("rw") as lent:
            lent[...] = 1
        same(array, cast(np.ones(array.shape), array.dtype))
        return
    with pytest.raises(ValueError, match="lie on each other"):
        b.on_host("rw").__enter__()


def check(seed):
    rng = random.Random(seed)
    array = relaid(rng, dense(rng, rng.choice(DTYPES)))
    rng.choice([check_into_hamr, check_out_of_hamr, check_lending])(rng, array)


def test_arrays_of_any_layout_by_any_protocols():
    for seed in range(scaled(3000)):
        try:
            check(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
