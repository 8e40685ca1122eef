/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data-test.h"

#define new_loader(...) \
  GTORCH_DATA_LOADER (g_object_new (GTORCH_TYPE_DATA_LOADER, __VA_ARGS__, NULL))

static void
test_batches_have_values_in_order (void)
{
  g_autoptr (Counted) dataset = counted_new (5);
  gint workers;

  for (workers = 0; workers <= 3; workers++)
    {
      g_autoptr (GTorchDataLoader) loader =
          new_loader ("dataset", dataset, "batch-size", (gint64) 2, "num-workers", workers);
      g_autoptr (GTorchDataLoaderIter) iter = NULL;
      g_autoptr (GTorchSample) batch = NULL;
      g_autoptr (GError) error = NULL;

      assert_text (read_epoch (loader), "0 1|2 3|4");
      assert_text (read_epoch (loader), "0 1|2 3|4");
      iter = gtorch_data_loader_iterate (loader, &error);
      g_assert_cmpint (gtorch_data_loader_iter_get_epoch (iter), ==, 2);
      batch = gtorch_data_loader_iter_next (iter, NULL, &error);
      g_assert_no_error (error);
      assert_text (gtorch_sample_to_string (batch), "(tensor float32 [2, 2], tensor int64 [2])");
      assert_text (ints_of (gtorch_sample_get_tensor (gtorch_sample_get_child (batch, 0, NULL))),
                   "0 0 1 2");
      g_assert_cmpint (gtorch_data_loader_iter_get_position (iter), ==, 1);
      g_assert_cmpint (gtorch_data_loader_iter_get_length (iter), ==, 3);
      g_assert_cmpfloat_with_epsilon (gtorch_data_loader_get_progress (loader), 1 / 3.0, 1e-15);
    }
}

static void
test_settings_change_batches (void)
{
  g_autoptr (Counted) dataset = counted_new (5);
  g_autoptr (GTorchSampler) reversed = NULL;
  g_autoptr (GTorchSampler) batches = NULL;
  g_autoptr (GTorchSampler) some = NULL;
  g_autoptr (GTorchSize) indices = gtorch_size_new ((gint64[]){ 4, 2, 0 }, 3);
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (1);
  gint workers;

  some = g_object_new (GTORCH_TYPE_SUBSET_RANDOM_SAMPLER, "indices", indices, "generator",
                       generator, NULL);
  batches = gtorch_batch_sampler_new (some, 2, FALSE);
  for (workers = 0; workers <= 2; workers++)
    {
      g_autoptr (GTorchDataLoader) dropping =
          new_loader ("dataset", dataset, "batch-size", (gint64) 2, "drop-last", TRUE,
                      "num-workers", workers);
      g_autoptr (GTorchDataLoader) single =
          new_loader ("dataset", dataset, "batch-size", (gint64) 0, "num-workers", workers);
      g_autoptr (GTorchDataLoader) sampled =
          new_loader ("dataset", dataset, "sampler", some, "num-workers", workers);
      g_autoptr (GTorchDataLoader) batched =
          new_loader ("dataset", dataset, "batch-sampler", batches, "num-workers", workers);
      g_autofree gchar *order = NULL;
      g_autofree gchar *first = NULL;

      assert_text (read_epoch (dropping), "0 1|2 3");
      g_assert_cmpint (gtorch_data_loader_get_length (dropping, NULL), ==, 2);
      assert_text (read_epoch (single), "0|1|2|3|4");
      g_assert_cmpint (gtorch_data_loader_get_length (single, NULL), ==, 5);
      g_assert_cmpint (gtorch_data_loader_get_length (batched, NULL), ==, 2);
      gtorch_generator_set_seed (generator, 7);
      order = read_epoch (sampled);
      g_assert_cmpint (strlen (order), ==, 5);
      gtorch_generator_set_seed (generator, 7);
      first = read_epoch (batched);
      g_assert_cmpint (strlen (first), ==, 5);
    }
}

