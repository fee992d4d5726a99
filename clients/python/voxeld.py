"""voxeld - stream depth images and points to a voxeld daemon, and ask its maps.

    import numpy, voxeld
    with voxeld.Client() as client:                       # the daemon of $VOXELD_IPC_DIR, else /run/voxeld
        client.create_map("lab", voxel_size_m=0.02)
        with client.stream_depth("lab", fx=525, fy=525, cx=319.5, cy=239.5) as stream:
            stream.send(depth, pose)                      # metres (float32) or millimetres (uint16); 4 x 4 or 7 numbers
        answer = client.query_points("lab", [[1.0, 0.5, 0.3]])
        print(answer.distance_m, answer.gradient, answer.state)

Needs pyzmq, numpy and protobuf (Debian: python3-zmq, python3-numpy, python3-protobuf), and voxeld.desc beside this file,
which the build makes of the .proto.  One thread uses a client.  Calls block; a refusal is a voxeld.Error with code, field
and words, a daemon that is not there or went away a voxeld.Lost.  How messages travel: proto/README.md.
"""
import collections
import functools
import os
import secrets
import shutil
import struct
import subprocess
import time

import numpy
import zmq
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from zmq.utils.monitor import recv_monitor_message

UNKNOWN, FREE, OCCUPIED = 0, 1, 2  # states of a place
HAS_DISTANCE, HAS_GRADIENT, IS_OUTSIDE, TOUCHES_UNKNOWN, COLLIDES = 1, 2, 4, 8, 16  # bits of a status

_MAJOR, _MINOR = 1, 0
_DOWNLOAD_PARTS = 8  # of an answer under way
_CONNECT_S, _SLICE_MS = 3.0, 50

Points = collections.namedtuple("Points", "distance_m gradient state status unknown_distance_m epoch")
Points.__doc__ = """Answers of query_points: arrays with a row for each point (NaN: no surface within reach), and the map's epoch."""
Ack = collections.namedtuple("Ack", "seq epoch readings warnings superseded")
Ack.__doc__ = "What became of a frame: readings is a dict of counts by fate, warnings a list of names."


class Error(Exception):
    """A refusal.  code: as in proto/README.md ("INVALID_ARGUMENT", ...); field: what was wrong, or ""."""

    def __init__(self, code, message, field=""):
        super().__init__(f"{message} [{code}{' ' + field if field else ''}]")
        self.code, self.field, self.message = code, field, message


class Lost(Error):
    """No daemon answers, or it went away.  The next call tries again; streams must be opened anew."""

    def __init__(self, message):
        super().__init__("UNAVAILABLE", message, "connection")


class Timeout(Error):
    """The daemon made no progress for Client's timeout_s."""

    def __init__(self, message):
        super().__init__("DEADLINE_EXCEEDED", message)


# ---------------------------------------------------------------------------------------------------- messages


