/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Backward passes and streams, on the CPU's streams and on a GPU's. The first part covers the chapter of
 * the manual: each of its snippets verbatim. Those that it calls safe must be right under every order of
 * work that the fake driver can choose, those that it calls unsafe must be reported by
 * GTORCH_CHECK=streams. With ON_A_REAL_GPU the order is that of a real one. */

#include "config.h"

#include <gtorch/base/gtorch-check-private.h>

#include "race-test.h"

#ifdef ON_A_REAL_GPU
#define LENGTH (1 << 22)
#define SEEDS  20
#else
#define LENGTH 64
#define SEEDS  150
#endif
#define ROUNDS 12 /* for the CPU */

static GTorchDevice *device; /* the device under test */
static GRand *chance;

static gboolean
is_gpu (void)
{
  return device->type != GTORCH_DEVICE_TYPE_CPU;
}

/* --- streams with delays --- */

static gboolean
take_time (gpointer data, GError **error)
{
  g_usleep (GPOINTER_TO_UINT (data));
  return TRUE;
}

/* The fake GPU delays work by itself. */
static void
late (GTorchStream *stream)
{
  if (!is_gpu () && !gtorch_stream_is_default (stream) && g_rand_boolean (chance))
    GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, take_time,
                                               GUINT_TO_POINTER (g_rand_int_range (chance, 1, 400)),
                                               NULL);
}

static void
on (GTorchStream *stream)
{
  gtorch_stream_set_current (stream);
}

static void
wait_for (GTorchStream *stream, GTorchStream *other)
{
  g_assert_true (gtorch_stream_wait_stream (stream, other, NULL));
}

static GTorchTensor *
must (GTorchTensor *tensor)
{
  g_assert_nonnull (tensor);
  return tensor;
}

static GTorchTensor *
filled (gdouble number)
{
  return must (gtorch_full (GTORCH_SHAPE (LENGTH), number, GTORCH_DTYPE_FLOAT32, device, NULL));
}

/* 3 x³ for x = 2, computed from x² on one stream and 3 x on another; the derivative is 36. */
typedef struct
{
  GTorchStream *outer; /* the current stream outside, usually the default one */
  GTorchStream *s, *p, *q;
  GTorchTensor *x, *cube, *loss;
} Case;

static void
go_forward (Case *c)
{
  g_autoptr (GTorchTensor) square = NULL;
  g_autoptr (GTorchTensor) triple = NULL;

  c->x = filled (2);
  g_assert_true (gtorch_tensor_set_requires_grad (c->x, TRUE, NULL));
  wait_for (c->p, c->outer);
  wait_for (c->q, c->outer);
  on (c->p);
  late (c->p);
  square = must (gtorch_tensor_mul (c->x, c->x, NULL));
  on (c->q);
  late (c->q);
  triple = must (gtorch_tensor_mul_scalar (c->x, 3, NULL));
  wait_for (c->q, c->p);
  c->cube = must (gtorch_tensor_mul (square, triple, NULL));
  c->loss = must (gtorch_tensor_sum (c->cube, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL));
  late (c->q);
  on (c->outer);
}

static void
set_up (Case *c, gboolean outer_is_default)
{
  c->outer = outer_is_default ? g_object_ref (gtorch_device_get_default_stream (device))
                              : gtorch_stream_new (device, 0, NULL);
  c->s = gtorch_stream_new (device, 0, NULL);
  c->p = gtorch_stream_new (device, 0, NULL);
  c->q = gtorch_stream_new (device, 0, NULL);
  on (c->outer);
  go_forward (c);
}

static void
tear_down (Case *c)
{
  on (gtorch_device_get_default_stream (device));
  g_assert_true (gtorch_device_synchronize (device, NULL, NULL));
  g_object_unref (c->x);
  g_object_unref (c->cube);
  g_object_unref (c->loss);
  g_object_unref (c->outer);
  g_object_unref (c->s);
  g_object_unref (c->p);
  g_object_unref (c->q);
}

/* Computes something from the gradient on the current stream. */
static GTorchTensor *
use_grads (Case *c)
{
  g_autoptr (GTorchTensor) grad = must (gtorch_tensor_get_grad (c->x));

  return must (gtorch_tensor_add_scalar (grad, 1, 1, NULL));
}

static void
backward (GTorchTensor *tensor, GTorchTensor *gradient)
{
  g_autoptr (GError) error = NULL;

  gtorch_tensor_backward (tensor, gradient, FALSE, FALSE, &error);
  g_assert_no_error (error);
}

