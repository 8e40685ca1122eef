/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The backward pass with several streams, threads or passes, and the memory that it holds and frees. */

#include "config.h"

#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/gtorch.h>

#include "autograd-values.h"

#define N_ROUNDS  40
#define N_STREAMS 3
#define LENGTH    512

static void
take_time (gpointer data)
{
  g_usleep (GPOINTER_TO_UINT (data));
}

/* Enqueues work that takes between zero and two milliseconds. */
static void
delay (GTorchStream *stream, GRand *rand)
{
  if (g_rand_boolean (rand) && !gtorch_stream_is_default (stream))
    test_enqueue (stream, take_time, GUINT_TO_POINTER (g_rand_int_range (rand, 1, 2000)));
}

static GTorchStream *
new_stream (void)
{
  g_autoptr (GError) error = NULL;
  GTorchStream *stream = gtorch_stream_new (NULL, 0, &error);

  g_assert_no_error (error);
  return stream;
}

static GPtrArray *
new_streams (void)
{
  GPtrArray *streams = g_ptr_array_new_with_free_func (g_object_unref);
  guint i;

  for (i = 0; i < N_STREAMS; i++)
    g_ptr_array_add (streams, new_stream ());
  return streams;
}

static GTorchTensor *
constant (gdouble number)
{
  return gtorch_full (GTORCH_SHAPE (LENGTH), number, GTORCH_DTYPE_FLOAT64, NULL, NULL);
}

/* Checks all elements, without waiting. */
static void
assert_all (GTorchTensor *tensor, gdouble expected)
{
  gint64 i;

  for (i = 0; i < gtorch_tensor_get_numel (tensor); i++)
    g_assert_cmpfloat (value (tensor, i), ==, expected);
}

/* --- streams --- */

/* A value that was computed on one of the streams. */
typedef struct
{
  GTorchTensor *tensor;
  GTorchStream *stream;
} Placed;

static Placed
multiply (Placed a, Placed b, GTorchStream *stream, GRand *rand)
{
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  Placed result = { NULL, stream };

  g_assert_true (gtorch_stream_wait_stream (stream, a.stream, NULL));
  g_assert_true (gtorch_stream_wait_stream (stream, b.stream, NULL));
  delay (stream, rand);
  result.tensor = gtorch_tensor_mul (a.tensor, b.tensor, NULL);
  g_assert_nonnull (result.tensor);
  delay (stream, rand);
  return result;
}

static GTorchStream *
any_of (GPtrArray *streams, GRand *rand)
{
  return streams->pdata[g_rand_int_range (rand, 0, streams->len)];
}

/* Computes x⁵ from x², x³ and their product, each on a random stream. */
static Placed
fifth_power (GTorchTensor *x, GPtrArray *streams, GRand *rand)
{
  GTorchStream *first = gtorch_stream_get_current (NULL);
  Placed leaf = { x, first };
  Placed square = multiply (leaf, leaf, any_of (streams, rand), rand);
  Placed cube = multiply (leaf, square, any_of (streams, rand), rand);
  Placed result = multiply (square, cube, any_of (streams, rand), rand);

  g_object_unref (square.tensor);
  g_object_unref (cube.tensor);
  return result;
}

static void
backward_follows_the_streams_of_forward (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  g_autoptr (GPtrArray) streams = new_streams ();
  guint i, round;

  for (round = 0; round < N_ROUNDS; round++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x = constant (2);
      g_autoptr (GTorchTensor) seed = constant (1);
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GTorchTensor) fifth = NULL;
      guint passes = g_rand_int_range (rand, 1, 4);

      g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
      fifth = fifth_power (x, streams, rand).tensor;
      for (i = 0; i < passes; i++)
        g_assert_true (gtorch_tensor_backward (fifth, seed, TRUE, FALSE, &error));
      g_assert_no_error (error);
      grad = gtorch_tensor_get_grad (x);
      assert_all (grad, passes * 5 * 16);
    }
}

