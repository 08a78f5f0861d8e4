// What authors of C++ codes have beside HAMR's functions.
#include <hamr.hpp>

#include <list>
#include <map>
#include <numeric>
#include <stdexcept>

#include "checks.hpp"

using A = hamr::buffer_allocator;
template <typename T>
using B = hamr::buffer<T>;

static void as_a_container() {
    B<double> field(A::malloc, {2, 3}, 1.0);
    double next = 0;
    for (double &value : field) value = next++;
    const B<double> &fixed = field;
    TRUE(std::accumulate(fixed.begin(), fixed.end(), 0.0) == 15 && fixed[4] == 4 && fixed.at(5) == 5);
    field[4] = 9;
    TRUE(field.data()[4] == 9 && field.cend() - field.cbegin() == 6);
    THROWS(hamr::error, "less than 6", fixed.at(6));
    static_assert(std::is_same_v<decltype(fixed.begin()), const double *>);
    TRUE(field.fill(7) == 0 && field[0] == 7 && field[5] == 7);
    TRUE(field.assign({1, 2, 3}) == 0 && field.append({4, 5}) == 0 && field.size() == 5 && field[4] == 5);
    TRUE(field.reserve(1000) == 0 && field.capacity() >= 1000 && field.shrink_to_fit() == 0 && field.capacity() == 5 && field[3] == 4);
    TRUE(field.shrink_to_fit() == 0);
    TRUE(B<double>().begin() == B<double>().end());
}

static void slices() {
    B<int> grid(A::malloc, {3, 4});
    std::iota(grid.begin(), grid.end(), 0);
    B<int> rows = grid.slice(1, 3), odd = grid.reshape(hamr::extents(-1)).slice(1, 12, 2), back = odd.slice(5, -1, -1);
    TRUE(rows.shape() == hamr::extents(2, 4) && rows.data() == grid.data() + 4 && rows[7] == 11);
    TRUE(odd.size() == 6 && !odd.is_contiguous() && odd.read()[2] == 5 && back.read()[0] == 11 && back.read()[5] == 1);
    THROWS(hamr::error, "one after the other", odd.begin());
    THROWS(hamr::error, "one after the other", odd[0]);
    B<int> turned = grid.transposed(), row = grid.row(2), element = row.row(3);
    TRUE(turned.shape() == hamr::extents(4, 3) && turned.read()[1] == 4 && row.data() == grid.data() + 8 && element.shape().rank() == 0 && *element.data() == 11);
    row.fill(5);
    TRUE(grid[8] == 5 && grid[7] == 7);
    TRUE(grid.slice(2, 1).empty() && grid.slice(3, 3).empty());
    THROWS(hamr::error, "accepted are", grid.slice(4, 4));
    THROWS(hamr::error, "accepted are", grid.slice(0, 4));
    THROWS(hamr::error, "accepted are", grid.slice(0, 1, 0));
    THROWS(hamr::error, "accepted are", grid.row(3));
    THROWS(hamr::error, "accepted are", grid.row(-1));
    THROWS(hamr::error, "no dimensions", element.row(0));
}

static void const_is_read_only() {
    const B<int> grid(A::malloc, {3, 4}, 1);
    std::vector<B<int>> made;
    made.push_back(grid.reshape(hamr::extents(-1)));
    made.push_back(grid.slice(0, 2));
    made.push_back(grid.row(0));
    made.push_back(grid.transposed());
    made.push_back(grid.read_only());
    for (B<int> &each : made) {
        TRUE(each.is_read_only() && each.data() == grid.data());
        THROWS(hamr::error, "read-only", each.write());
        hamr::throw_errors here;
        THROWS(hamr::error, "read-only", each.fill(2));
    }
    TRUE(!grid.is_read_only() && !B<int>(made[0]).is_read_only() && grid[0] == 1);
}

static void sharers_keep_their_elements() {
    B<int> field = hamr::buffer_of<int>(A::malloc, {0, 1, 2, 3, 4});
    const std::shared_ptr<int> pointer = field.pointer();
    B<int> other = field.reshape(hamr::extents(5));
    TRUE(field.resize(2) == 0 && field.append({8, 9}) == 0 && field[2] == 8);
    TRUE(other[2] == 2 && pointer.get()[2] == 2 && field.data() != pointer.get());
    field = hamr::buffer_of<int>(A::cpp, {7});
    TRUE(other[0] == 0 && field.get_allocator() == A::malloc);
    const int *alone = other.data();
    B<int> last = std::move(other);
    TRUE(last.append({5}) == 0 && last.data() != alone && pointer.get()[4] == 4);
}

