/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Data sets, and those that are made of others. */

#include "config.h"

#include <string.h>

#include "data-test.h"

/* The index of a sample of a Counted data set. */
static gint64
number_of (gpointer dataset, gint64 index)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSample) sample =
      gtorch_dataset_get_item (GTORCH_DATASET (dataset), index, NULL, &error);

  g_assert_no_error (error);
  return gtorch_sample_get_int (gtorch_sample_get_child (sample, -1, NULL));
}

static gint64
length_of (gpointer dataset)
{
  g_autoptr (GError) error = NULL;
  gint64 length = gtorch_dataset_get_length (GTORCH_DATASET (dataset), &error);

  g_assert_no_error (error);
  return length;
}

static void
assert_refused (gpointer dataset, gint64 index, gint code, const gchar *message)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_dataset_get_item (GTORCH_DATASET (dataset), index, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_cmpstr (error->message, ==, message);
}

static GTorchTensorDataset *
rows_new (GError **error)
{
  g_autoptr (GTorchTensor) x =
      gtorch_arange_int (0, 8, 1, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), error);
  g_autoptr (GTorchTensor) rows = gtorch_tensor_reshape (x, (gint64[]){ 4, 2 }, 2, error);
  g_autoptr (GTorchTensor) y =
      gtorch_arange_int (0, 4, 1, GTORCH_DTYPE_INT64, gtorch_device_cpu (), error);

  return gtorch_tensor_dataset_new ((GTorchTensor *[]){ rows, y }, 2, error);
}

static void
test_negative_indices_count_from_the_end (void)
{
  g_autoptr (Counted) dataset = counted_new (4);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSample) batch = NULL;

  g_assert_cmpint (number_of (dataset, -1), ==, 3);
  g_assert_cmpint (number_of (dataset, -4), ==, 0);
  assert_refused (dataset, -5, GTORCH_ERROR_INDEX,
                  "dataset: index -5 is out of range for 4 samples");
  batch = gtorch_dataset_get_batch (GTORCH_DATASET (dataset), (gint64[]){ -1, 1 }, 2, NULL, &error);
  g_assert_no_error (error);
  assert_text (text_of (batch), "3 1");
}

