"""What ``get(product, migrate=True)`` copies to another device, and what it leaves as it is."""

from __future__ import annotations

import collections
import dataclasses
import enum
import gc
import threading
from typing import Any

import numpy as np
import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.support import opencl_runtime
from tests.support.contents import on_host

pytestmark = [pytest.mark.usefixtures("cuda_alone"), pytest.mark.multigpu(2)]


def on_device(number):
    return hetero.ScopedContext(hetero.DeviceChooser(among=f"cuda:{number}").choose(0))


def migrated(content):
    """What a context of device 1 gets of a product of device 0."""
    product = on_device(0).wrap(content)
    with on_device(1) as ctx:
        return ctx.get(product, migrate=True)


def sevens(allocator="cuda", device=0):
    return hamr.Buffer(5, "f4", allocator, device=device, fill=7)


def assert_moved(got, value=7):
    assert type(got) is hamr.Buffer
    assert (got.device, got.allocator) == (1, hamr.Allocator.cuda)
    assert set(on_host(got).tolist()) == {value}


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    given: dataclasses.InitVar[int]
    made: list[Any] = dataclasses.field(init=False, default_factory=list)

    def __post_init__(self, given):
        assert given == 3, "called with other arguments than the first time"
        self.made.append(self.x)


@dataclasses.dataclass(slots=True)
class Node:
    x: Any
    next: Any = None


class Pair(collections.namedtuple("Pair", "a b")):
    """A tuple with attributes of its own."""


class Hits(list):
    pass


class Color(enum.Enum):
    RED = "red"


class TestWhatIsThereTwice:
    def test_is_one_object_afterwards(self):
        b, foreign = sevens(), driver.Array(np.full(5, 7, "f4"))
        one, two, three, four = migrated([b, (b,), foreign, {"a": foreign}])
        assert two[0] is one
        assert four["a"] is three
        assert_moved(one)
        assert_moved(three)

    def test_a_list_is_one(self):
        inner = [sevens()]
        one, two = migrated((inner, inner))
        assert one is two
        assert one is not inner

    @pytest.mark.parametrize("kind", ["list", "dict", "tuple", "dataclass"])
    def test_what_holds_itself(self, kind):
        b = sevens()
        if kind == "list":
            (content := [b]).append(content)
            got = migrated(content)
            assert got[1] is got
        elif kind == "dict":
            content = {0: b}
            content[1] = content
            got = migrated(content)
            assert got[1] is got
        elif kind == "tuple":
            content = (b, [])
            content[1].append(content)
            got = migrated(content)
            assert got[1][0] is got
        else:
            content = Node(b)
            content.next = content
            got = migrated(content)
            assert got.next is got
            got = [got.x]
        assert_moved(got[0])
        del got, content
        gc.collect()

    def test_short_lived_arrays_are_not_taken_for_one_another(self):
        """Each access to the attribute makes another object."""

        @dataclasses.dataclass
        class Detector:
            first: Any
            second: Any

            def __getattribute__(self, name):
                value = object.__getattribute__(self, name)
                if name not in ("first", "second"):
                    return value
                return driver.Array(np.full(5, value, "f4"))

        product = on_device(0).wrap(Detector(3, 4))
        with on_device(1) as ctx:
            got = ctx.get(product, migrate=True)
        kept = vars(got)
        assert_moved(kept["first"], 3)
        assert_moved(kept["second"], 4)

    def test_a_view_has_elements_of_its_own(self):
        b = hamr.Buffer(6, "f4", "cuda", device=0, data=np.arange(6, dtype="f4"))
        whole, part = migrated([b, b[1::2]])
        assert (on_host(whole).tolist(), on_host(part).tolist()) == ([*range(6)], [1, 3, 5])
        part[:] = 9
        assert on_host(whole).tolist() == [*range(6)]


@dataclasses.dataclass(frozen=True)
class Itself:
    """Cannot be changed, so that its author took it for its own copy."""

    x: Any

    def __copy__(self):
        return self


class ListItself(list):
    __slots__ = ("also",)

    def __copy__(self):
        return self


class DictItself(dict):
    def __copy__(self):
        return self


class Borg(list):
    """Each has the attributes of all."""

    shared: dict[str, Any] = {}

    def __init__(self, *given):
        super().__init__(*given)
        self.__dict__ = self.shared

    def __copy__(self):
        return Borg(self)


class Single(list):
    def __copy__(self):
        return self

    def __reduce__(self):
        return "SINGLE"


class TestCopiesThatAreTheOriginal:
    def test_a_dataclass(self):
        original = Itself(sevens())
        before = original.x
        got = migrated(original)
        assert type(got) is Itself
        assert got is not original
        assert_moved(got.x)
        assert original.x is before

    def test_a_list_and_a_dictionary(self):
        b = sevens()
        listed, named = ListItself([b]), DictItself(a=b)
        listed.also, named.also = "x", b
        got = migrated([listed, named])
        assert [type(one) for one in got] == [ListItself, DictItself]
        assert_moved(got[0][0])
        assert got[0].also == "x"
        assert got[1]["a"] is got[1].also is got[0][0]
        assert listed == [b]
        assert listed[0] is named["a"] is named.also is b

    def test_attributes_that_all_share(self):
        shared = Borg([sevens()])
        shared.also = before = sevens()
        got = migrated(shared)
        assert_moved(got[0])
        assert_moved(got.also)
        assert shared.also is before
        Borg.shared.clear()  # which would keep the memory

    def test_one_that_cannot_be_copied(self):
        single = Single([before := sevens()])
        with pytest.raises(TypeError, match="migrate=True cannot copy"):
            migrated([single])
        assert single[0] is before


