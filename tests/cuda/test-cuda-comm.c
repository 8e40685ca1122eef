/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors of several GPUs of one process: copies, sums, parts and joins of them. */

#include "config.h"

#include <gtorch/tensor/gtorch-tensor-private.h>

#include "cuda-test.h"

#define N_GPUS 3

static GTorchTensor *
numbers (GTorchDevice *device, gint64 n, gdouble first)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_arange (first, first + n, 1, GTORCH_DTYPE_FLOAT32, device, &error);

  g_assert_no_error (error);
  return g_steal_pointer (&x);
}

static GTorchTensor *
learned (GTorchDevice *device, gint64 n, gdouble first)
{
  GTorchTensor *x = numbers (device, n, first);

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  return x;
}

static GTorchDevice *
place (gpointer tensor)
{
  return gtorch_tensor_get_device (tensor);
}

static void
assert_numbers (gpointer tensor, gsize n, const gdouble *wanted)
{
  g_autofree gdouble *found = read_doubles (gtorch_tensor_unwrap (tensor));
  gsize i;

  g_assert_cmpint (gtorch_tensor_unwrap (tensor)->numel, ==, n);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat (found[i], ==, wanted[i]);
}

#define ASSERT_NUMBERS(tensor, ...)                                          \
  assert_numbers (tensor, G_N_ELEMENTS (((const gdouble[]){ __VA_ARGS__ })), \
                  (const gdouble[]){ __VA_ARGS__ })

static void
go_backward (GTorchTensor *output)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) square = gtorch_tensor_square (output, &error);
  g_autoptr (GTorchTensor) loss =
      gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);

  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
}

static void
assert_grad (GTorchTensor *tensor, gsize n, const gdouble *wanted)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (tensor);

  g_assert_nonnull (grad);
  g_assert_true (place (grad) == place (tensor));
  assert_numbers (grad, n, wanted);
}

#define ASSERT_GRAD(tensor, ...)                                          \
  assert_grad (tensor, G_N_ELEMENTS (((const gdouble[]){ __VA_ARGS__ })), \
               (const gdouble[]){ __VA_ARGS__ })

/* `call` has failed with `error`, which is cleared. */
#define ASSERT_FAILS(call, code_, text)          \
  G_STMT_START                                   \
  {                                              \
    g_assert_false (call);                       \
    g_assert_error (error, GTORCH_ERROR, code_); \
    g_assert_cmpstr (error->message, ==, text);  \
    g_clear_error (&error);                      \
  }                                              \
  G_STMT_END

/* --- copies --- */

static void
tensors_are_copied (void)
{
  GTorchDevice *devices[] = { gpu (0), gpu (1), gpu (2) };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = learned (gpu (1), 3, 1);
  g_autoptr (GPtrArray) copies = gtorch_comm_broadcast (x, devices, N_GPUS, &error);
  g_autoptr (GTorchTensor) out = numbers (gpu (2), 3, 0);
  g_autoptr (GTorchTensor) wide = numbers (gpu (2), 4, 0);
  GTorchTensor *outs[] = { out, wide };

  g_assert_no_error (error);
  g_assert_true (copies->pdata[1] == x);
  g_assert_true (place (copies->pdata[0]) == gpu (0) && place (copies->pdata[2]) == gpu (2));
  ASSERT_NUMBERS (copies->pdata[2], 1, 2, 3);
  go_backward (copies->pdata[0]);
  go_backward (copies->pdata[2]);
  ASSERT_GRAD (x, 4, 8, 12);

  ASSERT_FAILS (gtorch_comm_broadcast_out (x, outs, 2, &error), GTORCH_ERROR_SHAPE,
                "comm_broadcast: the tensors have different shapes, [3] and, at 1, [4]");
  ASSERT_NUMBERS (out, 0, 1, 2);
  g_assert_true (gtorch_comm_broadcast_out (x, outs, 1, &error));
  ASSERT_NUMBERS (out, 1, 2, 3);
  ASSERT_FAILS (gtorch_comm_broadcast (x, NULL, 0, &error) != NULL, GTORCH_ERROR_INVALID,
                "comm_broadcast: there are no devices; it takes one or more");
}

