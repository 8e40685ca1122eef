/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The execution path that all operations share. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "tensor/gtorch-recorder-private.h"
#include "dispatch/gtorch-run-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "memory/gtorch-allocator-private.h"
#include "base/gtorch-observer-private.h"
#include "dispatch/gtorch-autocast-private.h"
#include "stream/gtorch-capturing-private.h"
#include "device/gtorch-device-private.h"
#include "device/gtorch-generator-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"
#include "stream/gtorch-stream-private.h"
#include "tensor/gtorch-uninitialized-private.h"

gboolean
gtorch_composite_check_list (guint id, GTorchImpl *const *inputs, gsize n, GError **error)
{
  gsize i;

  for (i = 0; i < n; i++)
    if (inputs[i] == NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: item %u of the list is not a tensor"), gtorch_ops[id].name, (guint) i);
        return FALSE;
      }
  return TRUE;
}

const GTorchOpClass *
gtorch_composite_begin (guint id, GTorchImpl *const *inputs, gsize n_inputs)
{
  const GTorchOpClass *former = gtorch_thread.calling;

  gtorch_thread.calling = &gtorch_ops[id];
  gtorch_observe_composite_begin (gtorch_thread.calling, inputs, n_inputs);
  return former;
}

const GTorchOpClass *
gtorch_composite_begin_list (guint id, GTorchImpl *const *inputs, gsize n_inputs,
                             GTorchImpl *const *items, gsize n_items)
{
  g_autofree GTorchImpl **all = NULL;

  if (G_LIKELY (!gtorch_is_observed ()))
    return gtorch_composite_begin (id, NULL, 0);
  all = g_new (GTorchImpl *, n_inputs + n_items);
  for (gsize i = 0; i < n_inputs; i++)
    all[i] = inputs[i];
  for (gsize i = 0; i < n_items; i++)
    all[n_inputs + i] = items[i];
  return gtorch_composite_begin (id, all, n_inputs + n_items);
}

void
gtorch_composite_end (const GTorchOpClass *former, gboolean ok, GError **error)
{
  if (!ok)
    gtorch_error_set_op (error, gtorch_thread.calling->name);
  gtorch_observe_composite_end (gtorch_thread.calling);
  gtorch_thread.calling = former;
}

const GTorchArgSpec *
gtorch_op_find_arg (const GTorchOpClass *op, gboolean tensor, guint i)
{
  guint j;

  for (j = 0; j < op->n_args; j++)
    if ((op->args[j].kind <= GTORCH_ARG_OPTIONAL_TENSOR) == tensor
        && op->args[j].kind != GTORCH_ARG_TENSORS && i-- == 0)
      return &op->args[j];
  return NULL;
}

/* Returns the caller's name of input i: "other", or "tensors[2]" in a list. */
static gchar *
dup_input_name (const GTorchOpClass *op, guint i)
{
  const GTorchArgSpec *arg = i < op->n_inputs ? gtorch_op_find_arg (op, TRUE, i) : NULL;
  guint j;

  if (arg != NULL)
    return g_strdup (arg->name);
  for (j = 0; j < op->n_args; j++)
    if (op->args[j].kind == GTORCH_ARG_TENSORS)
      return g_strdup_printf ("%s[%u]", op->args[j].name, i - op->n_inputs);
  return g_strdup_printf ("%u", i);
}

static void
set_missing (GTorchOpCall *call, guint i, GError **error)
{
  g_autofree gchar *name = dup_input_name (call->op, i);

  gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("“%s” is not a tensor"), name);
}

static void
set_mismatch (GTorchOpCall *call, guint a, guint b, GError **error)
{
  const GTorchImpl *x = call->inputs[a], *y = call->inputs[b];
  g_autofree gchar *name = dup_input_name (call->op, a);
  g_autofree gchar *other = dup_input_name (call->op, b);

  gtorch_call_error (call, error, GTORCH_ERROR_DEVICE_MISMATCH,
                     _ ("the tensor “%s” of shape %s is on %s, but “%s” of shape %s is on %s: all "
                        "must be on one device"),
                     name, gtorch_impl_shape_str (x), gtorch_device_name (x->storage->device),
                     other, gtorch_impl_shape_str (y), gtorch_device_name (y->storage->device));
}

/* Returns whether input i is a 0-d tensor on the host that may be passed to the device with the call, like
 * a number. */
