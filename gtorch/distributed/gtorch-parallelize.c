/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Layers of which each rank has a part of the weight: they stay what they are, and hooks around their forward
 * exchange what the other ranks have computed. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-compare-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "distributed/gtorch-parallel.h"
#include "gtorch-tensor-ops.h"
#include "nn/gtorch-module-hooks.h"
#include "nn/gtorch-module-members.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-nn.h"
#include "tensor/gtorch-tensor-private.h"

typedef struct
{
  gint ref_count;
  GTorchProcessGroup *group;
  gboolean is_embedding, by_rows, exchanges; /* the input is to be split, or the output gathered */
  gint64 first, n, length; /* of the dimension that is divided, and of the whole */
  GTorchTensor *mask;      /* of a call: which indices are of these rows */
  GTorchTensor *params[2]; /* weight and bias; the second may be NULL */
} Part;

static GMutex lock;
static GPtrArray *parts; /* all Part, not owned */

static void
part_unref (gpointer data)
{
  Part *part = data;

  if (!g_atomic_int_dec_and_test (&part->ref_count))
    return;
  g_mutex_lock (&lock);
  g_ptr_array_remove_fast (parts, part);
  g_mutex_unlock (&lock);
  g_object_unref (part->group);
  g_clear_object (&part->params[0]);
  g_clear_object (&part->params[1]);
  g_clear_object (&part->mask);
  g_free (part);
}

/* A bias is added once, to the sum: the layer itself has none meanwhile. */
static GTorchTensor *
swap_bias (GTorchModule *module, GTorchTensor *bias)
{
  GTorchTensor *former = NULL;
  GTorchMember *member;

  gtorch_module_begin_change (module);
  member = gtorch_members_find (gtorch_module_get_private (module)->parameters, "bias");
  if (member != NULL)
    {
      former = member->tensor;
      member->tensor = bias;
    }
  gtorch_module_end_change (module);
  return former;
}

static GQuark
bias_quark (void)
{
  return g_quark_from_static_string ("gtorch-parallel-bias");
}

static GTorchTensor *
is_within (GTorchTensor *indices, gint64 first, gint64 n, GError **error)
{
  g_autoptr (GTorchTensor) from = gtorch_tensor_ge_scalar (indices, first, error);
  g_autoptr (GTorchTensor) to =
      from == NULL ? NULL : gtorch_tensor_lt_scalar (indices, first + n, error);

  return to == NULL ? NULL : gtorch_tensor_logical_and (from, to, error);
}

/* Indices of rows that other ranks have become 0, and what is looked up for them too. Those that are out of
 * range stay so: n is none. */
static GTorchTensor *
shift (Part *part, GTorchTensor *indices, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchTensor) mask = is_within (indices, part->first, part->n, error);
  g_autoptr (GTorchTensor) valid =
      mask == NULL ? NULL : is_within (indices, 0, part->length, error);
  g_autoptr (GTorchTensor) wrong = valid == NULL ? NULL : gtorch_tensor_logical_not (valid, error);
  g_autoptr (GTorchTensor) none =
      wrong == NULL ? NULL : gtorch_tensor_mul_int (wrong, part->n, error);
  g_autoptr (GTorchTensor) moved =
      none == NULL ? NULL : gtorch_tensor_sub_int (indices, part->first, 1, error);
  g_autoptr (GTorchTensor) own = moved == NULL ? NULL : gtorch_tensor_mul (moved, mask, error);

  if (own == NULL)
    return NULL;
  g_set_object (&part->mask, mask);
  return gtorch_tensor_add (own, none, 1, error);
}

static const gchar *
name_of (const Part *part)
{
  return part->by_rows ? "parallelize_rows" : "parallelize_columns";
}

