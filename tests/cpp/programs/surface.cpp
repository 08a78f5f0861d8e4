// Every constructor, method and function of hamr.hpp that needs no device.
#include "hamr.hpp"

#include "checks.hpp"

using A = hamr::buffer_allocator;
using M = hamr::buffer_transfer;

template <typename T>
using B = hamr::buffer<T>;

static_assert(std::is_nothrow_move_constructible_v<B<float>> && std::is_nothrow_swappable_v<B<float>>);
static_assert(std::is_same_v<B<int>::allocator, A> && std::is_same_v<B<int>::transfer, M>);
static_assert(std::is_same_v<decltype(std::declval<B<int> &>().get_host_accessible()), std::shared_ptr<const int>>);
static_assert(std::is_same_v<decltype(std::declval<const B<int> &>().data()), const int *>);
static_assert(std::is_same_v<decltype(std::declval<B<int> &>().pointer()), std::shared_ptr<int> &>);

template <typename... T>
void hold_every_type() {
    (..., [] {
        B<T> b(A::malloc, 3, T(1));
        b.data()[1] = T(0);
        TRUE(sum(b) == 2 && sum(B<double>(b)) == 2 && sum(B<T>(B<float>(b))) == 2);
        TRUE(hamr_info_of(b.native())->bytes == static_cast<std::int64_t>(3 * sizeof(T)));
    }());
}

static void constructors() {
    const hamr::stream s;
    const double given[] = {1, 2, 3, 4};
    const int whole[] = {5, 6};
    hold_every_type<char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long, long long, unsigned long long, float,
                    double, bool, wchar_t, char16_t>();
    B<std::complex<float>> c(A::cpp, 2, {1, 2});
    TRUE(c.data()[1] == std::complex<float>(1, 2));

    B<double> empty, at(A::cpp), on(A::cpp, s), as(A::cpp, s, M::sync);
    TRUE(!empty.size() && empty.empty() && !empty.data() && empty.get_allocator() == A::malloc && !at.size() && at.get_allocator() == A::cpp);
    TRUE(at.get_transfer_mode() == M::async && on.get_transfer_mode() == M::async && as.get_transfer_mode() == M::sync && at.get_owner() == -1);
    TRUE(B<int>(A::malloc, 7).size() == 7 && B<int>(A::malloc, s, 8).size() == 8 && B<int>(A::malloc, s, M::sync_host, 9).size() == 9);
    TRUE(sum(B<double>(A::malloc, 7, 0)) == 0 && sum(B<float>(A::cpp, 7, 0.5)) == 3.5);
    TRUE(sum(B<double>(A::malloc, s, 3, 2.0)) == 6 && sum(B<int>(A::malloc, s, M::sync, 3, 2)) == 6);
    TRUE(values(B<double>(A::malloc, 4, given)) == list({1, 2, 3, 4}) && values(B<double>(A::malloc, s, 2, given)) == list({1, 2}));
    TRUE(values(B<float>(A::malloc, s, M::sync, 2, whole)) == list({5, 6}) && B<int>(A::malloc, 0, whole).empty());

    THROWS(hamr::error, "99", B<int>(static_cast<A>(99), 4));
    THROWS(hamr::error, "accepted", B<int>(A::none, 4));
    THROWS(hamr::error, "NULL", B<int>(A::malloc, 4, static_cast<const int *>(nullptr)));
    THROWS(std::bad_alloc, "hamr::buffer", B<double>(A::malloc, std::size_t(1) << 46, 1.0));
    THROWS(std::exception, "hamr::", B<char>(A::malloc, ~std::size_t(0)));
    THROWS(hamr::error, "63 bits", B<char>(A::malloc, ~std::size_t(0)));
}

static int ended;

