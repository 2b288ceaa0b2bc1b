// Counts how often memory is asked of the heap, by everything in the process: linking this target
// into an executable puts its malloc, calloc, realloc, posix_memalign, aligned_alloc and memalign
// in front of those of glibc, which still do the work.

#ifndef TIDEMARK_ALLOCATIONS_H
#define TIDEMARK_ALLOCATIONS_H

#include <stdint.h>

// Requests of the calling thread since it began.
uint64_t allocations_of_thread(void);

// Requests of all threads since the process began.
uint64_t allocations_of_process(void);

#endif
