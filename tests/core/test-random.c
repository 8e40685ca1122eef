/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gtorch/cpu/gtorch-cpu-philox.h>

#include "test-device.h"

#define N 200000

static void
assert_same_floats (GTorchTensor *a, GTorchTensor *b, gsize n)
{
  g_autofree gfloat *x = test_dup_elements (a, NULL);
  g_autofree gfloat *y = test_dup_elements (b, NULL);

  g_assert_cmpmem (x, n * sizeof (gfloat), y, n * sizeof (gfloat));
}

static GTorchTensor *
checked (GTorchTensor *tensor, GError *error)
{
  g_assert_no_error (error);
  return tensor;
}

/* The test vectors that the authors of Philox publish with it. */
static void
philox_gives_the_published_words (void)
{
  static const struct
  {
    guint64 block, counter, seed;
    guint32 words[4];
  } known[] = {
    { 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { G_MAXUINT64, G_MAXUINT64, G_MAXUINT64, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { G_GUINT64_CONSTANT (0x0370734485a308d3),
      G_GUINT64_CONSTANT (0x13198a2e243f6a88),
      G_GUINT64_CONSTANT (0x299f31d0a4093822),
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
  };
  guint32 words[4], many[64];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (known); i++)
    {
      gtorch_philox (known[i].seed, known[i].counter, known[i].block, words);
      g_assert_cmpmem (words, sizeof words, known[i].words, sizeof words);
      GTORCH_ISA_CALL (gtorch_philox_words)
      (known[i].seed, known[i].counter, known[i].block, 16, many);
      g_assert_cmpmem (many, sizeof words, known[i].words, sizeof words);
      gtorch_philox (known[i].seed, known[i].counter, known[i].block + 13, words);
      g_assert_cmpmem (many + 52, sizeof words, words, sizeof words);
    }
}

static int
compare_doubles (const void *a, const void *b)
{
  gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return (x > y) - (x < y);
}

static gdouble
uniform_cdf (gdouble x)
{
  return CLAMP (x, 0, 1);
}

static gdouble
normal_cdf (gdouble x)
{
  return 0.5 * erfc (-x / G_SQRT2);
}

static gdouble
exponential_cdf (gdouble x)
{
  return x < 0 ? 0 : -expm1 (-x);
}

/* Checks the Kolmogorov-Smirnov distance: it is above 1.95 / sqrt (n) for one in a thousand samples. */
static void
check_distribution (GTorchTensor *tensor, gdouble (*cdf) (gdouble), gdouble mean, gdouble variance)
{
  gsize n;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (tensor, &n, NULL);
  gdouble sum = 0, squares = 0, distance = 0;
  guint i;

  g_assert_cmpuint (n, ==, N);
  for (i = 0; i < N; i++)
    {
      sum += values[i];
      squares += values[i] * values[i];
    }
  sum /= N;
  g_assert_cmpfloat_with_epsilon (sum, mean, 5 * sqrt (variance / N));
  g_assert_cmpfloat_with_epsilon (squares / N - sum * sum, variance, 0.03 * variance);
  qsort (values, N, sizeof (gdouble), compare_doubles);
  for (i = 0; i < N; i++)
    {
      gdouble p = cdf (values[i]);

      distance = MAX (distance, MAX (p - (gdouble) i / N, (gdouble) (i + 1) / N - p));
    }
  g_assert_cmpfloat (distance, <, 1.95 / sqrt (N));
}

static void
distributions_are_right (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64 };
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (7);
  guint i;

  for (i = 0; i < 2; i++)
    {
      GError *error = NULL;
      g_autoptr (GTorchTensor) u =
          gtorch_rand (GTORCH_SHAPE (N), dtypes[i], NULL, generator, &error);
      g_autoptr (GTorchTensor) n =
          gtorch_randn (GTORCH_SHAPE (N), dtypes[i], NULL, generator, &error);
      g_autoptr (GTorchTensor) e = gtorch_tensor_exponential (u, 1, generator, &error);

      g_assert_no_error (error);
      check_distribution (u, uniform_cdf, 0.5, 1.0 / 12);
      check_distribution (n, normal_cdf, 0, 1);
      check_distribution (e, exponential_cdf, 1, 1);
    }
}

/* Two neighbours share the words of the generator: they must not be correlated. */
static void
neighbours_are_independent (void)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (3);
  g_autoptr (GTorchTensor) n =
      gtorch_randn (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT32, NULL, generator, NULL);
  g_autofree gfloat *values = test_dup_elements (n, NULL);
  gdouble product = 0, squares = 0;
  guint i;

  for (i = 0; i < N; i += 2)
    {
      product += values[i] * values[i + 1];
      squares += values[i] * values[i] * values[i + 1] * values[i + 1];
    }
  g_assert_cmpfloat_with_epsilon (product / (N / 2), 0, 5 / sqrt (N / 2));
  g_assert_cmpfloat_with_epsilon (squares / (N / 2), 1, 0.05);
}

