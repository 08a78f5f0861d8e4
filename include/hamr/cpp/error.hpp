/// What goes wrong: exceptions, and messages of functions that return a status.
#ifndef HAMR_CPP_ERROR_HPP
#define HAMR_CPP_ERROR_HPP

#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <ostream>
#include <stdexcept>
#include <string>

#include "hamr.h"

#ifndef __cpp_exceptions
#error "hamr.hpp throws exceptions: without them, as with -fno-exceptions, there is hamr.h"
#endif

namespace hamr {

/// Anything but a lack of memory. What one library throws others may catch, whatever their -fvisibility. status() is one of the HAMR_ERROR_… of hamr/interface.h.
class __attribute__((visibility("default"))) error : public std::runtime_error {
public:
    error(hamr_status status, const std::string &words) : std::runtime_error(words), m_status(status) {}
    hamr_status status() const noexcept { return m_status; }

private:
    hamr_status m_status;
};

/// There is no more memory, of the host or of a device.
class __attribute__((visibility("default"))) memory_error : public std::bad_alloc {
public:
    explicit memory_error(const std::string &words) : m_words(std::make_shared<const std::string>(words)) {}
    const char *what() const noexcept override { return m_words->c_str(); }
    static constexpr hamr_status status() noexcept { return HAMR_ERROR_MEMORY; }

private:
    std::shared_ptr<const std::string> m_words; // copies of an exception must not throw
};

namespace detail {

[[noreturn]] inline void fail(hamr_status status, const char *doing, const std::string &words) {
    const std::string all = std::string("hamr::") + doing + ": " + words;
    if (status == HAMR_ERROR_MEMORY) throw memory_error(all);
    throw error(status, all);
}

/// Throws what hamr's last error is, where the call has failed. Each program and library has its own: an
/// error in finding hamr's library is told where it was found.
__attribute__((visibility("hidden"))) inline void check(hamr_status status, const char *doing) {
    if (status != HAMR_OK) fail(status, doing, hamr_last_error());
}

inline int report(const std::exception &problem) noexcept {
    try {
        std::cerr << "ERROR: " << problem.what() << std::endl;
    } catch (...) { // a stream that was told to throw
    }
    return -1;
}

/// 0, or -1 after a message.
template <typename F>
int status_of(F &&function) noexcept {
    try {
        function();
        return 0;
    } catch (const std::exception &problem) {
        return report(problem);
    } catch (...) { // of elements' constructors
        return report(std::runtime_error("hamr: an exception that is no std::exception"));
    }
}

} // namespace detail
} // namespace hamr

#endif
