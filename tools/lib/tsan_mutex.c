// What the thread sanitizer cannot see of the mutexes of Swift's standard library, which is not
// built with it: whoever finds one taken gets it within the library, or handed over by the kernel.
// So all that two threads do under a mutex for which one of them had to wait looks like a race.
// This stands between the tests and the two functions for that case, and tells the sanitizer.
// tools/sanitize loads it before all other libraries (LD_PRELOAD).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

// A method of Swift: `self` is the address of the mutex.
#define SELF void *self __attribute__((swift_context))

__attribute__((swiftcall)) void lock_slow(uint32_t thread, SELF) __asm__(LOCK_SLOW);
__attribute__((swiftcall)) void unlock_slow(SELF) __asm__(UNLOCK_SLOW);

__attribute__((swiftcall)) void lock_slow(uint32_t thread, SELF) {
    typedef __attribute__((swiftcall)) void function(uint32_t thread, SELF);
    static function *real;
    if (!real) real = (function *)dlsym(RTLD_NEXT, LOCK_SLOW);
    real(thread, self);
    if (__tsan_acquire) __tsan_acquire(self);
}

__attribute__((swiftcall)) void unlock_slow(SELF) {
    typedef __attribute__((swiftcall)) void function(SELF);
    static function *real;
    if (!real) real = (function *)dlsym(RTLD_NEXT, UNLOCK_SLOW);
    if (__tsan_release) __tsan_release(self);
    real(self);
}
