/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of L-BFGS. All parameters together are one vector, and so are their gradients. The state is read
 * when a step begins, and written when it ends: as tensors of the first parameter, so that it is part of the
 * state dict. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-none-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-module-private.h"
#include "ops/gtorch-host-private.h"
#include "optim/gtorch-lbfgs-private.h"
#include "optim/gtorch-setting-private.h"
#include "tensor/gtorch-tensor-private.h"

#define LEAST_CURVATURE 1e-10 /* pairs with less are not remembered */

/* One iteration that is remembered. */
typedef struct
{
  GTorchImpl *change; /* of the gradient */
  GTorchImpl *step;
  GTorchImpl *weight; /* 1 / (change · step) */
} Pair;

static void
pair_clear (gpointer data)
{
  Pair *self = data;

  g_clear_pointer (&self->change, gtorch_impl_unref);
  g_clear_pointer (&self->step, gtorch_impl_unref);
  g_clear_pointer (&self->weight, gtorch_impl_unref);
}

typedef struct
{
  GTorchLBFGS *self;
  GTorchLBFGS given; /* the settings of the group */
  GTorchOptimizerClosure closure;
  gpointer user_data;
  gdouble lr;
  GPtrArray *params; /* GTorchTensor */

  /* the state */
  gdouble n_evals, n_iter, t, loss;
  GTorchImpl *direction, *grad; /* of the iteration before */
  GTorchImpl *scale;            /* of the initial inverse Hessian */
  GArray *pairs;
  guint n_stored; /* how many pairs the stored state has */

  GPtrArray *start; /* copies of the parameters during a line search */
} Run;

static void
run_clear (Run *run)
{
  g_clear_pointer (&run->params, g_ptr_array_unref);
  g_clear_pointer (&run->direction, gtorch_impl_unref);
  g_clear_pointer (&run->grad, gtorch_impl_unref);
  g_clear_pointer (&run->scale, gtorch_impl_unref);
  g_clear_pointer (&run->pairs, g_array_unref);
  g_clear_pointer (&run->start, g_ptr_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_clear)

/* --- vectors --- */

static gboolean
read_number (GTorchImpl *impl, gdouble *value, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host ("lbfgs", impl, error);

  if (host == NULL)
    return FALSE;
  gtorch_impl_read (host, GTORCH_DTYPE_FLOAT64, value);
  return TRUE;
}

static gboolean
read_dot (GTorchImpl *a, GTorchImpl *b, gdouble *value, GError **error)
{
  g_autoptr (GTorchImpl) dot = gtorch_op_dot (a, b, error);

  return dot != NULL && read_number (dot, value, error);
}

/* The greatest absolute value. */
static gboolean
read_greatest (GTorchImpl *impl, gdouble *value, GError **error)
{
  g_autoptr (GTorchImpl) sizes = NULL;
  g_autoptr (GTorchImpl) greatest = NULL;

  *value = 0;
  if (impl->numel == 0)
    return TRUE;
  sizes = gtorch_op_abs (impl, error);
  greatest = sizes != NULL ? gtorch_op_max (sizes, error) : NULL;
  return greatest != NULL && read_number (greatest, value, error);
}

static GTorchImpl *
as_real (GTorchImpl *impl, GError **error)
{
  return gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX
             ? gtorch_op_view_as_real (impl, error)
             : gtorch_impl_ref (impl);
}

static GTorchImpl *
flatten (GTorchImpl *impl, GError **error)
{
  const gint64 all = -1;
  g_autoptr (GTorchImpl) plain = gtorch_op_resolve_conj (impl, error);
  g_autoptr (GTorchImpl) real = plain != NULL ? as_real (plain, error) : NULL;

  return real != NULL ? gtorch_op_reshape (real, &all, 1, error) : NULL;
}

/* Returns the gradients of all parameters as one vector, with zeros where there is none. */
static GTorchImpl *
gather (Run *run, GError **error)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GTorchImpl) whole = NULL;
  guint i;

  for (i = 0; i < run->params->len; i++)
    {
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (run->params->pdata[i]);
      g_autoptr (GTorchImpl) value =
          grad != NULL ? gtorch_impl_ref (gtorch_tensor_unwrap (grad))
                       : gtorch_op_zeros_like (gtorch_tensor_unwrap (run->params->pdata[i]),
                                               GTORCH_DTYPE_NONE, error);
      GTorchImpl *part = value != NULL ? flatten (value, error) : NULL;

      if (part == NULL)
        return NULL;
      g_ptr_array_add (parts, part);
    }
  whole = gtorch_op_cat ((GTorchImpl **) parts->pdata, parts->len, 0, error);
  if (whole == NULL || (run->given.maximize && !gtorch_op_neg_inplace (whole, error)))
    return NULL;
  return g_steal_pointer (&whole);
}