static gboolean
goes_with_call (const GTorchOpCall *call, guint i)
{
  const GTorchImpl *input = call->inputs[i];

  return (call->op->flags & GTORCH_OP_FLAG_NUMBERS) && input->n_dims == 0
         && gtorch_device_is_host (input->storage->device) && !(call->in_place && i == 0);
}

/* Finds the input that determines the device, for a call whose inputs are not all on one device. */
static gboolean
find_first (GTorchOpCall *call, const GTorchImpl **first, GError **error)
{
  g_autoptr (GTorchCapture) capture = NULL;
  guint i, first_i = 0;

  while (call->inputs[first_i] == NULL || call->inputs[first_i]->is_number
         || goes_with_call (call, first_i))
    first_i++;
  *first = call->inputs[first_i];
  capture = gtorch_stream_dup_capture (gtorch_current_stream ((*first)->storage->device));
  for (i = 0; i < call->n_inputs; i++)
    {
      GTorchImpl *input = call->inputs[i];

      if (input == NULL || input->is_number || input->storage->device == (*first)->storage->device)
        continue;
      if (!goes_with_call (call, i))
        {
          set_mismatch (call, MIN (i, first_i), MAX (i, first_i), error);
          return FALSE;
        }
      if (capture != NULL)
        {
          g_autofree gchar *name = dup_input_name (call->op, i);

          gtorch_call_error (call, error, GTORCH_ERROR_CAPTURE,
                             _ ("the graph would keep the present element of “%s”, which is on the "
                                "CPU: give a number, or move the tensor to %s"),
                             name, gtorch_device_name ((*first)->storage->device));
          return FALSE;
        }
      if (!gtorch_impl_sync (input, error))
        {
          g_prefix_error (error, "%s: ", gtorch_call_named_op (call)->name);
          return FALSE;
        }
    }
  return TRUE;
}

/* Checks that input i still has its memory, and that no replay has overwritten it. */
static inline gboolean
check_alive (GTorchOpCall *call, guint i, GError **error)
{
  const GTorchImpl *input = call->inputs[i];

  if (G_UNLIKELY (gtorch_impl_is_released (input)))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_RELEASED, _ ("tensor %u, of shape %s, %s"), i,
                         gtorch_impl_shape_str (input), gtorch_impl_loss (input));
      return FALSE;
    }
  if (G_UNLIKELY (input->storage->free_func != NULL)
      && G_UNLIKELY (gtorch_storage_get_stale (input->storage) != NULL))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_RELEASED,
                         _ ("tensor %u, of shape %s, came from a graph, and a later replay of "
                            "%s has overwritten it: clone it before that"),
                         i, gtorch_impl_shape_str (input),
                         gtorch_storage_get_stale (input->storage));
      return FALSE;
    }
  return TRUE;
}

static gboolean
find_device (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *first = NULL;
  gboolean differ = FALSE;
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    {
      const GTorchImpl *input = call->inputs[i];

      if (input == NULL)
        {
          if (i < call->op->n_inputs
              && gtorch_op_find_arg (call->op, TRUE, i)->kind == GTORCH_ARG_OPTIONAL_TENSOR)
            continue;
          set_missing (call, i, error);
          return FALSE;
        }
      if (!check_alive (call, i, error))
        return FALSE;
      if (input->is_number)
        continue;
      if (first == NULL)
        first = input;
      else if (G_UNLIKELY (first->device != input->device))
        differ = !(call->op->flags & GTORCH_OP_FLAG_DEVICES);
    }
  if (G_UNLIKELY (differ) && !find_first (call, &first, error))
    return FALSE;

  if (first != NULL)
    call->device = first->device;
  else
    {
      call->device = NULL;
      call->of_numbers = call->n_inputs > 0;
      for (i = 0; i < call->op->n_attrs; i++)
        if (gtorch_op_find_arg (call->op, FALSE, i)->kind == GTORCH_ARG_DEVICE)
          call->device = call->attrs[i].p;
      if (call->device == NULL)
        call->device = call->n_inputs > 0 ? gtorch_device_cpu () : gtorch_get_default_device ();
    }
  return TRUE;
}

static inline gboolean
is_plain_operand (const GTorchImpl *impl)
{
  return impl->is_contiguous && !impl->is_number && !gtorch_impl_is_released (impl)
         && impl->storage->free_func == NULL;
}

