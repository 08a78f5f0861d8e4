/// The calling thread's device of OpenMP. The library asks nobody else for it.
#ifndef HAMR_CPP_OPENMP_HPP
#define HAMR_CPP_OPENMP_HPP

#include <cstdint>
#include <string>

#include <dlfcn.h>

#include "allocator.hpp"

namespace hamr {
inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

/// omp_get_default_device and omp_set_default_device if the program has them, so that its target regions run on
/// that device, too; else a number of the thread. They are looked up at run time, since files that are compiled
/// without OpenMP use this header, too.
class openmp_device {
public:
    /// -1 if the number is no device of the library, such as the host.
    static int get() {
        static const auto found = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_default_device"));
        const int device = found ? found() : own();
        return device < count() ? device : HAMR_CURRENT_DEVICE;
    }

    /// Returns the device before.
    static int set(int device, const char *doing) {
        static const auto found = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_default_device"));
        if (device < 0 || device >= count())
            fail(HAMR_ERROR_VALUE, doing,
                 "device is " + std::to_string(device) + ": accepted are those below " + std::to_string(count()));
        const int before = get();
        if (found) found(device);
        own() = device;
        return before;
    }

    /// Where new memory of an allocator is, and where code in a space runs.
    static int of(buffer_allocator allocator) {
        return allocator == buffer_allocator::openmp ? get() : HAMR_CURRENT_DEVICE;
    }
    static int of(space where) { return where == space::openmp ? get() : HAMR_CURRENT_DEVICE; }

private:
    static int count() {
        std::int32_t devices = 0;
        return hamr_device_count("openmp", &devices) == HAMR_OK ? devices : 0;
    }

    static int &own() {
        static thread_local int device = 0;
        return device;
    }
};

} // namespace detail
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
