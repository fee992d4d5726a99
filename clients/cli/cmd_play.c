/* voxelctl play: streams a dataset into a map and says what became of every frame. */
#include "cli.h"
#include "vxc_reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char HELP[] =
    "voxelctl play - stream a dataset into a map\n"
    "\n"
    "usage: voxelctl play PATH --map NAME [options]\n"
    "\n"
    "PATH is a folder or a file.  play returns when every frame is in the map or refused, and prints how "
    "many readings were\n"
    "skipped and why, and which frames were refused and why.\n"
    "\n"
    "options\n"
    "  --map NAME             map to play into; must exist\n"
    "  --format FORMAT        auto (default), 7scenes (3DMatch too), tum, kitti, replica, redwood, slambook, "
    "pcd, xyz32, vxwl\n"
    "  --poses FILE           pose list instead of the set's own: 12 or 16 numbers a line (matrix), 8 (TUM), "
    "7 (tx ty tz\n"
    "                         qx qy qz qw), or a Redwood log; pose k belongs to file k\n"
    "  --intrinsics FX,FY,CX,CY  pixels, instead of the set's own; fy < 0 says that image rows run upwards\n"
    "  --depth-scale UNITS    units of a depth image per metre (1000 = millimetres), instead of the format's "
    "own\n"
    "  --min-range M          nearer readings are skipped; default 0.1 (depth), 0.5 (LiDAR)\n"
    "  --max-range M          farther readings only clear space; default 8 (depth), 60 (LiDAR)\n"
    "  --rate HZ|max          frames a second; default max\n"
    "  --frames N             only the first N frames\n"
    "  --no-carving           integrate surfaces only, clear nothing\n"
    "  --deskew auto|on|off   points of PCD files that have a time each (a field t, time, timestamp, "
    "offset_time or\n"
    "                         time_offset) are placed by the pose at that time, when the poses have times "
    "too: "
    "a list of\n"
    "                         8 numbers a line, or times.txt.  auto (default): scans without poses around "
    "them as if the\n"
    "                         sensor had stood still; on: those are refused; off: for scans that were "
    "de-skewed before\n"
    "  --weights PATTERN      grey image (PNG, PGM) with the weight of each pixel of a depth image: 0 = not "
    "used, the largest\n"
    "                         value = 1; * in the path is the depth image's name without its ending, # the "
    "digits at its\n"
    "                         end; a path without them is one mask for all frames\n"
    "  --weight-white V       the value that is the weight 1, instead of the largest\n"
    "  --no-colour            leave colour images alone; default: a map that keeps colour gets those of the "
    "set\n"
    "\n"
    "Formats without times get stamps of i/30 s (depth) or i/10 s (LiDAR), whatever the rate.\n"
    "\n"
    "exit codes: 0 every frame is in the map, 1 failed, 2 wrong usage, 3 no daemon, 4 some frames were "
    "refused (the others are\n"
    "in the map), 5 no frame went into the map, 130 interrupted\n";

enum { MAX_REFUSALS = 1000 }; /* kept for the report; all are counted */

struct refusal {
    uint64_t index;
    vx_err err;
    char name[96];
    struct vx_detail why;
};

/* What is known so far; acknowledgements add to it. */
struct tally {
    uint64_t n_sent, n_integrated, n_superseded, n_refused, n_unanswered;
    uint64_t n_empty, n_beyond; /* frames with a warning */
    uint64_t epoch;
    struct vxc_counts readings;
    struct refusal *refusal;
    size_t n_kept, capacity;
    double reading_s; /* spent on files */
};

struct play {
    const char *path, *map;
    struct vxc_reader_options reader;
    double rate_hz; /* 0: as fast as it goes */
    bool no_carving, no_colour;
    bool colour; /* the map keeps it */
    struct tally tally;
    struct cli_bar bar;
};

/* ------------------------------------------------------------------ tally */

static void add_refusal(struct tally *t, uint64_t index, const char *name, vx_err err,
                        const struct vx_detail *why)
{
    t->n_refused++;
    if (t->n_kept == t->capacity && t->capacity < MAX_REFUSALS) {
        const size_t capacity = t->capacity ? 2 * t->capacity : 16;
        struct refusal *grown = realloc(t->refusal, capacity * sizeof *grown);
        if (!grown)
            return; /* still counted */
        t->refusal = grown;
        t->capacity = capacity;
    }
    if (t->n_kept == t->capacity)
        return;
    struct refusal *r = &t->refusal[t->n_kept++];
    r->index = index;
    r->err = err;
    r->why = *why;
    snprintf(r->name, sizeof r->name, "%s", name);
}

