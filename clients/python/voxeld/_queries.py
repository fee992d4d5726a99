"""What a map says of points, spheres, boxes, rays, robots and paths, slices; why places are what they are."""
import collections

import numpy

from . import _wire as wire
from ._arrays import check_rows, floats, numbers, origin_of, poses_of, rows
from ._wire import BadInput

UNKNOWN, FREE, OCCUPIED = 0, 1, 2  # states of a place
HAS_DISTANCE, HAS_GRADIENT, IS_OUTSIDE, TOUCHES_UNKNOWN, COLLIDES = 1, 2, 4, 8, 16  # bits of a status
COST_FREE, COST_INSCRIBED, COST_OCCUPIED, COST_UNKNOWN = 0, 253, 254, 255  # of a cell of a slice
WHY = ("outside", "never_seen", "seen_empty", "free_cell", "measured")  # of an explanation

_MOST_SPHERES = _MOST_WAYPOINTS = 4096
_BODY_BYTES = 64 << 20  # of one request, about
_POINT = [("distance_m", "<f4"), ("gradient", "<f4", 3), ("state", "<u4"), ("status", "<u4")]
_BEYOND = [("unknown_distance_m", "<f4")]
_RAY = [("range_m", "<f4"), ("normal", "<f4", 3), ("state", "<u4"), ("unknown_from_m", "<f4")]
_PATH = [("sphere", "<u4"), ("contact", "<f4"), ("clearance_m", "<f4"), ("unknown", "<f4"), ("status", "<u4"), ("", "<u4")]
_BOX = [("n_free", "<u8"), ("n_occupied", "<u8"), ("n_unknown", "<u8"), ("status", "<u4"), ("", "<u4")]
_CELL = [("distance_m", "<f4"), ("cost", "u1"), ("states", "u1"), ("", "<u2")]
_REASON = [("why", "<u4"), ("voxel", "<i4", 3), ("value", "<f4"), ("weight", "<u4"), ("changed_epoch", "<u4")]
TINT = [("colour", "u1", 3), ("label", "u1"), ("weight", "u1"), ("confidence", "u1"), ("", "<u2")]


def _counts(unknown):
    """Whether unknown space counts as occupied."""
    return wire.choice(unknown, {"free": False, "occupied": True}, "unknown")


class Points(wire.OfMap, collections.namedtuple("Points", "distance_m gradient state status unknown_distance_m map")):
    """Of n points.  distance_m float32 [n]: to the nearest surface, positive outside, NaN: none within R; gradient float32
    [n][3]: unit, away from the surface, 0 0 0 where undefined; state uint32 [n]: UNKNOWN, FREE, OCCUPIED; status uint32 [n]:
    bits; unknown_distance_m float32 [n]: to the nearest unknown voxel (0 in one, NaN: none within R), None unless asked for;
    map: MapState."""

    __slots__ = ()

    def blocked(self, unknown="occupied"):
        """bool [n]: occupied, or unknown where that counts as "occupied" (or as "free")."""
        return (self.state == OCCUPIED) | (self.state == UNKNOWN if _counts(unknown) else False)


class Spheres(wire.OfMap, collections.namedtuple("Spheres", "clearance_m gradient state status map")):
    """Of n spheres.  clearance_m float32 [n]: from the skin to the nearest surface, NaN: none within R; gradient, state: of
    the centre, as in Points; status uint32 [n]: bits COLLIDES, TOUCHES_UNKNOWN, IS_OUTSIDE, ...; map: MapState."""

    __slots__ = ()

    def blocked(self, unknown="occupied"):
        """bool [n]: a surface is within the radius, or unknown space where that counts as "occupied" (or as "free")."""
        return (self.status & (COLLIDES | (TOUCHES_UNKNOWN | IS_OUTSIDE if _counts(unknown) else 0))) != 0


