/*
 * CRC32C, reflected polynomial 0x82f63b78: by the processor's instruction where SSE4.2 exists (asked at run
 * time), three stretches at once; else eight tables that take eight bytes a step.
 */
#include "vx/wire.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t c = i;
        for (int k = 0; k < 8; ++k)
            c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; ++i)
        for (int t = 1; t < 8; ++t)
            table[t][i] = table[t - 1][i] >> 8 ^ table[0][table[t - 1][i] & 0xff];
}

uint32_t vxw_crc32c_portable(uint32_t crc, const void *data, size_t n)
{
    pthread_once(&once, make_tables);
    const uint8_t *p = data;
    uint32_t c = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        v ^= c;
        c = table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
            table[4][v >> 24 & 0xff] ^ table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^
            table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
    }
    while (n--)
        c = c >> 8 ^ table[0][(c ^ *p++) & 0xff];
    return ~c;
}

#if defined(__x86_64__) && defined(__GNUC__)
/*
 * The instruction takes a result every cycle and three cycles for each, so three stretches are worked on at
 * once. A checksum goes on behind another one by linearity: what n bytes of zeros make of a state is a matrix
 * over bits, kept as four tables of what each byte of the state turns into.
 */
enum { STRETCH = 1024, WORDS = STRETCH / 8 };
static uint32_t behind[4][256]; /* STRETCH zero bytes behind a state */
static pthread_once_t behind_once = PTHREAD_ONCE_INIT;

__attribute__((target("sse4.2"))) static void make_behind(void)
{
    for (int byte = 0; byte < 4; ++byte) {
        for (uint32_t v = 1; v < 256; v += v) {
            uint64_t c = v << 8 * byte;
            for (int i = 0; i < WORDS; ++i)
                c = __builtin_ia32_crc32di(c, 0);
            for (uint32_t below = 0; below < v; ++below)
                behind[byte][v + below] = behind[byte][below] ^ (uint32_t)c;
        }
    }
}

static uint32_t move_on(uint32_t c)
{
    return behind[0][c & 0xff] ^ behind[1][c >> 8 & 0xff] ^ behind[2][c >> 16 & 0xff] ^ behind[3][c >> 24];
}

static uint64_t word_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t c = ~crc;
    if (n >= 3 * STRETCH)
        pthread_once(&behind_once, make_behind);
    for (; n >= 3 * STRETCH; n -= 3 * STRETCH, p += 3 * STRETCH) {
        uint64_t second = 0, third = 0;
        for (int i = 0; i < STRETCH; i += 8) {
            c = __builtin_ia32_crc32di(c, word_at(p + i));
            second = __builtin_ia32_crc32di(second, word_at(p + STRETCH + i));
            third = __builtin_ia32_crc32di(third, word_at(p + 2 * STRETCH + i));
        }
        c = move_on(move_on((uint32_t)c) ^ (uint32_t)second) ^ (uint32_t)third;
    }
    for (; n >= 8; n -= 8, p += 8)
        c = __builtin_ia32_crc32di(c, word_at(p));
    uint32_t c32 = (uint32_t)c;
    while (n--)
        c32 = __builtin_ia32_crc32qi(c32, *p++);
    return ~c32;
}

uint32_t vxw_crc32c(uint32_t crc, const void *data, size_t n)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, data, n) : vxw_crc32c_portable(crc, data, n);
}
#else
uint32_t vxw_crc32c(uint32_t crc, const void *data, size_t n)
{
    return vxw_crc32c_portable(crc, data, n);
}
#endif
