"""Subclasses of Buffer: views, copies and pickles are of the class, with its attributes."""

import copy
import pickle

import numpy as np
import pytest

import hamr
from hamr._buffer.buffers import _rebuild

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Field(hamr.Buffer):
    """Elements with a unit."""

    def __init__(self, *arguments, unit="", **more):
        self.unit = unit

    def __new__(cls, *arguments, unit="", **more):
        return super().__new__(cls, *arguments, **more)


class Slotted(hamr.Buffer):
    """Attributes in slots, one of them private, and one never set."""

    __slots__ = ("__hidden", "never", "unit")

    def hide(self, value):
        self.__hidden = value
        return self

    @property
    def hidden(self):
        return self.__hidden


class Both(Slotted):
    """Slots and a dictionary."""


class Counted(hamr.Buffer):
    """What is derived from a buffer has attributes of its own."""

    def __array_finalize__(self, source):
        super().__array_finalize__(source)
        self.generation = getattr(source, "generation", 0) + 1


class Stated(hamr.Buffer):
    """A state of its own, as of classes that hold what cannot be pickled."""

    def __getstate__(self):
        return {"name": self.name}

    def __setstate__(self, state):
        self.name = state["name"] + " again"


def field(**more):
    made = Field(6, "f4", "cpp", data=np.arange(6), unit="m", **more)
    made.extra = ["shared"]
    return made


def slotted(kind=Slotted):
    made = kind((2, 3), data=np.arange(6).reshape(2, 3)).hide([1])
    made.unit = "m"
    return made


def same(a, b):
    assert (a.shape, a.typestr, str(a)) == (b.shape, b.typestr, str(b))


VIEWS = {
    "slice": lambda b: b[1:4],
    "row": lambda b: b[0, ...],
    "all": lambda b: b[...],
    "backwards": lambda b: b[::-1],
    "new axis": lambda b: b[None],
    "iterated": lambda b: next(iter(b[None])),
}
COPIES = {
    "element": lambda b: b[0],
    "iterated element": lambda b: next(iter(b)),
    "copy": lambda b: b.copy(),
    "to an allocator": lambda b: b.copy("malloc"),
    "astype": lambda b: b.astype("i2"),
    "copy.copy": copy.copy,
}


@pytest.mark.parametrize("derive", {**VIEWS, **COPIES}.values(), ids={**VIEWS, **COPIES})
def test_views_and_copies_are_of_the_class(derive):
    source = field()
    derived = derive(source)
    assert type(derived) is Field
    assert derived.unit == "m"
    assert derived.extra is source.extra, "attributes are shared, as by copy.copy()"
    same(derived, derive(hamr.Buffer(6, "f4", "cpp", data=np.arange(6))))
    derived.unit = "s"
    assert source.unit == "m"


@pytest.mark.parametrize("derive", VIEWS.values(), ids=VIEWS)
def test_views_share_the_elements(derive):
    source = field()
    view = derive(source)
    view[...] = 7
    assert 7 in np.asarray(source)


@pytest.mark.parametrize("kind", [Slotted, Both])
def test_slots(kind):
    source = slotted(kind)
    if kind is Both:
        source.other = 5
    for derived in (
        source[1:],
        source.copy(),
        copy.copy(source),
        copy.deepcopy(source),
        *(pickle.loads(pickle.dumps(source, protocol)) for protocol in PROTOCOLS),
    ):
        assert type(derived) is kind
        assert (derived.unit, derived.hidden) == ("m", [1])
        assert getattr(derived, "other", 5) == 5
        assert hasattr(derived, "other") is (kind is Both)
        assert not hasattr(derived, "never")


def test_deep_copies_have_attributes_of_their_own():
    source = field()
    source.itself = [source]
    copied = copy.deepcopy(source)
    assert type(copied) is Field
    assert (copied.unit, copied.extra) == ("m", ["shared"])
    assert copied.extra is not source.extra
    assert copied.itself[0] is copied
    copied[0] = 9
    assert source[0].item() == 0
    assert copy.deepcopy([source, source.extra])[0].extra is not source.extra


