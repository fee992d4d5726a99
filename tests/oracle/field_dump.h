/*
 * field_dump.h - a distance field copied to the host.
 */
#ifndef FIELD_DUMP_H
#define FIELD_DUMP_H

#include "esdf.h"
#include "grid_fixture.h"

struct field_dump {
    struct vxk_esdf view; /* pointers into this dump: body functions read it on the host */
    uint64_t *keys;
    uint32_t *index, *table;
    uint16_t **pages;
    uint32_t n_leaves, n_chunks, n_pages;
    uint64_t bytes;
    uint64_t n_updates, n_computed;
};

/* Brings the field to the newest epoch and copies it.  Returns what vx__esdf_refresh said; nothing is copied
 * on an error. */
vx_err field_dump_get(struct grid_fixture *f, struct field_dump *out);
/* The same of a field that is built from nothing; the one that is kept stays as it is. */
vx_err field_dump_rebuilt(struct grid_fixture *f, struct field_dump *out);
void field_dump_fini(struct field_dump *d);
/* 1 when every leaf and every byte is equal. */
int field_dump_equal(const struct field_dump *a, const struct field_dump *b);

/* Voxels that have a surface within R. */
uint64_t field_dump_within(const struct field_dump *d);

#endif
