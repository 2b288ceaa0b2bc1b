// What the thread sanitizer cannot see of Swift's libraries, which are not built with it. This
// stands between the tests and the functions in question, and tells the sanitizer. tools/sanitize
// loads it before all other libraries (LD_PRELOAD).
//
// Mutexes: whoever finds one taken gets it within the library, or handed over by the kernel. So all
// that two threads do under a mutex for which one of them had to wait looked like a race.
//
// Counts of references: a value that is shared is written in place by the last one who has it. What
// orders that behind the reads of those who had it before is their letting go and the look at the
// count, both within the library. So a reader that takes an array along from under a lock, reads it
// and lets go of it seemed to race with the writer that finds it its own again.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

// Another thread than the first that comes may find `real` set already, to the same.
#define FIND(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

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

static void let_go(void *object) {
    if (object && __tsan_release) __tsan_release(object);
}

// Of a bridged reference: what the tag leaves. Short strings, which are no reference, and literals
// have the highest bit.
static void let_go_of_bridged(uintptr_t reference) {
    if (!(reference >> 63)) let_go((void *)(reference & 0x00fffffffffffff8));
}

void swift_release(void *object) {
    FIND(swift_release);
    let_go(object);
    real(object);
}

void swift_release_n(void *object, uint32_t count) {
    FIND(swift_release_n);
    let_go(object);
    real(object, count);
}

void swift_bridgeObjectRelease(uintptr_t reference) {
    FIND(swift_bridgeObjectRelease);
    let_go_of_bridged(reference);
    real(reference);
}

void swift_bridgeObjectRelease_n(uintptr_t reference, int count) {
    FIND(swift_bridgeObjectRelease_n);
    let_go_of_bridged(reference);
    real(reference, count);
}

static bool told(bool is_unique, void *object) {
    if (is_unique && __tsan_acquire) __tsan_acquire(object);
    return is_unique;
}

bool swift_isUniquelyReferenced_native(void *object) {
    FIND(swift_isUniquelyReferenced_native);
    return told(real(object), object);
}

bool swift_isUniquelyReferenced_nonNull_native(void *object) {
    FIND(swift_isUniquelyReferenced_nonNull_native);
    return told(real(object), object);
}
