/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The path that every operation takes, and the shape functions that families share. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "autograd/gtorch-grad-mode.h"
#include "memory/gtorch-allocator-private.h"
#include "dispatch/gtorch-autocast-private.h"
#include "graph/gtorch-capture-private.h"
#include "device/gtorch-device-private.h"
#include "device/gtorch-generator-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"
#include "stream/gtorch-stream-private.h"

void
gtorch_call_error (GTorchOpCall *call, GError **error, GTorchError code, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  if (error == NULL)
    return;
  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, code, "%s: %s", gtorch_call_named_op (call)->name, text);
}

void
gtorch_error_set_op (GError **error, const gchar *op)
{
  const gchar *message, *rest;
  gchar *renamed;
  gsize length;

  if (error == NULL || *error == NULL || (*error)->domain != GTORCH_ERROR)
    return;
  message = (*error)->message;
  length = strspn (message, "abcdefghijklmnopqrstuvwxyz0123456789_");
  rest = g_str_has_prefix (message + length, ": ") ? message + length + 2 : message;
  renamed = g_strdup_printf ("%s: %s", op, rest);
  g_free ((*error)->message);
  (*error)->message = renamed;
}

void
gtorch_call_name_error (const GTorchOpCall *call, GError **error)
{
  gtorch_error_name_op (error, gtorch_call_named_op (call)->name);
}

gboolean
gtorch_composite_check_list (guint id, GTorchImpl *const *inputs, gsize n, GError **error)
{
  gsize i;

  for (i = 0; i < n; i++)
    if (inputs[i] == NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: tensor %u is not one"),
                     gtorch_ops[id].name, (guint) i);
        return FALSE;
      }
  return TRUE;
}

const GTorchOpClass *
gtorch_composite_begin (guint id)
{
  const GTorchOpClass *former = gtorch_thread.calling;

  gtorch_thread.calling = &gtorch_ops[id];
  return former;
}

void
gtorch_composite_end (const GTorchOpClass *former, gboolean ok, GError **error)
{
  if (!ok)
    gtorch_error_set_op (error, gtorch_thread.calling->name);
  gtorch_thread.calling = former;
}

/* The argument that stands behind input i, or behind attribute i. */
static const GTorchArgSpec *
find_arg (const GTorchOpClass *op, gboolean tensor, guint i)
{
  guint j;

  for (j = 0; j < op->n_args; j++)
    if ((op->args[j].kind <= GTORCH_ARG_OPTIONAL_TENSOR) == tensor
        && op->args[j].kind != GTORCH_ARG_TENSORS && i-- == 0)
      return &op->args[j];
  return NULL;
}

/* What the caller knows input i by: "other", or "tensors[2]" in a list. */
static gchar *
dup_input_name (const GTorchOpClass *op, guint i)
{
  const GTorchArgSpec *arg = i < op->n_inputs ? find_arg (op, TRUE, i) : NULL;
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

/* A tensor of the host's that has no dimensions goes with the call, as a number does. */
static gboolean
goes_with_call (const GTorchOpCall *call, guint i)
{
  const GTorchImpl *input = call->inputs[i];

  return (call->op->flags & GTORCH_OP_FLAG_NUMBERS) && input->n_dims == 0
         && input->storage->device->type == GTORCH_DEVICE_TYPE_CPU && !(call->in_place && i == 0);
}

/* The inputs are not all on one device: finds the one whose device it is to be. */
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

/* Has input i its memory, and the elements that the program believes to be there? */
static inline gboolean
check_alive (GTorchOpCall *call, guint i, GError **error)
{
  const GTorchImpl *input = call->inputs[i];

  if (G_UNLIKELY (gtorch_impl_is_released (input)))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_RELEASED,
                         _ ("tensor %u, of shape %s, was released"), i,
                         gtorch_impl_shape_str (input));
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
              && find_arg (call->op, TRUE, i)->kind == GTORCH_ARG_OPTIONAL_TENSOR)
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
        if (find_arg (call->op, FALSE, i)->kind == GTORCH_ARG_DEVICE)
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

