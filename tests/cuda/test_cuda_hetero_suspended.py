"""What is current on a thread while scopes are suspended, within each other too, and afterwards."""

import asyncio

import pytest

from hamr import hetero
from tests.cuda import driver

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
