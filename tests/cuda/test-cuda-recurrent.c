/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Recurrent networks by cuDNN compute what the CPU does, and are composed where cuDNN cannot. With
 * ON_A_REAL_GPU it is NVIDIA's cuDNN, whose calls are not counted. */

#include "config.h"

#include <math.h>

#include <gtorch/ops/gtorch-op-parts-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>
#include <tests/fake-cuda/cudnn/fake-cudnn.h>

#include "dispatch/gtorch-run-private.h"
#include "race-test.h"

#define MAX_TENSORS 32
#define MAX_STEPS   8

typedef struct
{
  guint mode, dtype;
  gint64 layers;
  gboolean both, biases;
  gint64 states;           /* fewer than HIDDEN: with projections */
  gint64 sizes[MAX_STEPS]; /* the batch sizes of the steps, ended by 0 */
  gdouble dropout;
} Case;

#ifdef ON_A_REAL_GPU
#define INPUTS             40
#define HIDDEN             64
#define AMPLITUDE          0.15
#define COUNT(n, expected) ((void) (n), (void) (expected))
static FakeCudnn no_cudnn;
#define fake_cudnn no_cudnn
#else
#define INPUTS             3
#define HIDDEN             4
#define AMPLITUDE          0.6
#define COUNT(n, expected) g_assert_cmpuint (n, ==, expected)
#endif
#define TANH GTORCH_RECURRENT_TANH
#define RELU GTORCH_RECURRENT_RELU
#define LSTM GTORCH_RECURRENT_LSTM
#define GRU  GTORCH_RECURRENT_GRU
#define F32  GTORCH_DTYPE_FLOAT32
#define F64  GTORCH_DTYPE_FLOAT64
#define F16  GTORCH_DTYPE_FLOAT16
#define BF16 GTORCH_DTYPE_BFLOAT16

/* clang-format off */
static const Case cases[] = {
  { TANH, F32,  1, FALSE, TRUE,  HIDDEN, { 2, 2, 2 } },
  { RELU, F32,  2, TRUE,  TRUE,  HIDDEN, { 3, 3 } },
  { LSTM, F32,  1, FALSE, TRUE,  HIDDEN, { 2, 2, 2, 2 } },
  { LSTM, F32,  2, TRUE,  TRUE,  HIDDEN, { 2, 2, 2 } },
  { LSTM, F32,  2, FALSE, FALSE, HIDDEN, { 2, 2, 2 } },
  { LSTM, F32,  2, TRUE,  TRUE,  2,      { 2, 2, 2 } },
  { LSTM, F32,  2, FALSE, FALSE, 3,      { 3, 2, 1 } },
  { GRU,  F32,  2, TRUE,  TRUE,  HIDDEN, { 2, 2, 2 } },
  { GRU,  F32,  1, FALSE, FALSE, HIDDEN, { 1, 1 } },
  { TANH, F32,  2, TRUE,  TRUE,  HIDDEN, { 4, 3, 3, 1 } },
  { RELU, F32,  1, TRUE,  FALSE, HIDDEN, { 3, 1 } },
  { LSTM, F32,  3, TRUE,  TRUE,  HIDDEN, { 4, 4, 2, 1, 1 } },
  { GRU,  F32,  2, TRUE,  TRUE,  HIDDEN, { 3, 3, 2 } },
  { TANH, F64,  1, TRUE,  TRUE,  HIDDEN, { 3, 2 } },
  { LSTM, F64,  2, TRUE,  TRUE,  2,      { 3, 3, 1 } },
  { GRU,  F64,  2, FALSE, TRUE,  HIDDEN, { 2, 2 } },
  { LSTM, F16,  2, FALSE, TRUE,  HIDDEN, { 2, 2 } },
  { GRU,  F16,  1, TRUE,  TRUE,  HIDDEN, { 2, 1 } },
  { LSTM, BF16, 1, TRUE,  TRUE,  HIDDEN, { 2, 2 } },
  { TANH, BF16, 2, FALSE, TRUE,  HIDDEN, { 2, 1 } },
  /* so many elements that the CPU computes them in blocks */
  { TANH, F32,  1, TRUE,  TRUE,  HIDDEN, { 20, 20, 20 } },
  { LSTM, F64,  2, TRUE,  TRUE,  2,      { 40, 33, 17, 16, 3 } },
  { GRU,  F64,  1, TRUE,  TRUE,  HIDDEN, { 35, 35, 18, 1 } },
};
/* clang-format on */

