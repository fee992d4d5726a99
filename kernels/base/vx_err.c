#include "vx_err.h"

#include <stdio.h>

const char *vx_err_name(vx_err e)
{
    switch (e) {
#define X(name, value, wire, text)                                                                           \
    case value:                                                                                              \
        return wire;
        VX_ERR_TABLE(X)
#undef X
    default:
        return "INTERNAL";
    }
}

const char *vx_err_text(vx_err e)
{
    switch (e) {
#define X(name, value, wire, text)                                                                           \
    case value:                                                                                              \
        return text;
        VX_ERR_TABLE(X)
#undef X
    default:
        return "unknown error code";
    }
}

vx_err vx_fail(struct vx_detail *detail, vx_err e, const char *field, const char *format, ...)
{
    if (detail) {
        va_list args;
        snprintf(detail->field, sizeof detail->field, "%s", field ? field : "");
        va_start(args, format);
        vsnprintf(detail->text, sizeof detail->text, format, args);
        va_end(args);
    }
    return e;
}
