// Memory of HIP's and of OpenMP's by name, and copies by addresses: runtimes hip, or runtimes openmp.
#include <hamr_buffer.h>

#include "checks.hpp"

using A = hamr::buffer_allocator;

struct particle {
    float x, y, z;
};

#define USE(runtime, Named, where)                                                                                                             \
    static void use_##runtime(int devices) {                                                                                                   \
        const short given[] = {1, 2, 3};                                                                                                       \
        int active = -1, found = -1;                                                                                                           \
        TRUE(hamr::get_active_##runtime##_device(active) == 0 && active == 0 && hamr::get_##runtime##_device_identifier(found) == 0 && !found); \
        for (int device = 0; device < devices; device++) {                                                                                     \
            const hamr::activate_##runtime##_device there(device);                                                                             \
            TRUE(hamr::get_active_##runtime##_device(active) == 0 && active == device);                                                        \
            std::vector<double> read(3);                                                                                                       \
            std::shared_ptr<float> made = Named<float>::allocate(3, given), copied = Named<float>::allocate(3, made.get(), true);              \
            std::shared_ptr<float> of = Named<float>::allocate(3, 2.5f), none = Named<float>::allocate(3);                                     \
            TRUE(made && copied && of && none && made != copied && !Named<std::string>::allocate(3));                                          \
            TRUE(hamr::copy_to_host_from_##runtime(read.data(), copied.get(), 3) == 0 && read == list({1, 2, 3}));                             \
            TRUE(hamr::copy_to_##runtime##_from_host(none.get(), given, 3) == 0);                                                              \
            TRUE(hamr::copy_to_##runtime##_from_##runtime(of.get() + 1, none.get(), 2) == 0);                                                  \
            TRUE(hamr::copy_to_host_from_##runtime(read.data(), of.get(), 3) == 0 && read == list({2.5, 1, 2}));                               \
            TRUE(hamr::runtime##_print(of.get(), 3) == 0);                                                                                     \
            hamr::buffer<particle> particles(where, 1000, {1, 2, 3});                                                                          \
            TRUE(particles.get_owner() == device && particles.append(particles) == 0);                                                         \
            const auto host = particles.get_host_accessible();                                                                                 \
            TRUE(particles.synchronize() == 0 && host.get()[1999].z == 3 && particles.get_##runtime##_accessible().get() == particles.data());  \
            THROWS(hamr::error, "objects are not enabled", hamr::buffer<std::string>(where, 2));                                               \
        }                                                                                                                                      \
        TRUE(hamr::get_active_##runtime##_device(active) == 0 && active == 0);                                                                 \
        SAYS("4711", hamr::set_active_##runtime##_device(4711));                                                                               \
    }

USE(hip, hamr::hip_malloc_allocator, A::hip)
USE(openmp, hamr::openmp_allocator, A::openmp)

int main(int, char **arguments) {
    std::int32_t devices = 0;
    OK(hamr_device_count(arguments[1], &devices));
    TRUE(devices > 0);
    if (std::string(arguments[1]) == "hip") use_hip(devices);
    else use_openmp(devices);
    TRUE(live_everywhere() == 0);
    puts("all of the runtime");
    return 0;
}
