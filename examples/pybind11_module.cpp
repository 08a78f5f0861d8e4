// A pybind11 module whose functions take and return buffers: pybind11_module.py builds and uses it.
#include <hamr/pybind11.h>

using plate = hamr::buffer<double>;

// New memory, which Python has from then on.
plate make(std::int64_t rows, std::int64_t columns) {
    plate made(hamr::buffer_allocator::malloc, {rows, columns}, 0);
    made.data()[rows / 2 * columns + columns / 2] = 1600;
    return made;
}

// By reference: what is written here is Python's, too, wherever the plate is.
void spread(plate &heat, int steps, double rate) {
    const std::int64_t rows = heat.shape()[0], columns = heat.shape()[1];
    plate before(heat); // a copy
    for (int step = 0; step < steps; step++) {
        before = heat;
        auto from = before.read();
        auto to = heat.read_write();
        for (std::int64_t i = 1; i < rows - 1; i++)
            for (std::int64_t j = 1; j < columns - 1; j++) {
                const auto at = static_cast<std::size_t>(i * columns + j), above = at - static_cast<std::size_t>(columns),
                           below = at + static_cast<std::size_t>(columns);
                to[at] += rate * (from[above] + from[below] + from[at - 1] + from[at + 1] - 4 * from[at]);
            }
    }
}

// By const reference: read-only memory, too.
double total(const plate &heat) {
    double sum = 0;
    for (double value : heat.read()) sum += value;
    return sum;
}

PYBIND11_MODULE(pybind11_module, module) {
    module.def("make", make);
    module.def("spread", spread, pybind11::call_guard<pybind11::gil_scoped_release>());
    module.def("total", total);
}
