/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batches without blocking the main loop. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "data-test.h"

typedef struct
{
  GMainLoop *loop;
  GString *text;
  GError *error;
  GThread *thread;
  gboolean is_done;
  guint n_emitted;
  GCancellable *cancel_after_2;
} Reader;

static Reader
reader_new (void)
{
  return (Reader){ g_main_loop_new (NULL, FALSE), g_string_new (NULL), NULL, g_thread_self () };
}

static void
reader_clear (Reader *self)
{
  g_main_loop_unref (self->loop);
  g_string_free (self->text, TRUE);
  g_clear_error (&self->error);
}

static GTorchDataLoader *
loader_of (gpointer dataset, gint workers)
{
  return g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size", (gint64) 2,
                       "num-workers", workers, NULL);
}

static void
add (Reader *self, GTorchSample *batch)
{
  g_autofree gchar *numbers = text_of (batch);

  g_string_append_printf (self->text, self->text->len > 0 ? "|%s" : "%s", numbers);
}

static void
on_next (GObject *iter, GAsyncResult *result, gpointer data)
{
  Reader *self = data;
  g_autoptr (GTorchSample) batch =
      gtorch_data_loader_iter_next_finish (GTORCH_DATA_LOADER_ITER (iter), result, &self->error);

  g_assert_true (g_thread_self () == self->thread);
  if (batch == NULL)
    {
      g_main_loop_quit (self->loop);
      return;
    }
  add (self, batch);
  gtorch_data_loader_iter_next_async (GTORCH_DATA_LOADER_ITER (iter), NULL, on_next, self);
}

static void
test_next_async_gives_all_batches (void)
{
  gint workers, safe;

  for (workers = 0; workers <= 2; workers++)
    for (safe = workers > 0; safe <= 1; safe++)
      {
        g_autoptr (Counted) counted = counted_new (5);
        g_autoptr (Streamed) streamed = streamed_new (5);
        guint k;

        gtorch_dataset_set_thread_safe (GTORCH_DATASET (counted), safe);
        gtorch_dataset_set_thread_safe (GTORCH_DATASET (streamed), safe);
        for (k = 0; k < 2; k++)
          {
            g_autoptr (GTorchDataLoader) loader =
                loader_of (k == 0 ? (gpointer) counted : streamed, workers);
            g_autoptr (GError) error = NULL;
            g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);
            Reader reader = reader_new ();

            gtorch_data_loader_iter_next_async (iter, NULL, on_next, &reader);
            g_main_loop_run (reader.loop);
            g_assert_no_error (reader.error);
            g_assert_cmpstr (reader.text->str, ==,
                             k == 0 || workers < 2 ? "0 1|2 3|4" : "0 2|1 3|4");
            reader_clear (&reader);
          }
      }
}

static void
on_first (GObject *iter, GAsyncResult *result, gpointer data)
{
  Reader *self = data;
  g_autoptr (GTorchSample) batch =
      gtorch_data_loader_iter_next_finish (GTORCH_DATA_LOADER_ITER (iter), result, &self->error);

  if (batch != NULL)
    add (self, batch);
  g_main_loop_quit (self->loop);
}

static gboolean
on_idle (gpointer data)
{
  (*(guint *) data)++;
  g_usleep (100);
  return G_SOURCE_CONTINUE;
}

static void
test_main_loop_goes_on_meanwhile (void)
{
  gint workers;

  for (workers = 0; workers <= 1; workers++)
    {
      g_autoptr (Counted) dataset = counted_new (4);
      g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers);
      g_autoptr (GTorchDataLoaderIter) iter = NULL;
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      Reader reader = reader_new ();
      guint n_idle = 0, source;

      g_atomic_int_set (&dataset->is_shut, TRUE);
      iter = gtorch_data_loader_iterate (loader, NULL);
      source = g_idle_add (on_idle, &n_idle);
      gtorch_data_loader_iter_next_async (iter, cancellable, on_first, &reader);
      while (n_idle < 20)
        g_main_context_iteration (NULL, TRUE);
      /* One call at a time. */
      {
        g_autoptr (GError) error = NULL;

        g_assert_null (gtorch_data_loader_iter_next (iter, NULL, &error));
        g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PENDING);
      }
      g_cancellable_cancel (cancellable);
      g_main_loop_run (reader.loop);
      g_assert_error (reader.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_clear_error (&reader.error);
      /* The batch is given by the next call. */
      g_atomic_int_set (&dataset->is_shut, FALSE);
      gtorch_data_loader_iter_next_async (iter, NULL, on_first, &reader);
      g_main_loop_run (reader.loop);
      g_assert_no_error (reader.error);
      g_assert_cmpstr (reader.text->str, ==, "0 1");
      g_source_remove (source);
      reader_clear (&reader);
    }
}

