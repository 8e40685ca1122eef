/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A collective as calls of NCCL. What only moves goes as bytes, whatever its dtype. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "cpu/gtorch-cpu-half.h"
#include "distributed/nccl/gtorch-nccl-private.h"

/* A type and an operation by which NCCL reduces. */
typedef struct
{
  ncclDataType_t type;
  ncclRedOp_t op;
  gsize per_element; /* numbers of that type; 0: NCCL cannot */
} Reduction;

static ncclRedOp_t
number_op (GTorchReduceOp op)
{
  static const ncclRedOp_t ops[] = {
    [GTORCH_REDUCE_OP_SUM] = ncclSum,      [GTORCH_REDUCE_OP_AVG] = ncclAvg,
    [GTORCH_REDUCE_OP_PRODUCT] = ncclProd, [GTORCH_REDUCE_OP_MIN] = ncclMin,
    [GTORCH_REDUCE_OP_MAX] = ncclMax,
  };

  return ops[op];
}

/* Bools are bytes of 0 and 1. */
static Reduction
reduce_bools (GTorchReduceOp op)
{
  switch (op)
    {
    case GTORCH_REDUCE_OP_SUM:
    case GTORCH_REDUCE_OP_MAX:
    case GTORCH_REDUCE_OP_BOR:
      return (Reduction){ ncclUint8, ncclMax, 1 };
    case GTORCH_REDUCE_OP_PRODUCT:
    case GTORCH_REDUCE_OP_MIN:
    case GTORCH_REDUCE_OP_BAND:
      return (Reduction){ ncclUint8, ncclMin, 1 };
    default:
      return (Reduction){ 0 };
    }
}

static Reduction
find_reduction (guint dtype, GTorchReduceOp op)
{
  static const struct
  {
    ncclDataType_t type;
    guint8 n;
  } types[GTORCH_N_DTYPES] = {
    [GTORCH_DTYPE_FLOAT32] = { ncclFloat32, 1 },   [GTORCH_DTYPE_FLOAT64] = { ncclFloat64, 1 },
    [GTORCH_DTYPE_FLOAT16] = { ncclFloat16, 1 },   [GTORCH_DTYPE_BFLOAT16] = { ncclBfloat16, 1 },
    [GTORCH_DTYPE_INT8] = { ncclInt8, 1 },         [GTORCH_DTYPE_UINT8] = { ncclUint8, 1 },
    [GTORCH_DTYPE_INT32] = { ncclInt32, 1 },       [GTORCH_DTYPE_INT64] = { ncclInt64, 1 },
    [GTORCH_DTYPE_COMPLEX64] = { ncclFloat32, 2 }, [GTORCH_DTYPE_COMPLEX128] = { ncclFloat64, 2 },
  };

  if (dtype == GTORCH_DTYPE_BOOL)
    return reduce_bools (op);
  if (op > GTORCH_REDUCE_OP_MAX || (types[dtype].n == 2 && op == GTORCH_REDUCE_OP_PRODUCT))
    return (Reduction){ 0 };
  return (Reduction){ types[dtype].type, number_op (op), types[dtype].n };
}

static gboolean
reduces (const GTorchCollective *self)
{
  return self->kind == GTORCH_COLLECTIVE_ALL_REDUCE || self->kind == GTORCH_COLLECTIVE_REDUCE
         || self->kind == GTORCH_COLLECTIVE_REDUCE_SCATTER;
}

gboolean
gtorch_nccl_reads_outputs (const GTorchCollective *self)
{
  return self->kind == GTORCH_COLLECTIVE_ALL_REDUCE || self->kind == GTORCH_COLLECTIVE_REDUCE
         || self->kind == GTORCH_COLLECTIVE_BROADCAST;
}

gboolean
gtorch_nccl_can_run (const GTorchCollective *self, GError **error)
{
  g_autoptr (GEnumClass) klass = NULL;

  if (self->tag != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: the tag is %d; NCCL has no tags but 0: messages between two ranks "
                      "arrive in the order in which they are sent"),
                   self->name, self->tag);
      return FALSE;
    }
  if (!reduces (self) || find_reduction (self->dtype, self->op).per_element > 0)
    return TRUE;
  klass = g_type_class_ref (GTORCH_TYPE_REDUCE_OP);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("%s: NCCL has no “%s” of %s"),
               self->name, g_enum_get_value (klass, self->op)->value_nick,
               gtorch_dtype_infos[self->dtype].name);
  return FALSE;
}

/* --- calls --- */

typedef struct
{
  NcclComm *comm;
  const GTorchCollective *collective;
  gint rank, size;
  gsize element; /* bytes */
  void *stream;
} Call;

