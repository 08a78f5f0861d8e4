"""xarray and zarr together: what is stored of NumPy's arrays over hamr's memory."""

from importlib import util

import numpy as np
import pytest

import hamr

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.skipif(
        not all(map(util.find_spec, ("xarray", "zarr"))), reason="xarray or zarr is not installed"
    ),
    pytest.mark.filterwarnings("ignore:.*consolidated:UserWarning"),
]


@pytest.mark.parametrize("dtype", ["i4", "i8", "u8", "f4", "f8", "c8"])
def test_a_dataset_over_a_buffer_is_stored(dtype):
    import xarray as xr
    import zarr

    b = hamr.array(np.arange(6, dtype=dtype).reshape(2, 3))
    store = zarr.storage.MemoryStore()
    xr.DataArray(b, name="field", dims=("y", "x")).to_dataset().to_zarr(store)
    stored = xr.open_zarr(store)["field"].values
    np.testing.assert_array_equal(stored, np.asarray(b), strict=True)
