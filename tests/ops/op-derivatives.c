/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The operation becomes a real function of all its inputs: the sum of the products of its results with
 * fixed weights, for complex numbers Re (conj (weight) * result). With those weights as incoming
 * gradients, the backward pass returns the gradient of that function, and a small move of all inputs
 * along a random direction d must change it by Re (sum (conj (gradient) * d)). For complex numbers d is
 * complex, so that both parts of the gradient are tested. The second order does the same with the sum of
 * the products of the gradients with weights, as a function of the inputs and of the incoming gradients. */

#include "config.h"

#include "op-derivatives.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "gtorch/autograd/gtorch-forward-ad.h"
#include "gtorch/dispatch/gtorch-grad-mode.h"

#define STEP          1e-5
#define MAX_VARIABLES 24

/* A variable of the function: an input, or an incoming gradient. */
typedef struct
{
  GTorchImpl *host; /* NULL if omitted */
  GTorchImpl *leaf; /* the same elements on the device under test */
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;
  gboolean is_wanted, is_expanded;
  gboolean is_dual; /* the direction is its tangent */
  Number *values, *direction;
} Variable;

typedef struct
{
  const Derivative *form;
  Variable inputs[MAX_VARIABLES];
  guint n;
  Variable
      uppers[MAX_VARIABLES]; /* one for each result; those of differentiable ones have a host */
  guint n_uppers;
  GRand *rand;
} Case;

static void
variable_clear (Variable *self)
{
  g_clear_pointer (&self->host, gtorch_impl_unref);
  g_clear_pointer (&self->leaf, gtorch_impl_unref);
  g_free (self->values);
  g_free (self->direction);
}

