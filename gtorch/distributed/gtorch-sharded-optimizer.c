/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* States of optimizers that are spread over processes: stage 1 of Rajbhandari et al., ZeRO: Memory
 * Optimizations Toward Training Trillion Parameter Models, SC 2020. */

#include "config.h"

#include "distributed/gtorch-sharded-optimizer.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "device/gtorch-device.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-compare-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-tensor-ops.h"
#include "io/gtorch-safetensors.h"
#include "nn/gtorch-module-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchShardedOptimizer:
 *
 * Spreads the work and the states of an optimizer over the processes of a group.
 *
 * All processes have the same parameters and, after the backward pass of a [class@DistributedModule], the
 * same gradients. Each rank updates some of the parameters, for which it alone keeps states such as the
 * moments of Adam, and sends them to the others: the memory for states is divided by the number of ranks,
 * and results are those of the optimizer alone, bit for bit.
 *
 * ```c
 * g_autoptr (GTorchOptimizer) adam = …;
 * g_autoptr (GTorchShardedOptimizer) shard = gtorch_sharded_optimizer_new (adam, group, &error);
 *
 * gtorch_optimizer_step (adam, &error);
 * ```
 *
 * The optimizer is used as before: its steps, schedules, scalers and groups stay what they are. All ranks
 * make the same calls. The optimizer's own state dict has the states of this rank;
 * [method@ShardedOptimizer.consolidate] collects those of all in one rank, and any number of ranks loads it
 * by [method@Optimizer.load_state_dict], each what it needs. Where a step fails on one rank, the others
 * wait until the timeout of the group.
 *
 * Since: 0.1
 */

struct _GTorchShardedOptimizer
{
  GObject parent_instance;
  GWeakRef optimizer; /* which has a reference to this */
  GTorchProcessGroup *group;
  GHashTable *owners; /* GTorchTensor -> rank */
  gint64 *sizes;      /* elements of each rank */
  GHashTable *state;  /* of all ranks, or NULL */
};

G_DEFINE_TYPE (GTorchShardedOptimizer, gtorch_sharded_optimizer, G_TYPE_OBJECT)

typedef GTorchShardedOptimizer Self;

static const GTorchField fields[] = {
  /**
   * GTorchShardedOptimizer:optimizer:
   *
   * The optimizer.
   *
   * Since: 0.1
   */
  { "optimizer",
    GTORCH_PROPERTY_OBJECT (GTorchOptimizer, gtorch_optimizer_get_type,
                            gtorch_sharded_optimizer_get_optimizer, NULL),
    .is_full = TRUE },
  /**
   * GTorchShardedOptimizer:group:
   *
   * The processes that share it.
   *
   * Since: 0.1
   */
  { "group", GTORCH_PROPERTY_OBJECT (GTorchProcessGroup, gtorch_process_group_get_type,
                                     gtorch_sharded_optimizer_get_group, NULL) },
};

static void
gtorch_sharded_optimizer_finalize (GObject *object)
{
  GTorchShardedOptimizer *self = GTORCH_SHARDED_OPTIMIZER (object);

  g_weak_ref_clear (&self->optimizer);
  g_clear_object (&self->group);
  g_hash_table_unref (self->owners);
  g_clear_pointer (&self->state, g_hash_table_unref);
  g_free (self->sizes);
  G_OBJECT_CLASS (gtorch_sharded_optimizer_parent_class)->finalize (object);
}