static void
test_closing_ends_the_wait (void)
{
  gint workers;

  for (workers = 0; workers <= 1; workers++)
    {
      g_autoptr (Counted) dataset = counted_new (4);
      g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers);
      g_autoptr (GTorchDataLoaderIter) iter = NULL;
      Reader reader = reader_new ();

      g_atomic_int_set (&dataset->is_shut, TRUE);
      iter = gtorch_data_loader_iterate (loader, NULL);
      gtorch_data_loader_iter_next_async (iter, NULL, on_first, &reader);
      if (workers == 0)
        g_atomic_int_set (&dataset->is_shut, FALSE);
      gtorch_data_loader_iter_close (iter);
      g_main_loop_run (reader.loop);
      g_assert_no_error (reader.error);
      g_assert_cmpstr (reader.text->str, ==, "");
      reader_clear (&reader);
    }
}

typedef struct
{
  Counted *dataset;
  GTorchDataLoaderIter *iter;
} Closing;

static gpointer
close_when_waited_for (gpointer data)
{
  Closing *closing = data;

  g_usleep (2000); /* by then the other thread waits, most of the time */
  gtorch_data_loader_iter_close (closing->iter);
  g_atomic_int_set (&closing->dataset->is_shut, FALSE);
  return NULL;
}

static void
test_another_thread_ends_the_wait (void)
{
  for (gint workers = 0; workers <= 2; workers++)
    for (gint is_async = 0; is_async <= 1; is_async++)
      {
        g_autoptr (Counted) dataset = counted_new (4);
        g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers);
        g_autoptr (GTorchDataLoaderIter) iter = NULL;
        g_autoptr (GTorchSample) batch = NULL;
        Reader reader = reader_new ();
        Closing closing = { dataset };
        GThread *thread;

        g_atomic_int_set (&dataset->is_shut, TRUE);
        closing.iter = iter = gtorch_data_loader_iterate (loader, NULL);
        if (is_async)
          gtorch_data_loader_iter_next_async (iter, NULL, on_first, &reader);
        thread = g_thread_new ("close", close_when_waited_for, &closing);
        if (is_async)
          g_main_loop_run (reader.loop);
        else
          batch = gtorch_data_loader_iter_next (iter, NULL, &reader.error);
        g_assert_no_error (reader.error);
        g_thread_join (thread);
        g_assert_true (workers == 0
                       || batch == NULL); /* without workers the thread makes it itself */
        g_assert_cmpstr (reader.text->str, ==, "");
        g_assert_null (gtorch_data_loader_iter_next (iter, NULL, &reader.error));
        g_assert_no_error (reader.error);
        reader_clear (&reader);
      }
}

static void
test_timeout_ends_the_wait (void)
{
  g_autoptr (Counted) dataset = counted_new (4);
  g_autoptr (GTorchDataLoader) loader = g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset,
                                                      "num-workers", 1, "timeout", 0.01, NULL);
  g_autoptr (GTorchDataLoaderIter) iter = NULL;
  Reader reader = reader_new ();

  g_atomic_int_set (&dataset->is_shut, TRUE);
  iter = gtorch_data_loader_iterate (loader, NULL);
  gtorch_data_loader_iter_next_async (iter, NULL, on_first, &reader);
  g_main_loop_run (reader.loop);
  g_assert_error (reader.error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  reader_clear (&reader);
}

static void
on_batch (GTorchDataLoader *loader, GTorchSample *batch, gpointer data)
{
  Reader *self = data;

  g_assert_true (g_thread_self () == self->thread);
  self->n_emitted++;
  add (self, batch);
  if (self->cancel_after_2 != NULL && self->n_emitted == 2)
    g_cancellable_cancel (self->cancel_after_2);
}

