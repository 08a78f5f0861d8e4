/* A signal stack for the main thread's last moments. */
#define _GNU_SOURCE
#include "base/signal_stack.h"

#include <signal.h>
#include <stddef.h>

/* The end of the interpreter takes away the stack that faulthandler gave the main thread
 * for signals, if it still is that one. Objects that end later may enter Go, whose
 * scheduler sends signals, and which ends a process where a thread lost its stack. */
void keep_signal_stack(void) {
    static char room[256 << 10] __attribute__((aligned(16)));
    stack_t now, ours = {.ss_sp = room, .ss_size = sizeof room};
    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & (SS_DISABLE | SS_ONSTACK))) sigaltstack(&ours, NULL);
}
