/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Events as a tree, and what is recorded besides operations: functions of the program, modules, and the
 * events of earlier cycles. */

#include "config.h"

#include "profiler-test.h"

#include "test-device.h"

/* --- a function of the program's --- */

#define TYPE_SQUARE (own_square_get_type ())
G_DECLARE_FINAL_TYPE (OwnSquare, own_square, OWN, SQUARE, GTorchFunction)

struct _OwnSquare
{
  GTorchFunction parent_instance;
};

G_DEFINE_TYPE (OwnSquare, own_square, GTORCH_TYPE_FUNCTION)

static GPtrArray *
give (GTorchTensor *tensor)
{
  GPtrArray *result = g_ptr_array_new_with_free_func (g_object_unref);

  g_assert_nonnull (tensor);
  g_ptr_array_add (result, tensor);
  return result;
}

static GPtrArray *
own_square_forward (GTorchFunction *self, GTorchFunctionContext *context, GTorchTensor **inputs,
                    gsize n_inputs, GError **error)
{
  gtorch_function_context_save_for_backward (context, inputs, n_inputs, error);
  return give (gtorch_tensor_mul (inputs[0], inputs[0], error));
}

static GPtrArray *
own_square_backward (GTorchFunction *self, GTorchFunctionContext *context,
                     GTorchTensor **grad_outputs, gsize n_grad_outputs, GError **error)
{
  g_autoptr (GPtrArray) saved = gtorch_function_context_get_saved_tensors (context, error);
  g_autoptr (GTorchTensor) twice = gtorch_tensor_mul_scalar (saved->pdata[0], 2, error);

  return give (gtorch_tensor_mul (grad_outputs[0], twice, error));
}

static void
own_square_class_init (OwnSquareClass *klass)
{
  GTORCH_FUNCTION_CLASS (klass)->forward = own_square_forward;
  GTORCH_FUNCTION_CLASS (klass)->backward = own_square_backward;
}

static void
own_square_init (OwnSquare *self)
{
}

static void
functions_of_the_program_are_linked (void)
{
  g_autoptr (GTorchFunction) square = g_object_new (TYPE_SQUARE, NULL);
  g_autoptr (GTorchTensor) x = filled (2, 3, 2);
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GPtrArray) y = NULL;
  g_autoptr (GTorchProfiler) profiler = NULL;
  g_autoptr (GError) error = NULL;
  const GTorchRecord *forward, *backward, *records;
  guint n;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  profiler = started ("record-shapes", TRUE);
  y = gtorch_function_apply (square, &x, 1, &error);
  g_assert_no_error (error);
  loss = gtorch_tensor_sum (y->pdata[0], NULL, 0, FALSE, 0, NULL);
  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  stop (profiler);
  records = gtorch_trace_get_records (gtorch_profiler_get_trace (profiler), &n);
  forward = find_record (profiler, GTORCH_RECORD_OP, "OwnSquare", 0);
  backward = find_record (profiler, GTORCH_RECORD_BACKWARD, "OwnSquareBackward", 0);
  g_assert_nonnull (forward);
  g_assert_nonnull (backward);
  g_assert_cmpuint (forward->sequence, !=, 0);
  g_assert_cmpuint (forward->sequence, ==, backward->sequence);
  g_assert_true (&records[backward->forward] == forward);
  g_assert_cmpuint (forward->op.n_inputs, ==, 1);
  g_assert_cmpint (forward->op.inputs[0].shape[1], ==, 3);
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "mul", 0))
                 == forward);
}

static void
functions_without_gradients_have_no_number (void)
{
  g_autoptr (GTorchFunction) square = g_object_new (TYPE_SQUARE, NULL);
  g_autoptr (GTorchTensor) x = filled (2, 3, 2);
  g_autoptr (GPtrArray) y = NULL;
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", FALSE);

  y = gtorch_function_apply (square, &x, 1, NULL);
  stop (profiler);
  g_assert_cmpuint (find_record (profiler, GTORCH_RECORD_OP, "OwnSquare", 0)->sequence, ==, 0);
}

/* --- trees --- */

static GTorchProfileRow *
nth (GTorchProfileList *list, guint i)
{
  return g_list_model_get_item (G_LIST_MODEL (list), i);
}

