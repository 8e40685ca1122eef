/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Each operation as a range of NVIDIA's tools. */

#include "config.h"

#include "profiler/gtorch-emit-nvtx.h"

#include "base/gtorch-nvtx.h"
#include "base/gtorch-observer-private.h"
#include "dispatch/gtorch-op-private.h"
#include "profiler/gtorch-profiler-private.h"

#define RANK 1000 /* the ranges are within what other observers do */

static gint shapes;          /* atomically: whether names have them */
static __thread guint depth; /* ranges that the thread has begun here */

static void
push (const gchar *name)
{
  depth++;
  gtorch_nvtx_range_push (name);
}

/* An end may come without its beginning, which was before this was turned on. */
static void
pop (void)
{
  if (depth == 0)
    return;
  depth--;
  gtorch_nvtx_range_pop ();
}

static void
append_shape (GString *name, const GTorchImpl *input)
{
  guint i;

  g_string_append_c (name, '[');
  for (i = 0; input != NULL && !input->is_number && i < input->n_dims; i++)
    g_string_append_printf (name, "%s%" G_GINT64_FORMAT, i > 0 ? ", " : "", input->shape[i]);
  g_string_append_c (name, ']');
}

/* A shape for each argument; that of a list of tensors is a list. */
static void
append_shapes (GString *name, const GTorchOpCall *call)
{
  guint i, at = 0;

  g_string_append (name, ", sizes = [");
  for (i = 0; i < call->op->n_args; i++)
    {
      const GTorchArgKind kind = call->op->args[i].kind;

      if (i > 0)
        g_string_append (name, ", ");
      if (kind > GTORCH_ARG_TENSORS)
        g_string_append (name, "[]");
      else if (kind != GTORCH_ARG_TENSORS)
        append_shape (name, at < call->n_inputs ? call->inputs[at++] : NULL);
      else
        {
          const guint first = at;

          g_string_append_c (name, '[');
          for (; at < call->n_inputs; at++)
            {
              if (at > first)
                g_string_append (name, ", ");
              append_shape (name, call->inputs[at]);
            }
          g_string_append_c (name, ']');
        }
    }
  g_string_append_c (name, ']');
}

static gboolean
begin_range (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  g_autoptr (GString) name = NULL;

  if (!call->in_place && g_atomic_int_get (&shapes) == 0)
    {
      push (call->op->name);
      return TRUE;
    }
  name = g_string_new (call->op->name);
  if (call->in_place)
    g_string_append_c (name, '_');
  if (g_atomic_int_get (&shapes) != 0)
    append_shapes (name, call);
  push (name->str);
  return TRUE;
}

static void
end_range (GTorchStream *stream, GTorchOpCall *call, gboolean result)
{
  pop ();
}

static void
begin_composite (const GTorchOpClass *op)
{
  push (op->name);
}

static void
end_composite (const GTorchOpClass *op)
{
  pop ();
}

static void
begin_backward (const gchar *name, guint64 sequence)
{
  g_autofree gchar *text = NULL;

  if (sequence > 0)
    text = g_strdup_printf ("backward of %s, stashed seq = %" G_GUINT64_FORMAT, name, sequence);
  else
    text = g_strdup_printf ("backward of %s", name);
  push (text);
}

static void
end_backward (const gchar *name, guint64 sequence)
{
  pop ();
}

static const GTorchObserver observer = {
  .rank = RANK,
  .call_begin = begin_range,
  .call_end = end_range,
  .composite_begin = begin_composite,
  .composite_end = end_composite,
  .backward_begin = begin_backward,
  .backward_end = end_backward,
};
static const GTorchProfileSink sink = { .range_begin = push, .range_end = pop };
static gint is_on; /* atomically */

/**
 * gtorch_set_emit_nvtx:
 * @enabled: whether to report operations
 * @record_shapes: whether the names of the ranges have the shapes of the operands
 *
 * Lets each operation that is launched, in all threads, be a range in the timeline of a tool such as Nsight
 * Systems, as [func@nvtx_range_push] makes them.
 *
 * The range has the name of the operation, with a `_` behind it if it is in place, and covers the time in
 * which the host launches it; the tool shows the kernels that belong to it. With @record_shapes the name goes
 * on as in PyTorch, `, sizes = [[2, 3], [3], []]`, with an empty shape for each argument that is no tensor; of
 * a list of tensors it has a list. Operations that consist of others have a range around theirs, those that
 * only make a view have none. In a backward pass there is a range for each operation whose gradient is
 * computed, `backward of mul, stashed seq = 12`, with the number of its node, and each [struct@ProfileRange] is a range. Without a tool
 * this does nothing.
 *
 * ```c
 * gtorch_set_emit_nvtx (TRUE, FALSE);
 * output = gtorch_module_forward (model, input, &error);
 * gtorch_set_emit_nvtx (FALSE, FALSE);
 * ```
 *
 * Since: 0.1
 */
void
gtorch_set_emit_nvtx (gboolean enabled, gboolean record_shapes)
{
  g_atomic_int_set (&shapes, record_shapes != FALSE);
  g_atomic_int_set (&is_on, enabled != FALSE);
  if (enabled && gtorch_nvtx_is_traced ())
    {
      gtorch_observer_add (&observer);
      gtorch_profile_sink_add (&sink);
    }
  else
    {
      gtorch_observer_remove (&observer);
      gtorch_profile_sink_remove (&sink);
    }
}

/**
 * gtorch_is_emit_nvtx_enabled:
 *
 * Tells whether [func@set_emit_nvtx] has turned ranges on.
 *
 * Returns: %TRUE if so, with and without a tool
 *
 * Since: 0.1
 */
gboolean
gtorch_is_emit_nvtx_enabled (void)
{
  return g_atomic_int_get (&is_on) != 0;
}
