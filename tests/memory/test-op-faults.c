/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every operation on the samples of its row, forward, in place and backward, with each of its allocations
 * and each of its calls of the fake driver failing in turn (beyond the 32nd, each seventh): the error names
 * the operation, nothing leaks or changes, and the same call works afterwards. */

#include "config.h"

#include <string.h>

#include <gtorch/autograd/gtorch-autograd-private.h>
#include <gtorch/gtorch-ops-private.h>

#include "fault.h"
#include "op-values.h"

#define MAX_TENSORS 16
#define MAX_NTH     500
#define ALL_NTH     32

typedef enum
{
  FORWARD,
  IN_PLACE,
  BACKWARD,
} Way;

static const gchar *const way_names[] = { "forward", "in place", "backward" };

typedef struct
{
  const Fault *fault;
  const GTorchOpClass *op;
} Test;

typedef struct
{
  const Fault *fault;
  const GTorchOpClass *op;
  const GTorchOpSample *sample;
  Layout layout;
  Way way;
  guint dtype;
  guint nth;
  GTorchImpl *values[MAX_TENSORS]; /* the values of the inputs */
  GTorchImpl *inputs[MAX_TENSORS];
} Case;

static guint n_done, n_tests, n_tests_done;

static void
fail (const Case *self, const gchar *text)
{
  g_test_message ("%s, sample %u, %s, %s, %s, %s %u: %s", self->op->name, self->sample->index,
                  gtorch_dtype_get_name (self->dtype), layout_names[self->layout],
                  way_names[self->way], self->fault->name, self->nth, text);
  g_test_fail ();
}

static gboolean
is_wanted (const Case *self, guint i)
{
  return self->way == BACKWARD && self->sample->tensors[i].dtype == GTORCH_DTYPE_NONE
         && self->values[i] != NULL;
}

/* Creates fresh inputs, so that a call does not see the effects of the previous one. */
static void
inputs_make (Case *self)
{
  guint i;

  for (i = 0; i < self->sample->n_tensors; i++)
    if (self->values[i] != NULL)
      {
        g_autoptr (GTorchImpl) laid =
            input_copy_laid (self->values[i], self->values[i]->dtype, self->layout);

        self->inputs[i] = impl_to_test_device (laid);
        if (is_wanted (self, i))
          gtorch_autograd_ensure (self->inputs[i])->requires_grad = TRUE;
      }
}

static void
inputs_clear (Case *self)
{
  gtorch_impl_clear (self->inputs, MAX_TENSORS);
}

static gboolean
run_forward (const Case *self, GPtrArray *results, GError **error)
{
  const GTorchOpClass *former = gtorch_composite_begin (self->op->id, NULL, 0);
  gboolean ok;

  if (self->op->shape != NULL)
    gtorch_composite_end (former, TRUE, NULL); /* none failed */
  ok = gtorch_op_invokers[self->op->id](self->inputs, self->sample->n_tensors, self->sample->attrs,
                                        results, error);
  if (self->op->shape == NULL)
    gtorch_composite_end (former, ok, error);
  return ok;
}

/* Replaces the results by the gradients of their sums. */
static gboolean
run_backward (const Case *self, GPtrArray *results, GError **error)
{
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  g_autoptr (GPtrArray) seeds = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) wanted = g_ptr_array_new ();
  GTorchImpl *grads[MAX_TENSORS] = { NULL };
  GTorchBackward backward = { 0 };
  gboolean ok = TRUE;
  guint i;

  for (i = 0; i < results->len; i++)
    if (gtorch_impl_requires_grad (results->pdata[i]))
      {
        const GTorchImpl *result = results->pdata[i];
        GTorchImpl *seed = gtorch_op_ones (result->shape, result->n_dims, result->dtype,
                                           gtorch_impl_device (result), error);

        if (seed == NULL)
          return FALSE;
        g_ptr_array_add (roots, results->pdata[i]);
        g_ptr_array_add (seeds, seed);
      }
  for (i = 0; i < self->sample->n_tensors; i++)
    if (is_wanted (self, i))
      g_ptr_array_add (wanted, self->inputs[i]);
  if (roots->len > 0)
    {
      backward.roots = (GTorchImpl **) roots->pdata;
      backward.grads = (GTorchImpl **) seeds->pdata;
      backward.n_roots = roots->len;
      backward.inputs = (GTorchImpl **) wanted->pdata;
      backward.n_inputs = wanted->len;
      backward.results = grads;
      ok = gtorch_engine_run (&backward, error);
    }
  g_ptr_array_set_size (results, 0);
  for (i = 0; i < wanted->len; i++)
    if (grads[i] != NULL)
      g_ptr_array_add (results, grads[i]);
  return ok;
}

