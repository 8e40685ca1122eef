/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The order in which the operands of an einsum are multiplied. Of all pairs the one is taken whose product
 * has the fewest elements more than its factors have, and of those the one with the least to multiply; and so
 * on with the product in the place of the first. An order that was found is kept for the next call with such
 * labels and sizes. */

#include "config.h"

#include "ops/gtorch-op-parts-private.h"

#define N_LABELS  64
#define MAX_PATHS 256 /* how many orders are kept */

static GHashTable *paths; /* GBytes of labels and sizes → GTorchEinsumStep[] */
static GMutex paths_lock;

static gdouble
set_volume (guint64 set, const gint64 *sizes)
{
  gdouble result = 1;

  for (guint i = 0; i < N_LABELS; i++)
    if (set >> i & 1)
      result *= (gdouble) MAX (sizes[i], 1);
  return result;
}

/* Finds the cheapest of the pairs that are left; both_kept becomes the labels of its product. */
static GTorchEinsumStep
find_step (const guint64 *sets, const gboolean *done, guint n, guint64 output, const gint64 *sizes,
           guint64 *both_kept)
{
  GTorchEinsumStep best = { 0, 0 };
  gdouble least = 0, least_work = 0;

  for (guint i = 0; i < n; i++)
    for (guint j = i + 1; j < n; j++)
      {
        guint64 kept = output, both = sets[i] | sets[j];
        gdouble growth, work;

        if (done[i] || done[j])
          continue;
        for (guint k = 0; k < n; k++)
          if (k != i && k != j && !done[k])
            kept |= sets[k];
        growth = set_volume (both & kept, sizes) - set_volume (sets[i], sizes)
                 - set_volume (sets[j], sizes);
        work = set_volume (both, sizes);
        if (best.second > 0 && (growth > least || (growth == least && work >= least_work)))
          continue;
        least = growth;
        least_work = work;
        *both_kept = both & kept;
        best = (GTorchEinsumStep){ (guint8) i, (guint8) j };
      }
  return best;
}

static GTorchEinsumStep *
find_path (const guint64 *given, guint n, guint64 output, const gint64 *sizes)
{
  guint64 sets[GTORCH_EINSUM_OPERANDS];
  gboolean done[GTORCH_EINSUM_OPERANDS] = { FALSE };
  GTorchEinsumStep *steps = g_new0 (GTorchEinsumStep, n);

  for (guint i = 0; i < n; i++)
    sets[i] = given[i];
  for (guint i = 0; i + 1 < n; i++)
    {
      guint64 made = 0;

      steps[i] = find_step (sets, done, n, output, sizes, &made);
      done[steps[i].second] = TRUE;
      sets[steps[i].first] = made;
    }
  return steps;
}

GTorchEinsumStep *
gtorch_einsum_dup_path (const guint64 *sets, guint n, guint64 output, const gint64 *sizes)
{
  const gsize n_bytes = n * sizeof (GTorchEinsumStep);
  GByteArray *text = g_byte_array_new ();
  GTorchEinsumStep *steps, *known;
  GBytes *key;

  g_byte_array_append (text, (const guint8 *) sets, n * sizeof *sets);
  g_byte_array_append (text, (const guint8 *) &output, sizeof output);
  g_byte_array_append (text, (const guint8 *) sizes, N_LABELS * sizeof *sizes);
  key = g_byte_array_free_to_bytes (text);
  g_mutex_lock (&paths_lock);
  if (paths == NULL)
    paths =
        g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, g_free);
  known = g_hash_table_lookup (paths, key);
  steps = known != NULL ? g_memdup2 (known, n_bytes) : NULL;
  g_mutex_unlock (&paths_lock);
  if (steps != NULL)
    {
      g_bytes_unref (key);
      return steps;
    }
  steps = find_path (sets, n, output, sizes);
  g_mutex_lock (&paths_lock);
  if (g_hash_table_size (paths) >= MAX_PATHS)
    g_hash_table_remove_all (paths);
  g_hash_table_replace (paths, key, g_memdup2 (steps, n_bytes));
  g_mutex_unlock (&paths_lock);
  return steps;
}
