/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The state of schedules as a table, and loading it. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "optim/gtorch-lr-scheduler-private.h"

#include "device/gtorch-device.h"
#include "tensor/gtorch-impl-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "nn/gtorch-state-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "tensor/gtorch-tensor-private.h"
#include "tensor/gtorch-tensor.h"
#include "nn/gtorch-module-private.h"

static const GTorchScheduleClass *
class_of (GTorchLRScheduler *self)
{
  return GTORCH_LR_SCHEDULER_GET_CLASS (self)->row;
}

/* --- getting --- */

static void
put_tensor (GHashTable *dict, const gchar *prefix, const gchar *name, GTorchTensor *tensor)
{
  if (tensor != NULL)
    g_hash_table_insert (dict, g_strconcat (prefix, name, NULL), tensor);
}

static void
put_number (GHashTable *dict, const gchar *prefix, const gchar *name, gdouble value)
{
  GTorchImpl *number = gtorch_impl_new_number (value);

  number->is_number = FALSE;
  put_tensor (dict, prefix, name, gtorch_tensor_wrap (number));
}

static void
put_doubles (GHashTable *dict, const gchar *prefix, const gchar *name, GArray *numbers)
{
  put_tensor (dict, prefix, name,
              gtorch_tensor_new_from_doubles ((const gdouble *) (gpointer) numbers->data,
                                              numbers->len, (const gint64[]){ numbers->len }, 1,
                                              GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), NULL));
}

static void
put_list (GHashTable *dict, const gchar *prefix, const GTorchScheduleList *list, gpointer value)
{
  g_autoptr (GArray) doubles = NULL;
  const gint64 *values;
  gsize n, i;

  if (value == NULL)
    return;
  if (list->kind == GTORCH_FIELD_DOUBLE)
    {
      put_doubles (dict, prefix, list->name, value);
      return;
    }
  values = gtorch_size_get_values (value, &n);
  doubles = g_array_new (FALSE, FALSE, sizeof (gdouble));
  for (i = 0; i < n; i++)
    {
      const gdouble number = (gdouble) values[i];

      g_array_append_val (doubles, number);
    }
  put_doubles (dict, prefix, list->name, doubles);
}

static GPtrArray *
parts_of (GTorchLRScheduler *self)
{
  GTorchScheduleParts parts = GTORCH_LR_SCHEDULER_GET_CLASS (self)->parts;

  return parts != NULL ? parts (self) : NULL;
}

static void
put_state (GHashTable *dict, const gchar *prefix, GTorchLRScheduler *self)
{
  const GTorchScheduleState *state = gtorch_lr_scheduler_get_state (self);
  const GTorchScheduleClass *row = class_of (self);
  GPtrArray *parts = parts_of (self);
  gdouble numbers[GTORCH_SCHEDULE_MAX_NUMBERS];
  guint n = gtorch_schedule_get_numbers (self, numbers), i;

  put_number (dict, prefix, "last_epoch", (gdouble) state->last_epoch);
  put_doubles (dict, prefix, "base_lrs", state->base_lrs);
  put_doubles (dict, prefix, "last_lr", state->last_lrs);
  for (i = 0; i < n; i++)
    put_number (dict, prefix, row->numbers[i].name, numbers[i]);
  for (i = 0; row != NULL && i < row->n_lists; i++)
    if (!row->lists[i].is_setup)
      put_list (dict, prefix, &row->lists[i],
                *(gpointer *) G_STRUCT_MEMBER_P (self, row->lists[i].offset));
  for (i = 0; parts != NULL && i < parts->len; i++)
    {
      g_autofree gchar *own = g_strdup_printf ("%sschedulers.%u.", prefix, i);

      put_state (dict, own, parts->pdata[i]);
    }
}

/**
 * gtorch_lr_scheduler_state_dict:
 * @self: a schedule
 *
 * Gets the state of the schedule: `last_epoch`, `base_lrs` and `last_lr` with one number for each group,
 * and its settings by their names. That of a schedule that consists of others has theirs, too, as in
 * `schedulers.0.last_epoch`. Functions of the program are no part of it.
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): names and tensors, for
 *   [func@safetensors_save] for example
 *
 * Since: 0.1
 */
