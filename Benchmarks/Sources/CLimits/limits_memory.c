// The limits of processor and memory: copies, hashes, compression, a load that misses all caches.

#include "support.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/// Small enough for the first-level cache with source and target.
static const size_t cached_area_bytes = 8 * KIB;

/// Copies of `size` bytes between two areas, front to back, again and again. The clock is read
/// only now and then: reading it costs as much as several small copies.
static limit_result copy_between(
    const limit_task *task, unsigned char *target, const unsigned char *source, size_t bytes) {
    // About as many bytes for each size, so that large copies do not run on after the end.
    const size_t per_check = task->size < 4 * MIB ? 4 * MIB / task->size : 1;
    size_t last = bytes - task->size;
    limit_result result = {0};
    stopwatch watch = {0};
    size_t offset = 0;
    stopwatch_start(&watch);
    do {
        for (size_t index = 0; index < per_check; index++) {
            memcpy(target + offset, source + offset, task->size);
            consume((uint64_t)(uintptr_t)target);
            offset += task->size;
            if (offset > last) offset = 0;
        }
        result.operations += per_check;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    result.seconds = watch.elapsed;
    result.bytes = result.operations * task->size;
    return result;
}

static limit_result copy_within_area(const limit_task *task, size_t bytes) {
    // Addresses that are equal but for a multiple of 4 KiB hinder each other in the processor:
    // loads of the source then wait for stores to the target that came shortly before. With this
    // distance none of the last 3 KiB of stores is in the way.
    const size_t skew = 3 * KIB + 512;
    size_t area_bytes = 2 * bytes + skew;
    unsigned char *area = area_make(area_bytes);
    if (area == NULL) return limit_failure("no memory to copy in", 0);
    fill_from_pool(task, area, area_bytes);
    limit_result result = copy_between(task, area + bytes + skew, area, bytes);
    area_free(area, area_bytes);
    return result;
}

limit_result measure_memcpy(const limit_task *task) {
    return copy_within_area(task, cached_area_bytes);
}

limit_result measure_memcpy_large_area(const limit_task *task) {
    return copy_within_area(task, LARGE_AREA_BYTES / 2);
}

limit_result measure_xxh3(const limit_task *task) {
    const size_t per_check = 1024;
    if (task->pool_bytes < task->size) return limit_failure("the pool is too small", 0);
    size_t last = task->pool_bytes - task->size;
    // As much of the pool as stays in the caches: the hash is the limit, not the memory.
    if (last > 16 * KIB) last = 16 * KIB;
    limit_result result = {0};
    stopwatch watch = {0};
    size_t offset = 0;
    stopwatch_start(&watch);
    do {
        for (size_t index = 0; index < per_check; index++) {
            consume(XXH3_64bits(task->pool + offset, task->size));
            offset += task->size;
            if (offset > last) offset = 0;
        }
        result.operations += per_check;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    result.seconds = watch.elapsed;
    result.bytes = result.operations * task->size;
    return result;
}

/// As many different blocks as are compressed in turn; the compressor must not learn one by heart.
enum { lz4_blocks_max = 512 };

static size_t lz4_block_count(const limit_task *task) {
    size_t count = task->pool_bytes / task->size;
    return count < lz4_blocks_max ? count : lz4_blocks_max;
}

limit_result measure_lz4_compress(const limit_task *task) {
    size_t count = lz4_block_count(task);
    if (count == 0) return limit_failure("the pool is smaller than a block", 0);
    int bound = LZ4_compressBound((int)task->size);
    char *target = malloc((size_t)bound);
    if (target == NULL) return limit_failure("no memory for a block", 0);
    limit_result result = {0};
    stopwatch watch = {0};
    size_t block = 0;
    stopwatch_start(&watch);
    do {
        const char *source = (const char *)task->pool + block * task->size;
        int length = LZ4_compress_default(source, target, (int)task->size, bound);
        if (length <= 0) {
            free(target);
            return limit_failure("LZ4 could not compress a block", 0);
        }
        consume((uint64_t)length);
        block = block + 1 == count ? 0 : block + 1;
        result.operations += 1;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    free(target);
    result.seconds = watch.elapsed;
    result.bytes = result.operations * task->size;
    return result;
}

/// Decompresses the blocks in turn; `bound` bytes lie between their beginnings.
static limit_result decompress_blocks(
    const limit_task *task, const char *blocks, const int *lengths, size_t count, int bound,
    char *target) {
    limit_result result = {0};
    stopwatch watch = {0};
    size_t block = 0;
    stopwatch_start(&watch);
    do {
        const char *source = blocks + block * (size_t)bound;
        int length = LZ4_decompress_safe(source, target, lengths[block], (int)task->size);
        if (length != (int)task->size) {
            return limit_failure("LZ4 could not decompress a block", 0);
        }
        consume((uint64_t)(uintptr_t)target);
        block = block + 1 == count ? 0 : block + 1;
        result.operations += 1;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    result.seconds = watch.elapsed;
    result.bytes = result.operations * task->size;
    return result;
}

limit_result measure_lz4_decompress(const limit_task *task) {
    size_t count = lz4_block_count(task);
    if (count == 0) return limit_failure("the pool is smaller than a block", 0);
    int bound = LZ4_compressBound((int)task->size);
    char *blocks = malloc(count * (size_t)bound);
    char *target = malloc(task->size);
    int lengths[lz4_blocks_max] = {0};
    limit_result result;
    if (blocks == NULL || target == NULL) {
        result = limit_failure("no memory for the blocks", 0);
    } else {
        for (size_t block = 0; block < count; block++) {
            lengths[block] = LZ4_compress_default(
                (const char *)task->pool + block * task->size, blocks + block * (size_t)bound,
                (int)task->size, bound);
        }
        result = decompress_blocks(task, blocks, lengths, count, bound, target);
    }
    free(blocks);
    free(target);
    return result;
}

/// A small generator of its own (xorshift), so that each run follows the same chain.
static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/// Each line of 64 bytes holds the number of the next. Sattolo's shuffle makes the chain one cycle
/// through all lines, so no part of it can come to rest in a cache.
static void link_lines(unsigned char *area, size_t line_bytes, size_t count) {
    for (size_t index = 0; index < count; index++) {
        *(uint64_t *)(void *)(area + index * line_bytes) = index;
    }
    uint64_t state = 0x9E3779B97F4A7C15;
    for (size_t index = count - 1; index > 0; index--) {
        size_t other = (size_t)(next_random(&state) % index);
        uint64_t *one = (uint64_t *)(void *)(area + index * line_bytes);
        uint64_t *two = (uint64_t *)(void *)(area + other * line_bytes);
        uint64_t kept = *one;
        *one = *two;
        *two = kept;
    }
}

limit_result measure_cache_miss_load(const limit_task *task) {
    const size_t line_bytes = 64, per_check = 1024;
    unsigned char *area = area_make(LARGE_AREA_BYTES);
    if (area == NULL) return limit_failure("no memory for the chain", 0);
    link_lines(area, line_bytes, LARGE_AREA_BYTES / line_bytes);
    limit_result result = {0};
    stopwatch watch = {0};
    uint64_t line = 0;
    stopwatch_start(&watch);
    do {
        for (size_t index = 0; index < per_check; index++) {
            line = *(const uint64_t *)(const void *)(area + line * line_bytes);
        }
        consume(line);
        result.operations += per_check;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    area_free(area, LARGE_AREA_BYTES);
    result.seconds = watch.elapsed;
    result.bytes = result.operations * task->size;
    return result;
}
