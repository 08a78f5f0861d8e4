// A module that SWIG wraps: functions of buffers, and a class whose handles NumPy reads.
%module fields

%rename(field_allocator) hamr::buffer_allocator;
%include "hamr_py.i"
%include <exception.i>
%include <std_string.i>
%shared_ptr(field)

%exception {
    try {
        $action
    } catch (const std::exception &problem) {
        SWIG_exception(SWIG_RuntimeError, problem.what());
    }
}

%inline %{
#include <hamr_buffer_util.h>

hamr::buffer<double> made(size_t n, double value) { return hamr::buffer<double>(hamr::buffer_allocator::malloc, n, value); }

double total(const hamr::buffer<double> &given) {
    auto [owner, values] = hamr::get_host_accessible(given);
    double sum = 0;
    for (size_t i = 0; i < given.size(); i++) sum += values[i];
    return sum;
}

void scale(hamr::buffer<double> &given, double factor) {
    for (double &value : given.read_write()) value *= factor;
}

hamr::buffer<float> passed(hamr::buffer<float> given) { return given; }
hamr::p_buffer<int> passed_on(const hamr::p_buffer<int> &given) { return given; }
hamr::const_p_buffer<int> read_only(hamr::const_p_buffer<int> given) { return given; }
const hamr::buffer<int> *pointed_to(const hamr::buffer<int> *given) { return given; }

const char *kind(const hamr::buffer<float> &) { return "float"; }
const char *kind(const hamr::buffer<double> &) { return "double"; }
const char *kind(const std::string &) { return "text"; }

hamr::stream stream_of(const hamr::buffer<double> &given) { return given.get_stream(); }

/// What another library's class has of a buffer.
class field {
public:
    field(size_t n, int value) : m_values(hamr::buffer_allocator::malloc, n, value) {}
    hamr::buffer_allocator allocator() const { return m_values.get_allocator(); }
    hamr::buffer_handle<int> read() const { return hamr::buffer_handle<int>(m_values.get_host_accessible(), m_values.size(), 1, 0, 0); }
    hamr::buffer_handle<int> elsewhere() const { return hamr::buffer_handle<int>(m_values.get_host_accessible(), m_values.size(), 0, 1, 0); }
    const hamr::buffer<int> &values() const { return m_values; }

    PyObject *write() {
        hamr::gil_state held;
        auto *handle = new hamr::buffer_handle<int>(m_values.pointer(), m_values.size(), 0, 1, 0, 0);
        return SWIG_NewPointerObj(SWIG_as_voidptr(handle), hamr::buffer_handle_tt<int>::swig_type(), SWIG_POINTER_OWN);
    }

    /// Shares the memory of any object, which lasts as long as the field.
    static std::shared_ptr<field> of(size_t address, size_t n, PyObject *owner) {
        int *values = reinterpret_cast<int *>(address);
        auto made = std::make_shared<field>(0, 0);
        made->m_values = hamr::buffer<int>(hamr::buffer_allocator::malloc, n, -1, values, hamr::python_deleter<int>(values, n, owner));
        made->m_shared = std::make_shared<hamr::buffer<int>>(hamr::buffer_allocator::malloc, n, -1, values, hamr::python_deleter<int>(values, n, owner));
        return made;
    }

    void add(int number) {
        for (int &value : m_shared->read_write()) value += number;
    }

private:
    hamr::buffer<int> m_values;
    hamr::p_buffer<int> m_shared;
};
%}