static void
test_cancelled_gives_nothing (void)
{
  g_autoptr (Counted) dataset = counted_new (4);
  g_autoptr (GTorchTensorDataset) rows = rows_new (NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_cancellable_cancel (cancellable);
  g_assert_null (gtorch_dataset_get_item (GTORCH_DATASET (dataset), 0, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_null (
      gtorch_dataset_get_batch (GTORCH_DATASET (rows), (gint64[]){ 0 }, 1, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static void
test_tensors_are_rows (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensorDataset) dataset = rows_new (&error);
  g_autoptr (GTorchSample) batch = NULL;
  g_autoptr (GPtrArray) tensors = gtorch_tensor_dataset_get_tensors (dataset);
  g_autoptr (GTorchTensor) scalar = gtorch_full (NULL, 0, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_autoptr (GTorchTensor) five =
      gtorch_full ((gint64[]){ 5 }, 1, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpint (length_of (dataset), ==, 4);
  g_assert_cmpint (tensors->len, ==, 2);
  assert_refused (dataset, 4, GTORCH_ERROR_INDEX,
                  "tensor_dataset: index 4 is out of range for 4 samples");
  batch =
      gtorch_dataset_get_batch (GTORCH_DATASET (dataset), (gint64[]){ 3, 0, 1 }, 3, NULL, &error);
  assert_text (text_of (batch), "3 0 1");
  assert_text (ints_of (gtorch_sample_get_tensor (gtorch_sample_get_child (batch, 0, NULL))),
               "6 7 0 1 2 3");
  /* A batch is a copy, a sample a view. */
  g_assert_false (gtorch_tensor_shares_storage (gtorch_sample_get_tensor (
                                                    gtorch_sample_get_child (batch, 0, NULL)),
                                                tensors->pdata[0]));
  g_assert_null (
      gtorch_tensor_dataset_new ((GTorchTensor *[]){ tensors->pdata[0], five }, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "tensor_dataset: tensor 0 has the shape [4, 2], and tensor 1 [5]: the first "
                   "dimensions must have the same size");
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_dataset_new (&scalar, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "tensor_dataset: tensor 0 has no dimensions: samples are the rows of tensors");
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_dataset_new (NULL, 0, &error));
  g_assert_cmpstr (error->message, ==, "tensor_dataset: there must be a tensor");
}

static void
test_released_tensors_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensorDataset) dataset = rows_new (&error);
  g_autoptr (GPtrArray) tensors = gtorch_tensor_dataset_get_tensors (dataset);

  gtorch_tensor_release (tensors->pdata[1]);
  g_assert_null (gtorch_dataset_get_item (GTORCH_DATASET (dataset), 0, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_clear_error (&error);
  g_assert_null (
      gtorch_dataset_get_batch (GTORCH_DATASET (dataset), (gint64[]){ 0 }, 1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
}

static void
test_subset_has_some (void)
{
  g_autoptr (Counted) dataset = counted_new (10);
  g_autoptr (GTorchSubset) subset =
      gtorch_subset_new (GTORCH_DATASET (dataset), (gint64[]){ 7, 2, -1 }, 3);
  g_autoptr (GTorchSample) batch = NULL;

  g_assert_cmpint (length_of (subset), ==, 3);
  g_assert_cmpint (number_of (subset, 0), ==, 7);
  g_assert_cmpint (number_of (subset, -1), ==, 9);
  batch = gtorch_dataset_get_batch (GTORCH_DATASET (subset), (gint64[]){ 1, 0 }, 2, NULL, NULL);
  assert_text (text_of (batch), "2 7");
  assert_refused (subset, 3, GTORCH_ERROR_INDEX, "subset: index 3 is out of range for 3 samples");
  gtorch_dataset_set_thread_safe (GTORCH_DATASET (dataset), FALSE);
  {
    g_autoptr (GTorchSubset) unsafe = gtorch_subset_new (GTORCH_DATASET (dataset), NULL, 0);

    g_assert_false (gtorch_dataset_get_thread_safe (GTORCH_DATASET (unsafe)));
  }
}

static void
test_split_has_each_sample_once (void)
{
  g_autoptr (Counted) dataset = counted_new (10);
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) parts =
      gtorch_random_split (GTORCH_DATASET (dataset), (gint64[]){ 7, 0, 3 }, 3, generator, &error);
  g_autoptr (GPtrArray) fractions =
      gtorch_random_split_fractions (GTORCH_DATASET (dataset), (gdouble[]){ 0.33, 0.33, 0.34 }, 3,
                                     NULL, &error);
  gboolean seen[10] = { FALSE };
  guint i;
  gint64 k;

  g_assert_no_error (error);
  g_assert_cmpint (length_of (parts->pdata[0]), ==, 7);
  g_assert_cmpint (length_of (parts->pdata[1]), ==, 0);
  for (i = 0; i < 3; i++)
    for (k = 0; k < length_of (parts->pdata[i]); k++)
      seen[number_of (parts->pdata[i], k)] = TRUE;
  for (i = 0; i < 10; i++)
    g_assert_true (seen[i]);
  g_assert_cmpint (length_of (fractions->pdata[0]), ==, 4);
  g_assert_cmpint (length_of (fractions->pdata[1]), ==, 3);
  g_assert_cmpint (length_of (fractions->pdata[2]), ==, 3);
  g_assert_null (
      gtorch_random_split (GTORCH_DATASET (dataset), (gint64[]){ 7, 2 }, 2, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "random_split: the lengths have the sum 9, and the data set has 10 samples");
  g_clear_error (&error);
  g_assert_null (
      gtorch_random_split (GTORCH_DATASET (dataset), (gint64[]){ 11, -1 }, 2, NULL, &error));
  g_assert_cmpstr (error->message, ==, "random_split: part 1 cannot have -1 samples of 10");
  g_clear_error (&error);
  g_assert_null (gtorch_random_split_fractions (GTORCH_DATASET (dataset), (gdouble[]){ 0.5, 0.6 },
                                                2, NULL, &error));
  g_assert_cmpstr (error->message, ==, "random_split: the fractions have the sum 1.1, not 1");
}

/* A data set of numbers and their names that makes batches itself. */
#define TYPE_NAMED (named_get_type ())
G_DECLARE_FINAL_TYPE (Named, named, TEST, NAMED, GTorchDataset)

struct _Named
{
  GTorchDataset parent_instance;
  gint64 first, width;
  guint n_batches;
};

G_DEFINE_TYPE (Named, named, GTORCH_TYPE_DATASET)

static gint64
named_get_length (GTorchDataset *self, GError **error)
{
  return 4;
}

static GTorchSample *
named_get_item (GTorchDataset *dataset, gint64 index, GCancellable *cancellable, GError **error)
{
  Named *self = TEST_NAMED (dataset);
  g_autofree gchar *name = g_strdup_printf ("number %d", (gint) (self->first + index));
  g_autoptr (GTorchTensor) tensor = gtorch_full (&self->width, 1, (gdouble) (self->first + index),
                                                 GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), error);
  const gchar *keys[] = { "x", "name", NULL };
  GTorchSample *parts[] = { gtorch_sample_new_tensor (tensor), gtorch_sample_new_string (name) };
  GTorchSample *sample = gtorch_sample_new_dict (keys, parts, 2, error);

  gtorch_sample_unref (parts[0]);
  gtorch_sample_unref (parts[1]);
  return sample;
}

static GTorchSample *
named_get_batch (GTorchDataset *dataset, const gint64 *indices, gsize n, GCancellable *cancellable,
                 GError **error)
{
  g_autofree GTorchSample **samples = g_new (GTorchSample *, n);
  GTorchSample *batch;
  gsize i;

  TEST_NAMED (dataset)->n_batches++;
  for (i = 0; i < n; i++)
    samples[i] = named_get_item (dataset, indices[i], cancellable, error);
  batch = gtorch_sample_collate (samples, n, error);
  for (i = 0; i < n; i++)
    gtorch_sample_unref (samples[i]);
  return batch;
}

static void
named_class_init (NamedClass *klass)
{
  GTORCH_DATASET_CLASS (klass)->get_length = named_get_length;
  GTORCH_DATASET_CLASS (klass)->get_item = named_get_item;
  GTORCH_DATASET_CLASS (klass)->get_batch = named_get_batch;
}

static void
named_init (Named *self)
{
  self->width = 3;
}

static Named *
named_new (gint64 first)
{
  Named *self = g_object_new (TYPE_NAMED, NULL);

  self->first = first;
  return self;
}

static void
assert_named (GTorchSample *batch, const gint64 *numbers, gsize n)
{
  GTorchTensor *x = gtorch_sample_get_tensor (gtorch_sample_lookup (batch, "x"));
  GTorchSample *names = gtorch_sample_lookup (batch, "name");
  g_autofree gdouble *values = NULL;
  gsize n_values, i;

  g_assert_nonnull (batch);
  g_assert_cmpint (gtorch_tensor_get_numel (x), ==, 3 * (gint64) n);
  g_assert_cmpint (gtorch_sample_get_n_children (names), ==, n);
  values = gtorch_tensor_to_doubles (x, &n_values, NULL);
  for (i = 0; i < n; i++)
    {
      g_autofree gchar *name = g_strdup_printf ("number %d", (gint) numbers[i]);

      g_assert_cmpfloat (values[3 * i], ==, (gdouble) numbers[i]);
      g_assert_cmpfloat (values[3 * i + 2], ==, (gdouble) numbers[i]);
      g_assert_cmpstr (gtorch_sample_get_string (gtorch_sample_get_child (names, i, NULL)), ==,
                       name);
    }
}

static void
test_batches_of_joined_data_sets (void)
{
  g_autoptr (Named) low = named_new (0);
  g_autoptr (Named) high = named_new (10);
  g_autoptr (Counted) plain = counted_new (2);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchConcatDataset) concat =
      gtorch_concat_dataset_new ((GTorchDataset *[]){ GTORCH_DATASET (low), GTORCH_DATASET (high),
                                                      GTORCH_DATASET (plain) },
                                 3, &error);
  const gint64 mixed[] = { 6, 0, -3, 2, 0 }, some[] = { 1, 0 }, wrong[] = { 3, 8 };
  g_autoptr (GTorchSubset) subset = gtorch_subset_new (GTORCH_DATASET (concat), mixed, 5);
  GTorchSample *batch;

  /* Each is asked once, and one whose samples are not wanted is not. */
  batch = gtorch_dataset_get_batch (GTORCH_DATASET (concat), mixed, 5, NULL, &error);
  g_assert_no_error (error);
  assert_named (batch, (gint64[]){ 12, 0, 13, 2, 0 }, 5);
  gtorch_sample_unref (batch);
  g_assert_cmpint (low->n_batches, ==, 1);
  g_assert_cmpint (high->n_batches, ==, 1);
  g_assert_cmpint (plain->n_asked, ==, 0);
  batch = gtorch_dataset_get_batch (GTORCH_DATASET (subset), some, 2, NULL, &error);
  g_assert_no_error (error);
  assert_named (batch, (gint64[]){ 0, 12 }, 2);
  gtorch_sample_unref (batch);

  /* What cannot be put together is refused. */
  g_assert_null (gtorch_dataset_get_batch (GTORCH_DATASET (concat), wrong, 2, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "concat_dataset: the batch of data set 0 has a dictionary of {x, name}, and "
                   "that "
                   "of data set 2 a tuple of 2: the kinds must be equal");
  g_clear_error (&error);
  high->width = 2;
  g_assert_null (gtorch_dataset_get_batch (GTORCH_DATASET (concat), mixed, 5, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "concat_dataset: the batch of data set 0 has a tensor of float32 [3, 3], and "
                   "that of data set 1 a tensor of float32 [2, 2] at [\"x\"]: the shapes behind "
                   "the "
                   "first dimension must be equal");
}

static void
test_joined_data_sets (void)
{
  g_autoptr (Counted) three = counted_new (3);
  g_autoptr (Counted) none = counted_new (0);
  g_autoptr (Counted) two = counted_new (2);
  g_autoptr (Streamed) streamed = streamed_new (2);
  const gchar *keys[] = { "p", "q", NULL };
  const gchar *same[] = { "p", "p", NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchConcatDataset) concat =
      gtorch_concat_dataset_new ((GTorchDataset *[]){ GTORCH_DATASET (three), GTORCH_DATASET (none),
                                                      GTORCH_DATASET (two) },
                                 3, &error);
  g_autoptr (GTorchStackDataset) stack =
      gtorch_stack_dataset_new_with_keys (keys,
                                          (GTorchDataset *[]){ GTORCH_DATASET (two),
                                                               GTORCH_DATASET (two) },
                                          2, &error);
  g_autoptr (GTorchChainDataset) chain =
      gtorch_chain_dataset_new ((GTorchDataset *[]){ GTORCH_DATASET (streamed),
                                                     GTORCH_DATASET (streamed) },
                                2, &error);
  g_autoptr (GTorchDataLoader) loader = NULL;
  g_autoptr (GTorchSample) sample = NULL;

  g_assert_no_error (error);
  g_assert_cmpint (length_of (concat), ==, 5);
  g_assert_cmpint (number_of (concat, 2), ==, 2);
  g_assert_cmpint (number_of (concat, 3), ==, 0);
  g_assert_cmpint (number_of (concat, -1), ==, 1);
  assert_refused (concat, 5, GTORCH_ERROR_INDEX,
                  "concat_dataset: index 5 is out of range for 5 samples");
  g_assert_cmpint (length_of (stack), ==, 2);
  sample = gtorch_dataset_get_item (GTORCH_DATASET (stack), 1, NULL, &error);
  assert_text (gtorch_sample_to_string (sample),
               "{p: (tensor float32 [2], 1), q: (tensor float32 [2], 1)}");
  loader = gtorch_data_loader_new (GTORCH_DATASET (chain), 3, FALSE);
  assert_text (read_epoch (loader), "0 1 0|1");
  assert_refused (chain, 0, GTORCH_ERROR_NOT_SUPPORTED,
                  "dataset: the samples of GTorchChainDataset have no indices, so there is no "
                  "sample 0: they come one after another");
  g_assert_null (
      gtorch_stack_dataset_new ((GTorchDataset *[]){ GTORCH_DATASET (two), GTORCH_DATASET (three) },
                                2, &error));
  g_assert_cmpstr (error->message, ==,
                   "stack_dataset: data set 0 has 2 samples, and data set 1 3: the lengths must be "
                   "equal");
  g_clear_error (&error);
  g_assert_null (gtorch_stack_dataset_new_with_keys (same,
                                                     (GTorchDataset *[]){ GTORCH_DATASET (two),
                                                                          GTORCH_DATASET (two) },
                                                     2, &error));
  g_assert_cmpstr (error->message, ==, "stack_dataset: the key \"p\" is there twice");
  g_clear_error (&error);
  g_assert_null (
      gtorch_concat_dataset_new ((GTorchDataset *[]){ GTORCH_DATASET (streamed) }, 1, &error));
  g_assert_cmpstr (error->message, ==,
                   "concat_dataset: data set 0 is a Streamed, whose samples have no indices");
  g_clear_error (&error);
  g_assert_null (gtorch_chain_dataset_new ((GTorchDataset *[]){ GTORCH_DATASET (two) }, 1, &error));
  g_assert_cmpstr (error->message, ==,
                   "chain_dataset: data set 0 is a Counted, which is not iterable");
  g_clear_error (&error);
  g_assert_null (gtorch_concat_dataset_new (NULL, 0, &error));
  g_assert_cmpstr (error->message, ==, "concat_dataset: there must be a data set");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/Dataset/" #name, test_##name)
  ADD (negative_indices_count_from_the_end);
  ADD (cancelled_gives_nothing);
  ADD (tensors_are_rows);
  ADD (released_tensors_are_refused);
  ADD (subset_has_some);
  ADD (split_has_each_sample_once);
  ADD (joined_data_sets);
  ADD (batches_of_joined_data_sets);
  return g_test_run ();
}
