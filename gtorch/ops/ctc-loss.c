/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Connectionist temporal classification. The labels of an example are extended by blanks: between them,
 * before the first one and behind the last one. Of these 2 S + 1 states, a path through the steps begins in
 * one of the first two, stays in its state or goes to the next one, or passes over a blank between different
 * labels, and ends in one of the last two.
 *
 * alpha[t, s] is the logarithm of the sum over all beginnings of paths that are in state s at step t, and
 * beta[t, s] that over all ends; both contain the probability of the step. The loss is the negative logarithm
 * of the sum over all paths, and exp (alpha + beta - x + loss) the probability of being in the state s at the
 * step t. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-host-private.h"
#include "ops/gtorch-op-parts-private.h"

void
gtorch_ctc_init (GTorchCtc *ctc, const GTorchOpCall *call)
{
  const gboolean backward = call->op->id == GTORCH_OP_CTC_LOSS_BACKWARD;
  const GTorchImpl *x = call->inputs[backward ? 1 : 0];

  *ctc = (GTorchCtc){
    .steps = x->shape[0],
    .n = x->shape[1],
    .classes = x->shape[2],
    .blank = call->attrs[0].i,
    .longest = backward ? call->inputs[5]->shape[2] / 2 : call->attrs[1].i,
  };
  ctc->states = 2 * ctc->longest + 1;
}

gboolean
gtorch_shape_native_ctc_loss (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *x = call->inputs[0];
  gint64 shape[3];
  GTorchCtc ctc;

  call->compute = x->dtype;
  if (!gtorch_call_check_dtype (call, x->dtype, error))
    return FALSE;
  gtorch_ctc_init (&ctc, call);
  shape[0] = ctc.n;
  shape[1] = ctc.steps;
  shape[2] = ctc.states;
  return gtorch_shape_check (call->op->name, shape, 3, x->dtype, error)
         && gtorch_call_set_output (call, 0, x->dtype, shape, 1, error)
         && gtorch_call_set_output (call, 1, x->dtype, shape, 3, error);
}

gboolean
gtorch_shape_ctc_loss_backward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *x = call->inputs[1];

  call->compute = x->dtype;
  return gtorch_call_check_dtype (call, x->dtype, error)
         && gtorch_call_set_output (call, 0, x->dtype, x->shape, x->n_dims, error);
}

/* Reads n lengths on the host. */
static gboolean
read_lengths (const gchar *name, GTorchImpl *lengths, gint64 n, gint64 *numbers, GError **error)
{
  g_autoptr (GTorchImpl) host = NULL;

  if (gtorch_dtype_kind (lengths->dtype) != GTORCH_KIND_INT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("ctc_loss: %s must be integers, they are %s"), name,
                   gtorch_dtype_get_name (lengths->dtype));
      return FALSE;
    }
  if (lengths->n_dims > 1 || lengths->numel != n)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("ctc_loss: %s of shape %s: there must be one for each of the "
                      "%" PRId64 " examples"),
                   name, gtorch_impl_shape_str (lengths), n);
      return FALSE;
    }
  host = gtorch_impl_to_host ("ctc_loss", lengths, error);
  if (host == NULL)
    return FALSE;
  gtorch_impl_read (host, GTORCH_DTYPE_INT64, numbers);
  return TRUE;
}

static gboolean
check_lengths (const gchar *name, const gint64 *numbers, gint64 n, gint64 most, GError **error)
{
  for (gint64 i = 0; i < n; i++)
    if (numbers[i] < 0 || numbers[i] > most)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("ctc_loss: number %" PRId64 " of %s is %" PRId64
                        ", it must be from 0 to %" PRId64),
                     i, name, numbers[i], most);
        return FALSE;
      }
  return TRUE;
}

static gboolean
check_shapes (const GTorchImpl *log_probs, const GTorchImpl *targets, gint64 blank, GError **error)
{
  const gboolean is_batch = log_probs->n_dims == 3;

  if (!is_batch && log_probs->n_dims != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("ctc_loss: log-probabilities of shape %s: they must be [T, N, C] or [T, C]"),
                   gtorch_impl_shape_str (log_probs));
      return FALSE;
    }
  if (gtorch_dtype_kind (targets->dtype) != GTORCH_KIND_INT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("ctc_loss: targets must be integers, they are %s"),
                   gtorch_dtype_get_name (targets->dtype));
      return FALSE;
    }
  if (targets->n_dims != 1
      && (targets->n_dims != 2 || targets->shape[0] != (is_batch ? log_probs->shape[1] : 1)))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("ctc_loss: targets of shape %s for log-probabilities of shape %s: they must "
                      "be [N, S], or those of all examples in one dimension"),
                   gtorch_impl_shape_str (targets), gtorch_impl_shape_str (log_probs));
      return FALSE;
    }
  if (blank < 0 || blank >= log_probs->shape[log_probs->n_dims - 1])
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("ctc_loss: blank %" PRId64 " is out of range for %" PRId64 " classes"), blank,
                   log_probs->shape[log_probs->n_dims - 1]);
      return FALSE;
    }
  return TRUE;
}

