# %% [markdown]
# # CuPy and PyTorch on one buffer
#
# Two libraries work on the same elements, without a copy: CuPy and PyTorch where there is a
# GPU, NumPy in CuPy's place elsewhere. What is not installed is said and left out.

# %%
import importlib.util

import hamr

on_gpu = bool(hamr.backends()["cuda"]["available"]) and importlib.util.find_spec("cupy") is not None
if on_gpu:
    import cupy as xp
else:
    import numpy as xp

space = "cuda" if on_gpu else "host"
b = hamr.zeros(6, dtype="float32", device=0 if on_gpu else -1)

# %% [markdown]
# ## The first library writes
#
# Inside the block the elements are this library's alone.

# %%
with b.on(space, "rw") as handle:
    x = xp.asarray(handle)
    x += xp.arange(6, dtype="float32")

# %% [markdown]
# ## The second one has the same memory

# %%
if importlib.util.find_spec("torch") is None:
    print("no torch: NumPy and the buffer alone")
else:
    import torch

    with b.on(space, "rw") as handle:
        t = torch.from_dlpack(handle)
        t *= 10
    print("torch has the buffer's address:", torch.from_dlpack(b).data_ptr() == b.ptr)

# %%
print("elements:", b.get().astype(int).tolist())
print(
    "the first library has the buffer's memory:", not b.get_host_accessible().is_temporary or on_gpu
)