static void
the_callers_stream_waits (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (2);
  g_autoptr (GPtrArray) streams = new_streams ();
  g_autoptr (GTorchStream) mine = new_stream ();
  guint i, round;

  for (round = 0; round < N_ROUNDS; round++)
    {
      g_autoptr (GTorchTensor) x = constant (2);
      g_autoptr (GTorchTensor) y = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GTorchTensor) fifth = NULL;
      g_autoptr (GPtrArray) grads = NULL;

      g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
      fifth = fifth_power (x, streams, rand).tensor;
      {
        g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (mine);
        g_autoptr (GTorchTensor) zero = constant (0);
        g_autoptr (GTorchTensor) seed = NULL;

        /* this stream is late as well: the other streams must not be early */
        delay (mine, rand);
        seed = gtorch_tensor_add_scalar (zero, 1, 1, NULL);
        grads = gtorch_autograd_grad (&fifth, 1, &x, 1, &seed, 1, FALSE, FALSE, FALSE, NULL);
        g_assert_nonnull (grads);
        y = gtorch_tensor_add_scalar (grads->pdata[0], 1, 1, NULL);
        g_assert_true (gtorch_stream_synchronize (mine, NULL, NULL));
      }
      assert_all (y, 81);
      for (i = 0; i < N_STREAMS; i++)
        g_assert_true (gtorch_stream_synchronize (streams->pdata[i], NULL, NULL));
    }
}

/* The second addition to the grad waits for the first. */
static void
accumulations_into_a_leaf_are_ordered (void)
{
  g_autoptr (GPtrArray) streams = new_streams ();
  g_autoptr (GTorchTensor) x = constant (2);
  g_autoptr (GTorchTensor) seed = constant (1);
  g_autoptr (GTorchTensor) grad = NULL;
  guint i;

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  for (i = 0; i < N_STREAMS; i++)
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (streams->pdata[i]);
      g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 3, NULL);

      test_enqueue (streams->pdata[i], take_time, GUINT_TO_POINTER (20000 >> 3 * i));
      g_assert_true (gtorch_tensor_backward (y, seed, FALSE, FALSE, NULL));
    }
  for (i = 0; i < N_STREAMS; i++)
    g_assert_true (gtorch_stream_synchronize (streams->pdata[i], NULL, NULL));
  grad = gtorch_tensor_get_grad (x);
  assert_all (grad, 3 * N_STREAMS);
}

typedef struct
{
  GTorchTensor *x;
  guint32 seed;
} Trainer;

static gpointer
train_on_a_stream (gpointer data)
{
  Trainer *self = data;
  g_autoptr (GRand) rand = g_rand_new_with_seed (self->seed);
  g_autoptr (GTorchStream) stream = new_stream ();
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) seed = constant (1);
  guint i;

  for (i = 0; i < N_ROUNDS; i++)
    {
      g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (self->x, 3, NULL);

      delay (stream, rand);
      g_assert_true (gtorch_tensor_backward (y, seed, FALSE, FALSE, NULL));
      delay (stream, rand);
    }
  g_assert_true (gtorch_stream_synchronize (stream, NULL, NULL));
  return NULL;
}

/* Their additions to the same grad may run in any order, but not at once. */
static void
streams_of_several_threads_share_a_leaf (void)
{
  g_autoptr (GTorchTensor) x = constant (2);
  g_autoptr (GTorchTensor) grad = NULL;
  Trainer trainers[4];
  GThread *threads[G_N_ELEMENTS (trainers)];
  guint i;

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    {
      trainers[i] = (Trainer){ x, i };
      threads[i] = g_thread_new ("trainer", train_on_a_stream, &trainers[i]);
    }
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  grad = gtorch_tensor_get_grad (x);
  assert_all (grad, G_N_ELEMENTS (threads) * N_ROUNDS * 3.0);
}

/* --- threads --- */

static gpointer
go_backward_often (gpointer data)
{
  g_autoptr (GTorchTensor) seed = constant (1);
  guint i;

  for (i = 0; i < 100; i++)
    g_assert_true (gtorch_tensor_backward (data, seed, TRUE, FALSE, NULL));
  return NULL;
}

static void
threads_share_a_graph (void)
{
  g_autoptr (GTorchTensor) x = constant (0.5);
  g_autoptr (GTorchTensor) e = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  GThread *threads[4];
  guint i;

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  e = gtorch_tensor_mul (x, x, NULL);
  y = gtorch_tensor_mul (e, x, NULL);
  z = gtorch_tensor_mul (e, e, NULL);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("backward", go_backward_often, i % 2 == 0 ? y : z);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  grad = gtorch_tensor_get_grad (x);
  assert_all (grad, 200 * (3 * 0.25) + 200 * (4 * 0.125));
}

