/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-orthogonal.h"

#include <float.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-field-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-bytes.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-parametrize-private.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

/**
 * GTorchOrthogonal:
 *
 * A parametrization whose matrices are orthogonal, or unitary if they are complex: the columns, or the rows
 * of a matrix with fewer rows than columns, have norm 1 and are perpendicular. Dimensions before the last two
 * are a batch.
 *
 * The matrix that it computes from is any one. With a trivialization, what is computed is multiplied by the
 * buffer `base`, an orthogonal matrix that is set when a value is assigned to the parametrized tensor.
 *
 * ```c
 * gtorch_module_parametrize_orthogonal (layer, "weight", GTORCH_ORTHOGONAL_MAP_AUTOMATIC, TRUE, &error);
 * ```
 *
 * Source: M. Lezcano Casado: Trivializations for gradient-based optimization on manifolds. NeurIPS 2019. The
 * product of reflectors is computed as I - V T Vᵀ: T. Joffrain and others: Accumulating Householder
 * transformations, revisited. ACM TOMS 32 (2006).
 *
 * Since: 0.1
 */

struct _GTorchOrthogonal
{
  GTorchModule parent_instance;
  gint orthogonal_map;
  gboolean use_trivialization;
};

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchOrthogonal:orthogonal-map:
   *
   * How the matrix is made.
   *
   * Since: 0.1
   */
  { "orthogonal-map", GTORCH_FIELD_ENUM, GTORCH_FIELD (GTorchOrthogonal, orthogonal_map), .type = gtorch_orthogonal_map_get_type, .flags = GTORCH_FIELD_FIXED, .text = GTORCH_FIELD_NAMED },
  /**
   * GTorchOrthogonal:use-trivialization:
   *
   * Whether it is multiplied by the buffer `base`.
   *
   * Since: 0.1
   */
  { "use-trivialization", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchOrthogonal, use_trivialization), .value = TRUE, .flags = GTORCH_FIELD_FIXED, .text = GTORCH_FIELD_NAMED },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchOrthogonal, gtorch_orthogonal, GTORCH_TYPE_MODULE)

GType
gtorch_orthogonal_map_get_type (void)
{
  static gsize type;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_ORTHOGONAL_MAP_AUTOMATIC, "GTORCH_ORTHOGONAL_MAP_AUTOMATIC", "automatic" },
        { GTORCH_ORTHOGONAL_MAP_MATRIX_EXP, "GTORCH_ORTHOGONAL_MAP_MATRIX_EXP", "matrix-exp" },
        { GTORCH_ORTHOGONAL_MAP_CAYLEY, "GTORCH_ORTHOGONAL_MAP_CAYLEY", "cayley" },
        { GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER, "GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER", "householder" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchOrthogonalMap", values));
    }
  return type;
}

static GTorchOrthogonalMap
map_for (GTorchOrthogonal *self, const GTorchImpl *x)
{
  if (self->orthogonal_map != GTORCH_ORTHOGONAL_MAP_AUTOMATIC)
    return (GTorchOrthogonalMap) self->orthogonal_map;
  return x->shape[x->n_dims - 1] == x->shape[x->n_dims - 2] || gtorch_dtype_is_complex (x->dtype)
             ? GTORCH_ORTHOGONAL_MAP_MATRIX_EXP
             : GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER;
}

static gboolean
check_matrix (GTorchModule *self, const GTorchImpl *x, GError **error)
{
  if (x->n_dims < 2)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: %s is no matrix or batch of matrices"), gtorch_module_type_name (self),
                 gtorch_impl_shape_str (x));
  else if (gtorch_dtype_is_complex (x->dtype)
           && map_for ((GTorchOrthogonal *) self, x) == GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("%s: householder is not supported for %s: complex matrices need another map"),
                 gtorch_module_type_name (self), gtorch_dtype_get_name (x->dtype));
  else
    return TRUE;
  return FALSE;
}