static void
case_clear (Case *self)
{
  guint i;

  for (i = 0; i < self->n; i++)
    variable_clear (&self->inputs[i]);
  for (i = 0; i < self->n_uppers; i++)
    variable_clear (&self->uppers[i]);
  g_clear_pointer (&self->rand, g_rand_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Case, case_clear)

static void
grads_free (GPtrArray *grads)
{
  gtorch_impl_clear ((GTorchImpl **) grads->pdata, grads->len);
  g_ptr_array_unref (grads);
}

typedef GPtrArray GradArray; /* elements may be NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GradArray, grads_free)

static gboolean
is_floating (guint dtype)
{
  return gtorch_dtype_kind (dtype) >= GTORCH_KIND_FLOAT;
}

static Number
random_number (GRand *rand, guint dtype)
{
  const gdouble re = g_rand_double_range (rand, -1, 1);

  return gtorch_dtype_kind (dtype) == GTORCH_KIND_COMPLEX
             ? re + g_rand_double_range (rand, -1, 1) * I
             : re;
}

/* Writes values + distance * direction to the leaf. */
static void
variable_move (Variable *self, gdouble distance)
{
  gint64 i;

  for (i = 0; i < self->host->numel; i++)
    element_set (self->host, i, self->values[i] + distance * self->direction[i]);
  g_clear_pointer (&self->leaf, gtorch_impl_unref);
  self->leaf = impl_to_test_device (self->host);
  if (self->is_wanted)
    gtorch_autograd_ensure (self->leaf)->requires_grad = TRUE;
}

/* Takes ownership of `host`, which is in its layout. If that has size 1 in the first dimension and the
 * shape has more, it is repeated. */
static void
variable_init (Variable *self, GTorchImpl *host, const gint64 *shape, guint n_dims, GRand *rand)
{
  gint64 i;

  self->host = host;
  self->n_dims = n_dims;
  for (i = 0; i < n_dims; i++)
    self->shape[i] = shape[i];
  self->is_expanded = n_dims > 0 && host->shape[0] != shape[0];
  self->values = g_new (Number, MAX (host->numel, 1));
  self->direction = g_new (Number, MAX (host->numel, 1));
  for (i = 0; i < host->numel; i++)
    {
      self->values[i] = element_get (host, i);
      self->direction[i] = random_number (rand, host->dtype);
    }
}

/* Returns a view of the leaf with the direction as its tangent. */
static GTorchImpl *
dual_new (const Variable *self, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_impl_new (gtorch_device_cpu (), self->host->dtype,
                                                 self->host->shape, self->host->n_dims, error);
  g_autoptr (GTorchImpl) tangent = NULL;
  g_autoptr (GTorchImpl) placed = NULL;
  g_autoptr (GTorchImpl) dual = NULL;
  gint64 i;

  for (i = 0; i < host->numel; i++)
    element_set (host, i, self->direction[i]);
  tangent = impl_to_test_device (host);
  placed = gtorch_tangent_lay_out (tangent, self->leaf, error);
  dual = gtorch_op_view_as (self->leaf, self->leaf, error);
  if (dual != NULL && placed != NULL)
    gtorch_tangent_set (dual, placed);
  return g_steal_pointer (&dual);
}

static GTorchImpl *
variable_get (const Variable *self, GError **error)
{
  g_autoptr (GTorchImpl) dual = NULL;

  if (self->leaf == NULL)
    return NULL;
  if (self->is_dual)
    {
      dual = dual_new (self, error);
      if (dual == NULL || !self->is_expanded)
        return g_steal_pointer (&dual);
      return gtorch_op_expand (dual, self->shape, self->n_dims, error);
    }
  return self->is_expanded ? gtorch_op_expand (self->leaf, self->shape, self->n_dims, error)
                           : gtorch_impl_ref (self->leaf);
}

gboolean
derivative_is_undefined (const GTorchOpSample *sample, guint input)
{
  static const gchar *const undefined[] = {
    "attention_backward",
    "batch_norm_backward",
    "cross_entropy.weight",
    "cumprod_backward",
    "gelu_second",
    "geqrf",
    "layer_norm_backward",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_ldl_solve",
    "heaviside",
    "igamma.self",
    "igammac.self",
    "linear_grads",
    "native_cross_entropy.weight",
    "nll_loss.weight",
    "nll_loss_backward.weight",
    "nll_loss_smooth.weight",
    "prod_others",
    "special_airy_ai",
    "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v",
    "special_chebyshev_polynomial_w",
    "special_hermite_polynomial_h",
    "special_hermite_polynomial_he",
    "special_laguerre_polynomial_l",
    "special_legendre_polynomial_p",
    "special_shifted_chebyshev_polynomial_t",
    "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v",
    "special_shifted_chebyshev_polynomial_w",
    "special_zeta.self",
    "unique",
  };
  const gchar *op = gtorch_ops[sample->op].name;
  g_autofree gchar *full = g_strdup_printf ("%s.%s", op, sample->tensors[input].name);
  guint i;

  /* with probabilities in place of classes it is a product like any other */
  if (sample->op == GTORCH_OP_CROSS_ENTROPY && sample->tensors[1].dtype == GTORCH_DTYPE_NONE)
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (undefined); i++)
    if (g_str_equal (undefined[i], op) || g_str_equal (undefined[i], full))
      return TRUE;
  return FALSE;
}

guint
sample_count_floats (const GTorchOpSample *sample)
{
  guint i, n = 0;

  for (i = 0; i < sample->n_tensors; i++)
    n += sample->tensors[i].n_dims >= 0 && sample->tensors[i].dtype == GTORCH_DTYPE_NONE;
  return n;
}

static guint
float_dtype (Parts parts, guint nth)
{
  const gboolean is_complex = parts == PARTS_COMPLEX || (parts == PARTS_REAL_FIRST && nth > 0)
                              || (parts == PARTS_COMPLEX_FIRST && nth == 0);

  return is_complex ? GTORCH_DTYPE_COMPLEX128 : GTORCH_DTYPE_FLOAT64;
}

static void
case_init (Case *self, const Derivative *form)
{
  const GTorchOpSample *sample = form->sample;
  guint i, n_floats = 0;

  self->form = form;
  self->rand = g_rand_new_with_seed (g_str_hash (gtorch_ops[sample->op].name) + sample->index + 7
                                     + 1000 * form->round);
  g_assert_cmpuint (sample->n_tensors, <=, MAX_VARIABLES);
  self->n = sample->n_tensors;
  for (i = 0; i < sample->n_tensors; i++)
    {
      GTorchSampleTensor spec = sample->tensors[i];
      const gint64 first = spec.shape[0];
      guint dtype = spec.dtype;
      Layout layout = form->layout;
      GTorchImpl *host;

      if (spec.n_dims < 0)
        continue;
      if (dtype == GTORCH_DTYPE_NONE)
        dtype = float_dtype (form->parts, n_floats++);
      else if (layout == LAYOUT_EXPANDED)
        layout = LAYOUT_TRANSPOSED; /* the indices stay unique */
      if (layout == LAYOUT_EXPANDED)
        {
          if (spec.n_dims > 0)
            spec.shape[0] = MIN (first, 1);
          layout = LAYOUT_CONTIGUOUS;
        }
      host = input_new (&spec, dtype, layout, sample->low, sample->high, self->rand);
      variable_init (&self->inputs[i], host, sample->tensors[i].shape, spec.n_dims, self->rand);
      self->inputs[i].is_wanted = is_floating (dtype) && !derivative_is_undefined (sample, i);
      variable_move (&self->inputs[i], 0);
    }
}

