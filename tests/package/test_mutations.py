"""That each mark of `make mutations` in the Go code can be applied."""

import difflib

import pytest

from build_support import toolchain
from build_support.marks import MarkError, all_marks, marks, mutated
from build_support.mutations import build_errors

FEWEST = 269  # a mark that goes says so here

FUNCTION = """package p

func f(list []int) (err error) {
	%s
	for i := 0; i < 3; i++ {
		if err := g(func() { a() }); err != nil || h() { // why
			return err
		}
	}
	return nil
}
"""


def changed(mark, text=FUNCTION, below=4):
    lines = (text % "a()").split("\n")
    lines[below:below] = mark.split("\n")
    text = "\n".join(lines)
    (mutation,) = marks(text, "p/f.go")
    before = [line for line in text.split("\n") if "//mutate:" not in line]
    after = [line for line in mutated(mutation, text).split("\n") if "//mutate:" not in line]
    return [line[2:].strip() for line in difflib.ndiff(before, after) if line.startswith("+ ")]


def test_names_tell_them_apart_and_none_is_lost():
    names = [mutation.name for mutation in all_marks()]
    assert sorted(names) == sorted(set(names))
    assert len(names) >= FEWEST


@pytest.mark.skipif(toolchain.find_go() is None, reason="no go, or one that is too old")
def test_they_change_the_code_to_what_compiles():
    assert build_errors(all_marks()) == []


@pytest.mark.parametrize(
    ("mark", "below", "after"),
    [
        ("//mutate:remove x", 3, ["if false {", "}"]),
        ("//mutate:never x", 4, ["for i := 0; false && (i < 3); i++ {"]),
        (
            "//mutate:always x",
            5,
            ["if err := g(func() { a() }); true || (err != nil || h()) { // why"],
        ),
        (
            "//mutate:skip x",
            5,
            [
                "if err := func() (none error) { if false { none = g(func() { a() }) }; return }();"
                " err != nil || h() { // why"
            ],
        ),
        ("//mutate:insert x\n//mutate:with b()", 5, ["b()"]),
        (
            "//mutate:replace x\n//mutate:with h() => true",
            5,
            ["if err := g(func() { a() }); err != nil || true { // why"],
        ),
        ("//mutate:replace x\n//mutate:with err => list", 6, ["return list"]),
        (
            "//mutate:never x\n\t//mutate:also replace\n//mutate:with 3 => 4",
            4,
            ["for i := 0; false && (i < 4); i++ {"],
        ),
    ],
)
def test_what_an_operation_does(mark, below, after):
    assert changed(mark, below=below) == after


@pytest.mark.parametrize(
    ("mark", "below", "message"),
    [
        ("//mutate:delete x", 4, "p/f.go:5: 'delete' is none of remove, "),
        ("//mutate:remove", 4, "p/f.go:5: a mark has a name"),
        ("//mutate:also remove", 4, "p/f.go:5: a mark has a name"),
        ("//mutate:with a => b", 4, "p/f.go:5: `with` belongs below"),
        ("//mutate:replace x", 4, "p/f.go:5: replace needs a line //mutate:with"),
        ("//mutate:replace x\n//mutate:with k => j", 4, "the statement has 'k' 0 times, not once"),
        ("//mutate:replace x\n//mutate:with i => j", 4, "the statement has 'i' 3 times, not once"),
        ("//mutate:never x", 3, "p/f.go:4: the statement is not one for this operation"),
        ("//mutate:skip x", 3, "p/f.go:4: the statement is not one for this operation"),
        ("//mutate:remove x", 11, "p/f.go:12: no statement follows the mark"),
    ],
)
def test_a_mark_that_cannot_be_applied_says_where_it_is(mark, below, message):
    with pytest.raises(MarkError) as caught:
        changed(mark, below=below)
    assert message in str(caught.value)


def test_code_below_a_folder_is_tested_by_all_of_it():
    def tests(file):
        (mutation,) = marks("//mutate:remove x\na()", file)
        return mutation.tests

    assert tests("gobuffer/internal/order/work.go") == "./gobuffer/..."
    assert tests("backends/cuda/internal/x.go") == "./backends/cuda/..."
    assert tests("backends/internal/pool/trim.go") == "./backends/internal/pool"
    assert tests("pyhamr/internal/bridge/slices.go") == "./pyhamr/internal/bridge"
