/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory of GPUs is exchanged with other libraries: in the order of the given streams, and returned to
 * its producer when it is not used any more. */

#include "config.h"

#include <gtorch/tensor/gtorch-dlpack-private.h>

#include "cuda-test.h"

#define N       1000
#define N_SEEDS 20
#define LIMIT   (30 * G_USEC_PER_SEC)

static GTorchTensor *
gpu_ramp (guint index, gint64 n)
{
  return gtorch_tensor_wrap (ramp_1d (gpu (index), GTORCH_DTYPE_FLOAT64, n));
}

static void
settle (void)
{
  GError *error = NULL;
  guint i;

  fake_cuda_hold (FALSE);
  for (i = 0; i < 2; i++)
    {
      gtorch_device_synchronize (gpu (i), NULL, &error);
      g_assert_no_error (error);
    }
}

static void
assert_ramp (GTorchTensor *x, gdouble step)
{
  g_autofree gdouble *values = read_doubles (gtorch_tensor_get_impl (x));
  gint64 i;

  for (i = 0; i < gtorch_tensor_get_numel (x); i++)
    g_assert_cmpfloat (values[i], ==, step * i);
}

/* --- a foreign library --- */

typedef struct
{
  GTorchDLManagedVersioned managed;
  GTorchTensor *owner; /* of the memory */
  gint64 shape[1];
  GMutex lock;
  GCond cond;
  guint n_deleted;
  GThread *deleted_by;
  void (*when_deleted) (gpointer memory);
} Foreign;

static void
delete_foreign (GTorchDLManagedVersioned *managed)
{
  Foreign *self = managed->context;

  g_mutex_lock (&self->lock);
  if (self->when_deleted != NULL)
    self->when_deleted (managed->tensor.data);
  self->n_deleted++;
  self->deleted_by = g_thread_self ();
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);
}

static Foreign *
foreign_new (GTorchTensor *owner, gint type, gint number)
{
  Foreign *self = g_new0 (Foreign, 1);

  self->owner = g_object_ref (owner);
  self->shape[0] = gtorch_tensor_get_numel (owner);
  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  self->managed = (GTorchDLManagedVersioned){
    .major = 1,
    .context = self,
    .deleter = delete_foreign,
    .tensor = { .data = (gpointer) gtorch_tensor_get_data_ptr (owner),
                .device = { type, number },
                .n_dims = 1,
                .dtype = { 2, 64, 1 },
                .shape = self->shape },
  };
  return self;
}

static void
foreign_free (Foreign *self)
{
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->cond);
  g_object_unref (self->owner);
  g_free (self);
}

static GTorchTensor *
import (Foreign *foreign)
{
  GError *error = NULL;
  GTorchTensor *result = gtorch_tensor_new_from_dlpack (&foreign->managed, TRUE, &error);

  g_assert_no_error (error);
  return result;
}

static guint
count_deleted (Foreign *self)
{
  guint result;

  g_mutex_lock (&self->lock);
  result = self->n_deleted;
  g_mutex_unlock (&self->lock);
  return result;
}

static void
wait_for_deletion (Foreign *self)
{
  const gint64 end = g_get_monotonic_time () + LIMIT;

  g_mutex_lock (&self->lock);
  while (self->n_deleted == 0)
    g_assert_true (g_cond_wait_until (&self->cond, &self->lock, end));
  g_mutex_unlock (&self->lock);
}

/* --- import --- */

