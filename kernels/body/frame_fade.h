/*
 * frame_fade.h - decay: values lose weight with time, what has none left becomes unknown; forgetting of what
 * is far away.
 *
 * The map has a tick, a sixteenth of its half-life.  A word says up to which tick its values have faded; when
 * a commit rewrites it, they fade to the present.  A commit rewrites the words that its frame sees, and those
 * of the chunks that are due in its sweep: keys fall into 2^16 buckets by their hash, and buckets are due one
 * after the other, so that which words are swept depends on the frames alone and not on where the table has
 * them. Readers see what is stored: an epoch's answers don't change with time.
 */
#ifndef VXK_BODY_FRAME_FADE_H
#define VXK_BODY_FRAME_FADE_H

#include "frame_lidar.h"

enum {
    VXK_FADE_BUCKETS = 1 << 16,
    VXK_FADE_FACTOR = 62757, /* 2^(-1/16) in 2^-16 */
    VXK_FADE_FREE = 80,      /* ticks that free evidence lasts after it was last seen: five half-lives */
    VXK_FADE_NOTE = 16,      /* ticks after which a word notes again that it was seen */
    VXK_FADE_LEAST = 64      /* log-odds (1/1024) nearer to 0 say nothing */
};

/*
 * A value after ticks from + 1 .. to; *dead = 1 when nothing is left of it.  n: voxel of the leaf.
 *
 * A weight is a whole number, so what a tick takes is rounded to one: down or up by a threshold that goes
 * through all sixteenths in 16 ticks, from another place for every voxel.  A weight of 1 thus lives 16 ticks
 * at most, 8 on average, and a large one halves in 16.  The front is rounded down.
 */
VXK_FN uint32_t vxk_fade_value(int32_t mode, uint32_t v, uint32_t n, uint32_t from, uint32_t to, int *dead)
{
    *dead = 0;
    if (mode == 0) {
        uint32_t w = vxk_tsdf_weight(v), front = vxk_tsdf_front(v);
        for (uint32_t t = from; w && t != to;) {
            t++;
            w = (w * (uint32_t)VXK_FADE_FACTOR + ((t + 5 * n) & 15) * 4096) >> 16;
            front = front * (uint32_t)VXK_FADE_FACTOR >> 16;
        }
        *dead = !w;
        return vxk_tsdf_pack(vxk_tsdf_distance(v), w) | front << 24;
    } else {
        int32_t l = (int32_t)(int16_t)(uint16_t)(v & 0xffff), m = l < 0 ? -l : l;
        for (uint32_t t = from; m >= VXK_FADE_LEAST && t != to; t++)
            m = m * VXK_FADE_FACTOR >> 16;
        *dead = m < VXK_FADE_LEAST;
        return (uint32_t)(uint16_t)(int16_t)(l < 0 ? -m : m);
    }
}

/* Is a key's chunk swept in this commit? */
VXK_FN uint32_t vxk_fade_due(const struct vxk_fade *d, uint64_t key)
{
    uint32_t bucket = (uint32_t)vxk_mix64(key) & (VXK_FADE_BUCKETS - 1);
    return d->on && ((bucket - d->due_first) & (VXK_FADE_BUCKETS - 1)) < d->due_n ? VXK_DUE_SWEEP : 0;
}

/* First voxel of a word, map coordinates. */
VXK_FN void vxk_fade_base(uint64_t key, uint32_t word, int32_t at[3])
{
    uint32_t x, y, z;
    vxk_key_xyz(key, &at[0], &at[1], &at[2]);
    vxk_cell_base(word, 0, &x, &y, &z);
    at[0] = at[0] * 128 + (int32_t)x;
    at[1] = at[1] * 128 + (int32_t)y;
    at[2] = at[2] * 128 + (int32_t)z;
}

