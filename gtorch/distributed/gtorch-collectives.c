/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The operations of a group: their arguments are checked here, once for all engines. */

#include "config.h"

#include "distributed/gtorch-collectives.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "device/gtorch-device-private.h"
#include "distributed/gtorch-collective-private.h"
#include "distributed/gtorch-group-calls-private.h"
#include "tensor/gtorch-hold-private.h"

#define ANY_RANK -1

GTorchCollective *
gtorch_collective_new (GTorchCollectiveKind kind, const gchar *name)
{
  GTorchCollective *self = g_new0 (GTorchCollective, 1);

  self->kind = kind;
  self->name = gtorch_group_call_name (name);
  self->dtype = GTORCH_DTYPE_UINT8;
  self->inputs = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  self->outputs = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  return self;
}

void
gtorch_collective_free (gpointer collective)
{
  GTorchCollective *self = collective;

  g_ptr_array_unref (self->inputs);
  g_ptr_array_unref (self->outputs);
  g_free (self->in_counts);
  g_free (self->out_counts);
  g_free (self);
}

gboolean
gtorch_are_tensors (GTorchTensor **tensors, gsize n)
{
  gsize i;

  if (tensors == NULL)
    return n == 0;
  for (i = 0; i < n; i++)
    if (!GTORCH_IS_TENSOR (tensors[i]))
      return FALSE;
  return TRUE;
}

/* What the other ranks get, or what one of them alone gets the result of. */
static gboolean
is_only_read (GTorchProcessGroup *group, const GTorchCollective *self)
{
  const gboolean is_root = self->root == gtorch_process_group_get_rank (group);

  return self->kind == GTORCH_COLLECTIVE_BROADCAST
             ? is_root
             : self->kind == GTORCH_COLLECTIVE_REDUCE && !is_root;
}

/* Takes a tensor among the inputs or outputs, if it can be. Another impl of the same memory: what happens
 * to the tensor afterwards, release included, does not touch what is under way. */
gboolean
gtorch_collective_add_tensor (GTorchProcessGroup *group, GTorchCollective *self, GPtrArray *impls,
                              GTorchTensor *tensor, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  const gboolean is_written = impls == self->outputs && !is_only_read (group, self);
  const GTorchDeviceType wanted = gtorch_process_group_get_device_type (group);
  const gboolean is_first = self->inputs->len + self->outputs->len == 0;
  GTORCH_HOLD (impl);

  if (gtorch_process_group_get_engine (group, self->name, error) == NULL)
    return FALSE;
  if (impl->storage == NULL || gtorch_impl_is_released (impl))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED, _ ("%s: a tensor has been released"),
                 self->name);
  else if (gtorch_device_get_device_type (impl->device) != wanted)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                 wanted == GTORCH_DEVICE_TYPE_CPU
                     ? _ ("%s: a tensor is on %s; the backend %s has tensors on the CPU")
                     : _ ("%s: a tensor is on %s; the backend %s has tensors on GPUs"),
                 self->name, gtorch_device_name (impl->device),
                 gtorch_process_group_get_backend (group));
  else if (!impl->is_contiguous)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: a tensor of shape %s is not contiguous: make it so before"), self->name,
                 gtorch_impl_shape_str (impl));
  else if (!is_first && impl->dtype != self->dtype)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("%s: the tensors are of %s and %s; they have one dtype"), self->name,
                 gtorch_dtype_infos[self->dtype].name, gtorch_dtype_infos[impl->dtype].name);
  else if (is_written && gtorch_storage_is_read_only (impl->storage))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the memory of the tensor of shape %s is read-only: clone it before"),
                 self->name, gtorch_impl_shape_str (impl));
  else
    {
      self->dtype = impl->dtype;
      g_ptr_array_add (impls, gtorch_impl_alias (impl));
      return TRUE;
    }
  return FALSE;
}

