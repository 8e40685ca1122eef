/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Views and in-place operations. The expected numbers are PyTorch's for the same statements. */

#include "config.h"

#include "autograd-values.h"

#define check(tensor, ...)                                                          \
  G_STMT_START                                                                      \
  {                                                                                 \
    const gdouble expected[] = { __VA_ARGS__ };                                     \
    gsize at;                                                                       \
    g_autoptr (GTorchTensor) plain = gtorch_tensor_contiguous ((tensor), NULL);     \
                                                                                    \
    g_assert_cmpint (gtorch_tensor_get_numel (plain), ==, G_N_ELEMENTS (expected)); \
    for (at = 0; at < G_N_ELEMENTS (expected); at++)                                \
      g_assert_cmpfloat_with_epsilon (value (plain, at), expected[at],              \
                                      1e-12 * MAX (1, ABS (expected[at])));         \
  }                                                                                 \
  G_STMT_END

static GTorchTensor *
gradient (GTorchTensor *output, GTorchTensor *input, gboolean create_graph)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) s = sum (output);
  g_autoptr (GPtrArray) grads =
      gtorch_autograd_grad (&s, 1, &input, 1, NULL, 0, create_graph, create_graph, TRUE, &error);

  g_assert_no_error (error);
  return grads->pdata[0] != NULL ? g_object_ref (grads->pdata[0])
                                 : gtorch_tensor_zeros_like (input, GTORCH_DTYPE_NONE, NULL);
}

static GTorchTensor *
gradient_of_square (GTorchTensor *output, GTorchTensor *input, gboolean create_graph)
{
  g_autoptr (GTorchTensor) square = gtorch_tensor_mul (output, output, NULL);

  return gradient (square, input, create_graph);
}

static void
views_follow_their_base (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) v = gtorch_tensor_slice (y, 0, 1, 3, 1, NULL);
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_nonnull (gtorch_tensor_mul_inplace (y, x, NULL));
  grad = gradient_of_square (v, x, FALSE);
  check (grad, 0, 128, 432, 0);
}

static void
writing_to_a_view_can_be_differentiated_twice (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul (x, x, NULL);
  g_autoptr (GTorchTensor) v = gtorch_tensor_slice (y, 0, 1, 3, 1, NULL);
  g_autoptr (GTorchTensor) first = gtorch_tensor_select (x, 0, 0, NULL);
  g_autoptr (GTorchTensor) cube = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) second = NULL;

  g_assert_nonnull (gtorch_tensor_mul_inplace (v, first, &error));
  cube = gtorch_tensor_pow_scalar (y, 3, NULL);
  grad = gradient (cube, x, TRUE);
  check (grad, 2385, 192, 1458, 6144);
  second = gradient_of_square (grad, x, FALSE);
  check (second, 35814528, 2931840, 27949860, 94371840);
}

static void
regenerated_views_can_be_differentiated_twice (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul (x, x, NULL);
  g_autoptr (GTorchTensor) v = gtorch_tensor_slice (y, 0, 1, 3, 1, NULL);
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GTorchTensor) second = NULL;

  g_assert_nonnull (gtorch_tensor_mul_inplace (y, x, NULL));
  grad = gradient_of_square (v, x, TRUE);
  check (grad, 0, 192, 1458, 0);
  product = gtorch_tensor_mul (grad, x, NULL);
  second = gradient (product, x, FALSE);
  check (second, 0, 1152, 8748, 0);
}

static void
views_of_views_have_one_base (void)
{
  g_autoptr (GTorchTensor) x = leaf (0, 6, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 1, NULL);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_view (y, GTORCH_SHAPE (2, 3), NULL);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_t (matrix, NULL);
  g_autoptr (GTorchTensor) row = gtorch_tensor_select (turned, 0, 1, NULL);
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_nonnull (gtorch_tensor_exp_inplace (row, NULL));
  grad = gradient_of_square (matrix, x, FALSE);
  check (grad, 0, 14.778112197861299, 4, 6, 5961.915974083456, 10);
}

static void
writes_show_in_overlapping_views (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) weights = leaf (1, 4, FALSE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 1, NULL);
  g_autoptr (GTorchTensor) a = gtorch_tensor_slice (y, 0, 0, 2, 1, NULL);
  g_autoptr (GTorchTensor) b = gtorch_tensor_slice (y, 0, 1, 4, 1, NULL);
  g_autoptr (GTorchTensor) weighted = NULL;
  g_autoptr (GTorchTensor) s = NULL;
  g_autoptr (GTorchTensor) t = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (a, 3, NULL));
  g_assert_nonnull (gtorch_tensor_pow_scalar_inplace (b, 2, NULL));
  weighted = gtorch_tensor_mul (y, weights, NULL);
  s = sum (weighted);
  t = sum (a);
  total = gtorch_tensor_add (s, t, 1, NULL);
  grad = gradient (total, x, FALSE);
  check (grad, 6, 108, 18, 32);
}