/* Appends columns to tall matrices so that they are square. */
static GTorchImpl *
widen (GTorchFormula *formula, GTorchImpl *x, gboolean randomly)
{
  GTorchImpl *parts[2] = { x, NULL };
  gint64 shape[GTORCH_MAX_DIMS];
  const guint last = x->n_dims - 1;

  if (x->shape[last] == x->shape[last - 1])
    return x;
  memcpy (shape, x->shape, x->n_dims * sizeof *shape);
  shape[last] = x->shape[last - 1] - x->shape[last];
  if (randomly)
    parts[1] = GTORCH_FORMULA_OP (formula, randn, shape, x->n_dims, x->dtype,
                                  gtorch_impl_device (x), NULL);
  else
    parts[1] =
        GTORCH_FORMULA_OP (formula, zeros, shape, x->n_dims, x->dtype, gtorch_impl_device (x));
  return GTORCH_FORMULA_OP (formula, cat, parts, 2, -1);
}

/* The orthogonal matrices of tall ones by a skew-symmetric matrix A. */
static GTorchImpl *
by_skew (GTorchImpl *x, GTorchOrthogonalMap map, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 n = x->shape[x->n_dims - 2], k = x->shape[x->n_dims - 1];
  GTorchImpl *lower = OP (tril, x, 0), *a, *q;

  if (lower != NULL)
    lower = widen (&f, lower, FALSE);
  a = f.failed ? NULL : gtorch_formula_adjoint (&f, lower);
  a = OP (sub, lower, a, 1);
  if (map == GTORCH_ORTHOGONAL_MAP_MATRIX_EXP)
    q = OP (linalg_matrix_exp, a);
  else
    {
      GTorchImpl *one = OP (eye, n, n, x->dtype, gtorch_impl_device (x));
      GTorchImpl *left = OP (add, one, a, -0.5), *right = OP (add, one, a, 0.5);

      q = OP (linalg_solve, left, right, TRUE);
    }
  if (n != k)
    q = OP (narrow, q, -1, 0, k);
  return gtorch_formula_take (&f, q);
}

/* The first columns of the product of reflectors I - tau v vᵀ, where v has 1 on the diagonal and x below it.
 * It is I - V T Vᵀ with an upper triangle T, whose inverse has the dot products of the vectors above its
 * diagonal, and halves of their squares on it. */
static GTorchImpl *
by_reflectors (GTorchImpl *x, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 n = x->shape[x->n_dims - 2], k = x->shape[x->n_dims - 1];
  GTorchImpl *one = OP (eye, n, k, x->dtype, gtorch_impl_device (x));
  GTorchImpl *half = gtorch_formula_number (&f, 0.5);
  GTorchImpl *v, *turned, *dots, *inverse, *diagonal, *part, *q, *signs;

  v = OP (tril, x, -1);
  v = OP (add, v, one, 1);
  turned = OP (swap_matrix, v);
  dots = OP (matmul, turned, v);
  diagonal = OP (diagonal, dots, 0, -2, -1);
  diagonal = OP (mul, diagonal, half);
  diagonal = OP (diag_embed, diagonal, 0, -2, -1);
  inverse = OP (triu, dots, 1);
  inverse = OP (add, inverse, diagonal, 1);
  part = OP (matmul, turned, one);
  part = OP (linalg_solve_triangular, inverse, part, TRUE, TRUE, FALSE);
  part = OP (matmul, v, part);
  q = OP (sub, one, part, 1);
  /* the signs of the columns are no part of what is learned */
  signs = gtorch_formula_keep (&f, gtorch_impl_alias (x));
  signs = OP (diagonal, signs, 0, -2, -1);
  signs = OP (trunc, signs);
  signs = OP (unsqueeze, signs, -2);
  return gtorch_formula_take (&f, OP (mul, q, signs));
}

static GTorchTensor *
gtorch_orthogonal_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchOrthogonal *self = (GTorchOrthogonal *) module;
  GTorchImpl *x = gtorch_tensor_unwrap (input), *q;
  g_autoptr (GTorchImpl) base = NULL;
  GTorchOrthogonalMap map;
  gboolean is_wide;

  if (!check_matrix (module, x, error))
    return NULL;
  map = map_for (self, x);
  is_wide = x->shape[x->n_dims - 2] < x->shape[x->n_dims - 1];
  if (is_wide)
    x = OP (swap_matrix, x);
  if (f.failed)
    return NULL;
  q = gtorch_formula_keep (&f, map == GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER ? by_reflectors (x, error)
                                                                        : by_skew (x, map, error));
  base = self->use_trivialization ? gtorch_module_dup_buffer_impl (self, 0) : NULL;
  if (base != NULL)
    q = OP (matmul, base, q);
  if (is_wide)
    q = OP (swap_matrix, q);
  return gtorch_tensor_wrap (gtorch_formula_take (&f, q));
}