static void
gtorch_sharded_optimizer_class_init (GTorchShardedOptimizerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_sharded_optimizer_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_sharded_optimizer_init (GTorchShardedOptimizer *self)
{
  g_weak_ref_init (&self->optimizer, NULL);
  self->owners = g_hash_table_new (NULL, NULL); /* the optimizer has references */
}

/* --- who has what --- */

static gint
compare_sizes (gconstpointer a, gconstpointer b)
{
  const gint64 n = gtorch_tensor_get_numel (*(GTorchTensor *const *) a);
  const gint64 m = gtorch_tensor_get_numel (*(GTorchTensor *const *) b);

  return n > m ? -1 : n < m;
}

static gint
smallest (const GTorchShardedOptimizer *self)
{
  const gint size = gtorch_process_group_get_size (self->group);
  gint found = 0, i;

  for (i = 1; i < size; i++)
    if (self->sizes[i] < self->sizes[found])
      found = i;
  return found;
}

/* The largest parameters of a group first, each to the rank that has least: the same on all ranks. What has
 * been given stays. */
static void
distribute (GTorchShardedOptimizer *self, GTorchOptimizer *optimizer)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (optimizer);
  guint i, k;

  for (i = 0; i < g_list_model_get_n_items (groups); i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      GListModel *params = gtorch_param_group_get_params (group);
      g_autoptr (GPtrArray) fresh = g_ptr_array_new_with_free_func (g_object_unref);

      for (k = 0; k < g_list_model_get_n_items (params); k++)
        {
          g_autoptr (GTorchTensor) param = g_list_model_get_item (params, k);

          if (!g_hash_table_contains (self->owners, param))
            g_ptr_array_add (fresh, g_steal_pointer (&param));
        }
      g_ptr_array_sort (fresh, compare_sizes); /* stable */
      for (k = 0; k < fresh->len; k++)
        {
          const gint owner = smallest (self);

          g_hash_table_insert (self->owners, fresh->pdata[k], GINT_TO_POINTER (owner));
          self->sizes[owner] += gtorch_tensor_get_numel (fresh->pdata[k]);
        }
    }
}

static gint
find_owner (GTorchShardedOptimizer *self, GTorchOptimizer *optimizer, GTorchTensor *param)
{
  gpointer owner;

  if (!g_hash_table_contains (self->owners, param))
    distribute (self, optimizer);
  return g_hash_table_lookup_extended (self->owners, param, NULL, &owner) ? GPOINTER_TO_INT (owner)
                                                                          : -1;
}

static gboolean
share_owns (gpointer data, GTorchOptimizer *optimizer, GTorchTensor *param)
{
  GTorchShardedOptimizer *self = data;

  return find_owner (self, optimizer, param) == gtorch_process_group_get_rank (self->group);
}

static gboolean
share_end (gpointer data, GTorchOptimizer *optimizer, GError **error)
{
  GTORCH_GROUP_CALL ("sharded_optimizer");
  GTorchShardedOptimizer *self = data;
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (optimizer);
  const gint size = gtorch_process_group_get_size (self->group);
  gint owner;
  guint i;

  g_clear_pointer (&self->state, g_hash_table_unref); /* it is that of the last step */
  for (owner = 0; owner < size; owner++)
    {
      g_autoptr (GPtrArray) own = g_ptr_array_new ();

      for (i = 0; i < params->len; i++)
        if (find_owner (self, optimizer, params->pdata[i]) == owner
            && gtorch_tensor_get_numel (params->pdata[i]) > 0)
          g_ptr_array_add (own, params->pdata[i]);
      if (!gtorch_group_send_tensors (self->group, own, owner, error))
        return FALSE;
    }
  return TRUE;
}

static const GTorchOptimizerShare share = { share_owns, share_end };

/* States of parameters that others have now. */
static void
drop_states (GTorchOptimizer *optimizer)
{
  g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (optimizer);
  guint i, k;

  for (i = 0; i < params->len; i++)
    {
      g_auto (GStrv) names = gtorch_optimizer_get_state_names (optimizer, params->pdata[i]);

      for (k = 0; names[k] != NULL && !gtorch_optimizer_owns (optimizer, params->pdata[i]); k++)
        gtorch_optimizer_set_state (optimizer, params->pdata[i], names[k], NULL);
    }
}

