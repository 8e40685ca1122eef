/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The number of threads that can have a processor each. A container has a quota rather than processors of
 * its own: if more threads run than the quota pays for, all of them are stopped until the next period
 * begins, some 100 ms later. */

#include "config.h"

#include "device/gtorch-thread-count-private.h"

#include <glib/gi18n-lib.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-error.h"
#include "device/gtorch-device-manager.h"

static guint
count_affinity (void)
{
  long n_online = sysconf (_SC_NPROCESSORS_ONLN);
  guint count = 0;
  gsize n;

  /* The kernel requires a set at least as large as its own. */
  for (n = 1024; n <= 1 << 20; n *= 4)
    {
      cpu_set_t *set = CPU_ALLOC (n);
      gboolean success = set != NULL && sched_getaffinity (0, CPU_ALLOC_SIZE (n), set) == 0;

      if (success)
        count = CPU_COUNT_S (CPU_ALLOC_SIZE (n), set);
      if (set != NULL)
        CPU_FREE (set);
      if (success)
        break;
    }
  return count > 0 ? count : (guint) MAX (n_online, 1);
}

/* Returns the quotient rounded up, or G_MAXUINT without a limit. */
static guint
divide (gdouble quota, gdouble period)
{
  return quota > 0 && period > 0 && quota / period < G_MAXINT32
             ? (guint) ((quota + period - 1) / period)
             : G_MAXUINT;
}

static gboolean
read_file (const gchar *folder, const gchar *name, gchar **text)
{
  g_autofree gchar *path = g_build_filename (folder, name, NULL);

  return g_file_get_contents (path, text, NULL, NULL);
}

static guint
read_limit (const gchar *folder)
{
  g_autofree gchar *max = NULL;
  g_autofree gchar *quota = NULL;
  g_autofree gchar *period = NULL;
  guint limit = G_MAXUINT;

  if (read_file (folder, "cpu.max", &max)) /* “max 100000” or “150000 100000” */
    {
      g_auto (GStrv) words = g_strsplit_set (g_strchomp (max), " ", 2);

      if (words[0] != NULL && words[1] != NULL)
        limit = divide (g_ascii_strtod (words[0], NULL), g_ascii_strtod (words[1], NULL));
    }
  else if (read_file (folder, "cpu.cfs_quota_us", &quota)
           && read_file (folder, "cpu.cfs_period_us", &period))
    limit = divide (g_ascii_strtod (quota, NULL), g_ascii_strtod (period, NULL));
  return MAX (limit, 1);
}

/* Returns the lowest limit of a control group and its parents. A container may be shown paths that do not
 * exist in its view of the file system; its own group is then at the root. */
static guint
read_limits (const gchar *top, const gchar *group)
{
  g_autofree gchar *folder = g_build_filename (top, group, NULL);
  guint limit = read_limit (top);

  while (strlen (folder) > strlen (top))
    {
      limit = MIN (limit, read_limit (folder));
      *strrchr (folder, '/') = '\0';
    }
  return limit;
}

static guint
count_quota (const gchar *root)
{
  g_autofree gchar *top = g_build_filename (root, "sys/fs/cgroup", NULL);
  g_autofree gchar *text = NULL;
  g_auto (GStrv) lines = NULL;
  guint limit = G_MAXUINT, i;

  if (!read_file (root, "proc/self/cgroup", &text))
    return limit;
  lines = g_strsplit (text, "\n", -1);
  for (i = 0; lines[i] != NULL; i++) /* “0::/group” or “3:cpu,cpuacct:/group” */
    {
      g_auto (GStrv) fields = g_strsplit (lines[i], ":", 3);
      g_auto (GStrv) controllers = NULL;
      g_autofree gchar *folder = NULL;

      if (g_strv_length (fields) != 3)
        continue;
      controllers = g_strsplit (fields[1], ",", -1);
      if (*fields[1] != '\0' && !g_strv_contains ((const gchar *const *) controllers, "cpu"))
        continue;
      folder = g_build_filename (top, fields[1], NULL);
      limit = MIN (limit, read_limits (folder, fields[2]));
    }
  return limit;
}

guint
gtorch_cpu_count (const gchar *root)
{
  return MIN (count_affinity (), count_quota (root));
}

/* Returns the first number of a list, since OpenMP's variable may be a list; 0 if there is no number. */
static guint
ask (const gchar *name)
{
  const gchar *text = gtorch_getenv (name);
  gchar *end = NULL;
  gint64 number = text != NULL ? g_ascii_strtoll (text, &end, 10) : 0;

  return number > 0 && number <= GTORCH_MAX_THREADS && (*end == '\0' || *end == ',') ? number : 0;
}

guint
gtorch_cpu_default_threads (void)
{
  guint n = gtorch_env_number ("GTORCH_NUM_THREADS", 0);

  if (n == 0)
    n = ask ("OMP_NUM_THREADS");
  return n > 0 ? n : gtorch_cpu_count ("/");
}

/* --- the number of threads --- */

static gint thread_count; /* atomically; 0: not asked for yet */

/**
 * gtorch_get_num_threads:
 *
 * Gets how many threads an operation on the CPU may use: at first what the environment variable
 * `GTORCH_NUM_THREADS` says or, without it, `OMP_NUM_THREADS`; else as many as the process may use
 * processors, which its control group may limit.
 *
 * Returns: the number of threads
 *
 * Since: 0.1
 */
guint
gtorch_get_num_threads (void)
{
  gint n = g_atomic_int_get (&thread_count);

  if (G_UNLIKELY (n == 0))
    {
      g_atomic_int_compare_and_exchange (&thread_count, 0, gtorch_cpu_default_threads ());
      n = g_atomic_int_get (&thread_count);
    }
  return n;
}

/**
 * gtorch_set_num_threads:
 * @n_threads: how many, at least 1
 * @error: return location for an error
 *
 * Sets how many threads an operation on the CPU may use, whichever thread calls it. Results do not
 * depend on it.
 *
 * The thread that calls an operation is one of them; the others are shared by all that call one. They
 * sleep when there is nothing to do, and an operation does not wait for a thread that another program
 * keeps from running.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_INVALID if the number is not possible
 *
 * Since: 0.1
 */
gboolean
gtorch_set_num_threads (gint n_threads, GError **error)
{
  if (n_threads < 1 || n_threads > GTORCH_MAX_THREADS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("set_num_threads: %d is not a number of threads: it must be from 1 to 65536"),
                   n_threads);
      return FALSE;
    }
  g_atomic_int_set (&thread_count, n_threads);
  return TRUE;
}