/* Creates a gradient for each result that has a history. */
static void
case_add_uppers (Case *self, GPtrArray *results)
{
  guint i;

  for (i = 0; i < results->len; i++)
    {
      GTorchImpl *result = results->pdata[i];
      GTorchSampleTensor spec = { .n_dims = result->n_dims };
      Layout layout = self->form->upper_layout;
      guint k;

      g_assert_cmpuint (i, <, MAX_VARIABLES);
      self->n_uppers = i + 1;
      if (!gtorch_impl_requires_grad (result))
        continue;
      g_assert_cmpuint (result->n_dims, <=, G_N_ELEMENTS (spec.shape));
      for (k = 0; k < result->n_dims; k++)
        spec.shape[k] = result->shape[k];
      if (layout == LAYOUT_EXPANDED)
        {
          if (spec.n_dims > 0)
            spec.shape[0] = MIN (spec.shape[0], 1);
          layout = LAYOUT_CONTIGUOUS;
        }
      variable_init (&self->uppers[i], input_new (&spec, result->dtype, layout, -1, 1, self->rand),
                     result->shape, result->n_dims, self->rand);
      self->uppers[i].is_wanted = self->form->order > 1;
      variable_move (&self->uppers[i], 0);
    }
}

/* A tensor that is written to has its own memory, in the layout of the inputs. */
static GTorchImpl *
writable_copy (const Case *self, GTorchImpl *impl, GError **error)
{
  Layout layout = self->form->layout;
  GTorchSampleTensor spec = { .n_dims = impl->n_dims };
  g_autoptr (GTorchImpl) host = NULL;
  g_autoptr (GTorchImpl) copy = NULL;
  guint i;

  for (i = 0; i < impl->n_dims; i++)
    spec.shape[i] = impl->shape[i];
  host = input_new (&spec, impl->dtype, layout == LAYOUT_EXPANDED ? LAYOUT_CONTIGUOUS : layout, 0,
                    0, self->rand);
  copy = impl_to_test_device (host);
  return gtorch_op_copy_inplace (copy, impl, FALSE, error) ? g_steal_pointer (&copy) : NULL;
}

static GPtrArray *
evaluate (const Case *self, GError **error)
{
  const GTorchOpSample *sample = self->form->sample;
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GradArray) inputs = g_ptr_array_new ();
  const GTorchInvoker *invokers = gtorch_op_invokers;
  guint i;

  g_ptr_array_set_size (inputs, self->n);
  for (i = 0; i < self->n; i++)
    {
      inputs->pdata[i] = variable_get (&self->inputs[i], error);
      if (inputs->pdata[i] == NULL && self->inputs[i].leaf != NULL)
        return NULL;
    }
  if (self->form->in_place)
    {
      GTorchImpl *copy = writable_copy (self, inputs->pdata[0], error);

      if (copy == NULL)
        return NULL;
      gtorch_impl_unref (inputs->pdata[0]);
      inputs->pdata[0] = copy;
      invokers = gtorch_op_in_place_invokers;
    }
  gtorch_manual_seed (11); /* so that random operations draw the same numbers each time */
  if (!invokers[sample->op]((GTorchImpl **) inputs->pdata, self->n, sample->attrs, results, error))
    return NULL;
  return g_steal_pointer (&results);
}

/* Runs a backward pass from the roots with the incoming gradients `arriving`. Returns the gradient of
 * each wanted tensor. */
