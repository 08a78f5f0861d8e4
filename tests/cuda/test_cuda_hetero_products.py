"""Products: who takes the stream over, who waits for what, and what goes back."""

import dataclasses
import gc

import numpy as np
import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.cuda.hetero import streams_and_events
from tests.support.contents import on_host
from tests.support.in_threads import in_threads

N = 1000

pytestmark = pytest.mark.usefixtures("cuda_alone")


def on_device(number):
    return hetero.ScopedContext(hetero.DeviceChooser(among=f"cuda:{number}").choose(0))


class TestProducts:
    def test_the_same_stream_waits_for_nothing(self, emulator, token, nothing_blocks):
        with hetero.ScopedContext(token) as ctx:
            emulator.hold(ctx.stream.ptr)
            product = ctx.wrap([1, 2])
            assert emulator.count_calls(lambda: ctx.get(product)) == {}
        with hetero.ScopedContext(product) as ctx:
            assert emulator.count_calls(lambda: ctx.get(product)) == {}
            assert ctx.get(product) == [1, 2]
            assert not product.done
        emulator.let_go()

    def test_the_first_consumer_takes_the_stream_over(self, token):
        with hetero.ScopedContext(token) as ctx:
            product = ctx.wrap(None)
        first, second, third = (hetero.ScopedContext(product) for _ in range(3))
        assert first.stream is product.stream
        assert len({c.stream.ptr for c in (first, second, third)}) == 3
        assert {c.place for c in (first, second, third)} == {token.place}

    def test_products_of_one_context_have_one_successor(self, token):
        """Else consumers of both would run one after the other."""
        with hetero.ScopedContext(token) as ctx:
            products = [ctx.wrap(None) for _ in range(3)]
        made = [hetero.ScopedContext(product) for product in products]
        assert made[0].stream is token.stream
        assert len({c.stream.ptr for c in made}) == 3
        behind = made[0].wrap(None)
        assert hetero.ScopedContext(behind).stream is token.stream

    def test_exactly_one_of_many_threads_takes_it(self, token):
        for _ in range(20):
            with hetero.ScopedContext(token) as ctx:
                product = ctx.wrap(None)
            made = []
            in_threads(lambda _, p=product, m=made: m.append(hetero.ScopedContext(p)), 8)
            assert [c.stream is product.stream for c in made].count(True) == 1

    def test_another_stream_waits_while_the_event_is_pending(self, emulator, token, nothing_blocks):
        with hetero.ScopedContext(token) as ctx:
            emulator.hold(ctx.stream.ptr)
            product = ctx.wrap("x")
        hetero.ScopedContext(product)
        other = hetero.ScopedContext(product)
        before = emulator.calls("cuStreamWaitEvent")
        assert other.get(product) == "x"
        assert emulator.calls("cuStreamWaitEvent") == before + 1
        behind = other.wrap(None)
        assert not behind.done
        emulator.let_go()
        emulator.finish()
        assert behind.done

    def test_and_not_for_a_completed_event(self, emulator, token):
        with hetero.ScopedContext(token) as ctx:
            product = ctx.wrap("x")
        emulator.finish()
        other = on_device(0)
        before = emulator.calls("cuStreamWaitEvent")
        assert other.get(product) == "x"
        assert emulator.calls("cuStreamWaitEvent") == before

    def test_order_of_the_contents(self, token):
        """A consumer on a stream of its own reads what a late kernel writes."""
        with hetero.ScopedContext(token) as ctx:
            made = driver.Array(np.zeros(N, "f4"))
            driver.write_late(ctx.stream.ptr, made.ptr, N, 5)
            product = ctx.wrap(made)
        hetero.ScopedContext(product)
        with hetero.ScopedContext(product) as ctx:
            got = hamr.buffer(ctx.get(product), stream=ctx.stream).copy()
        assert on_host(got).tolist() == [5] * N

    def test_what_is_no_product(self, token):
        ctx = hetero.ScopedContext(token)
        with pytest.raises(TypeError, match="product is 3"):
            ctx.get(3)
        with pytest.raises(TypeError):
            hetero.Product()
        with pytest.raises(TypeError, match="get takes"):
            ctx.get()

    def test_events_and_streams_go_back(self):
        before = streams_and_events()
        token = hetero.DeviceChooser(among="cuda:0").choose(0)
        with hetero.ScopedContext(token) as ctx:
            products = [ctx.wrap(None) for _ in range(5)]
        others = [hetero.ScopedContext(products[0]) for _ in range(3)]
        assert streams_and_events() == (before[0] + 3, before[1] + 5)
        del token, ctx, products, others
        assert streams_and_events() == before

    def test_a_cycle_is_collected(self, token):
        before = streams_and_events()
        with hetero.ScopedContext(token) as ctx:
            held = []
            held.append(ctx.wrap(held))
        del held
        assert streams_and_events() == before

    def test_an_event_of_pending_work_stands_for_that_until_its_products_end(self, emulator):
        """It is recorded anew then, and who waited waits for the work that it stood for."""
        hamr.trim()
        with on_device(0) as slow, on_device(0) as quick, on_device(0) as waiting:
            emulator.hold(slow.stream.ptr)
            product = slow.wrap(None)
            held = [quick.wrap(None) for _ in range(4)]
            assert product._event not in {p._event for p in held}
            waiting.get(product)
            event = product._event
            del product
            anew = quick.wrap(None)
            assert anew._event == event
            behind = waiting.wrap(None)
            quick.stream.synchronize()
            assert anew.done
            assert not behind.done
            emulator.let_go()
            emulator.finish()
            assert behind.done

    def test_trim_ends_what_is_kept(self, emulator):
        ctx = on_device(0)
        del ctx
        emulator.finish()
        hamr.trim()
        streams, events = emulator.live("streams"), emulator.live("events")
        ctx = on_device(0)
        ctx.wrap(None)
        emulator.finish()
        assert emulator.live("streams") == streams + 1
        del ctx
        hamr.trim()
        assert (emulator.live("streams"), emulator.live("events")) == (streams, events)

    def test_errors_of_wrap(self, emulator, token):
        ctx = hetero.ScopedContext(token)
        before = streams_and_events()
        emulator.fail("cuEventRecord", 0, 700)
        with pytest.raises(hamr.DeviceError, match="700"):
            ctx.wrap(None)
        emulator.stop_failing()
        assert streams_and_events() == before
        assert ctx.wrap(3).done in (True, False)

    def test_errors_of_get(self, emulator, token):
        other = on_device(0)
        with hetero.ScopedContext(token) as ctx:
            emulator.hold(ctx.stream.ptr)
            product = ctx.wrap(None)
        try:
            for call in ("cuEventQuery", "cuStreamWaitEvent"):
                emulator.fail(call, 0, 700)
                with pytest.raises(hamr.DeviceError, match="700"):
                    other.get(product)
                emulator.stop_failing()
        finally:
            emulator.let_go()


