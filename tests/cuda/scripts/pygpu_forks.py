"""A module of kernels, and one of its functions, in a forked child."""

import os
import sys
from pathlib import Path

import hamr
from hamr import pygpu

PTX = Path(__file__).parents[1] / "user_kernels.ptx"

module = pygpu.Module(PTX)
function, unused = module.function("fill"), module.function("nothing")
b = hamr.Buffer(4, "f4", "cuda", fill=0)
function(b, 4, 1.0, grid=1, block=4)

child = os.fork()
if not child:
    refused = 0
    calls = (
        lambda: function(4711, 4, 1.0, grid=1, block=4),
        lambda: function(b, 4, 1.0, grid=1, block=4),
        lambda: unused(grid=1, block=1),
        lambda: unused.attributes(),
        lambda: pygpu.Module(PTX),
    )
    for call in calls:
        try:
            call()
        except hamr.ForkError:
            refused += 1
    del module, function, unused, call, calls
    os._exit(0 if refused == 5 else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
function(b, 4, 2.0, grid=1, block=4)
assert memoryview(b.get_host_accessible()).tolist() == [2.0] * 4
print("done")
sys.exit()
