#include "wire_fill.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t element_size(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_STRING:
        return sizeof(void *);
    default:
        return 4;
    }
}

static ProtobufCMessage *make(const ProtobufCMessageDescriptor *d, unsigned variant);

static void set_value(const ProtobufCFieldDescriptor *f, void *at, unsigned k, unsigned variant)
{
    int64_t number = (int64_t)f->id * 1000 + k + 1;
    switch (f->type) {
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = (double)number / 8;
        return;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)at = (float)number / 8;
        return;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
        *(int64_t *)at = -number * 1000000007;
        return;
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)at = (uint64_t)number * 1000000007;
        return;
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumDescriptor *e = f->descriptor;
        *(int *)at = e->values[(k + 1) % e->n_values].value;
        return;
    }
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = 1;
        return;
    case PROTOBUF_C_TYPE_BYTES: {
        ProtobufCBinaryData *b = at;
        b->len = 3;
        b->data = malloc(3);
        memset(b->data, 'a' + (int)(f->id % 26), 3);
        return;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = make(f->descriptor, variant);
        return;
    default:
        *(uint32_t *)at = (uint32_t)number;
        return;
    }
}

static void set_field(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, unsigned variant)
{
    char *base = (char *)m;
    if (f->label != PROTOBUF_C_LABEL_REPEATED) {
        set_value(f, base + f->offset, 0, variant);
        if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
            *(int *)(base + f->quantifier_offset) = (int)f->id;
        return;
    }
    char *list = calloc(2, element_size(f));
    for (unsigned k = 0; k < 2; ++k)
        set_value(f, list + k * element_size(f), k, variant);
    *(void **)(base + f->offset) = list;
    *(size_t *)(base + f->quantifier_offset) = 2;
}

/* Sets every field; of a oneof, member number `variant`. */
static ProtobufCMessage *make(const ProtobufCMessageDescriptor *d, unsigned variant)
{
    ProtobufCMessage *m = malloc(d->sizeof_message);
    unsigned n_oneof = 0;
    d->message_init(m);
    for (unsigned i = 0; i < d->n_fields; ++i) {
        bool oneof = d->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
        if (!oneof || n_oneof++ == variant)
            set_field(m, &d->fields[i], variant);
    }
    return m;
}

static unsigned n_variants(const ProtobufCMessageDescriptor *d)
{
    unsigned n = 0;
    for (unsigned i = 0; i < d->n_fields; ++i)
        n += (d->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    return n ? n : 1;
}

static size_t pack(const ProtobufCFieldDescriptor *body, unsigned variant, uint8_t **bytes)
{
    const ProtobufCMessageDescriptor *d = &voxeld__v1__header__descriptor;
    vxw_header *h = calloc(1, sizeof *h);
    uint8_t prelude[VXW_PRELUDE_BYTES], *packed;
    size_t n = 0;
    voxeld__v1__header__init(h);
    for (unsigned i = 0; i < d->n_fields; ++i)
        if (!(d->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
            set_field(&h->base, &d->fields[i], 0);
    h->body_bytes = 0; /* a body travels as a payload or as parts, not as both; these have payloads */
    set_field(&h->base, body, variant);
    if (vxw_header_pack(h, prelude, &packed, &n, NULL) == VX_OK) {
        *bytes = malloc(sizeof prelude + n);
        memcpy(*bytes, prelude, sizeof prelude);
        memcpy(*bytes + sizeof prelude, packed, n);
        n += sizeof prelude;
        free(packed);
    }
    vxw_header_free(h);
    return n;
}

/* The body of STATS_REPLY, without an envelope. */
static size_t pack_report(char *name, uint8_t **bytes)
{
    ProtobufCMessage *m = make(&voxeld__v1__stats_report__descriptor, 0);
    size_t n = protobuf_c_message_get_packed_size(m);
    *bytes = malloc(n);
    protobuf_c_message_pack(m, *bytes);
    protobuf_c_message_free_unpacked(m, NULL);
    snprintf(name, 64, "stats_report");
    return n;
}

size_t wire_example(unsigned i, char *name, uint8_t **bytes)
{
    const ProtobufCMessageDescriptor *d = &voxeld__v1__header__descriptor;
    for (unsigned k = 0; k < d->n_fields; ++k) {
        const ProtobufCFieldDescriptor *f = &d->fields[k];
        if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
            continue;
        unsigned n = n_variants(f->descriptor);
        if (i < n) {
            snprintf(name, 64, "%s/%u", f->name, i);
            return pack(f, i, bytes);
        }
        i -= n;
    }
    return i == 0 ? pack_report(name, bytes) : 0;
}
