/*
 * log.h - structured lines on stderr: time=... level=... event=... key=value ...
 *
 * A line is handed to a thread of its own through a bounded ring, so that a reader of stderr that stalls
 * never stops the loop; lines that find the ring full are counted and the count is logged later. Thread:
 * vxd_log from any; start and stop from one.
 */
#ifndef VXD_LOG_H
#define VXD_LOG_H

enum vxd_log_level { VXD_LOG_ERROR, VXD_LOG_WARN, VXD_LOG_INFO, VXD_LOG_DEBUG };

void vxd_log_start(enum vxd_log_level level);
/* Writes what is waiting, then ends the thread.  Later lines go straight to stderr. */
void vxd_log_stop(void);

/* event: one word.  format: key=value pairs; use vxd_quote for values that peers chose.  At most 480 bytes.
 */
void vxd_log(enum vxd_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct vxd_quoted {
    char text[200];
};
/* Bytes of a peer as a quoted word: anything but printable ASCII is escaped, long ones are cut off with
 * "...". */
struct vxd_quoted vxd_quote(const void *bytes, unsigned long n);

#endif