static void zero_copy() {
    const hamr::stream s;
    double mine[] = {1, 2, 3};
    auto end = [](double *p) {
        delete[] p;
        ended++;
    };
    struct move_only {
        std::unique_ptr<int> count;
        void operator()(double *) { ended += *count; }
    };
    double *made = new double[3]{1, 2, 3};
    {
        B<double> b(A::cpp, 3, -1, made, end);
        TRUE(b.data() == made && sum(b) == 6 && b.get_owner() == -1);
        b.data()[0] = 7;
        TRUE(made[0] == 7);
        auto shared = b.get_host_accessible();
        TRUE(shared.get() == made);
        B<double> moved(std::move(b));
        TRUE(moved.data() == made && !ended);
        moved.free();
        TRUE(!ended && shared.get()[2] == 3);
    }
    TRUE(ended == 1);
    B<double>(A::cpp, s, 3, -1, new double[3](), end);
    B<double>(A::cpp, s, M::sync, 3, -1, new double[3](), end);
    TRUE(ended == 3);
    B<double>(A::malloc, 3, -1, mine, move_only{std::make_unique<int>(7)});
    B<float>(A::malloc, 1, -1, static_cast<float *>(malloc(4)), &::free);
    TRUE(ended == 10);

    THROWS(hamr::error, "99", B<double>(static_cast<A>(99), 3, -1, mine, [](double *) { ended++; }));
    TRUE(ended == 10);

    TRUE(usage_of(HAMR_ALLOCATOR_MALLOC).adopted == 0);
    B<double>(A::malloc, 3, -1, static_cast<double *>(calloc(3, 8)));
    B<double>(A::malloc, s, 3, -1, static_cast<double *>(calloc(3, 8)), 1);
    B<double>(A::malloc, s, M::sync, 3, -1, static_cast<double *>(calloc(3, 8)));
    TRUE(sum(B<double>(A::malloc, 3, -1, mine, 0)) == 6 && sum(B<double>(A::malloc, s, 2, -1, mine, 0)) == 3);

    std::shared_ptr<double> shared(new double[2]{4, 5}, end);
    {
        B<double> one(A::cpp, 2, -1, shared), two(A::cpp, s, 2, -1, shared), three(A::cpp, s, M::sync, 2, -1, shared);
        TRUE(one.data() == shared.get() && two.data() == shared.get() && sum(three) == 9 && shared.use_count() == 4);
        shared.reset();
        TRUE(sum(one) == 9 && ended == 10);
    }
    TRUE(ended == 11);
    B<int> nothing(A::malloc, 0, -1, static_cast<int *>(nullptr), [](int *) { ended++; });
    TRUE(nothing.empty() && nothing.append(std::vector<int>{1}.data(), 1) == 0 && sum(nothing) == 1);
}

