"""What a pipeline's modules are, and which graphs are refused, by which words."""

import functools
import pickle

import pytest

from hamr import hetero
from hamr.hetero import Pipeline, Producer, module


class Made(Producer):
    """A module whose attributes are given."""

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def produce(self, event, ctx):
        return 0


def raw(event):
    return event.item


def run(*modules, events=(3,), **options):
    (result,) = Pipeline(modules, **options).run(events)
    return result


REFUSED = {
    "unknown input": (
        [Made(name="a", inputs=["nothing"]), Made(name="b")],
        "module 'a' reads 'nothing', which no module makes: there are 'a', 'b'",
    ),
    "circle": (
        [
            Made(name="a", inputs=["c"]),
            Made(name="b", inputs=["a"]),
            Made(name="c", inputs=["b"]),
            Made(name="d", inputs=["c"]),
        ],
        "'a' reads from 'c' reads from 'b' reads from 'a'; the first of them reads 'c'",
    ),
    "itself": ([Made(name="a", inputs="a")], "'a' reads from 'a'; the first of them reads 'a'"),
    "one name": ([Made(name="a"), Made(name="a", outputs="b")], "two modules have the name 'a'"),
    "one output": (
        [Made(name="a", outputs="x"), Made(name="b", outputs=["y", "x"])],
        "modules 'a' and 'b' both make 'x'",
    ),
    "cpu after device": (
        [Made(name="a", kind="device"), Made(name="b", inputs=["a"])],
        "module 'b' of the kind 'cpu' reads 'a', which module 'a' makes on a device",
    ),
    "kind": ([Made(name="a", kind="gpu")], "module 'a': kind is 'gpu': accepted are 'cpu'"),
    "none": ([], "modules is empty"),
    "reserved": ([Made(name="a", inputs=["ctx"])], "module 'a': inputs: 'ctx' cannot be a name"),
    "fallback of the host": (
        [Made(name="a", fallback=Made(name="b"))],
        "module 'a' is of the kind 'cpu', which needs no fallback",
    ),
    "fallback on a device": (
        [Made(name="a", kind="device", fallback=Made(name="b", kind="external"))],
        "fallback 'b' of module 'a' is of the kind 'external'",
    ),
    "fallback reads a device's": (
        [
            Made(name="a", kind="device"),
            Made(name="b", kind="external", inputs="a", fallback=Made(name="c", inputs="a")),
        ],
        "fallback 'c' of module 'b' reads 'a', which is made on a device alone, by module 'a'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    modules, words = REFUSED[name]
    with pytest.raises(ValueError) as told:  # noqa: PT011  the words are compared
        Pipeline(modules)
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (3, "module 3: accepted are"),
        (Made, "is a class: accepted is Made(…), an instance"),
        (Producer(), "Producer has no method produce"),
        (lambda *all: 0, "takes *all: name inputs="),
        (max, "module 'max': <built-in function max> has no signature: name inputs="),
    ],
)
def test_what_is_no_module(item, words):
    with pytest.raises(TypeError) as told:
        Pipeline([item])
    assert words in str(told.value)


def test_options_are_checked():
    for wrong in ({"streams": 0}, {"workers": -1}, {"keep": ["x"]}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}"):
            Pipeline([raw], **wrong)
    with pytest.raises(TypeError, match="events is 3"):
        Pipeline([raw]).run(3)
    with pytest.raises(ValueError, match="of the kind 'cpu', which has no context"):
        Pipeline([module()(lambda ctx: 0)])
    with pytest.raises(ValueError, match=r"module\('gpu'\): kind is 'gpu'"):
        module("gpu")

    class Acquires(Made):
        def acquire(self, event, ctx): ...

    with pytest.raises(ValueError, match="acquire is of 'external'"):
        Pipeline([Acquires(kind="device")])


def test_a_function_stays_what_it_is():
    assert pickle.loads(pickle.dumps(declared)) is declared
    assert declared(4) == 5
    twice = module(name="twice", inputs=["declared"])(declared)
    result = run(raw, declared, twice, keep=["declared", "twice"])
    assert (result["declared"], result["twice"]) == (4, 5)


