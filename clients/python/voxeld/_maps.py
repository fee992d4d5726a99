"""Maps: made, described, edited, kept as files; the daemon itself."""
import collections
import mmap
import os
import time

from . import _wire as wire
from ._arrays import numbers
from ._wire import BadInput

_MODES = {"tsdf": 0, "occupancy": 1}
_WEIGHTINGS = {"default": 0, "inverse_square": 1, "constant": 2}
_FORMATS = {"nvdb": 0, "nvdb-float": 1}
_LAYERS = {"any": 0, "tsdf": 1, "occupancy": 2}


class Export(wire.OfMap, collections.namedtuple("Export", "n_bytes n_voxels n_leaves map")):
    """A file that was written: its size, active voxels and leaves in it, the MapState it holds."""

    __slots__ = ()


class Maps:
    """The client's calls for maps as a whole.  Names are [A-Za-z0-9._-]{1,64}."""

    def create_map(self, name, voxel_size_m, mode="tsdf", origin_m=(0, 0, 0), **parameters):
        """Makes an empty map and returns its info.  parameters: other fields of MapParams, such as colour=True;
        weighting="inverse_square" (16 up to 1 m of depth, 1 from 4 m on) or "constant" (1), else the daemon's default.

        Errors: ALREADY_EXISTS; INVALID_ARGUMENT; RESOURCE_EXHAUSTED."""
        header = wire.Header()
        header.map_create.map = wire.name_of(name)
        params = header.map_create.params
        wire.put(params, voxel_size_m=voxel_size_m)
        params.mode = wire.choice(mode, _MODES, "mode")
        wire.put_vector(params.origin_m, origin_m, "origin_m")
        _put_params(params, parameters)
        return _info_of(self._call("admin", header, "map_info_reply")[0])

    def delete_map(self, name):
        """Its streams and its content are gone.  Errors: NOT_FOUND."""
        header = wire.Header()
        header.map_delete.map = wire.name_of(name)
        self._call("admin", header, "result")

    def clear_map(self, name):
        """Everything becomes unknown; returns the MapState.  Errors: NOT_FOUND."""
        header = wire.Header()
        header.map_clear.map = wire.name_of(name)
        return wire.state_of(self._call("admin", header, "result")[0].result.map)

    def maps(self):
        """Names of all maps."""
        return [state.name for state in self.map_states()]

    def map_states(self):
        """MapStates of all maps, in name order."""
        header = wire.Header()
        header.map_list.SetInParent()
        return [wire.state_of(state) for state in self._call("query", header, "map_list_reply")[0].map_list_reply.maps]

    def info(self, name):
        """Facts of a map as a dict: epoch, newest_stamp_ns, max_distance_m (R), voxel_size_m, frames, voxels, bounds_m and
        active_m (lower and upper corner of the chunks, of the leaves with content; None while it is empty), regions, map
        (MapState), params (as in force), memory, ...  Errors: NOT_FOUND."""
        header = wire.Header()
        header.map_info.map = wire.name_of(name)
        return _info_of(self._call("query", header, "map_info_reply")[0])

    def digest(self, name):
        """SHA-256 of a map's content, in hex: equal on every machine for the same frames.  Errors: NOT_FOUND."""
        header = wire.Header()
        header.map_digest.map = wire.name_of(name)
        return self._call("admin", header, "map_digest_reply")[0].map_digest_reply.digest.hex()

    def protect(self, name, box=None, ball=None):
        """What lies in the region neither decays nor is forgotten; returns its number for unprotect().

        box: (min x y z, max x y z); or ball: (centre x y z, radius).  Errors: NOT_FOUND; INVALID_ARGUMENT;
        RESOURCE_EXHAUSTED a map has 64 regions at most."""
        if (box is None) == (ball is None):
            raise BadInput("give a box or a ball", "region")
        header = wire.Header()
        header.map_edit.map = wire.name_of(name)
        region = header.map_edit.protect
        if box is not None:
            wire.put_box(region.box, numbers(box, "box"), "box")
        else:
            if not isinstance(ball, (tuple, list)) or len(ball) != 2:
                raise BadInput(f"ball is (centre x y z, radius), not {ball!r}", "ball")
            wire.put_vector(region.ball.centre_m, ball[0], "ball")
            wire.put(region.ball, radius_m=ball[1])
        return self._call("admin", header, "map_info_reply")[0].map_info_reply.regions[-1].id

    def unprotect(self, name, region):
        """Ends the protection of a region, by its number.  Errors: NOT_FOUND the map, the region."""
        header = wire.Header()
        header.map_edit.map = wire.name_of(name)
        wire.put(header.map_edit, unprotect=region)
        self._call("admin", header, "map_info_reply")

    def export_map(self, name, path, format="nvdb", layer="any", min_epoch=0):
        """Writes the map to a NanoVDB file, as Export; the file appears as a whole, frames go on meanwhile.

        format: "nvdb" (nothing is lost), "nvdb-float" (for old tools).  layer: "any", "tsdf", "occupancy".
        Errors: NOT_FOUND; INVALID_ARGUMENT the layer; STALE_EPOCH; RESOURCE_EXHAUSTED; OSError the file."""
        header = wire.Header()
        ask = header.map_export
        wire.put(ask, map=wire.name_of(name), min_epoch=min_epoch, progress=True, format=wire.choice(format, _FORMATS, "format"),
                 layer=wire.choice(layer, _LAYERS, "layer"))
        with wire.whole_file(path) as file:
            result = self._call("admin", header, "result", take=file.write)[0].result
            n_bytes = file.tell()
        return Export(n_bytes, result.n_voxels, result.n_leaves, wire.state_of(result.map))

    def import_map(self, name, path, grid=None, channel=None, mode=None, weight=None, **parameters):
        """Makes a map of a NanoVDB file, or leaves none behind; returns its info.

        grid, channel: which grid of the file and which blind data holds the values, None: the only one.  mode: "tsdf" or
        "occupancy", what the values are, None: the file says so.  weight: 0 .. 255, of voxels that come without one.
        parameters: other fields of MapParams (not voxel size and origin, which come from the file).
        Errors: ALREADY_EXISTS; INVALID_ARGUMENT; DATA_LOSS; UNIMPLEMENTED; NOT_FOUND; RESOURCE_EXHAUSTED; OSError."""
        header = wire.Header()
        ask = header.map_import
        ask.map, ask.progress = wire.name_of(name), True
        ask.grid = wire.name_of(grid or "", "grid", "the name of a grid")
        ask.channel = wire.name_of(channel or "", "channel", "the name of a channel")
        if mode is not None:
            ask.mode = wire.choice(mode, _MODES, "mode")
        if weight is not None:
            wire.put(ask, weight=weight)
        _put_params(ask.params, parameters)
        with open(path, "rb") as file:
            ask.file_bytes = os.fstat(file.fileno()).st_size
            if not ask.file_bytes:
                raise wire.Error("DATA_LOSS", f"{path} is empty", "file")
            body = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # closed with its last view
        return _info_of(self._call("admin", header, "map_info_reply", body)[0])

    # ------------------------------------------------------------------------------------------------ the daemon

    def ping(self):
        """Round trip to the daemon, in seconds."""
        header, since = wire.Header(), time.perf_counter()
        header.ping.SetInParent()
        self._call("query", header, "pong")
        return time.perf_counter() - since

    def stats(self):
        """The daemon's report as dicts and lists, by the names of StatsReport in the .proto: devices, maps, streams,
        latencies, errors, ..."""
        header = wire.Header()
        header.stats.SetInParent()
        return wire.plain(wire.StatsReport.FromString(bytes(self._call("query", header, "stats_reply")[1])))

    def shutdown(self):
        """Asks the daemon to finish the accepted frames and to end; its maps go with it."""
        header = wire.Header()
        header.shutdown.SetInParent()
        self._call("admin", header, "result")


