/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

#include "autograd-values.h"

/* A class whose behaviour a test chooses. */
typedef enum
{
  CUBE,          /* x³, from the input */
  EXP,           /* exp (x), from the output */
  SPLIT,         /* (x + y, x - y, count) */
  SCALE_INPLACE, /* x *= 3 */
  NOTHING,       /* NULL without an error */
  FAILS,         /* an error in backward */
  WRONG_COUNT,
  WRONG_SHAPE,
  WRONG_VALUE,
  IDENTITY,
} Kind;

#define TEST_TYPE_FUNCTION (test_function_get_type ())
G_DECLARE_FINAL_TYPE (TestFunction, test_function, TEST, FUNCTION, GTorchFunction)

struct _TestFunction
{
  GTorchFunction parent_instance;
  Kind kind;
  guint n_backward;
};

G_DEFINE_TYPE (TestFunction, test_function, GTORCH_TYPE_FUNCTION)

static GPtrArray *
list (GTorchTensor *first, ...)
{
  GPtrArray *array = g_ptr_array_new_with_free_func (g_object_unref);
  va_list args;

  va_start (args, first);
  for (; first != NULL; first = va_arg (args, GTorchTensor *))
    g_ptr_array_add (array, first);
  va_end (args);
  return array;
}

static GPtrArray *
test_function_forward (GTorchFunction *function, GTorchFunctionContext *context,
                       GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  TestFunction *self = TEST_FUNCTION (function);
  GTorchTensor *x = inputs[0], *y, *count;
  g_autoptr (GTorchTensor) square = NULL;

  g_assert_false (gtorch_is_grad_enabled ());
  switch (self->kind)
    {
    case EXP:
      y = gtorch_tensor_exp (x, error);
      gtorch_function_context_save_for_backward (context, &y, 1, NULL);
      return list (y, NULL);
    case SPLIT:
      g_assert_cmpuint (n_inputs, ==, 2);
      count = gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, NULL);
      return list (gtorch_tensor_add (x, inputs[1], 1, NULL),
                   gtorch_tensor_sub (x, inputs[1], 1, NULL), count, NULL);
    case SCALE_INPLACE:
      gtorch_tensor_mul_scalar_inplace (x, 3, NULL);
      gtorch_function_context_mark_dirty (context, &x, 1, NULL);
      return list (g_object_ref (x), NULL);
    case IDENTITY:
      return list (g_object_ref (x), NULL);
    case NOTHING:
      return NULL;
    default:
      gtorch_function_context_save_for_backward (context, &x, 1, NULL);
      square = gtorch_tensor_mul (x, x, error);
      return square != NULL ? list (gtorch_tensor_mul (square, x, error), NULL) : NULL;
    }
}

static GPtrArray *
test_function_backward (GTorchFunction *function, GTorchFunctionContext *context,
                        GTorchTensor **grad_outputs, gsize n_grad_outputs, GError **error)
{
  TestFunction *self = TEST_FUNCTION (function);
  g_autoptr (GPtrArray) saved = NULL;
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) slope = NULL;

  self->n_backward++;
  saved = gtorch_function_context_get_saved_tensors (context, error);
  if (saved == NULL)
    return NULL;
  switch (self->kind)
    {
    case EXP:
      return list (gtorch_tensor_mul (grad_outputs[0], saved->pdata[0], error), NULL);
    case SPLIT:
      g_assert_cmpuint (n_grad_outputs, ==, 3);
      g_assert_nonnull (grad_outputs[1]); /* materialized */
      g_assert_true (gtorch_function_context_get_needs_input_grad (context, 0));
      slope = gtorch_tensor_sub (grad_outputs[0], grad_outputs[1], 1, NULL);
      if (!gtorch_function_context_get_needs_input_grad (context, 1))
        return list (gtorch_tensor_add (grad_outputs[0], grad_outputs[1], 1, NULL), NULL);
      return list (gtorch_tensor_add (grad_outputs[0], grad_outputs[1], 1, NULL),
                   g_steal_pointer (&slope), NULL);
    case SCALE_INPLACE:
      return list (gtorch_tensor_mul_scalar (grad_outputs[0], 3, NULL), NULL);
    case IDENTITY:
      return list (g_object_ref (grad_outputs[0]), NULL);
    case FAILS:
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "no way");
      return NULL;
    case WRONG_COUNT:
      return list (g_object_ref (grad_outputs[0]), g_object_ref (grad_outputs[0]),
                   g_object_ref (grad_outputs[0]), NULL);
    case WRONG_SHAPE:
      return list (gtorch_zeros (GTORCH_SHAPE (7), GTORCH_DTYPE_FLOAT64, NULL, NULL), NULL);
    default:
      square = gtorch_tensor_mul (saved->pdata[0], saved->pdata[0], error);
      slope = gtorch_tensor_mul_scalar (square, self->kind == WRONG_VALUE ? 2.5 : 3, error);
      return list (gtorch_tensor_mul (grad_outputs[0], slope, error), NULL);
    }
}

