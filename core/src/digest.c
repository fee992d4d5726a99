/*
 * digest.c - the map's digest: words on the device, chunks and map on the host (DESIGN section 3).
 *
 * word  = SHA-256(leaf mask, tile mask, per leaf: active mask, free mask, values, then colours as u32 and
 * labels as u32 in maps that have them), numbers little endian chunk = SHA-256(per word that holds something:
 * number as u32, word digest) map   = SHA-256(per chunk in key order: key as u64, chunk digest)
 */
#include "body/digest.h"
#include "snapshot.h"

#include <stdlib.h>

enum { BATCH_CHUNKS = 4096, LEAST_CHUNKS = 64 };

static void add_digest(struct vxk_sha256 *s, const uint32_t digest[8])
{
    for (int i = 0; i < 8; i++)
        for (int b = 24; b >= 0; b -= 8)
            vxk_sha256_byte(s, digest[i] >> b);
}

/* Adds n chunks, whose versions are versions[n] (device), to the map's digest. */
static vx_err add_batch(struct vx_map *map, const struct vx__snapshot *snap, struct vxk_queue *q,
                        const uint32_t *versions, uint32_t n, struct vxk_sha256 *sum)
{
    const struct vxk_ops *ops = q->dev->ops;
    struct vxk_digest_word_args args = {.g = snap->grid, .version = versions};
    uint64_t bytes = (uint64_t)n * 64 * 32;
    uint32_t *host = malloc(bytes), *ids = malloc((uint64_t)n * 4);
    uint64_t *keys = malloc((uint64_t)n * 8);
    void *dev = NULL;
    vx_err err = host && ids && keys ? VX_OK : VX_E_NOMEM;
    VX_TRY(err);
    VX_TRY(vx__scratch_alloc(map, bytes, &dev, NULL));
    args.out = dev;
    VX_TRY(VXK_LAUNCH(q, digest_word, &args, n * 64));
    VX_TRY(ops->download(q, host, dev, bytes));
    VX_TRY(ops->download(q, ids, versions, (uint64_t)n * 4));
    VX_TRY(ops->wait(q));
    for (uint32_t c = 0; c < n; c++)
        VX_TRY(ops->download(q, &keys[c], &snap->grid.chunks[ids[c]].key, 8));
    VX_TRY(ops->wait(q));
    for (uint32_t c = 0; c < n; c++) {
        struct vxk_sha256 chunk;
        uint32_t digest[8];
        vxk_sha256_init(&chunk);
        for (uint32_t w = 0; w < 64; w++) {
            const uint32_t *d = host + ((uint64_t)c * 64 + w) * 8;
            if (!(d[0] | d[1] | d[2] | d[3] | d[4] | d[5] | d[6] | d[7]))
                continue;
            vxk_sha256_u32(&chunk, w);
            add_digest(&chunk, d);
        }
        vxk_sha256_end(&chunk, digest);
        vxk_sha256_u64(sum, keys[c]);
        add_digest(sum, digest);
    }
fail:
    vx__scratch_free(map, dev);
    free(host);
    free(ids);
    free(keys);
    return err;
}

vx_err vx_map_digest(struct vx_map *map, uint8_t digest[32], uint64_t *epoch)
{
    struct vxk_dev *dev = vx__map_dev(map);
    struct vxk_queue *queue; /* its own: queries don't wait for it */
    struct vx__snapshot snap;
    struct vxk_sha256 sum;
    uint32_t *versions = NULL, n = 0, words[8];
    vx_err err;
    VX_TRY_RET(dev->ops->queue_create(dev, 0, &queue));
    err = vx__snapshot_pin(map, &snap);
    if (err) {
        dev->ops->queue_destroy(queue);
        return err;
    }
    vxk_sha256_init(&sum);
    VX_TRY(vx__snapshot_chunks(map, &snap, queue, &versions, &n));
    for (uint32_t first = 0, batch = BATCH_CHUNKS; first < n;) {
        const uint32_t some = n - first < batch ? n - first : batch;
        err = add_batch(map, &snap, queue, versions + first, some, &sum);
        if (err == VX_E_EXHAUSTED && batch > LEAST_CHUNKS) { /* a full device leaves little scratch memory */
            batch /= 2;
            continue;
        }
        VX_TRY(err);
        first += some;
    }
    vxk_sha256_end(&sum, words);
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(words[i / 4] >> (24 - 8 * (i & 3)));
    if (epoch)
        *epoch = snap.epoch;
fail:
    vx__scratch_free(map, versions);
    vx__snapshot_release(map, &snap);
    dev->ops->queue_destroy(queue);
    return err;
}
