/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The loss of triplets by a distance that the program gives: a function, or a module. */

#include "config.h"

#include "nn/gtorch-triplet-margin.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-callback-private.h"
#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-layers.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-op-parts-private.h"

#define NAME "triplet_margin_with_distance_loss"

/* --- the function --- */

static gboolean
check (GTorchTensor *anchor, GTorchTensor *positive, GTorchTensor *negative, gdouble margin,
       GTorchReduction reduction, GError **error)
{
  GTorchImpl *a = gtorch_tensor_unwrap (anchor);
  GTorchImpl *p = gtorch_tensor_unwrap (positive);
  GTorchImpl *n = gtorch_tensor_unwrap (negative);

  if (!gtorch_loss_check_reduction (NAME, reduction, error))
    return FALSE;
  if (!(margin > 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: margin is %g, it must be above 0"), NAME, margin);
      return FALSE;
    }
  if (a->n_dims == p->n_dims && a->n_dims == n->n_dims)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: shapes %s, %s and %s must have equally many dimensions"), NAME,
               gtorch_impl_shape_str (a), gtorch_impl_shape_str (p), gtorch_impl_shape_str (n));
  return FALSE;
}

static GTorchImpl *
distance (GTorchFormula *f, GTorchTensor *x1, GTorchTensor *x2, GTorchDistanceFunc func,
          gpointer user_data)
{
  g_autoptr (GTorchTensor) found = NULL;
  GError *inner = NULL;

  if (f->failed)
    return NULL;
  if (func == NULL)
    return gtorch_formula_keep (f, gtorch_op_pairwise_distance (gtorch_tensor_unwrap (x1),
                                                                gtorch_tensor_unwrap (x2), 2, 1e-6,
                                                                FALSE, f->error));
  found = func (x1, x2, user_data, &inner);
  if (found != NULL && inner == NULL)
    gtorch_callback_check (NAME, N_ ("the function"), &found, GTORCH_TYPE_TENSOR, &inner);
  if (inner != NULL)
    {
      g_propagate_error (f->error, inner);
      g_clear_object (&found);
    }
  else if (found == NULL)
    g_set_error (f->error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("%s: the function gave nothing and set no error"), NAME);
  return gtorch_formula_keep (f, found != NULL ? gtorch_impl_ref (gtorch_tensor_unwrap (found))
                                               : NULL);
}

/**
 * gtorch_triplet_margin_with_distance_loss:
 * @anchor: examples
 * @positive: examples that are to be near
 * @negative: examples that are to be far; all three have equally many dimensions
 * @distance_function: (nullable) (scope call): the distance; %NULL means the Euclidean one, as
 *   [class@PairwiseDistance] computes it
 * @user_data: user data for @distance_function
 * @margin: how much farther the negative examples are to be
 * @swap: whether the distance of the positive from the negative example takes the place of that of the
 *   anchor if it is smaller
 * @reduction: how the losses of the examples are combined
 * @error: return location for an error
 *
 * Computes the distance of anchors from positive examples less that from negative ones plus a margin, at
 * least 0 (Balntas et al., Learning shallow convolutional feature descriptors with triplet losses, 2016).
 *
 * Returns: (transfer full): the loss; %NULL with %GTORCH_ERROR_INVALID if @margin is not above 0,
 *   %GTORCH_ERROR_SHAPE, or the error of @distance_function
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_triplet_margin_with_distance_loss (GTorchTensor *anchor, GTorchTensor *positive,
                                          GTorchTensor *negative,
                                          GTorchDistanceFunc distance_function, gpointer user_data,
                                          gdouble margin, gboolean swap, GTorchReduction reduction,
                                          GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *near, *far, *difference, *limit, *sum, *losses, *result;

  g_return_val_if_fail (GTORCH_IS_TENSOR (anchor), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (positive), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (negative), NULL);

  if (!check (anchor, positive, negative, margin, reduction, error))
    return NULL;
  near = distance (&f, anchor, positive, distance_function, user_data);
  far = distance (&f, anchor, negative, distance_function, user_data);
  if (swap)
    {
      GTorchImpl *other = distance (&f, positive, negative, distance_function, user_data);

      far = GTORCH_FORMULA_OP (&f, minimum, far, other);
    }
  limit = gtorch_formula_number (&f, margin);
  difference = GTORCH_FORMULA_OP (&f, sub, near, far, 1);
  sum = GTORCH_FORMULA_OP (&f, add, difference, limit, 1);
  losses = GTORCH_FORMULA_OP (&f, clamp, sum, 0, INFINITY);
  if (f.failed)
    return NULL;
  result = gtorch_loss_reduce (gtorch_formula_take (&f, losses), reduction, error);
  return result != NULL ? gtorch_tensor_wrap (result) : NULL;
}

/* --- the module --- */

