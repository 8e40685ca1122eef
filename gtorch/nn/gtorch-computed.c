/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Members that are computed. The member keeps its place among those of the module, where layers look for it,
 * without a tensor: no list of parameters has it, and no state. What it is computed from are other members of
 * the module, or of its child "parametrizations", which are found by their names: they are moved, copied and
 * loaded like all others. */

#include "config.h"

#include "nn/gtorch-computed-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "dispatch/gtorch-grad-mode.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-parametrization-list.h"
#include "nn/gtorch-parametrize-private.h"
#include "nn/gtorch-stand-ins-private.h"
#include "tensor/gtorch-scope-private.h"
#include "tensor/gtorch-uninitialized-private.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

GTorchComputed *
gtorch_computed_new (GTorchComputedKind kind, gint64 dim, gint64 n_power_iterations, gdouble eps)
{
  GTorchComputed *self = g_new0 (GTorchComputed, 1);

  self->ref_count = 1;
  self->kind = kind;
  self->dim = dim;
  self->n_power_iterations = n_power_iterations;
  self->eps = eps;
  return self;
}

GTorchComputed *
gtorch_computed_ref (GTorchComputed *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
gtorch_computed_unref (GTorchComputed *self)
{
  if (g_atomic_int_dec_and_test (&self->ref_count))
    g_free (self);
}

GTorchTensor *
gtorch_module_dup_source (GTorchModule *self, const gchar *name, const gchar *suffix,
                          GError **error)
{
  g_autofree gchar *path = g_strconcat (name, suffix, NULL);
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  const GTorchMember *member;
  GTorchTensor *tensor = NULL;

  gtorch_module_lock (self);
  member = gtorch_members_find (priv->parameters, path);
  if (member == NULL)
    member = gtorch_members_find (priv->buffers, path);
  if (member != NULL && member->tensor != NULL)
    tensor = g_object_ref (gtorch_stand_in (member->tensor));
  gtorch_module_unlock (self);
  if (tensor == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                 _ ("%s: '%s', which '%s' is computed from, is missing"),
                 gtorch_module_type_name (self), path, gtorch_name_str (name));
  return tensor;
}

static GTorchImpl *
run_weight_norm (const GTorchComputed *self, GTorchModule *module, const gchar *name,
                 GError **error)
{
  g_autoptr (GTorchTensor) g = gtorch_module_dup_source (module, name, "_g", error);
  g_autoptr (GTorchTensor) v =
      g != NULL ? gtorch_module_dup_source (module, name, "_v", error) : NULL;

  if (v == NULL)
    return NULL;
  return gtorch_weight_norm_compute (gtorch_tensor_unwrap (g), gtorch_tensor_unwrap (v), self->dim,
                                     error);
}

static GTorchImpl *
run_spectral_norm (const GTorchComputed *self, GTorchModule *module, const gchar *name,
                   GError **error)
{
  g_autoptr (GTorchTensor) weight = gtorch_module_dup_source (module, name, "_orig", error);
  g_autoptr (GTorchTensor) u =
      weight != NULL ? gtorch_module_dup_source (module, name, "_u", error) : NULL;
  g_autoptr (GTorchTensor) v =
      u != NULL ? gtorch_module_dup_source (module, name, "_v", error) : NULL;
  g_autoptr (GTorchImpl) matrix = NULL;

  if (v == NULL)
    return NULL;
  matrix = gtorch_spectral_matrix (gtorch_tensor_unwrap (weight), self->dim, error);
  if (matrix == NULL
      || (gtorch_module_get_training (module)
          && !gtorch_spectral_iterate (matrix, gtorch_tensor_unwrap (u), gtorch_tensor_unwrap (v),
                                       self->n_power_iterations, FALSE, self->eps, error)))
    return NULL;
  return gtorch_spectral_divide (gtorch_tensor_unwrap (weight), matrix, gtorch_tensor_unwrap (u),
                                 gtorch_tensor_unwrap (v), error);
}

static GTorchImpl *
run_mask (GTorchModule *module, const gchar *name, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchTensor) weight = gtorch_module_dup_source (module, name, "_orig", error);
  g_autoptr (GTorchTensor) mask =
      weight != NULL ? gtorch_module_dup_source (module, name, "_mask", error) : NULL;
  GTorchImpl *factor;

  if (mask == NULL)
    return NULL;
  factor = OP (to_dtype, gtorch_tensor_unwrap (mask), gtorch_tensor_unwrap (weight)->dtype);
  return gtorch_formula_take (&f, OP (mul, factor, gtorch_tensor_unwrap (weight)));
}