static gdouble looseness = 1;

static gdouble
tolerance_of (guint dtype)
{
#ifdef ON_A_REAL_GPU
  return dtype == F64 ? 1e-11 : dtype == F32 ? looseness * 1e-4 : dtype == F16 ? 1e-2 : 8e-2;
#else
  return dtype == F64 ? 1e-12 : dtype == F32 ? looseness * 2e-6 : dtype == F16 ? 8e-3 : 6e-2;
#endif
}

/* --- operands and results --- */

typedef struct
{
  guint n; /* input, hx, cx (or NULL), and parameters */
  GTorchTensor *tensors[MAX_TENSORS];
} Operands;

static void
operands_clear (Operands *self)
{
  for (guint i = 0; i < self->n; i++)
    g_clear_pointer (&self->tensors[i], gtorch_tensor_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Operands, operands_clear)

static gsize
count_steps (const Case *c)
{
  gsize n = 0;

  while (c->sizes[n] > 0)
    n++;
  return n;
}

/* Returns different numbers for each operand, the same on each device, that need a gradient. */
static GTorchTensor *
numbers (const Case *c, guint seed, const gint64 *shape, guint n_dims, GTorchDevice *device)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) host = gtorch_empty (shape, n_dims, F64, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchTensor) cast = NULL;
  GTorchImpl *impl = gtorch_tensor_unwrap (host);
  GTorchTensor *result;

  for (gint64 i = 0; i < impl->numel; i++)
    ((gdouble *) gtorch_impl_data (impl))[i] = AMPLITUDE * sin (seed * 1.7 + i * 0.9);
  cast = gtorch_tensor_to_dtype (host, c->dtype, &error);
  g_assert_no_error (error);
  result = gtorch_tensor_to_device (cast, device, FALSE, &error);
  g_assert_no_error (error);
  gtorch_tensor_set_requires_grad (result, TRUE, &error);
  g_assert_no_error (error);
  return result;
}

static void
make (Operands *self, const Case *c, GTorchDevice *device)
{
  const gint64 rows = gtorch_recurrent_n_gates (c->mode) * HIDDEN, directions = c->both ? 2 : 1;
  const gint64 parts = c->layers * directions;
  gint64 total = 0;

  for (guint t = 0; c->sizes[t] > 0; t++)
    total += c->sizes[t];
  self->tensors[0] = numbers (c, 1, GTORCH_SHAPE (total, INPUTS), device);
  self->tensors[1] = numbers (c, 2, GTORCH_SHAPE (parts, c->sizes[0], c->states), device);
  self->tensors[2] =
      c->mode == LSTM ? numbers (c, 3, GTORCH_SHAPE (parts, c->sizes[0], HIDDEN), device) : NULL;
  self->n = 3;
  for (gint64 i = 0; i < parts; i++)
    {
      const gint64 width = i < directions ? INPUTS : c->states * directions;
      const guint seed = 10 * (guint) (i + 1);

      self->tensors[self->n++] = numbers (c, seed, GTORCH_SHAPE (rows, width), device);
      self->tensors[self->n++] = numbers (c, seed + 1, GTORCH_SHAPE (rows, c->states), device);
      if (c->biases)
        {
          self->tensors[self->n++] = numbers (c, seed + 2, GTORCH_SHAPE (rows), device);
          self->tensors[self->n++] = numbers (c, seed + 3, GTORCH_SHAPE (rows), device);
        }
      if (c->states != HIDDEN)
        self->tensors[self->n++] = numbers (c, seed + 4, GTORCH_SHAPE (c->states, HIDDEN), device);
    }
}

