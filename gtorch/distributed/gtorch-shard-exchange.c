/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the ranks of sharded parameters exchange. The buffer of a rank has its rows of each parameter,
 * filled up to as many as the first rank has; those of all ranks one behind the other are gathered, and
 * reduced. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-function-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-module-shards-private.h"
#include "distributed/gtorch-engine-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

static GTorchShard *
shard_at (GTorchModuleShards *self, guint i)
{
  return self->shards->pdata[i];
}

/* Elements of a buffer as a vector. */
static GTorchTensor *
slice (GTorchTensor *buffer, gint64 start, gint64 length, GError **error)
{
  return gtorch_tensor_narrow (buffer, 0, start, length, error);
}

static GTorchTensor *
flatten (GTorchTensor *tensor, GError **error)
{
  const gint64 all = -1;

  return gtorch_tensor_reshape (tensor, &all, 1, error);
}

static guint
version_of (const GTorchShard *shard)
{
  return g_atomic_int_get (&gtorch_tensor_unwrap (shard->param)->storage->version);
}

/* The rows of this rank, converted, where the module computes. */
static GTorchTensor *
fill_buffer (GTorchModuleShards *self, GError **error)
{
  const GTorchDType dtype = self->param_dtype != GTORCH_DTYPE_NONE
                                ? self->param_dtype
                                : gtorch_tensor_get_dtype (shard_at (self, 0)->param);
  g_autoptr (GTorchTensor) buffer = gtorch_zeros (&self->numel, 1, dtype, self->device, error);
  guint i;

  for (i = 0; buffer != NULL && i < self->shards->len; i++)
    {
      GTorchShard *shard = shard_at (self, i);
      const gint64 numel = shard->n_rows * shard->row;
      g_autoptr (GTorchTensor) to = NULL, from = NULL;

      shard->version = version_of (shard);
      if (numel == 0)
        continue;
      to = slice (buffer, shard->offset, numel, error);
      from = to == NULL ? NULL : flatten (shard->param, error);
      if (from == NULL || gtorch_tensor_copy_inplace (to, from, self->is_offloaded, error) == NULL)
        return NULL;
    }
  return g_steal_pointer (&buffer);
}

/* A parameter from the buffers of all ranks: its rows are behind each other once the ranks' are. */
static GTorchTensor *
take_full (GTorchModuleShards *self, const GTorchShard *shard, GTorchTensor *all, GError **error)
{
  const gint64 size = gtorch_process_group_get_size (self->group), length = shard->per * shard->row;
  const gint64 shape[] = { size, self->numel }, numel = shard->shape[0] * shard->row;
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_view (all, shape, 2, error);
  g_autoptr (GTorchTensor) part =
      matrix == NULL ? NULL : gtorch_tensor_narrow (matrix, 1, shard->offset, length, error);
  g_autoptr (GTorchTensor) rows = part == NULL ? NULL : flatten (part, error);
  g_autoptr (GTorchTensor) own = rows == NULL ? NULL : slice (rows, 0, numel, error);

  return own == NULL ? NULL : gtorch_tensor_view (own, shard->shape, shard->n_dims, error);
}

void
gtorch_shards_drop (GTorchModuleShards *self)
{
  g_clear_pointer (&self->whole, g_ptr_array_unref);
  g_clear_object (&self->work);
  g_clear_object (&self->all);
  self->is_ahead = FALSE;
}

/* One that was changed after it was gathered, or NULL. */
static const GTorchShard *
find_stale (GTorchModuleShards *self)
{
  guint i;

  for (i = 0; i < self->shards->len; i++)
    if (version_of (shard_at (self, i)) != shard_at (self, i)->version)
      return shard_at (self, i);
  return NULL;
}

gboolean
gtorch_shards_check_current (GTorchModuleShards *self, GError **error)
{
  const GTorchShard *stale = find_stale (self);

  if (stale == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("module_shards: the parameter “%s” was changed during a call of the module, "
                  "which goes on computing with what it was: a call, or what begin_forward() "
                  "begins, ends before parameters are changed"),
               gtorch_parameter_get_name (GTORCH_PARAMETER (stale->param)));
  return FALSE;
}

static gboolean
take_fulls (GTorchModuleShards *self, GTorchTensor *all, GError **error)
{
  g_autoptr (GPtrArray) fulls = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < self->shards->len; i++)
    {
      GTorchTensor *full = take_full (self, shard_at (self, i), all, error);

      if (full == NULL)
        return FALSE;
      g_ptr_array_add (fulls, full);
    }
  self->whole = g_steal_pointer (&fulls);
  return TRUE;
}

