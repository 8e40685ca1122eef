/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Parameters that are spread over processes, after Rajbhandari et al., ZeRO, SC 2020 (stage 3), and Zhao et
 * al., PyTorch FSDP, VLDB 2023. */

#include "config.h"

#include "distributed/gtorch-module-shards.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-part-private.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-distributed-module-private.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-compare-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "gtorch-tensor-ops.h"
#include "nn/gtorch-module-hooks.h"
#include "nn/gtorch-module-members.h"
#include "profiler/gtorch-profiler-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "tensor/gtorch-uninitialized-private.h"

/**
 * GTorchModuleShards:
 *
 * The parameters of a module, of which each process of a group has a part.
 *
 * The first dimension of each parameter is divided among the ranks, the last of which may have fewer rows, or
 * none. An optimizer, which is made afterwards, sees the parts: parameters, gradients and states take as much
 * memory as they would on one device, divided by the number of ranks. While the module computes, its
 * parameters are whole: they are gathered before it is called, and dropped again afterwards; with
 * [property@ModuleShards:reshard-after-forward] the backward pass gathers them a second time, and keeps
 * none in between. Gradients of the whole parameters become the mean of all ranks, and each rank gets its
 * part.
 *
 * ```c
 * for (i = 0; i < n_blocks; i++)
 *   shards[i] = gtorch_module_shards_new (blocks[i], group, TRUE, GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE,
 *                                         GTORCH_DTYPE_NONE, &error);
 * root = gtorch_module_shards_new (model, group, FALSE, GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE,
 *                                  GTORCH_DTYPE_NONE, &error);
 * ```
 *
 * The modules inside are sharded first, those around them take the parameters that are left: each is gathered
 * for the time in which its module computes. All ranks call the modules, and go backward, in the same order.
 * They have the same parameters before.
 *
 * While a module computes, what was called next in the pass before is gathered already, and the backward pass
 * goes the other way; [method@ModuleShards.set_forward_prefetch] says something else. Norms of
 * [func@clip_grad_norm] and overflows that a [class@GradScaler] finds are those of all ranks.
 * [method@ModuleShards.offload] keeps the parts, their gradients and states in the memory of the CPU.
 *
 * Checkpoints of activations ([method@Module.checkpoint], [func@checkpoint]) may be around such modules, and
 * within them. The second call gathers what the first one had whole; the backward pass keeps it until it has
 * the gradients, at most to its end.
 *
 * Since: 0.1
 */

G_DEFINE_TYPE (GTorchModuleShards, gtorch_module_shards, G_TYPE_OBJECT)

typedef GTorchModuleShards Self;