def _put_params(params, given):
    for key, value in given.items():
        if key not in params.DESCRIPTOR.fields_by_name:
            raise BadInput(f"maps have no parameter {key}; there are {', '.join(params.DESCRIPTOR.fields_by_name)}", key)
        wire.put(params, **{key: wire.choice(value, _WEIGHTINGS, key) if key == "weighting" else value})


def _corners(info, field):
    if not info.HasField(field):
        return None
    box = getattr(info, field)
    return tuple((v.x, v.y, v.z) for v in (box.min_m, box.max_m))


def _info_of(answer):
    info = answer.map_info_reply
    return {
        "name": info.map.name.decode(),
        "map": wire.state_of(info.map),
        "epoch": info.map.epoch,
        "newest_stamp_ns": info.map.newest_stamp_ns,
        "max_distance_m": info.map.max_distance_m,
        "voxel_size_m": info.params.voxel_size_m,
        "origin_m": (info.params.origin_m.x, info.params.origin_m.y, info.params.origin_m.z),
        "mode": ("tsdf", "occupancy")[info.params.mode],
        "weighting": list(_WEIGHTINGS)[info.params.weighting],
        "colour": info.params.colour,
        "label": info.params.label,
        "frames": info.n_frames,
        "refused": info.n_refused,
        "voxels": info.n_voxels,
        "used_bytes": info.used_bytes,
        "bounds_m": _corners(info, "bounds"),
        "active_m": _corners(info, "active"),
        "regions": [wire.plain(region) for region in info.regions],
        "params": wire.plain(info.params),
        "memory": wire.plain(info.memory),
    }
