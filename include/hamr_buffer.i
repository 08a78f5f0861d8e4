// What SWIG reads of hamr::buffer: functions that take and return one have a hamr.Buffer in Python, of the same
// memory. Arguments are whatever hamr.buffer() accepts, of the same element type; NULL pointers are None.
%include "hamr_buffer_allocator.i"
%include "hamr_buffer_transfer.i"
%include "hamr_stream.i"
%include "hamr_buffer_handle.i"

namespace hamr {
template <typename T>
class buffer;
}

// What the typemaps call; a module that imports this file needs it, too.
%fragment("hamr_buffer", "header") %{
#include <memory>
#include <utility>
#include "hamr_buffer.h"
#include "hamr/cpp/python.hpp"

namespace {

/// A buffer of the argument's memory. NULL, with an exception.
template <typename T>
std::shared_ptr<hamr::buffer<T>> hamr_argument(PyObject *object, bool is_written) {
    try {
        auto made = std::make_shared<hamr::buffer<T>>(hamr::from_python<T>(object));
        if (!is_written || !(hamr_info_of(made->native())->flags & HAMR_INFO_READ_ONLY)) return made;
        PyErr_SetString(PyExc_ValueError, "the buffer is read-only: accepted is one that may be written to");
    } catch (const hamr::python_error &) { // which is Python's exception
    }
    return nullptr;
}

template <typename T>
int hamr_is_argument(PyObject *object) {
    hamr::detail::argument<T> tried;
    return tried.load(object, false);
}

} // namespace
%}

// The typemaps of one element type. Use it for others than those below, such as std::complex<float>.
%define %hamr_buffer(T...)
%typemap(in, fragment="hamr_buffer") hamr::buffer< T > (std::shared_ptr<hamr::buffer< T > > given) {
    if (!(given = hamr_argument< T >($input, false))) SWIG_fail;
    $1 = std::move(*given);
}
%typemap(in, fragment="hamr_buffer") const hamr::buffer< T > & (std::shared_ptr<hamr::buffer< T > > given) {
    if (!(given = hamr_argument< T >($input, false))) SWIG_fail;
    $1 = given.get();
}
%typemap(in, fragment="hamr_buffer") hamr::buffer< T > & (std::shared_ptr<hamr::buffer< T > > given) {
    if (!(given = hamr_argument< T >($input, true))) SWIG_fail;
    $1 = given.get();
}
%typemap(in, fragment="hamr_buffer") const hamr::buffer< T > * (std::shared_ptr<hamr::buffer< T > > given) {
    if ($input != Py_None && !(given = hamr_argument< T >($input, false))) SWIG_fail;
    $1 = given.get();
}
%typemap(in, fragment="hamr_buffer") hamr::buffer< T > * (std::shared_ptr<hamr::buffer< T > > given) {
    if ($input != Py_None && !(given = hamr_argument< T >($input, true))) SWIG_fail;
    $1 = given.get();
}
%typemap(in, fragment="hamr_buffer") std::shared_ptr<hamr::buffer< T > > {
    if ($input != Py_None && !($1 = hamr_argument< T >($input, true))) SWIG_fail;
}
%typemap(in, fragment="hamr_buffer") const std::shared_ptr<hamr::buffer< T > > & (std::shared_ptr<hamr::buffer< T > > given) {
    if ($input != Py_None && !(given = hamr_argument< T >($input, true))) SWIG_fail;
    $1 = &given;
}
%typemap(in, fragment="hamr_buffer") std::shared_ptr<const hamr::buffer< T > > {
    if ($input != Py_None && !($1 = hamr_argument< T >($input, false))) SWIG_fail;
}
%typemap(in, fragment="hamr_buffer") const std::shared_ptr<const hamr::buffer< T > > & (std::shared_ptr<const hamr::buffer< T > > given) {
    if ($input != Py_None && !(given = hamr_argument< T >($input, false))) SWIG_fail;
    $1 = &given;
}
%typemap(typecheck, fragment="hamr_buffer", precedence=SWIG_TYPECHECK_POINTER) hamr::buffer< T >, const hamr::buffer< T > &, hamr::buffer< T > & {
    $1 = hamr_is_argument< T >($input);
}
%typemap(typecheck, fragment="hamr_buffer", precedence=SWIG_TYPECHECK_POINTER) hamr::buffer< T > *, const hamr::buffer< T > *, std::shared_ptr<hamr::buffer< T > >,
    const std::shared_ptr<hamr::buffer< T > > &, std::shared_ptr<const hamr::buffer< T > >, const std::shared_ptr<const hamr::buffer< T > > & {
    $1 = $input == Py_None || hamr_is_argument< T >($input);
}
%typemap(out, fragment="hamr_buffer") hamr::buffer< T > {
    if (!($result = hamr::to_python(*&$1))) SWIG_fail;
}
%typemap(out, fragment="hamr_buffer") hamr::buffer< T > & {
    if (!($result = hamr::to_python(*$1))) SWIG_fail;
}
%typemap(out, fragment="hamr_buffer") const hamr::buffer< T > & { // $1 is no pointer to const
    if (!($result = hamr::to_python(std::as_const(*$1)))) SWIG_fail;
}
%typemap(out, fragment="hamr_buffer") hamr::buffer< T > * {
    std::unique_ptr<hamr::buffer< T > > made($owner ? $1 : nullptr);
    if (!($result = $1 ? hamr::to_python(*$1) : SWIG_Py_Void())) SWIG_fail;
}
%typemap(out, fragment="hamr_buffer") const hamr::buffer< T > * {
    std::unique_ptr<const hamr::buffer< T > > made($owner ? $1 : nullptr);
    if (!($result = $1 ? hamr::to_python(std::as_const(*$1)) : SWIG_Py_Void())) SWIG_fail;
}
%typemap(out, fragment="hamr_buffer") std::shared_ptr<hamr::buffer< T > >, std::shared_ptr<const hamr::buffer< T > > {
    if (!($result = $1 ? hamr::to_python(*$1) : SWIG_Py_Void())) SWIG_fail;
}
%typemap(out, fragment="hamr_buffer") const std::shared_ptr<hamr::buffer< T > > &, const std::shared_ptr<const hamr::buffer< T > > & {
    if (!($result = *$1 ? hamr::to_python(**$1) : SWIG_Py_Void())) SWIG_fail;
}
%apply std::shared_ptr<hamr::buffer< T > > { hamr::p_buffer< T > };
%apply const std::shared_ptr<hamr::buffer< T > > & { const hamr::p_buffer< T > & };
%apply std::shared_ptr<const hamr::buffer< T > > { hamr::const_p_buffer< T > };
%apply const std::shared_ptr<const hamr::buffer< T > > & { const hamr::const_p_buffer< T > & };
%enddef

%hamr_buffer(float)
%hamr_buffer(double)
%hamr_buffer(char)
%hamr_buffer(signed char)
%hamr_buffer(short)
%hamr_buffer(int)
%hamr_buffer(long)
%hamr_buffer(long long)
%hamr_buffer(unsigned char)
%hamr_buffer(unsigned short)
%hamr_buffer(unsigned int)
%hamr_buffer(unsigned long)
%hamr_buffer(unsigned long long)

// The names under which LBL's HAMR has these classes.
%pythoncode %{
from hamr import (
    buffer, buffer_char, buffer_double, buffer_float, buffer_int, buffer_long, buffer_long_long, buffer_short, buffer_signed_char,
    buffer_unsigned_char, buffer_unsigned_int, buffer_unsigned_long, buffer_unsigned_long_long, buffer_unsigned_short,
)
%}
