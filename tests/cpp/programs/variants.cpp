// What a client does with its arrays of variants.
#include "variants.hpp"

#include <cstdio>

static int failures = 0;
static void check(bool holds, int line)
{
    if (holds)
        return;
    std::printf("line %d\n", line);
    ++failures;
}
#define CHECK(condition) check(condition, __LINE__)

template <typename T>
static void numbers(allocator alloc)
{
    const T values[] = {T(1), T(2), T(3)};
    array_of<T> a(values, 3, alloc);
    array_of<double> doubles(2, 0.5);
    p_variant_array copy = a.new_copy(), part = a.new_copy(1, 3);
    CHECK(copy->equals(a) && part->size() == 2 && text(*part) == text(*array_of<T>(values + 1, 2).new_copy()));
    if constexpr (is_number<T>)
        CHECK(doubles.append(a) == 0 && text(doubles) == "0.5, 0.5, 1, 2, 3" && copy->assign(doubles) == 0 && copy->size() == 5);
    CHECK(copy->resize(6) == 0 && copy->append(a) == 0 && copy->size() >= 9 && copy->reserve(100) == 0);
    copy->clear();
    CHECK(copy->size() == 0 && copy->append(a) == 0 && copy->equals(a));
}

int main(int count, char **)
{
    std::vector<allocator> where{allocator::malloc, allocator::cpp};
    if (count > 1)
        where.insert(where.end(), {allocator::cuda, allocator::cuda_async, allocator::cuda_uva, allocator::cuda_host});
    for (allocator alloc : where)
    {
        numbers<char>(alloc);
        numbers<short>(alloc);
        numbers<int>(alloc);
        numbers<long long>(alloc);
        numbers<unsigned>(alloc);
        numbers<float>(alloc);
        numbers<double>(alloc);
        numbers<long double>(alloc);
        numbers<std::complex<float>>(alloc);
    }

    array_of<std::string> names(2, "name");
    p_variant_array more = names.new_copy();
    names.get(0) = "other";
    CHECK(text(names) == "other, name" && text(*more) == "name, name" && names.append(*more) == 0 && names.size() == 4);
    array_of<int> numbers_of(2, 7);
    CHECK(names.append(numbers_of) == -1 && numbers_of.append(names) == -1 && names.size() == 4 && names.resize(5) == 0 && names.get(4).empty());

    array_of<p_variant_array> arrays(3, names.new_copy()); // pointers that are shared
    arrays.get(1) = numbers_of.new_copy();
    p_variant_array same = arrays.new_copy();
    CHECK(arrays.get(0).use_count() == 4 && same->equals(arrays) && arrays.append(*same) == 0 && arrays.get(0).use_count() == 6);
    same.reset();
    CHECK(arrays.get(0).use_count() == 4 && text(*arrays.get(4)) == "7, 7");
    arrays.clear();

    array_of<metadata> trees(1, metadata());
    trees.get(0).children["time"].values["units"] = names.new_copy();
    p_variant_array copied = trees.new_copy();
    trees.get(0).children["time"].values["steps"] = numbers_of.new_copy();
    CHECK(!copied->equals(trees) && copied->append(trees) == 0 && copied->size() == 2 && text(*copied) == "metadata of 0, metadata of 0");
    trees.get(0).children["time"].values.clear();

    auto shared = std::shared_ptr<std::string>(new std::string[2]{"a", "b"}, [](std::string *p) { delete[] p; });
    array_of<std::string> of_shared(2, -1, shared);
    of_shared.get(1) = "c";
    CHECK(shared.get()[1] == "c" && of_shared.append(of_shared) == 0 && text(of_shared) == "a, c, a, c");
    std::puts(failures ? "failed" : "all variants");
    return failures;
}