static GTorchTensor *
run_parametrization (GTorchModule *module, const gchar *name, GError **error)
{
  g_autoptr (GTorchParametrizationList) list = gtorch_parametrizations_get (module, name, error);

  return list != NULL ? gtorch_parametrization_list_compute (list, error) : NULL;
}

GTorchTensor *
gtorch_computed_run (const GTorchComputed *self, GTorchModule *module, const gchar *name,
                     GError **error)
{
  GTorchImpl *impl = NULL;
  GTorchTensor *tensor;

  switch (self->kind)
    {
    case GTORCH_COMPUTED_PARAMETRIZATION:
      tensor = gtorch_parametrize_cache_look_up (module, name);
      if (tensor != NULL)
        return tensor;
      tensor = run_parametrization (module, name, error);
      if (tensor != NULL)
        gtorch_parametrize_cache_insert (module, name, tensor);
      return tensor;
    case GTORCH_COMPUTED_WEIGHT_NORM:
      impl = run_weight_norm (self, module, name, error);
      break;
    case GTORCH_COMPUTED_SPECTRAL_NORM:
      impl = run_spectral_norm (self, module, name, error);
      break;
    case GTORCH_COMPUTED_MASK:
      impl = run_mask (module, name, error);
      break;
    }
  return gtorch_tensor_wrap (impl);
}

/* --- members --- */

static GTorchMember *
find (GTorchModule *self, const gchar *name, gboolean *is_buffer)
{
  GTorchModulePrivate *priv = gtorch_module_get_private (self);
  GTorchMember *member = gtorch_members_find (priv->parameters, name);

  *is_buffer = member == NULL;
  return member != NULL ? member : gtorch_members_find (priv->buffers, name);
}

GTorchComputed *
gtorch_module_dup_computed (GTorchModule *self, const gchar *name)
{
  GTorchComputed *computed = NULL;
  const GTorchMember *member;
  gboolean is_buffer;

  gtorch_module_lock (self);
  member = find (self, name, &is_buffer);
  if (member != NULL && member->computed != NULL)
    computed = gtorch_computed_ref (member->computed);
  gtorch_module_unlock (self);
  return computed;
}

void
gtorch_module_put_computed (GTorchModule *self, const gchar *name, GTorchComputed *computed)
{
  g_autoptr (GTorchTensor) dropped = NULL;
  GTorchMember *member;
  gboolean is_buffer;

  gtorch_module_begin_change (self);
  member = find (self, name, &is_buffer);
  if (member != NULL)
    {
      dropped = g_steal_pointer (&member->tensor);
      g_clear_pointer (&member->computed, gtorch_computed_unref);
      member->computed = gtorch_computed_ref (computed);
    }
  gtorch_module_end_change (self);
}

void
gtorch_module_end_computed (GTorchModule *self, const gchar *name, GTorchTensor *tensor)
{
  g_autoptr (GTorchTensor) dropped = g_object_ref (tensor);
  GTorchMember *member;
  gboolean is_buffer;

  gtorch_tensor_unwrap (tensor);
  if (gtorch_scope_current != NULL)
    gtorch_scope_exempt (tensor);
  gtorch_module_begin_change (self);
  member = find (self, name, &is_buffer);
  if (member != NULL)
    {
      GTorchTensor *former = member->tensor;

      member->tensor = g_steal_pointer (&dropped);
      dropped = former;
      g_clear_pointer (&member->computed, gtorch_computed_unref);
    }
  gtorch_module_end_change (self);
}

