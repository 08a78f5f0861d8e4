/// Python's lock in a scope, for code that may run without it.
#ifndef HAMR_CPP_GIL_STATE_HPP
#define HAMR_CPP_GIL_STATE_HPP

#if !__has_include(<Python.h>)
#error "this header of hamr's includes Python.h: add the folder that `python3-config --includes` prints"
#endif

#include <Python.h>

#include "namespace.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {

/// Holds the GIL while it exists, on any thread, even if the thread holds it already.
class __attribute__((visibility("default"))) gil_state {
public:
    gil_state() noexcept : m_state(PyGILState_Ensure()) {}
    gil_state(const gil_state &) = delete;
    gil_state &operator=(const gil_state &) = delete;
    ~gil_state() { PyGILState_Release(m_state); }

private:
    PyGILState_STATE m_state;
};

} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
