/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Zero-dimensional tensors of the CPU as operands of a GPU. */

#include "config.h"

#include "cuda-test.h"
#include "stream/gtorch-stream-private.h"

#define N 5

static GTorchImpl *
scalar (GTorchDevice *device, guint dtype, gdouble value)
{
  g_autoptr (GTorchImpl) wide =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, NULL, 0, NULL);
  g_autoptr (GTorchImpl) cast = NULL;

  *(gdouble *) gtorch_impl_data (wide) = value;
  cast = gtorch_op_to_dtype (wide, dtype, NULL);
  return gtorch_op_to_device (cast, device, FALSE, NULL);
}

static void
assert_values (GTorchImpl *impl, guint n, const gdouble *expected)
{
  g_autofree gdouble *values = read_doubles (impl);
  guint i;

  g_assert_cmpint (impl->numel, ==, n);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, expected[i]);
}

static void
a_scalar_is_passed_with_the_launch (void)
{
  static const gdouble products[N] = { 0, 2.5, 5, 7.5, 10 };
  static const gdouble differences[N] = { 2.5, 1.5, 0.5, -0.5, -1.5 };
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, N);
  g_autoptr (GTorchImpl) s = scalar (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, 2.5);
  g_autoptr (GTorchImpl) product = gtorch_op_mul (x, s, NULL);
  g_autoptr (GTorchImpl) difference = NULL;

  fake_cuda_reset_calls ();
  difference = gtorch_op_sub (s, x, 1, NULL);
  g_assert_true (gtorch_op_mul_inplace (x, s, NULL));
  g_assert_cmpuint (fake_cuda_get_calls ("cuLaunchKernel"), ==, 2);
  g_assert_cmpuint (fake_cuda_get_calls ("cuMemcpyHtoDAsync"), ==, 0);
  g_assert_cmpuint (fake_cuda_get_calls ("cuStreamSynchronize"), ==, 0);
  assert_values (product, N, products);
  assert_values (difference, N, differences);
  assert_values (x, N, products);
  g_assert_true (gtorch_impl_device (product) == gpu (0));
  g_assert_cmpuint (product->dtype, ==, GTORCH_DTYPE_FLOAT32);
}

static void
a_scalar_promotes_as_on_one_device (void)
{
  static const guint dtypes[] = { GTORCH_DTYPE_BOOL,     GTORCH_DTYPE_UINT8,   GTORCH_DTYPE_INT64,
                                  GTORCH_DTYPE_FLOAT16,  GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                  GTORCH_DTYPE_COMPLEX64 };
  GTorchDevice *cpu = gtorch_device_cpu ();
  guint i, j, n_dims;

  for (n_dims = 0; n_dims < 2; n_dims++)
    for (i = 0; i < G_N_ELEMENTS (dtypes); i++)
      for (j = 0; j < G_N_ELEMENTS (dtypes); j++)
        {
          g_autoptr (GTorchImpl) host =
              n_dims == 0 ? scalar (cpu, dtypes[i], 1) : ramp_1d (cpu, dtypes[i], 2);
          g_autoptr (GTorchImpl) x = gtorch_op_to_device (host, gpu (0), FALSE, NULL);
          g_autoptr (GTorchImpl) s = scalar (cpu, dtypes[j], 1);
          g_autoptr (GTorchImpl) expected = gtorch_op_add (host, s, 1, NULL);
          g_autoptr (GTorchImpl) got = gtorch_op_add (x, s, 1, NULL);
          g_autoptr (GTorchImpl) turned = gtorch_op_add (s, x, 1, NULL);

          g_assert_cmpuint (got->dtype, ==, expected->dtype);
          g_assert_cmpuint (turned->dtype, ==, expected->dtype);
          g_assert_true (gtorch_impl_device (turned) == gpu (0));
        }
}

static void
assert_mismatch (GTorchImpl *result, GError *error, const gchar *message)
{
  g_assert_null (result);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  g_assert_cmpstr (error->message, ==, message);
  g_error_free (error);
}

