/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The settings of a group of parameters. Before it is added to an optimizer, it has those that it was given;
 * then it has all that the class of the optimizer has. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-none-private.h"
#include "base/gtorch-property-private.h"
#include "base/gtorch-range-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "optim/gtorch-param-group-private.h"

static gboolean
is_member (const gchar *name)
{
  return strcmp (name, "lr") == 0 || strcmp (name, "weight_decay") == 0
         || strcmp (name, "initial_lr") == 0;
}

static gint
find_given (GTorchParamGroup *self, const gchar *name)
{
  guint i;

  for (i = 0; i < self->names->len; i++)
    if (strcmp (self->names->pdata[i], name) == 0)
      return i;
  return -1;
}

/* --- numbers --- */

void
gtorch_param_group_get_numbers (GTorchParamGroup *self, GTorchOptimizer *optimizer,
                                gdouble *numbers)
{
  const GTorchSettings *settings = gtorch_settings_of (optimizer);
  guint i;

  if (self->settings == settings)
    memcpy (numbers, self->numbers, settings->n_numbers * sizeof (gdouble));
  else
    gtorch_optimizer_get_defaults (optimizer, numbers);
  for (i = 0; i < settings->n_numbers; i++)
    if (settings->numbers[i].offset < 0)
      numbers[i] = settings->numbers[i].offset == GTORCH_SETTING_LR ? self->learning_rate
                                                                    : self->weight_decay;
}

void
gtorch_param_group_fill (GTorchParamGroup *self, GTorchOptimizer *optimizer, gpointer instance)
{
  const GTorchSettings *settings = gtorch_settings_of (optimizer);
  gdouble numbers[GTORCH_SETTINGS_MAX];
  guint i;

  gtorch_param_group_get_numbers (self, optimizer, numbers);
  for (i = 0; i < settings->n_numbers; i++)
    if (settings->numbers[i].offset >= 0)
      gtorch_setting_write (&settings->numbers[i], instance, numbers[i]);
}

static gboolean
check_decay (GTorchParamGroup *self, const GTorchSettings *settings, GError **error)
{
  guint i;

  for (i = 0; i < settings->n_numbers; i++)
    if (settings->numbers[i].offset == GTORCH_SETTING_DECAY)
      return TRUE;
  if (self->weight_decay == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: weight_decay is %g, it must be 0: this optimizer has none"), settings->who,
               self->weight_decay);
  return FALSE;
}

gboolean
gtorch_param_group_check_numbers (GTorchParamGroup *self, GTorchOptimizer *optimizer,
                                  GError **error)
{
  const GTorchSettings *settings = gtorch_settings_of (optimizer);
  gdouble numbers[GTORCH_SETTINGS_MAX];

  if (settings == NULL)
    return TRUE;
  gtorch_param_group_get_numbers (self, optimizer, numbers);
  return check_decay (self, settings, error) && gtorch_settings_check (settings, numbers, error);
}

void
gtorch_param_group_notify (GTorchParamGroup *self, const gchar *name)
{
  g_signal_emit_by_name (self, "setting-changed", name);
}

/* Returns whether the number has changed, and is no property of the group. */
static gboolean
take_number (GTorchParamGroup *self, guint i, gdouble number, gboolean is_quiet)
{
  const GTorchSetting *setting = &self->settings->numbers[i];

  if (setting->offset == GTORCH_SETTING_LR)
    gtorch_param_group_set_learning_rate (self, number);
  else if (setting->offset == GTORCH_SETTING_DECAY)
    gtorch_param_group_set_weight_decay (self, number);
  if (setting->offset < 0 || !gtorch_property_set_double (&self->numbers[i], number))
    return FALSE;
  if (self->was_captured && !is_quiet)
    g_warning ("param_group: a graph has captured steps with the former %s: its replays still use "
               "that",
               setting->name);
  return TRUE;
}

void
gtorch_param_group_take_numbers (GTorchParamGroup *self, guint first, guint n,
                                 const gdouble *numbers, gboolean is_quiet)
{
  gboolean changed = FALSE;
  guint i;

  if (self->settings == NULL)
    return;
  for (i = 0; i < n; i++)
    changed |= take_number (self, first + i, numbers[i], is_quiet);
  if (changed)
    gtorch_param_group_notify (self, self->settings->numbers[first].arg);
}