/* Returns NULL with an error. */
static GPtrArray *
run (const Case *self, GError **error)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);

  gtorch_generator_set_seed (gtorch_device_get_default_generator (test_device ()), 7);
  if (self->way == IN_PLACE)
    return gtorch_op_run_in_place (self->op, self->inputs, self->sample->n_tensors,
                                   self->sample->attrs, error)
               ? g_steal_pointer (&results)
               : NULL;
  if (!run_forward (self, results, error))
    {
      if (results->len > 0)
        fail (self, "there is a result in spite of the error");
      return NULL;
    }
  if (self->way == BACKWARD && !run_backward (self, results, error))
    return NULL;
  return g_steal_pointer (&results);
}

/* Where there is too little memory for an engine of cuDNN, another one computes a convolution, and may round
 * in another way. */
static gboolean
same_values (const Case *self, GTorchImpl *a, GTorchImpl *b)
{
  const gboolean by_engines =
      test_device ()->type == GTORCH_DEVICE_TYPE_CUDA && g_str_has_prefix (self->op->name, "conv");
  g_autoptr (GTorchImpl) x = impl_to_host (a);
  g_autoptr (GTorchImpl) y = impl_to_host (b);
  g_autofree gchar *text = difference (x, y, by_engines ? dtype_tolerance (self->dtype) : 0);

  return text == NULL;
}

static void
check_results (const Case *self, GPtrArray *results, GPtrArray *expected)
{
  guint i;

  if (results->len != expected->len)
    fail (self, "there are more or fewer results than without a fault");
  for (i = 0; i < MIN (results->len, expected->len); i++)
    if (!same_values (self, results->pdata[i], expected->pdata[i]))
      fail (self, "the result is another one");
}

static void
check_inputs (const Case *self, GTorchImpl *const *expected, const gchar *text)
{
  guint i;

  for (i = 0; i < self->sample->n_tensors; i++)
    if (self->inputs[i] != NULL && !same_values (self, self->inputs[i], expected[i]))
      fail (self, text);
}

static void
check_error (const Case *self, const GError *error)
{
  g_autofree gchar *text = NULL;

  if (error != NULL && error->domain == GTORCH_ERROR
      && (!self->fault->is_memory || error->code == GTORCH_ERROR_OUT_OF_MEMORY)
      && (self->way == BACKWARD || g_str_has_prefix (error->message, self->op->name)))
    return;
  text = g_strdup_printf ("the error is “%s”", error != NULL ? error->message : "");
  fail (self, text);
}

/* Returns FALSE if the results are random or not initialised. */
static gboolean
has_values (const GTorchOpClass *op)
{
  return (op->flags & GTORCH_OP_FLAG_UNSET) == 0;
}

/* Lets one allocation fail. Returns FALSE if there are fewer allocations. */
static gboolean
run_fault (Case *self, GPtrArray *expected, GTorchImpl *const *after)
{
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GPtrArray) again = NULL;
  g_autoptr (GError) error = NULL;
  guint64 before;
  gboolean has_failed;

  inputs_make (self);
  before = gtorch_device_get_memory_allocated (test_device ());
  self->fault->begin (self->nth);
  results = run (self, &error);
  has_failed = self->fault->end ();
  if (results != NULL && has_values (self->op))
    { /* it works without the allocation, or there was no fault */
      check_results (self, results, expected);
      check_inputs (self, after, "the inputs are other ones than without a fault");
    }
  else if (results == NULL)
    {
      check_error (self, error);
      check_inputs (self, self->values, "the inputs have changed");
      g_clear_error (&error);
      if (gtorch_device_get_memory_allocated (test_device ()) != before)
        fail (self, "memory is lost");
      again = run (self, &error);
      if (again == NULL)
        fail (self, error->message);
      else if (has_values (self->op))
        {
          check_results (self, again, expected);
          check_inputs (self, after, "the inputs are other ones after the second call");
        }
    }
  n_done += has_failed;
  inputs_clear (self);
  return has_failed;
}

