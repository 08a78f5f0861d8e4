/* Whether the calling thread has Python's lock: asked by code that comes without a word of it. */
#pragma once

int lock_held(void); /* and runs the interpreter that imported this module */
int lock_setup(void);
