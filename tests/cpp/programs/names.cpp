// Streams and their references, allocators by name, copies by addresses, devices of each runtime: names DRIVER, or without a device.
#include "hamr_buffer.h"

#include "checks.hpp"

using A = hamr::buffer_allocator;
using M = hamr::buffer_transfer;

template <typename T>
using B = hamr::buffer<T>;

static bool devices = false;

static_assert(std::is_same_v<decltype(std::declval<B<int> &>().get_stream()), hamr::stream &>);
static_assert(std::is_same_v<decltype(std::declval<const B<int> &>().get_stream()), const hamr::stream &>);
static_assert(std::is_same_v<decltype(std::declval<const B<int> &>().pointer()), const std::shared_ptr<int> &>);
static_assert(std::is_same_v<decltype(std::declval<const hamr::stream &>().get_stream()), std::size_t>);

struct wraps { // as another library's stream
    CUstream_st *handle;
    operator CUstream_st *() const { return handle; }
};

static int takes(CUstream_st *stream) { return stream != nullptr; }
static int takes_hip(ihipStream_t *stream) { return stream != nullptr; }

static void conversions(CUstream_st *native) {
    const hamr::stream none, of(native);
    hamr::stream zero(0), null = nullptr, wrapped(wraps{native}), assigned;
    assigned = native;
    std::size_t number = of;
    unsigned long long long_number = none.get_stream();
    int truth = of;
    bool is = of, is_not = none;
    TRUE(number == reinterpret_cast<std::size_t>(native) && number == of.get_stream() && !long_number && truth == 1 && is && !is_not);
    TRUE(assigned == of && wrapped == of && zero == null && zero == none && of != none && of == native && native == of && of != nullptr && none == nullptr);
    TRUE(of == of.get_stream() && none == 0 && of.get_cuda_stream() == native && takes(of) && !takes(none) && takes_hip(of));
    ihipStream_t *hip = of;
    const hamr::stream of_hip = hip;
    TRUE(of_hip.get_hip_stream() == hip && of_hip.native() == native && std::string(of_hip.backend()) == "hip");
    if (of) truth = 2;
    TRUE(truth == 2 && !none);
    of.print();
    std::cerr << of << std::endl;
}

// A class that returns the references on, as user classes do.
struct has_buffer {
    B<double> values;
    hamr::stream &get_stream() { return values.get_stream(); }
    const hamr::stream &get_stream() const { return values.get_stream(); }
    const std::shared_ptr<double> &pointer() const { return values.pointer(); }
};

static void references() {
    const hamr::stream s = devices ? hamr::stream::create(0) : hamr::stream();
    has_buffer has{B<double>(devices ? A::cuda : A::malloc, 3, 1.5)};
    const has_buffer &same = has;
    hamr::stream &held = has.get_stream();
    TRUE(!held && &held == &has.get_stream() && !same.get_stream() && same.pointer() == same.pointer() && same.pointer().get() == has.values.data());
    held = s;
    TRUE(has.get_stream() == s && hamr_info_of(has.values.native())->stream == s.native()); // which told the library
    TRUE(has.values.append(has.values) == 0 && sum(has.values) == 9 && has.values.get_transfer_mode() == M::async);
    const B<double> copy(has.values), moved(std::move(has.values));
    TRUE(copy.get_stream() == s && moved.get_stream() == s && has.get_stream() == s && sum(copy) == 9 && sum(moved) == 9);
    has.get_stream() = s; // of a buffer without elements
    TRUE(has.values.resize(2, 1) == 0 && hamr_info_of(has.values.native())->stream == s.native() && sum(has.values) == 2);
    has.values = copy;
    has.get_stream() = hamr::stream();
    TRUE(sum(has.values) == 9 && hamr_info_of(has.values.native())->stream == nullptr && has.values.set_stream(s, M::sync) == 0 && has.get_stream() == s);
    B<double> other(has.values.get_allocator(), 1, 2.0);
    other.get_stream() = s;
    swap(other, has.values);
    TRUE(other.get_stream() == s && has.get_stream() == s && sum(has.values) == 2);
    std::swap(other.get_stream(), has.values.get_stream());
    if (!devices) return;
    {
        other.get_stream() = hamr::stream::create(0); // which the buffer keeps
        TRUE(other.get_stream() && other.resize(20, 3) == 0 && sum(other) == 9 + 14 * 3);
        has.values.set_stream(other.get_stream());
        other.get_stream() = s;
        TRUE(sum(other) == 51 && !has.get_stream()); // its stream has ended
    }
}

template <template <typename, typename> class Named>
static void host_allocator() {
    using floats = Named<float, void>;
    using texts = Named<std::string, void>;
    const short given[] = {1, 2, 3};
    std::shared_ptr<float> none = floats::allocate(5), values = floats::allocate(3, given), of = floats::allocate(2, 0);
    std::shared_ptr<std::string> text = texts::allocate(2, "word");
    TRUE(none && values.get()[2] == 3 && of.get()[1] == 0 && text.get()[1] == "word" && texts::allocate(2).get()->empty());
    TRUE(!floats::allocate(std::size_t(1) << 50));
}

