// What SWIG reads of hamr's streams. Of Python's hamr.Stream, or another library's, a stream is made by its handle.
%{
#include "hamr_stream.h"
%}

%namewarn("") "print"; // a method

namespace hamr {

class stream {
public:
    stream();
    stream(const stream &other);
    int synchronize() const;
    void print() const;

    %extend {
        explicit stream(size_t handle) { return new hamr::stream(hamr::stream::of(reinterpret_cast<void *>(handle), "cuda")); }
        size_t get_stream() const { return reinterpret_cast<size_t>($self->native()); }
#ifdef SWIGPYTHON
        size_t __int__() const { return reinterpret_cast<size_t>($self->native()); }
        bool __bool__() const { return $self->native() != nullptr; }
#endif
    }
};

} // namespace hamr
