/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Mixed precision: the dtype in which each operation computes, and the regions. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "dispatch/gtorch-autocast-private.h"
#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "op-values.h"

#define MAX_TENSORS 16

static const gchar *reference_path;

static GTorchDeviceType
device_type (void)
{
  return test_device ()->type;
}

static GTorchAutocastGuard *
region (GTorchDType dtype)
{
  GError *error = NULL;
  GTorchAutocastGuard *guard =
      gtorch_autocast_guard_new (device_type (), dtype, TRUE, TRUE, &error);

  g_assert_no_error (error);
  return guard;
}

/* --- each operation, compared with PyTorch as recorded by autocast-reference.py --- */

static const GTorchOpSample *
find_sample (const gchar *op, guint index)
{
  guint i;

  for (i = 0; i < gtorch_n_op_samples; i++)
    if (g_str_equal (gtorch_ops[gtorch_op_samples[i].op].name, op)
        && gtorch_op_samples[i].index == index)
      return &gtorch_op_samples[i];
  return NULL;
}

static guint
dtype_of_letter (gchar letter, guint low)
{
  return letter == 'l' ? low : (letter == 'f' ? GTORCH_DTYPE_FLOAT32 : GTORCH_DTYPE_FLOAT64);
}

/* Returns the dtypes of the sample's results for inputs of these dtypes, in the words of the file; "none"
 * if it does not accept them, with or without autocast. */
static gchar *
results_of (const GTorchOpSample *sample, const gchar *pattern, guint low)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GTorchAutocastGuard) guard = NULL;
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  g_autoptr (GError) error = NULL;
  GTorchImpl *inputs[MAX_TENSORS] = { NULL };
  GString *text = g_string_new (NULL);
  gboolean success;
  guint i, n = 0;

  for (i = 0; i < sample->n_tensors; i++)
    {
      const GTorchSampleTensor *tensor = &sample->tensors[i];
      g_autoptr (GTorchImpl) host = NULL;

      if (tensor->n_dims < 0)
        continue;
      host = input_new (tensor,
                        tensor->dtype != GTORCH_DTYPE_NONE
                            ? tensor->dtype
                            : dtype_of_letter (pattern[MIN (n, strlen (pattern) - 1)], low),
                        LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);
      inputs[i] = impl_to_test_device (host);
      n += tensor->dtype == GTORCH_DTYPE_NONE;
    }
  guard = region (low);
  success =
      gtorch_op_invokers[sample->op](inputs, sample->n_tensors, sample->attrs, results, &error);
  if (!success)
    {
      g_clear_pointer (&guard, gtorch_autocast_guard_unref);
      if (!gtorch_op_invokers[sample->op](inputs, sample->n_tensors, sample->attrs, results, NULL))
        g_string_append (text, "none");
      else
        g_string_append (text,
                         error->code == GTORCH_ERROR_NOT_SUPPORTED ? "refused" : error->message);
    }
  for (i = 0; success && i < results->len; i++)
    {
      guint dtype = ((GTorchImpl *) results->pdata[i])->dtype;

      g_string_append (text, i > 0 ? "," : "");
      g_string_append (text, dtype == low                    ? "l"
                             : dtype == GTORCH_DTYPE_FLOAT32 ? "f"
                             : dtype == GTORCH_DTYPE_FLOAT64 ? "d"
                                                             : gtorch_dtype_get_name (dtype));
    }
  for (i = 0; i < sample->n_tensors; i++)
    g_clear_pointer (&inputs[i], gtorch_impl_unref);
  return g_string_free (text, FALSE);
}

