"""copy_many on the host: as a loop of assignments, and what it refuses."""

import random
import threading

import numpy as np
import pytest

import hamr
from tests.support.processes import scaled
from tests.support.random_many import Lists


def on_host(choose, values):
    if choose.random() < 0.3:
        return hamr.buffer(values.copy())
    return hamr.Buffer(
        values.shape, values.dtype, choose.choice(("malloc", "cpp")), data=values.copy()
    )


def test_it_is_a_loop_of_assignments():
    for seed in range(scaled(300, 20)):
        lists = Lists(random.Random(seed), on_host)
        for _ in range(4):
            lists.step()
            lists.check()


def test_what_it_takes():
    a, b = np.zeros(3), bytearray(4)
    c = hamr.Buffer((2, 3), "f4", fill=1)
    assert hamr.copy_many([a, b, c], (c[0], b"\1\2\3\4", np.arange(3))) is None
    assert (a.tolist(), bytes(b), c.get().tolist()) == ([1] * 3, b"\1\2\3\4", [[0, 1, 2]] * 2)
    hamr.copy_many([], ())
    hamr.copy_many([hamr.Buffer(0)], [np.zeros(0)])


def test_a_later_pair_wins():
    b = hamr.Buffer(4, fill=0)
    hamr.copy_many([b[:3], b[1:], b[:1]], [np.ones(3), np.full(3, 2.0), np.full(1, 3.0)])
    assert b.get().tolist() == [3, 2, 2, 2]


def test_a_later_pair_reads_what_an_earlier_one_has_written():
    a, b = hamr.Buffer(3, fill=0), hamr.Buffer(3, fill=1)
    hamr.copy_many([a, b, a], [np.full(3, 5.0), a, b[::-1]])
    assert (a.get().tolist(), b.get().tolist()) == ([5] * 3, [5] * 3)
    c = hamr.Buffer(4, data=[0, 1, 2, 3])
    hamr.copy_many([c[1:], c[0, ...]], [c[:-1], c[3, ...]])
    assert c.get().tolist() == [2, 0, 1, 2]


def closed():
    b = hamr.Buffer(2)
    b.close()
    return b


READ_ONLY = np.zeros(2)
READ_ONLY.flags.writeable = False


X = np.ones(2)


@pytest.mark.parametrize(
    ("lists", "error", "says"),
    [
        (lambda a, b: ([a, b], [X]), ValueError, "destinations has 2 arrays and sources 1"),
        (lambda a, b: ([a, "t"], [X, X]), TypeError, r"destinations\[1\] is 't': "),
        (lambda a, b: ([a, b], [X, 7]), TypeError, r"sources\[1\] is 7: "),
        (lambda a, b: ([a, b], [X, [1, 2]]), TypeError, r"sources\[1\] is \[1, 2\]: "),
        (lambda a, b: ([a, b], [X, None]), TypeError, r"sources\[1\] is None: "),
        (
            lambda a, b: ([a, READ_ONLY], [X, X]),
            ValueError,
            r"ions\[1\], sources\[1\]: .*read-only",
        ),
        (lambda a, b: ([a, b"ab"], [X, X]), ValueError, r"ions\[1\], sources\[1\]: .*read-only"),
        (
            lambda a, b: ([a, b], [X, np.ones(3)]),
            ValueError,
            r"\[1\], sou.*\[1\]: .*\(2,\).*\(3,\)",
        ),
        (lambda a, b: ([a, closed()], [X, X]), hamr.FreedBuffer, r"destinations\[1\] was closed"),
        (lambda a, b: ([a, b], [X, closed()]), hamr.FreedBuffer, r"sources\[1\] was closed"),
        (
            lambda a, b: ({0: a}, [X]),
            TypeError,
            r"destinations is \{0: .*\}, a dict: accepted is a s",
        ),
        (
            lambda a, b: (X, [X, X]),
            TypeError,
            "destinations is array.*, a ndarray: accepted is a s",
        ),
        (lambda a, b: (iter([a]), [X]), TypeError, "destinations is <list_iterator.*: accepted is"),
        (lambda a, b: ([a], "t"), TypeError, "sources is 't', a str: accepted is a sequence"),
    ],
)
def test_what_it_refuses(lists, error, says):
    a, b = hamr.Buffer(2, "f8", fill=4), hamr.Buffer(2, "f8", fill=4)
    destinations, sources = lists(a, b)
    with pytest.raises(error, match=says):
        hamr.copy_many(destinations, sources)
    assert (a.get().tolist(), b.get().tolist()) == ([4, 4], [4, 4]), "nothing was copied"


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"transfer": "later"}, ValueError),
        ({"transfer": 1.5}, TypeError),
        ({"wait": 1}, TypeError),
        ({"stream": "s"}, TypeError),
    ],
)
def test_keywords_that_are_wrong(keywords, error):
    out = np.zeros(2)
    with pytest.raises(error):
        hamr.copy_many([out], [np.ones(2)], **keywords)
    assert out.tolist() == [0, 0]


def test_elements_that_are_in_use():
    a, b = hamr.Buffer(2, fill=1), hamr.Buffer(2, fill=1)
    with b.on_host("rw"), pytest.raises(hamr.InUse, match=r"destinations\[1\], sources\[1\]"):
        hamr.copy_many([a, b], [np.zeros(2), np.zeros(2)])
    assert a.get().tolist() == [1, 1]


def test_subclasses_and_handles():
    class Named(hamr.Buffer):
        __slots__ = ("name",)

    a = Named(3, fill=0)
    handle = hamr.buffer(np.arange(3.0)).get_host_accessible()
    hamr.copy_many([a], [handle])
    assert a.get().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        hamr.copy_many([hamr.Buffer(2).cached().get_host_accessible(), READ_ONLY], [a[:2], a[:2]])


def test_from_several_threads():
    """Of the same buffers, which others swap and resize meanwhile."""
    buffers = [hamr.Buffer(100, "i4", fill=i) for i in range(8)]
    errors = []

    def run(number):
        choose = random.Random(number)
        try:
            for _ in range(scaled(300, 30)):
                to, given = choose.sample(buffers, 3), choose.sample(buffers, 3)
                act = choose.randrange(4)
                if act == 0:
                    to[0].swap(given[0])
                elif act == 1:
                    to[0].move(choose.choice(("malloc", "cpp")))
                else:
                    hamr.copy_many(to, given)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
