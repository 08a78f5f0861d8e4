"""What the C extension offers; see native/."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, TypeVar

class Block: ...

class StreamLife:
    made_on: int | None

class Array:
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    typestr: str
    itemsize: int
    nbytes: int
    ndim: int
    ptr: int
    readonly: bool
    is_contiguous: bool
    is_fortran_contiguous: bool
    device: int
    __array_interface__: dict[str, Any]
    __cuda_array_interface__: dict[str, Any]
    _count: int
    _address: int
    _closed: bool
    _temporary: bool
    _host: bool
    _allocator: int
    _element: int
    _transfer: int
    _stream: int
    _capacity: int
    _order: Any
    _owner: Any
    _source: str | None
    _changing: bool
    _reach: int
    __dlpack_c_exchange_api__: ClassVar[Any]
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **kwargs: Any
    ) -> tuple[Any, Any]: ...
    def get_host_accessible(self) -> Array: ...
    def get_cuda_accessible(self, device: int | None = -1) -> Array: ...
    def get_hip_accessible(self, device: int | None = -1) -> Array: ...
    def get_openmp_accessible(self, device: int | None = -1) -> Array: ...
    def _close(self) -> None: ...
    def _empty(self) -> None: ...
    def _set_order(self, stream: int | None, transfer: int, order: object = None, /) -> None: ...
    def _snapshot(self, type: type[_A], /) -> _A: ...
    def _pin(self) -> Array: ...
    def _keep(self, snapshot: Array, /) -> None: ...
    def _swap(self, other: Array, /) -> None: ...

_A = TypeVar("_A", bound=Array)

class Result:
    _address: int

def begin_load() -> bool: ...
def bind(library: ModuleType, table: int, /) -> ModuleType: ...
def library() -> ModuleType | None: ...
def before_fork(free_cpp: int, free_malloc: int, /) -> None: ...
def set_hooks(
    load: Callable[[], ModuleType], make_error: Callable[[str], Exception], /
) -> None: ...
def set_handle_type(type: type[Array], /) -> None: ...
def set_buffer_type(type: type[Array], /) -> None: ...
def end_owners() -> None: ...
def after_fork() -> None: ...
def bound() -> bool: ...
def generation() -> int: ...
def set_stream_end(call: Callable[..., Any], /) -> Callable[..., Any] | None: ...
def stream_life(
    handle: int, device: int, backend: str, made: bool, owner: object, /
) -> StreamLife: ...
def result(before: Array | None, /) -> Result: ...
def change(array: Array, name: str, arguments: tuple[Any, ...], /) -> None: ...
def from_result(type: type[_A], result: Result, source: Array, handle: bool, /) -> _A: ...
def create(
    type: type[_A],
    element: int,
    allocator: int,
    device: int,
    stream: int,
    transfer: int,
    shape: int | tuple[int, ...],
    value: complex | None,
    /,
) -> _A: ...
def read_into(array: Array, out: object, /) -> bool: ...
def waiting() -> list[tuple[int, int]]: ...
def set_known_types(
    plain: set[type], cuda: set[type], dlpack: set[type], wait_of: Callable[[Any], bool], /
) -> None: ...
def adopt_known(
    type: type[_A], object: object, stream: int, transfer: int, wait: bool | None, /
) -> _A | None: ...
def adopt_buffer(type: type[_A], object: object, stream: int, transfer: int, /) -> _A | None: ...
def adopt_pointer(
    type: type[_A],
    element: int,
    allocator: int,
    device: int,
    stream: int,
    transfer: int,
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    readonly: bool,
    owner: object,
    take: bool,
    /,
) -> _A: ...
def adopt_dlpack(
    type: type[_A],
    object: object,
    stream: int,
    transfer: int,
    wait: bool,
    copy: bool | None = None,
    current: bool = False,
    /,
) -> _A | None: ...
def adopt_arrow(
    type: type[_A],
    object: object,
    stream: int,
    transfer: int,
    order: Callable[[int, int], int] | None,
    /,
) -> _A: ...
def adopt_device(
    type: type[_A],
    element: int,
    allocator: int,
    device: int,
    stream: int,
    transfer: int,
    pointer: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    readonly: bool,
    owner: object,
    producer: int,
    /,
) -> _A: ...
def view(
    type: type[_A],
    source: Array,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    /,
) -> _A: ...
def scalar(value: object, /) -> Array | None: ...
def bytes_of(array: Array, /) -> bytes: ...
def allocator_table() -> list[tuple[str, int, int, int, int]]: ...
def element_table() -> list[tuple[str, str, str | None, int, int]]: ...