static guint
count (GTorchProfileList *list)
{
  return g_list_model_get_n_items (G_LIST_MODEL (list));
}

/* The i-th that is no call of the driver; NULL: there are not so many. */
static GTorchProfileRow *
nth_of_program (GTorchProfileList *list, guint i)
{
  guint j;

  for (j = 0; j < count (list); j++)
    {
      g_autoptr (GTorchProfileRow) row = nth (list, j);

      if (gtorch_profile_row_get_kind (row) != GTORCH_PROFILE_KIND_DRIVER && i-- == 0)
        return g_steal_pointer (&row);
    }
  return NULL;
}

static void
events_are_a_tree (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", FALSE);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1), y = NULL, z = NULL, w = NULL;
  g_autoptr (GTorchProfileList) events = NULL, children = NULL, kernels = NULL, none = NULL;
  g_autoptr (GTorchProfileRow) outer = NULL, inner = NULL, above = NULL, first = NULL, last = NULL;
  g_autoptr (GTorchProfileRow) top = NULL;
  guint i;

  {
    GTORCH_PROFILE_RANGE ("outer");
    y = gtorch_tensor_exp (x, NULL);
    {
      GTORCH_PROFILE_RANGE ("inner");
      z = gtorch_tensor_sin (x, NULL);
    }
    w = gtorch_tensor_cos (x, NULL);
  }
  stop (profiler);
  events = gtorch_profiler_events (profiler, NULL);
  outer = find_row (events, "outer");
  inner = find_row (events, "inner");
  g_assert_cmpint (gtorch_profile_row_get_kind (outer), ==, GTORCH_PROFILE_KIND_RANGE);
  g_assert_null (gtorch_profile_row_dup_parent (outer));
  g_assert_cmpint (gtorch_profile_row_get_parent_position (outer), ==, -1);
  above = gtorch_profile_row_dup_parent (inner);
  g_assert_cmpstr (gtorch_profile_row_get_key (above), ==, "outer");
  g_assert_cmpuint (gtorch_profile_row_get_id (above), ==, gtorch_profile_row_get_id (outer));
  children = gtorch_profile_row_dup_children (outer);
  first = nth_of_program (children, 0);
  last = nth_of_program (children, 2);
  g_assert_null (nth_of_program (children, 3));
  g_assert_cmpstr (gtorch_profile_row_get_key (first), ==, "exp");
  g_assert_cmpstr (gtorch_profile_row_get_key (last), ==, "cos");
  g_assert_cmpint (gtorch_profile_row_get_kind (last), ==, GTORCH_PROFILE_KIND_OPERATION);
  none = gtorch_profile_row_dup_children (last);
  g_assert_null (nth_of_program (none, 0));
  kernels = gtorch_profile_row_dup_kernels (outer);
  g_assert_cmpuint (count (kernels), ==, 0);
  g_clear_object (&events); /* rows keep what they need */
  top = gtorch_profile_row_dup_parent (last);
  g_assert_cmpint (gtorch_profile_row_get_position (top), ==,
                   gtorch_profile_row_get_position (outer));

  events = gtorch_profiler_events (profiler, NULL);
  for (i = 0; i < count (events); i++)
    {
      g_autoptr (GTorchProfileRow) row = nth (events, i);

      g_assert_cmpint (gtorch_profile_row_get_position (row), ==, i);
      if (gtorch_profile_row_get_device_type (row) == GTORCH_DEVICE_TYPE_CPU)
        g_assert_cmpint (gtorch_profile_row_get_parent_position (row), <, (gint64) i);
    }
}

static void
sums_know_the_first_event (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-flops", FALSE);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1), y = NULL, z = NULL;
  g_autoptr (GTorchProfileList) averages = NULL, inside = NULL;
  g_autoptr (GTorchProfileRow) row = NULL, above = NULL, total = NULL;

  {
    GTORCH_PROFILE_RANGE ("first");
    y = gtorch_tensor_exp (x, NULL);
  }
  z = gtorch_tensor_exp (x, NULL);
  stop (profiler);
  averages = gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
  row = find_row (averages, "exp");
  g_assert_cmpuint (gtorch_profile_row_get_count (row), ==, 2);
  above = gtorch_profile_row_dup_parent (row);
  g_assert_cmpstr (gtorch_profile_row_get_key (above), ==, "first");
  total = gtorch_profile_list_total_average (averages);
  g_assert_cmpint (gtorch_profile_row_get_kind (total), ==, GTORCH_PROFILE_KIND_NONE);
  g_assert_cmpuint (gtorch_profile_row_get_id (total), ==, 0);
  g_assert_cmpint (gtorch_profile_row_get_position (total), ==, -1);
  g_assert_null (gtorch_profile_row_dup_parent (total));
  inside = gtorch_profile_row_dup_children (total);
  g_assert_cmpuint (count (inside), ==, 0);
}