@dataclasses.dataclass
class Tracks:
    x: object
    n: int


@pytest.mark.multigpu(2)
class TestOtherDevices:
    def test_a_mismatch(self):
        product = on_device(0).wrap([1])
        with pytest.raises(hetero.DeviceMismatch, match=r"on cuda:0>.*on cuda:1") as raised:
            on_device(1).get(product)
        assert isinstance(raised.value, hamr.Error)
        assert isinstance(raised.value, ValueError)

    def test_migration(self):
        made = driver.Array(np.zeros(N, "f4"))
        source = on_device(0)
        driver.write_late(source.stream.ptr, made.ptr, N, 5)
        kept = np.ones(3)
        sevens = hamr.Buffer(N, "i4", "cuda", device=0, fill=7)
        product = source.wrap({"a": Tracks(made, 3), "b": [sevens, kept]})
        with on_device(1) as ctx:
            got = ctx.get(product, migrate=True)
            assert got["a"].n == 3
            assert got["a"].x.device == got["b"][0].device == 1
            assert got["b"][1] is kept
            assert got["a"].x.stream is ctx.stream
        assert on_host(got["a"].x).tolist() == [5] * N
        assert on_host(got["b"][0]).tolist() == [7] * N

    def test_what_cannot_migrate(self):
        product = on_device(0).wrap([object()])
        with pytest.raises(TypeError, match=r"object object.*migrate=True"):
            on_device(1).get(product, migrate=True)


class TestHandles:
    """Streams of the cache that somebody names by their numbers, too."""

    def test_a_name_that_ends_ends_no_stream_of_the_cache(self, emulator):
        gc.collect()
        hamr.trim()
        token = hetero.DeviceChooser(among="cuda:0").choose(0)
        handle = token.stream.ptr
        del token
        named = hamr.Stream(handle)  # nobody has the stream now
        token = hetero.DeviceChooser(among="cuda:0").choose(0)
        assert token.stream.ptr == handle
        with hetero.ScopedContext(token):
            block = hamr.Buffer(N, "f4", "cuda_async", device=0)
            del named
            gc.collect()
            driver.write_late(handle, block.ptr, N, 5)
            block.close()  # on the same stream: else the driver reports a violation
