// What the programs have in common: what buffers hold, and where.
#ifndef CHECKS_HPP
#define CHECKS_HPP

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "check.h"

template <typename B>
std::vector<double> values(const B &b) {
    std::vector<double> read(b.size());
    TRUE(b.get(0, read.data(), 0, read.size()) == 0);
    return read;
}

template <typename B>
double sum(const B &b) {
    const std::vector<double> read = values(b);
    return std::accumulate(read.begin(), read.end(), 0.0);
}

using list = std::vector<double>;

// The call throws E with such words.
#define THROWS(E, words, ...)                                                              \
    do {                                                                                   \
        std::string said;                                                                  \
        try {                                                                              \
            __VA_ARGS__;                                                                   \
        } catch (const E &thrown) {                                                        \
            said = thrown.what();                                                          \
        }                                                                                  \
        if (said.find(words) == std::string::npos) FAIL(("it throws: " + said).c_str());   \
    } while (0)

// What a function that returns an int says on std::cerr, which must return -1.
template <typename F>
std::string message(F function) {
    struct catcher : std::streambuf {
        std::string text;
        int overflow(int c) override {
            text += static_cast<char>(c);
            return c;
        }
    } caught;
    std::streambuf *before = std::cerr.rdbuf(&caught);
    const int status = function();
    std::cerr.rdbuf(before);
    TRUE(status == -1);
    return caught.text;
}

#define SAYS(words, ...) TRUE(message([&] { return __VA_ARGS__; }).find(words) != std::string::npos)

inline std::int64_t live_everywhere() {
    hamr_usage rows[HAMR_ALLOCATOR_COUNT];
    const std::int32_t n = hamr_memory_usage(rows, HAMR_ALLOCATOR_COUNT);
    std::int64_t live = 0;
    for (std::int32_t i = 0; i < n; i++) live += rows[i].live + rows[i].adopted;
    return live;
}

#endif
