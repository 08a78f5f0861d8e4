/// For Python modules that were written for LBL's HAMR: the GIL in a scope, Python objects as owners of memory,
/// and handles that NumPy and CuPy read. hamr.hpp does not include it, since it includes <Python.h>.
#ifndef HAMR_CPP_INTERPRETER_HPP
#define HAMR_CPP_INTERPRETER_HPP

#include "gil_state.hpp"

#include <cstddef>
#include <memory>
#include <ostream>

#include "element.hpp"
#include "error.hpp"
#include "python_deleter.hpp"

struct swig_type_info;

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// Elements that Python reads. It keeps them alive. Its interfaces are those of NumPy and of Numba: host code may
/// read the elements if host_accessible is set, CUDA kernels if cuda_accessible is set, after the work of stream.
template <typename T>
class __attribute__((visibility("default"))) buffer_handle {
public:
    buffer_handle() = default; ///< no elements, which nobody can access

    buffer_handle(const std::shared_ptr<T> &elements, std::size_t size, int read_only, int host_accessible,
                  int cuda_accessible, std::size_t stream)
        : m_data(elements),
          m_size(size),
          m_read_only(read_only),
          m_host_accessible(host_accessible),
          m_cuda_accessible(cuda_accessible),
          m_stream(stream) {}

    /// Read-only.
    buffer_handle(const std::shared_ptr<const T> &elements, std::size_t size, int host_accessible, int cuda_accessible,
                  std::size_t stream)
        : buffer_handle(std::const_pointer_cast<T>(elements), size, 1, host_accessible, cuda_accessible, stream) {}

    /// The dict of `__array_interface__`. NULL, with AttributeError, if the host cannot access the elements.
    PyObject *get_numpy_array_interface() const {
        return described_if(m_host_accessible, "the elements are not accessible on the host", false);
    }

    /// The dict of `__cuda_array_interface__`. NULL, with AttributeError, if CUDA cannot access the elements.
    PyObject *get_cuda_array_interface() const {
        return described_if(m_cuda_accessible, "the elements are not accessible in CUDA", true);
    }

    /// The dict that both are, whoever may access the elements.
    PyObject *get_array_interface() const { return described_if(1, "", true); }

    void to_stream(std::ostream &out) const {
        out << "buffer_handle of " << m_size << " elements of " << hamr_element_name(element_type<T>::value) << " at "
            << static_cast<const void *>(m_data.get()) << (m_read_only ? ", read-only" : "")
            << (m_host_accessible ? ", on the host" : "") << (m_cuda_accessible ? ", in CUDA" : "");
    }

    std::shared_ptr<T> m_data;
    std::size_t m_size = 0;
    int m_read_only = 0;
    int m_host_accessible = 0;
    int m_cuda_accessible = 0;
    std::size_t m_stream = 0;

private:
    PyObject *described_if(int accessible, const char *refusal, bool with_stream) const {
        const gil_state held;
        if (!accessible) {
            PyErr_SetString(PyExc_AttributeError, refusal);
            return nullptr;
        }
        const auto address = reinterpret_cast<std::size_t>(m_data.get());
        PyObject *made = Py_BuildValue("{s:(K),s:s,s:(KN),s:O,s:i}", "shape", static_cast<unsigned long long>(m_size),
                                       "typestr", typestr(), "data", static_cast<unsigned long long>(address),
                                       PyBool_FromLong(m_read_only), "strides", Py_None, "version", 3);
        if (!made || !with_stream) return made;
        // Zero is no stream in the interface: 1 is the default stream, 2 that of the thread.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
        const std::size_t by_default = 2;
#else
        const std::size_t by_default = 1;
#endif
        PyObject *stream = PyLong_FromSize_t(m_stream ? m_stream : by_default);
        if (!stream || PyDict_SetItemString(made, "stream", stream)) Py_CLEAR(made);
        Py_XDECREF(stream);
        return made;
    }

    static const char *typestr() {
        switch (element_type<T>::value) {
#define HAMR_TYPESTR(type, number, name, size, kind, code, bits, text, ...) \
    case number: return text;
            HAMR_ELEMENT_TYPES(HAMR_TYPESTR)
#undef HAMR_TYPESTR
        default:
            static_assert(element_type<T>::value != HAMR_INVALID, "hamr: Python reads elements that are numbers");
            return "";
        }
    }
};

template <typename T>
std::ostream &operator<<(std::ostream &out, const buffer_handle<T> &handle) {
    handle.to_stream(out);
    return out;
}

/// The type by which SWIG makes a Python object of a handle, in a module whose interface includes
/// hamr_buffer_handle.i:
///
///     SWIG_NewPointerObj(SWIG_as_voidptr(handle), hamr::buffer_handle_tt<T>::swig_type(), SWIG_POINTER_OWN)
template <typename T>
struct buffer_handle_tt {};

#ifdef SWIG_TypeQuery
#define HAMR_HANDLE_TYPE(T)                                                                                        \
    template <>                                                                                                    \
    struct __attribute__((visibility("hidden"))) buffer_handle_tt<T> {                                             \
        static swig_type_info *swig_type() { return SWIG_TypeQuery("hamr::buffer_handle< " #T " > *"); }           \
    };
HAMR_HANDLE_TYPE(float)
HAMR_HANDLE_TYPE(double)
HAMR_HANDLE_TYPE(char)
HAMR_HANDLE_TYPE(signed char)
HAMR_HANDLE_TYPE(short)
HAMR_HANDLE_TYPE(int)
HAMR_HANDLE_TYPE(long)
HAMR_HANDLE_TYPE(long long)
HAMR_HANDLE_TYPE(unsigned char)
HAMR_HANDLE_TYPE(unsigned short)
HAMR_HANDLE_TYPE(unsigned int)
HAMR_HANDLE_TYPE(unsigned long)
HAMR_HANDLE_TYPE(unsigned long long)
#undef HAMR_HANDLE_TYPE
#endif

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