static void
expanded_views_follow_their_base (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 1, NULL);
  g_autoptr (GTorchTensor) e = gtorch_tensor_expand (y, GTORCH_SHAPE (3, 2), NULL);
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (y, 5, NULL));
  grad = gradient_of_square (e, x, FALSE);
  check (grad, 150, 300);
}

static void
filling_detaches_elements (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) z = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) a = gtorch_tensor_slice (y, 0, 0, 2, 1, NULL);
  g_autoptr (GTorchTensor) b = gtorch_tensor_select (y, 0, 3, NULL);
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) none = NULL;

  g_assert_nonnull (gtorch_tensor_zero_inplace (a, NULL));
  g_assert_nonnull (gtorch_tensor_fill_inplace (b, 7, NULL));
  grad = gradient_of_square (y, x, FALSE);
  check (grad, 0, 0, 24, 0);
  g_assert_nonnull (gtorch_tensor_uniform_inplace (z, 0, 1, NULL, NULL));
  none = gradient (z, x, FALSE);
  check (none, 0, 0, 0, 0);
}

static void
a_retained_gradient_is_that_of_the_new_value (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) kept = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_true (gtorch_tensor_retain_grad (y, NULL));
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (y, 3, NULL));
  square = gtorch_tensor_mul (y, y, NULL);
  backward_sum (square);
  kept = gtorch_tensor_get_grad (y);
  grad = gtorch_tensor_get_grad (x);
  check (kept, 12, 24, 36);
  check (grad, 72, 144, 216);
}

static GTorchTensor *
remember (GTorchTensor *grad, gpointer user_data, GError **error)
{
  *(GTorchTensor **) user_data = g_object_ref (grad);
  return NULL;
}

static void
a_hook_stays_with_the_old_value (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) seen = NULL;
  guint64 id = gtorch_tensor_register_hook (y, remember, &seen, NULL, NULL);

  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (y, 3, NULL));
  backward_sum (y);
  check (seen, 3, 3, 3);
  g_assert_true (gtorch_tensor_remove_hook (y, id));
}

/* z is computed from y, then y from z: if y itself were saved for z, none of them would ever be freed. */
static void
changing_a_saved_tensor_makes_no_cycle (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  GTorchTensor *y = gtorch_tensor_mul_scalar (x, 2, NULL);
  GTorchTensor *z = gtorch_tensor_mul (y, x, NULL);
  gpointer seen = gtorch_tensor_register_hook (z, remember, g_malloc (1), g_free, NULL) ? y : NULL;

  g_object_add_weak_pointer (G_OBJECT (y), &seen);
  g_assert_nonnull (gtorch_tensor_add_inplace (y, z, 1, NULL));
  g_object_unref (z);
  g_object_unref (y); /* the leak checker reports the hook's data if the graph survives */
  g_assert_null (seen);
}

static void
views_made_under_no_grad_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) v = NULL;
  g_autoptr (GTorchTensor) w = gtorch_tensor_select (x, 0, 0, NULL);
  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

    v = gtorch_tensor_select (y, 0, 1, NULL);
  }
  g_assert_null (gtorch_tensor_mul_inplace (v, w, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "no_grad"));
  g_assert_cmpfloat (value (y, 1), ==, 4);
}

