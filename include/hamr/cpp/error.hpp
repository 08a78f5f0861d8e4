/// Errors: exceptions, and messages of functions that return a status.
#ifndef HAMR_CPP_ERROR_HPP
#define HAMR_CPP_ERROR_HPP

#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "hamr.h"
#include "namespace.hpp"

#ifndef __cpp_exceptions
#error "hamr.hpp throws exceptions: without them, as with -fno-exceptions, there is hamr.h"
#endif

namespace hamr {

/// The exception classes have a namespace of their own, so that one library can catch what another one throws,
/// even if the two were compiled with different versions of the headers. Its number changes with the layout of
/// the classes.
inline namespace exceptions_1 {

/// The base of hamr::error and hamr::memory_error: `catch (const hamr::failure &problem)`. The texts last as
/// long as the exception.
class __attribute__((visibility("default"))) failure {
public:
    virtual const char *what() const noexcept = 0;
    hamr_status status() const noexcept { return m_status; } ///< one of the HAMR_ERROR_… of hamr/interface.h
    std::int64_t size() const noexcept { return m_size; }    ///< the bytes that there were no more of; else 0
    /// The device that had no more memory; -1 is the host. Other errors have -1, too.
    int device() const noexcept { return m_status == HAMR_ERROR_MEMORY ? m_code : -1; }
    int code() const noexcept { return m_status == HAMR_ERROR_DEVICE ? m_code : 0; } ///< the vendor's; else 0
    const char *name() const noexcept { return m_name ? m_name->c_str() : ""; }     ///< of the code
    const char *source() const noexcept {
        return m_source ? m_source->c_str() : "";
    } ///< the vendor's interface, a backend or an allocator

    /// The facts as a struct of hamr.h. The exception owns the texts.
    hamr_failure facts() const noexcept { return {m_status, m_code, m_size, what(), source(), name(), ""}; }

protected:
    explicit failure(const hamr_failure &facts)
        : m_status(facts.status),
          m_code(facts.code),
          m_size(facts.size),
          m_name(copied(facts.name)),
          m_source(copied(facts.source)) {}
    failure(const failure &) = default;
    failure &operator=(const failure &) = default;
    ~failure() = default;

private:
    using text = std::shared_ptr<const std::string>; // copies of an exception must not throw
    static text copied(const char *given) {
        return given && *given ? std::make_shared<const std::string>(given) : text();
    }

    hamr_status m_status;
    std::int32_t m_code;
    std::int64_t m_size;
    text m_name, m_source;
};

/// Any error except a lack of memory.
class __attribute__((visibility("default"))) error : public std::runtime_error, public failure {
public:
    error(hamr_status status, const std::string &words)
        : error(hamr_failure{status, 0, 0, nullptr, nullptr, nullptr, nullptr}, words) {}
    error(const hamr_failure &facts, const std::string &words) : std::runtime_error(words), failure(facts) {}
    const char *what() const noexcept override { return std::runtime_error::what(); }
};

/// The host or a device has no more memory.
class __attribute__((visibility("default"))) memory_error : public std::bad_alloc, public failure {
public:
    explicit memory_error(const std::string &words)
        : memory_error(hamr_failure{HAMR_ERROR_MEMORY, -1, 0, nullptr, nullptr, nullptr, nullptr}, words) {}
    memory_error(const hamr_failure &facts, const std::string &words)
        : failure(facts),
          m_words(std::make_shared<const std::string>(words)) {}
    const char *what() const noexcept override { return m_words->c_str(); }

private:
    std::shared_ptr<const std::string> m_words;
};

} // namespace exceptions_1

inline namespace HAMR_CPP_NAMESPACE {
namespace detail {

[[noreturn]] inline void fail(hamr_status status, const char *doing, const std::string &words) {
    const std::string all = std::string("hamr::") + doing + ": " + words;
    if (status == HAMR_ERROR_MEMORY) throw memory_error(all);
    throw error(status, all);
}

/// A text for C, which ends at the first NUL.
inline const char *c_text(const std::string &text, const char *doing) {
    if (text.find('\0') != std::string::npos)
        fail(HAMR_ERROR_VALUE, doing,
             "a text of " + std::to_string(text.size()) + " bytes has a NUL: accepted is one without");
    return text.c_str();
}

/// Throws hamr's last error. Each program and library has its own: an error in finding hamr's library is
/// reported to the one that looked for it.
[[noreturn]] __attribute__((visibility("hidden"), noinline, cold)) inline void fail_as_said(hamr_status status,
                                                                                            const char *doing) {
    hamr_failure facts;
    hamr_last_failure(&facts);
    if (facts.status != status) fail(status, doing, hamr_last_error());
    const std::string all = std::string("hamr::") + doing + ": " + facts.message;
    if (status == HAMR_ERROR_MEMORY) throw memory_error(facts, all);
    throw error(facts, all);
}

/// Throws if the call has failed.
__attribute__((visibility("hidden"))) inline void check(hamr_status status, const char *doing) {
    if (status != HAMR_OK) fail_as_said(status, doing);
}

inline int report(const std::exception &problem) noexcept {
    try {
        std::cerr << "ERROR: " << problem.what() << std::endl;
    } catch (...) { // a stream that was told to throw
    }
    return -1;
}

/// For destructors: 0, or -1 after a message.
template <typename F>
int told(F &&function) noexcept {
    try {
        function();
        return 0;
    } catch (const std::exception &problem) {
        return report(problem);
    } catch (...) { // of elements' constructors
        return report(std::runtime_error("hamr: an exception that is no std::exception"));
    }
}

/// How many throw_errors exist in the calling thread.
inline int &throwing_depth() noexcept {
    static thread_local int depth = 0;
    return depth;
}

/// For functions that return int: 0, or -1 after a message; or it throws, if the program wants that.
template <typename F>
int status_of(F &&function) {
    if (!throwing_depth()) return told(std::forward<F>(function));
    function();
    return 0;
}

} // namespace detail

/// Until it ends, hamr's functions that return int throw in the calling thread, without a message:
///
///     const hamr::throw_errors here;
///     field.resize(3);
///     field.append(more);
class throw_errors {
public:
    throw_errors() noexcept { detail::throwing_depth()++; }
    throw_errors(const throw_errors &) = delete;
    throw_errors &operator=(const throw_errors &) = delete;
    ~throw_errors() { detail::throwing_depth()--; }
};

/// The same for one call: `hamr::throwing(field)->resize(3)`.
template <typename B>
class [[nodiscard]] throwing {
public:
    explicit throwing(B &object) noexcept : m_object(object) {}
    B *operator->() const noexcept { return &m_object; }

private:
    B &m_object;
    throw_errors m_here;
};
} // namespace HAMR_CPP_NAMESPACE
} // namespace hamr

#endif
