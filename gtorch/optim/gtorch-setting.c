/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The settings of optimizers: their tables and their defaults. */

#include "config.h"

#include "optim/gtorch-setting-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-none.h"
#include "base/gtorch-property-private.h"
#include "base/gtorch-range-private.h"
#include "nn/gtorch-field-text-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "optim/gtorch-param-group-private.h"

const GTorchSettings *
gtorch_settings_of (GTorchOptimizer *self)
{
  return GTORCH_OPTIMIZER_GET_CLASS (self)->settings;
}

guint
gtorch_settings_next (const GTorchSettings *self, guint first)
{
  guint i = first + 1;

  while (i < self->n_numbers && strcmp (self->numbers[i].arg, self->numbers[first].arg) == 0)
    i++;
  return i;
}

gint
gtorch_settings_find (const GTorchSettings *self, const gchar *name, guint *n)
{
  guint i;

  for (i = 0; i < self->n_numbers; i++)
    if (strcmp (self->numbers[i].arg, name) == 0)
      {
        *n = gtorch_settings_next (self, i) - i;
        return i;
      }
  *n = 1;
  for (i = 0; i < self->n_numbers; i++)
    if (strcmp (self->numbers[i].name, name) == 0)
      return i;
  return -1;
}

GType
gtorch_setting_get_type (const GTorchSetting *self)
{
  switch ((int) self->kind)
    {
    case GTORCH_FIELD_BOOL:
      return G_TYPE_BOOLEAN;
    case GTORCH_FIELD_INT64:
      return G_TYPE_INT64;
    case GTORCH_FIELD_ENUM:
      return self->type ();
    default:
      return G_TYPE_DOUBLE;
    }
}

/* --- checks --- */

static gboolean
is_none (const GTorchSetting *self, gdouble number)
{
  return self->is_optional
         && number == (self->kind == GTORCH_FIELD_INT64 ? GTORCH_NONE : GTORCH_NONE_DOUBLE);
}

void
gtorch_setting_get_bounds (const GTorchSetting *self, gdouble *low, gdouble *high)
{
  *low = self->is_open ? nextafter (self->least, INFINITY) : MAX (self->least, -G_MAXDOUBLE);
  *high = MIN (self->most, self->kind == GTORCH_FIELD_INT64 ? 0x1p53 : G_MAXDOUBLE);
  if (self->kind == GTORCH_FIELD_BOOL || self->kind == GTORCH_FIELD_ENUM)
    *low = 0;
  if (self->kind == GTORCH_FIELD_BOOL)
    *high = 1;
  if (self->is_optional)
    *low = MIN (*low, self->kind == GTORCH_FIELD_INT64 ? GTORCH_NONE : GTORCH_NONE_DOUBLE);
}

/* A number of another kind: what only a function, or a state that is loaded, can give. */
static gboolean
check_kind (const GTorchSettings *self, const GTorchSetting *setting, gdouble number,
            GError **error)
{
  g_autoptr (GEnumClass) choices = NULL;
  const gchar *rule = NULL;

  switch ((int) setting->kind)
    {
    case GTORCH_FIELD_BOOL:
      rule = number == 0 || number == 1 ? NULL : _ ("must be 0 or 1");
      break;
    case GTORCH_FIELD_INT64:
      rule = number == floor (number) ? NULL : _ ("must be a whole number");
      break;
    case GTORCH_FIELD_ENUM:
      choices = g_type_class_ref (setting->type ());
      if (!(number == floor (number) && number >= choices->minimum && number <= choices->maximum)
          || g_enum_get_value (choices, (gint) number) == NULL)
        rule = _ ("must be the number of a choice that there is");
      break;
    default:
      rule = number != GTORCH_NONE_DOUBLE ? NULL : _ ("must be a number");
      break;
    }
  if (rule == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %s is %g, it %s"), self->who,
               setting->name, number, rule);
  return FALSE;
}

gboolean
gtorch_setting_check (const GTorchSettings *self, guint i, gdouble number, GError **error)
{
  const GTorchSetting *setting = &self->numbers[i];

  if (is_none (setting, number))
    return TRUE;
  if (!check_kind (self, setting, number, error))
    return FALSE;
  if (setting->kind == GTORCH_FIELD_BOOL || setting->kind == GTORCH_FIELD_ENUM)
    return TRUE;
  /* a number that rounds to the bound in float32 equals it in steps of float32 */
  if (isfinite (setting->below)
      && !(gtorch_is_in_range (number, setting->least, G_MAXDOUBLE, setting->is_open)
           && (gfloat) number < setting->below))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   setting->is_open ? _ ("%s: %s is %g, it must be greater than %g and below %g")
                                    : _ ("%s: %s is %g, it must be at least %g and below %g"),
                   self->who, setting->name, number, setting->least, setting->below);
      return FALSE;
    }
  return gtorch_check_range (self->who, setting->name, number, MAX (setting->least, -G_MAXDOUBLE),
                             MIN (setting->most, G_MAXDOUBLE), setting->is_open, error);
}