static void
detaching_in_place_makes_a_leaf (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) v = gtorch_tensor_select (y, 0, 1, NULL);
  g_autoptr (GTorchTensor) d = gtorch_tensor_detach (y, NULL);

  g_assert_false (gtorch_tensor_get_requires_grad (d));
  g_assert_true (gtorch_tensor_shares_storage (d, y));
  g_assert_null (gtorch_tensor_detach_inplace (v, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_true (gtorch_tensor_detach_inplace (y, NULL) == y);
  g_assert_true (gtorch_tensor_is_leaf (y));
  g_assert_false (gtorch_tensor_get_requires_grad (y));
}

static void
set_data_shares_the_elements (void)
{
  const gint64 deep[] = { 1, 2, 1, 3, 1, 1 };
  const gint64 flat[] = { 3 };
  g_autoptr (GTorchTensor) w = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) former = gtorch_tensor_mul (w, w, NULL);
  g_autoptr (GTorchTensor) sum =
      gtorch_tensor_sum (former, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_autoptr (GTorchTensor) many = gtorch_ones (deep, 6, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) few = gtorch_full (flat, 1, 5, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) twice = NULL, grad = NULL;

  g_assert_true (gtorch_tensor_set_data (w, many, NULL));
  g_assert_true (gtorch_tensor_shares_storage (w, many));
  g_assert_cmpuint (gtorch_tensor_get_n_dims (w), ==, 6);
  g_assert_cmpint (gtorch_tensor_get_dtype (w), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_true (gtorch_tensor_get_requires_grad (w));
  g_assert_true (gtorch_tensor_is_leaf (w));
  g_assert_true (gtorch_tensor_set_data (w, few, NULL));
  g_assert_cmpuint (gtorch_tensor_get_n_dims (w), ==, 1);
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (few, 2, NULL));
  g_assert_cmpfloat (value (w, 2), ==, 10);

  /* the product of before keeps the elements of before */
  g_assert_cmpfloat (value (former, 2), ==, 9);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, NULL));
  grad = gtorch_tensor_get_grad (w);
  g_assert_cmpfloat (value (grad, 2), ==, 6);
  twice = gtorch_tensor_mul_scalar (w, 2, NULL);
  g_assert_cmpfloat (value (twice, 0), ==, 20);
}

static void
set_data_refuses_what_is_no_leaf (void)
{
  const gint64 shape[] = { 3 };
  g_autoptr (GTorchTensor) w = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) result = gtorch_tensor_mul_scalar (w, 2, NULL);
  g_autoptr (GTorchTensor) view = gtorch_tensor_select (result, 0, 0, NULL);
  g_autoptr (GTorchTensor) sum =
      gtorch_tensor_sum (result, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_autoptr (GTorchTensor) whole = gtorch_ones (shape, 1, GTORCH_DTYPE_INT32, NULL, NULL);
  g_autoptr (GTorchTensor) other = gtorch_ones (shape, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) longer =
      gtorch_zeros (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) gone = gtorch_tensor_mul_scalar (other, 2, NULL);
  const struct
  {
    GTorchTensor *self, *data;
    GTorchError code;
  } cases[] = {
    { result, other, GTORCH_ERROR_AUTOGRAD }, { view, other, GTORCH_ERROR_AUTOGRAD },
    { w, whole, GTORCH_ERROR_DTYPE },         { w, longer, GTORCH_ERROR_AUTOGRAD },
    { w, gone, GTORCH_ERROR_RELEASED },       { gone, other, GTORCH_ERROR_RELEASED },
  };
  guint i;

  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, NULL));
  gtorch_tensor_release (gone);
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (gtorch_tensor_set_data (cases[i].self, cases[i].data, &error));
      g_assert_error (error, GTORCH_ERROR, cases[i].code);
    }
  g_assert_cmpfloat (value (w, 0), ==, value (result, 0) / 2);
  g_assert_true (gtorch_tensor_set_grad (w, NULL, NULL));
  g_assert_true (gtorch_tensor_set_data (w, longer, NULL));
}

/* How the base of the views was created. */
typedef enum
{
  BASE_PLAIN,
  BASE_LEAF,
  BASE_COMPUTED,
  BASE_DETACHED,
  N_BASES,
} BaseKind;

static GTorchTensor *
base_new (BaseKind kind)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (3, 4), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) y = NULL;

  if (kind == BASE_PLAIN)
    return g_steal_pointer (&x);
  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  if (kind == BASE_LEAF)
    return g_steal_pointer (&x);
  y = gtorch_tensor_mul_scalar (x, 1, NULL);
  return kind == BASE_COMPUTED ? g_steal_pointer (&y) : gtorch_tensor_detach (y, NULL);
}

