#include "text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ files and lines */

vx_err vxc__open_file(const char *path, FILE **out, uint64_t *size_bytes, struct vx_detail *detail)
{
    struct stat st;
    FILE *file = fopen(path, "rb");
    if (!file && (errno == ENOENT || errno == ENOTDIR))
        return vx_fail(detail, VX_E_NOT_FOUND, "path", "%s does not exist", path);
    if (!file || fstat(fileno(file), &st) != 0) {
        vx_fail(detail, VX_E_UNAVAILABLE, "path", "cannot read %s: %s", path, strerror(errno));
        if (file)
            fclose(file);
        return VX_E_UNAVAILABLE;
    }
    if (!S_ISREG(st.st_mode)) {
        fclose(file);
        return vx_fail(detail, VX_E_INVALID, "path", "%s is not a regular file", path);
    }
    *out = file;
    if (size_bytes)
        *size_bytes = (uint64_t)st.st_size;
    return VX_OK;
}

vx_err vxc__lines_open(struct vxc__lines *lines, const char *path, struct vx_detail *detail)
{
    lines->number = 0;
    lines->too_long = false;
    return vxc__open_file(path, &lines->file, NULL, detail);
}

bool vxc__lines_next(struct vxc__lines *lines)
{
    for (;;) {
        size_t n = 0;
        int c = getc(lines->file);
        if (c == EOF)
            return false;
        lines->number++;
        lines->too_long = false;
        for (; c != EOF && c != '\n'; c = getc(lines->file)) {
            if (n + 1 < sizeof lines->text)
                lines->text[n++] =
                    c == '\0' ? '?' : (char)c; /* a NUL is no text: let the number parser trip over it */
            else
                lines->too_long = true;
        }
        while (n > 0 && isspace((unsigned char)lines->text[n - 1]))
            n--;
        lines->text[n] = '\0';
        size_t first = strspn(lines->text, " \t");
        if (lines->text[first] != '\0' && lines->text[first] != '#')
            return true;
    }
}

void vxc__lines_close(struct vxc__lines *lines)
{
    if (lines->file)
        fclose(lines->file);
    lines->file = NULL;
}

/* ------------------------------------------------------------------ numbers */

static const char SEPARATORS[] = " \t,;";

bool vxc__word(const char **text, char *word, size_t n)
{
    const char *p = *text + strspn(*text, SEPARATORS);
    const size_t length = strcspn(p, SEPARATORS);
    if (length == 0)
        return false;
    const size_t kept = length < n ? length : n - 1;
    memcpy(word, p, kept);
    word[kept] = '\0';
    *text = p + length;
    return true;
}

int vxc__numbers(const char *text, double *out, int max)
{
    int n = 0;
    char word[64];
    while (vxc__word(&text, word, sizeof word)) {
        char *end;
        double value = strtod(word, &end);
        if (end == word)
            return -1;
        if (strncmp(end, "#I", 2) == 0 || strncmp(end, "#Q", 2) == 0 || strncmp(end, "#S", 2) == 0)
            value = NAN; /* how some C runtimes print a NaN: 1.#IND, 1.#QNAN */
        else if (*end != '\0')
            return -1;
        if (n < max)
            out[n] = value;
        if (n < 1000000)
            n++;
    }
    return n;
}

bool vxc__stamp_ns(const char *word, int64_t *ns)
{
    const char *p = word;
    const bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    char digit[80];
    int n_digits = 0, point = -1;
    for (; isdigit((unsigned char)*p) || (*p == '.' && point < 0); p++) {
        if (*p == '.')
            point = n_digits;
        else if (n_digits < (int)sizeof digit)
            digit[n_digits++] = (char)(*p - '0');
        else
            return false;
    }
    if (n_digits == 0)
        return false;
    if (point < 0)
        point = n_digits;
    if (*p == 'e' || *p == 'E') {
        char *end;
        const long exponent = strtol(p + 1, &end, 10);
        if (end == p + 1 || exponent < -100 || exponent > 100)
            return false;
        point += (int)exponent;
        p = end;
    }
    if (*p != '\0')
        return false;
    /* digits before position point + 9 are whole nanoseconds */
    int64_t value = 0;
    for (int i = point < 0 ? point : 0; i < point + 9; i++) {
        const int d = i >= 0 && i < n_digits ? digit[i] : 0;
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = 10 * value + d;
    }
    const int next = point + 9;
    if (next >= 0 && next < n_digits && digit[next] >= 5)
        value++;
    *ns = negative ? -value : value;
    return true;
}

