// What the measurements of this target share: a stopwatch, failures, areas of memory, files.

#ifndef TIDEMARK_BENCHMARKS_LIMITS_SUPPORT_H
#define TIDEMARK_BENCHMARKS_LIMITS_SUPPORT_H

// Linux's own calls are wanted; each file of the target includes this header first.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "limits.h"

#include <time.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/// As large as no cache of the processors in use, so that each pass over it comes from memory.
#define LARGE_AREA_BYTES (256 * MIB)

/// The parameters of a limit's `run`, passed on as one.
typedef struct limit_task {
    const char *directory;
    size_t size;
    double seconds;
    const unsigned char *pool;
    size_t pool_bytes;
} limit_task;

/// Counts the seconds between `stopwatch_start` and `stopwatch_stop`, over any number of pairs.
typedef struct stopwatch {
    double elapsed;
    double started;
} stopwatch;

static inline double monotonic_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void stopwatch_start(stopwatch *watch) {
    watch->started = monotonic_seconds();
}

static inline void stopwatch_stop(stopwatch *watch) {
    watch->elapsed += monotonic_seconds() - watch->started;
}

/// The seconds so far; only while the stopwatch runs.
static inline double stopwatch_read(const stopwatch *watch) {
    return watch->elapsed + (monotonic_seconds() - watch->started);
}

/// Makes the compiler believe that the value is used and that memory may be read after it, so
/// that the work that led to it stays.
static inline void consume(uint64_t value) {
    __asm__ volatile("" : : "r"(value) : "memory");
}

/// A result that says which step failed, with the text of the given errno unless that is 0.
limit_result limit_failure(const char *step, int number);

/// Anonymous memory with all pages present; NULL if there is not enough.
unsigned char *area_make(size_t bytes);
void area_free(unsigned char *area, size_t bytes);

/// Fills memory with the bytes of the pool, again and again.
void fill_from_pool(const limit_task *task, unsigned char *target, size_t bytes);

/// A file of the task's directory that is unlinked when it is closed.
typedef struct limit_file {
    int descriptor;
    char path[4096];
} limit_file;

/// Opens a new file; -1 and errno if that fails, and then there is nothing to close.
int file_create(const limit_task *task, limit_file *file);
void file_remove(limit_file *file);

/// Writes `bytes` bytes of the source or of zeros (source NULL) at the file's position, in pieces
/// of 1 MiB; -1 and errno if that fails.
int file_fill(const limit_file *file, const unsigned char *source, size_t bytes);

/// One write of all the bytes; -1 and errno if it fails, ENOSPC if it was cut short.
int write_whole(int descriptor, const void *bytes, size_t count);

limit_result measure_memcpy(const limit_task *task);
limit_result measure_memcpy_large_area(const limit_task *task);
limit_result measure_xxh3(const limit_task *task);
limit_result measure_lz4_compress(const limit_task *task);
limit_result measure_lz4_decompress(const limit_task *task);
limit_result measure_cache_miss_load(const limit_task *task);
limit_result measure_append_mapping(const limit_task *task);
limit_result measure_append_write(const limit_task *task);
limit_result measure_sequential_write(const limit_task *task);
limit_result measure_append_fdatasync(const limit_task *task);
limit_result measure_rewrite_fdatasync(const limit_task *task);
limit_result measure_pread_cached(const limit_task *task);
limit_result measure_open_close(const limit_task *task);
limit_result measure_loopback_throughput(const limit_task *task);
limit_result measure_loopback_roundtrip(const limit_task *task);

#endif
