"""What loops over a C++ buffer cost, and to make and move one: build_support/loop_table.py.

Prints nanoseconds, for an element or for a call, as the least of many rounds that take turns.
HAMR_INCLUDE names another folder of headers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hamr
from hamr._base.library import library_path

SOURCE = r"""
#include <hamr.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using B = hamr::buffer<double>;
using A = hamr::buffer_allocator;
static volatile double sink;
static const std::size_t N = 16384, CALLS = 2000;

#define LOOP(name, set_up, at)                                 \
    __attribute__((noinline)) static void name(B &b) {         \
        set_up;                                                \
        double sum = 0;                                        \
        for (std::size_t i = 0; i < b.size(); i++) sum += at;  \
        sink = sum;                                            \
    }
LOOP(by_size, const double *p = b.data(), p[i])
LOOP(by_data, , b.data()[i])
LOOP(by_index, , b[i])

__attribute__((noinline)) static void by_pointer(const double *p, std::size_t n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; i++) sum += p[i];
    sink = sum;
}
__attribute__((noinline)) static void writes_pointer(double *p, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) p[i] = 2;
}
__attribute__((noinline)) static void writes_data(B &b) {
    for (std::size_t i = 0; i < b.size(); i++) b.data()[i] = 2;
}

struct row {
    const char *name;
    void (*function)(B &b, B &ordered);
    std::size_t times;
    double least;
};

template <typename F>
static void repeat(F &&function) {
    for (std::size_t i = 0; i < CALLS; i++) function();
}
static void swap_by_moves(B &b) {
    B moved(std::move(b));
    b.swap(moved);
}
static void create() {
    const std::int64_t n = 100;
    hamr_buffer *made;
    if (!hamr_create(&made, HAMR_FLOAT64, 1, &n, nullptr, nullptr)) hamr_release(made);
}
static void access(B &b) {
    hamr_handle *handle;
    if (!hamr_access(b.native(), HAMR_HOST, -1, HAMR_PLAIN, &handle)) hamr_release_handle(handle);
}

int main() {
    int named;
    B loop(A::malloc, N, 1.0), ordered(A::malloc, hamr::stream::of(&named, "cuda"), 100);
    row rows[] = {
        {"a pointer, an element", [](B &b, B &) { by_pointer(b.data(), b.size()); }, N, 1e9},
        {"to size()", [](B &b, B &) { by_size(b); }, N, 1e9},
        {"data()[i]", [](B &b, B &) { by_data(b); }, N, 1e9},
        {"b[i]", [](B &b, B &) { by_index(b); }, N, 1e9},
        {"a pointer, written", [](B &b, B &) { writes_pointer(b.data(), b.size()); }, N, 1e9},
        {"data()[i], written", [](B &b, B &) { writes_data(b); }, N, 1e9},
        {"hamr_create and release", [](B &, B &) { repeat(create); }, CALLS, 1e9},
        {"hamr_access and release", [](B &b, B &) { repeat([&] { access(b); }); }, CALLS, 1e9},
        {"buffer<double>(malloc, 100)", [](B &, B &) { repeat([] { B(A::malloc, 100); }); }, CALLS,
         1e9},
        {"a move", [](B &b, B &) { repeat([&] { swap_by_moves(b); }); }, CALLS, 1e9},
        {"a move, with a stream", [](B &, B &o) { repeat([&] { swap_by_moves(o); }); }, CALLS,
         1e9},
    };
    for (int round = 0; round < 200; round++)
        for (row &each : rows) {
            const auto start = std::chrono::steady_clock::now();
            each.function(loop, ordered);
            const auto took = std::chrono::steady_clock::now() - start;
            const double ns = std::chrono::duration<double, std::nano>(took).count();
            each.least = std::min(each.least, ns / static_cast<double>(each.times));
        }
    for (const row &each : rows) std::printf("%-30s %8.2f ns\n", each.name, each.least);
    return 0;
}
"""


def main() -> int:
    """Print the table."""
    include = os.environ.get("HAMR_INCLUDE") or hamr.get_include()
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "loops.cpp", Path(folder) / "loops"
        source.write_text(SOURCE)
        command = [compiler, "-std=c++17", "-O2", "-pthread", f"-I{include}", str(source)]
        subprocess.run([*command, "-o", str(program), "-ldl"], check=True)
        environment = {"HAMR_LIBRARY": library_path(), **os.environ}
        return subprocess.run([program], check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