static void
dtypes_of_results_are_pytorchs (void)
{
  const GTorchDeviceType like = test_device ()->backend->autocast_like;
  const gchar *type = like == GTORCH_DEVICE_TYPE_CPU ? "cpu" : "cuda";
  const guint lows[] = { GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;
  g_auto (GStrv) lines = NULL;
  guint n_checked = 0, n_without = 0, i, j, k;

  g_file_get_contents (reference_path, &text, NULL, &error);
  g_assert_no_error (error);
  lines = g_strsplit (text, "\n", -1);
  for (i = 0; lines[i][0] != '\0'; i++)
    {
      g_auto (GStrv) words = g_strsplit (lines[i], " ", -1);
      const GTorchOpSample *sample = find_sample (words[0], (guint) atoi (words[1]));

      g_assert_nonnull (sample);
      if (is_under_sanitizer () && i % 10 > 0)
        continue;
      for (j = 3; g_str_equal (words[2], type) && words[j] != NULL; j++)
        for (k = 0; k < G_N_ELEMENTS (lows); k++)
          {
            g_auto (GStrv) sides = g_strsplit (words[j], "=", 2);
            g_autofree gchar *got = results_of (sample, sides[0], lows[k]);

            n_checked++;
            n_without += g_str_equal (got, "none");
            if (g_str_equal (got, "none") || g_str_equal (got, sides[1]))
              continue;
            g_test_message ("%s, sample %s, %s of %s: %s instead of %s", words[0], words[1],
                            gtorch_dtype_get_name (lows[k]), sides[0], got, sides[1]);
            g_test_fail ();
          }
    }
  g_assert_cmpuint (n_checked, >, test_often (2000));
  g_assert_cmpuint (n_without, <, n_checked / 10);
}

/* --- regions --- */

static GTorchTensor *
ones (const gint64 *shape, gsize n_dims, GTorchDType dtype, gboolean requires_grad)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *x = gtorch_ones (shape, n_dims, dtype, test_device (), &error);

  g_assert_no_error (error);
  gtorch_tensor_set_requires_grad (x, requires_grad, &error);
  g_assert_no_error (error);
  return x;
}

static GTorchTensor *
square_matrix (GTorchDType dtype, gboolean requires_grad)
{
  return ones (GTORCH_SHAPE (2, 2), dtype, requires_grad);
}

/* Returns the dtype of a product of float32 matrices here. */
static GTorchDType
product_dtype (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = square_matrix (GTORCH_DTYPE_FLOAT32, FALSE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mm (x, x, &error);

  g_assert_no_error (error);
  return gtorch_tensor_get_dtype (y);
}

static void
values_are_those_of_the_casts (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) low = NULL;
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GTorchTensor) got = NULL;
  g_autoptr (GTorchAutocastGuard) guard = NULL;
  g_autoptr (GTorchTensor) same = NULL;

  gtorch_manual_seed (1);
  x = gtorch_randn (GTORCH_SHAPE (5, 5), GTORCH_DTYPE_FLOAT32, test_device (), NULL, &error);
  low = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_BFLOAT16, &error);
  expected = gtorch_tensor_mm (low, low, &error);
  g_assert_no_error (error);
  guard = region (GTORCH_DTYPE_BFLOAT16);
  got = gtorch_tensor_mm (x, x, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_dtype (got), ==, GTORCH_DTYPE_BFLOAT16);
  same = gtorch_tensor_eq (got, expected, &error);
  g_assert_cmpfloat (test_element (same, 0), ==, 1);
  g_clear_object (&same);
  same = gtorch_tensor_ne (got, expected, &error);
  g_clear_object (&got);
  got = gtorch_tensor_any (same, NULL, 0, FALSE, &error);
  g_assert_cmpfloat (test_element (got, 0), ==, 0);
}

static void
gradients_have_the_dtypes_of_their_inputs (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) weight = square_matrix (GTORCH_DTYPE_FLOAT32, TRUE);
  g_autoptr (GTorchTensor) x = square_matrix (GTORCH_DTYPE_FLOAT16, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) of_weight = NULL;
  g_autoptr (GTorchTensor) of_x = NULL;
  GTorchAutocastGuard *guard = region (GTORCH_DTYPE_FLOAT16);

  y = gtorch_tensor_mm (x, weight, &error);
  g_assert_cmpint (gtorch_tensor_get_dtype (y), ==, GTORCH_DTYPE_FLOAT16);
  loss = gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  gtorch_autocast_guard_unref (guard);
  gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  of_weight = gtorch_tensor_get_grad (weight);
  of_x = gtorch_tensor_get_grad (x);
  g_assert_cmpint (gtorch_tensor_get_dtype (of_weight), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (gtorch_tensor_get_dtype (of_x), ==, GTORCH_DTYPE_FLOAT16);
  g_assert_cmpfloat (test_element (of_weight, 3), ==, 2);
}