GHashTable *
gtorch_lr_scheduler_state_dict (GTorchLRScheduler *self)
{
  GHashTable *dict;

  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), NULL);
  dict = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  put_state (dict, "", self);
  return dict;
}

/* --- loading --- */

static gboolean
fail_load (GError **error, const gchar *name, const gchar *why)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, _ ("load_state_dict: “%s” %s"),
               gtorch_name_str (name), why);
  return FALSE;
}

static GArray *
get_doubles (const gchar *name, GTorchTensor *value, GError **error)
{
  g_autofree gdouble *numbers = NULL;
  GError *failure = NULL;
  GArray *list;
  gsize n = 0, i;

  numbers = gtorch_tensor_to_doubles (value, &n, &failure);
  if (failure != NULL)
    {
      g_propagate_error (error, failure);
      g_prefix_error (error, "load_state_dict: %s: ", gtorch_name_str (name));
      return NULL;
    }
  for (i = 0; i < n; i++)
    if (!isfinite (numbers[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                     _ ("load_state_dict: “%s” is %g at %zu, it must be finite"),
                     gtorch_name_str (name), numbers[i], i);
        return NULL;
      }
  list = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_array_append_vals (list, numbers, n);
  return list;
}

static GArray *
get_lrs (GTorchLRScheduler *self, const gchar *name, GTorchTensor *value, GError **error)
{
  GTorchOptimizer *optimizer = gtorch_lr_scheduler_get_optimizer (self);
  guint n_groups = optimizer == NULL
                       ? 0
                       : g_list_model_get_n_items (gtorch_optimizer_get_param_groups (optimizer));
  g_autoptr (GArray) lrs = get_doubles (name, value, error);

  if (lrs != NULL && lrs->len > n_groups)
    {
      fail_load (error, name, _ ("has more numbers than the optimizer has groups"));
      return NULL;
    }
  return g_steal_pointer (&lrs);
}

static GTorchSize *
get_size (const gchar *name, GTorchTensor *value, GError **error)
{
  g_autoptr (GArray) doubles = get_doubles (name, value, error);
  g_autofree gint64 *values = NULL;
  guint i;

  if (doubles == NULL)
    return NULL;
  values = g_new (gint64, doubles->len + 1);
  for (i = 0; i < doubles->len; i++)
    {
      const gdouble number = g_array_index (doubles, gdouble, i);

      if (number != floor (number) || fabs (number) > 0x1p53)
        {
          fail_load (error, name, _ ("must consist of whole numbers"));
          return NULL;
        }
      values[i] = (gint64) number;
    }
  return gtorch_size_new (values, doubles->len);
}

/* The changes that a load is going to make to a schedule and to those that it consists of. */
typedef struct
{
  GTorchLRScheduler *scheduler;
  gdouble last_epoch;
  GArray *base_lrs, *last_lrs; /* NULL: unchanged */
  gdouble numbers[GTORCH_SCHEDULE_MAX_NUMBERS];
  gpointer lists[GTORCH_SCHEDULE_MAX_LISTS]; /* NULL: unchanged */
} Load;

static void
load_free (gpointer data)
{
  const GTorchScheduleClass *row;
  Load *load = data;
  guint i;

  row = class_of (load->scheduler);
  g_clear_pointer (&load->base_lrs, g_array_unref);
  g_clear_pointer (&load->last_lrs, g_array_unref);
  for (i = 0; row != NULL && i < row->n_lists; i++)
    if (load->lists[i] != NULL && row->lists[i].kind == GTORCH_FIELD_SIZE)
      gtorch_size_unref (load->lists[i]);
    else if (load->lists[i] != NULL)
      g_array_unref (load->lists[i]);
  g_free (load);
}

static gboolean
load_number (const GTorchScheduleNumber *number, const gchar *name, GTorchTensor *value,
             gdouble *loaded, GError **error)
{
  const gboolean is_whole = number->kind != GTORCH_FIELD_DOUBLE;

  if (number->is_any)
    return gtorch_state_get_number ("load_state_dict", name, value, -INFINITY, INFINITY, is_whole,
                                    loaded, error);
  return gtorch_state_get_number ("load_state_dict", name, value,
                                  number->is_open ? nextafter (number->least, INFINITY)
                                                  : MAX (number->least, -G_MAXDOUBLE),
                                  MIN (number->most, is_whole ? 0x1p53 : G_MAXDOUBLE), is_whole,
                                  loaded, error);
}

static gboolean
load_entry (Load *load, const gchar *name, gpointer value, GError **error)
{
  const GTorchScheduleClass *row = class_of (load->scheduler);
  GArray **lrs = NULL;
  guint i;

  if (!GTORCH_IS_TENSOR (value))
    return fail_load (error, name, _ ("is not a tensor"));
  if (strcmp (name, "last_epoch") == 0)
    return gtorch_state_get_number ("load_state_dict", name, value, -1, 0x1p53, TRUE,
                                    &load->last_epoch, error);
  if (strcmp (name, "base_lrs") == 0)
    lrs = &load->base_lrs;
  else if (strcmp (name, "last_lr") == 0)
    lrs = &load->last_lrs;
  if (lrs != NULL)
    return (*lrs = get_lrs (load->scheduler, name, value, error)) != NULL;
  for (i = 0; row != NULL && i < row->n_numbers; i++)
    if (strcmp (name, row->numbers[i].name) == 0)
      return load_number (&row->numbers[i], name, value, &load->numbers[i], error);
  for (i = 0; row != NULL && i < row->n_lists; i++)
    if (strcmp (name, row->lists[i].name) == 0)
      {
        load->lists[i] = row->lists[i].kind == GTORCH_FIELD_SIZE
                             ? (gpointer) get_size (name, value, error)
                             : (gpointer) get_lrs (load->scheduler, name, value, error);
        return load->lists[i] != NULL;
      }
  g_assert_not_reached ();
}

static gboolean
check_entries (GTorchLRScheduler *self, GHashTable *state, GError **error)
{
  const gchar *names[3 + GTORCH_SCHEDULE_MAX_NUMBERS + GTORCH_SCHEDULE_MAX_LISTS] = { "last_epoch",
                                                                                      "base_lrs",
                                                                                      "last_lr" };
  const GTorchScheduleClass *row = class_of (self);
  guint n = 3, i;

  for (i = 0; row != NULL && i < row->n_numbers; i++)
    names[n++] = row->numbers[i].name;
  for (i = 0; row != NULL && i < row->n_lists; i++)
    if (!row->lists[i].is_setup)
      names[n++] = row->lists[i].name;
  return gtorch_state_check_keys ("load_state_dict", state, names, n, error);
}

/* Returns the entries of part i, without its prefix, and removes them from the state. */
static GHashTable *
take_part (GHashTable *state, guint i)
{
  g_autofree gchar *prefix = g_strdup_printf ("schedulers.%u.", i);
  GHashTable *part = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GHashTableIter iter;
  gpointer name, value;

  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &name, &value))
    if (g_str_has_prefix (name, prefix))
      {
        g_hash_table_insert (part, g_strdup ((const gchar *) name + strlen (prefix)), value);
        g_hash_table_iter_remove (&iter);
      }
  return part;
}