static GradArray *
go_backward (GPtrArray *roots, GPtrArray *arriving, GPtrArray *wanted, gboolean create_graph,
             GError **error)
{
  g_autoptr (GradArray) grads = g_ptr_array_new ();
  GTorchBackward backward = {
    .roots = (GTorchImpl **) roots->pdata,
    .grads = (GTorchImpl **) arriving->pdata,
    .n_roots = roots->len,
    .inputs = (GTorchImpl **) wanted->pdata,
    .n_inputs = wanted->len,
    .create_graph = create_graph,
  };

  g_ptr_array_set_size (grads, wanted->len);
  backward.results = (GTorchImpl **) grads->pdata;
  if (roots->len > 0 && !gtorch_engine_run (&backward, error))
    return NULL;
  return g_steal_pointer (&grads);
}

static void
add_wanted (GPtrArray *wanted, const Variable *variables, guint n)
{
  guint i;

  for (i = 0; i < n; i++)
    if (variables[i].is_wanted && variables[i].leaf != NULL)
      g_ptr_array_add (wanted, variables[i].leaf);
}

/* Returns the gradient of each wanted input. */
static GradArray *
first_gradients (const Case *self, gboolean create_graph, GError **error)
{
  g_autoptr (GPtrArray) results = evaluate (self, error);
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) arriving =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
  guint i;

  if (results == NULL)
    return NULL;
  for (i = 0; i < self->n_uppers; i++)
    if (self->uppers[i].leaf != NULL)
      {
        GTorchImpl *upper = variable_get (&self->uppers[i], error);

        if (upper == NULL)
          return NULL;
        g_ptr_array_add (roots, results->pdata[i]);
        g_ptr_array_add (arriving, upper);
      }
  add_wanted (wanted, self->inputs, self->n);
  return go_backward (roots, arriving, wanted, create_graph, error);
}

/* The weights are fixed and asymmetric. */
static Number
weight (guint nth, gint64 i, guint dtype)
{
  return cos (1.0 + i + 10.0 * nth)
         + (gtorch_dtype_kind (dtype) == GTORCH_KIND_COMPLEX ? cos (3.0 + i + 10.0 * nth) * I : 0);
}

static GTorchImpl *
weights_new (const GTorchImpl *like, guint nth)
{
  g_autoptr (GTorchImpl) host =
      gtorch_impl_new (gtorch_device_cpu (), like->dtype, like->shape, like->n_dims, NULL);
  gint64 i;

  for (i = 0; i < host->numel; i++)
    element_set (host, i, weight (nth, i, host->dtype));
  return impl_to_test_device (host);
}

/* Differentiates the weighted sum of the gradients with respect to each wanted input and to the incoming
 * gradients. */
static GradArray *
second_gradients (const Case *self, GError **error)
{
  g_autoptr (GradArray) grads = first_gradients (self, TRUE, error);
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) arriving =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
  guint i;

  if (grads == NULL)
    return NULL;
  for (i = 0; i < grads->len; i++)
    if (grads->pdata[i] != NULL && gtorch_impl_requires_grad (grads->pdata[i]))
      {
        g_ptr_array_add (roots, grads->pdata[i]);
        g_ptr_array_add (arriving, weights_new (grads->pdata[i], i));
      }
  add_wanted (wanted, self->inputs, self->n);
  add_wanted (wanted, self->uppers, self->n_uppers);
  return go_backward (roots, arriving, wanted, FALSE, error);
}

/* Computes the function; *size is the sum of the absolute values of its terms. */
static gboolean
number (const Case *self, gdouble *sum, gdouble *size, GError **error)
{
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GradArray) grads = NULL;
  GPtrArray *values;
  guint k;
  gint64 i;

  if (self->form->order == 1)
    values = results = evaluate (self, error);
  else
    values = grads = first_gradients (self, FALSE, error);
  if (values == NULL)
    return FALSE;
  *sum = *size = 0;
  for (k = 0; k < values->len; k++)
    {
      const GTorchImpl *value = values->pdata[k];
      const Variable *upper = self->form->order == 1 ? &self->uppers[k] : NULL;

      if (value == NULL || (upper != NULL && upper->host == NULL))
        continue;
      for (i = 0; i < value->numel; i++)
        {
          const Number w =
              upper == NULL ? weight (k, i, value->dtype) : upper->values[i % upper->host->numel];
          const Number term = conj (w) * element_get (value, i);

          *sum += creal (term);
          *size += cabs (term);
        }
    }
  return TRUE;
}

