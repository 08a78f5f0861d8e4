/* The library's part in giving memory to C and taking it from there. */
#pragma once

#include "base/python.h"
#include "hamr/exchange.h"

const hamr_exchange *exchange_get(void); /* NULL, with an exception */
void exchange_of_another(void);          /* raises ImportError: the library is not that of Python's package */
int exchange_raise(void);                /* what the calling thread's last failure in C was; -1 */
int exchange_raise_as(const hamr_failure *failure); /* the same of one that is told; -1 */
void exchange_end(struct Share *share, uint64_t stream); /* any thread; there was a share, so there is a library */
int exchange_users(const struct Share *share);
