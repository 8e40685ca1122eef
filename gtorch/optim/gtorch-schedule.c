/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Schedules that are rows, and the state of all schedules. */

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

guint
gtorch_schedule_get_numbers (GTorchLRScheduler *self, gdouble *numbers)
{
  const GTorchScheduleClass *row = class_of (self);
  guint i;

  for (i = 0; row != NULL && i < row->n_numbers; i++)
    {
      gconstpointer place = (const gchar *) self + row->numbers[i].offset;

      numbers[i] = row->numbers[i].kind == GTORCH_FIELD_INT64 ? (gdouble) * (const gint64 *) place
                                                              : *(const gdouble *) place;
    }
  return row != NULL ? row->n_numbers : 0;
}

void
gtorch_schedule_set_numbers (GTorchLRScheduler *self, const gdouble *numbers)
{
  const GTorchScheduleClass *row = class_of (self);
  guint i;

  for (i = 0; row != NULL && i < row->n_numbers; i++)
    {
      const gchar *name = row->numbers[i].property;

      if (row->numbers[i].kind == GTORCH_FIELD_INT64)
        g_object_set (self, name, (gint64) numbers[i], NULL);
      else
        g_object_set (self, name, numbers[i], NULL);
    }
}

static gboolean
check (GTorchLRScheduler *self, GError **error)
{
  const GTorchScheduleClass *row = class_of (self);
  gdouble numbers[GTORCH_SCHEDULE_MAX_NUMBERS];
  guint n = gtorch_schedule_get_numbers (self, numbers), i;

  for (i = 0; i < n; i++)
    if (!gtorch_check_range (row->who, row->numbers[i].name, numbers[i],
                             MAX (row->numbers[i].least, -G_MAXDOUBLE),
                             MIN (row->numbers[i].most, G_MAXDOUBLE), row->numbers[i].is_open,
                             error))
      return FALSE;
  return TRUE;
}

static gboolean
compute (GTorchLRScheduler *self, GTorchParamGroup *group, gdouble base_lr, gdouble *lr,
         GError **error)
{
  gdouble numbers[GTORCH_SCHEDULE_MAX_NUMBERS];

  gtorch_schedule_get_numbers (self, numbers);
  *lr = class_of (self)->lr (numbers, base_lr, gtorch_lr_scheduler_get_last_epoch (self));
  return TRUE;
}

void
gtorch_schedule_class_init (GTorchLRSchedulerClass *klass, const GTorchScheduleClass *row)
{
  g_assert (row->n_numbers <= GTORCH_SCHEDULE_MAX_NUMBERS);
  klass->row = row;
  klass->check = check;
  klass->compute = compute;
}

gpointer
gtorch_schedule_start (gpointer self, GError **error)
{
  if (gtorch_lr_scheduler_step (self, error))
    return self;
  g_object_unref (self);
  return NULL;
}

/* --- state --- */

static void
put_number (GHashTable *dict, const gchar *name, gdouble value)
{
  GTorchImpl *number = gtorch_impl_new_number (value);

  number->is_number = FALSE;
  g_hash_table_insert (dict, g_strdup (name), gtorch_tensor_wrap (number));
}

static void
put_numbers (GHashTable *dict, const gchar *name, GArray *numbers)
{
  GTorchTensor *tensor =
      gtorch_tensor_new_from_doubles ((const gdouble *) (gpointer) numbers->data, numbers->len,
                                      (const gint64[]){ numbers->len }, 1, GTORCH_DTYPE_FLOAT64,
                                      gtorch_device_cpu (), NULL);

  if (tensor != NULL)
    g_hash_table_insert (dict, g_strdup (name), tensor);
}

/**
 * gtorch_lr_scheduler_state_dict:
 * @self: a schedule
 *
 * Gets the state of the schedule: `last_epoch`, `base_lrs` and `last_lr` with one number for each group,
 * and its settings by their names.
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): names and tensors, for
 *   [func@safetensors_save] for example
 *
 * Since: 0.1
 */
GHashTable *
gtorch_lr_scheduler_state_dict (GTorchLRScheduler *self)
{
  gdouble numbers[GTORCH_SCHEDULE_MAX_NUMBERS];
  GTorchScheduleState *state;
  GHashTable *dict;
  guint n, i;

  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), NULL);
  state = gtorch_lr_scheduler_get_state (self);
  dict = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  put_number (dict, "last_epoch", (gdouble) state->last_epoch);
  put_numbers (dict, "base_lrs", state->base_lrs);
  put_numbers (dict, "last_lr", state->last_lrs);
  n = gtorch_schedule_get_numbers (self, numbers);
  for (i = 0; i < n; i++)
    put_number (dict, class_of (self)->numbers[i].name, numbers[i]);
  return dict;
}