/* --- the manual's snippets --- */

static GTorchTensor *
grads_in_the_same_context (Case *c)
{
  on (c->s);
  backward (c->loss, NULL);
  return use_grads (c);
}

static GTorchTensor *
grads_in_another_context (Case *c)
{
  on (c->s);
  backward (c->loss, NULL);
  on (c->outer);
  return use_grads (c);
}

static GTorchTensor *
grads_in_another_context_that_waits (Case *c)
{
  on (c->s);
  backward (c->loss, NULL);
  on (c->outer);
  wait_for (c->outer, c->s);
  return use_grads (c);
}

static GTorchTensor *
initial_gradient_in_the_same_context (Case *c)
{
  g_autoptr (GTorchTensor) initial = NULL;

  on (c->s);
  late (c->s);
  initial = filled (1);
  backward (c->cube, initial);
  return use_grads (c);
}

static GTorchTensor *
initial_gradient_of_another_context (Case *c)
{
  g_autoptr (GTorchTensor) initial = NULL;

  late (c->outer);
  initial = filled (1);
  on (c->s);
  backward (c->cube, initial);
  return use_grads (c);
}

static GTorchTensor *
initial_gradient_of_another_context_that_is_waited_for (Case *c)
{
  g_autoptr (GTorchTensor) initial = NULL;

  late (c->outer);
  initial = filled (1);
  wait_for (c->s, c->outer);
  on (c->s);
  g_assert_true (gtorch_tensor_record_stream (initial, c->s, NULL));
  backward (c->cube, initial);
  return use_grads (c);
}

/* Uses the result of autograd_grad () in the same way. */

static GTorchTensor *
use_result (GPtrArray *grads)
{
  g_assert_nonnull (grads);
  return must (gtorch_tensor_add_scalar (grads->pdata[0], 1, 1, NULL));
}

static GTorchTensor *
results_in_the_same_context (Case *c)
{
  g_autoptr (GTorchTensor) initial = NULL;
  g_autoptr (GPtrArray) grads = NULL;

  on (c->s);
  late (c->s);
  initial = filled (1);
  grads = gtorch_autograd_grad (&c->cube, 1, &c->x, 1, &initial, 1, FALSE, FALSE, FALSE, NULL);
  return use_result (grads);
}

static GTorchTensor *
results_in_another_context (Case *c)
{
  g_autoptr (GPtrArray) grads = NULL;

  on (c->s);
  grads = gtorch_autograd_grad (&c->loss, 1, &c->x, 1, NULL, 0, FALSE, FALSE, FALSE, NULL);
  on (c->outer);
  return use_result (grads);
}

static GTorchTensor *
results_in_another_context_that_waits (Case *c)
{
  g_autoptr (GPtrArray) grads = NULL;

  on (c->s);
  grads = gtorch_autograd_grad (&c->loss, 1, &c->x, 1, NULL, 0, FALSE, FALSE, FALSE, NULL);
  wait_for (c->outer, c->s);
  on (c->outer);
  return use_result (grads);
}

typedef GTorchTensor *(*Snippet) (Case *c);

static gpointer
read_all (GTorchTensor *tensor, gsize *n_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (tensor, &error);

  g_assert_no_error (error);
  return g_bytes_unref_to_data (g_steal_pointer (&bytes), n_bytes);
}

/* Returns TRUE if all elements were 37 when the stream that computed them had finished. */
static gboolean
run (Snippet snippet, gboolean outer_is_default, guint seed)
{
  g_autoptr (GTorchTensor) used = NULL;
  g_autofree gfloat *values = NULL;
  gboolean result = TRUE;
  gsize n_bytes, i;
  Case c;

  if (is_gpu ())
    fake_cuda_set_seed (seed);
  g_rand_set_seed (chance, seed);
  set_up (&c, outer_is_default);
  used = snippet (&c);
  g_assert_true (gtorch_stream_synchronize (gtorch_stream_get_current (device), NULL, NULL));
  values = read_all (used, &n_bytes);
  g_assert_cmpuint (n_bytes, ==, LENGTH * sizeof (gfloat));
  for (i = 0; i < LENGTH; i++)
    result = result && values[i] == 37;
  tear_down (&c);
  return result;
}

static guint
n_runs (void)
{
  return !is_gpu () ? ROUNDS : is_instrumented () ? 20 : test_often (SEEDS);
}

