/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Connectionist temporal classification: values and gradients of PyTorch, and what is special about short
 * inputs, labels one after the other, and single examples. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

#define N_STEPS    5
#define N_EXAMPLES 3
#define N_CLASSES  4

/* Returns tensor[i] = sin (i + 1). */
static GTorchTensor *
scores (guint dtype)
{
  const gint64 shape[] = { N_STEPS, N_EXAMPLES, N_CLASSES };
  gdouble values[N_STEPS * N_EXAMPLES * N_CLASSES];

  for (guint i = 0; i < G_N_ELEMENTS (values); i++)
    values[i] = sin (i + 1.0);
  return gtorch_tensor_new_from_doubles (values, G_N_ELEMENTS (values), shape, 3, dtype, NULL,
                                         NULL);
}

static GTorchTensor *
log_probs (guint dtype)
{
  g_autoptr (GTorchTensor) x = scores (dtype);
  GTorchTensor *made = gtorch_tensor_log_softmax (x, -1, GTORCH_DTYPE_NONE, NULL);

  g_assert_true (gtorch_tensor_set_requires_grad (made, TRUE, NULL));
  return made;
}

static GTorchTensor *
integers (const gint64 *values, gint64 n)
{
  return gtorch_tensor_new_from_ints (values, n, &n, 1, GTORCH_DTYPE_INT64, NULL, NULL);
}
#define INTEGERS(...)                        \
  integers ((const gint64[]){ __VA_ARGS__ }, \
            sizeof ((const gint64[]){ __VA_ARGS__ }) / sizeof (gint64))

static GTorchTensor *
padded (void)
{
  const gint64 values[] = { 1, 2, 2, 3, 1, 0, 2, 2, 2 }, shape[] = { 3, 3 };

  return gtorch_tensor_new_from_ints (values, 9, shape, 2, GTORCH_DTYPE_INT64, NULL, NULL);
}

/* Returns the sum of the elements of the gradient, where element j is multiplied by cos (j). */
static gdouble
weighed_grad (GTorchTensor *tensor)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (tensor);
  gdouble sum = 0;

  for (gint64 i = 0; i < gtorch_tensor_get_numel (grad); i++)
    sum += test_element (grad, i) * cos ((gdouble) i);
  return sum;
}

static GTorchTensor *
cosines (GTorchTensor *like)
{
  g_autoptr (GTorchTensor) n = gtorch_arange (0, (gdouble) gtorch_tensor_get_numel (like), 1,
                                              gtorch_tensor_get_dtype (like), NULL, NULL);
  g_autoptr (GTorchTensor) made = gtorch_tensor_cos (n, NULL);

  return gtorch_tensor_reshape_as (made, like, NULL);
}

static void
values_and_gradients_are_pytorchs (void)
{
  static const struct
  {
    GTorchReduction reduction;
    gdouble loss, grad;
  } expected[] = {
    { GTORCH_REDUCTION_NONE, 0, 0.6761660259207581 },
    { GTORCH_REDUCTION_SUM, 10.523642327608137, 0.9516804829286813 },
    { GTORCH_REDUCTION_MEAN, 1.9231917664135179, 0.1290373717465189 },
  };
  static const gdouble losses[] = { 4.899795828272935, 2.9750729523712525, 2.648773546963949 };
  g_autoptr (GTorchTensor) targets = padded ();
  g_autoptr (GTorchTensor) steps = INTEGERS (5, 3, 4);
  g_autoptr (GTorchTensor) lengths = INTEGERS (3, 2, 1);

  for (guint single = 0; single < 2; single++)
    for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
      {
        g_autoptr (GError) error = NULL;
        g_autoptr (GTorchTensor) x =
            log_probs (single ? GTORCH_DTYPE_FLOAT32 : GTORCH_DTYPE_FLOAT64);
        g_autoptr (GTorchTensor) loss =
            gtorch_ctc_loss (x, targets, steps, lengths, 0, expected[i].reduction, FALSE, &error);
        /* sums of at most 60 numbers below 8 with rounding errors of their dtype */
        const gdouble epsilon = single ? 60 * 8 * 0x1p-23 : 60 * 8 * 0x1p-52;
        g_autoptr (GTorchTensor) seed = NULL;

        g_assert_no_error (error);
        seed = cosines (loss);
        if (expected[i].reduction == GTORCH_REDUCTION_NONE)
          for (guint b = 0; b < N_EXAMPLES; b++)
            g_assert_cmpfloat_with_epsilon (test_element (loss, b), losses[b], epsilon);
        else
          g_assert_cmpfloat_with_epsilon (test_element (loss, 0), expected[i].loss, epsilon);
        gtorch_tensor_backward (loss, seed, FALSE, FALSE, &error);
        g_assert_no_error (error);
        g_assert_cmpfloat_with_epsilon (weighed_grad (x), expected[i].grad, epsilon);
      }
}

