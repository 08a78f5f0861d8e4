// What must not compile, in the words of hamr.hpp.
#include "hamr.hpp"

struct particle {
    float x, y;
};

struct other : particle {};

extern hamr::buffer<particle> &of_a_struct;
auto size = of_a_struct.size();
hamr::buffer<long double> of_long_double;
hamr::buffer<int *> of_pointers;
hamr::buffer<const float> of_const;

void values_of_another_type(hamr::buffer<float> &buffer, const other *values) { buffer.assign(values, 1); }