static void
regions_nest (void)
{
  g_autoptr (GError) error = NULL;
  GTorchDeviceType other =
      device_type () == GTORCH_DEVICE_TYPE_CPU ? GTORCH_DEVICE_TYPE_CUDA : GTORCH_DEVICE_TYPE_CPU;
  GTorchAutocastGuard *outer, *off, *inner, *elsewhere;

  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_false (gtorch_is_autocast_enabled (device_type ()));
  outer = region (GTORCH_DTYPE_BFLOAT16);
  g_assert_true (gtorch_is_autocast_enabled (device_type ()));
  g_assert_false (gtorch_is_autocast_enabled (other));
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_BFLOAT16);
  inner = region (GTORCH_DTYPE_FLOAT16);
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT16);
  g_assert_cmpint (gtorch_get_autocast_dtype (device_type ()), ==, GTORCH_DTYPE_FLOAT16);
  off = gtorch_autocast_guard_new (device_type (), GTORCH_DTYPE_NONE, FALSE, TRUE, &error);
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT32);
  elsewhere = gtorch_autocast_guard_new (other, GTORCH_DTYPE_NONE, TRUE, TRUE, &error);
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_true (gtorch_is_autocast_enabled (other));
  gtorch_autocast_guard_unref (elsewhere);
  gtorch_autocast_guard_unref (off);
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT16);
  gtorch_autocast_guard_unref (outer); /* in any order */
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT16);
  gtorch_autocast_guard_end (inner);
  gtorch_autocast_guard_end (inner);
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT32);
  gtorch_autocast_guard_unref (inner);
  g_assert_cmpint (gtorch_get_autocast_dtype (GTORCH_DEVICE_TYPE_CPU), ==, GTORCH_DTYPE_BFLOAT16);
  g_assert_cmpint (gtorch_get_autocast_dtype (GTORCH_DEVICE_TYPE_CUDA), ==, GTORCH_DTYPE_FLOAT16);
}

static gboolean
compare_product (gpointer data, GError **error)
{
  g_assert_cmpint (product_dtype (), ==, *(GTorchDType *) data);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "said so");
  return FALSE;
}

static void
run_is_a_region (void)
{
  g_autoptr (GError) error = NULL;
  GTorchDType dtype = GTORCH_DTYPE_FLOAT16;

  g_assert_false (
      gtorch_autocast_run (device_type (), dtype, TRUE, TRUE, compare_product, &dtype, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT32);
}

static void
other_dtypes_are_refused (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (
      gtorch_autocast_guard_new (device_type (), GTORCH_DTYPE_FLOAT32, TRUE, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_cmpstr (error->message, ==,
                   "autocast: operations are cast to float16 or bfloat16, not to float32");
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT32);
}

static gpointer
product_in_thread (gpointer data)
{
  GTorchAutocastGuard *guard = data;

  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT32);
  gtorch_autocast_guard_end (guard); /* does nothing here */
  guard = region (GTORCH_DTYPE_FLOAT16);
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_FLOAT16);
  return guard; /* the end of the thread ends it */
}

static void
regions_belong_to_a_thread (void)
{
  g_autoptr (GTorchAutocastGuard) guard = region (GTORCH_DTYPE_BFLOAT16);
  g_autoptr (GTorchAutocastGuard) theirs =
      g_thread_join (g_thread_new ("autocast", product_in_thread, guard));

  g_assert_nonnull (theirs);
  g_assert_cmpint (product_dtype (), ==, GTORCH_DTYPE_BFLOAT16);
}