static const GTorchField fields[] = {
  /**
   * GTorchModuleShards:group:
   *
   * The processes that have the parts.
   *
   * Since: 0.1
   */
  { "group", GTORCH_PROPERTY_OBJECT (GTorchProcessGroup, gtorch_process_group_get_type,
                                     gtorch_module_shards_get_group, NULL) },
  /**
   * GTorchModuleShards:reshard-after-forward:
   *
   * Whether the whole parameters are dropped after the forward pass, and gathered again by the backward pass.
   *
   * Since: 0.1
   */
  { "reshard-after-forward", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, reshard_after_forward), TRUE,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchModuleShards:reshard-after-backward:
   *
   * Whether the whole parameters are dropped after the backward pass. %FALSE saves an exchange for each
   * further pass before a step of the optimizer.
   *
   * Since: 0.1
   */
  { "reshard-after-backward", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, reshard_after_backward), TRUE,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchModuleShards:requires-gradient-sync:
   *
   * Whether a backward pass exchanges gradients. With %FALSE each rank keeps the sum of its whole gradients,
   * which the next pass with %TRUE adds to its own; the parameters have no gradients meanwhile.
   *
   * Since: 0.1
   */
  { "requires-gradient-sync", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, requires_gradient_sync), TRUE,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchModuleShards:requires-all-reduce:
   *
   * Whether a backward pass exchanges gradients with the [property@ModuleShards:replicas]. With %FALSE each
   * rank keeps the sum of its parts, which the next pass with %TRUE adds to its own.
   *
   * Since: 0.1
   */
  { "requires-all-reduce", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, requires_all_reduce), TRUE,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchModuleShards:cast-forward-inputs:
   *
   * Whether inputs are converted to the dtype in which the module computes.
   *
   * Since: 0.1
   */
  { "cast-forward-inputs", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, cast_forward_inputs), TRUE,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchModuleShards:gradient-divide-factor:
   *
   * What the sum of the gradients of all ranks is divided by; 0 for the number of ranks.
   *
   * Since: 0.1
   */
  { "gradient-divide-factor", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (Self, gradient_divide_factor), 0,
    .flags = GTORCH_FIELD_SETTING, .low = 0, .high = G_MAXDOUBLE },
  /**
   * GTorchModuleShards:replicas:
   *
   * The processes that have the same parts as this one.
   *
   * Since: 0.1
   */
  { "replicas", GTORCH_PROPERTY_OBJECT (GTorchProcessGroup, gtorch_process_group_get_type,
                                        gtorch_module_shards_get_replicas, NULL) },
  /**
   * GTorchModuleShards:is-offloaded:
   *
   * Whether the parts are in the memory of the CPU.
   *
   * Since: 0.1
   */
  { "is-offloaded", GTORCH_PROPERTY_BOOL (gtorch_module_shards_is_offloaded, NULL) },
  /**
   * GTorchModuleShards:n-elements:
   *
   * How many elements this rank has, with those that only fill up.
   *
   * Since: 0.1
   */
  { "n-elements", GTORCH_PROPERTY_INT64 (gtorch_module_shards_get_n_elements, NULL) },
};

GQuark
gtorch_shards_quark (void)
{
  return g_quark_from_static_string ("gtorch-module-shards");
}

static GQuark
ignored_quark (void)
{
  return g_quark_from_static_string ("gtorch-module-shards-ignored");
}

static void
shard_free (gpointer data)
{
  GTorchShard *shard = data;

  g_object_unref (shard->param);
  g_free (shard);
}

static void
place_free (gpointer data)
{
  GTorchShardPlace *place = data;

  g_free (place->name);
  g_free (place);
}

static void
gtorch_module_shards_finalize (GObject *object)
{
  GTorchModuleShards *self = GTORCH_MODULE_SHARDS (object);
  guint i;

  gtorch_shards_unlist (self);
  for (i = 0; i < self->shards->len; i++)
    {
      GTorchShard *shard = self->shards->pdata[i];

      if (g_object_get_qdata (G_OBJECT (shard->param), gtorch_shards_quark ()) == self)
        {
          g_object_set_qdata (G_OBJECT (shard->param), gtorch_shards_quark (), NULL);
          gtorch_leaf_set_part (gtorch_tensor_unwrap (shard->param), FALSE);
        }
    }
  for (i = 0; self->unsent != NULL && i < self->shards->len; i++)
    g_clear_object (&self->unsent[i]);
  g_free (self->unsent);
  g_clear_object (&self->unshared);
  g_clear_object (&self->piece);
  gtorch_shards_drop (self);
  gtorch_shards_order_clear (self);
  g_clear_object (&self->group);
  g_clear_object (&self->replicas);
  g_clear_object (&self->nearby);
  g_clear_object (&self->function);
  g_clear_pointer (&self->fulls, g_ptr_array_unref);
  g_ptr_array_unref (self->shards);
  g_ptr_array_unref (self->places);
  G_OBJECT_CLASS (gtorch_module_shards_parent_class)->finalize (object);
}

