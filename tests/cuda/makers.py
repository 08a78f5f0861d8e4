"""Buffers at random places, on random streams."""

import hamr
from tests.cuda import driver

ALLOCATORS = "cuda", "cuda", "cuda", "cuda_async", "cuda_uva", "cuda_host", "malloc"


def maker(choose):
    """Makes buffers at a few places, on a few streams."""
    places = [
        (choose.choice(ALLOCATORS), choose.randrange(driver.DEVICES))
        for _ in range(choose.choice((2, 5)))
    ]
    streams = [hamr.Stream(device=d % driver.DEVICES) for d in range(3)]

    def make(choose, values):
        allocator, device = choose.choice(places)
        if allocator == "malloc":
            return hamr.buffer(values.copy())
        stream = choose.choice([None, None, *(s for s in streams if s.device == device)])
        place = {} if allocator == "cuda_host" else {"device": device}
        return hamr.Buffer(
            values.shape, values.dtype, allocator, data=values.copy(), stream=stream, **place
        )

    return make