static void
normal_agrees_with_the_definition (void)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (5);
  g_autoptr (GTorchTensor) n =
      gtorch_randn (GTORCH_SHAPE (5000), GTORCH_DTYPE_FLOAT32, NULL, generator, NULL);
  g_autofree gfloat *values = test_dup_elements (n, NULL);
  guint i;

  for (i = 0; i < 5000; i += 2)
    {
      guint32 words[4];
      gdouble u, radius, angle;
      guint32 turn;

      gtorch_philox (5, 0, i / 4, words);
      turn = words[i % 4 + 1];
      u = (gfloat) (gint32) (words[i % 4] | 1) * 0x1p-32;
      radius = sqrt (-2 * (u > 0 ? log (u) : log1p (u)));
      angle = (((turn & 0x7ffffe) | 1) * 0x1p-23 - 0.5 + (turn >> 31)) * G_PI;
      g_assert_cmpfloat_with_epsilon (values[i], radius * cos (angle), 1.5e-6);
      g_assert_cmpfloat_with_epsilon (values[i + 1], radius * sin (angle), 1.5e-6);
    }
}

static void
numbers_do_not_depend_on_threads_or_layout (void)
{
  GError *error = NULL;
  guint n_threads = gtorch_get_num_threads (), i, k;
  g_autoptr (GTorchTensor) first = NULL;

  for (i = 1; i <= 4; i++)
    {
      g_autoptr (GTorchTensor) x = NULL;

      g_assert_true (gtorch_set_num_threads (i, NULL));
      gtorch_manual_seed (11);
      x = checked (gtorch_randn (GTORCH_SHAPE (300, 301), GTORCH_DTYPE_FLOAT32, NULL, NULL, &error),
                   error);
      if (first == NULL)
        first = g_steal_pointer (&x);
      else
        assert_same_floats (first, x, 300 * 301);
    }
  g_assert_true (gtorch_set_num_threads (n_threads, NULL));

  for (k = 0; k < 2; k++)
    {
      g_autoptr (GTorchTensor) base =
          gtorch_zeros (GTORCH_SHAPE (301, 300), GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GTorchTensor) turned = gtorch_tensor_transpose (base, 0, 1, NULL);
      g_autofree gfloat *a = NULL;
      g_autofree gfloat *b = NULL;
      guint j;

      gtorch_manual_seed (11);
      g_assert_nonnull (gtorch_tensor_normal_inplace (turned, 0, 1, NULL, NULL));
      a = test_dup_elements (first, NULL);
      b = test_dup_elements (base, NULL);
      for (i = 0; i < 300; i++)
        for (j = 0; j < 301; j++)
          g_assert_cmpfloat (a[i * 301 + j], ==, b[j * 300 + i]);
    }
}

static void
a_longer_result_begins_like_a_shorter_one (void)
{
  g_autoptr (GTorchTensor) a = NULL;
  g_autoptr (GTorchTensor) b = NULL;

  gtorch_manual_seed (1);
  a = gtorch_rand (GTORCH_SHAPE (7), GTORCH_DTYPE_FLOAT32, NULL, NULL, NULL);
  gtorch_manual_seed (1);
  b = gtorch_rand (GTORCH_SHAPE (70000), GTORCH_DTYPE_FLOAT32, NULL, NULL, NULL);
  assert_same_floats (a, b, 7);
}

