/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pruning: a parameter is computed as what it was, times a mask of zeros and ones. What is pruned already is
 * not counted when an amount is pruned again. */

#include "config.h"

#include "nn/gtorch-prune.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "dispatch/gtorch-grad-mode.h"
#include "nn/gtorch-clip-grad.h"
#include "nn/gtorch-computed-private.h"
#include "nn/gtorch-module-private.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/* What is pruned: so much of what is left, by scores of which the least go, or at random without them. */
typedef struct
{
  gdouble amount;
  gboolean is_count;
  gboolean at_random;
  gboolean by_slices; /* along dim, by their norms */
  gint64 dim;
  gdouble n;
} Choice;

/* Returns how many of a number are pruned, or -1 with an error. */
static gint64
count_of (const Choice *choice, gint64 total, GError **error)
{
  const gdouble amount = choice->amount;

  if (choice->is_count ? !(amount >= 0 && amount == floor (amount)) : !(amount >= 0 && amount <= 1))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 choice->is_count
                     ? _ ("prune: amount must be a whole number of at least 0, it is %g")
                     : _ ("prune: amount must be from 0 to 1, it is %g"),
                 amount);
  else if (choice->is_count && amount > (gdouble) total)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("prune: amount is %g, and only %" PRId64 " can be pruned"), amount, total);
  else
    return (gint64) (choice->is_count ? amount : rint (amount * (gdouble) total));
  return -1;
}

/* Returns the positions in `kept` of the n least scores, which are drawn without `scores`. */
static GTorchImpl *
least (GTorchFormula *formula, GTorchImpl *kept, GTorchImpl *scores, gint64 n)
{
  GTorchImpl *values = NULL, *indices = NULL;

  if (formula->failed)
    return NULL;
  if (scores == NULL)
    scores = GTORCH_FORMULA_OP (formula, rand, kept->shape, 1, GTORCH_DTYPE_FLOAT32,
                                gtorch_impl_device (kept), NULL);
  if (formula->failed
      || !gtorch_op_topk (scores, n, 0, FALSE, FALSE, &values, &indices, formula->error))
    {
      formula->failed = TRUE;
      return NULL;
    }
  gtorch_formula_keep (formula, values);
  gtorch_formula_keep (formula, indices);
  return GTORCH_FORMULA_OP (formula, index_select, kept, 0, indices);
}

/* Returns the positions of the elements of a vector that are not 0. */
static GTorchImpl *
places (GTorchFormula *formula, GTorchImpl *vector)
{
  GTorchImpl *found = GTORCH_FORMULA_OP (formula, nonzero, vector);

  return GTORCH_FORMULA_OP (formula, flatten, found, 0, -1);
}

static GTorchImpl *
prune_elements (const Choice *choice, GTorchImpl *scores, GTorchImpl *mask, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *one = gtorch_formula_number (&f, 1), *zero = gtorch_formula_number (&f, 0);
  GTorchImpl *flat = OP (reshape, mask, (const gint64[]){ -1 }, 1);
  GTorchImpl *kept = OP (eq, flat, one), *weights = NULL, *gone;
  gint64 n;

  kept = places (&f, kept);
  if (f.failed || (n = count_of (choice, kept->shape[0], error)) < 0)
    return NULL;
  if (n == 0)
    return gtorch_impl_ref (mask);
  if (!choice->at_random)
    {
      weights = OP (reshape, scores, (const gint64[]){ -1 }, 1);
      weights = OP (index_select, weights, 0, kept);
      weights = OP (abs, weights);
    }
  gone = least (&f, kept, weights, n);
  flat = OP (index_fill, flat, 0, gone, zero);
  return gtorch_formula_take (&f, OP (reshape, flat, mask->shape, mask->n_dims));
}

static GTorchImpl *
prune_slices (const Choice *choice, GTorchImpl *scores, GTorchImpl *mask, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  gint64 dims[GTORCH_MAX_DIMS], dim = choice->dim, n;
  gsize n_dims = 0;
  GTorchImpl *zero = gtorch_formula_number (&f, 0), *kept, *norms = NULL, *gone;

  if (mask->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("prune: %s has no slices that could be pruned: it has fewer than 2 "
                      "dimensions"),
                   gtorch_impl_shape_str (mask));
      return NULL;
    }
  if (!gtorch_computed_check_dim ("prune", &dim, mask->n_dims, error))
    return NULL;
  for (guint i = 0; i < mask->n_dims; i++)
    if (i != (guint) dim)
      dims[n_dims++] = i;
  kept = OP (sum, mask, dims, n_dims, FALSE, GTORCH_DTYPE_NONE);
  kept = OP (ne, kept, zero);
  kept = places (&f, kept);
  if (f.failed || (n = count_of (choice, kept->shape[0], error)) < 0)
    return NULL;
  if (n == 0)
    return gtorch_impl_ref (mask);
  if (!choice->at_random)
    {
      norms = OP (index_select, scores, dim, kept);
      norms = OP (linalg_vector_norm, norms, choice->n, dims, n_dims, FALSE, GTORCH_DTYPE_NONE);
    }
  gone = least (&f, kept, norms, n);
  return gtorch_formula_take (&f, OP (index_fill, mask, dim, gone, zero));
}