static GPtrArray *
before_forward (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
                GError **error)
{
  Part *part = data;
  GTORCH_GROUP_CALL (name_of (part));
  g_autoptr (GTorchTensor) input = NULL;
  GPtrArray *changed;

  if (n_inputs != 1)
    return NULL; /* the layer refuses it */
  if (part->is_embedding)
    input = part->by_rows ? shift (part, inputs[0], error) : g_object_ref (inputs[0]);
  else if (!part->by_rows)
    input = gtorch_parallel_copy (part->group, inputs[0], error);
  else
    input = part->exchanges ? gtorch_parallel_split (part->group, inputs[0], error)
                            : g_object_ref (inputs[0]);
  if (input == NULL)
    return NULL;
  if (part->by_rows && !part->is_embedding)
    g_object_set_qdata_full (G_OBJECT (module), bias_quark (), swap_bias (module, NULL),
                             g_object_unref);
  changed = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (changed, g_steal_pointer (&input));
  return changed;
}

static GTorchTensor *
mask_output (Part *part, GTorchTensor *output, GError **error)
{
  g_autoptr (GTorchTensor) mask = g_steal_pointer (&part->mask);
  g_autoptr (GTorchTensor) column = gtorch_tensor_unsqueeze (mask, -1, error);

  return column == NULL ? NULL : gtorch_tensor_mul (output, column, error);
}

static GTorchTensor *
after_forward (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
               gpointer data, GError **error)
{
  Part *part = data;
  GTORCH_GROUP_CALL (name_of (part));
  g_autoptr (GTorchTensor) bias = NULL, masked = NULL, total = NULL;

  if (part->by_rows && !part->is_embedding)
    {
      bias = g_object_steal_qdata (G_OBJECT (module), bias_quark ());
      if (bias != NULL)
        swap_bias (module, g_object_ref (bias));
    }
  if (output == NULL)
    return NULL;
  if (!part->by_rows)
    return part->exchanges ? gtorch_parallel_gather (part->group, output, part->length, error)
                           : NULL;
  masked = part->is_embedding ? mask_output (part, output, error) : g_object_ref (output);
  total = masked == NULL ? NULL : gtorch_parallel_sum (part->group, masked, error);
  return total == NULL || bias == NULL ? g_steal_pointer (&total)
                                       : gtorch_tensor_add (total, bias, 1, error);
}

/* --- dividing --- */

static gboolean
refuse (const gchar *who, GTorchModule *module, const gchar *why, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %s %s"), who,
               G_OBJECT_TYPE_NAME (module), why);
  return FALSE;
}

static gboolean
check_module (const gchar *who, GTorchModule *module, GTorchProcessGroup *group, gboolean by_rows,
              GError **error)
{
  g_autoptr (GTorchTensor) weight = NULL;
  gint64 padding = 0;
  gdouble norm = GTORCH_NONE_DOUBLE;

  if (gtorch_process_group_get_rank (group) < 0)
    return refuse (who, module, _ ("cannot be divided: this process has no rank in the group"),
                   error);
  if (!GTORCH_IS_LINEAR (module) && !GTORCH_IS_EMBEDDING (module))
    return refuse (who, module, _ ("is neither a Linear nor an Embedding, which can be divided"),
                   error);
  if (gtorch_module_is_computed (module, "weight")
      || g_object_get_data (G_OBJECT (module), "gtorch-parallel") != NULL)
    return refuse (who, module, _ ("has a weight that is computed, or divided already"), error);
  weight = (GTorchTensor *) gtorch_module_get_parameter (module, "weight", NULL);
  if (weight != NULL && gtorch_module_shards_find (weight) != NULL)
    return refuse (who, module,
                   _ ("has a weight of which this rank has a part already: layers are divided "
                      "before modules are (fully_shard)"),
                   error);
  if (gtorch_module_has_uninitialized_params (module))
    return refuse (who, module, _ ("is lazy: call it once before"), error);
  if (!GTORCH_IS_EMBEDDING (module))
    return TRUE;
  g_object_get (module, "padding-idx", &padding, "max-norm", &norm, NULL);
  if ((by_rows && padding != GTORCH_NONE) || norm != GTORCH_NONE_DOUBLE)
    return refuse (who, module,
                   _ ("has a padding_idx, by rows, or a max_norm: these need all rows"), error);
  return TRUE;
}

static GQuark
division_quark (void)
{
  return g_quark_from_static_string ("gtorch-parallel-division");
}

