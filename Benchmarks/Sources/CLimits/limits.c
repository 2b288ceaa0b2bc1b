// The table of the limits: names, what they measure, and at which sizes of operations. 124 and
// 1,048 bytes are records of a 16-byte key and a value of 100 bytes or 1 KiB with a header of 8.

#include "support.h"

/// Turns a measurement of a task into the function that the table wants.
#define RUN(measure)                                                                          \
    static limit_result run_##measure(                                                        \
        const char *directory, size_t size, double seconds, const void *pool,                 \
        size_t pool_bytes) {                                                                  \
        if (pool == NULL || pool_bytes == 0) return limit_failure("the pool is empty", 0);    \
        const limit_task task = {directory, size, seconds, pool, pool_bytes};                 \
        return measure_##measure(&task);                                                      \
    }

RUN(memcpy)
RUN(memcpy_large_area)
RUN(xxh3)
RUN(lz4_compress)
RUN(lz4_decompress)
RUN(cache_miss_load)
RUN(append_mapping)
RUN(append_write)
RUN(sequential_write)
RUN(append_fdatasync)
RUN(rewrite_fdatasync)
RUN(pread_cached)
RUN(open_close)
RUN(loopback_throughput)
RUN(loopback_roundtrip)

const limit_api limits[] = {
    {"memcpy", "Copies inside the first-level cache.", {124, 1048, 4096}, run_memcpy},
    {"memcpy-large-area", "Copies between two areas of 128 MiB, front to back.",
     {124, 1048, 1 << 20}, run_memcpy_large_area},
    {"xxh3", "XXH3 (64 bits) of the system's library, over cached bytes.", {124, 1048, 8192},
     run_xxh3},
    {"lz4-compress", "LZ4 over half compressible blocks; bytes are those before.", {8192},
     run_lz4_compress},
    {"lz4-decompress", "The way back of lz4-compress; bytes are those after.", {8192},
     run_lz4_decompress},
    {"cache-miss-load", "Loads that each wait for the last, at random in 256 MiB.", {8},
     run_cache_miss_load},
    {"append-mapping", "Records copied into a shared file mapping, written with zeros before.",
     {124, 1048}, run_append_mapping},
    {"append-write", "Records appended by one write(2) each.", {124, 1048}, run_append_write},
    {"sequential-write-fdatasync", "Writes of 1 MiB, one fdatasync per 256 MiB counted in.",
     {1 << 20}, run_sequential_write},
    {"append-fdatasync", "Blocks appended to a growing file, fdatasync after each.", {4096},
     run_append_fdatasync},
    {"rewrite-fdatasync", "Blocks over blocks already written, fdatasync after each.", {4096},
     run_rewrite_fdatasync},
    {"pread-cached", "pread(2) at random offsets of a file of 256 MiB in the page cache.",
     {4096}, run_pread_cached},
    {"open-close-file", "open, fstat and close of a file that exists.", {1}, run_open_close},
    {"loopback-tcp-throughput", "Writes of 256 KiB through 127.0.0.1, one way.", {256 << 10},
     run_loopback_throughput},
    {"loopback-tcp-roundtrip", "64 bytes through 127.0.0.1 and back, TCP_NODELAY.", {64},
     run_loopback_roundtrip},
    {NULL, NULL, {0}, NULL},
};

const limit_api *limit_table(void) {
    return limits;
}