static void
targets_may_be_one_after_the_other (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = log_probs (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) all = INTEGERS (1, 2, 2, 3, 1, 2);
  g_autoptr (GTorchTensor) steps = INTEGERS (5, 3, 4);
  g_autoptr (GTorchTensor) lengths = INTEGERS (3, 2, 1);
  g_autoptr (GTorchTensor) loss =
      gtorch_ctc_loss (x, all, steps, lengths, 0, GTORCH_REDUCTION_SUM, FALSE, &error);

  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (test_element (loss, 0), 10.523642327608137, 1e-13);
}

/* The loss as a function of scores, whose gradient is that of differences. */
static GTorchTensor *
loss_of_scores (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  GTorchTensor **given = user_data;
  g_autoptr (GTorchTensor) x = gtorch_tensor_log_softmax (inputs[0], -1, GTORCH_DTYPE_NONE, error);

  return x != NULL ? gtorch_ctc_loss (x, given[0], given[1], given[2], 3, GTORCH_REDUCTION_NONE,
                                      TRUE, error)
                   : NULL;
}

static void
gradients_for_scores_are_differences (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = scores (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) all = INTEGERS (1, 2, 1, 0, 0);
  g_autoptr (GTorchTensor) steps = INTEGERS (4, 5, 1);
  g_autoptr (GTorchTensor) lengths = INTEGERS (3, 0, 2);
  GTorchTensor *given[] = { all, steps, lengths };

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  gtorch_gradcheck (loss_of_scores, given, &x, 1, 1e-6, 1e-6, 1e-5, &error);
  g_assert_no_error (error);
}

static gdouble
sum_of_magnitudes (GTorchTensor *tensor)
{
  gdouble sum = 0;

  for (gint64 i = 0; i < gtorch_tensor_get_numel (tensor); i++)
    sum += fabs (test_element (tensor, i));
  return sum;
}

static void
too_few_steps_have_an_infinite_loss (void)
{
  g_autoptr (GTorchTensor) targets = padded ();
  g_autoptr (GTorchTensor) steps = INTEGERS (3, 1, 4);
  g_autoptr (GTorchTensor) lengths = INTEGERS (3, 2, 1);

  for (guint is_zero = 0; is_zero < 2; is_zero++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x = log_probs (GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) loss =
          gtorch_ctc_loss (x, targets, steps, lengths, 0, GTORCH_REDUCTION_NONE, is_zero, &error);
      g_autoptr (GTorchTensor) sum = NULL;
      g_autoptr (GTorchTensor) grad = NULL;

      g_assert_no_error (error);
      g_assert_true (test_element (loss, 0) == (is_zero ? 0 : INFINITY));
      g_assert_true (test_element (loss, 1) == (is_zero ? 0 : INFINITY));
      g_assert_cmpfloat_with_epsilon (test_element (loss, 2), 2.648773546963949, 1e-13);
      sum = gtorch_tensor_sum (loss, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
      gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error);
      g_assert_no_error (error);
      grad = gtorch_tensor_get_grad (x);
      g_assert_true (isnan (test_element (grad, 0)) == !is_zero);
      /* behind the last step */
      g_assert_true (test_element (grad, 3 * N_EXAMPLES * N_CLASSES) == 0);
      if (is_zero)
        g_assert_cmpfloat_with_epsilon (sum_of_magnitudes (grad), 3.116512793376344, 1e-12);
    }
}