static G_GNUC_NO_INLINE gboolean
are_all_small (const GTorchOpCall *call)
{
  guint i;

  for (i = 0; i < call->op->n_attrs; i++)
    if (fabs (call->attrs[i].d) > 65504 && !isinf (call->attrs[i].d))
      return FALSE;
  return TRUE;
}

/* Are the attributes numbers such as every floating-point dtype has them? Mostly it is one, alpha. */
static inline gboolean
are_small (const GTorchOpCall *call)
{
  return G_LIKELY (call->op->n_attrs == 1 && fabs (call->attrs[0].d) <= 65504)
         || are_all_small (call);
}

/* The commonest call is one in which nothing has to be found out, and nothing can be wrong. */
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
  return !(call->op->flags & GTORCH_OP_FLAG_FACTORS) || are_small (call);
}

/* One member after the other: the compiler would clear the whole of it in a loop. */
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

/* Finds the device and the dtype to compute in, and makes the outputs. */
static gboolean
prepare (GTorchOpCall *call, GError **error)
{
  if (G_UNLIKELY (!find_device (call, error)))
    return FALSE;
  if (G_UNLIKELY (call->device->type != GTORCH_DEVICE_TYPE_CPU) && call->op->cuda == NULL
      && !(call->op->flags & GTORCH_OP_FLAG_VIEW))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED, _ ("not available on %s yet"),
                         gtorch_device_name (call->device));
      return FALSE;
    }
  if (G_UNLIKELY (call->op->flags & GTORCH_OP_FLAG_SYNC)
      && !gtorch_launch_sync_inputs (call, error))
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

  if (G_UNLIKELY (!prepare (call, error)))
    return FALSE;
  if (!(call->op->flags & GTORCH_OP_FLAG_VIEW) && G_LIKELY (!call->is_view)
      && G_UNLIKELY (!gtorch_launch (call, error)))
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

/* Not in line: it is what gtorch_op_run () does without that counts. */
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
    if (find_arg (op, FALSE, i)->kind == GTORCH_ARG_DTYPE && attrs[i].i == GTORCH_DTYPE_NONE)
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
      && !gtorch_autograd_record (&call, error))
    goto failed;

  if (op->flags & GTORCH_OP_FLAG_VIEW)
    gtorch_autograd_record_view (&call);

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
gtorch_call_check_number (GTorchOpCall *call, const GTorchImpl *impl, guint dtype,
                          const gchar *what, GError **error)
{
  if (impl == NULL || (impl->dtype == dtype && impl->numel == 1))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("%s must be one %s, it is a %s of shape %s"), what,
                     gtorch_dtype_get_name (dtype), gtorch_dtype_get_name (impl->dtype),
                     gtorch_impl_shape_str (impl));
  return FALSE;
}

/* What is written to must be there to be written to, each element once. */
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
                            "(it is "
                            "expanded?): clone it before writing to it"),
                         gtorch_impl_shape_str (target));
      return FALSE;
    }
  return TRUE;
}

/* The overlap of what is written to with what is read, too. */
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

/* Not in line: what matters is the call without it. */
static G_GNUC_NO_INLINE gboolean
run_in_place_recorded (GTorchOpCall *call, GError **error)
{
  GTorchImpl **formers = NULL;
  gboolean records, success;

  if (!gtorch_autograd_begin_in_place (call, &records, &formers, error))
    return FALSE;
  success = run (call, error);
  if (!success)
    gtorch_call_name_error (call, error);
  if (success && records)
    {
      if (formers != NULL)
        call->inputs = formers;
      success = gtorch_autograd_record (call, error);
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

/* --- for shape functions --- */

gboolean
gtorch_call_set_output (GTorchOpCall *call, guint i, guint dtype, const gint64 *shape, guint n_dims,
                        GError **error)
{
  GTorchImpl *preset = call->outputs[i];

  if (G_LIKELY (preset == NULL))
    {
      call->outputs[i] = G_LIKELY (gtorch_current_stream (call->device) == NULL
                                   && !__atomic_load_n (&gtorch_memory_wants_ops, __ATOMIC_RELAXED))
                             ? gtorch_impl_new (call->device, dtype, shape, n_dims, error)
                             : gtorch_launch_new_output (call, dtype, shape, n_dims, error);
      if (G_UNLIKELY (call->outputs[i] == NULL))
        {
          g_prefix_error (error, "%s: ", gtorch_call_named_op (call)->name);
          return FALSE;
        }
      return TRUE;
    }

  if (!gtorch_same_shape (preset->shape, preset->n_dims, shape, n_dims))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the result has shape %s, the tensor to be written to %s"),
                         gtorch_shape_str (shape, n_dims), gtorch_impl_shape_str (preset));
      return FALSE;
    }
  if (gtorch_dtype_kind (dtype) > gtorch_dtype_kind (preset->dtype))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("a result of dtype %s cannot be written to a tensor of dtype %s"),
                         gtorch_dtype_get_name (dtype), gtorch_dtype_get_name (preset->dtype));
      return FALSE;
    }
  return TRUE;
}