static void
test_shuffle_has_each_sample_once (void)
{
  g_autoptr (Counted) dataset = counted_new (100);
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (3);
  g_autoptr (GTorchDataLoader) loader =
      new_loader ("dataset", dataset, "batch-size", (gint64) 7, "shuffle", TRUE, "num-workers", 3,
                  "generator", generator);
  g_autofree gchar *first = read_epoch (loader);
  g_autofree gchar *second = read_epoch (loader);
  g_auto (GStrv) numbers = g_strsplit_set (first, " |", -1);
  gboolean seen[100] = { FALSE };
  guint i;

  g_assert_cmpstr (first, !=, second);
  g_assert_cmpint (g_strv_length (numbers), ==, 100);
  for (i = 0; i < 100; i++)
    seen[atoi (numbers[i])] = TRUE;
  for (i = 0; i < 100; i++)
    g_assert_true (seen[i]);
  gtorch_generator_set_seed (generator, 3);
  assert_text (read_epoch (loader), first);
  gtorch_manual_seed (5);
  {
    g_autoptr (GTorchDataLoader) other = gtorch_data_loader_new (GTORCH_DATASET (dataset), 7, TRUE);
    g_autofree gchar *a = read_epoch (other);

    gtorch_manual_seed (5);
    assert_text (read_epoch (other), a);
  }
}

static void
test_unordered_has_each_batch_once (void)
{
  g_autoptr (Counted) dataset = counted_new (40);
  g_autoptr (GTorchDataLoader) loader = new_loader ("dataset", dataset, "batch-size", (gint64) 4,
                                                    "num-workers", 4, "in-order", FALSE);
  g_autofree gchar *text = read_epoch (loader);
  g_auto (GStrv) batches = g_strsplit (text, "|", -1);
  gboolean seen[10] = { FALSE };
  guint i;

  g_assert_cmpint (g_strv_length (batches), ==, 10);
  for (i = 0; i < 10; i++)
    seen[atoi (batches[i]) / 4] = TRUE;
  for (i = 0; i < 10; i++)
    g_assert_true (seen[i]);
}

static void
test_iterable_alternates_between_workers (void)
{
  g_autoptr (Streamed) dataset = streamed_new (7);
  g_autoptr (GTorchDataLoader) alone = gtorch_data_loader_new (GTORCH_DATASET (dataset), 3, FALSE);
  g_autoptr (GTorchDataLoader) shared =
      new_loader ("dataset", dataset, "batch-size", (gint64) 2, "num-workers", 2);
  g_autoptr (GTorchDataLoader) dropping = new_loader ("dataset", dataset, "batch-size", (gint64) 2,
                                                      "num-workers", 2, "drop-last", TRUE);
  g_autoptr (GTorchDataLoader) single =
      new_loader ("dataset", dataset, "batch-size", (gint64) 0, "num-workers", 3);
  g_autoptr (GError) error = NULL;

  assert_text (read_epoch (alone), "0 1 2|3 4 5|6");
  assert_text (read_epoch (alone), "0 1 2|3 4 5|6");
  assert_text (read_epoch (shared), "0 2|1 3|4 6|5");
  assert_text (read_epoch (dropping), "0 2|1 3|4 6");
  assert_text (read_epoch (single), "0|1|2|3|4|5|6");
  g_assert_cmpint (gtorch_data_loader_get_length (alone, &error), ==, -1);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==, "dataset: the length of Streamed is unknown");
}

static void
test_error_of_a_worker_names_it (void)
{
  g_autoptr (Counted) dataset = counted_new (6);
  gint workers;

  dataset->bad = 3;
  for (workers = 0; workers <= 1; workers++)
    {
      g_autoptr (GTorchDataLoader) loader =
          new_loader ("dataset", dataset, "batch-size", (gint64) 2, "num-workers", workers);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);
      GTorchSample *batch = gtorch_data_loader_iter_next (iter, NULL, &error);

      g_assert_no_error (error);
      gtorch_sample_unref (batch);
      g_assert_null (gtorch_data_loader_iter_next (iter, NULL, &error));
      g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
      g_assert_cmpstr (error->message, ==,
                       workers > 0 ? "DataLoader worker 0, index 3: no file 3" : "no file 3");
      /* The batches after it come. */
      assert_text (read_all (iter), "4 5");
    }
}

