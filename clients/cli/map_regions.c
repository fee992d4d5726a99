/* What voxelctl map says of decay, memory and protected regions, and the verbs protect and unprotect. */
#include "map_files.h"

#include <inttypes.h>
#include <stdio.h>

int map_protect(struct cli *cli, const struct map_args *a)
{
    struct vxc_region region = a->region;
    struct vx_detail detail;
    const vx_err err = vxc_map_protect(cli->client, a->name, &region, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, a->name);
    if (!cli->json) {
        printf("map %s: region %u is protected\n", a->name, region.id);
        return CLI_OK;
    }
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_text(&j, "map", a->name);
    json_u64(&j, "region", region.id);
    json_end(&j, '}');
    return json_finish(&j);
}

int map_unprotect(struct cli *cli, const struct map_args *a)
{
    struct vx_detail detail;
    const vx_err err = vxc_map_unprotect(cli->client, a->name, (uint32_t)a->region_id, &detail);
    if (err != VX_OK)
        return cli_map_error(cli, err, &detail, a->name);
    if (!cli->json) {
        printf("map %s: region %" PRIu64 " is no longer protected\n", a->name, a->region_id);
        return CLI_OK;
    }
    struct json j = {stdout, false};
    json_begin(&j, NULL, '{');
    json_text(&j, "map", a->name);
    json_u64(&j, "region", a->region_id);
    json_end(&j, '}');
    return json_finish(&j);
}

static void print_region(const struct vxc_region *r)
{
    if (r->ball)
        printf("protected %-8u ball of %g m round (%.3f, %.3f, %.3f) m\n", r->id, r->radius_m, r->centre_m[0],
               r->centre_m[1], r->centre_m[2]);
    else
        printf("protected %-8u (%.3f, %.3f, %.3f) .. (%.3f, %.3f, %.3f) m\n", r->id, r->min_m[0], r->min_m[1],
               r->min_m[2], r->max_m[0], r->max_m[1], r->max_m[2]);
}

void map_print_upkeep(const struct vxc_map_info *info)
{
    const struct vxc_map_params *p = &info->params;
    const struct vxc_map_memory *m = &info->memory;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX], c[CLI_TEXT_MAX];
    printf("%-18s topology %s, values %s, keys %s", "", cli_bytes(m->topology_bytes, a),
           cli_bytes(m->values_bytes, b), cli_bytes(m->table_bytes, c));
    if (p->colour)
        printf(", colours %s", cli_bytes(m->colour_bytes, a));
    if (p->label)
        printf(", labels %s", cli_bytes(m->label_bytes, a));
    printf(", held %s, retired %s, scratch %s\n", cli_bytes(m->held_bytes, a), cli_bytes(m->retired_bytes, b),
           cli_bytes(m->scratch_bytes, c));
    if (p->half_life_s > 0)
        printf("%-18s half-life %g s%s, clock %.3f s, sweep %.3f s behind\n", "decay", p->half_life_s,
               p->decay_spares_seen ? " (spares what is seen)" : "", info->decay_clock_s, info->sweep_lag_s);
    if (p->forget_radius_m > 0)
        printf("%-18s beyond %g m from the sensor\n", "forgets", p->forget_radius_m);
    for (uint32_t i = 0; i < info->n_regions; i++)
        print_region(&info->region[i]);
}

void map_json_memory(struct json *j, const struct vxc_map_memory *m)
{
    json_begin(j, "memory", '{');
    json_u64(j, "topology_bytes", m->topology_bytes);
    json_u64(j, "values_bytes", m->values_bytes);
    json_u64(j, "colour_bytes", m->colour_bytes);
    json_u64(j, "label_bytes", m->label_bytes);
    json_u64(j, "table_bytes", m->table_bytes);
    json_u64(j, "held_bytes", m->held_bytes);
    json_u64(j, "retired_bytes", m->retired_bytes);
    json_u64(j, "scratch_bytes", m->scratch_bytes);
    json_end(j, '}');
}

void map_json_upkeep(struct json *j, const struct vxc_map_info *info)
{
    const struct vxc_map_params *p = &info->params;
    map_json_memory(j, &info->memory);
    json_number(j, "half_life_s", p->half_life_s);
    json_bool(j, "decay_spares_seen", p->decay_spares_seen);
    json_number(j, "forget_radius_m", p->forget_radius_m);
    json_u64(j, "sweep_words", p->sweep_words);
    json_bool(j, "colour", p->colour);
    json_bool(j, "label", p->label);
    json_number(j, "decay_clock_s", info->decay_clock_s);
    json_number(j, "sweep_lag_s", info->sweep_lag_s);
    json_begin(j, "regions", '[');
    for (uint32_t i = 0; i < info->n_regions; i++) {
        const struct vxc_region *r = &info->region[i];
        json_begin(j, NULL, '{');
        json_u64(j, "id", r->id);
        if (r->ball) {
            json_vector(j, "centre_m", r->centre_m, 3);
            json_number(j, "radius_m", r->radius_m);
        } else {
            json_vector(j, "min_m", r->min_m, 3);
            json_vector(j, "max_m", r->max_m, 3);
        }
        json_end(j, '}');
    }
    json_end(j, ']');
}