static void
our_own_memory_round_trips (void)
{
  guint i, versioned, copy;

  for (i = 0; i < 8; i++)
    {
      g_autoptr (GTorchTensor) all = gpu_ramp (i & 1, N);
      g_autoptr (GTorchTensor) part = gtorch_tensor_slice (all, 0, 10, N, 3, NULL);
      g_autoptr (GTorchTensor) back = NULL;
      g_autofree gdouble *values = NULL;
      g_autoptr (GError) error = NULL;
      gpointer managed;

      versioned = i >> 1 & 1;
      copy = i >> 2;
      managed = gtorch_tensor_to_dlpack (part, versioned, copy, NULL, &error);
      g_assert_no_error (error);
      back = gtorch_tensor_new_from_dlpack (managed, versioned, &error);
      g_assert_no_error (error);
      g_assert_true (gtorch_tensor_get_device (back) == gpu (i & 1));
      g_assert_cmpint (gtorch_tensor_get_data_ptr (back) == gtorch_tensor_get_data_ptr (part), ==,
                       !copy);
      g_clear_object (&all);
      g_clear_object (&part);
      values = read_doubles (gtorch_tensor_get_impl (back));
      g_assert_cmpfloat (values[0], ==, 10);
      g_assert_cmpfloat (values[7], ==, 31);
      gtorch_tensor_add_scalar_inplace (back, 1, 1, &error);
      g_assert_no_error (error);
    }
  settle ();
  assert_no_misuse ();
}

static void
imports_have_a_device_and_may_be_read_only (void)
{
  const gint types[] = { GTORCH_DL_CUDA, GTORCH_DL_CUDA_MANAGED };
  g_autoptr (GTorchTensor) owner = gpu_ramp (1, N);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (types); i++)
    {
      Foreign *foreign = foreign_new (owner, types[i], 1);
      gint64 strides[] = { 2 };
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GError) error = NULL;

      foreign->shape[0] = N / 2;
      foreign->managed.tensor.strides = strides;
      foreign->managed.flags = GTORCH_DL_READ_ONLY;
      x = import (foreign);
      g_assert_true (gtorch_tensor_get_device (x) == gpu (1));
      assert_ramp (x, 2);
      g_assert_null (gtorch_tensor_zero_inplace (x, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_clear_object (&x);
      wait_for_deletion (foreign);
      foreign->n_deleted = 0;
      foreign->managed.flags = 0;
      foreign->managed.tensor.strides = NULL;
      foreign->managed.tensor.byte_offset = 8 * N / 2;
      foreign->shape[0] = 1;
      x = import (foreign);
      g_assert_cmpfloat (gtorch_tensor_item_double (x, NULL), ==, N / 2);
      g_clear_object (&x);
      wait_for_deletion (foreign);
      foreign_free (foreign);
    }
  assert_no_misuse ();
}

static void
claimed_devices_are_verified (void)
{
  static const struct
  {
    gint type, number;
    GTorchError code;
    const gchar *says;
  } lies[] = {
    { GTORCH_DL_CUDA, 1, GTORCH_ERROR_FORMAT, "no memory of cuda:1 at address" },
    { GTORCH_DL_CUDA, 99, GTORCH_ERROR_NOT_SUPPORTED, "GPU of number 99" },
    { GTORCH_DL_CUDA, -1, GTORCH_ERROR_NOT_SUPPORTED, "GPU of number -1" },
    { GTORCH_DL_CUDA_MANAGED, 2, GTORCH_ERROR_NOT_SUPPORTED, "GPU of number 2" },
    { 4, 0, GTORCH_ERROR_NOT_SUPPORTED, "type 4" },
  };
  g_autoptr (GTorchTensor) owner = gpu_ramp (0, N);
  g_autofree gdouble *host = g_new (gdouble, N);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (lies) + 2; i++)
    {
      gboolean is_host = i >= G_N_ELEMENTS (lies);
      Foreign *foreign = foreign_new (owner, is_host ? GTORCH_DL_CUDA + (i & 1) * 11 : lies[i].type,
                                      is_host ? 0 : lies[i].number);
      g_autoptr (GError) error = NULL;

      if (is_host)
        foreign->managed.tensor.data = host;
      g_assert_null (gtorch_tensor_new_from_dlpack (&foreign->managed, TRUE, &error));
      g_assert_error (error, GTORCH_ERROR, (gint) (is_host ? GTORCH_ERROR_FORMAT : lies[i].code));
      g_assert_nonnull (strstr (error->message, is_host ? "no memory of cuda:0" : lies[i].says));
      g_assert_cmpuint (count_deleted (foreign), ==, 0);
      foreign_free (foreign);
    }
  assert_no_misuse ();
}