/* --- the right inverse --- */

/* The factor Q of tall matrices Q R, where the diagonal of R is real and not negative. */
static GTorchImpl *
make_orthogonal (GTorchImpl *x, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) tau = NULL;
  GTorchImpl *q, *signs;

  if (!gtorch_op_geqrf (x, &a, &tau, error))
    return NULL;
  q = OP (linalg_householder_product, a, tau);
  signs = OP (diagonal, a, 0, -2, -1);
  signs = OP (sgn, signs);
  signs = OP (unsqueeze, signs, -2);
  return gtorch_formula_take (&f, OP (mul, q, signs));
}

/* Returns 1 if the columns of tall matrices are perpendicular and of norm 1, 0 if not; -1 with an error. */
static gint
is_orthogonal (GTorchImpl *q, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 n = q->shape[q->n_dims - 2], k = q->shape[q->n_dims - 1];
  const guint real = gtorch_dtype_infos[q->dtype].real;
  const gdouble eps = real == GTORCH_DTYPE_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
  GTorchImpl *one = OP (eye, k, k, q->dtype, gtorch_impl_device (q)), *dots;
  g_autoptr (GTorchTensor) found = NULL;
  GError *local = NULL;
  gboolean is_close;

  dots = gtorch_formula_adjoint (&f, q);
  dots = OP (matmul, dots, q);
  dots = OP (allclose, dots, one, 1e-05, 10 * (gdouble) n * eps, FALSE);
  if (f.failed)
    return -1;
  found = gtorch_tensor_wrap (gtorch_formula_take (&f, dots));
  is_close = gtorch_tensor_item_int (found, &local) != 0;
  if (local == NULL)
    return is_close;
  g_propagate_error (error, local);
  return -1;
}

/* The matrix whose reflectors give the orthogonal matrix. */
static GTorchImpl *
to_reflectors (GTorchImpl *q, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) tau = NULL;
  GTorchImpl *zero, *signs, *unused, *flipped, *diagonal;

  if (!gtorch_op_geqrf (q, &a, &tau, error))
    return NULL;
  zero = gtorch_formula_number (&f, 0);
  diagonal = OP (diagonal, a, 0, -2, -1);
  signs = OP (sign, diagonal);
  /* where LAPACK uses no reflector, this one has the other sign */
  unused = OP (eq, tau, zero);
  flipped = OP (neg, signs);
  signs = OP (where, unused, flipped, signs);
  if (f.failed || !gtorch_op_copy_inplace (diagonal, signs, FALSE, error))
    return NULL;
  return gtorch_impl_ref (a);
}

/* Sets the base to the value, made orthogonal and square. */
static gboolean
set_base (GTorchModule *self, GTorchImpl *q, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  g_autoptr (GTorchImpl) former = gtorch_module_dup_buffer_impl (self, 0);
  g_autoptr (GTorchTensor) tensor = NULL;
  GTorchImpl *wide, *base;
  gint ready = 0;

  wide = widen (&f, q, TRUE);
  if (!f.failed && wide == q)
    ready = is_orthogonal (q, error);
  if (f.failed || ready < 0)
    return FALSE;
  base =
      gtorch_formula_keep (&f, ready ? gtorch_op_clone (q, error) : make_orthogonal (wide, error));
  if (f.failed)
    return FALSE;
  if (former != NULL && !gtorch_impl_same_shape (former, base))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the value gives a base of shape %s, and the base has shape %s"),
                   gtorch_module_type_name (self), gtorch_impl_shape_str (base),
                   gtorch_impl_shape_str (former));
      return FALSE;
    }
  tensor = gtorch_tensor_wrap (gtorch_formula_take (&f, base));
  return gtorch_module_set_buffer (self, "base", tensor, error);
}

