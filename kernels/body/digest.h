/*
 * digest.h - digests of words: SHA-256 over what a word holds, never over where it holds it.
 */
#ifndef VXK_BODY_DIGEST_H
#define VXK_BODY_DIGEST_H

#include "grid.h"
#include "sha256.h"

/* Element: (version in key order, word).  Digest of the word's canonical content, all zero for an empty word.
 */
struct vxk_digest_word_args {
    struct vxk_grid g;
    const uint32_t *version;
    uint32_t *out; /* [versions][64][8] */
};
VXK_FN void vxk_digest_word(const struct vxk_digest_word_args *a, uint32_t i)
{
    const struct vxk_word *w = &a->g.chunks[a->version[i >> 6]].word[i & 63];
    uint32_t *out = a->out + (uint64_t)i * 8;
    struct vxk_sha256 s;
    if (!(w->leaf | w->tile)) {
        for (int k = 0; k < 8; k++)
            out[k] = 0;
        return;
    }
    vxk_sha256_init(&s);
    vxk_sha256_u64(&s, w->leaf);
    vxk_sha256_u64(&s, w->tile);
    for (uint64_t m = w->leaf; m; m &= m - 1) {
        const struct vxk_leaf *l = vxk_leaf_at(&a->g, w, vxk_ctz64(m));
        for (int x = 0; x < 8; x++)
            vxk_sha256_u64(&s, l->active[x]);
        for (int x = 0; x < 8; x++)
            vxk_sha256_u64(&s, l->free[x]);
        for (uint32_t k = 0; k < l->n_active; k++)
            vxk_sha256_u32(&s, a->g.values[vxk_leaf_value_index(l, k)]);
        if (a->g.colours)
            for (uint32_t k = 0; k < l->n_active; k++)
                vxk_sha256_u32(&s, a->g.colours[vxk_leaf_value_index(l, k)]);
        if (a->g.labels)
            for (uint32_t k = 0; k < l->n_active; k++)
                vxk_sha256_u32(&s, a->g.labels[vxk_leaf_value_index(l, k)]);
    }
    vxk_sha256_end(&s, out);
}

#endif
