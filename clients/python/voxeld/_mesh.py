"""The surface of a map as arrays: all of it, and chunk by chunk as it changes."""
import collections
import os

import numpy

from . import _wire as wire
from ._arrays import numbers
from ._queries import TINT
from ._wire import BadInput

_CHUNK_VOXELS, _STEPS = 128, 256  # voxels along a chunk; steps of a vertex along a voxel
_HEAD = numpy.dtype([("chunk", "<i4", 3), ("n_vertices", "<u4"), ("n_triangles", "<u4"), ("vertex_bytes", "<u2"), ("index_bytes", "<u2")])
_PLY_FLOAT_LIMIT_M = 128  # beyond it a PLY's coordinates are doubles


class Mesh(wire.OfMap, collections.namedtuple("Mesh", "vertices normals triangles colour colour_weight label map")):
    """A surface.  vertices float64 [v][3], world, m; normals float32 [v][3], unit, out of the solid; triangles uint32 [t][3],
    counter-clockwise seen from outside; colour uint8 [v][3], its weight uint8 [v] (0: there is none) and label uint8 [v], 0 =
    none; these three are None where the map keeps neither; map: MapState."""

    __slots__ = ()

    def save(self, path):
        """Writes it as a binary PLY, as `voxelctl mesh` does (which writes .glb, too); the file appears as a whole."""
        if os.fspath(path).lower().endswith((".glb", ".gltf", ".obj", ".stl")):
            raise BadInput(f"{path}: only PLY is written here (voxelctl mesh writes .glb)", "path")
        real = "f8" if (numpy.abs(self.vertices) >= _PLY_FLOAT_LIMIT_M).any() else "f4"
        kind = [("at", "<" + real, 3), ("normal", "<f4", 3)]
        words = [f"property {'double' if real == 'f8' else 'float'} {a}" for a in "xyz"] + [f"property float n{a}" for a in "xyz"]
        if self.colour is not None and self.colour_weight.any():
            kind.append(("colour", "u1", 3))
            words += [f"property uchar {c}" for c in ("red", "green", "blue")]
        if self.label is not None and self.label.any():
            kind.append(("label", "u1"))
            words.append("property uchar label")
        vertices, faces = numpy.empty(len(self.vertices), kind), numpy.empty(len(self.triangles), [("n", "u1"), ("of", "<u4", 3)])
        for field, values in (("at", self.vertices), ("normal", self.normals), ("colour", self.colour), ("label", self.label)):
            if field in vertices.dtype.names:
                vertices[field] = values
        faces["n"], faces["of"] = 3, self.triangles
        head = ["ply", "format binary_little_endian 1.0", f"comment voxeld map {self.map.name} epoch {self.map.epoch}, metres",
                f"element vertex {len(vertices)}", *words, f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header", ""]
        with wire.whole_file(path) as file:
            file.write("\n".join(head).encode())
            file.write(vertices.tobytes())
            file.write(faces.tobytes())


class MeshChunk(collections.namedtuple("MeshChunk", "chunk steps normals triangles tints epoch")):
    """The surface in 128^3 voxels, a mesh of its own.  chunk: (x, y, z), its number; steps uint16 [v][3]: vertices, exact, in
    1/256 voxel from the chunk's lower corner; normals float32 [v][3]; triangles uint32 [t][3]; tints: structured array [v]
    with colour, label, weight, confidence, or None; epoch: of the answer that brought it.  MeshFollower.vertices places it."""

    __slots__ = ()


class MeshChanges(wire.OfMap, collections.namedtuple("MeshChanges", "chunks complete origin_m voxel_m n_bytes map")):
    """What may have changed.  chunks: list of MeshChunk, ascending; one without triangles has no surface any more; complete:
    chunks that are not in the list have none either; origin_m: of voxel (0, 0, 0); map: MapState, for the next `since`."""

    __slots__ = ()


class MeshChange(wire.OfMap, collections.namedtuple("MeshChange", "changed removed complete n_bytes map")):
    """What an update brought: changed, removed: lists of (x, y, z) of chunks; complete: all of it came anew; map: MapState."""

    __slots__ = ()


class Meshes:
    """The client's calls for surfaces."""

    def mesh(self, name, min_epoch=0, min_weight=1):
        """The surface of the map as a Mesh.  min_weight: evidence that a voxel needs, 1 to 255.

        Errors: NOT_FOUND the map; STALE_EPOCH min_epoch lies in the future; INVALID_ARGUMENT min_weight."""
        header = wire.Header()
        ask = header.mesh
        wire.put(ask, map=wire.name_of(name), min_epoch=min_epoch, min_weight=min_weight, tints=True, progress=True)
        answer, body = self._call("query", header, "result")
        n, n_triangles, n_tints = answer.result.n_vertices, answer.result.n_triangles, answer.result.n_tints
        if len(body) != 24 * n + 12 * n_triangles + 8 * n_tints or n_tints not in (0, n):
            raise wire.Error("INTERNAL", f"a mesh of {n} vertices came as {len(body)} bytes")
        vertices, normals = numpy.frombuffer(body, "<f4", 6 * n).reshape(2, n, 3)
        triangles = numpy.frombuffer(body, "<u4", 3 * n_triangles, 24 * n).reshape(-1, 3)
        tints = numpy.frombuffer(body, _TINT, n_tints, 24 * n + 12 * n_triangles) if n_tints else None
        origin = answer.result.mesh_origin_m
        return _mesh(vertices + numpy.array([origin.x, origin.y, origin.z]), normals, triangles, tints, wire.state_of(answer.result.map))

    def mesh_changes(self, name, since=None, min_epoch=0, min_weight=1, region=None):
        """The chunks whose surface may have changed since an answer, as MeshChanges; MeshFollower keeps them.

        since: the `map` of the earlier answer; None: all.  region: (min x y z, max x y z), only chunks that meet it; it and
        min_weight must stay the same.  Errors: as mesh; INVALID_ARGUMENT region; STALE_EPOCH since lies in the future."""
        header = wire.Header()
        ask = header.mesh
        wire.put(ask, map=wire.name_of(name), min_epoch=min_epoch, min_weight=min_weight, chunks=True, progress=True)
        if since is not None:
            if not isinstance(since, wire.MapState):
                raise BadInput(f"since is the `map` of an earlier answer, not {since!r}", "since")
            ask.since_epoch, ask.since_uuid = since.epoch, since.uuid
        if region is not None:
            wire.put_box(ask.region, numbers(region, "region"), "region")
        answer, body = self._call("query", header, "result")
        state, origin = wire.state_of(answer.result.map), answer.result.mesh_origin_m
        chunks, at = [], 0
        for _ in range(answer.result.n_chunks):
            chunk, at = _record(body, at, state.epoch)
            chunks.append(chunk)
        if at != len(body):
            raise wire.Error("INTERNAL", f"a mesh came with {len(body) - at} bytes too many")
        return MeshChanges(chunks, answer.result.mesh_complete, (origin.x, origin.y, origin.z), answer.result.mesh_voxel_m, len(body), state)

    def follow_mesh(self, name, min_weight=1, region=None):
        """A MeshFollower of the map; empty until its first update."""
        return MeshFollower(self, name, min_weight, region)


class MeshFollower:
    """Keeps the surface of a map chunk by chunk: update() fetches what changed.  chunks: dict of (x, y, z) to MeshChunk."""

    def __init__(self, client, name, min_weight=1, region=None):
        self.client, self.name, self.min_weight, self.region = client, name, min_weight, region
        self.chunks, self.map, self.origin_m, self.voxel_m = {}, None, (0, 0, 0), 0.0

    def update(self, min_epoch=0):
        """Fetches what changed since the last update, as MeshChange.  A map that was cleared, or deleted and made again, is
        followed all the same.  On an error the mesh is as it was.  Errors: as Client.mesh_changes."""
        news = self.client.mesh_changes(self.name, self.map, min_epoch, self.min_weight, self.region)
        kept = {} if news.complete else dict(self.chunks)
        for chunk in news.chunks:
            kept.pop(chunk.chunk, None)
            if len(chunk.triangles):
                kept[chunk.chunk] = chunk
        changed = [chunk.chunk for chunk in news.chunks if len(chunk.triangles)]
        removed = [key for key in self.chunks if key not in kept]
        self.chunks, self.map, self.origin_m, self.voxel_m = kept, news.map, news.origin_m, news.voxel_m
        return MeshChange(changed, removed, news.complete, news.n_bytes, news.map)

    def vertices(self, chunk):
        """World coordinates float64 [v][3] of a MeshChunk's vertices; those on a border are the same in both chunks."""
        return numpy.array(self.origin_m) + _steps(chunk) / _STEPS * self.voxel_m

    def mesh(self):
        """All chunks as one Mesh, vertices on their borders once."""
        if self.map is None:
            raise wire.Error("INVALID_ARGUMENT", "nothing came yet: call update() first")
        chunks = [self.chunks[key] for key in sorted(self.chunks)]
        if not chunks:
            return _mesh(numpy.zeros((0, 3)), numpy.zeros((0, 3), "<f4"), numpy.zeros((0, 3), "<u4"), None, self.map)
        steps = numpy.concatenate([_steps(chunk) for chunk in chunks])
        lowest = _CHUNK_VOXELS * numpy.array([chunk.chunk for chunk in chunks], dtype=numpy.int64).min(axis=0)
        first, number = _first_places(steps)
        local = ((steps[first] - _STEPS * lowest) / _STEPS * self.voxel_m).astype("<f4")
        begin = numpy.cumsum([0] + [len(chunk.steps) for chunk in chunks])
        triangles = numpy.concatenate([number[chunk.triangles + at] for chunk, at in zip(chunks, begin.tolist())])
        normals = numpy.concatenate([chunk.normals for chunk in chunks])[first]
        tinted = all(chunk.tints is not None for chunk in chunks)
        tints = numpy.concatenate([chunk.tints for chunk in chunks])[first] if tinted else None
        return _mesh(numpy.array(self.origin_m) + lowest * self.voxel_m + local, normals, triangles.astype("<u4"), tints, self.map)


_TINT = numpy.dtype([(name or "_", *kind) for name, *kind in TINT])


def _mesh(vertices, normals, triangles, tints, state):
    if tints is None:
        return Mesh(vertices, normals, triangles, None, None, None, state)
    return Mesh(vertices, normals, triangles, tints["colour"].copy(), tints["weight"].copy(), tints["label"].copy(), state)


def _steps(chunk):
    """Vertices in 1/256 voxel from voxel (0, 0, 0), int64."""
    return chunk.steps + numpy.array(chunk.chunk, dtype=numpy.int64) * (_CHUNK_VOXELS * _STEPS)


def _first_places(steps):
    """Of rows [n][3]: which come first of their kind (in their order), and for each row the number of its kind."""
    kind = numpy.zeros(len(steps), dtype=numpy.int64)
    for column in steps.T:
        number = numpy.unique(column, return_inverse=True)[1]
        kind = numpy.unique(kind * (number.max() + 1) + number, return_inverse=True)[1]
    first = numpy.unique(kind, return_index=True)[1]
    order = numpy.argsort(first)
    place = numpy.empty_like(order)
    place[order] = numpy.arange(len(order))
    return first[order], place[kind]


def _record(body, at, epoch):
    """The chunk at byte `at` of a body, and where the next one begins (proto/README.md)."""
    if len(body) - at < _HEAD.itemsize:
        raise wire.Error("INTERNAL", "a chunk of a mesh is cut short")
    head = numpy.frombuffer(body, _HEAD, 1, at)[0]
    n, n_triangles, size, wide = (int(head[k]) for k in ("n_vertices", "n_triangles", "vertex_bytes", "index_bytes"))
    if size < 12 or size % 4 or wide != (4 if n > 65536 else 2):
        raise wire.Error("INTERNAL", "a chunk of a mesh has numbers of an unknown size")
    begin = at + _HEAD.itemsize
    end = begin + n * size + (3 * n_triangles * wide + 3) // 4 * 4
    if end > len(body):
        raise wire.Error("INTERNAL", "a chunk of a mesh is cut short")
    vertices = numpy.frombuffer(body, "u1", n * size, begin).reshape(n, size)
    steps = vertices[:, :6].copy().view("<u2")
    normals = (vertices[:, 6:12].copy().view("<i2") / 32767).astype("<f4")
    tints = vertices[:, 12:20].copy().view(_TINT).reshape(n) if size >= 20 else None
    triangles = numpy.frombuffer(body, f"<u{wide}", 3 * n_triangles, begin + n * size).astype("<u4").reshape(-1, 3)
    if n_triangles and triangles.max() >= n:
        raise wire.Error("INTERNAL", "a mesh came with a triangle of a vertex that it lacks")
    return MeshChunk(tuple(head["chunk"].tolist()), steps, normals, triangles, tints, epoch), end