static gboolean
fail_load (GError **error, const gchar *name, const gchar *why)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, _ ("load_state_dict: “%s” %s"),
               gtorch_name_str (name), why);
  return FALSE;
}

static GArray *
get_lrs (GTorchLRScheduler *self, const gchar *name, GTorchTensor *value, GError **error)
{
  GTorchOptimizer *optimizer = gtorch_lr_scheduler_get_optimizer (self);
  guint n_groups = optimizer == NULL
                       ? 0
                       : g_list_model_get_n_items (gtorch_optimizer_get_param_groups (optimizer));
  g_autofree gdouble *numbers = NULL;
  GError *failure = NULL;
  GArray *lrs;
  gsize n = 0, i;

  numbers = gtorch_tensor_to_doubles (value, &n, &failure);
  if (failure != NULL)
    {
      g_propagate_error (error, failure);
      g_prefix_error (error, "load_state_dict: %s: ", gtorch_name_str (name));
      return NULL;
    }
  if (n > n_groups)
    {
      fail_load (error, name, _ ("has more numbers than the optimizer has groups"));
      return NULL;
    }
  for (i = 0; i < n; i++)
    if (!isfinite (numbers[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                     _ ("load_state_dict: “%s” is %g at %" G_GSIZE_FORMAT ", it must be finite"),
                     gtorch_name_str (name), numbers[i], i);
        return NULL;
      }
  lrs = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_array_append_vals (lrs, numbers, n);
  return lrs;
}

/* The changes that a load is going to make. */
typedef struct
{
  gdouble last_epoch;
  GArray *base_lrs, *last_lrs; /* NULL: unchanged */
  gdouble numbers[GTORCH_SCHEDULE_MAX_NUMBERS];
} Load;

static void
load_clear (Load *load)
{
  g_clear_pointer (&load->base_lrs, g_array_unref);
  g_clear_pointer (&load->last_lrs, g_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Load, load_clear)

static gboolean
load_entry (GTorchLRScheduler *self, Load *load, const gchar *name, gpointer value, GError **error)
{
  const GTorchScheduleClass *row = class_of (self);
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
    {
      g_clear_pointer (lrs, g_array_unref);
      *lrs = get_lrs (self, name, value, error);
      return *lrs != NULL;
    }
  for (i = 0; row != NULL && i < row->n_numbers; i++)
    if (strcmp (name, row->numbers[i].name) == 0)
      return gtorch_state_get_number ("load_state_dict", name, value,
                                      row->numbers[i].is_open
                                          ? nextafter (row->numbers[i].least, INFINITY)
                                          : MAX (row->numbers[i].least, -G_MAXDOUBLE),
                                      MIN (row->numbers[i].most,
                                           row->numbers[i].kind == GTORCH_FIELD_INT64
                                               ? 0x1p53
                                               : G_MAXDOUBLE),
                                      row->numbers[i].kind == GTORCH_FIELD_INT64, &load->numbers[i],
                                      error);
  g_assert_not_reached ();
}

static gboolean
check_entries (GTorchLRScheduler *self, GHashTable *state, GError **error)
{
  const gchar *names[3 + GTORCH_SCHEDULE_MAX_NUMBERS] = { "last_epoch", "base_lrs", "last_lr" };
  const GTorchScheduleClass *row = class_of (self);
  guint n = 3, i;

  for (i = 0; row != NULL && i < row->n_numbers; i++)
    names[n++] = row->numbers[i].name;
  return gtorch_state_check_keys ("load_state_dict", state, names, n, error);
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
  g_auto (Load) load = { 0 };
  GTorchScheduleState *mine;
  GHashTableIter iter;
  gpointer name, value;

  g_return_val_if_fail (GTORCH_IS_LR_SCHEDULER (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  mine = gtorch_lr_scheduler_get_state (self);
  load.last_epoch = (gdouble) mine->last_epoch;
  gtorch_schedule_get_numbers (self, load.numbers);
  if (!check_entries (self, state, error))
    return FALSE;
  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &name, &value))
    if (!load_entry (self, &load, name, value, error))
      return FALSE;

  /* no failure is possible from here on */
  if (load.base_lrs != NULL)
    {
      g_array_unref (mine->base_lrs);
      mine->base_lrs = g_steal_pointer (&load.base_lrs);
    }
  if (load.last_lrs != NULL)
    {
      g_array_unref (mine->last_lrs);
      mine->last_lrs = g_steal_pointer (&load.last_lrs);
    }
  mine->last_epoch = (gint64) load.last_epoch;
  gtorch_schedule_set_numbers (self, load.numbers);
  gtorch_lr_scheduler_notify_epoch (self);
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
