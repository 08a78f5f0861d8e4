/* What an array says of itself. */
#ifndef HAMR_SURFACE_ATTRIBUTES_H
#define HAMR_SURFACE_ATTRIBUTES_H

#include "base/python.h"

#include <structmember.h>

extern PyGetSetDef array_attributes[];
extern PyMemberDef array_members[];

#endif
