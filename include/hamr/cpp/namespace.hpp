/// The namespace of one version of these headers. Two plug-ins of one process may have been compiled with
/// headers of two versions: the linker must see different names for their classes and inline functions.
#ifndef HAMR_CPP_NAMESPACE_HPP
#define HAMR_CPP_NAMESPACE_HPP

#include "hamr/version.h"

#define HAMR_CPP_JOINED(major, minor, patch) v##major##_##minor##_##patch
#define HAMR_CPP_NAMED(major, minor, patch) HAMR_CPP_JOINED(major, minor, patch)

/// For example v1_2_3. All of namespace hamr is in it, and nobody has to name it. But a class of hamr cannot be
/// declared without its header.
#define HAMR_CPP_NAMESPACE HAMR_CPP_NAMED(HAMR_VERSION_MAJOR, HAMR_VERSION_MINOR, HAMR_VERSION_PATCH)

#endif
