"""bfloat16 and float8 in processes that have not imported ml_dtypes."""

import importlib.util

import pytest

from tests.support import producers
from tests.support.producers import ADDED, FLOAT8

NAMED = ["bfloat16", *FLOAT8]
needs_ml_dtypes = pytest.mark.skipif(not ADDED, reason="no ml_dtypes here")
HIDDEN = "import sys; sys.modules['ml_dtypes'] = None\n"


@needs_ml_dtypes
@pytest.mark.parametrize("name", ADDED)
def test_ml_dtypes_is_imported_when_its_type_is_asked_for(name):
    code = (
        f"import sys, numpy as np, hamr; b = hamr.Buffer(2, {name!r}, fill=2)\n"
        "h = b.get_host_accessible(); str(b); b.astype('f4'); b[0].item()\n"
        "assert 'ml_dtypes' not in sys.modules\n"
    )
    for asked in (
        "np.asarray(b).dtype",
        "np.asarray(h).dtype",
        "b.dtype",
        "h.dtype",
        "b.get().dtype",
    ):
        assert (
            producers.run_python(code + f"print({asked}, {asked}.name)").stdout
            == f"{name} {name}\n"
        )


@pytest.mark.parametrize("name", NAMED)
def test_without_ml_dtypes_numpy_gets_no_raw_bytes(name):
    code = HIDDEN + (
        f"import numpy as np, hamr; b = hamr.Buffer(2, {name!r}, fill=2)\n"
        "print(type(b.dtype).__name__, b.dtype, b, b[0].item())\n"
        "for ask in (lambda: np.asarray(b), lambda: np.asarray(b.get_host_accessible()), b.get):\n"
        "    try: ask()\n"
        "    except TypeError as error: print(error)\n"
        "print(b.get(np.zeros(2)), np.asarray(b, dtype='f4') if 0 else b.astype('f4').get())\n"
    )
    lines = producers.run_python(code).stdout.splitlines()
    words = (
        f"NumPy has no {name}: ml_dtypes adds it (pip install ml_dtypes), or b.astype('float32')"
    )
    assert lines == [f"ElementType {name} {{2, 2}} 2.0", words, words, words, "[2. 2.] [2. 2.]"]


@needs_ml_dtypes
def test_ml_dtypes_that_does_not_import_is_as_absent():
    code = (
        "import sys\n"
        "class Broken:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'ml_dtypes': raise RuntimeError('built for another NumPy')\n"
        "sys.meta_path.insert(0, Broken())\n"
        "import numpy as np, hamr\n"
        "try: np.asarray(hamr.Buffer(2, 'bfloat16'))\n"
        "except TypeError as error: print(error)\n"
    )
    assert "NumPy has no bfloat16" in producers.run_python(code).stdout
    assert importlib.util.find_spec("ml_dtypes")