static void
other_operands_must_be_on_the_device (void)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, N);
  g_autoptr (GTorchImpl) one = ramp_1d (cpu, GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GTorchImpl) s = scalar (cpu, GTORCH_DTYPE_FLOAT32, 7);
  g_autoptr (GTorchImpl) far = scalar (gpu (1), GTORCH_DTYPE_FLOAT32, 7);
  GError *error = NULL;
  GTorchImpl *result;

  result = gtorch_op_add (x, one, 1, &error);
  assert_mismatch (result, g_steal_pointer (&error),
                   "add: the tensor “self” of shape [5] is on cuda:0, but “other” of shape [1] is "
                   "on cpu: all must be on one device");
  result = gtorch_op_addcmul (s, one, x, 1, &error);
  assert_mismatch (result, g_steal_pointer (&error),
                   "addcmul: the tensor “tensor1” of shape [1] is on cpu, but “tensor2” of shape "
                   "[5] is on cuda:0: all must be on one device");
  result = gtorch_op_add (far, x, 1, &error);
  assert_mismatch (result, g_steal_pointer (&error),
                   "add: the tensor “self” of shape [] is on cuda:1, but “other” of shape [5] is "
                   "on cuda:0: all must be on one device");
  result = gtorch_op_matmul (x, s, &error);
  assert_mismatch (result, g_steal_pointer (&error),
                   "matmul: the tensor “self” of shape [5] is on cuda:0, but “other” of shape [] "
                   "is on cpu: all must be on one device");
  g_assert_false (gtorch_op_mul_inplace (s, far, &error));
  assert_mismatch (NULL, g_steal_pointer (&error),
                   "mul: the tensor “self” of shape [] is on cpu, but “other” of shape [] is on "
                   "cuda:1: all must be on one device");
}

/* --- every operation that accepts them, and its gradients --- */

static GTorchTensor *
leaf (GTorchImpl *impl)
{
  g_autoptr (GTorchImpl) copy = gtorch_op_clone (impl, NULL);
  GTorchTensor *tensor = gtorch_tensor_wrap (g_steal_pointer (&copy));

  if (gtorch_dtype_kind (impl->dtype) >= GTORCH_KIND_FLOAT)
    g_assert_true (gtorch_tensor_set_requires_grad (tensor, TRUE, NULL));
  return tensor;
}

/* Returns the result in row 0 and the gradients behind it; the inputs in the mask are scalars on the CPU. */
static GPtrArray *
compute (const GTorchOpClass *op, GTorchImpl *const *hosts, GTorchDevice *device, guint mask)
{
  g_autoptr (GPtrArray) leaves = g_ptr_array_new_with_free_func (g_object_unref);
  GPtrArray *results = g_ptr_array_new_with_free_func (g_object_unref);
  GTorchImpl *inputs[GTORCH_OP_MAX_OUTPUTS] = { NULL };
  GTorchAttr attrs[8] = { { 0 } };
  GTorchImpl *output = NULL;
  GError *error = NULL;
  guint i, attr = 0;

  for (i = 0; i < op->n_inputs; i++)
    {
      g_autoptr (GTorchImpl) there =
          gtorch_op_to_device (hosts[i], mask & (1u << i) ? gtorch_device_cpu () : device, FALSE,
                               NULL);

      g_ptr_array_add (leaves, leaf (there));
      inputs[i] = gtorch_tensor_get_impl (leaves->pdata[i]);
    }
  for (i = 0; i < op->n_args; i++)
    if (op->args[i].kind == GTORCH_ARG_DOUBLE || op->args[i].kind == GTORCH_ARG_NUMBER)
      attrs[attr++] = gtorch_attr_number (0.75);
    else if (op->args[i].kind > GTORCH_ARG_TENSORS)
      attrs[attr++].i = 1;
  g_assert_true (gtorch_op_run (op, inputs, op->n_inputs, attrs, &output, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_impl_device (output) == device);
  g_ptr_array_add (results, gtorch_tensor_wrap (output));
  if (gtorch_tensor_get_requires_grad (results->pdata[0]))
    {
      g_autoptr (GTorchTensor) sum =
          gtorch_tensor_sum (results->pdata[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);

      if (!gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error))
        {
          /* no gradient is defined */
          if (!g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD))
            /* the fake does not support it */
            g_assert_nonnull (
                strstr (error->message, op->id == GTORCH_OP_PINV_OF ? "swap_matrix: " : "where: "));
          else
            g_assert_nonnull (strstr (error->message, "is not defined"));
          g_clear_error (&error);
          return results;
        }
      for (i = 0; i < leaves->len; i++)
        {
          GTorchTensor *grad = gtorch_tensor_get_grad (leaves->pdata[i]);

          if (grad == NULL)
            continue;
          g_assert_true (gtorch_tensor_get_device (grad)
                         == gtorch_tensor_get_device (leaves->pdata[i]));
          g_ptr_array_add (results, grad);
        }
    }
  return results;
}