static void
buffers_are_copied (void)
{
  GTorchDevice *devices[] = { gpu (0), gpu (1), gpu (2) };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) a = learned (gpu (0), 2, 1), b = learned (gpu (0), 1, 5);
  g_autoptr (GTorchTensor) ints = gtorch_arange (0, 2, 1, GTORCH_DTYPE_INT64, gpu (0), &error);
  g_autoptr (GTorchTensor) elsewhere = numbers (gpu (1), 2, 0);
  GTorchTensor *sent[] = { a, ints, b }, *mixed[] = { a, elsewhere };
  g_autoptr (GPtrArray) copies = NULL, apart = NULL;

  copies = gtorch_comm_broadcast_coalesced (sent, 3, devices, N_GPUS, 1 << 20, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (copies->len, ==, 9);
  g_assert_true (copies->pdata[0] == a && copies->pdata[1] == ints && copies->pdata[2] == b);
  ASSERT_NUMBERS (copies->pdata[3], 1, 2);
  ASSERT_NUMBERS (copies->pdata[7], 0, 1);
  g_assert_true (place (copies->pdata[8]) == gpu (2));
  g_assert_true (gtorch_tensor_unwrap (copies->pdata[3])->storage
                 == gtorch_tensor_unwrap (copies->pdata[5])->storage);
  go_backward (copies->pdata[3]);
  ASSERT_GRAD (a, 2, 4);
  ASSERT_GRAD (b, 0);

  apart = gtorch_comm_broadcast_coalesced (sent, 3, devices + 2, 1, 0, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_unwrap (apart->pdata[0])->storage
                 != gtorch_tensor_unwrap (apart->pdata[2])->storage);
  ASSERT_FAILS (gtorch_comm_broadcast_coalesced (mixed, 2, devices, 2, 1, &error) != NULL,
                GTORCH_ERROR_DEVICE_MISMATCH,
                "comm_broadcast_coalesced: the tensors must be on one device, not cuda:0 and "
                "cuda:1");
}

/* --- sums --- */

static void
tensors_are_added (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) a = learned (gpu (0), 2, 1), b = learned (gpu (1), 2, 10);
  g_autoptr (GTorchTensor) c = learned (gpu (2), 2, 100), wide = numbers (gpu (1), 3, 0);
  GTorchTensor *inputs[] = { a, b, c }, *mixed[] = { a, wide };
  g_autoptr (GTorchTensor) total = gtorch_comm_reduce_add (inputs, 3, gpu (1), &error);
  g_autoptr (GTorchTensor) same = NULL;

  g_assert_no_error (error);
  g_assert_true (place (total) == gpu (1));
  ASSERT_NUMBERS (total, 111, 114);
  ASSERT_NUMBERS (b, 10, 11);
  go_backward (total);
  ASSERT_GRAD (c, 222, 228);
  same = gtorch_comm_reduce_add (inputs, 1, NULL, &error);
  g_assert_true (same == a);
  ASSERT_FAILS (gtorch_comm_reduce_add (mixed, 2, NULL, &error) != NULL, GTORCH_ERROR_SHAPE,
                "comm_reduce_add: the tensors have different shapes, [2] and, at 1, [3]");
}