/* --- members --- */

/* The parameter, what it was before it was pruned, and its mask. */
typedef struct
{
  GTorchTensor *weight;
  GTorchTensor *mask; /* NULL: not pruned yet */
} Pruned;

static void
pruned_clear (Pruned *self)
{
  g_clear_object (&self->weight);
  g_clear_object (&self->mask);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Pruned, pruned_clear)

static gboolean
look_up (GTorchModule *self, const gchar *name, Pruned *found, GError **error)
{
  g_autoptr (GTorchComputed) computed = gtorch_module_dup_computed (self, name);

  if (computed == NULL || computed->kind != GTORCH_COMPUTED_MASK)
    found->weight = gtorch_module_dup_computable (self, name, FALSE, error);
  else
    {
      found->weight = gtorch_module_dup_source (self, name, "_orig", error);
      if (found->weight != NULL)
        found->mask = gtorch_module_dup_source (self, name, "_mask", error);
      return found->mask != NULL;
    }
  return found->weight != NULL;
}

/* Returns the mask, or one of ones. */
static GTorchImpl *
dup_mask (const Pruned *pruned, GError **error)
{
  g_autoptr (GTorchImpl) plain = NULL;

  if (pruned->mask != NULL)
    return gtorch_impl_ref (gtorch_tensor_unwrap (pruned->mask));
  plain = gtorch_impl_alias (gtorch_tensor_unwrap (pruned->weight));
  return gtorch_op_ones_like (plain, GTORCH_DTYPE_NONE, error);
}

/* Takes ownership of the mask, which is NULL after an error. */
static gboolean
put_mask (GTorchModule *self, const gchar *name, const Pruned *pruned, GTorchImpl *mask,
          GError **error)
{
  g_autofree gchar *original = g_strconcat (name, "_orig", NULL);
  g_autofree gchar *mask_name = g_strconcat (name, "_mask", NULL);
  g_autoptr (GTorchImpl) owned = mask;
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GTorchComputed) computed = NULL;

  if (mask == NULL)
    return FALSE;
  /* the present mask stays that of results that are still to be differentiated */
  if (pruned->mask != NULL && mask == gtorch_tensor_unwrap (pruned->mask))
    return TRUE;
  tensor = gtorch_tensor_wrap (gtorch_impl_ref (mask));
  if (!gtorch_module_register_buffer (self, mask_name, tensor, TRUE, error))
    return FALSE;
  if (pruned->mask != NULL)
    return TRUE;
  if (!gtorch_module_register_parameter (self, original, GTORCH_PARAMETER (pruned->weight), error))
    return FALSE;
  computed = gtorch_computed_new (GTORCH_COMPUTED_MASK, 0, 0, 0);
  gtorch_module_put_computed (self, name, computed);
  return TRUE;
}

static gboolean
check_shape (const gchar *what, const GTorchImpl *given, const GTorchImpl *weight, GError **error)
{
  if (gtorch_impl_same_shape (given, weight))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("prune: the shape of %s is %s, it must be that of the parameter, %s"), what,
               gtorch_impl_shape_str (given), gtorch_impl_shape_str (weight));
  return FALSE;
}

static gboolean
prune (GTorchModule *self, const gchar *name, const Choice *choice, GTorchTensor *importance_scores,
       GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_auto (Pruned) pruned = { NULL, NULL };
  g_autoptr (GTorchImpl) mask = NULL;
  GTorchImpl *weight, *scores;

  if (!look_up (self, name, &pruned, error))
    return FALSE;
  weight = gtorch_tensor_unwrap (pruned.weight);
  scores = importance_scores != NULL ? gtorch_tensor_unwrap (importance_scores) : weight;
  if (!check_shape ("importance_scores", scores, weight, error))
    return FALSE;
  mask = dup_mask (&pruned, error);
  if (mask == NULL)
    return FALSE;
  if (importance_scores == NULL && pruned.mask != NULL)
    {
      GTorchImpl *factor = OP (to_dtype, mask, weight->dtype);

      scores = OP (mul, weight, factor);
      if (f.failed)
        return FALSE;
    }
  return put_mask (self, name, &pruned,
                   choice->by_slices ? prune_slices (choice, scores, mask, error)
                                     : prune_elements (choice, scores, mask, error),
                   error);
}