static GTorchSample *
first_only (GTorchSample **samples, gsize n, gpointer data, GError **error)
{
  if (data != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, "collated %u", (guint) n);
      return NULL;
    }
  return gtorch_sample_ref (samples[0]);
}

static gboolean
init_fails (guint worker, gpointer data, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, "worker %u has no data", worker);
  return FALSE;
}

static gboolean
init_counts (guint worker, gpointer data, GError **error)
{
  GTorchWorkerInfo *info = gtorch_worker_info_get_current ();

  g_assert_cmpint (gtorch_worker_info_get_id (info), ==, worker);
  g_assert_cmpint (gtorch_worker_info_get_num_workers (info), ==, 2);
  g_atomic_int_inc ((gint *) data);
  return TRUE;
}

static void
count_destroy (gpointer data)
{
  g_atomic_int_inc ((gint *) data);
}

static void
test_functions_of_the_program_are_called (void)
{
  g_autoptr (Counted) dataset = counted_new (4);
  gint n_inits = 0, n_destroyed = 0;
  gint workers;

  for (workers = 0; workers <= 2; workers += 2)
    {
      g_autoptr (GTorchDataLoader) loader =
          new_loader ("dataset", dataset, "batch-size", (gint64) 2, "num-workers", workers);
      g_autoptr (GTorchDataLoaderIter) iter = NULL;
      g_autoptr (GError) error = NULL;

      gtorch_data_loader_set_collate (loader, first_only, NULL, NULL);
      assert_text (read_epoch (loader), "0|2");
      gtorch_data_loader_set_collate (loader, first_only, &n_destroyed, count_destroy);
      iter = gtorch_data_loader_iterate (loader, &error);
      g_assert_null (gtorch_data_loader_iter_next (iter, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_true (g_str_has_suffix (error->message, "collated 2"));
    }
  g_assert_cmpint (n_destroyed, ==, 2);
  {
    g_autoptr (GTorchDataLoader) loader =
        new_loader ("dataset", dataset, "num-workers", 2, "persistent-workers", TRUE);
    g_autoptr (GTorchDataLoaderIter) iter = NULL;
    g_autoptr (GError) error = NULL;

    gtorch_data_loader_set_worker_init (loader, init_counts, &n_inits, NULL);
    assert_text (read_epoch (loader), "0|1|2|3");
    assert_text (read_epoch (loader), "0|1|2|3");
    /* A worker that never got a batch did not begin. */
    g_assert_cmpint (g_atomic_int_get (&n_inits), >=, 1);
    g_assert_cmpint (g_atomic_int_get (&n_inits), <=, 2);
    gtorch_data_loader_close (loader);
    gtorch_data_loader_set_worker_init (loader, init_fails, NULL, NULL);
    iter = gtorch_data_loader_iterate (loader, &error);
    g_assert_null (gtorch_data_loader_iter_next (iter, NULL, &error));
    g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
    g_assert_nonnull (strstr (error->message, " has no data"));
  }
  g_assert_null (gtorch_worker_info_get_current ());
}

static void
test_timeout_is_an_error (void)
{
  g_autoptr (Counted) dataset = counted_new (4);
  g_autoptr (GTorchDataLoader) loader =
      new_loader ("dataset", dataset, "num-workers", 1, "timeout", 0.02);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDataLoaderIter) iter = NULL;

  g_atomic_int_set (&dataset->is_shut, TRUE);
  iter = gtorch_data_loader_iterate (loader, &error);
  g_assert_null (gtorch_data_loader_iter_next (iter, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_cmpstr (error->message, ==, "data_loader: no batch came within the timeout of 0.02 s");
  /* The batch is not lost. */
  g_atomic_int_set (&dataset->is_shut, FALSE);
  g_clear_error (&error);
  while (gtorch_data_loader_iter_get_position (iter) == 0)
    {
      GTorchSample *batch = gtorch_data_loader_iter_next (iter, NULL, &error);

      if (batch != NULL)
        {
          assert_text (text_of (batch), "0");
          gtorch_sample_unref (batch);
        }
      g_clear_error (&error);
    }
}

static void
refused (GTorchDataLoader *loader, gint code, const gchar *message)
{
  g_autoptr (GTorchDataLoader) owned = loader;
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_data_loader_iterate (loader, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_cmpstr (error->message, ==, message);
}

static void
test_wrong_settings_are_refused (void)
{
  g_autoptr (Counted) counted = counted_new (4);
  g_autoptr (Streamed) streamed = streamed_new (4);
  g_autoptr (GTorchSampler) sampler = gtorch_sequential_sampler_new (4);

#define INVALID(message, ...) \
  refused (new_loader (__VA_ARGS__), GTORCH_ERROR_INVALID, "data_loader: " message)
  INVALID ("there is no data set", "batch-size", (gint64) 1);
  INVALID ("batch_size is -1, and must be 0 to 2147483647", "dataset", counted, "batch-size",
           (gint64) -1);
  INVALID ("num_workers is -2, and must be 0 to 4096", "dataset", counted, "num-workers", -2);
  INVALID ("prefetch_factor is -1, and must be 0 to 1048576", "dataset", counted, "prefetch-factor",
           -1);
  INVALID ("timeout is nan, and must be 0 to 1000000000", "dataset", counted, "num-workers", 1,
           "timeout", (gdouble) NAN);
  INVALID ("sampler and shuffle exclude each other", "dataset", counted, "sampler", sampler,
           "shuffle", TRUE);
  INVALID ("batch_sampler and any of batch_size, shuffle, sampler and drop_last exclude each other",
           "dataset", counted, "batch-sampler", sampler, "drop-last", TRUE);
  INVALID ("without batches (batch_size 0) there is no last one to drop", "dataset", counted,
           "batch-size", (gint64) 0, "drop-last", TRUE);
  INVALID ("prefetch_factor needs workers: num_workers is 0", "dataset", counted, "prefetch-factor",
           2);
  INVALID ("persistent_workers needs workers: num_workers is 0", "dataset", counted,
           "persistent-workers", TRUE);
  INVALID ("timeout needs workers: num_workers is 0", "dataset", counted, "timeout", 1.0);
  INVALID ("an iterable data set has its own order: shuffle, sampler and batch_sampler are for "
           "others",
           "dataset", streamed, "shuffle", TRUE);
  gtorch_dataset_set_thread_safe (GTORCH_DATASET (counted), FALSE);
  refused (new_loader ("dataset", counted, "num-workers", 2), GTORCH_ERROR_NOT_SUPPORTED,
           "data_loader: num_workers is 2, and Counted cannot be used by several threads");
}

static void
test_pinning_needs_a_device (void)
{
  g_autoptr (Counted) counted = counted_new (4);
  g_autoptr (GTorchDataLoader) loader = new_loader ("dataset", counted, "pin-memory", TRUE);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_data_loader_iterate (loader, &error));
  g_assert_nonnull (error);
  g_assert_true (g_str_has_prefix (error->message, "data_loader: pin_memory: "));
}

static void
test_tensor_dataset_gives_rows (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_arange_int (0, 12, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchTensor) rows = gtorch_tensor_reshape (x, (gint64[]){ 6, 2 }, 2, &error);
  g_autoptr (GTorchTensor) y = gtorch_arange_int (0, 6, 1, GTORCH_DTYPE_INT64, NULL, &error);
  GTorchTensor *tensors[] = { rows, y };
  g_autoptr (GTorchTensorDataset) dataset = gtorch_tensor_dataset_new (tensors, 2, &error);
  gint workers;

  for (workers = 0; workers <= 2; workers++)
    {
      g_autoptr (GTorchDataLoader) loader =
          new_loader ("dataset", dataset, "batch-size", (gint64) 4, "num-workers", workers);
      g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);
      g_autoptr (GTorchSample) batch = gtorch_data_loader_iter_next (iter, NULL, &error);

      g_assert_no_error (error);
      assert_text (gtorch_sample_to_string (batch), "(tensor float32 [4, 2], tensor int64 [4])");
      assert_text (ints_of (gtorch_sample_get_tensor (gtorch_sample_get_child (batch, 0, NULL))),
                   "0 1 2 3 4 5 6 7");
      assert_text (read_all (iter), "4 5");
    }
}

static void
test_two_epochs_can_be_read_at_a_time (void)
{
  g_autoptr (Counted) dataset = counted_new (4);
  gint persistent;

  for (persistent = 0; persistent <= 1; persistent++)
    {
      g_autoptr (GTorchDataLoader) loader =
          new_loader ("dataset", dataset, "batch-size", (gint64) 2, "num-workers", 2,
                      "persistent-workers", persistent);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchDataLoaderIter) outer = gtorch_data_loader_iterate (loader, &error);

      gtorch_sample_unref (gtorch_data_loader_iter_next (outer, NULL, &error));
      assert_text (read_epoch (loader), "0 1|2 3");
      assert_text (read_all (outer), "2 3");
    }
}

static void
test_closed_gives_nothing (void)
{
  g_autoptr (Counted) dataset = counted_new (400);
  gint workers;

  for (workers = 0; workers <= 2; workers++)
    {
      g_autoptr (GTorchDataLoader) loader = new_loader ("dataset", dataset, "num-workers", workers);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);

      gtorch_sample_unref (gtorch_data_loader_iter_next (iter, NULL, &error));
      gtorch_data_loader_iter_close (iter);
      g_assert_null (gtorch_data_loader_iter_next (iter, NULL, &error));
      g_assert_no_error (error);
    }
}

