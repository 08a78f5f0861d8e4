/* The core's errors as Python's. Its texts are a mark, the exception's name, its
 * attributes and the message. */
#ifndef HAMR_CORE_ERRORS_H
#define HAMR_CORE_ERRORS_H

#include "base/python.h"

void core_raise_by(PyObject *make_error); /* from now on, text by text */
int core_raise(char *message);       /* sets the exception, frees message; -1 */
void core_translate(void);           /* makes the RuntimeError of a function that gopy generated what its text says */
PyObject *core_freed(void);          /* raises FreedBuffer; NULL */
int core_forked(void);               /* raises ForkError; -1 */
int core_is_kind(const char *message, const char *kind); /* whether a text is of an exception of that name */

#endif