/* Finds where the targets of each of n examples begin, and the length of the longest ones. */
static gboolean
find_targets (const GTorchImpl *targets, const gint64 *lengths, gint64 n, gint64 *starts,
              gint64 *longest, GError **error)
{
  const gboolean is_padded = targets->n_dims == 2;
  gint64 sum = 0;

  if (!check_lengths ("target_lengths", lengths, n, targets->shape[is_padded ? 1 : 0], error))
    return FALSE;
  *longest = 0;
  for (gint64 i = 0; i < n; i++)
    {
      starts[i] = is_padded ? i * targets->shape[1] : sum;
      sum += lengths[i];
      *longest = MAX (*longest, lengths[i]);
    }
  if (is_padded || sum == targets->numel)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("ctc_loss: %" PRId64 " targets, whose lengths sum up to "
                  "%" PRId64),
               targets->numel, sum);
  return FALSE;
}

/* Returns an int64 tensor [3, n] with the number of steps and of targets of each example, and where its
 * targets begin, on the device of log_probs. The host has checked all of them. */
static GTorchImpl *
make_table (GTorchImpl *log_probs, const GTorchImpl *targets, GTorchImpl *input_lengths,
            GTorchImpl *target_lengths, gint64 n, gint64 *longest, GError **error)
{
  const gint64 steps = log_probs->shape[0], shape[] = { 3, n };
  g_autoptr (GTorchImpl) table =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_INT64, shape, 2, error);
  gint64 *numbers;

  if (table == NULL)
    return NULL;
  numbers = gtorch_impl_data (table);
  if (!read_lengths ("input_lengths", input_lengths, n, numbers, error)
      || !read_lengths ("target_lengths", target_lengths, n, numbers + n, error)
      || !check_lengths ("input_lengths", numbers, n, steps, error)
      || !find_targets (targets, numbers + n, n, numbers + 2 * n, longest, error))
    return NULL;
  return gtorch_op_to_device (table, gtorch_impl_device (log_probs), FALSE, error);
}

/* Returns the loss with 0 in the place of infinity. */
static GTorchImpl *
without_infinity (GTorchImpl *loss, GError **error)
{
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_number (0);
  g_autoptr (GTorchImpl) infinite = gtorch_op_isinf (loss, error);

  return infinite != NULL ? gtorch_op_where (infinite, zero, loss, error) : NULL;
}

/* Returns the mean of the losses, each divided by the number of its labels. */
static GTorchImpl *
mean_of_labels (GTorchImpl *loss, GTorchImpl *table, GError **error)
{
  g_autoptr (GTorchImpl) lengths = gtorch_op_select (table, 0, 1, error);
  g_autoptr (GTorchImpl) divisor =
      lengths != NULL ? gtorch_op_clamp (lengths, 1, INFINITY, error) : NULL;
  g_autoptr (GTorchImpl) shares = divisor != NULL ? gtorch_op_div (loss, divisor, error) : NULL;

  return shares != NULL
             ? gtorch_loss_reduce (g_steal_pointer (&shares), GTORCH_REDUCTION_MEAN, error)
             : NULL;
}

GTorchImpl *
gtorch_composite_ctc_loss (GTorchImpl *log_probs, GTorchImpl *targets, GTorchImpl *input_lengths,
                           GTorchImpl *target_lengths, gint64 blank, GTorchReduction reduction,
                           gboolean zero_infinity, GError **error)
{
  const gboolean is_batch = log_probs->n_dims == 3;
  g_autoptr (GTorchImpl) batch = NULL;
  g_autoptr (GTorchImpl) table = NULL;
  g_autoptr (GTorchImpl) labels = NULL;
  g_autoptr (GTorchImpl) loss = NULL;
  g_autoptr (GTorchImpl) alpha = NULL;
  gint64 longest;

  if (!gtorch_loss_check_reduction ("ctc_loss", reduction, error)
      || !check_shapes (log_probs, targets, blank, error))
    return NULL;
  batch = is_batch ? gtorch_impl_ref (log_probs) : gtorch_op_unsqueeze (log_probs, 1, error);
  table = batch != NULL ? make_table (batch, targets, input_lengths, target_lengths,
                                      batch->shape[1], &longest, error)
                        : NULL;
  labels = table != NULL
               ? gtorch_op_to_device (targets, gtorch_impl_device (log_probs), FALSE, error)
               : NULL;
  if (labels == NULL
      || !gtorch_op_native_ctc_loss (batch, labels, table, blank, longest, &loss, &alpha, error))
    return NULL;
  if (zero_infinity)
    {
      GTorchImpl *finite = without_infinity (loss, error);

      gtorch_impl_unref (g_steal_pointer (&loss));
      loss = finite;
      if (loss == NULL)
        return NULL;
    }
  if (reduction == GTORCH_REDUCTION_MEAN)
    return mean_of_labels (loss, table, error);
  if (reduction == GTORCH_REDUCTION_NONE && !is_batch)
    return gtorch_op_squeeze (loss, NULL, 0, error);
  return gtorch_loss_reduce (g_steal_pointer (&loss), reduction, error);
}