/* Runs the network; the results are its output and its states. */
static gboolean
run (const Case *c, const Operands *x, GTorchTensor **results, GError **error)
{
  GTorchImpl *params[MAX_TENSORS], *outputs[3] = { NULL };

  for (guint i = 3; i < x->n; i++)
    params[i - 3] = gtorch_tensor_unwrap (x->tensors[i]);
  if (!gtorch_op_recurrent (gtorch_tensor_unwrap (x->tensors[0]),
                            gtorch_tensor_unwrap (x->tensors[1]),
                            x->tensors[2] != NULL ? gtorch_tensor_unwrap (x->tensors[2]) : NULL,
                            params, x->n - 3, c->mode, c->sizes, count_steps (c), c->biases,
                            c->layers, c->dropout, TRUE, c->both, &outputs[0], &outputs[1],
                            &outputs[2], error))
    return FALSE;
  for (guint i = 0; i < 3; i++)
    results[i] = gtorch_tensor_wrap (outputs[i]);
  return TRUE;
}

static void
clear_results (GTorchTensor **results)
{
  for (guint i = 0; i < 3; i++)
    g_clear_pointer (&results[i], gtorch_tensor_unref);
}

/* Returns the sum of the squares of all results, each with its own factor. */
static GTorchTensor *
loss_of (GTorchTensor **results)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *loss = NULL;

  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) square = gtorch_tensor_mul (results[i], results[i], &error);
      g_autoptr (GTorchTensor) sum = NULL;
      GTorchTensor *next;

      g_assert_no_error (error);
      sum = gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
      g_assert_no_error (error);
      next = loss == NULL ? g_object_ref (sum) : gtorch_tensor_add (loss, sum, 0.5 + i, &error);
      g_assert_no_error (error);
      g_clear_pointer (&loss, gtorch_tensor_unref);
      loss = next;
    }
  return loss;
}

static void
assert_close (GTorchTensor *a, GTorchTensor *b, gdouble tolerance)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GTorchTensor) one = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  GTorchImpl *x, *y;
  gdouble largest = 0;

  g_assert_nonnull (a);
  g_assert_nonnull (b);
  host = gtorch_tensor_to_device (a, gtorch_device_cpu (), FALSE, &error);
  g_assert_no_error (error);
  one = gtorch_tensor_to_dtype (host, F64, &error);
  other = gtorch_tensor_to_dtype (b, F64, &error);
  g_assert_no_error (error);
  x = gtorch_tensor_unwrap (one);
  y = gtorch_tensor_unwrap (other);
  g_assert_true (gtorch_impl_same_shape (x, y));
  /* gradients of weights are sums, whose error is that of their largest summands */
  for (gint64 i = 0; i < y->numel; i++)
    largest = MAX (largest, fabs (((const gdouble *) gtorch_impl_data (y))[i]));
  for (gint64 i = 0; i < x->numel; i++)
    {
      const gdouble u = ((const gdouble *) gtorch_impl_data (x))[i];
      const gdouble v = ((const gdouble *) gtorch_impl_data (y))[i];

      g_assert_cmpfloat_with_epsilon (u, v, tolerance * (1 + largest));
    }
}

/* Compares the gradients of all operands, and removes them. */
static void
compare_gradients (const Operands *a, const Operands *b, gdouble tolerance)
{
  for (guint i = 0; i < a->n; i++)
    if (a->tensors[i] != NULL)
      {
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchTensor) one = gtorch_tensor_get_grad (a->tensors[i]);
        g_autoptr (GTorchTensor) other = gtorch_tensor_get_grad (b->tensors[i]);

        assert_close (one, other, tolerance);
        g_assert_true (gtorch_tensor_set_grad (a->tensors[i], NULL, &error));
        g_assert_true (gtorch_tensor_set_grad (b->tensors[i], NULL, &error));
      }
}