static void
run_case (Case *self)
{
  g_autoptr (GPtrArray) expected = NULL;
  g_autoptr (GError) error = NULL;
  GTorchImpl *after[MAX_TENSORS] = { NULL };
  guint i;

  self->nth = 0;
  inputs_make (self);
  expected = run (self, &error);
  for (i = 0; i < self->sample->n_tensors; i++)
    if (self->inputs[i] != NULL)
      after[i] = input_copy (self->inputs[i], self->inputs[i]->dtype);
  inputs_clear (self);
  if (expected != NULL)
    /* what makes more allocations is composed of operations that are tested alone */
    for (self->nth = 1; self->nth < MAX_NTH && run_fault (self, expected, after);
         self->nth += self->nth < ALL_NTH ? 1 : 7)
      ;
  gtorch_impl_clear (after, MAX_TENSORS);
}

static guint
main_dtype (const GTorchOpClass *op, gboolean half)
{
  if (half && (op->dtypes & GTORCH_DTYPES (BFLOAT16)))
    return GTORCH_DTYPE_BFLOAT16;
  return op->dtypes == 0 || (op->dtypes & GTORCH_DTYPES (FLOAT32))
             ? GTORCH_DTYPE_FLOAT32
             : (guint) g_bit_nth_lsf (op->dtypes, -1);
}

static void
anything_may_fail (gconstpointer data)
{
  const Test *test = data;
  const GTorchOpClass *op = test->op;
  /* other layouts and dtypes need other memory, but no other driver calls than those of copies */
  const guint last_layout = test->fault->is_memory ? LAYOUT_STRIDED : LAYOUT_CONTIGUOUS;
  guint i, k, layout, half;

  n_tests_done++;
  for (i = 0; i < gtorch_n_op_samples; i++)
    for (half = 0; gtorch_op_samples[i].op == op->id && half < 2; half++)
      {
        const GTorchOpSample *sample = &gtorch_op_samples[i];
        g_autoptr (GRand) rand = g_rand_new_with_seed (sample->op * 64 + sample->index);
        Case self = { test->fault, op, sample, .dtype = main_dtype (op, half) };

        if (half == 1 && (self.dtype != GTORCH_DTYPE_BFLOAT16 || !test->fault->is_memory))
          continue;
        for (k = 0; k < sample->n_tensors; k++)
          self.values[k] =
              input_new (&sample->tensors[k],
                         sample->tensors[k].dtype != GTORCH_DTYPE_NONE ? sample->tensors[k].dtype
                                                                       : self.dtype,
                         LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);
        for (layout = 0; layout <= last_layout; layout++)
          {
            self.layout = layout;
            self.way = FORWARD;
            run_case (&self);
            if (op->flags & GTORCH_OP_FLAG_INPLACE_OK)
              {
                self.way = IN_PLACE;
                run_case (&self);
              }
            if (sample->grad && gtorch_dtype_kind (self.dtype) >= GTORCH_KIND_FLOAT)
              {
                self.way = BACKWARD;
                run_case (&self);
              }
          }
        gtorch_impl_clear (self.values, MAX_TENSORS);
      }
}

static void
enough_faults_occurred (void)
{
  if (n_tests_done < n_tests)
    {
      g_test_skip ("not all were run");
      return;
    }
  g_test_message ("%u faults", n_done);
  g_assert_cmpuint (n_done, >, 3000);
}

int
main (int argc, char *argv[])
{
  g_autofree Test *tests = g_new (Test, n_faults * gtorch_n_ops);
  guint i, k;

  g_test_init (&argc, &argv, NULL);
  for (k = 0; k < n_faults; k++)
    for (i = 0; fault_can (&faults[k]) && i < gtorch_n_ops; i++)
      {
        Test *next = &tests[k * gtorch_n_ops + i];
        g_autofree gchar *path =
            g_strdup_printf ("/GTorch/op-faults/%s/%s", faults[k].name, gtorch_ops[i].name);

        *next = (Test){ &faults[k], &gtorch_ops[i] };
        g_test_add_data_func (path, next, anything_may_fail);
        n_tests++;
      }
  g_test_add_func ("/GTorch/op-faults/all/enough_faults_occurred", enough_faults_occurred);
  return g_test_run ();
}
