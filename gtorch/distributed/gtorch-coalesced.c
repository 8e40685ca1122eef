/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of several tensors at a time. */

#include "config.h"

#include "distributed/gtorch-collectives.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "device/gtorch-device-private.h"
#include "distributed/gtorch-collective-private.h"

/* One behind the other: the last ends after all of them, with an error if one before it has failed. */
static GTorchWork *
begin_each (GTorchProcessGroup *group, GPtrArray *collectives, GError **error)
{
  g_autoptr (GTorchWork) work = NULL;
  guint i;

  for (i = 0; i < collectives->len; i++)
    {
      g_clear_object (&work);
      work = gtorch_collective_begin_part (group, g_steal_pointer (&collectives->pdata[i]), error);
      if (work == NULL)
        return NULL;
    }
  return g_steal_pointer (&work);
}

static gboolean
check_devices (const gchar *name, GPtrArray *collectives, GError **error)
{
  GTorchDevice *device = NULL;
  guint i;

  for (i = 0; i < collectives->len; i++)
    {
      const GTorchCollective *collective = collectives->pdata[i];
      GTorchDevice *own = gtorch_impl_device (collective->outputs->pdata[0]);

      if (device != NULL && device != own)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                       _ ("%s: the tensors are on %s and %s; they are on one device"), name,
                       gtorch_device_name (device), gtorch_device_name (own));
          return FALSE;
        }
      device = own;
    }
  return TRUE;
}

/* Several of one kind, in a batch if the engine has them. Looks at all before the first begins. */
static GTorchWork *
begin_all (GTorchProcessGroup *group, const gchar *name, GPtrArray *collectives, GError **error)
{
  GTorchEngine *engine = gtorch_process_group_get_engine (group, name, error);
  g_auto (GTorchNamedCollective) named = { { 0 } };
  g_autoptr (GTorchWork) work = NULL;
  GError *local = NULL;
  guint i;

  if (engine == NULL)
    return NULL;

  if (collectives->len == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are no tensors; it takes one or more"), name);
      return NULL;
    }
  if (!check_devices (name, collectives, error))
    return NULL;
  for (i = 0; i < collectives->len; i++)
    if (!gtorch_collective_check_overlap (collectives->pdata[i], error))
      return NULL;
  gtorch_collective_named_begin (&named, name, (GTorchCollective *const *) collectives->pdata,
                                 collectives->len);
  if (collectives->len == 1 || engine->klass->begin_batch == NULL || engine->in_batch)
    return begin_each (group, collectives, error);
  if (!engine->klass->begin_batch (engine, error))
    return NULL;
  work = begin_each (group, collectives, &local);
  if (work == NULL)
    {
      engine->klass->drop_batch (engine, local);
      g_propagate_error (error, local);
      return NULL;
    }
  return engine->klass->end_batch (engine, error) ? g_steal_pointer (&work) : NULL;
}

static void
free_collective (gpointer collective)
{
  if (collective != NULL)
    gtorch_collective_free (collective);
}

static gboolean
check_pairs (const gchar *name, gsize n_outputs, gsize n_inputs, GError **error)
{
  if (n_outputs == n_inputs)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: there are %zu outputs for %zu inputs"), name, n_outputs, n_inputs);
  return FALSE;
}

