/* libhamr.a: for programs that have -lhamr on their command line, as LBL's HAMR needs it. Headers find the
 * library without it; with HAMR_LINKED they call this function, which does the same. */
#include "hamr/open.h"

const hamr_table *hamr_get_table(uint32_t version) { return version == HAMR_TABLE_VERSION ? hamr_get() : NULL; }
