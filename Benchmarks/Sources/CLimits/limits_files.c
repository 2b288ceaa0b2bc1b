// The limits of files: appends with and without durability, cached reads, opening.

#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/// A file that grows to more than this is begun again, with the clock stopped: a measurement of
/// any length then needs no more space and leaves no more to write back.
static const size_t file_bytes_max = 256 * MIB;

static const size_t checks_apart = 1024;

/// Ends the measurement: with the failure of a step if there is one.
static limit_result finish(
    const limit_task *task, limit_file *file, limit_result result, const stopwatch *watch,
    const char *failed_step) {
    int number = errno;
    file_remove(file);
    if (failed_step != NULL) return limit_failure(failed_step, number);
    result.seconds = watch->elapsed;
    result.bytes = result.operations * task->size;
    return result;
}

/// Zeros are written and the pages made present and writable, so that a store to them is no fault.
static unsigned char *map_prepared(const limit_file *file, size_t bytes) {
    if (posix_fallocate(file->descriptor, 0, (off_t)bytes) != 0) return NULL;
    if (file_fill(file, NULL, bytes) != 0) return NULL;
    void *area = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor, 0);
    if (area == MAP_FAILED) return NULL;
    if (madvise(area, bytes, MADV_POPULATE_WRITE) != 0) {
        // Linux before 5.14 does not know it: one store a page does the same.
        for (size_t offset = 0; offset < bytes; offset += 4096) {
            ((volatile unsigned char *)area)[offset] = 0;
        }
    }
    return area;
}

