"""Choosing devices, and contexts: what they set, and restore."""

import threading

import pytest

import hamr
from hamr import hetero
from tests.cuda import driver
from tests.support.contents import on_host
from tests.support.in_threads import in_threads
from tests.support.processes import run_code

N = 1000
CUDA = [f"cuda:{i}" for i in range(driver.DEVICES)]

pytestmark = pytest.mark.usefixtures("cuda_alone")


class TestChoosing:
    def test_accelerators(self, monkeypatch):
        assert hetero.accelerators() == CUDA
        assert hetero.accelerators("cuda:0") == ["cuda:0"]
        assert hetero.accelerators(["cpu"]) == []
        monkeypatch.setenv("HAMR_ACCELERATORS", "none")
        assert hetero.accelerators() == []
        assert hetero.DeviceChooser().choose(0) is None

    def test_what_is_not_there_or_is_no_name(self):
        assert hetero.accelerators([f"cuda:{driver.DEVICES}", "cuda:0"]) == ["cuda:0"]
        for wrong in ("cuda:x", "gpu", ["cuda:-1"]):
            with pytest.raises(ValueError, match='accepted is "cpu"'):
                hetero.accelerators(wrong)
        for wrong in ([0], 5, b"cuda"):
            with pytest.raises(TypeError, match="among is"):
                hetero.accelerators(wrong)

    def test_round_robin_by_key(self):
        chooser = hetero.DeviceChooser()
        tokens = [chooser.choose(key) for key in range(2 * driver.DEVICES)]
        assert [t.place for t in tokens] == CUDA * 2
        assert len({t.stream.ptr for t in tokens}) == len(tokens)

    @pytest.mark.multigpu(2)
    def test_free_memory(self):
        chooser = hetero.DeviceChooser("free_memory", among=["cuda:0", "cuda:1"])
        taken = hamr.Buffer(64 << 20, "u1", "cuda_async", device=0, fill=1)
        assert chooser.choose(0).place == "cuda:1"
        taken.close()

    @pytest.mark.multigpu(2)
    def test_least_pending(self):
        chooser = hetero.DeviceChooser("least_pending")
        held = [chooser.choose(0) for _ in range(2 * driver.DEVICES)]
        assert sorted(t.place for t in held) == sorted(CUDA * 2)
        freed = held[1].place
        held[1] = None
        assert chooser.choose(0).place == freed

    def test_disabled(self):
        chooser = hetero.DeviceChooser(enabled=False)
        assert chooser.choose(5) is None
        assert not hetero.device_filter(chooser.choose(5))
        assert hetero.device_filter(hetero.DeviceChooser().choose(5))

    def test_a_policy_that_is_none(self):
        with pytest.raises(ValueError, match=r"'fastest'.*'round_robin', 'free_memory'"):
            hetero.DeviceChooser("fastest")

    def test_switch(self):
        assert hetero.Switch(cuda=lambda x: x + 1, cpu=None)(1) == 2
        assert hetero.Switch(cuda=1, cpu=2, among="none").name == "cpu"
        with pytest.raises(hamr.BackendUnavailable, match="none of cuda has"):
            hetero.Switch(cuda=1, among="none")
        for wrong in ("cuda:0", "none", "cuda,hip", " cuda", ""):
            with pytest.raises(ValueError, match=f"'{wrong}'.*names of runtimes"):
                hetero.Switch(**{wrong: 1, "cpu": 2})
        with pytest.raises(ValueError, match=r'case is "metal".* cuda, '):
            hetero.Switch(metal=1, cpu=2)
        with pytest.raises(TypeError, match="has alternatives"):
            hetero.Switch()

    def test_a_switch_loads_what_it_may_choose(self):
        """In the order as written, and nothing else."""
        output = run_code(
            """
from hamr import hetero
def loaded():
    with open("/proc/self/maps") as maps:
        return "libOpenCL" in maps.read()
print(hetero.Switch(opencl=1, cpu=2, among="none").name, loaded())
print(hetero.Switch(cuda=1, opencl=2, cpu=3, among="cuda,opencl").name, loaded())
"""
        )
        assert output.split() == ["cpu", "False", "cuda", "False"]