/* Moves one variable along its direction. `margin` bounds the rounding error of the difference: some
 * units in the last place of the terms, divided by the step. */
static gboolean
difference_along (const Case *self, Variable *variable, gdouble *numeric, gdouble *margin,
                  GError **error)
{
  gdouble above, below, size, other;
  gboolean success;

  variable_move (variable, STEP);
  success = number (self, &above, &size, error);
  variable_move (variable, -STEP);
  success = success && number (self, &below, &other, error);
  variable_move (variable, 0);
  if (!success)
    return FALSE;
  *numeric = (above - below) / (2 * STEP);
  *margin = 64 * DBL_EPSILON * MAX (size, other) / STEP;
  return TRUE;
}

static gboolean
agrees (const Case *self, Variable *variable, const GTorchImpl *grad, gdouble *analytic,
        gdouble *numeric, GError **error)
{
  gdouble size = 0, margin;
  gint64 i;

  *analytic = 0;
  for (i = 0; grad != NULL && i < grad->numel; i++)
    {
      const Number term = conj (element_get (grad, i)) * variable->direction[i];

      *analytic += creal (term);
      size += cabs (term);
    }
  if (!difference_along (self, variable, numeric, &margin, error))
    return FALSE;
  /* the truncation error is the square of the step times a sixth of the third derivative: 1e-10 times
   * less than 1e4 for the ranges of the samples */
  return fabs (*numeric - *analytic) <= margin + 1e-6 * (1 + size);
}

/* Reports the first element with a wrong gradient. */
static gchar *
find_culprit (const Case *self, Variable *variable, const gchar *name, const GTorchImpl *grad)
{
  const gboolean is_complex = gtorch_dtype_kind (variable->host->dtype) == GTORCH_KIND_COMPLEX;
  gdouble analytic, numeric;
  gint64 i, k, n = variable->host->numel;

  for (i = 0; i < n * (is_complex ? 2 : 1); i++)
    {
      g_autoptr (GError) error = NULL;

      for (k = 0; k < n; k++)
        variable->direction[k] = k == i % n ? (i < n ? 1 : I) : 0;
      if (!agrees (self, variable, grad, &analytic, &numeric, &error) && error == NULL)
        return g_strdup_printf ("%s, element %" G_GINT64_FORMAT
                                "%s: the gradient is %.10g%s, differences give %.10g",
                                name, i % n, i < n ? "" : " (imaginary)", analytic,
                                grad == NULL ? " (none)" : "", numeric);
    }
  return g_strdup_printf ("%s: the gradient is wrong in several elements", name);
}

/* An in-place call needs a result with the shape and dtype of input 0. */
static gboolean
can_be_in_place (Case *self)
{
  Derivative plain = *self->form;
  const Derivative *form = self->form;
  g_autoptr (GPtrArray) results = NULL;
  gboolean can;

  plain.in_place = FALSE;
  self->form = &plain;
  results = evaluate (self, NULL);
  self->form = form;
  if (results == NULL)
    return FALSE;
  can = results->len > 0 && self->inputs[0].host != NULL
        && ((GTorchImpl *) results->pdata[0])->dtype == self->inputs[0].host->dtype
        && ((GTorchImpl *) results->pdata[0])->n_dims == self->inputs[0].n_dims
        && memcmp (((GTorchImpl *) results->pdata[0])->shape, self->inputs[0].shape,
                   self->inputs[0].n_dims * sizeof (gint64))
               == 0;
  return can;
}

/* Returns TRUE if the error says that the operation does not support such inputs. */
static gboolean
is_no_form (const Derivative *form, const GError *error)
{
  const GTorchOpClass *op = &gtorch_ops[form->sample->op];

  if (form->parts != PARTS_REAL && g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE))
    return form->parts != PARTS_COMPLEX || !op_computes (op)
           || !(op->dtypes & GTORCH_DTYPES (COMPLEX128)) || op->promote == GTORCH_PROMOTE_NONE;
  if (form->parts == PARTS_REAL && g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE))
    return !(op->dtypes & GTORCH_DTYPES (FLOAT64));
  /* views may be refused because of their layout */
  return form->layout != LAYOUT_CONTIGUOUS
         && (form->sample->op == GTORCH_OP_VIEW || form->sample->op == GTORCH_OP_VIEW_AS
             || form->sample->op == GTORCH_OP_VIEW_AS_COMPLEX)
         && g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

