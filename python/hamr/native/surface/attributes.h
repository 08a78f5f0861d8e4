/* What an array says of itself. */
#pragma once

#include "base/python.h"

#include <structmember.h>

extern PyGetSetDef array_attributes[];
extern PyMemberDef array_members[];