def _load_messages():
    """The messages of the .proto, by name.  The descriptions are data: no generated code has to fit the protobuf there."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "voxeld.desc")
    files = descriptor_pb2.FileDescriptorSet()
    try:
        with open(path, "rb") as file:
            files.ParseFromString(file.read())
    except FileNotFoundError:
        raise ImportError(f"{path} is missing: the build makes it (cmake --build build), and lays it beside this module") from None
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    header = pool.FindMessageTypeByName("voxeld.v1.Header")
    if hasattr(message_factory, "GetMessageClass"):
        return pool, message_factory.GetMessageClass(header)
    return pool, message_factory.MessageFactory(pool).GetPrototype(header)


_POOL, _Header = _load_messages()
_TYPES = {field.name: field.number for field in _Header.DESCRIPTOR.oneofs_by_name["body"].fields}


def _enum(name):
    values = _POOL.FindEnumTypeByName("voxeld.v1." + name).values
    return {value.name: value.number for value in values}, {value.number: value.name for value in values}


_SENSORS, _ = _enum("Sensor")
_CHANNELS, _ = _enum("Channel")
_READINGS, _ = _enum("Reading")
_WEIGHTINGS = ("default", "inverse_square", "constant")  # by their numbers on the wire
_, _CODES = _enum("Code")
_, _WARNINGS = _enum("Warning")
_ACK_RECEIVED = _enum("AckLevel")[0]["ACK_RECEIVED"]
_ACK_INTEGRATED = _enum("AckLevel")[0]["ACK_INTEGRATED"]


def _error_of(error):
    code = _CODES.get(error.code, "INTERNAL")
    code = code[5:] if code.startswith("CODE_") else code
    return Error(code, error.message.decode("utf-8", "replace") or code, error.field.decode("utf-8", "replace"))


# ---------------------------------------------------------------------------------------------------- CRC32C


def _crc_tables():
    one = numpy.arange(256, dtype=numpy.uint32)
    for _ in range(8):
        one = numpy.where(one & 1, one >> 1 ^ numpy.uint32(0x82F63B78), one >> 1).astype(numpy.uint32)
    pair = numpy.arange(65536, dtype=numpy.uint32)
    for _ in range(2):
        pair = one[pair & 0xFF] ^ pair >> 8
    return one, pair


_CRC_ONE, _CRC_PAIR = _crc_tables()


@functools.lru_cache(maxsize=256)
def _crc_advance(n):
    """Tables [4][256]: what n zero bytes make of each byte of a CRC.  The CRC is linear, so they compose."""
    if n == 1:
        value = numpy.arange(256, dtype=numpy.uint32)
        return numpy.stack([_CRC_ONE[value], value, value << 8, value << 16])
    half = _crc_advance(n // 2)
    tables = _crc_shift(half, _crc_advance(n - n // 2))
    return tables


def _crc_shift(crc, tables):
    return tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24]


def crc32c(data):
    """CRC32C (Castagnoli) of bytes: up to 16384 pieces side by side, two bytes a step, then joined by pairs."""
    data = numpy.frombuffer(data, dtype=numpy.uint8)
    n = data.size
    if n == 0:
        return 0
    lanes = 1
    while lanes < 16384 and lanes * 128 < n:
        lanes *= 2
    length = -(-n // (2 * lanes)) * 2
    padded = numpy.zeros(lanes * length, dtype=numpy.uint8)  # zeros in front change nothing in a CRC that begins with 0
    padded[lanes * length - n:] = data
    crc = numpy.zeros(lanes, dtype=numpy.uint32)
    for word in numpy.ascontiguousarray(padded.view("<u2").reshape(lanes, length // 2).T):
        crc = _CRC_PAIR.take((crc ^ word) & 0xFFFF) ^ crc >> 16
    while crc.size > 1:
        crc = _crc_shift(crc[0::2], _crc_advance(length)) ^ crc[1::2]
        length *= 2
    begin = _crc_shift(numpy.array([0xFFFFFFFF], dtype=numpy.uint32), _crc_advance(n))  # what it really begins with
    return int(crc[0] ^ begin[0]) ^ 0xFFFFFFFF


# ---------------------------------------------------------------------------------------------------- one socket


class _Endpoint:
    """A connection to one of the daemon's sockets: HELLO, messages out and in, and whether it broke."""

    def __init__(self, client, name):
        self.client, self.name = client, name
        self.socket = self.monitor = None
        self.session = b""

    def close(self):
        if self.socket is not None:
            if self.session and self.socket.poll(0, zmq.POLLOUT):
                bye = _Header(req_id=self.client._req_id())
                bye.bye.SetInParent()
                self.send(bye)  # a courtesy; the daemon notices anyway
            self.socket.disable_monitor()
            self.monitor.close(0)
            self.socket.close(200)
        self.socket = self.monitor = None
        self.session = b""

    def open(self):
        """Connects and says HELLO, unless that was done."""
        if self.socket is not None:
            self.check()
        if self.session:
            return
        self.close()
        path = os.path.join(self.client.ipc_dir, self.name + ".sock")
        if not os.path.exists(path):
            raise Lost(f"no daemon answers in {self.client.ipc_dir} (there is no socket)")
        self.socket = self.client.context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.HANDSHAKE_IVL, 3000)
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_CONNECT_RETRIED)
        self.socket.connect("ipc://" + path)
        header = _Header()
        header.hello.min_major = header.hello.max_major = _MAJOR
        header.hello.minor = _MINOR
        header.hello.client = b"voxeld.py"
        try:
            answer, _ = self.client._exchange(self, header, None, "welcome", _CONNECT_S)
        except (Lost, Timeout):
            self.close()
            raise Lost(f"no daemon answers in {self.client.ipc_dir} (nothing says WELCOME)") from None
        self.session = answer.welcome.session
        self.client.server = answer.welcome.server.decode("utf-8", "replace")
        self.client.limits = answer.welcome.limits

    def check(self):
        """Notices that the connection broke."""
        while self.monitor is not None and self.monitor.poll(0):
            recv_monitor_message(self.monitor)
            self.close()
            if self.name == "ingest":
                self.client._streams_lost()

    def send(self, header, payloads=()):
        header.session = self.session
        del header.payloads[:]
        for payload in payloads:
            header.payloads.add(n_bytes=len(payload), crc32c=crc32c(payload))
        packed = header.SerializeToString()
        body = header.WhichOneof("body")
        prelude = b"VXP1" + struct.pack("<BBHIBBH", _MAJOR, _MINOR, _TYPES[body], len(packed), len(payloads), 0, 0)
        if not self.socket.poll(int(1000 * self.client.timeout_s), zmq.POLLOUT):
            raise Timeout("the daemon takes no message")
        self.socket.send_multipart([prelude, packed, *payloads])

    def receive(self):
        """The next message as (header, payload), or None."""
        if self.socket is None or not self.socket.poll(0):
            return None
        parts = self.socket.recv_multipart()
        if len(parts) < 2 or parts[0][:4] != b"VXP1":
            raise Error("INTERNAL", "the daemon sent what is no message")
        header = _Header()
        header.ParseFromString(parts[1])
        payload = parts[2] if len(parts) > 2 else b""
        if header.payloads and (header.payloads[0].n_bytes != len(payload) or header.payloads[0].crc32c != crc32c(payload)):
            raise Error("DATA_LOSS", "a payload of the daemon arrived damaged")
        return header, payload


