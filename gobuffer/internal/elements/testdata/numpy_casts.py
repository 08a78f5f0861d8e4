"""Writes numpy_casts.json: what astype gives for edge values of every pair of types.

Needs NumPy and ml_dtypes on x86-64: python numpy_casts.py > numpy_casts.json
"""

import json

import ml_dtypes
import numpy as np

np.seterr(all="ignore")
NAMES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
TYPES = {name: np.dtype(name) for name in NAMES} | {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
FLOATS = [
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    -0.75,
    2.5,
    127,
    128,
    -129,
    255.9,
    256,
    300,
    -300,
    65504,
    65519.99,
    65520,
    70000,
    2.0**-14,
    2.0**-24,
    2.0**-25,
    1.5 * 2.0**-25,
    -(2.0**-26),
    1 + 2.0**-11,
    1 + 2.0**-11 + 2.0**-40,
    1 + 3 * 2.0**-11,
    1 + 2.0**-8,
    3e9,
    -3e9,
    5e9,
    1e10,
    -1e10,
    2.0**63,
    1e19,
    2.0**64,
    -1e20,
    1e-30,
    1e39,
    3.4e38,
    3.4028235677973366e38,
    1e300,
    float("inf"),
    -float("inf"),
    float("nan"),
]


def values(name):
    """Return the edge values of a type."""
    t = TYPES[name]
    if t.kind == "b":
        return np.array([False, True])
    if t.kind in "iu":
        i = np.iinfo(t)
        all_ = [
            i.min,
            i.min + 1,
            0,
            1,
            2,
            100,
            i.max - 1,
            i.max,
            i.max // 2 + 1,
            2049,
            2051,
            65520,
            16777217,
            2**53 + 1,
            -1,
            -129,
            1025 * 2**10 + 1,
            257 * 2**45 + 1,
        ]
        return np.array([v for v in all_ if i.min <= v <= i.max], t)
    if t.kind == "c":
        parts = FLOATS[::3]
        pairs = [complex(x, y) for x, y in zip(parts, reversed(parts), strict=True)] + [
            0j,
            1j,
            complex(0, float("nan")),
        ]
        return np.array(pairs, t)
    return np.array(FLOATS).astype(t)


out = []
for s in TYPES:
    v = values(s)
    for d in TYPES:
        # One at a time: loops over many use other instructions out of range.
        got = b"".join(v[i : i + 1].astype(TYPES[d]).tobytes() for i in range(len(v)))
        out.append({"from": s, "to": d, "in": v.tobytes().hex(), "out": got.hex()})
print("[\n" + ",\n".join(json.dumps(o) for o in out) + "\n]")
