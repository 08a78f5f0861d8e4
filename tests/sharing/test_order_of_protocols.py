"""Which protocol is taken of an object that offers several: the one that tells most."""

import numpy as np
import pytest

import hamr
from tests.support.producers import interface_of


class Offering:
    """An object with some attributes, and how often each was asked for."""

    def __init__(self, **offered):
        self._offered = offered
        self.asked = []

    def __getattr__(self, name):
        self.asked.append(name)
        try:
            return self._offered[name]
        except KeyError:
            raise AttributeError(name) from None


IMAGE = np.arange(12, dtype="u1").reshape(2, 3, 2)
ARROWS = ["__arrow_c_array__", "__arrow_c_device_array__"]


def arrow(array, *names):
    """An array's elements by Arrow, as one row."""
    flat = hamr.buffer(array.ravel())
    return {name: getattr(flat, name) for name in names or ARROWS}


def tensor(array, **changes):
    b = hamr.buffer(array)
    return {"__dlpack__": b.__dlpack__, "__dlpack_device__": b.__dlpack_device__, **changes}


@pytest.mark.parametrize("name", ARROWS)
def test_an_image_has_the_dimensions_of_its_array_interface(name):
    image = Offering(
        __array_interface__=interface_of(IMAGE).__array_interface__, **arrow(IMAGE, name)
    )
    b = hamr.buffer(image)
    assert (b.shape, b.source_protocol) == ((2, 3, 2), "__array_interface__")
    assert np.array_equal(np.asarray(b), IMAGE)


def test_the_array_interface_is_asked_for_once():
    """Pillow copies all pixels each time."""
    image = Offering(__array_interface__=interface_of(IMAGE).__array_interface__)
    hamr.buffer(image)
    assert image.asked.count("__array_interface__") == 1


def test_an_interface_that_is_refused_is_not_replaced_by_arrow():
    swapped = interface_of(IMAGE.astype(">u2")).__array_interface__
    with pytest.raises(TypeError, match="big-endian"):
        hamr.buffer(Offering(__array_interface__=swapped, **arrow(IMAGE)))


def test_a_tensor_has_the_dimensions_of_dlpack():
    for _ in range(2):  # its type is not taken for one of DLPack alone
        b = hamr.buffer(Offering(**tensor(IMAGE), **arrow(IMAGE)))
        assert (b.shape, b.source_protocol, b.readonly) == ((2, 3, 2), "__dlpack__", False)


def refusing(**keywords):
    raise BufferError("not by DLPack")


def test_what_dlpack_refuses_comes_by_arrow():
    for _ in range(2):
        offering = Offering(**tensor(IMAGE, __dlpack__=refusing), **arrow(IMAGE))
        b = hamr.buffer(offering)
        assert (b.shape, b.source_protocol) == ((12,), "__arrow_c_device_array__")
    with pytest.raises(BufferError, match="not by DLPack"):
        hamr.buffer(Offering(**tensor(IMAGE, __dlpack__=refusing)))


class Column:
    """A class whose objects offer by DLPack some elements that others of them do not."""

    def __init__(self, array, by_dlpack):
        self.flat, self.shaped = hamr.buffer(array.ravel()), hamr.buffer(array)
        self.by_dlpack = by_dlpack

    def __arrow_c_array__(self, requested_schema=None):
        return self.flat.__arrow_c_array__(requested_schema)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return self.shaped.__dlpack__(**keywords) if self.by_dlpack else refusing()


def test_each_object_of_a_type_is_asked():
    for by_dlpack in (True, False, True):
        b = hamr.buffer(Column(IMAGE, by_dlpack))
        assert b.source_protocol == ("__dlpack__" if by_dlpack else "__arrow_c_array__")
        assert b.shape == ((2, 3, 2) if by_dlpack else (12,))


def unversioned(stream=None):
    return hamr.buffer(IMAGE).__dlpack__()


def not_asked(stream=None, max_version=None):
    return hamr.buffer(IMAGE).__dlpack__()


@pytest.mark.parametrize("method", [unversioned, not_asked])
def test_dlpack_of_before_version_1_comes_after_arrow(method):
    """Its tensors cannot say that Arrow's memory is immutable."""
    b = hamr.buffer(Offering(**tensor(IMAGE, __dlpack__=method), **arrow(IMAGE)))
    assert (b.source_protocol, b.readonly) == ("__arrow_c_device_array__", True)
    alone = hamr.buffer(Offering(**tensor(IMAGE, __dlpack__=method)))
    assert (alone.source_protocol, alone.readonly) == ("__dlpack__", False)