static void
in_place_operations_are_left_alone (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchAutocastGuard) guard = region (GTORCH_DTYPE_BFLOAT16);
  g_autoptr (GTorchTensor) x = square_matrix (GTORCH_DTYPE_FLOAT32, FALSE);
  g_autoptr (GTorchTensor) low = square_matrix (GTORCH_DTYPE_BFLOAT16, FALSE);

  g_assert_nonnull (gtorch_tensor_exp_inplace (low, &error));
  g_assert_cmpint (gtorch_tensor_get_dtype (low), ==, GTORCH_DTYPE_BFLOAT16);
  g_assert_nonnull (gtorch_tensor_addcmul_inplace (low, x, x, 1, &error));
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_dtype (low), ==, GTORCH_DTYPE_BFLOAT16);
}

static void
binary_cross_entropy_is_refused_on_gpus (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = square_matrix (GTORCH_DTYPE_FLOAT32, FALSE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) logits = NULL;
  g_autoptr (GTorchAutocastGuard) guard = region (GTORCH_DTYPE_FLOAT16);

  y = gtorch_tensor_binary_cross_entropy (x, x, NULL, GTORCH_REDUCTION_MEAN, &error);
  if (device_type () == GTORCH_DEVICE_TYPE_CUDA)
    {
      g_assert_null (y);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_assert_cmpstr (error->message, ==,
                       "binary_cross_entropy: not safe in an autocast region, since its gradient "
                       "leaves the range of "
                       "float16: leave out the sigmoid before it and use "
                       "binary_cross_entropy_with_logits, or call it "
                       "with float32 tensors in a region that is not enabled");
      g_clear_error (&error);
    }
  g_assert_no_error (error);
  logits = gtorch_tensor_binary_cross_entropy_with_logits (x, x, NULL, NULL, GTORCH_REDUCTION_MEAN,
                                                           &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_dtype (logits), ==, GTORCH_DTYPE_FLOAT32);
}

/* --- cached casts --- */

/* Returns the tensor with which mm would be called. */
static GTorchImpl *
cast_of (GTorchTensor *x)
{
  GTorchImpl *inputs[] = { gtorch_tensor_unwrap (x), gtorch_tensor_unwrap (x) };
  g_autoptr (GError) error = NULL;
  GTorchAutocastCall call;
  GTorchImpl *cast;

  g_assert_true (gtorch_autocast_begin (&call, &gtorch_ops[GTORCH_OP_MM], inputs, 2, &error));
  g_assert_no_error (error);
  cast = gtorch_impl_ref (call.inputs[0]);
  gtorch_autocast_end (&call);
  return cast;
}

static void
casts_of_parameters_are_cached (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) weight = square_matrix (GTORCH_DTYPE_FLOAT32, TRUE);
  g_autoptr (GTorchTensor) plain = square_matrix (GTORCH_DTYPE_FLOAT32, FALSE);
  g_autoptr (GTorchImpl) first = NULL;
  GTorchAutocastGuard *outer = region (GTORCH_DTYPE_BFLOAT16), *inner;
  GTorchImpl *cast;

  first = cast_of (weight);
  cast = cast_of (weight);
  g_assert_true (cast == first);
  gtorch_impl_unref (cast);
  inner = region (GTORCH_DTYPE_BFLOAT16);
  cast = cast_of (weight);
  g_assert_true (cast == first);
  gtorch_impl_unref (cast);
  gtorch_autocast_guard_unref (inner);
  cast = cast_of (weight);
  g_assert_true (cast == first);
  gtorch_impl_unref (cast);
  inner = gtorch_autocast_guard_new (device_type (), GTORCH_DTYPE_BFLOAT16, TRUE, FALSE, &error);
  g_assert_false (gtorch_is_autocast_cache_enabled ());
  cast = cast_of (weight);
  g_assert_true (cast != first);
  gtorch_impl_unref (cast);
  gtorch_autocast_guard_unref (inner);
  g_assert_true (gtorch_is_autocast_cache_enabled ());
  /* another dtype */
  inner = region (GTORCH_DTYPE_FLOAT16);
  cast = cast_of (weight);
  g_assert_cmpint (cast->dtype, ==, GTORCH_DTYPE_FLOAT16);
  gtorch_impl_unref (cast);
  gtorch_autocast_guard_unref (inner);
  /* only casts of parameters are cached */
  g_clear_pointer (&first, gtorch_impl_unref);
  first = cast_of (plain);
  cast = cast_of (plain);
  g_assert_true (cast != first);
  gtorch_impl_unref (cast);
  /* the cache ends with the outermost region */
  g_clear_pointer (&first, gtorch_impl_unref);
  first = cast_of (weight);
  gtorch_autocast_guard_unref (outer);
  g_assert_cmpint (first->ref_count, ==, 1);
}