/* --- adding to an optimizer --- */

static gboolean
fail_unknown (const gchar *who, const gchar *name, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, _ ("%s: there is no setting “%s”"), who,
               gtorch_name_str (name));
  return FALSE;
}

gboolean
gtorch_settings_check_given (const GTorchSettings *self, guint first, guint n,
                             const gdouble *values, gsize n_values, GError **error)
{
  guint i;

  if (n_values != n)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   g_dngettext (GETTEXT_PACKAGE, "%s: %s is %u number, not %zu",
                                "%s: %s is %u numbers, not %zu", n),
                   self->who, n > 1 ? self->numbers[first].arg : self->numbers[first].name, n,
                   n_values);
      return FALSE;
    }
  for (i = 0; i < n; i++)
    if (!gtorch_setting_check (self, first + i, values[i], error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_param_group_adopt (GTorchParamGroup *self, GTorchOptimizer *optimizer, GError **error)
{
  const GTorchSettings *settings = gtorch_settings_of (optimizer);
  gdouble numbers[GTORCH_SETTINGS_MAX];
  guint i;

  if (settings == NULL || self->settings == settings)
    return TRUE;
  if (self->settings != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("add_param_group: the group has the settings of another optimizer, %s"),
                   self->settings->who);
      return FALSE;
    }
  gtorch_optimizer_get_defaults (optimizer, numbers);
  for (i = 0; i < self->names->len; i++)
    {
      const GArray *given = self->values->pdata[i];
      guint n;
      gint first = gtorch_settings_find (settings, self->names->pdata[i], &n);

      if (first < 0)
        return fail_unknown (settings->who, self->names->pdata[i], error);
      if (!gtorch_settings_check_given (settings, first, n,
                                        (const gdouble *) (gpointer) given->data, given->len,
                                        error))
        return FALSE;
      memcpy (numbers + first, given->data, n * sizeof (gdouble));
    }
  if (self->names->len > 0 && !gtorch_settings_check_rules (settings, numbers, error))
    return FALSE;
  memcpy (self->numbers, numbers, sizeof numbers);
  self->settings = settings;
  g_ptr_array_set_size (self->names, 0);
  g_ptr_array_set_size (self->values, 0);
  return TRUE;
}

/* --- the public functions --- */

static gboolean
set_member (GTorchParamGroup *self, const gchar *name, const gdouble *values, gsize n_values,
            GError **error)
{
  if (n_values != 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("param_group: %s is one number, not %zu"), name, n_values);
      return FALSE;
    }
  if (gtorch_is_none_double (values[0]))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("param_group: %s must be a number"), name);
      return FALSE;
    }
  if (!gtorch_check_range ("param_group", name, values[0], 0, G_MAXDOUBLE, FALSE, error))
    return FALSE;
  if (strcmp (name, "lr") == 0)
    gtorch_param_group_set_learning_rate (self, values[0]);
  else if (strcmp (name, "weight_decay") == 0)
    gtorch_param_group_set_weight_decay (self, values[0]);
  else
    gtorch_param_group_set_initial_learning_rate (self, values[0]);
  return TRUE;
}