static gboolean
add_tensors (GTorchProcessGroup *group, GTorchCollective *self, GPtrArray *impls,
             GTorchTensor **tensors, gsize n, GError **error)
{
  const gint size = gtorch_process_group_get_size (group);
  gsize i;

  if (n != (gsize) size)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are %zu tensors for %d ranks; each has one"), self->name, n, size);
      return FALSE;
    }
  for (i = 0; i < n; i++)
    if (!gtorch_collective_add_tensor (group, self, impls, tensors[i], error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_collective_check_rank (GTorchProcessGroup *group, GTorchCollective *self, gint rank,
                              GError **error)
{
  const gint size = gtorch_process_group_get_size (group);

  self->root = rank;
  if (rank >= 0 && rank < size)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
               _ ("%s: rank %d is out of range for %d processes"), self->name, rank, size);
  return FALSE;
}

gboolean
gtorch_collective_check_op (GTorchCollective *self, GTorchReduceOp op, GError **error)
{
  const guint kind = gtorch_dtype_kind (self->dtype);
  const gboolean is_bitwise =
      op == GTORCH_REDUCE_OP_BAND || op == GTORCH_REDUCE_OP_BOR || op == GTORCH_REDUCE_OP_BXOR;
  g_autoptr (GEnumClass) klass = g_type_class_ref (GTORCH_TYPE_REDUCE_OP);
  const GEnumValue *value = g_enum_get_value (klass, op);

  self->op = op;
  if (value == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there is no reduction %d"),
                   self->name, op);
      return FALSE;
    }
  if ((is_bitwise && kind != GTORCH_KIND_INT && kind != GTORCH_KIND_BOOL)
      || (op == GTORCH_REDUCE_OP_AVG && kind != GTORCH_KIND_FLOAT && kind != GTORCH_KIND_COMPLEX)
      || ((op == GTORCH_REDUCE_OP_MIN || op == GTORCH_REDUCE_OP_MAX)
          && kind == GTORCH_KIND_COMPLEX))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: “%s” is not defined for %s"),
                   self->name, value->value_nick, gtorch_dtype_infos[self->dtype].name);
      return FALSE;
    }
  return TRUE;
}

/* The tensors of one side have together as many elements as so many of the other side's. */
static gboolean
check_total (GTorchCollective *self, GPtrArray *many, GPtrArray *one, gint size, GError **error)
{
  const gint64 each = ((GTorchImpl *) one->pdata[0])->numel;
  guint i;

  if (many->len == 1 && size > 1)
    {
      const gint64 all = ((GTorchImpl *) many->pdata[0])->numel;

      if (all != each * size)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: a tensor has %" PRId64 " elements; with %" PRId64
                          " for each of %d ranks they would be %" PRId64),
                       self->name, all, each, size, each * size);
          return FALSE;
        }
      return TRUE;
    }
  for (i = 0; i < many->len; i++)
    if (((GTorchImpl *) many->pdata[i])->numel != each)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("%s: the tensor of rank %u has the shape %s, and this rank's %s: they have "
                        "as many elements"),
                     self->name, i, gtorch_impl_shape_str (many->pdata[i]),
                     gtorch_impl_shape_str (one->pdata[0]));
        return FALSE;
      }
  return TRUE;
}

gboolean
gtorch_collective_check_overlap (GTorchCollective *self, GError **error)
{
  guint i, k;

  for (i = 0; i < self->outputs->len; i++)
    for (k = 0; k < self->inputs->len + i; k++)
      {
        GTorchImpl *other = k < self->inputs->len ? self->inputs->pdata[k]
                                                  : self->outputs->pdata[k - self->inputs->len];

        if (gtorch_impl_overlaps (self->outputs->pdata[i], other)
            || gtorch_impl_is_same_place (self->outputs->pdata[i], other))
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                         _ ("%s: the output of shape %s overlaps a tensor of shape %s in memory"),
                         self->name, gtorch_impl_shape_str (self->outputs->pdata[i]),
                         gtorch_impl_shape_str (other));
            return FALSE;
          }
      }
  return TRUE;
}

GTorchWork *
gtorch_collective_begin_part (GTorchProcessGroup *group, GTorchCollective *collective,
                              GError **error)
{
  g_autoptr (GTorchCollective) owned = collective;
  GTorchEngine *engine = gtorch_process_group_get_engine (group, collective->name, error);
  g_auto (GTorchNamedCollective) transfer = { { 0 } };
  g_autoptr (GTorchWork) work = NULL;

  if (engine == NULL || !gtorch_group_calls_check_collective (group, collective, error)
      || !gtorch_collective_check_overlap (collective, error))
    return NULL;
  work = gtorch_work_new (collective->name,
                          gtorch_process_group_next_sequence (
                              group, collective->kind == GTORCH_COLLECTIVE_SEND
                                         || collective->kind == GTORCH_COLLECTIVE_RECEIVE));
  gtorch_work_get_state (work)->rank = gtorch_process_group_get_rank (group);
  if (!gtorch_process_group_check_call (group, collective, gtorch_work_get_sequence (work), error))
    return NULL;
  if (!engine->klass->names_transfers && !engine->in_batch)
    gtorch_transfer_named_begin (&transfer, engine->klass, collective);
  if (!engine->klass->start (engine, group, g_steal_pointer (&owned), work, error))
    return NULL;
  return g_steal_pointer (&work);
}