static void
changed_parameters_are_cast_again (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) weight = square_matrix (GTORCH_DTYPE_FLOAT32, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchAutocastGuard) guard = region (GTORCH_DTYPE_BFLOAT16);
  GTorchGradGuard *off;

  y = gtorch_tensor_mm (weight, weight, &error);
  g_assert_cmpfloat (test_element (y, 0), ==, 2);
  g_clear_object (&y);
  off = gtorch_no_grad ();
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (weight, 3, &error));
  gtorch_grad_guard_unref (off);
  y = gtorch_tensor_mm (weight, weight, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (y, 0), ==, 18);
}

static void
casts_under_no_grad_are_not_reused_for_gradients (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) weight = square_matrix (GTORCH_DTYPE_FLOAT32, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchAutocastGuard) guard = region (GTORCH_DTYPE_BFLOAT16);
  GTorchGradGuard *off = gtorch_no_grad ();

  y = gtorch_tensor_mm (weight, weight, &error);
  g_assert_false (gtorch_tensor_get_requires_grad (y));
  gtorch_grad_guard_unref (off);
  g_clear_object (&y);
  y = gtorch_tensor_mm (weight, weight, &error);
  g_assert_true (gtorch_tensor_get_requires_grad (y));
  off = gtorch_no_grad ();
  g_clear_object (&y);
  y = gtorch_tensor_mm (weight, weight, &error);
  g_assert_false (gtorch_tensor_get_requires_grad (y));
  gtorch_grad_guard_unref (off);
}

static void
casts_are_not_cached_during_captures (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) weight = square_matrix (GTORCH_DTYPE_FLOAT32, TRUE);
  g_autoptr (GTorchTensor) before = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchAutocastGuard) guard = NULL;
  g_autoptr (GTorchStream) stream = NULL;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  GTorchGraphCapture *capture;
  GTorchGradGuard *off;

  if (!test_can_capture ())
    return;
  guard = region (GTORCH_DTYPE_BFLOAT16);
  before = gtorch_tensor_mm (weight, weight, &error); /* caches a cast */
  stream = gtorch_stream_new (test_device (), 0, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, &error));
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  g_assert_no_error (error);
  y = gtorch_tensor_mm (weight, weight, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_unref (capture);
  off = gtorch_no_grad ();
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (weight, 3, &error));
  gtorch_grad_guard_unref (off);
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, &error));
  g_assert_true (gtorch_cuda_graph_replay (graph, &error));
  g_assert_true (gtorch_device_synchronize (test_device (), NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (y, 0), ==, 18);
}

/* --- backward --- */

typedef struct
{
  gboolean in_hook;
} Seen;

static GTorchTensor *
look (GTorchTensor *grad, gpointer data, GError **error)
{
  ((Seen *) data)->in_hook = gtorch_is_autocast_enabled (device_type ());
  return NULL;
}

