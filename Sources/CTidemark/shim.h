#pragma once

#include <linux/magic.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>

// What Swift cannot say, and what its view of the C library leaves out.

// Has the processor fetch the cache line at an address, which may be any, while it goes on.
static inline void tidemark_prefetch(const void *address) { __builtin_prefetch(address); }

// Linux's, declared by the C library only for those who ask for all extensions.
int sync_file_range(int descriptor, off_t offset, off_t count, unsigned int flags);
int renameat2(
    int old_directory, const char *old_name, int new_directory, const char *new_name,
    unsigned int flags);
long syscall(long number, ...);
void *mremap(void *address, size_t old_size, size_t new_size, int flags, ...);

// Puts what is mapped at one address in the place of what is mapped at another, in one step; both
// begin and end with pages. 0, or -1 with errno.
static inline int tidemark_move_mapping(void *source, size_t count, void *target) {
    const int may_move_to_fixed = 1 | 2;
    return mremap(source, count, count, may_move_to_fixed, target) == (void *)-1 ? -1 : 0;
}

// Whether the pages of an open file are those that its file system writes out, so that the kernel
// notes in them what could not be written. Those of a file system that stands before another one,
// such as overlayfs, are not.
static inline int tidemark_keeps_pages_itself(int descriptor) {
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0) return 0;
    switch (status.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
        return 1;
    default:
        return 0;
    }
}

// The number of a file on its file system, and when that file was made, in nanoseconds since 1970.
// 0, or -1 if the file system does not tell both.
static inline int tidemark_place(
    const char *path, unsigned long long *number, unsigned long long *made) {
    const int from_here = -100;  // AT_FDCWD, of a header that brings more than this module wants.
    const unsigned int wanted = STATX_INO | STATX_BTIME;
    struct statx status;
    if (syscall(SYS_statx, from_here, path, 0, wanted, &status) != 0) return -1;
    if ((status.stx_mask & wanted) != wanted) return -1;
    *number = status.stx_ino;
    *made = (unsigned long long)status.stx_btime.tv_sec * 1000000000 + status.stx_btime.tv_nsec;
    return 0;
}