static void
gtorch_module_shards_class_init (GTorchModuleShardsClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_module_shards_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_module_shards_init (GTorchModuleShards *self)
{
  self->shards = g_ptr_array_new_with_free_func (shard_free);
  self->places = g_ptr_array_new_with_free_func (place_free);
  g_weak_ref_init (&self->next, NULL);
  g_weak_ref_init (&self->before, NULL);
}

/* --- calls of the module --- */

/* Puts tensors in the places of the parameters, or the parameters back. */
static void
put_members (GTorchModuleShards *self, GPtrArray *fulls)
{
  guint i;

  for (i = 0; i < self->places->len; i++)
    {
      const GTorchShardPlace *place = self->places->pdata[i];
      GTorchTensor *tensor = fulls != NULL
                                 ? fulls->pdata[place->shard]
                                 : ((GTorchShard *) self->shards->pdata[place->shard])->param;
      g_autoptr (GTorchTensor) former = NULL;
      GTorchMember *member;

      g_object_ref (tensor);
      gtorch_module_begin_change (place->module);
      member =
          gtorch_members_find (gtorch_module_get_private (place->module)->parameters, place->name);
      if (member != NULL)
        {
          former = member->tensor;
          member->tensor = g_steal_pointer (&tensor);
        }
      gtorch_module_end_change (place->module);
      g_clear_object (&tensor);
    }
}

/* Lets the module have whole parameters. */
static gboolean
open_whole (GTorchModuleShards *self, GError **error)
{
  const guint n = self->shards->len;
  g_autofree GTorchTensor **params = g_new (GTorchTensor *, n);
  GPtrArray *fulls;
  guint i;

  if (n == 0)
    return TRUE;
  for (i = 0; i < n; i++)
    params[i] = ((GTorchShard *) self->shards->pdata[i])->param;
  fulls = gtorch_function_apply (self->function, params, n, error);
  if (fulls == NULL)
    return FALSE;
  for (i = 0; i < n; i++)
    g_object_set_qdata_full (G_OBJECT (fulls->pdata[i]), gtorch_module_stands_for_quark (),
                             g_object_ref (params[i]), g_object_unref);
  g_clear_pointer (&self->fulls, g_ptr_array_unref);
  self->fulls = fulls;
  put_members (self, fulls);
  return TRUE;
}

static void
close_whole (GTorchModuleShards *self)
{
  put_members (self, NULL);
  g_clear_pointer (&self->fulls, g_ptr_array_unref);
}

static gboolean
gather (GTorchModuleShards *self, GError **error)
{
  if (!open_whole (self, error))
    return FALSE;
  if (!self->reshard_after_forward || !gtorch_is_grad_enabled () || self->shards->len == 0)
    return TRUE;
  self->guard = gtorch_shards_guard_new (self, error);
  if (self->guard != NULL)
    return TRUE;
  close_whole (self);
  return FALSE;
}

/* What is kept until the backward pass stays in memory for that only: without one the parts may change. */
static gboolean
drop (GTorchModuleShards *self, GError **error)
{
  gboolean is_done = TRUE;

  if (self->guard != NULL)
    {
      is_done = gtorch_shards_keep_piece (self, error);
      gtorch_saved_tensors_guard_end (self->guard);
      g_clear_pointer (&self->guard, gtorch_saved_tensors_guard_unref);
    }
  if (self->reshard_after_forward || (!self->is_open && !gtorch_is_grad_enabled ()))
    {
      if (!gtorch_shards_keep (self))
        gtorch_shards_drop (self);
      self->is_open = FALSE;
    }
  if (!self->is_open)
    close_whole (self);
  return is_done;
}

static GTorchTensor *
convert (GTorchTensor *tensor, GTorchDType dtype, GError **error)
{
  const guint own = gtorch_tensor_get_dtype (tensor);

  return dtype == GTORCH_DTYPE_NONE || own == dtype || gtorch_dtype_kind (own) != GTORCH_KIND_FLOAT
             ? g_object_ref (tensor)
             : gtorch_tensor_to_dtype (tensor, dtype, error);
}

static gboolean
begin (GTorchModuleShards *self, GError **error)
{
  g_auto (GTorchProfileScope) scope = gtorch_profile_scope_begin ("FSDP::pre_forward", self);

  if (self->depth == 0)
    {
      /* its own comes first, since it is needed first */
      if (!gtorch_shards_start (self, error))
        return FALSE;
      if (!gtorch_shards_enter (self, error) || !gather (self, error))
        {
          gtorch_shards_leave (self);
          return FALSE;
        }
      gtorch_shards_push (self);
    }
  else if (!gtorch_shards_check_current (self, error))
    return FALSE;
  self->depth++;
  return TRUE;
}

static gboolean
end (GTorchModuleShards *self, GError **error)
{
  g_auto (GTorchProfileScope) scope = gtorch_profile_scope_begin ("FSDP::post_forward", self);
  gboolean is_done = TRUE;

  if (self->depth > 0 && --self->depth == 0)
    {
      gtorch_shards_pop (self);
      is_done = drop (self, error);
      gtorch_shards_leave (self);
    }
  return is_done;
}

/* What is computed saves the parameters for the checkpoint, which keeps them for a short time only. The order
 * of calls is that of the first time. */
gboolean
gtorch_shards_begin_again (GTorchModuleShards *self, GError **error)
{
  if (self->depth == 0)
    {
      if (!open_whole (self, error))
        return FALSE;
      gtorch_shards_push (self);
    }
  self->depth++;
  return TRUE;
}

void
gtorch_shards_end_again (GTorchModuleShards *self)
{
  if (--self->depth > 0)
    return;
  gtorch_shards_pop (self);
  if (!gtorch_shards_keep (self) && self->reshard_after_forward && !self->is_open)
    gtorch_shards_drop (self);
  if (!self->is_open)
    close_whole (self);
}

static GPtrArray *
before_forward (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
                GError **error)
{
  GTorchModuleShards *self = data;
  g_autoptr (GPtrArray) converted = NULL;
  gsize i;

  if (self->param_dtype != GTORCH_DTYPE_NONE && self->cast_forward_inputs)
    {
      converted = g_ptr_array_new_with_free_func (g_object_unref);
      for (i = 0; i < n_inputs; i++)
        {
          GTorchTensor *one = convert (inputs[i], self->param_dtype, error);

          if (one == NULL)
            return NULL;
          g_ptr_array_add (converted, one);
        }
    }
  return begin (self, error) ? g_steal_pointer (&converted) : NULL;
}

static GTorchTensor *
after_forward (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
               gpointer data, GError **error)
{
  GTorchModuleShards *self = data;

  return !end (self, error) || output == NULL || self->output_dtype == GTORCH_DTYPE_NONE
             ? NULL
             : convert (output, self->output_dtype, error);
}

/* A module inside, called by itself, would compute with the parts of this rank. */
static GPtrArray *
before_inner (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
              GError **error)
{
  GTorchModuleShards *self = data;

  if (self->depth == 0 && !self->is_open)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("module_shards: %s was called outside of a call of the module whose parameters "
                    "were divided, and has only the part of this rank: call that module, make its "
                    "parameters whole by unshard (), or let a method of it do so "
                    "(register_fsdp_forward_method in Python)"),
                 G_OBJECT_TYPE_NAME (module));
  return NULL;
}