static void copies_and_moves() {
    const hamr::stream s;
    B<double> a(A::cpp, s, M::sync, 3, 1.5);
    B<double> same(a);
    B<int> other(a), placed(A::malloc, a), streamed(A::malloc, s, a), all(A::cpp, s, M::sync_host, a), as_it_is(A::same, a);
    TRUE(same.data() != a.data() && same.get_allocator() == A::cpp && same.get_transfer_mode() == M::sync && sum(same) == 4.5);
    TRUE(sum(other) == 3 && sum(placed) == 3 && sum(streamed) == 3 && sum(all) == 3 && sum(as_it_is) == 3);
    TRUE(other.get_allocator() == A::cpp && placed.get_allocator() == A::malloc && placed.get_transfer_mode() == M::sync);
    TRUE(streamed.get_transfer_mode() == M::async && all.get_transfer_mode() == M::sync_host && as_it_is.get_allocator() == A::cpp);

    const B<double> same_memory(A::same, s, M::async, B<double>(A::cpp, 1, 1.0));
    TRUE(same_memory.get_allocator() == A::cpp && sum(same_memory) == 1);

    const double *where = a.data();
    B<double> moved(std::move(a));
    TRUE(moved.data() == where && !a.size() && !a.data() && !a.get_host_accessible() && a.get_allocator() == A::cpp && a.shape() == hamr::extents(0));
    TRUE(a.get_transfer_mode() == M::sync && a.capacity() == 0);
    TRUE(a.append(where, 2) == 0 && sum(a) == 3 && a.get_allocator() == A::cpp); // and can be used again
    B<double> kept(A::cpp, std::move(moved));
    TRUE(kept.data() == where && moved.empty() && kept.get_transfer_mode() == M::sync);
    B<double> kept_still(A::cpp, s, M::async, std::move(kept)), copied(A::malloc, s, std::move(kept_still));
    TRUE(copied.data() != where && sum(copied) == 4.5 && copied.get_allocator() == A::malloc && copied.get_transfer_mode() == M::async);

    B<float> target(A::malloc, s, M::sync_host, 1, 9.0f);
    target = copied;
    TRUE(sum(target) == 4.5 && target.get_allocator() == A::malloc && target.get_transfer_mode() == M::sync_host);
    B<double> into(A::malloc, s, M::sync_host), from(A::cpp, 2, 3.0);
    where = copied.data();
    into = std::move(copied);
    TRUE(into.data() == where && into.get_transfer_mode() == M::sync_host && !copied.data());
    into = std::move(from);
    TRUE(sum(into) == 6 && into.get_allocator() == A::malloc && from.empty());
    B<double> &itself = into;
    into = itself;
    into = std::move(itself);
    TRUE(sum(into) == 6);
    into = copied; // whose elements were moved away
    TRUE(into.empty());
    B<double> nothing(A::malloc, s, M::sync, 1, 1.0);
    into = std::move(nothing);
    TRUE(into.size() == 1 && nothing.get_transfer_mode() == M::sync);
    into = std::move(nothing);
    TRUE(into.empty() && into.get_transfer_mode() == M::sync_host && into.resize(1, 2) == 0 && sum(into) == 2);

    B<double> one(A::cpp, 1, 1.0), two(A::malloc, 2, 2.0);
    one.swap(two);
    TRUE(one.size() == 2 && one.get_allocator() == A::malloc && sum(two) == 1 && two.get_allocator() == A::cpp);
    swap(one, two);
    TRUE(one.size() == 1);
    where = two.data();
    TRUE(two.move(A::malloc) == 0 && two.data() == where && two.move(A::cpp) == 0 && sum(two) == 4 && two.get_allocator() == A::cpp);
    SAYS("99", two.move(static_cast<A>(99)));
    std::vector<B<int>> many;
    for (int i = 0; i < 9; i++) many.emplace_back(A::malloc, 2, i);
    TRUE(sum(many[8]) == 16 && sum(many[0]) == 0);
}

