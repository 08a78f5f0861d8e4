"""hamr.f90 on a device: tests/fortran/programs/on_a_device.f90 says what it shows."""

import pytest

from tests.support import c_programs, fortran_programs


@pytest.mark.skipif(
    bool(fortran_programs.absent()), reason=fortran_programs.absent() or "there is one"
)
def test_a_program_in_fortran(tmp_path):
    module = fortran_programs.build_module(tmp_path)
    source = fortran_programs.PROGRAMS / "on_a_device.f90"
    program = fortran_programs.compile_program(source, module, tmp_path / "on_a_device")
    assert c_programs.run(program) == "on a device\n"