static void adopted() {
    double numbers[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int deleted = 0;
    {
        hamr::adoption how;
        how.strides = {48, 16};
        B<double> columns = hamr::adopt(numbers, {2, 3}, [&](double *) { deleted++; }, how);
        TRUE(columns.read()[5] == 10 && columns.get_allocator() == A::malloc && columns.get_owner() == -1);
        columns.read_write()[5] = 20;
        TRUE(numbers[10] == 20 && deleted == 0);
    }
    TRUE(deleted == 1);
    const double *fixed = numbers;
    TRUE(hamr::adopt(fixed, hamr::extents(12)).is_read_only());
    hamr::adoption read_only;
    read_only.read_only = true;
    read_only.allocator = A::cpp;
    B<double> shared = hamr::adopt(numbers, {3, 4}, read_only);
    TRUE(shared.is_read_only() && shared.get_allocator() == A::cpp && shared.data() == numbers);
    read_only.strides = {8};
    THROWS(hamr::error, "1 strides for 2 dimensions", hamr::adopt(numbers, {3, 4}, [&](double *) { deleted++; }, read_only));
    TRUE(deleted == 1);

    std::vector<float> values = {1, 2, 3};
    const float *at = values.data();
    B<float> taken = hamr::take_over(std::move(values));
    TRUE(taken.data() == at && taken.size() == 3 && taken.append({4}) == 0 && taken[3] == 4 && taken.data() != at);
    TRUE(hamr::take_over(std::vector<int>()).empty());
    TRUE(hamr::buffer_of<double>(A::cpp, {1, 2.5})[1] == 2.5 && hamr::buffer_of<int>(A::malloc, {}).empty());
}

static void shared_by_dlpack() {
    B<float> field = hamr::buffer_of<float>(A::malloc, {1, 2, 3});
    B<float> back = hamr::from_dlpack<float>(field.to_dlpack());
    const B<float> &fixed = field;
    B<float> reading = hamr::from_dlpack<float>(fixed.to_dlpack());
    back[1] = 9;
    TRUE(field[1] == 9 && reading[1] == 9 && reading.is_read_only() && !back.is_read_only());
}

static void many_copies() {
    std::vector<B<int>> to(3, B<int>(A::malloc, 2, 0));
    const std::list<B<long>> from = {hamr::buffer_of<long>(A::malloc, {1, 2}), hamr::buffer_of<long>(A::cpp, {3, 4}), hamr::buffer_of<long>(A::shared, {5, 6})};
    TRUE(hamr::copy_many(to, from) == 0 && to[0][1] == 2 && to[1][0] == 3 && to[2][1] == 6);
    to.pop_back();
    TRUE(hamr::copy_many(to, from) == -1);
    const B<int> at = hamr::buffer_of<int>(A::malloc, {1, 0}), of = hamr::buffer_of<int>(A::malloc, {0, -1});
    std::vector<B<long>> sources(2, hamr::buffer_of<long>(A::malloc, {7, 8}));
    TRUE(hamr::copy_blocks(to, at, sources, of) == 0 && to[0][1] == 7 && to[1][0] == 8);
    TRUE(hamr::copy_blocks(to[0], at, sources[1], at) == 0 && to[0][0] == 7 && to[0][1] == 8);
    TRUE(hamr::copy_blocks(to, of, from, at) == -1);
    TRUE(hamr::copy_blocks(to[0], hamr::buffer_of<int>(A::malloc, {2, 0}), sources[0], at) == -1 && to[0][0] == 7);
}

static void throws() {
    B<int> field(A::malloc, 3, 1);
    TRUE(field.set(5, &field[0], 0, 1) == -1);
    THROWS(hamr::error, "at", hamr::throwing(field)->set(5, field.data(), 0, 1));
    TRUE(hamr::throwing(field)->resize(5, 2) == 0 && field[4] == 2);
    {
        const hamr::throw_errors here, there;
        THROWS(hamr::memory_error, "buffer::resize", field.resize(std::size_t(1) << 50));
    }
    TRUE(field.resize(std::size_t(1) << 50) == -1 && field.size() == 5);
    try {
        hamr::throwing(field)->resize(std::size_t(1) << 50);
        FAIL("there is no such memory");
    } catch (const hamr::failure &problem) {
        TRUE(problem.status() == HAMR_ERROR_MEMORY && problem.size() == std::int64_t(1) << 52 && problem.device() == -1);
        TRUE(std::string(problem.source()) == "malloc" && std::string(problem.what()).find("hamr::buffer::resize: ") == 0);
    }
    try {
        B<int> none(A::malloc, std::size_t(1) << 50);
    } catch (const std::bad_alloc &) {
    }
    try {
        B<int> none(static_cast<A>(99), 1);
    } catch (const std::runtime_error &problem) {
        const auto &same = dynamic_cast<const hamr::failure &>(problem);
        TRUE(same.status() == HAMR_ERROR_VALUE && same.size() == 0 && same.device() == -1 && same.code() == 0);
    }
}

static void in_time() {
    const B<int> field(A::malloc, 3, 1);
    TRUE(field.wait_for(std::chrono::seconds(1)) && field.wait_for(std::chrono::microseconds(1)));
    TRUE(hamr::event().is_done() && hamr::event().wait_for(std::chrono::hours(1)));
    THROWS(hamr::error, "cuda", hamr::event::record(hamr::stream()));
    THROWS(hamr::error, "cuda", hamr::wait_for(hamr::stream(), std::chrono::seconds(1)));
    TRUE(hamr::memory_usage(A::malloc).live == 1 && hamr::memory_usage().size() <= HAMR_ALLOCATOR_COUNT && hamr::memory_usage(A::cuda).live == 0);
    hamr::trim();
    {
        const hamr::pausable outer("kv");
        const hamr::pausable inner("other");
        hamr::pause("kv", "host"); // there is no memory of it
        hamr::resume("kv");
    }
    THROWS(hamr::error, "none", hamr::pause("none", "disk", "/tmp"));
    THROWS(hamr::error, "none", hamr::resume("none"));
}

struct wide {
    alignas(64) char bytes[64];
};

static void in_standard_containers() {
    for (A kind : {A::malloc, A::cpp, A::shared}) {
        using allocator = hamr::std_allocator<double>;
        std::vector<double, allocator> values(100, 1.5, allocator(kind));
        for (int i = 0; i < 1000; i++) values.push_back(i);
        TRUE(values[99] == 1.5 && values[1099] == 999 && reinterpret_cast<std::uintptr_t>(values.data()) % 64 == 0);
        TRUE(hamr::memory_usage(kind).live == 1);
        std::map<int, std::list<int, hamr::std_allocator<int>>> lists;
        for (int i = 0; i < 10; i++) lists.emplace(i, std::list<int, hamr::std_allocator<int>>({1, 2, 3}, hamr::std_allocator<int>(kind)));
        TRUE(lists.at(3).back() == 3);
        std::vector<wide, hamr::std_allocator<wide>> several(5, wide(), kind);
        TRUE(reinterpret_cast<std::uintptr_t>(&several[3]) % 64 == 0);
    }
    for (A kind : {A::malloc, A::cpp, A::shared}) TRUE(hamr::memory_usage(kind).live == 0);
    TRUE(hamr::std_allocator<int>(A::cpp) != hamr::std_allocator<int>());
    THROWS(hamr::error, "does not reach memory of cuda", (std::vector<int, hamr::std_allocator<int>>(3, A::cuda)));
}

static void aligned() {
    for (A kind : {A::malloc, A::cpp, A::shared})
        for (std::size_t n = 1; n < 3000; n += 97) {
            const B<char> one(kind, n), two(kind, n);
            TRUE(reinterpret_cast<std::uintptr_t>(one.data()) % 64 == 0 && reinterpret_cast<std::uintptr_t>(two.data()) % 64 == 0);
        }
}

#ifdef __cpp_lib_span
static void spans() {
    B<int> grid(A::malloc, {2, 3}, 4);
    std::span<int> all = grid.span();
    const B<int> &fixed = grid;
    std::span<const int> reading = fixed.span();
    all[5] = 7;
    TRUE(reading.size() == 6 && reading[5] == 7);
#ifdef __cpp_lib_mdspan
    TRUE((grid.mdspan<2>()[1, 2] == 7));
#endif
}
#else
static void spans() {}
#endif

int main() {
    as_a_container();
    slices();
    const_is_read_only();
    sharers_keep_their_elements();
    adopted();
    shared_by_dlpack();
    many_copies();
    throws();
    in_time();
    in_standard_containers();
    spans();
    aligned();
    TRUE(hamr::memory_usage(A::malloc).live == 0);
    std::cout << "all for authors" << std::endl;
    return 0;
}