static void
unused_imports_are_returned_at_once (void)
{
  g_autoptr (GTorchTensor) owner = gpu_ramp (0, N);
  Foreign *foreign = foreign_new (owner, GTORCH_DL_CUDA, 0);
  GTorchTensor *x = import (foreign);
  GTorchTensor *y = gtorch_tensor_add_scalar (x, 1, 1, NULL);

  settle ();
  g_object_unref (y);
  g_object_unref (x);
  g_assert_cmpuint (count_deleted (foreign), ==, 1);
  g_assert_true (foreign->deleted_by == g_thread_self ());
  foreign_free (foreign);
}

static void
imports_are_returned_after_pending_work (void)
{
  guint n_streams;

  for (n_streams = 1; n_streams <= 3; n_streams++)
    {
      g_autoptr (GTorchTensor) owner = gpu_ramp (0, N);
      g_autoptr (GPtrArray) results = g_ptr_array_new_with_free_func (g_object_unref);
      Foreign *foreign = foreign_new (owner, GTORCH_DL_CUDA, 0);
      GTorchTensor *x = import (foreign);
      guint i;

      settle ();
      fake_cuda_hold (TRUE);
      for (i = 0; i < n_streams; i++)
        {
          g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
          g_autoptr (GTorchStreamGuard) guard = i > 0 ? gtorch_stream_guard_new (stream) : NULL;

          g_ptr_array_add (results, gtorch_tensor_mul_scalar (x, 2, NULL));
        }
      g_object_unref (x); /* returns, though the work cannot be done yet */
      g_assert_cmpuint (fake_cuda_get_pending (), >, 0);
      g_assert_cmpuint (count_deleted (foreign), ==, 0);
      fake_cuda_hold (FALSE);
      wait_for_deletion (foreign);
      settle ();
      for (i = 0; i < n_streams; i++)
        assert_ramp (results->pdata[i], 2);
      g_assert_cmpuint (count_deleted (foreign), ==, 1);
      foreign_free (foreign);
    }
  assert_no_misuse ();
}

static void
overwrite (gpointer memory)
{
  gint i;

  for (i = 0; i < N; i++)
    ((gdouble *) memory)[i] = -1;
}

/* The driver reads memory that another library has pinned when the copy runs, not before the call
 * returns. */
static void
foreign_pinned_memory_is_copied_before_its_return (void)
{
  guint seed;

  for (seed = 1; seed <= N_SEEDS; seed++)
    {
      g_autoptr (GTorchTensor) ours = gpu_ramp (0, N);
      g_autoptr (GTorchTensor) host =
          gtorch_tensor_to_device (ours, gtorch_device_cpu (), FALSE, NULL);
      g_autoptr (GTorchTensor) pinned = gtorch_tensor_pin_memory (host, NULL);
      Foreign *foreign = foreign_new (pinned, GTORCH_DL_CUDA_HOST, 0);
      GTorchTensor *x = import (foreign);
      g_autoptr (GTorchTensor) there = NULL;

      settle ();
      fake_cuda_set_seed (seed);
      foreign->when_deleted = overwrite;
      g_assert_true (gtorch_tensor_get_device (x) == gtorch_device_cpu ());
      there = gtorch_tensor_to_device (x, gpu (0), FALSE, NULL);
      g_object_unref (x);
      g_assert_cmpuint (count_deleted (foreign), ==, 1);
      assert_ramp (there, 1);
      foreign_free (foreign);
    }
  assert_no_misuse ();
}

