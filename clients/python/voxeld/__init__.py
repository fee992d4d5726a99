"""voxeld - stream depth images and LiDAR scans to a voxeld daemon, and ask its maps.

    import numpy, voxeld
    with voxeld.Client() as client:                       # the daemon of $VOXELD_IPC_DIR, else /run/voxeld
        client.create_map("lab", voxel_size_m=0.02)
        with client.stream_depth("lab", fx=525, fy=525, cx=319.5, cy=239.5) as stream:
            stream.send(depth, pose)                      # metres (float) or millimetres (uint16); 4 x 4 or 7 numbers
        answer = client.query_points("lab", [[1.0, 0.5, 0.3]])
        print(answer.distance_m, answer.gradient, answer.state, answer.epoch)
        print(client.query_paths("lab", 0.3, [[[0, 0, 1], [2, 0, 1]]]).clearance_m)    # a sphere of 0.3 m along a line
        client.mesh("lab").save("lab.ply")

Streams: Client.stream_depth, stream_points, stream_range; Stream.send.  Questions: Client.query_points, query_spheres,
query_boxes, query_rays, query_robot, query_paths, query_slice, query_tints, explain; mesh, mesh_changes, follow_mesh.
Maps: create_map, delete_map, clear_map, maps, info, digest, protect, unprotect, export_map, import_map.  stats, ping, shutdown.

Every answer has `map`, the MapState it speaks of, and .epoch, .newest_stamp_ns, .max_distance_m (R) of it.  Metres, radians,
nanoseconds; quaternions are x y z w; arrays in are of any real type, arrays out are numpy's, of the types that are named.

Needs pyzmq, numpy and protobuf (Debian: python3-zmq, python3-numpy, python3-protobuf), and voxeld.desc in this folder,
which the build makes of the .proto.  One thread uses a client.  Calls block; a refusal is a voxeld.Error with code, field
and words (BadInput, also a ValueError, where it was seen before anything was sent), a daemon that is not there or went away
a voxeld.Lost.  How messages travel: proto/README.md.
"""
from ._arrays import pose_of
from ._client import Client
from ._maps import Export
from ._mesh import Mesh, MeshChange, MeshChanges, MeshChunk, MeshFollower
from ._queries import (
    COLLIDES, COST_FREE, COST_INSCRIBED, COST_OCCUPIED, COST_UNKNOWN, FREE, HAS_DISTANCE, HAS_GRADIENT, IS_OUTSIDE, OCCUPIED,
    TOUCHES_UNKNOWN, UNKNOWN, WHY, Boxes, Explanations, Paths, Points, Rays, Slice, Spheres, Tints)
from ._stream import Ack, Stream
from ._wire import BadInput, Error, Lost, MapState, Timeout, crc32c

__all__ = [
    "Ack", "BadInput", "Boxes", "Client", "Error", "Explanations", "Export", "Lost", "MapState", "Mesh", "MeshChange", "MeshChanges",
    "MeshChunk", "MeshFollower", "Paths", "Points", "Rays", "Slice", "Spheres", "Stream", "Timeout", "Tints", "crc32c", "pose_of",
    "UNKNOWN", "FREE", "OCCUPIED", "HAS_DISTANCE", "HAS_GRADIENT", "IS_OUTSIDE", "TOUCHES_UNKNOWN", "COLLIDES", "COST_FREE",
    "COST_INSCRIBED", "COST_OCCUPIED", "COST_UNKNOWN", "WHY"]
