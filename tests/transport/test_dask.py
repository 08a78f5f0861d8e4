"""Buffers in Dask: a cluster of processes, sizes, what tasks are called by, arrays."""

import importlib.util
import sys

import pytest

from tests.support import processes
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("distributed", "dask")),
        reason="no distributed",
    ),
]

# Memory that other programs of this machine take is no reason to stop a worker.
SETTINGS = {"DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False"}


def test_cluster(tmp_path):
    """scripts/dask_cluster.py says what each of its functions shows."""
    output = processes.run_script("dask_cluster", tmp_path, timeout=300, env=SETTINGS)
    assert output.endswith("OK\n")


def run_example(name):
    example = ROOT / "examples" / name
    status, output = processes.launch([sys.executable, str(example)], 300, SETTINGS)
    assert status == 0, output[-8000:]
    return output


def test_the_example():
    output = run_example("dask_cluster.py")
    assert "a result: {10, 10, 10" in output
    assert "as a Dask array: [12. 15. 18. 21.]\n" in output


def test_a_pipelines_modules_are_tasks():
    output = run_example("event_pipeline_dask.py")
    peaks = "[1000. 1100. 1200. 1300. 1400.]"
    assert f"a task for each module: {peaks}\n" in output
    assert f"a pipeline in each task: {peaks} [" in output


def test_sizes_are_those_of_the_elements():
    """Dask finds out by its entry point: nobody has imported hamr."""
    processes.run_code("""
from dask.sizeof import sizeof
import hamr, numpy as np
b = hamr.Buffer((1000, 3), "f4")
assert sizeof(b) == sizeof(b.get_host_accessible()) == 12000
assert sizeof(hamr.buffer(np.ones(1000))) == 8000
assert sizeof(hamr.buffer(np.broadcast_to(np.ones(5), (1000, 5)))) == 40
assert sizeof(hamr.Buffer((5, 0))) == 0
assert sizeof([b, b]) >= 24000
b.close()
assert sizeof(b) == 0
""")


def test_import_of_hamr_leaves_dask_alone():
    processes.run_code("""
import sys
import hamr, pickle
pickle.loads(pickle.dumps(hamr.Buffer(3), 5))
assert not {"dask", "distributed", "mpi4py", "hamr.dask"} & set(sys.modules)
""")


def test_host_memory_is_pickled_even_where_cuda_is_offered():
    processes.run_code("""
from distributed.protocol import deserialize, serialize
import hamr, hamr.dask
hamr.dask.register_cuda()
b = hamr.Buffer(3, "bfloat16", fill=2)
header, frames = serialize(b, serializers=("cuda", "dask", "pickle"))
assert header["serializer"] == "pickle"
assert str(deserialize(header, frames)) == "{2, 2, 2}"
""")


def test_a_worker_that_preloads(tmp_path):
    output = processes.run_code(
        f"""
from distributed import Client, LocalCluster
import hamr
def registered():
    from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
    from hamr import Buffer
    return Buffer in cuda_serialize._lookup, Buffer in cuda_deserialize._lookup
assert registered() == (False, False)
with (
    LocalCluster(
        n_workers=1, processes=True, threads_per_worker=1, dashboard_address=None,
        host="127.0.0.1", memory_limit=0, local_directory={str(tmp_path)!r},
    ) as cluster,
    Client(cluster, timeout="60s") as client,
):
    client.wait_for_workers(1, "60s")
    assert client.submit(registered).result("60s") == (True, True)
assert registered() == (False, False)
print("OK")
""",
        timeout=200,
        env={**SETTINGS, "DASK_DISTRIBUTED__WORKER__PRELOAD": "['hamr.dask']"},
    )
    assert output.endswith("OK\n")