static void contents() {
    const double list_of[] = {1, 2, 3, 4};
    const short shorts[] = {7, 8, 9};
    B<double> b(A::malloc);
    TRUE(b.resize(2, 5) == 0 && b.reserve(100) == 0 && b.capacity() >= 100 && values(b) == list({5, 5}));
    TRUE(b.resize(4, 6.0) == 0 && values(b) == list({5, 5, 6, 6})); // within the capacity, too
    TRUE(b.resize(3) == 0 && b.size() == 3 && b.reserve(300, 1.0) == 0 && b.size() == 3);
    TRUE(b.free() == 0 && !b.size() && !b.data() && b.get_owner() == -1 && b.resize(2, 1) == 0 && sum(b) == 2);

    TRUE(b.assign(list_of, 1, 2) == 0 && values(b) == list({2, 3}) && b.assign(shorts, 3) == 0 && sum(b) == 24);
    B<long> other(A::cpp, 4, list_of);
    TRUE(b.assign(other) == 0 && sum(b) == 10 && b.get_allocator() == A::malloc && b.assign(other, 2, 2) == 0 && values(b) == list({3, 4}));
    TRUE(b.append(list_of, 3, 1) == 0 && b.append(shorts, 1) == 0 && b.append(other) == 0 && b.append(other, 1, 2) == 0);
    TRUE(values(b) == list({3, 4, 4, 7, 1, 2, 3, 4, 2, 3}));
    TRUE(b.append(b) == 0 && b.size() == 20 && sum(b) == 66 && b.assign(b, 0, 4) == 0 && values(b) == list({3, 4, 4, 7}));
    TRUE(b.set(1, shorts, 1, 2) == 0 && values(b) == list({3, 8, 9, 7}) && b.set(3, other, 0, 1) == 0 && b.set(other) == 0 && sum(b) == 10);
    int read[4] = {0, 0, 0, 0};
    TRUE(b.get(1, read, 2, 2) == 0 && read[1] == 0 && read[2] == 2 && read[3] == 3);
    TRUE(b.get(2, other, 0, 2) == 0 && values(other) == list({3, 4, 3, 4}) && b.get(other) == 0 && sum(other) == 10);

    SAYS("hamr::buffer::set: n is 2", b.set(3, shorts, 0, 2));
    SAYS("hamr::buffer::get: n is 2", b.get(3, read, 0, 2));
    SAYS("hamr::buffer::assign", b.assign(other, 3, 2));
    SAYS("the source has 4", b.append(other, ~std::size_t(0), 2));
    SAYS("hamr::buffer::set: n is 3", b.set(0, other, 2, 3));
    SAYS("63 bits", b.resize(~std::size_t(0)));
    SAYS("hamr::buffer::reserve", b.reserve(std::size_t(1) << 50));
    TRUE(values(b) == list({1, 2, 3, 4}));
    B<double> grid(A::malloc, {2, 3}, 1.5);
    TRUE(B<float>(A::cpp).append(grid, 4, 2) == 0 && b.assign(grid, 1, 4) == 0 && sum(b) == 6);
    TRUE(b.append(B<int>(A::cpp)) == 0 && b.append(grid, 6, 0) == 0 && b.assign(B<int>(A::cpp)) == 0 && b.empty() && b.append(grid) == 0 && sum(b) == 9);
    TRUE(grid.set(4, list_of, 2, 2) == 0 && sum(grid) == 13 && grid.shape() == hamr::extents(2, 3) && grid.set(b) == 0 && grid.get(b) == 0 && sum(b) == 9);
}

