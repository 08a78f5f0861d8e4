# %% [markdown]
# # Buffers in a Dask cluster
#
# They are tasks' arguments and results, and chunks of arrays. Host memory without gaps leaves
# and arrives without a copy.

# %%
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import hamr


# %%
def scaled(b: hamr.Buffer, factor: float) -> hamr.Buffer:
    return hamr.buffer(np.asarray(b.get_host_accessible()) * factor)


# %%
if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        ones = client.scatter(hamr.Buffer(1000, "float32", fill=1))
        tens = client.submit(scaled, ones, 10)
        print("a result:", tens.result())

        ramp = da.from_array(hamr.buffer(np.arange(12.0).reshape(3, 4)), chunks=(1, 4))
        print("as a Dask array:", ramp.sum(axis=0).compute())
