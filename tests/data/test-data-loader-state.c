/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A loader that is resumed gives the batches that the other one would have given. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "data-test.h"

typedef struct
{
  gint workers;
  gboolean shuffle, replacement, own_generator, persistent;
} Kind;

static const Kind kinds[] = {
  { 0, FALSE, FALSE, FALSE, FALSE }, { 0, TRUE, FALSE, FALSE, FALSE },
  { 0, TRUE, FALSE, TRUE, FALSE },   { 2, TRUE, FALSE, FALSE, FALSE },
  { 2, TRUE, FALSE, TRUE, TRUE },    { 3, FALSE, TRUE, TRUE, FALSE },
  { 2, FALSE, TRUE, FALSE, TRUE },
};

static GTorchDataLoader *
loader_of (const Kind *kind, guint64 seed)
{
  g_autoptr (Counted) dataset = counted_new (23);
  g_autoptr (GTorchGenerator) generator =
      kind->own_generator ? gtorch_generator_new_with_seed (seed) : NULL;
  g_autoptr (GTorchSampler) sampler =
      kind->replacement ? gtorch_random_sampler_new (23, TRUE, -1, generator) : NULL;

  return g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size", (gint64) 4,
                       "shuffle", kind->shuffle, "sampler", sampler, "num-workers", kind->workers,
                       "generator", generator, "persistent-workers", kind->persistent, NULL);
}

static GTorchDataLoaderIter *
begin (GTorchDataLoader *loader)
{
  g_autoptr (GError) error = NULL;
  GTorchDataLoaderIter *iter = gtorch_data_loader_iterate (loader, &error);

  g_assert_no_error (error);
  return iter;
}

static void
drop_batches (GTorchDataLoaderIter *iter, guint n)
{
  while (n-- > 0)
    gtorch_sample_unref (gtorch_data_loader_iter_next (iter, NULL, NULL));
}

/* Through bytes, as from a file. */
static void
resume (GTorchDataLoader *to, GTorchDataLoader *from)
{
  g_autoptr (GVariant) state = gtorch_data_loader_get_state (from, NULL);
  g_autoptr (GBytes) bytes = g_variant_get_data_as_bytes (state);
  g_autoptr (GVariant) read =
      g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE_VARDICT, bytes, FALSE));
  g_autoptr (GError) error = NULL;

  gtorch_data_loader_set_state (to, read, &error);
  g_assert_no_error (error);
}

static void
test_resumed_epoch_has_the_same_batches (void)
{
  guint k, at;

  for (k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (at = 0; at <= 6; at++)
      {
        g_autoptr (GTorchDataLoader) loader = loader_of (&kinds[k], 1);
        g_autoptr (GTorchDataLoader) other = loader_of (&kinds[k], 2);
        g_autoptr (GTorchDataLoaderIter) iter = NULL;
        g_autoptr (GTorchDataLoaderIter) resumed = NULL;
        g_autofree gchar *expected = NULL;

        gtorch_manual_seed (4);
        g_free (read_epoch (loader));
        iter = begin (loader);
        drop_batches (iter, at);
        gtorch_manual_seed (5);
        resume (other, loader);
        resumed = begin (other);
        g_assert_cmpint (gtorch_data_loader_iter_get_epoch (resumed), ==, 1);
        g_assert_cmpint (gtorch_data_loader_iter_get_position (resumed), ==, at);
        g_assert_cmpint (gtorch_data_loader_get_position (other), ==, at);
        expected = read_all (iter);
        assert_text (read_all (resumed), expected);
        if (!kinds[k].own_generator)
          continue;
        /* The generator goes on as the other did: so do further epochs. */
        g_free (g_steal_pointer (&expected));
        expected = read_epoch (loader);
        assert_text (read_epoch (other), expected);
      }
}

static void
test_state_after_an_epoch_begins_the_next (void)
{
  guint k;

  for (k = 0; k < G_N_ELEMENTS (kinds); k++)
    {
      g_autoptr (GTorchDataLoader) loader = loader_of (&kinds[k], 1);
      g_autoptr (GTorchDataLoader) other = loader_of (&kinds[k], 2);
      g_autofree gchar *expected = NULL;

      g_free (read_epoch (loader));
      resume (other, loader);
      gtorch_manual_seed (6);
      expected = read_epoch (loader);
      gtorch_manual_seed (6);
      assert_text (read_epoch (other), expected);
      g_assert_cmpint (gtorch_data_loader_get_epoch (other), ==, 1);
    }
}

static void
test_state_of_a_resumed_loader_can_be_resumed (void)
{
  const Kind kind = { 2, TRUE, FALSE, FALSE, FALSE };
  g_autoptr (GTorchDataLoader) first = loader_of (&kind, 1);
  g_autoptr (GTorchDataLoader) second = loader_of (&kind, 1);
  g_autoptr (GTorchDataLoader) third = loader_of (&kind, 1);
  g_autoptr (GTorchDataLoaderIter) a = begin (first);
  g_autoptr (GTorchDataLoaderIter) b = NULL;
  g_autofree gchar *expected = NULL;

  drop_batches (a, 2);
  resume (second, first);
  resume (third, second); /* which has not begun */
  b = begin (third);
  drop_batches (b, 1);
  drop_batches (a, 1);
  resume (second, third);
  expected = read_all (a);
  assert_text (read_epoch (second), expected);
}

static void
test_state_without_order_lacks_what_was_given (void)
{
  g_autoptr (Counted) dataset = counted_new (40);
  gboolean seen[20] = { FALSE };
  g_autoptr (GVariant) state = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDataLoaderIter) iter = NULL;
  guint i, round, n = 0;
  GTorchDataLoader *loaders[2];

  for (i = 0; i < 2; i++)
    loaders[i] = g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size",
                               (gint64) 2, "num-workers", 4, "in-order", FALSE, NULL);
  for (round = 0; round < 2; round++)
    {
      GTorchSample *batch;

      if (round == 1)
        resume (loaders[1], loaders[0]);
      g_clear_object (&iter);
      iter = begin (loaders[round]);
      while ((round == 1 || n < 9)
             && (batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL)
        {
          g_autofree gchar *text = text_of (batch);
          const guint number = atoi (text) / 2;

          g_assert_false (seen[number]);
          seen[number] = TRUE;
          n++;
          gtorch_sample_unref (batch);
        }
      g_assert_no_error (error);
    }
  g_assert_cmpint (n, ==, 20);
  g_object_unref (loaders[0]);
  g_object_unref (loaders[1]);
}