/* Tries all ways to a leaf and its views: a write to one of them is refused if a gradient would be lost. */
static void
write_to_leaf_or_view (guint bits)
{
  const BaseKind kind = bits & 3;
  const guint depth = bits >> 2 & 3, target_kind = bits >> 4 & 3;
  const gboolean base_asks = bits >> 6 & 1, view_asks = bits >> 7 & 1, late = bits >> 8 & 1,
                 recording = bits >> 9 & 1;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) base = base_new (kind);
  g_autoptr (GTorchTensor) view = NULL;
  g_autoptr (GTorchTensor) sibling = NULL;
  g_autoptr (GTorchTensor) below = NULL;
  GTorchTensor *target, *written;
  gboolean target_wants, base_is_computed;
  guint i;

  if (base_asks && !late)
    gtorch_tensor_set_requires_grad (base, TRUE, NULL);
  view = gtorch_tensor_select (base, 0, 0, NULL);
  sibling = gtorch_tensor_select (base, 0, 1, NULL);
  for (i = 0; i < depth; i++)
    {
      GTorchTensor *next = gtorch_tensor_slice (view, 0, 0, 4 - i, 1, NULL);

      g_object_unref (view);
      view = next;
    }
  if (view_asks)
    g_assert_true (gtorch_tensor_set_requires_grad (view, TRUE, NULL));
  if (base_asks && late)
    gtorch_tensor_set_requires_grad (base, TRUE, NULL);
  below = gtorch_tensor_slice (view, 0, 0, 1, 1, NULL);
  target = (GTorchTensor *[]){ base, view, sibling, below }[target_kind];
  target_wants = gtorch_tensor_get_requires_grad (target);
  base_is_computed = gtorch_tensor_get_requires_grad (base) && !gtorch_tensor_is_leaf (base);
  g_assert_true (base_is_computed == (kind == BASE_COMPUTED));
  {
    g_autoptr (GTorchGradGuard) guard = recording ? NULL : gtorch_no_grad ();

    written = gtorch_tensor_mul_scalar_inplace (target, 2, &error);
  }
  if (recording && target_wants && !base_is_computed)
    {
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
      g_assert_nonnull (strstr (error->message, "leaf"));
      g_assert_null (written);
      return;
    }
  g_assert_no_error (error);
  g_assert_true (written == target);
  g_assert_cmpint (gtorch_tensor_get_requires_grad (target), ==, target_wants);
  if (target_wants)
    backward_sum (target);
}

static void
leaves_and_views (void)
{
  guint bits;

  for (bits = 0; bits < 1u << 10; bits++)
    {
      g_test_message ("combination %u", bits);
      write_to_leaf_or_view (bits);
    }
}

static void
views_used_as_operands_follow_the_target (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 1, NULL);
  g_autoptr (GTorchTensor) all = gtorch_tensor_slice (y, 0, 0, 4, 1, NULL);
  g_autoptr (GTorchTensor) other = gtorch_tensor_slice (y, 0, 2, 4, 1, NULL);
  g_autoptr (GTorchTensor) first = gtorch_tensor_slice (y, 0, 0, 2, 1, NULL);
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  /* y is (1, 4, 9, 16), then (9, 64, 9, 16): the former operand has the new history, too */
  g_assert_nonnull (gtorch_tensor_mul_inplace (y, all, NULL));
  g_assert_nonnull (gtorch_tensor_mul_inplace (first, other, NULL));
  total = gtorch_tensor_mul (all, all, NULL);
  grad = gradient (total, x, FALSE);
  check (grad, 2 * 9 * 18, 2 * 64 * 64, 2 * 9 * 6 + 2 * 9 * 6, 2 * 16 * 8 + 2 * 64 * 32);
}

static void
views_made_under_no_grad_without_history_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) w = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) base = leaf (1, 4, FALSE);
  g_autoptr (GTorchTensor) alone = NULL;
  g_autoptr (GTorchTensor) v = NULL;
  g_autoptr (GTorchTensor) below = NULL;
  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
    g_autoptr (GTorchTensor) memory = leaf (1, 4, FALSE);

    v = gtorch_tensor_slice (base, 0, 0, 2, 1, NULL);
    alone = gtorch_tensor_slice (memory, 0, 0, 2, 1, NULL);
  }
  below = gtorch_tensor_slice (v, 0, 0, 2, 1, NULL);
  g_assert_null (gtorch_tensor_mul_inplace (v, w, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_mul_inplace (below, w, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_clear_error (&error);
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (v, 2, &error));
  g_assert_no_error (error);
  g_assert_nonnull (gtorch_tensor_mul_inplace (alone, w, &error));
  g_assert_no_error (error);
}

/* The second gradient flows to the leaf although its value has changed since. */
static void
a_changed_leaf_can_be_differentiated_twice (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) d = gtorch_tensor_detach (x, NULL);
  g_autoptr (GTorchTensor) w = leaf (2, 3, TRUE);
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) second = NULL;

  /* d = w x with the old x = (1, 2, 3), w = (2, 3, 4) */
  g_assert_nonnull (gtorch_tensor_copy_inplace (d, x, FALSE, NULL));
  g_assert_nonnull (gtorch_tensor_mul_inplace (d, w, NULL));
  square = gtorch_tensor_mul (d, d, NULL);
  grad = gradient (square, w, TRUE);
  check (grad, 4, 24, 72);
  second = gradient (grad, x, FALSE);
  check (second, 8, 24, 48);
}

