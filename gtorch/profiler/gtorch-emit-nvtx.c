/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Each operation as a range of NVIDIA's tools. */

#include "config.h"

#include "profiler/gtorch-emit-nvtx.h"

#include "base/gtorch-fork-private.h"
#include "base/gtorch-nvtx.h"
#include "base/gtorch-observer-private.h"
#include "dispatch/gtorch-op-private.h"
#include "profiler/gtorch-profiler-private.h"

#define RANK 1000 /* the ranges are within what other observers do */

static gint shapes; /* atomically: whether names have them */

/* --- stacks --- */

/* NVTX knows one end, that of the innermost range of a thread. A range of the program that is not the
 * innermost, as it may be with tasks that take turns, stays until those within it have ended; one that
 * another thread has ended stays until its own thread begins or ends one. */

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GHashTable *ranges; /* under the lock: ids of the program's that are on stacks -> is over */
static gint n_over;        /* atomically */

static void
forget (guint64 id)
{
  if (id == 0)
    return;
  g_mutex_lock (&lock);
  if (GPOINTER_TO_INT (g_hash_table_lookup (ranges, &id)))
    g_atomic_int_add (&n_over, -1);
  g_hash_table_remove (ranges, &id);
  g_mutex_unlock (&lock);
}

static void
stack_free (gpointer data)
{
  GArray *stack = data;

  for (guint i = 0; i < stack->len; i++)
    forget (g_array_index (stack, guint64, i));
  g_array_unref (stack);
}

/* GArray of guint64: what the thread has begun here, an id or 0 for what is no range of the program. */
static GPrivate stacks = G_PRIVATE_INIT (stack_free);

static GArray *
this_stack (void)
{
  GArray *stack = g_private_get (&stacks);

  if (stack == NULL)
    {
      stack = g_array_new (FALSE, FALSE, sizeof (guint64));
      g_private_set (&stacks, stack);
    }
  return stack;
}

static gboolean
is_over (guint64 id)
{
  gboolean result;

  if (id == 0 || g_atomic_int_get (&n_over) == 0)
    return FALSE;
  g_mutex_lock (&lock);
  result = GPOINTER_TO_INT (g_hash_table_lookup (ranges, &id));
  g_mutex_unlock (&lock);
  return result;
}

static void
pop_top (GArray *stack)
{
  const guint64 id = g_array_index (stack, guint64, stack->len - 1);

  g_array_set_size (stack, stack->len - 1);
  forget (id);
  gtorch_nvtx_range_pop ();
}

static void
pop_ended (GArray *stack)
{
  while (stack->len > 0 && is_over (g_array_index (stack, guint64, stack->len - 1)))
    pop_top (stack);
}

static void
push_with (guint64 id, const gchar *name)
{
  GArray *stack = this_stack ();

  pop_ended (stack);
  g_array_append_val (stack, id);
  gtorch_nvtx_range_push (name);
}

static void
push (const gchar *name)
{
  push_with (0, name);
}

/* Ends what is no range of the program, and those within it. An end may come without its beginning, which was
 * before this was turned on. */
static void
pop (void)
{
  GArray *stack = this_stack ();
  guint n = stack->len;

  while (n > 0 && g_array_index (stack, guint64, n - 1) != 0)
    n--;
  while (n > 0 && stack->len >= n)
    pop_top (stack);
  pop_ended (stack);
}

static void
begin_program_range (guint64 id, const gchar *name)
{
  g_mutex_lock (&lock);
  if (ranges == NULL)
    ranges = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_hash_table_insert (ranges, g_memdup2 (&id, sizeof id), GINT_TO_POINTER (FALSE));
  g_mutex_unlock (&lock);
  push_with (id, name);
}

static void
end_program_range (guint64 id)
{
  gboolean is_known;

  g_mutex_lock (&lock);
  is_known = ranges != NULL && g_hash_table_contains (ranges, &id);
  if (is_known)
    {
      g_hash_table_insert (ranges, g_memdup2 (&id, sizeof id), GINT_TO_POINTER (TRUE));
      g_atomic_int_inc (&n_over);
    }
  g_mutex_unlock (&lock);
  if (is_known)
    pop_ended (this_stack ());
}

/* --- names --- */

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
append_shapes (GString *name, const GTorchOpClass *op, GTorchImpl *const *inputs, gsize n_inputs)
{
  gsize i, at = 0;

  g_string_append (name, ", sizes = [");
  for (i = 0; i < op->n_args; i++)
    {
      const GTorchArgKind kind = op->args[i].kind;

      if (i > 0)
        g_string_append (name, ", ");
      if (kind > GTORCH_ARG_TENSORS)
        g_string_append (name, "[]");
      else if (kind != GTORCH_ARG_TENSORS)
        append_shape (name, at < n_inputs ? inputs[at++] : NULL);
      else
        {
          gsize item; /* behind the other tensors */

          g_string_append_c (name, '[');
          for (item = op->n_inputs; item < n_inputs; item++)
            {
              if (item > op->n_inputs)
                g_string_append (name, ", ");
              append_shape (name, inputs[item]);
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
    append_shapes (name, call->op, call->inputs, call->n_inputs);
  push (name->str);
  return TRUE;
}

static void
end_range (GTorchStream *stream, GTorchOpCall *call, gboolean result)
{
  pop ();
}

static void
begin_composite (const GTorchOpClass *op, GTorchImpl *const *inputs, gsize n_inputs)
{
  g_autoptr (GString) name = NULL;

  if (g_atomic_int_get (&shapes) == 0)
    {
      push (op->name);
      return;
    }
  name = g_string_new (op->name);
  append_shapes (name, op, inputs, n_inputs);
  push (name->str);
}

static void
end_composite (const GTorchOpClass *op)
{
  pop ();
}

static void
begin_backward (const gchar *name, guint64 sequence, GTorchImpl *const *grads, gsize n_grads)
{
  g_autoptr (GString) text = g_string_new ("backward of ");
  gsize i;

  g_string_append (text, name);
  if (sequence > 0)
    g_string_append_printf (text, ", stashed seq = %" G_GUINT64_FORMAT, sequence);
  for (i = 0; g_atomic_int_get (&shapes) != 0 && i < n_grads; i++)
    {
      g_string_append (text, i == 0 ? ", sizes = [" : ", ");
      append_shape (text, grads[i]);
      g_string_append (text, i + 1 == n_grads ? "]" : "");
    }
  push (text->str);
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
static const GTorchProfileSink sink = { .range_begin = begin_program_range,
                                        .range_end = end_program_range };
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
 * which the host launches it; the tool shows the kernels that belong to it. With @record_shapes the name
 * goes on as in PyTorch, `, sizes = [[2, 3], [3], []]`, with an empty shape for each argument that is no
 * tensor; of a list of tensors it has a list. Operations that consist of others have a range around
 * theirs, those that only make a view have none. In a backward pass there is a range for each operation
 * whose gradient is computed, `backward of mul, stashed seq = 12`, with the number of its node, and each
 * [struct@ProfileRange] is a range; the tool keeps one that is not the innermost of its thread until those
 * within it have ended. Without a tool this does nothing.
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