static void
test_iterable_goes_on (void)
{
  gint workers;

  for (workers = 0; workers <= 3; workers++)
    {
      g_autoptr (Streamed) dataset = streamed_new (17);
      g_autoptr (GTorchDataLoader) loader =
          g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size", (gint64) 3,
                        "num-workers", workers, NULL);
      g_autoptr (GTorchDataLoader) other =
          g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size", (gint64) 3,
                        "num-workers", workers, NULL);
      g_autoptr (GTorchDataLoaderIter) iter = begin (loader);
      g_autofree gchar *expected = NULL;

      drop_batches (iter, 3);
      resume (other, loader);
      expected = read_all (iter);
      assert_text (read_epoch (other), expected);
    }
}

static void
test_wrong_states_are_refused (void)
{
  const Kind kind = { 0, TRUE, FALSE, FALSE, FALSE };
  g_autoptr (GTorchDataLoader) loader = loader_of (&kind, 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) state = NULL;
  GVariantDict dict;

  g_assert_false (gtorch_data_loader_set_state (loader, g_variant_new_string ("x"), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_assert_cmpstr (error->message, ==,
                   "data_loader: a value of type s is not the state of a loader");
  g_clear_error (&error);
  state = gtorch_data_loader_get_state (loader, NULL);
  g_variant_dict_init (&dict, state);
  g_variant_dict_insert (&dict, "version", "u", 9);
  g_assert_false (gtorch_data_loader_set_state (loader, g_variant_dict_end (&dict), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_assert_cmpstr (error->message, ==,
                   "data_loader: a state of version 9 cannot be read, only one of version 2");
  g_clear_error (&error);
  g_variant_dict_init (&dict, state);
  g_variant_dict_insert (&dict, "position", "x", (gint64) 3);
  g_assert_false (gtorch_data_loader_set_state (loader, g_variant_dict_end (&dict), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  /* A state of more batches than there are, which the loader sees when it begins. */
  g_variant_dict_init (&dict, state);
  g_variant_dict_insert (&dict, "begun", "b", TRUE);
  g_variant_dict_insert (&dict, "position", "x", (gint64) 30);
  g_variant_dict_insert (&dict, "first", "t", (guint64) 30);
  g_assert_true (gtorch_data_loader_set_state (loader, g_variant_dict_end (&dict), &error));
  g_assert_null (gtorch_data_loader_iterate (loader, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "data_loader: the state was taken after 30 batches, and the sampler gives 6");
}

static void
assert_refused (GTorchDataLoader *loader, GVariant *state, const gchar *message)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_data_loader_set_state (loader, state, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, message);
}

static void
test_states_of_other_loaders_are_refused (void)
{
  const Kind kind = { 0, TRUE, FALSE, FALSE, FALSE };
  g_autoptr (GTorchDataLoader) loader = loader_of (&kind, 1);
  g_autoptr (Counted) dataset = counted_new (23);
  g_autoptr (Counted) longer = counted_new (24);
  g_autoptr (GTorchDataLoader) ordered =
      gtorch_data_loader_new (GTORCH_DATASET (dataset), 4, FALSE);
  g_autoptr (GTorchDataLoader) large = gtorch_data_loader_new (GTORCH_DATASET (dataset), 5, TRUE);
  g_autoptr (GTorchDataLoader) other = gtorch_data_loader_new (GTORCH_DATASET (longer), 4, TRUE);
  g_autoptr (GVariant) state = gtorch_data_loader_get_state (loader, NULL);

  assert_refused (ordered, state,
                  "data_loader: the state is that of a loader whose order is “random”, and this "
                  "one's is "
                  "“sequential”");
  assert_refused (large, state,
                  "data_loader: the state is that of a loader whose batch_size is 4, and this "
                  "one's is 5");
  assert_refused (other, state,
                  "data_loader: the state is that of a loader whose number of samples is 23, and "
                  "this "
                  "one's is 24");
}

/* --- an iterable data set with states --- */

#define TYPE_KEPT (kept_get_type ())
G_DECLARE_FINAL_TYPE (Kept, kept, TEST, KEPT, GTorchIterableDataset)
#define TYPE_KEPT_SOURCE (kept_source_get_type ())
G_DECLARE_FINAL_TYPE (KeptSource, kept_source, TEST, KEPT_SOURCE, GTorchSampleSource)

struct _Kept
{
  GTorchIterableDataset parent_instance;
  gint64 at, n_read, n_closed;
  gboolean is_failing, goes_on;
};

struct _KeptSource
{
  GTorchSampleSource parent_instance;
  Kept *dataset; /* not owned */
};

G_DEFINE_TYPE (Kept, kept, GTORCH_TYPE_ITERABLE_DATASET)
G_DEFINE_TYPE (KeptSource, kept_source, GTORCH_TYPE_SAMPLE_SOURCE)

static GTorchSample *
kept_source_next (GTorchSampleSource *source, GCancellable *cancellable, GError **error)
{
  Kept *self = TEST_KEPT_SOURCE (source)->dataset;

  if (self->at == 17)
    return NULL;
  self->n_read++;
  return gtorch_sample_new_int (self->at++);
}

static void
kept_source_close (GTorchSampleSource *source)
{
  TEST_KEPT_SOURCE (source)->dataset->n_closed++;
}

static void
kept_source_class_init (KeptSourceClass *klass)
{
  GTORCH_SAMPLE_SOURCE_CLASS (klass)->next = kept_source_next;
  GTORCH_SAMPLE_SOURCE_CLASS (klass)->close = kept_source_close;
}

static void
kept_source_init (KeptSource *self)
{
}

static GTorchSampleSource *
kept_iterate (GTorchIterableDataset *dataset, guint worker, guint n_workers, GError **error)
{
  KeptSource *source = g_object_new (TYPE_KEPT_SOURCE, NULL);

  source->dataset = TEST_KEPT (dataset);
  if (!source->dataset->goes_on)
    source->dataset->at = 0;
  source->dataset->goes_on = FALSE;
  return GTORCH_SAMPLE_SOURCE (source);
}

static GVariant *
kept_get_state (GTorchIterableDataset *dataset, GError **error)
{
  if (!TEST_KEPT (dataset)->is_failing)
    return g_variant_new_int64 (TEST_KEPT (dataset)->at);
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not now");
  return NULL;
}

static gboolean
kept_set_state (GTorchIterableDataset *dataset, GVariant *state, GError **error)
{
  Kept *self = TEST_KEPT (dataset);

  if (self->is_failing)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not now");
      return FALSE;
    }
  self->at = g_variant_get_int64 (state);
  self->goes_on = TRUE;
  return TRUE;
}

static void
kept_class_init (KeptClass *klass)
{
  GTORCH_ITERABLE_DATASET_CLASS (klass)->iterate = kept_iterate;
  GTORCH_ITERABLE_DATASET_CLASS (klass)->get_state = kept_get_state;
  GTORCH_ITERABLE_DATASET_CLASS (klass)->set_state = kept_set_state;
}

static void
kept_init (Kept *self)
{
}

static GTorchDataLoader *
kept_loader (Kept **dataset)
{
  *dataset = g_object_new (TYPE_KEPT, NULL);
  return g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", *dataset, "batch-size", (gint64) 3,
                       NULL);
}

static void
test_states_of_data_sets_are_kept (void)
{
  g_autoptr (Kept) dataset = NULL;
  g_autoptr (Kept) fresh = NULL;
  g_autoptr (GTorchDataLoader) loader = kept_loader (&dataset);
  g_autoptr (GTorchDataLoader) other = kept_loader (&fresh);
  g_autoptr (GTorchDataLoaderIter) iter = begin (loader);
  g_autoptr (GTorchDataLoaderIter) rest = NULL;
  g_autofree gchar *expected = NULL;
  g_autofree gchar *found = NULL;

  drop_batches (iter, 3);
  resume (other, loader);
  rest = begin (other);
  g_assert_cmpint (gtorch_data_loader_iter_get_position (rest), ==, 3);
  expected = read_all (iter);
  found = read_all (rest);
  g_assert_cmpstr (found, ==, expected);
  g_assert_cmpint (fresh->n_read, ==, 8); /* none of the first 9 */
  /* The next epoch begins at the beginning. */
  g_free (read_epoch (other));
  g_assert_cmpint (fresh->n_read, ==, 8 + 17);
}

static void
test_errors_of_states_arrive (void)
{
  g_autoptr (Kept) dataset = NULL;
  g_autoptr (GTorchDataLoader) loader = kept_loader (&dataset);
  g_autoptr (GTorchDataLoaderIter) iter = begin (loader);
  g_autoptr (GVariant) state = NULL;
  g_autoptr (GError) error = NULL;

  drop_batches (iter, 1);
  state = gtorch_data_loader_get_state (loader, &error);
  g_assert_no_error (error);
  dataset->is_failing = TRUE;
  g_assert_null (gtorch_data_loader_get_state (loader, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  g_assert_false (gtorch_data_loader_set_state (loader, state, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
}

static void
test_sources_are_closed (void)
{
  g_autoptr (Kept) dataset = NULL;
  g_autoptr (GTorchDataLoader) loader = kept_loader (&dataset);
  g_autoptr (GTorchDataLoaderIter) iter = begin (loader);

  drop_batches (iter, 2);
  g_assert_cmpint (dataset->n_closed, ==, 0);
  gtorch_data_loader_iter_close (iter);
  g_assert_cmpint (dataset->n_closed, ==, 1);
  g_free (read_epoch (loader));
  g_assert_cmpint (dataset->n_closed, ==, 2);
}

/* What a data set draws from the worker's generator follows from the number of the batch. */
static GTorchSample *
draw (GTorchSample **samples, gsize n, gpointer data, GError **error)
{
  GTorchWorkerInfo *info = gtorch_worker_info_get_current ();
  g_autoptr (GTorchTensor) number =
      gtorch_randint (0, 1000000, NULL, 0, GTORCH_DTYPE_INT64, gtorch_device_cpu (),
                      gtorch_worker_info_get_generator (info), error);

  return number != NULL ? gtorch_sample_new_int (gtorch_tensor_item_int (number, NULL)) : NULL;
}

static void
test_random_numbers_of_workers_are_resumed (void)
{
  const Kind kind = { 3, FALSE, FALSE, FALSE, FALSE };
  g_autoptr (GTorchDataLoader) loader = loader_of (&kind, 1);
  g_autoptr (GTorchDataLoader) other = loader_of (&kind, 1);
  g_autoptr (GTorchDataLoaderIter) iter = NULL;
  g_autofree gchar *expected = NULL;

  gtorch_data_loader_set_collate (loader, draw, NULL, NULL);
  gtorch_data_loader_set_collate (other, draw, NULL, NULL);
  iter = begin (loader);
  drop_batches (iter, 2);
  resume (other, loader);
  expected = read_all (iter);
  assert_text (read_epoch (other), expected);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/DataLoader/State/" #name, test_##name)
  ADD (resumed_epoch_has_the_same_batches);
  ADD (state_after_an_epoch_begins_the_next);
  ADD (state_of_a_resumed_loader_can_be_resumed);
  ADD (state_without_order_lacks_what_was_given);
  ADD (iterable_goes_on);
  ADD (wrong_states_are_refused);
  ADD (random_numbers_of_workers_are_resumed);
  ADD (states_of_other_loaders_are_refused);
  ADD (states_of_data_sets_are_kept);
  ADD (errors_of_states_arrive);
  ADD (sources_are_closed);
  return g_test_run ();
}