/* Adds t times the vector to the parameters. */
static gboolean
move (Run *run, GTorchImpl *direction, gdouble t, GError **error)
{
  gint64 start = 0;
  guint i;

  for (i = 0; i < run->params->len; i++)
    {
      g_autoptr (GTorchImpl) real = as_real (gtorch_tensor_unwrap (run->params->pdata[i]), error);
      g_autoptr (GTorchImpl) flat =
          real != NULL ? gtorch_op_narrow (direction, 0, start, real->numel, error) : NULL;
      g_autoptr (GTorchImpl) part = flat != NULL ? gtorch_op_view_as (flat, real, error) : NULL;

      if (part == NULL || !gtorch_op_add_inplace (real, part, t, error))
        return FALSE;
      start += real->numel;
    }
  return TRUE;
}

/* --- the loss --- */

static GTorchTensor *
call_closure (Run *run, gdouble *loss, GTorchImpl **grad, GError **error)
{
  g_autoptr (GTorchTensor) value =
      gtorch_optimizer_call_closure (GTORCH_OPTIMIZER (run->self), run->closure, run->user_data,
                                     error);
  GTorchImpl *impl;

  if (value == NULL)
    return NULL;
  impl = gtorch_tensor_unwrap (value);
  if (impl->numel != 1 || gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("lbfgs: the closure gave %s of shape %s, the loss must be one real number"),
                   gtorch_dtype_get_name (impl->dtype), gtorch_impl_shape_str (impl));
      return NULL;
    }
  if (!read_number (impl, loss, error))
    return NULL;
  if (run->given.maximize)
    *loss = -*loss;
  *grad = gather (run, error);
  return *grad != NULL ? g_steal_pointer (&value) : NULL;
}

static gboolean
keep_params (Run *run, GError **error)
{
  guint i;

  g_clear_pointer (&run->start, g_ptr_array_unref);
  run->start = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  for (i = 0; i < run->params->len; i++)
    {
      GTorchImpl *copy = gtorch_op_clone (gtorch_tensor_unwrap (run->params->pdata[i]), error);

      if (copy == NULL)
        return FALSE;
      g_ptr_array_add (run->start, copy);
    }
  return TRUE;
}

static gboolean
restore_params (Run *run, GError **error)
{
  gboolean success = TRUE;
  guint i;

  for (i = 0; i < run->params->len; i++)
    success = gtorch_op_copy_inplace (gtorch_tensor_unwrap (run->params->pdata[i]),
                                      run->start->pdata[i], FALSE, success ? error : NULL)
              && success;
  return success;
}

/* The loss on the line through the parameters. They are as before afterwards, in any case. */
static gboolean
evaluate (gpointer data, GTorchLinePoint *point, GError **error)
{
  Run *run = data;
  g_autoptr (GTorchTensor) loss = NULL;
  gboolean success = move (run, run->direction, point->t, error);

  if (success)
    {
      loss = call_closure (run, &point->loss, &point->grad, error);
      success = loss != NULL;
    }
  success = restore_params (run, success ? error : NULL) && success;
  return success && read_dot (point->grad, run->direction, &point->slope, error);
}

/* --- directions --- */

/* Remembers the last iteration if the loss was convex along it. */
static gboolean
remember (Run *run, GTorchImpl *grad, GError **error)
{
  g_autoptr (GTorchImpl) length = gtorch_impl_new_number (run->t);
  g_autoptr (GTorchImpl) change = gtorch_op_sub (grad, run->grad, 1, error);
  g_autoptr (GTorchImpl) step =
      change != NULL ? gtorch_op_mul (run->direction, length, error) : NULL;
  g_autoptr (GTorchImpl) curvature = step != NULL ? gtorch_op_dot (change, step, error) : NULL;
  g_autoptr (GTorchImpl) square = NULL;
  Pair pair;
  gdouble value;

  if (curvature == NULL || !read_number (curvature, &value, error))
    return FALSE;
  if (!(value > LEAST_CURVATURE))
    return TRUE;
  square = gtorch_op_dot (change, change, error);
  pair.weight = square != NULL ? gtorch_op_reciprocal (curvature, error) : NULL;
  if (pair.weight == NULL)
    return FALSE;
  while (run->pairs->len >= run->given.history_size)
    g_array_remove_index (run->pairs, 0);
  pair.change = g_steal_pointer (&change);
  pair.step = g_steal_pointer (&step);
  g_array_append_val (run->pairs, pair);
  g_clear_pointer (&run->scale, gtorch_impl_unref);
  run->scale = gtorch_op_div (curvature, square, error);
  return run->scale != NULL;
}

