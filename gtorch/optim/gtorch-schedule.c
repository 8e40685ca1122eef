/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The settings of schedules, and the rates of those that are rows. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-property-private.h"
#include "optim/gtorch-lr-scheduler-private.h"

#include "optim/gtorch-optimizer-private.h"
#include "optim/gtorch-setting-private.h"

static const GTorchScheduleClass *
class_of (GTorchLRScheduler *self)
{
  return GTORCH_LR_SCHEDULER_GET_CLASS (self)->row;
}

gdouble
gtorch_schedule_passed (GTorchSize *milestones, gdouble t)
{
  gsize n = 0, i;
  const gint64 *values = milestones != NULL ? gtorch_size_get_values (milestones, &n) : NULL;
  gdouble passed = 0;

  for (i = 0; i < n; i++)
    passed += (gdouble) values[i] <= t;
  return passed;
}

guint
gtorch_schedule_get_numbers (GTorchLRScheduler *self, gdouble *numbers)
{
  const GTorchScheduleClass *row = class_of (self);
  guint i;

  for (i = 0; row != NULL && i < row->n_numbers; i++)
    {
      gconstpointer place = G_STRUCT_MEMBER_P (self, row->numbers[i].offset);

      switch ((int) row->numbers[i].kind)
        {
        case GTORCH_FIELD_INT64:
          numbers[i] = (gdouble) * (const gint64 *) place;
          break;
        case GTORCH_FIELD_BOOL:
        case GTORCH_FIELD_ENUM:
          numbers[i] = *(const gint *) place;
          break;
        default:
          numbers[i] = *(const gdouble *) place;
        }
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
      gpointer place = G_STRUCT_MEMBER_P (self, row->numbers[i].offset);
      gdouble former[GTORCH_SCHEDULE_MAX_NUMBERS];

      gtorch_schedule_get_numbers (self, former);
      if (former[i] == numbers[i])
        continue;
      switch ((int) row->numbers[i].kind)
        {
        case GTORCH_FIELD_INT64:
          *(gint64 *) place = (gint64) numbers[i];
          break;
        case GTORCH_FIELD_BOOL:
        case GTORCH_FIELD_ENUM:
          *(gint *) place = (gint) numbers[i];
          break;
        default:
          *(gdouble *) place = numbers[i];
        }
      if (row->numbers[i].property != NULL)
        g_object_notify (G_OBJECT (self), row->numbers[i].property);
    }
}

void
gtorch_schedule_take_doubles (GArray **list, const gdouble *values, gsize n)
{
  g_clear_pointer (list, g_array_unref);
  *list = g_array_sized_new (FALSE, FALSE, sizeof (gdouble), n);
  g_array_append_vals (*list, values, n);
}

gdouble
gtorch_schedule_get_first (GArray *list)
{
  return list != NULL && list->len > 0 ? g_array_index (list, gdouble, 0) : 0;
}

void
gtorch_schedule_set_all (gpointer self, GArray **list, gdouble value, const gchar *property)
{
  gdouble former = gtorch_schedule_get_first (*list);

  gtorch_schedule_take_doubles (list, &value, 1);
  if (gtorch_property_set_double (&former, value))
    g_object_notify (self, property);
}

gdouble
gtorch_schedule_double_of (GArray *list, guint group)
{
  return g_array_index (list, gdouble, list->len == 1 ? 0 : group);
}

/* --- checks --- */