/* --- making them --- */

static GQuark
sharded_quark (void)
{
  return g_quark_from_static_string ("gtorch-module-shards-of-module");
}

typedef struct
{
  GTorchModuleShards *self;
  GHashTable *numbers;  /* GTorchTensor -> number + 1 */
  guint n_divided;      /* members that were divided before */
  GTorchDevice *device; /* of the first parameter; not owned */
  GError **error;
  gboolean failed;
} Collect;

static gboolean
has_place (GTorchModuleShards *self, GTorchModule *module, const gchar *name)
{
  guint i;

  for (i = 0; i < self->places->len; i++)
    {
      const GTorchShardPlace *place = self->places->pdata[i];

      if (place->module == module && g_str_equal (place->name, name))
        return TRUE;
    }
  return FALSE;
}

/* A parameter that was divided must have been so at this place: it is whole at no other. */
static void
count_divided (Collect *collect, GTorchModuleShards *owner, GTorchModule *module,
               const GTorchMember *member)
{
  collect->n_divided++;
  if (collect->failed || has_place (owner, module, member->name))
    return;
  collect->failed = TRUE;
  g_set_error (collect->error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("module_shards: “%s” of %s, of shape %s, is a parameter of a module inside, too, "
                  "which was divided by itself: modules that share parameters are divided "
                  "together"),
               member->name, G_OBJECT_TYPE_NAME (module),
               gtorch_impl_shape_str (gtorch_tensor_unwrap (member->tensor)));
}