static void
division_clear (gpointer data)
{
  g_object_unref (((GTorchDivision *) data)->group);
}

static void
division_unref (gpointer data)
{
  g_atomic_rc_box_release_full (data, division_clear);
}

/* All ranks have as much as the first, the last fewer or none: as gtorch_parallel_split () divides. */
static GTorchDivision *
division_new (GTorchTensor *param, gint dim, GTorchProcessGroup *group)
{
  const gint size = gtorch_process_group_get_size (group);
  const GTorchImpl *impl = gtorch_tensor_unwrap (param);
  const gint64 length = impl->shape[dim], per = (length + size - 1) / size;
  GTorchDivision *self = g_atomic_rc_box_new0 (GTorchDivision);

  self->group = g_object_ref (group);
  self->dim = dim;
  self->n_dims = impl->n_dims;
  memcpy (self->shape, impl->shape, impl->n_dims * sizeof (gint64));
  self->first = MIN (per * gtorch_process_group_get_rank (group), length);
  self->n = MIN (per, length - self->first);
  return self;
}

/* Returns this rank's part of a parameter, a copy. */
static GTorchTensor *
take_part (GTorchTensor *param, const GTorchDivision *division, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchTensor) part =
      gtorch_tensor_narrow (param, division->dim, division->first, division->n, error);

  return part == NULL ? NULL : gtorch_tensor_clone (part, error);
}

static gboolean
set_part (GTorchTensor *param, GTorchTensor *part, GTorchDivision **division, GError **error)
{
  g_autoptr (GTorchTensor) whole = gtorch_tensor_contiguous (part, error);

  if (whole == NULL || !gtorch_tensor_set_grad (param, NULL, error)
      || !gtorch_tensor_set_data (param, whole, error))
    return FALSE;
  g_object_set_qdata_full (G_OBJECT (param), division_quark (), *division, division_unref);
  *division = NULL;
  return TRUE;
}

typedef GTorchDivision OwnedDivision;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OwnedDivision, division_unref)

/* A rank without any row has nothing that indices of others could become. */
static gboolean
check_rows (const gchar *who, GTorchModule *module, const GTorchDivision *division, GError **error)
{
  const gint size = gtorch_process_group_get_size (division->group);
  const gint64 length = division->shape[division->dim], per = (length + size - 1) / size;

  if (per * (size - 1) < length)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: %s has %" PRId64 " vectors, of which %d ranks have up to %" PRId64
                  " each: the last one has none"),
               who, G_OBJECT_TYPE_NAME (module), length, size, per);
  return FALSE;
}

/* All ranks divide the same layer in the same way. */
static gboolean
compare (const gchar *who, GTorchModule *module, GTorchTensor *weight, GTorchProcessGroup *group,
         gboolean by_rows, gboolean exchanges, GError **error)
{
  g_autoptr (GTorchTensor) bias =
      (GTorchTensor *) gtorch_module_get_parameter (module, "bias", NULL);
  GTorchTensor *tensors[] = { weight, bias };
  g_auto (GTorchGroupFacts) facts;

  gtorch_group_facts_init (&facts);
  gtorch_group_facts_add (&facts, "the layer", "%s", G_OBJECT_TYPE_NAME (module));
  gtorch_group_facts_add_tensors (&facts, module, tensors, bias != NULL ? 2 : 1);
  gtorch_group_facts_add (&facts, by_rows ? "split_input" : "gather_output", "%s",
                          exchanges ? "true" : "false");
  return gtorch_group_facts_compare (&facts, group, who, error);
}

