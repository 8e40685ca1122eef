/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch.h>

/* A data set whose sample i is (tensor [i, 2 i], i), and which can be slow, blocked or faulty. */
#define TYPE_COUNTED (counted_get_type ())
G_DECLARE_FINAL_TYPE (Counted, counted, TEST, COUNTED, GTorchDataset)

struct _Counted
{
  GTorchDataset parent_instance;
  gint64 length;
  gint64 bad;   /* the sample with this index fails */
  gulong usecs; /* that a sample takes; looks at the cancellable meanwhile */
  gint n_asked; /* atomic */
  gint is_shut; /* atomic; while it is set, samples are waited for until they are cancelled */
};

G_DEFINE_TYPE (Counted, counted, GTORCH_TYPE_DATASET)

static gint64
counted_get_length (GTorchDataset *self, GError **error)
{
  return TEST_COUNTED (self)->length;
}

static GTorchSample *
counted_get_item (GTorchDataset *dataset, gint64 index, GCancellable *cancellable, GError **error)
{
  Counted *self = TEST_COUNTED (dataset);
  const gint64 end = g_get_monotonic_time () + (gint64) self->usecs;
  const gdouble values[] = { index, 2 * index };
  g_autoptr (GTorchTensor) tensor = NULL;
  GTorchSample *parts[2], *sample;

  g_atomic_int_inc (&self->n_asked);
  while (g_atomic_int_get (&self->is_shut) || g_get_monotonic_time () < end)
    {
      if (g_cancellable_set_error_if_cancelled (cancellable, error))
        return NULL;
      g_usleep (50);
    }
  if (index == self->bad)
    {
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "no file %d", (gint) index);
      return NULL;
    }
  tensor = gtorch_tensor_new_from_doubles (values, 2, (gint64[]){ 2 }, 1, GTORCH_DTYPE_FLOAT32,
                                           gtorch_device_cpu (), error);
  if (tensor == NULL)
    return NULL;
  parts[0] = gtorch_sample_new_tensor (tensor);
  parts[1] = gtorch_sample_new_int (index);
  sample = gtorch_sample_new_tuple (parts, 2, error);
  gtorch_sample_unref (parts[0]);
  gtorch_sample_unref (parts[1]);
  return sample;
}

static void
counted_class_init (CountedClass *klass)
{
  GTORCH_DATASET_CLASS (klass)->get_length = counted_get_length;
  GTORCH_DATASET_CLASS (klass)->get_item = counted_get_item;
}

static void
counted_init (Counted *self)
{
  self->bad = -1;
}

static G_GNUC_UNUSED Counted *
counted_new (gint64 length)
{
  Counted *self = g_object_new (TYPE_COUNTED, NULL);

  self->length = length;
  return self;
}

/* An iterable data set whose source of worker w gives w, w + n, w + 2 n, … below the length. */
#define TYPE_STREAMED (streamed_get_type ())
G_DECLARE_FINAL_TYPE (Streamed, streamed, TEST, STREAMED, GTorchIterableDataset)
#define TYPE_STREAMED_SOURCE (streamed_source_get_type ())
G_DECLARE_FINAL_TYPE (StreamedSource, streamed_source, TEST, STREAMED_SOURCE, GTorchSampleSource)

struct _Streamed
{
  GTorchIterableDataset parent_instance;
  gint64 length;
};

struct _StreamedSource
{
  GTorchSampleSource parent_instance;
  gint64 at, step, end;
};

G_DEFINE_TYPE (Streamed, streamed, GTORCH_TYPE_ITERABLE_DATASET)
G_DEFINE_TYPE (StreamedSource, streamed_source, GTORCH_TYPE_SAMPLE_SOURCE)

static GTorchSample *
streamed_source_next (GTorchSampleSource *source, GCancellable *cancellable, GError **error)
{
  StreamedSource *self = TEST_STREAMED_SOURCE (source);
  const gint64 at = self->at;

  if (at >= self->end)
    return NULL;
  self->at += self->step;
  return gtorch_sample_new_int (at);
}

static void
streamed_source_class_init (StreamedSourceClass *klass)
{
  GTORCH_SAMPLE_SOURCE_CLASS (klass)->next = streamed_source_next;
}

static void
streamed_source_init (StreamedSource *self)
{
}

static GTorchSampleSource *
streamed_iterate (GTorchIterableDataset *dataset, guint worker, guint n_workers, GError **error)
{
  StreamedSource *source = g_object_new (TYPE_STREAMED_SOURCE, NULL);

  source->at = worker;
  source->step = n_workers;
  source->end = TEST_STREAMED (dataset)->length;
  return GTORCH_SAMPLE_SOURCE (source);
}

static void
streamed_class_init (StreamedClass *klass)
{
  GTORCH_ITERABLE_DATASET_CLASS (klass)->iterate = streamed_iterate;
}

static void
streamed_init (Streamed *self)
{
}

static G_GNUC_UNUSED Streamed *
streamed_new (gint64 length)
{
  Streamed *self = g_object_new (TYPE_STREAMED, NULL);

  self->length = length;
  return self;
}

/* The integers of a tensor, as text: "3 1 2". */
static G_GNUC_UNUSED gchar *
ints_of (GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  g_autofree gint64 *values = NULL;
  GString *text = g_string_new (NULL);
  gsize n, i;

  values = gtorch_tensor_to_ints (tensor, &n, &error);
  g_assert_no_error (error);
  for (i = 0; i < n; i++)
    g_string_append_printf (text, i > 0 ? " %d" : "%d", (gint) values[i]);
  return g_string_free (text, FALSE);
}

/* The integers of a batch: of its last part, if it is a tuple. */
static G_GNUC_UNUSED gchar *
text_of (GTorchSample *batch)
{
  GTorchSample *part = batch;

  if (gtorch_sample_get_kind (batch) == GTORCH_SAMPLE_TUPLE)
    part = gtorch_sample_get_child (batch, -1, NULL);
  if (gtorch_sample_get_kind (part) == GTORCH_SAMPLE_INT)
    return g_strdup_printf ("%d", (gint) gtorch_sample_get_int (part));
  return ints_of (gtorch_sample_get_tensor (part));
}

/* Reads the rest of an epoch: "0 1|2 3|4". */
static G_GNUC_UNUSED gchar *
read_all (GTorchDataLoaderIter *iter)
{
  g_autoptr (GError) error = NULL;
  GString *text = g_string_new (NULL);
  GTorchSample *batch;

  while ((batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL)
    {
      g_autofree gchar *numbers = text_of (batch);

      g_string_append_printf (text, text->len > 0 ? "|%s" : "%s", numbers);
      gtorch_sample_unref (batch);
    }
  g_assert_no_error (error);
  return g_string_free (text, FALSE);
}

static G_GNUC_UNUSED gchar *
read_epoch (GTorchDataLoader *loader)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);

  g_assert_no_error (error);
  return read_all (iter);
}

#define assert_text(text, expected)          \
  G_STMT_START                               \
  {                                          \
    g_autofree gchar *_text = (text);        \
                                             \
    g_assert_cmpstr (_text, ==, (expected)); \
  }                                          \
  G_STMT_END