gboolean
gtorch_call_has_all_small_numbers (const GTorchOpCall *call)
{
  guint i;

  for (i = 0; i < call->op->n_attrs; i++)
    if (fabs (call->attrs[i].d) > 65504 && !isinf (call->attrs[i].d))
      return FALSE;
  return TRUE;
}

/* Returns whether the call is of the most common kind, which needs neither promotion nor checks. */
static inline __attribute__ ((always_inline)) gboolean
is_plain (const GTorchOpCall *call)
{
  const GTorchImpl *first;
  guint i;

  if (call->op->plain == 0)
    return FALSE;
  first = call->inputs[0];
  if (first == NULL || (call->op->plain & (1u << first->dtype)) == 0 || !is_plain_operand (first))
    return FALSE;
  for (i = 1; i < call->n_inputs; i++)
    {
      const GTorchImpl *input = call->inputs[i];

      if (input == first)
        continue;
      if (input == NULL || input->dtype != first->dtype || !is_plain_operand (input)
          || input->device != first->device || !gtorch_impl_same_shape (input, first)
          || (call->in_place && input->storage == first->storage))
        return FALSE;
    }
  return !(call->op->flags & GTORCH_OP_FLAG_FACTORS) || gtorch_call_has_small_numbers (call);
}

/* Initialises the members one by one: for an initialiser the compiler would clear all of the struct in a
 * loop. */
static inline void
init_call (GTorchOpCall *call, const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
           const GTorchAttr *attrs, gboolean in_place)
{
  guint i;

  call->op = op;
  call->part_of = gtorch_thread.calling;
  call->inputs = inputs;
  call->n_inputs = n_inputs;
  call->attrs = attrs;
  for (i = 0; i < GTORCH_OP_MAX_OUTPUTS; i++)
    call->outputs[i] = NULL;
  call->n_outputs = op->n_outputs;
  call->in_place = in_place;
  call->of_numbers = FALSE;
  call->is_view = FALSE;
  call->device = NULL;
  call->compute = GTORCH_DTYPE_NONE;
  call->seed = 0;
  call->counter = 0;
  call->is_plain = is_plain (call);
}

/* Determines the device and the compute dtype, and creates the outputs. */
static gboolean
prepare (GTorchOpCall *call, GError **error)
{
  if (G_UNLIKELY (!find_device (call, error)))
    return FALSE;
  if (G_UNLIKELY (gtorch_device_get_run (call->device, call->op) == NULL))
    {
      if (!(call->op->flags & GTORCH_OP_FLAG_VIEW))
        {
          gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED, _ ("not available on %s yet"),
                             gtorch_device_name (call->device));
          return FALSE;
        }
      gtorch_observe_prepare (call);
    }
  if (G_UNLIKELY (call->op->flags & GTORCH_OP_FLAG_SYNC)
      && !gtorch_launch_sync_inputs (call, error))
    return FALSE;
  if (G_UNLIKELY (call->op->flags & GTORCH_OP_FLAG_RANDOM) && !gtorch_random_check (call, error))
    return FALSE;
  if (G_UNLIKELY (!call->op->shape (call, error)))
    return FALSE;
  if (G_UNLIKELY (call->op->flags & GTORCH_OP_FLAG_RANDOM))
    gtorch_random_reserve (call);
  return TRUE;
}

static inline gboolean
run_plain (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *first = call->inputs[0];

  call->device = first->device;
  call->compute = first->dtype;
  if (!call->in_place
      && G_UNLIKELY (
          !gtorch_call_set_output (call, 0, first->dtype, first->shape, first->n_dims, error)))
    return FALSE;
  if (G_UNLIKELY (!gtorch_launch (call, error)))
    return FALSE;
  if (call->in_place)
    g_atomic_int_inc (&first->storage->version);
  return TRUE;
}

static G_GNUC_NO_INLINE gboolean
run_any (GTorchOpCall *call, GError **error)
{
  guint i;

  for (i = 0; G_UNLIKELY (call->op->writes != NULL) && i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && gtorch_call_writes (call, i)
        && !gtorch_impl_check_write (call->inputs[i], gtorch_call_named_op (call)->name, error))
      return FALSE;
  if (G_UNLIKELY (!prepare (call, error)))
    return FALSE;
  if ((call->op->flags & GTORCH_OP_FLAG_VIEW) || G_UNLIKELY (call->is_view))
    gtorch_observe_view (call);
  else if (G_UNLIKELY (!gtorch_launch (call, error)))
    return FALSE;

  if (call->in_place)
    for (i = 0; i < call->n_outputs; i++)
      if (i == 0 || call->outputs[i]->storage != call->outputs[0]->storage)
        g_atomic_int_inc (&call->outputs[i]->storage->version);
  for (i = 0; G_UNLIKELY (call->op->writes != NULL) && i < call->n_inputs; i++)
    if (gtorch_call_writes (call, i))
      g_atomic_int_inc (&call->inputs[i]->storage->version);
  return TRUE;
}