static void
test_function_class_init (TestFunctionClass *klass)
{
  GTORCH_FUNCTION_CLASS (klass)->forward = test_function_forward;
  GTORCH_FUNCTION_CLASS (klass)->backward = test_function_backward;
}

static void
test_function_init (TestFunction *self)
{
}

static TestFunction *
function_new (Kind kind)
{
  TestFunction *self = g_object_new (TEST_TYPE_FUNCTION, NULL);

  self->kind = kind;
  return self;
}

static GTorchTensor *
apply (TestFunction *function, GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) outputs = gtorch_function_apply (GTORCH_FUNCTION (function), &x, 1, &error);

  g_assert_no_error (error);
  return g_object_ref (outputs->pdata[0]);
}

static void
forward_and_backward_run (void)
{
  g_autoptr (TestFunction) cube = function_new (CUBE);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = apply (cube, x);
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_cmpfloat (value (y, 1), ==, 8);
  g_assert_cmpstr (gtorch_tensor_get_grad_fn_name (y), ==, "TestFunction");
  backward_sum (y);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 2), ==, 27);
  g_assert_cmpuint (cube->n_backward, ==, 1);
}

static void
nothing_is_recorded_without_grad (void)
{
  g_autoptr (TestFunction) cube = function_new (CUBE);
  g_autoptr (GTorchTensor) x = leaf (1, 3, FALSE);
  g_autoptr (GTorchTensor) y = apply (cube, x);

  g_assert_false (gtorch_tensor_get_requires_grad (y));
}

static void
gradients_agree_with_differences (void)
{
  const Kind kinds[] = { CUBE, EXP, SPLIT, IDENTITY };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (TestFunction) function = function_new (kinds[i]);
      GTorchTensor *inputs[] = { leaf (0.5, 3, TRUE), leaf (1.25, 3, TRUE) };
      guint n = kinds[i] == SPLIT ? 2 : 1;

      gtorch_gradcheck_function (GTORCH_FUNCTION (function), inputs, n, 1e-6, 1e-6, 1e-5, &error);
      g_assert_no_error (error);
      gtorch_gradgradcheck_function (GTORCH_FUNCTION (function), inputs, n, 1e-6, 1e-5, 1e-4,
                                     &error);
      g_assert_no_error (error);
      g_object_unref (inputs[0]);
      g_object_unref (inputs[1]);
    }
}

static void
wrong_gradients_are_found (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TestFunction) function = function_new (WRONG_VALUE);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);

  g_assert_false (
      gtorch_gradcheck_function (GTORCH_FUNCTION (function), &x, 1, 1e-6, 1e-6, 1e-5, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "output 0 at [0] by input 0 at [0]"));
  g_assert_nonnull (strstr (error->message, "the gradient is 2.5, differences give 3"));
}

static GTorchTensor *
sine_of_the_first (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  g_autoptr (GTorchTensor) product = gtorch_tensor_mul (inputs[0], inputs[1], error);

  return product != NULL ? gtorch_tensor_sin (product, error) : NULL;
}