/* Returns whether the device computes the network at once, and has not found out that it cannot. */
static gboolean
is_at_once (const Case *c, const Operands *x)
{
  gint64 answers[GTORCH_NETWORK_OFFSETS + MAX_TENSORS] = { 0 };
  GTorchImpl *inputs[MAX_TENSORS] = { NULL };
  const GTorchAttr attrs[] = { { .i = c->mode },   { .list = { c->sizes, count_steps (c) } },
                               { .i = c->biases }, { .i = c->layers },
                               { .i = c->both },   { .i = -1 },
                               { .i = TRUE } };
  GTorchOpCall call = {
    .op = &gtorch_ops[GTORCH_OP_RECURRENT_NETWORK],
    .inputs = inputs,
    .n_inputs = x->n,
    .attrs = attrs,
    .n_outputs = 4,
    .device = gpu (0),
    .compute = c->dtype,
  };

  for (guint i = 0; i < x->n; i++)
    inputs[i] = x->tensors[i] != NULL ? gtorch_tensor_unwrap (x->tensors[i]) : NULL;
  g_assert_true (gtorch_call_query (&call, answers, NULL));
  return answers[GTORCH_NETWORK_VARIANT] >= 0;
}

/* Compares values and gradients of a case with those of the CPU. Returns is_at_once (). */
static gboolean
compare (const Case *c)
{
  const gdouble tolerance = tolerance_of (c->dtype);
  g_auto (Operands) here = { 0 };
  g_auto (Operands) there = { 0 };
  GTorchTensor *ours[3] = { NULL }, *theirs[3] = { NULL };
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GError) error = NULL;

  make (&here, c, gtorch_device_cpu ());
  make (&there, c, gpu (0));
  g_assert_true (run (c, &here, theirs, &error));
  g_assert_no_error (error);
  g_assert_true (run (c, &there, ours, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < 3; i++)
    assert_close (ours[i], theirs[i], tolerance);
  loss = loss_of (ours);
  expected = loss_of (theirs);
  g_assert_true (gtorch_tensor_backward (expected, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
  compare_gradients (&there, &here, 8 * tolerance);
  clear_results (ours);
  clear_results (theirs);
  return is_at_once (c, &there);
}

/* --- tests --- */

static void
cudnn_computes_networks_at_once (void)
{
  const guint n_present = fake_cudnn.n_present;

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const guint forward = fake_cudnn.rnn.n_forward, backward = fake_cudnn.rnn.n_backward;
      const guint weights = fake_cudnn.rnn.n_weights, trained = fake_cudnn.rnn.n_trained;

      g_test_message ("case %u", i);
      g_assert_true (compare (&cases[i]));
      COUNT (fake_cudnn.rnn.n_forward, forward + 1);
      COUNT (fake_cudnn.rnn.n_trained, trained + 1);
      COUNT (fake_cudnn.rnn.n_backward, backward + 1);
      COUNT (fake_cudnn.rnn.n_weights, weights + 1);
    }
  COUNT (fake_cudnn.n_present, n_present);
}

static void
nothing_is_kept_without_gradients (void)
{
  const Case *c = &cases[3];
  const guint forward = fake_cudnn.rnn.n_forward, trained = fake_cudnn.rnn.n_trained;
  g_auto (Operands) here = { 0 };
  g_auto (Operands) there = { 0 };
  GTorchTensor *ours[3] = { NULL }, *theirs[3] = { NULL };
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GError) error = NULL;

  make (&here, c, gtorch_device_cpu ());
  make (&there, c, gpu (0));
  g_assert_true (run (c, &here, theirs, &error));
  g_assert_true (run (c, &there, ours, &error));
  g_assert_no_error (error);
  for (guint i = 0; i < 3; i++)
    assert_close (ours[i], theirs[i], tolerance_of (c->dtype));
  COUNT (fake_cudnn.rnn.n_forward, forward + 1);
  COUNT (fake_cudnn.rnn.n_trained, trained);
  clear_results (ours);
  clear_results (theirs);
}

