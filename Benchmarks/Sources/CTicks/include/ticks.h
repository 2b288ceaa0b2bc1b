// One clock for all engines: the cheapest monotonic counter that the processor has.

#ifndef TIDEMARK_BENCHMARKS_TICKS_H
#define TIDEMARK_BENCHMARKS_TICKS_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/// Nanoseconds of the monotonic clock; about 25 ns a call.
static inline uint64_t ticks_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/// Ticks of a constant-rate counter; about 8 ns a call on x86-64. Elsewhere nanoseconds.
static inline uint64_t ticks_now(void) {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return ticks_nanoseconds();
#endif
}

/// How many ticks pass in a second, measured once against the monotonic clock.
double ticks_per_second(void);

#endif