static void
is_safe (Snippet snippet)
{
  guint seed, checks, outer;

  for (checks = 0; checks < 2; checks++)
    for (outer = 0; outer < 2; outer++)
      for (seed = 0; seed < n_runs (); seed++)
        {
          gtorch_checks_set (checks ? GTORCH_CHECK_STREAMS : 0);
          g_assert_true (run (snippet, outer, seed));
          if (n_warnings > 0)
            g_test_message ("%s", warning);
          g_assert_cmpuint (n_warnings, ==, 0);
        }
  gtorch_checks_set (0);
}

/* `second` may run before `first` is done. */
static void
is_unsafe (Snippet snippet, const gchar *first, const gchar *second)
{
  guint seed, wrong = 0, outer;

#ifdef __SANITIZE_THREAD__
  if (!is_gpu ())
    {
      g_test_skip ("threads race on purpose, which ThreadSanitizer reports");
      return;
    }
#endif
  /* the CPU's default stream waits for the writers of its operands, and is synchronous */
  for (outer = 0; outer < (is_gpu () ? 2 : 1); outer++)
    for (seed = 0; seed < n_runs (); seed++)
      {
        gtorch_checks_set (GTORCH_CHECK_STREAMS);
        run (snippet, outer, seed);
        g_assert_cmpuint (n_warnings, ==, 1);
        if (strstr (warning, first) == NULL || strstr (warning, second) == NULL
            || strstr (warning, "called by ") == NULL || strstr (warning, "; and by ") == NULL)
          g_error ("%s", warning);
        n_warnings = 0;
        gtorch_checks_set (0);
        if (is_gpu ())
          wrong += !run (snippet, outer, seed);
      }
  g_test_message ("%u of %u wrong", wrong, 2 * n_runs ());
#ifndef ON_A_REAL_GPU /* a real GPU may happen to be right */
  if (is_gpu ())      /* or the order did not matter */
    g_assert_cmpuint (wrong, >, 0);
#endif
}

static void
safe_snippets_have_no_race (void)
{
  is_safe (grads_in_the_same_context);
  is_safe (grads_in_another_context_that_waits);
  is_safe (initial_gradient_in_the_same_context);
  is_safe (initial_gradient_of_another_context_that_is_waited_for);
  is_safe (results_in_the_same_context);
  is_safe (results_in_another_context_that_waits);
}

static void
grads_without_waiting (void)
{
  is_unsafe (grads_in_another_context, ", which writes to it as shape [", "add on ");
}

static void
results_without_waiting (void)
{
  is_unsafe (results_in_another_context, ", which writes to it as shape [", "add on ");
}

static void
initial_gradient_without_waiting (void)
{
  is_unsafe (initial_gradient_of_another_context, "full on ", "mul on ");
}

/* The calling thread executes the work of the CPU's default stream. */
static void
the_default_stream_of_the_cpu_waits_by_itself (void)
{
  guint seed;

  if (is_gpu ())
    return;
  gtorch_checks_set (GTORCH_CHECK_STREAMS);
  for (seed = 0; seed < ROUNDS; seed++)
    {
      g_assert_true (run (grads_in_another_context, TRUE, seed));
      g_assert_true (run (initial_gradient_of_another_context, TRUE, seed));
      g_assert_true (run (results_in_another_context, TRUE, seed));
    }
  g_assert_cmpuint (n_warnings, ==, 0);
  gtorch_checks_set (0);
}

