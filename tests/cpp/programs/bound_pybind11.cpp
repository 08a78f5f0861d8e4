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
    module.def("mass", mass);
    module.def("make_particles", make_particles);
    module.def("deleted", [] { return __atomic_load_n(&deleted, __ATOMIC_SEQ_CST); });
    module.def("sum_plainly", sum_plainly);
    module.def("sum_by_value", sum_by_value);
    module.def("add_plainly", add_plainly);
    module.def("throw_value", throw_value);
    module.def("throw_memory", throw_memory);
    module.def("throw_no_device", throw_no_device);
    module.def("throw_other", throw_other);
    py::class_<model>(module, "Model")
        .def(py::init<>())
        .def_readwrite("field", &model::field)
        .def_readonly("fixed", &model::field)
        .def("constant", &model::constant)
        .def("changing", &model::changing);
    module.def("sum_of_pointer", [](const hamr::buffer<double> *field) { return field ? sum_plainly(*field) : -1; });
    module.def("add_to_pointer", [](hamr::buffer<double> *field) { add_plainly(*field, 1); });
    module.def("sum_of_shared", [](const std::shared_ptr<const hamr::buffer<double>> &field) { return field ? sum_plainly(*field) : -1; });
    module.def("add_to_shared", [](hamr::p_buffer<double> field) {
        add_plainly(*field, 1);
        return field;
    });
    module.def("make_pointer", [](bool none) { return none ? nullptr : new hamr::buffer<double>(hamr::buffer_allocator::malloc, 2, 3); });
    module.def("total_of_all", [](const std::vector<hamr::buffer<float>> &fields) {
        double sum = 0;
        for (const auto &field : fields) sum += total(field);
        return sum;
    });
}