gboolean
gtorch_shards_start (GTorchModuleShards *self, GError **error)
{
  GTORCH_GROUP_CALL ("module_shards");
  g_autoptr (GTorchGradGuard) guard = NULL;
  const gint64 n_all = self->numel * gtorch_process_group_get_size (self->group);
  const gboolean is_old = (self->all != NULL || self->whole != NULL || self->piece != NULL)
                          && find_stale (self) != NULL;
  g_autoptr (GTorchTensor) buffer = NULL, all = NULL;
  GTorchWork *work;

  if (is_old)
    {
      gtorch_shards_drop (self);
      g_clear_object (&self->piece);
    }
  if (self->all != NULL || self->whole != NULL || self->shards->len == 0)
    return TRUE;
  guard = gtorch_no_grad ();
  buffer = self->piece != NULL ? g_object_ref (self->piece) : fill_buffer (self, error);
  all = buffer == NULL
            ? NULL
            : gtorch_empty (&n_all, 1, gtorch_tensor_get_dtype (buffer), self->device, error);
  work = all == NULL
             ? NULL
             : gtorch_process_group_all_gather_into_tensor (self->piece != NULL ? self->nearby
                                                                                : self->group,
                                                            all, buffer, error);
  if (work == NULL)
    return FALSE;
  self->work = work;
  self->all = g_steal_pointer (&all);
  return TRUE;
}

/* Waits for them, in the stream of a GPU. */
static gboolean
finish (GTorchModuleShards *self, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  gboolean is_done;

  if (!gtorch_shards_start (self, error))
    return FALSE;
  self->is_ahead = FALSE;
  if (self->whole != NULL)
    return TRUE;
  guard = gtorch_no_grad ();
  is_done = gtorch_work_join (self->work, error) && take_fulls (self, self->all, error);
  g_clear_object (&self->work);
  if (!is_done || self->nearby == NULL)
    g_clear_object (&self->all);
  return is_done;
}

gboolean
gtorch_shards_keep_piece (GTorchModuleShards *self, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) own = NULL;
  gint64 n;

  if (self->nearby == NULL || self->all == NULL || self->piece != NULL)
    return TRUE;
  guard = gtorch_no_grad ();
  n = gtorch_tensor_get_numel (self->all) / gtorch_process_group_get_size (self->nearby);
  own = slice (self->all, n * gtorch_process_group_get_rank (self->nearby), n, error);
  self->piece = own == NULL ? NULL : gtorch_tensor_clone (own, error);
  return self->piece != NULL;
}

/* --- with autograd --- */

typedef struct
{
  GTorchFunction parent_instance;
  GTorchModuleShards *shards; /* not owned: it has the function */
} GTorchShardsFunction;

typedef GTorchFunctionClass GTorchShardsFunctionClass;

static GType gtorch_shards_function_get_type (void);

G_DEFINE_TYPE (GTorchShardsFunction, gtorch_shards_function, GTORCH_TYPE_FUNCTION)

static GQuark
owner_quark (void)
{
  return g_quark_from_static_string ("gtorch-shards-of-function");
}

static GPtrArray *
gtorch_shards_function_forward (GTorchFunction *function, GTorchFunctionContext *context,
                                GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GTorchModuleShards *self = ((GTorchShardsFunction *) function)->shards;
  g_autoptr (GPtrArray) fulls = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  /* the graph may be all that is left of the module */
  g_object_set_qdata_full (G_OBJECT (context), owner_quark (), g_object_ref (self), g_object_unref);
  if (!finish (self, error))
    return NULL;
  for (i = 0; i < self->whole->len; i++)
    {
      GTorchTensor *full = gtorch_tensor_detach (self->whole->pdata[i], error);

      if (full == NULL)
        return NULL;
      g_ptr_array_add (fulls, full);
    }
  return g_steal_pointer (&fulls);
}