static gchar *
data_of (GPtrArray *impls, guint i)
{
  return gtorch_impl_data (impls->pdata[i]);
}

static gsize
numel_of (GPtrArray *impls, guint i)
{
  return ((GTorchImpl *) impls->pdata[i])->numel;
}

static ncclResult_t
send (const Call *call, gconstpointer data, gsize n_bytes, gint peer)
{
  return n_bytes == 0 ? ncclSuccess
                      : gtorch_nccl.ncclSend (data, n_bytes, ncclUint8, peer, call->comm->comm,
                                              call->stream);
}

static ncclResult_t
receive (const Call *call, gpointer data, gsize n_bytes, gint peer)
{
  return n_bytes == 0 ? ncclSuccess
                      : gtorch_nccl.ncclRecv (data, n_bytes, ncclUint8, peer, call->comm->comm,
                                              call->stream);
}

/* Where the part of a rank begins in the only tensor, or the rank's tensor; its size in n_bytes. */
static gchar *
part_of (const Call *call, GPtrArray *impls, const gint64 *counts, gint rank, gsize *n_bytes)
{
  gsize start = 0;
  gint i;

  if ((gint) impls->len == call->size && call->size > 1)
    {
      *n_bytes = numel_of (impls, rank) * call->element;
      return data_of (impls, rank);
    }
  if (counts == NULL)
    {
      *n_bytes = numel_of (impls, 0) / call->size * call->element;
      return data_of (impls, 0) + rank * *n_bytes;
    }
  for (i = 0; i < rank; i++)
    start += counts[i];
  *n_bytes = counts[rank] * call->element;
  return data_of (impls, 0) + start * call->element;
}

/* What goes to every rank, and comes from every rank. */
static ncclResult_t
exchange (const Call *call, gboolean sends_parts, gboolean sends, gboolean receives)
{
  const GTorchCollective *self = call->collective;
  ncclResult_t result = ncclSuccess;
  gsize n_bytes;
  gchar *data;
  gint i;

  for (i = 0; result == ncclSuccess && i < call->size; i++)
    {
      if (sends && sends_parts)
        {
          data = part_of (call, self->inputs, self->in_counts, i, &n_bytes);
          result = send (call, data, n_bytes, i);
        }
      else if (sends)
        result =
            send (call, data_of (self->inputs, 0), numel_of (self->inputs, 0) * call->element, i);
      if (receives && result == ncclSuccess)
        {
          data = part_of (call, self->outputs, self->out_counts, i, &n_bytes);
          result = receive (call, data, n_bytes, i);
        }
    }
  return result;
}

/* One tensor to or from the root, which has the parts. */
static ncclResult_t
gather (const Call *call)
{
  const GTorchCollective *self = call->collective;
  const gsize n_bytes = numel_of (self->inputs, 0) * call->element;
  ncclResult_t result = send (call, data_of (self->inputs, 0), n_bytes, self->root);

  return result == ncclSuccess && call->rank == self->root ? exchange (call, FALSE, FALSE, TRUE)
                                                           : result;
}

static ncclResult_t
scatter (const Call *call)
{
  const GTorchCollective *self = call->collective;
  const gsize n_bytes = numel_of (self->outputs, 0) * call->element;
  ncclResult_t result = call->rank == self->root ? exchange (call, TRUE, TRUE, FALSE) : ncclSuccess;

  return result == ncclSuccess ? receive (call, data_of (self->outputs, 0), n_bytes, self->root)
                               : result;
}

/* A factor as a number of the type. */
typedef union
{
  float single;
  double wide;
  guint16 half;
} Factor;

static Factor
make_factor (guint dtype, gdouble value)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      return (Factor){ .wide = value };
    case GTORCH_DTYPE_FLOAT16:
      return (Factor){ .half = gt_half_from_float ((float) value) };
    case GTORCH_DTYPE_BFLOAT16:
      return (Factor){ .half = gt_bfloat16_from_float ((float) value) };
    default:
      return (Factor){ .single = (float) value };
    }
}

static ncclResult_t
reduce_by (const Call *call, Reduction how)
{
  const GTorchCollective *self = call->collective;
  gchar *to = data_of (self->outputs, 0);
  const gsize n = numel_of (self->outputs, 0) * how.per_element;
  const ncclComm_t comm = call->comm->comm;
  ncclResult_t result = ncclSuccess;
  gint i;

  if (n == 0)
    return ncclSuccess;
  if (self->kind == GTORCH_COLLECTIVE_ALL_REDUCE)
    return gtorch_nccl.ncclAllReduce (to, to, n, how.type, how.op, comm, call->stream);
  if (self->kind == GTORCH_COLLECTIVE_REDUCE)
    return gtorch_nccl.ncclReduce (to, to, n, how.type, how.op, self->root, comm, call->stream);
  if (self->inputs->len == 1)
    return gtorch_nccl.ncclReduceScatter (data_of (self->inputs, 0), to, n, how.type, how.op, comm,
                                          call->stream);
  for (i = 0; result == ncclSuccess && i < call->size; i++)
    result = gtorch_nccl.ncclReduce (data_of (self->inputs, i), i == call->rank ? to : NULL, n,
                                     how.type, how.op, i, comm, call->stream);
  return result;
}