static inline gboolean
run (GTorchOpCall *call, GError **error)
{
  return G_LIKELY (call->is_plain) ? run_plain (call, error) : run_any (call, error);
}

/* Kept out of line, so that gtorch_op_run () is fast without mixed precision. */
static G_GNUC_NO_INLINE gboolean
run_autocast (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
              const GTorchAttr *attrs, GTorchImpl **outputs, GError **error)
{
  g_autofree GTorchAttr *changed = NULL;
  GTorchAutocastCall call;
  GTorchChange off;
  gboolean success;
  guint i;
  GTORCH_HOLD_MANY (inputs, n_inputs);

  if (!gtorch_autocast_begin (&call, op, inputs, n_inputs, error))
    return FALSE;
  for (i = 0; call.wants_float32 && i < op->n_attrs; i++)
    if (gtorch_op_find_arg (op, FALSE, i)->kind == GTORCH_ARG_DTYPE
        && attrs[i].i == GTORCH_DTYPE_NONE)
      {
        attrs = changed = g_memdup2 (attrs, op->n_attrs * sizeof (GTorchAttr));
        changed[i].i = GTORCH_DTYPE_FLOAT32;
        break;
      }
  if (!call.is_active)
    gtorch_autocast_change_to_off (&off);
  success = gtorch_op_run (op, call.inputs, n_inputs, attrs, outputs, error);
  if (!call.is_active)
    gtorch_change_end (&off);
  gtorch_autocast_end (&call);
  return success;
}

gboolean
gtorch_op_run (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
               const GTorchAttr *attrs, GTorchImpl **outputs, GError **error)
{
  GTorchOpCall call;
  guint hold, i;

  if (G_UNLIKELY (gtorch_autocast_is_on ()) && op->autocast != 0)
    return run_autocast (op, inputs, n_inputs, attrs, outputs, error);
  hold = gtorch_hold_begin (inputs, n_inputs);
  init_call (&call, op, inputs, n_inputs, attrs, FALSE);
  if (G_UNLIKELY (!run (&call, error)))
    goto failed;
  if (op->grad != NULL && G_UNLIKELY (gtorch_autograd_wanted (inputs, n_inputs))
      && !gtorch_recorder->record (&call, error))
    goto failed;

  if (op->flags & GTORCH_OP_FLAG_VIEW)
    gtorch_recorder->record_view (&call);

  for (i = 0; i < op->n_outputs; i++)
    {
      outputs[i] = call.outputs[i];
      if (G_UNLIKELY (call.of_numbers))
        outputs[i]->is_number = outputs[i]->n_dims == 0;
    }
  gtorch_unhold (hold);
  return TRUE;

failed:
  gtorch_unhold (hold);
  gtorch_call_name_error (&call, error);
  gtorch_impl_clear (call.outputs, op->n_outputs);
  for (i = 0; i < op->n_outputs; i++)
    outputs[i] = NULL;
  return FALSE;
}

gboolean
gtorch_op_run_into (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                    const GTorchAttr *attrs, GTorchImpl *output, GError **error)
{
  GTorchOpCall call;
  gboolean success;
  guint hold;

  g_assert (op->n_outputs == 1 && !(op->flags & GTORCH_OP_FLAG_VIEW) && output->is_contiguous);
  hold = gtorch_hold_begin (inputs, n_inputs);
  init_call (&call, op, inputs, n_inputs, attrs, FALSE);
  call.outputs[0] = output;
  success = run (&call, error);
  gtorch_unhold (hold);
  if (!success)
    gtorch_call_name_error (&call, error);
  return success;
}

/* Checks that a tensor can be written to: its memory is not read-only, and its elements do not share
 * memory. */
