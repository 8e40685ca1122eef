/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Data parallelism with a process for each part of the batch, after Li et al., PyTorch Distributed:
 * Experiences on Accelerating Data Parallel Training, VLDB 2020. */

#include "config.h"

#include "distributed/gtorch-distributed-module.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-field-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-ops-private.h"
#include "gtorch-tensor-ops.h"
#include "nn/gtorch-module-members.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchDistributedModule:
 *
 * A module that several processes train together, each with a part of the batch.
 *
 * Each process has the same module, to which the new module gives the parameters and buffers of rank 0,
 * and computes outputs and gradients of its own part. During the backward pass gradients go to the other
 * ranks as soon as they are there, in buckets of some megabytes, and the mean of all ranks comes back, so
 * that an optimizer step is the same everywhere. All ranks call the module, and go backward, equally often.
 *
 * ```c
 * g_autoptr (GTorchDistributedModule) model
 *     = gtorch_distributed_module_new (net, group, 25, TRUE, FALSE, &error);
 * g_autoptr (GTorchTensor) output = gtorch_module_forward (GTORCH_MODULE (model), part, &error);
 * ```
 *
 * The optimizer gets the parameters of the module inside, or of this one, which are the same; keys of the
 * state dict begin with `module.`. Gradients become views of the buckets. To add up gradients of several
 * parts before they are exchanged, unset [property@DistributedModule:require-backward-grad-sync] for all
 * but the last.
 *
 * Since: 0.1
 */

#define FIRST_CAP (1024 * 1024) /* bytes: the first bucket is there soon */

typedef struct _Bucket Bucket;

typedef struct
{
  GTorchDistributedModule *owner; /* not owned */
  GTorchTensor *parameter;
  guint64 hook;
  Bucket *bucket;
  GTorchTensor *slice; /* of the bucket, in the parameter's shape */
  gboolean is_ready;
  gboolean is_unused; /* by the output of this rank */
} Entry;

struct _Bucket
{
  GTorchTensor *flat;
  guint n_entries;
  guint n_pending;
};

struct _GTorchDistributedModule
{
  GTorchModule parent_instance;
  GTorchModule *module;
  GTorchProcessGroup *group;
  gdouble bucket_cap_mb;
  gboolean broadcast_buffers, find_unused_parameters, require_sync;
  Entry *entries; /* in the order of the buckets */
  guint n_entries;
  GPtrArray *buckets;
  guint n_ready;     /* entries of this backward pass */
  guint next_bucket; /* the first that has not been sent */
  gboolean is_armed; /* a forward pass expects gradients to be sent */
};

G_DEFINE_TYPE (GTorchDistributedModule, gtorch_distributed_module, GTORCH_TYPE_MODULE)

typedef GTorchDistributedModule Self;

static const GTorchField fields[] = {
  /**
   * GTorchDistributedModule:wrapped:
   *
   * The module inside.
   *
   * Since: 0.1
   */
  { "wrapped", GTORCH_PROPERTY_OBJECT (GTorchModule, gtorch_module_get_type,
                                       gtorch_distributed_module_get_wrapped, NULL) },
  /**
   * GTorchDistributedModule:group:
   *
   * The processes that train together.
   *
   * Since: 0.1
   */
  { "group", GTORCH_PROPERTY_OBJECT (GTorchProcessGroup, gtorch_process_group_get_type,
                                     gtorch_distributed_module_get_group, NULL) },
  /**
   * GTorchDistributedModule:require-backward-grad-sync:
   *
   * Whether gradients go to the other ranks. Read by the forward pass: it decides for the backward pass of
   * its output.
   *
   * Since: 0.1
   */
  { "require-backward-grad-sync",
    GTORCH_PROPERTY_BOOL (gtorch_distributed_module_get_require_backward_grad_sync,
                          gtorch_distributed_module_set_require_backward_grad_sync),
    .value = TRUE },
  /**
   * GTorchDistributedModule:n-buckets:
   *
   * In how many parts gradients are exchanged.
   *
   * Since: 0.1
   */
  { "n-buckets", GTORCH_PROPERTY_UINT (gtorch_distributed_module_get_n_buckets, NULL) },
};

/* --- buckets --- */