static gpointer
go_backward_once (gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) seed = constant (1);

  if (gtorch_tensor_backward (data, seed, FALSE, FALSE, &error))
    return GINT_TO_POINTER (TRUE);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  return NULL;
}

/* Without retain_graph a pass may come too late: that is an error, and nothing worse. */
static void
threads_may_race_for_saved_values (void)
{
  guint round, i, n_good = 0;

  for (round = 0; round < N_ROUNDS; round++)
    {
      g_autoptr (GTorchTensor) x = constant (2);
      GTorchTensor *y;
      GThread *threads[2];

      g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
      y = gtorch_tensor_mul (x, x, NULL);
      for (i = 0; i < 20; i++)
        {
          GTorchTensor *next = gtorch_tensor_mul (y, x, NULL);

          g_object_unref (y);
          y = next;
        }
      for (i = 0; i < 2; i++)
        threads[i] = g_thread_new ("backward", go_backward_once, y);
      for (i = 0; i < 2; i++)
        n_good += g_thread_join (threads[i]) != NULL;
      g_object_unref (y);
    }
  g_assert_cmpuint (n_good, <=, 2 * N_ROUNDS);
}

/* --- nested passes --- */

#define TEST_TYPE_NESTED (test_nested_get_type ())
G_DECLARE_FINAL_TYPE (TestNested, test_nested, TEST, NESTED, GTorchFunction)

/* The identity, whose backward runs a backward pass of its own through itself, `depth` levels deep. */
struct _TestNested
{
  GTorchFunction parent_instance;
  guint depth;
  guint n_backward;
};

G_DEFINE_TYPE (TestNested, test_nested, GTORCH_TYPE_FUNCTION)

static GPtrArray *
one (GTorchTensor *tensor)
{
  GPtrArray *array = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (array, tensor);
  return array;
}

static GPtrArray *
test_nested_forward (GTorchFunction *function, GTorchFunctionContext *context,
                     GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  return one (gtorch_tensor_clone (inputs[0], error));
}

static GPtrArray *
test_nested_backward (GTorchFunction *function, GTorchFunctionContext *context,
                      GTorchTensor **grad_outputs, gsize n_grad_outputs, GError **error)
{
  TestNested *self = TEST_NESTED (function);

  self->n_backward++;
  if (self->depth > 0)
    {
      g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
      g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
      g_autoptr (GPtrArray) outputs = NULL;
      g_autoptr (GTorchTensor) grad = NULL;

      self->depth--;
      outputs = gtorch_function_apply (function, &x, 1, error);
      g_assert_nonnull (outputs);
      backward_sum (outputs->pdata[0]);
      grad = gtorch_tensor_get_grad (x);
      assert_all (grad, 1);
      g_assert_true (gtorch_is_grad_enabled ());
    }
  g_assert_false (gtorch_is_grad_enabled ());
  return one (g_object_ref (grad_outputs[0]));
}

static void
test_nested_class_init (TestNestedClass *klass)
{
  GTORCH_FUNCTION_CLASS (klass)->forward = test_nested_forward;
  GTORCH_FUNCTION_CLASS (klass)->backward = test_nested_backward;
}

static void
test_nested_init (TestNested *self)
{
}

static void
backward_may_be_nested (void)
{
  g_autoptr (TestNested) function = g_object_new (TEST_TYPE_NESTED, NULL);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  function->depth = 100;
  outputs = gtorch_function_apply (GTORCH_FUNCTION (function), &x, 1, NULL);
  product = gtorch_tensor_mul (outputs->pdata[0], x, NULL);
  backward_sum (product);
  g_assert_cmpuint (function->n_backward, ==, 101);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 2), ==, 6);
}

/* --- memory --- */

static guint64
allocated (void)
{
  return gtorch_device_get_memory_allocated (test_device ());
}