static void
fatal_checks_make_it_an_error_of_backward (void)
{
  g_autoptr (GTorchTensor) initial = NULL;
  g_autoptr (GError) error = NULL;
  Case c;

  set_up (&c, FALSE);
  gtorch_checks_set (GTORCH_CHECK_STREAMS | GTORCH_CHECK_STREAMS_FATAL);
  initial = filled (1);
  on (c.s);
  g_assert_false (gtorch_tensor_backward (c.cube, initial, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (g_str_has_prefix (error->message, "backward of mul: streams: "));
  g_assert_null (gtorch_tensor_get_grad (c.x));
  gtorch_checks_set (0);
  tear_down (&c);
}

/* --- synchronisation inside the engine --- */

/* x + y, with one tensor as the gradient of both. */
#define TEST_TYPE_SUM (test_sum_get_type ())
G_DECLARE_FINAL_TYPE (TestSum, test_sum, TEST, SUM, GTorchFunction)

struct _TestSum
{
  GTorchFunction parent_instance;
  GTorchStream *stream; /* the stream of forward */
};

G_DEFINE_TYPE (TestSum, test_sum, GTORCH_TYPE_FUNCTION)

static GPtrArray *
test_sum_forward (GTorchFunction *function, GTorchFunctionContext *context, GTorchTensor **inputs,
                  gsize n_inputs, GError **error)
{
  GPtrArray *outputs = g_ptr_array_new_with_free_func (g_object_unref);

  TEST_SUM (function)->stream = gtorch_stream_get_current (device);
  g_ptr_array_add (outputs, must (gtorch_tensor_add (inputs[0], inputs[1], 1, NULL)));
  return outputs;
}

static GPtrArray *
test_sum_backward (GTorchFunction *function, GTorchFunctionContext *context,
                   GTorchTensor **grad_outputs, gsize n_grad_outputs, GError **error)
{
  GPtrArray *grads = g_ptr_array_new_with_free_func (g_object_unref);

  g_assert_true (gtorch_stream_get_current (device) == TEST_SUM (function)->stream);
  g_ptr_array_add (grads, g_object_ref (grad_outputs[0]));
  g_ptr_array_add (grads, g_object_ref (grad_outputs[0]));
  return grads;
}

static void
test_sum_class_init (TestSumClass *klass)
{
  GTORCH_FUNCTION_CLASS (klass)->forward = test_sum_forward;
  GTORCH_FUNCTION_CLASS (klass)->backward = test_sum_backward;
}

static void
test_sum_init (TestSum *self)
{
}

static GTorchTensor *
add_with_one_gradient (GTorchTensor *x, GTorchTensor *y)
{
  g_autoptr (GTorchFunction) function = g_object_new (TEST_TYPE_SUM, NULL);
  GTorchTensor *inputs[] = { x, y };
  g_autoptr (GPtrArray) outputs = gtorch_function_apply (function, inputs, 2, NULL);

  g_assert_nonnull (outputs);
  return g_object_ref (outputs->pdata[0]);
}

/* Each root's gradient is created on the caller's stream, and used on the stream of the root. */
static GTorchTensor *
several_roots (Case *c)
{
  g_autoptr (GTorchTensor) squares = NULL;
  GTorchTensor *roots[2];
  GTorchTensor *used;

  on (c->p);
  squares = must (gtorch_tensor_mul (c->x, c->x, NULL));
  roots[0] = must (gtorch_tensor_sum (squares, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL));
  roots[1] = c->loss;
  on (c->s);
  late (c->s);
  g_assert_true (gtorch_autograd_backward (roots, 2, NULL, 0, FALSE, FALSE, NULL));
  g_object_unref (roots[0]);
  {
    g_autoptr (GTorchTensor) grad = must (gtorch_tensor_get_grad (c->x));

    used = must (gtorch_tensor_add_scalar (grad, -3, 1, NULL)); /* 36 + 4 - 3 */
  }
  return used;
}

/* One gradient goes to two streams. One of them may still read it while the other adds to it. */
static GTorchTensor *
shared_gradients (Case *c)
{
  g_autoptr (GTorchTensor) a = NULL, b = NULL, d = NULL, both = NULL, more = NULL, all = NULL;

  on (c->q);
  b = must (gtorch_tensor_mul_scalar (c->x, 5, NULL));
  wait_for (c->s, c->q);
  on (c->s);
  d = must (gtorch_tensor_mul_scalar (b, 7, NULL));
  on (c->p);
  a = must (gtorch_tensor_mul_scalar (c->x, 3, NULL));
  wait_for (c->s, c->p);
  on (c->s);
  /* its gradient returns to p, which is the first to have finished */
  both = add_with_one_gradient (b, a);
  wait_for (c->outer, c->s);
  on (c->outer);
  more = must (gtorch_tensor_mul (both, d, NULL)); /* (5 x + 3 x) 35 x */
  all = must (gtorch_tensor_sum (more, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL));
  backward (all, NULL);
  {
    g_autoptr (GTorchTensor) grad = must (gtorch_tensor_get_grad (c->x));

    return must (gtorch_tensor_add_scalar (grad, 37 - 2 * 2 * 8 * 35, 1, NULL));
  }
}

/* The gradient of the derivative, which backward itself has computed on several streams: 18 x = 36. */
static GTorchTensor *
gradients_of_gradients (Case *c)
{
  g_autoptr (GPtrArray) slopes = NULL;
  g_autoptr (GPtrArray) curvatures = NULL;
  g_autoptr (GTorchTensor) initial = NULL;

  on (c->s);
  slopes = gtorch_autograd_grad (&c->loss, 1, &c->x, 1, NULL, 0, FALSE, TRUE, FALSE, NULL);
  g_assert_nonnull (slopes);
  wait_for (c->outer, c->s);
  on (c->outer);
  initial = filled (1);
  curvatures = gtorch_autograd_grad ((GTorchTensor **) slopes->pdata, 1, &c->x, 1, &initial, 1,
                                     FALSE, FALSE, FALSE, NULL);
  return use_result (curvatures);
}

/* Backward runs after the work of the caller's stream that wrote the gradients, and before its later work
 * on them. */
static GTorchTensor *
several_passes (Case *c)
{
  g_autoptr (GTorchTensor) grad = NULL;
  guint i;

  on (c->s);
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GError) error = NULL;

      if (i > 0)
        g_assert_true (gtorch_tensor_mul_scalar_inplace (grad, i == 1 ? 0.5 : 0, NULL) != NULL);
      g_clear_object (&grad);
      late (c->s);
      gtorch_tensor_backward (c->loss, NULL, TRUE, FALSE, &error);
      g_assert_no_error (error);
      grad = must (gtorch_tensor_get_grad (c->x));
    }
  return use_grads (c);
}