static gboolean
check_target (GTorchOpCall *call, GTorchImpl *target, GError **error)
{
  if (G_UNLIKELY (gtorch_storage_is_read_only (target->storage)))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("the memory of the tensor of shape %s is read-only, since it is shared "
                            "with its source: clone it before writing to it"),
                         gtorch_impl_shape_str (target));
      return FALSE;
    }
  if (gtorch_impl_overlaps_itself (target))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("several elements of the tensor of shape %s share one memory location "
                            "(is it expanded?): clone it before writing to it"),
                         gtorch_impl_shape_str (target));
      return FALSE;
    }
  return TRUE;
}

/* Checks all tensors that are written to, and that none overlaps an input. */
static G_GNUC_NO_INLINE gboolean
check_targets (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && !check_alive (call, i, error))
      return FALSE;
  if (!check_target (call, self, error))
    return FALSE;
  for (i = 1; G_UNLIKELY (call->op->writes != NULL) && i < call->n_inputs; i++)
    if (gtorch_call_writes (call, i) && !check_target (call, call->inputs[i], error))
      return FALSE;
  for (i = 1; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && gtorch_impl_overlaps (self, call->inputs[i]))
      {
        gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                           _ ("the tensor written to, of shape %s, overlaps the input of shape %s "
                              "in memory: "
                              "clone the input"),
                           gtorch_impl_shape_str (self), gtorch_impl_shape_str (call->inputs[i]));
        return FALSE;
      }
  return TRUE;
}

/* Kept out of line, so that calls without recording are fast. */
static G_GNUC_NO_INLINE gboolean
run_in_place_recorded (GTorchOpCall *call, GError **error)
{
  GTorchImpl **formers = NULL;
  gboolean records, success;

  if (!gtorch_recorder->begin_in_place (call, &records, &formers, error))
    return FALSE;
  success = run (call, error);
  if (!success)
    gtorch_call_name_error (call, error);
  if (success && records)
    {
      if (formers != NULL)
        call->inputs = formers;
      success = gtorch_recorder->record (call, error);
    }
  if (formers != NULL)
    {
      gtorch_impl_clear (formers, call->n_inputs);
      g_free (formers);
    }
  return success;
}

static inline gboolean
run_in_place (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
              const GTorchAttr *attrs, GError **error)
{
  GTorchOpCall call;

  init_call (&call, op, inputs, n_inputs, attrs, TRUE);
  if (G_UNLIKELY (!call.is_plain) && !check_targets (&call, error))
    return FALSE;
  if (G_UNLIKELY (inputs[0]->inference)
      && !gtorch_impl_check_write (inputs[0], gtorch_call_named_op (&call)->name, error))
    return FALSE;
  call.outputs[0] = inputs[0];
  if (G_UNLIKELY (gtorch_autograd_wanted (inputs, n_inputs)))
    return run_in_place_recorded (&call, error);
  if (!run (&call, error))
    {
      gtorch_call_name_error (&call, error);
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_op_run_in_place (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs,
                        const GTorchAttr *attrs, GError **error)
{
  const guint hold = gtorch_hold_begin (inputs, n_inputs);
  const gboolean success = run_in_place (op, inputs, n_inputs, attrs, error);

  gtorch_unhold (hold);
  return success;
}

const GTorchOpClass *
gtorch_op_find (const gchar *name)
{
  guint low = 0, high = gtorch_n_ops;

  while (low < high) /* the table is sorted by name */
    {
      guint middle = (low + high) / 2;
      gint order = strcmp (name, gtorch_ops[middle].name);

      if (order == 0)
        return &gtorch_ops[middle];
      if (order < 0)
        high = middle;
      else
        low = middle + 1;
    }
  return NULL;
}

GTorchImpl *
gtorch_grad_or_zeros (GTorchGradContext *context, guint i, GError **error)
{
  const GTorchMeta *meta = &context->output_metas[i];

  if (context->grads[i] != NULL)
    return gtorch_impl_ref (context->grads[i]);
  return gtorch_op_zeros (meta->shape, meta->n_dims, meta->dtype, meta->device, error);
}

gboolean
gtorch_grad_undefined (GTorchGradContext *context, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD, _ ("%s: its derivative is not defined"),
               context->op->name);
  return FALSE;
}

gboolean
gtorch_grad_undefined_for (GTorchGradContext *context, const gchar *arg, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("%s: the derivative with respect to %s is not defined"), context->op->name, arg);
  return FALSE;
}