/* --- modules --- */

static GTorchModule *
make_net (void)
{
  GTorchSequential *net = gtorch_sequential_new ();
  g_autoptr (GTorchSequential) inside = gtorch_sequential_new ();
  g_autoptr (GTorchLinear) first = gtorch_linear_new (3, 4, NULL);
  g_autoptr (GTorchLinear) second = gtorch_linear_new (4, 2, NULL);

  g_assert_true (gtorch_sequential_append (net, GTORCH_MODULE (first), NULL));
  g_assert_true (gtorch_sequential_append (inside, GTORCH_MODULE (second), NULL));
  g_assert_true (gtorch_sequential_append (net, GTORCH_MODULE (inside), NULL));
  return GTORCH_MODULE (net);
}

static void
call (GTorchModule *net)
{
  g_autoptr (GTorchTensor) x = filled (2, 3, 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) y = gtorch_module_forward (net, x, &error);

  g_assert_no_error (error);
}

static void
modules_are_levels (void)
{
  g_autoptr (GTorchModule) net = make_net ();
  g_autoptr (GTorchProfiler) profiler = started ("with-modules", TRUE);
  g_autoptr (GTorchProfileList) averages = NULL, events = NULL;
  g_autoptr (GTorchProfileRow) linear = NULL, inner = NULL, above = NULL, top = NULL;

  call (net);
  call (net);
  stop (profiler);
  events = gtorch_profiler_events (profiler, NULL);
  linear = find_row (events, "nn.Module: Linear_1");
  g_assert_cmpint (gtorch_profile_row_get_kind (linear), ==, GTORCH_PROFILE_KIND_MODULE);
  g_assert_cmpstr (gtorch_profile_row_get_module_path (linear), ==, "1.0");
  inner = gtorch_profile_row_dup_parent (linear);
  g_assert_cmpstr (gtorch_profile_row_get_key (inner), ==, "nn.Module: Sequential_1");
  g_assert_cmpstr (gtorch_profile_row_get_module_path (inner), ==, "1");
  above = gtorch_profile_row_dup_parent (inner);
  g_assert_cmpstr (gtorch_profile_row_get_key (above), ==, "nn.Module: Sequential_0");
  g_assert_cmpstr (gtorch_profile_row_get_module_path (above), ==, "");
  g_assert_false (gtorch_profile_row_get_is_user_annotation (above));
  averages = gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
  top = find_row (averages, "nn.Module: Sequential_0");
  g_assert_cmpuint (gtorch_profile_row_get_count (top), ==, 2);
  g_assert_null (gtorch_module_profile_call (net)); /* nothing records */
}

static void
frames_hide_modules_in_averages (void)
{
  g_autoptr (GTorchModule) net = make_net ();
  g_autoptr (GTorchProfiler) with_stack = started ("with-stack", TRUE), plain = NULL;
  g_autoptr (GTorchProfileList) averages = NULL, events = NULL;
  g_autoptr (GTorchProfileRow) row = NULL;

  call (net);
  stop (with_stack);
  averages = gtorch_profiler_key_averages (with_stack, FALSE, 0, NULL);
  events = gtorch_profiler_events (with_stack, NULL);
  g_assert_null (find_row (averages, "nn.Module: Linear_0"));
  row = find_row (events, "nn.Module: Linear_0");
  g_assert_nonnull (row);

  plain = started ("with-flops", FALSE);
  call (net);
  stop (plain);
  g_assert_cmpuint (count_records (plain, GTORCH_RECORD_MODULE, NULL), ==, 0);
}