class TestContexts:
    @pytest.mark.parametrize("number", range(driver.DEVICES))
    def test_the_device_and_the_stream_are_set_and_restored(self, number):
        token = hetero.DeviceChooser().choose(number)
        before = driver.current_context()
        with hetero.ScopedContext(token) as ctx:
            assert driver.current_context() == driver.context(number)
            assert (ctx.place, ctx.device) == (f"cuda:{number}", number)
            assert ctx.stream is token.stream
            assert hamr.Buffer(N, "f4", "cuda", device=number).stream is ctx.stream
        assert driver.current_context() == before
        assert hamr.Buffer(N, "f4", "cuda").stream.ptr == 0

    def test_after_exceptions(self, token):
        before = driver.current_context()
        with pytest.raises(KeyError), hetero.ScopedContext(token):
            raise KeyError
        assert driver.current_context() == before
        assert hamr.Buffer(N, "f4", "cuda").stream.ptr == 0

    def test_nested(self, token):
        last = hetero.DeviceChooser().choose(driver.DEVICES - 1)
        with hetero.ScopedContext(token) as outer:
            with hetero.ScopedContext(last) as inner:
                assert driver.current_context() == driver.context(driver.DEVICES - 1)
                assert hamr.Buffer(1, "f4", "cuda", device=inner.device).stream is inner.stream
            assert driver.current_context() == driver.context(0)
            assert hamr.Buffer(1, "f4", "cuda", device=0).stream is outer.stream

    def test_what_the_scope_changes_is_restored(self, token):
        before = driver.current_context()
        with hetero.ScopedContext(token):
            driver.set_current(driver.context(driver.DEVICES - 1))
        assert driver.current_context() == before

    def test_on_many_threads(self):
        chooser = hetero.DeviceChooser()

        def work(number):
            place = number % driver.DEVICES
            for _ in range(20):
                with hetero.ScopedContext(chooser.choose(number)) as ctx:
                    assert driver.current_context() == driver.context(place)
                    product = ctx.wrap(hamr.Buffer(N, "f4", "cuda", device=place, fill=number))
                with hetero.ScopedContext(product) as ctx:
                    assert on_host(ctx.get(product)).tolist() == [number] * N

        in_threads(work, 8)

    def test_entered_twice_or_left_elsewhere(self, token):
        ctx = hetero.ScopedContext(token)
        with ctx, pytest.raises(RuntimeError, match="has been entered"):
            ctx.__enter__()
        with pytest.raises(RuntimeError, match="has not been entered"):
            ctx.__exit__(None, None, None)
        failed = []

        def leave():
            try:
                ctx.__exit__(None, None, None)
            except RuntimeError as error:
                failed.append(str(error))

        with ctx:
            thread = threading.Thread(target=leave)
            thread.start()
            thread.join()
        assert "another thread" in failed[0]

    def test_sources_that_are_none(self):
        with pytest.raises(TypeError, match=r"source is 1: accepted are a hamr\.hetero\.Token"):
            hetero.ScopedContext(1)
        with pytest.raises(TypeError, match=r"stream is 1: accepted is a hamr\.Stream"):
            hetero.Token(1)
        with pytest.raises(ValueError, match="which device"):
            hetero.Token(hamr.Stream())
        assert hetero.ScopedContext(hetero.Token(hamr.Stream(device=0))).place == "cuda:0"

    def test_tokens_of_numbers(self):
        """The driver knows which device a stream is on."""
        stream = hamr.Stream(device=0)
        assert hetero.Token(hamr.Stream(stream.ptr)).place == "cuda:0"
        with pytest.raises(ValueError, match="of device 0, and device is 1"):
            hetero.Token(hamr.Stream(stream.ptr, device=1))

    def test_activation_that_fails(self, emulator, token):
        driver.set_current(0)
        emulator.fail("cuCtxSetCurrent", 0, 201)
        ctx = hetero.ScopedContext(token)
        with pytest.raises(hamr.DeviceError, match="201"):
            ctx.__enter__()
        emulator.stop_failing()
        assert hamr.Buffer(N, "f4", "cuda").stream.ptr == 0
        with ctx:
            assert driver.current_context() == driver.context(0)
