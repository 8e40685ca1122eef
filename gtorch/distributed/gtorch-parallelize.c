/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Layers of which each rank has a part of the weight: they stay what they are, and hooks around their forward
 * exchange what the other ranks have computed. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-error.h"
#include "dispatch/gtorch-grad-mode.h"
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
} Part;

static void
part_unref (gpointer data)
{
  Part *part = data;

  if (!g_atomic_int_dec_and_test (&part->ref_count))
    return;
  g_object_unref (part->group);
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

static GPtrArray *
before_forward (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
                GError **error)
{
  Part *part = data;
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

/* How a parameter is divided. */
typedef struct
{
  GTorchProcessGroup *group;
  gint dim;
  gint64 first, n, length;
} Division;

static GQuark
division_quark (void)
{
  return g_quark_from_static_string ("gtorch-parallel-division");
}

static void
division_free (gpointer data)
{
  g_object_unref (((Division *) data)->group);
  g_free (data);
}

/* All ranks have as much as the first, the last fewer or none: as gtorch_parallel_split () divides. */
static Division *
division_new (GTorchTensor *param, gint dim, GTorchProcessGroup *group)
{
  const gint size = gtorch_process_group_get_size (group);
  Division *self = g_new0 (Division, 1);
  gint64 per;

  self->group = g_object_ref (group);
  self->dim = dim;
  self->length = gtorch_tensor_unwrap (param)->shape[dim];
  per = (self->length + size - 1) / size;
  self->first = MIN (per * gtorch_process_group_get_rank (group), self->length);
  self->n = MIN (per, self->length - self->first);
  return self;
}

/* Returns this rank's part of a parameter, a copy. */
static GTorchTensor *
take_part (GTorchTensor *param, const Division *division, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchTensor) part =
      gtorch_tensor_narrow (param, division->dim, division->first, division->n, error);

  return part == NULL ? NULL : gtorch_tensor_clone (part, error);
}

static gboolean
set_part (GTorchTensor *param, GTorchTensor *part, Division **division, GError **error)
{
  g_autoptr (GTorchTensor) whole = gtorch_tensor_contiguous (part, error);

  if (whole == NULL || !gtorch_tensor_set_grad (param, NULL, error)
      || !gtorch_tensor_set_data (param, whole, error))
    return FALSE;
  gtorch_spread_set_group (param, (*division)->group);
  g_object_set_qdata_full (G_OBJECT (param), division_quark (), *division, division_free);
  *division = NULL;
  return TRUE;
}

typedef Division OwnedDivision;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (OwnedDivision, division_free)

/* A rank without any row has nothing that indices of others could become. */
static gboolean
check_rows (const gchar *who, GTorchModule *module, const Division *division, GError **error)
{
  const gint size = gtorch_process_group_get_size (division->group);
  const gint64 per = (division->length + size - 1) / size;

  if (per * (size - 1) < division->length)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: %s has %" PRId64 " vectors, of which %d ranks have up to %" PRId64
                  " each: the last one has none"),
               who, G_OBJECT_TYPE_NAME (module), division->length, size, per);
  return FALSE;
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
  if (weight == NULL)
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
  part->length = of_weight->length;
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
 * @module: a [class@Linear] or a [class@Embedding], the same on all ranks
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
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_INVALID if the layer cannot be divided
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
 * @module: a [class@Linear] or a [class@Embedding], the same on all ranks
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
 *   %GTORCH_ERROR_SHAPE if a rank would have no vector of an Embedding
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

static const Division *
find_division (const gchar *who, GTorchTensor *param, GError **error)
{
  const Division *division = g_object_get_qdata (G_OBJECT (param), division_quark ());

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
 * Tells whether a tensor is this rank's part of a parameter of a layer that was divided.
 *
 * Returns: %TRUE if it is
 *
 * Since: 0.1
 */
gboolean
gtorch_parallelize_is_part (GTorchTensor *param)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (param), FALSE);
  return g_object_get_qdata (G_OBJECT (param), division_quark ()) != NULL;
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
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) plain = NULL, turned = NULL, whole = NULL, back = NULL;
  const Division *division;
  gint last;

  g_return_val_if_fail (GTORCH_IS_TENSOR (param), NULL);
  division = find_division ("parallelize_gather", param, error);
  if (division == NULL)
    return NULL;
  guard = gtorch_no_grad ();
  last = (gint) gtorch_tensor_unwrap (param)->n_dims - 1;
  plain = gtorch_tensor_detach (param, error);
  turned = plain == NULL ? NULL : gtorch_tensor_transpose (plain, division->dim, last, error);
  whole = turned == NULL
              ? NULL
              : gtorch_parallel_gather (division->group, turned, division->length, error);
  back = whole == NULL ? NULL : gtorch_tensor_transpose (whole, division->dim, last, error);
  return back == NULL ? NULL : gtorch_tensor_contiguous (back, error);
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
  const Division *division;
  const GTorchImpl *own, *impl;
  gboolean fits;
  guint i;

  g_return_val_if_fail (GTORCH_IS_TENSOR (param) && GTORCH_IS_TENSOR (full), FALSE);
  division = find_division ("parallelize_scatter", param, error);
  if (division == NULL)
    return FALSE;
  own = gtorch_tensor_unwrap (param);
  impl = gtorch_tensor_unwrap (full);
  fits = impl->n_dims == own->n_dims;
  for (i = 0; fits && i < impl->n_dims; i++)
    fits = impl->shape[i] == ((gint) i == division->dim ? division->length : own->shape[i]);
  if (!fits)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("parallelize_scatter: the tensor has the shape %s; this rank's part has the "
                      "shape %s, and the whole a dimension %d of %" PRId64),
                   gtorch_impl_shape_str (impl), gtorch_impl_shape_str (own), division->dim,
                   division->length);
      return FALSE;
    }
  guard = gtorch_no_grad ();
  part = gtorch_tensor_narrow (full, division->dim, division->first, division->n, error);
  to = part == NULL ? NULL : gtorch_tensor_detach (param, error);
  return to != NULL && gtorch_tensor_copy_inplace (to, part, FALSE, error) != NULL;
}
