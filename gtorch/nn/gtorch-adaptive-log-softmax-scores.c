/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A soft-max over many classes, of which few are frequent.
 *
 * The classes are cut into a list of frequent ones, `cutoffs[0]` of them, and clusters of rarer ones. The
 * head gives scores of the frequent classes and one of each cluster; the tail of a cluster scores its
 * classes, by fewer numbers the rarer they are. An example takes part in the computation of the cluster of
 * its target only:
 *
 *   log p (class) = head (class)                          of a frequent one
 *   log p (class) = head (cluster) + tail[cluster] (class) of another one
 *
 * Which examples those are is read by the host, as nonzero does. */

#include "config.h"

#include "nn/gtorch-adaptive-log-softmax-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-ops-private.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-module-members.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-tensor-private.h"

typedef GTorchAdaptiveLogSoftmaxWithLoss Self;

/* --- scores --- */

/* Calls a child, whose hooks it runs; consumes its output into the formula. */
static GTorchImpl *
call (GTorchFormula *f, Self *self, const gchar *name, GTorchImpl *x)
{
  g_autoptr (GTorchModule) child = NULL;
  g_autoptr (GTorchTensor) input = NULL;
  g_autoptr (GTorchTensor) output = NULL;

  if (f->failed)
    return NULL;
  child = gtorch_module_get_module (GTORCH_MODULE (self), name, f->error);
  input = child != NULL ? gtorch_tensor_wrap (gtorch_impl_ref (x)) : NULL;
  output = input != NULL ? gtorch_module_forward (child, input, f->error) : NULL;
  return gtorch_formula_keep (f, output != NULL ? gtorch_impl_ref (gtorch_tensor_unwrap (output))
                                                : NULL);
}

static GTorchImpl *
head_log_prob (GTorchFormula *f, Self *self, GTorchImpl *x)
{
  GTorchImpl *scores = call (f, self, "head", x);

  return GTORCH_FORMULA_OP (f, log_softmax, scores, 1, GTORCH_DTYPE_NONE);
}

static GTorchImpl *
tail_log_prob (GTorchFormula *f, Self *self, guint i, GTorchImpl *x)
{
  g_autofree gchar *name = g_strdup_printf ("tail.%u", i);
  GTorchImpl *scores = call (f, self, name, x);

  return GTORCH_FORMULA_OP (f, log_softmax, scores, 1, GTORCH_DTYPE_NONE);
}

/* The log-probabilities of all classes, of examples in the rows of x. */
GTorchImpl *
gtorch_adaptive_all_log_probs (Self *self, GTorchImpl *x, GError **error)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  const gint64 frequent = gtorch_adaptive_begin_of (self, 0);
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *head = head_log_prob (&f, self, x);
  GTorchImpl *list = GTORCH_FORMULA_OP (&f, narrow, head, 1, 0, frequent);

  if (f.failed)
    return NULL;
  g_ptr_array_add (parts, gtorch_impl_ref (list));
  for (guint i = 0; i < gtorch_adaptive_count_clusters (self); i++)
    {
      g_auto (GTorchFormula) g = GTORCH_FORMULA_INIT (error);
      GTorchImpl *cluster = GTORCH_FORMULA_OP (&g, narrow, head, 1, frequent + i, 1);
      GTorchImpl *within = tail_log_prob (&g, self, i, x);
      GTorchImpl *sum = GTORCH_FORMULA_OP (&g, add, within, cluster, 1);

      if (g.failed)
        return NULL;
      g_ptr_array_add (parts, gtorch_formula_take (&g, sum));
    }
  return gtorch_op_cat ((GTorchImpl **) parts->pdata, parts->len, 1, error);
}

/* Tables on the host of the examples. */
enum
{
  IN_HEAD, /* the number in the head of the target, or of its cluster */
  ROWS,    /* the numbers of the examples, those of one cluster after those of another */
  WITHIN,  /* the number within its cluster of the target of each of ROWS */
  N_TABLES
};

/* Fills the tables, of n numbers each; the first holds the targets. counts gets how many examples there are
 * of the frequent classes and of each cluster. */
static gboolean
sort_targets (Self *self, gint64 *tables, gint64 n, gint64 *counts, GError **error)
{
  gint64 *in_head = tables + n * IN_HEAD, *rows = tables + n * ROWS, *within = tables + n * WITHIN;
  gint64 at = 0;

  for (gint64 i = 0; i < n; i++)
    if (in_head[i] < 0 || in_head[i] >= self->n_classes)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                     _ ("%s: number %" PRId64 " of the targets is %" PRId64
                        ", it must be from 0 to %" PRId64),
                     gtorch_module_type_name (GTORCH_MODULE (self)), i, in_head[i],
                     self->n_classes - 1);
        return FALSE;
      }
  for (guint cluster = 0; cluster <= gtorch_adaptive_count_clusters (self); cluster++)
    {
      const gint64 low = cluster == 0 ? 0 : gtorch_adaptive_begin_of (self, cluster - 1);
      const gint64 high = gtorch_adaptive_begin_of (self, cluster), before = at;

      for (gint64 i = 0; i < n; i++)
        if (in_head[i] >= low && in_head[i] < high)
          {
            rows[at] = i;
            within[at++] = in_head[i] - low;
          }
      counts[cluster] = at - before;
    }
  at = counts[0];
  for (guint cluster = 1; cluster <= gtorch_adaptive_count_clusters (self); cluster++)
    for (const gint64 end = at + counts[cluster]; at < end; at++)
      in_head[rows[at]] = gtorch_adaptive_begin_of (self, 0) + cluster - 1;
  return TRUE;
}