GTorchWork *
gtorch_collective_begin (GTorchProcessGroup *group, GTorchCollective *collective, GError **error)
{
  g_auto (GTorchNamedCollective) named = { { 0 } };

  gtorch_collective_named_begin (&named, collective->name, &collective, 1);
  return gtorch_collective_begin_part (group, collective, error);
}

/* Takes the collective; NULL is one that could not be made. */
static GTorchWork *
begin_made (GTorchProcessGroup *group, GTorchCollective *collective, GError **error)
{
  return collective == NULL ? NULL : gtorch_collective_begin (group, collective, error);
}

GTorchWork *
gtorch_collective_begin_scaled (GTorchProcessGroup *group, GTorchCollectiveKind kind,
                                const gchar *name, GTorchTensor *output, GTorchTensor *input,
                                gint root, gdouble factor, GError **error)
{
  g_autoptr (GTorchCollective) self = gtorch_collective_new (kind, name);

  self->is_scaled = TRUE;
  self->factor = factor;
  if (!gtorch_collective_check_rank (group, self, root, error)
      || !gtorch_collective_add_tensor (group, self, self->outputs, output, error)
      || (input != NULL
          && (!gtorch_collective_add_tensor (group, self, self->inputs, input, error)
              || !check_total (self, self->inputs, self->outputs,
                               gtorch_process_group_get_size (group), error))))
    return NULL;
  return gtorch_collective_begin (group, g_steal_pointer (&self), error);
}