static void
on_run (GObject *loader, GAsyncResult *result, gpointer data)
{
  Reader *self = data;

  self->is_done = gtorch_data_loader_run_finish (GTORCH_DATA_LOADER (loader), result, &self->error);
  g_main_loop_quit (self->loop);
}

static void
test_run_emits_each_batch (void)
{
  gint workers;

  for (workers = 0; workers <= 2; workers++)
    {
      g_autoptr (Counted) dataset = counted_new (7);
      g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers);
      Reader reader = reader_new ();

      g_signal_connect (loader, "batch", G_CALLBACK (on_batch), &reader);
      gtorch_data_loader_run_async (loader, NULL, on_run, &reader);
      g_main_loop_run (reader.loop);
      g_assert_no_error (reader.error);
      g_assert_true (reader.is_done);
      g_assert_cmpstr (reader.text->str, ==, "0 1|2 3|4 5|6");
      g_assert_cmpfloat (gtorch_data_loader_get_progress (loader), ==, 1);
      reader_clear (&reader);
    }
}

static void
test_run_ends_when_cancelled (void)
{
  gint workers;

  for (workers = 0; workers <= 2; workers++)
    {
      g_autoptr (Counted) dataset = counted_new (1000);
      g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers);
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      Reader reader = reader_new ();

      reader.cancel_after_2 = cancellable;
      g_signal_connect (loader, "batch", G_CALLBACK (on_batch), &reader);
      gtorch_data_loader_run_async (loader, cancellable, on_run, &reader);
      g_main_loop_run (reader.loop);
      g_assert_error (reader.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_assert_cmpint (reader.n_emitted, ==, 2);
      reader_clear (&reader);
    }
}