static void
bucket_free (gpointer data)
{
  Bucket *bucket = data;

  g_clear_object (&bucket->flat);
  g_free (bucket);
}

static gsize
n_bytes_of (GTorchTensor *tensor)
{
  return gtorch_impl_n_bytes (gtorch_tensor_unwrap (tensor));
}

/* Whether the grad is the bucket's memory already. */
static gboolean
is_in_place (const Entry *entry, GTorchTensor *grad)
{
  return gtorch_impl_is_same_place (gtorch_tensor_unwrap (grad),
                                    gtorch_tensor_unwrap (entry->slice));
}

static gboolean
fill_slice (const Entry *entry, GError **error)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (entry->parameter);

  if (grad == NULL)
    return gtorch_op_zero_inplace (gtorch_tensor_unwrap (entry->slice), error);
  return is_in_place (entry, grad)
         || gtorch_op_copy_inplace (gtorch_tensor_unwrap (entry->slice),
                                    gtorch_tensor_unwrap (grad), FALSE, error);
}

static gboolean
send_bucket (GTorchDistributedModule *self, Bucket *bucket, GError **error)
{
  g_autoptr (GTorchWork) work =
      gtorch_process_group_all_reduce (self->group, bucket->flat, GTORCH_REDUCE_OP_AVG, error);

  return work != NULL;
}

/* What no rank has used keeps no grad; what another rank has used gets one here, too. */
static gboolean
find_used (GTorchDistributedModule *self, gdouble **used, GError **error)
{
  g_autofree gint64 *flags = g_new (gint64, self->n_entries);
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GTorchWork) work = NULL;
  gint64 shape = self->n_entries;
  gsize n;
  guint i;

  for (i = 0; i < self->n_entries; i++)
    flags[i] = !self->entries[i].is_unused;
  tensor = gtorch_tensor_new_from_ints (flags, self->n_entries, &shape, 1, GTORCH_DTYPE_INT32, NULL,
                                        error);
  work = tensor == NULL
             ? NULL
             : gtorch_process_group_all_reduce (self->group, tensor, GTORCH_REDUCE_OP_MAX, error);
  *used = work == NULL ? NULL : gtorch_tensor_to_doubles (tensor, &n, error);
  return *used != NULL;
}

/* All buckets are under way: grads become views of them. Whoever reads one waits for its bucket. */
static gboolean
finish_pass (GTorchDistributedModule *self, GError **error)
{
  g_autofree gdouble *used = NULL;
  guint i;

  if (self->find_unused_parameters && !find_used (self, &used, error))
    return FALSE;
  for (i = 0; i < self->n_entries; i++)
    {
      Entry *entry = &self->entries[i];
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (entry->parameter);

      if ((used == NULL || used[i] != 0) && (grad == NULL || !is_in_place (entry, grad))
          && !gtorch_tensor_set_grad (entry->parameter, entry->slice, error))
        return FALSE;
    }
  self->is_armed = FALSE;
  return TRUE;
}

static gboolean
mark_ready (GTorchDistributedModule *self, Entry *entry, GError **error)
{
  if (!fill_slice (entry, error))
    return FALSE;
  entry->is_ready = TRUE;
  entry->bucket->n_pending--;
  self->n_ready++;
  while (self->next_bucket < self->buckets->len)
    {
      Bucket *bucket = self->buckets->pdata[self->next_bucket];

      if (bucket->n_pending > 0)
        break;
      if (!send_bucket (self, bucket, error))
        return FALSE;
      self->next_bucket++;
    }
  return self->next_bucket < self->buckets->len || finish_pass (self, error);
}

static gboolean
on_grad (GTorchTensor *tensor, gpointer data, GError **error)
{
  Entry *entry = data;
  GTorchDistributedModule *self = entry->owner;
  g_autoptr (GTorchGradGuard) guard = NULL;

  if (!self->is_armed)
    return TRUE;
  if (entry->is_ready)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("distributed_module: the parameter “%s” has got a second gradient after one "
                      "forward pass: go backward once for each, or unset "
                      "require-backward-grad-sync"),
                   gtorch_parameter_get_name (GTORCH_PARAMETER (tensor)));
      return FALSE;
    }
  guard = gtorch_no_grad ();
  return mark_ready (self, entry, error);
}

/* --- making them --- */

