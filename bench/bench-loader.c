/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How fast one consumer gets batches of tensors in memory, by rows of 4 kB and of 600 kB (images of
 * 3 x 224 x 224 floats), which are larger than caches together. Prints GB copied per second, of the best of
 * five epochs. Columns:
 *
 * - memcpy: one thread copies batches in order to the same memory.
 * - copy: each thread copies its part to memory of its own, as STREAM's copy does, and
 * - rows: rows of its part in random order to the same memory. Threads do not wait for each other, so these
 *   two are what the machine can do.
 * - select: index_select of the shuffled batches.
 * - the loader, in order and shuffled, without workers and with two. */

#include "config.h"

#include <string.h>
#include <sys/mman.h>

#include <gtorch/gtorch.h>

#define N_EPOCHS 5

/* What a thread copies: n rows of `from` in an order, `batch` of them after each other to `to`. */
typedef struct
{
  const gchar *from;
  gchar *to;
  const gint64 *order; /* NULL: as they lie */
  gsize n, size, batch;
} Part;

static gpointer
copy_part (gpointer data)
{
  const Part *part = data;
  gsize i, run = part->order != NULL ? 1 : part->batch;

  for (i = 0; i + run <= part->n; i += run)
    memcpy (part->to + i % part->batch * part->size,
            part->from + (part->order != NULL ? (gsize) part->order[i] : i) * part->size,
            run * part->size);
  return NULL;
}

/* In pages like those of the library's allocator: small ones make rows wait for the page table. */
static gchar *
reserve (gsize n_bytes)
{
  const gsize page = 2 * 1024 * 1024;
  gchar *memory = g_aligned_alloc (1, (n_bytes + page - 1) / page * page, page);

  madvise (memory, n_bytes, MADV_HUGEPAGE);
  memset (memory, 1, n_bytes);
  return memory;
}

static gdouble
copy (gsize n, gsize size, gsize batch, const gint64 *order, guint n_threads)
{
  const gsize share = n / n_threads;
  gchar *from = reserve (n * size), *to = reserve (n_threads * batch * size);
  g_autofree Part *parts = g_new (Part, n_threads);
  g_autofree GThread **threads = g_new (GThread *, n_threads);
  gdouble best = 0;
  guint epoch, i;

  for (epoch = 0; epoch < N_EPOCHS; epoch++)
    {
      const gint64 start = g_get_monotonic_time ();

      for (i = 0; i < n_threads; i++)
        {
          parts[i] = (Part){ order != NULL ? from : from + i * share * size,
                             to + i * batch * size,
                             order != NULL ? order + i * share : NULL,
                             share,
                             size,
                             batch };
          threads[i] = g_thread_new ("copy", copy_part, &parts[i]);
        }
      for (i = 0; i < n_threads; i++)
        g_thread_join (threads[i]);
      best = MAX (best, (gdouble) (share * n_threads * size)
                            / (gdouble) (g_get_monotonic_time () - start) / 1e3);
    }
  g_aligned_free (from);
  g_aligned_free (to);
  return best;
}

/* Without a loader, and without the time that the tensors of positions take. */
static gdouble
pick (GTorchTensor *x, const gint64 *order, gsize n, gsize size, gsize batch)
{
  g_autoptr (GPtrArray) indices = g_ptr_array_new_with_free_func (g_object_unref);
  gdouble best = 0;
  guint epoch, i;

  for (i = 0; i < n / batch; i++)
    g_ptr_array_add (indices,
                     gtorch_tensor_new_from_ints (order + i * batch, batch, (gint64[]){ batch }, 1,
                                                  GTORCH_DTYPE_INT64, gtorch_device_cpu (), NULL));
  for (epoch = 0; epoch < N_EPOCHS; epoch++)
    {
      const gint64 start = g_get_monotonic_time ();

      for (i = 0; i < indices->len; i++)
        {
          g_autoptr (GError) error = NULL;
          g_autoptr (GTorchTensor) rows =
              gtorch_tensor_index_select (x, 0, indices->pdata[i], &error);

          if (rows == NULL)
            g_error ("%s", error->message);
        }
      best = MAX (best, (gdouble) (indices->len * batch * size)
                            / (gdouble) (g_get_monotonic_time () - start) / 1e3);
    }
  return best;
}

static gdouble
load (GTorchDataset *dataset, gint64 batch_size, gboolean shuffle, gint workers)
{
  g_autoptr (GTorchDataLoader) loader =
      g_object_new (GTORCH_TYPE_DATA_LOADER, "dataset", dataset, "batch-size", batch_size,
                    "shuffle", shuffle, "num-workers", workers, "persistent-workers", workers > 0,
                    NULL);
  gdouble best = 0;
  guint epoch;

  for (epoch = 0; epoch < N_EPOCHS; epoch++)
    {
      g_autoptr (GError) error = NULL;
      const gint64 start = g_get_monotonic_time ();
      g_autoptr (GTorchDataLoaderIter) iter = gtorch_data_loader_iterate (loader, &error);
      GTorchSample *batch;
      gsize n_bytes = 0;

      while ((batch = gtorch_data_loader_iter_next (iter, NULL, &error)) != NULL)
        {
          n_bytes += gtorch_sample_get_n_bytes (batch);
          gtorch_sample_unref (batch);
        }
      if (error != NULL)
        g_error ("%s", error->message);
      best = MAX (best, (gdouble) n_bytes / (gdouble) (g_get_monotonic_time () - start) / 1e3);
    }
  return best;
}

static gint64 *
shuffle (gsize n)
{
  gint64 *order = g_new (gint64, n);
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  gsize i;

  for (i = 0; i < n; i++)
    order[i] = i;
  for (i = n - 1; i > 0; i--)
    {
      const gsize j = g_rand_int_range (rand, 0, i + 1);
      const gint64 former = order[i];

      order[i] = order[j];
      order[j] = former;
    }
  return order;
}

int
main (void)
{
  const gint64 rows[][2] = { { 131072, 1024 }, { 1024, 3 * 224 * 224 } };
  const guint n_threads = gtorch_get_num_threads ();
  guint i;

  g_print ("%u threads\n%12s %8s %8s %8s %8s %8s %9s %9s %9s\n", n_threads, "row", "memcpy", "copy",
           "rows", "select", "order", "shuffled", "2 workers", "shuffled");
  for (i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x =
          gtorch_ones (rows[i], 2, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error);
      g_autoptr (GTorchTensorDataset) dataset = gtorch_tensor_dataset_new (&x, 1, &error);
      g_autofree gint64 *order = shuffle (rows[i][0]);
      const gsize n = (gsize) rows[i][0], size = (gsize) rows[i][1] * sizeof (gfloat);
      const gint64 batch = i == 0 ? 1024 : 32;

      if (error != NULL)
        g_error ("%s", error->message);
      g_print ("%9.1f kB %8.2f %8.2f %8.2f %8.2f", (gdouble) size / 1e3,
               copy (n, size, batch, NULL, 1), copy (n, size, n / n_threads, NULL, n_threads),
               copy (n, size, batch, order, n_threads), pick (x, order, n, size, batch));
      g_print (" %8.2f %9.2f %9.2f %9.2f\n", load (GTORCH_DATASET (dataset), batch, FALSE, 0),
               load (GTORCH_DATASET (dataset), batch, TRUE, 0),
               load (GTORCH_DATASET (dataset), batch, FALSE, 2),
               load (GTORCH_DATASET (dataset), batch, TRUE, 2));
    }
  return 0;
}
