/// hamr for C++17: memory that any device and any array library can share.
///
///     hamr::buffer<double> field(hamr::buffer_allocator::cuda, 1024, 1.0);
///     auto [owner, values] = hamr::get_host_accessible(field); // a temporary, if it must be
///
/// Header only, over hamr.h, which finds the library at the first call. The classes and functions are
/// those of LBL's HAMR, whose header names are beside this file and include it. Constructors,
/// and functions that return no status, throw: hamr::memory_error where memory runs out, else
/// hamr::error. Functions that return int return 0, or -1 after a message on std::cerr.
#ifndef HAMR_HPP
#define HAMR_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "hamr.hpp needs C++17: compile with -std=c++17 or later"
#endif

#include "hamr/cpp/allocator.hpp"
#include "hamr/cpp/buffer.hpp"
#include "hamr/cpp/copies.hpp"
#include "hamr/cpp/device.hpp"
#include "hamr/cpp/element.hpp"
#include "hamr/cpp/error.hpp"
#include "hamr/cpp/event.hpp"
#include "hamr/cpp/extents.hpp"
#include "hamr/cpp/launch.hpp"
#include "hamr/cpp/making.hpp"
#include "hamr/cpp/members.hpp"
#include "hamr/cpp/named_allocators.hpp"
#include "hamr/cpp/objects.hpp"
#include "hamr/cpp/openmp.hpp"
#include "hamr/cpp/plain.hpp"
#include "hamr/cpp/std_allocator.hpp"
#include "hamr/cpp/storage.hpp"
#include "hamr/cpp/stream.hpp"
#include "hamr/cpp/utilities.hpp"
#include "hamr/cpp/values.hpp"
#include "hamr/cpp/view.hpp"

#endif
