"""One buffer beside one NumPy array, through any sequence of operations."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

import hamr
from tests.support import producers
from tests.support.contents import on_host

numbers = st.integers(0, 100)
runs = st.lists(numbers, max_size=12)


class BufferBesideArray(RuleBasedStateMachine):
    """The array is what the buffer's content must be after each step."""

    exports = Bundle("exports")

    @initialize(
        dtype=producers.counting_dtypes,
        allocator=producers.allocators,
        content=runs,
        shared=st.booleans(),
    )
    def start(self, dtype, allocator, content, shared):
        self.model = producers.cast(content, dtype)
        self.source = self.model.copy()
        self.buffer = (
            hamr.buffer(self.source) if shared else producers.in_memory(self.source, allocator)
        )

    @property
    def dtype(self):
        return self.model.dtype

    @rule(n=st.integers(0, 40), value=numbers)
    def resize(self, n, value):
        self.buffer.resize(n, value)
        flat = self.model.ravel()
        if self.model.shape != (n,):
            new = np.full(max(n - flat.size, 0), value, self.dtype)
            self.model = np.concatenate([flat[:n], new])

    @rule(rows=st.integers(1, 3), value=numbers)
    def fold(self, rows, value):
        columns = -(-self.model.size // rows)
        if self.model.shape == (rows, columns):
            return
        self.buffer.resize((rows, columns), value)
        new = np.full(rows * columns - self.model.size, value, self.dtype)
        self.model = np.concatenate([self.model.ravel(), new]).reshape(rows, columns)

    @rule(n=st.integers(0, 60))
    def reserve(self, n):
        self.buffer.reserve(n)
        assert self.buffer.capacity() >= n

    @rule(content=runs, dtype=producers.counting_dtypes)
    def append(self, content, dtype):
        more = producers.cast(content, dtype)
        self.buffer.append(more)
        if more.size:
            more = producers.cast(more, self.dtype)
            self.model = np.concatenate([self.model.ravel(), more])

    @rule(value=numbers)
    def append_value(self, value):
        self.buffer.append(value)
        self.model = np.append(self.model.ravel(), np.array(value).astype(self.dtype))

    @rule()
    def append_itself(self):
        if 0 < self.model.size < 100:
            self.buffer.append(self.buffer)
            self.model = np.concatenate([self.model.ravel()] * 2)

    @rule(content=runs)
    def assign(self, content):
        self.buffer.assign(np.array(content, "int64"))
        self.model = producers.cast(content, self.dtype)

    @rule(value=numbers)
    def fill(self, value):
        self.buffer.fill(value)
        self.model[...] = value

    @rule(data=st.data(), content=runs)
    def set(self, data, content):
        content = content[: self.model.size]
        at = data.draw(st.integers(0, self.model.size - len(content)))
        self.buffer.set(content, at=at)
        flat = self.model.reshape(-1)
        flat[at : at + len(content)] = producers.cast(content, self.dtype)

    @rule(part=st.slices(20), value=numbers)
    def write_through_a_view(self, part, value):
        self.buffer[part][...] = value
        self.model[part] = value

    @rule(part=st.slices(20))
    def become_a_view(self, part):
        self.buffer = self.buffer[part]
        self.model = self.model[part].copy()

    @rule(allocator=producers.allocators)
    def move(self, allocator):
        self.buffer.move(allocator)
        assert self.buffer.allocator == allocator

    @rule(allocator=producers.allocators, dtype=producers.counting_dtypes)
    def become_a_copy(self, allocator, dtype):
        self.buffer = self.buffer.copy(allocator, dtype=dtype)
        self.model = producers.cast(self.model, dtype)

    @rule(content=runs)
    def swap(self, content):
        other = producers.in_memory(np.array(content, "float32"), hamr.Allocator.cpp)
        self.buffer.swap(other)
        producers.assert_same(other, self.model)
        self.model = np.array(content, "float32")

    @rule()
    def free(self):
        self.buffer.free()
        self.model = np.zeros(0, self.dtype)

    @rule(target=exports)
    def export(self):
        """An array of a private copy's memory: nothing later may change it."""
        copied = self.buffer.copy()
        return np.asarray(copied), self.model.copy()

    @rule(pair=consumes(exports))
    def exports_stay(self, pair):
        np.testing.assert_array_equal(*pair, strict=True)

    @rule()
    def write_through_numpy(self):
        shared = on_host(self.buffer)
        if shared.size:
            shared.flat[0] = 5
            self.model.flat[0] = 5

    @invariant()
    def contents_agree(self):
        producers.assert_same(self.buffer, self.model)
        assert self.buffer.capacity() >= self.buffer.size()
        np.testing.assert_array_equal(self.buffer.get(), self.model)
        assert not self.buffer.readonly


TestBufferBesideArray = BufferBesideArray.TestCase