/* The backward pass overwrites what cuDNN keeps, and the program may overwrite the results. */
static void
gradients_are_computed_again (void)
{
  const Case *c = &cases[2];
  g_auto (Operands) x = { 0 };
  g_auto (Operands) copy = { 0 };
  GTorchTensor *results[3] = { NULL };
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GError) error = NULL;

  make (&x, c, gpu (0));
  make (&copy, c, gtorch_device_cpu ());
  for (guint pass = 0; pass < 2; pass++)
    {
      GTorchTensor *theirs[3] = { NULL };
      g_autoptr (GTorchTensor) expected = NULL;

      if (pass == 0)
        {
          g_assert_true (run (c, &x, results, &error));
          loss = loss_of (results);
        }
      g_assert_true (run (c, &copy, theirs, &error));
      expected = loss_of (theirs);
      g_assert_true (gtorch_tensor_backward (expected, NULL, FALSE, FALSE, &error));
      g_assert_true (gtorch_tensor_backward (loss, NULL, TRUE, FALSE, &error));
      g_assert_no_error (error);
      compare_gradients (&x, &copy, 8 * tolerance_of (c->dtype));
      clear_results (theirs);
    }
  clear_results (results);
}

static void
results_may_be_changed_in_place (void)
{
  const Case *c = &cases[3];
  g_auto (Operands) x = { 0 };
  GTorchTensor *results[3] = { NULL };
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GError) error = NULL;

  make (&x, c, gpu (0));
  g_assert_true (run (c, &x, results, &error));
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (results[0], 2, &error));
  g_assert_no_error (error);
  sum = gtorch_tensor_sum (results[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
  clear_results (results);
}

/* Gradients that are differentiated are those of the composition. */
static void
second_derivatives_are_composed (void)
{
  static const guint which[] = { 0, 2, 7, 14 };

  for (guint i = 0; i < G_N_ELEMENTS (which); i++)
    {
      const Case *c = &cases[which[i]];
      g_auto (Operands) here = { 0 };
      g_auto (Operands) there = { 0 };
      Operands *const operands[] = { &here, &there };

      for (guint at = 0; at < 2; at++)
        {
          const guint backward = fake_cudnn.rnn.n_backward;
          GTorchTensor *results[3] = { NULL };
          g_autoptr (GTorchTensor) loss = NULL;
          g_autoptr (GTorchTensor) grad = NULL;
          g_autoptr (GTorchTensor) square = NULL;
          g_autoptr (GTorchTensor) sum = NULL;
          g_autoptr (GError) error = NULL;

          make (operands[at], c, at == 0 ? gtorch_device_cpu () : gpu (0));
          g_assert_true (run (c, operands[at], results, &error));
          loss = loss_of (results);
          g_assert_true (gtorch_tensor_backward (loss, NULL, TRUE, TRUE, &error));
          g_assert_no_error (error);
          COUNT (fake_cudnn.rnn.n_backward, backward);
          grad = gtorch_tensor_get_grad (operands[at]->tensors[0]);
          square = gtorch_tensor_mul (grad, grad, &error);
          sum = gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
          g_assert_no_error (error);
          for (guint j = 0; j < operands[at]->n; j++)
            if (operands[at]->tensors[j] != NULL)
              g_assert_true (gtorch_tensor_set_grad (operands[at]->tensors[j], NULL, &error));
          g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
          g_assert_no_error (error);
          clear_results (results);
        }
      compare_gradients (&there, &here, 40 * tolerance_of (c->dtype));
    }
}

#ifndef ON_A_REAL_GPU

/* Each case has its own number of steps, since the library remembers what cuDNN has refused. */
static void
what_cudnn_refuses_is_composed (void)
{
  Case c = { LSTM, F64, 2, TRUE, TRUE, HIDDEN, { 5, 5, 5, 5, 5, 5 } };
  const guint n_present = fake_cudnn.n_present;
  guint forward = fake_cudnn.rnn.n_forward, backward;

  fake_cudnn.rnn.refused = ~0u;
  compare (&c);
  COUNT (fake_cudnn.rnn.n_forward, forward);
  fake_cudnn.rnn.refused = 0;
  /* it is not asked again */
  compare (&c);
  COUNT (fake_cudnn.rnn.n_forward, forward);

  c.sizes[5] = 0;
  fake_cudnn.rnn.refused_forward = ~0u;
  compare (&c);
  COUNT (fake_cudnn.rnn.n_forward, forward);
  fake_cudnn.rnn.refused_forward = 0;

  c.sizes[4] = 0;
  fake_cudnn.rnn.refused_backward = ~0u;
  backward = fake_cudnn.rnn.n_backward;
  compare (&c);
  COUNT (fake_cudnn.rnn.n_forward, forward + 1);
  COUNT (fake_cudnn.rnn.n_backward, backward);
  fake_cudnn.rnn.refused_backward = 0;
  compare (&c);
  COUNT (fake_cudnn.rnn.n_forward, forward + 1);
  COUNT (fake_cudnn.n_present, n_present);
}

static void
the_next_algorithm_follows_a_refused_one (void)
{
  const Case c = { LSTM, F32, 1, FALSE, TRUE, HIDDEN, { 7, 7, 7 } };

  fake_cudnn.rnn.refused_forward = 1u << 3;
  compare (&c);
  COUNT (fake_cudnn.rnn.algorithm, 0);
  fake_cudnn.rnn.refused_forward = 0;
  compare (&c);
  COUNT (fake_cudnn.rnn.algorithm, 0);
}

/* Lets each call of the driver fail, one after the other. */
static void
failures_are_errors (void)
{
  const Case *c = &cases[3];
  const guint n_present = fake_cudnn.n_present;
  g_auto (Operands) there = { 0 };
  GTorchTensor *results[3] = { NULL };
  g_autoptr (GError) error = NULL;
  gboolean occurred = TRUE;
  guint n_failed = 0;

  make (&there, c, gpu (0));
  for (guint nth = 1; occurred; nth++)
    {
      gboolean ok;

      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, &error));
      gtorch_device_empty_cache (gpu (0));
      fake_cuda_fail (NULL, nth, CUDA_ERROR_OUT_OF_MEMORY);
      ok = run (c, &there, results, &error);
      if (ok)
        {
          g_autoptr (GTorchTensor) upper =
              gtorch_tensor_ones_like (results[0], GTORCH_DTYPE_NONE, &error);

          ok = upper != NULL && gtorch_tensor_backward (results[0], upper, FALSE, FALSE, &error);
        }
      occurred = fake_cuda_clear_faults ();
      g_assert_true (ok == (error == NULL));
      g_assert_true (ok || occurred);
      n_failed += !ok;
      g_clear_error (&error);
      clear_results (results);
      for (guint i = 0; i < there.n; i++)
        if (there.tensors[i] != NULL)
          g_assert_true (gtorch_tensor_set_grad (there.tensors[i], NULL, NULL));
    }
  g_assert_cmpuint (n_failed, >, 5);
  g_assert_cmpuint (fake_cudnn.n_present, ==, n_present);
  g_assert_true (compare (c));
}