static gboolean
parallelize (const gchar *who, GTorchModule *module, GTorchProcessGroup *group, gboolean by_rows,
             gboolean exchanges, GError **error)
{
  const gboolean is_embedding = GTORCH_IS_EMBEDDING (module);
  g_autoptr (GTorchTensor) weight = NULL, bias = NULL, weight_part = NULL, bias_part = NULL;
  g_autoptr (OwnedDivision) of_weight = NULL, of_bias = NULL;
  Part *part;

  if (!check_module (who, module, group, by_rows, error))
    return FALSE;
  weight = (GTorchTensor *) gtorch_module_get_parameter (module, "weight", error);
  if (weight == NULL || !compare (who, module, weight, group, by_rows, exchanges, error))
    return FALSE;
  /* the weight of a Linear has outputs as rows: what PyTorch calls columns, since it is transposed */
  of_weight = division_new (weight, by_rows != is_embedding ? 1 : 0, group);
  if (is_embedding && by_rows && !check_rows (who, module, of_weight, error))
    return FALSE;
  weight_part = take_part (weight, of_weight, error);
  if (weight_part == NULL)
    return FALSE;
  if (!is_embedding && !by_rows)
    bias = (GTorchTensor *) gtorch_module_get_parameter (module, "bias", NULL);
  of_bias = bias == NULL ? NULL : division_new (bias, 0, group);
  if (bias != NULL && (bias_part = take_part (bias, of_bias, error)) == NULL)
    return FALSE;
  part = g_new0 (Part, 1);
  part->ref_count = 2;
  part->group = g_object_ref (group);
  part->is_embedding = is_embedding;
  part->by_rows = by_rows;
  part->exchanges = exchanges;
  part->n = of_weight->n;
  part->first = of_weight->first;
  part->length = of_weight->shape[of_weight->dim];
  part->params[0] = g_object_ref (weight);
  part->params[1] = bias == NULL ? NULL : g_object_ref (bias);
  g_mutex_lock (&lock);
  if (parts == NULL)
    parts = g_ptr_array_new ();
  g_ptr_array_add (parts, part);
  g_mutex_unlock (&lock);
  if (!set_part (weight, weight_part, &of_weight, error)
      || (bias != NULL && !set_part (bias, bias_part, &of_bias, error)))
    {
      part->ref_count = 1;
      part_unref (part);
      return FALSE;
    }
  g_object_set_data (G_OBJECT (module), "gtorch-parallel", part);
  gtorch_module_register_forward_pre_hook (module, before_forward, part, part_unref);
  gtorch_module_register_forward_hook_full (module, FALSE, TRUE, after_forward, part, part_unref);
  return TRUE;
}

/**
 * gtorch_parallelize_columns:
 * @module: a [class@Linear] or a [class@Embedding] with the same parameters on all ranks: their shapes are
 *   compared, their values are not
 * @group: processes
 * @gather_output: whether the results are joined on all ranks; without it each has its part of the last
 *   dimension, which a layer that is divided by [func@parallelize_rows] takes
 * @error: return location for an error
 *
 * Divides a layer along what it gives: each rank computes a part of the last dimension of the result, and has
 * the part of weight and bias that it needs. All ranks call this, and call the layer with the same input.
 * Gradients are those of the whole layer. Optimizers are made afterwards.
 *
 * If the size is not a multiple of the number of ranks, the last ranks have fewer elements than the others,
 * or none.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if the layer cannot be divided,
 *   %GTORCH_ERROR_SHAPE if the layers of the ranks differ
 *
 * Since: 0.1
 */
gboolean
gtorch_parallelize_columns (GTorchModule *module, GTorchProcessGroup *group, gboolean gather_output,
                            GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (module) && GTORCH_IS_PROCESS_GROUP (group), FALSE);
  return parallelize ("parallelize_columns", module, group, FALSE, gather_output, error);
}

/**
 * gtorch_parallelize_rows:
 * @module: a [class@Linear] or a [class@Embedding] with the same parameters on all ranks: their shapes are
 *   compared, their values are not
 * @group: processes
 * @split_input: whether the input of a Linear is the same on all ranks; without it each has its part of the
 *   last dimension, as a layer that is divided by [func@parallelize_columns] gives it
 * @error: return location for an error
 *
 * Divides a layer along what it takes: each rank has the part of the weight for a part of the inputs, or
 * some of the vectors of an Embedding, whose input is always the same on all ranks. The results are added
 * up. All ranks call this, and call the layer. Gradients are those of the whole layer. Optimizers are made
 * afterwards.
 *
 * If the size is not a multiple of the number of ranks, the last ranks have fewer elements than the others,
 * or none.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if the layer cannot be divided,
 *   %GTORCH_ERROR_SHAPE if a rank would have no vector of an Embedding, or the layers of the ranks differ
 *
 * Since: 0.1
 */
