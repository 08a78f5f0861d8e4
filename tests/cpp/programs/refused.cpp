// What must not compile, in the words of hamr.hpp.
#include "hamr.hpp"

#include <string>

struct float3 {
    float x, y, z;
};

struct other {
    int number;
};

template <>
struct hamr::element_type<float3> : std::integral_constant<std::int32_t, HAMR_FLOAT32> {};

struct later;
using of_later = hamr::buffer<later>::value_type *;
struct later {
    int number;
};
hamr::buffer<later> of_what_was_not_complete;

hamr::buffer<const float> of_const;
hamr::buffer<float3> of_three;

void values_of_another_type(hamr::buffer<float> &buffer, const other *values) { buffer.assign(values, 1); }
void elements_of_another_type(hamr::buffer<std::string> &buffer, const hamr::buffer<other> &values) { buffer.append(values); }
hamr_buffer *objects_as_numbers(hamr::buffer<std::string> &buffer) { return buffer.native(); }