#endif

static void
algorithms_suit_the_form (void)
{
  const Case few = { GRU, F32, 1, FALSE, TRUE, HIDDEN, { 2, 2 } };
  const Case packed = { GRU, F32, 1, FALSE, TRUE, HIDDEN, { 2, 1 } };
  const Case wide = { GRU, F64, 1, FALSE, TRUE, HIDDEN, { 2, 2 } };
  const Case projected = { LSTM, F32, 1, FALSE, TRUE, 2, { 2, 2 } };

  compare (&few);
  COUNT (fake_cudnn.rnn.algorithm, 3);
  COUNT (fake_cudnn.rnn.layout, 0);
  compare (&packed);
  COUNT (fake_cudnn.rnn.algorithm, 0);
  COUNT (fake_cudnn.rnn.layout, 1);
  compare (&wide);
  COUNT (fake_cudnn.rnn.algorithm, 0);
  compare (&projected);
  COUNT (fake_cudnn.rnn.algorithm, 0);
}

static void
the_quickest_algorithm_is_found_by_trial (void)
{
  const Case c = { LSTM, F32, 2, FALSE, TRUE, HIDDEN, { 6, 6, 6 } };
  guint forward;

  for (guint i = 0; i < G_N_ELEMENTS (fake_cudnn.rnn.us); i++)
    fake_cudnn.rnn.us[i] = i == 1 ? 0 : 3000;
  gtorch_device_set_benchmark (gpu (0), TRUE);
  g_assert_true (compare (&c));
  COUNT (fake_cudnn.rnn.algorithm, 1);
  /* there is one trial */
  forward = fake_cudnn.rnn.n_forward;
  compare (&c);
  COUNT (fake_cudnn.rnn.n_forward, forward + 1);
  gtorch_device_set_benchmark (gpu (0), FALSE);
  memset (fake_cudnn.rnn.us, 0, sizeof fake_cudnn.rnn.us);
}

