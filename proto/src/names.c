#include "vx/wire.h"

/* Codes 1 .. 17 are the negated vx_err; two errors of the host share a wire code with others (VX_ERR_TABLE).
 */
Voxeld__V1__Code vxw_code_from_err(vx_err e)
{
    if (e == VX_E_NOMEM)
        return VOXELD__V1__CODE__CODE_RESOURCE_EXHAUSTED;
    if (e == VX_E_DEVICE)
        return VOXELD__V1__CODE__CODE_UNAVAILABLE;
    if (e > 0 || e < VX_E_INTERNAL)
        return VOXELD__V1__CODE__CODE_INTERNAL;
    return (Voxeld__V1__Code)-e;
}

vx_err vxw_err_from_code(Voxeld__V1__Code code)
{
    if ((unsigned)code > VOXELD__V1__CODE__CODE_INTERNAL)
        return VX_E_INTERNAL;
    return -(vx_err)code;
}

const char *vxw_type_name(unsigned type)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(&voxeld__v1__header__descriptor, type);
    return field && (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ? field->name : "unknown";
}