guint
gtorch_call_common_dtype (GTorchOpCall *call, guint first, guint n)
{
  /* Tensors with dimensions come first, then 0-d ones, then numbers: a later class counts only if its
   * kind is higher than what the earlier ones have. */
  guint dtypes[3] = { GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE };
  guint raw = GTORCH_DTYPE_NONE;
  guint result, i;

  for (i = first; i < first + n; i++)
    {
      const GTorchImpl *input = call->inputs[i];
      guint rank, dtype;

      if (input == NULL)
        continue;
      rank = input->is_number ? 2 : (input->n_dims == 0 ? 1 : 0);
      dtype = input->dtype;
      if (rank == 2)
        raw = gtorch_dtype_promote (raw, dtype);
      if (rank == 2 && dtype == GTORCH_DTYPE_FLOAT64)
        dtype = gtorch_get_default_dtype ();
      dtypes[rank] = dtypes[rank] == dtype ? dtype : gtorch_dtype_promote (dtypes[rank], dtype);
    }
  if (dtypes[0] == GTORCH_DTYPE_NONE && dtypes[1] == GTORCH_DTYPE_NONE)
    return raw; /* numbers among themselves keep their precision */
  result = dtypes[0];
  for (i = 1; i < 3; i++)
    if (dtypes[i] != GTORCH_DTYPE_NONE
        && gtorch_dtype_kind (dtypes[i]) > gtorch_dtype_kind (result))
      /* a complex scalar with float64 elements keeps their precision */
      result = gtorch_dtype_kind (dtypes[i]) == GTORCH_KIND_COMPLEX
                   ? gtorch_dtype_promote (result, dtypes[i])
                   : dtypes[i];
  return result;
}

gboolean
gtorch_call_is_dtype (GTorchOpCall *call, guint dtype, GError **error)
{
  if (G_LIKELY (dtype > GTORCH_DTYPE_NONE && dtype < GTORCH_N_DTYPES))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%d is not a dtype"), (gint) dtype);
  return FALSE;
}

/* From here on a double may be an integer that was rounded to it. */
#define MAX_EXACT 0x1p53

static gboolean
may_be_rounded (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  if (gtorch_dtype_kind (dtype) != GTORCH_KIND_INT || fabs (call->attrs[i].d) < MAX_EXACT)
    return FALSE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("%s is %.17g, and integers from 2^53 on would be rounded here"),
                     find_arg (call->op, FALSE, i)->name, call->attrs[i].d);
  return TRUE;
}

gboolean
gtorch_call_check_double (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  if (G_UNLIKELY (!gtorch_dtype_has (dtype, call->attrs[i].d)))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %g, which is no %s"),
                         find_arg (call->op, FALSE, i)->name, call->attrs[i].d,
                         gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  return !may_be_rounded (call, i, dtype, error);
}