/**
 * gtorch_process_group_broadcast:
 * @self: a group
 * @tensor: what is sent by @src, and overwritten elsewhere
 * @src: the rank that sends
 * @error: return location for an error
 *
 * Copies a tensor from one rank to all others.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_broadcast (GTorchProcessGroup *self, GTorchTensor *tensor, gint src,
                                GError **error)
{
  g_autoptr (GTorchCollective) collective = NULL;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (tensor), NULL);
  collective = gtorch_collective_new (GTORCH_COLLECTIVE_BROADCAST, "broadcast");
  if (!gtorch_collective_check_rank (self, collective, src, error)
      || !gtorch_collective_add_tensor (self, collective, collective->outputs, tensor, error))
    return NULL;
  return gtorch_collective_begin (self, g_steal_pointer (&collective), error);
}

/**
 * gtorch_process_group_all_reduce:
 * @self: a group
 * @tensor: the numbers of this rank, which become the result
 * @op: how the numbers of the ranks become one
 * @error: return location for an error
 *
 * Reduces the tensors of all ranks, element by element, and gives the result to all of them.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_all_reduce (GTorchProcessGroup *self, GTorchTensor *tensor, GTorchReduceOp op,
                                 GError **error)
{
  g_autoptr (GTorchCollective) collective = NULL;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (tensor), NULL);
  collective = gtorch_collective_new (GTORCH_COLLECTIVE_ALL_REDUCE, "all_reduce");
  if (!gtorch_collective_add_tensor (self, collective, collective->outputs, tensor, error)
      || !gtorch_collective_check_op (collective, op, error))
    return NULL;
  return gtorch_collective_begin (self, g_steal_pointer (&collective), error);
}

/**
 * gtorch_process_group_reduce:
 * @self: a group
 * @tensor: the numbers of this rank, which become the result at @dst; elsewhere they stay
 * @dst: the rank that gets the result
 * @op: how the numbers of the ranks become one
 * @error: return location for an error
 *
 * Reduces the tensors of all ranks, element by element, and gives the result to one of them.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_reduce (GTorchProcessGroup *self, GTorchTensor *tensor, gint dst,
                             GTorchReduceOp op, GError **error)
{
  g_autoptr (GTorchCollective) collective = NULL;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (tensor), NULL);
  collective = gtorch_collective_new (GTORCH_COLLECTIVE_REDUCE, "reduce");
  if (!gtorch_collective_check_rank (self, collective, dst, error)
      || !gtorch_collective_add_tensor (self, collective, collective->outputs, tensor, error)
      || !gtorch_collective_check_op (collective, op, error))
    return NULL;
  return gtorch_collective_begin (self, g_steal_pointer (&collective), error);
}

GTorchCollective *
gtorch_collective_new_all_gather (GTorchProcessGroup *self, const gchar *name,
                                  GTorchTensor **outputs, gsize n_outputs, gboolean is_list,
                                  GTorchTensor *input, GError **error)
{
  g_autoptr (GTorchCollective) collective =
      gtorch_collective_new (GTORCH_COLLECTIVE_ALL_GATHER, name);

  if (!gtorch_collective_add_tensor (self, collective, collective->inputs, input, error)
      || !(is_list ? add_tensors (self, collective, collective->outputs, outputs, n_outputs, error)
                   : gtorch_collective_add_tensor (self, collective, collective->outputs, *outputs,
                                                   error))
      || !check_total (collective, collective->outputs, collective->inputs,
                       gtorch_process_group_get_size (self), error))
    return NULL;
  return g_steal_pointer (&collective);
}

/**
 * gtorch_process_group_all_gather:
 * @self: a group
 * @outputs: (array length=n_outputs): one tensor for each rank, with as many elements as @input
 * @n_outputs: the number of @outputs
 * @input: the tensor of this rank
 * @error: return location for an error
 *
 * Gives the tensors of all ranks to all of them.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_all_gather (GTorchProcessGroup *self, GTorchTensor **outputs, gsize n_outputs,
                                 GTorchTensor *input, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (input), NULL);
  g_return_val_if_fail (gtorch_are_tensors (outputs, n_outputs), NULL);
  return begin_made (self,
                     gtorch_collective_new_all_gather (self, "all_gather", outputs, n_outputs, TRUE,
                                                       input, error),
                     error);
}

/**
 * gtorch_process_group_all_gather_into_tensor:
 * @self: a group
 * @output: a tensor with as many elements as @input has, times the number of ranks
 * @input: the tensor of this rank
 * @error: return location for an error
 *
 * Gives the tensors of all ranks, one behind the other, to all of them.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_all_gather_into_tensor (GTorchProcessGroup *self, GTorchTensor *output,
                                             GTorchTensor *input, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (output)
                            && GTORCH_IS_TENSOR (input),
                        NULL);
  return begin_made (self,
                     gtorch_collective_new_all_gather (self, "all_gather_into_tensor", &output, 1,
                                                       FALSE, input, error),
                     error);
}

static gboolean
check_list (GTorchProcessGroup *group, GTorchCollective *self, gsize n, GError **error)
{
  const gboolean is_root = gtorch_process_group_get_rank (group) == self->root;

  if (is_root || n == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: rank %d has a list of %zu tensors; rank %d alone has one"), self->name,
               gtorch_process_group_get_rank (group), n, self->root);
  return FALSE;
}

/**
 * gtorch_process_group_gather:
 * @self: a group
 * @outputs: (array length=n_outputs) (nullable): at @dst one tensor for each rank, with as many elements as
 *   @input; elsewhere none
 * @n_outputs: the number of @outputs
 * @input: the tensor of this rank
 * @dst: the rank that gets them
 * @error: return location for an error
 *
 * Gives the tensors of all ranks to one of them.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_gather (GTorchProcessGroup *self, GTorchTensor **outputs, gsize n_outputs,
                             GTorchTensor *input, gint dst, GError **error)
{
  g_autoptr (GTorchCollective) collective = NULL;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (input), NULL);
  g_return_val_if_fail (gtorch_are_tensors (outputs, n_outputs), NULL);
  collective = gtorch_collective_new (GTORCH_COLLECTIVE_GATHER, "gather");
  if (!gtorch_collective_check_rank (self, collective, dst, error)
      || !gtorch_collective_add_tensor (self, collective, collective->inputs, input, error)
      || !check_list (self, collective, n_outputs, error)
      || (gtorch_process_group_get_rank (self) == dst
          && (!add_tensors (self, collective, collective->outputs, outputs, n_outputs, error)
              || !check_total (collective, collective->outputs, collective->inputs, 1, error))))
    return NULL;
  return gtorch_collective_begin (self, g_steal_pointer (&collective), error);
}

/**
 * gtorch_process_group_scatter:
 * @self: a group
 * @output: the tensor of this rank
 * @inputs: (array length=n_inputs) (nullable): at @src one tensor for each rank, with as many elements as
 *   @output; elsewhere none
 * @n_inputs: the number of @inputs
 * @src: the rank that has them
 * @error: return location for an error
 *
 * Gives each rank one of the tensors of a rank.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_scatter (GTorchProcessGroup *self, GTorchTensor *output, GTorchTensor **inputs,
                              gsize n_inputs, gint src, GError **error)
{
  g_autoptr (GTorchCollective) collective = NULL;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (output), NULL);
  g_return_val_if_fail (gtorch_are_tensors (inputs, n_inputs), NULL);
  collective = gtorch_collective_new (GTORCH_COLLECTIVE_SCATTER, "scatter");
  if (!gtorch_collective_check_rank (self, collective, src, error)
      || !gtorch_collective_add_tensor (self, collective, collective->outputs, output, error)
      || !check_list (self, collective, n_inputs, error)
      || (gtorch_process_group_get_rank (self) == src
          && (!add_tensors (self, collective, collective->inputs, inputs, n_inputs, error)
              || !check_total (collective, collective->inputs, collective->outputs, 1, error))))
    return NULL;
  return gtorch_collective_begin (self, g_steal_pointer (&collective), error);
}

GTorchCollective *
gtorch_collective_new_reduce_scatter (GTorchProcessGroup *self, const gchar *name,
                                      GTorchTensor *output, GTorchTensor **inputs, gsize n_inputs,
                                      gboolean is_list, GTorchReduceOp op, GError **error)
{
  g_autoptr (GTorchCollective) collective =
      gtorch_collective_new (GTORCH_COLLECTIVE_REDUCE_SCATTER, name);

  if (!gtorch_collective_add_tensor (self, collective, collective->outputs, output, error)
      || !(is_list ? add_tensors (self, collective, collective->inputs, inputs, n_inputs, error)
                   : gtorch_collective_add_tensor (self, collective, collective->inputs, *inputs,
                                                   error))
      || !gtorch_collective_check_op (collective, op, error)
      || !check_total (collective, collective->inputs, collective->outputs,
                       gtorch_process_group_get_size (self), error))
    return NULL;
  return g_steal_pointer (&collective);
}

/**
 * gtorch_process_group_reduce_scatter:
 * @self: a group
 * @output: the result for this rank
 * @inputs: (array length=n_inputs): one tensor for each rank, with as many elements as @output
 * @n_inputs: the number of @inputs
 * @op: how the numbers of the ranks become one
 * @error: return location for an error
 *
 * Reduces what all ranks have for each rank, and gives each its part.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_reduce_scatter (GTorchProcessGroup *self, GTorchTensor *output,
                                     GTorchTensor **inputs, gsize n_inputs, GTorchReduceOp op,
                                     GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (output), NULL);
  g_return_val_if_fail (gtorch_are_tensors (inputs, n_inputs), NULL);
  return begin_made (self,
                     gtorch_collective_new_reduce_scatter (self, "reduce_scatter", output, inputs,
                                                           n_inputs, TRUE, op, error),
                     error);
}

/**
 * gtorch_process_group_reduce_scatter_tensor:
 * @self: a group
 * @output: the result for this rank
 * @input: a tensor with as many elements as @output has, times the number of ranks
 * @op: how the numbers of the ranks become one
 * @error: return location for an error
 *
 * Reduces the tensors of all ranks, and gives each rank its part of the result.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_reduce_scatter_tensor (GTorchProcessGroup *self, GTorchTensor *output,
                                            GTorchTensor *input, GTorchReduceOp op, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (output)
                            && GTORCH_IS_TENSOR (input),
                        NULL);
  return begin_made (self,
                     gtorch_collective_new_reduce_scatter (self, "reduce_scatter_tensor", output,
                                                           &input, 1, FALSE, op, error),
                     error);
}

/**
 * gtorch_process_group_all_to_all:
 * @self: a group
 * @outputs: (array length=n_outputs): a tensor for what each rank sends
 * @n_outputs: the number of @outputs
 * @inputs: (array length=n_inputs): a tensor for each rank
 * @n_inputs: the number of @inputs
 * @error: return location for an error
 *
 * Sends each rank a tensor, and gets one from each. They may have different sizes; what is sent has as
 * many elements as the tensor that gets it.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_all_to_all (GTorchProcessGroup *self, GTorchTensor **outputs, gsize n_outputs,
                                 GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  g_autoptr (GTorchCollective) collective = NULL;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  g_return_val_if_fail (gtorch_are_tensors (outputs, n_outputs)
                            && gtorch_are_tensors (inputs, n_inputs),
                        NULL);
  collective = gtorch_collective_new (GTORCH_COLLECTIVE_ALL_TO_ALL, "all_to_all");
  if (!add_tensors (self, collective, collective->inputs, inputs, n_inputs, error)
      || !add_tensors (self, collective, collective->outputs, outputs, n_outputs, error))
    return NULL;
  collective->in_counts = g_new (gint64, n_inputs);
  collective->out_counts = g_new (gint64, n_outputs);
  for (i = 0; i < n_inputs; i++)
    {
      collective->in_counts[i] = ((GTorchImpl *) collective->inputs->pdata[i])->numel;
      collective->out_counts[i] = ((GTorchImpl *) collective->outputs->pdata[i])->numel;
    }
  return gtorch_collective_begin (self, g_steal_pointer (&collective), error);
}

/* Elements of each rank from lengths along the first dimension; none for equal ones. */
static gboolean
split (GTorchProcessGroup *group, GTorchCollective *self, GTorchImpl *impl, const gint64 *splits,
       gsize n, gint64 **counts, GError **error)
{
  const gint size = gtorch_process_group_get_size (group);
  const gint64 length = impl->n_dims > 0 ? impl->shape[0] : 1;
  const gint64 row = length > 0 ? impl->numel / length : 0;
  gint64 total = 0;
  gint i;

  if (impl->n_dims == 0 || (n == 0 ? length % size != 0 : n != (gsize) size))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: a tensor of shape %s with %zu splits cannot be split along its first "
                      "dimension for %d ranks"),
                   self->name, gtorch_impl_shape_str (impl), n, size);
      return FALSE;
    }
  *counts = g_new (gint64, size);
  for (i = 0; i < size; i++)
    {
      const gint64 part = n == 0 ? length / size : splits[i];

      if (part < 0 || part > length - total)
        {
          total = -1;
          break;
        }
      total += part;
      (*counts)[i] = part * row;
    }
  if (total == length)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the splits of a tensor of shape %s must be 0 or more, and sum to "
                  "%" PRId64),
               self->name, gtorch_impl_shape_str (impl), length);
  return FALSE;
}