static gpointer
next_in_thread (gpointer iter)
{
  GError *error = NULL;
  GTorchSample *batch = gtorch_data_loader_iter_next (iter, NULL, &error);

  g_assert_no_error (error);
  return batch;
}

/* The second of two threads does not wait for a batch that the first one takes. */
static void
test_another_thread_is_refused (void)
{
  g_autoptr (Counted) dataset = counted_new (8);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  gint workers;

  g_cancellable_cancel (cancelled);
  for (workers = 0; workers <= 2; workers++)
    {
      g_autoptr (GTorchDataLoader) loader = new_loader ("dataset", dataset, "num-workers", workers);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchDataLoaderIter) iter = NULL;
      GThread *thread;

      g_atomic_int_set (&dataset->is_shut, TRUE);
      iter = gtorch_data_loader_iterate (loader, &error);
      thread = g_thread_new ("next", next_in_thread, iter);
      do /* before the thread is there, the call is cancelled */
        {
          g_clear_error (&error);
          g_usleep (100);
          g_assert_null (gtorch_data_loader_iter_next (iter, cancelled, &error));
        }
      while (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PENDING);
      g_clear_error (&error);
      g_atomic_int_set (&dataset->is_shut, FALSE);
      gtorch_sample_unref (g_thread_join (thread));
      gtorch_sample_unref (gtorch_data_loader_iter_next (iter, NULL, &error));
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_data_loader_iter_get_position (iter), ==, 2);
    }
}