/* Are all doubles such as what is computed in has? */
static gboolean
check_factors (GTorchOpCall *call, guint dtype, GError **error)
{
  const gboolean is_int = gtorch_dtype_kind (dtype) == GTORCH_KIND_INT;
  guint i;

  for (i = 0; i < call->op->n_attrs; i++)
    {
      const GTorchArgSpec *arg = find_arg (call->op, FALSE, i);
      const gdouble value = call->attrs[i].d;

      if (arg->kind != GTORCH_ARG_DOUBLE)
        continue;
      if (!is_int || value == trunc (value))
        {
          if (!gtorch_call_check_double (call, i,
                                         is_int ? dtype : gtorch_dtype_infos[dtype].compute, error))
            return FALSE;
          continue;
        }
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %g, which is no %s"),
                         arg->name, value, gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_call_check_value (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  const GTorchAttr *attr = &call->attrs[i];

  if (G_LIKELY (gtorch_dtype_has (dtype, attr->d)
                || (attr->number.is_int && gtorch_dtype_infos[dtype].size == 8)))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %.17g, which is no %s"),
                     find_arg (call->op, FALSE, i)->name, attr->d, gtorch_dtype_get_name (dtype));
  return FALSE;
}

gboolean
gtorch_call_check_scalar (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  const GTorchImpl *input = call->inputs[i];
  gdouble value;

  if (G_UNLIKELY (gtorch_dtype_kind (input->dtype) == GTORCH_KIND_COMPLEX
                  && gtorch_dtype_kind (dtype) != GTORCH_KIND_COMPLEX))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%s is of %s, which is no %s"),
                         find_arg (call->op, TRUE, i)->name, gtorch_dtype_get_name (input->dtype),
                         gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  if (!input->is_number)
    return TRUE;
  if (input->dtype == GTORCH_DTYPE_INT64 && gtorch_dtype_size (dtype) < 8)
    value = (gdouble) * (const gint64 *) gtorch_impl_data (input);
  else if (input->dtype == GTORCH_DTYPE_FLOAT64)
    value = *(const gdouble *) gtorch_impl_data (input);
  else
    return TRUE;
  if (G_LIKELY (gtorch_dtype_has (dtype, value)))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %.17g, which is no %s"),
                     find_arg (call->op, TRUE, i)->name, value, gtorch_dtype_get_name (dtype));
  return FALSE;
}

gboolean
gtorch_call_check_dtype (GTorchOpCall *call, guint dtype, GError **error)
{
  if (G_UNLIKELY (!gtorch_call_is_dtype (call, dtype, error)))
    return FALSE;
  if (G_UNLIKELY (!(call->op->dtypes & (1u << dtype))))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("not defined for dtype %s"),
                         gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  return !(call->op->flags & GTORCH_OP_FLAG_FACTORS)
         || G_LIKELY (gtorch_dtype_kind (dtype) != GTORCH_KIND_INT && are_small (call))
         || check_factors (call, dtype, error);
}

static gboolean
has_fraction (GTorchOpCall *call)
{
  guint i;

  for (i = 0; i < call->op->n_attrs; i++)
    if (!isinf (call->attrs[i].d) && call->attrs[i].d != trunc (call->attrs[i].d))
      return TRUE;
  return FALSE;
}

