#include <hamr/pybind11.h>
#include <pybind11/stl.h>

#include "exchanged.hpp"

PYBIND11_MODULE(bound_pybind11, module) {
    namespace py = pybind11;
    using namespace exchanged;
    module.def("address", address);
    module.def("total", total);
    module.def("total_of_either", total);
    module.def("total_of_either", total_of_doubles);
    module.def("scale", scale);
    module.def("scale_alone", scale, py::call_guard<py::gil_scoped_release>());
    module.def("pass_on", pass);
    module.def("make", make);
    module.def("adopt", adopt);
    module.def("hold", hold);
    module.def("totals_in_threads", totals_in_threads, py::call_guard<py::gil_scoped_release>());
    module.def("drop", drop, py::call_guard<py::gil_scoped_release>());
    module.def("grow", grow);
    module.def("deleted", [] { return __atomic_load_n(&deleted, __ATOMIC_SEQ_CST); });
    module.def("total_of_all", [](const std::vector<hamr::buffer<float>> &fields) {
        double sum = 0;
        for (const auto &field : fields) sum += total(field);
        return sum;
    });
}