static void
calls_follow_each_other (void)
{
  g_autoptr (GTorchTensor) a = NULL;
  g_autoptr (GTorchTensor) b = NULL;
  g_autoptr (GTorchTensor) c = NULL;

  gtorch_manual_seed (1);
  a = gtorch_rand (GTORCH_SHAPE (9), GTORCH_DTYPE_FLOAT32, NULL, NULL, NULL);
  b = gtorch_rand (GTORCH_SHAPE (9), GTORCH_DTYPE_FLOAT32, NULL, NULL, NULL);
  g_assert_cmpfloat (test_element (a, 0), !=, test_element (b, 0));
  gtorch_manual_seed (1);
  c = gtorch_rand (GTORCH_SHAPE (9), GTORCH_DTYPE_FLOAT32, NULL, NULL, NULL);
  assert_same_floats (a, c, 9);
}

static void
uniform_keeps_its_bounds_in_every_dtype (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (dtypes); i++)
    {
      GError *error = NULL;
      g_autoptr (GTorchTensor) u =
          checked (gtorch_rand (GTORCH_SHAPE (N), dtypes[i], NULL, NULL, &error), error);
      g_autoptr (GTorchTensor) one =
          checked (gtorch_ones (GTORCH_SHAPE (1), dtypes[i], NULL, &error), error);
      g_autoptr (GTorchTensor) below = checked (gtorch_tensor_lt (u, one, &error), error);
      g_autofree guint8 *flags = test_dup_elements (below, NULL);

      for (j = 0; j < N; j++)
        g_assert_true (flags[j]);
    }
}

static void
integers_are_even_and_in_range (void)
{
  GError *error = NULL;
  g_autoptr (GTorchTensor) x =
      checked (gtorch_randint (-3, 7, GTORCH_SHAPE (N), 0, NULL, NULL, &error), error);
  g_autoptr (GTorchTensor) wide =
      checked (gtorch_randint (G_MININT64, G_MAXINT64, GTORCH_SHAPE (64), 0, NULL, NULL, &error),
               error);
  g_autoptr (GTorchTensor) bytes =
      checked (gtorch_randint (0, 256, GTORCH_SHAPE (64), GTORCH_DTYPE_UINT8, NULL, NULL, &error),
               error);
  g_autofree gint64 *values = test_dup_elements (x, NULL);
  g_autofree gint64 *extremes = test_dup_elements (wide, NULL);
  guint counts[10] = { 0 };
  guint i;

  g_assert_cmpint (gtorch_tensor_get_dtype (x), ==, GTORCH_DTYPE_INT64);
  for (i = 0; i < N; i++)
    {
      g_assert_true (values[i] >= -3 && values[i] < 7);
      counts[values[i] + 3]++;
    }
  for (i = 0; i < 10; i++)
    g_assert_cmpfloat_with_epsilon (counts[i], N / 10.0, 5 * sqrt (N * 0.09));
  g_assert_cmpint (extremes[0], !=, extremes[1]);
}

static void
permutation_has_every_index_once (void)
{
  g_autoptr (GTorchTensor) p = gtorch_randperm (1000, 0, NULL, NULL, NULL);
  g_autoptr (GTorchTensor) none = gtorch_randperm (0, 0, NULL, NULL, NULL);
  g_autofree gint64 *values = test_dup_elements (p, NULL);
  gboolean seen[1000] = { FALSE };
  guint i, fixed = 0;

  for (i = 0; i < 1000; i++)
    {
      g_assert_true (values[i] >= 0 && values[i] < 1000 && !seen[values[i]]);
      seen[values[i]] = TRUE;
      fixed += values[i] == i;
    }
  g_assert_cmpuint (fixed, <, 10);
  g_assert_cmpint (gtorch_tensor_get_numel (none), ==, 0);
}