static void
saved_values_are_freed_during_backward (void)
{
  const guint64 size = 1 << 20;
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (size / 8), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  GTorchTensor *y;
  guint64 before, grown;
  guint i;

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  before = allocated ();
  y = gtorch_tensor_clone (x, NULL);
  for (i = 0; i < 10; i++)
    {
      GTorchTensor *next = gtorch_tensor_mul (y, x, NULL);

      g_object_unref (y);
      y = next;
    }
  grown = allocated () - before;
  g_assert_cmpuint (grown, >=, 11 * size);
  {
    g_autoptr (GTorchTensor) s = sum (y);

    g_assert_true (gtorch_tensor_backward (s, NULL, TRUE, FALSE, NULL));
    g_assert_cmpuint (allocated () - before, >=, 12 * size);
    backward (s);
  }
  /* only y and the grad of x are left, although the graph still exists */
  g_assert_cmpuint (allocated () - before, <, 3 * size);
  g_assert_false (gtorch_tensor_is_leaf (y));
  g_object_unref (y);
  g_assert_cmpuint (allocated () - before, <, 2 * size);
}

static void
second_backward_error_names_operation_and_remedy (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = leaf (1, 1, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul (x, x, NULL);

  backward (y);
  g_assert_false (gtorch_tensor_backward (y, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_cmpstr (error->message, ==,
                   "backward of mul: what mul had saved was freed by an earlier backward: pass "
                   "retain_graph to the first backward to call it twice");
}

/* --- asynchronous passes --- */

typedef struct
{
  GThread *thread;
  GTorchTensor *output; /* has the last reference to the graph */
  gboolean is_done, is_freed;
} Pass;

static GTorchTensor *
leave_gradient (GTorchTensor *grad, gpointer data, GError **error)
{
  return NULL;
}

static void
hook_freed (gpointer data)
{
  Pass *pass = data;

  g_assert_true (g_thread_self () == pass->thread);
  pass->is_freed = TRUE;
}

static void
pass_done (GObject *source, GAsyncResult *result, gpointer data)
{
  Pass *pass = data;
  g_autoptr (GError) error = NULL;

  gtorch_tensor_backward_finish (GTORCH_TENSOR (source), result, &error);
  g_assert_no_error (error);
  g_clear_object (&pass->output);
  pass->is_done = TRUE;
}

/* Data that a binding attaches to a hook belongs to the thread in which the program runs. */
static void
the_program_frees_the_graph_of_an_asynchronous_pass (void)
{
  guint i;

  for (i = 0; i < N_ROUNDS; i++)
    {
      g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
      Pass pass = { .thread = g_thread_self () };

      pass.output = gtorch_tensor_dot (x, x, NULL);
      gtorch_tensor_register_hook (pass.output, leave_gradient, &pass, hook_freed, NULL);
      gtorch_tensor_backward_async (pass.output, NULL, FALSE, FALSE, NULL, pass_done, &pass);
      while (!pass.is_done)
        g_main_context_iteration (NULL, TRUE);
      while (g_main_context_iteration (NULL, FALSE))
        ;
      g_assert_true (pass.is_freed);
    }
}

/* --- size --- */

static void
a_wide_graph_is_accumulated (void)
{
  const guint n = test_often (20000);
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GTorchTensor) total = gtorch_tensor_mul_scalar (x, 1, NULL);
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) joined = NULL;
  guint i;

  for (i = 0; i < n; i++)
    g_ptr_array_add (parts, gtorch_tensor_mul_scalar (total, i % 2 == 0 ? 1 : 2, NULL));
  joined = gtorch_cat ((GTorchTensor **) parts->pdata, parts->len, 0, NULL);
  g_assert_nonnull (joined);
  backward_sum (joined);
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (value (grad, 1), ==, n / 2 + n);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/engine/" #name, name)
  ADD (backward_follows_the_streams_of_forward);
  ADD (the_callers_stream_waits);
  ADD (accumulations_into_a_leaf_are_ordered);
  ADD (streams_of_several_threads_share_a_leaf);
  ADD (threads_share_a_graph);
  ADD (threads_may_race_for_saved_values);
  ADD (backward_may_be_nested);
  ADD (saved_values_are_freed_during_backward);
  ADD (second_backward_error_names_operation_and_remedy);
  ADD (the_program_frees_the_graph_of_an_asynchronous_pass);
  ADD (a_wide_graph_is_accumulated);
  return g_test_run ();
}
