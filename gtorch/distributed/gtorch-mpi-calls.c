/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-mpi-calls-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-agreement-private.h"

#define CALL \
  248 /* bytes of a description, which is not translated: hosts may have different languages */

/* Followed by what the rank sends to each, and what it expects of each. */
typedef struct
{
  gint64 sum;
  gchar call[CALL];
} Record;

/* After Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014. */
static guint64
mix (guint64 state, guint64 value)
{
  guint64 z = state + value + G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static gint64
count_of (GPtrArray *impls, const gint64 *counts, gint rank, gint size)
{
  if (counts != NULL)
    return counts[rank];
  return impls->len == 0 ? 0 : ((GTorchImpl *) impls->pdata[0])->numel / size;
}

static guint64
sum_of_call (const GTorchCollective *collective)
{
  const GTorchImpl *impl = gtorch_agreement_get_common_tensor (collective);
  guint64 sum = mix (0, collective->kind);

  if (impl != NULL)
    sum = mix (sum, collective->dtype);
  if (impl != NULL && collective->kind != GTORCH_COLLECTIVE_ALL_TO_ALL)
    sum = mix (sum, (guint64) impl->numel);
  if (gtorch_agreement_has_root (collective))
    sum = mix (sum, (guint64) collective->root);
  if (gtorch_agreement_is_reduction (collective))
    sum = mix (sum, collective->op);
  return sum;
}

void
gtorch_mpi_calls_begin (const GTorchCollective *collective, gint rank, gint size, gboolean goes_on,
                        gint64 sums[GTORCH_MPI_N_SUMS])
{
  guint64 counts = 0;
  gint i;

  for (i = 0; i < size && collective->kind == GTORCH_COLLECTIVE_ALL_TO_ALL; i++)
    {
      const guint64 sent = mix (mix (0, (guint64) rank), (guint64) i);
      const guint64 expected = mix (mix (0, (guint64) i), (guint64) rank);

      counts += mix (sent, (guint64) count_of (collective->inputs, collective->in_counts, i, size));
      counts -=
          mix (expected, (guint64) count_of (collective->outputs, collective->out_counts, i, size));
    }
  sums[GTORCH_MPI_SUM_OF_CALLS] = (gint64) sum_of_call (collective);
  sums[GTORCH_MPI_SUM_OF_COUNTS] = (gint64) counts;
  sums[GTORCH_MPI_SUM_OF_WISHES] = goes_on ? 1 : 0;
}

gboolean
gtorch_mpi_calls_are_alike (const gint64 own[GTORCH_MPI_N_SUMS],
                            const gint64 all[GTORCH_MPI_N_SUMS], gint size)
{
  return (guint64) own[GTORCH_MPI_SUM_OF_CALLS] * (guint64) size
             == (guint64) all[GTORCH_MPI_SUM_OF_CALLS]
         && all[GTORCH_MPI_SUM_OF_COUNTS] == 0;
}

/* --- where they differ --- */

gsize
gtorch_mpi_calls_record_size (gint size)
{
  return sizeof (Record) + 2 * (gsize) size * sizeof (gint64);
}

void
gtorch_mpi_calls_describe (const GTorchCollective *collective, gint size, gint64 sum,
                           gpointer record)
{
  g_autofree gchar *call = gtorch_agreement_describe (collective);
  Record *self = record;
  gint64 *counts = (gint64 *) (self + 1);
  gint i;

  self->sum = sum;
  g_strlcpy (self->call, call, sizeof self->call);
  for (i = 0; i < size; i++)
    {
      counts[i] = count_of (collective->inputs, collective->in_counts, i, size);
      counts[size + i] = count_of (collective->outputs, collective->out_counts, i, size);
    }
}

static const Record *
record_of (gconstpointer records, gint size, gint rank)
{
  return (const Record *) ((const gchar *) records
                           + (gsize) rank * gtorch_mpi_calls_record_size (size));
}

void
gtorch_mpi_calls_tell (const GTorchCollective *collective, guint64 sequence, gint size,
                       gconstpointer records, GError **error)
{
  const Record *first = record_of (records, size, 0);
  gint from, to;

  for (to = 1; to < size; to++)
    {
      const Record *other = record_of (records, size, to);

      if (first->sum == other->sum)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("%s: the ranks differ: rank %d calls %s as call %" PRIu64
                      " of the group, rank 0 %s"),
                   collective->name, to, other->call, sequence, first->call);
      return;
    }
  for (from = 0; from < size; from++)
    for (to = 0; to < size; to++)
      {
        const gint64 sent = ((const gint64 *) (record_of (records, size, from) + 1))[to];
        const gint64 expected = ((const gint64 *) (record_of (records, size, to) + 1))[size + from];

        if (sent == expected)
          continue;
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("%s: in call %" PRIu64 " of the group rank %d sends %" PRId64
                        " elements to rank %d, which expects %" PRId64),
                     collective->name, sequence, from, sent, to, expected);
        return;
      }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
               _ ("%s: the ranks differ in call %" PRIu64 " of the group"), collective->name,
               sequence);
}