/* Returns how many gradients were right. */
static guint
compare (const GTorchOpClass *op, guint mask)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  guint dtype =
      op->dtypes & (1u << GTORCH_DTYPE_FLOAT32) ? GTORCH_DTYPE_FLOAT32 : GTORCH_DTYPE_INT64;
  GTorchImpl *hosts[GTORCH_OP_MAX_OUTPUTS] = { NULL };
  g_autoptr (GPtrArray) expected = NULL;
  g_autoptr (GPtrArray) got = NULL;
  guint i, k;

  for (i = 0; i < op->n_inputs; i++)
    if (mask & (1u << i))
      hosts[i] = scalar (cpu, dtype, dtype == GTORCH_DTYPE_FLOAT32 ? 0.5 : 3);
    else if (dtype == GTORCH_DTYPE_FLOAT32)
      {
        hosts[i] = ramp_1d (cpu, dtype, N);
        for (k = 0; k < N; k++) /* between 0 and 1, which all operations accept */
          ((gfloat *) gtorch_impl_data (hosts[i]))[k] = 0.25 + k / 8.0;
      }
    else
      hosts[i] = ramp_1d (cpu, dtype, N);
  expected = compute (op, hosts, cpu, mask);
  got = compute (op, hosts, gpu (0), mask);
  g_assert_true (got->len == expected->len || got->len == 1);
  for (i = 0; i < got->len; i++)
    {
      GTorchImpl *a = gtorch_tensor_get_impl (expected->pdata[i]);
      GTorchImpl *b = gtorch_tensor_get_impl (got->pdata[i]);
      g_autofree gdouble *x = read_doubles (a);
      g_autofree gdouble *y = read_doubles (b);

      g_assert_cmpuint (a->dtype, ==, b->dtype);
      g_assert_true (gtorch_impl_same_shape (a, b));
      for (k = 0; k < a->numel; k++) /* a sum of N elements in another order */
        if (!(x[k] != x[k] && y[k] != y[k]) && x[k] != y[k])
          g_assert_cmpfloat_with_epsilon (x[k], y[k], N * 1.2e-7 * MAX (1, ABS (x[k])));
    }
  gtorch_impl_clear (hosts, op->n_inputs);
  return got->len - 1;
}

static void
all_operations_accept_a_scalar_of_the_cpu (void)
{
  guint i, mask, n = 0, n_gradients = 0;

  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];

      if (op->loop < 0 || !(op->flags & GTORCH_OP_FLAG_NUMBERS) || op->n_inputs < 2)
        continue;
      g_test_message ("%s", op->name);
      for (mask = 1; mask < (1u << op->n_inputs) - 1; mask++, n++)
        n_gradients += compare (op, mask);
    }
  g_assert_cmpuint (n, >, 60);
  g_assert_cmpuint (n_gradients, >, 40);
}

/* --- order --- */

static gboolean
take_a_while (gpointer data, GError **error)
{
  g_usleep (50000);
  return TRUE;
}

static void
pending_scalars_are_waited_for (void)
{
  static const gdouble doubled[N] = { 0, 2, 4, 6, 8 };
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, N);
  g_autoptr (GTorchImpl) s = scalar (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT32, 1);
  g_autoptr (GTorchImpl) y = NULL;

  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, take_a_while, NULL, NULL);
  gtorch_stream_set_current (stream);
  g_assert_true (gtorch_op_add_inplace (s, s, 1, NULL));
  gtorch_stream_set_current (gtorch_device_get_default_stream (gtorch_device_cpu ()));
  y = gtorch_op_mul (x, s, NULL);
  assert_values (y, N, doubled);
}

static void
a_scalar_may_change_after_the_call (void)
{
  static const gdouble doubled[N] = { 0, 2, 4, 6, 8 };
  guint32 seed;

  for (seed = 0; seed < 20; seed++)
    {
      g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, N);
      g_autoptr (GTorchImpl) s = scalar (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT32, 2);
      g_autoptr (GTorchImpl) y = NULL;

      fake_cuda_set_seed (seed);
      y = gtorch_op_mul (x, s, NULL);
      g_assert_true (gtorch_op_neg_inplace (s, NULL));
      g_clear_pointer (&s, gtorch_impl_unref);
      assert_values (y, N, doubled);
    }
}

static void
a_capture_refuses_a_scalar_of_the_cpu (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, N);
  g_autoptr (GTorchImpl) s = scalar (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT32, 2);
  g_autoptr (GTorchGraphCapture) capture = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  capture =
      gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
  if (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
    {
      g_test_skip ("GPUs do not capture");
      return;
    }
  g_assert_no_error (error);
  g_assert_null (gtorch_op_mul (x, s, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_assert_cmpstr (error->message, ==,
                   "mul: the graph would keep the present element of “other”, which is on the CPU: "
                   "give a number, or move the tensor to cuda:0");
}

#define TEST(name) g_test_add_func ("/GTorchCudaNumbers/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (a_scalar_is_passed_with_the_launch);
  TEST (a_scalar_promotes_as_on_one_device);
  TEST (other_operands_must_be_on_the_device);
  TEST (all_operations_accept_a_scalar_of_the_cpu);
  TEST (pending_scalars_are_waited_for);
  TEST (a_scalar_may_change_after_the_call);
  TEST (a_capture_refuses_a_scalar_of_the_cpu);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
