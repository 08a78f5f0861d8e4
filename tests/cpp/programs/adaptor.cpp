// A client's array class over buffer<T>, as toolkits for visualisation have: tuples of components, a name, made by factories from
// memory of others, with the buffer's references to streams and pointers handed on.
#include <hamr_buffer.h>
#include <hamr_buffer_allocator.h>
#include <hamr_device.h>
#include <hamr_stream.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

class data_array
{
public:
    virtual ~data_array() = default;
    virtual const char *type_name() const = 0;
    virtual size_t tuples() const noexcept = 0;
    virtual int components() const noexcept = 0;
    virtual double value(size_t tuple, int component) const = 0;
    virtual int host_accessible() const noexcept = 0;
    virtual int cuda_accessible() const noexcept = 0;
    virtual const hamr::stream &stream() const = 0;
    virtual hamr::stream &stream() = 0;
    virtual std::unique_ptr<data_array> new_instance() const = 0;
    virtual int deep_copy(const data_array &other) = 0;

    const std::string &name() const noexcept { return m_name; }

protected:
    explicit data_array(std::string name) : m_name(std::move(name)) {}

private:
    std::string m_name;
};

template <typename T>
class hamr_data_array : public data_array
{
public:
    using allocator = hamr::buffer_allocator;
    using transfer = hamr::buffer_transfer;

    hamr_data_array(const std::string &name, size_t n_tuples, int n_comps, allocator alloc, const hamr::stream &strm, transfer trans)
        : data_array(name), m_data(alloc, strm, trans, n_tuples * static_cast<size_t>(n_comps)), m_components(n_comps)
    {
    }

    hamr_data_array(const std::string &name, size_t n_tuples, int n_comps, allocator alloc, const hamr::stream &strm, transfer trans, const T &init)
        : data_array(name), m_data(alloc, strm, trans, n_tuples * static_cast<size_t>(n_comps), init), m_components(n_comps)
    {
    }

    // shares memory that exists
    hamr_data_array(const std::string &name, const std::shared_ptr<T> &data, size_t n_tuples, int n_comps, allocator alloc, const hamr::stream &strm,
                    transfer trans, int owner)
        : data_array(name), m_data(alloc, strm, trans, n_tuples * static_cast<size_t>(n_comps), owner, data), m_components(n_comps)
    {
    }

    template <typename deleter_t>
    hamr_data_array(const std::string &name, T *data, size_t n_tuples, int n_comps, allocator alloc, const hamr::stream &strm, transfer trans, int owner,
                    deleter_t deleter)
        : data_array(name), m_data(alloc, strm, trans, n_tuples * static_cast<size_t>(n_comps), owner, data, deleter), m_components(n_comps)
    {
    }

    // copies another's elements
    template <typename U>
    hamr_data_array(const hamr_data_array<U> &other, allocator alloc, const hamr::stream &strm, transfer trans)
        : data_array(other.name()), m_data(alloc, strm, trans, other.buffer()), m_components(other.components())
    {
    }

    const char *type_name() const override { return sizeof(T) == sizeof(double) ? "double" : "float"; }
    size_t tuples() const noexcept override { return m_data.size() / static_cast<size_t>(m_components); }
    int components() const noexcept override { return m_components; }
    int host_accessible() const noexcept override { return m_data.host_accessible(); }
    int cuda_accessible() const noexcept override { return m_data.cuda_accessible(); }

    double value(size_t tuple, int component) const override
    {
        T read = 0;
        if (m_data.get(tuple * static_cast<size_t>(m_components) + static_cast<size_t>(component), &read, 0, 1))
            abort();
        return static_cast<double>(read);
    }

    const hamr::stream &stream() const override { return m_data.get_stream(); }
    hamr::stream &stream() override { return m_data.get_stream(); }

    T *data() { return m_data.data(); }
    const T *data() const { return m_data.data(); }
    const std::shared_ptr<T> &pointer() const { return m_data.pointer(); }
    std::shared_ptr<T> &pointer() { return m_data.pointer(); }
    std::shared_ptr<const T> get_host_accessible() const { return m_data.get_host_accessible(); }
    std::shared_ptr<const T> get_device_accessible() const { return m_data.get_device_accessible(); }
    const hamr::buffer<T> &buffer() const { return m_data; }
    hamr::buffer<T> &buffer() { return m_data; }
    int set_stream(const hamr::stream &strm, transfer trans) { return m_data.set_stream(strm, trans); }
    void synchronize() const { m_data.synchronize(); }