/* What decides about a step, by PyTorch's names. */
static void
add_settings (GTorchGroupFacts *facts, GTorchOptimizer *optimizer)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (optimizer);
  guint i, k;
  gsize n, j;

  for (i = 0; i < g_list_model_get_n_items (groups); i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      g_auto (GStrv) names = gtorch_param_group_get_setting_names (group);

      for (k = 0; names[k] != NULL; k++)
        {
          g_autofree gdouble *values = gtorch_param_group_get_setting (group, names[k], &n, NULL);
          g_autofree gchar *name = g_strdup_printf ("param_groups[%u].%s", i, names[k]);

          for (j = 0; values != NULL && j < n; j++)
            gtorch_group_facts_add_number (facts, name, values[j]);
        }
    }
}

/* All ranks share the same steps. */
static gboolean
compare (GTorchOptimizer *optimizer, GTorchProcessGroup *group, GError **error)
{
  g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (optimizer);
  g_auto (GTorchGroupFacts) facts;
  guint i;

  gtorch_group_facts_init (&facts);
  for (i = 0; i < params->len && facts.failure == NULL; i++)
    gtorch_part_check_group ("sharded_optimizer", params->pdata[i], group, &facts.failure);
  gtorch_group_facts_add (&facts, "the optimizer", "%s", G_OBJECT_TYPE_NAME (optimizer));
  add_settings (&facts, optimizer);
  gtorch_group_facts_add_tensors (&facts, NULL, (GTorchTensor **) params->pdata, params->len);
  return gtorch_group_facts_compare (&facts, group, "sharded_optimizer", error);
}

/**
 * gtorch_sharded_optimizer_new:
 * @optimizer: an optimizer, whose parameters and settings are the same on all ranks
 * @group: the processes that share its work
 * @error: return location for an error
 *
 * Lets the steps of an optimizer be shared by the processes of a group, as long as it lives: it has a
 * reference to the new object. States of parameters that other ranks update are dropped.
 *
 * The largest parameters of a group are given first, each to the rank that has the fewest elements; so are
 * those that are added later.
 *
 * Returns: (transfer full): a new object, or %NULL with @error set: %GTORCH_ERROR_NOT_SUPPORTED if the
 *   steps of
 *   @optimizer need a closure, %GTORCH_ERROR_INVALID if they are shared already,
 *   or a parameter is a part of which other ranks of @group have others, %GTORCH_ERROR_SHAPE if the
 *   optimizers of the ranks differ in class, settings or parameters
 *
 * Since: 0.1
 */
GTorchShardedOptimizer *
gtorch_sharded_optimizer_new (GTorchOptimizer *optimizer, GTorchProcessGroup *group, GError **error)
{
  g_autoptr (GTorchShardedOptimizer) self = NULL;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer) && GTORCH_IS_PROCESS_GROUP (group), NULL);
  if (GTORCH_OPTIMIZER_GET_CLASS (optimizer)->step_closure != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("sharded_optimizer: steps of %s need a closure and all gradients: they "
                      "cannot be "
                      "shared"),
                   G_OBJECT_TYPE_NAME (optimizer));
      return NULL;
    }
  if (gtorch_process_group_get_rank (group) < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("sharded_optimizer: this process has no rank in the group"));
      return NULL;
    }
  if (!compare (optimizer, group, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_SHARDED_OPTIMIZER, NULL);
  self->group = g_object_ref (group);
  self->sizes = g_new0 (gint64, gtorch_process_group_get_size (group));
  if (!gtorch_optimizer_set_share (optimizer, &share, self, g_object_unref))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("sharded_optimizer: steps of this %s are shared already"),
                   G_OBJECT_TYPE_NAME (optimizer));
      return NULL;
    }
  g_object_ref (self); /* of the optimizer */
  g_weak_ref_set (&self->optimizer, optimizer);
  drop_states (optimizer);
  return g_steal_pointer (&self);
}

/**
 * gtorch_sharded_optimizer_get_optimizer:
 * @self: a sharded optimizer
 *
 * Gets the optimizer.
 *
 * Returns: (transfer full) (nullable): the optimizer, or %NULL if it is gone
 *
 * Since: 0.1
 */
GTorchOptimizer *
gtorch_sharded_optimizer_get_optimizer (GTorchShardedOptimizer *self)
{
  g_return_val_if_fail (GTORCH_IS_SHARDED_OPTIMIZER (self), NULL);
  return g_weak_ref_get (&self->optimizer);
}

