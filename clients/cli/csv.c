#include "csv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads a line without its end; false at the end of the file.  check_line must look at what came. */
static bool read_line(struct csv *csv)
{
    size_t n = 0;
    int c = getc(csv->file);
    if (c == EOF)
        return false;
    csv->line++;
    csv->cut = false;
    for (; c != EOF && c != '\n'; c = getc(csv->file)) {
        if (n + 1 < sizeof csv->text)
            csv->text[n++] = c == '\0' ? '?' : (char)c;
        else
            csv->cut = true;
    }
    while (n > 0 && (csv->text[n - 1] == '\r' || csv->text[n - 1] == ' ' || csv->text[n - 1] == '\t'))
        n--;
    csv->text[n] = '\0';
    return true;
}

/* A file that stops being readable has not ended, and the last number of a cut line may be cut, too. */
static vx_err check_line(const struct csv *csv, struct vx_detail *detail)
{
    if (ferror(csv->file))
        return vx_fail(detail, VX_E_UNAVAILABLE, "input", "cannot read %s: %s", csv->name, strerror(errno));
    if (csv->cut)
        return vx_fail(detail, VX_E_INVALID, "row", "%s line %zu is longer than %zu bytes", csv->name,
                       csv->line, sizeof csv->text - 1);
    return VX_OK;
}

/* The field at *at: its text without blanks around it; moves *at behind the comma, to NULL at the end of the
 * line.  A comma between quotes ends nothing. */
static void next_field(char **at, char **begin, size_t *n)
{
    char *p = *at + strspn(*at, " \t");
    const char *quoted = *p == '"' ? strchr(p + 1, '"') : NULL;
    const size_t inside = quoted ? (size_t)(quoted - p) : 0, length = inside + strcspn(p + inside, ",");
    size_t kept = length;
    *at = p[length] == ',' ? p + length + 1 : NULL;
    while (kept > 0 && (p[kept - 1] == ' ' || p[kept - 1] == '\t'))
        kept--;
    if (kept >= 2 && p[0] == '"' && p[kept - 1] == '"') {
        p++;
        kept -= 2;
    }
    *begin = p;
    *n = kept;
}

static vx_err bad_header(const struct csv *csv, const char *const *wanted, int n_wanted, const char *why,
                         struct vx_detail *detail)
{
    char header[128] = "";
    for (int i = 0; i < n_wanted; i++)
        snprintf(header + strlen(header), sizeof header - strlen(header), "%s%s", i ? "," : "", wanted[i]);
    return vx_fail(detail, VX_E_INVALID, "header", "%s: %s; the first row must name the columns: %s",
                   csv->name, why, header);
}

vx_err csv_begin(struct csv *csv, const char *const *wanted, int n_wanted, struct vx_detail *detail)
{
    csv->line = 0;
    csv->n_wanted = n_wanted;
    for (int i = 0; i < CSV_MAX_COLUMNS; i++)
        csv->place[i] = -1;
    const bool any = read_line(csv);
    VX_TRY_RET(check_line(csv, detail));
    if (!any)
        return bad_header(csv, wanted, n_wanted, "the file is empty", detail);
    if (strncmp(csv->text, "\xef\xbb\xbf", 3) == 0) /* the mark that spreadsheets put first */
        memmove(csv->text, csv->text + 3, strlen(csv->text) - 2);
    char *at = csv->text;
    csv->n_columns = 0;
    for (int column = 0; at; column++) {
        char *begin;
        size_t n;
        next_field(&at, &begin, &n);
        csv->n_columns++;
        for (int i = 0; i < n_wanted; i++) {
            if (strlen(wanted[i]) != n || strncmp(wanted[i], begin, n) != 0)
                continue;
            if (csv->place[i] >= 0)
                return bad_header(csv, wanted, n_wanted, "a column is there twice", detail);
            csv->place[i] = column;
        }
    }
    for (int i = 0; i < n_wanted; i++) {
        char why[64];
        snprintf(why, sizeof why, "there is no column '%s'", wanted[i]);
        if (csv->place[i] < 0)
            return bad_header(csv, wanted, n_wanted, why, detail);
    }
    return VX_OK;
}

/* Wanted field i of this line, n bytes. */
static vx_err read_value(const struct csv *csv, int i, const char *begin, size_t n, double *value,
                         struct vx_detail *detail)
{
    char *stop;
    *value = strtod(begin, &stop);
    const bool finite = isfinite(*value);
    if (n > 0 && stop == begin + n && (finite || !(csv->finite >> i & 1)))
        return VX_OK;
    return vx_fail(detail, VX_E_INVALID, "row", "%s line %zu: column %d, '%.*s', is no %snumber", csv->name,
                   csv->line, csv->place[i] + 1, n > 40 ? 40 : (int)n, begin,
                   csv->finite >> i & 1 ? "finite " : "");
}

vx_err csv_next(struct csv *csv, double *value, int *end, struct vx_detail *detail)
{
    *end = 0;
    do {
        const bool any = read_line(csv);
        VX_TRY_RET(check_line(csv, detail));
        if (!any) {
            *end = 1;
            return VX_OK;
        }
    } while (csv->text[0] == '\0');
    char *at = csv->text;
    int n_columns = 0;
    for (; at; n_columns++) {
        char *begin;
        size_t n;
        next_field(&at, &begin, &n);
        for (int i = 0; i < csv->n_wanted; i++)
            if (csv->place[i] == n_columns)
                VX_TRY_RET(read_value(csv, i, begin, n, &value[i], detail));
    }
    if (n_columns != csv->n_columns)
        return vx_fail(detail, VX_E_INVALID, "row", "%s line %zu has too %s columns: %d, the header names %d",
                       csv->name, csv->line, n_columns < csv->n_columns ? "few" : "many", n_columns,
                       csv->n_columns);
    return VX_OK;
}