@module()
def declared(raw, by=1):
    return raw + by


def test_how_functions_ask_for_their_inputs():
    def second(event, raw):
        return event.number, raw, event["raw"]

    def third(raw, *, second, event):
        return (*second, event["second"][0])

    assert run(second, third, raw)["third"] == (0, 3, 3, 0)
    assert run(raw, module(name="p", inputs=["raw"])(functools.partial(pow, 2)))["p"] == 8
    assert run(raw, module(name="m", inputs=["raw", "raw"])(max))["m"] == 3


def test_inputs_are_those_that_are_declared():
    class Reads(Producer):
        inputs = ("raw",)

        def produce(self, event, ctx):
            assert ctx is None
            return event["other"]

    error = run(raw, Reads(), module(name="other")(lambda: 1)).error
    assert "'other': the inputs of module 'Reads' are 'raw'" in str(error.__cause__)


@pytest.mark.parametrize("made", [(1, 2), [1, 2], {"b": 2, "a": 1}])
def test_several_outputs(made):
    both = module(name="both", outputs=["a", "b"])(lambda: made)
    result = run(
        both, module(name="minus", inputs=["b", "a"])(lambda x, y: x - y), keep=["minus", "a"]
    )
    assert dict(result.values) == {"minus": 1, "a": 1}


@pytest.mark.parametrize("made", [(1,), 5, {"a": 1}, {"a": 1, "c": 2}])
def test_other_outputs_than_declared(made):
    both = module(name="both", outputs=["a", "b"])(lambda: made)
    error = run(both).error
    assert (error.module, error.phase, type(error.__cause__)) == ("both", "produce", ValueError)


def test_each_stream_has_a_copy_of_a_producer():
    class Counts(Producer):
        count = 0
        begun: list = []  # shared by the copies

        def begin(self, place):
            self.begun.append((id(self), place))

        def produce(self, event, ctx):
            self.count += 1
            return id(self), event.stream

    counts = Counts()
    results = Pipeline([counts], streams=3).run(range(30))
    assert len(set(counts.begun)) == 3
    assert {place for _, place in counts.begun} == {"cpu"}
    assert {r["Counts"] for r in results} <= {(i, n) for n, (i, _) in enumerate(counts.begun)}
    assert counts.count == 0


# Without a device.


def on_device(ctx):
    raise AssertionError("there is none")


def test_a_fallback_takes_the_modules_place():
    read = module("external", name="read", inputs=["made"], fallback=lambda_named("host"))(
        on_device
    )
    made = module("device", name="made", inputs=["raw"])(on_device)
    pipeline = Pipeline([raw, made, read, module(name="end", inputs=["read"])(lambda x: -x)])
    results = pipeline.run(range(4))
    assert [r["end"] for r in results] == [0, -1, -2, -3]
    assert {r.place for r in results} == {None}
    report = pipeline.report
    assert [report[n].calls for n in ("raw", "made", "read", "host", "end")] == [4, 0, 0, 4, 4]


def lambda_named(name):
    return module(name=name, inputs=["raw"])(lambda raw: raw)


def test_products_of_devices_are_none():
    def joined(read, host):
        return hetero.first_available(read, host)

    def host(raw, event):
        return None if event.place else raw * 2

    read = module("external", name="read", inputs=["made"])(on_device)
    made = module("device", name="made", inputs=["raw"])(on_device)
    result = run(raw, made, read, host, joined, keep=["read", "made", "joined"])
    assert dict(result.values) == {"read": None, "made": None, "joined": 6}


def test_a_fallback_of_a_device_module_is_read_by_that_of_the_next():
    first = module("device", name="first", inputs=["raw"], fallback=lambda_named("one"))(on_device)
    other = module(name="two", inputs=["first"])(lambda x: x + 1)
    second = module("external", name="second", inputs=["first"], fallback=other)(on_device)
    assert run(raw, first, second)["second"] == 4
