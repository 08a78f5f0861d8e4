# %% [markdown]
# # Two processes on one device's memory
#
# A parent makes a buffer, on a GPU if there is one, else in memory of the host that processes
# can share. Its child gets a handle, opens the same memory, and writes to it.

# %%
import socket
import subprocess
import sys

import hamr

on_gpu = bool(hamr.backends()["cuda"]["available"])
allocator = "cuda" if on_gpu else "shared"
b = hamr.Buffer(8, "int32", allocator, fill=1)

# %% [markdown]
# ## The child's program
#
# It is a program of its own, which knows nothing but a socket.

# %%
CHILD = """
import socket, sys
import hamr

with socket.socket(fileno=int(sys.argv[1])) as wire:
    found = hamr.open_shared(wire)
    found[4:] = 7                       # the parent's elements: nothing is sent back
    found.synchronize()
    del found
    wire.sendall(b"written")
"""

# %%
near, far = socket.socketpair()
with near, far, b.share() as handle:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(far.fileno())], pass_fds=[far.fileno()]
    )
    handle.send(near)
    print("a copy was made:", handle.copied)
    print("the child says:", near.recv(16).decode())
    child.wait()

# %%
print("the parent's buffer:", b.get().tolist())