    std::unique_ptr<data_array> new_instance() const override
    {
        return std::make_unique<hamr_data_array>(name(), 0, m_components, m_data.get_allocator(), m_data.get_stream(), m_data.get_transfer_mode());
    }

    int deep_copy(const data_array &other) override
    {
        if (auto *doubles = dynamic_cast<const hamr_data_array<double> *>(&other))
            return copy(*doubles);
        if (auto *floats = dynamic_cast<const hamr_data_array<float> *>(&other))
            return copy(*floats);
        return -1;
    }

private:
    template <typename U>
    int copy(const hamr_data_array<U> &other)
    {
        m_components = other.components();
        return m_data.assign(other.buffer());
    }

    hamr::buffer<T> m_data;
    int m_components;
};

static double sum(const data_array &array)
{
    double total = 0;
    for (size_t i = 0; i < array.tuples(); ++i)
        for (int j = 0; j < array.components(); ++j)
            total += array.value(i, j);
    return total;
}

static hamr::stream &stream_of(data_array &array) { return array.stream(); }

static int run(hamr::buffer_allocator alloc, hamr::buffer_transfer trans, const hamr::stream &mine)
{
    const hamr::stream strm;
    hamr_data_array<double> a("velocity", 100, 3, alloc, strm, trans, 1.5);
    data_array &as_base = a;
    stream_of(as_base) = mine;
    if (a.stream() != mine || a.buffer().get_stream() != mine || a.pointer().get() != a.data() || static_cast<const hamr_data_array<double> &>(a).pointer() != a.pointer())
        return -1;
    size_t number = as_base.stream();
    if (number != mine.get_stream() || (as_base.stream() ? 1 : 0) != (mine ? 1 : 0))
        return -1;

    hamr_data_array<float> b(a, hamr::buffer_allocator::malloc, strm, hamr::buffer_transfer::sync);
    b.data()[299] = 2;
    auto shared = std::make_shared<hamr_data_array<float>>("shared", b.pointer(), 100, 3, hamr::buffer_allocator::malloc, strm, trans, -1);
    int deleted = 0;
    {
        float *raw = static_cast<float *>(malloc(6 * sizeof(float)));
        for (int i = 0; i < 6; ++i)
            raw[i] = static_cast<float>(i);
        hamr_data_array<float> c("mine", raw, 2, 3, hamr::buffer_allocator::malloc, strm, trans, -1, [&deleted](float *p) {
            ++deleted;
            free(p);
        });
        if (a.deep_copy(c) || sum(a) != 15 || a.tuples() != 2 || c.stream() != strm)
            return -1;
    }
    std::unique_ptr<data_array> d = a.new_instance();
    if (deleted != 1 || d->deep_copy(*shared) || sum(*d) != 450.5 || d->tuples() != 100 || d->name() != "velocity" || d->stream() != mine)
        return -1;
    auto sp = dynamic_cast<hamr_data_array<double> &>(*d).get_host_accessible();
    dynamic_cast<hamr_data_array<double> &>(*d).synchronize();
    dynamic_cast<hamr_data_array<double> &>(*d).set_stream(strm, hamr::buffer_transfer::sync);
    return sp.get()[299] == 2 && d->stream() == strm && a.get_device_accessible() ? 0 : -1;
}

int main(int count, char **)
{
    std::vector<hamr::buffer_allocator> where{hamr::buffer_allocator::malloc, hamr::buffer_allocator::cpp};
    hamr::stream mine;
    if (count > 1)
    {
        if (hamr::set_active_device(0))
            return 1;
        where.insert(where.end(), {hamr::buffer_allocator::cuda, hamr::buffer_allocator::cuda_async, hamr::buffer_allocator::cuda_uva, hamr::buffer_allocator::cuda_host});
        mine = hamr::stream::create();
    }
    for (hamr::buffer_allocator alloc : where)
        for (hamr::buffer_transfer trans : {hamr::buffer_transfer::async, hamr::buffer_transfer::sync_host, hamr::buffer_transfer::sync})
            if (run(alloc, trans, mine))
                return 1;
    std::puts("all arrays");
    return 0;
}