/* The rows of a gradient to the buffers of the ranks that have them. */
static gboolean
spread (GTorchModuleShards *self, const GTorchShard *shard, GTorchTensor *grad, GTorchTensor *all,
        GError **error)
{
  const gint size = gtorch_process_group_get_size (self->group);
  g_autoptr (GTorchTensor) flat = flatten (grad, error);
  gint rank;

  if (flat == NULL)
    return FALSE;
  for (rank = 0; rank < size; rank++)
    {
      const gint64 first = MIN (rank * shard->per, shard->shape[0]);
      const gint64 n = MIN (shard->per, shard->shape[0] - first) * shard->row;
      g_autoptr (GTorchTensor) to = NULL, from = NULL;

      if (n == 0)
        continue;
      to = slice (all, rank * self->numel + shard->offset, n, error);
      from = to == NULL ? NULL : slice (flat, first * shard->row, n, error);
      if (from == NULL || gtorch_tensor_copy_inplace (to, from, FALSE, error) == NULL)
        return FALSE;
    }
  return TRUE;
}

static void
unref_tensor (gpointer tensor)
{
  if (tensor != NULL)
    g_object_unref (tensor);
}

static GTorchTensor *
take_own (const GTorchShard *shard, GTorchTensor *own, GError **error)
{
  GTorchTensor *param = shard->param;
  const GTorchImpl *impl = gtorch_tensor_unwrap (param);
  g_autoptr (GTorchTensor) part = slice (own, shard->offset, shard->n_rows * shard->row, error);
  g_autoptr (GTorchTensor) rows =
      part == NULL ? NULL : gtorch_tensor_view (part, impl->shape, impl->n_dims, error);

  return rows == NULL ? NULL
                      : gtorch_tensor_to (rows, gtorch_tensor_get_dtype (param),
                                          gtorch_tensor_get_device (param), FALSE, TRUE, error);
}

/* Keeps the sum of whole gradients for a pass that sends them. */
static gboolean
keep_grads (GTorchModuleShards *self, GTorchFunctionContext *context, GTorchTensor **grads, guint n,
            GError **error)
{
  guint i;

  if (self->unsent == NULL)
    self->unsent = g_new0 (GTorchTensor *, n);
  for (i = 0; i < n; i++)
    {
      if (!gtorch_function_context_get_needs_input_grad (context, i))
        continue;
      if (self->unsent[i] == NULL)
        self->unsent[i] = gtorch_tensor_clone (grads[i], error);
      else if (gtorch_tensor_add_inplace (self->unsent[i], grads[i], 1, error) == NULL)
        return FALSE;
      if (self->unsent[i] == NULL)
        return FALSE;
    }
  return TRUE;
}

/* The gradients of all ranks' rows, with those that were kept. */
static GTorchTensor *
collect_grads (GTorchModuleShards *self, GTorchFunctionContext *context, GTorchTensor **grads,
               guint n, GTorchDType dtype, GError **error)
{
  const gint64 n_all = self->numel * gtorch_process_group_get_size (self->group);
  g_autoptr (GTorchTensor) all = gtorch_zeros (&n_all, 1, dtype, self->device, error);
  guint i;

  for (i = 0; all != NULL && i < n; i++)
    {
      g_autoptr (GTorchTensor) sum = NULL;

      if (!gtorch_function_context_get_needs_input_grad (context, i))
        continue;
      sum = self->unsent == NULL || self->unsent[i] == NULL
                ? g_object_ref (grads[i])
                : gtorch_tensor_add (self->unsent[i], grads[i], 1, error);
      if (sum == NULL || !spread (self, shard_at (self, i), sum, all, error))
        return NULL;
    }
  return g_steal_pointer (&all);
}

static void
drop_unsent (GTorchModuleShards *self)
{
  guint i;

  for (i = 0; self->unsent != NULL && i < self->shards->len; i++)
    g_clear_object (&self->unsent[i]);
  g_clear_pointer (&self->unsent, g_free);
}

/* This rank's rows of the gradients of all ranks of the group. */
static GTorchTensor *
reduce_scatter (GTorchModuleShards *self, GTorchTensor *all, GError **error)
{
  GTORCH_GROUP_CALL ("module_shards");
  const GTorchReduceOp op =
      self->gradient_divide_factor > 0 ? GTORCH_REDUCE_OP_SUM : GTORCH_REDUCE_OP_AVG;
  g_autoptr (GTorchTensor) own =
      gtorch_empty (&self->numel, 1, gtorch_tensor_get_dtype (all), self->device, error);
  g_autoptr (GTorchWork) work =
      own == NULL ? NULL
                  : gtorch_process_group_reduce_scatter_tensor (self->group, own, all, op, error);

  return work == NULL || !gtorch_work_join (work, error) ? NULL : g_steal_pointer (&own);
}

