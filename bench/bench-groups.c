/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* One rank of a measurement of collectives among GPUs: bench-groups RANK N FILE [small]. bench/multi/multi.py
 * starts it. Rank 0 prints, as JSON, the time of a call, what the host takes of it, and the bus bandwidth. */

#include "config.h"

#include <stdlib.h>

#include <gtorch/gtorch.h>

#define N_ROUNDS 3

static GTorchDevice *device;
static GTorchProcessGroup *group;
static GString *rows;

static void
check (gboolean success, GError *error)
{
  if (!success)
    g_error ("%s", error->message);
}

static void
reduce (GTorchTensor *tensor, gboolean waits)
{
  GError *error = NULL;
  g_autoptr (GTorchWork) work =
      gtorch_process_group_all_reduce (group, tensor, GTORCH_REDUCE_OP_SUM, &error);

  check (work != NULL && (!waits || gtorch_work_wait (work, -1, NULL, &error)), error);
}

static void
synchronize (void)
{
  GError *error = NULL;

  check (gtorch_device_synchronize (device, NULL, &error), error);
}

static void
measure (GTorchTensor *whole, gint64 size, gint n, gint n_calls)
{
  gdouble best = 1e9, host = 1e9;
  GError *error = NULL;
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (whole, 0, 0, size / 4, &error);
  gint round, i;

  check (part != NULL, error);
  for (i = 0; i < 5; i++)
    reduce (part, TRUE);
  synchronize ();
  for (round = 0; round < N_ROUNDS; round++)
    {
      const gint64 start = g_get_monotonic_time ();

      for (i = 0; i < n_calls; i++)
        reduce (part, TRUE);
      host = MIN (host, (gdouble) (g_get_monotonic_time () - start) / n_calls);
      synchronize ();
      best = MIN (best, (gdouble) (g_get_monotonic_time () - start) / n_calls);
    }
  g_string_append_printf (rows,
                          "%s{\"name\": \"all_reduce\", \"bytes\": %" G_GINT64_FORMAT
                          ", \"us\": %.2f, \"host\": %.2f, \"bus\": %.2f}",
                          rows->len > 0 ? ", " : "", size, best, host,
                          size * 2.0 * (n - 1) / n / best / 1000);
}

int
main (int argc, char **argv)
{
  static const gint64 sizes[] = { 4, 1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30 };
  g_autoptr (GTorchStore) store = NULL;
  g_autoptr (GTorchTensor) whole = NULL;
  g_autoptr (GError) error = NULL;
  gint64 largest, numel;
  gint rank, n;
  guint i;

  if (argc < 4)
    g_error ("bench-groups RANK N FILE [small]");
  rank = atoi (argv[1]);
  n = atoi (argv[2]);
  largest = argc > 4 ? 1 << 22 : 1 << 30;
  rows = g_string_new (NULL);
  store = GTORCH_STORE (gtorch_file_store_new (argv[3], &error));
  check (store != NULL, error);
  device = gtorch_device_cuda (rank, &error);
  check (device != NULL && gtorch_device_set_current (device, &error), error);
  group = gtorch_process_group_new ("nccl", store, rank, n, 60, NULL, &error);
  check (group != NULL && gtorch_process_group_bind_device (group, device, NULL, &error), error);
  numel = largest / 4;
  whole = gtorch_zeros (&numel, 1, GTORCH_DTYPE_FLOAT32, device, &error);
  check (whole != NULL, error);
  for (i = 0; i < G_N_ELEMENTS (sizes) && sizes[i] <= largest; i++)
    measure (whole, sizes[i], n, sizes[i] <= 1 << 20 ? 100 : sizes[i] <= 1 << 28 ? 10 : 4);
  if (rank == 0)
    g_print ("ROWS [%s]\n", rows->str);
  g_string_free (rows, TRUE);
  g_object_unref (group);
  return 0;
}
