#include "yaml_map.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { PATH_MAX_BYTES = 256, MAX_KEYS = 1024 };

struct reader {
    const char *name;
    vxd_yaml_take take;
    void *context;
    struct vx_detail *detail;
    char path[PATH_MAX_BYTES];
    size_t section_end[VXD_YAML_MAX_DEPTH]; /* bytes of `path` that name the section at each depth */
    int depth;                              /* sections that are open */
    bool have_key;                          /* path ends with a key that waits for its value */
    char *seen[MAX_KEYS];                   /* paths so far */
    int n_seen;
};

static vx_err fail_at(struct reader *r, yaml_mark_t mark, const char *field, const char *words)
{
    return vx_fail(r->detail, VX_E_INVALID, field, "%.80s:%zu:%zu: %.200s", r->name, mark.line + 1,
                   mark.column + 1, words);
}

static bool is_key(const char *s, size_t n)
{
    if (!n || n > 64)
        return false;
    for (size_t i = 0; i < n; ++i)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '_'))
            return false;
    return true;
}

static vx_err begin_key(struct reader *r, const yaml_event_t *event)
{
    const char *key = (const char *)event->data.scalar.value;
    size_t n = event->data.scalar.length;
    size_t at = r->section_end[r->depth - 1];
    if (!is_key(key, n))
        return fail_at(r, event->start_mark, "", "a key consists of a-z, 0-9 and _");
    if (at + n + 2 > sizeof r->path)
        return fail_at(r, event->start_mark, "", "the key's path is too long");
    if (at)
        r->path[at++] = '.';
    memcpy(r->path + at, key, n);
    r->path[at + n] = 0;
    for (int i = 0; i < r->n_seen; ++i)
        if (!strcmp(r->seen[i], r->path))
            return fail_at(r, event->start_mark, r->path, "the key comes twice");
    if (r->n_seen == MAX_KEYS)
        return fail_at(r, event->start_mark, r->path, "too many keys");
    char *copy = strdup(r->path);
    if (!copy)
        return vx_fail(r->detail, VX_E_NOMEM, r->path, "no memory");
    r->seen[r->n_seen++] = copy;
    r->have_key = true;
    return VX_OK;
}

static vx_err give(struct reader *r, const yaml_event_t *event, const char *value)
{
    struct vx_detail detail = {{0}, {0}};
    vx_err err = r->take(r->context, r->path, value, &detail);
    if (err != VX_OK)
        return fail_at(r, event->start_mark, detail.field, detail.text);
    return VX_OK;
}

static vx_err on_scalar(struct reader *r, const yaml_event_t *event)
{
    if (event->data.scalar.tag || event->data.scalar.anchor)
        return fail_at(r, event->start_mark, "", "tags and anchors are not accepted");
    if (strlen((const char *)event->data.scalar.value) != event->data.scalar.length)
        return fail_at(r, event->start_mark, "", "a value may not contain NUL");
    if (!r->depth)
        return event->data.scalar.length
                   ? fail_at(r, event->start_mark, "", "the file must be a list of `key: value`")
                   : VX_OK;
    if (!r->have_key)
        return begin_key(r, event);
    r->have_key = false;
    return give(r, event, (const char *)event->data.scalar.value);
}

static vx_err on_section(struct reader *r, const yaml_event_t *event)
{
    if (event->data.mapping_start.tag || event->data.mapping_start.anchor)
        return fail_at(r, event->start_mark, "", "tags and anchors are not accepted");
    if (r->depth == VXD_YAML_MAX_DEPTH)
        return fail_at(r, event->start_mark, "", "more than 32 levels");
    if (r->depth && !r->have_key)
        return fail_at(r, event->start_mark, "", "a section can't be a key");
    if (r->depth)
        VX_TRY_RET(give(r, event, NULL));
    r->section_end[r->depth] = r->depth ? strlen(r->path) : 0;
    ++r->depth;
    r->have_key = false;
    return VX_OK;
}

static vx_err on_event(struct reader *r, const yaml_event_t *event, int *n_documents)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return ++*n_documents > 1 ? fail_at(r, event->start_mark, "", "only one document is accepted")
                                  : VX_OK;
    case YAML_SCALAR_EVENT:
        return on_scalar(r, event);
    case YAML_MAPPING_START_EVENT:
        return on_section(r, event);
    case YAML_MAPPING_END_EVENT:
        --r->depth;
        return VX_OK;
    case YAML_SEQUENCE_START_EVENT:
        return fail_at(r, event->start_mark, r->path, "lists are not accepted");
    case YAML_ALIAS_EVENT:
        return fail_at(r, event->start_mark, r->path, "aliases are not accepted");
    default:
        return VX_OK;
    }
}

vx_err vxd_yaml_map(const char *name, const char *text, size_t n, vxd_yaml_take take, void *context,
                    struct vx_detail *detail)
{
    if (n > VXD_YAML_MAX_BYTES)
        return vx_fail(detail, VX_E_INVALID, "", "%.80s: larger than %d bytes", name, VXD_YAML_MAX_BYTES);
    struct reader *r = calloc(1, sizeof *r);
    yaml_parser_t parser;
    if (!r || !yaml_parser_initialize(&parser)) {
        free(r);
        return vx_fail(detail, VX_E_NOMEM, "", "no memory to read %.80s", name);
    }
    *r = (struct reader){.name = name, .take = take, .context = context, .detail = detail};
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    vx_err err = VX_OK;
    int n_documents = 0;
    bool done = false;
    /* Stopping at the first event that is refused is also what keeps libyaml's quadratic work on deep nesting
     * away. */
    while (!done && err == VX_OK) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            err = fail_at(r, parser.problem_mark, "", parser.problem ? parser.problem : "not YAML");
            break;
        }
        done = event.type == YAML_STREAM_END_EVENT;
        err = on_event(r, &event, &n_documents);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    for (int i = 0; i < r->n_seen; ++i)
        free(r->seen[i]);
    free(r);
    return err;
}
