#include "json.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

enum { JSON_BYTES = 65536, JSON_DEPTH = 16 };

struct parser {
    const char *begin, *p;
    struct vxc__json_want *want;
    int n_want;
};

static bool value(struct parser *s, int depth, struct vxc__json_want *into);

static void blanks(struct parser *s)
{
    s->p += strspn(s->p, " \t\r\n");
}

static bool symbol(struct parser *s, char c)
{
    blanks(s);
    if (*s->p != c)
        return false;
    s->p++;
    return true;
}

/* A string; its raw text (escapes kept) goes to out when it fits, else out is "". */
static bool string(struct parser *s, char *out, size_t n)
{
    if (!symbol(s, '"'))
        return false;
    const char *first = s->p;
    while (*s->p && *s->p != '"')
        s->p += *s->p == '\\' && s->p[1] ? 2 : 1;
    if (*s->p != '"')
        return false;
    const size_t length = (size_t)(s->p - first);
    snprintf(out, n, "%.*s", length < n ? (int)length : 0, first);
    s->p++;
    return true;
}

static struct vxc__json_want *wanted(struct parser *s, const char *key)
{
    for (int i = 0; i < s->n_want; i++)
        if (s->want[i].n == 0 && strcmp(s->want[i].key, key) == 0)
            return &s->want[i];
    return NULL;
}

static bool object(struct parser *s, int depth)
{
    char key[64];
    if (symbol(s, '}'))
        return true;
    do {
        if (!string(s, key, sizeof key) || !symbol(s, ':') || !value(s, depth, wanted(s, key)))
            return false;
    } while (symbol(s, ','));
    return symbol(s, '}');
}

static bool array(struct parser *s, int depth, struct vxc__json_want *into)
{
    if (symbol(s, ']'))
        return true;
    do {
        if (!value(s, depth, into))
            return false;
    } while (symbol(s, ','));
    return symbol(s, ']');
}

static bool word(struct parser *s, const char *text)
{
    const size_t n = strlen(text);
    if (strncmp(s->p, text, n) != 0)
        return false;
    s->p += n;
    return true;
}

static bool value(struct parser *s, int depth, struct vxc__json_want *into)
{
    char ignored[8];
    blanks(s);
    if (*s->p == '"')
        return string(s, ignored, sizeof ignored);
    if (*s->p == '{' || *s->p == '[') {
        if (depth >= JSON_DEPTH)
            return false;
        return *s->p++ == '{' ? object(s, depth + 1) : array(s, depth + 1, into);
    }
    if (word(s, "true") || word(s, "false") || word(s, "null"))
        return true;
    if (*s->p != '-' && (*s->p < '0' || *s->p > '9'))
        return false;
    char *end;
    const double number = strtod(s->p, &end);
    s->p = end;
    if (into && into->n < VXC__JSON_MAX_NUMBERS)
        into->value[into->n++] = number;
    return true;
}

vx_err vxc__json_read(const char *path, struct vxc__json_want *want, int n_want, struct vx_detail *detail)
{
    FILE *file;
    uint64_t size;
    VX_TRY_RET(vxc__open_file(path, &file, &size, detail));
    if (size >= JSON_BYTES) {
        fclose(file);
        return vx_fail(detail, VX_E_EXHAUSTED, "json", "%s is too large: %llu bytes, at most %d are read",
                       path, (unsigned long long)size, JSON_BYTES);
    }
    char *text = calloc(1, JSON_BYTES);
    const size_t n = text ? fread(text, 1, JSON_BYTES - 1, file) : 0;
    fclose(file);
    if (!text)
        return vx_fail(detail, VX_E_NOMEM, "json", "no memory for %s", path);
    struct parser s = {text, text, want, n_want};
    for (int i = 0; i < n_want; i++)
        want[i].n = 0;
    const bool good = value(&s, 0, NULL);
    blanks(&s);
    vx_err err = VX_OK;
    if (!good || s.p != text + n)
        err = vx_fail(detail, VX_E_INVALID, "json", "%s is not JSON at byte %td", path, s.p - s.begin);
    free(text);
    return err;
}