/**
 * gtorch_sharded_optimizer_get_group:
 * @self: a sharded optimizer
 *
 * Gets the processes that share the work.
 *
 * Returns: (transfer none) (nullable): the group
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_sharded_optimizer_get_group (GTorchShardedOptimizer *self)
{
  g_return_val_if_fail (GTORCH_IS_SHARDED_OPTIMIZER (self), NULL);
  return self->group;
}

/**
 * gtorch_sharded_optimizer_get_owner:
 * @self: a sharded optimizer
 * @param: a tensor
 *
 * Gets the rank that updates a parameter.
 *
 * Returns: the rank, or -1 if @param is not one of the optimizer
 *
 * Since: 0.1
 */
gint
gtorch_sharded_optimizer_get_owner (GTorchShardedOptimizer *self, GTorchTensor *param)
{
  g_autoptr (GTorchOptimizer) optimizer = NULL;

  g_return_val_if_fail (GTORCH_IS_SHARDED_OPTIMIZER (self) && GTORCH_IS_TENSOR (param), -1);
  optimizer = g_weak_ref_get (&self->optimizer);
  return optimizer == NULL ? -1 : find_owner (self, optimizer, param);
}

/* --- the state of all --- */

/* Where tensors must be to be sent: where the parameters are. */
static GTorchDevice *
find_device (GTorchOptimizer *optimizer)
{
  g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (optimizer);

  return params->len == 0 ? gtorch_device_cpu () : gtorch_tensor_get_device (params->pdata[0]);
}

static gboolean
wait_for (GTorchWork *work, GError **error)
{
  g_autoptr (GTorchWork) owned = work;

  return owned != NULL && gtorch_work_wait (owned, -1, NULL, error);
}

/* As a safetensors file in memory, which keeps names and dtypes. */
static gboolean
send_state (GTorchShardedOptimizer *self, GTorchOptimizer *optimizer, gint to, GError **error)
{
  GTORCH_GROUP_CALL ("sharded_optimizer");
  GTorchDevice *device = find_device (optimizer);
  g_autoptr (GHashTable) state = gtorch_optimizer_state_dict (optimizer);
  g_autoptr (GOutputStream) stream = g_memory_output_stream_new_resizable ();
  g_autoptr (GTorchTensor) length = NULL, near = NULL, data = NULL;
  g_autoptr (GBytes) bytes = NULL;
  gint64 n, one = 1;

  if (!gtorch_safetensors_save (state, NULL, stream, NULL, NULL, NULL, error)
      || !g_output_stream_close (stream, NULL, error))
    return FALSE;
  bytes = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (stream));
  n = g_bytes_get_size (bytes);
  length = gtorch_tensor_new_from_ints (&n, 1, &one, 1, GTORCH_DTYPE_INT64, device, error);
  near = length == NULL ? NULL
                        : gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_UINT8, &n, 1, error);
  data =
      near == NULL ? NULL : gtorch_tensor_to (near, GTORCH_DTYPE_UINT8, device, FALSE, TRUE, error);
  return data != NULL
         && wait_for (gtorch_process_group_send (self->group, length, to, 0, error), error)
         && wait_for (gtorch_process_group_send (self->group, data, to, 0, error), error);
}