static void
collect_module (GTorchModule *module, const gchar *path, gpointer data)
{
  Collect *collect = data;
  g_autoptr (GArray) members = gtorch_module_dup_members (module, FALSE);
  guint i;

  for (i = 0; i < members->len; i++)
    {
      const GTorchMember *member = &g_array_index (members, GTorchMember, i);
      GTorchModuleShards *owner = NULL;
      GTorchShardPlace *place;
      guint number;

      if (member->tensor != NULL && collect->device == NULL)
        collect->device = gtorch_tensor_get_device (member->tensor);
      if (member->tensor != NULL)
        owner = g_object_get_qdata (G_OBJECT (member->tensor), gtorch_shards_quark ());
      if (owner != NULL)
        count_divided (collect, owner, module, member);
      if (member->tensor == NULL || owner != NULL
          || g_object_get_qdata (G_OBJECT (member->tensor), ignored_quark ()) != NULL)
        continue;
      number = GPOINTER_TO_UINT (g_hash_table_lookup (collect->numbers, member->tensor));
      if (number == 0)
        {
          GTorchShard *shard = g_new0 (GTorchShard, 1);

          shard->param = g_object_ref (member->tensor);
          g_ptr_array_add (collect->self->shards, shard);
          number = collect->self->shards->len;
          g_hash_table_insert (collect->numbers, member->tensor, GUINT_TO_POINTER (number));
        }
      place = g_new (GTorchShardPlace, 1);
      *place = (GTorchShardPlace){ module, g_strdup (member->name), number - 1 };
      g_ptr_array_add (collect->self->places, place);
    }
}

static gboolean
refuse (const GTorchShard *shard, const gchar *why, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("module_shards: the parameter “%s”, of shape %s, %s"),
               gtorch_parameter_get_name (GTORCH_PARAMETER (shard->param)),
               gtorch_impl_shape_str (gtorch_tensor_unwrap (shard->param)), why);
  return FALSE;
}

static gboolean
measure (GTorchModuleShards *self, GError **error)
{
  const gint64 size = gtorch_process_group_get_size (self->group);
  const gint rank = gtorch_process_group_get_rank (self->group);
  guint i;

  for (i = 0; i < self->shards->len; i++)
    {
      GTorchShard *shard = self->shards->pdata[i];
      GTorchShard *model = self->shards->pdata[0];
      const GTorchImpl *impl = gtorch_tensor_unwrap (shard->param);

      if (gtorch_impl_is_uninitialized (impl))
        return refuse (shard, _ ("is lazy or released: call the module once before"), error);
      if (!gtorch_part_check_group ("module_shards", shard->param, self->group, error))
        return FALSE;
      if (impl->n_dims == 0)
        return refuse (shard, _ ("has no dimension that could be divided"), error);
      if (impl->dtype != gtorch_tensor_unwrap (model->param)->dtype
          || gtorch_tensor_get_device (shard->param) != gtorch_tensor_get_device (model->param))
        return refuse (shard,
                       _ ("is of another dtype or device than the first one: shard modules with "
                          "one"),
                       error);
      shard->n_dims = impl->n_dims;
      memcpy (shard->shape, impl->shape, impl->n_dims * sizeof (gint64));
      shard->per = (impl->shape[0] + size - 1) / size;
      shard->row = impl->shape[0] > 0 ? impl->numel / impl->shape[0] : 0;
      shard->first = MIN (rank * shard->per, impl->shape[0]);
      shard->n_rows = MIN (shard->per, impl->shape[0] - shard->first);
      shard->offset = self->numel;
      self->numel += shard->per * shard->row;
    }
  return TRUE;
}