/* An operation with a factor of its own may be given back as soon as it has been used. */
static ncclResult_t
reduce (const Call *call)
{
  const GTorchCollective *self = call->collective;
  Reduction how = find_reduction (self->dtype, self->op);
  Factor factor;
  ncclResult_t result, end;

  if (!self->is_scaled)
    return reduce_by (call, how);
  factor = make_factor (self->dtype, self->factor);
  result = gtorch_nccl.ncclRedOpCreatePreMulSum (&how.op, &factor, how.type,
                                                 ncclScalarHostImmediate, call->comm->comm);
  if (result != ncclSuccess)
    return result;
  result = reduce_by (call, how);
  end = gtorch_nccl.ncclRedOpDestroy (how.op, call->comm->comm);
  return result != ncclSuccess ? result : end;
}

static ncclResult_t
all_gather (const Call *call)
{
  const GTorchCollective *self = call->collective;
  const gsize n_bytes = numel_of (self->inputs, 0) * call->element;

  if (self->outputs->len > 1)
    return exchange (call, FALSE, TRUE, TRUE);
  return n_bytes == 0
             ? ncclSuccess
             : gtorch_nccl.ncclAllGather (data_of (self->inputs, 0), data_of (self->outputs, 0),
                                          n_bytes, ncclUint8, call->comm->comm, call->stream);
}

static ncclResult_t
broadcast (const Call *call)
{
  const GTorchCollective *self = call->collective;
  gchar *data = data_of (self->outputs, 0);
  const gsize n_bytes = numel_of (self->outputs, 0) * call->element;

  return n_bytes == 0 ? ncclSuccess
                      : gtorch_nccl.ncclBroadcast (data, data, n_bytes, ncclUint8, self->root,
                                                   call->comm->comm, call->stream);
}

static ncclResult_t
run (const Call *call, gint other)
{
  const GTorchCollective *self = call->collective;

  switch (self->kind)
    {
    case GTORCH_COLLECTIVE_BROADCAST:
      return broadcast (call);
    case GTORCH_COLLECTIVE_ALL_REDUCE:
    case GTORCH_COLLECTIVE_REDUCE:
    case GTORCH_COLLECTIVE_REDUCE_SCATTER:
      return reduce (call);
    case GTORCH_COLLECTIVE_ALL_GATHER:
      return all_gather (call);
    case GTORCH_COLLECTIVE_GATHER:
      return gather (call);
    case GTORCH_COLLECTIVE_SCATTER:
      return scatter (call);
    case GTORCH_COLLECTIVE_ALL_TO_ALL:
      return exchange (call, TRUE, TRUE, TRUE);
    case GTORCH_COLLECTIVE_SEND:
      return send (call, data_of (self->inputs, 0), numel_of (self->inputs, 0) * call->element,
                   other);
    case GTORCH_COLLECTIVE_RECEIVE:
      return receive (call, data_of (self->outputs, 0), numel_of (self->outputs, 0) * call->element,
                      other);
    default: /* a barrier: every rank contributes a number that none can have before */
      return gtorch_nccl.ncclAllReduce (gtorch_impl_data (call->comm->token),
                                        gtorch_impl_data (call->comm->token), 1, ncclFloat32,
                                        ncclSum, call->comm->comm, call->stream);
    }
}

gboolean
gtorch_nccl_issue (NcclOp *const *ops, guint n, GError **error)
{
  ncclResult_t result = gtorch_nccl.ncclGroupStart (), end;
  guint i;

  if (!gtorch_nccl_check (result, "ncclGroupStart", error))
    return FALSE;
  for (i = 0; result == ncclSuccess && i < n; i++)
    {
      const GTorchCollective *collective = ops[i]->collective;
      NcclComm *comm = ops[i]->comm;
      const Call call = { comm,
                          collective,
                          comm->rank,
                          comm->n,
                          gtorch_dtype_size (collective->dtype),
                          gtorch_stream_get_handle (comm->stream) };

      result = run (&call, ops[i]->peer);
    }
  /* the group is ended in any case: what follows would be part of it */
  end = gtorch_nccl.ncclGroupEnd ();
  return gtorch_nccl_check (result != ncclSuccess ? result : end, ops[0]->collective->name, error);
}