static void access() {
    B<int> b(A::malloc, 3, 2);
    auto shared = b.get_host_accessible();
    const int *where = b.data();
    TRUE(shared.get() == where);
    TRUE(b.resize(5000, 1) == 0 && shared.get() == where && where[2] == 2); // its memory stays
    TRUE(std::as_const(b).get_device_accessible() && b.host_accessible() && !b.cuda_accessible() && !b.hip_accessible() && !b.openmp_accessible());
    TRUE(b.device_accessible() == (hamr::get_device_allocator() == A::malloc));
    std::shared_ptr<int> &follows = b.pointer(), kept = follows;
    TRUE(follows.get() == b.data() && std::as_const(b).pointer().get() == b.data() && follows.use_count() == 2);
    TRUE(b.resize(100000, 7) == 0 && follows.get() == b.data() && kept.get()[0] == 2);
    kept.reset();
    TRUE(b.reserve(200000) == 0 && follows.get() == (where = b.data()) && b.append(b, 0, 9) == 0 && b.data() == where);
    SAYS("hamr::buffer::reserve", b.reserve(std::size_t(1) << 50));
    TRUE(follows.get() == where);
    TRUE(b.free() == 0 && !follows && usage_of(HAMR_ALLOCATOR_MALLOC).live == 1 && shared);

    B<float> grid(A::malloc, {2, 3}, 1);
    TRUE(grid.shape() == hamr::extents(2, 3) && grid.size() == 6 && grid.strides() == std::vector<std::int64_t>({12, 4}) && grid.is_contiguous());
    B<float> flat = grid.reshape(hamr::extents(-1));
    TRUE(flat.data() == grid.data() && flat.shape()[0] == 6 && grid.resize({3, 3}, 2) == 0 && sum(grid) == 12);
    hamr_buffer *column = nullptr;
    const std::int64_t n = 3, stride = 12;
    OK(hamr_view(grid.native(), &column, 4, 0, 1, &n, &stride));
    B<float> strided(column);
    strided.data()[0] = 5;
    auto packed = strided.get_host_accessible(); // upstream ignored strides
    TRUE(!strided.is_contiguous() && packed.get() != strided.data() && packed.get()[0] == 5 && packed.get()[1] == 1 && packed.get()[2] == 2);
    TRUE(strided.read().is_temporary() && strided.read()[2] == 2);
    {
        auto in_order = strided.read_write();
        in_order[0] = 4;
        in_order[1] = 9;
    }
    TRUE(strided.data()[0] == 4 && strided.data()[3] == 9 && strided.data()[6] == 2);
    strided.data()[0] = 5;
    strided.data()[3] = 1;
    OK(hamr_view(grid.native(), &column, 0, 0, 1, &n, &stride));
    THROWS(hamr::error, "float32: accepted is int32", B<int>{column});
    OK(hamr_release(column));

    {
        auto view = grid.write();
        for (float &value : view) value = 3;
        view[0] = 4;
        TRUE(view.size() == 9 && view.data() == grid.data() && !view.is_temporary() && view.extents() == hamr::extents(3, 3) && !view.stream());
        THROWS(hamr::error, "in use", grid.read());
        auto moved = std::move(view);
        TRUE(view.empty() && moved[8] == 3);
        moved.release();
        auto read = std::as_const(grid).read();
        static_assert(std::is_same_v<decltype(read[0]), const float &>);
        TRUE(read[0] == 4 && grid.read()[1] == 3);
    }
    TRUE(grid.read_write()[0]++ == 4 && sum(grid) == 29);

    b.set_transfer_synchronous();
    TRUE(b.get_transfer_mode() == M::sync);
    b.set_transfer_sycnhronous_host();
    TRUE(b.get_transfer_mode() == M::sync_host);
    b.set_transfer_sycnhronous();
    TRUE(b.get_transfer_mode() == M::sync);
    b.set_transfer_asynchronous();
    TRUE(b.get_transfer_mode() == M::async && b.set_stream(hamr::stream(), M::sync) == 0 && b.get_transfer_mode() == M::sync);
    TRUE(b.set_stream(hamr::stream()) == 0 && b.get_transfer_mode() == M::async && !b.get_stream());
    TRUE(b.synchronize() == 0 && b.print() == 0);
    const B<int> gone = std::move(b);
    TRUE(b.synchronize() == 0 && b.print() == 0);
}

static void free_functions() {
    B<float> a(A::malloc, 2, 1), b(A::cpp, 3, 2);
    const B<int> c(A::cpp, 4, 3);
    auto [sa, pa, sb, pb, sc, pc] = hamr::get_host_accessible(a, b, c);
    static_assert(std::is_same_v<decltype(pc), const int *> && std::is_same_v<decltype(sa), std::shared_ptr<const float>>);
    TRUE(sa.get() == pa && pa == a.data() && pb == b.data() && pc[3] == 3 && sc.get() == pc && sb);
    auto [alone, at] = hamr::get_device_accessible(c);
    TRUE(alone.get() == at && at);
    auto [da, dc] = hamr::data(a, c);
    static_assert(std::is_same_v<decltype(da), float *> && std::is_same_v<decltype(dc), const int *>);
    auto [db] = hamr::data(b);
    auto all = std::tuple_cat(hamr::data(a, c), hamr::data(b), hamr::pointer(b));
    static_assert(std::is_same_v<decltype(all), std::tuple<float *, const int *, float *, std::shared_ptr<float>>>);
    TRUE(da == a.data() && dc == c.data() && db == b.data() && std::get<2>(all) == db && std::get<3>(all).get() == db);
    auto [qa, qb] = hamr::pointer(a, b);
    auto [qc] = hamr::pointer(c);
    TRUE(qa.get() == a.data() && qb.get() == b.data() && qc.get() == c.data() && hamr::synchronize(a, b, c) == 0);
    auto [made, pm] = hamr::make_buffer<double>(A::malloc, 5, 2.5);
    auto [bare, pbare] = hamr::make_buffer<double>(A::cpp, 5);
    TRUE(made.data() == pm && sum(made) == 12.5 && bare.size() == 5 && bare.data() == pbare);

    hamr::p_buffer<float> p = std::make_shared<B<float>>(a);
    hamr::const_p_buffer<float> q = hamr::const_ptr(p);
    static_assert(std::is_same_v<decltype(hamr::ref_to(p)), B<float> &> && std::is_same_v<decltype(hamr::ref_to(q)), const B<float> &>);
    TRUE(&hamr::ref_to(p) == p.get() && &hamr::ref_to(q) == p.get() && sum(hamr::ref_to(hamr::const_ptr(q))) == 2);
}