gboolean
gtorch_parallelize_rows (GTorchModule *module, GTorchProcessGroup *group, gboolean split_input,
                         GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (module) && GTORCH_IS_PROCESS_GROUP (group), FALSE);
  return parallelize ("parallelize_rows", module, group, TRUE, split_input, error);
}

/* --- states --- */

typedef gboolean (*IsFunc) (GTorchTensor *tensor, GTorchTensor *param);

static gboolean
is_grad (GTorchTensor *tensor, GTorchTensor *param)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (param);

  return grad != NULL && gtorch_shards_is_same (tensor, grad);
}

/* Looks for the parameter that a tensor belongs to. */
static GTorchTensor *
search (GTorchTensor *tensor, IsFunc is)
{
  GTorchTensor *found = NULL;
  guint i, k;

  g_mutex_lock (&lock);
  for (i = 0; parts != NULL && found == NULL && i < parts->len; i++)
    for (k = 0; k < 2; k++)
      {
        GTorchTensor *param = ((Part *) parts->pdata[i])->params[k];

        if (param != NULL && is (tensor, param))
          found = param;
      }
  g_mutex_unlock (&lock);
  return found;
}

const GTorchDivision *
gtorch_division_find (GTorchTensor *tensor)
{
  const GTorchDivision *division = g_object_get_qdata (G_OBJECT (tensor), division_quark ());
  GTorchTensor *param = NULL;

  if (division == NULL && !GTORCH_IS_PARAMETER (tensor))
    param = search (tensor, gtorch_shards_is_same);
  return param == NULL ? division : g_object_get_qdata (G_OBJECT (param), division_quark ());
}

GTorchTensor *
gtorch_division_of_grad (GTorchTensor *grad)
{
  return search (grad, is_grad);
}

void
gtorch_division_share (GTorchTensor *tensor, GTorchTensor *param)
{
  GTorchDivision *division = (GTorchDivision *) gtorch_division_find (param);

  if (division != NULL && tensor != param)
    g_object_set_qdata_full (G_OBJECT (tensor), division_quark (),
                             g_atomic_rc_box_acquire (division), division_unref);
}

static const GTorchDivision *
find_division (const gchar *who, GTorchTensor *param, GError **error)
{
  const GTorchDivision *division = gtorch_division_find (param);

  if (division == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the tensor of shape %s is not a parameter of a layer that was divided"),
                 who, gtorch_impl_shape_str (gtorch_tensor_unwrap (param)));
  return division;
}

