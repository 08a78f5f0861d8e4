"""Which device a piece of work runs on."""

from __future__ import annotations

import os
from collections.abc import Iterable
from operator import index
from weakref import WeakSet

import hamr._native as _native

from .._native import Token
from .cached_streams import take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .._base.stream import Stream

    Restriction: TypeAlias = str | Iterable[str] | None

#: The environment variable that restricts which accelerators are used.
VARIABLE = "HAMR_ACCELERATORS"


def accelerators(among: Restriction = None) -> list[str]:
    """The devices that work may run on, such as "cuda:0", the preferred runtime's first.

    They are the devices of each runtime that is available and has streams, except the host's
    processors: a processor that OpenCL or SYCL serves counts only if ``among`` names it or its
    runtime. ``among`` restricts the devices: it has names of runtimes and devices, such as
    ``["cuda:1", "hip"]`` or "cuda:1,hip"; "cpu" and "none" stand for no accelerator. Its default is
    the environment variable HAMR_ACCELERATORS. ValueError for a name that is no runtime's.
    """
    return _listed(among, False)


def _listed(among: Restriction, distinct: bool) -> list[str]:
    return [name for (name,) in _native.accelerators(spelled(among), distinct)]


def spelled(among: Restriction) -> str:
    """A restriction as the core takes it; "" is none."""
    if among is None:
        return os.environ.get(VARIABLE, "")  # Go does not see changes of it
    names: list[str] = []
    if isinstance(among, Iterable):
        names = [among] if isinstance(among, str) else list(among)
    if not isinstance(among, Iterable) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"among is {among!r}: accepted are names of devices, as 'cuda:0', and of runtimes"
        )
    return ",".join(names) or "none"


def _split(place: str) -> tuple[str, int]:
    backend, _, number = place.partition(":")
    return backend, int(number)


class DeviceChooser:
    """Chooses the device of each piece of work: ``choose(key)`` returns a Token, or None.

    ``policy`` is "round_robin", key modulo the number of devices; "free_memory", the device with
    the most free memory; or "least_pending", the one with the fewest streams in use that this
    chooser has handed out. ``among`` is as for ``accelerators``. Without it
    a device that several runtimes have counts once, as the preferred runtime's. With
    ``enabled=False``, and without a device, ``choose`` returns None.

    The devices are found when the chooser is made. Any thread may choose.
    """

    __slots__ = ("_choose", "_policy", "_streams", "places")

    def __init__(
        self,
        policy: str = "round_robin",
        *,
        among: Restriction = None,
        enabled: bool = True,
    ) -> None:
        policies: dict[str, Callable[[int], str]] = {
            "round_robin": self._round_robin,
            "free_memory": self._most_free,
            "least_pending": self._least_pending,
        }
        if policy not in policies:
            raise ValueError(f"policy is {policy!r}: accepted are {', '.join(map(repr, policies))}")
        self._policy, self._choose = policy, policies[policy]
        #: The devices to choose among.
        self.places: tuple[str, ...] = tuple(_listed(among, among is None)) if enabled else ()
        self._streams: dict[str, WeakSet[Stream]] = {place: WeakSet() for place in self.places}

    def choose(self, key: int = 0) -> Token | None:
        """A Token with a stream of the device that is chosen for a key; None without a device.

        The key is an integer, such as the number of the framework's stream or of the event.
        """
        number = index(key)
        if not self.places:
            return None
        place = self._choose(number)
        token = Token(take(*_split(place)))
        self._streams[place].add(token.stream)
        return token

    def _round_robin(self, key: int) -> str:
        return self.places[key % len(self.places)]

    def _most_free(self, key: int) -> str:
        def free(place: str) -> int:
            backend, device = _split(place)
            return _native.memory_info(backend, device)[0]

        return max(self._from(key), key=free)

    def _least_pending(self, key: int) -> str:
        return min(self._from(key), key=lambda place: len(self._streams[place]))

    def _from(self, key: int) -> list[str]:
        """The places, with another one first for each key, since the first of equals is chosen."""
        start = key % len(self.places)
        return [*self.places[start:], *self.places[:start]]

    def __repr__(self) -> str:
        places = ", ".join(self.places) or "no devices"
        return f"<hamr.hetero.DeviceChooser by {self._policy} among {places}>"


def device_filter(token: object) -> bool:
    """Whether a chooser has chosen a device. Its negation selects the processor's modules."""
    return token is not None