/* The same of all replicas, or NULL without an error if they are not to be asked in this pass. */
static GTorchTensor *
reduce_replicas (GTorchModuleShards *self, GTorchTensor *own, GError **error)
{
  GTORCH_GROUP_CALL ("module_shards");
  const GTorchReduceOp op =
      self->gradient_divide_factor > 0 ? GTORCH_REDUCE_OP_SUM : GTORCH_REDUCE_OP_AVG;
  g_autoptr (GTorchTensor) sum = g_steal_pointer (&self->unshared);
  g_autoptr (GTorchWork) work = NULL;

  if (sum == NULL)
    sum = g_object_ref (own);
  else if (gtorch_tensor_add_inplace (sum, own, 1, error) == NULL)
    return NULL;
  if (!self->requires_all_reduce)
    {
      self->unshared = g_steal_pointer (&sum);
      return NULL;
    }
  work = gtorch_process_group_all_reduce (self->replicas, sum, op, error);
  return work == NULL || !gtorch_work_join (work, error) ? NULL : g_steal_pointer (&sum);
}

/* Returns NULL also where there is nothing to be added to the gradients yet. */
static GTorchTensor *
reduce (GTorchModuleShards *self, GTorchTensor *all, GError **error)
{
  g_autoptr (GTorchTensor) own = reduce_scatter (self, all, error);
  g_autoptr (GTorchTensor) found = NULL;

  if (own == NULL)
    return NULL;
  found = self->replicas == NULL ? g_object_ref (own) : reduce_replicas (self, own, error);
  if (found == NULL)
    return NULL;
  if (self->gradient_divide_factor > 0
      && gtorch_tensor_mul_scalar_inplace (found, 1 / self->gradient_divide_factor, error) == NULL)
    return NULL;
  return self->is_offloaded ? gtorch_tensor_to_device (found, gtorch_device_cpu (), FALSE, error)
                            : g_steal_pointer (&found);
}

static GPtrArray *
gtorch_shards_function_backward (GTorchFunction *function, GTorchFunctionContext *context,
                                 GTorchTensor **grads, gsize n_grads, GError **error)
{
  GTorchModuleShards *self = ((GTorchShardsFunction *) function)->shards;
  g_autoptr (GTorchGradGuard) guard = NULL;
  const GTorchDType dtype = self->reduce_dtype != GTORCH_DTYPE_NONE
                                ? self->reduce_dtype
                                : gtorch_tensor_get_dtype (grads[0]);
  g_autoptr (GTorchTensor) all = NULL, own = NULL;
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (unref_tensor);
  GError *local = NULL;
  guint i;

  if (gtorch_is_grad_enabled ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("module_shards: gradients of gradients (create_graph) do not go through "
                      "parameters that are sharded"));
      return NULL;
    }
  guard = gtorch_no_grad ();
  if (self->reshard_after_backward && self->depth == 0 && !self->is_open)
    {
      gtorch_shards_drop (self); /* all that uses them is over */
      g_clear_object (&self->piece);
    }
  if (!self->requires_gradient_sync)
    {
      if (!keep_grads (self, context, grads, n_grads, error))
        return NULL;
      g_ptr_array_set_size (found, n_grads);
      return g_steal_pointer (&found);
    }
  all = collect_grads (self, context, grads, n_grads, dtype, error);
  if (all == NULL)
    return NULL;
  drop_unsent (self);
  own = reduce (self, all, &local);
  if (local != NULL)
    {
      g_propagate_error (error, local);
      return NULL;
    }
  for (i = 0; i < n_grads; i++)
    {
      GTorchTensor *grad = NULL;

      if (own != NULL && gtorch_function_context_get_needs_input_grad (context, i)
          && (grad = take_own (shard_at (self, i), own, error)) == NULL)
        return NULL;
      g_ptr_array_add (found, grad);
    }
  return g_steal_pointer (&found);
}

static void
gtorch_shards_function_class_init (GTorchShardsFunctionClass *klass)
{
  klass->forward = gtorch_shards_function_forward;
  klass->backward = gtorch_shards_function_backward;
}

static void
gtorch_shards_function_init (GTorchShardsFunction *self)
{
}

GTorchFunction *
gtorch_shards_function_new (GTorchModuleShards *self)
{
  GTorchShardsFunction *function = g_object_new (gtorch_shards_function_get_type (), NULL);

  function->shards = self;
  return GTORCH_FUNCTION (function);
}

/* --- what operations save --- */

typedef struct
{
  GTorchSavedHooks parent;
  GTorchModuleShards *shards;
  GTorchSavedHooks *outer; /* those of the thread before; or NULL */
  GPtrArray *storages;     /* of the parameters, as many; only compared */
  guint serial;            /* of the forward pass */
} Hooks;

