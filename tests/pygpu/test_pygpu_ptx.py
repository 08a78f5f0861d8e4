"""What is read of PTX: the parameters of its kernels."""

import pytest

from hamr.pygpu.ptx import is_ptx, parameters_of

HEAD = b".version 8.0\n.target sm_80\n.address_size 64\n"


def types(text):
    return {
        name: [word for word, _, _ in found]
        for name, found in parameters_of(HEAD + text.encode()).items()
    }


def test_each_type_has_its_kind_and_size():
    text = ", ".join(
        f".param .{name} p{i}" for i, name in enumerate(("u8", "s16", "b32", "u64", "f32", "f64"))
    )
    found = parameters_of(HEAD + f".visible .entry k({text}) {{ ret; }}".encode())
    assert found == {
        "k": (
            *(("u8", "i", 1), ("s16", "i", 2), ("b32", "b", 4), ("u64", "i", 8)),
            *(("f32", "f", 4), ("f64", "f", 8)),
        )
    }


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("()", []),
        ("", []),
        ("(\n\t.param .u32 k_param_0,\n\t.param .u64 k_param_1\n)", ["u32", "u64"]),
        ("(.param .u64 .ptr .global .align 4 x, .param .f32 y)", ["u64", "f32"]),
        ("(.param .u64 .ptr .align 1 x)", ["u64"]),
        ("(.param .align 8 .b8 x[16], .param .f64 y)", ["b8[16]", "f64"]),
        ("(.param .align 4 .f32 x[4])", ["f32[4]"]),
        ("(.param .f32 a, // of .u32 x\n .param /* .f64 b, */ .u32 c)", ["f32", "u32"]),
    ],
)
def test_spellings(declared, expected):
    assert types(f".visible .entry k{declared}\n.maxntid 1, 1, 1\n{{ ret; }}") == {"k": expected}


def test_an_array_of_floats_is_bytes():
    (found,) = parameters_of(HEAD + b".entry k(.param .f32 x[2])")["k"]
    assert found == ("f32[2]", "b", 8)


@pytest.mark.parametrize(
    "declared",
    ["(.param .u128 x)", "(.reg .u32 x)", "(.param)", "(.param .f32 x[])", "(.param .f32 x[2][2])",
     "(.param .align 8)"],
)  # fmt: skip
def test_what_is_not_understood_says_nothing(declared):
    assert types(f".entry k{declared} {{ ret; }} .entry other(.param .f32 x)") == {"other": ["f32"]}


def test_only_code_counts():
    text = """
    // .visible .entry a(.param .u32 n)
    /* .entry b(.param .u32 n) */
    .file 1 "/*of .entry c(.param .u32 n)//"
    .func helper(.param .f64 x) { ret; }
    .entry _Z1dPf$1(.param .u64 n) { ret; }
    """
    assert types(text) == {"_Z1dPf$1": ["u64"]}


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (HEAD, True),
        (b"// made by hand\n" + HEAD + b"\0", True),
        (b"\x7fELF\x02\x01" + HEAD, False),
        (b"\x50\xed\x55\xba\x01\x00\x10\x00" + HEAD, False),
        (b"", False),
    ],
)
def test_binaries_are_not_read(image, expected):
    assert is_ptx(image) is expected
