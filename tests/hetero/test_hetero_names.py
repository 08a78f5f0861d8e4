"""Names of devices that no device can have."""

import pytest

from hamr import hetero


@pytest.mark.parametrize("among", ["cuda\0x", "cuda:0\0", "none\0cuda", ["cpu\0"]])
def test_a_zero_in_a_name_is_refused(among):
    """The core's texts end with a zero: it would read "cpu" where "cpu\\0" is said."""
    with pytest.raises(ValueError, match="null character"):
        hetero.accelerators(among)
    with pytest.raises(ValueError, match="null character"):
        hetero.DeviceChooser(among=among)