static void
buffers_are_added (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) a = learned (gpu (0), 2, 1), b = learned (gpu (0), 1, 5);
  g_autoptr (GTorchTensor) c = learned (gpu (1), 2, 10), d = learned (gpu (1), 1, 50);
  GTorchTensor *inputs[] = { a, b, c, d }, *crossed[] = { a, b, d, c };
  g_autoptr (GPtrArray) sums =
      gtorch_comm_reduce_add_coalesced (inputs, 4, 2, gpu (2), 1 << 20, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (sums->len, ==, 2);
  ASSERT_NUMBERS (sums->pdata[0], 11, 13);
  ASSERT_NUMBERS (sums->pdata[1], 55);
  g_assert_true (place (sums->pdata[1]) == gpu (2));
  go_backward (sums->pdata[0]);
  ASSERT_GRAD (a, 22, 26);
  ASSERT_GRAD (c, 22, 26);
  ASSERT_GRAD (d, 0);
  ASSERT_FAILS (gtorch_comm_reduce_add_coalesced (inputs, 3, 2, NULL, 1, &error) != NULL,
                GTORCH_ERROR_INVALID,
                "comm_reduce_add_coalesced: 3 tensors do not make up 2 lists of equal length");
  ASSERT_FAILS (gtorch_comm_reduce_add_coalesced (inputs, 4, 0, NULL, 1, &error) != NULL,
                GTORCH_ERROR_INVALID,
                "comm_reduce_add_coalesced: 4 tensors do not make up 0 lists of equal length");
  ASSERT_FAILS (gtorch_comm_reduce_add_coalesced (crossed, 4, 2, NULL, 1 << 20, &error) != NULL,
                GTORCH_ERROR_SHAPE,
                "comm_reduce_add: the tensors have different shapes, [2] and, at 1, [1]");
}

