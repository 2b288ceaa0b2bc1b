#include "ticks.h"

double ticks_per_second(void) {
    static double rate;
    if (rate > 0) {
        return rate;
    }
    uint64_t start = ticks_nanoseconds(), start_ticks = ticks_now(), now;
    do {
        now = ticks_nanoseconds();
    } while (now - start < 20000000u);
    rate = (double)(ticks_now() - start_ticks) / ((double)(now - start) / 1e9);
    return rate;
}