static void
precision_is_that_of_products (void)
{
  const Case c = { TANH, F32, 1, FALSE, TRUE, HIDDEN, { 3, 3 } };

  compare (&c);
  COUNT (fake_cudnn.rnn.math, 3);
  gtorch_device_set_matmul_precision (gpu (0), GTORCH_PRECISION_TF32);
  looseness = 100;
  compare (&c);
  looseness = 1;
  COUNT (fake_cudnn.rnn.math, 0);
  gtorch_device_set_matmul_precision (gpu (0), GTORCH_PRECISION_IEEE);
}

static void
deterministic_devices_do_without_cudnn (void)
{
  const guint forward = fake_cudnn.rnn.n_forward;

  gtorch_device_set_deterministic (gpu (0), TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_test_message ("case %u", i);
      g_assert_false (compare (&cases[i]));
    }
  COUNT (fake_cudnn.rnn.n_forward, forward);
  gtorch_device_set_deterministic (gpu (0), FALSE);
}

/* With dropout, each layer is a network of its own. */
static void
dropout_is_between_networks (void)
{
  Case c = { LSTM, F32, 3, TRUE, TRUE, HIDDEN, { 2, 2, 1 }, 1.0 };
  guint forward = fake_cudnn.rnn.n_forward;

  compare (&c);
  COUNT (fake_cudnn.rnn.n_forward, forward + 3);
  COUNT (fake_cudnn.rnn.n_layers, 1);
  c.layers = 1;
  forward = fake_cudnn.rnn.n_forward;
  compare (&c);
  COUNT (fake_cudnn.rnn.n_forward, forward + 1);
}