static void
as_strided_can_be_differentiated_twice (void)
{
  const gint64 size[] = { 3, 2 }, stride[] = { 1, 1 };
  g_autoptr (GTorchTensor) x = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) w = gtorch_tensor_as_strided (x, size, 2, stride, 2, GTORCH_NONE, NULL);
  g_autoptr (GTorchTensor) cube = gtorch_tensor_pow_scalar (w, 3, NULL);
  g_autoptr (GTorchTensor) grad = gradient (cube, x, TRUE);
  g_autoptr (GTorchTensor) second = NULL;

  check (grad, 3, 24, 54, 48);
  second = gradient (grad, x, FALSE);
  check (second, 6, 24, 36, 24);
}

/* Three elements at one memory location have a third of its gradient each. */
static void
as_strided_of_an_expanded_tensor (void)
{
  const gint64 size[] = { 1 }, stride[] = { 1 };
  g_autoptr (GTorchTensor) x = leaf (5, 1, TRUE);
  g_autoptr (GTorchTensor) e = gtorch_tensor_expand (x, GTORCH_SHAPE (3), NULL);
  g_autoptr (GTorchTensor) w = gtorch_tensor_as_strided (e, size, 1, stride, 1, GTORCH_NONE, NULL);
  g_autoptr (GTorchTensor) grad = gradient_of_square (w, x, FALSE);

  check (grad, 10);
}

/* The gradient of the base needs the base; the gradient of the exponent is not wanted. */
static void
values_that_no_gradient_needs_may_be_changed (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) factor = leaf (1, 3, FALSE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_pow_scalar (x, 2, NULL);
  g_autoptr (GTorchTensor) z = gtorch_tensor_mul (y, factor, NULL);
  g_autoptr (GTorchTensor) e = gtorch_tensor_exp (x, NULL);
  g_autoptr (GTorchTensor) s = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  /* y was an operand, too: only the gradient of the factor would have needed its values */
  g_assert_nonnull (gtorch_tensor_add_scalar_inplace (y, 1, 1, NULL));
  s = gtorch_tensor_add (y, z, 1, NULL);
  grad = gradient (s, x, FALSE);
  check (grad, 2 + 2, 4 + 8, 6 + 18);

  g_assert_nonnull (gtorch_tensor_add_scalar_inplace (e, 1, 1, NULL));
  g_clear_object (&s);
  s = sum (e);
  g_assert_false (gtorch_tensor_backward (s, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
}

static void
a_base_need_not_be_contiguous (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) matrix =
      gtorch_zeros (GTORCH_SHAPE (3, 2), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_t (matrix, NULL);
  g_autoptr (GTorchTensor) base = gtorch_tensor_detach (turned, NULL);
  g_autoptr (GTorchTensor) column = gtorch_tensor_select (base, 1, 2, NULL);
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_nonnull (gtorch_tensor_copy_inplace (column, x, FALSE, NULL));
  g_assert_true (gtorch_tensor_get_requires_grad (base));
  grad = gradient_of_square (base, x, FALSE);
  check (grad, 2, 4);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/inplace/" #name, name)
  ADD (views_follow_their_base);
  ADD (writing_to_a_view_can_be_differentiated_twice);
  ADD (regenerated_views_can_be_differentiated_twice);
  ADD (views_of_views_have_one_base);
  ADD (writes_show_in_overlapping_views);
  ADD (expanded_views_follow_their_base);
  ADD (filling_detaches_elements);
  ADD (a_retained_gradient_is_that_of_the_new_value);
  ADD (a_hook_stays_with_the_old_value);
  ADD (changing_a_saved_tensor_makes_no_cycle);
  ADD (views_made_under_no_grad_are_refused);
  ADD (detaching_in_place_makes_a_leaf);
  ADD (set_data_shares_the_elements);
  ADD (set_data_refuses_what_is_no_leaf);
  ADD (a_base_need_not_be_contiguous);
  ADD (views_used_as_operands_follow_the_target);
  ADD (views_made_under_no_grad_without_history_are_refused);
  ADD (a_changed_leaf_can_be_differentiated_twice);
  ADD (as_strided_can_be_differentiated_twice);
  ADD (as_strided_of_an_expanded_tensor);
  ADD (leaves_and_views);
  ADD (values_that_no_gradient_needs_may_be_changed);
  return g_test_run ();
}
