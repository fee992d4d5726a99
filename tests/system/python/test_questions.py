"""Every question of the Python client, answered as voxelctl answers it on the same map; meshes, files, edits; refusals."""
import csv
import filecmp
import io
import json
import os

import numpy

import common
import voxeld
from common import WORK, check, ctl, refused, same

NAMES = ("unknown", "free", "occupied")
random = numpy.random.default_rng(23)
print("seed 23")


def make_map(client, name, n=4, **parameters):
    """A wall with a box before it, seen by a camera at the origin that moves; coloured and labelled."""
    client.create_map(name, voxel_size_m=0.05, **parameters)
    v, u = numpy.mgrid[0:96, 0:128]
    colour = numpy.stack([u, v, u + v], axis=-1).astype(numpy.uint8)
    with client.stream_depth(name, 100, 100, 63.5, 47.5) as stream:
        for i in range(n):
            image = (2.0 + 0.002 * u + 0.1 * (i % 2)).astype(numpy.float32)
            image[30:60, 40:80] = 1.2
            stream.send(image, (0.1 * i, -0.05 * i, 0.25, *((0, 0, 0, 1), (0, 0.28, 0, 0.96))[i % 2]), stamp_ns=1000 * (i + 1), colour=colour,
                        label=(u // 64).astype(numpy.uint8))
    check(stream.epoch == stream.map.epoch == n and stream.map.newest_stamp_ns == 1000 * n, f"the stream's map: {stream.map}")


def asked(kind, name, header, rows, *options):
    """voxelctl query KIND of rows, as a dict of columns."""
    path, out = os.path.join(WORK, "in.csv"), os.path.join(WORK, "out.csv")
    numpy.savetxt(path, rows, fmt="%.4f", delimiter=",", header=header, comments="")
    ctl("query", kind, name, "-i", path, "-o", out, *options)
    with open(out, encoding="ascii") as file:
        table = list(csv.DictReader(file))
    return {key: numpy.array([row[key] if key == "state" else float(row[key]) for row in table]) for key in table[0]}


def bit(status, which):
    return (status & which) != 0


def spheres(client):
    rows = numpy.concatenate([random.uniform((-1.5, -1.5, -0.5), (1.5, 1.5, 3), (4000, 3)), random.uniform(0, 0.4, (4000, 1))], axis=1).round(4)
    for min_epoch in (None, 4):
        a = client.query_spheres("lab", rows, min_epoch=min_epoch)
        c = asked("spheres", "lab", "x,y,z,radius", rows, "--status")
        same(a.clearance_m, c["distance_m"], "clearance of spheres", 1e-6)
        same(a.gradient, numpy.stack([c["gx"], c["gy"], c["gz"]], axis=1), "gradient of spheres", 1e-6)
        check((numpy.array(NAMES)[a.state] == c["state"]).all(), "states of spheres")
        same(bit(a.status, voxeld.COLLIDES), c["collides"], "collides")
        same(bit(a.status, voxeld.TOUCHES_UNKNOWN), c["touches_unknown"], "touches unknown")
    check(0 < c["collides"].sum() < len(rows) and 0 < c["touches_unknown"].sum() < len(rows), "the spheres are all of one kind")
    same(a.blocked("free"), c["collides"], "blocked where unknown is free")
    same(a.blocked(), (c["collides"] + c["touches_unknown"]) > 0, "blocked where unknown is occupied")
    refused("INVALID_ARGUMENT", "radius", client.query_spheres, "lab", [[0, 0, 0, 1e3]])
    refused("INVALID_ARGUMENT", "radius", client.query_spheres, "lab", [[0, 0, 0, -1]])
    refused("BadInput", r"\[n\]\[4\] \(x y z radius\), not \[2, 3\]", client.query_spheres, "lab", numpy.zeros((2, 3)))
    refused("BadInput", "unknown is one of", a.blocked, "maybe")
    check(client.query_spheres("lab", numpy.zeros((0, 4))).clearance_m.shape == (0,), "no spheres")
    odd = client.query_spheres("lab", [[numpy.nan, 0, 0, 0.1], [0, 0, 1, 0.1]])
    check(bit(odd.status, voxeld.IS_OUTSIDE).tolist() == [True, False] and odd.blocked().tolist() == [True, False], f"a sphere nowhere: {odd}")


def boxes(client):
    low = random.uniform((-1.5, -1.5, -0.5), (1.5, 1.5, 3), (3000, 3)).round(3)
    rows = numpy.concatenate([low, low + random.uniform(0, 0.8, (3000, 3)).round(3)], axis=1)
    a = client.query_boxes("lab", rows)
    c = asked("boxes", "lab", "min_x,min_y,min_z,max_x,max_y,max_z", rows)
    for ours, theirs in ((a.n_free, "free"), (a.n_occupied, "occupied"), (a.n_unknown, "unknown"), (bit(a.status, voxeld.IS_OUTSIDE), "outside")):
        same(ours, c[theirs], f"boxes: {theirs}")
    check(a.n_free.dtype == numpy.uint64 and a.n_occupied.any() and a.n_unknown.any() and a.n_free.any(), "the boxes are all of one kind")
    same(a.blocked("free"), c["occupied"] > 0, "boxes blocked where unknown is free")
    same(a.blocked(), c["occupied"] + c["unknown"] > 0, "boxes blocked")
    refused("BadInput", r"boxes\[1\] is upside down", client.query_boxes, "lab", [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, -1, 1]])
    refused("BadInput", r"boxes\[0\] is not finite", client.query_boxes, "lab", [0, 0, 0, numpy.nan, 1, 1])
    refused("INVALID_ARGUMENT", "box", client.query_boxes, "lab", [0, 0, 0, 1e6, 1, 1])


def rays(client):
    rows = numpy.concatenate([random.uniform((-0.3, -0.3, 0.3), (0.3, 0.3, 0.6), (4000, 3)), random.normal((0, 0, 1), 0.5, (4000, 3))], axis=1).round(4)
    a = client.query_rays("lab", rows, max_range_m=4)
    c = asked("rays", "lab", "x,y,z,dx,dy,dz", rows, "--max-range", "4")
    same(a.range_m, c["range_m"], "ranges", 1e-6)
    same(a.normal, numpy.stack([c["nx"], c["ny"], c["nz"]], axis=1), "normals", 1e-6)
    same(a.unknown_from_m, c["unknown_from_m"], "unknown_from_m", 1e-6)
    check((numpy.array(NAMES)[a.state] == c["state"]).all() and len(set(c["state"])) > 1, f"states of rays: {set(c['state'])}")
    same(a.free_range_m("free"), c["range_m"], "free range where unknown is free", 1e-6)
    same(a.free_range_m(), numpy.fmin(c["range_m"], c["unknown_from_m"]), "free range", 1e-6)
    one = client.query_rays("lab", [0, 0, 0.5, 0, 0, 2])
    check(abs(one.range_m[0] - 0.95) < 0.03 and one.normal[0, 2] < -0.95 and one.state[0] == voxeld.OCCUPIED, f"a ray ahead: {one}")
    refused("BadInput", r"rays\[0\] has no direction", client.query_rays, "lab", [0, 0, 0, 0, 0, 0])
    refused("BadInput", r"rays\[1\] is not finite", client.query_rays, "lab", [[0, 0, 0, 1, 0, 0], [0, 0, 0, numpy.inf, 0, 0]])
    refused("INVALID_ARGUMENT", "max_range_m", client.query_rays, "lab", [0, 0, 0, 1, 0, 0], max_range_m=-1)


def turns(n):
    q = random.normal(0, 1, (n, 4))
    return q / numpy.linalg.norm(q, axis=1, keepdims=True)


def robots(client):
    robot = numpy.array([[0, 0, 0, 0.15], [0.2, 0, 0, 0.1], [-0.2, 0.05, 0, 0.1]])
    path = os.path.join(WORK, "robot.csv")
    numpy.savetxt(path, robot, fmt="%.4f", delimiter=",", header="x,y,z,radius", comments="")
    poses = numpy.concatenate([random.uniform((-1, -1, 0), (1, 1, 2.5), (600, 3)), turns(600)], axis=1)
    poses = poses.round(9)  # %.4f is too coarse for a rotation
    for verb, shape, header in (("configurations", (600, 1, 7), "x,y,z,qx,qy,qz,qw"), ("paths", (120, 5, 7), "path,x,y,z,qx,qy,qz,qw")):
        rows = poses if verb == "configurations" else numpy.concatenate([numpy.repeat(numpy.arange(120), 5)[:, None], poses], axis=1)
        for unknown in ("report", "free", "occupied"):
            a = client.query_paths("lab", robot, poses.reshape(shape), unknown=unknown)
            with open(os.path.join(WORK, "paths.csv"), "w", encoding="ascii") as file:
                file.write(header + "\n")
                csv.writer(file).writerows([[repr(float(v)) for v in row] for row in rows])
            out = ctl("query", verb, "lab", "--robot", path, "--unknown", unknown, "-i", os.path.join(WORK, "paths.csv"))
            table = list(csv.DictReader(io.StringIO(out)))
            for ours, theirs in ((bit(a.status, voxeld.COLLIDES), "touches"), (a.sphere, "sphere"), (a.contact, "contact"),
                                 (a.clearance_m, "clearance_m"), (a.unknown, "unknown"), (bit(a.status, voxeld.IS_OUTSIDE), "outside")):
                same(ours, [float(row[theirs]) for row in table], f"{verb}, unknown {unknown}: {theirs}", 1e-6)
            if unknown == "report":
                check(0 < (a.sphere >= 0).sum() < len(table) and not numpy.isnan(a.unknown).all(), f"{verb} are all of one kind")
                same(a.blocked("free"), a.sphere >= 0, "paths blocked where unknown is free")
                same(a.blocked(), (a.sphere >= 0) | ~numpy.isnan(a.unknown), "paths blocked")
        if verb == "configurations":
            b = client.query_robot("lab", robot, poses, unknown="occupied")
            same(b.sphere, a.sphere, "query_robot")
    # The forms that a robot and its poses come in.
    line = numpy.array([[0, 0, 0.4], [0.1, 0, 0.7], [0, 0, 1.0]])
    matrices = numpy.tile(numpy.eye(4), (3, 1, 1))
    matrices[:, :3, 3] = line
    sevens = numpy.concatenate([line, numpy.tile((0.0, 0, 0, 1), (3, 1))], axis=1)
    wanted = client.query_paths("lab", [[0, 0, 0, 0.1]], sevens[None])
    for form in (line, line[None], sevens, matrices, matrices[None], matrices[None, :, :3]):
        got = client.query_paths("lab", 0.1, form)
        same(numpy.stack(got[:5]), numpy.stack(wanted[:5]), f"a path as {form.shape}")
    check(wanted.sphere.tolist() == [-1] and abs(wanted.clearance_m[0] - 0.35) < 0.06, f"a line before the box: {wanted}")
    check(client.query_robot("lab", 0.1, matrices).sphere.shape == (3,), "poses as matrices")
    check(client.query_paths("lab", 0.1, numpy.zeros((0, 3, 7))).sphere.shape == (0,), "no paths")
    check(len(client.query_paths("lab", 0.1, []).sphere) == len(client.query_robot("lab", 0.1, []).sphere) == 0, "no poses")
    refused("BadInput", "1 to 4096 spheres", client.query_paths, "lab", numpy.zeros((0, 4)), line)
    refused("BadInput", "1 to 4096 way-points", client.query_paths, "lab", 0.1, numpy.zeros((1, 0, 3)))
    refused("BadInput", "unknown is one of report, free, occupied; not 'no'", client.query_paths, "lab", 0.1, line, unknown="no")
    refused("BadInput", r"paths\[0\] has a quaternion", client.query_paths, "lab", 0.1, [[[0, 0, 0, 0, 0, 0, 2]]])
    refused("BadInput", r"paths\[0\] has a pose that is not finite", client.query_paths, "lab", 0.1, [[0, 0, numpy.nan]])
    refused("BadInput", r"paths\[0\]\[1\] is no rigid motion", client.query_paths, "lab", 0.1, [[numpy.eye(4), 2 * numpy.eye(4)]])
    refused("BadInput", "different lengths|not numbers", client.query_paths, "lab", 0.1, [[[0, 0, 0]], [[0, 0, 0], [1, 1, 1]]])
    refused("BadInput", "query_paths asks for paths", client.query_robot, "lab", 0.1, [[[0, 0, 0]]])
    refused("INVALID_ARGUMENT", "radius", client.query_paths, "lab", 99, line)


def slices(client):
    for options, unknown in ((("--inscribed", "0.2"), "report"), (("--inscribed", "0.2", "--unknown-free"), "free")):
        path = os.path.join(WORK, "costs.pgm")
        ctl("costmap", "lab", "--min-z", "1.33", "--max-z", "1.52", "-o", path, *options)
        a = client.query_slice("lab", 1.33, 1.52, inscribed_m=0.2, unknown=unknown)
        with open(path, "rb") as file:
            file.readline()
            width, height = (int(v) for v in file.readline().split())
            file.readline()
            image = numpy.frombuffer(file.read(), numpy.uint8).reshape(height, width)[::-1]
        same(numpy.select([a.cost == voxeld.COST_UNKNOWN, a.cost == voxeld.COST_FREE], [205, 254], 0), image, f"costs, unknown {unknown}")
        same(a.occupancy(), numpy.select([image == 205, image == 254], [-1, 0], 100), "occupancy")
        check(len(numpy.unique(image)) > 1 and a.occupancy().dtype == numpy.int8, "all cells are one kind")
        with open(path + ".yaml", encoding="ascii") as file:
            check(f"origin: [{a.origin_m[0]:.9g}, {a.origin_m[1]:.9g}, 0]" in file.read(), "the origin of the costs")
    # A height alone is what points at the cells' centres say; cells of another size and place.
    a = client.query_slice("lab", 1.47, origin_m=(-1, -0.5), shape=(10, 40), cell_m=0.05)
    y, x = numpy.mgrid[0:10, 0:40]
    points = client.query_points("lab", numpy.stack([-1 + 0.05 * (x + 0.5), -0.5 + 0.05 * (y + 0.5), numpy.full(x.shape, 1.47)], axis=-1).reshape(-1, 3))
    same(1 << points.state, a.states.ravel(), "a slice's states and those of points")
    check(a.epoch == 4 and a.cell_m == 0.05 and a.origin_m == (-1, -0.5), f"facts of a slice: {a[3:]}")
    refused("BadInput", "min_z_m: ", client.query_slice, "lab", "low")
    refused("INVALID_ARGUMENT", "heights", client.query_slice, "lab", 1, 0)
    refused("RESOURCE_EXHAUSTED", "more than the daemon answers at once", client.query_slice, "lab", 0, shape=(10**5, 10**5))
    refused("BadInput", "two whole numbers", client.query_slice, "lab", 0, shape=(1, -1))
    refused("BadInput", "must be positive", client.query_slice, "lab", 0, cell_m=0)
    client.create_map("empty", voxel_size_m=0.1)
    refused("BadInput", "map empty is empty", client.query_slice, "empty", 0)
    check((client.query_slice("empty", 0, origin_m=(0, 0), shape=(2, 3)).cost == voxeld.COST_UNKNOWN).all(), "a slice of an empty map")


def explanations(client):
    surface = client.mesh("lab").vertices[::400] + 0.001
    points = numpy.concatenate([[[0, 0, 0.61], [0.01, 0.01, 1.21], [5, 5, 5], [0.41, 0.11, 1.91], [1e7, 0, 0]], surface]).round(4)
    a, t = client.explain("lab", points), client.query_tints("lab", points)
    for i, point in enumerate(points):
        c = json.loads(ctl("--json", "explain", "lab", "--", *(repr(float(v)) for v in point)))
        check(a.why[i] == c["why"] and NAMES[a.state[i]] == c["state"] and a.voxel[i].tolist() == c["voxel"], f"explain {point}: {a.why[i]} {c}")
        for key in ("distance_m", "unknown_distance_m", "value", "weight", "changed_epoch"):
            same(getattr(a, key)[i], numpy.nan if c[key] is None else c[key], f"explain {point}: {key}", 1e-5)
        if "colour" in c:
            same(t.colour[i], c["colour"], f"colour of {point}")
        check((t.weight[i] > 0) == ("colour" in c) and t.label[i] == c.get("label", 0), f"tint of {point}: {t.label[i]} {c}")
    check(len(set(a.why)) >= 3 and t.label.any() and t.weight.any() and a.epoch == t.epoch == 4, f"the places are all of one kind: {a.why}")
    refused("BadInput", "float|numbers", client.explain, "lab", [["a", "b", "c"]])
    refused("BadInput", "complex", client.explain, "lab", [[1j, 0, 0]])
    check(client.explain("lab", []).why == [], "no places")


def batches(client):
    """More than the daemon takes at once: the same answers in pieces."""
    points = random.uniform((-1, -1, 0), (1, 1, 2.5), (2500, 3))
    paths = random.uniform((-0.5, -0.5, 0.3), (0.5, 0.5, 1), (901, 3, 3))
    ask = (lambda: client.query_points("lab", points, unknown_distance=True), lambda: client.query_paths("lab", [[0, 0, 0, 0.1], [0.1, 0, 0, 0.1]], paths),
           lambda: client.query_boxes("lab", numpy.concatenate([points, points + 0.1], axis=1)), lambda: client.query_tints("lab", points))
    whole, most = [a() for a in ask], client.limits.query_items
    client.limits.query_items = 300
    pieces = [a() for a in ask]
    refused("RESOURCE_EXHAUSTED", "more than", client.query_slice, "lab", 0, shape=(30, 11))
    client.limits.query_items = most
    for one, other in zip(whole, pieces):
        for field, a, b in zip(one._fields, one, other):
            if field != "map":
                same(a, b, f"{type(one).__name__} in pieces: {field}")
        check(one.map[:4] == other.map[:4], f"{one.map}, {other.map}")


def meshes(client):
    for name in ("lab", "plain"):
        for options, region in (((), None), (("--region", "-0.5,-0.5,0,0.5,0.5,1.4"), ((-0.5, -0.5, 0), (0.5, 0.5, 1.4)))):
            follower = client.follow_mesh(name, region=region)
            follower.update()
            mesh = client.mesh(name) if region is None else follower.mesh()
            theirs, ours = os.path.join(WORK, "c.ply"), os.path.join(WORK, "python.ply")
            ctl("mesh", name, "-o", theirs, *options)
            mesh.save(ours)
            check(filecmp.cmp(ours, theirs, shallow=False), f"the PLY of {name} {region} is not voxelctl's")
            check(len(mesh.triangles) > 100 and mesh.triangles.max() < len(mesh.vertices), f"the mesh of {name}")
            same(numpy.linalg.norm(mesh.normals, axis=1), numpy.ones(len(mesh.normals)), "normals", 1e-3)
            check((mesh.colour is None) == (name == "plain") and mesh.epoch == client.info(name)["epoch"], f"{name}: facts of the mesh")
    check(client.mesh("lab", min_weight=200).triangles.shape == (0, 3), "evidence of 200")
    # What follows the map is what comes whole.
    follower = client.follow_mesh("moving")
    make_map(client, "moving", 2)
    for step in range(3):
        change = follower.update()
        fresh = client.follow_mesh("moving")
        fresh.update()
        check(sorted(follower.chunks) == sorted(fresh.chunks) and change.epoch == follower.map.epoch == client.info("moving")["epoch"], f"step {step}")
        for key, chunk in follower.chunks.items():
            check((chunk.steps == fresh.chunks[key].steps).all() and (chunk.triangles == fresh.chunks[key].triangles).all(), f"step {step}: chunk {key}")
        welded, whole = follower.mesh(), client.mesh("moving")
        check(len(welded.triangles) == len(whole.triangles) and len(welded.vertices) == len(whole.vertices), f"step {step}: welded, {len(welded.vertices)}")
        same(numpy.sort(welded.vertices, axis=0), numpy.sort(whole.vertices, axis=0), f"step {step}: vertices", 2e-4)
        placed = numpy.concatenate([follower.vertices(chunk) for chunk in follower.chunks.values()])
        same([placed.min(axis=0), placed.max(axis=0)], [whole.vertices.min(axis=0), whole.vertices.max(axis=0)], f"step {step}: chunks' places", 2e-4)
        check(change.complete == (step == 0) and (step == 0 or len(change.changed) < len(follower.chunks)), f"step {step}: {change}")
        with client.stream_depth("moving", 100, 100, 63.5, 47.5, max_range_m=20) as stream:  # something new far away
            stream.send(numpy.full((24, 32), 3, dtype=numpy.float32), (20 + 8 * step, 0, 0, 0, 0, 0, 1), stamp_ns=10**6 + step)
    none = client.mesh_changes("moving", since=client.info("moving")["map"])
    check(none.chunks == [] and not none.complete, f"nothing changed: {none}")
    client.clear_map("moving")
    change = follower.update()
    check(change.complete and change.removed and not follower.chunks and follower.mesh().triangles.shape == (0, 3), f"cleared: {change}")
    refused("STALE_EPOCH", "epoch", client.mesh, "lab", min_epoch=10**9)
    refused("NOT_FOUND", "map", client.mesh, "nosuch")
    refused("INVALID_ARGUMENT", "nothing came yet", client.follow_mesh("lab").mesh)
    refused("INVALID_ARGUMENT", "region", client.mesh_changes, "lab", region=((1, 1, 1), (0, 0, 0)))
    refused("BadInput", "region is min x y z", client.mesh_changes, "lab", region=(1, 2))
    for since in (3, "lab", none):
        refused("BadInput", "since is the `map` of an earlier answer", client.mesh_changes, "lab", since=since)
    refused("BadInput", "only PLY", client.mesh("lab").save, os.path.join(WORK, "a.glb"))
    refused("BadInput", "min_epoch", client.mesh, "lab", "lab.ply")


def files(client):
    for form in ("nvdb", "nvdb-float"):
        ours, theirs = os.path.join(WORK, "p." + form), os.path.join(WORK, "c." + form)
        done = client.export_map("lab", ours, format=form)
        ctl("map", "export", "lab", "--format", form, "-o", theirs)
        check(filecmp.cmp(ours, theirs, shallow=False) and done.n_bytes == os.path.getsize(ours) and done.epoch == 4, f"{form}: {done}")
    check(os.path.getsize(os.path.join(WORK, "p.nvdb")) > 1 << 20, "the file is too small to travel in parts")
    info = client.import_map("copy", os.path.join(WORK, "p.nvdb"))
    check(client.digest("copy") == client.digest("lab") and info["colour"] and info["voxels"] == client.info("lab")["voxels"], "the copy differs")
    refused("ALREADY_EXISTS", "map", client.import_map, "copy", os.path.join(WORK, "p.nvdb"))
    for odd in ({"grid": 5}, {"channel": b"value"}, {"grid": "\ud800"}):
        refused("BadInput", "the name of a (grid|channel)", client.import_map, "odd", os.path.join(WORK, "p.nvdb"), **odd)
    with open(os.path.join(WORK, "bad.nvdb"), "wb") as file:
        file.write(b"no grid" * 500000)
    refused("INVALID_ARGUMENT", "", client.import_map, "bad", os.path.join(WORK, "bad.nvdb"))
    check("bad" not in client.maps(), "a refused import left a map")
    refused("NOT_FOUND", "map", client.export_map, "nosuch", os.path.join(WORK, "x.nvdb"))
    check(not [name for name in os.listdir(WORK) if name.endswith(".part") or name == "x.nvdb"], "a refused export left a file")
    refused("BadInput", "format is one of", client.export_map, "lab", "x", format="vdb")


def maps(client):
    first, second = client.protect("lab", box=((-1, -1, 0), (1, 1, 1))), client.protect("lab", ball=((0, 0, 1), 0.5))
    regions = json.loads(ctl("--json", "map", "info", "lab"))
    check(first != second and [r["id"] for r in client.info("lab")["regions"]] == [first, second] and "regions" in str(regions), "protected regions")
    check(client.info("lab")["regions"][1]["ball"] == {"centre_m": (0, 0, 1), "radius_m": 0.5}, f"{client.info('lab')['regions']}")
    client.unprotect("lab", first)
    client.unprotect("lab", second)
    refused("NOT_FOUND", "region", client.unprotect, "lab", first)
    refused("BadInput", "a box or a ball", client.protect, "lab")
    refused("BadInput", "ball is", client.protect, "lab", ball=3)
    refused("BadInput", "maps have no parameter color", client.create_map, "x", 0.1, color=True)
    refused("BadInput", "mode is one of tsdf, occupancy", client.create_map, "x", 0.1, mode="esdf")
    refused("BadInput", "voxel_size_m", client.create_map, "x", "small")
    refused("BadInput", "the name of a map is a str", client.info, 3)
    stats = client.stats()
    mine = [m for m in stats["maps"] if m["map"]["name"] == "lab"][0]
    check(mine["n_frames"] == 4 and stats["devices"][0]["backend"] == "cpu" and mine["map"]["uuid"] == client.info("lab")["map"].uuid.hex(), f"{stats}")
    check(0 < client.ping() < 60 and client.server.startswith("voxeld/"), "ping")
    state = client.clear_map("plain")
    check(state.epoch == client.info("plain")["epoch"] and client.info("plain")["voxels"] == 0, "clear")
    check([s.name for s in client.map_states()] == client.maps() == sorted(client.maps()), "names of maps")
    # A stream whose map is deleted says so, and does not wait for credit.
    client.create_map("short", voxel_size_m=0.1)
    stream = client.stream_points("short")
    client.delete_map("short")
    refused("NOT_FOUND", "stream|map", lambda: [stream.send(numpy.ones((4, 3)), numpy.eye(4)) for _ in range(100)])
    stream.close()


def epochs(client):
    """An answer is of the epoch that was asked for, or a newer one."""
    make_map(client, "epochs", 1)
    with client.stream_depth("epochs", 100, 100, 63.5, 47.5) as stream:
        for i in range(5):
            stream.send(numpy.full((96, 128), 1.0 + 0.1 * i, dtype=numpy.float32), numpy.eye(4), stamp_ns=10**9 + i)
            stream.flush()
            a = client.query_points("epochs", [[0, 0, 0.5]], min_epoch=stream.epoch)
            check(a.epoch == a.map.epoch >= stream.epoch == i + 2 and a.newest_stamp_ns == 10**9 + i, f"epochs: {a.map}")
    for ask in (client.query_spheres, client.query_boxes, client.query_rays, client.explain, client.query_tints):
        refused("STALE_EPOCH", "epoch", ask, "epochs", numpy.zeros((0, {"query_spheres": 4, "query_boxes": 6, "query_rays": 6}.get(ask.__name__, 3))),
                min_epoch=10**6)
    refused("NOT_FOUND", "map", client.query_paths, "nosuch", 0.1, [[0, 0, 0]])


def main(client):
    make_map(client, "lab", colour=True, label=True)
    make_map(client, "plain")
    spheres(client)
    boxes(client)
    rays(client)
    robots(client)
    slices(client)
    explanations(client)
    batches(client)
    meshes(client)
    files(client)
    maps(client)
    epochs(client)


common.run(main, "questions from Python")
