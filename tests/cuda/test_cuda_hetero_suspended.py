"""What is current on a thread while scopes are suspended, within each other too, and afterwards."""

import asyncio
import gc
import weakref

import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.support import opencl_runtime

pytestmark = pytest.mark.usefixtures("cuda_alone", "nothing_current")


@pytest.fixture
def nothing_current(current_context):
    before = driver.current_context()
    driver.set_current(0)
    yield
    if driver.emulator:
        driver.emulator.let_go()
    driver.set_current(before)


def on_device(number):
    return hetero.ScopedContext(hetero.DeviceChooser(among=f"cuda:{number}").choose(0))


class TestSuspended:
    def test_within_itself(self):
        before = driver.current_context()
        with on_device(0) as ctx:
            inside = driver.current_context()
            with ctx.suspended():
                with ctx.suspended():
                    assert driver.current_context() == before
                assert driver.current_context() == before
            assert driver.current_context() == inside
        assert driver.current_context() == before

    def test_waits_at_the_same_time(self, emulator):
        """Two tasks wait for one scope, and the sooner one is told while the other waits."""
        before = driver.current_context()

        async def wait():
            with on_device(0) as ctx:
                inside = driver.current_context()
                first = asyncio.create_task(ctx.done())
                second = asyncio.create_task(ctx.done())
                emulator.hold(ctx.stream.ptr)
                with ctx.suspended():
                    await asyncio.sleep(0)
                    first.cancel()
                    await asyncio.wait([first])
                    assert driver.current_context() == before
                    emulator.let_go()
                    await second
                    assert driver.current_context() == before
                assert driver.current_context() == inside

        asyncio.run(wait())
        assert driver.current_context() == before

    def test_a_wait_that_ends_after_its_scope(self, emulator):
        before = driver.current_context()

        async def wait():
            with on_device(0) as ctx:
                emulator.hold(ctx.stream.ptr)
                late = asyncio.create_task(ctx.done())
                with ctx.suspended():
                    await asyncio.sleep(0)
            with ctx:
                emulator.let_go()
                with ctx.suspended():
                    await late
                    assert driver.current_context() == before
            assert driver.current_context() == before

        asyncio.run(wait())
        assert driver.current_context() == before

    @pytest.mark.multigpu(2)
    def test_an_outer_scope(self):
        """What was current inside is so again: the inner scope's device."""
        before = driver.current_context()
        with on_device(0) as outer, on_device(1):
            inside = driver.current_context()
            with outer.suspended():
                assert driver.current_context() == before
            assert driver.current_context() == inside
        assert driver.current_context() == before

    @pytest.mark.multigpu(2)
    def test_an_inner_scope(self):
        """Nothing of the scopes around it is current either, however they are suspended."""
        before = driver.current_context()
        with on_device(0) as outer:
            at_home = driver.current_context()
            with on_device(1) as inner:
                inside = driver.current_context()
                with inner.suspended():
                    assert driver.current_context() == before
                    with outer.suspended(), inner.suspended():
                        assert driver.current_context() == before
                    assert driver.current_context() == before
                assert driver.current_context() == inside
                with outer.suspended():
                    with inner.suspended():
                        assert driver.current_context() == before
                    assert driver.current_context() == before
                assert driver.current_context() == inside
            assert driver.current_context() == at_home
        assert driver.current_context() == before

    @pytest.mark.skipif(bool(opencl_runtime.absent()), reason=opencl_runtime.absent())
    def test_a_scope_of_another_runtime(self):
        """What is current of CUDA's is so for its own outermost scope."""
        before = driver.current_context()
        with on_device(0) as outer:
            inside = driver.current_context()
            with hetero.ScopedContext(hetero.Token(hamr.Stream(device="opencl:0"))) as inner:
                for ctx in (inner, outer, inner):
                    assert driver.current_context() == inside
                    with ctx.suspended(), inner.suspended():
                        assert driver.current_context() == before
                asyncio.run(inner.done())
            assert driver.current_context() == inside
        assert driver.current_context() == before

    @pytest.mark.multigpu(2)
    def test_a_scope_within_a_suspension(self):
        before = driver.current_context()
        with on_device(0) as outer:
            at_home = driver.current_context()
            with outer.suspended():
                with on_device(1) as inner:
                    inside = driver.current_context()
                    with inner.suspended():
                        assert driver.current_context() == before
                    assert driver.current_context() == inside
                assert driver.current_context() == before
            assert driver.current_context() == at_home

    @pytest.mark.multigpu(2)
    def test_an_inner_scope_that_ends_in_a_suspension(self):
        before = driver.current_context()
        with on_device(0) as outer:
            at_home = driver.current_context()
            inner = on_device(1).__enter__()
            with outer.suspended():
                inner.__exit__(None, None, None)
                assert driver.current_context() == before
            assert driver.current_context() == at_home
        assert driver.current_context() == before

    @pytest.mark.multigpu(2)
    def test_an_outer_scope_that_ends_first(self):
        outer, inner = on_device(0).__enter__(), on_device(1).__enter__()
        outer.__exit__(None, None, None)
        now = driver.current_context()
        with inner.suspended():
            pass
        inner.__exit__(None, None, None)
        with on_device(0) as again, again.suspended():
            pass
        assert now == 0

    @pytest.mark.multigpu(2)
    @pytest.mark.parametrize("way", ["inner", "outer", "neither"])
    def test_tasks_beside_nested_scopes(self, emulator, way):
        """Two tasks in two scopes each; a third sees what was current before all of them."""
        found = []

        async def nested(one, two):
            with on_device(one) as outer:
                emulator.hold(outer.stream.ptr)
                await in_scope(outer, two)

        async def in_scope(outer, two):
            with on_device(two) as inner:
                inside = driver.current_context()
                emulator.hold(inner.stream.ptr)
                third = hetero.ScopedContext(hetero.Token(inner.stream))
                for _ in range(2):
                    await {"inner": inner, "outer": outer, "neither": third}[way].done()
                    assert driver.current_context() == inside == driver.context(two)

        async def look():
            for _ in range(5):
                found.append(driver.current_context())
                await asyncio.sleep(0.001)
            emulator.let_go()

        async def main():
            await asyncio.gather(nested(0, 1), look(), nested(1, 0), nested(0, 0))
            found.append(driver.current_context())

        asyncio.run(main())
        assert found == [0] * 6

    @pytest.mark.multigpu(2)
    def test_a_task_made_inside_has_its_own(self, emulator):
        """It has its maker's blocks, and what it waits for leaves that one its device."""
        found = []

        async def child():
            with on_device(1) as ctx:
                emulator.hold(ctx.stream.ptr)
                await ctx.done()
                found.append(driver.current_context())

        async def main():
            with on_device(0) as outer:
                running = asyncio.create_task(child())
                await asyncio.sleep(0)  # with the device, which nobody should
                assert driver.current_context() == driver.context(0)
                emulator.let_go()
                with outer.suspended():
                    await running
                assert driver.current_context() == driver.context(0)

        asyncio.run(main())
        assert found == [driver.context(1)]

    @pytest.mark.multigpu(2)
    def test_a_scope_that_is_left_open_goes_with_its_task(self, emulator):
        gone = []

        async def leaves():
            ctx = on_device(0).__enter__()
            weakref.finalize(ctx.stream, gone.append, True)

        asyncio.run(leaves())
        gc.collect()
        assert gone == [True]
        driver.set_current(0)
