// What SWIG reads of hamr's modes of transfer: buffer_transfer_async and the others.
%{
#include "hamr_buffer_transfer.h"
%}

%namewarn("") "async"; // with its prefix no keyword of Python's

namespace hamr {

enum class buffer_transfer : int { async = 0, sync_host = 1, sync = 2 };

} // namespace hamr
