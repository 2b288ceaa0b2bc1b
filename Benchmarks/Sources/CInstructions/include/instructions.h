// The processor's own count of instructions, where the kernel and the machine give it out.

#ifndef TIDEMARK_INSTRUCTIONS_H
#define TIDEMARK_INSTRUCTIONS_H

#include <stdint.h>

// Begins to count those that the calling thread spends outside of the kernel. Returns a descriptor
// for the calls below, or -1 where there is no such counter (most virtual machines).
int instructions_open(void);

// The count so far; -1 if it cannot be read.
int64_t instructions_read(int descriptor);

#endif