static void
operands_must_have_one_dtype (void)
{
  const Case wide = { TANH, F64, 1, FALSE, TRUE, HIDDEN, { 2, 2 } };
  g_auto (Operands) x = { 0 };
  g_auto (Operands) other = { 0 };
  GTorchTensor *results[3] = { NULL };
  const guint forward = fake_cudnn.rnn.n_forward;
  g_autoptr (GError) error = NULL;

  make (&x, &wide, gpu (0));
  make (&other, &cases[0], gpu (0));
  g_clear_pointer (&x.tensors[4], gtorch_tensor_unref);
  x.tensors[4] = g_object_ref (other.tensors[4]);
  g_assert_false (run (&wide, &x, results, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  COUNT (fake_cudnn.rnn.n_forward, forward);
}

/* --- in a graph --- */

typedef struct
{
  const Case *c;
  Operands *x;
  GTorchTensor *results[3];
} Step;

static gboolean
step (GTorchStream *stream, gpointer data, GError **error)
{
  Step *self = data;
  g_autoptr (GTorchTensor) loss = NULL;

  clear_results (self->results);
  for (guint i = 0; i < self->x->n; i++)
    if (self->x->tensors[i] != NULL && !gtorch_tensor_set_grad (self->x->tensors[i], NULL, error))
      return FALSE;
  if (!run (self->c, self->x, self->results, error))
    return FALSE;
  loss = loss_of (self->results);
  return gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error);
}

static void
graphs_repeat_networks (void)
{
  static const guint which[] = { 3, 11, 12 };

  for (guint i = 0; i < G_N_ELEMENTS (which); i++)
    {
      const Case *c = &cases[which[i]];
      const guint n_present = fake_cudnn.n_present;
      g_auto (Operands) here = { 0 };
      g_auto (Operands) there = { 0 };
      g_autoptr (GError) error = NULL;
      Step ours = { c, &there }, theirs = { c, &here };
      GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
      GTorchStream *stream = gtorch_stream_new (gpu (0), 0, &error);
      guint forward;

      make (&here, c, gtorch_device_cpu ());
      make (&there, c, gpu (0));
      g_assert_true (gtorch_stream_run (stream, step, &ours, &error));
      g_assert_no_error (error);
      g_assert_true (gtorch_cuda_graph_capture (graph, stream, NULL, step, &ours, &error));
      g_assert_no_error (error);
      forward = fake_cudnn.rnn.n_forward;
      for (guint pass = 0; pass < 2; pass++)
        {
          g_autoptr (GTorchGradGuard) guard = NULL;

          g_assert_true (step (NULL, &theirs, &error));
          g_assert_true (gtorch_cuda_graph_replay (graph, &error));
          g_assert_no_error (error);
          for (guint j = 0; j < 3; j++)
            assert_close (ours.results[j], theirs.results[j], tolerance_of (c->dtype));
          for (guint j = 0; j < here.n; j++)
            if (here.tensors[j] != NULL)
              {
                g_autoptr (GTorchTensor) one = gtorch_tensor_get_grad (there.tensors[j]);
                g_autoptr (GTorchTensor) other = gtorch_tensor_get_grad (here.tensors[j]);

                assert_close (one, other, 8 * tolerance_of (c->dtype));
              }
          /* other values for the next pass, of a parameter too */
          guard = gtorch_no_grad ();
          for (guint j = 0; j < 4; j += 3)
            {
              g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (here.tensors[j], 0.7, &error));
              g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (there.tensors[j], 0.7, &error));
              g_assert_no_error (error);
            }
        }
      COUNT (fake_cudnn.rnn.n_forward, forward);
      clear_results (ours.results);
      clear_results (theirs.results);
      g_object_unref (graph);
      g_object_unref (stream);
      g_assert_true (gtorch_device_synchronize (gpu (0), NULL, &error));
      gtorch_device_empty_cache (gpu (0));
      g_assert_cmpuint (fake_cudnn.n_present, >=, n_present);
    }
}

#define TEST(name) g_test_add_func ("/GTorchCudaRecurrent/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  if (skips_without_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
#ifndef ON_A_REAL_GPU
  fake_cuda_stop_clock ();
  TEST (what_cudnn_refuses_is_composed);
  TEST (the_next_algorithm_follows_a_refused_one);
  TEST (failures_are_errors);
#endif
  TEST (cudnn_computes_networks_at_once);
  TEST (nothing_is_kept_without_gradients);
  TEST (gradients_are_computed_again);
  TEST (results_may_be_changed_in_place);
  TEST (second_derivatives_are_composed);
  TEST (algorithms_suit_the_form);
  TEST (the_quickest_algorithm_is_found_by_trial);
  TEST (precision_is_that_of_products);
  TEST (deterministic_devices_do_without_cudnn);
  TEST (dropout_is_between_networks);
  TEST (operands_must_have_one_dtype);
  TEST (graphs_repeat_networks);
  result = g_test_run ();
#ifndef ON_A_REAL_GPU
  assert_no_misuse ();
#endif
  return result;
}