static void
test_prefetch_is_bounded (void)
{
  g_autoptr (Counted) dataset = counted_new (100);
  g_autoptr (GTorchDataLoader) loader =
      new_loader ("dataset", dataset, "num-workers", 2, "prefetch-factor", 3);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);
  const gint64 end = g_get_monotonic_time () + 10 * G_USEC_PER_SEC;

  while (g_atomic_int_get (&dataset->n_asked) < 6 && g_get_monotonic_time () < end)
    g_usleep (100);
  g_usleep (2000);
  g_assert_cmpint (g_atomic_int_get (&dataset->n_asked), ==, 6);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/DataLoader/" #name, test_##name)
  ADD (batches_have_values_in_order);
  ADD (settings_change_batches);
  ADD (shuffle_has_each_sample_once);
  ADD (unordered_has_each_batch_once);
  ADD (iterable_alternates_between_workers);
  ADD (error_of_a_worker_names_it);
  ADD (functions_of_the_program_are_called);
  ADD (timeout_is_an_error);
  ADD (wrong_settings_are_refused);
  ADD (pinning_needs_a_device);
  ADD (tensor_dataset_gives_rows);
  ADD (two_epochs_can_be_read_at_a_time);
  ADD (closed_gives_nothing);
  ADD (another_thread_is_refused);
  ADD (prefetch_is_bounded);
  return g_test_run ();
}