static GTorchTensor *
make_slice (GTorchTensor *flat, gint64 start, GTorchTensor *parameter, GError **error)
{
  const GTorchImpl *impl = gtorch_tensor_unwrap (parameter);
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (flat, 0, start, impl->numel, error);

  return part == NULL ? NULL : gtorch_tensor_view (part, impl->shape, impl->n_dims, error);
}

static gboolean
make_bucket (GTorchDistributedModule *self, guint first, guint n, GError **error)
{
  GTorchTensor *model = self->entries[first].parameter;
  Bucket *bucket = g_new0 (Bucket, 1);
  gint64 numel = 0, start = 0;
  guint i;

  g_ptr_array_add (self->buckets, bucket);
  bucket->n_entries = n;
  for (i = first; i < first + n; i++)
    numel += gtorch_tensor_get_numel (self->entries[i].parameter);
  bucket->flat = gtorch_zeros (&numel, 1, gtorch_tensor_get_dtype (model),
                               gtorch_tensor_get_device (model), error);
  if (bucket->flat == NULL)
    return FALSE;
  for (i = first; i < first + n; i++)
    {
      Entry *entry = &self->entries[i];

      entry->bucket = bucket;
      entry->slice = make_slice (bucket->flat, start, entry->parameter, error);
      if (entry->slice == NULL)
        return FALSE;
      start += gtorch_tensor_get_numel (entry->parameter);
    }
  return TRUE;
}

/* From the last parameter to the first, which is about the order in which gradients come. */
static gboolean
make_buckets (GTorchDistributedModule *self, GError **error)
{
  gsize cap = MIN (FIRST_CAP, (gsize) (self->bucket_cap_mb * 1024 * 1024));
  guint first = 0, i;
  gsize size = 0;

  for (i = 0; i < self->n_entries; i++)
    {
      GTorchTensor *parameter = self->entries[i].parameter;
      const gboolean fits = i == first
                            || (size + n_bytes_of (parameter) <= cap
                                && gtorch_tensor_get_dtype (parameter)
                                       == gtorch_tensor_get_dtype (self->entries[first].parameter));

      if (!fits)
        {
          if (!make_bucket (self, first, i - first, error))
            return FALSE;
          first = i;
          size = 0;
          cap = (gsize) (self->bucket_cap_mb * 1024 * 1024);
        }
      size += n_bytes_of (parameter);
    }
  return first == self->n_entries || make_bucket (self, first, self->n_entries - first, error);
}

static gboolean
make_entries (GTorchDistributedModule *self, GError **error)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (self->module, TRUE);
  guint n = g_list_model_get_n_items (parameters), i;

  self->entries = g_new0 (Entry, MAX (n, 1));
  for (i = n; i-- > 0;)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);
      Entry *entry = &self->entries[self->n_entries];

      if (gtorch_is_lazy (parameter))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("distributed_module: the parameter “%s” is lazy: call the module once "
                          "before"),
                       gtorch_parameter_get_name (GTORCH_PARAMETER (parameter)));
          return FALSE;
        }
      if (!gtorch_tensor_get_requires_grad (parameter))
        continue;
      entry->owner = self;
      entry->parameter = g_object_ref (parameter);
      self->n_entries++;
      entry->hook =
          gtorch_tensor_register_post_accumulate_grad_hook (parameter, on_grad, entry, NULL, error);
      if (entry->hook == 0)
        return FALSE;
    }
  if (self->n_entries > 0)
    return make_buckets (self, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("distributed_module: no parameter requires a gradient, so there is nothing to "
                  "exchange"));
  return FALSE;
}

/* --- what the ranks must have alike --- */

/* All ranks have as many parameters, of the same numbers of elements and dtypes; the first difference is
 * named. */
