/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gradient of every operation against differences of its values, in float64, over the samples of its
 * row; and the gradient of that gradient against differences of it. */

#include "config.h"

#include <math.h>

#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "op-values.h"

#define STEP        1e-5
#define MAX_TENSORS 16

typedef struct
{
  const GTorchSample *sample;
  GTorchImpl *inputs[MAX_TENSORS];
  gboolean wanted[MAX_TENSORS];
  guint n;
} Case;

static void
case_clear (Case *self)
{
  gtorch_impl_clear (self->inputs, self->n);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Case, case_clear)

static gdouble
weight (guint result, gint64 i)
{
  return cos ((gdouble) (i + result));
}

static GTorchImpl *
weights (const GTorchImpl *like, guint result)
{
  g_autoptr (GTorchImpl) impl =
      gtorch_impl_new (gtorch_device_cpu (), like->dtype, like->shape, like->n_dims, NULL);
  gint64 i;

  for (i = 0; i < impl->numel; i++)
    element_set (impl, i, weight (result, i) + I * weight (result, i + 2));
  return impl_to_test_device (impl);
}

static GPtrArray *
invoke (const Case *self, GError **error)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);

  if (!gtorch_op_invokers[self->sample->op](self->inputs, self->n, self->sample->attrs, results,
                                            error))
    return NULL;
  return g_steal_pointer (&results);
}

/* Gradients of the weighted sum of the results; NULL with no error if nothing can flow. */
static GPtrArray *
gradients (const Case *self, gboolean create_graph, GError **error)
{
  g_autoptr (GPtrArray) results = invoke (self, error);
  g_autoptr (GPtrArray) grads = NULL;
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) seeds = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
  GTorchBackward backward = { .create_graph = create_graph };
  guint i;

  if (results == NULL)
    return NULL;
  for (i = 0; i < results->len; i++)
    if (((GTorchImpl *) results->pdata[i])->dtype == GTORCH_DTYPE_FLOAT32)
      return NULL; /* a conversion: too coarse for differences */
  for (i = 0; i < results->len; i++)
    if (gtorch_impl_requires_grad (results->pdata[i]))
      {
        g_ptr_array_add (roots, results->pdata[i]);
        g_ptr_array_add (seeds, weights (results->pdata[i], i));
      }
  for (i = 0; i < self->n; i++)
    if (self->wanted[i])
      g_ptr_array_add (wanted, self->inputs[i]);
  if (roots->len == 0)
    return NULL;
  grads = g_ptr_array_new ();
  g_ptr_array_set_size (grads, wanted->len);
  backward.roots = (GTorchImpl **) roots->pdata;
  backward.grads = (GTorchImpl **) seeds->pdata;
  backward.n_roots = roots->len;
  backward.inputs = (GTorchImpl **) wanted->pdata;
  backward.n_inputs = wanted->len;
  backward.results = (GTorchImpl **) grads->pdata;
  if (!gtorch_engine_run (&backward, error))
    {
      gtorch_impl_clear ((GTorchImpl **) grads->pdata, grads->len);
      return NULL;
    }
  return g_steal_pointer (&grads);
}

static void
grads_free (GPtrArray *grads)
{
  if (grads == NULL)
    return;
  gtorch_impl_clear ((GTorchImpl **) grads->pdata, grads->len);
  g_ptr_array_unref (grads);
}

/* The weighted sum of the results (order 0) or of the gradients (order 1). */
static gdouble
weighted_sum (const Case *self, guint order)
{
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GError) error = NULL;
  GPtrArray *values;
  gdouble sum = 0;
  guint j;
  gint64 i;

  values = order == 0 ? (results = invoke (self, &error)) : gradients (self, FALSE, &error);
  g_assert_no_error (error);
  for (j = 0; values != NULL && j < values->len; j++)
    {
      GTorchImpl *value = values->pdata[j];

      /* of complex numbers both parts have a weight */
      if (value != NULL && gtorch_dtype_kind (value->dtype) >= GTORCH_KIND_FLOAT)
        for (i = 0; i < value->numel; i++)
          sum += creal (element_get (value, i)) * weight (j, i)
                 + cimag (element_get (value, i)) * weight (j, i + 2);
    }
  if (order > 0)
    grads_free (values);
  return sum;
}

static void
compare (const Case *self, guint k, GTorchImpl *grad, guint order)
{
  GTorchImpl *input = self->inputs[k];
  gint64 i;

  /* An argument that is not differentiated (a weight of classes): PyTorch's values tell whether it should. */
  if (grad == NULL && k > 0)
    return;
  for (i = 0; i < input->numel; i += test_step ())
    {
      Number before = element_get (input, i);
      gdouble analytic = grad != NULL ? creal (element_get (grad, i)) : 0;
      gdouble numeric;

      element_set (input, i, before + STEP);
      numeric = weighted_sum (self, order);
      element_set (input, i, before - STEP);
      numeric = (numeric - weighted_sum (self, order)) / (2 * STEP);
      element_set (input, i, before);
      if (fabs (numeric - analytic) <= 2e-5 * (1 + fabs (numeric)))
        continue;
      g_test_message ("%s, sample %u, order %u, input %u, element %" G_GINT64_FORMAT
                      ": the gradient is %.10g, differences give %.10g",
                      gtorch_ops[self->sample->op].name, self->sample->index, order + 1, k, i,
                      analytic, numeric);
      g_test_fail ();
      return;
    }
}

