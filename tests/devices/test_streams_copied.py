"""Streams and events that are copied and pickled: one driver object has one life."""

import contextlib
import copy
import gc
import pickle
import threading

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
    gc.collect()
    kept = hamr.Stream(9)
    before = set(streams._lives)
    for handle in range(10, 1010):
        hamr.Stream(handle)
    gc.collect()
    assert set(streams._lives) == before
    assert kept.ptr in before


def test_two_threads_share_the_life_of_a_foreign_handle(core):
    """Else the end of the first retires a stream that the second still uses."""

    made = []
    original = streams._Life.__init__
    inside = threading.Barrier(2)

    def together(self, *arguments):
        with contextlib.suppress(threading.BrokenBarrierError):
            inside.wait(0.3)  # in vain: the other thread waits for this one
        original(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams._Life, "__init__", together)
        threads = [
            threading.Thread(target=lambda: made.append(hamr.Stream(0x51))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    first, second = made
    del made[:]
    assert first._life is second._life
    del first
    gc.collect()
    assert core.retired == []
    del second
    gc.collect()
    assert core.retired == [("RetireStream", 0x51)]