static void
an_example_may_have_nothing (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = log_probs (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) targets = padded ();
  g_autoptr (GTorchTensor) steps = INTEGERS (0, 0, 3);
  g_autoptr (GTorchTensor) lengths = INTEGERS (0, 1, 0);
  g_autoptr (GTorchTensor) loss =
      gtorch_ctc_loss (x, targets, steps, lengths, 0, GTORCH_REDUCTION_NONE, FALSE, &error);
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) sum = NULL;

  g_assert_no_error (error);
  g_assert_true (test_element (loss, 0) == 0);
  g_assert_true (test_element (loss, 1) == INFINITY);
  g_assert_cmpfloat_with_epsilon (test_element (loss, 2), 1.9766347524360666, 1e-13);
  sum = gtorch_tensor_sum (loss, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat_with_epsilon (sum_of_magnitudes (grad), 2.8907976031969724, 1e-12);
}

static void
a_single_example_has_no_dimension (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = log_probs (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) one = gtorch_tensor_select (x, 1, 0, NULL);
  g_autoptr (GTorchTensor) targets = INTEGERS (1, 2, 2);
  g_autoptr (GTorchTensor) steps = INTEGERS (5);
  g_autoptr (GTorchTensor) lengths = INTEGERS (3);
  g_autoptr (GTorchTensor) loss =
      gtorch_ctc_loss (one, targets, steps, lengths, 0, GTORCH_REDUCTION_NONE, FALSE, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_tensor_get_n_dims (loss), ==, 0);
  g_assert_cmpfloat_with_epsilon (test_element (loss, 0), 4.899795828272935, 1e-13);
}

/* Lengths and labels on the host are for log-probabilities on any device. */
static void
lengths_may_be_on_the_host (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = log_probs (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) targets = padded ();
  g_autoptr (GTorchTensor) steps = INTEGERS (5, 3, 4);
  g_autoptr (GTorchTensor) lengths = INTEGERS (3, 2, 1);
  g_autoptr (GTorchTensor) host_steps =
      gtorch_tensor_to_device (steps, gtorch_device_cpu (), FALSE, NULL);
  g_autoptr (GTorchTensor) host_targets =
      gtorch_tensor_to_device (targets, gtorch_device_cpu (), FALSE, NULL);
  g_autoptr (GTorchTensor) loss = gtorch_ctc_loss (x, host_targets, host_steps, lengths, 0,
                                                   GTORCH_REDUCTION_SUM, FALSE, &error);

  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (test_element (loss, 0), 10.523642327608137, 1e-13);
}

#define REFUSED(x, targets, steps, lengths, blank, reduction, code, text)                    \
  G_STMT_START                                                                               \
  {                                                                                          \
    g_autoptr (GError) error = NULL;                                                         \
    g_autoptr (GTorchTensor) t = (targets);                                                  \
    g_autoptr (GTorchTensor) s = (steps);                                                    \
    g_autoptr (GTorchTensor) l = (lengths);                                                  \
                                                                                             \
    g_assert_true (                                                                          \
        test_fails (gtorch_ctc_loss (x, t, s, l, blank, reduction, FALSE, &error), &error)); \
    g_assert_error (error, GTORCH_ERROR, code);                                              \
    g_assert_cmpstr (error->message, ==, (text));                                            \
  }                                                                                          \
  G_STMT_END