static gboolean
compare_parameters (GTorchDistributedModule *self, GError **error)
{
  const gint64 size = gtorch_process_group_get_size (self->group);
  const gint64 n = 1 + 2 * (gint64) 64;
  gint64 own[129] = { 0 }, all_shape = n * size;
  g_autoptr (GTorchTensor) mine = NULL, all = NULL;
  g_autoptr (GTorchWork) work = NULL;
  g_autofree gint64 *values = NULL;
  gsize n_values;
  guint i, k;

  own[0] = self->n_entries;
  /* the first 64 by themselves, the others by their sum */
  for (i = 0; i < self->n_entries; i++)
    {
      const guint place = 1 + 2 * MIN (i, 63);

      own[place] += gtorch_tensor_get_numel (self->entries[i].parameter);
      own[place + 1] += gtorch_tensor_get_dtype (self->entries[i].parameter);
    }
  mine = gtorch_tensor_new_from_ints (own, n, &n, 1, GTORCH_DTYPE_INT64, NULL, error);
  all = mine == NULL ? NULL : gtorch_zeros (&all_shape, 1, GTORCH_DTYPE_INT64, NULL, error);
  work = all == NULL ? NULL
                     : gtorch_process_group_all_gather_into_tensor (self->group, all, mine, error);
  values = work == NULL ? NULL : gtorch_tensor_to_ints (all, &n_values, error);
  if (values == NULL)
    return FALSE;
  for (i = 0; i < size; i++)
    for (k = 0; k < n; k++)
      if (values[i * n + k] != values[k])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("distributed_module: the modules of rank 0 and of rank %u differ: in %s "
                          "%" PRId64 " and %" PRId64),
                       i,
                       k == 0       ? _ ("the number of parameters,")
                       : k % 2 == 1 ? _ ("the number of elements of a parameter,")
                                    : _ ("the dtype of a parameter,"),
                       values[k], values[i * n + k]);
          return FALSE;
        }
  return TRUE;
}

static gboolean
broadcast_list (GTorchDistributedModule *self, GListModel *tensors, GError **error)
{
  guint n = g_list_model_get_n_items (tensors), i;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) tensor = g_list_model_get_item (tensors, i);
      g_autoptr (GTorchTensor) plain = gtorch_tensor_detach (tensor, error);
      g_autoptr (GTorchWork) work =
          plain == NULL ? NULL : gtorch_process_group_broadcast (self->group, plain, 0, error);

      if (work == NULL)
        return FALSE;
    }
  return TRUE;
}

static gboolean
broadcast_state (GTorchDistributedModule *self, gboolean parameters, GError **error)
{
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (self->module, TRUE);
  g_autoptr (GListModel) all =
      parameters ? gtorch_module_get_parameters (self->module, TRUE) : NULL;

  return (all == NULL || broadcast_list (self, all, error))
         && broadcast_list (self, buffers, error);
}

/* --- forward --- */

static void
collect_leaves (GTorchImpl *output, GHashTable *leaves)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();

  if (output->autograd == NULL)
    return;
  if (output->autograd->grad_fn == NULL)
    g_hash_table_add (leaves, output);
  else
    g_ptr_array_add (stack, output->autograd->grad_fn);
  while (stack->len > 0)
    {
      GTorchNode *node = g_ptr_array_steal_index_fast (stack, stack->len - 1);
      guint i;

      if (!g_hash_table_add (seen, node))
        continue;
      for (i = 0; i < node->n_edges; i++)
        if (node->edges[i].leaf != NULL)
          g_hash_table_add (leaves, node->edges[i].leaf);
        else if (node->edges[i].node != NULL)
          g_ptr_array_add (stack, node->edges[i].node);
    }
}

static const gchar *
find_missing (GTorchDistributedModule *self)
{
  guint i;

  for (i = 0; i < self->n_entries; i++)
    if (!self->entries[i].is_ready)
      return gtorch_parameter_get_name (GTORCH_PARAMETER (self->entries[i].parameter));
  return "";
}

static void
reset (GTorchDistributedModule *self)
{
  guint i;

  self->n_ready = self->next_bucket = 0;
  for (i = 0; i < self->n_entries; i++)
    self->entries[i].is_ready = self->entries[i].is_unused = FALSE;
  for (i = 0; i < self->buckets->len; i++)
    {
      Bucket *bucket = self->buckets->pdata[i];

      bucket->n_pending = bucket->n_entries;
    }
}

static gboolean
before_forward (GTorchDistributedModule *self, GError **error)
{
  if (self->module == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_module: there is no module inside"));
      return FALSE;
    }
  if (self->is_armed && self->n_ready > 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("distributed_module: %u of %u parameters, “%s” among them, got no gradient "
                      "in the last backward pass, so that ranks wait for each other: set "
                      "find-unused-parameters, or let the output depend on all of them"),
                   self->n_entries - self->n_ready, self->n_entries, find_missing (self));
      return FALSE;
    }
  reset (self);
  self->is_armed = FALSE;
  return !(self->broadcast_buffers && self->require_sync
           && gtorch_module_get_training (GTORCH_MODULE (self)))
         || broadcast_state (self, FALSE, error);
}

