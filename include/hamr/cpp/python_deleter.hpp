/// What keeps a Python object while a buffer shares its memory. Not of hamr.hpp, since it includes <Python.h>.
///
///     hamr::buffer<float> shared(alloc, size, owner, data, hamr::python_deleter<float>(data, size, object));
#ifndef HAMR_CPP_PYTHON_DELETER_HPP
#define HAMR_CPP_PYTHON_DELETER_HPP

#include "python.hpp"

#include <cstddef>
#include <memory>

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// Owns a reference to the object until it is called, or its last copy ends. Make it with the GIL. It may be
/// called on any thread, with or without the GIL, also after the interpreter's end.
template <typename T>
class python_deleter {
public:
    python_deleter(T *, std::size_t, PyObject *object) {
        Py_INCREF(object);
        m_object = std::shared_ptr<PyObject>(object, release);
    }

    void operator()(T *) noexcept { m_object.reset(); }

private:
    static void release(PyObject *object) {
        if (!Py_IsInitialized()) return;
        const detail::gil held;
        Py_DECREF(object);
    }

    std::shared_ptr<PyObject> m_object;
};

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