static void
case_init (Case *self, const GTorchSample *sample, Layout layout)
{
  g_autoptr (GRand) rand =
      g_rand_new_with_seed (g_str_hash (gtorch_ops[sample->op].name) + sample->index + 7);
  guint i;

  self->sample = sample;
  self->n = sample->n_tensors;
  for (i = 0; i < sample->n_tensors; i++)
    {
      const GTorchSampleTensor *spec = &sample->tensors[i];
      guint dtype = spec->dtype != GTORCH_DTYPE_NONE ? spec->dtype : GTORCH_DTYPE_FLOAT64;

      g_autoptr (GTorchImpl) host =
          input_new (spec, dtype, layout, sample->low, sample->high, rand);

      self->inputs[i] = impl_to_test_device (host);
      self->wanted[i] = self->inputs[i] != NULL && dtype == GTORCH_DTYPE_FLOAT64;
      if (self->wanted[i])
        gtorch_autograd_ensure (self->inputs[i])->requires_grad = TRUE;
    }
}

static void
check (const GTorchOpClass *op, guint order)
{
  guint s, layout, i, k;

  for (s = 0; s < gtorch_n_op_samples; s++)
    for (layout = LAYOUT_CONTIGUOUS; layout < LAYOUT_EXPANDED; layout++)
      {
        const GTorchSample *sample = &gtorch_op_samples[s];
        g_auto (Case) self = { NULL };
        g_autoptr (GError) error = NULL;
        GPtrArray *grads, *seconds = NULL;
        g_autoptr (GPtrArray) roots = g_ptr_array_new ();
        g_autoptr (GPtrArray) seeds =
            g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
        g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
        GTorchBackward backward = { 0 };

        if (sample->op != op->id || !sample->grad
            || ((op->id == GTORCH_OP_VIEW || op->id == GTORCH_OP_VIEW_AS_COMPLEX) && layout > 0))
          continue;
        case_init (&self, sample, layout);
        grads = gradients (&self, order > 0, &error);
        if (error != NULL && is_lacking (error))
          return;
        g_assert_no_error (error);
        if (grads == NULL)
          continue;
        if (order == 0)
          {
            for (i = 0, k = 0; k < self.n; k++)
              if (self.wanted[k])
                compare (&self, k, grads->pdata[i++], 0);
            grads_free (grads);
            continue;
          }

        for (i = 0; i < grads->len; i++)
          if (grads->pdata[i] != NULL && gtorch_impl_requires_grad (grads->pdata[i]))
            {
              g_ptr_array_add (roots, grads->pdata[i]);
              g_ptr_array_add (seeds, weights (grads->pdata[i], i));
            }
        for (k = 0; k < self.n; k++)
          if (self.wanted[k])
            g_ptr_array_add (wanted, self.inputs[k]);
        seconds = g_ptr_array_new ();
        g_ptr_array_set_size (seconds, wanted->len);
        backward.roots = (GTorchImpl **) roots->pdata;
        backward.grads = (GTorchImpl **) seeds->pdata;
        backward.n_roots = roots->len;
        backward.inputs = (GTorchImpl **) wanted->pdata;
        backward.n_inputs = wanted->len;
        backward.results = (GTorchImpl **) seconds->pdata;
        if (roots->len > 0)
          gtorch_engine_run (&backward, &error);
        if (error != NULL)
          {
            g_test_message ("%s, sample %u: %s", op->name, sample->index, error->message);
            g_test_fail ();
          }
        else
          for (i = 0, k = 0; k < self.n; k++)
            if (self.wanted[k])
              compare (&self, k, seconds->pdata[i++], 1);
        grads_free (seconds);
        grads_free (grads);
      }
}

static void
gradients_agree_with_differences (gconstpointer data)
{
  check (data, 0);
}

static void
second_gradients_agree_with_differences (gconstpointer data)
{
  check (data, 1);
}

int
main (int argc, char *argv[])
{
  guint i, s;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];

      for (s = 0; s < gtorch_n_op_samples; s++)
        if (gtorch_op_samples[s].op == i && gtorch_op_samples[s].grad
            && gtorch_op_samples[s].n_tensors > 0)
          break;
      if (s == gtorch_n_op_samples || (op->grad == NULL && op->cpu != NULL)
          || !(op->dtypes & GTORCH_DTYPES (FLOAT64)) || (op->flags & GTORCH_OP_FLAG_RANDOM))
        continue;
      {
        g_autofree gchar *first =
            g_strdup_printf ("/GTorch/gradients/%s/agree_with_differences", op->name);
        g_autofree gchar *second = g_strdup_printf ("/GTorch/gradients/%s/second_agree", op->name);

        g_test_add_data_func (first, op, gradients_agree_with_differences);
        g_test_add_data_func (second, op, second_gradients_agree_with_differences);
      }
    }
  return g_test_run ();
}
