// Runs the kernels' host version for tests: requests come on standard input,
// answers go to standard output, and any mistake ends the program. Addresses count
// from the start of the memory that comes with the request.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "arguments.h"

extern "C" {
struct hamr_host_kernel {
    const char *name;
    unsigned long argument_size;
    void (*run)(const void *argument, unsigned long long thread, unsigned long long threads);
};
extern const hamr_host_kernel hamr_host_kernels[];
}

namespace {

using hamr::wide;

struct request {
    char kernel[32];
    wide argument_size, threads, memory_size;
};

std::vector<hamr::double_wide> memory;
wide memory_size;

[[noreturn]] void fail(const char *why, wide value)
{
    std::fprintf(stderr, "%s: %llu\n", why, value);
    std::exit(1);
}

void read(void *to, std::size_t size)
{
    if (std::fread(to, 1, size, stdin) != size)
        fail("the request ends early; wanted bytes", size);
}

const hamr_host_kernel &find(const char *name)
{
    for (const hamr_host_kernel *k = hamr_host_kernels; k->name; k++)
        if (std::strcmp(k->name, name) == 0)
            return *k;
    fail(name, 0);
}

void run(const request &r)
{
    const hamr_host_kernel &kernel = find(r.kernel);
    if (r.argument_size != kernel.argument_size)
        fail("the argument's size should be", kernel.argument_size);
    std::vector<wide> argument(r.argument_size / sizeof(wide) + 1);
    read(argument.data(), r.argument_size);
    memory_size = r.memory_size;
    memory.resize(memory_size / sizeof(hamr::double_wide) + 1);
    read(memory.data(), memory_size);
    for (wide thread = 0; thread < r.threads; thread++)
        kernel.run(argument.data(), thread, r.threads);
    std::fwrite(memory.data(), 1, memory_size, stdout);
    std::fflush(stdout);
}

#define FIELD(structure, field) \
    std::printf(#structure "." #field " %zu %zu\n", offsetof(hamr::structure, field), sizeof(hamr::structure::field))

void print_layout()
{
    FIELD(dimension, count);
    FIELD(dimension, multiplier);
    FIELD(dimension, shift);
    FIELD(dimension, unused);
    FIELD(dimension, source_stride);
    FIELD(dimension, target_stride);
    FIELD(convert_argument, source);
    FIELD(convert_argument, target);
    FIELD(convert_argument, source_type);
    FIELD(convert_argument, target_type);
    FIELD(convert_argument, count);
    FIELD(convert_argument, dimensions);
    FIELD(convert_argument, source_bytewise);
    FIELD(convert_argument, target_bytewise);
    FIELD(convert_argument, inside_out);
    FIELD(line_argument, source);
    FIELD(line_argument, target);
    FIELD(line_argument, source_type);
    FIELD(line_argument, target_type);
    FIELD(line_argument, width);
    FIELD(line_argument, groups);
    FIELD(transpose_argument, source);
    FIELD(transpose_argument, target);
    FIELD(transpose_argument, size);
    FIELD(transpose_argument, tiles);
    FIELD(transpose_argument, dimensions);
    FIELD(transpose_argument, rows);
    FIELD(transpose_argument, columns);
    FIELD(transpose_argument, unused);
    FIELD(transpose_argument, row_source_stride);
    FIELD(transpose_argument, row_target_stride);
    FIELD(transpose_argument, column_source_stride);
    FIELD(transpose_argument, column_target_stride);
    FIELD(transpose_argument, inside_out);
    FIELD(fill_argument, target);
    FIELD(fill_argument, bytes);
    FIELD(fill_argument, pattern);
    FIELD(fill_argument, period);
    FIELD(fill_argument, unused);
    FIELD(copy_run, target);
    FIELD(copy_run, source);
    FIELD(copy_run, bytes);
    FIELD(copy_run, first);
    FIELD(copy_argument, words);
    FIELD(copy_argument, count);
    FIELD(copy_argument, runs);
    FIELD(block_index, address);
    FIELD(block_index, width);
    FIELD(block_index, extent);
    FIELD(check_argument, to);
    FIELD(check_argument, from);
    FIELD(check_argument, pairs);
    FIELD(check_argument, state);
    FIELD(check_argument, table);
    FIELD(check_argument, table_bits);
    FIELD(check_argument, count);
    FIELD(block_pair, to);
    FIELD(block_pair, from);
    FIELD(block_report, failed);
    FIELD(block_report, value);
    FIELD(blocks_argument, pairs);
    FIELD(blocks_argument, to);
    FIELD(blocks_argument, from);
    FIELD(blocks_argument, state);
    FIELD(blocks_argument, report);
    FIELD(blocks_argument, repeated);
    FIELD(blocks_argument, words);
    FIELD(blocks_argument, word_size);
    FIELD(blocks_argument, planes);
    FIELD(blocks_argument, words_of_block);
    FIELD(blocks_argument, pairs_of_plane);
    FIELD(blocks_argument, room);
}

} // namespace

extern "C" void *hamr_device_pointer(unsigned long long address, unsigned long long size)
{
    if (address > memory_size || size > memory_size - address)
        fail("an address beyond the memory", address);
    if ((size & (size - 1)) == 0 && address % size != 0)
        fail("a misaligned address", address);
    return reinterpret_cast<char *>(memory.data()) + address;
}

int main(int count, char **)
{
    if (count > 1) {
        print_layout();
        return 0;
    }
    request r;
    while (std::fread(&r, sizeof r, 1, stdin) == 1)
        run(r);
    return 0;
}
