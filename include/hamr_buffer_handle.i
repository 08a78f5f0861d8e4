// What SWIG reads of hamr::buffer_handle, which NumPy and CuPy take as an array: buffer_handle_float and the others.
%{
#include "hamr_buffer_handle.h"
#include <sstream>
%}

namespace hamr {

template <typename T>
class buffer_handle {
public:
    buffer_handle();
    buffer_handle(const buffer_handle<T> &other);
    PyObject *get_numpy_array_interface() const;
    PyObject *get_cuda_array_interface() const;

    %extend {
        size_t __len__() const { return $self->m_size; }

        PyObject *__str__() const {
            std::ostringstream out;
            $self->to_stream(out);
            return PyUnicode_FromString(out.str().c_str());
        }

        %pythoncode %{
        @property
        def __array_interface__(self):
            return self.get_numpy_array_interface()

        @property
        def __cuda_array_interface__(self):
            return self.get_cuda_array_interface()
        %}
    }
};

} // namespace hamr

%template(buffer_handle_float) hamr::buffer_handle<float>;
%template(buffer_handle_double) hamr::buffer_handle<double>;
%template(buffer_handle_char) hamr::buffer_handle<char>;
%template(buffer_handle_signed_char) hamr::buffer_handle<signed char>;
%template(buffer_handle_short) hamr::buffer_handle<short>;
%template(buffer_handle_int) hamr::buffer_handle<int>;
%template(buffer_handle_long) hamr::buffer_handle<long>;
%template(buffer_handle_long_long) hamr::buffer_handle<long long>;
%template(buffer_handle_unsigned_char) hamr::buffer_handle<unsigned char>;
%template(buffer_handle_unsigned_short) hamr::buffer_handle<unsigned short>;
%template(buffer_handle_unsigned_int) hamr::buffer_handle<unsigned int>;
%template(buffer_handle_unsigned_long) hamr::buffer_handle<unsigned long>;
%template(buffer_handle_unsigned_long_long) hamr::buffer_handle<unsigned long long>;
