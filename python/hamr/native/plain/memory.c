#include "plain/memory.h"

hamr_array memory_whole(const Memory *memory, int64_t dimensions[2]) {
    dimensions[0] = (int64_t)memory->size;
    dimensions[1] = 1;
    return (hamr_array){
        .base = memory->base, .size = memory->size, .pointer = memory->base, .stream = memory->stream,
        .allocator = memory->allocator, .device = memory->device, .element = HAMR_UINT8, .ndim = 1,
        .shape = dimensions, .strides = dimensions + 1,
    };
}
