"""Pillow, where it is installed: its images in hamr are what they are in NumPy."""

from importlib import util

import numpy as np
import pytest

import hamr

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.skipif(util.find_spec("PIL") is None, reason="Pillow is not installed"),
]

MODES = ["1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "I", "F", "I;16"]


@pytest.mark.parametrize("mode", MODES)
def test_an_image_is_what_it_is_in_numpy(mode):
    from PIL import Image

    image = Image.new(mode, (3, 2), 1)
    expected = np.asarray(image)
    b = hamr.buffer(image)
    assert b.source_protocol == "__array_interface__"
    np.testing.assert_array_equal(np.asarray(b), expected, strict=True)


def test_16_bits_have_no_sign():
    from PIL import Image

    image = Image.fromarray(np.array([[40000, 1]], "u2"))
    assert np.asarray(hamr.buffer(image)).tolist() == [[40000, 1]]


def test_the_other_byte_order_is_refused():
    from PIL import Image

    with pytest.raises(TypeError, match="big-endian"):
        hamr.buffer(Image.new("I;16B", (3, 2)))


def test_a_buffer_is_an_image():
    from PIL import Image

    b = hamr.array(np.arange(18, dtype="u1").reshape(2, 3, 3))
    assert np.array_equal(np.asarray(Image.fromarray(np.asarray(b))), np.asarray(b))