/**
 * gtorch_module_prune_identity:
 * @self: a module
 * @name: the name of a parameter of this module
 * @error: return location for an error
 *
 * Lets a parameter be computed as the parameter `weight_orig`, the same object as before, times the buffer
 * `weight_mask`, without pruning anything: the mask has ones, or what it had before.
 *
 * Source: PyTorch's `torch.nn.utils.prune`, as of the other functions of pruning.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_FOUND if there is no parameter of the name, or
 *   %GTORCH_ERROR_INVALID if it is computed otherwise or has no elements yet
 *
 * Since: 0.1
 */
gboolean
gtorch_module_prune_identity (GTorchModule *self, const gchar *name, GError **error)
{
  const Choice choice = { 0, FALSE, TRUE, FALSE, 0, 0 };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  return prune (self, name, &choice, NULL, error);
}

/**
 * gtorch_module_prune_random_unstructured:
 * @self: a module
 * @name: the name of a parameter of this module
 * @amount: the share of the elements, from 0 to 1, or their number
 * @is_count: whether @amount is a number of elements
 * @error: return location for an error
 *
 * Prunes random elements among those that are left: the mask gets zeros there. See
 * [method@Module.prune_identity].
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if @amount is out of its range, and with the errors of
 *   [method@Module.prune_identity]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_prune_random_unstructured (GTorchModule *self, const gchar *name, gdouble amount,
                                         gboolean is_count, GError **error)
{
  const Choice choice = { amount, is_count, TRUE, FALSE, 0, 0 };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  return prune (self, name, &choice, NULL, error);
}

/**
 * gtorch_module_prune_l1_unstructured:
 * @self: a module
 * @name: the name of a parameter of this module
 * @amount: the share of the elements, from 0 to 1, or their number
 * @is_count: whether @amount is a number of elements
 * @importance_scores: (nullable): a score for each element, whose absolute values are compared; %NULL: the
 *   elements
 * @error: return location for an error
 *
 * Prunes the elements of least absolute value among those that are left. See [method@Module.prune_identity].
 *
 * ```c
 * gtorch_module_prune_l1_unstructured (layer, "weight", 0.3, FALSE, NULL, &error);
 * ```
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if @amount is out of its range, %GTORCH_ERROR_SHAPE if
 *   @importance_scores have another shape, and with the errors of [method@Module.prune_identity]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_prune_l1_unstructured (GTorchModule *self, const gchar *name, gdouble amount,
                                     gboolean is_count, GTorchTensor *importance_scores,
                                     GError **error)
{
  const Choice choice = { amount, is_count, FALSE, FALSE, 0, 1 };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (importance_scores == NULL || GTORCH_IS_TENSOR (importance_scores), FALSE);
  return prune (self, name, &choice, importance_scores, error);
}

/**
 * gtorch_module_prune_random_structured:
 * @self: a module
 * @name: the name of a parameter of this module, with two dimensions or more
 * @amount: the share of the slices, from 0 to 1, or their number
 * @is_count: whether @amount is a number of slices
 * @dim: the dimension along which the slices are; negative ones count from the end
 * @error: return location for an error
 *
 * Prunes random slices, such as channels, among those that are left. See [method@Module.prune_identity].
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if @amount is out of its range, %GTORCH_ERROR_INDEX if
 *   there is no dimension @dim, %GTORCH_ERROR_SHAPE if there are fewer than two, and with the errors of
 *   [method@Module.prune_identity]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_prune_random_structured (GTorchModule *self, const gchar *name, gdouble amount,
                                       gboolean is_count, gint64 dim, GError **error)
{
  const Choice choice = { amount, is_count, TRUE, TRUE, dim, 0 };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  return prune (self, name, &choice, NULL, error);
}

/**
 * gtorch_module_prune_ln_structured:
 * @self: a module
 * @name: the name of a parameter of this module, with two dimensions or more
 * @amount: the share of the slices, from 0 to 1, or their number
 * @is_count: whether @amount is a number of slices
 * @n: the order of the norm, as in [func@linalg_vector_norm]
 * @dim: the dimension along which the slices are; negative ones count from the end
 * @importance_scores: (nullable): a score for each element, whose norms are compared; %NULL: the elements
 * @error: return location for an error
 *
 * Prunes the slices, such as channels, of least norm among those that are left. See
 * [method@Module.prune_identity].
 *
 * Returns: %TRUE; %FALSE with the errors of [method@Module.prune_random_structured], and with
 *   %GTORCH_ERROR_SHAPE if @importance_scores have another shape
 *
 * Since: 0.1
 */
