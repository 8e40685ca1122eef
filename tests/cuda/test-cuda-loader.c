/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batches in pinned memory, and batches that a loader copies to a device on a stream of its own. */

#include "config.h"

#include "cuda-test.h"

#include <tests/data/data-test.h>

#define N_SEEDS 10

static GTorchDataLoader *
loader_of (gpointer dataset, gint workers, gboolean pin, GTorchDevice *device)
{
  return g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size", (gint64) 2,
                       "num-workers", workers, "pin-memory", pin, "device", device, NULL);
}

static GTorchTensorDataset *
rows_new (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_arange_int (0, 12, 1, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error);
  g_autoptr (GTorchTensor) rows = gtorch_tensor_reshape (x, (gint64[]){ 6, 2 }, 2, &error);
  g_autoptr (GTorchTensor) y =
      gtorch_arange_int (0, 6, 1, GTORCH_DTYPE_INT64, gtorch_device_cpu (), &error);
  GTorchTensorDataset *dataset =
      gtorch_tensor_dataset_new ((GTorchTensor *[]){ rows, y }, 2, &error);

  g_assert_no_error (error);
  return dataset;
}

static GTorchDataLoaderIter *
begin (GTorchDataLoader *loader)
{
  g_autoptr (GError) error = NULL;
  GTorchDataLoaderIter *iter = gtorch_data_loader_iterate (loader, &error);

  g_assert_no_error (error);
  return iter;
}

static GTorchTensor *
part (GTorchSample *batch, gint i)
{
  return gtorch_sample_get_tensor (gtorch_sample_get_child (batch, i, NULL));
}

static void
test_batches_are_pinned (void)
{
  gint workers, k;

  for (workers = 0; workers <= 2; workers++)
    for (k = 0; k < 2; k++)
      {
        g_autoptr (GObject) dataset = k == 0 ? G_OBJECT (counted_new (6)) : G_OBJECT (rows_new ());
        g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers, TRUE, NULL);
        g_autoptr (GTorchDataLoaderIter) iter = begin (loader);
        g_autoptr (GTorchSample) batch = gtorch_data_loader_iter_next (iter, NULL, NULL);

        g_assert_true (gtorch_tensor_is_pinned (part (batch, 0)));
        g_assert_true (gtorch_tensor_is_pinned (part (batch, 1)));
        assert_text (text_of (batch), "0 1");
        assert_text (read_all (iter), "2 3|4 5");
      }
  /* Only where it is asked for. */
  {
    g_autoptr (Counted) dataset = counted_new (6);
    g_autoptr (GTorchDataLoader) loader = loader_of (dataset, 1, FALSE, NULL);
    g_autoptr (GTorchDataLoaderIter) iter = begin (loader);
    g_autoptr (GTorchSample) batch = gtorch_data_loader_iter_next (iter, NULL, NULL);

    g_assert_false (gtorch_tensor_is_pinned (part (batch, 0)));
  }
}

/* The batch is used by work of the consumer's stream, which must wait for the copy, and dropped before
 * that work is done, which must keep its memory from the next copies. */
static void
read_on_device (GTorchDataLoader *loader, GTorchDevice *device, GTorchStream *stream)
{
  g_autoptr (GTorchStreamGuard) guard = stream != NULL ? gtorch_stream_guard_new (stream) : NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) all =
      gtorch_empty ((gint64[]){ 3, 2 }, 2, GTORCH_DTYPE_INT64, device, &error);
  g_autoptr (GTorchDataLoaderIter) iter = begin (loader);
  GTorchSample *batch;
  gint64 i = 0;

  while ((batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL)
    {
      g_autoptr (GTorchTensor) row = gtorch_tensor_select (all, 0, i++, &error);

      g_assert_true (gtorch_tensor_get_device (part (batch, 0)) == device);
      g_assert_true (gtorch_tensor_get_device (part (batch, 1)) == device);
      gtorch_tensor_copy_inplace (row, part (batch, 1), FALSE, &error);
      g_assert_no_error (error);
      gtorch_sample_unref (batch);
    }
  g_assert_no_error (error);
  assert_text (ints_of (all), "0 1 2 3 4 5");
}