static gboolean
give (GTorchParamGroup *self, const gchar *name, const gdouble *values, gsize n_values,
      GError **error)
{
  const gint known = find_given (self, name);
  const GArray *former = known >= 0 ? self->values->pdata[known] : NULL;
  GArray *given;
  gsize i;

  if (n_values == 0 || name[0] == '\0' || strcmp (name, "params") == 0
      || !g_utf8_validate (name, -1, NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   n_values == 0 ? _ ("param_group: there are no numbers for the setting “%s”")
                                 : _ ("param_group: “%s” is no name of a setting"),
                   gtorch_name_str (name));
      return FALSE;
    }
  for (i = 0; i < n_values; i++)
    if (!gtorch_check_range ("param_group", gtorch_name_str (name), values[i], -G_MAXDOUBLE,
                             G_MAXDOUBLE, FALSE, error))
      return FALSE;
  if (former != NULL && former->len == n_values
      && memcmp (former->data, values, n_values * sizeof (gdouble)) == 0)
    return TRUE;
  given = g_array_sized_new (FALSE, FALSE, sizeof (gdouble), n_values);
  g_array_append_vals (given, values, n_values);
  if (known >= 0)
    {
      g_array_unref (self->values->pdata[known]);
      self->values->pdata[known] = given;
    }
  else
    {
      g_ptr_array_add (self->names, g_strdup (name));
      g_ptr_array_add (self->values, given);
    }
  if (self->was_captured)
    g_warning ("param_group: a graph has captured steps with the former %s: its replays still use "
               "that",
               name);
  gtorch_param_group_notify (self, name);
  return TRUE;
}

/**
 * gtorch_param_group_set_setting:
 * @self: a group
 * @name: the name of a setting, such as `betas`, or of one of its numbers, such as `beta1`
 * @values: (array length=n_values): its numbers; of a boolean 0 or 1, of an enumeration that of the member
 * @n_values: the length of @values
 * @error: return location for an error
 *
 * Sets a setting of the group from the next step on: `lr`, `weight_decay`, `initial_lr`, or another argument
 * of PyTorch's constructor of the optimizer.
 *
 * Once the group was added to an optimizer of the library, the name and the values are checked here. Before,
 * any setting can be given, and [method@Optimizer.add_param_group] checks it. What the group was not given
 * then it has from the optimizer. For a class of a program, which reads the settings by
 * [method@ParamGroup.get_setting], a group may have any, of finite numbers.
 *
 * ```c
 * const gdouble betas[] = { 0.8, 0.99 };
 *
 * group = gtorch_param_group_new (params, 1e-3, 0, &error);
 * gtorch_param_group_set_setting (group, "betas", betas, 2, &error);
 * gtorch_optimizer_add_param_group (GTORCH_OPTIMIZER (adam), group, &error);
 * ```
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_FOUND if the optimizer has no such setting, or
 *   %GTORCH_ERROR_INVALID for a value that it refuses, or the wrong number of them
 *
 * Since: 0.1
 */
gboolean
gtorch_param_group_set_setting (GTorchParamGroup *self, const gchar *name, const gdouble *values,
                                gsize n_values, GError **error)
{
  gdouble numbers[GTORCH_SETTINGS_MAX];
  guint n;
  gint first;

  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (values != NULL || n_values == 0, FALSE);
  if (self->settings == NULL)
    return is_member (name) ? set_member (self, name, values, n_values, error)
                            : give (self, name, values, n_values, error);
  first = gtorch_settings_find (self->settings, name, &n);
  if (first < 0 && strcmp (name, "initial_lr") != 0)
    return fail_unknown (self->settings->who, name, error);
  if (first < 0 || self->settings->numbers[first].offset < 0)
    return set_member (self, name, values, n_values, error);
  memcpy (numbers, self->numbers, sizeof numbers);
  if (!gtorch_settings_check_given (self->settings, first, n, values, n_values, error))
    return FALSE;
  memcpy (numbers + first, values, n * sizeof (gdouble));
  if (!gtorch_settings_check_rules (self->settings, numbers, error))
    return FALSE;
  gtorch_param_group_take_numbers (self, first, n, values, FALSE);
  return TRUE;
}

static gdouble *
dup_numbers (const gdouble *numbers, gsize n, gsize *n_values)
{
  *n_values = n;
  return g_memdup2 (numbers, n * sizeof (gdouble));
}

/**
 * gtorch_param_group_get_setting:
 * @self: a group
 * @name: the name of a setting, such as `betas`, or of one of its numbers, such as `beta1`
 * @n_values: (out): the length of the array
 * @error: return location for an error
 *
 * Gets a setting of the group. [method@ParamGroup.get_setting_type] tells what its numbers stand for.
 *
 * Returns: (transfer full) (array length=n_values): its numbers, or %NULL with %GTORCH_ERROR_NOT_FOUND if the
 *   group has none of this name
 *
 * Since: 0.1
 */