static const gchar *
dtype_name (GTorchDType dtype)
{
  return dtype == GTORCH_DTYPE_NONE ? "that of the parameters" : gtorch_dtype_infos[dtype].name;
}

/* All ranks divide the same parameters, and exchange them in the same dtypes. Takes the failure, why this
 * rank cannot, or NULL. */
static gboolean
compare (GTorchModuleShards *self, GTorchModule *module, GTorchDevice *device, GError *failure,
         GError **error)
{
  g_autoptr (GPtrArray) params = g_ptr_array_new ();
  g_auto (GTorchGroupFacts) facts;
  guint i;

  gtorch_group_facts_init (&facts);
  facts.device = device;
  facts.failure = failure;
  if (failure == NULL && measure (self, &facts.failure))
    {
      for (i = 0; i < self->shards->len; i++)
        g_ptr_array_add (params, ((GTorchShard *) self->shards->pdata[i])->param);
      gtorch_group_facts_add_tensors (&facts, module, (GTorchTensor **) params->pdata, params->len);
      gtorch_group_facts_add (&facts, "param_dtype", "%s", dtype_name (self->param_dtype));
      gtorch_group_facts_add (&facts, "reduce_dtype", "%s", dtype_name (self->reduce_dtype));
      gtorch_group_facts_add_flag (&facts, "reshard_after_forward", self->reshard_after_forward);
    }
  return gtorch_group_facts_compare (&facts, self->group, "module_shards", error);
}

/* Makes the parts first, and sets them when nothing can fail any more. */
static gboolean
divide (GTorchModuleShards *self, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < self->shards->len; i++)
    {
      const GTorchShard *shard = self->shards->pdata[i];
      g_autoptr (GTorchTensor) rows =
          gtorch_tensor_narrow (shard->param, 0, shard->first, shard->n_rows, error);
      GTorchTensor *part = rows == NULL ? NULL : gtorch_tensor_clone (rows, error);

      if (part == NULL)
        return FALSE;
      g_ptr_array_add (parts, part);
    }
  for (i = 0; i < self->shards->len; i++)
    {
      GTorchShard *shard = self->shards->pdata[i];

      if (!gtorch_tensor_set_grad (shard->param, NULL, error)
          || !gtorch_tensor_set_data (shard->param, parts->pdata[i], error))
        return FALSE;
      g_object_set_qdata (G_OBJECT (shard->param), gtorch_shards_quark (), self);
      gtorch_leaf_set_part (gtorch_tensor_unwrap (shard->param), TRUE);
    }
  return TRUE;
}

static void
guard_inner (GTorchModuleShards *self, GTorchModule *module)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  guint i;

  for (i = 0; i < self->places->len; i++)
    {
      GTorchModule *inner = ((GTorchShardPlace *) self->places->pdata[i])->module;

      if (inner != module && g_hash_table_add (seen, inner))
        gtorch_module_register_forward_pre_hook_full (inner, TRUE, before_inner,
                                                      g_object_ref (self), g_object_unref);
    }
}