DerivativeResult
derivative_check (const Derivative *form, gchar **message, GError **error)
{
  g_auto (Case) self = { NULL };
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GradArray) grads = NULL;
  g_autoptr (GError) inner = NULL;
  guint i, k, next = 0, n_uppers = 0;

  case_init (&self, form);
  if (form->in_place && !can_be_in_place (&self))
    return DERIVATIVE_NO_FORM;
  results = evaluate (&self, &inner);
  if (results == NULL)
    {
      if (is_no_form (form, inner))
        return DERIVATIVE_NO_FORM;
      g_propagate_error (error, g_steal_pointer (&inner));
      return DERIVATIVE_FAILS;
    }
  for (i = 0; i < results->len; i++)
    {
      const guint dtype = ((GTorchImpl *) results->pdata[i])->dtype;

      if (is_floating (dtype) && gtorch_dtype_infos[dtype].eps > 1e-10)
        return DERIVATIVE_NO_FORM; /* a conversion: too coarse for differences */
    }
  case_add_uppers (&self, results);
  g_clear_pointer (&results, g_ptr_array_unref);
  for (i = 0; i < self.n_uppers; i++)
    n_uppers += self.uppers[i].host != NULL;
  if (n_uppers == 0)
    return DERIVATIVE_NO_FORM;
  grads =
      form->order == 1 ? first_gradients (&self, FALSE, error) : second_gradients (&self, error);
  if (grads == NULL)
    return DERIVATIVE_FAILS;
  for (i = 0; i < self.n + self.n_uppers; i++)
    {
      const gboolean is_upper = i >= self.n;
      gdouble analytic, numeric;
      Variable *variable;

      k = is_upper ? i - self.n : i;
      variable = is_upper ? &self.uppers[k] : &self.inputs[k];
      if (!variable->is_wanted || variable->leaf == NULL)
        continue;
      if (variable->host->numel == 0)
        {
          next++;
          continue;
        }
      if (!agrees (&self, variable, grads->pdata[next], &analytic, &numeric, &inner))
        {
          g_autofree gchar *name = g_strdup_printf (is_upper ? "gradient %u" : "input %u", k);

          if (inner == NULL)
            {
              *message = find_culprit (&self, variable, name, grads->pdata[next]);
              return DERIVATIVE_DIFFERS;
            }
          g_propagate_error (error, g_steal_pointer (&inner));
          return DERIVATIVE_FAILS;
        }
      next++;
    }
  return DERIVATIVE_AGREES;
}

/* --- tangents --- */

/* Makes the wanted inputs dual, or plain ones. */
static void
set_dual (Case *self, gboolean is_dual)
{
  guint i;

  for (i = 0; i < self->n; i++)
    self->inputs[i].is_dual = is_dual && self->inputs[i].is_wanted && self->inputs[i].leaf != NULL;
}

/* Moves all inputs along their directions, and computes the function. */
static gboolean
number_at (Case *self, gdouble distance, gdouble *sum, gdouble *size, GError **error)
{
  guint i;

  for (i = 0; i < self->n; i++)
    if (self->inputs[i].is_wanted && self->inputs[i].leaf != NULL)
      variable_move (&self->inputs[i], distance);
  return number (self, sum, size, error);
}

/* Sums the products of the tangents with the weights. The results are those of the operation, or its
 * gradients for the second order. */
static gboolean
sum_tangents (Case *self, gdouble *sum, gdouble *size, GError **error)
{
  const gboolean is_first = self->form->order == 1;
  g_autoptr (GTorchGradGuard) guard =
      is_first && self->form->round % 2 == 1 ? gtorch_no_grad () : NULL;
  g_autoptr (GPtrArray) results = is_first ? evaluate (self, error) : NULL;
  g_autoptr (GradArray) grads = is_first ? NULL : first_gradients (self, FALSE, error);
  GPtrArray *values = is_first ? results : grads;
  guint k;
  gint64 i;

  *sum = *size = 0;
  for (k = 0; values != NULL && k < values->len; k++)
    {
      const Variable *upper = is_first ? &self->uppers[k] : NULL;
      g_autoptr (GTorchImpl) tangent = NULL;

      if (values->pdata[k] == NULL || (upper != NULL && upper->host == NULL))
        continue;
      if (!gtorch_tangent_get (values->pdata[k], &tangent, error))
        return FALSE;
      for (i = 0; tangent != NULL && i < tangent->numel; i++)
        {
          const Number w =
              is_first ? upper->values[i % upper->host->numel] : weight (k, i, tangent->dtype);
          const Number term = conj (w) * element_get (tangent, i);

          *sum += creal (term);
          *size += cabs (term);
        }
    }
  return values != NULL;
}