/* Two modules of a class, of which the second takes the place of the first in memory. */
static void
modules_that_are_gone_keep_their_numbers (void)
{
  g_autoptr (GTorchProfiler) profiler = started ("with-modules", TRUE);
  guint i;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchModule) net = make_net ();

      call (net);
    }
  stop (profiler);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_MODULE, "nn.Module: Sequential_0"), ==,
                    1);
  g_assert_cmpuint (count_records (profiler, GTORCH_RECORD_MODULE, "nn.Module: Sequential_5"), ==,
                    1);
}

static void
calls_of_bindings_are_modules (void)
{
  g_autoptr (GTorchModule) net = make_net ();
  g_autoptr (GTorchProfiler) profiler = started ("with-modules", TRUE);
  g_autoptr (GTorchTensor) x = filled (2, 2, 1), y = NULL;
  GTorchProfileRange *range = gtorch_module_profile_call (net);
  const GTorchRecord *record;

  y = gtorch_tensor_exp (x, NULL);
  gtorch_profile_range_end (range);
  gtorch_profile_range_unref (range);
  range = gtorch_module_profile_call (net); /* still open at the end */
  stop (profiler);
  gtorch_profile_range_unref (range);
  record = find_record (profiler, GTORCH_RECORD_MODULE, "nn.Module: Sequential_0", 0);
  g_assert_true (parent_of (profiler, find_record (profiler, GTORCH_RECORD_OP, "exp", 0))
                 == record);
  g_assert_nonnull (find_record (profiler, GTORCH_RECORD_MODULE, "nn.Module: Sequential_0", 1));
}

/* --- several cycles --- */

static guint64
count_exp (GTorchProfiler *profiler)
{
  g_autoptr (GTorchProfileList) averages = gtorch_profiler_key_averages (profiler, FALSE, 0, NULL);
  g_autoptr (GTorchProfileRow) row = find_row (averages, "exp");

  return gtorch_profile_row_get_count (row);
}

static void
cycles_are_kept (void)
{
  gboolean kept;

  for (kept = FALSE; kept <= TRUE; kept++)
    {
      g_autoptr (GTorchProfiler) profiler = started ("wait", (gint64) 1, "active", (gint64) 2,
                                                     "repeat", (gint64) 3, "acc-events", kept);
      g_autoptr (GTorchProfileList) events = NULL;
      gdouble former = 0;
      guint i;

      for (i = 0; i < 9; i++)
        {
          g_autoptr (GTorchTensor) x = filled (2, 2, 1);
          g_autoptr (GTorchTensor) y = gtorch_tensor_exp (x, NULL);

          g_assert_true (gtorch_profiler_step (profiler, NULL));
        }
      g_assert_cmpuint (count_exp (profiler), ==, kept ? 6 : 2);
      events = gtorch_profiler_events (profiler, NULL);
      for (i = 0; i < count (events); i++) /* one after the other, on one clock */
        {
          g_autoptr (GTorchProfileRow) row = nth (events, i);
          g_autoptr (GTorchProfileRow) above = gtorch_profile_row_dup_parent (row);

          g_assert_cmpfloat (gtorch_profile_row_get_start (row), >=, former);
          former = gtorch_profile_row_get_start (row);
          if (g_str_equal (gtorch_profile_row_get_key (row), "exp"))
            g_assert_cmpstr (gtorch_profile_row_get_key (above), ==, "ProfilerStep*");
        }
      g_object_set (profiler, "acc-events", FALSE, "active", (gint64) 0, NULL);
      gtorch_profiler_stop (profiler, NULL);
      profiler_start_made (profiler);
      {
        g_autoptr (GTorchTensor) x = filled (2, 2, 1);
        g_autoptr (GTorchTensor) y = gtorch_tensor_exp (x, NULL);
      }
      stop (profiler);
      g_assert_cmpuint (count_exp (profiler), ==, 1); /* the next one drops them */
    }
}

#define TEST(name) g_test_add_func ("/GTorch/profile-events/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (functions_of_the_program_are_linked);
  TEST (functions_without_gradients_have_no_number);
  TEST (events_are_a_tree);
  TEST (sums_know_the_first_event);
  TEST (modules_are_levels);
  TEST (frames_hide_modules_in_averages);
  TEST (modules_that_are_gone_keep_their_numbers);
  TEST (calls_of_bindings_are_modules);
  TEST (cycles_are_kept);
  return g_test_run ();
}