template <typename N, typename... On>
static void device_allocator(On... on) {
    const short given[] = {1, 2, 3};
    std::vector<float> read(3);
    std::shared_ptr<float> made = N::allocate(on..., std::size_t(3), given), copied = N::allocate(on..., std::size_t(3), made.get(), true);
    std::shared_ptr<float> of = N::allocate(on..., std::size_t(3), 2.5f), none = N::allocate(on..., std::size_t(3));
    int device = -1;
    TRUE(made && copied && copied != made && of && none && hamr::get_cuda_device(copied.get(), device) == 0 && device == 0);
    TRUE(hamr::copy_to_host_from_cuda(read.data(), copied.get(), 3) == 0 && read == std::vector<float>({1, 2, 3}));
    TRUE(hamr::copy_to_host_from_cuda(on..., read.data(), of.get(), 3) == 0 && read[2] == 2.5f);
    TRUE(hamr::copy_to_cuda_from_host(on..., none.get(), given, 3) == 0 && hamr::copy_to_cuda_from_cuda(on..., of.get(), none.get(), 2) == 0);
    TRUE(hamr::copy_to_cuda_from_cuda(on..., of.get() + 1, none.get(), 0, 1) == 0 && hamr::cuda_print(on..., of.get(), 3) == 0);
    TRUE(hamr::copy_to_host_from_cuda(on..., read.data(), of.get(), 3) == 0 && read == std::vector<float>({1, 1, 2.5f}));
    TRUE(hamr::cuda_malloc_allocator<std::string>::allocate(2) == nullptr);
}

static void allocators() {
    host_allocator<hamr::malloc_allocator>();
    host_allocator<hamr::new_allocator>();
    const int given[] = {1, 2, 3};
    long double read[3];
    std::string words[2] = {"a", "b"}, copied[2];
    TRUE(hamr::copy_to_host_from_host(read, given, 3) == 0 && read[2] == 3 && hamr::copy_to_host_from_host(copied, words, 2) == 0 && copied[1] == "b");
    TRUE(hamr::copy_to_cuda_from_host(words, copied, 2) == -1 && hamr::copy_to_hip_from_host(read, given, 3) == -1);
    hamr::assert_valid_allocator(A::cuda_async);
    THROWS(hamr::error, "-1: accepted", hamr::assert_valid_allocator(A::none));
    TRUE(hamr::get_verbose() == 0);
    B<int> b(A::malloc, 2);
    TRUE(b.set_owner() == 0 && b.set_owner(b.data()) == 0);
    if (devices) {
        host_allocator<hamr::cuda_malloc_host_allocator>();
        device_allocator<hamr::cuda_malloc_allocator<float>>();
        device_allocator<hamr::cuda_malloc_uva_allocator<float>>();
        device_allocator<hamr::cuda_malloc_async_allocator<float>>(hamr::stream::create(0));
    } else {
        TRUE(!hamr::cuda_malloc_allocator<float>::allocate(3, given) && !hamr::cuda_malloc_async_allocator<float>::allocate(nullptr, 3, given));
        TRUE(!hamr::hip_malloc_uva_allocator<float>::allocate(3, 0) && !hamr::openmp_allocator<float>::allocate(3, given, true));
        TRUE(hamr::copy_to_openmp_from_host(read, given, 3) == -1 && hamr::openmp_print(given, 3) == -1 && hamr::hip_print(given, 3) == -1);
    }
}

template <typename Activates>
static void no_runtime(int (*get)(int &), int (*set)(int), int (*identifier)(int &), int (*of)(const void *, int &)) {
    int device = 5;
    TRUE(get(device) == 0 && device == -1 && identifier(device) == 0 && device == -1 && set(-1) == 0 && of(&device, device) == 0 && device == -1);
    SAYS("there is no runtime with device 0", set(0));
    THROWS(hamr::error, "there is no runtime with device 0", Activates(0));
    Activates none(-1);
}

int main(int count, char **) {
    devices = count > 1;
    TRUE(hamr::set_active_device(devices ? 0 : -1) == 0); // which loads the driver
    {
        int host = 0;
        const hamr::stream made = devices ? hamr::stream::create(0) : hamr::stream();
        conversions(devices ? made.get_cuda_stream() : reinterpret_cast<CUstream_st *>(&host));
    }
    references();
    allocators();
    if (!devices) {
        no_runtime<hamr::activate_hip_device>(hamr::get_active_hip_device, hamr::set_active_hip_device, hamr::get_hip_device_identifier, hamr::get_hip_device);
        no_runtime<hamr::activate_openmp_device>(hamr::get_active_openmp_device, hamr::set_active_openmp_device, hamr::get_openmp_device_identifier,
                                                 hamr::get_openmp_device);
    }
    TRUE(live_everywhere() == 0);
    puts("all names");
    return 0;
}