static gboolean
check_rule (const GTorchSettings *self, const GTorchSettingRule *rule, const gdouble *numbers,
            GError **error)
{
  g_autoptr (GString) values = g_string_new (NULL);
  guint i;

  if (numbers[rule->number] == 0 || rule->holds (numbers))
    return TRUE;
  for (i = 0; i < self->n_numbers; i++)
    if (strstr (rule->needs, self->numbers[i].name) != NULL)
      g_string_append_printf (values, "%s%s = %s", values->len > 0 ? ", " : "",
                              self->numbers[i].name, gtorch_double_str (numbers[i]));
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %s, but %s needs %s"), self->who,
               values->str, rule->name, rule->needs);
  return FALSE;
}

gboolean
gtorch_settings_check_rules (const GTorchSettings *self, const gdouble *numbers, GError **error)
{
  guint i;

  for (i = 0; i < self->n_rules; i++)
    if (!check_rule (self, &self->rules[i], numbers, error))
      return FALSE;
  return TRUE;
}

/* Each group checks what is its own member. */
gboolean
gtorch_settings_check (const GTorchSettings *self, const gdouble *numbers, GError **error)
{
  guint i;

  for (i = 0; i < self->n_numbers; i++)
    if (self->numbers[i].offset >= 0 && !gtorch_setting_check (self, i, numbers[i], error))
      return FALSE;
  return gtorch_settings_check_rules (self, numbers, error);
}

/* --- the members of an instance --- */

/* Properties keep what steps refuse. */
static gint64
to_int64 (gdouble number)
{
  return number >= 0x1p63 ? G_MAXINT64 : (gint64) number;
}

gdouble
gtorch_setting_read (const GTorchSetting *self, gconstpointer instance)
{
  gconstpointer place = (const gchar *) instance + self->offset;

  switch ((int) self->kind)
    {
    case GTORCH_FIELD_BOOL:
      return *(const gboolean *) place != 0;
    case GTORCH_FIELD_INT64:
      return (gdouble) * (const gint64 *) place;
    case GTORCH_FIELD_ENUM:
      return *(const gint *) place;
    default:
      return *(const gdouble *) place;
    }
}

void
gtorch_setting_write (const GTorchSetting *self, gpointer instance, gdouble number)
{
  gpointer place = (gchar *) instance + self->offset;

  switch ((int) self->kind)
    {
    case GTORCH_FIELD_BOOL:
      *(gboolean *) place = number != 0;
      break;
    case GTORCH_FIELD_INT64:
      *(gint64 *) place = to_int64 (number);
      break;
    case GTORCH_FIELD_ENUM:
      *(gint *) place = (gint) number;
      break;
    default:
      *(gdouble *) place = number;
    }
}

/* --- the defaults of an optimizer --- */

void
gtorch_optimizer_notify_number (GTorchOptimizer *self, guint i)
{
  const GTorchSetting *number = &gtorch_settings_of (self)->numbers[i];
  g_autofree gchar *property = g_strdelimit (g_strdup (number->name), "_", '-');

  if (number->offset >= 0)
    g_object_notify (G_OBJECT (self), property);
}

void
gtorch_optimizer_follow (GTorchOptimizer *self, const gchar *name, GTorchParamGroup *group)
{
  GTorchOptimizerRates *rates = gtorch_optimizer_get_rates (self);
  const GTorchSettings *settings = gtorch_settings_of (self);
  gdouble numbers[GTORCH_SETTINGS_MAX];
  guint i;

  if (settings == NULL)
    return;
  gtorch_param_group_get_numbers (group, self, numbers);
  rates->is_told = TRUE;
  for (i = 0; i < settings->n_numbers; i++)
    if (gtorch_property_set_double (&rates->shown[i], numbers[i]))
      gtorch_optimizer_notify_number (self, i);
  rates->is_told = FALSE;
}

void
gtorch_optimizer_get_defaults (GTorchOptimizer *self, gdouble *numbers)
{
  const GTorchOptimizerRates *rates = gtorch_optimizer_get_rates (self);
  const GTorchSettings *settings = gtorch_settings_of (self);
  guint i;

  for (i = 0; i < settings->n_numbers; i++)
    {
      const GTorchSetting *number = &settings->numbers[i];

      if (number->offset >= 0)
        numbers[i] = gtorch_setting_read (number, self);
      else if (number->offset == GTORCH_SETTING_LR)
        numbers[i] = rates->has_rate ? rates->learning_rate : number->value;
      else
        numbers[i] = rates->has_decay ? rates->weight_decay : number->value;
    }
}

