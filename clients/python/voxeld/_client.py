"""The client: a connection with the calls of the other files, and its streams."""
import math

import numpy

from ._arrays import numbers
from ._connection import Connection
from ._maps import Maps
from ._mesh import Meshes
from ._queries import Queries
from ._stream import Stream
from ._wire import BadInput


class Client(Connection, Maps, Queries, Meshes):
    """A connection to a daemon.  ipc_dir: folder with its sockets, None: $VOXELD_IPC_DIR, else /run/voxeld; timeout_s: of a
    call, without any progress.  server: "voxeld/0.1.0"; limits: what the daemon takes at once (Limits in the .proto).

    Questions: world coordinates in metres, arrays of any real type, in batches of any size: more than the daemon takes at once
    travels as several requests, of which no later one is answered from an older epoch; `map` is then that of the last.  An
    empty batch has an empty answer.  Points and spheres that are not finite are answered UNKNOWN with IS_OUTSIDE; other input
    that makes no sense raises BadInput.  min_epoch: answer from this epoch or a newer one, as an Ack or Stream.epoch says it;
    None: the newest (asks for it first); 0: any that is at hand, the quickest.

    Options of all streams: min_range_m, nearer readings are skipped (0: 0.1, LiDARs 0.5); max_range_m, farther ones saw
    nothing up to here (0: 8, LiDARs 60); no_return_value, a reading equal to it saw nothing up to there, as infinity always
    does; no_carving, surfaces only; latest, a newer frame may take the place of one that still waits (a live sensor); on_ack,
    a function that is given an Ack for every frame, and must not call the client.
    """

    def stream_depth(self, name, fx, fy, cx, cy, units_per_m=1000.0, distortion=(), edge_jump=0.0, **options):
        """A stream of depth images of a pinhole camera (pixels; pixel (u, v) has its centre at (u, v)); axes x right, y down,
        z forward, and depth is z.

        units_per_m: of uint16 images; float images are in metres.  distortion: k1 k2 p1 p2 k3 of Brown and Conrady, as many
        as there are.  edge_jump: a pixel between a nearer and a farther neighbour, off from both by more than this share of
        its depth, is not used; 0: all are.  Errors: NOT_FOUND the map; INVALID_ARGUMENT; RESOURCE_EXHAUSTED streams."""
        distortion = [float(v) for v in numbers(distortion, "distortion").ravel()]
        if len(distortion) > 5:
            raise BadInput(f"distortion is k1 k2 p1 p2 k3 at most, got {len(distortion)} numbers", "distortion")
        model = {"intrinsics": (fx, fy, cx, cy), "units_per_m": units_per_m, "distortion": distortion, "edge_jump": edge_jump}
        return Stream(self, name, "depth", model, **options)

    def stream_points(self, name, intensity_white=0.0, **options):
        """A stream of point sets [n][3] in the sensor's axes (metres; x forward, y left, z up).

        intensity_white: the intensity that counts as white in maps with colour; 0: intensities are no colour.
        Errors: as stream_depth."""
        return Stream(self, name, "points", {}, intensity_white=intensity_white, **options)

    def stream_range(self, name, elevation_rad, first_azimuth_rad=-math.pi, azimuth_span_rad=2 * math.pi, azimuth_step_rad=None,
                     invalid_zero=False, intensity_white=0.0, **options):
        """A stream of range images [rows][columns] of a LiDAR (float metres along the ray; x forward, y left, z up).

        elevation_rad: [rows], of each row, rising or falling.  Column u of n looks to the azimuth first_azimuth_rad + u *
        azimuth_span_rad / n (radians from x towards y; a negative span turns clockwise), or + u * azimuth_step_rad if that is
        given.  A reading of infinity, 0 or no_return_value saw nothing up to max_range_m, and what it saw through becomes
        free; NaN is no reading, and with invalid_zero 0 is none either.  intensity_white: as stream_points.
        Errors: as stream_depth; BadInput elevations."""
        elevation = numbers(elevation_rad, "elevation_rad").astype("<f4")
        steps = numpy.diff(elevation)
        if elevation.ndim != 1 or not elevation.size:
            raise BadInput(f"elevation_rad must have the shape [rows], not {list(elevation.shape)}", "elevation_rad")
        if not (numpy.abs(elevation) <= math.pi / 2 + 1e-6).all():
            raise BadInput("elevation_rad must be finite and within -pi/2 .. pi/2: radians, not degrees", "elevation_rad")
        if steps.size and not ((steps > 0).all() or (steps < 0).all()):
            raise BadInput("elevation_rad must rise, or fall, from row to row", "elevation_rad")
        for field, value in (("first_azimuth_rad", first_azimuth_rad), ("azimuth_span_rad", azimuth_span_rad), ("azimuth_step_rad", azimuth_step_rad)):
            if value is not None and numbers(value, field).ndim:
                raise BadInput(f"{field} is one number", field)
        model = {"elevation_rad": elevation, "first_azimuth_rad": first_azimuth_rad, "azimuth_span_rad": azimuth_span_rad,
                 "azimuth_step_rad": azimuth_step_rad}
        return Stream(self, name, "range", model, invalid_zero=invalid_zero, intensity_white=intensity_white, **options)
