// A client's arrays of variants in Python: numbers go by the array interfaces, texts one by one.
%module variants
%{
#include "variants.hpp"
%}

%include "hamr_py.i"
%include <exception.i>
%include <std_string.i>

%exception {
    try {
        $action
    } catch (const std::exception &problem) {
        SWIG_exception(SWIG_IndexError, problem.what());
    }
}

%shared_ptr(variant_array)
%shared_ptr(array_of<double>)
%shared_ptr(array_of<int>)
%shared_ptr(array_of<std::string>)
%shared_ptr(array_of<p_variant_array>)
%ignore operator<<;
%ignore array_of::get;

%include "variants.hpp"

%extend array_of {
    T __getitem__(size_t i) const {
        if (i >= $self->size()) throw std::out_of_range("the array has " + std::to_string($self->size()) + " elements");
        auto [owner, values] = hamr::get_host_accessible($self->buffer());
        return values[i];
    }
    void __setitem__(size_t i, const T &value) { $self->get(i) = value; }
    size_t __len__() const { return $self->size(); }
    std::string __str__() const { return text(*$self); }
}

// Handles are made by a number's type, as where a base class does not know it.
%define NUMBERS(T)
%extend array_of<T> {
    static std::shared_ptr<array_of<T>> of(const hamr::buffer<T> &values) {
        return std::make_shared<array_of<T>>(values.size(), values.get_owner(), const_cast<hamr::buffer<T> &>(values).pointer());
    }
    PyObject *data() {
        hamr::gil_state held;
        const hamr::buffer<T> &values = $self->buffer();
        auto *handle = new hamr::buffer_handle<T>(values.get_host_accessible(), values.size(), 1, values.cuda_accessible(), values.get_stream());
        return SWIG_NewPointerObj(SWIG_as_voidptr(handle), hamr::buffer_handle_tt<T>::swig_type(), SWIG_POINTER_OWN);
    }
}
%enddef
NUMBERS(double)
NUMBERS(int)

%template(double_array) array_of<double>;
%template(int_array) array_of<int>;
%template(text_array) array_of<std::string>;
%template(array_array) array_of<p_variant_array>;
