// All of hamr for a module that SWIG wraps: `%include "hamr_py.i"` behind its own %module, or %import.
%module hamr
%{
#define SWIG_FILE_WITH_INIT
#include <Python.h>
%}

#define __attribute__(words) // which SWIG does not read

%include <std_shared_ptr.i>
%include "hamr_config.h"
%include "hamr_buffer_allocator.i"
%include "hamr_buffer_transfer.i"
%include "hamr_stream.i"
%include "hamr_buffer_handle.i"
%include "hamr_buffer.i"