/* Returns the tables, [N_TABLES, N], where the input is. */
static GTorchImpl *
make_tables (Self *self, GTorchImpl *x, GTorchImpl *target, gint64 *counts, GError **error)
{
  const gchar *name = gtorch_module_type_name (GTORCH_MODULE (self));
  const gint64 shape[] = { N_TABLES, target->numel };
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host (name, target, error);
  g_autoptr (GTorchImpl) tables =
      host != NULL ? gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_INT64, shape, 2, error)
                   : NULL;

  if (tables == NULL)
    return NULL;
  gtorch_impl_read (host, GTORCH_DTYPE_INT64, gtorch_impl_data (tables));
  if (!sort_targets (self, gtorch_impl_data (tables), target->numel, counts, error))
    return NULL;
  return gtorch_op_to_device (tables, gtorch_impl_device (x), FALSE, error);
}

/* A row of the tables, or a part of it. */
static GTorchImpl *
part_of (GTorchFormula *f, GTorchImpl *tables, guint table, gint64 start, gint64 n)
{
  GTorchImpl *row = GTORCH_FORMULA_OP (f, select, tables, 0, table);

  return GTORCH_FORMULA_OP (f, narrow, row, 0, start, n);
}

/* Elements of the rows of log_probs, one of each. */
static GTorchImpl *
pick (GTorchFormula *f, GTorchImpl *log_probs, GTorchImpl *index)
{
  const gint64 last = 1;
  GTorchImpl *column = GTORCH_FORMULA_OP (f, unsqueeze, index, 1);
  GTorchImpl *picked = GTORCH_FORMULA_OP (f, gather, log_probs, 1, column);

  return GTORCH_FORMULA_OP (f, squeeze, picked, &last, 1);
}

/* The log-probabilities, within their clusters, of the targets that are not frequent, in the order of
 * ROWS. */
static GTorchImpl *
cluster_log_probs (Self *self, GTorchImpl *x, GTorchImpl *tables, const gint64 *counts,
                   GError **error)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  gint64 at = counts[0];

  for (guint i = 0; i < gtorch_adaptive_count_clusters (self); at += counts[++i])
    {
      g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
      const gint64 n = counts[i + 1];
      GTorchImpl *rows, *some, *log_probs, *within, *picked;

      if (n == 0)
        continue;
      rows = part_of (&f, tables, ROWS, at, n);
      within = part_of (&f, tables, WITHIN, at, n);
      some = GTORCH_FORMULA_OP (&f, index_select, x, 0, rows);
      log_probs = tail_log_prob (&f, self, i, some);
      picked = pick (&f, log_probs, within);
      if (f.failed)
        return NULL;
      g_ptr_array_add (parts, gtorch_formula_take (&f, picked));
    }
  return gtorch_op_cat ((GTorchImpl **) parts->pdata, parts->len, 0, error);
}

/* The log-probability of each target; x is a matrix. */
GTorchImpl *
gtorch_adaptive_target_log_probs (Self *self, GTorchImpl *x, GTorchImpl *target, GError **error)
{
  g_autofree gint64 *counts = g_new0 (gint64, gtorch_adaptive_count_clusters (self) + 1);
  g_autoptr (GTorchImpl) tables = make_tables (self, x, target, counts, error);
  g_autoptr (GTorchImpl) rare = NULL;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 n = target->numel;
  GTorchImpl *head, *index, *sum, *zeros, *rows, *spread;

  if (tables == NULL)
    return NULL;
  head = head_log_prob (&f, self, x);
  index = part_of (&f, tables, IN_HEAD, 0, n);
  sum = pick (&f, head, index);
  if (f.failed || counts[0] == n)
    return gtorch_formula_take (&f, sum);
  rare = cluster_log_probs (self, x, tables, counts, error);
  if (rare == NULL)
    return NULL;
  zeros = GTORCH_FORMULA_OP (&f, zeros_like, sum, rare->dtype);
  rows = part_of (&f, tables, ROWS, counts[0], n - counts[0]);
  spread = GTORCH_FORMULA_OP (&f, index_copy, zeros, 0, rows, rare);
  sum = GTORCH_FORMULA_OP (&f, add, sum, spread, 1);
  return gtorch_formula_take (&f, sum);
}

/* The tails are asked of those examples only of which the head finds a cluster. */
GTorchImpl *
gtorch_adaptive_predict (Self *self, GTorchImpl *x, GError **error)
{
  const gint64 last = 1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *scores = call (&f, self, "head", x);
  GTorchImpl *found = GTORCH_FORMULA_OP (&f, argmax, scores, &last, 1, FALSE);
  GTorchImpl *frequent =
      gtorch_formula_keep (&f, gtorch_impl_new_int (gtorch_adaptive_begin_of (self, 0)));
  GTorchImpl *is_rare = GTORCH_FORMULA_OP (&f, ge, found, frequent);
  GTorchImpl *pairs = GTORCH_FORMULA_OP (&f, nonzero, is_rare);
  GTorchImpl *rows = GTORCH_FORMULA_OP (&f, select, pairs, 1, 0);
  GTorchImpl *some, *log_probs, *classes, *all;

  if (f.failed || rows->numel == 0)
    return gtorch_formula_take (&f, found);
  some = GTORCH_FORMULA_OP (&f, index_select, x, 0, rows);
  log_probs =
      f.failed ? NULL : gtorch_formula_keep (&f, gtorch_adaptive_all_log_probs (self, some, error));
  classes = GTORCH_FORMULA_OP (&f, argmax, log_probs, &last, 1, FALSE);
  all = GTORCH_FORMULA_OP (&f, index_copy, found, 0, rows, classes);
  return gtorch_formula_take (&f, all);
}
