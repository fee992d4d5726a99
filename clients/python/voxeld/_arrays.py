"""Arrays as the caller has them, checked, in the form that the wire wants; poses."""
import numpy

from ._wire import BadInput

_FAR_M = 1024  # coordinates travel as floats, relative to an origin where they are larger


def numbers(values, field):
    """An array of real numbers."""
    try:
        values = numpy.asarray(values)
    except ValueError:
        raise BadInput(f"{field} has rows of different lengths", field) from None
    if values.size == 0 and values.dtype.kind not in "iuf":
        values = values.astype(numpy.float64)
    if values.dtype.kind not in "iuf":
        raise BadInput(f"{field} holds {values.dtype}, not numbers", field)
    return values


def rows(values, field, columns):
    """float64 [n][k]; columns: the names of the k.  One row may come as [k]."""
    values, k = numbers(values, field).astype(numpy.float64), len(columns)
    if values.size == 0 and values.ndim < 2:
        values = values.reshape(0, k)
    if values.shape == (k,):
        values = values[None]
    if values.ndim != 2 or values.shape[1] != k:
        raise BadInput(f"{field} must have the shape [n][{k}] ({' '.join(columns)}), not {list(values.shape)}", field)
    return values


def check_rows(good, field, words):
    """Refuses the first row that is not good."""
    bad = numpy.flatnonzero(~good)
    if bad.size:
        raise BadInput(f"{field}[{bad[0]}] {words}", field)


def origin_of(places):
    """What coordinates [..][3] travel relative to: 0 near the world's origin, else the middle one (no outlier moves it)."""
    places = places.reshape(-1, 3)
    places = places[numpy.isfinite(places).all(axis=1)]
    middle = numpy.rint(numpy.median(places, axis=0)) if len(places) else numpy.zeros(3)
    return numpy.where((numpy.abs(middle) > _FAR_M) & (numpy.abs(middle) < 1e12), middle, 0)


def floats(values):
    """Contiguous float32, as the wire has it; what is too large becomes infinite."""
    with numpy.errstate(over="ignore"):
        return numpy.ascontiguousarray(values, dtype="<f4")


def _quaternions(r):
    """Unit quaternions x y z w [n][4] of rotations [n][3][3]."""
    xx, yy, zz = r[:, 0, 0], r[:, 1, 1], r[:, 2, 2]
    wx, wy, wz = r[:, 2, 1] - r[:, 1, 2], r[:, 0, 2] - r[:, 2, 0], r[:, 1, 0] - r[:, 0, 1]
    xy, xz, yz = r[:, 0, 1] + r[:, 1, 0], r[:, 0, 2] + r[:, 2, 0], r[:, 1, 2] + r[:, 2, 1]
    squares = numpy.stack([1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz, 1 + xx + yy + zz], axis=-1)
    each = numpy.stack([
        numpy.stack([squares[:, 0], xy, xz, wx], axis=-1), numpy.stack([xy, squares[:, 1], yz, wy], axis=-1),
        numpy.stack([xz, yz, squares[:, 2], wz], axis=-1), numpy.stack([wx, wy, wz, squares[:, 3]], axis=-1)])
    q = each[numpy.argmax(squares, axis=-1), numpy.arange(len(r))]  # the largest of 4 x^2, ... keeps its digits
    return q / numpy.linalg.norm(q, axis=-1, keepdims=True)


def poses_of(poses, field="pose", positions=False):
    """float64 [..][7], position and unit quaternion x y z w, of [..][7], of rigid matrices [..][4][4] or [..][3][4], or,
    with positions, of [..][3] that do not turn."""
    poses = numbers(poses, field).astype(numpy.float64)
    if poses.ndim >= 2 and poses.shape[-2:] in ((4, 4), (3, 4)):
        shape, flat = poses.shape[:-2], poses.reshape(-1, *poses.shape[-2:])
        r = flat[:, :3, :3]
        with numpy.errstate(invalid="ignore"):
            good = numpy.isfinite(flat).all(axis=(1, 2)) & (numpy.abs(r.transpose(0, 2, 1) @ r - numpy.eye(3)).max(axis=(1, 2)) <= 1e-3)
            good &= numpy.linalg.det(numpy.where(numpy.isfinite(r), r, 0)) > 0
        if not good.all():
            where = numpy.unravel_index(int(numpy.argmin(good)), shape) if shape else ()
            raise BadInput(f"{field}{''.join(f'[{i}]' for i in where)} is no rigid motion: its 3 x 3 part is no rotation", field)
        return numpy.concatenate([flat[:, :3, 3], _quaternions(r)], axis=-1).reshape(*shape, 7)
    if positions and poses.shape == (0,):
        return poses.reshape(0, 7)
    if positions and poses.ndim >= 1 and poses.shape[-1] == 3:
        turn = numpy.broadcast_to(numpy.array([0.0, 0, 0, 1]), (*poses.shape[:-1], 4))
        return numpy.concatenate([poses, turn], axis=-1)
    if poses.ndim >= 1 and poses.shape[-1] == 7:
        return poses
    forms = "4 x 4 or x y z qx qy qz qw" + (" or x y z" if positions else "")
    raise BadInput(f"a pose is {forms}; {field} has the shape {list(poses.shape)}", field)


def pose_of(pose):
    """Position and unit quaternion x y z w, of a 4 x 4 or 3 x 4 rigid matrix, or of those 7 numbers."""
    out = poses_of(pose)
    if out.ndim != 1:
        raise BadInput(f"one pose is 4 x 4 or x y z qx qy qz qw, not an array of the shape {list(numpy.shape(pose))}", "pose")
    return [float(v) for v in out]