static gboolean
receive_state (GTorchShardedOptimizer *self, GTorchOptimizer *optimizer, gint from, GHashTable *all,
               GError **error)
{
  GTORCH_GROUP_CALL ("sharded_optimizer");
  GTorchDevice *device = find_device (optimizer);
  g_autoptr (GTorchTensor) length = NULL, data = NULL;
  g_autoptr (GHashTable) found = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autofree gint64 *n = NULL;
  gint64 one = 1;
  gsize n_values;
  GHashTableIter iter;
  gpointer name, tensor;

  length = gtorch_zeros (&one, 1, GTORCH_DTYPE_INT64, device, error);
  if (length == NULL
      || !wait_for (gtorch_process_group_recv (self->group, length, from, 0, error), error)
      || (n = gtorch_tensor_to_ints (length, &n_values, error)) == NULL
      || (data = gtorch_zeros (n, 1, GTORCH_DTYPE_UINT8, device, error)) == NULL
      || !wait_for (gtorch_process_group_recv (self->group, data, from, 0, error), error)
      || (bytes = gtorch_tensor_get_bytes (data, error)) == NULL
      || (found = gtorch_safetensors_load_bytes (bytes, NULL, error)) == NULL)
    return FALSE;
  g_hash_table_iter_init (&iter, found);
  while (g_hash_table_iter_next (&iter, &name, &tensor))
    if (g_str_has_prefix (name, "state."))
      g_hash_table_insert (all, g_strdup (name), g_object_ref (tensor));
  return TRUE;
}

/**
 * gtorch_sharded_optimizer_consolidate:
 * @self: a sharded optimizer
 * @to: the rank that gets the states
 * @error: return location for an error
 *
 * Collects the states of all ranks in one of them, which may then call
 * [method@ShardedOptimizer.state_dict]. All ranks call this.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INDEX if there is no rank @to
 *
 * Since: 0.1
 */
gboolean
gtorch_sharded_optimizer_consolidate (GTorchShardedOptimizer *self, gint to, GError **error)
{
  g_autoptr (GTorchOptimizer) optimizer = NULL;
  g_autoptr (GHashTable) all = NULL;
  gint size, i;

  g_return_val_if_fail (GTORCH_IS_SHARDED_OPTIMIZER (self), FALSE);
  optimizer = g_weak_ref_get (&self->optimizer);
  if (optimizer == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("sharded_optimizer: there is no optimizer"));
      return FALSE;
    }
  size = gtorch_process_group_get_size (self->group);
  if (to < 0 || to >= size)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("sharded_optimizer: rank %d is out of range for %d processes"), to, size);
      return FALSE;
    }
  if (gtorch_process_group_get_rank (self->group) != to)
    return send_state (self, optimizer, to, error);
  all = gtorch_optimizer_state_dict (optimizer);
  for (i = 0; i < size; i++)
    if (i != to && !receive_state (self, optimizer, i, all, error))
      return FALSE;
  g_clear_pointer (&self->state, g_hash_table_unref);
  self->state = g_steal_pointer (&all);
  return TRUE;
}

/**
 * gtorch_sharded_optimizer_state_dict:
 * @self: a sharded optimizer
 * @error: return location for an error
 *
 * Gets the state of the optimizer as it would be without other ranks, for files and for
 * [method@Optimizer.load_state_dict]. States of other ranks are in host memory.
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): names and tensors, or %NULL with @error
 *   set:
 *   %GTORCH_ERROR_INVALID if [method@ShardedOptimizer.consolidate] was not called since the last step, or for
 *   another rank
 *
 * Since: 0.1
 */
GHashTable *
gtorch_sharded_optimizer_state_dict (GTorchShardedOptimizer *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_SHARDED_OPTIMIZER (self), NULL);
  if (self->state != NULL)
    return g_hash_table_ref (self->state);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("sharded_optimizer: this rank does not have the states of the others: let all "
                  "ranks "
                  "call consolidate with its number, after the last step"));
  return NULL;
}

/**
 * gtorch_sharded_optimizer_state_lists:
 * @self: a sharded optimizer
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names, in no particular order
 * @error: return location for an error
 *
 * Gets the state of the optimizer as [method@ShardedOptimizer.state_dict] does, as two lists.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_sharded_optimizer_state_lists (GTorchShardedOptimizer *self, gchar ***names, GError **error)
{
  g_autoptr (GHashTable) state = NULL;

  g_return_val_if_fail (GTORCH_IS_SHARDED_OPTIMIZER (self), NULL);
  state = gtorch_sharded_optimizer_state_dict (self, error);
  return state == NULL ? NULL : gtorch_state_to_lists (state, names);
}