/**
 * gtorch_process_group_all_to_all_single:
 * @self: a group
 * @output: what the ranks send, one behind the other
 * @input: what is sent to the ranks, one behind the other
 * @output_splits: (array length=n_output_splits) (nullable): lengths along the first dimension of @output
 *   for each rank; %NULL for equal ones
 * @n_output_splits: the number of @output_splits
 * @input_splits: (array length=n_input_splits) (nullable): the same for @input
 * @n_input_splits: the number of @input_splits
 * @error: return location for an error
 *
 * Sends each rank a part of a tensor, and gets one from each.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_all_to_all_single (GTorchProcessGroup *self, GTorchTensor *output,
                                        GTorchTensor *input, const gint64 *output_splits,
                                        gsize n_output_splits, const gint64 *input_splits,
                                        gsize n_input_splits, GError **error)
{
  g_autoptr (GTorchCollective) collective = NULL;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (output)
                            && GTORCH_IS_TENSOR (input),
                        NULL);
  collective = gtorch_collective_new (GTORCH_COLLECTIVE_ALL_TO_ALL, "all_to_all_single");
  if (gtorch_process_group_get_engine (self, collective->name, error) == NULL
      || !gtorch_collective_add_tensor (self, collective, collective->inputs, input, error)
      || !gtorch_collective_add_tensor (self, collective, collective->outputs, output, error)
      || !split (self, collective, collective->inputs->pdata[0], input_splits, n_input_splits,
                 &collective->in_counts, error)
      || !split (self, collective, collective->outputs->pdata[0], output_splits, n_output_splits,
                 &collective->out_counts, error))
    return NULL;
  return gtorch_collective_begin (self, g_steal_pointer (&collective), error);
}

static GTorchWork *
send_or_receive (GTorchProcessGroup *self, GTorchCollectiveKind kind, const gchar *name,
                 GTorchTensor *tensor, gint other, gboolean is_any, gint tag, GError **error)
{
  g_autoptr (GTorchCollective) collective = gtorch_collective_new (kind, name);

  collective->tag = tag;
  collective->root = ANY_RANK;
  if (tag < 0 || tag > 32767)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the tag is %d; tags are from 0 to 32767"), name, tag);
      return NULL;
    }
  if ((!is_any && !gtorch_collective_check_rank (self, collective, other, error))
      || !gtorch_collective_add_tensor (self, collective,
                                        kind == GTORCH_COLLECTIVE_SEND ? collective->inputs
                                                                       : collective->outputs,
                                        tensor, error))
    return NULL;
  if (!is_any && other == gtorch_process_group_get_rank (self))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: rank %d is this process itself"), name, other);
      return NULL;
    }
  return gtorch_collective_begin (self, g_steal_pointer (&collective), error);
}

/**
 * gtorch_process_group_send:
 * @self: a group
 * @tensor: a tensor
 * @dst: the rank that gets it
 * @tag: a number that the receiver names too, from 0 to 32767
 * @error: return location for an error
 *
 * Sends a tensor to a rank.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_send (GTorchProcessGroup *self, GTorchTensor *tensor, gint dst, gint tag,
                           GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (tensor), NULL);
  return send_or_receive (self, GTORCH_COLLECTIVE_SEND, "send", tensor, dst, FALSE, tag, error);
}

/**
 * gtorch_process_group_recv:
 * @self: a group
 * @tensor: a tensor with as many elements as what is sent, and of its dtype, which is overwritten
 * @src: the rank that sends
 * @tag: a number that the sender names too, from 0 to 32767
 * @error: return location for an error
 *
 * Receives a tensor from a rank. If another number of bytes comes, the work ends with an error that says
 * how many.
 *
 * With mpi, messages of other ranks or tags do not wait for this one, unless more than 64 wait at a time,
 * which then share threads. One that does not come fails the group after its timeout.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_recv (GTorchProcessGroup *self, GTorchTensor *tensor, gint src, gint tag,
                           GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (tensor), NULL);
  return send_or_receive (self, GTORCH_COLLECTIVE_RECEIVE, "recv", tensor, src, FALSE, tag, error);
}

/**
 * gtorch_process_group_recv_any:
 * @self: a group
 * @tensor: a tensor with as many elements as what is sent, and of its dtype, which is overwritten
 * @tag: a number that the sender names too, from 0 to 32767
 * @error: return location for an error
 *
 * Receives a tensor from the rank whose message comes first. [property@Work:source-rank] of the result tells
 * afterwards which that was.
 *
 * Returns: (transfer full): the work, or %NULL with @error set: %GTORCH_ERROR_NOT_SUPPORTED if the backend
 *   wants to know who sends
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_recv_any (GTorchProcessGroup *self, GTorchTensor *tensor, gint tag,
                               GError **error)
{
  GTorchEngine *engine;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && GTORCH_IS_TENSOR (tensor), NULL);
  engine = gtorch_process_group_get_engine (self, "recv_any", error);
  if (engine == NULL)
    return NULL;
  if (!engine->klass->has_any_source)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: the backend %s receives only from a rank that is named"), "recv_any",
                   engine->klass->name);
      return NULL;
    }
  return send_or_receive (self, GTORCH_COLLECTIVE_RECEIVE, "recv_any", tensor, 0, TRUE, tag, error);
}

/**
 * gtorch_process_group_barrier:
 * @self: a group
 * @error: return location for an error
 *
 * Begins an operation that ends when all ranks have begun it.
 *
 * Returns: (transfer full): the work, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_barrier (GTorchProcessGroup *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  return gtorch_collective_begin (self,
                                  gtorch_collective_new (GTORCH_COLLECTIVE_BARRIER, "barrier"),
                                  error);
}