/**
 * GTorchTripletMarginWithDistanceLoss:
 *
 * The loss of triplets that [func@triplet_margin_with_distance_loss] computes, by a distance that is a
 * module: [class@PairwiseDistance], [class@CosineSimilarity] or one of the program's that takes two tensors.
 * It is the child `distance_function`.
 *
 * Since: 0.1
 */

struct _GTorchTripletMarginWithDistanceLoss
{
  GTorchLoss parent_instance;

  GTorchModule *distance_module;
  gdouble margin;
  gboolean swap;
};

typedef GTorchTripletMarginWithDistanceLoss Self;

static void
get_distance (gpointer object, const GTorchField *field, GValue *value)
{
  if (gtorch_module_get_member_kind (object, "distance_function") == GTORCH_MEMBER_KIND_MODULE)
    g_value_take_object (value, gtorch_module_get_module (object, "distance_function", NULL));
}

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchTripletMarginWithDistanceLoss:distance-module:
   *
   * The distance, the child `distance_function`; %NULL means a [class@PairwiseDistance].
   *
   * Since: 0.1
   */
  { "distance-module", GTORCH_FIELD_OBJECT, GTORCH_FIELD (Self, distance_module), .type = gtorch_module_get_type, .get_value = get_distance, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchTripletMarginWithDistanceLoss:margin:
   *
   * How much farther the negative examples are to be.
   *
   * Since: 0.1
   */
  { "margin", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (Self, margin), .value = 1.0, .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchTripletMarginWithDistanceLoss:swap:
   *
   * Whether the distance of the positive from the negative example takes the place of that of the anchor if
   * it is smaller.
   *
   * Since: 0.1
   */
  { "swap", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, swap), .flags = GTORCH_FIELD_SETTING },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchTripletMarginWithDistanceLoss, gtorch_triplet_margin_with_distance_loss,
               GTORCH_TYPE_LOSS)

static gboolean
gtorch_triplet_margin_with_distance_loss_check (GTorchModule *module, GError **error)
{
  Self *self = (Self *) module;

  return gtorch_layer_check_range (module, "margin", self->margin, 0, INFINITY, TRUE, error);
}

static void
gtorch_triplet_margin_with_distance_loss_constructed (GObject *object)
{
  Self *self = GTORCH_TRIPLET_MARGIN_WITH_DISTANCE_LOSS (object);
  GTorchModule *module = GTORCH_MODULE (object);
  g_autoptr (GTorchModule) child = NULL;
  GError *error = NULL;

  G_OBJECT_CLASS (gtorch_triplet_margin_with_distance_loss_parent_class)->constructed (object);
  child = g_steal_pointer (&self->distance_module);
  if (child == NULL)
    child = GTORCH_MODULE (gtorch_pairwise_distance_new ());
  if (!gtorch_triplet_margin_with_distance_loss_check (module, &error)
      || !gtorch_module_register_module (module, "distance_function", child, &error))
    gtorch_module_set_error (module, error);
}