# ---------------------------------------------------------------------------------------------------- client


class Client:
    """A connection to a daemon.  ipc_dir: folder with its sockets; timeout_s: without any progress."""

    def __init__(self, ipc_dir=None, timeout_s=600.0):
        self.ipc_dir = os.fspath(ipc_dir or os.environ.get("VOXELD_IPC_DIR") or "/run/voxeld")
        self.timeout_s = timeout_s
        self.server, self.limits = "", None
        self.context = zmq.Context()
        self._endpoints = {name: _Endpoint(self, name) for name in ("query", "admin", "ingest")}
        self._streams = {}
        self._next_req = 1
        try:
            self._endpoints["query"].open()
        except Exception:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the connection.  Frames that were sent are still integrated."""
        for endpoint in self._endpoints.values():
            endpoint.close()
        self.context.destroy(200)

    # ------------------------------------------------------------------------------------------------ requests

    def _req_id(self):
        self._next_req += 1
        return self._next_req - 1

    def _wait(self, ms):
        poller = zmq.Poller()
        for endpoint in self._endpoints.values():
            if endpoint.socket is not None:
                poller.register(endpoint.socket, zmq.POLLIN)
                poller.register(endpoint.monitor, zmq.POLLIN)
        poller.poll(ms)

    def _dispatch(self, wanted=None, req_id=0):
        """Takes in what arrived on all sockets; what endpoint `wanted` got for req_id is returned as a list."""
        found = []
        for endpoint in self._endpoints.values():
            while True:
                message = endpoint.receive()
                if message is None:
                    break
                header, payload = message
                body = header.WhichOneof("body")
                if endpoint is wanted and header.req_id == req_id:
                    found.append((header, payload))
                elif body == "ping":
                    pong = _Header(req_id=header.req_id)
                    pong.pong.data = header.ping.data
                    endpoint.send(pong)
                elif endpoint.name == "ingest":
                    self._take_stream(header, body)
        return found

    def _exchange(self, endpoint, header, body, expected, timeout_s):
        """One request with its body (bytes or None), and its answer with its body, each in parts where it is large."""
        req_id = header.req_id = self._req_id()
        most = self.limits.part_bytes if self.limits else 1 << 20
        up = memoryview(body).cast("B") if body else b""
        in_parts = len(up) > most
        header.body_bytes = len(up) if in_parts else 0
        endpoint.send(header, [up] if up and not in_parts else [])
        sent = len(up) if not in_parts else 0
        index = credit = 0
        answer, down, n_down = None, bytearray(), 0
        since = time.monotonic()
        while True:
            messages = self._dispatch(endpoint, req_id)
            for got, payload in messages:
                kind = got.WhichOneof("body")
                if kind == "error":
                    raise _error_of(got.error)
                if kind == "credit":
                    credit += got.credit.parts
                elif kind == "part" and answer is not None:
                    down += payload
                    if got.part.index % (_DOWNLOAD_PARTS // 2) == _DOWNLOAD_PARTS // 2 - 1:
                        self._grant(endpoint, req_id, _DOWNLOAD_PARTS // 2)
                elif kind == expected and answer is None:
                    answer, n_down = got, got.body_bytes
                    down += payload
                    if n_down:
                        self._grant(endpoint, req_id, _DOWNLOAD_PARTS)
                elif kind != "progress":
                    raise Error("INTERNAL", f"the daemon answered with {kind}")
            if answer is not None and len(down) >= n_down:
                return answer, bytes(down)
            endpoint.check()
            if endpoint.socket is None:
                raise Lost("the daemon went away before it answered")
            while credit > 0 and sent < len(up):
                piece = up[sent:sent + most]
                part = _Header(req_id=req_id)
                part.part.index, part.part.last = index, sent + len(piece) == len(up)
                endpoint.send(part, [piece])
                sent, index, credit = sent + len(piece), index + 1, credit - 1
                since = time.monotonic()
            if messages:
                since = time.monotonic()
            elif time.monotonic() - since > timeout_s:
                cancel = _Header(req_id=self._req_id())
                cancel.cancel.req_id = req_id
                endpoint.send(cancel)
                raise Timeout(f"the daemon did not answer within {timeout_s:g} s")
            self._wait(_SLICE_MS)

    @staticmethod
    def _grant(endpoint, req_id, parts):
        credit = _Header(req_id=req_id)
        credit.credit.parts = parts
        endpoint.send(credit)

    def _call(self, place, header, expected, body=None):
        """A request on a socket; one that a restarted daemon does not know is greeted again."""
        endpoint = self._endpoints[place]
        for attempt in range(2):
            endpoint.open()
            try:
                return self._exchange(endpoint, header, body, expected, self.timeout_s)
            except Error as error:
                if error.code != "UNAUTHENTICATED" or attempt:
                    raise
                endpoint.session = b""
                if place == "ingest":
                    self._streams_lost()
        return None

    # ------------------------------------------------------------------------------------------------ maps

    def create_map(self, name, voxel_size_m, mode="tsdf", origin_m=(0, 0, 0), **parameters):
        """Makes an empty map and returns its info.  parameters: other fields of MapParams, such as colour=True;
        weighting="inverse_square" (16 up to 1 m of depth, 1 from 4 m on) or "constant" (1), else the daemon's default."""
        header = _Header()
        header.map_create.map = name.encode()
        params = header.map_create.params
        params.voxel_size_m = voxel_size_m
        params.mode = {"tsdf": 0, "occupancy": 1}[mode]
        params.origin_m.x, params.origin_m.y, params.origin_m.z = origin_m
        if parameters.get("weighting", "default") not in _WEIGHTINGS:
            raise ValueError(f"weighting is inverse_square or constant, not {parameters['weighting']!r}")
        for key, value in parameters.items():
            setattr(params, key, _WEIGHTINGS.index(value) if key == "weighting" else value)
        return self._info_of(self._call("admin", header, "map_info_reply")[0])

    def delete_map(self, name):
        header = _Header()
        header.map_delete.map = name.encode()
        self._call("admin", header, "result")

    def maps(self):
        """Names of all maps."""
        header = _Header()
        header.map_list.SetInParent()
        return [state.name.decode() for state in self._call("query", header, "map_list_reply")[0].map_list_reply.maps]

    def info(self, name):
        """Facts of a map as a dict: epoch, frames, voxels, bounds_m (None while it is empty), ..."""
        header = _Header()
        header.map_info.map = name.encode()
        return self._info_of(self._call("query", header, "map_info_reply")[0])

    def digest(self, name):
        """SHA-256 of a map's content, in hex."""
        header = _Header()
        header.map_digest.map = name.encode()
        return self._call("admin", header, "map_digest_reply")[0].map_digest_reply.digest.hex()

    @staticmethod
    def _info_of(answer):
        info = answer.map_info_reply

        def vector(v):
            return (v.x, v.y, v.z)

        bounds = (vector(info.bounds.min_m), vector(info.bounds.max_m)) if info.HasField("bounds") else None
        return {
            "name": info.map.name.decode(),
            "epoch": info.map.epoch,
            "newest_stamp_ns": info.map.newest_stamp_ns,
            "max_distance_m": info.map.max_distance_m,
            "voxel_size_m": info.params.voxel_size_m,
            "origin_m": vector(info.params.origin_m),
            "mode": ("tsdf", "occupancy")[info.params.mode],
            "weighting": _WEIGHTINGS[info.params.weighting],
            "colour": info.params.colour,
            "label": info.params.label,
            "frames": info.n_frames,
            "refused": info.n_refused,
            "voxels": info.n_voxels,
            "used_bytes": info.used_bytes,
            "bounds_m": bounds,
        }

    # ------------------------------------------------------------------------------------------------ questions

    def query_points(self, name, points, min_epoch=None, unknown_distance=False):
        """Distance to the nearest surface, its gradient and the state at points [n][3] (world, metres), as Points.

        min_epoch: answer from this epoch or a newer one; None: the newest.  unknown_distance: also how far the nearest
        unknown voxel is.
        """
        points = numpy.atleast_2d(numpy.asarray(points, dtype=numpy.float64))
        if points.ndim != 2 or points.shape[1] != 3:
            raise ValueError(f"points must have the shape [n][3], not {list(points.shape)}")
        if min_epoch is None:
            min_epoch = self.info(name)["epoch"]
        finite = points[numpy.isfinite(points).all(axis=1)]
        middle = numpy.rint((finite.min(axis=0) + finite.max(axis=0)) / 2) if finite.size else numpy.zeros(3)
        origin = numpy.where(numpy.abs(middle) > 1024, middle, 0)  # coordinates travel as floats relative to it
        with numpy.errstate(over="ignore"):
            local = numpy.ascontiguousarray(points - origin, dtype="<f4")
        kind = [("distance_m", "<f4"), ("gradient", "<f4", 3), ("state", "<u4"), ("status", "<u4")]
        if unknown_distance:
            kind.append(("unknown_distance_m", "<f4"))
        answers, at, epoch = [], 0, min_epoch
        while True:
            batch = local[at:at + self.limits.query_items]
            header = _Header()
            header.query_points.map = name.encode()
            header.query_points.min_epoch = epoch
            header.query_points.n = len(batch)
            header.query_points.unknown_distance = unknown_distance
            header.query_points.origin_m.x, header.query_points.origin_m.y, header.query_points.origin_m.z = origin
            answer, body = self._call("query", header, "result", batch.tobytes())
            answers.append(numpy.frombuffer(body, dtype=kind))
            at += len(batch)
            epoch = max(epoch, answer.result.map.epoch)  # a batch never goes back in time
            if at >= len(local):
                break
        all_ = numpy.concatenate(answers)
        if len(all_) != len(points):
            raise Error("INTERNAL", f"the daemon answered {len(all_)} of {len(points)} points")
        distance = numpy.where(all_["status"] & HAS_DISTANCE, all_["distance_m"], numpy.nan).astype(numpy.float32)
        unknown = all_["unknown_distance_m"].copy() if unknown_distance else None
        return Points(distance, all_["gradient"].copy(), all_["state"].copy(), all_["status"].copy(), unknown, epoch)

    def mesh(self, name, path, voxelctl=None):
        """Writes the surface to a PLY or .glb file, by the program voxelctl (on $PATH, or beside the build's module)."""
        beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bin", "voxelctl")
        program = voxelctl or os.environ.get("VOXELCTL") or shutil.which("voxelctl") or (beside if os.path.exists(beside) else None)
        if program is None:
            raise FileNotFoundError("voxelctl is not on $PATH: give its path as voxelctl=, or as $VOXELCTL")
        done = subprocess.run(
            [program, "--ipc-dir", self.ipc_dir, "mesh", name, "-o", os.fspath(path)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Error("FAILED", done.stderr.strip())

    # ------------------------------------------------------------------------------------------------ streams

    def stream_depth(self, name, fx, fy, cx, cy, units_per_m=1000.0, **options):
        """A stream of depth images of a pinhole camera (pixels; pixel (u, v) has its centre at (u, v)).

        units_per_m: of uint16 images; float32 images are in metres.  options: min_range_m, max_range_m, no_carving,
        on_ack (a function that is given an Ack for every frame).
        """
        return Stream(self, name, "SENSOR_DEPTH", {"fx_px": fx, "fy_px": fy, "cx_px": cx, "cy_px": cy}, units_per_m, **options)

    def stream_points(self, name, **options):
        """A stream of point sets [n][3] in the sensor's axes (metres; x forward, y left, z up).  options as of stream_depth."""
        return Stream(self, name, "SENSOR_POINTS", {}, 0, **options)

    def _streams_lost(self):
        for stream in self._streams.values():
            stream._lose()

    def _take_stream(self, header, body):
        if body in ("ack", "nack", "credit"):
            stream = self._streams.get(getattr(header, body).stream)
            if stream is not None:
                stream._take(body, getattr(header, body))
        elif body == "error":  # it could not even be told which frame it was
            for stream in self._streams.values():
                stream._take_error(header.req_id, _error_of(header.error))


class Stream:
    """Frames of one sensor into one map; made by Client.stream_depth and stream_points.

    send() waits while the daemon gives no credit, so a program cannot flood it.  At the end of a `with` block, or with
    flush(), all frames are in the map, or the first refusal is raised; `refused` lists (seq, Error) of all of them.
    """

    def __init__(self, client, name, sensor, camera, units_per_m, min_range_m=0.0, max_range_m=0.0, no_carving=False, on_ack=None):
        self.client, self.map, self.sensor = client, name, sensor
        self.camera, self.units_per_m, self.on_ack = camera, units_per_m, on_ack
        self.n_integrated, self.epoch, self.refused = 0, 0, []
        self._waiting = {}  # seq: req_id
        self._lost, self._raised = False, 0
        self.id = secrets.randbits(63) + 1
        header = _Header()
        header.open_stream.stream = self.id
        header.open_stream.map = name.encode()
        header.open_stream.sensor = _SENSORS[sensor]
        header.open_stream.min_range_m, header.open_stream.max_range_m = min_range_m, max_range_m
        header.open_stream.no_carving = no_carving
        header.open_stream.durability = _ACK_INTEGRATED
        answer = client._call("ingest", header, "stream_ok")[0].stream_ok
        self._credit_frames, self._credit_bytes = answer.credit_frames, answer.credit_bytes
        self._seq = answer.last_seq
        client._streams[self.id] = self

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def close(self):
        self.client._streams.pop(self.id, None)

    def send(self, readings, pose, stamp_ns=None, mask=None, colour=None, label=None, weight=None):
        """Sends one frame and returns its number, as soon as there is credit for it.

        readings: depth [height][width], float32 metres or uint16; or points [n][3].  pose: map_T_sensor, 4 x 4 (or 3 x 4),
        or x y z qx qy qz qw.  stamp_ns: not before the last one's; None: now.  mask: uint8 [height][width], 0 = not used.
        colour: uint8 [..., 3] and label: uint8, one for each reading, in maps that keep them.  weight: float32 [height][width],
        how much a pixel counts, 0 = not used.
        """
        frame, payloads = self._frame(readings, pose)
        frame.frame.stamp_ns = time.time_ns() if stamp_ns is None else int(stamp_ns)
        shape = numpy.asarray(readings).shape[:2 if self.sensor == "SENSOR_DEPTH" else 1]
        for channel, values, tail, dtype in (("MASK", mask, (), "u1"), ("COLOUR", colour, (3,), "u1"), ("LABEL", label, (), "u1"),
                                             ("WEIGHT", weight, (), "<f4")):
            if values is None:
                continue
            values = numpy.ascontiguousarray(values, dtype=dtype)
            if values.shape != shape + tail:
                raise ValueError(f"{channel.lower()} has the shape {values.shape}, not {shape + tail}")
            frame.frame.channels.append(_CHANNELS["CHANNEL_" + channel])
            payloads.append(values.tobytes())
        n_bytes = sum(map(len, payloads))
        self._await(lambda: self._credit_frames > 0 and self._credit_bytes >= n_bytes, n_bytes)
        self._seq += 1
        self._credit_frames -= 1
        self._credit_bytes -= n_bytes
        frame.frame.seq = self._seq
        frame.req_id = self._waiting[self._seq] = self.client._req_id()
        self.client._endpoints["ingest"].send(frame, payloads)
        return self._seq

    def flush(self):
        """Waits until every frame is in the map or refused; raises the first refusal that was not raised before."""
        self._await(lambda: not self._waiting, 0)
        first, self._raised = self._raised, len(self.refused)
        if len(self.refused) > first:
            seq, error = self.refused[first]
            n = len(self.refused) - first
            raise Error(error.code, f"{n} frame{'s were' if n > 1 else ' was'} refused; frame {seq}: {error.message}", error.field)

    # ------------------------------------------------------------------------------------------------ inside

    def _frame(self, readings, pose):
        header = _Header()
        header.frame.stream = self.id
        x, y, z, qx, qy, qz, qw = pose_of(pose)
        header.frame.poses.add(x_m=x, y_m=y, z_m=z, qx=qx, qy=qy, qz=qz, qw=qw)
        readings = numpy.asarray(readings)
        if self.sensor == "SENSOR_POINTS":
            if readings.ndim != 2 or readings.shape[1] != 3:
                raise ValueError(f"points must have the shape [n][3], not {list(readings.shape)}")
            header.frame.points.n = len(readings)
            return header, [numpy.ascontiguousarray(readings, dtype="<f4").tobytes()]
        if readings.ndim != 2:
            raise ValueError(f"a depth image must have the shape [height][width], not {list(readings.shape)}")
        wide = readings.dtype == numpy.uint16
        if not wide and readings.dtype.kind != "f":
            raise ValueError(f"a depth image is float (metres) or uint16 (1 / units_per_m), not {readings.dtype}")
        pinhole = header.frame.pinhole
        pinhole.height, pinhole.width = readings.shape
        for key, value in self.camera.items():
            setattr(pinhole, key, value)
        pinhole.reading = _READINGS["READING_U16" if wide else "READING_F32"]
        pinhole.units_per_m = self.units_per_m if wide else 0
        return header, [numpy.ascontiguousarray(readings, dtype="<u2" if wide else "<f4").tobytes()]

    def _await(self, ready, n_bytes):
        since, seen = time.monotonic(), None
        while True:
            self.client._dispatch()
            self.client._endpoints["ingest"].check()
            if self._lost:
                raise Lost("the daemon went away; the stream must be opened again")
            if ready():
                return
            state = (len(self._waiting), self._credit_frames)
            if state != seen:
                since, seen = time.monotonic(), state
            idle_s = time.monotonic() - since
            if n_bytes > self._credit_bytes and self._credit_frames > 0 and not self._waiting and idle_s > 5:
                raise Error(
                    "RESOURCE_EXHAUSTED", f"the frame has {n_bytes} bytes, the daemon gives a stream credit for {self._credit_bytes}", "data"
                )
            if idle_s > self.client.timeout_s:
                raise Timeout(f"the daemon has taken no frame for {self.client.timeout_s:g} s")
            self.client._wait(_SLICE_MS)

    def _take(self, kind, message):
        if kind == "credit":
            self._credit_frames += message.frames
            self._credit_bytes += message.bytes
        elif kind == "nack":
            self._refuse(message.seq, _error_of(message.error))
        elif message.level != _ACK_RECEIVED or message.superseded:
            self._waiting.pop(message.seq, None)
            self.n_integrated += 1
            self.epoch = max(self.epoch, message.map.epoch)
            if self.on_ack is not None:
                counts = {field.name: getattr(message.counts, field.name) for field in message.counts.DESCRIPTOR.fields}
                warnings = [_WARNINGS.get(w, str(w))[8:] for w in message.warnings]
                self.on_ack(Ack(message.seq, message.map.epoch, counts, warnings, message.superseded))

    def _take_error(self, req_id, error):
        for seq, waiting in list(self._waiting.items()):
            if waiting == req_id:
                self._refuse(seq, error)
                self._lost |= error.code == "UNAUTHENTICATED"

    def _refuse(self, seq, error):
        if self._waiting.pop(seq, None) is not None:
            self.refused.append((seq, error))

    def _lose(self):
        self._lost = True
        for seq in list(self._waiting):
            self._refuse(seq, Lost("the daemon went away before it acknowledged the frame"))


def pose_of(pose):
    """Position and unit quaternion x y z w, of a 4 x 4 or 3 x 4 rigid matrix, or of those 7 numbers."""
    pose = numpy.asarray(pose, dtype=numpy.float64)
    if pose.shape == (7,):
        return [float(v) for v in pose]
    if pose.shape not in ((4, 4), (3, 4)):
        raise ValueError(f"a pose is a 4 x 4 matrix or x y z qx qy qz qw, not an array of the shape {list(pose.shape)}")
    r = pose[:3, :3]
    if not (numpy.isfinite(pose).all() and numpy.abs(r.T @ r - numpy.eye(3)).max() <= 1e-3 and numpy.linalg.det(r) > 0):
        raise ValueError("the pose is no rigid motion: its 3 x 3 part is no rotation")
    # The largest of 4 w^2, 4 x^2, ... keeps its digits.
    squares = [1 + r[0, 0] + r[1, 1] + r[2, 2], 1 + r[0, 0] - r[1, 1] - r[2, 2], 1 - r[0, 0] + r[1, 1] - r[2, 2], 1 - r[0, 0] - r[1, 1] + r[2, 2]]
    wx, wy, wz = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    xy, xz, yz = r[0, 1] + r[1, 0], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1]
    rows = [(squares[0], wx, wy, wz), (wx, squares[1], xy, xz), (wy, xy, squares[2], yz), (wz, xz, yz, squares[3])]
    q = numpy.array(rows[int(numpy.argmax(squares))])
    w, x, y, z = q / numpy.linalg.norm(q)
    return [float(v) for v in (*pose[:3, 3], x, y, z, w)]