static gboolean
check_list (GTorchLRScheduler *self, const GTorchScheduleList *list, GError **error)
{
  GTorchOptimizer *optimizer = gtorch_lr_scheduler_get_optimizer (self);
  const gchar *who = class_of (self)->who;
  gpointer place = *(gpointer *) G_STRUCT_MEMBER_P (self, list->offset);
  const GArray *values = place;
  guint n_groups, i;

  if (place == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %s is missing"), who,
                   list->name);
      return FALSE;
    }
  if (list->kind == GTORCH_FIELD_SIZE)
    return TRUE;
  n_groups = g_list_model_get_n_items (gtorch_optimizer_get_param_groups (optimizer));
  if (values->len != 1 && values->len != n_groups)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %s has %u numbers, it must have 1 or as many as there are groups, %u"),
                   who, list->name, values->len, n_groups);
      return FALSE;
    }
  for (i = 0; i < values->len; i++)
    if (!gtorch_check_range (who, list->name, g_array_index (values, gdouble, i), -G_MAXDOUBLE,
                             G_MAXDOUBLE, FALSE, error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_schedule_check_choice (const gchar *who, const gchar *name, gint value, GType type,
                              GError **error)
{
  g_autoptr (GEnumClass) choices = g_type_class_ref (type);

  if (g_enum_get_value (choices, value) != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %s is %d, which is no %s"), who,
               name, value, g_type_name (type));
  return FALSE;
}

gboolean
gtorch_schedule_check (GTorchLRScheduler *self, GError **error)
{
  const GTorchScheduleClass *row = class_of (self);
  gdouble numbers[GTORCH_SCHEDULE_MAX_NUMBERS];
  guint n = gtorch_schedule_get_numbers (self, numbers), i;

  for (i = 0; i < n; i++)
    if (!row->numbers[i].is_any && row->numbers[i].kind != GTORCH_FIELD_BOOL
        && row->numbers[i].kind != GTORCH_FIELD_ENUM
        && !gtorch_check_range (row->who, row->numbers[i].name, numbers[i],
                                MAX (row->numbers[i].least, -G_MAXDOUBLE),
                                MIN (row->numbers[i].most, G_MAXDOUBLE), row->numbers[i].is_open,
                                error))
      return FALSE;
  for (i = 0; i < row->n_lists; i++)
    if (!check_list (self, &row->lists[i], error))
      return FALSE;
  return TRUE;
}

/* --- rates --- */

/* The formula of the epoch rounds once, where a product over all epochs would round in each of them. It
 * holds unless something else has changed the rate since the epoch before. */
static gboolean
compute (GTorchLRScheduler *self, GTorchParamGroup *group, gdouble base_lr, gdouble *lr,
         GError **error)
{
  const GTorchScheduleClass *row = class_of (self);
  const gdouble t = (gdouble) gtorch_lr_scheduler_get_last_epoch (self)
                    + gtorch_lr_scheduler_get_state (self)->fraction,
                present = gtorch_param_group_get_learning_rate (group);
  gdouble numbers[GTORCH_SCHEDULE_MAX_NUMBERS];
  GTorchSize *lists[GTORCH_SCHEDULE_MAX_LISTS];
  gboolean by_formula;
  guint i;

  gtorch_schedule_get_numbers (self, numbers);
  for (i = 0; i < row->n_lists; i++)
    lists[i] = *(GTorchSize **) G_STRUCT_MEMBER_P (self, row->lists[i].offset);
  switch (gtorch_lr_scheduler_get_state (self)->how)
    {
    case GTORCH_SCHEDULE_FIRST:
      by_formula = t > 0 || present == base_lr;
      break;
    case GTORCH_SCHEDULE_NEXT:
      by_formula = present == row->lr (numbers, lists, base_lr, t - 1);
      break;
    default:
      by_formula = TRUE;
    }
  *lr = row->next == NULL || by_formula ? row->lr (numbers, lists, base_lr, t)
                                        : row->next (numbers, lists, base_lr, t, present);
  return TRUE;
}

void
gtorch_schedule_class_init (GTorchLRSchedulerClass *klass, const GTorchScheduleClass *row)
{
  g_assert (row->n_numbers <= GTORCH_SCHEDULE_MAX_NUMBERS);
  g_assert (row->n_lists <= GTORCH_SCHEDULE_MAX_LISTS);
  klass->row = row;
  klass->check = gtorch_schedule_check;
  if (row->lr != NULL)
    klass->compute = compute;
}

gpointer
gtorch_schedule_start (gpointer self, GError **error)
{
  if (gtorch_lr_scheduler_initial_step (self, error))
    return self;
  g_object_unref (self);
  return NULL;
}

/* --- momentum --- */

static const gchar *const momenta[] = { "momentum", "beta1" };

/* The property of a class of a program's own, whose groups have no momentum. */
static const gchar *
find_property (GTorchOptimizer *optimizer)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (momenta); i++)
    {
      const GParamSpec *spec =
          g_object_class_find_property (G_OBJECT_GET_CLASS (optimizer), momenta[i]);

      if (spec != NULL && spec->value_type == G_TYPE_DOUBLE)
        return momenta[i];
    }
  return NULL;
}

