#include <hamr/nanobind.h>
#include <nanobind/stl/vector.h>

#include "exchanged.hpp"

NB_MODULE(bound_nanobind, module) {
    namespace nb = nanobind;
    using namespace exchanged;
    hamr::translate_exceptions();
    module.def("address", address);
    module.def("total", total);
    module.def("total_of_either", total);
    module.def("total_of_either", total_of_doubles);
    module.def("scale", scale);
    module.def("scale_alone", scale, nb::call_guard<nb::gil_scoped_release>());
    module.def("pass_on", pass);
    module.def("make", make);
    module.def("adopt", adopt);
    module.def("hold", hold);
    module.def("totals_in_threads", totals_in_threads, nb::call_guard<nb::gil_scoped_release>());
    module.def("drop", drop, nb::call_guard<nb::gil_scoped_release>());
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
    nb::class_<model>(module, "Model")
        .def(nb::init<>())
        .def_rw("field", &model::field)
        .def_prop_ro("fixed", [](const model &self) { return self.field.read_only(); })
        .def("constant", &model::constant)
        .def("changing", &model::changing);
    module.def("total_of_all", [](const std::vector<hamr::buffer<float>> &fields) {
        double sum = 0;
        for (const auto &field : fields) sum += total(field);
        return sum;
    });
}
