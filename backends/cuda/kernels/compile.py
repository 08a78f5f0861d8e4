"""Compiles kernels.cu to kernels.ptx; needs NVRTC, but no GPU and no CUDA toolkit.

In a throw-away virtual environment:

    pip install nvidia-cuda-nvrtc-cu12==12.0.*
    python backends/cuda/kernels/compile.py

Drivers take the PTX of their own CUDA version and older, so the oldest compiler
of CUDA 12 serves most of them. --library names another libnvrtc. A test compares
the sources with the digest of them that kernels.ptx begins with.
"""

import argparse
import ctypes
import hashlib
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent
# Multiplying and adding in one step would round once where the host rounds twice.
OPTIONS = ["--gpu-architecture=compute_50", "--std=c++17", "--fmad=false", "--ftz=false"]


def find_library() -> Path:
    """The NVRTC that pip installed."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else []:
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so.*")):
            return path
    sys.exit("no libnvrtc: pip install nvidia-cuda-nvrtc-cu12==12.0.*, or name one with --library")


class Compiler:
    """NVRTC, as far as it is needed here."""

    def __init__(self, library: Path) -> None:
        self._nvrtc = ctypes.CDLL(str(library))
        self._nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._nvrtc, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: {self._nvrtc.nvrtcGetErrorString(code).decode()}")

    def version(self) -> str:
        """The compiler's own version, as in "12.0"."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def _text(self, what: str, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, text)
        return text.value.decode()

    def compile(self, source: Path, headers: list[Path], options: list[str]) -> str:
        """PTX; the compiler's remarks go to standard error."""

        def strings(values: list[bytes]) -> ctypes.Array[ctypes.c_char_p]:
            return (ctypes.c_char_p * len(values))(*values)

        program = ctypes.c_void_p()
        self._call(
            "nvrtcCreateProgram",
            ctypes.byref(program),
            source.read_bytes(),
            source.name.encode(),
            len(headers),
            strings([header.read_bytes() for header in headers]),
            strings([header.name.encode() for header in headers]),
        )
        try:
            self._call(
                "nvrtcCompileProgram",
                program,
                len(options),
                strings([option.encode() for option in options]),
            )
        finally:
            if remarks := self._text("ProgramLog", program).strip():
                print(remarks, file=sys.stderr)
        return self._text("PTX", program)


def main() -> None:
    """Writes kernels.ptx."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=Path, help="path of libnvrtc")
    parser.add_argument("--output", type=Path, default=HERE / "kernels.ptx")
    arguments = parser.parse_args()
    compiler = Compiler(arguments.library or find_library())
    source, headers = HERE / "kernels.cu", sorted(HERE.glob("*.h"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in [source, *headers]))
    made_by = f"// Made by compile.py with NVRTC {compiler.version()}: {' '.join(OPTIONS)}\n"
    sources = f"// SHA-256 of kernels.cu and the headers: {digest.hexdigest()}\n"
    arguments.output.write_text(made_by + sources + compiler.compile(source, headers, OPTIONS))


if __name__ == "__main__":
    main()
