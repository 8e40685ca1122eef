/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a profiler costs an operation on the host: `add` of 16 numbers on the CPU or, with the argument
 * "cuda", on a GPU, where nothing waits for the kernels, or with "stream" in a stream of the CPU, until
 * that has computed all. Prints nanoseconds, the best of several rounds,
 * without a profiler and with each setting. The number of calls between start and stop is small, so that
 * buffers stay in the cache as they do in a step of a program. "callgrind" calls add a hundred thousand
 * times without a profiler, to be counted. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <stdio.h>
#include <string.h>

#define N_CALLS  2000
#define N_ROUNDS 200 /* of the CPU; beginning and ending a profile of a GPU takes long */

typedef struct
{
  const gchar *name;
  gboolean is_on, shapes, memory, stack, flops;
} Setting;

/* clang-format off */
static const Setting settings[] = {
  { "off",                         FALSE, FALSE, FALSE, FALSE, FALSE },
  { "on",                          TRUE,  FALSE, FALSE, FALSE, FALSE },
  { "with shapes",                 TRUE,  TRUE,  FALSE, FALSE, FALSE },
  { "with shapes, memory, FLOPs",  TRUE,  TRUE,  TRUE,  FALSE, TRUE },
  { "with all that and frames",    TRUE,  TRUE,  TRUE,  TRUE,  TRUE },
};
/* clang-format on */

static GTorchStream *stream; /* of the CPU; NULL: none */

static void
call (GTorchTensor *x, guint n)
{
  while (n-- > 0)
    {
      GTorchTensor *y = gtorch_tensor_add (x, x, 1, NULL);

      gtorch_tensor_unref (y);
    }
  if (stream != NULL && !gtorch_stream_synchronize (stream, NULL, NULL))
    g_error ("the stream has failed");
}

static gdouble
measure (GTorchTensor *x, GTorchDevice *device, const Setting *setting)
{
  gdouble best = 1e9;
  const guint n_rounds = device == gtorch_device_cpu () ? N_ROUNDS : N_ROUNDS / 20;
  guint i;

  for (i = 0; i < n_rounds; i++)
    {
      g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
      g_autoptr (GError) error = NULL;
      gint64 begin;

      g_object_set (profiler, "record-shapes", setting->shapes, "profile-memory", setting->memory,
                    "with-stack", setting->stack, "with-flops", setting->flops, NULL);
      if (setting->is_on && !gtorch_profiler_start (profiler, &error))
        g_error ("%s", error->message);
      call (x, 100);
      begin = g_get_monotonic_time ();
      call (x, N_CALLS);
      best = MIN (best, (g_get_monotonic_time () - begin) * 1e3 / N_CALLS);
      if (setting->is_on && !gtorch_profiler_stop (profiler, &error))
        g_error ("%s", error->message);
      gtorch_device_synchronize (device, NULL, NULL);
    }
  return best;
}

static gdouble
measure_ranges (gboolean is_on)
{
  gdouble best = 1e9;
  guint i, j;

  for (i = 0; i < N_ROUNDS; i++)
    {
      g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
      gint64 begin;

      if (is_on)
        gtorch_profiler_start (profiler, NULL);
      begin = g_get_monotonic_time ();
      for (j = 0; j < N_CALLS; j++)
        gtorch_profile_range_unref (gtorch_profile_range_new ("a range"));
      best = MIN (best, (g_get_monotonic_time () - begin) * 1e3 / N_CALLS);
      if (is_on)
        gtorch_profiler_stop (profiler, NULL);
    }
  return best;
}

gint
main (gint argc, gchar **argv)
{
  const gboolean is_stream = argc > 1 && g_str_equal (argv[1], "stream");
  const gboolean is_other = argc > 1 && !g_str_equal (argv[1], "callgrind") && !is_stream;
  const gchar *name = is_other ? argv[1] : "cpu";
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDevice) device = gtorch_device_new_from_string (name, &error);
  g_autoptr (GTorchTensor) x = NULL;
  gdouble off = 0;
  guint i;

  if (device == NULL)
    {
      fprintf (stderr, "%s\n", error->message);
      return 1;
    }
  if (is_stream)
    {
      stream = gtorch_stream_new (device, 0, &error);
      g_assert_no_error (error);
      gtorch_stream_set_current (stream);
    }
  x = gtorch_full (GTORCH_SHAPE (16), 1, GTORCH_DTYPE_FLOAT32, device, &error);
  g_assert_no_error (error);
  if (argc > 1 && g_str_equal (argv[1], "callgrind"))
    {
      call (x, 100000);
      return 0;
    }
  setvbuf (stdout, NULL, _IOLBF, 0);
  printf ("%-30s %8s %8s\n", "add of 16 numbers", "ns", "more");
  for (i = 0; i < G_N_ELEMENTS (settings); i++)
    {
      const gdouble took = measure (x, device, &settings[i]);

      if (i == 0)
        off = took;
      printf ("%-30s %8.1f %8.1f\n", settings[i].name, took, took - off);
    }
  printf ("%-30s %8.1f\n", "a range, off", measure_ranges (FALSE));
  printf ("%-30s %8.1f\n", "a range, on", measure_ranges (TRUE));
  return 0;
}
