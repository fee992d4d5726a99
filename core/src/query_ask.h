/*
 * query_ask.h - how every kind of question goes to the device and its answers come back (internal to core).
 */
#ifndef VX__QUERY_ASK_H
#define VX__QUERY_ASK_H

#include "body/query.h"
#include "esdf.h"

/* A batch under way: locked reader, pinned epoch. */
struct vx__session {
    struct vx_map *map;
    const struct vx_query_options *options;
    struct vx_detail *detail;
    struct vx__reader_state *rs;
    struct vx__snapshot snapshot;
    bool borrowed; /* the snapshot is the one that the field keeps */
    struct vxk_query q;
    uint64_t esdf_epoch;
};

/* What is on the device for one launch. */
struct vx__batch {
    const void *in;
    void *out;
    const void *common;
    uint32_t first, n; /* items of the caller's array */
};

/* One kind of question. */
struct vx__question {
    uint32_t in_bytes, out_bytes; /* an item (0 = items are only counted), an answer */
    uint32_t slice;               /* items on the device at once, 0 = 2^20 */
    uint32_t start;     /* items that can take long: so many at first, then as vx__pace says; 0 = `slice` */
    bool direct;        /* an element reads its item once and writes its answer once */
    bool with_esdf;     /* the distance field is brought to the pinned epoch */
    const void *common; /* what all items share: uploaded once */
    uint64_t common_bytes;
    vx_err (*launch)(const struct vx__session *s, const struct vx__question *k, const struct vx__batch *b);
    /* After a launch, with its answers at hand: answers again what it left.  NULL: it leaves nothing. */
    vx_err (*settle)(const struct vx__session *s, const struct vx__question *k, const struct vx__batch *b,
                     void *answers);
    const void *what; /* the kind's own parameters */
};

/*
 * Asks n items of a kind; in: [n][in_bytes], out: [n][out_bytes], reply may be NULL.
 * Errors: those of vx_query_points.  Thread: any; blocks.
 */
vx_err vx__ask(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
               const struct vx__question *k, const void *in, uint32_t n, void *out, struct vx_reply *reply,
               struct vx_detail *detail);

/* The same for a direct question with the field, or VX_E_UNAVAILABLE where that would have to wait.  Errors:
 * those of vx_query_points_now. */
vx_err vx__ask_now(struct vx_map *map, const struct vx_query_options *options, const double origin_m[3],
                   const struct vx__question *k, const void *in, uint32_t n, void *out,
                   struct vx_reply *reply, struct vx_detail *detail);

/*
 * How many to do at once after `n` took so long, least .. most: about a tenth of a second, so that who gave a
 * question up does not keep the device and all that waits behind it.
 */
uint32_t vx__pace(uint32_t n, double took_s, uint32_t least, uint32_t most);
double vx__now_s(void);

/* vx__snapshot_pin, refused with VX_E_STALE when the newest epoch is older than the options want. */
vx_err vx__pin_asked(struct vx_map *map, const struct vx_query_options *options, struct vx__snapshot *out,
                     struct vx_detail *detail);
/* Says what answered; esdf_epoch 0 where no distance is involved.  reply may be NULL. */
void vx__fill_reply(struct vx_map *map, const struct vx__snapshot *snapshot, uint64_t esdf_epoch,
                    struct vx_reply *reply);
/* Errors: VX_E_INVALID it is not finite. */
vx_err vx__check_origin(const double origin_m[3], struct vx_detail *detail);
/* Spheres [n][4] x, y, z, radius: VX_E_INVALID for a radius that is negative, not finite or beyond R. */
vx_err vx__check_radius(struct vx_map *map, const float *spheres, uint32_t n, struct vx_detail *detail);

#endif
