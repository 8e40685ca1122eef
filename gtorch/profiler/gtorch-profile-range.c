/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "profiler/gtorch-profile-range.h"

#include <string.h>

#include "base/gtorch-callback-private.h"
#include "profiler/gtorch-profiler-private.h"

/**
 * GTorchProfileRange:
 *
 * A part of the program that has a name in profiles.
 *
 * In C, `g_autoptr` ends it at the end of the block, and so does the macro `GTORCH_PROFILE_RANGE`:
 *
 * ```c
 * {
 *   GTORCH_PROFILE_RANGE ("forward");
 *
 *   output = gtorch_module_forward (model, input, &error);
 * }
 * ```
 *
 * Languages with a garbage collector call [method@ProfileRange.end], or [func@record_function]. Ranges of a
 * thread may overlap without one being in the other, such as those of tasks that take turns; an operation is
 * in the range that began last. A range belongs to the thread that has begun it: one that another thread ends
 * is not in the profile, and neither is one that began before the profile. One that has not ended when the
 * profile ends lasts until then. While no profiler records, a range costs some nanoseconds.
 *
 * Since: 0.1
 */
struct _GTorchProfileRange
{
  gint ref_count;
  gint is_over; /* atomic */
  guint64 id;
  GTorchRecordKind kind;
  gchar name[];
};

G_DEFINE_BOXED_TYPE (GTorchProfileRange, gtorch_profile_range, gtorch_profile_range_ref,
                     gtorch_profile_range_unref)

static GTorchProfileRange *
range_new (GTorchRecordKind kind, const gchar *name, guint64 serial)
{
  const gsize length = strlen (name);
  GTorchProfileRange *range = g_malloc (sizeof *range + length + 1);

  range->ref_count = 1;
  range->is_over = FALSE;
  range->kind = kind;
  memcpy (range->name, name, length + 1);
  range->id = gtorch_trace_range_begin (kind, name, serial);
  return range;
}

/**
 * gtorch_profile_range_new:
 * @name: the name of the range
 *
 * Begins a range.
 *
 * Returns: (transfer full): the range
 *
 * Since: 0.1
 */
GTorchProfileRange *
gtorch_profile_range_new (const gchar *name)
{
  g_return_val_if_fail (name != NULL, NULL);
  return range_new (GTORCH_RECORD_RANGE, name, 0);
}

/**
 * gtorch_profile_range_end:
 * @range: a range
 *
 * Ends the range.
 *
 * Further calls do nothing.
 *
 * Since: 0.1
 */
void
gtorch_profile_range_end (GTorchProfileRange *range)
{
  g_return_if_fail (range != NULL);
  if (g_atomic_int_compare_and_exchange (&range->is_over, FALSE, TRUE))
    gtorch_trace_range_end (range->id, range->kind, range->name);
}

/**
 * gtorch_profile_range_ref:
 * @range: a range
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @range
 *
 * Since: 0.1
 */
GTorchProfileRange *
gtorch_profile_range_ref (GTorchProfileRange *range)
{
  g_return_val_if_fail (range != NULL, NULL);
  g_atomic_int_inc (&range->ref_count);
  return range;
}

/**
 * gtorch_profile_range_unref:
 * @range: (transfer full): a range
 *
 * Drops a reference; the last one ends the range.
 *
 * Since: 0.1
 */
void
gtorch_profile_range_unref (GTorchProfileRange *range)
{
  g_return_if_fail (range != NULL);
  if (!g_atomic_int_dec_and_test (&range->ref_count))
    return;
  gtorch_profile_range_end (range);
  g_free (range);
}

GTorchProfileScope
gtorch_profile_scope_begin (const gchar *format, gpointer object)
{
  GTorchProfileScope scope = { 0, GTORCH_RECORD_RANGE, NULL };
  const gchar *type;

  if (G_LIKELY (!gtorch_trace_wants_ranges ()))
    return scope;
  type = G_OBJECT_TYPE_NAME (object);
  if (g_str_has_prefix (type, "GTorch"))
    type += strlen ("GTorch");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  scope.name = g_strdup_printf (format, type);
#pragma GCC diagnostic pop
  scope.id = gtorch_trace_range_begin (GTORCH_RECORD_RANGE, scope.name, 0);
  return scope;
}

/* As gtorch_trace_range_begin () takes it. */
static gchar *
text_of_module (const gchar *class_name, const gchar *path)
{
  return g_strconcat (class_name, "\n", path, NULL);
}

GTorchProfileScope
gtorch_profile_scope_begin_module (const gchar *class_name, const gchar *path, guint64 serial)
{
  GTorchProfileScope scope = { 0, GTORCH_RECORD_MODULE, text_of_module (class_name, path) };

  scope.id = gtorch_trace_range_begin (scope.kind, scope.name, serial);
  return scope;
}

GTorchProfileRange *
gtorch_profile_range_new_module (const gchar *class_name, const gchar *path, guint64 serial)
{
  g_autofree gchar *text = text_of_module (class_name, path);

  return range_new (GTORCH_RECORD_MODULE, text, serial);
}

void
gtorch_profile_scope_end (GTorchProfileScope *scope)
{
  if (G_LIKELY (scope->name == NULL))
    return;
  gtorch_trace_range_end (scope->id, scope->kind, scope->name);
  g_free (scope->name);
}

/**
 * gtorch_record_function:
 * @name: the name of the range
 * @func: (scope call) (closure user_data): the function to call
 * @user_data: passed to @func
 * @error: return location for an error
 *
 * Calls @func in a range of this name; see [struct@ProfileRange].
 *
 * ```js
 * GTorch.record_function('forward', () => {
 *     output = model.forward(input);
 *     return true;
 * });
 * ```
 *
 * Returns: what @func returned
 *
 * Since: 0.1
 */
gboolean
gtorch_record_function (const gchar *name, GTorchProfileFunc func, gpointer user_data,
                        GError **error)
{
  g_autoptr (GTorchProfileRange) range = NULL;
  GError *local = NULL;
  gboolean success;

  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (func != NULL, FALSE);
  range = gtorch_profile_range_new (name);
  success = func (user_data, &local);
  return gtorch_callback_ended ("record_function", success, local, error);
}