static GTorchTensor *
double_it (GTorchTensor *grad, gpointer data, GError **error)
{
  return must (gtorch_tensor_mul_scalar (grad, 2, NULL));
}

static gboolean
halve_it (GTorchTensor *leaf, gpointer data, GError **error)
{
  g_autoptr (GTorchTensor) grad = must (gtorch_tensor_get_grad (leaf));

  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (grad, 0.5, NULL));
  return TRUE;
}

/* Work that hooks enqueue on streams is part of the pass. */
static GTorchTensor *
hooks_in_a_pass (Case *c)
{
  gtorch_tensor_register_hook (c->cube, double_it, NULL, NULL, NULL);
  gtorch_tensor_register_hook (c->x, double_it, NULL, NULL, NULL);
  gtorch_tensor_register_post_accumulate_grad_hook (c->x, halve_it, NULL, NULL, NULL);
  on (c->s);
  backward (c->loss, NULL);
  wait_for (c->outer, c->s);
  on (c->outer);
  {
    g_autoptr (GTorchTensor) grad = must (gtorch_tensor_get_grad (c->x));

    return must (gtorch_tensor_add_scalar (grad, 1 - 36, 1, NULL));
  }
}

static void
the_engine_has_no_race (void)
{
  is_safe (several_roots);
  is_safe (shared_gradients);
  is_safe (gradients_of_gradients);
  is_safe (several_passes);
  is_safe (hooks_in_a_pass);
}

#ifdef ON_A_REAL_GPU
#define ON_CPU(name)
#else
#define ON_CPU(name)               \
  static void name##_on_cpu (void) \
  {                                \
    device = gtorch_device_cpu (); \
    name ();                       \
  }
#endif
#define BOTH(name)                 \
  ON_CPU (name)                    \
  static void name##_on_gpu (void) \
  {                                \
    device = gpu (0);              \
    name ();                       \
  }

BOTH (safe_snippets_have_no_race)
BOTH (grads_without_waiting)
BOTH (results_without_waiting)
BOTH (initial_gradient_without_waiting)
BOTH (the_default_stream_of_the_cpu_waits_by_itself)
BOTH (fatal_checks_make_it_an_error_of_backward)
BOTH (the_engine_has_no_race)

#ifdef ON_A_REAL_GPU
#define TEST(name) g_test_add_func ("/GTorchBackward/gpu/" #name, name##_on_gpu)
#else
#define TEST(name)                                                    \
  do                                                                  \
    {                                                                 \
      g_test_add_func ("/GTorchBackward/cpu/" #name, name##_on_cpu);  \
      g_test_add_func ("/GTorchBackward/cuda/" #name, name##_on_gpu); \
    }                                                                 \
  while (0)
#endif

gint
main (gint argc, gchar **argv)
{
  gint result;

  if (skips_without_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  count_warnings ();
  chance = g_rand_new_with_seed (1);
  TEST (safe_snippets_have_no_race);
  TEST (grads_without_waiting);
  TEST (results_without_waiting);
  TEST (initial_gradient_without_waiting);
  TEST (the_default_stream_of_the_cpu_waits_by_itself);
  TEST (fatal_checks_make_it_an_error_of_backward);
  TEST (the_engine_has_no_race);
  result = g_test_run ();
#ifndef ON_A_REAL_GPU
  assert_no_misuse ();
#endif
  g_rand_free (chance);
  g_free (warning);
  return result;
}