limit_result measure_append_mapping(const limit_task *task) {
    limit_file file;
    limit_result result = {0};
    stopwatch watch = {0};
    if (task->pool_bytes < task->size) return limit_failure("the pool is too small", 0);
    if (file_create(task, &file) != 0) return limit_failure("creating the file", errno);
    unsigned char *area = map_prepared(&file, file_bytes_max);
    if (area == NULL) return finish(task, &file, result, &watch, "preparing the mapping");
    size_t area_last = file_bytes_max - task->size;
    size_t pool_last = task->pool_bytes - task->size;
    size_t offset = 0, from = 0;
    stopwatch_start(&watch);
    do {
        for (size_t index = 0; index < checks_apart; index++) {
            memcpy(area + offset, task->pool + from, task->size);
            consume((uint64_t)(uintptr_t)area);
            offset += task->size;
            from += task->size;
            if (offset > area_last) offset = 0;
            if (from > pool_last) from = 0;
        }
        result.operations += checks_apart;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    munmap(area, file_bytes_max);
    return finish(task, &file, result, &watch, NULL);
}

limit_result measure_append_write(const limit_task *task) {
    limit_file file;
    limit_result result = {0};
    stopwatch watch = {0};
    if (task->pool_bytes < task->size) return limit_failure("the pool is too small", 0);
    if (file_create(task, &file) != 0) return limit_failure("creating the file", errno);
    size_t pool_last = task->pool_bytes - task->size;
    size_t from = 0;
    double elapsed = 0;
    while (elapsed < task->seconds) {
        if (ftruncate(file.descriptor, 0) != 0 || lseek(file.descriptor, 0, SEEK_SET) != 0) {
            return finish(task, &file, result, &watch, "emptying the file");
        }
        size_t written = 0;
        stopwatch_start(&watch);
        do {
            for (size_t index = 0; index < 128; index++) {
                if (write_whole(file.descriptor, task->pool + from, task->size) != 0) {
                    return finish(task, &file, result, &watch, "writing a record");
                }
                from += task->size;
                if (from > pool_last) from = 0;
            }
            result.operations += 128;
            written += 128 * task->size;
            elapsed = stopwatch_read(&watch);
        } while (elapsed < task->seconds && written < file_bytes_max);
        stopwatch_stop(&watch);
    }
    return finish(task, &file, result, &watch, NULL);
}

limit_result measure_sequential_write(const limit_task *task) {
    limit_file file;
    limit_result result = {0};
    stopwatch watch = {0};
    if (file_create(task, &file) != 0) return limit_failure("creating the file", errno);
    unsigned char *source = area_make(task->size);
    if (source == NULL) return finish(task, &file, result, &watch, "making a buffer");
    fill_from_pool(task, source, task->size);
    const char *failed_step = NULL;
    double elapsed = 0;
    while (elapsed < task->seconds && failed_step == NULL) {
        if (ftruncate(file.descriptor, 0) != 0 || lseek(file.descriptor, 0, SEEK_SET) != 0) {
            failed_step = "emptying the file";
            break;
        }
        size_t written = 0;
        stopwatch_start(&watch);
        do {
            if (write_whole(file.descriptor, source, task->size) != 0) {
                failed_step = "writing";
                break;
            }
            result.operations += 1;
            written += task->size;
            elapsed = stopwatch_read(&watch);
        } while (elapsed < task->seconds && written < file_bytes_max);
        if (failed_step == NULL && fdatasync(file.descriptor) != 0) failed_step = "fdatasync";
        stopwatch_stop(&watch);
        elapsed = watch.elapsed;
    }
    int number = errno;
    area_free(source, task->size);
    errno = number;
    return finish(task, &file, result, &watch, failed_step);
}

/// Writes and fdatasync in turn. The file is `file_bytes` long when the position returns to its
/// beginning: 0 for one that grows without end.
static limit_result write_and_sync(
    const limit_task *task, limit_file *file, size_t file_bytes) {
    limit_result result = {0};
    stopwatch watch = {0};
    const char *failed_step = NULL;
    size_t offset = 0;
    stopwatch_start(&watch);
    do {
        ssize_t written = pwrite(file->descriptor, task->pool, task->size, (off_t)offset);
        if (written != (ssize_t)task->size) {
            failed_step = "writing a block";
            break;
        }
        if (fdatasync(file->descriptor) != 0) {
            failed_step = "fdatasync";
            break;
        }
        result.operations += 1;
        offset += task->size;
        if (offset == file_bytes) offset = 0;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    return finish(task, file, result, &watch, failed_step);
}

limit_result measure_append_fdatasync(const limit_task *task) {
    limit_file file;
    if (task->pool_bytes < task->size) return limit_failure("the pool is too small", 0);
    if (file_create(task, &file) != 0) return limit_failure("creating the file", errno);
    return write_and_sync(task, &file, 0);
}

limit_result measure_rewrite_fdatasync(const limit_task *task) {
    const size_t file_bytes = 16 * MIB;
    limit_file file;
    if (task->pool_bytes < task->size) return limit_failure("the pool is too small", 0);
    if (file_create(task, &file) != 0) return limit_failure("creating the file", errno);
    if (file_fill(&file, NULL, file_bytes) != 0 || fsync(file.descriptor) != 0) {
        stopwatch watch = {0};
        return finish(task, &file, (limit_result){0}, &watch, "writing the blocks at first");
    }
    return write_and_sync(task, &file, file_bytes);
}

limit_result measure_pread_cached(const limit_task *task) {
    limit_file file;
    limit_result result = {0};
    stopwatch watch = {0};
    unsigned char target[4096];
    if (task->size > sizeof target) return limit_failure("reads of more than 4 KiB", 0);
    if (file_create(task, &file) != 0) return limit_failure("creating the file", errno);
    if (file_fill(&file, NULL, file_bytes_max) != 0) {
        return finish(task, &file, result, &watch, "writing the file");
    }
    // Reads it once, so that all of it is in the page cache even if some was written back.
    for (size_t offset = 0; offset < file_bytes_max; offset += task->size) {
        if (pread(file.descriptor, target, task->size, (off_t)offset) <= 0) {
            return finish(task, &file, result, &watch, "reading the file at first");
        }
    }
    uint64_t state = 1;
    const uint64_t blocks = file_bytes_max / task->size;
    stopwatch_start(&watch);
    do {
        for (size_t index = 0; index < 128; index++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            off_t offset = (off_t)((state >> 33) % blocks * task->size);
            if (pread(file.descriptor, target, task->size, offset) != (ssize_t)task->size) {
                return finish(task, &file, result, &watch, "reading a block");
            }
            consume((uint64_t)(uintptr_t)target);
        }
        result.operations += 128;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    return finish(task, &file, result, &watch, NULL);
}

limit_result measure_open_close(const limit_task *task) {
    limit_file file;
    limit_result result = {0};
    stopwatch watch = {0};
    struct stat status;
    if (file_create(task, &file) != 0) return limit_failure("creating the file", errno);
    stopwatch_start(&watch);
    do {
        for (size_t index = 0; index < 16; index++) {
            int descriptor = open(file.path, O_RDONLY | O_CLOEXEC);
            if (descriptor < 0) return finish(task, &file, result, &watch, "opening the file");
            int failed = fstat(descriptor, &status);
            close(descriptor);
            if (failed) return finish(task, &file, result, &watch, "fstat");
            consume((uint64_t)status.st_size);
        }
        result.operations += 16;
    } while (stopwatch_read(&watch) < task->seconds);
    stopwatch_stop(&watch);
    limit_result finished = finish(task, &file, result, &watch, NULL);
    finished.bytes = 0;
    return finished;
}
