#ifndef HAMR_BASE_SIGNAL_STACK_H
#define HAMR_BASE_SIGNAL_STACK_H

void keep_signal_stack(void); /* for the interpreter's end, on its main thread */

#endif