static void
any_call_may_fail (void)
{
  const gchar *const *name;

  for (name = fake_cuda_get_functions (); *name != NULL; name++)
    {
      g_autoptr (GTorchTensor) owner = gpu_ramp (0, N);
      Foreign *foreign = foreign_new (owner, GTORCH_DL_CUDA, 0);
      g_autoptr (GError) error = NULL;
      GTorchTensor *x;

      fake_cuda_fail (*name, 1, CUDA_ERROR_OUT_OF_MEMORY);
      x = gtorch_tensor_new_from_dlpack (&foreign->managed, TRUE, &error);
      g_assert_true ((x == NULL) == (error != NULL));
      if (x != NULL)
        {
          g_autoptr (GTorchTensor) y = gtorch_tensor_add_scalar (x, 1, 1, NULL);

          g_object_unref (x);
          wait_for_deletion (foreign);
        }
      fake_cuda_clear_faults ();
      settle ();
      g_assert_cmpuint (count_deleted (foreign), ==, x != NULL);
      foreign_free (foreign);
    }
}

/* --- export --- */

static void
the_consumers_stream_waits (void)
{
  guint seed, copy;

  for (seed = 1; seed <= N_SEEDS; seed++)
    for (copy = 0; copy < 2; copy++)
      {
        g_autoptr (GTorchStream) theirs = gtorch_stream_new (gpu (0), 0, NULL);
        g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
        g_autoptr (GTorchTensor) x = gpu_ramp (0, N);
        g_autoptr (GTorchTensor) there = NULL;
        g_autoptr (GTorchTensor) seen = NULL;
        g_autoptr (GError) error = NULL;
        gpointer managed;

        settle ();
        fake_cuda_set_seed (seed);
        fake_cuda_hold (TRUE); /* nothing waits */
        gtorch_tensor_mul_scalar_inplace (x, 2, NULL);
        if (!copy)
          {
            g_autoptr (GTorchStreamGuard) guard = NULL;

            gtorch_stream_wait_stream (other, gtorch_stream_get_current (gpu (0)), NULL);
            guard = gtorch_stream_guard_new (other);
            gtorch_tensor_mul_scalar_inplace (x, 2, NULL);
          }
        managed = gtorch_tensor_to_dlpack (x, TRUE, copy, theirs, &error);
        g_assert_no_error (error);
        {
          g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (theirs);

          there = gtorch_tensor_new_from_dlpack (managed, TRUE, &error);
          seen = gtorch_tensor_add_scalar (there, 0, 1, &error);
          g_assert_no_error (error);
          g_assert_cmpuint (fake_cuda_get_pending (), >, 0);
        }
        fake_cuda_hold (FALSE);
        settle ();
        assert_ramp (seen, copy ? 2 : 4);
      }
  assert_no_misuse ();
}

static void
without_a_stream_the_host_waits_for_all (void)
{
  guint seed, several;

  for (seed = 1; seed <= N_SEEDS; seed++)
    for (several = 0; several < 2; several++)
      {
        g_autoptr (GTorchStream) other = gtorch_stream_new (gpu (0), 0, NULL);
        g_autoptr (GTorchTensor) x = gpu_ramp (0, N);
        g_autofree gdouble *values = g_new (gdouble, N);
        GTorchDLManaged *managed;

        settle ();
        fake_cuda_set_seed (seed);
        gtorch_tensor_mul_scalar_inplace (x, 2, NULL);
        if (several)
          {
            g_autoptr (GTorchStreamGuard) guard = NULL;

            gtorch_stream_wait_stream (other, gtorch_stream_get_current (gpu (0)), NULL);
            guard = gtorch_stream_guard_new (other);
            gtorch_tensor_mul_scalar_inplace (x, 2, NULL);
          }
        managed = gtorch_tensor_to_dlpack (x, FALSE, FALSE, NULL, NULL);
        g_assert_true (fake_cuda_peek (managed->tensor.data, values, N * sizeof (gdouble)));
        g_assert_cmpfloat (values[N - 1], ==, (several ? 4 : 2) * (N - 1));
        gtorch_dlpack_delete ((gsize) managed, FALSE);
      }
  assert_no_misuse ();
}