static void add_counts(struct vxc_counts *sum, const struct vxc_counts *more)
{
    sum->used += more->used;
    sum->no_return += more->no_return;
    sum->zero += more->zero;
    sum->negative += more->negative;
    sum->nan += more->nan;
    sum->saturated += more->saturated;
    sum->too_near += more->too_near;
    sum->outside += more->outside;
}

static void on_ack(void *context, const struct vxc_ack *ack)
{
    struct tally *t = context;
    const uint64_t index = (uint64_t)(uintptr_t)ack->user;
    char name[32];
    switch (ack->fate) {
    case VXC_INTEGRATED:
        t->n_integrated++;
        t->epoch = ack->epoch;
        add_counts(&t->readings, &ack->counts);
        /* Zeros among far readings are no excuse: a frame that saw only "nothing there" has the wrong unit or
         * range. */
        if (ack->warnings & VXC_WARN_ALL_BEYOND || (ack->counts.used == 0 && ack->counts.no_return > 0))
            t->n_beyond++;
        else if (ack->warnings & VXC_WARN_EMPTY)
            t->n_empty++;
        return;
    case VXC_SUPERSEDED:
        t->n_superseded++;
        return;
    case VXC_REFUSED:
        snprintf(name, sizeof name, "frame %" PRIu64, index);
        add_refusal(t, index, name, ack->err, ack->why);
        return;
    case VXC_RECEIVED:
        return;
    }
}

/* ------------------------------------------------------------------ progress */

static void draw_bar(struct play *p, uint64_t done, uint64_t total, bool last)
{
    cli_bar_draw(&p->bar, done, total, last, "%" PRIu64 "/%" PRIu64 " frames, %" PRIu64 " refused", done,
                 total, p->tally.n_refused);
}

/* Sleeps until a time of the monotonic clock; false when interrupted. */
static bool sleep_until(double when_s)
{
    const double slice_s = 0.05; /* a signal just before the sleep does not end it: do not sleep long */
    for (double now = cli_now_s(); now < when_s && !cli_interrupted(); now = cli_now_s()) {
        const double left = when_s - now < slice_s ? when_s - now : slice_s;
        const struct timespec t = {.tv_nsec = (long)(left * 1e9)};
        (void)nanosleep(&t, NULL);
    }
    return !cli_interrupted();
}

/* ------------------------------------------------------------------ streaming */

static vx_err stream_frames(struct play *p, struct vxc_reader *reader, struct vxc_stream *stream,
                            struct vx_detail *detail)
{
    const uint64_t total = vxc_reader_get_info(reader)->n_frames;
    const double start_s = cli_now_s();
    for (;;) {
        struct vxc_frame frame;
        struct vx_detail why;
        enum vxc_step step;
        vx_err code;
        const double before_s = cli_now_s();
        const vx_err err = vxc_reader_next(reader, &frame, &step, &code, &why);
        if (err != VX_OK) {
            *detail = why;
            return err;
        }
        p->tally.reading_s += cli_now_s() - before_s;
        if (step == VXC_STEP_END)
            break;
        if (cli_interrupted() || (p->rate_hz > 0 && !sleep_until(start_s + (double)frame.index / p->rate_hz)))
            return vx_fail(detail, VX_E_CANCELLED, "", "interrupted at frame %" PRIu64 " of %" PRIu64,
                           frame.index, total);
        if (step == VXC_STEP_REFUSED) {
            add_refusal(&p->tally, frame.index, frame.name, code, &why);
            continue;
        }
        VX_TRY_RET(vxc_stream_send(stream, &frame, (void *)(uintptr_t)frame.index, NULL, detail));
        p->tally.n_sent++;
        draw_bar(p, p->tally.n_integrated + p->tally.n_refused, total, false);
    }
    VX_TRY_RET(vxc_stream_flush(stream, detail));
    draw_bar(p, total, total, true);
    return VX_OK;
}

/* ------------------------------------------------------------------ report */

static void print_count(const char *name, uint64_t n, uint64_t of, const char *words)
{
    char text[CLI_TEXT_MAX];
    if (n > 0)
        printf("  %-20s %15s  %5.1f %%  %s\n", name, cli_count(n, text),
               of ? 100.0 * (double)n / (double)of : 0.0, words);
}

