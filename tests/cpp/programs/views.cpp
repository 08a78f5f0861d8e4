// Views as std::span and, where there is one, std::mdspan.
#include "hamr.hpp"

#include "checks.hpp"

static_assert(std::is_convertible_v<hamr::view<int>, std::span<int>> && !std::is_convertible_v<hamr::view<const int>, std::span<int>>);

static int total(std::span<const int> values) { return std::accumulate(values.begin(), values.end(), 0); }

int main() {
    hamr::buffer<int> b(hamr::buffer_allocator::malloc, {2, 3}, 2);
    {
        auto view = b.write();
        std::span<int> span = view;
        for (int &value : span) value = 4;
#ifdef __cpp_lib_mdspan
        std::mdspan<int, std::dextents<std::size_t, 2>> grid = view.mdspan<2>();
        TRUE(grid.extent(0) == 2 && grid.extent(1) == 3 && (&grid[1, 0] == b.data() + 3));
        THROWS(hamr::error, "has 2 dimensions", view.mdspan<3>());
#endif
    }
    TRUE(total(b.read()) == 24 && b.read().span().data() == b.data());
    puts("all views");
    return 0;
}