static gboolean
after_forward (GTorchDistributedModule *self, GTorchTensor **outputs, gsize n_outputs,
               GError **error)
{
  g_autoptr (GHashTable) leaves = NULL;
  guint i;

  self->is_armed = self->require_sync && gtorch_is_grad_enabled ();
  if (!self->is_armed || !self->find_unused_parameters)
    return TRUE;
  leaves = g_hash_table_new (NULL, NULL);
  for (i = 0; i < n_outputs; i++)
    collect_leaves (gtorch_tensor_unwrap (outputs[i]), leaves);
  for (i = 0; i < self->n_entries; i++)
    {
      Entry *entry = &self->entries[i];
      g_autoptr (GTorchGradGuard) guard = NULL;

      if (g_hash_table_contains (leaves, gtorch_tensor_unwrap (entry->parameter)))
        continue;
      guard = gtorch_no_grad ();
      entry->is_unused = TRUE;
      if (!mark_ready (self, entry, error))
        return FALSE;
    }
  return TRUE;
}

static GTorchTensor *
gtorch_distributed_module_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchDistributedModule *self = GTORCH_DISTRIBUTED_MODULE (module);
  g_autoptr (GTorchTensor) output = NULL;

  if (!before_forward (self, error))
    return NULL;
  output = gtorch_module_forward (self->module, input, error);
  return output != NULL && after_forward (self, &output, 1, error) ? g_steal_pointer (&output)
                                                                   : NULL;
}

static GTorchTensor *
gtorch_distributed_module_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                                        GError **error)
{
  GTorchDistributedModule *self = GTORCH_DISTRIBUTED_MODULE (module);
  g_autoptr (GTorchTensor) output = NULL;

  if (!before_forward (self, error))
    return NULL;
  output = gtorch_module_forward_many (self->module, inputs, n_inputs, error);
  return output != NULL && after_forward (self, &output, 1, error) ? g_steal_pointer (&output)
                                                                   : NULL;
}

/* --- the class --- */

static void
gtorch_distributed_module_finalize (GObject *object)
{
  GTorchDistributedModule *self = GTORCH_DISTRIBUTED_MODULE (object);
  guint i;

  for (i = 0; i < self->n_entries; i++)
    {
      gtorch_tensor_remove_hook (self->entries[i].parameter, self->entries[i].hook);
      g_object_unref (self->entries[i].parameter);
      g_clear_object (&self->entries[i].slice);
    }
  g_free (self->entries);
  g_ptr_array_unref (self->buckets);
  g_clear_object (&self->module);
  g_clear_object (&self->group);
  G_OBJECT_CLASS (gtorch_distributed_module_parent_class)->finalize (object);
}

static void
gtorch_distributed_module_class_init (GTorchDistributedModuleClass *klass)
{
  GTorchModuleClass *module_class = GTORCH_MODULE_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_distributed_module_finalize;
  module_class->forward = gtorch_distributed_module_forward;
  module_class->forward_many = gtorch_distributed_module_forward_many;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_distributed_module_init (GTorchDistributedModule *self)
{
  self->require_sync = TRUE;
  self->buckets = g_ptr_array_new_with_free_func (bucket_free);
}

/**
 * gtorch_distributed_module_new:
 * @module: a module
 * @group: the processes that train together
 * @bucket_cap_mb: the size of a bucket in MiB, more than 0; 25 is usual
 * @broadcast_buffers: whether each forward pass in training mode takes the buffers of rank 0
 * @find_unused_parameters: whether the output may depend on some of the parameters only, which costs a
 *   walk through the graph and a small exchange in each pass
 * @error: return location for an error
 *
 * Creates a module for data parallelism. All ranks call this, and get the parameters and buffers of rank 0.
 *
 * Returns: (transfer full): a new module, or %NULL with @error set: %GTORCH_ERROR_SHAPE if the modules of
 *   the ranks differ
 *
 * Since: 0.1
 */
GTorchDistributedModule *
gtorch_distributed_module_new (GTorchModule *module, GTorchProcessGroup *group,
                               gdouble bucket_cap_mb, gboolean broadcast_buffers,
                               gboolean find_unused_parameters, GError **error)
{
  g_autoptr (GTorchDistributedModule) self = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (module) && GTORCH_IS_PROCESS_GROUP (group), NULL);
  if (!(bucket_cap_mb > 0 && bucket_cap_mb < 1e6))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("distributed_module: the buckets have %g MiB; they have more than 0, and "
                      "less than a million"),
                   bucket_cap_mb);
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_DISTRIBUTED_MODULE, NULL);
  self->bucket_cap_mb = bucket_cap_mb;
  self->broadcast_buffers = broadcast_buffers;
  self->find_unused_parameters = find_unused_parameters;
  self->module = g_object_ref (module);
  self->group = g_object_ref (group);
  if (!gtorch_module_register_module (GTORCH_MODULE (self), "module", module, error)
      || !make_entries (self, error) || !compare_parameters (self, error)
      || !broadcast_state (self, TRUE, error))
    return NULL;
  reset (self);
  return g_steal_pointer (&self);
}