GTorchTensor *
gtorch_module_dup_computable (GTorchModule *self, const gchar *name, gboolean buffers,
                              GError **error)
{
  g_autoptr (GTorchTensor) tensor = NULL;
  const GTorchMember *member;
  gboolean is_buffer = FALSE, is_computed = FALSE;

  if (!gtorch_module_is_usable (self, error))
    return NULL;
  gtorch_module_lock (self);
  member = find (self, name, &is_buffer);
  if (member != NULL && member->tensor != NULL && (buffers || !is_buffer))
    tensor = g_object_ref (member->tensor);
  is_computed = member != NULL && member->computed != NULL;
  gtorch_module_unlock (self);
  if (is_computed)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: '%s' is computed from other tensors already"),
                 gtorch_module_type_name (self), gtorch_name_str (name));
  else if (tensor == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                 buffers ? _ ("%s: no parameter or buffer '%s'") : _ ("%s: no parameter '%s'"),
                 gtorch_module_type_name (self), gtorch_name_str (name));
  else if (gtorch_impl_is_uninitialized (gtorch_tensor_unwrap (tensor)))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: '%s' has no elements before the first use of the lazy layer"),
                 gtorch_module_type_name (self), gtorch_name_str (name));
  else if (is_buffer && gtorch_module_owns (self, name))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("%s: '%s' is a buffer that the layer writes, and cannot be computed"),
                 gtorch_module_type_name (self), gtorch_name_str (name));
  else
    return g_steal_pointer (&tensor);
  return NULL;
}