static gboolean
check_dtype (const gchar *what, GTorchDType dtype, GError **error)
{
  if (dtype == GTORCH_DTYPE_NONE
      || (dtype > 0 && dtype < GTORCH_N_DTYPES && gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("module_shards: %s is %s, which is not a dtype of floating-point numbers"), what,
               dtype > 0 && dtype < GTORCH_N_DTYPES ? gtorch_dtype_infos[dtype].name
                                                    : _ ("an unknown dtype"));
  return FALSE;
}

/**
 * gtorch_module_shards_new:
 * @module: a module, all of whose parameters are whole, or were sharded with a module inside
 * @group: the processes that have the parts
 * @reshard_after_forward: whether whole parameters are dropped after the forward pass, and gathered again by
 *   the backward pass: less memory, and half as much to send again
 * @param_dtype: the dtype in which parameters are gathered and the module computes, to which its inputs are
 *   converted; %GTORCH_DTYPE_NONE for that of the parameters
 * @reduce_dtype: the dtype in which gradients are sent; %GTORCH_DTYPE_NONE for that of the module's results
 * @output_dtype: the dtype of the module's result; %GTORCH_DTYPE_NONE leaves it
 * @error: return location for an error
 *
 * Divides the parameters of a module, and of those inside that were not divided yet, among the processes of a
 * group. All ranks call this, with the same parameters. The module has a reference to the new object.
 * Gradients are dropped.
 *
 * Modules inside cannot be called outside of a call of @module from then on: they would compute with the
 * parts of one rank. If all parameters were divided with modules inside, @module is merely the one in whose
 * calls the order of these is found.
 *
 * A parameter that is a part of a layer, by [func@parallelize_columns] or [func@parallelize_rows], is divided
 * once more, among the processes of another dimension of a mesh.
 *
 * Returns: (transfer full): a new object, or %NULL with @error set: %GTORCH_ERROR_INVALID if there is no
 *   parameter, @module was divided before, a parameter cannot be divided, or is a part among the same
 *   processes, %GTORCH_ERROR_DTYPE if a dtype is not one of floating-point
 *   numbers, %GTORCH_ERROR_SHAPE if the parameters of the ranks, or the dtypes, differ
 *
 * Since: 0.1
 */
GTorchModuleShards *
gtorch_module_shards_new (GTorchModule *module, GTorchProcessGroup *group,
                          gboolean reshard_after_forward, GTorchDType param_dtype,
                          GTorchDType reduce_dtype, GTorchDType output_dtype, GError **error)
{
  g_autoptr (GHashTable) numbers = g_hash_table_new (NULL, NULL);
  g_autoptr (GTorchModuleShards) self = NULL;
  GError *failure = NULL;
  Collect collect = { .numbers = numbers, .error = &failure };

  g_return_val_if_fail (GTORCH_IS_MODULE (module) && GTORCH_IS_PROCESS_GROUP (group), NULL);
  if (!check_dtype ("param_dtype", param_dtype, error)
      || !check_dtype ("reduce_dtype", reduce_dtype, error)
      || !check_dtype ("output_dtype", output_dtype, error))
    return NULL;
  if (gtorch_process_group_get_rank (group) < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("module_shards: this process has no rank in the group"));
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_MODULE_SHARDS, NULL);
  self->group = g_object_ref (group);
  self->reshard_after_forward = reshard_after_forward;
  self->param_dtype = param_dtype;
  self->reduce_dtype = reduce_dtype;
  self->output_dtype = output_dtype;
  self->reshard_after_backward = self->requires_gradient_sync = self->requires_all_reduce =
      self->cast_forward_inputs = TRUE;
  self->function = gtorch_shards_function_new (self);
  collect.self = self;
  gtorch_module_visit (module, TRUE, collect_module, &collect);
  if (failure == NULL && self->shards->len == 0
      && (collect.n_divided == 0
          || g_object_get_qdata (G_OBJECT (module), sharded_quark ()) != NULL))
    g_set_error (&failure, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("module_shards: the module has no parameters that are not divided already"));
  if (!compare (self, module, collect.device, failure, error) || !divide (self, error))
    return NULL;
  if (self->shards->len > 0)
    self->device = gtorch_tensor_get_device (((GTorchShard *) self->shards->pdata[0])->param);
  gtorch_shards_list (self);
  guard_inner (self, module);
  gtorch_sync_set_default (module, group, self);
  g_object_set_qdata (G_OBJECT (module), sharded_quark (), GINT_TO_POINTER (TRUE));
  gtorch_module_register_forward_pre_hook (module, before_forward, g_object_ref (self),
                                           g_object_unref);
  gtorch_module_register_forward_hook_full (module, FALSE, TRUE, after_forward, g_object_ref (self),
                                            g_object_unref);
  return g_steal_pointer (&self);
}

/**
 * gtorch_module_shards_ignore:
 * @param: a parameter
 *
 * Leaves a parameter whole: modules that are sharded afterwards do not divide it. Its gradient is that of
 * this rank, and the program exchanges it.
 *
 * Since: 0.1
 */