/**
 * gtorch_distributed_module_begin_forward:
 * @self: a module
 * @error: return location for an error
 *
 * Does what has to be done before the module inside is called, for programs that call it themselves: with
 * arguments that are no tensors, say. They call [method@DistributedModule.end_forward] afterwards.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_AUTOGRAD if parameters got no gradient in the
 *   last backward pass
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_begin_forward (GTorchDistributedModule *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), FALSE);
  return before_forward (self, error);
}

/**
 * gtorch_distributed_module_end_forward:
 * @self: a module
 * @outputs: (array length=n_outputs): what the module inside has computed
 * @n_outputs: the number of @outputs
 * @error: return location for an error
 *
 * Does what has to be done after the module inside was called.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_end_forward (GTorchDistributedModule *self, GTorchTensor **outputs,
                                       gsize n_outputs, GError **error)
{
  gsize i;

  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self) && (outputs != NULL || n_outputs == 0),
                        FALSE);
  for (i = 0; i < n_outputs; i++)
    g_return_val_if_fail (GTORCH_IS_TENSOR (outputs[i]), FALSE);
  return after_forward (self, outputs, n_outputs, error);
}

/**
 * gtorch_distributed_module_get_wrapped:
 * @self: a module
 *
 * Gets the module inside.
 *
 * Returns: (transfer none) (nullable): the module
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_distributed_module_get_wrapped (GTorchDistributedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), NULL);
  return self->module;
}

/**
 * gtorch_distributed_module_get_group:
 * @self: a module
 *
 * Gets the processes that train together.
 *
 * Returns: (transfer none) (nullable): the group
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_distributed_module_get_group (GTorchDistributedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), NULL);
  return self->group;
}

/**
 * gtorch_distributed_module_get_require_backward_grad_sync:
 * @self: a module
 *
 * Gets whether gradients go to the other ranks.
 *
 * Returns: %TRUE if they do
 *
 * Since: 0.1
 */
gboolean
gtorch_distributed_module_get_require_backward_grad_sync (GTorchDistributedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), FALSE);
  return self->require_sync;
}

/**
 * gtorch_distributed_module_set_require_backward_grad_sync:
 * @self: a module
 * @require: whether gradients go to the other ranks
 *
 * Sets whether gradients go to the other ranks, from the next forward pass on. Where they do not, they are
 * added to those that are there, and all go with the next pass in which they do.
 *
 * Since: 0.1
 */
void
gtorch_distributed_module_set_require_backward_grad_sync (GTorchDistributedModule *self,
                                                          gboolean require)
{
  g_return_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self));
  if (self->require_sync == !!require)
    return;
  self->require_sync = !!require;
  g_object_notify (G_OBJECT (self), "require-backward-grad-sync");
}

/**
 * gtorch_distributed_module_get_n_buckets:
 * @self: a module
 *
 * Gets in how many parts gradients are exchanged.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_distributed_module_get_n_buckets (GTorchDistributedModule *self)
{
  g_return_val_if_fail (GTORCH_IS_DISTRIBUTED_MODULE (self), 0);
  return self->buckets->len;
}