static uint64_t n_readings(const struct vxc_counts *c)
{
    return c->used + c->no_return + c->zero + c->negative + c->nan + c->saturated + c->too_near + c->outside;
}

static void print_refusals(const struct tally *t)
{
    enum { SHOWN = 10 };
    if (t->n_refused == 0)
        return;
    puts("refused frames");
    for (size_t i = 0; i < t->n_kept && i < SHOWN; i++)
        printf("  %-24s %s [%s%s%s]\n", t->refusal[i].name, t->refusal[i].why.text,
               vx_err_name(t->refusal[i].err), t->refusal[i].why.field[0] ? " " : "",
               t->refusal[i].why.field);
    if (t->n_refused > SHOWN)
        printf("  and %" PRIu64 " more (--json lists them)\n", t->n_refused - SHOWN);
}

static void print_report(const struct play *p, const struct vxc_reader_info *info, double seconds)
{
    const uint64_t n_frames = info->n_frames;
    const bool depth = info->sensing.sensor == VXC_DEPTH;
    const struct tally *t = &p->tally;
    const struct vxc_counts *c = &t->readings;
    const uint64_t n = n_readings(c);
    char text[CLI_TEXT_MAX];
    printf("%-22s %" PRIu64 "\n", "frames", n_frames);
    printf("%-22s %" PRIu64 "\n", "integrated", t->n_integrated);
    printf("%-22s %" PRIu64 "\n", "refused", t->n_refused);
    if (t->n_unanswered > 0)
        printf("%-22s %" PRIu64 " (sent before the end; the map may hold them)\n", "unanswered",
               t->n_unanswered);
    if (t->n_superseded > 0)
        printf("%-22s %" PRIu64 "\n", "superseded", t->n_superseded);
    printf("%-22s %.2f (reading files takes %.2f of it)\n", "ms per frame",
           n_frames ? 1e3 * seconds / (double)n_frames : 0,
           n_frames ? 1e3 * t->reading_s / (double)n_frames : 0);
    printf("%-22s %s\n", "readings", cli_count(n, text));
    print_count("made surface", c->used, n, "");
    print_count("saw nothing", c->no_return, n, "no return or beyond the maximum range: they clear space");
    print_count("skipped: zero", c->zero, n, "");
    print_count("skipped: negative", c->negative, n, "");
    print_count("skipped: NaN", c->nan, n, "");
    print_count("skipped: 65535", c->saturated, n, "");
    print_count("skipped: too near", c->too_near, n, "nearer than --min-range");
    print_count("skipped: outside", c->outside, n, "beyond the map's range of coordinates");
    if (t->n_beyond > 0)
        printf("warning: in %" PRIu64 " frames every reading was beyond the maximum range of %g m: %s?\n",
               t->n_beyond, info->sensing.max_range_m,
               depth ? "wrong --depth-scale" : "are the points in the sensor's own coordinates");
    if (info->n_deskewed > 0)
        printf("%-22s %" PRIu64 " scans (--deskew off if they were before)\n", "de-skewed", info->n_deskewed);
    if (info->n_rigid > 0)
        printf("warning: %" PRIu64 " scans with times for their points were not de-skewed: %s\n",
               info->n_rigid, info->rigid_why);
    if (p->colour)
        printf("%-22s of %" PRIu64 " frames%s\n", "colour", info->n_colours - info->n_colours_lost,
               info->n_colours ? "" : ": the map keeps colours, and the set brings none that are read");
    if (p->colour && info->n_colours_missing > 0)
        printf("warning: %" PRIu64 " frames have no colour image, the first of them %s\n",
               info->n_colours_missing, info->colour_missing);
    if (info->n_colours_lost > 0)
        printf("warning: the colours of %" PRIu64 " frames could not be used: %s\n", info->n_colours_lost,
               info->colour_why);
    if (t->n_empty > 0)
        printf("warning: %" PRIu64 " frames had no usable reading\n", t->n_empty);
    print_refusals(t);
}

