#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

limit_result limit_failure(const char *step, int number) {
    limit_result result = {0};
    if (number == 0) {
        snprintf(result.error, sizeof result.error, "%s", step);
    } else {
        snprintf(result.error, sizeof result.error, "%s: %s", step, strerror(number));
    }
    return result;
}

unsigned char *area_make(size_t bytes) {
    void *area = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return area == MAP_FAILED ? NULL : area;
}

void area_free(unsigned char *area, size_t bytes) {
    if (area != NULL) munmap(area, bytes);
}

void fill_from_pool(const limit_task *task, unsigned char *target, size_t bytes) {
    while (bytes > 0) {
        size_t piece = bytes < task->pool_bytes ? bytes : task->pool_bytes;
        memcpy(target, task->pool, piece);
        target += piece;
        bytes -= piece;
    }
}

int file_create(const limit_task *task, limit_file *file) {
    int length = snprintf(
        file->path, sizeof file->path, "%s/limit-%d.data", task->directory, (int)getpid());
    if (length < 0 || (size_t)length >= sizeof file->path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    file->descriptor = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return file->descriptor < 0 ? -1 : 0;
}

void file_remove(limit_file *file) {
    close(file->descriptor);
    unlink(file->path);
}

int write_whole(int descriptor, const void *bytes, size_t count) {
    ssize_t written = write(descriptor, bytes, count);
    if (written < 0) return -1;
    if ((size_t)written == count) return 0;
    errno = ENOSPC;
    return -1;
}

int file_fill(const limit_file *file, const unsigned char *source, size_t bytes) {
    unsigned char *zeros = NULL;
    if (source == NULL) {
        zeros = area_make(MIB);
        if (zeros == NULL) return -1;
    }
    int failed = 0;
    for (size_t done = 0; done < bytes && !failed;) {
        size_t piece = bytes - done < MIB ? bytes - done : MIB;
        failed = write_whole(file->descriptor, zeros ? zeros : source + done, piece);
        done += piece;
    }
    int number = errno;
    area_free(zeros, MIB);
    errno = number;
    return failed;
}
