/*
 * genscans.c - writes LiDAR scans of the street by a sensor that drives and turns while it scans.
 *
 * Use:    genscans --output DIR [--scans N] [--still]
 *
 * DIR (made) gets NNNNNN.pcd with fields x y z t, each point in the sensor's axes at its own time t, in ns
 * from the scan's stamp; times.txt, a stamp a scan; poses.txt, a pose of the sensor every 10 ms (seconds,
 * position, quaternion x y z w).  Scans are exact and take 0.1 s; the sensor drives 10 m/s and turns to and
 * fro with up to 1.3 rad/s.  --still: it stands while it scans, so that all of a scan is seen from its first
 * pose: what de-skewed scans are compared with.
 */
#include "scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COLUMNS = 900, ROWS = 64, POSES_A_SCAN = 10 };
static const double PI = 3.14159265358979323846, START_S = 1000, SCAN_S = 0.1, LOWEST = -0.43,
                    HIGHEST = 0.035, MAX_RANGE_M = 60;

struct point {
    float xyz[3];
    uint32_t t_ns;
};

/* Sensor to world after so many scans. */
static void pose_at(const struct scene *scene, double scans, double pose[12])
{
    double a[12], b[12];
    const uint32_t frame = (uint32_t)scans;
    const double part = scans - frame, yaw = 0.25 * sin(2 * PI * scans / 12), c = cos(yaw), s = sin(yaw);
    scene_pose(scene, 0, 1, pose);
    for (int row = 0; row < 3; row++) {
        double *r = pose + 4 * row;
        const double x = r[0], y = r[1];
        r[0] = c * x + s * y;
        r[1] = c * y - s * x;
    }
    scene_pose(scene, frame, 1, a);
    scene_pose(scene, frame + 1, 1, b);
    for (int row = 0; row < 3; row++)
        pose[4 * row + 3] = a[4 * row + 3] + part * (b[4 * row + 3] - a[4 * row + 3]);
}

/* Unit quaternion x y z w of a rotation by less than half a turn. */
static void quaternion(const double m[12], double q[4])
{
    const double w = sqrt(fmax(0, 1 + m[0] + m[5] + m[10])) / 2;
    q[0] = (m[9] - m[6]) / (4 * w);
    q[1] = (m[2] - m[8]) / (4 * w);
    q[2] = (m[4] - m[1]) / (4 * w);
    q[3] = w;
}

/* The points of a scan, column by column; returns their number. */
static size_t take_scan(const struct scene *scene, uint32_t scan, bool still, struct point *out)
{
    size_t n = 0;
    for (int column = 0; column < COLUMNS; column++) {
        const double part = (double)column / COLUMNS, azimuth = PI - 2 * PI * part;
        double pose[12];
        pose_at(scene, still ? scan : scan + part, pose);
        for (int row = 0; row < ROWS; row++) {
            const double e = HIGHEST - (HIGHEST - LOWEST) * row / (ROWS - 1);
            const double ray[3] = {cos(e) * cos(azimuth), cos(e) * sin(azimuth), sin(e)};
            const double from[3] = {pose[3], pose[7], pose[11]};
            double d[3];
            for (int k = 0; k < 3; k++)
                d[k] = pose[4 * k] * ray[0] + pose[4 * k + 1] * ray[1] + pose[4 * k + 2] * ray[2];
            const double t = scene_raycast(scene, scan, from, d, MAX_RANGE_M);
            if (isinf(t))
                continue;
            for (int k = 0; k < 3; k++)
                out[n].xyz[k] = (float)(t * ray[k]);
            out[n++].t_ns = (uint32_t)(part * SCAN_S * 1e9);
        }
    }
    return n;
}

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    FILE *file = NULL;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path)
        file = fopen(path, "wb");
    if (!file)
        fprintf(stderr, "genscans: cannot write %s/%s: %s\n", folder, name, strerror(errno));
    return file;
}

static bool write_scans(const struct scene *scene, const char *folder, uint32_t n_scans, bool still)
{
    struct point *points = malloc(sizeof *points * COLUMNS * ROWS);
    bool ok = points != NULL;
    for (uint32_t i = 0; ok && i < n_scans; i++) {
        char name[32];
        const size_t n = take_scan(scene, i, still, points);
        snprintf(name, sizeof name, "%06u.pcd", i);
        FILE *file = create(folder, name);
        ok =
            file &&
            fprintf(
                file,
                "VERSION .7\nFIELDS x y z t\nSIZE 4 4 4 4\nTYPE F F F U\nCOUNT 1 1 1 1\nWIDTH %zu\nHEIGHT 1\n"
                "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS %zu\nDATA binary\n",
                n, n) > 0 &&
            fwrite(points, sizeof *points, n, file) == n;
        if (file && fclose(file) != 0)
            ok = false;
    }
    free(points);
    return ok;
}

static bool write_poses(const struct scene *scene, const char *folder, uint32_t n_scans)
{
    FILE *times = create(folder, "times.txt"), *poses = create(folder, "poses.txt");
    bool ok = times && poses;
    for (uint32_t i = 0; ok && i < n_scans; i++)
        ok = fprintf(times, "%.9f\n", START_S + SCAN_S * i) > 0;
    for (uint32_t i = 0; ok && i <= n_scans * POSES_A_SCAN; i++) {
        const double scans = (double)i / POSES_A_SCAN;
        double m[12], q[4];
        pose_at(scene, scans, m);
        quaternion(m, q);
        ok = fprintf(poses, "%.9f %.12g %.12g %.12g %.15g %.15g %.15g %.15g\n", START_S + SCAN_S * scans,
                     m[3], m[7], m[11], q[0], q[1], q[2], q[3]) > 0;
    }
    if (times && fclose(times) != 0)
        ok = false;
    if (poses && fclose(poses) != 0)
        ok = false;
    return ok;
}

int main(int argc, char **argv)
{
    const uint16_t probe = 1;
    const char *folder = NULL;
    uint32_t n_scans = 16;
    bool still = false, ok = *(const uint8_t *)&probe == 1;
    for (int i = 1; ok && i < argc; i++) {
        if (strcmp(argv[i], "--output") == 0 && i + 1 < argc)
            folder = argv[++i];
        else if (strcmp(argv[i], "--scans") == 0 && i + 1 < argc)
            n_scans = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--still") == 0)
            still = true;
        else
            ok = false;
    }
    if (!ok || !folder || n_scans < 1 || n_scans >= SCENE_STREET_MAX_FRAMES) {
        fputs(
            "usage: genscans --output DIR [--scans N] [--still]     (N below 700; little-endian machines)\n",
            stderr);
        return 2;
    }
    struct scene *scene = scene_create(SCENE_STREET, false);
    ok = scene && (mkdir(folder, 0777) == 0 || errno == EEXIST) &&
         write_scans(scene, folder, n_scans, still) && write_poses(scene, folder, n_scans);
    if (!ok)
        fprintf(stderr, "genscans: could not write all of %s\n", folder);
    scene_destroy(scene);
    return ok ? 0 : 1;
}