/* Infinities are no bounds. */
static gboolean
check_bounds (GTorchOpCall *call, guint dtype, GError **error)
{
  guint i;

  for (i = 0; i < call->op->n_attrs; i++)
    if (!isinf (call->attrs[i].d) && !gtorch_call_check_value (call, i, dtype, error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_call_promote (GTorchOpCall *call, guint first, guint n, guint *dtype, GError **error)
{
  guint common = call->inputs[first]->dtype;
  guint i;

  for (i = first; i < first + n; i++)
    if (call->inputs[i] != NULL && (call->inputs[i]->dtype != common || call->inputs[i]->is_number))
      {
        common = gtorch_call_common_dtype (call, first, n);
        break;
      }
  if (call->op->promote == GTORCH_PROMOTE_FLOAT && gtorch_dtype_kind (common) < GTORCH_KIND_FLOAT)
    common = gtorch_get_default_dtype ();
  else if (call->op->promote == GTORCH_PROMOTE_SUM
           && gtorch_dtype_kind (common) < GTORCH_KIND_FLOAT)
    common = GTORCH_DTYPE_INT64;
  else if (call->op->promote == GTORCH_PROMOTE_BOUNDS
           && gtorch_dtype_kind (common) == GTORCH_KIND_INT && has_fraction (call))
    common = gtorch_get_default_dtype ();

  if (G_UNLIKELY (call->op->promote == GTORCH_PROMOTE_BOUNDS)
      && !check_bounds (call, common, error))
    return FALSE;
  call->compute = common;
  *dtype = common;
  if (call->op->promote == GTORCH_PROMOTE_BOOL)
    {
      *dtype = GTORCH_DTYPE_BOOL;
      for (i = first; i < first + n; i++)
        if (call->inputs[i] != NULL && G_UNLIKELY (call->inputs[i]->is_number)
            && gtorch_dtype_kind (common) == GTORCH_KIND_INT
            && !gtorch_call_check_scalar (call, i, common, error))
          return FALSE;
    }
  else if (call->op->promote == GTORCH_PROMOTE_REAL)
    *dtype = gtorch_dtype_infos[common].real;
  return gtorch_call_check_dtype (call, common, error);
}

gboolean
gtorch_shape_same (GTorchOpCall *call, GError **error)
{
  guint dtype;

  return gtorch_call_promote (call, 0, 1, &dtype, error)
         && gtorch_call_set_output (call, 0, dtype, call->inputs[0]->shape, call->inputs[0]->n_dims,
                                    error);
}

/* Sums, products and bits are right as far as the dtype goes, whatever a number wraps to. Quotients, powers
 * and the greater of two are not: there it must be one that the dtype has. */
static gboolean
check_operands (GTorchOpCall *call, GError **error)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[call->compute];
  guint i;

  for (i = 0; i < call->n_inputs && (call->op->flags & GTORCH_OP_FLAG_CHOOSES); i++)
    if (!gtorch_call_check_scalar (call, i, call->compute, error))
      return FALSE;
  for (i = 0; i < call->n_inputs && info->kind == GTORCH_KIND_INT && info->size < 8; i++)
    {
      const GTorchImpl *input = call->inputs[i];
      gint64 value;

      if (!input->is_number || input->dtype != GTORCH_DTYPE_INT64)
        continue;
      value = *(const gint64 *) gtorch_impl_data (input);
      if ((gdouble) value >= info->min && (gdouble) value <= info->max)
        continue;
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%s is %" G_GINT64_FORMAT ", which is no %s"),
                         find_arg (call->op, TRUE, i)->name, value,
                         gtorch_dtype_get_name (call->compute));
      return FALSE;
    }
  return TRUE;
}

/* Tensors of integers may have negative exponents, whose powers are 0, 1 or -1; a number is a mistake. */
static gboolean
check_exponent (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *exponent = call->inputs[1];

  if (!exponent->is_number || exponent->dtype != GTORCH_DTYPE_INT64
      || gtorch_dtype_kind (call->compute) != GTORCH_KIND_INT
      || *(const gint64 *) gtorch_impl_data (exponent) >= 0)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("integers have no integer powers of %" G_GINT64_FORMAT
                        ": the exponent must not be negative"),
                     *(const gint64 *) gtorch_impl_data (exponent));
  return FALSE;
}

gboolean
gtorch_shape_pointwise (GTorchOpCall *call, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  const GTorchImpl *self = call->inputs[0];
  guint n_dims = self->n_dims;
  guint dtype, i;

  if (G_UNLIKELY (!gtorch_call_promote (call, 0, call->n_inputs, &dtype, error)))
    return FALSE;
  if (G_UNLIKELY (call->op->flags & GTORCH_OP_FLAG_POWERS) && !check_exponent (call, error))
    return FALSE;
  if (G_UNLIKELY (call->op->flags
                  & (GTORCH_OP_FLAG_POWERS | GTORCH_OP_FLAG_DIVIDES | GTORCH_OP_FLAG_CHOOSES))
      && !check_operands (call, error))
    return FALSE;
  for (i = 1; i < call->n_inputs; i++)
    if (call->inputs[i]->n_dims != 0 && !gtorch_impl_same_shape (self, call->inputs[i]))
      break;
  if (G_LIKELY (i == call->n_inputs))
    return gtorch_call_set_output (call, 0, dtype, self->shape, n_dims, error);

  memcpy (shape, self->shape, n_dims * sizeof (gint64));
  for (i = 1; i < call->n_inputs; i++)
    if (!gtorch_broadcast_shapes (call->op->name, shape, n_dims, call->inputs[i]->shape,
                                  call->inputs[i]->n_dims, shape, &n_dims, error))
      return FALSE;
  return gtorch_shape_check (call->op->name, shape, n_dims, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, shape, n_dims, error);
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