/**
 * gtorch_parallelize_is_part:
 * @param: a tensor
 *
 * Tells whether a tensor is this rank's part of a parameter of a layer that was divided, or of a state that
 * an optimizer has for one. A tensor that shares its elements with the parameter, as one of a state dict
 * does, is a part as well; a copy is not, unless it was given to [func@parallelize_adopt].
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_parallelize_is_part (GTorchTensor *param)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (param), FALSE);
  return gtorch_division_find (param) != NULL;
}

/**
 * gtorch_parallelize_gather:
 * @param: a parameter of a layer that was divided by [func@parallelize_columns] or [func@parallelize_rows]
 * @error: return location for an error
 *
 * Collects the parts of a parameter, for files and for comparisons. All ranks of the group call this.
 *
 * Returns: (transfer full): a new tensor with the whole parameter, or %NULL with @error set:
 *   %GTORCH_ERROR_INVALID if @param is not divided
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_parallelize_gather (GTorchTensor *param, GError **error)
{
  GTORCH_GROUP_CALL ("parallelize_gather");
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) plain = NULL, turned = NULL, whole = NULL, back = NULL;
  GTorchModuleShards *shards;
  const GTorchDivision *division;
  gint last;

  g_return_val_if_fail (GTORCH_IS_TENSOR (param), NULL);
  division = find_division ("parallelize_gather", param, error);
  if (division == NULL)
    return NULL;
  guard = gtorch_no_grad ();
  last = (gint) gtorch_tensor_unwrap (param)->n_dims - 1;
  shards = gtorch_module_shards_find (param);
  plain = shards != NULL ? gtorch_module_shards_gather (shards, param, error)
                         : gtorch_tensor_detach (param, error);
  turned = plain == NULL ? NULL : gtorch_tensor_transpose (plain, division->dim, last, error);
  whole = turned == NULL ? NULL
                         : gtorch_parallel_gather (division->group, turned,
                                                   division->shape[division->dim], error);
  back = whole == NULL ? NULL : gtorch_tensor_transpose (whole, division->dim, last, error);
  return back == NULL ? NULL : gtorch_tensor_contiguous (back, error);
}

/**
 * gtorch_parallelize_adopt:
 * @tensor: a tensor of the shape of this rank's part of @param, such as a copy of it
 * @param: a parameter of a layer that was divided
 * @error: return location for an error
 *
 * Says that a tensor is a part of a whole one, divided as a parameter is: [func@parallelize_gather] and
 * [func@parallelize_scatter] take it, and [func@safetensors_save_index] writes the parts of all ranks as one
 * tensor.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if @param is not divided,
 *   %GTORCH_ERROR_SHAPE if @tensor has another shape
 *
 * Since: 0.1
 */
gboolean
gtorch_parallelize_adopt (GTorchTensor *tensor, GTorchTensor *param, GError **error)
{
  const GTorchImpl *one, *other;
  GTorchModuleShards *shards;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor) && GTORCH_IS_TENSOR (param), FALSE);
  if (find_division ("parallelize_adopt", param, error) == NULL)
    return FALSE;
  one = gtorch_tensor_unwrap (tensor);
  other = gtorch_tensor_unwrap (param);
  if (!gtorch_same_shape (one->shape, one->n_dims, other->shape, other->n_dims))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("parallelize_adopt: the tensor has the shape %s, and this rank's part of the "
                      "parameter another one, %s"),
                   gtorch_impl_shape_str (one), gtorch_impl_shape_str (other));
      return FALSE;
    }
  gtorch_division_share (tensor, param);
  shards = gtorch_module_shards_find (param);
  return shards == NULL || gtorch_module_shards_adopt (shards, tensor, param, error);
}

/**
 * gtorch_parallelize_scatter:
 * @param: a parameter of a layer that was divided
 * @full: the whole parameter, of any dtype
 * @error: return location for an error
 *
 * Sets this rank's part of a parameter. The other ranks do so themselves.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if @param is not divided,
 *   %GTORCH_ERROR_SHAPE if @full has another shape
 *
 * Since: 0.1
 */
gboolean
gtorch_parallelize_scatter (GTorchTensor *param, GTorchTensor *full, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) part = NULL, to = NULL;
  const GTorchDivision *division;
  GTorchModuleShards *shards;
  const GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (param) && GTORCH_IS_TENSOR (full), FALSE);
  division = find_division ("parallelize_scatter", param, error);
  if (division == NULL)
    return FALSE;
  impl = gtorch_tensor_unwrap (full);
  if (!gtorch_same_shape (impl->shape, impl->n_dims, division->shape, division->n_dims))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("parallelize_scatter: the tensor has the shape %s, and the whole parameter "
                      "another one, %s"),
                   gtorch_impl_shape_str (impl),
                   gtorch_shape_str (division->shape, division->n_dims));
      return FALSE;
    }
  guard = gtorch_no_grad ();
  part = gtorch_tensor_narrow (full, division->dim, division->first, division->n, error);
  shards = gtorch_module_shards_find (param);
  if (shards != NULL)
    return part != NULL && gtorch_module_shards_scatter (shards, param, part, error);
  to = part == NULL ? NULL : gtorch_tensor_detach (param, error);
  return to != NULL && gtorch_tensor_copy_inplace (to, part, FALSE, error) != NULL;
}