static void
bernoulli_follows_its_probabilities (void)
{
  GError *error = NULL;
  g_autoptr (GTorchTensor) p =
      gtorch_full (GTORCH_SHAPE (N), 0.3, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) b = checked (gtorch_tensor_bernoulli (p, NULL, &error), error);
  g_autoptr (GTorchTensor) c = checked (gtorch_tensor_bernoulli_p (p, 0.8, NULL, &error), error);
  g_autoptr (GTorchTensor) bad = NULL;
  g_autofree gfloat *drawn = test_dup_elements (b, NULL);
  g_autofree gfloat *drawn_p = test_dup_elements (c, NULL);
  gdouble sums[2] = { 0, 0 };
  guint i;

  for (i = 0; i < N; i++)
    {
      sums[0] += drawn[i];
      sums[1] += drawn_p[i];
    }
  g_assert_cmpfloat_with_epsilon (sums[0] / N, 0.3, 0.006);
  g_assert_cmpfloat_with_epsilon (sums[1] / N, 0.8, 0.006);
  bad = gtorch_full (GTORCH_SHAPE (3), 1.5, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_assert_true (test_fails (gtorch_tensor_bernoulli (bad, NULL, &error), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
}

static void
multinomial_follows_its_weights (void)
{
  GError *error = NULL;
  g_autoptr (GTorchTensor) w = gtorch_arange (0, 4, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) many =
      checked (gtorch_tensor_multinomial (w, N, TRUE, NULL, &error), error);
  g_autoptr (GTorchTensor) all =
      checked (gtorch_tensor_multinomial (w, 3, FALSE, NULL, &error), error);
  g_autofree gint64 *values = test_dup_elements (many, NULL);
  g_autofree gint64 *three = test_dup_elements (all, NULL);
  gdouble counts[4] = { 0 };
  guint i, mask = 0;

  for (i = 0; i < N; i++)
    counts[values[i]]++;
  for (i = 0; i < 4; i++)
    g_assert_cmpfloat_with_epsilon (counts[i] / N, i / 6.0, 0.006);
  for (i = 0; i < 3; i++)
    mask |= 1 << three[i];
  g_assert_cmpuint (mask, ==, 2 + 4 + 8);
  g_assert_true (test_fails (gtorch_tensor_multinomial (w, 4, FALSE, NULL, &error), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_multinomial (w, 5, FALSE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
}

static void
dropout_drops_and_scales (void)
{
  GError *error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) y = checked (gtorch_tensor_dropout (x, 0.25, TRUE, NULL, &error), error);
  g_autoptr (GTorchTensor) same =
      checked (gtorch_tensor_dropout (x, 0.25, FALSE, NULL, &error), error);
  g_autoptr (GTorchTensor) none = checked (gtorch_tensor_dropout (x, 1, TRUE, NULL, &error), error);
  g_autofree gfloat *values = test_dup_elements (y, NULL);
  g_autofree gfloat *zeros = test_dup_elements (none, NULL);
  guint i, dropped = 0;

  for (i = 0; i < N; i++)
    {
      gfloat value = values[i];

      g_assert_true (value == 0 || fabsf (value - 1 / 0.75f) < 1e-6f);
      dropped += value == 0;
      g_assert_cmpfloat (zeros[i], ==, 0);
    }
  g_assert_cmpfloat_with_epsilon (dropped / (gdouble) N, 0.25, 0.006);
  g_assert_true (same == x);
  g_assert_null (gtorch_tensor_dropout (x, 1.5, TRUE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "dropout: p is 1.5, it must be within [0, 1]");
  g_clear_error (&error);
}

/* The gradient of every element is the factor by which it was multiplied. */
static void
the_gradient_of_dropout_is_zero_for_dropped_elements (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };
  static const gint64 sizes[] = { 1, 3, 4, 127, 128, 129, 1023, 1024, 1025, 5003 };
  guint t, k, turned;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (turned = 0; turned < 2; turned++)
        {
          const gint64 shape[] = { sizes[k], 3 };
          GError *error = NULL;
          g_autoptr (GTorchTensor) x =
              checked (gtorch_ones (shape, 2, dtypes[t], NULL, &error), error);
          g_autoptr (GTorchTensor) view =
              turned ? checked (gtorch_tensor_t (x, &error), error) : g_object_ref (x);
          g_autoptr (GTorchTensor) input = NULL;
          g_autoptr (GTorchTensor) y = NULL;
          g_autoptr (GTorchTensor) sum = NULL;
          g_autoptr (GTorchTensor) grad = NULL;
          g_autoptr (GTorchTensor) same = NULL;
          g_autoptr (GTorchTensor) all = NULL;

          input = checked (gtorch_tensor_detach (view, &error), error);
          g_assert_true (gtorch_tensor_set_requires_grad (input, TRUE, &error));
          y = checked (gtorch_tensor_dropout (input, 0.5, TRUE, NULL, &error), error);
          sum = checked (gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error), error);
          g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
          grad = gtorch_tensor_get_grad (input);
          same = checked (gtorch_tensor_eq (grad, y, &error), error);
          all = checked (gtorch_tensor_all (same, NULL, 0, FALSE, &error), error);
          g_assert_cmpfloat (gtorch_tensor_item_double (all, &error), ==, 1);
        }
}

#define FAILS(call, code)                         \
  G_STMT_START                                    \
  {                                               \
    g_autoptr (GError) error = NULL;              \
    g_assert_true (test_fails ((call), &error));  \
    g_assert_error (error, GTORCH_ERROR, (code)); \
  }                                               \
  G_STMT_END

static void
bad_arguments_are_errors (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) i = gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_INT32, NULL, NULL);
  const gint64 negative[] = { 2, -1 };
  const gint64 huge[] = { G_MAXINT64 / 2, 4 };
  const gint64 large[] = { G_GINT64_CONSTANT (1) << 55 };

  FAILS (gtorch_rand (negative, 2, 0, NULL, NULL, &error), GTORCH_ERROR_SHAPE);
  FAILS (gtorch_rand (huge, 2, 0, NULL, NULL, &error), GTORCH_ERROR_SHAPE);
  FAILS (gtorch_rand (large, 1, 0, NULL, NULL, &error), GTORCH_ERROR_OUT_OF_MEMORY);
  FAILS (gtorch_rand (GTORCH_SHAPE (2), GTORCH_DTYPE_INT32, NULL, NULL, &error),
         GTORCH_ERROR_DTYPE);
  FAILS (gtorch_rand (GTORCH_SHAPE (2), 99, NULL, NULL, &error), GTORCH_ERROR_DTYPE);
  FAILS (gtorch_randint (5, 5, GTORCH_SHAPE (2), 0, NULL, NULL, &error), GTORCH_ERROR_INVALID);
  FAILS (gtorch_randint (0, 300, GTORCH_SHAPE (2), GTORCH_DTYPE_UINT8, NULL, NULL, &error),
         GTORCH_ERROR_INVALID);
  FAILS (gtorch_randperm (-1, 0, NULL, NULL, &error), GTORCH_ERROR_INVALID);
  FAILS (gtorch_randperm (300, GTORCH_DTYPE_UINT8, NULL, NULL, &error), GTORCH_ERROR_INVALID);
  FAILS (gtorch_tensor_uniform (x, 2, 1, NULL, &error), GTORCH_ERROR_INVALID);
  FAILS (gtorch_tensor_uniform (x, 0, (gdouble) NAN, NULL, &error), GTORCH_ERROR_INVALID);
  FAILS (gtorch_tensor_normal (x, 0, -1, NULL, &error), GTORCH_ERROR_INVALID);
  FAILS (gtorch_tensor_normal (i, 0, 1, NULL, &error), GTORCH_ERROR_DTYPE);
  FAILS (gtorch_tensor_exponential (x, 0, NULL, &error), GTORCH_ERROR_INVALID);
  FAILS (gtorch_tensor_bernoulli_p (x, 2, NULL, &error), GTORCH_ERROR_INVALID);
  FAILS (gtorch_tensor_multinomial (x, 1, TRUE, NULL, &error), GTORCH_ERROR_INVALID);
}

#define TEST(name) g_test_add_func ("/GTorch/random/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (philox_gives_the_published_words);
  TEST (distributions_are_right);
  TEST (neighbours_are_independent);
  TEST (normal_agrees_with_the_definition);
  TEST (numbers_do_not_depend_on_threads_or_layout);
  TEST (a_longer_result_begins_like_a_shorter_one);
  TEST (calls_follow_each_other);
  TEST (uniform_keeps_its_bounds_in_every_dtype);
  TEST (integers_are_even_and_in_range);
  TEST (permutation_has_every_index_once);
  TEST (bernoulli_follows_its_probabilities);
  TEST (multinomial_follows_its_weights);
  TEST (dropout_drops_and_scales);
  TEST (the_gradient_of_dropout_is_zero_for_dropped_elements);
  TEST (bad_arguments_are_errors);
  return g_test_run ();
}