static void
gtorch_triplet_margin_with_distance_loss_finalize (GObject *object)
{
  gtorch_fields_clear (object, fields, G_N_ELEMENTS (fields));
  G_OBJECT_CLASS (gtorch_triplet_margin_with_distance_loss_parent_class)->finalize (object);
}

static GTorchTensor *
call_module (GTorchTensor *x1, GTorchTensor *x2, gpointer module, GError **error)
{
  GTorchTensor *inputs[] = { x1, x2 };

  return gtorch_module_forward_many (module, inputs, 2, error);
}

static GTorchTensor *
gtorch_triplet_margin_with_distance_loss_forward_many (GTorchModule *module, GTorchTensor **inputs,
                                                       gsize n_inputs, GError **error)
{
  Self *self = (Self *) module;
  g_autoptr (GTorchModule) child = NULL;

  if (!gtorch_layer_is (module, GTORCH_TYPE_TRIPLET_MARGIN_WITH_DISTANCE_LOSS, error)
      || !gtorch_layer_takes (module, n_inputs, 3, 3, "anchor, positive and negative", error)
      || !gtorch_module_is_usable (module, error))
    return NULL;
  child = gtorch_module_get_module (module, "distance_function", error);
  if (child == NULL)
    return NULL;
  return gtorch_triplet_margin_with_distance_loss (inputs[0], inputs[1], inputs[2], call_module,
                                                   child, self->margin, self->swap,
                                                   gtorch_loss_get_reduction (GTORCH_LOSS (module)),
                                                   error);
}

static void
gtorch_triplet_margin_with_distance_loss_class_init (
    GTorchTripletMarginWithDistanceLossClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gtorch_triplet_margin_with_distance_loss_constructed;
  object_class->finalize = gtorch_triplet_margin_with_distance_loss_finalize;
  GTORCH_MODULE_CLASS (klass)->check = gtorch_triplet_margin_with_distance_loss_check;
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_triplet_margin_with_distance_loss_forward_many;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_triplet_margin_with_distance_loss_init (GTorchTripletMarginWithDistanceLoss *self)
{
}

/**
 * gtorch_triplet_margin_with_distance_loss_new:
 * @distance_module: (nullable): the distance, a module that takes two tensors; %NULL means a
 *   [class@PairwiseDistance]
 * @error: return location for an error
 *
 * Creates a [class@TripletMarginWithDistanceLoss]. Other settings are properties: see `gtorch_module_new ()`.
 *
 * Returns: (transfer full): a new module, or %NULL with the error of @distance_module
 *
 * Since: 0.1
 */
GTorchTripletMarginWithDistanceLoss *
gtorch_triplet_margin_with_distance_loss_new (GTorchModule *distance_module, GError **error)
{
  g_return_val_if_fail (distance_module == NULL || GTORCH_IS_MODULE (distance_module), NULL);

  return gtorch_module_checked (g_object_new (GTORCH_TYPE_TRIPLET_MARGIN_WITH_DISTANCE_LOSS,
                                              "distance-module", distance_module, NULL),
                                error);
}

/**
 * gtorch_triplet_margin_with_distance_loss_forward:
 * @self: a layer
 * @anchor: examples
 * @positive: examples that are to be near
 * @negative: examples that are to be far
 * @error: return location for an error
 *
 * Computes the loss, as [method@Module.forward_many] does for a list of the inputs.
 *
 * Returns: (transfer full): the loss, or %NULL with the error of the distance
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_triplet_margin_with_distance_loss_forward (GTorchTripletMarginWithDistanceLoss *self,
                                                  GTorchTensor *anchor, GTorchTensor *positive,
                                                  GTorchTensor *negative, GError **error)
{
  GTorchTensor *inputs[] = { anchor, positive, negative };

  g_return_val_if_fail (GTORCH_IS_TRIPLET_MARGIN_WITH_DISTANCE_LOSS (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (anchor), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (positive), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (negative), NULL);

  return gtorch_module_call (GTORCH_MODULE (self), inputs, 3, error);
}