gboolean
gtorch_module_prune_ln_structured (GTorchModule *self, const gchar *name, gdouble amount,
                                   gboolean is_count, gdouble n, gint64 dim,
                                   GTorchTensor *importance_scores, GError **error)
{
  const Choice choice = { amount, is_count, FALSE, TRUE, dim, n };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (importance_scores == NULL || GTORCH_IS_TENSOR (importance_scores), FALSE);
  return prune (self, name, &choice, importance_scores, error);
}

/* Multiplies the mask of the parameter by another one. */
static gboolean
multiply_mask (GTorchModule *self, const gchar *name, GTorchImpl *given, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_auto (Pruned) pruned = { NULL, NULL };
  GTorchImpl *mask, *factor;

  if (!look_up (self, name, &pruned, error)
      || !check_shape ("mask", given, gtorch_tensor_unwrap (pruned.weight), error))
    return FALSE;
  mask = gtorch_formula_keep (&f, dup_mask (&pruned, error));
  if (f.failed)
    return FALSE;
  factor = OP (to_dtype, given, mask->dtype);
  return put_mask (self, name, &pruned, gtorch_formula_take (&f, OP (mul, mask, factor)), error);
}

/**
 * gtorch_module_prune_custom_from_mask:
 * @self: a module
 * @name: the name of a parameter of this module
 * @mask: a mask of the shape of the parameter, with 0 or false for what is pruned and 1 or true for what is
 *   left
 * @error: return location for an error
 *
 * Prunes what a mask says, and what was pruned before. See [method@Module.prune_identity].
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_SHAPE if @mask has another shape, and with the errors of
 *   [method@Module.prune_identity]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_prune_custom_from_mask (GTorchModule *self, const gchar *name, GTorchTensor *mask,
                                      GError **error)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (mask), FALSE);
  return multiply_mask (self, name, gtorch_tensor_unwrap (mask), error);
}

/* --- several parameters --- */

/* Puts the scores and the masks of all parameters into two vectors. */
static gboolean
gather (GTorchModule **modules, gsize n, const gchar *const *names, GTorchTensor **given,
        GPtrArray *masks, GTorchTensor **scores, GTorchTensor **mask, GError **error)
{
  g_autoptr (GPtrArray) weights = g_ptr_array_new_with_free_func (g_object_unref);

  for (gsize i = 0; i < n; i++)
    {
      g_auto (Pruned) pruned = { NULL, NULL };
      GTorchImpl *one;

      if (!look_up (modules[i], names[i], &pruned, error)
          || (given != NULL
              && !check_shape ("importance_scores", gtorch_tensor_unwrap (given[i]),
                               gtorch_tensor_unwrap (pruned.weight), error)))
        return FALSE;
      one = dup_mask (&pruned, error);
      if (one == NULL)
        return FALSE;
      g_ptr_array_add (masks, gtorch_tensor_wrap (one));
      g_ptr_array_add (weights, g_object_ref (given != NULL ? given[i] : pruned.weight));
    }
  *scores = gtorch_parameters_to_vector ((GTorchTensor **) weights->pdata, weights->len, error);
  if (*scores == NULL)
    return FALSE;
  *mask = gtorch_parameters_to_vector ((GTorchTensor **) masks->pdata, masks->len, error);
  return *mask != NULL;
}

static gboolean
check_lists (GTorchModule **modules, gsize n_modules, const gchar *const *names,
             GTorchTensor **importance_scores, gsize n_importance_scores, GError **error)
{
  const gsize n_names = names != NULL ? g_strv_length ((gchar **) names) : 0;

  if (n_names != n_modules || (n_importance_scores != 0 && n_importance_scores != n_modules))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("prune: there are %zu modules, %zu names and %zu importance_scores"),
                   n_modules, n_names, n_importance_scores);
      return FALSE;
    }
  for (gsize i = 0; i < n_modules; i++)
    if (!GTORCH_IS_MODULE (modules[i])
        || (n_importance_scores != 0 && !GTORCH_IS_TENSOR (importance_scores[i])))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("prune: %zu is not a module, or has no tensor of scores"), i);
        return FALSE;
      }
  return TRUE;
}