void
gtorch_optimizer_take_default (GTorchOptimizer *self, guint i, gdouble number)
{
  GTorchOptimizerRates *rates = gtorch_optimizer_get_rates (self);
  const GTorchSetting *setting = &gtorch_settings_of (self)->numbers[i];

  if (setting->offset >= 0)
    gtorch_setting_write (setting, self, number);
  else if (setting->offset == GTORCH_SETTING_LR)
    {
      rates->learning_rate = number;
      rates->has_rate = TRUE;
    }
  else
    {
      rates->weight_decay = number;
      rates->has_decay = TRUE;
    }
}

void
gtorch_optimizer_set_default_rates (GTorchOptimizer *self, gdouble learning_rate,
                                    gdouble weight_decay)
{
  GTorchOptimizerRates *rates = gtorch_optimizer_get_rates (self);

  rates->learning_rate = learning_rate;
  rates->weight_decay = weight_decay;
  rates->has_rate = rates->has_decay = TRUE;
}

/* --- properties --- */

static guint
find_field (const GTorchSettings *settings, const GTorchField *field)
{
  guint i;

  for (i = 0; settings->numbers[i].offset != (gssize) field->offset; i++)
    g_assert (i + 1 < settings->n_numbers);
  return i;
}

/* That of the first group, or the default. */
static gdouble
get_number (GTorchOptimizer *self, guint i)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (self);
  g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, 0);
  gdouble numbers[GTORCH_SETTINGS_MAX];

  if (group != NULL)
    gtorch_param_group_get_numbers (group, self, numbers);
  else
    gtorch_optimizer_get_defaults (self, numbers);
  return numbers[i];
}

static void
set_numbers (GTorchOptimizer *self, guint first, guint n, const gdouble *numbers)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (self);
  guint n_groups = g_list_model_get_n_items (groups), i;

  for (i = 0; i < n; i++)
    gtorch_optimizer_take_default (self, first + i, numbers[i]);
  for (i = 0; i < n_groups; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      gtorch_param_group_take_numbers (group, first, n, numbers, TRUE);
    }
}

void
gtorch_setting_get_value (gpointer object, const GTorchField *field, GValue *value)
{
  const GTorchSettings *settings = gtorch_settings_of (object);
  const guint i = find_field (settings, field);
  const gdouble number = get_number (object, i);

  switch ((int) settings->numbers[i].kind)
    {
    case GTORCH_FIELD_BOOL:
      g_value_set_boolean (value, number != 0);
      break;
    case GTORCH_FIELD_INT64:
      g_value_set_int64 (value, to_int64 (number));
      break;
    case GTORCH_FIELD_ENUM:
      g_value_set_enum (value, (gint) number);
      break;
    default:
      g_value_set_double (value, number);
    }
}

gboolean
gtorch_setting_set_value (gpointer object, const GTorchField *field, const GValue *value)
{
  const GTorchSettings *settings = gtorch_settings_of (object);
  const guint i = find_field (settings, field);
  const gdouble former = get_number (object, i);
  gdouble number;

  switch ((int) settings->numbers[i].kind)
    {
    case GTORCH_FIELD_BOOL:
      number = g_value_get_boolean (value) != FALSE;
      break;
    case GTORCH_FIELD_INT64:
      number = (gdouble) g_value_get_int64 (value);
      break;
    case GTORCH_FIELD_ENUM:
      number = g_value_get_enum (value);
      break;
    default:
      number = g_value_get_double (value);
    }
  set_numbers (object, i, 1, &number);
  return former != number && !(isnan (former) && isnan (number));
}

/* --- settings of an optimizer --- */

static gboolean
fail_unknown (GTorchOptimizer *self, const gchar *name, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, _ ("optimizer: %s has no setting “%s”"),
               G_OBJECT_TYPE_NAME (self), gtorch_name_str (name));
  return FALSE;
}

/**
 * gtorch_optimizer_set_setting:
 * @self: an optimizer
 * @name: the name of a setting, such as `betas`, or of one of its numbers, such as `beta1`
 * @values: (array length=n_values): its numbers; of a boolean 0 or 1, of an enumeration that of the member
 * @n_values: the length of @values
 * @error: return location for an error
 *
 * Sets a setting of all groups, and the default for groups that are added later. Its numbers are properties
 * of the class, too, which does the same without a check: this checks the value as steps do, and nothing is
 * changed if it is invalid. [method@ParamGroup.set_setting] sets that of one group.
 *
 * ```c
 * const gdouble betas[] = { 0.8, 0.99 };
 *
 * gtorch_optimizer_set_setting (GTORCH_OPTIMIZER (adam), "betas", betas, 2, &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_FOUND if the class has no such setting, or
 *   %GTORCH_ERROR_INVALID for values that no group may have, or the wrong number of them
 *
 * Since: 0.1
 */
