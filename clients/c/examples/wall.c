/*
 * Streams three synthetic depth images of a wall 2 m ahead and asks how far a point is from it.
 *
 *     wall [IPC_DIR]        (a daemon must run there; without IPC_DIR: $VOXELD_IPC_DIR or /run/voxeld)
 *
 * Build outside the project:  cc wall.c $(pkg-config --cflags --libs voxeld-client) -lm
 */
#include "voxeld/client.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 160, HEIGHT = 120 };

/* Told once for each frame what became of it. */
static void on_ack(void *context, const struct vxc_ack *ack)
{
    uint64_t *epoch = context;
    if (ack->fate == VXC_REFUSED)
        printf("frame %llu refused: %s\n", (unsigned long long)ack->seq, ack->why->text);
    else if (ack->fate == VXC_INTEGRATED)
        *epoch = ack->epoch;
}

/* Sends the frames; *epoch is that of the last one. */
static vx_err stream_wall(struct vxc_client *client, const char *map, uint64_t *epoch, struct vx_detail *why)
{
    static float depth[HEIGHT][WIDTH];
    struct vxc_stream *stream;
    const struct vxc_stream_options options = {.sensing = {.sensor = VXC_DEPTH, .no_return_value = NAN}};
    vx_err err = vxc_stream_open(client, map, &options, on_ack, epoch, &stream, why);
    if (err != VX_OK)
        return err;
    for (int v = 0; v < HEIGHT; v++)
        for (int u = 0; u < WIDTH; u++)
            depth[v][u] = 2;
    for (int i = 0; i < 3 && err == VX_OK; i++) {
        const struct vxc_frame frame = {
            .sensor = VXC_DEPTH,
            .stamp_ns = i * 33333333LL,
            .pose = {.position_m = {0.1 * i, 0, 0}, .rotation_xyzw = {0, 0, 0, 1}},
            .width = WIDTH,
            .height = HEIGHT,
            .fx = 130,
            .fy = 130,
            .cx = 79.5,
            .cy = 59.5,
            .encoding = VXC_F32,
            .data = depth,
            .data_bytes = sizeof depth,
        };
        err = vxc_stream_send(stream, &frame, NULL, NULL, why);
    }
    if (err == VX_OK)
        err = vxc_stream_flush(stream, why);
    vxc_stream_close(stream);
    return err;
}

static vx_err run(struct vxc_client *client, struct vx_detail *why)
{
    const struct vxc_map_params params = {.voxel_size_m = 0.05};
    const float point[1][3] = {{0.1f, 0.2f, 1.7f}};
    struct vxc_point_answer answer;
    uint64_t epoch = 0;
    vx_err err = vxc_map_create(client, "example", &params, NULL, why);
    if (err != VX_OK)
        return err;
    err = stream_wall(client, "example", &epoch, why);
    if (err == VX_OK)
        err = vxc_query_points(client, "example", epoch, NULL, point[0], 1, &answer, NULL, why);
    if (err == VX_OK)
        printf("(%g, %g, %g) is %.3f m from the wall, gradient (%.2f, %.2f, %.2f)\n", (double)point[0][0],
               (double)point[0][1], (double)point[0][2], (double)answer.distance_m,
               (double)answer.gradient[0], (double)answer.gradient[1], (double)answer.gradient[2]);
    vxc_map_delete(client, "example", NULL);
    return err;
}

int main(int argc, char **argv)
{
    struct vx_detail why = {"", ""};
    struct vxc_client *client;
    vx_err err = vxc_connect(argc > 1 ? argv[1] : NULL, NULL, &client, &why);
    if (err == VX_OK) {
        err = run(client, &why);
        vxc_disconnect(client);
    }
    if (err != VX_OK)
        fprintf(stderr, "%s: %s\n", vx_err_name(err), why.text);
    return err == VX_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