static void machine() {
    TRUE(std::string(hamr::get_allocator_name(A::cuda_async)) == "cuda_async" && std::string(hamr::get_allocator_name(A::same)) == "same");
    TRUE(std::string(hamr::get_allocator_name(A::none)) == "none" && std::string(hamr::get_allocator_name(static_cast<A>(77))) == "unknown");
    for (int i = -2; i < HAMR_ALLOCATOR_COUNT; i++) { // upstream's table
        const A a = static_cast<A>(i);
        const bool cuda = i == 2 || i == 3 || i == 4, hip = i == 6 || i == 7;
        if (i > 8) break;
        TRUE(hamr::host_accessible(a) == (i == 0 || i == 1 || i == 4 || i == 5 || i == 7));
        TRUE(hamr::cuda_accessible(a) == (cuda || hip || i == 8) && hamr::hip_accessible(a) == (cuda || hip));
        TRUE(hamr::openmp_accessible(a) == (cuda || i == 8));
    }
    TRUE(hamr::host_accessible(hamr::get_host_allocator()));
    int device = 5;
    TRUE(hamr::get_host_identifier(device) == 0 && device == -1 && hamr::get_host_identifier() == -1);
    const double here = 0;
    TRUE(hamr::get_device(&here, device = 5) == 0 && device == -1);
    TRUE(hamr::get_active_device(device) == 0 && device >= -1 && hamr::get_device_identifier(device) == 0 && hamr::set_active_device(-1) == 0);
    { hamr::activate_device same(-1); }
    SAYS("4711", hamr::set_active_device(4711));
    THROWS(hamr::error, "4711", hamr::activate_device{4711});
    if (hamr::get_device_allocator() == A::malloc) {
        TRUE(device == -1 && hamr::get_active_cuda_device(device) == 0 && device == -1);
        THROWS(hamr::error, "cuda", B<int>(A::cuda, 3));
        THROWS(hamr::error, "hamr::buffer::get_cuda_accessible", B<int>(A::malloc, 3, 1).get_cuda_accessible());
        hamr::access_cuda_peer peer;
        SAYS("access_cuda_peer", peer.enable(0, 1, true));
        TRUE(peer.disable() == 0);
    }
    hamr::stream none, other(none);
    hamr::stream::native_type native = other;
    TRUE(!none && !native && !none.get_stream() && none.synchronize() == 0);
    none.swap(other);
    none.print();
    try {
        throw hamr::error(HAMR_ERROR_INDEX, "words");
    } catch (const std::runtime_error &thrown) {
        TRUE(dynamic_cast<const hamr::error &>(thrown).status() == HAMR_ERROR_INDEX);
    }
}

int main() {
    machine();
    constructors();
    zero_copy();
    copies_and_moves();
    contents();
    access();
    free_functions();
    TRUE(live_everywhere() == 0 && ended > 0);
    puts("all of C++");
    return 0;
}