static int json_report(const struct play *p, const struct vxc_reader_info *info, double seconds,
                       bool complete)
{
    struct json j = {stdout, false};
    const struct tally *t = &p->tally;
    json_begin(&j, NULL, '{');
    json_text(&j, "map", p->map);
    json_text(&j, "format", vxc_format_name(info->format));
    json_text(&j, "found", info->found);
    json_bool(&j, "complete", complete);
    json_u64(&j, "frames", info->n_frames);
    json_u64(&j, "integrated", t->n_integrated);
    json_u64(&j, "refused", t->n_refused);
    json_u64(&j, "superseded", t->n_superseded);
    json_u64(&j, "epoch", t->epoch);
    json_number(&j, "seconds", seconds);
    json_number(&j, "ms_per_frame", info->n_frames ? 1e3 * seconds / (double)info->n_frames : 0);
    json_number(&j, "file_ms_per_frame", info->n_frames ? 1e3 * t->reading_s / (double)info->n_frames : 0);
    json_counts(&j, "readings", &t->readings);
    json_u64(&j, "frames_with_colour", p->colour ? info->n_colours - info->n_colours_lost : 0);
    json_u64(&j, "frames_without_colour", p->colour ? info->n_frames - info->n_colours : 0);
    json_u64(&j, "colours_not_used", info->n_colours_lost);
    if (info->n_colours_lost > 0)
        json_text(&j, "colours_not_used_why", info->colour_why);
    json_u64(&j, "frames_deskewed", info->n_deskewed);
    json_u64(&j, "frames_not_deskewed", info->n_rigid);
    json_u64(&j, "frames_all_beyond", t->n_beyond);
    json_u64(&j, "frames_without_readings", t->n_empty);
    json_begin(&j, "notes", '[');
    for (uint32_t i = 0; i < info->n_notes; i++)
        json_text(&j, NULL, info->note[i]);
    json_end(&j, ']');
    json_begin(&j, "refusals", '[');
    for (size_t i = 0; i < t->n_kept; i++) {
        json_begin(&j, NULL, '{');
        json_u64(&j, "frame", t->refusal[i].index);
        json_text(&j, "name", t->refusal[i].name);
        json_text(&j, "code", vx_err_name(t->refusal[i].err));
        json_text(&j, "field", t->refusal[i].why.field);
        json_text(&j, "message", t->refusal[i].why.text);
        json_end(&j, '}');
    }
    json_end(&j, ']');
    json_end(&j, '}');
    return json_finish(&j);
}

/* ------------------------------------------------------------------ options */

enum {
    MAP,
    FORMAT,
    POSES,
    INTRINSICS,
    SCALE,
    MIN_RANGE,
    MAX_RANGE,
    RATE,
    FRAMES,
    NO_CARVING,
    NO_COLOUR,
    DESKEW,
    WEIGHTS,
    WEIGHT_WHITE,
    N_OPTIONS
};

static const struct cli_option OPTIONS[N_OPTIONS] = {
    [MAP] = {"map", 'm', true},
    [FORMAT] = {"format", 0, true},
    [POSES] = {"poses", 0, true},
    [INTRINSICS] = {"intrinsics", 0, true},
    [SCALE] = {"depth-scale", 0, true},
    [MIN_RANGE] = {"min-range", 0, true},
    [MAX_RANGE] = {"max-range", 0, true},
    [RATE] = {"rate", 0, true},
    [FRAMES] = {"frames", 0, true},
    [NO_CARVING] = {"no-carving", 0, false},
    [NO_COLOUR] = {"no-colour", 0, false},
    [DESKEW] = {"deskew", 0, true},
    [WEIGHTS] = {"weights", 0, true},
    [WEIGHT_WHITE] = {"weight-white", 0, true},
};

static bool take_option(struct cli *cli, int option, const char *value, struct play *p)
{
    switch (option) {
    case MAP:
        p->map = value;
        return true;
    case FORMAT:
        p->reader.format = vxc_format_from_name(value);
        if (p->reader.format == VXC_N_FORMATS)
            return cli_usage(cli,
                             "--format: '%s' is none of auto, 7scenes, tum, kitti, replica, redwood, "
                             "slambook, pcd, "
                             "xyz32, vxwl",
                             value),
                   false;
        return true;
    case POSES:
        p->reader.poses_path = value;
        return true;
    case INTRINSICS:
        p->reader.has_intrinsics = true;
        return cli_numbers(cli, "--intrinsics", value, p->reader.intrinsics, 4);
    case SCALE:
        return cli_number(cli, "--depth-scale", value, 1e-6, 1e9, &p->reader.depth_units_per_m);
    case MIN_RANGE:
        return cli_number(cli, "--min-range", value, 1e-6, 1e5, &p->reader.min_range_m);
    case MAX_RANGE:
        return cli_number(cli, "--max-range", value, 1e-6, 1e5, &p->reader.max_range_m);
    case RATE:
        return strcmp(value, "max") == 0 || cli_number(cli, "--rate", value, 1e-3, 1e6, &p->rate_hz);
    case FRAMES:
        return cli_whole(cli, "--frames", value, 1, UINT64_MAX, &p->reader.max_frames);
    case DESKEW:
        if (!vxc_deskew_from_name(value, &p->reader.deskew))
            return cli_usage(cli, "--deskew: '%s' is none of auto, on, off", value), false;
        return true;
    case WEIGHTS:
        p->reader.weights = value;
        return true;
    case WEIGHT_WHITE:
        return cli_number(cli, "--weight-white", value, 1, 1e9, &p->reader.weight_white);
    case NO_COLOUR:
        p->no_colour = true;
        return true;
    default:
        p->no_carving = true;
        return true;
    }
}

