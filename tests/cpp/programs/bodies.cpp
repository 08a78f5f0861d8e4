// A client's n-body code: seven fields of bodies in tuples of buffers, which kernels read and write by tuples of pointers; bodies
// that leave the box are taken out of all fields.
#include <hamr_buffer.h>
#include <hamr_buffer_allocator.h>
#include <hamr_buffer_util.h>
#include <hamr_stream.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <utility>
#include <vector>

using real = double;
template <typename T>
using field = hamr::buffer<T>;
using hamr::buffer_allocator;
using hamr::buffer_transfer;

using fields = std::tuple<field<real>, field<real>, field<real>, field<real>, field<real>, field<real>, field<real>>; // mass, place, velocity
using pointers = std::tuple<real *, real *, real *, real *, real *, real *, real *>;

template <typename F, std::size_t... I>
static int each_of(fields &all, F &&function, std::index_sequence<I...>)
{
    return (0 | ... | function(std::get<I>(all)));
}

template <typename F>
static int each(fields &all, F &&function)
{
    return each_of(all, function, std::make_index_sequence<7>());
}

class bodies
{
public:
    bodies(buffer_allocator alloc, const hamr::stream &strm, buffer_transfer mode)
        : m_fields({alloc, strm, mode}, {alloc, strm, mode}, {alloc, strm, mode}, {alloc, strm, mode}, {alloc, strm, mode}, {alloc, strm, mode}, {alloc, strm, mode})
    {
    }

    size_t size() const { return std::get<0>(m_fields).size(); }

    int resize(size_t n)
    {
        return each(m_fields, [n](field<real> &f) { return f.resize(n); });
    }

    int append(const bodies &other)
    {
        int status = 0;
        add(status, other, std::make_index_sequence<7>());
        return status;
    }

    int synchronize() const
    {
        return std::apply([](auto &...f) { return hamr::synchronize(f...); }, m_fields);
    }

    // mass with place, and velocity, as parts of a tuple that is put together again
    pointers data()
    {
        auto &[m, x, y, z, u, v, w] = m_fields;
        return std::tuple_cat(hamr::data(m, x, y, z), hamr::data(u), hamr::data(v, w));
    }

    auto get_host_accessible() const
    {
        return std::apply([](auto &...f) { return hamr::get_host_accessible(f...); }, m_fields);
    }

    auto mass() const { return hamr::pointer(std::get<0>(m_fields)); }

    // Keeps the bodies that a mask names, in order; how many there are then
    int compact(const hamr::buffer<int> &mask)
    {
        auto [spm, pm] = hamr::get_host_accessible(mask);
        if (mask.synchronize())
            return -1;
        hamr::buffer<int> kept(buffer_allocator::malloc);
        for (size_t i = 0; i < mask.size(); ++i)
        {
            int index = static_cast<int>(i);
            if (pm[i] && kept.append(&index, 1))
                return -1;
        }
        const hamr::buffer<int> &which = kept;
        return each(m_fields, [&which](field<real> &f) {
            auto [spf, pf] = hamr::get_host_accessible(f);
            f.synchronize();
            field<real> out(buffer_allocator::malloc, which.size());
            auto [po] = hamr::data(out);
            for (size_t i = 0; i < which.size(); ++i)
                po[i] = pf[which.data()[i]];
            f = std::move(out); // copied where it is elsewhere
            return 0;
        });
    }

    fields &get() { return m_fields; }

private:
    template <std::size_t... I>
    void add(int &status, const bodies &other, std::index_sequence<I...>)
    {
        ((status |= std::get<I>(m_fields).append(std::get<I>(other.m_fields))), ...);
    }

    fields m_fields;
};

static void push(pointers p, size_t n, real dt)
{
    auto [m, x, y, z, u, v, w] = p;
    for (size_t i = 0; i < n; ++i)
    {
        x[i] += u[i] * dt;
        y[i] += v[i] * dt;
        z[i] += w[i] * dt;
        m[i] *= 1;
    }
}

static int run(buffer_allocator alloc, buffer_transfer mode)
{
    const size_t n = 1000;
    const hamr::stream strm;
    bodies all(alloc, strm, mode), more(buffer_allocator::cpp, strm, mode);
    if (more.resize(n))
        return -1;
    auto [m, x, y, z, u, v, w] = more.data();
    for (size_t i = 0; i < n; ++i)
    {
        m[i] = 1 + static_cast<real>(i % 3);
        x[i] = y[i] = z[i] = static_cast<real>(i) / n;
        u[i] = i % 2 ? 1 : -1;
        v[i] = w[i] = 0.001;
    }
    if (all.append(more) || all.append(more) || all.size() != 2 * n)
        return -1;

    hamr::buffer<int> mask(buffer_allocator::malloc, all.size());
    for (int step = 0; step < 4; ++step)
    {
        bodies moved(buffer_allocator::malloc, strm, buffer_transfer::sync);
        if (moved.append(all) || all.synchronize())
            return -1;
        push(moved.data(), moved.size(), 0.1);
        mask.resize(moved.size());
        real *px = std::get<1>(moved.data());
        for (size_t i = 0; i < moved.size(); ++i)
            mask.data()[i] = px[i] >= 0 && px[i] < 1;
        std::swap(all.get(), moved.get());
        if (all.compact(mask))
            return -1;
    }

    auto [spm, pm, spx, px, spy, py, spz, pz, spu, pu, spv, pv, spw, pw] = all.get_host_accessible();
    if (all.synchronize())
        return -1;
    real mass = 0, sum = 0;
    for (size_t i = 0; i < all.size(); ++i)
    {
        mass += pm[i];
        sum += px[i] + py[i] + pz[i] + pu[i] + pv[i] + pw[i];
    }
    auto [shared] = all.mass();
    std::printf("%zu bodies of mass %g, sum %.6f, %d\n", all.size(), mass, sum, shared.get() == std::get<0>(all.data()));
    return 0;
}

int main(int count, char **)
{
    std::vector<buffer_allocator> where{buffer_allocator::malloc, buffer_allocator::cpp, hamr::get_host_allocator()};
    if (count > 1)
        where.insert(where.end(), {buffer_allocator::cuda, buffer_allocator::cuda_async, buffer_allocator::cuda_uva, buffer_allocator::cuda_host});
    for (buffer_allocator alloc : where)
        for (buffer_transfer mode : {buffer_transfer::async, buffer_transfer::sync_host, buffer_transfer::sync})
            if (run(alloc, mode))
                return 1;
    return 0;
}