/* The deleter is called while the consumer's work is still queued; the memory is not reused before that
 * is done. */
static void
memory_is_kept_while_the_consumer_reads (void)
{
  guint seed;

  for (seed = 1; seed <= N_SEEDS; seed++)
    {
      g_autoptr (GTorchStream) theirs = gtorch_stream_new (gpu (0), 0, NULL);
      GTorchTensor *x = gpu_ramp (0, N);
      g_autoptr (GTorchTensor) into = gpu_ramp (0, N);
      g_autoptr (GTorchTensor) next = NULL;
      GTorchDLManagedVersioned *managed;

      settle ();
      fake_cuda_set_seed (seed);
      fake_cuda_hold (TRUE);
      managed = gtorch_tensor_to_dlpack (x, TRUE, FALSE, theirs, NULL);
      OK (cuMemcpyDtoDAsync (gtorch_tensor_get_data_ptr (into),
                             (CUdeviceptr) (guintptr) managed->tensor.data, N * sizeof (gdouble),
                             gtorch_stream_get_handle (theirs)));
      g_object_unref (x);
      gtorch_dlpack_delete ((gsize) managed, TRUE);
      next = gtorch_full (GTORCH_SHAPE (N), -1, GTORCH_DTYPE_FLOAT64, gpu (0), NULL);
      fake_cuda_hold (FALSE);
      settle ();
      assert_ramp (into, 1);
    }
  assert_no_misuse ();
}

static void
a_stream_of_another_device_is_refused (void)
{
  g_autoptr (GTorchTensor) x = gpu_ramp (0, N);
  g_autoptr (GTorchStream) theirs = gtorch_stream_new (gpu (1), 0, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tensor_to_dlpack (x, TRUE, FALSE, theirs, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  g_assert_cmpstr (error->message, ==,
                   "to_dlpack: the tensor of shape [1000] is on cuda:0, the stream on cuda:1");
}

static void
a_released_tensor_is_refused (void)
{
  g_autoptr (GTorchTensor) x = gpu_ramp (0, N);
  guint i;

  gtorch_tensor_release (x);
  for (i = 0; i < 8; i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_tensor_to_dlpack (x, i & 1, i >> 1 & 1,
                                              i & 4 ? gtorch_stream_get_current (gpu (0)) : NULL,
                                              &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
    }
}

static void
streams_have_addresses (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, NULL);
  g_autoptr (GTorchStream) same = NULL;
  g_autoptr (GTorchStream) cpu = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  g_autoptr (GError) error = NULL;
  gsize address = gtorch_stream_get_address (stream);

  g_assert_true ((gpointer) address == gtorch_stream_get_handle (stream) && address != 0);
  same = gtorch_stream_new_from_address (gpu (0), address, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_stream_get_address (same), ==, address);
  g_assert_cmpuint (gtorch_stream_get_address (cpu), ==, 0);
  g_assert_null (gtorch_stream_new_from_address (gpu (1), address, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
  g_clear_error (&error);
  g_assert_null (gtorch_stream_new_from_address (gtorch_device_cpu (), address, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

#define TEST(name) g_test_add_func ("/GTorchCudaDLPack/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (our_own_memory_round_trips);
  TEST (imports_have_a_device_and_may_be_read_only);
  TEST (claimed_devices_are_verified);
  TEST (unused_imports_are_returned_at_once);
  TEST (imports_are_returned_after_pending_work);
  TEST (foreign_pinned_memory_is_copied_before_its_return);
  TEST (any_call_may_fail);
  TEST (the_consumers_stream_waits);
  TEST (without_a_stream_the_host_waits_for_all);
  TEST (memory_is_kept_while_the_consumer_reads);
  TEST (a_stream_of_another_device_is_refused);
  TEST (a_released_tensor_is_refused);
  TEST (streams_have_addresses);
  result = g_test_run ();
  fake_cuda_hold (FALSE);
  return result;
}