/* A group that was given betas has its first number changed. */
static gboolean
set_given (GTorchParamGroup *group, const gchar *name, gdouble momentum)
{
  gsize n;
  g_autofree gdouble *values = gtorch_param_group_get_setting (group, name, &n, NULL);

  if (values == NULL)
    return FALSE;
  values[0] = momentum;
  return gtorch_param_group_set_setting (group, name, values, n, NULL);
}

static gboolean
has_given (GTorchOptimizer *optimizer)
{
  g_autoptr (GTorchParamGroup) group =
      g_list_model_get_item (gtorch_optimizer_get_param_groups (optimizer), 0);

  return group != NULL
         && (gtorch_param_group_get_setting_type (group, "momentum") != G_TYPE_NONE
             || gtorch_param_group_get_setting_type (group, "betas") != G_TYPE_NONE);
}

/* The number of the class that is its momentum, or -1. */
static gint
find_momentum (GTorchOptimizer *optimizer)
{
  const GTorchSettings *settings = gtorch_settings_of (optimizer);
  gint found = -1;
  guint n, i;

  for (i = 0; settings != NULL && found < 0 && i < G_N_ELEMENTS (momenta); i++)
    found = gtorch_settings_find (settings, momenta[i], &n);
  return found;
}

gboolean
gtorch_schedule_check_momentum (GTorchLRScheduler *self, gboolean is_needed, GError **error)
{
  GTorchOptimizer *optimizer = gtorch_lr_scheduler_get_optimizer (self);

  if (!is_needed || find_momentum (optimizer) >= 0 || has_given (optimizer)
      || find_property (optimizer) != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %s has neither momentum nor beta1, so cycle_momentum must be false"),
               class_of (self)->who, G_OBJECT_TYPE_NAME (optimizer));
  return FALSE;
}

void
gtorch_schedule_set_momentum (GTorchLRScheduler *self, gdouble momentum)
{
  GTorchOptimizer *optimizer = gtorch_lr_scheduler_get_optimizer (self);
  GListModel *groups = gtorch_optimizer_get_param_groups (optimizer);
  const gint number = find_momentum (optimizer);
  guint n = g_list_model_get_n_items (groups), i;

  if (number < 0 && !has_given (optimizer))
    {
      g_object_set (optimizer, find_property (optimizer), momentum, NULL);
      return;
    }
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      if (number >= 0)
        gtorch_param_group_take_numbers (group, number, 1, &momentum, FALSE);
      else if (!set_given (group, "momentum", momentum))
        set_given (group, "betas", momentum);
    }
}

void
gtorch_schedule_set_bases (GTorchLRScheduler *self, GArray *rates, gdouble divisor,
                           gboolean is_always)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (gtorch_lr_scheduler_get_optimizer (self));
  GTorchScheduleState *state = gtorch_lr_scheduler_get_state (self);
  guint n = g_list_model_get_n_items (groups), i;

  g_array_set_size (state->base_lrs, 0);
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      const gdouble base = gtorch_schedule_double_of (rates, i) / divisor;

      g_array_append_val (state->base_lrs, base);
      if (is_always || gtorch_param_group_get_initial_learning_rate (group) < 0)
        gtorch_param_group_set_initial_learning_rate (group, base);
    }
}