@pytest.mark.parametrize("kind", ["list", "tuple", "dict", "dataclass"])
def test_what_is_nested_deeply(kind):
    around = {
        "list": lambda inner: [inner],
        "tuple": lambda inner: (inner,),
        "dict": lambda inner: {0: inner},
        "dataclass": lambda inner: Node(1, inner),
    }[kind]
    content = sevens()
    for _ in range(3000):
        content = around(content)
    got = migrated(content)
    for _ in range(3000):
        got = got.next if kind == "dataclass" else got[0]
    assert_moved(got)


class TestContainers:
    def test_those_with_types_of_their_own(self):
        b = sevens()
        hits = Hits([b])
        hits.also = b
        counted = collections.defaultdict(list, a=b)
        pair = Pair(b, 2)
        pair.also = [b]
        got = migrated([hits, counted, pair, {frozenset({1}), "x"}])
        assert [type(g) for g in got] == [Hits, collections.defaultdict, Pair, set]
        assert_moved(got[0][0])
        assert got[0].also is got[0][0] is got[1]["a"] is got[2].a is got[2].also[0]
        assert got[1]["new"] == []
        assert got[2].b == 2
        assert got[3] == {frozenset({1}), "x"}
        assert hits.also is hits[0] is counted["a"] is pair.also[0] is b

    def test_dataclasses_are_not_constructed_again(self):
        frozen = Frozen(sevens(), 3)
        got = migrated(frozen)
        assert_moved(got.x)
        assert got.made == [got.x]
        assert frozen.made == [frozen.x]

    def test_attributes_beside_the_fields(self):
        node = Frozen(1, 3)
        object.__setattr__(node, "cached", sevens())
        assert_moved(migrated(node).cached)
        object.__setattr__(node, "lock", threading.Lock())
        with pytest.raises(TypeError, match=r"lock.*migrate=True"):
            migrated(node)

    def test_what_stays(self):
        kept = (1, Color.RED, None, range(3), bytearray(2), np.float32(2), np.ones(3), "x")
        assert migrated(kept) is kept

    @pytest.mark.parametrize(
        "content", [np.array([None]), {object()}, [threading.Lock()], collections.UserDict()]
    )
    def test_what_is_refused(self, content):
        with pytest.raises(TypeError, match=r"a product has .*migrate=True cannot copy to cuda:1"):
            migrated([content])


class TestMemory:
    @pytest.mark.parametrize("name", ["cuda", "cuda_async", "cuda_uva", "cuda_vmm"])
    def test_of_a_device(self, name):
        got = migrated(sevens(name))
        assert (got.device, got.allocator.name) == (1, name)
        assert on_host(got).tolist() == [7] * 5
        home = sevens(name, 1)
        assert migrated(home) is home

    @pytest.mark.parametrize("name", ["malloc", "cpp", "cuda_host", "shared"])
    def test_of_the_host(self, name):
        b = hamr.Buffer(5, "f4", name, fill=7)
        assert migrated(b) is b
        assert migrated([b.get_host_accessible()])[0].__class__ is not hamr.Buffer

    @pytest.mark.parametrize("says", [True, False])
    def test_of_another_library_while_its_work_is_under_way(self, emulator, says):
        """Nobody waits for the source's device: what copies is enqueued behind its work."""
        source = on_device(0)
        handle = source.stream.ptr
        foreign = driver.Array(np.full(5, 7, "f4"), stream=handle if says else None)
        with source:
            emulator.hold(handle)
            driver.write_late(handle, foreign.ptr, 5, 9, device=0)
        product = source.wrap([foreign, (foreign,)])
        late = []
        rescue = threading.Timer(5, lambda: (late.append(True), emulator.let_go()))
        rescue.start()
        with on_device(1) as ctx:
            one, two = ctx.get(product, migrate=True)
            rescue.cancel()
            assert not late, "the caller waited for the source's work"
            assert not ctx.wrap(None).done
        assert one is two[0]
        emulator.let_go()
        assert_moved(one, 9)

    def test_of_another_library_at_home(self):
        foreign = driver.Array(np.full(5, 7, "f4"), 1)
        assert migrated(foreign) is foreign

    @pytest.mark.skipif(bool(opencl_runtime.absent()), reason=opencl_runtime.absent())
    @pytest.mark.parametrize("name", ["opencl_device", "opencl_svm"])
    def test_of_another_runtime(self, name):
        """Its device 0 is not CUDA's."""
        b = hamr.Buffer(5, "f4", name, fill=7)
        product = on_device(1).wrap(b)
        with on_device(b.device) as ctx:
            got = ctx.get(product, migrate=True)
            assert got.stream is ctx.stream
        assert (got.device, got.allocator) == (b.device, hamr.Allocator.cuda_async)
        assert on_host(got).tolist() == [7] * 5