/**
 * gtorch_process_group_broadcast_coalesced:
 * @self: a group
 * @tensors: (array length=n_tensors): what is sent by @src, and overwritten elsewhere
 * @n_tensors: the number of @tensors, 1 or more
 * @src: the rank that sends
 * @error: return location for an error
 *
 * Copies several tensors, of any dtypes, from one rank to all others, as [method@ProcessGroup.broadcast]
 * does one. NCCL moves them together, without copies: many small tensors, such as those of a module, take
 * about as long as one of their size. Nothing begins if one cannot be sent.
 *
 * ```python
 * group.broadcast_coalesced([p.detach() for p in model.parameters()], 0).wait()
 * ```
 *
 * Returns: (transfer full): work that is over when all are, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_broadcast_coalesced (GTorchProcessGroup *self, GTorchTensor **tensors,
                                          gsize n_tensors, gint src, GError **error)
{
  const gchar *const name = "broadcast_coalesced";
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func (free_collective);
  gsize i;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && gtorch_are_tensors (tensors, n_tensors),
                        NULL);
  for (i = 0; i < n_tensors; i++)
    {
      GTorchCollective *collective = gtorch_collective_new (GTORCH_COLLECTIVE_BROADCAST, name);

      g_ptr_array_add (all, collective);
      if (!gtorch_collective_check_rank (self, collective, src, error)
          || !gtorch_collective_add_tensor (self, collective, collective->outputs, tensors[i],
                                            error))
        return NULL;
    }
  return begin_all (self, name, all, error);
}

/**
 * gtorch_process_group_all_reduce_coalesced:
 * @self: a group
 * @tensors: (array length=n_tensors): tensors of this rank, which become the results
 * @n_tensors: the number of @tensors, 1 or more
 * @op: how the numbers of the ranks become one
 * @error: return location for an error
 *
 * Reduces several tensors as [method@ProcessGroup.all_reduce] does one. Nothing begins if one cannot be
 * reduced.
 *
 * Returns: (transfer full): work that is over when all are, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_all_reduce_coalesced (GTorchProcessGroup *self, GTorchTensor **tensors,
                                           gsize n_tensors, GTorchReduceOp op, GError **error)
{
  const gchar *const name = "all_reduce_coalesced";
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func (free_collective);
  gsize i;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && gtorch_are_tensors (tensors, n_tensors),
                        NULL);
  for (i = 0; i < n_tensors; i++)
    {
      GTorchCollective *collective = gtorch_collective_new (GTORCH_COLLECTIVE_ALL_REDUCE, name);

      g_ptr_array_add (all, collective);
      if (!gtorch_collective_add_tensor (self, collective, collective->outputs, tensors[i], error)
          || !gtorch_collective_check_op (collective, op, error))
        return NULL;
    }
  return begin_all (self, name, all, error);
}

/**
 * gtorch_process_group_all_gather_coalesced:
 * @self: a group
 * @outputs: (array length=n_outputs): for each input a tensor with as many elements, times the number of
 *   ranks
 * @n_outputs: the number of @outputs
 * @inputs: (array length=n_inputs): tensors of this rank, 1 or more
 * @n_inputs: the number of @inputs
 * @error: return location for an error
 *
 * Gathers several tensors as [method@ProcessGroup.all_gather_into_tensor] does one. Nothing begins if one
 * cannot be gathered.
 *
 * Returns: (transfer full): work that is over when all are, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_all_gather_coalesced (GTorchProcessGroup *self, GTorchTensor **outputs,
                                           gsize n_outputs, GTorchTensor **inputs, gsize n_inputs,
                                           GError **error)
{
  const gchar *const name = "all_gather_coalesced";
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func (free_collective);
  gsize i;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  g_return_val_if_fail (gtorch_are_tensors (outputs, n_outputs)
                            && gtorch_are_tensors (inputs, n_inputs),
                        NULL);
  if (!check_pairs (name, n_outputs, n_inputs, error))
    return NULL;
  for (i = 0; i < n_inputs; i++)
    {
      GTorchCollective *collective =
          gtorch_collective_new_all_gather (self, name, &outputs[i], 1, FALSE, inputs[i], error);

      if (collective == NULL)
        return NULL;
      g_ptr_array_add (all, collective);
    }
  return begin_all (self, name, all, error);
}

/* Lists that only the root may have. */
/**
 * gtorch_process_group_reduce_scatter_coalesced:
 * @self: a group
 * @outputs: (array length=n_outputs): a result for this rank for each input
 * @n_outputs: the number of @outputs
 * @inputs: (array length=n_inputs): tensors with as many elements as their outputs have, times the number of
 *   ranks, 1 or more
 * @n_inputs: the number of @inputs
 * @op: how the numbers of the ranks become one
 * @error: return location for an error
 *
 * Reduces several tensors as [method@ProcessGroup.reduce_scatter_tensor] does one. Nothing begins if one
 * cannot be reduced.
 *
 * Returns: (transfer full): work that is over when all are, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchWork *
gtorch_process_group_reduce_scatter_coalesced (GTorchProcessGroup *self, GTorchTensor **outputs,
                                               gsize n_outputs, GTorchTensor **inputs,
                                               gsize n_inputs, GTorchReduceOp op, GError **error)
{
  const gchar *const name = "reduce_scatter_coalesced";
  g_autoptr (GPtrArray) all = g_ptr_array_new_with_free_func (free_collective);
  gsize i;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  g_return_val_if_fail (gtorch_are_tensors (outputs, n_outputs)
                            && gtorch_are_tensors (inputs, n_inputs),
                        NULL);
  if (!check_pairs (name, n_outputs, n_inputs, error))
    return NULL;
  for (i = 0; i < n_inputs; i++)
    {
      GTorchCollective *collective =
          gtorch_collective_new_reduce_scatter (self, name, outputs[i], &inputs[i], 1, FALSE, op,
                                                error);

      if (collective == NULL)
        return NULL;
      g_ptr_array_add (all, collective);
    }
  return begin_all (self, name, all, error);
}
