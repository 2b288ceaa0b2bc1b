#include "allocations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

// What glibc's own symbols stand for. They are part of its ABI, and calling them, rather than
// looking the next malloc up by dlsym, needs no memory while the process starts.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

// In the executable, so its place is known when a thread starts: touching it allocates nothing.
static _Thread_local uint64_t of_thread;
static atomic_uint_fast64_t of_process;

static void count(void) {
    of_thread += 1;
    atomic_fetch_add_explicit(&of_process, 1, memory_order_relaxed);
}

uint64_t allocations_of_thread(void) { return of_thread; }

uint64_t allocations_of_process(void) {
    return atomic_load_explicit(&of_process, memory_order_relaxed);
}

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    count();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) {
        return EINVAL;
    }
    count();
    void *memory = __libc_memalign(alignment, size);
    if (memory == NULL) {
        return ENOMEM;
    }
    *result = memory;
    return 0;
}
