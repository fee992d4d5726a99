"""Frames of a sensor on their way into a map."""
import collections
import contextlib
import operator
import secrets
import time
import warnings

import numpy

from . import _wire as wire
from ._arrays import numbers, poses_of
from ._wire import BadInput

_WARNINGS = {
    "ALL_BEYOND": "every reading of a frame lay beyond max_range_m, or saw nothing: are its units metres?",
    "EMPTY": "a frame had no reading that can be used",
    "UNUSED_CHANNEL": "a frame brought colours or labels, and the map keeps none (create_map: colour=True, label=True)",
}
_SLICE_MS, _MOST_POSES = 50, 64


class Ack(wire.OfMap, collections.namedtuple("Ack", "seq readings warnings superseded map")):
    """What became of a frame.  readings: a dict of counts by fate; warnings: a list of names; superseded: a newer frame of
    a `latest` stream took its place; map: the MapState that holds the frame, so that epoch is what to ask for."""

    __slots__ = ()


class Stream:
    """Frames of one sensor into one map; made by Client.stream_depth, stream_points and stream_range.

    send() waits while the daemon gives no credit, so a program cannot flood it.  At the end of a `with` block, or with
    flush(), all frames are in the map, or the first refusal is raised; `refused` lists (seq, Error) of all of them.
    n_integrated, n_superseded: frames so far; epoch: the newest that holds one of them, map: its MapState (None before);
    warnings: dict of names to numbers of frames, of which each is told once by Python's warnings, too.
    """

    def __init__(self, client, name, sensor, model, min_range_m=0.0, max_range_m=0.0, no_return_value=None, no_carving=False,
                 latest=False, invalid_zero=False, intensity_white=0.0, on_ack=None):
        self.client, self.name, self.sensor, self.on_ack = client, name, sensor, on_ack
        self.n_integrated = self.n_superseded = self.epoch = 0
        self.refused, self.map, self.warnings = [], None, {}
        self._model = model
        self._waiting = {}  # seq: req_id
        self._lost, self._gone, self._raised = False, None, 0
        self.id = secrets.randbits(63) + 1
        header = wire.Header()
        ask = header.open_stream
        wire.put(ask, stream=self.id, map=wire.name_of(name), sensor=wire.SENSORS["SENSOR_" + sensor.upper()], min_range_m=min_range_m,
                 max_range_m=max_range_m, no_carving=no_carving, delivery=int(latest), invalid_zero=invalid_zero,
                 intensity_white=intensity_white, durability=wire.ACK_INTEGRATED)
        if no_return_value is not None:
            wire.put(ask, no_return_value=no_return_value)
        self._endpoint = client._add_stream(self)
        try:
            answer = client._call(self.id, header, "stream_ok")[0].stream_ok
        except BaseException:
            self.close()
            raise
        self._credit_frames, self._credit_bytes = answer.credit_frames, answer.credit_bytes
        self._most_bytes = answer.credit_bytes
        self._seq = answer.last_seq

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    def __del__(self):
        with contextlib.suppress(Exception):  # the interpreter may be ending
            self.close()

    def close(self):
        """Ends the stream; frames that were sent are integrated all the same."""
        self.client._drop_stream(self)
        self._lost = True

    def send(self, readings, pose, stamp_ns=None, mask=None, colour=None, label=None, weight=None, intensity=None, ring=None,
             time_ns=None, pose_times_ns=None, reset=False):
        """Sends one frame and returns its number, as soon as there is credit for it.

        readings: a depth image [height][width], float (metres along the axis) or uint16; points [n][3], metres in the
        sensor's axes; a range image [rows][columns], metres.  What is no finite number is counted and not used.
        pose: map_T_sensor, 4 x 4 (or 3 x 4), or x y z qx qy qz qw.
        stamp_ns: of the frame, int, not before the last one's (unless reset); None: the clock's.
        Beside the readings, one item for each:
        mask: uint8, 0 = not used, and weight: float32 0 .. 1e6, how much a pixel counts; depth images.
        colour: uint8 [..][3] red, green, blue, and label: uint8, 0 = none; for maps that keep them.
        intensity: float32, a grey (Client.stream_points: intensity_white), and ring: uint16 (points); LiDARs.
        A sensor that moved meanwhile (LiDARs): pose is 2 to 64 poses [k][4][4] or [k][7], pose_times_ns [k] when they were,
        rising, and time_ns when the readings were: int [n] of points, [columns] of a range image; all in ns from
        stamp_ns, within 2 s of it, the first pose before the first reading and the last behind the last.
        Errors: BadInput (a ValueError) before anything is sent; what the daemon refuses is raised by flush().
        """
        readings = numbers(readings, "readings")
        frame = wire.Header()
        frame.frame.stream, frame.frame.reset = self.id, reset
        self._put_poses(frame.frame, pose, pose_times_ns, time_ns)
        payloads = [getattr(self, "_put_" + self.sensor)(frame.frame, readings)]
        try:
            wire.put(frame.frame, stamp_ns=time.time_ns() if stamp_ns is None else operator.index(stamp_ns))
        except TypeError:
            raise BadInput(f"stamp_ns is an int, nanoseconds, not {stamp_ns!r}", "stamp_ns") from None
        shape = readings.shape[:1] if self.sensor == "points" else readings.shape
        moments = shape[:1] if self.sensor == "points" else shape[1:]
        for channel, values, wanted, dtype in (
                ("TIME", time_ns, moments, "<i4"), ("MASK", mask, shape, "u1"), ("COLOUR", colour, (*shape, 3), "u1"),
                ("LABEL", label, shape, "u1"), ("WEIGHT", weight, shape, "<f4"), ("INTENSITY", intensity, shape, "<f4"),
                ("RING", ring, shape, "<u2")):
            if values is not None:
                frame.frame.channels.append(wire.CHANNELS["CHANNEL_" + channel])
                payloads.append(_channel("time_ns" if channel == "TIME" else channel.lower(), values, wanted, dtype))
        return self._send(frame, payloads)

    def flush(self):
        """Waits until every frame is in the map or refused; raises the first refusal that was not raised before."""
        self._await(lambda: not self._waiting, 0)
        first, self._raised = self._raised, len(self.refused)
        if len(self.refused) > first:
            seq, error = self.refused[first]
            n = len(self.refused) - first
            raise wire.Error(error.code, f"{n} frame{'s were' if n > 1 else ' was'} refused; frame {seq}: {error.message}", error.field)

    # ------------------------------------------------------------------------------------------------ frames

    def _put_poses(self, frame, pose, times_ns, time_ns):
        poses = poses_of(pose)
        if times_ns is None:
            if poses.ndim != 1:
                raise BadInput(f"pose has the shape {list(numpy.shape(pose))}: several poses need pose_times_ns and time_ns", "pose")
            poses, times_ns = poses[None], numpy.zeros(1, dtype=numpy.int64)
        times_ns = numbers(times_ns, "pose_times_ns")
        if poses.ndim != 2 or times_ns.shape != poses.shape[:1]:
            raise BadInput(f"pose_times_ns has the shape {list(times_ns.shape)} for poses {list(poses.shape[:-1])}", "pose_times_ns")
        if not 1 <= len(poses) <= _MOST_POSES:
            raise BadInput(f"a frame has 1 to {_MOST_POSES} poses, got {len(poses)}", "pose")
        if times_ns.dtype.kind == "f":
            raise BadInput("pose_times_ns holds floats: whole nanoseconds from stamp_ns are wanted", "pose_times_ns")
        if len(poses) > 1 and self.sensor == "depth":
            raise BadInput("a depth image has one pose", "pose")
        if len(poses) > 1 and time_ns is None:
            raise BadInput("several poses need time_ns: when each point, or column of a range image, was read", "time_ns")
        if (numpy.diff(times_ns.astype(numpy.int64)) <= 0).any():
            raise BadInput("pose_times_ns must rise", "pose_times_ns")
        for at_ns, (x, y, z, qx, qy, qz, qw) in zip(times_ns.tolist(), poses.tolist()):
            frame.poses.add(offset_ns=at_ns, x_m=x, y_m=y, z_m=z, qx=qx, qy=qy, qz=qz, qw=qw)

    def _put_points(self, frame, readings):
        if readings.ndim != 2 or readings.shape[1] != 3:
            raise BadInput(f"points must have the shape [n][3], not {list(readings.shape)}", "readings")
        frame.points.n = len(readings)
        return numpy.ascontiguousarray(readings, dtype="<f4").tobytes()

    def _put_depth(self, frame, readings):
        if readings.ndim != 2 or not readings.size:
            raise BadInput(f"a depth image must have the shape [height][width], not {list(readings.shape)}", "readings")
        wide = readings.dtype == numpy.uint16
        if not wide and readings.dtype.kind != "f":
            raise BadInput(f"a depth image is float (metres) or uint16 (1 / units_per_m), not {readings.dtype}", "readings")
        pinhole, camera = frame.pinhole, self._model
        pinhole.height, pinhole.width = readings.shape
        fx, fy, cx, cy = camera["intrinsics"]
        wire.put(pinhole, fx_px=fx, fy_px=fy, cx_px=cx, cy_px=cy, edge_jump=camera["edge_jump"], units_per_m=camera["units_per_m"] if wide else 0)
        pinhole.distortion.extend(camera["distortion"])
        pinhole.reading = wire.READINGS["READING_U16" if wide else "READING_F32"]
        return numpy.ascontiguousarray(readings, dtype="<u2" if wide else "<f4").tobytes()

    def _put_range(self, frame, readings):
        elevation, step = self._model["elevation_rad"], self._model["azimuth_step_rad"]
        if readings.ndim != 2 or len(readings) != len(elevation) or not readings.size:
            raise BadInput(
                f"a range image of {len(elevation)} elevations must have the shape [{len(elevation)}][columns], not {list(readings.shape)}", "readings")
        if readings.dtype.kind != "f":
            raise BadInput(f"a range image is float (metres), not {readings.dtype}", "readings")
        image = frame.range
        image.rows, image.columns = readings.shape
        wire.put(image, first_azimuth_rad=self._model["first_azimuth_rad"],
                 azimuth_step_rad=self._model["azimuth_span_rad"] / readings.shape[1] if step is None else step)
        image.elevation_rad.extend(elevation.tolist())
        return numpy.ascontiguousarray(readings, dtype="<f4").tobytes()

    def _send(self, frame, payloads):
        n_bytes = sum(map(len, payloads))
        if n_bytes > self._most_bytes:
            raise wire.Error("RESOURCE_EXHAUSTED", f"the frame has {n_bytes} bytes, the daemon gives a stream credit for {self._most_bytes}: "
                             "thin it out, or send it as several", "readings")
        self._await(lambda: self._credit_frames > 0 and self._credit_bytes >= n_bytes, n_bytes)
        self._seq += 1
        self._credit_frames -= 1
        self._credit_bytes -= n_bytes
        frame.frame.seq = self._seq
        frame.req_id = self._waiting[self._seq] = self.client._req_id()
        self._endpoint.send(frame, payloads)
        return self._seq

    # ------------------------------------------------------------------------------------------------ answers

    def _await(self, ready, n_bytes):
        since, seen = time.monotonic(), None
        while True:
            self.client._dispatch()
            self._endpoint.check()
            if self._lost:
                raise wire.Lost("the stream was closed, or the daemon went away; it must be opened again")
            if self._gone and n_bytes:
                raise self._gone
            if ready():
                return
            state = (len(self._waiting), self._credit_frames)
            if state != seen:
                since, seen = time.monotonic(), state
            idle_s = time.monotonic() - since
            if idle_s > self.client.timeout_s:
                raise wire.Timeout(f"the daemon has taken no frame for {self.client.timeout_s:g} s")
            self.client._wait(_SLICE_MS)

    def _take(self, kind, header):
        message = getattr(header, kind)
        if kind == "error":  # the daemon could not even be told which frame it was
            self._take_error(header.req_id, wire.error_of(message))
        elif kind == "credit":
            self._credit_frames += message.frames
            self._credit_bytes += message.bytes
        elif kind == "nack":
            error = wire.error_of(message.error)
            if error.code == "NOT_FOUND" and error.field == "stream":
                self._gone = error  # the map was deleted, and the credit went with it
            self._refuse(message.seq, error)
        elif message.level != wire.ACK_RECEIVED or message.superseded:
            self._waiting.pop(message.seq, None)
            self.n_superseded += message.superseded
            self.n_integrated += not message.superseded
            if message.map.epoch >= self.epoch:
                self.epoch, self.map = message.map.epoch, wire.state_of(message.map)
            names = [wire.WARNINGS.get(w, str(w))[8:] for w in message.warnings]
            if self.on_ack is not None:
                counts = {field.name: getattr(message.counts, field.name) for field in message.counts.DESCRIPTOR.fields}
                self.on_ack(Ack(message.seq, counts, names, message.superseded, wire.state_of(message.map)))
            self._warn(names)

    def _warn(self, names):
        if "ALL_BEYOND" in names:
            names = [name for name in names if name != "EMPTY"]  # which follows from it
        for name in names:
            self.warnings[name] = self.warnings.get(name, 0) + 1
            if self.warnings[name] == 1 and name in _WARNINGS:
                warnings.warn(f"map {self.name}: {_WARNINGS[name]}", RuntimeWarning, stacklevel=2)

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
            self._refuse(seq, wire.Lost("the daemon went away before it acknowledged the frame"))


def _channel(field, values, shape, dtype):
    """One item for each reading, as bytes."""
    values = numpy.asarray(values)
    if values.dtype.kind not in "iufb":
        raise BadInput(f"{field} holds {values.dtype}, not numbers", field)
    if values.shape != shape:
        raise BadInput(f"{field} has the shape {list(values.shape)}, not {list(shape)}", field)
    wanted = numpy.dtype(dtype)
    if wanted.kind in "iu":
        if values.dtype.kind == "f" and not (values == numpy.floor(values)).all():
            raise BadInput(f"{field} holds {values.dtype} with fractions, not whole numbers", field)
        limits = numpy.iinfo(wanted)
        if values.size and (values.min() < limits.min or values.max() > limits.max):
            raise BadInput(f"{field} lies in {values.min()} .. {values.max()}, not in {limits.min} .. {limits.max}", field)
    return numpy.ascontiguousarray(values, dtype=wanted).tobytes()
