/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Metrics: their values beside those computed by hand, their states, and what they refuse. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <math.h>

#include "test-device.h"

static GTorchTensor *
floats (const gdouble *values, gint64 rows, gint64 columns)
{
  g_autoptr (GError) error = NULL;
  const gint64 shape[] = { rows, columns };
  GTorchTensor *tensor =
      gtorch_tensor_new_from_doubles (values, rows * MAX (columns, 1), shape, columns > 0 ? 2 : 1,
                                      GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

static GTorchTensor *
ints (const gint64 *values, gint64 n)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor =
      gtorch_tensor_new_from_ints (values, n, &n, 1, GTORCH_DTYPE_INT64, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

static void
update (gpointer metric, GTorchTensor *output, GTorchTensor *target)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_metric_update (metric, output, target, &error));
  g_assert_no_error (error);
}

static gdouble
value_of (gpointer metric)
{
  g_autoptr (GError) error = NULL;
  const gdouble value = gtorch_metric_compute_value (metric, &error);

  g_assert_no_error (error);
  return value;
}

#define assert_near(a, b) g_assert_cmpfloat_with_epsilon (a, b, 1e-6)

static void
assert_refused (gpointer metric, GTorchTensor *output, GTorchTensor *target, gint code,
                const gchar *message)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_metric_update (metric, output, target, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_cmpstr (error->message, ==, message);
}

static const gdouble scores[] = {
  0.1, 0.7, 0.2, /* 1, then 2 */
  0.5, 0.1, 0.4, /* 0, then 2 */
  0.3, 0.3, 0.4, /* 2 */
  0.2, 0.5, 0.3, /* 1, then 2 */
};
static const gint64 classes[] = { 1, 2, 2, 0 };

static void
test_accuracy_counts_the_best (void)
{
  g_autoptr (GTorchAccuracy) first = gtorch_accuracy_new (1);
  g_autoptr (GTorchAccuracy) second = gtorch_accuracy_new (2);
  g_autoptr (GTorchTensor) output = floats (scores, 4, 3);
  g_autoptr (GTorchTensor) target = ints (classes, 4);
  g_autoptr (GTorchTensor) guessed = ints ((const gint64[]){ 1, 1, 1, 1 }, 4);

  update (first, output, target);
  assert_near (value_of (first), 0.5);
  update (first, guessed, target);
  assert_near (value_of (first), 3.0 / 8);
  update (second, output, target);
  assert_near (value_of (second), 0.75);
}

static void
test_accuracy_ignores_a_class (void)
{
  g_autoptr (GTorchMetric) metric =
      g_object_new (GTORCH_TYPE_ACCURACY, "ignore-index", (gint64) 2, NULL);
  g_autoptr (GTorchTensor) output = floats (scores, 4, 3);
  g_autoptr (GTorchTensor) target = ints (classes, 4);

  update (metric, output, target);
  assert_near (value_of (metric), 0.5); /* of the two that are left */
}

static void
test_accuracy_is_nan_without_batches (void)
{
  g_autoptr (GTorchMetric) metric = GTORCH_METRIC (gtorch_accuracy_new (1));
  g_autoptr (GTorchTensor) output = floats (scores, 4, 3);
  g_autoptr (GTorchTensor) target = ints (classes, 4);
  g_autoptr (GError) error = NULL;

  g_assert_true (isnan (value_of (metric)));
  update (metric, output, target);
  g_assert_true (gtorch_metric_reset (metric, &error));
  g_assert_no_error (error);
  g_assert_true (isnan (value_of (metric)));
}

static void
test_accuracy_refuses_other_shapes (void)
{
  g_autoptr (GTorchAccuracy) metric = gtorch_accuracy_new (1);
  g_autoptr (GTorchAccuracy) tenth = gtorch_accuracy_new (10);
  g_autoptr (GTorchAccuracy) none = gtorch_accuracy_new (0);
  g_autoptr (GTorchTensor) output = floats (scores, 4, 3);
  g_autoptr (GTorchTensor) target = ints (classes, 3);
  g_autoptr (GTorchTensor) right = ints (classes, 4);
  g_autoptr (GTorchTensor) real = floats (scores, 4, 0);

  assert_refused (metric, output, target, GTORCH_ERROR_SHAPE,
                  "accuracy: outputs of shape [4, 3] do not fit targets of shape [3]: scores have "
                  "one "
                  "more dimension, the classes, behind the first, and classes have the same shape");
  assert_refused (metric, output, real, GTORCH_ERROR_DTYPE,
                  "accuracy: targets must be classes, of an integer dtype, not float32");
  assert_refused (metric, real, right, GTORCH_ERROR_DTYPE,
                  "accuracy: outputs of the shape of the targets, [4], must be classes, of an "
                  "integer "
                  "dtype, not float32");
  assert_refused (tenth, output, right, GTORCH_ERROR_SHAPE,
                  "accuracy: outputs of shape [4, 3] have scores for 3 classes, fewer than the "
                  "best "
                  "10");
  assert_refused (none, output, right, GTORCH_ERROR_INVALID,
                  "accuracy: top_k is 0, it must be at least 1");
  assert_refused (metric, output, NULL, GTORCH_ERROR_INVALID, "accuracy: there are no targets");
}

static void
test_confusion_matrix_has_targets_as_rows (void)
{
  g_autoptr (GTorchMetric) metric = GTORCH_METRIC (gtorch_confusion_matrix_new (3));
  g_autoptr (GTorchTensor) output = floats (scores, 4, 3);
  g_autoptr (GTorchTensor) target = ints (classes, 4);
  g_autoptr (GTorchTensor) matrix = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gint64 *counts = NULL;
  const gint64 expected[] = { 0, 2, 0, 0, 2, 0, 2, 0, 2 };
  gsize n;

  update (metric, output, target);
  update (metric, output, target);
  matrix = gtorch_metric_compute (metric, &error);
  g_assert_no_error (error);
  counts = gtorch_tensor_to_ints (matrix, &n, &error);
  g_assert_cmpmem (counts, n * sizeof *counts, expected, sizeof expected);
  g_assert_cmpfloat (gtorch_metric_compute_value (metric, &error), ==, 0);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

static void
test_confusion_matrix_refuses_classes_outside (void)
{
  g_autoptr (GTorchMetric) metric = GTORCH_METRIC (gtorch_confusion_matrix_new (3));
  g_autoptr (GTorchMetric) none = GTORCH_METRIC (gtorch_confusion_matrix_new (0));
  g_autoptr (GTorchTensor) output = ints ((const gint64[]){ 1, 3 }, 2);
  g_autoptr (GTorchTensor) target = ints ((const gint64[]){ 1, 1 }, 2);
  g_autoptr (GTorchTensor) matrix = NULL;
  g_autoptr (GTorchTensor) sum = NULL;

  assert_refused (none, output, target, GTORCH_ERROR_INVALID,
                  "confusion_matrix: num_classes is 0, it must be from 1 to 2147483647");
  if (test_device () != gtorch_device_cpu ())
    {
      g_test_skip ("a GPU tells later");
      return;
    }
  assert_refused (metric, output, target, GTORCH_ERROR_INDEX,
                  "confusion_matrix: a class is none of the 3, which begin with 0");
  assert_refused (metric, target, output, GTORCH_ERROR_INDEX,
                  "confusion_matrix: a class is none of the 3, which begin with 0");
}

/* A score that is NaN, and a class that there is not, are refused by all; the states stay. */
static void
test_metrics_refuse_what_cannot_be_counted (void)
{
  g_autoptr (GError) error = NULL;
  GTorchMetric *metrics[] = {
    GTORCH_METRIC (gtorch_accuracy_new (1)),
    GTORCH_METRIC (gtorch_accuracy_new (2)),
    GTORCH_METRIC (gtorch_confusion_matrix_new (3)),
    GTORCH_METRIC (gtorch_precision_score_new (3, GTORCH_SCORE_AVERAGE_MACRO, &error)),
    GTORCH_METRIC (gtorch_f1_score_new (3, GTORCH_SCORE_AVERAGE_MICRO, &error)),
  };
  const gchar *const names[] = { "accuracy", "accuracy", "confusion_matrix", "precision",
                                 "f1_score" };
  const gdouble values[] = { 1, 2, 0, 0, NAN, 5 }, sound[] = { 1, 2, 0, 0, 4, 5 };
  g_autoptr (GTorchTensor) bad = floats (values, 2, 3);
  g_autoptr (GTorchTensor) good = floats (sound, 2, 3);
  g_autoptr (GTorchTensor) target = ints ((const gint64[]){ 1, 2 }, 2);
  g_autoptr (GTorchTensor) beyond = ints ((const gint64[]){ 1, 3 }, 2);
  g_autoptr (GTorchTensor) below = ints ((const gint64[]){ -1, 2 }, 2);

  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (metrics); i++)
    {
      g_autofree gchar *nan_text =
          g_strdup_printf ("%s: scores are NaN, which have no greatest one", names[i]);
      g_autofree gchar *class_text =
          g_strdup_printf ("%s: a class is none of the 3, which begin with 0", names[i]);

      if (test_device () != gtorch_device_cpu ()) /* a GPU tells later */
        continue;
      assert_refused (metrics[i], bad, target, GTORCH_ERROR_INVALID, nan_text);
      assert_refused (metrics[i], good, beyond, GTORCH_ERROR_INDEX, class_text);
      assert_refused (metrics[i], good, below, GTORCH_ERROR_INDEX, class_text);
    }
  g_assert_true (isnan (value_of (metrics[0])));
  update (metrics[0], good, target);
  g_assert_cmpfloat (value_of (metrics[0]), ==, 1);
  for (guint i = 0; i < G_N_ELEMENTS (metrics); i++)
    g_object_unref (metrics[i]);
}

/* Neither the scores nor the class of a target that is not counted matters. */
static void
test_what_is_not_counted_may_be_anything (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchMetric) metric =
      g_object_new (GTORCH_TYPE_ACCURACY, "ignore-index", (gint64) -100, NULL);
  const gdouble values[] = { 1, 2, 0, 0, NAN, 5 };
  g_autoptr (GTorchTensor) output = floats (values, 2, 3);
  g_autoptr (GTorchTensor) target = ints ((const gint64[]){ 1, -100 }, 2);

  g_assert_true (gtorch_metric_update (metric, output, target, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (value_of (metric), ==, 1);
}

/* predicted 1 0 2 1 1 0, true 1 2 2 0 1 0 */
static void
test_scores_average_as_told (void)
{
  const gint64 predicted[] = { 1, 0, 2, 1, 1, 0 }, actual[] = { 1, 2, 2, 0, 1, 0 };
  /* hits 1 2 1; predicted 2 3 1; actual 2 2 2 */
  const struct
  {
    GTorchScoreAverage average;
    gdouble precision, recall, f1;
  } cases[] = {
    { GTORCH_SCORE_AVERAGE_MICRO, 4.0 / 6, 4.0 / 6, 4.0 / 6 },
    { GTORCH_SCORE_AVERAGE_MACRO, (0.5 + 2.0 / 3 + 1) / 3, (0.5 + 1 + 0.5) / 3,
      (0.5 + 0.8 + 2.0 / 3) / 3 },
    { GTORCH_SCORE_AVERAGE_WEIGHTED, (0.5 + 2.0 / 3 + 1) / 3, (0.5 + 1 + 0.5) / 3,
      (0.5 + 0.8 + 2.0 / 3) / 3 },
  };
  g_autoptr (GTorchTensor) output = ints (predicted, 6);
  g_autoptr (GTorchTensor) target = ints (actual, 6);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      /* a fourth class that does not occur changes no average */
      g_autoptr (GTorchPrecisionScore) precision =
          gtorch_precision_score_new (4, cases[i].average, NULL);
      g_autoptr (GTorchRecallScore) recall = gtorch_recall_score_new (4, cases[i].average, NULL);
      g_autoptr (GTorchF1Score) f1 = gtorch_f1_score_new (4, cases[i].average, NULL);

      update (precision, output, target);
      update (recall, output, target);
      update (f1, output, target);
      assert_near (value_of (precision), cases[i].precision);
      assert_near (value_of (recall), cases[i].recall);
      assert_near (value_of (f1), cases[i].f1);
    }
}

static void
test_scores_without_average_are_one_for_each_class (void)
{
  g_autoptr (GTorchMetric) metric =
      GTORCH_METRIC (gtorch_recall_score_new (3, GTORCH_SCORE_AVERAGE_NONE, NULL));
  g_autoptr (GTorchTensor) output = floats (scores, 4, 3);
  g_autoptr (GTorchTensor) target = ints (classes, 4);
  g_autoptr (GTorchTensor) result = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gdouble *values = NULL;
  gsize n;

  update (metric, output, target);
  result = gtorch_metric_compute (metric, &error);
  values = gtorch_tensor_to_doubles (result, &n, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n, ==, 3);
  assert_near (values[0], 0);
  assert_near (values[1], 1);
  assert_near (values[2], 0.5);
}

static void
test_means_take_weights (void)
{
  g_autoptr (GTorchMetric) metric = GTORCH_METRIC (gtorch_mean_metric_new ());
  g_autoptr (GTorchTensor) values = floats ((const gdouble[]){ 1, 2, 6 }, 3, 0);
  g_autoptr (GTorchTensor) weights = floats ((const gdouble[]){ 0, 0, 3 }, 3, 0);

  update (metric, values, NULL);
  assert_near (value_of (metric), 3);
  update (metric, values, weights);
  assert_near (value_of (metric), (9.0 + 18) / 6);
}

static void
test_mean_squared_error_has_a_root (void)
{
  g_autoptr (GTorchMetric) squared = GTORCH_METRIC (gtorch_mean_squared_error_new (TRUE));
  g_autoptr (GTorchMetric) root = GTORCH_METRIC (gtorch_mean_squared_error_new (FALSE));
  g_autoptr (GTorchTensor) output = floats ((const gdouble[]){ 1, 2, 6 }, 3, 0);
  g_autoptr (GTorchTensor) target = floats ((const gdouble[]){ 1, 5, 3 }, 3, 0);
  g_autoptr (GTorchTensor) other = floats ((const gdouble[]){ 1, 5 }, 2, 0);

  update (squared, output, target);
  update (root, output, target);
  assert_near (value_of (squared), 6);
  assert_near (value_of (root), sqrt (6));
  assert_refused (squared, output, other, GTORCH_ERROR_SHAPE,
                  "mean_squared_error: outputs of shape [3] and targets of shape [2] must have one "
                  "shape");
}

static void
test_perplexity_of_a_guess_is_the_number_of_words (void)
{
  g_autoptr (GTorchMetric) metric = GTORCH_METRIC (gtorch_perplexity_new ());
  g_autoptr (GTorchTensor) logits =
      gtorch_zeros (GTORCH_SHAPE (4, 7), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) words = ints ((const gint64[]){ 0, -100, 6, -100 }, 4);
  g_autoptr (GTorchTensor) total = NULL;

  update (metric, logits, words);
  assert_near (value_of (metric), 7);
  g_assert_cmpint (gtorch_tensor_item_int (gtorch_metric_get_state (metric, "total", NULL), NULL),
                   ==, 2);
}

/* --- states --- */

typedef struct
{
  GTorchMetric parent_instance;
} Largest;
typedef GTorchMetricClass LargestClass;

GType largest_get_type (void);
G_DEFINE_TYPE (Largest, largest, GTORCH_TYPE_METRIC)

static gboolean
largest_update (GTorchMetric *self, GTorchTensor *output, GTorchTensor *target, GError **error)
{
  g_autoptr (GTorchTensor) largest = gtorch_tensor_amax (output, NULL, 0, FALSE, error);
  g_autoptr (GTorchTensor) both = NULL;

  g_assert_false (gtorch_is_grad_enabled ());
  if (largest == NULL)
    return FALSE;
  both = gtorch_tensor_maximum (gtorch_metric_get_state (self, "largest", error), largest, error);
  return both != NULL && gtorch_metric_set_state (self, "largest", both, error);
}

static GTorchTensor *
largest_compute (GTorchMetric *self, GError **error)
{
  return g_object_ref (gtorch_metric_get_state (self, "largest", error));
}

static void
largest_class_init (LargestClass *klass)
{
  klass->update = largest_update;
  klass->compute = largest_compute;
}

static void
largest_init (Largest *self)
{
  g_autoptr (GTorchTensor) zero = gtorch_zeros (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL);

  g_assert_true (gtorch_metric_add_state (GTORCH_METRIC (self), "largest", zero, NULL));
}

static void
test_subclasses_have_states (void)
{
  g_autoptr (GTorchMetric) metric = g_object_new (largest_get_type (), NULL);
  g_autoptr (GTorchTensor) output = floats (scores, 4, 3);
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) names = gtorch_metric_get_state_names (metric);

  g_assert_cmpstrv (names, ((const gchar *const[]){ "largest", NULL }));
  update (metric, output, NULL);
  assert_near (value_of (metric), 0.7);
  g_assert_true (gtorch_metric_reset (metric, &error));
  assert_near (value_of (metric), 0);
  g_assert_false (gtorch_metric_add_state (metric, "largest", output, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "add_state: there is a state “largest” already");
  g_clear_error (&error);
  g_assert_null (gtorch_metric_get_state (metric, "least", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "get_state: Largest has no state “least”");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/Metric/" #name, test_##name)
  ADD (accuracy_counts_the_best);
  ADD (accuracy_ignores_a_class);
  ADD (accuracy_is_nan_without_batches);
  ADD (accuracy_refuses_other_shapes);
  ADD (confusion_matrix_has_targets_as_rows);
  ADD (confusion_matrix_refuses_classes_outside);
  ADD (metrics_refuse_what_cannot_be_counted);
  ADD (what_is_not_counted_may_be_anything);
  ADD (scores_average_as_told);
  ADD (scores_without_average_are_one_for_each_class);
  ADD (means_take_weights);
  ADD (mean_squared_error_has_a_root);
  ADD (perplexity_of_a_guess_is_the_number_of_words);
  ADD (subclasses_have_states);
#undef ADD
  return g_test_run ();
}