static int parse(struct cli *cli, struct play *p)
{
    const char *value;
    for (int got; (got = cli_next(cli, OPTIONS, N_OPTIONS, &value)) != CLI_END;) {
        if (got < CLI_WORD)
            return cli_option_exit(got);
        if (got == CLI_WORD && p->path)
            return cli_usage(cli, "'%s' is one word too many", value);
        if (got == CLI_WORD)
            p->path = value;
        else if (!take_option(cli, got, value, p))
            return CLI_USAGE;
    }
    if (!p->path || !p->map)
        return cli_usage(cli, "play needs a path and --map NAME");
    return -1;
}

/* ------------------------------------------------------------------ play */

static int finish(struct cli *cli, struct play *p, const struct vxc_reader_info *info, double seconds,
                  vx_err err, const struct vx_detail *detail)
{
    if (!cli->json)
        print_report(p, info, seconds);
    else if (err == VX_OK && json_report(p, info, seconds, true) != CLI_OK)
        return CLI_FAILED;
    if (err != VX_OK)
        return cli_error(cli, err, detail);
    if (p->tally.n_integrated == 0) {
        fprintf(stderr, "voxelctl: no frame went into the map\n");
        return CLI_NOTHING;
    }
    return p->tally.n_refused > 0 ? CLI_SOME_REFUSED : CLI_OK;
}

/* A map that keeps colour gets the colours that the set has. */
static vx_err choose_colour(struct cli *cli, struct play *p, struct vxc_reader *reader,
                            struct vx_detail *detail)
{
    struct vxc_map_info map;
    if (p->no_colour)
        return VX_OK;
    VX_TRY_RET(vxc_map_get_info(cli->client, p->map, &map, detail));
    p->colour = map.params.colour;
    vxc_reader_use_colour(reader, p->colour);
    return VX_OK;
}

static int play(struct cli *cli, struct play *p, struct vxc_reader *reader)
{
    const struct vxc_reader_info *info = vxc_reader_get_info(reader);
    struct vxc_stream_options options = {.sensing = info->sensing};
    struct vxc_stream *stream;
    struct vx_detail detail;
    options.sensing.no_carving = p->no_carving;
    vx_err err = choose_colour(cli, p, reader, &detail);
    if (err == VX_OK)
        err = vxc_stream_open(cli->client, p->map, &options, on_ack, &p->tally, &stream, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, p->map);
    if (!cli->json) {
        printf("%s\n", info->found);
        for (uint32_t i = 0; i < info->n_notes; i++)
            printf("note: %s\n", info->note[i]);
        fflush(stdout);
    }
    cli_bar_init(&p->bar, cli);
    const double start_s = cli_now_s();
    err = stream_frames(p, reader, stream, &detail);
    p->tally.n_unanswered = vxc_stream_n_waiting(stream);
    const double seconds = cli_now_s() - start_s;
    if (err != VX_OK)
        cli_bar_break(&p->bar);
    const int code = finish(cli, p, info, seconds, err, &detail);
    vxc_stream_close(stream);
    return code;
}

int cmd_play(struct cli *cli)
{
    struct play p = {.path = NULL};
    struct vxc_reader *reader;
    struct vx_detail detail;
    cli->help = HELP;
    int code = parse(cli, &p);
    if (code >= 0)
        return code;
    const vx_err err = vxc_reader_open(p.path, &p.reader, &reader, &detail);
    if (err != VX_OK)
        return cli_error(cli, err, &detail);
    code = cli_connect(cli);
    if (code == CLI_OK)
        code = play(cli, &p, reader);
    vxc_reader_close(reader);
    free(p.tally.refusal);
    return code;
}
