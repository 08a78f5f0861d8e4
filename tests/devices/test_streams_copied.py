"""Streams and events that are copied and pickled: one driver object has one life."""

import copy
import gc
import pickle

import pytest

import hamr
from tests.support.recorded_core import EVENT, MODULES, NEW, foreign

streams = MODULES[0]  # hamr.stream is upstream's function

MAKERS = [
    lambda: hamr.Stream(device=1),
    lambda: hamr.Stream(foreign(ptr=9)),
    hamr.Stream,
    hamr.Event,
]
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("make", MAKERS)
def test_a_copy_is_the_object_itself(core, make, copied):
    made = make()
    gc.collect()
    del core.calls[:], core.retired[:]
    assert copied(made) is made
    assert copied([made, made]) == [made, made]
    gc.collect()
    assert core.calls == []
    assert core.retired == []


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_driver_object_ends_once(core, copied):
    stream, event = hamr.Stream(device=1), hamr.Event()
    others = copied(stream), copied(event)
    del core.calls[:], stream, event
    gc.collect()
    assert core.calls == []
    del others
    gc.collect()
    assert sorted(core.calls) == [
        ("DestroyEvent", "cuda", 0, EVENT),
        ("DestroyStream", "cuda", 1, NEW + 1),
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("make", MAKERS)
def test_the_number_of_a_driver_object_means_nothing_elsewhere(core, make, protocol):
    with pytest.raises(TypeError, match=r"hamr\.(Stream|Event) .* cannot be pickled"):
        pickle.dumps(make(), protocol)


class Numbered(hamr.Stream):
    """A stream that every process makes for itself."""

    def __reduce__(self):
        return Numbered, (self.ptr,)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_subclass_may_have_a_way_of_its_own(core, protocol):
    loaded = pickle.loads(pickle.dumps(Numbered(9), protocol))
    assert (type(loaded), loaded.ptr) == (Numbered, 9)


def test_handles_are_forgotten_with_their_streams(core):
    """A number that is given out again is another stream's, with a life and an end of its own."""
    gc.collect()
    kept = hamr.Stream(9)
    del core.retired[:]
    for _ in range(2):
        for handle in range(10, 1010):
            hamr.Stream(handle)
        gc.collect()
        assert core.retired == [("RetireStream", handle) for handle in range(10, 1010)]
        del core.retired[:]
    assert hamr.Stream(9)._life is kept._life
    assert core.retired == []
