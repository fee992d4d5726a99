/* nvdb_crc.c - the checksum of NanoVDB files: CRC-32, polynomial 0xEDB88320, eight bytes a step. */
#include "nvdb_format.h"

#include <pthread.h>
#include <string.h>

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

uint32_t vx__nvdb_crc32(uint32_t crc, const void *bytes, uint64_t n)
{
    const unsigned char *p = bytes;
    pthread_once(&once, make_table);
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t lo, hi;
        memcpy(&lo, p, 4);
        memcpy(&hi, p + 4, 4);
        lo ^= crc;
        crc = table[7][lo & 255] ^ table[6][lo >> 8 & 255] ^ table[5][lo >> 16 & 255] ^ table[4][lo >> 24] ^
              table[3][hi & 255] ^ table[2][hi >> 8 & 255] ^ table[1][hi >> 16 & 255] ^ table[0][hi >> 24];
    }
    for (; n; n--)
        crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
    return ~crc;
}