static void
test_batches_arrive_on_a_device (void)
{
  gint workers, k;
  guint seed, d;

  for (seed = 0; seed < N_SEEDS; seed++)
    for (workers = 0; workers <= 2; workers++)
      for (k = 0; k < 2; k++)
        for (d = 0; d < 2; d++)
          {
            g_autoptr (GObject) dataset =
                k == 0 ? G_OBJECT (counted_new (6)) : G_OBJECT (rows_new ());
            g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers, FALSE, gpu (d));
            g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (d), 0, NULL);

            fake_cuda_set_seed (seed);
            read_on_device (loader, gpu (d), NULL);
            read_on_device (loader, gpu (d), stream);
          }
  assert_no_misuse ();
}

static void
test_host_does_not_wait_for_copies (void)
{
  gint workers;

  for (workers = 0; workers <= 1; workers++)
    {
      g_autoptr (GTorchTensorDataset) dataset = rows_new ();
      g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers, FALSE, gpu (0));
      g_autoptr (GTorchDataLoaderIter) iter = NULL;
      g_autoptr (GPtrArray) batches =
          g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_sample_unref);
      g_autoptr (GError) error = NULL;
      GTorchSample *batch;

      fake_cuda_set_seed (1);
      fake_cuda_hold (TRUE);
      iter = begin (loader);
      while ((batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL)
        g_ptr_array_add (batches, batch);
      g_assert_no_error (error);
      g_assert_cmpint (fake_cuda_get_pending (), >, 0);
      fake_cuda_hold (FALSE);
      g_assert_cmpint (batches->len, ==, 3);
      assert_text (text_of (batches->pdata[2]), "4 5");
      assert_text (ints_of (part (batches->pdata[1], 0)), "4 5 6 7");
    }
  assert_no_misuse ();
}

static void
test_resumed_on_a_device (void)
{
  g_autoptr (GTorchTensorDataset) dataset = rows_new ();
  g_autoptr (GTorchDataLoader) loader = loader_of (dataset, 2, FALSE, gpu (0));
  g_autoptr (GTorchDataLoader) other = loader_of (dataset, 2, FALSE, gpu (0));
  g_autoptr (GTorchDataLoaderIter) iter = begin (loader);
  g_autoptr (GVariant) state = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_sample_unref (gtorch_data_loader_iter_next (iter, NULL, NULL));
  state = gtorch_data_loader_get_state (loader, NULL);
  g_assert_true (gtorch_data_loader_set_state (other, state, &error));
  assert_text (read_epoch (other), "2 3|4 5");
}

static void
test_failed_copy_is_an_error (void)
{
  gint workers;

  for (workers = 0; workers <= 1; workers++)
    {
      g_autoptr (Counted) dataset = counted_new (6);
      g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers, FALSE, gpu (0));
      g_autoptr (GTorchDataLoaderIter) iter = NULL;
      g_autoptr (GError) error = NULL;
      GTorchSample *batch;

      g_free (read_epoch (loader));
      fake_cuda_fail ("cuMemcpyHtoDAsync", 1, CUDA_ERROR_INVALID_VALUE);
      iter = begin (loader);
      while ((batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL)
        gtorch_sample_unref (batch);
      g_assert_true (fake_cuda_clear_faults ());
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA);
      g_assert_cmpint (g_str_has_prefix (error->message, "DataLoader worker 0, "), ==, workers > 0);
    }
  fake_cuda_set_seed (0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/CUDA/DataLoader/" #name, test_##name)
  ADD (batches_are_pinned);
  ADD (batches_arrive_on_a_device);
  ADD (host_does_not_wait_for_copies);
  ADD (resumed_on_a_device);
  ADD (failed_copy_is_an_error);
  return g_test_run ();
}