void
gtorch_module_shards_ignore (GTorchTensor *param)
{
  g_return_if_fail (GTORCH_IS_TENSOR (param));
  g_object_set_qdata (G_OBJECT (param), ignored_quark (), GINT_TO_POINTER (TRUE));
}

/**
 * gtorch_module_shards_begin_forward:
 * @self: parts of parameters
 * @error: return location for an error
 *
 * Makes the parameters whole, as a call of the module does by itself: for languages that call modules without
 * the library, and for programs that use the parameters. All ranks call this, and
 * [method@ModuleShards.end_forward] afterwards. What is computed in between can be differentiated.
 *
 * Calls within the call have the same whole parameters. They are refused once the parts were changed, as a
 * step of an optimizer does: they would compute with what the parameters were.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if parts were changed during a call
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_begin_forward (GTorchModuleShards *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), FALSE);
  if (self->group != NULL)
    return begin (self, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("module_shards: there are no parameters"));
  return FALSE;
}

/**
 * gtorch_module_shards_end_forward:
 * @self: parts of parameters
 *
 * Ends what [method@ModuleShards.begin_forward] has begun: the module has its parts again.
 *
 * Since: 0.1
 */
void
gtorch_module_shards_end_forward (GTorchModuleShards *self)
{
  g_return_if_fail (GTORCH_IS_MODULE_SHARDS (self));
  end (self, NULL);
}

/**
 * gtorch_module_shards_unshard:
 * @self: parts of parameters
 * @wait: whether the module has the whole parameters at once; %FALSE only begins to gather them
 * @error: return location for an error
 *
 * Makes the parameters whole until [method@ModuleShards.reshard], or until the end of the next call of the
 * module if [property@ModuleShards:reshard-after-forward] is set. That call then gathers nothing. All ranks
 * call this. Parameters that were changed are gathered again by the next call.
 *
 * ```c
 * if (gtorch_module_shards_unshard (shards, TRUE, &error))
 *   {
 *     norm = gtorch_tensor_norm (weight_of (module), 2, NULL, 0, FALSE, &error);
 *     gtorch_module_shards_reshard (shards, NULL);
 *   }
 * ```
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_unshard (GTorchModuleShards *self, gboolean wait, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), FALSE);
  if (self->group == NULL)
    return gtorch_module_shards_begin_forward (self, error);
  if (self->depth > 0 || (wait && self->is_open))
    return TRUE;
  if (!gtorch_shards_start (self, error) || (wait && !open_whole (self, error)))
    return FALSE;
  self->is_open = self->is_open || wait;
  return TRUE;
}

/**
 * gtorch_module_shards_reshard:
 * @self: parts of parameters
 * @error: return location for an error
 *
 * Drops the whole parameters: the module has its parts again.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID during a call of the module
 *
 * Since: 0.1
 */
gboolean
gtorch_module_shards_reshard (GTorchModuleShards *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), FALSE);
  if (self->depth > 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("module_shards: the parameters cannot be dropped during a call of the "
                      "module"));
      return FALSE;
    }
  if (self->is_open)
    close_whole (self);
  self->is_open = FALSE;
  gtorch_shards_drop (self);
  g_clear_object (&self->piece);
  return TRUE;
}

/**
 * gtorch_module_shards_get_group:
 * @self: parts of parameters
 *
 * Gets the processes that have the parts.
 *
 * Returns: (transfer none) (nullable): the group
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_module_shards_get_group (GTorchModuleShards *self)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), NULL);
  return self->group;
}

/**
 * gtorch_module_shards_get_n_elements:
 * @self: parts of parameters
 *
 * Gets how many elements this rank has, with those that only fill up.
 *
 * Returns: the number, the same on all ranks
 *
 * Since: 0.1
 */
gint64
gtorch_module_shards_get_n_elements (GTorchModuleShards *self)
{
  g_return_val_if_fail (GTORCH_IS_MODULE_SHARDS (self), 0);
  return self->numel;
}