/* Multiplies the approximate inverse Hessian by the vector, in two passes over the remembered pairs. The host
 * waits for none of the products. */
static gboolean
multiply (Run *run, GTorchImpl **vector, GError **error)
{
  g_autoptr (GPtrArray) first = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  GTorchImpl *scaled;
  guint i, n = run->pairs->len;

  g_ptr_array_set_size (first, n);
  for (i = n; i-- > 0;)
    {
      const Pair *pair = &g_array_index (run->pairs, Pair, i);

      first->pdata[i] = gtorch_op_dot (pair->step, *vector, error);
      if (first->pdata[i] == NULL || !gtorch_op_mul_inplace (first->pdata[i], pair->weight, error)
          || !gtorch_op_addcmul_inplace (*vector, pair->change, first->pdata[i], -1, error))
        return FALSE;
    }
  scaled = gtorch_op_mul (*vector, run->scale, error);
  if (scaled == NULL)
    return FALSE;
  gtorch_impl_unref (*vector);
  *vector = scaled;
  for (i = 0; i < n; i++)
    {
      const Pair *pair = &g_array_index (run->pairs, Pair, i);
      g_autoptr (GTorchImpl) second = gtorch_op_dot (pair->change, scaled, error);

      if (second == NULL || !gtorch_op_mul_inplace (second, pair->weight, error)
          || !gtorch_op_sub_inplace (first->pdata[i], second, 1, error)
          || !gtorch_op_addcmul_inplace (scaled, pair->step, first->pdata[i], 1, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
find_direction (Run *run, GTorchImpl *grad, GError **error)
{
  g_autoptr (GTorchImpl) direction = NULL;

  if (run->n_iter > 1 && !remember (run, grad, error))
    return FALSE;
  direction = gtorch_op_neg (grad, error);
  if (direction == NULL || (run->n_iter > 1 && !multiply (run, &direction, error)))
    return FALSE;
  g_clear_pointer (&run->direction, gtorch_impl_unref);
  run->direction = g_steal_pointer (&direction);
  g_clear_pointer (&run->grad, gtorch_impl_unref);
  run->grad = gtorch_impl_ref (grad);
  return TRUE;
}

/* --- the state --- */

/* Gets a tensor of the state: a vector of all parameters, of which there are n, or one number. *impl is
 * borrowed, and NULL if there is none. */
static gboolean
get_state (Run *run, const gchar *name, gboolean is_vector, gint64 n, GTorchImpl **impl,
           GError **error)
{
  GTorchTensor *tensor =
      gtorch_optimizer_get_state (GTORCH_OPTIMIZER (run->self), run->params->pdata[0], name);

  *impl = tensor != NULL ? gtorch_tensor_unwrap (tensor) : NULL;
  if (*impl == NULL
      || ((*impl)->storage != NULL && (*impl)->n_dims == (is_vector ? 1 : 0)
          && (*impl)->numel == (is_vector ? n : 1)
          && gtorch_dtype_kind ((*impl)->dtype) != GTORCH_KIND_COMPLEX))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("lbfgs: the state “%s” has shape %s, it must be %s"), name,
               gtorch_impl_shape_str (*impl),
               is_vector ? _ ("a vector of all parameters") : _ ("one number"));
  return FALSE;
}

static gboolean
read_state (Run *run, const gchar *name, const GTorchImpl *grad, gboolean is_vector,
            GTorchImpl **value, GError **error)
{
  GTorchImpl *impl;

  *value = NULL;
  if (!get_state (run, name, is_vector, grad->numel, &impl, error))
    return FALSE;
  if (impl == NULL)
    return TRUE;
  *value = gtorch_impl_to (impl, gtorch_impl_device (grad), grad->dtype, error);
  return *value != NULL;
}

static gboolean
read_state_number (Run *run, const gchar *name, gdouble *value, GError **error)
{
  GTorchImpl *impl;

  return get_state (run, name, FALSE, 1, &impl, error)
         && (impl == NULL || read_number (impl, value, error));
}

static gboolean
read_pairs (Run *run, const GTorchImpl *grad, GError **error)
{
  for (run->n_stored = 0;; run->n_stored++)
    {
      g_autofree gchar *change = g_strdup_printf ("old_dirs.%u", run->n_stored);
      g_autofree gchar *step = g_strdup_printf ("old_stps.%u", run->n_stored);
      g_autofree gchar *weight = g_strdup_printf ("ro.%u", run->n_stored);
      Pair pair = { NULL };
      const gboolean success = read_state (run, change, grad, TRUE, &pair.change, error)
                               && read_state (run, step, grad, TRUE, &pair.step, error)
                               && read_state (run, weight, grad, FALSE, &pair.weight, error);

      if (!success || pair.change == NULL || pair.step == NULL || pair.weight == NULL)
        {
          pair_clear (&pair);
          return success;
        }
      g_array_append_val (run->pairs, pair);
    }
}

/* An incomplete state, such as one that was loaded in part, begins anew. */
static gboolean
read_all (Run *run, const GTorchImpl *grad, GError **error)
{
  if (!read_state_number (run, "n_iter", &run->n_iter, error)
      || !read_state_number (run, "t", &run->t, error)
      || !read_state_number (run, "prev_loss", &run->loss, error)
      || !read_state (run, "d", grad, TRUE, &run->direction, error)
      || !read_state (run, "prev_flat_grad", grad, TRUE, &run->grad, error)
      || !read_state (run, "H_diag", grad, FALSE, &run->scale, error)
      || !read_pairs (run, grad, error))
    return FALSE;
  if (run->direction == NULL || run->grad == NULL || run->scale == NULL)
    run->n_iter = 0;
  return TRUE;
}

static void
write_state (Run *run, const gchar *name, GTorchImpl *value)
{
  g_autoptr (GTorchTensor) tensor =
      value != NULL ? gtorch_tensor_wrap (gtorch_impl_ref (value)) : NULL;

  gtorch_optimizer_set_state (GTORCH_OPTIMIZER (run->self), run->params->pdata[0], name, tensor);
}

static void
write_number (Run *run, const gchar *name, gdouble value)
{
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (value);

  number->is_number = FALSE;
  write_state (run, name, number);
}

static void
write_all (Run *run)
{
  guint i;

  write_number (run, "n_iter", run->n_iter);
  write_number (run, "t", run->t);
  write_number (run, "prev_loss", run->loss);
  write_state (run, "d", run->direction);
  write_state (run, "prev_flat_grad", run->grad);
  write_state (run, "H_diag", run->scale);
  for (i = 0; i < MAX (run->pairs->len, run->n_stored); i++)
    {
      const Pair *pair =
          i < run->pairs->len ? &g_array_index (run->pairs, Pair, i) : &(const Pair){ NULL };
      g_autofree gchar *change = g_strdup_printf ("old_dirs.%u", i);
      g_autofree gchar *step = g_strdup_printf ("old_stps.%u", i);
      g_autofree gchar *weight = g_strdup_printf ("ro.%u", i);

      write_state (run, change, pair->change);
      write_state (run, step, pair->step);
      write_state (run, weight, pair->weight);
    }
}

/* --- the iterations --- */

/* A new history: of an identity matrix as the inverse Hessian. */
static gboolean
begin (Run *run, const GTorchImpl *grad, GError **error)
{
  g_array_set_size (run->pairs, 0);
  g_clear_pointer (&run->scale, gtorch_impl_unref);
  run->scale = gtorch_op_full (NULL, 0, 1, grad->dtype, gtorch_impl_device (grad), error);
  return run->scale != NULL;
}

static gboolean
find_length (Run *run, GTorchImpl *grad, GError **error)
{
  g_autoptr (GTorchImpl) sizes = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  gdouble total;

  run->t = run->lr;
  if (run->n_iter > 1)
    return TRUE;
  sizes = gtorch_op_abs (grad, error);
  sum = sizes != NULL ? gtorch_op_sum (sizes, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error) : NULL;
  if (sum == NULL || !read_number (sum, &total, error))
    return FALSE;
  run->t = (1 / total < 1 ? 1 / total : 1) * run->lr;
  return TRUE;
}

/* Moves the parameters, and computes the loss and the gradient there, unless nobody needs them. */
static gboolean
advance (Run *run, GTorchLinePoint *point, gboolean is_last, gint64 n_left, gint64 *n_evals,
         GError **error)
{
  g_autoptr (GTorchTensor) loss = NULL;
  g_auto (GTorchLinePoint) found = { .t = run->t };
  gdouble longest;

  if (run->given.line_search_fn == GTORCH_LINE_SEARCH_NONE)
    {
      if (!move (run, run->direction, run->t, error))
        return FALSE;
      if (is_last)
        return TRUE;
      gtorch_line_point_clear (point);
      loss = call_closure (run, &point->loss, &point->grad, error);
      *n_evals += 1;
      return loss != NULL;
    }
  if (!keep_params (run, error) || !read_greatest (run->direction, &longest, error)
      || !gtorch_strong_wolfe (evaluate, run, point, longest, n_left, &found, n_evals, error)
      || !move (run, run->direction, found.t, error))
    return FALSE;
  run->t = found.t;
  point->loss = found.loss;
  gtorch_line_point_clear (point);
  point->grad = g_steal_pointer (&found.grad);
  return TRUE;
}

/* Does one iteration. *more tells whether another one is worth while. */
static gboolean
iterate (Run *run, GTorchLinePoint *point, gboolean is_last, gint64 n_left, gint64 *n_evals,
         gboolean *more, GError **error)
{
  const GTorchLBFGS *self = &run->given;
  gdouble greatest_grad, greatest;

  *more = FALSE;
  run->n_iter++;
  if ((run->n_iter == 1 && !begin (run, point->grad, error))
      || !find_direction (run, point->grad, error))
    return FALSE;
  run->loss = point->loss;
  if (!find_length (run, point->grad, error)
      || !read_dot (point->grad, run->direction, &point->slope, error))
    return FALSE;
  if (point->slope > -self->tolerance_change)
    return TRUE;
  if (!advance (run, point, is_last, n_left, n_evals, error))
    return FALSE;
  if (is_last || *n_evals >= n_left)
    return TRUE;
  if (!read_greatest (point->grad, &greatest_grad, error)
      || !read_greatest (run->direction, &greatest, error))
    return FALSE;
  *more = !(greatest_grad <= self->tolerance_grad)
          && !(greatest * fabs (run->t) <= self->tolerance_change)
          && !(fabs (point->loss - run->loss) < self->tolerance_change);
  return TRUE;
}

static GTorchTensor *
run_step (Run *run, GError **error)
{
  const GTorchLBFGS *self = &run->given;
  const gint64 most = self->max_eval == GTORCH_NONE ? self->max_iter * 5 / 4 : self->max_eval;
  g_auto (GTorchLinePoint) point = { 0 };
  g_autoptr (GTorchTensor) loss = NULL;
  gint64 n_evals = 1, i;
  gboolean more;
  gdouble greatest;

  if (!read_state_number (run, "func_evals", &run->n_evals, error))
    return NULL;
  loss = call_closure (run, &point.loss, &point.grad, error);
  if (loss == NULL || !read_greatest (point.grad, &greatest, error))
    return NULL;
  more = !(greatest <= self->tolerance_grad);
  if (more && !read_all (run, point.grad, error))
    return NULL;
  for (i = 1; more; i++)
    {
      gint64 n = 0;

      if (!iterate (run, &point, i == self->max_iter, most - n_evals, &n, &more, error))
        return NULL;
      n_evals += n;
    }
  if (i > 1)
    write_all (run);
  write_number (run, "func_evals", run->n_evals + n_evals);
  return g_steal_pointer (&loss);
}

GTorchTensor *
gtorch_lbfgs_step_closure (GTorchOptimizer *optimizer, GTorchOptimizerClosure closure,
                           gpointer user_data, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchParamGroup) group =
      g_list_model_get_item (gtorch_optimizer_get_param_groups (optimizer), 0);
  g_auto (Run) run = {
    .self = GTORCH_LBFGS (optimizer),
    .closure = closure,
    .user_data = user_data,
    .params = gtorch_optimizer_dup_params (optimizer),
    .pairs = g_array_new (FALSE, FALSE, sizeof (Pair)),
  };

  g_array_set_clear_func (run.pairs, pair_clear);
  if (run.params->len == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there are no parameters to optimize"), "lbfgs");
      return NULL;
    }
  run.lr = gtorch_param_group_get_learning_rate (group);
  gtorch_param_group_fill (group, optimizer, &run.given);
  return run_step (&run, error);
}
