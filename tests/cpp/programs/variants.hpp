// A client's variant array, as of a code for analysis: arrays of numbers, strings and shared pointers behind one base class, with
// factories, copies between types, metadata trees, and dispatch by type.
#pragma once

#include <hamr_buffer.h>
#include <hamr_buffer_allocator.h>
#include <hamr_buffer_util.h>

#include <complex>
#include <map>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

class variant_array;
using p_variant_array = std::shared_ptr<variant_array>;
using allocator = hamr::buffer_allocator;

class variant_array
{
public:
    virtual ~variant_array() = default;
    virtual p_variant_array new_copy() const = 0;
    virtual p_variant_array new_copy(size_t start, size_t end) const = 0;
    virtual size_t size() const noexcept = 0;
    virtual int resize(size_t n) = 0;
    virtual int reserve(size_t n) = 0;
    virtual void clear() = 0;
    virtual int append(const variant_array &other) = 0;
    virtual int assign(const variant_array &other) = 0;
    virtual bool equals(const variant_array &other) const = 0;
    virtual void to_stream(std::ostream &os) const = 0;
};

struct metadata // a tree of properties
{
    std::map<std::string, metadata> children;
    std::map<std::string, p_variant_array> values;
    bool operator==(const metadata &other) const { return values.size() == other.values.size() && children == other.children; }
};

inline std::ostream &operator<<(std::ostream &os, const metadata &md) { return os << "metadata of " << md.values.size(); }

template <typename T>
inline constexpr bool is_number = std::is_arithmetic_v<T>;

template <typename T>
class array_of : public variant_array
{
public:
    explicit array_of(allocator alloc = allocator::malloc) : m_data(alloc) {}
    array_of(size_t n, const T &value, allocator alloc = allocator::malloc) : m_data(alloc, n, value) {}
    array_of(const T *values, size_t n, allocator alloc = allocator::malloc) : m_data(alloc, n, values) {}
    array_of(size_t n, int owner, const std::shared_ptr<T> &shared) : m_data(allocator::malloc, n, owner, shared) {}
    array_of(const array_of &) = default;

    p_variant_array new_copy() const override { return std::make_shared<array_of>(*this); }
    p_variant_array new_copy(size_t start, size_t end) const override
    {
        auto made = std::make_shared<array_of>(m_data.get_allocator());
        return made->m_data.assign(m_data, start, end - start) ? nullptr : made;
    }

    size_t size() const noexcept override { return m_data.size(); }
    int resize(size_t n) override { return m_data.resize(n, T()); }
    int reserve(size_t n) override { return m_data.reserve(n); }
    void clear() override { m_data.free(); }

    int append(const variant_array &other) override
    {
        return dispatch(other, [this](const auto &data) { return m_data.append(data); });
    }
    int assign(const variant_array &other) override
    {
        return dispatch(other, [this](const auto &data) { return m_data.assign(data); });
    }

    bool equals(const variant_array &other) const override
    {
        auto *same = dynamic_cast<const array_of *>(&other);
        if (!same || same->size() != size())
            return false;
        auto [spa, pa, spb, pb] = hamr::get_host_accessible(m_data, same->m_data);
        hamr::synchronize(m_data, same->m_data);
        for (size_t i = 0; i < size(); ++i)
            if (!(pa[i] == pb[i]))
                return false;
        return true;
    }

    void to_stream(std::ostream &os) const override
    {
        auto [sp, p] = hamr::get_host_accessible(m_data);
        m_data.synchronize();
        for (size_t i = 0; i < size(); ++i)
            os << (i ? ", " : "") << p[i];
    }

    T &get(size_t i) { return m_data.data()[i]; }
    const hamr::buffer<T> &buffer() const { return m_data; }

private:
    // numbers are converted to numbers, other elements only copied
    template <typename F>
    static int dispatch(const variant_array &other, F &&function)
    {
        if (auto *same = dynamic_cast<const array_of *>(&other))
            return function(same->buffer());
        if constexpr (is_number<T>)
            return convert<char, short, int, long long, unsigned, float, double, long double>(other, function);
        return -1;
    }

    template <typename... U, typename F>
    static int convert(const variant_array &other, F &&function)
    {
        int status = -1;
        auto attempt = [&](auto *array) {
            if (array)
                status = function(array->buffer());
            return array != nullptr;
        };
        (void)(attempt(dynamic_cast<const array_of<U> *>(&other)) || ...);
        return status;
    }

    hamr::buffer<T> m_data;
};

inline std::string text(const variant_array &array)
{
    std::ostringstream os;
    array.to_stream(os);
    return os.str();
}