static void
test_run_reports_errors (void)
{
  gint workers;

  for (workers = 0; workers <= 1; workers++)
    {
      g_autoptr (Counted) dataset = counted_new (9);
      g_autoptr (GTorchDataLoader) loader = loader_of (dataset, workers);
      Reader reader = reader_new ();

      dataset->bad = 5;
      g_signal_connect (loader, "batch", G_CALLBACK (on_batch), &reader);
      gtorch_data_loader_run_async (loader, NULL, on_run, &reader);
      g_main_loop_run (reader.loop);
      g_assert_error (reader.error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
      g_assert_cmpint (reader.n_emitted, ==, 2);
      reader_clear (&reader);
    }
}

/* --- cancelling without workers --- */

/* A data set that does not look at its cancellable. */
#define TYPE_STUBBORN (stubborn_get_type ())
G_DECLARE_FINAL_TYPE (Stubborn, stubborn, TEST, STUBBORN, GTorchDataset)

struct _Stubborn
{
  GTorchDataset parent_instance;
  gint is_shut, n_asked; /* accessed atomically */
};

G_DEFINE_TYPE (Stubborn, stubborn, GTORCH_TYPE_DATASET)

static gint64
stubborn_get_length (GTorchDataset *dataset, GError **error)
{
  return 4;
}

static GTorchSample *
stubborn_get_item (GTorchDataset *dataset, gint64 index, GCancellable *cancellable, GError **error)
{
  Stubborn *self = TEST_STUBBORN (dataset);

  g_atomic_int_inc (&self->n_asked);
  while (g_atomic_int_get (&self->is_shut))
    g_usleep (50);
  return gtorch_sample_new_int (index);
}

static void
stubborn_class_init (StubbornClass *klass)
{
  GTORCH_DATASET_CLASS (klass)->get_length = stubborn_get_length;
  GTORCH_DATASET_CLASS (klass)->get_item = stubborn_get_item;
}

static void
stubborn_init (Stubborn *self)
{
}

static void
on_stubborn (GObject *iter, GAsyncResult *result, gpointer data)
{
  Reader *self = data;
  g_autoptr (GTorchSample) batch =
      gtorch_data_loader_iter_next_finish (GTORCH_DATA_LOADER_ITER (iter), result, &self->error);

  if (batch != NULL)
    add (self, batch);
  g_main_loop_quit (self->loop);
}

static gboolean
cancel (gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
  return G_SOURCE_REMOVE;
}

/* Begins a batch, which is cancelled while its thread is at a sample. */
static GTorchDataLoaderIter *
give_up (Stubborn *dataset, Reader *reader)
{
  g_autoptr (GTorchDataLoader) loader = loader_of (dataset, 0);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  GTorchDataLoaderIter *iter = gtorch_data_loader_iterate (loader, &error);

  g_assert_no_error (error);
  g_atomic_int_set (&dataset->is_shut, TRUE);
  gtorch_data_loader_iter_next_async (iter, cancellable, on_stubborn, reader);
  while (g_atomic_int_get (&dataset->n_asked) == 0)
    g_main_context_iteration (NULL, FALSE);
  g_idle_add (cancel, cancellable);
  g_main_loop_run (reader->loop); /* ends, although the data set is shut */
  g_assert_error (reader->error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&reader->error);
  g_assert_cmpint (gtorch_data_loader_iter_get_position (iter), ==, 0);
  return iter;
}

static gboolean
open_up (gpointer dataset)
{
  g_atomic_int_set (&TEST_STUBBORN (dataset)->is_shut, FALSE);
  return G_SOURCE_REMOVE;
}

static void
test_cancelling_ends_the_call_at_once (void)
{
  g_autoptr (Stubborn) dataset = g_object_new (TYPE_STUBBORN, NULL);
  Reader reader = reader_new ();
  g_autoptr (GTorchDataLoaderIter) iter = give_up (dataset, &reader);

  /* The next call gets the batch that the thread was at. */
  g_idle_add (open_up, dataset);
  gtorch_data_loader_iter_next_async (iter, NULL, on_stubborn, &reader);
  g_main_loop_run (reader.loop);
  g_assert_no_error (reader.error);
  gtorch_data_loader_iter_next_async (iter, NULL, on_stubborn, &reader);
  g_main_loop_run (reader.loop);
  g_assert_no_error (reader.error);
  g_assert_cmpstr (reader.text->str, ==, "0 1|2 3");
  g_assert_cmpint (dataset->n_asked, ==, 5); /* one of them for the batch that was given up */
  reader_clear (&reader);
}

static gpointer
open_later (gpointer dataset)
{
  g_usleep (20000);
  open_up (dataset);
  return NULL;
}

static void
test_a_waiting_call_gets_the_batch (void)
{
  g_autoptr (Stubborn) dataset = g_object_new (TYPE_STUBBORN, NULL);
  Reader reader = reader_new ();
  g_autoptr (GTorchDataLoaderIter) iter = give_up (dataset, &reader);
  g_autoptr (GError) error = NULL;
  GThread *thread = g_thread_new ("open", open_later, dataset);
  GTorchSample *batch;

  while ((batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL)
    {
      add (&reader, batch);
      gtorch_sample_unref (batch);
    }
  g_assert_no_error (error);
  g_assert_cmpstr (reader.text->str, ==, "0 1|2 3");
  g_thread_join (thread);
  reader_clear (&reader);
}

static void
on_gone (gpointer data, GObject *object)
{
  *(gboolean *) data = TRUE;
}

static void
test_an_iterator_may_go_while_a_batch_is_made (void)
{
  g_autoptr (Stubborn) dataset = g_object_new (TYPE_STUBBORN, NULL);
  Reader reader = reader_new ();
  GTorchDataLoaderIter *iter = give_up (dataset, &reader);
  gboolean is_gone = FALSE;

  g_object_weak_ref (G_OBJECT (iter), on_gone, &is_gone);
  gtorch_data_loader_iter_close (iter);
  g_object_unref (iter);
  open_up (dataset);
  while (!is_gone)
    g_main_context_iteration (NULL, TRUE);
  reader_clear (&reader);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/DataLoader/Async/" #name, test_##name)
  ADD (next_async_gives_all_batches);
  ADD (main_loop_goes_on_meanwhile);
  ADD (closing_ends_the_wait);
  ADD (another_thread_ends_the_wait);
  ADD (timeout_ends_the_wait);
  ADD (run_emits_each_batch);
  ADD (run_ends_when_cancelled);
  ADD (run_reports_errors);
  ADD (cancelling_ends_the_call_at_once);
  ADD (a_waiting_call_gets_the_batch);
  ADD (an_iterator_may_go_while_a_batch_is_made);
  return g_test_run ();
}
