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

/* The rows of this rank, converted. */
static GTorchTensor *
fill_buffer (GTorchModuleShards *self, GTorchTensor **params, GError **error)
{
  GTorchTensor *model = params[0];
  const GTorchDType dtype =
      self->param_dtype != GTORCH_DTYPE_NONE ? self->param_dtype : gtorch_tensor_get_dtype (model);
  g_autoptr (GTorchTensor) buffer =
      gtorch_zeros (&self->numel, 1, dtype, gtorch_tensor_get_device (model), error);
  guint i;

  for (i = 0; buffer != NULL && i < self->shards->len; i++)
    {
      const GTorchShard *shard = shard_at (self, i);
      const gint64 numel = shard->n_rows * shard->row;
      g_autoptr (GTorchTensor) to = NULL, from = NULL;

      if (numel == 0)
        continue;
      to = slice (buffer, shard->offset, numel, error);
      from = to == NULL ? NULL : flatten (params[i], error);
      if (from == NULL || gtorch_tensor_copy_inplace (to, from, FALSE, error) == NULL)
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

GPtrArray *
gtorch_shards_gather_all (GTorchModuleShards *self, GTorchTensor **params, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  const gint64 n_all = self->numel * gtorch_process_group_get_size (self->group);
  g_autoptr (GPtrArray) fulls = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GTorchTensor) buffer = fill_buffer (self, params, error);
  g_autoptr (GTorchTensor) all = NULL;
  g_autoptr (GTorchWork) work = NULL;
  guint i;

  if (buffer == NULL)
    return NULL;
  all = gtorch_zeros (&n_all, 1, gtorch_tensor_get_dtype (buffer),
                      gtorch_tensor_get_device (buffer), error);
  work = all == NULL
             ? NULL
             : gtorch_process_group_all_gather_into_tensor (self->group, all, buffer, error);
  if (work == NULL || !gtorch_work_join (work, error))
    return NULL;
  for (i = 0; i < self->shards->len; i++)
    {
      GTorchTensor *full = take_full (self, shard_at (self, i), all, error);

      if (full == NULL)
        return NULL;
      g_ptr_array_add (fulls, full);
    }
  return g_steal_pointer (&fulls);
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

  /* the graph may be all that is left of the module */
  g_object_set_qdata_full (G_OBJECT (context), owner_quark (), g_object_ref (self), g_object_unref);
  return gtorch_shards_gather_all (self, inputs, error);
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

static GPtrArray *
gtorch_shards_function_backward (GTorchFunction *function, GTorchFunctionContext *context,
                                 GTorchTensor **grads, gsize n_grads, GError **error)
{
  GTorchModuleShards *self = ((GTorchShardsFunction *) function)->shards;
  g_autoptr (GTorchGradGuard) guard = NULL;
  const gint64 n_all = self->numel * gtorch_process_group_get_size (self->group);
  GTorchTensor *model = shard_at (self, 0)->param;
  const GTorchDType dtype = self->reduce_dtype != GTORCH_DTYPE_NONE
                                ? self->reduce_dtype
                                : gtorch_tensor_get_dtype (grads[0]);
  g_autoptr (GTorchTensor) all = NULL, own = NULL;
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (unref_tensor);
  guint i;

  if (gtorch_is_grad_enabled ())
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("module_shards: gradients of gradients (create_graph) do not go through "
                      "parameters that are sharded"));
      return NULL;
    }
  guard = gtorch_no_grad ();
  g_clear_pointer (&self->again, g_ptr_array_unref); /* all that uses them is over */
  all = gtorch_zeros (&n_all, 1, dtype, gtorch_tensor_get_device (model), error);
  own = all == NULL
            ? NULL
            : gtorch_zeros (&self->numel, 1, dtype, gtorch_tensor_get_device (model), error);
  for (i = 0; own != NULL && i < n_grads; i++)
    if (gtorch_function_context_get_needs_input_grad (context, i)
        && !spread (self, shard_at (self, i), grads[i], all, error))
      return NULL;
  work = own == NULL ? NULL
                     : gtorch_process_group_reduce_scatter_tensor (self->group, own, all,
                                                                   GTORCH_REDUCE_OP_AVG, error);
  if (work == NULL || !gtorch_work_join (work, error))
    return NULL;
  for (i = 0; i < n_grads; i++)
    {
      GTorchTensor *grad = NULL;

      if (gtorch_function_context_get_needs_input_grad (context, i)
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
} Hooks;

typedef struct
{
  gint shard;     /* or -1: the other hooks have it */
  gpointer outer; /* what they have packed */
  guint dtype, n_dims;
  guint version; /* of this rank's part */
  gint64 offset, shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
} Packed;

static guint
version_of (const GTorchShard *shard)
{
  return g_atomic_int_get (&gtorch_tensor_unwrap (shard->param)->storage->version);
}

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
  guint i;

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
  if (shards->again == NULL)
    {
      g_autofree GTorchTensor **params = g_new (GTorchTensor *, shards->shards->len);

      for (i = 0; i < shards->shards->len; i++)
        params[i] = shard_at (shards, i)->param;
      shards->again = gtorch_shards_gather_all (shards, params, error);
      if (shards->again == NULL)
        return NULL;
    }
  return gtorch_impl_new_strided (gtorch_tensor_unwrap (shards->again->pdata[one->shard])->storage,
                                  one->dtype, one->offset, one->shape, one->strides, one->n_dims);
}

static void
shards_drop (GTorchSavedHooks *hooks, gpointer packed)
{
  const Hooks *self = (const Hooks *) hooks;
  Packed *one = packed;

  if (one->shard < 0)
    self->outer->klass->drop (self->outer, one->outer);
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
  hooks->outer =
      gtorch_thread.saved_hooks == NULL ? NULL : gtorch_saved_hooks_ref (gtorch_thread.saved_hooks);
  hooks->storages = g_ptr_array_new ();
  for (i = 0; i < self->fulls->len; i++)
    g_ptr_array_add (hooks->storages, gtorch_tensor_unwrap (self->fulls->pdata[i])->storage);
  return gtorch_saved_tensors_guard_new (&hooks->parent);
}