static GTorchImpl *
inverse (GTorchModule *module, GTorchImpl *value, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchOrthogonal *self = (GTorchOrthogonal *) module;
  const gboolean is_wide = value->shape[value->n_dims - 2] < value->shape[value->n_dims - 1];
  GTorchImpl *q = value, *found, *diagonal;

  if (is_wide)
    q = OP (swap_matrix, value);
  if (f.failed)
    return NULL;
  if (self->use_trivialization)
    {
      if (!set_base (module, q, error))
        return NULL;
      found = OP (zeros_like, value, GTORCH_DTYPE_NONE);
      diagonal = OP (diagonal, found, 0, -2, -1);
      if (f.failed || !gtorch_op_fill_inplace (diagonal, -1, error))
        return NULL;
      return gtorch_formula_take (&f, found);
    }
  if (map_for (self, value) != GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: nothing can be assigned to the matrix exponential or the Cayley map "
                      "without a "
                      "trivialization"),
                   gtorch_module_type_name (module));
      return NULL;
    }
  found = gtorch_formula_keep (&f, to_reflectors (q, error));
  if (is_wide)
    found = OP (swap_matrix, found);
  return gtorch_formula_take (&f, found);
}

static GPtrArray *
gtorch_orthogonal_right_inverse (GTorchModule *module, GTorchTensor *value, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  GTorchImpl *x = gtorch_tensor_unwrap (value), *found;
  GPtrArray *list;

  if (!check_matrix (module, x, error))
    return NULL;
  found = inverse (module, x, error);
  if (found == NULL)
    return NULL;
  list = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (list, gtorch_tensor_wrap (found));
  return list;
}

static void
gtorch_orthogonal_constructed (GObject *object)
{
  G_OBJECT_CLASS (gtorch_orthogonal_parent_class)->constructed (object);
  if (((GTorchOrthogonal *) object)->use_trivialization)
    gtorch_module_register_buffer (GTORCH_MODULE (object), "base", NULL, TRUE, NULL);
}

static void
gtorch_orthogonal_class_init (GTorchOrthogonalClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_orthogonal_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_orthogonal_forward;
  GTORCH_MODULE_CLASS (klass)->right_inverse = gtorch_orthogonal_right_inverse;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_orthogonal_init (GTorchOrthogonal *self)
{
}

/**
 * gtorch_orthogonal_new:
 * @orthogonal_map: how the matrix is made
 * @use_trivialization: whether it is multiplied by an orthogonal matrix that is set when a value is assigned
 * @error: return location for an error
 *
 * Creates a [class@Orthogonal].
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if there is no such map
 *
 * Since: 0.1
 */
GTorchOrthogonal *
gtorch_orthogonal_new (GTorchOrthogonalMap orthogonal_map, gboolean use_trivialization,
                       GError **error)
{
  if ((guint) orthogonal_map > GTORCH_ORTHOGONAL_MAP_HOUSEHOLDER)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("orthogonal: there is no orthogonal_map %d"), (gint) orthogonal_map);
      return NULL;
    }
  return g_object_new (GTORCH_TYPE_ORTHOGONAL, "orthogonal-map", orthogonal_map,
                       "use-trivialization", use_trivialization, NULL);
}

/**
 * gtorch_module_parametrize_orthogonal:
 * @self: a module
 * @name: the name of a parameter of this module, a matrix or a batch of matrices
 * @orthogonal_map: how the matrix is made
 * @use_trivialization: whether it is multiplied by an orthogonal matrix that is set when a value is assigned;
 *   without, only [enum@OrthogonalMap].HOUSEHOLDER keeps the present value
 * @error: return location for an error
 *
 * Parametrizes a weight by an [class@Orthogonal]. The weight becomes orthogonal: one that is not is replaced
 * by the factor Q of its QR decomposition.
 *
 * Source: PyTorch's `torch.nn.utils.parametrizations.orthogonal`.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_SHAPE if the parameter is no matrix, %GTORCH_ERROR_DTYPE if
 *   reflectors are wanted for a complex one, and with the errors of [method@Module.register_parametrization]
 *
 * Since: 0.1
 */
gboolean
gtorch_module_parametrize_orthogonal (GTorchModule *self, const gchar *name,
                                      GTorchOrthogonalMap orthogonal_map,
                                      gboolean use_trivialization, GError **error)
{
  g_autoptr (GTorchOrthogonal) orthogonal = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  orthogonal = gtorch_orthogonal_new (orthogonal_map, use_trivialization, error);
  return orthogonal != NULL
         && gtorch_module_register_parametrization (self, name, GTORCH_MODULE (orthogonal), TRUE,
                                                    error);
}