gboolean
gtorch_optimizer_set_setting (GTorchOptimizer *self, const gchar *name, const gdouble *values,
                              gsize n_values, GError **error)
{
  const GTorchSettings *settings;
  GListModel *groups;
  gdouble numbers[GTORCH_SETTINGS_MAX];
  guint n = 0, i, k;
  gint first;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (values != NULL || n_values == 0, FALSE);
  settings = gtorch_settings_of (self);
  first = settings != NULL ? gtorch_settings_find (settings, name, &n) : -1;
  if (first < 0)
    return fail_unknown (self, name, error);
  if (!gtorch_settings_check_given (settings, first, n, values, n_values, error))
    return FALSE;
  groups = gtorch_optimizer_get_param_groups (self);
  for (k = 0; k < g_list_model_get_n_items (groups); k++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, k);

      gtorch_param_group_get_numbers (group, self, numbers);
      memcpy (numbers + first, values, n * sizeof (gdouble));
      if (!gtorch_settings_check_rules (settings, numbers, error))
        return FALSE;
    }
  g_object_freeze_notify (G_OBJECT (self));
  for (i = 0; i < n; i++)
    if (get_number (self, first + i) != values[i])
      gtorch_optimizer_notify_number (self, first + i); /* once it is set */
  if (settings->numbers[first].offset == GTORCH_SETTING_LR
      && gtorch_optimizer_get_learning_rate (self) != values[0])
    gtorch_optimizer_notify_learning_rate (self); /* groups do that, where there are any */
  set_numbers (self, first, n, values);
  g_object_thaw_notify (G_OBJECT (self));
  return TRUE;
}

/**
 * gtorch_optimizer_get_default:
 * @self: an optimizer
 * @name: the name of a setting, such as `betas`
 * @n_values: (out): the length of the array
 * @error: return location for an error
 *
 * Gets what a group has that is added without the setting: the value that the optimizer was constructed
 * with, or that was set for all groups since.
 *
 * Returns: (transfer full) (array length=n_values): the numbers of the setting, or %NULL with
 *   %GTORCH_ERROR_NOT_FOUND if the class has none of this name
 *
 * Since: 0.1
 */
gdouble *
gtorch_optimizer_get_default (GTorchOptimizer *self, const gchar *name, gsize *n_values,
                              GError **error)
{
  const GTorchSettings *settings;
  gdouble numbers[GTORCH_SETTINGS_MAX];
  guint n = 0;
  gint first;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (n_values != NULL, NULL);
  settings = gtorch_settings_of (self);
  first = settings != NULL ? gtorch_settings_find (settings, name, &n) : -1;
  if (first < 0)
    {
      fail_unknown (self, name, error);
      return NULL;
    }
  gtorch_optimizer_get_defaults (self, numbers);
  *n_values = n;
  return g_memdup2 (numbers + first, n * sizeof (gdouble));
}

/**
 * gtorch_optimizer_get_setting_names:
 * @self: an optimizer
 *
 * Gets the names of the settings of the class, which are PyTorch's arguments: `lr` first.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names; none for a class of a program, whose groups
 *   may have any settings
 *
 * Since: 0.1
 */
gchar **
gtorch_optimizer_get_setting_names (GTorchOptimizer *self)
{
  g_autoptr (GPtrArray) names = NULL;
  const GTorchSettings *settings;
  guint i;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), NULL);
  names = g_ptr_array_new ();
  settings = gtorch_settings_of (self);
  for (i = 0; settings != NULL && i < settings->n_numbers; i = gtorch_settings_next (settings, i))
    g_ptr_array_add (names, g_strdup (settings->numbers[i].arg));
  g_ptr_array_add (names, NULL);
  return (gchar **) g_ptr_array_free (g_steal_pointer (&names), FALSE);
}

/**
 * gtorch_optimizer_get_setting_type:
 * @self: an optimizer
 * @name: the name of a setting
 *
 * Gets what the numbers of a setting stand for: the type of its property.
 *
 * Returns: %G_TYPE_DOUBLE, %G_TYPE_INT64, %G_TYPE_BOOLEAN or the type of an enumeration; %G_TYPE_NONE if
 *   there is no such setting
 *
 * Since: 0.1
 */
GType
gtorch_optimizer_get_setting_type (GTorchOptimizer *self, const gchar *name)
{
  const GTorchSettings *settings;
  guint n;
  gint first;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), G_TYPE_NONE);
  g_return_val_if_fail (name != NULL, G_TYPE_NONE);
  settings = gtorch_settings_of (self);
  first = settings != NULL ? gtorch_settings_find (settings, name, &n) : -1;
  return first >= 0 ? gtorch_setting_get_type (&settings->numbers[first]) : G_TYPE_NONE;
}