/* The gradient of a buffer's gradient: both ways are functions of autograd. */
static void
gradients_have_gradients (void)
{
  GTorchDevice *other = gpu (1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) a = learned (gpu (0), 2, 1), b = learned (gpu (0), 1, 5);
  GTorchTensor *sent[] = { a, b };
  g_autoptr (GPtrArray) copies =
      gtorch_comm_broadcast_coalesced (sent, 2, &other, 1, 1 << 20, &error);
  g_autoptr (GTorchTensor) cube = gtorch_tensor_pow_scalar (copies->pdata[0], 3, &error);
  g_autoptr (GTorchTensor) loss =
      gtorch_tensor_sum (cube, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_true (gtorch_tensor_backward (loss, NULL, TRUE, TRUE, &error));
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (a);
  ASSERT_NUMBERS (grad, 3, 12);
  gtorch_tensor_set_grad (a, NULL, NULL);
  go_backward (grad); /* Σ (3 a²)²: 36 a³ */
  ASSERT_GRAD (a, 36, 288);
}

/* --- parts --- */

static void
tensors_are_divided (void)
{
  GTorchDevice *devices[] = { gpu (0), gpu (1), gpu (2) };
  const gint64 sizes[] = { 1, 4 }, short_sizes[] = { 1, 1 }, negative[] = { -1, 6 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = learned (gpu (0), 5, 0);
  g_autoptr (GTorchTensor) point = gtorch_full (NULL, 0, 1, GTORCH_DTYPE_NONE, gpu (0), &error);
  g_autoptr (GPtrArray) parts =
      gtorch_comm_scatter (x, devices, N_GPUS, NULL, 0, 0, NULL, 0, &error);
  g_autoptr (GPtrArray) sized = NULL, few = NULL;
  g_autoptr (GTorchTensor) joined = NULL, two = numbers (gpu (0), 2, 0);

  g_assert_no_error (error);
  g_assert_cmpuint (parts->len, ==, 3);
  ASSERT_NUMBERS (parts->pdata[2], 4);
  g_assert_true (place (parts->pdata[2]) == gpu (2));
  joined = gtorch_comm_gather ((GTorchTensor **) parts->pdata, 3, 0, gpu (1), &error);
  g_assert_true (place (joined) == gpu (1));
  ASSERT_NUMBERS (joined, 0, 1, 2, 3, 4);
  go_backward (joined);
  ASSERT_GRAD (x, 0, 2, 4, 6, 8);
  sized = gtorch_comm_scatter (x, devices, 2, sizes, 2, -1, NULL, 0, &error);
  ASSERT_NUMBERS (sized->pdata[1], 1, 2, 3, 4);
  few = gtorch_comm_scatter (two, devices, N_GPUS, NULL, 0, 0, NULL, 0, &error);
  g_assert_cmpuint (few->len, ==, 2);

  ASSERT_FAILS (gtorch_comm_scatter (x, devices, 2, short_sizes, 2, 0, NULL, 0, &error) != NULL,
                GTORCH_ERROR_SHAPE,
                "comm_scatter: parts of [1, 1] for 2 devices do not make up dimension 0, 5");
  ASSERT_FAILS (gtorch_comm_scatter (x, devices, 2, negative, 2, 0, NULL, 0, &error) != NULL,
                GTORCH_ERROR_SHAPE,
                "comm_scatter: parts of [-1, 6] for 2 devices do not make up dimension 0, 5");
  ASSERT_FAILS (gtorch_comm_scatter (x, devices, 2, NULL, 0, 1, NULL, 0, &error) != NULL,
                GTORCH_ERROR_INDEX, "comm_scatter: dim 1 is out of range for 1 dimensions");
  ASSERT_FAILS (gtorch_comm_scatter (point, devices, 2, NULL, 0, 0, NULL, 0, &error) != NULL,
                GTORCH_ERROR_SHAPE, "comm_scatter: a tensor without dimensions cannot be divided");
}

static void
parts_are_written (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = numbers (gpu (0), 5, 0), whole = numbers (gpu (2), 5, 7);
  g_autoptr (GTorchTensor) a = numbers (gpu (1), 2, 0), b = numbers (gpu (2), 3, 0);
  g_autoptr (GTorchStream) first = gtorch_stream_new (gpu (1), 0, &error);
  g_autoptr (GTorchStream) second = gtorch_stream_new (gpu (2), 0, &error);
  GTorchTensor *out[] = { a, b };
  GTorchStream *streams[] = { first, second };

  g_assert_no_error (error);
  g_assert_true (gtorch_comm_scatter_out (x, out, 2, 0, streams, 2, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_stream_synchronize (first, NULL, &error));
  g_assert_true (gtorch_stream_synchronize (second, NULL, &error));
  ASSERT_NUMBERS (a, 0, 1);
  ASSERT_NUMBERS (b, 2, 3, 4);
  g_assert_true (gtorch_comm_gather_out (out, 2, 0, whole, &error));
  ASSERT_NUMBERS (whole, 0, 1, 2, 3, 4);
  ASSERT_FAILS (gtorch_comm_scatter_out (x, out, 2, 0, streams, 1, &error), GTORCH_ERROR_INVALID,
                "comm_scatter: there are 1 streams for 2 parts");
  ASSERT_FAILS (gtorch_comm_scatter_out (x, out, 1, 0, NULL, 0, &error), GTORCH_ERROR_SHAPE,
                "comm_scatter: parts of [2] for 1 devices do not make up dimension 0, 5");
  ASSERT_FAILS (gtorch_comm_gather_out (out, 1, 0, whole, &error), GTORCH_ERROR_SHAPE,
                "comm_gather: the tensors have different shapes, [2] and, at 0, [5]");
  ASSERT_NUMBERS (whole, 0, 1, 2, 3, 4);
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/CUDA/comm/tensors_are_copied", tensors_are_copied);
  g_test_add_func ("/GTorch/CUDA/comm/buffers_are_copied", buffers_are_copied);
  g_test_add_func ("/GTorch/CUDA/comm/tensors_are_added", tensors_are_added);
  g_test_add_func ("/GTorch/CUDA/comm/buffers_are_added", buffers_are_added);
  g_test_add_func ("/GTorch/CUDA/comm/gradients_have_gradients", gradients_have_gradients);
  g_test_add_func ("/GTorch/CUDA/comm/tensors_are_divided", tensors_are_divided);
  g_test_add_func ("/GTorch/CUDA/comm/parts_are_written", parts_are_written);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