static void
wrong_lengths_and_labels_are_refused (void)
{
  const GTorchReduction mean = GTORCH_REDUCTION_MEAN;
  g_autoptr (GTorchTensor) x = log_probs (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) half = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_FLOAT16, NULL);
  g_autoptr (GTorchTensor) flat = gtorch_tensor_reshape (x, (const gint64[]){ -1 }, 1, NULL);

  REFUSED (flat, padded (), INTEGERS (5, 3, 4), INTEGERS (3, 2, 1), 0, mean, GTORCH_ERROR_SHAPE,
           "ctc_loss: log-probabilities of shape [60]: they must be [T, N, C] or [T, C]");
  REFUSED (x, padded (), INTEGERS (6, 3, 4), INTEGERS (3, 2, 1), 0, mean, GTORCH_ERROR_INVALID,
           "ctc_loss: number 0 of input_lengths is 6, it must be from 0 to 5");
  REFUSED (x, padded (), INTEGERS (5, -1, 4), INTEGERS (3, 2, 1), 0, mean, GTORCH_ERROR_INVALID,
           "ctc_loss: number 1 of input_lengths is -1, it must be from 0 to 5");
  REFUSED (x, padded (), INTEGERS (5, 3, 4), INTEGERS (3, 2, 4), 0, mean, GTORCH_ERROR_INVALID,
           "ctc_loss: number 2 of target_lengths is 4, it must be from 0 to 3");
  REFUSED (x, padded (), INTEGERS (5, 3), INTEGERS (3, 2, 1), 0, mean, GTORCH_ERROR_SHAPE,
           "ctc_loss: input_lengths of shape [2]: there must be one for each of the 3 examples");
  REFUSED (x, INTEGERS (1, 2, 3, 1, 2, 3, 1), INTEGERS (5, 3, 4), INTEGERS (3, 2, 1), 0, mean,
           GTORCH_ERROR_SHAPE, "ctc_loss: 7 targets, whose lengths sum up to 6");
  REFUSED (x, padded (), INTEGERS (5, 3, 4), INTEGERS (3, 2, 1), 4, mean, GTORCH_ERROR_INDEX,
           "ctc_loss: blank 4 is out of range for 4 classes");
  REFUSED (x, padded (), INTEGERS (5, 3, 4), scores (GTORCH_DTYPE_FLOAT32), 0, mean,
           GTORCH_ERROR_DTYPE, "ctc_loss: target_lengths must be integers, they are float32");
  REFUSED (x, scores (GTORCH_DTYPE_FLOAT32), INTEGERS (5, 3, 4), INTEGERS (3, 2, 1), 0, mean,
           GTORCH_ERROR_DTYPE, "ctc_loss: targets must be integers, they are float32");
  REFUSED (x, padded (), INTEGERS (5, 3, 4), INTEGERS (3, 2, 1), 0, GTORCH_REDUCTION_BATCHMEAN,
           GTORCH_ERROR_INVALID, "ctc_loss: the reduction batchmean is for kl_div only");
  REFUSED (half, padded (), INTEGERS (5, 3, 4), INTEGERS (3, 2, 1), 0, mean, GTORCH_ERROR_DTYPE,
           "ctc_loss: not defined for dtype float16");
}

/* A device finds a label that is out of range, and says so later. */
static void
labels_that_are_no_classes_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = log_probs (GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) targets = INTEGERS (1, 2, 9, 3, 1, 2);
  g_autoptr (GTorchTensor) steps = INTEGERS (5, 3, 4);
  g_autoptr (GTorchTensor) lengths = INTEGERS (3, 2, 1);

  g_assert_true (test_fails (gtorch_ctc_loss (x, targets, steps, lengths, 0, GTORCH_REDUCTION_SUM,
                                              FALSE, &error),
                             &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_nonnull (strstr (error->message, "ctc_loss"));
  g_assert_nonnull (strstr (error->message, "9 is out of range"));
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/ctc_loss/" #name, name)
  ADD (values_and_gradients_are_pytorchs);
  ADD (targets_may_be_one_after_the_other);
  ADD (gradients_for_scores_are_differences);
  ADD (too_few_steps_have_an_infinite_loss);
  ADD (an_example_may_have_nothing);
  ADD (a_single_example_has_no_dimension);
  ADD (lengths_may_be_on_the_host);
  ADD (wrong_lengths_and_labels_are_refused);
  ADD (labels_that_are_no_classes_are_refused);
  return g_test_run ();
}
