/*
 * sha256.h - SHA-256 as a stream, for host and device code alike.
 *
 * Source: FIPS 180-4.
 */
#ifndef VXK_BODY_SHA256_H
#define VXK_BODY_SHA256_H

#include "../dev.h"

struct vxk_sha256 {
    uint32_t h[8];
    uint32_t block[16]; /* big-endian words of the block being filled */
    uint64_t n_bytes;
};

VXK_CONST uint32_t vxk_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

VXK_FN uint32_t vxk_rotr32(uint32_t x, uint32_t n)
{
    return x >> n | x << (32 - n);
}

VXK_FN void vxk_sha256_init(struct vxk_sha256 *s)
{
    const uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int i = 0; i < 8; i++)
        s->h[i] = h[i];
    for (int i = 0; i < 16; i++)
        s->block[i] = 0;
    s->n_bytes = 0;
}

VXK_FN void vxk_sha256_block(struct vxk_sha256 *s)
{
    uint32_t w[16], v[8];
    for (int i = 0; i < 8; i++)
        v[i] = s->h[i];
    for (int i = 0; i < 16; i++) {
        w[i] = s->block[i];
        s->block[i] = 0;
    }
    for (int i = 0; i < 64; i++) {
        uint32_t t1, t2;
        if (i >= 16) {
            uint32_t a = w[(i + 1) & 15], b = w[(i + 14) & 15];
            w[i & 15] += (vxk_rotr32(a, 7) ^ vxk_rotr32(a, 18) ^ a >> 3) + w[(i + 9) & 15] +
                         (vxk_rotr32(b, 17) ^ vxk_rotr32(b, 19) ^ b >> 10);
        }
        t1 = v[7] + (vxk_rotr32(v[4], 6) ^ vxk_rotr32(v[4], 11) ^ vxk_rotr32(v[4], 25)) +
             ((v[4] & v[5]) ^ (~v[4] & v[6])) + vxk_sha256_k[i] + w[i & 15];
        t2 = (vxk_rotr32(v[0], 2) ^ vxk_rotr32(v[0], 13) ^ vxk_rotr32(v[0], 22)) +
             ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        for (int k = 7; k > 0; k--)
            v[k] = v[k - 1];
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

VXK_FN void vxk_sha256_byte(struct vxk_sha256 *s, uint32_t b)
{
    uint32_t at = (uint32_t)(s->n_bytes & 63);
    s->block[at >> 2] |= (b & 255) << (24 - 8 * (at & 3));
    s->n_bytes++;
    if (at == 63)
        vxk_sha256_block(s);
}

/* A 32-bit number, little endian; the stream must stand at a multiple of four bytes. */
VXK_FN void vxk_sha256_u32(struct vxk_sha256 *s, uint32_t x)
{
    uint32_t at = (uint32_t)(s->n_bytes >> 2 & 15);
    s->block[at] = x << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | x >> 24;
    s->n_bytes += 4;
    if (at == 15)
        vxk_sha256_block(s);
}
VXK_FN void vxk_sha256_u64(struct vxk_sha256 *s, uint64_t x)
{
    vxk_sha256_u32(s, (uint32_t)x);
    vxk_sha256_u32(s, (uint32_t)(x >> 32));
}

/* Pads and writes the 32 bytes of the digest as eight big-endian words. */
VXK_FN void vxk_sha256_end(struct vxk_sha256 *s, uint32_t out[8])
{
    uint64_t bits = s->n_bytes * 8;
    vxk_sha256_byte(s, 0x80);
    while ((s->n_bytes & 63) != 56)
        vxk_sha256_byte(s, 0);
    s->block[14] = (uint32_t)(bits >> 32);
    s->block[15] = (uint32_t)bits;
    vxk_sha256_block(s);
    for (int i = 0; i < 8; i++)
        out[i] = s->h[i];
}

#endif