def test_a_deep_copy_of_one_object_is_one_object():
    buffer = hamr.Buffer(3, fill=1)
    first, second = copy.deepcopy([buffer, buffer])
    assert first is second
    assert first is not buffer


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_pickles(protocol, order):
    source = field()
    if order == "F":
        bare = np.asfortranarray(np.arange(6.0).reshape(2, 3))
        source = Field.from_pointer(bare.ctypes.data, (2, 3), strides=bare.strides, owner=bare)
        source.unit, source.extra = "m", ["shared"]
    source.itself = [source]
    loaded = pickle.loads(pickle.dumps(source, protocol))
    assert type(loaded) is Field
    assert (loaded.unit, loaded.extra, loaded.itself[0]) == ("m", ["shared"], loaded)
    assert loaded.allocator == source.allocator
    same(loaded, source)


def test_out_of_band():
    source, beside = field(), []
    content = pickle.dumps(source, 5, buffer_callback=beside.append)
    loaded = pickle.loads(content, buffers=[bytearray(beside[0])])
    assert (type(loaded), loaded.unit) == (Field, "m")
    same(loaded, source)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_state_of_its_own(protocol):
    source = Stated(3, fill=2)
    source.name, source.lock = "wind", (x for x in ())  # which cannot be pickled
    loaded = pickle.loads(pickle.dumps(source, protocol))
    assert (type(loaded), loaded.name) == (Stated, "wind again")
    for copied in (copy.copy(source), copy.deepcopy(source)):
        assert (type(copied), copied.name) == (Stated, "wind again")
        assert not hasattr(copied, "lock")
    assert source[1:].lock is source.lock


def test_what_is_derived_can_be_told():
    source = Counted(3, fill=1)
    assert not hasattr(source, "generation"), "only for views and copies"
    assert source[1:].generation == 1
    assert source[1:].copy().astype("i4").generation == 3


def test_constructors_of_subclasses_are_not_called_again():
    class Picky(hamr.Buffer):
        def __new__(cls, name):
            made = super().__new__(cls, 3, fill=1)
            made.name = name
            return made

    source = Picky("x")
    for derived in (source[1:], source.copy(), copy.copy(source), copy.deepcopy(source)):
        assert (type(derived), derived.name) == (Picky, "x")


def test_what_pickles_of_a_class_that_is_not_found_say():
    class Local(hamr.Buffer):
        pass

    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        pickle.dumps(Local(3))


def test_plain_buffers_are_pickled_as_before():
    buffer = hamr.Buffer(2, "i2", fill=3)
    assert buffer.__reduce_ex__(2) == (_rebuild, (b"\3\0\3\0", (2,), "int16", 1, -1))
    assert len(buffer.__reduce_ex__(5)) == 2
    assert buffer.__getstate__() is None


def test_a_plain_buffer_of_a_subclass():
    """As numpy.asarray() makes of NumPy's subclasses."""
    shared = hamr.buffer(field())
    assert type(shared) is hamr.Buffer
    assert type(field().get_host_accessible()) is hamr.Handle


def test_dasks_frames_of_device_memory_leave_them_to_pickle():
    from hamr import dask

    with pytest.raises(NotImplementedError, match=r"Field.* is pickled"):
        dask.to_frames(field())


@pytest.mark.parametrize(
    ("content", "shape"),
    [(b"", (3,)), (bytes(11), (3,)), (bytes(13), (3,)), (bytes(4), (2**61, 2)), (b"x", ())],
)
def test_pickles_of_too_few_elements(content, shape):
    """_rebuild() read beyond them."""
    with pytest.raises(ValueError, match=r"content has \d+ bytes|shape"):
        _rebuild(content, shape, "float32", 1, -1)


def test_pickles_of_what_is_no_content():
    with pytest.raises(TypeError, match="int object cannot be shared"):
        _rebuild(5, (3,), "float32", 1, -1)
    with pytest.raises(TypeError, match="kind is <class 'int'>"):
        _rebuild(bytes(12), (3,), "float32", 1, -1, int)


class Numbers(hamr.Buffer):
    """Indexing that gives what is no buffer, and views that are not to be made in passing."""

    def __getitem__(self, key):
        return super().__getitem__(key).get()

    def __array_finalize__(self, source):
        super().__array_finalize__(source)
        self.views = getattr(source, "views", 0) + 1


def test_assignment_is_not_by_the_subclasss_indexing():
    b = Numbers((2, 3), "i4", fill=0)
    b[0, 1] = 5
    b[1] = [7, 8, 9]
    b[...] = b[::-1]
    assert hamr.buffer(b).get().tolist() == [[7, 8, 9], [0, 5, 0]]
