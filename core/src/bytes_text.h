/* bytes_text.h - sizes in words: "12 bytes", "1.5 KiB", "64 MiB" (internal to core). */
#ifndef VX__BYTES_TEXT_H
#define VX__BYTES_TEXT_H

#include <stdint.h>
#include <stdio.h>

struct vx__bytes_text {
    char text[24];
};

static inline struct vx__bytes_text vx__bytes_text(uint64_t n_bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct vx__bytes_text out;
    double v = (double)n_bytes;
    int unit = 0;
    for (; v >= 1024 && unit < 6; unit++)
        v /= 1024;
    snprintf(out.text, sizeof out.text, "%.4g %s", v, units[unit]);
    return out;
}

#endif