/* Adds the loads of the schedule and of its parts to `loads`. Changes `state`. */
static gboolean
prepare (GTorchLRScheduler *self, GHashTable *state, GPtrArray *loads, GError **error)
{
  GPtrArray *parts = parts_of (self);
  Load *load = g_new0 (Load, 1);
  GHashTableIter iter;
  gpointer name, value;
  guint i;

  load->scheduler = self;
  g_ptr_array_add (loads, load);
  load->last_epoch = (gdouble) gtorch_lr_scheduler_get_last_epoch (self);
  gtorch_schedule_get_numbers (self, load->numbers);
  for (i = 0; parts != NULL && i < parts->len; i++)
    {
      g_autoptr (GHashTable) part = take_part (state, i);

      if (!prepare (parts->pdata[i], part, loads, error))
        {
          g_prefix_error (error, "schedulers.%u: ", i);
          return FALSE;
        }
    }
  if (!check_entries (self, state, error))
    return FALSE;
  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &name, &value))
    if (!load_entry (load, name, value, error))
      return FALSE;
  return TRUE;
}

static void
swap (gpointer *place, gpointer *value)
{
  gpointer former = *place;

  if (*value == NULL)
    return;
  *place = *value;
  *value = former;
}

static void
commit (Load *load)
{
  GTorchScheduleState *mine = gtorch_lr_scheduler_get_state (load->scheduler);
  const GTorchScheduleClass *row = class_of (load->scheduler);
  guint i;

  swap ((gpointer *) &mine->base_lrs, (gpointer *) &load->base_lrs);
  swap ((gpointer *) &mine->last_lrs, (gpointer *) &load->last_lrs);
  for (i = 0; row != NULL && i < row->n_lists; i++)
    swap (G_STRUCT_MEMBER_P (load->scheduler, row->lists[i].offset), &load->lists[i]);
  mine->last_epoch = (gint64) load->last_epoch;
  mine->fraction = 0;
  mine->is_started = mine->last_lrs->len > 0;
  gtorch_schedule_set_numbers (load->scheduler, load->numbers);
  gtorch_lr_scheduler_notify_epoch (load->scheduler);
}