gdouble *
gtorch_param_group_get_setting (GTorchParamGroup *self, const gchar *name, gsize *n_values,
                                GError **error)
{
  guint n;
  gint i;

  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  g_return_val_if_fail (n_values != NULL, NULL);
  i = self->settings != NULL ? gtorch_settings_find (self->settings, name, &n)
                             : find_given (self, name);
  if (i >= 0 && self->settings != NULL && self->settings->numbers[i].offset >= 0)
    return dup_numbers (self->numbers + i, n, n_values);
  if (i >= 0 && self->settings == NULL)
    {
      const GArray *given = self->values->pdata[i];

      return dup_numbers ((const gdouble *) (gpointer) given->data, given->len, n_values);
    }
  if (strcmp (name, "initial_lr") == 0 && self->initial_learning_rate >= 0)
    return dup_numbers (&self->initial_learning_rate, 1, n_values);
  if (strcmp (name, "initial_lr") != 0 && is_member (name) && (i >= 0 || self->settings == NULL))
    return dup_numbers (strcmp (name, "lr") == 0 ? &self->learning_rate : &self->weight_decay, 1,
                        n_values);
  fail_unknown (self->settings != NULL ? self->settings->who : "param_group", name, error);
  return NULL;
}

/* Where there is no table, in the order in which they were given. */
GPtrArray *
gtorch_param_group_list_names (GTorchParamGroup *self)
{
  const GTorchSettings *settings = self->settings;
  GPtrArray *names = g_ptr_array_new ();
  guint i;

  for (i = 0; settings != NULL && i < settings->n_numbers; i = gtorch_settings_next (settings, i))
    g_ptr_array_add (names, (gpointer) settings->numbers[i].arg);
  if (settings == NULL)
    {
      g_ptr_array_add (names, (gpointer) "lr");
      g_ptr_array_add (names, (gpointer) "weight_decay");
    }
  for (i = 0; i < self->names->len; i++)
    g_ptr_array_add (names, self->names->pdata[i]);
  if (self->initial_learning_rate >= 0)
    g_ptr_array_add (names, (gpointer) "initial_lr");
  return names;
}

/**
 * gtorch_param_group_get_setting_names:
 * @self: a group
 *
 * Gets the names of the settings that the group has: once it was added to an optimizer of the library, all
 * of that, by PyTorch's names. `initial_lr` is there after a schedule has begun.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names
 *
 * Since: 0.1
 */
gchar **
gtorch_param_group_get_setting_names (GTorchParamGroup *self)
{
  g_autoptr (GPtrArray) names = NULL;
  gchar **found;
  guint i;

  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), NULL);
  names = gtorch_param_group_list_names (self);
  found = g_new0 (gchar *, names->len + 1);
  for (i = 0; i < names->len; i++)
    found[i] = g_strdup (names->pdata[i]);
  return found;
}

/**
 * gtorch_param_group_get_setting_type:
 * @self: a group
 * @name: the name of a setting
 *
 * Gets what the numbers of a setting stand for.
 *
 * Returns: %G_TYPE_DOUBLE, %G_TYPE_INT64, %G_TYPE_BOOLEAN or the type of an enumeration; %G_TYPE_NONE if
 *   the group has no such setting
 *
 * Since: 0.1
 */
GType
gtorch_param_group_get_setting_type (GTorchParamGroup *self, const gchar *name)
{
  g_autofree gdouble *values = NULL;
  gsize n_values;
  guint n;
  gint i;

  g_return_val_if_fail (GTORCH_IS_PARAM_GROUP (self), G_TYPE_NONE);
  g_return_val_if_fail (name != NULL, G_TYPE_NONE);
  i = self->settings != NULL ? gtorch_settings_find (self->settings, name, &n) : -1;
  if (i >= 0)
    return gtorch_setting_get_type (&self->settings->numbers[i]);
  values = gtorch_param_group_get_setting (self, name, &n_values, NULL);
  return values != NULL ? G_TYPE_DOUBLE : G_TYPE_NONE;
}