class Boxes(wire.OfMap, collections.namedtuple("Boxes", "n_free n_occupied n_unknown status map")):
    """Of n boxes.  n_free, n_occupied, n_unknown uint64 [n]: voxels that the box meets; status uint32 [n]: IS_OUTSIDE where
    it lies partly beyond the map's coordinates; map: MapState."""

    __slots__ = ()

    def blocked(self, unknown="occupied"):
        """bool [n]: it meets an occupied voxel, or an unknown one where that counts as "occupied" (or as "free")."""
        return (self.n_occupied > 0) | ((self.n_unknown > 0) | ((self.status & IS_OUTSIDE) != 0) if _counts(unknown) else False)


class Rays(wire.OfMap, collections.namedtuple("Rays", "range_m normal state unknown_from_m map")):
    """Of n rays.  range_m float32 [n]: to the first surface, NaN without a hit; normal float32 [n][3]: unit, towards the ray's
    origin; state uint32 [n]: OCCUPIED hit, FREE all free, UNKNOWN no hit, met unknown space; unknown_from_m float32 [n]: range
    of the first unknown voxel before the hit, NaN: none; map: MapState."""

    __slots__ = ()

    def free_range_m(self, unknown="occupied"):
        """float32 [n]: how far the ray gets, NaN: up to max_range_m.  Unknown space counts as "occupied" or as "free"."""
        return numpy.fmin(self.range_m, self.unknown_from_m) if _counts(unknown) else self.range_m.copy()


class Paths(wire.OfMap, collections.namedtuple("Paths", "sphere contact clearance_m unknown status map")):
    """Of a robot at n poses or along n paths.  sphere int64 [n]: the first to touch, -1: none; contact float32 [n]: where,
    way-point and part of the way to the next, NaN: nowhere; clearance_m float32 [n]: no surface is nearer to a sphere's skin,
    of a path that touches: there, NaN: none within R; unknown float32 [n]: where unknown space was first met, or the path
    stops being judged (IS_OUTSIDE: it leaves the map's coordinates, or way-points are over 4096 voxels apart), NaN: nowhere;
    status uint32 [n]: COLLIDES, TOUCHES_UNKNOWN, IS_OUTSIDE; map: MapState."""

    __slots__ = ()

    def blocked(self, unknown="occupied"):
        """bool [n]: it touches something, or meets unknown space where that counts as "occupied" (or as "free")."""
        return (self.status & (COLLIDES | (TOUCHES_UNKNOWN | IS_OUTSIDE if _counts(unknown) else 0))) != 0


class Slice(wire.OfMap, collections.namedtuple("Slice", "distance_m cost states origin_m cell_m map")):
    """Columns over a band of heights, [n_y][n_x].  distance_m float32: the least of the band, NaN: none within R; cost uint8,
    as Nav2 counts: 0 free, 253 nearer than inscribed_m, 254 occupied, 255 unknown; states uint8: bits 1 unknown, 2 free,
    4 occupied, what the band has; origin_m: (x, y) of the lower corner of cell [0][0]; cell_m; map: MapState."""

    __slots__ = ()

    def occupancy(self):
        """int8 [n_y][n_x] as in a ROS OccupancyGrid: -1 unknown, 0 free, 100 occupied or nearer than inscribed_m."""
        return numpy.select([self.cost == COST_UNKNOWN, self.cost == COST_FREE], [-1, 0], 100).astype(numpy.int8)


class Explanations(wire.OfMap, collections.namedtuple(
        "Explanations", "why voxel value weight changed_epoch distance_m gradient state status unknown_distance_m map")):
    """Why n points are what they are.  why [n]: words of WHY; voxel int32 [n][3]: that holds the point; value float32 [n]:
    where measured, distance in m or log-odds; weight uint32 [n]: of a distance; changed_epoch uint32 [n]: in which the 32^3
    voxels around last changed, 0: never; the others as in Points."""

    __slots__ = ()


class Tints(wire.OfMap, collections.namedtuple("Tints", "colour label weight confidence map")):
    """Of n points.  colour uint8 [n][3] red, green, blue (128 each where there is none); label uint8 [n], 0 = none; weight
    uint8 [n] of the colour, 0: there is none; confidence uint8 [n] of the label; map: MapState."""

    __slots__ = ()


