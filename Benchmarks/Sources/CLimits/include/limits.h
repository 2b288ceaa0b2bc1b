// What the machine itself can do, measured in the same run as the engines.

#ifndef TIDEMARK_BENCHMARKS_LIMITS_H
#define TIDEMARK_BENCHMARKS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One measurement; `operations` is 0 if it failed, and `error` then says why.
typedef struct limit_result {
    uint64_t operations;
    uint64_t bytes;
    double seconds;
    char error[160];
} limit_result;

/// One limit. `run` measures for about `seconds` with operations of `size` bytes, in files of the
/// given directory where it needs any; `pool` is `pool_bytes` of values as the engines get them.
typedef struct limit_api {
    /// Stable, e.g. "memcpy", "append-mapping", "rewrite-fdatasync".
    const char *name;
    /// What it measures, in one sentence.
    const char *what;
    /// The sizes of operations at which it is measured, 0-terminated.
    size_t sizes[4];
    limit_result (*run)(
        const char *directory, size_t size, double seconds, const void *pool,
        size_t pool_bytes);
} limit_api;

/// All limits, ended by an entry without a name.
extern const limit_api limits[];

/// The same, for Swift, which does not import arrays of unknown length.
const limit_api *limit_table(void);

#ifdef __cplusplus
}
#endif
#endif