DerivativeResult
derivative_check_forward (const Derivative *form, gchar **message, GError **error)
{
  g_auto (Case) self = { NULL };
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GError) inner = NULL;
  gdouble analytic, terms, above, below, size, other, numeric, margin;
  guint i, n_uppers = 0;
  gint64 n_elements = 0;
  gboolean success;

  case_init (&self, form);
  if (form->in_place && !can_be_in_place (&self))
    return DERIVATIVE_NO_FORM;
  results = evaluate (&self, &inner);
  if (results == NULL)
    {
      if (is_no_form (form, inner))
        return DERIVATIVE_NO_FORM;
      g_propagate_error (error, g_steal_pointer (&inner));
      return DERIVATIVE_FAILS;
    }
  for (i = 0; i < results->len; i++)
    {
      const guint dtype = ((GTorchImpl *) results->pdata[i])->dtype;

      if (is_floating (dtype) && gtorch_dtype_infos[dtype].eps > 1e-10)
        return DERIVATIVE_NO_FORM;
    }
  case_add_uppers (&self, results);
  g_clear_pointer (&results, g_ptr_array_unref);
  for (i = 0; i < self.n_uppers; i++)
    n_uppers += self.uppers[i].host != NULL && self.uppers[i].host->numel > 0;
  for (i = 0; i < self.n; i++)
    n_elements +=
        self.inputs[i].is_wanted && self.inputs[i].leaf != NULL ? self.inputs[i].leaf->numel : 0;
  if (n_uppers == 0 || n_elements == 0)
    return DERIVATIVE_NO_FORM;
  g_assert_cmpint (gtorch_forward_ad_enter_dual_level (NULL), ==, 0);
  set_dual (&self, TRUE);
  success = sum_tangents (&self, &analytic, &terms, error);
  set_dual (&self, FALSE);
  g_assert_true (gtorch_forward_ad_exit_dual_level (NULL));
  if (!success || !number_at (&self, STEP, &above, &size, error)
      || !number_at (&self, -STEP, &below, &other, error))
    return DERIVATIVE_FAILS;
  numeric = (above - below) / (2 * STEP);
  margin = 64 * DBL_EPSILON * MAX (size, other) / STEP;
  if (fabs (numeric - analytic) <= margin + 1e-6 * (1 + terms))
    return DERIVATIVE_AGREES;
  *message = g_strdup_printf ("the tangent is %.10g, differences give %.10g", analytic, numeric);
  return DERIVATIVE_DIFFERS;
}

gboolean
derivative_run_dual (const GTorchOpSample *sample, guint input, GError **error)
{
  const Derivative form = { .sample = sample, .order = 1 };
  g_auto (Case) self = { NULL };
  g_autoptr (GPtrArray) results = NULL;

  case_init (&self, &form);
  g_assert_cmpint (gtorch_forward_ad_enter_dual_level (NULL), ==, 0);
  self.inputs[input].is_dual = TRUE;
  results = evaluate (&self, error);
  self.inputs[input].is_dual = FALSE;
  g_assert_true (gtorch_forward_ad_exit_dual_level (NULL));
  return results != NULL;
}

gchar *
derivative_str (const Derivative *self)
{
  static const gchar *const parts[N_PARTS] = { "real", "complex", "real and complex",
                                               "complex and real" };

  return g_strdup_printf ("%s, sample %u, order %u%s, %s, %s, gradients %s, round %u",
                          gtorch_ops[self->sample->op].name, self->sample->index, self->order,
                          self->in_place ? " in place" : "", parts[self->parts],
                          layout_names[self->layout], layout_names[self->upper_layout],
                          self->round);
}