/* ------------------------------------------------------------------ paths */

bool vxc__join(char out[VXC__PATH_MAX], const char *folder, const char *name)
{
    int n;
    if (name[0] == '/' || folder[0] == '\0')
        n = snprintf(out, VXC__PATH_MAX, "%s", name);
    else
        n = snprintf(out, VXC__PATH_MAX, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
                     name);
    return n >= 0 && n < VXC__PATH_MAX;
}

void vxc__parent(char out[VXC__PATH_MAX], const char *path)
{
    char copy[VXC__PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    size_t n = strlen(copy);
    while (n > 1 && copy[n - 1] == '/')
        copy[--n] = '\0';
    const char *last = vxc__base_name(copy);
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0 || copy[0] == '\0') {
        if (!vxc__join(out, copy, ".."))
            snprintf(out, VXC__PATH_MAX, "..");
        return;
    }
    const size_t kept = (size_t)(last - copy);
    copy[kept] = '\0';
    snprintf(out, VXC__PATH_MAX, "%s", kept == 0 ? "." : copy);
    n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        out[--n] = '\0';
}

const char *vxc__base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool vxc__is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool vxc__is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* ------------------------------------------------------------------ folders */

/* Runs of digits compare as numbers, the rest as bytes. */
static int compare_names(const char *a, const char *b)
{
    const char *p = a, *q = b;
    while (*p && *q) {
        if (isdigit((unsigned char)*p) && isdigit((unsigned char)*q)) {
            p += strspn(p, "0");
            q += strspn(q, "0");
            const size_t np = strspn(p, "0123456789"), nq = strspn(q, "0123456789");
            if (np != nq)
                return np < nq ? -1 : 1;
            const int order = memcmp(p, q, np);
            if (order != 0)
                return order;
            p += np;
            q += nq;
        } else if (*p != *q) {
            return (unsigned char)*p < (unsigned char)*q ? -1 : 1;
        } else {
            p++;
            q++;
        }
    }
    if (*p || *q)
        return *p ? 1 : -1;
    return strcmp(a, b); /* "01" and "1" */
}

static int compare_name_pointers(const void *a, const void *b)
{
    return compare_names(*(char *const *)a, *(char *const *)b);
}

static bool matches(const char *name, const char *prefix, const char *suffix)
{
    const size_t n = strlen(name), n_prefix = strlen(prefix), n_suffix = strlen(suffix);
    return name[0] != '.' && n >= n_prefix + n_suffix && strncmp(name, prefix, n_prefix) == 0 &&
           strcasecmp(name + n - n_suffix, suffix) == 0;
}

vx_err vxc__names_list(struct vxc__names *names, const char *folder, const char *prefix, const char *suffix,
                       struct vx_detail *detail)
{
    names->name = NULL;
    names->n = 0;
    size_t capacity = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return vx_fail(detail, errno == ENOENT || errno == ENOTDIR ? VX_E_NOT_FOUND : VX_E_UNAVAILABLE,
                       "path", "cannot open folder %s: %s", folder, strerror(errno));
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (!matches(entry->d_name, prefix, suffix))
            continue;
        if (names->n == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            char **grown = realloc(names->name, capacity * sizeof *grown);
            if (!grown)
                goto no_memory;
            names->name = grown;
        }
        if (!(names->name[names->n] = strdup(entry->d_name)))
            goto no_memory;
        names->n++;
    }
    closedir(dir);
    if (names->n > 1)
        qsort(names->name, names->n, sizeof *names->name, compare_name_pointers);
    return VX_OK;
no_memory:
    closedir(dir);
    vxc__names_free(names);
    return vx_fail(detail, VX_E_NOMEM, "path", "no memory to list %s", folder);
}

void vxc__names_free(struct vxc__names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
    names->name = NULL;
    names->n = 0;
}