class Queries:
    """The client's questions; Client says what holds for all of them."""

    def _rows_of(self, kind, name, places, items, answer, min_epoch, common=b"", **fields):
        """One question for all items [n][..]: its answers as one structured array, and the MapState.

        places: what the origin is chosen by; fields: others of the wire's message."""
        header = wire.Header()
        ask = getattr(header, kind)
        ask.map = wire.name_of(name)
        origin = origin_of(places)
        items = floats(items(origin))
        ask.origin_m.x, ask.origin_m.y, ask.origin_m.z = origin.tolist()
        wire.put(ask, min_epoch=self.info(name)["epoch"] if min_epoch is None else min_epoch, **fields)
        answer = _named(answer)
        most = max(1, min(self.limits.query_items, _BODY_BYTES // max(1, items[:1].nbytes)))
        done, got, state = 0, [], None
        while state is None or done < len(items):
            batch = items[done:done + most]
            ask.n = len(batch)
            reply, body = self._call("query", header, "result", common + batch.tobytes())
            if len(body) != len(batch) * answer.itemsize:
                raise wire.Error("INTERNAL", f"the daemon answered {len(body)} bytes for {len(batch)} items")
            got.append(numpy.frombuffer(body, dtype=answer))
            done += len(batch)
            state = wire.state_of(reply.result.map)
            ask.min_epoch = max(ask.min_epoch, state.epoch)
        return (got[0] if len(got) == 1 else numpy.concatenate(got)), state

    def query_points(self, name, points, min_epoch=None, unknown_distance=False):
        """Distance to the nearest surface, its gradient and the state at points [n][3], as Points.

        unknown_distance: also how far the nearest unknown voxel is.
        Errors: NOT_FOUND the map; STALE_EPOCH min_epoch lies in the future; BadInput shape or type."""
        points = rows(points, "points", ("x", "y", "z"))
        kind = _POINT + (_BEYOND if unknown_distance else [])
        a, state = self._rows_of("query_points", name, points, lambda o: points - o, kind, min_epoch, unknown_distance=unknown_distance)
        unknown = a["unknown_distance_m"].copy() if unknown_distance else None
        return Points(_distance(a), a["gradient"].copy(), a["state"].copy(), a["status"].copy(), unknown, state)

    def query_spheres(self, name, spheres, min_epoch=None):
        """Clearance of spheres [n][4], centre and radius, as Spheres.

        Errors: as query_points; INVALID_ARGUMENT a radius is negative or over R."""
        spheres = rows(spheres, "spheres", ("x", "y", "z", "radius"))
        a, state = self._rows_of("query_spheres", name, spheres[:, :3], lambda o: spheres - [*o, 0], _POINT, min_epoch)
        return Spheres(_distance(a), a["gradient"].copy(), a["state"].copy(), a["status"].copy(), state)

    def query_boxes(self, name, boxes, min_epoch=None):
        """How many voxels of which state axis-aligned boxes [n][6], least and greatest corner, meet, as Boxes.

        Errors: as query_points; BadInput not finite, upside down; INVALID_ARGUMENT longer than 2^21 voxels."""
        boxes = rows(boxes, "boxes", ("min_x", "min_y", "min_z", "max_x", "max_y", "max_z"))
        check_rows(numpy.isfinite(boxes).all(axis=1), "boxes", "is not finite")
        check_rows((boxes[:, :3] <= boxes[:, 3:]).all(axis=1), "boxes", "is upside down: min x y z come first")
        a, state = self._rows_of("query_box", name, boxes[:, :3], lambda o: boxes - [*o, *o], _BOX, min_epoch)
        return Boxes(a["n_free"].copy(), a["n_occupied"].copy(), a["n_unknown"].copy(), a["status"].copy(), state)

    def query_rays(self, name, rays, max_range_m=20.0, min_epoch=None):
        """The first surface along rays [n][6], origin and direction (of any length), up to max_range_m, as Rays.

        Errors: as query_points; BadInput not finite, no direction; INVALID_ARGUMENT max_range_m."""
        rays = rows(rays, "rays", ("x", "y", "z", "dx", "dy", "dz"))
        check_rows(numpy.isfinite(rays).all(axis=1), "rays", "is not finite")
        check_rows((rays[:, 3:] != 0).any(axis=1), "rays", "has no direction")
        a, state = self._rows_of("query_rays", name, rays[:, :3], lambda o: rays - [*o, 0, 0, 0], _RAY, min_epoch, max_range_m=max_range_m)
        return Rays(a["range_m"].copy(), a["normal"].copy(), a["state"].copy(), a["unknown_from_m"].copy(), state)

    def query_robot(self, name, robot, poses, unknown="report", min_epoch=None):
        """A robot of spheres at n poses, each by itself, as Paths (contact and unknown are then 0 or NaN).

        robot, unknown, errors: as query_paths.  poses: [n][7] x y z qx qy qz qw, [n][4][4], or [n][3] positions without a turn."""
        poses = poses_of(poses, "poses", positions=True)
        if poses.ndim > 2:
            raise BadInput(f"poses are [n] poses, not {list(poses.shape[:-1])}: query_paths asks for paths", "poses")
        return self.query_paths(name, robot, poses.reshape(-1, 1, 7), unknown, min_epoch)

    def query_paths(self, name, robot, paths, unknown="report", min_epoch=None):
        """A robot of spheres along n paths of w way-points, swept between them, as Paths: clearance, first contact.

        robot: [m][4], centre in the robot's frame and radius, 1 to 4096 spheres; or a number: one sphere of that radius.
        paths: [n][w][7] x y z qx qy qz qw, [n][w][4][4], or [n][w][3] positions without a turn; one path may leave out [n].
        All have as many way-points (repeat the last one of shorter ones), 1 to 4096.
        unknown: "report" says where it was met, and goes on; "free" does not look at it; "occupied" touches it.
        Errors: as query_points; BadInput robot, poses; INVALID_ARGUMENT a radius is negative or over R."""
        how = wire.choice(unknown, wire.HOW_UNKNOWN, "unknown")
        if numpy.ndim(robot) == 0:
            robot = [[0, 0, 0, robot]]
        robot = rows(robot, "robot", ("x", "y", "z", "radius"))
        check_rows(numpy.isfinite(robot).all(axis=1), "robot", "is not finite")
        if not 1 <= len(robot) <= _MOST_SPHERES:
            raise BadInput(f"a robot has 1 to {_MOST_SPHERES} spheres, got {len(robot)}", "robot")
        poses = poses_of(paths, "paths", positions=True)
        if poses.ndim == 2:
            poses = poses[None] if len(poses) else poses.reshape(0, 1, 7)
        if poses.ndim != 3:
            raise BadInput(f"paths are [n][w] poses, not {list(poses.shape[:-1])}", "paths")
        if not 1 <= poses.shape[1] <= _MOST_WAYPOINTS:
            raise BadInput(f"a path has 1 to {_MOST_WAYPOINTS} way-points, got {poses.shape[1]}", "paths")
        check_rows(numpy.isfinite(poses).all(axis=(1, 2)), "paths", "has a pose that is not finite")
        check_rows((numpy.abs((poses[:, :, 3:]**2).sum(axis=2) - 1) < 2e-3).all(axis=1), "paths", "has a quaternion whose length is not 1")
        a, state = self._rows_of("query_trajectory", name, poses[:, :, :3], lambda o: poses - [*o, 0, 0, 0, 0], _PATH, min_epoch,
                                 common=floats(robot).tobytes(), n_spheres=len(robot), n_waypoints=poses.shape[1], unknown=how)
        return Paths(a["sphere"].astype(numpy.int32).astype(numpy.int64), a["contact"].copy(), a["clearance_m"].copy(), a["unknown"].copy(),
                     a["status"].copy(), state)

    def query_slice(self, name, min_z_m, max_z_m=None, origin_m=None, shape=None, cell_m=None, inscribed_m=0.0, unknown="report", min_epoch=None):
        """Distances and Nav2's costs of columns over the heights min_z_m .. max_z_m (None: that height alone), as Slice.

        origin_m: (x, y) of the lower corner; shape: (n_y, n_x); None: what the map's surfaces and free space cover.  cell_m:
        edge of a cell, None: the voxel size.  inscribed_m: cells nearer to a surface cost 253, at most R.  unknown: "report":
        any unknown voxel of the band makes its cell unknown; "free", "occupied": it counts as that.
        Errors: as query_points; BadInput an empty map without origin_m and shape; RESOURCE_EXHAUSTED more cells than the
        daemon answers at once (limits.query_items): ask for larger ones, or for parts; INVALID_ARGUMENT heights, inscribed_m."""
        info = self.info(name)
        cell = float(numbers(info["voxel_size_m"] if cell_m is None else cell_m, "cell_m"))
        if not 0 < cell < float("inf"):
            raise BadInput(f"cell_m must be positive, got {cell:g}", "cell_m")
        if (origin_m is None or shape is None) and info["active_m"] is None:
            raise BadInput(f"map {name} is empty: give origin_m and shape", "shape")
        origin = numbers(info["active_m"][0][:2] if origin_m is None else origin_m, "origin_m").astype(float)
        if origin.shape != (2,) or not numpy.isfinite(origin).all():
            raise BadInput("origin_m is x y, finite", "origin_m")
        if shape is None:
            size = numpy.maximum((numpy.array(info["active_m"][1][:2]) - origin) / cell, 0)
            shape = numpy.ceil(numpy.minimum(size, 2**32) - 1e-6)[::-1]
        shape = numbers(shape, "shape")
        if shape.shape != (2,) or (shape < 0).any() or (shape > 2**32).any() or (shape != numpy.floor(shape)).any():
            raise BadInput("shape is (n_y, n_x), two whole numbers", "shape")
        n_y, n_x = (int(n) for n in shape)
        if n_y * n_x > self.limits.query_items:
            raise wire.Error("RESOURCE_EXHAUSTED", f"{n_x} x {n_y} cells are more than the daemon answers at once "
                             f"({self.limits.query_items}): ask for larger ones, or for parts", "shape")
        header = wire.Header()
        ask = header.query_slice
        wire.put_vector(ask.origin_m, [*origin.tolist(), 0], "origin_m")
        wire.put(ask, map=wire.name_of(name), min_epoch=info["epoch"] if min_epoch is None else min_epoch, n_x=n_x, n_y=n_y, cell_m=cell,
                 min_z_m=min_z_m, max_z_m=min_z_m if max_z_m is None else max_z_m, inscribed_m=inscribed_m,
                 unknown=wire.choice(unknown, wire.HOW_UNKNOWN, "unknown"))
        reply, body = self._call("query", header, "result")
        cells = numpy.frombuffer(body, dtype=_named(_CELL)).reshape(n_y, n_x)
        state = wire.state_of(reply.result.map)
        return Slice(cells["distance_m"].copy(), cells["cost"].copy(), cells["states"].copy(), tuple(origin.tolist()), cell, state)

    def explain(self, name, points, min_epoch=None):
        """Why points [n][3] are free, occupied or unknown, as Explanations.  Errors: as query_points."""
        points = rows(points, "points", ("x", "y", "z"))
        a, state = self._rows_of("explain", name, points, lambda o: points - o, _POINT + _REASON + _BEYOND, min_epoch)
        return Explanations([WHY[w] if w < len(WHY) else str(w) for w in a["why"].tolist()], a["voxel"].copy(), a["value"].copy(),
                            a["weight"].copy(), a["changed_epoch"].copy(), _distance(a), a["gradient"].copy(), a["state"].copy(),
                            a["status"].copy(), a["unknown_distance_m"].copy(), state)

    def query_tints(self, name, points, min_epoch=None):
        """Colours and labels at points [n][3], as Tints; a map without them answers that there are none.  Errors: as query_points."""
        points = rows(points, "points", ("x", "y", "z"))
        a, state = self._rows_of("explain", name, points, lambda o: points - o, TINT, min_epoch, tints=True)
        return Tints(a["colour"].copy(), a["label"].copy(), a["weight"].copy(), a["confidence"].copy(), state)


def _named(fields):
    """Fields of an answer as a type; gaps get a name of their own."""
    return numpy.dtype([(f[0] or f"_{i}", *f[1:]) for i, f in enumerate(fields)])


def _distance(a):
    return numpy.where(a["status"] & HAS_DISTANCE, a["distance_m"], numpy.nan).astype(numpy.float32)