gboolean
gtorch_module_settle_computed (GTorchModule *self, const gchar *name, GTorchComputedKind kind,
                               const gchar *what, const gchar *const *suffixes, GError **error)
{
  g_autoptr (GTorchComputed) computed = gtorch_module_dup_computed (self, name);
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchComputed) still = NULL;
  g_autoptr (GTorchTensor) value = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;

  if (computed == NULL || computed->kind != kind)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, _ ("%s: '%s' has no %s"),
                   gtorch_module_type_name (self), gtorch_name_str (name), what);
      return FALSE;
    }
  guard = gtorch_no_grad ();
  still = gtorch_computed_new (kind, computed->dim, 0, computed->eps);
  value = gtorch_computed_run (still, self, name, error);
  if (value == NULL)
    return FALSE;
  if (g_str_equal (suffixes[0], "_orig"))
    {
      tensor = gtorch_module_dup_source (self, name, "_orig", error);
      if (tensor == NULL
          || !gtorch_tensor_put_value (gtorch_module_type_name (self), tensor, value, error))
        return FALSE;
    }
  else
    tensor = (GTorchTensor *) gtorch_parameter_new (value, TRUE, error);
  if (tensor == NULL)
    return FALSE;
  gtorch_module_end_computed (self, name, tensor);
  for (guint i = 0; suffixes[i] != NULL; i++)
    {
      g_autofree gchar *source = g_strconcat (name, suffixes[i], NULL);

      if (!gtorch_module_unregister (self, source, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_computed_check_dim (const gchar *who, gint64 *dim, guint n_dims, GError **error)
{
  if (*dim < -(gint64) n_dims || *dim >= (gint64) n_dims)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("%s: dim %" PRId64 " is out of range for %u dimensions"), who, *dim, n_dims);
      return FALSE;
    }
  if (*dim < 0)
    *dim += n_dims;
  return TRUE;
}

/* --- for bindings and copies --- */

static const gchar *const kinds[] = { "parametrization", "weight_norm", "spectral_norm", "mask" };

/**
 * gtorch_module_is_computed:
 * @self: a module
 * @name: the name of a parameter or buffer of this module
 *
 * Tells whether a member is computed from other tensors whenever it is used: by a parametrization, a norm or
 * the mask of pruning. It is then no parameter, and [method@Module.get_tensor] computes it.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_module_is_computed (GTorchModule *self, const gchar *name)
{
  g_autoptr (GTorchComputed) computed = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  computed = gtorch_module_dup_computed (self, name);
  return computed != NULL;
}

/**
 * gtorch_module_get_computed_names:
 * @self: a module
 *
 * Lists the names of the members of this module itself that are computed; see [method@Module.is_computed].
 *
 * Returns: (transfer full) (array zero-terminated=1): the names
 *
 * Since: 0.1
 */
gchar **
gtorch_module_get_computed_names (GTorchModule *self)
{
  GPtrArray *names;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  names = g_ptr_array_new ();
  for (guint k = 0; k < 2; k++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (self, k == 1);

      for (guint i = 0; i < members->len; i++)
        if (g_array_index (members, GTorchMember, i).computed != NULL)
          g_ptr_array_add (names, g_strdup (g_array_index (members, GTorchMember, i).name));
    }
  g_ptr_array_add (names, NULL);
  return (gchar **) g_ptr_array_free (names, FALSE);
}

/**
 * gtorch_module_describe_computed:
 * @self: a module
 * @name: the name of a parameter or buffer of this module
 *
 * Describes how a member is computed, for [method@Module.restore_computed] of a copy.
 *
 * Returns: (transfer full) (nullable): a text, or %NULL if the member is not computed
 *
 * Since: 0.1
 */
gchar *
gtorch_module_describe_computed (GTorchModule *self, const gchar *name)
{
  g_autoptr (GTorchComputed) computed = NULL;
  gchar eps[G_ASCII_DTOSTR_BUF_SIZE];

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  computed = gtorch_module_dup_computed (self, name);
  if (computed == NULL)
    return NULL;
  return g_strdup_printf ("%s %" G_GINT64_FORMAT " %" G_GINT64_FORMAT " %s", kinds[computed->kind],
                          computed->dim, computed->n_power_iterations,
                          g_ascii_dtostr (eps, sizeof eps, computed->eps));
}

static GTorchComputed *
parse (const gchar *text)
{
  g_auto (GStrv) parts = g_strsplit (text, " ", -1);
  gint64 numbers[2];
  gchar *end;
  gdouble eps;

  if (g_strv_length (parts) != 4)
    return NULL;
  for (guint i = 0; i < 2; i++)
    if (!g_ascii_string_to_signed (parts[i + 1], 10, GTORCH_NONE, G_MAXINT32, &numbers[i], NULL))
      return NULL;
  eps = g_ascii_strtod (parts[3], &end);
  if (*end != '\0' || !(eps >= 0))
    return NULL;
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (g_str_equal (parts[0], kinds[i]))
      return gtorch_computed_new ((GTorchComputedKind) i, numbers[0], numbers[1], eps);
  return NULL;
}

/**
 * gtorch_module_restore_computed:
 * @self: a module, which has what the member is computed from
 * @name: the name of a parameter or buffer
 * @description: what [method@Module.describe_computed] has returned
 * @error: return location for an error
 *
 * Lets a member be computed as that of another module is, whose other members @self has copies of. If it is a
 * tensor, that is dropped.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if the text describes nothing, with
 *   %GTORCH_ERROR_NOT_FOUND if there is no member of the name, and with the errors of
 *   [method@Module.get_tensor], if it cannot be computed
 *
 * Since: 0.1
 */
gboolean
gtorch_module_restore_computed (GTorchModule *self, const gchar *name, const gchar *description,
                                GError **error)
{
  g_autoptr (GTorchComputed) computed = NULL;
  gboolean is_buffer, is_there;
  g_autoptr (GTorchTensor) value = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (description != NULL, FALSE);
  computed = parse (description);
  if (computed == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: '%s' does not describe how a tensor is computed"),
                   gtorch_module_type_name (self), gtorch_name_str (description));
      return FALSE;
    }
  gtorch_module_lock (self);
  is_there = find (self, name, &is_buffer) != NULL;
  gtorch_module_unlock (self);
  if (!is_there)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                   _ ("%s: no parameter or buffer '%s'"), gtorch_module_type_name (self),
                   gtorch_name_str (name));
      return FALSE;
    }
  if (computed->kind == GTORCH_COMPUTED_PARAMETRIZATION)
    {
      g_autoptr (GTorchParametrizationList) list = gtorch_parametrizations_get (self, name, error);

      if (list == NULL)
        return FALSE;
    }
  else
    {
      g_autoptr (GTorchComputed) still = gtorch_computed_new (computed->kind, computed->dim, 0, 0);

      value = gtorch_computed_run (still, self, name, error);
      if (value == NULL)
        return FALSE;
    }
  gtorch_module_put_computed (self, name, computed);
  return TRUE;
}

