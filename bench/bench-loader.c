/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How fast one consumer gets batches of tensors in memory, beside memcpy () of as many bytes. Prints GB
 * of batches per second, of the best of five epochs: without workers and with them, in order and
 * shuffled, by rows of 4 kB and of 600 kB (images of 3 x 224 x 224 floats). */

#include "config.h"

#include <string.h>

#include <gtorch/gtorch.h>

#define N_EPOCHS 5

static gdouble
copy (gsize n_bytes, gsize batch)
{
  g_autofree gchar *from = g_malloc (n_bytes);
  g_autofree gchar *to = g_malloc (batch);
  gdouble best = 0;
  guint epoch;

  memset (from, 1, n_bytes);
  for (epoch = 0; epoch < N_EPOCHS; epoch++)
    {
      const gint64 start = g_get_monotonic_time ();
      gsize at;

      for (at = 0; at + batch <= n_bytes; at += batch)
        memcpy (to, from + at, batch);
      best = MAX (best, (gdouble) at / (gdouble) (g_get_monotonic_time () - start) / 1e3);
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

int
main (void)
{
  const gint64 rows[][2] = { { 131072, 1024 }, { 1024, 3 * 224 * 224 } };
  guint i;

  g_print ("%12s %8s %8s %9s %9s %9s\n", "row", "memcpy", "order", "shuffled", "2 workers",
           "shuffled");
  for (i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x =
          gtorch_ones (rows[i], 2, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error);
      g_autoptr (GTorchTensorDataset) dataset = gtorch_tensor_dataset_new (&x, 1, &error);
      const gsize size = (gsize) rows[i][1] * sizeof (gfloat);
      const gint64 batch = i == 0 ? 1024 : 32;

      if (error != NULL)
        g_error ("%s", error->message);
      g_print ("%9.1f kB %8.2f %8.2f %9.2f %9.2f %9.2f\n", (gdouble) size / 1e3,
               copy ((gsize) rows[i][0] * size, (gsize) batch * size),
               load (GTORCH_DATASET (dataset), batch, FALSE, 0),
               load (GTORCH_DATASET (dataset), batch, TRUE, 0),
               load (GTORCH_DATASET (dataset), batch, FALSE, 2),
               load (GTORCH_DATASET (dataset), batch, TRUE, 2));
    }
  return 0;
}
