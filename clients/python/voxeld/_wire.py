"""Messages of the wire, errors, checksums: what the rest of the package stands on (proto/README.md)."""
import collections
import contextlib
import functools
import os

import numpy
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MAJOR, MINOR = 1, 0

_State = collections.namedtuple("MapState", "name uuid epoch esdf_epoch newest_stamp_ns max_distance_m staleness_us")


class MapState(_State):
    """Which state of which map an answer speaks of.

    name; uuid: 16 bytes, another one for each map that is made; epoch: grows with each change, 0 = nothing integrated yet;
    esdf_epoch: of the distances, 0 where the answer has none; newest_stamp_ns: of the frames in it; max_distance_m: R, the
    reach of distances; staleness_us: since the newest frame was integrated.
    """

    __slots__ = ()


class OfMap:
    """Of an answer with the field `map`: its facts at hand."""

    __slots__ = ()
    epoch = property(lambda self: self.map.epoch, doc="The map's epoch that the answer speaks of.")
    newest_stamp_ns = property(lambda self: self.map.newest_stamp_ns, doc="Stamp of the newest frame in it.")
    max_distance_m = property(lambda self: self.map.max_distance_m, doc="R: nothing is told of surfaces farther away.")


class Error(Exception):
    """A refusal.  code: as in proto/README.md ("INVALID_ARGUMENT", ...); field: what was wrong, or ""."""

    def __init__(self, code, message, field=""):
        super().__init__(f"{message} [{code}{' ' + field if field else ''}]")
        self.code, self.field, self.message = code, field, message


class Lost(Error):
    """No daemon answers, or it went away.  The next call tries again; streams must be opened anew."""

    def __init__(self, message):
        super().__init__("UNAVAILABLE", message, "connection")


class BadInput(Error, ValueError):
    """What was given makes no sense, as this client saw before it asked; a ValueError, too."""

    def __init__(self, message, field=""):
        super().__init__("INVALID_ARGUMENT", message, field)


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
        raise ImportError(f"{path} is missing: the build lays package and voxeld.desc into build/python; take that (PYTHONPATH)") from None
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool


def _class_of(name):
    message = _POOL.FindMessageTypeByName("voxeld.v1." + name)
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(message)
    return message_factory.MessageFactory(_POOL).GetPrototype(message)


_POOL = _load_messages()
Header, StatsReport = _class_of("Header"), _class_of("StatsReport")
TYPES = {field.name: field.number for field in Header.DESCRIPTOR.oneofs_by_name["body"].fields}


def _enum(name):
    values = _POOL.FindEnumTypeByName("voxeld.v1." + name).values
    return {value.name: value.number for value in values}, {value.number: value.name for value in values}


SENSORS, _ = _enum("Sensor")
CHANNELS, _ = _enum("Channel")
READINGS, _ = _enum("Reading")
_, CODES = _enum("Code")
_, WARNINGS = _enum("Warning")
ACK_RECEIVED = _enum("AckLevel")[0]["ACK_RECEIVED"]
ACK_INTEGRATED = _enum("AckLevel")[0]["ACK_INTEGRATED"]
HOW_UNKNOWN = {"report": 0, "free": 1, "occupied": 2}  # how unknown space counts


def error_of(error):
    code = CODES.get(error.code, "INTERNAL")
    code = code[5:] if code.startswith("CODE_") else code
    return Error(code, error.message.decode("utf-8", "replace") or code, error.field.decode("utf-8", "replace"))


def name_of(name, field="map", what="the name of a map"):
    """A name as the wire has it; what: whose."""
    if not isinstance(name, str):
        raise BadInput(f"{what} is a str, not {type(name).__name__}", field)
    try:
        return name.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{what} holds what is no character: {name!r}", field) from None


def choice(value, choices, field):
    """The number of one of a few words."""
    if value not in choices:
        raise BadInput(f"{field} is one of {', '.join(choices)}; not {value!r}", field)
    return choices[value]


def put(message, **fields):
    """Sets numbers and flags of a message; what does not fit is refused with the field's name."""
    for field, value in fields.items():
        try:
            setattr(message, field, value.item() if isinstance(value, (numpy.generic, numpy.ndarray)) else value)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{field}: {error}", field) from None


def put_vector(message, values, field):
    """x y z into a Vec3."""
    try:
        message.x, message.y, message.z = (float(v) for v in values)
    except (TypeError, ValueError):
        raise BadInput(f"{field} is x y z, not {values!r}", field) from None


def put_box(message, corners, field):
    """The least and the greatest corner into a Box."""
    if corners.size != 6:
        raise BadInput(f"{field} is min x y z, max x y z, not an array of the shape {list(corners.shape)}", field)
    put_vector(message.min_m, corners.ravel()[:3], field)
    put_vector(message.max_m, corners.ravel()[3:], field)


@contextlib.contextmanager
def whole_file(path):
    """A file to write that appears under its name as a whole, or not at all."""
    path = os.fspath(path)
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)
        raise


def state_of(message):
    """A MapState of that of the wire."""
    return MapState(
        message.name.decode(), message.uuid, message.epoch, message.esdf_epoch, message.newest_stamp_ns, message.max_distance_m, message.staleness_us
    )


def plain(message):
    """A message as dicts, lists, numbers and texts; an enum by its name, an absent part as None, identifiers in hex."""
    out = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:  # protobuf 7 has no label
            out[field.name] = [_plain_value(field, item) for item in value]
        elif field.type == field.TYPE_MESSAGE and not message.HasField(field.name):
            out[field.name] = None
        else:
            out[field.name] = _plain_value(field, value)
    return out


def _plain_value(field, value):
    if field.type == field.TYPE_MESSAGE:
        return (value.x, value.y, value.z) if field.message_type.name == "Vec3" else plain(value)
    if field.type == field.TYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return known.name.split("_", 1)[1].lower() if known else value
    if field.type == field.TYPE_BYTES:
        return value.hex() if field.name in ("uuid", "digest") else value.decode("utf-8", "replace")
    return value


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