/**
 * gtorch_prune_global_unstructured:
 * @modules: (array length=n_modules): modules
 * @n_modules: the length of @modules
 * @names: (array zero-terminated=1): the name of a parameter of each module
 * @at_random: whether random elements are pruned, and not those of least absolute value
 * @amount: the share of the elements of all parameters together, from 0 to 1, or their number
 * @is_count: whether @amount is a number of elements
 * @importance_scores: (array length=n_importance_scores) (nullable): scores for the elements of each
 *   parameter, whose absolute values are compared; %NULL: the elements themselves
 * @n_importance_scores: the length of @importance_scores, that of @modules or 0
 * @error: return location for an error
 *
 * Prunes elements of several parameters, which may be of different modules, by comparing all of them. See
 * [method@Module.prune_identity].
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if there are no modules, the lengths differ or @amount is
 *   out of its range, %GTORCH_ERROR_SHAPE if scores have another shape, and with the errors of
 *   [method@Module.prune_identity]
 *
 * Since: 0.1
 */
gboolean
gtorch_prune_global_unstructured (GTorchModule **modules, gsize n_modules,
                                  const gchar *const *names, gboolean at_random, gdouble amount,
                                  gboolean is_count, GTorchTensor **importance_scores,
                                  gsize n_importance_scores, GError **error)
{
  const Choice choice = { amount, is_count, at_random, FALSE, 0, 1 };
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GPtrArray) masks = NULL;
  g_autoptr (GTorchTensor) scores = NULL;
  g_autoptr (GTorchTensor) mask = NULL;
  g_autoptr (GTorchImpl) pruned = NULL;
  gint64 at = 0;

  g_return_val_if_fail (modules != NULL || n_modules == 0, FALSE);
  g_return_val_if_fail (importance_scores != NULL || n_importance_scores == 0, FALSE);
  if (!check_lists (modules, n_modules, names, importance_scores, n_importance_scores, error))
    return FALSE;
  guard = gtorch_no_grad ();
  masks = g_ptr_array_new_with_free_func (g_object_unref);
  if (!gather (modules, n_modules, names, n_importance_scores > 0 ? importance_scores : NULL, masks,
               &scores, &mask, error))
    return FALSE;
  pruned =
      prune_elements (&choice, gtorch_tensor_unwrap (scores), gtorch_tensor_unwrap (mask), error);
  if (pruned == NULL)
    return FALSE;
  for (gsize i = 0; i < n_modules; i++)
    {
      g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
      const GTorchImpl *like = gtorch_tensor_unwrap (masks->pdata[i]);
      GTorchImpl *part = OP (narrow, pruned, 0, at, like->numel);

      part = OP (reshape, part, like->shape, like->n_dims);
      if (f.failed || !multiply_mask (modules[i], names[i], part, error))
        return FALSE;
      at += like->numel;
    }
  return TRUE;
}

/* --- the others --- */

static void
find_mask (GTorchModule *module, const gchar *path, gpointer found)
{
  g_autoptr (GArray) members = gtorch_module_dup_members (module, FALSE);

  for (guint i = 0; i < members->len; i++)
    {
      const GTorchMember *member = &g_array_index (members, GTorchMember, i);

      if (member->computed != NULL && member->computed->kind == GTORCH_COMPUTED_MASK)
        *(gboolean *) found = TRUE;
    }
}

/**
 * gtorch_module_is_pruned:
 * @self: a module
 *
 * Tells whether a parameter of the module or of its descendants is pruned, be it by a mask of ones.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_module_is_pruned (GTorchModule *self)
{
  gboolean found = FALSE;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  gtorch_module_visit (self, TRUE, find_mask, &found);
  return found;
}

/**
 * gtorch_module_remove_pruning:
 * @self: a module
 * @name: the name of a parameter that is pruned
 * @error: return location for an error
 *
 * Makes the parameter, with zeros where it is pruned, one of the module again, instead of `weight_orig` and
 * `weight_mask`. It stays the same object.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_FOUND if the parameter is not pruned
 *
 * Since: 0.1
 */
gboolean
gtorch_module_remove_pruning (GTorchModule *self, const gchar *name, GError **error)
{
  static const gchar *const suffixes[] = { "_orig", "_mask", NULL };

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  return gtorch_module_settle_computed (self, name, GTORCH_COMPUTED_MASK, _ ("mask of pruning"),
                                        suffixes, error);
}