typedef struct
{
  gint shard;     /* or -1: the other hooks have it */
  gpointer outer; /* what they have packed */
  guint dtype, n_dims;
  guint version; /* of this rank's part */
  gint64 offset, shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
} Packed;

static gboolean
shards_pack (GTorchSavedHooks *hooks, GTorchImpl *value, const gchar *op, gpointer *packed,
             GError **error)
{
  const Hooks *self = (const Hooks *) hooks;
  gpointer outer = NULL;
  Packed *one;
  guint i;

  if (value->storage == NULL || !g_ptr_array_find (self->storages, value->storage, &i))
    {
      if (self->outer == NULL)
        return TRUE;
      if (!self->outer->klass->pack (self->outer, value, op, &outer, error))
        return FALSE;
      if (outer == NULL)
        return TRUE;
      one = g_new0 (Packed, 1);
      one->shard = -1;
      one->outer = outer;
      *packed = one;
      return TRUE;
    }
  one = g_new0 (Packed, 1);
  one->shard = (gint) i;
  if (self->serial == self->shards->serial)
    g_atomic_int_inc (&self->shards->n_saved);
  one->version = version_of (shard_at (self->shards, i));
  one->dtype = value->dtype;
  one->n_dims = value->n_dims;
  one->offset = value->offset;
  memcpy (one->shape, value->shape, value->n_dims * sizeof (gint64));
  memcpy (one->strides, value->strides, value->n_dims * sizeof (gint64));
  *packed = one;
  return TRUE;
}

static GTorchImpl *
shards_unpack (GTorchSavedHooks *hooks, gpointer packed, GError **error)
{
  const Hooks *self = (const Hooks *) hooks;
  const Packed *one = packed;
  GTorchModuleShards *shards = self->shards;

  if (one->shard < 0)
    return self->outer->klass->unpack (self->outer, one->outer, error);
  if (version_of (shard_at (shards, one->shard)) != one->version)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("module_shards: the parameter “%s” was changed after the forward pass, and "
                      "the "
                      "backward pass needs what it was"),
                   gtorch_parameter_get_name (
                       GTORCH_PARAMETER (shard_at (shards, one->shard)->param)));
      return NULL;
    }
  if (!finish (shards, error) || !gtorch_shards_look_back (shards, error))
    return NULL;
  return gtorch_impl_new_strided (gtorch_tensor_unwrap (shards->whole->pdata[one->shard])->storage,
                                  one->dtype, one->offset, one->shape, one->strides, one->n_dims);
}

static void
shards_drop (GTorchSavedHooks *hooks, gpointer packed)
{
  const Hooks *self = (const Hooks *) hooks;
  Packed *one = packed;

  if (one->shard < 0)
    self->outer->klass->drop (self->outer, one->outer);
  else if (self->serial == self->shards->serial)
    g_atomic_int_add (&self->shards->n_saved, -1);
  g_free (one);
}

static void
shards_finalize (GTorchSavedHooks *hooks)
{
  Hooks *self = (Hooks *) hooks;

  g_object_unref (self->shards);
  g_ptr_array_unref (self->storages);
  if (self->outer != NULL)
    gtorch_saved_hooks_unref (self->outer);
}

static const GTorchSavedHooksClass shards_class = { shards_pack, shards_unpack, shards_drop,
                                                    shards_finalize };

GTorchSavedTensorsGuard *
gtorch_shards_guard_new (GTorchModuleShards *self, GError **error)
{
  Hooks *hooks;
  guint i;

  if (!gtorch_saved_hooks_are_allowed ("module_shards", error))
    return NULL;
  hooks = g_new0 (Hooks, 1);
  gtorch_saved_hooks_init (&hooks->parent, &shards_class);
  hooks->shards = g_object_ref (self);
  hooks->serial = ++self->serial;
  g_atomic_int_set (&self->n_saved, 0);
  hooks->outer =
      gtorch_thread.saved_hooks == NULL ? NULL : gtorch_saved_hooks_ref (gtorch_thread.saved_hooks);
  hooks->storages = g_ptr_array_new ();
  for (i = 0; i < self->fulls->len; i++)
    g_ptr_array_add (hooks->storages, gtorch_tensor_unwrap (self->fulls->pdata[i])->storage);
  return gtorch_saved_tensors_guard_new (&hooks->parent);
}