/* Does a region meet the cube of `edge` voxels from `at` on? */
VXK_FN int vxk_region_meets(const struct vxk_region *r, const int32_t at[3], int32_t edge)
{
    int meets = 1;
    for (int k = 0; k < 3; k++)
        meets = meets & (r->lo[k] < at[k] + edge) & (r->hi[k] >= at[k]);
    return meets;
}
VXK_FN int vxk_region_holds(const struct vxk_region *r, const int32_t v[3])
{
    int64_t d2 = 0;
    if (!vxk_region_meets(r, v, 1))
        return 0;
    for (int k = 0; k < 3 && r->ball; k++) {
        int64_t d = (int64_t)v[k] * 256 + 128 - r->centre[k];
        d2 += d * d;
    }
    return d2 <= r->r2 || !r->ball;
}

/* What happens to a word besides what the frame says: VXK_WORD_*.  old: as it was, or NULL; seen: the frame
 * says something about it. */
VXK_FN uint32_t vxk_fade_word(const struct vxk_frame_args *a, uint64_t key, uint32_t word,
                              const struct vxk_word *old, int seen)
{
    const struct vxk_fade *d = &a->fade;
    uint32_t flags = 0, age;
    int32_t at[3];
    float d2 = 0.0f, far2 = d->forget + 28.0f;
    if (!d->on || !old || !(old->leaf | old->tile) || !old->tick)
        return 0;
    vxk_fade_base(key, word, at);
    for (uint32_t k = 0; k < d->n_regions; k++)
        if (vxk_region_meets(&d->region[k], at, 32))
            flags = VXK_WORD_GUARD;
    if (old->leaf && old->tick != d->tick)
        flags |= VXK_WORD_STALE;
    age = d->tick - old->seen;
    if (seen || flags & VXK_WORD_GUARD)
        return age >= VXK_FADE_NOTE ? flags | VXK_WORD_NOTE : flags;
    for (int k = 0; k < 3; k++) {
        float e = ((float)(at[k] - a->f.oc[k] * 128) + 16.0f) - a->f.t[k];
        d2 += e * e;
    }
    if (d->forget > 0.0f && d2 > far2 * far2)
        return VXK_WORD_DROP;
    return age > VXK_FADE_FREE ? flags | VXK_WORD_UNFREE : flags;
}

/* How the values of a cell fade in this commit. */
struct vxk_fading {
    uint32_t flags; /* of its word, VXK_WORD_* */
    uint32_t from;  /* tick up to which they have faded; only where the word is STALE */
    int32_t at[3];  /* its first voxel, map coordinates; only where a region meets the word */
};
VXK_FN struct vxk_fading vxk_fading_of(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                                       uint32_t cell)
{
    const struct vxk_frame_chunk *c = &a->s.chunk[fw->chunk >> 6];
    struct vxk_fading o;
    o.flags = fw->flags;
    o.from = 0;
    o.at[0] = o.at[1] = o.at[2] = 0;
    if (o.flags & VXK_WORD_STALE)
        o.from = a->g.chunks[c->old].word[fw->chunk & 63].tick;
    if (o.flags & VXK_WORD_GUARD) {
        vxk_fade_base(c->key, fw->chunk & 63, o.at);
        o.at[0] += (int32_t)(cell >> 4 << 3);
        o.at[1] += (int32_t)((cell >> 2 & 3) << 3);
        o.at[2] += (int32_t)((cell & 3) << 3);
    }
    return o;
}

/* Value v of active voxel n of the cell, faded to the present; *dead = 1 when nothing is left.  observed: the
 * frame sees the voxel. */
VXK_FN uint32_t vxk_faded(const struct vxk_frame_args *a, const struct vxk_fading *p, uint32_t v, uint32_t n,
                          uint32_t observed, int *dead)
{
    const struct vxk_fade *d = &a->fade;
    uint32_t to = d->spare && observed ? d->before : d->tick;
    *dead = 0;
    if (!(p->flags & VXK_WORD_STALE))
        return v;
    if (p->flags & VXK_WORD_GUARD) {
        int32_t at[3];
        at[0] = p->at[0] + (int32_t)(n >> 6);
        at[1] = p->at[1] + (int32_t)(n >> 3 & 7);
        at[2] = p->at[2] + (int32_t)(n & 7);
        for (uint32_t k = 0; k < d->n_regions; k++)
            if (vxk_region_holds(&d->region[k], at))
                return v;
    }
    return p->from < to ? vxk_fade_value(a->f.mode, v, n, p->from, to, dead) : v;
}

#endif