static void
backward_turns_autocast_off (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = square_matrix (GTORCH_DTYPE_FLOAT32, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchAutocastGuard) guard = region (GTORCH_DTYPE_BFLOAT16);
  Seen seen = { TRUE };

  y = gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  gtorch_tensor_register_hook (x, look, &seen, NULL, &error);
  gtorch_tensor_backward (y, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  g_assert_false (seen.in_hook);
  g_assert_true (gtorch_is_autocast_enabled (device_type ()));
}

/* Computes second derivatives of low-precision results. */
static void
gradients_can_be_differentiated (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = square_matrix (GTORCH_DTYPE_FLOAT32, TRUE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GPtrArray) first = NULL;
  GTorchAutocastGuard *guard = region (GTORCH_DTYPE_BFLOAT16);

  y = gtorch_tensor_mm (x, x, &error);
  loss = gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  gtorch_autocast_guard_unref (guard);
  first = gtorch_autograd_grad (&loss, 1, &x, 1, NULL, 0, TRUE, TRUE, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_dtype (first->pdata[0]), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpfloat (test_element (first->pdata[0], 1), ==, 4);
  total = gtorch_tensor_sum (first->pdata[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  gtorch_tensor_backward (total, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (test_element (grad, 2), ==, 4);
}

#define TEST_TYPE_PRODUCT (test_product_get_type ())
G_DECLARE_FINAL_TYPE (TestProduct, test_product, TEST, PRODUCT, GTorchFunction)

struct _TestProduct
{
  GTorchFunction parent_instance;
  /* the dtypes of the input, and of products in forward and backward */
  GTorchDType given, forward, backward;
};

G_DEFINE_TYPE (TestProduct, test_product, GTORCH_TYPE_FUNCTION)

static GPtrArray *
single (GTorchTensor *tensor)
{
  GPtrArray *array = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (array, tensor);
  return array;
}

static GPtrArray *
test_product_forward (GTorchFunction *function, GTorchFunctionContext *context,
                      GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  TestProduct *self = TEST_PRODUCT (function);

  self->given = gtorch_tensor_get_dtype (inputs[0]);
  self->forward = product_dtype ();
  gtorch_function_context_save_for_backward (context, inputs, 1, NULL);
  return single (gtorch_tensor_mul_scalar (inputs[0], 3, error));
}

static GPtrArray *
test_product_backward (GTorchFunction *function, GTorchFunctionContext *context,
                       GTorchTensor **grads, gsize n_grads, GError **error)
{
  TestProduct *self = TEST_PRODUCT (function);

  self->backward = product_dtype ();
  return single (gtorch_tensor_mul_scalar (grads[0], 3, error));
}

static void
test_product_class_init (TestProductClass *klass)
{
  GTORCH_FUNCTION_CLASS (klass)->forward = test_product_forward;
  GTORCH_FUNCTION_CLASS (klass)->backward = test_product_backward;
}

static void
test_product_init (TestProduct *self)
{
}

/* Calls it in a region, or outside, and runs backward in the opposite case. */
static void
use (TestProduct *product, gboolean in_region)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = square_matrix (GTORCH_DTYPE_FLOAT32, TRUE);
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchAutocastGuard) guard = in_region ? region (GTORCH_DTYPE_BFLOAT16) : NULL;

  outputs = gtorch_function_apply (GTORCH_FUNCTION (product), &x, 1, &error);
  g_assert_no_error (error);
  loss = gtorch_tensor_sum (outputs->pdata[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  if (in_region)
    g_clear_pointer (&guard, gtorch_autocast_guard_unref);
  else
    guard = region (GTORCH_DTYPE_BFLOAT16);
  gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpint (gtorch_tensor_get_dtype (grad), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpfloat (test_element (grad, 0), ==, 3);
}

static void
backward_uses_the_autocast_mode_of_forward (void)
{
  g_autoptr (TestProduct) product = g_object_new (TEST_TYPE_PRODUCT, NULL);

  use (product, TRUE);
  g_assert_cmpint (product->given, ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (product->forward, ==, GTORCH_DTYPE_BFLOAT16);
  g_assert_cmpint (product->backward, ==, GTORCH_DTYPE_BFLOAT16);
  use (product, FALSE);
  g_assert_cmpint (product->forward, ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (product->backward, ==, GTORCH_DTYPE_FLOAT32);
}

static void
functions_may_set_their_own_dtype (void)
{
  g_autoptr (TestProduct) product =
      g_object_new (TEST_TYPE_PRODUCT, "cast-inputs", GTORCH_DTYPE_FLOAT16, NULL);

  g_assert_cmpint (gtorch_function_get_cast_inputs (GTORCH_FUNCTION (product)), ==,
                   GTORCH_DTYPE_FLOAT16);
  use (product, TRUE);
  g_assert_cmpint (product->given, ==, GTORCH_DTYPE_FLOAT16);
  g_assert_cmpint (product->forward, ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (product->backward, ==, GTORCH_DTYPE_FLOAT32);
  use (product, FALSE);
  g_assert_cmpint (product->given, ==, GTORCH_DTYPE_FLOAT32);
}

/* --- training --- */

static GTorchModule *
network_new (GError **error)
{
  GTorchModule *layers[] = { GTORCH_MODULE (gtorch_linear_new (2, 32, error)),
                             GTORCH_MODULE (gtorch_batch_norm1d_new (32, error)),
                             GTORCH_MODULE (gtorch_relu_new ()),
                             GTORCH_MODULE (gtorch_linear_new (32, 2, error)) };
  GTorchSequential *network = gtorch_sequential_new ();
  guint i;

  for (i = 0; i < G_N_ELEMENTS (layers); i++)
    {
      gtorch_sequential_append (network, layers[i], error);
      g_object_unref (layers[i]);
    }
  return GTORCH_MODULE (network);
}

/* Learns which points are inside a circle; returns the last loss. */
static gdouble
train (GTorchDType dtype)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) network = NULL;
  g_autoptr (GListModel) params = NULL;
  g_autoptr (GTorchAdam) adam = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) radius = NULL;
  g_autoptr (GTorchTensor) inside = NULL;
  g_autoptr (GTorchTensor) target = NULL;
  gdouble last = 0;
  guint i;

  gtorch_manual_seed (3);
  network = network_new (&error);
  g_assert_no_error (error);
  params = gtorch_module_get_parameters (network, TRUE);
  adam = gtorch_adam_new (params, 0.02, &error);
  x = gtorch_randn (GTORCH_SHAPE (256, 2), GTORCH_DTYPE_FLOAT32, test_device (), NULL, &error);
  radius = gtorch_tensor_norm (x, 2, (const gint64[]){ 1 }, 1, FALSE, &error);
  inside = gtorch_tensor_lt_scalar (radius, 1.2, &error);
  target = gtorch_tensor_to_dtype (inside, GTORCH_DTYPE_INT64, &error);
  g_assert_no_error (error);
  for (i = 0; i < test_often (120); i++)
    {
      g_autoptr (GTorchTensor) loss = NULL;
      GTorchAutocastGuard *guard = dtype != GTORCH_DTYPE_NONE ? region (dtype) : NULL;
      g_autoptr (GTorchTensor) scores = gtorch_module_forward (network, x, &error);

      g_assert_no_error (error);
      if (guard != NULL)
        g_assert_cmpint (gtorch_tensor_get_dtype (scores), ==, dtype);
      loss = gtorch_tensor_cross_entropy (scores, target, NULL, GTORCH_REDUCTION_MEAN, -100, 0,
                                          &error);
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_tensor_get_dtype (loss), ==, GTORCH_DTYPE_FLOAT32);
      g_clear_pointer (&guard, gtorch_autocast_guard_unref);
      gtorch_optimizer_zero_grad (GTORCH_OPTIMIZER (adam), TRUE, &error);
      gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
      gtorch_optimizer_step (GTORCH_OPTIMIZER (adam), &error);
      g_assert_no_error (error);
      last = test_element (loss, 0);
    }
  return last;
}

/* The loss is that of the scores in float32, of which there is no copy: the gradient has their dtype. */
static void
cross_entropy_reads_scores_of_16_bits (void)
{
  const gdouble tolerance = 1e-5; /* of some ten roundings */
  const GTorchDType lows[] = { GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };
  const gint64 shapes[][3] = { { 5, 10, 1 }, { 3, 700, 1 }, { 2, 7, 3 } };
  g_autoptr (GError) error = NULL;
  guint i, k;

  gtorch_manual_seed (8);
  for (i = 0; i < G_N_ELEMENTS (lows); i++)
    for (k = 0; k < G_N_ELEMENTS (shapes); k++)
      {
        const gint64 labels[] = { shapes[k][0], shapes[k][2] };
        GTorchAutocastGuard *guard = region (GTORCH_DTYPE_BFLOAT16);
        g_autoptr (GTorchTensor) scores =
            gtorch_randn (shapes[k], 3, lows[i], test_device (), NULL, &error);
        g_autoptr (GTorchTensor) target =
            gtorch_randint (0, shapes[k][1], labels, 2, GTORCH_DTYPE_INT64, test_device (), NULL,
                            &error);
        g_autoptr (GTorchTensor) wide =
            gtorch_tensor_to_dtype (scores, GTORCH_DTYPE_FLOAT32, &error);
        g_autoptr (GTorchTensor) got = NULL;
        g_autoptr (GTorchTensor) expected = NULL;
        g_autoptr (GTorchTensor) grad = NULL;
        g_autoptr (GTorchTensor) wide_grad = NULL;
        g_autoptr (GTorchTensor) rounded = NULL;
        gsize j;

        g_assert_no_error (error);
        gtorch_tensor_set_requires_grad (scores, TRUE, &error);
        gtorch_tensor_set_requires_grad (wide, TRUE, &error);
        got = gtorch_tensor_cross_entropy (scores, target, NULL, GTORCH_REDUCTION_SUM, -100, 0.1,
                                           &error);
        gtorch_autocast_guard_unref (guard);
        g_assert_no_error (error);
        expected = gtorch_tensor_cross_entropy (wide, target, NULL, GTORCH_REDUCTION_SUM, -100, 0.1,
                                                &error);
        g_assert_no_error (error);
        g_assert_cmpint (gtorch_tensor_get_dtype (got), ==, GTORCH_DTYPE_FLOAT32);
        g_assert_cmpfloat_with_epsilon (test_element (got, 0), test_element (expected, 0),
                                        tolerance * test_element (expected, 0));
        gtorch_tensor_backward (got, NULL, FALSE, FALSE, &error);
        gtorch_tensor_backward (expected, NULL, FALSE, FALSE, &error);
        g_assert_no_error (error);
        grad = gtorch_tensor_get_grad (scores);
        wide_grad = gtorch_tensor_get_grad (wide);
        g_assert_cmpint (gtorch_tensor_get_dtype (grad), ==, lows[i]);
        rounded = gtorch_tensor_to_dtype (wide_grad, lows[i], &error);
        for (j = 0; j < (gsize) gtorch_tensor_get_numel (grad); j += 13)
          g_assert_cmpfloat_with_epsilon (test_element (grad, j), test_element (rounded, j),
                                          0.008 * fabs (test_element (rounded, j)) + 1e-6);
      }
}

static void
training_converges (void)
{
  gdouble full = train (GTORCH_DTYPE_NONE), low = train (GTORCH_DTYPE_BFLOAT16);

  g_test_message ("loss %g in float32, %g in bfloat16", full, low);
  g_assert_cmpfloat (full, <, is_under_sanitizer () ? 1 : 0.1);
  g_assert_cmpfloat (low, <, is_under_sanitizer () ? 1 : 0.1);
  g_assert_cmpfloat (low, !=, full);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  reference_path = argv[1];
#define ADD(name) g_test_add_func ("/GTorchAutocast/" #name, name)
  ADD (dtypes_of_results_are_pytorchs);
  ADD (values_are_those_of_the_casts);
  ADD (cross_entropy_reads_scores_of_16_bits);
  ADD (gradients_have_the_dtypes_of_their_inputs);
  ADD (regions_nest);
  ADD (run_is_a_region);
  ADD (other_dtypes_are_refused);
  ADD (regions_belong_to_a_thread);
  ADD (in_place_operations_are_left_alone);
  ADD (binary_cross_entropy_is_refused_on_gpus);
  ADD (casts_of_parameters_are_cached);
  ADD (changed_parameters_are_cast_again);
  ADD (casts_under_no_grad_are_not_reused_for_gradients);
  ADD (casts_are_not_cached_during_captures);
  ADD (backward_turns_autocast_off);
  ADD (gradients_can_be_differentiated);
  ADD (backward_uses_the_autocast_mode_of_forward);
  ADD (functions_may_set_their_own_dtype);
  ADD (training_converges);
  return g_test_run ();
}
