# %% [markdown]
# # In-situ analysis with a plot
#
# A simulation steps on, and every few steps its field is analysed where it lies: no file is
# written, and on the host nothing is copied. The picture goes to `heat.svg` where matplotlib
# is installed.

# %%
import numpy as np

import hamr

# %% [markdown]
# ## The simulation
#
# Heat spreads on a grid of 64 by 64 points. The field is a buffer: ask for `device="cuda"`,
# and the same lines run with the memory on a GPU.

# %%
field = hamr.zeros((64, 64), dtype="float64")
with field[20:30, 10:20].on_host("w") as spot:
    spot[:] = 100


def step(field: hamr.Buffer) -> None:
    with field.on_host("rw") as t:
        around = t[:-2, 1:-1] + t[2:, 1:-1] + t[1:-1, :-2] + t[1:-1, 2:]
        t[1:-1, 1:-1] += 0.2 * (around - 4 * t[1:-1, 1:-1])


# %% [markdown]
# ## The analysis
#
# It only reads, so it asks for what the host can read.

# %%
history = []
for number in range(60):
    step(field)
    if number % 20 == 19:
        values = np.asarray(field.get_host_accessible())
        history.append((number + 1, float(values.max()), float((values > 1).mean())))

for number, peak, warm in history:
    print(f"step {number}: peak {peak:.1f}, {warm:.1%} of the grid is warm")

# %%
try:
    from matplotlib.figure import Figure
except ImportError:
    print("no matplotlib: no picture")
else:
    figure = Figure(figsize=(4, 3.2), layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(field.get(), cmap="inferno", origin="lower")
    figure.colorbar(picture, ax=axes, label="temperature")
    axes.set_title(f"after {history[-1][0]} steps")
    figure.savefig("heat.svg")
    print("drawn: heat.svg")