/**
 * gtorch_lr_scheduler_load_state_dict:
 * @self: a schedule
 * @state: (element-type utf8 GTorchTensor): the result of [method@LRScheduler.state_dict]
 * @error: return location for an error
 *
 * Replaces the state by that of another schedule of this class. The learning rates of the optimizer do
 * not change until the next step: they are part of the optimizer's state. Nothing is changed if @state is
 * invalid.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_FOUND listing the missing and the unexpected entries,
 *   or %GTORCH_ERROR_FORMAT naming the invalid entry
 *
 * Since: 0.1
 */
gboolean
gtorch_lr_scheduler_load_state_dict (GTorchLRScheduler *self, GHashTable *state, GError **error)
{
  g_autoptr (GPtrArray) loads = NULL;
  g_autoptr (GHashTable) rest = NULL;
  GHashTableIter iter;
  gpointer name, value;
  guint i;

  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  loads = g_ptr_array_new_with_free_func (load_free);
  rest = g_hash_table_new (g_str_hash, g_str_equal);
  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &name, &value))
    g_hash_table_insert (rest, name, value);
  if (!prepare (self, rest, loads, error))
    return FALSE;

  /* no failure is possible from here on */
  for (i = 0; i < loads->len; i++)
    commit (loads->pdata[i]);
  return TRUE;
}

/**
 * gtorch_lr_scheduler_state_lists:
 * @self: a schedule
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names, in no particular order
 *
 * Gets the state of [method@LRScheduler.state_dict] as lists.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensor of each name
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_lr_scheduler_state_lists (GTorchLRScheduler *self, gchar ***names)
{
  g_autoptr (GHashTable) dict = NULL;

  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), NULL);
  dict = gtorch_lr_scheduler_state_dict (self);
  return gtorch_state_to_lists (dict, names);
}

/**
 * gtorch_lr_scheduler_load_state_lists:
 * @self: a schedule
 * @names: (array zero-terminated=1): the name of each tensor
 * @tensors: (array length=n_tensors): tensors
 * @n_tensors: the length of @tensors, which is that of @names
 * @error: return location for an error
 *
 * Does the same as [method@LRScheduler.load_state_dict].
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the lengths differ or a name appears twice,
 *   and with the errors
 *   of [method@LRScheduler.load_state_dict]
 *
 * Since: 0.1
 */
gboolean
gtorch_lr_scheduler_load_state_lists (GTorchLRScheduler *self, const gchar *const *names,
                                      GTorchTensor **tensors, gsize n_tensors, GError **error)
{
  g_autoptr (GHashTable) state = NULL;

  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  state = gtorch_state_from_lists (names, tensors, n_tensors, error);
  return state != NULL && gtorch_lr_scheduler_load_state_dict (self, state, error);
}