/**
 * gtorch_module_get_tensor:
 * @self: a module
 * @name: the name of a parameter or buffer of this module
 * @error: return location for an error
 *
 * Gets a parameter or a buffer as the module sees it: one that is computed is computed, with its graph.
 *
 * Returns: (transfer full): the tensor; %NULL with %GTORCH_ERROR_NOT_FOUND if there is none, and with the
 *   errors of what computes it
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_module_get_tensor (GTorchModule *self, const gchar *name, GError **error)
{
  g_autoptr (GTorchComputed) computed = NULL;
  GTorchTensor *tensor = NULL;
  const GTorchMember *member;
  gboolean is_buffer;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  computed = gtorch_module_dup_computed (self, name);
  if (computed != NULL)
    return gtorch_computed_run (computed, self, name, error);
  gtorch_module_lock (self);
  member = find (self, name, &is_buffer);
  if (member != NULL && member->tensor != NULL)
    tensor = g_object_ref (gtorch_stand_in (member->tensor));
  gtorch_module_unlock (self);
  if (tensor == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, _ ("%s: no parameter or buffer '%s'"),
                 gtorch_module_type_name (self), gtorch_name_str (name));
  return tensor;
}

/**
 * gtorch_module_set_tensor:
 * @self: a module
 * @name: the name of a parameter or buffer of this module that is parametrized
 * @value: the value that it shall have
 * @error: return location for an error
 *
 * Assigns to a tensor that a parametrization computes: what it is computed from gets the values that the
 * right inverses of the parametrizations give for @value.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED if the member is computed otherwise, or a
 *   parametrization has no right inverse, %GTORCH_ERROR_NOT_FOUND if there is none that is computed, and with
 *   the errors of the right inverses
 *
 * Since: 0.1
 */
gboolean
gtorch_module_set_tensor (GTorchModule *self, const gchar *name, GTorchTensor *value,
                          GError **error)
{
  g_autoptr (GTorchComputed) computed = NULL;
  g_autoptr (GTorchParametrizationList) list = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (value), FALSE);
  computed = gtorch_module_dup_computed (self, name);
  if (computed == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                   _ ("%s: set_tensor assigns to what is parametrized, and '%s' is not: write to "
                      "the tensor in place, in no_grad, or register another"),
                   gtorch_module_type_name (self), gtorch_name_str (name));
      return FALSE;
    }
  if (computed->kind != GTORCH_COMPUTED_PARAMETRIZATION)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: '%s' is computed from other tensors, by %s, and nothing can be assigned "
                      "to it"),
                   gtorch_module_type_name (self), gtorch_name_str (name), kinds[computed->kind]);
      return FALSE;
    }
  list = gtorch_parametrizations_get (self, name, error);
  return list != NULL && gtorch_parametrization_list_right_inverse (list, value, error);
}