static void
plain_functions_can_be_checked (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (0.1, 3, TRUE);
  g_autoptr (GTorchTensor) y = leaf (0.7, 3, FALSE);
  g_autoptr (GTorchTensor) narrow =
      gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  GTorchTensor *inputs[] = { x, y };

  g_assert_true (gtorch_gradcheck (sine_of_the_first, NULL, inputs, 2, 1e-6, 1e-6, 1e-5, &error));
  g_assert_true (
      gtorch_gradgradcheck (sine_of_the_first, NULL, inputs, 2, 1e-6, 1e-5, 1e-4, &error));
  g_assert_cmpfloat (value (x, 0), ==, 0.1);
  gtorch_tensor_set_requires_grad (x, FALSE, NULL);
  g_assert_false (gtorch_gradcheck (sine_of_the_first, NULL, inputs, 2, 1e-6, 0, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  gtorch_tensor_set_requires_grad (narrow, TRUE, NULL);
  inputs[0] = narrow;
  g_assert_false (gtorch_gradcheck (sine_of_the_first, NULL, inputs, 2, 1e-6, 0, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_clear_error (&error);
  g_assert_false (gtorch_gradcheck (sine_of_the_first, NULL, inputs, 2, 0, 0, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static GTorchTensor *
logarithm (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  return gtorch_tensor_log (inputs[0], error);
}

static void
gradcheck_rejects_nan (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (-1.5, 3, TRUE); /* only the last is positive */

  g_assert_false (gtorch_gradcheck (logarithm, NULL, &x, 1, 1e-6, 1e-6, 1e-5, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "nan"));
}

static void
missing_gradients_are_zeros (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TestFunction) function = function_new (SPLIT);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = leaf (1, 3, FALSE);
  g_autoptr (GTorchTensor) grad = NULL;
  GTorchTensor *inputs[] = { x, y };
  g_autoptr (GPtrArray) outputs =
      gtorch_function_apply (GTORCH_FUNCTION (function), inputs, 2, &error);

  g_assert_no_error (error);
  g_assert_false (gtorch_tensor_get_requires_grad (outputs->pdata[2]));
  backward_sum (outputs->pdata[0]);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 0), ==, 1);
}

static void
an_input_can_be_changed_in_place (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TestFunction) function = function_new (SCALE_INPLACE);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) z = apply (function, y);
  g_autoptr (GTorchTensor) part = NULL;
  g_autoptr (GTorchTensor) scaled = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_true (z == y);
  part = gtorch_tensor_slice (y, 0, 1, 3, 1, NULL);
  scaled = apply (function, part);
  g_assert_true (scaled == part);
  backward_sum (y);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 0), ==, 6);
  g_assert_cmpfloat (value (grad, 1), ==, 18);
  g_assert_null (gtorch_function_apply (GTORCH_FUNCTION (function), &x, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
}

static void
a_returned_input_becomes_a_new_tensor (void)
{
  g_autoptr (TestFunction) function = function_new (IDENTITY);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = apply (function, x);

  g_assert_true (y != x);
  g_assert_true (gtorch_tensor_is_leaf (x));
  g_assert_true (gtorch_tensor_shares_storage (x, y));
}

static void
errors_are_passed_on (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  const Kind kinds[] = { FAILS, WRONG_COUNT, WRONG_SHAPE };
  const gchar *texts[] = { "no way", "3 gradients for 1 inputs", "[7]" };
  g_autoptr (TestFunction) nothing = function_new (NOTHING);
  guint i;

  g_assert_null (gtorch_function_apply (GTORCH_FUNCTION (nothing), &x, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "TestFunction: forward"));
  for (i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_autoptr (TestFunction) function = function_new (kinds[i]);
      g_autoptr (GTorchTensor) y = apply (function, x);
      g_autoptr (GTorchTensor) s = sum (y);

      g_clear_error (&error);
      g_assert_false (gtorch_tensor_backward (s, NULL, FALSE, FALSE, &error));
      g_assert_nonnull (strstr (error->message, texts[i]));
      g_assert_true (g_str_has_prefix (error->message, "backward of TestFunction: "));
    }
}

static void
changed_or_freed_saved_tensors_are_errors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TestFunction) function = function_new (EXP);
  g_autoptr (TestFunction) cube = function_new (CUBE);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = apply (function, x);
  g_autoptr (GTorchTensor) s = sum (y);
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GTorchTensor) t = NULL;

  gtorch_tensor_mul_scalar_inplace (y, 2, NULL);
  g_assert_false (gtorch_tensor_backward (s, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "saved tensor 0"));
  g_clear_error (&error);

  z = apply (cube, x);
  t = sum (z);
  g_assert_true (gtorch_tensor_backward (t, NULL, FALSE, FALSE, NULL));
  g_assert_false (gtorch_tensor_backward (t, NULL, FALSE, FALSE, &error));
  g_assert_nonnull (strstr (error->message, "retain_graph"));
}

/* A saved output does not keep itself alive. */
static void
saved_outputs_make_no_cycle (void)
{
  TestFunction *function = function_new (EXP);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  gpointer seen = function;

  g_object_add_weak_pointer (G_OBJECT (function), &seen);
  g_object_unref (apply (function, x));
  g_object_unref (function);
  g_assert_null (seen);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/Function/" #name, name)
  ADD (forward_and_backward_run);
  ADD (nothing_is_recorded_without_grad);
  ADD (gradients_agree_with_differences);
  ADD (wrong_gradients_are_found);
  ADD (plain_functions_can_be_checked);
  ADD (gradcheck_rejects_nan);
  ADD (missing_gradients_are_zeros);
  ADD (an_input_can_be_changed_in_place);
  ADD (a_returned_input_becomes_a_new_tensor);
  ADD (errors_are_passed_on);
  ADD (changed_or_freed_saved_tensors_are_errors);
  ADD (saved_outputs_make_no_cycle);
  return g_test_run ();
}
