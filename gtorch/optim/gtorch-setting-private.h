/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The settings of optimizers, of which each group of parameters has its own: PyTorch's arguments. A class has
 * a table of the numbers that they consist of. Its instances have the defaults, which are properties; the
 * groups get them when they are added, and steps read those of the groups. For the rows of steps.toml the
 * tables are generated; the other classes write them down. */

#pragma once

#include <math.h>

#include <gtorch/base/gtorch-field-private.h>
#include <gtorch/optim/gtorch-optimizer.h>

G_BEGIN_DECLS

#define GTORCH_SETTINGS_MAX 12

/* Places of numbers that every optimizer and every group has. */
enum
{
  GTORCH_SETTING_LR = -1,
  GTORCH_SETTING_DECAY = -2,
};

typedef struct
{
  const gchar *name; /* with underscores in place of the property's dashes */
  const gchar *arg;  /* PyTorch's argument: numbers in a row with the same one are its elements */
  GTorchFieldKind kind; /* BOOL, INT64, ENUM or DOUBLE */
  gssize offset;        /* offset in the instance, or one of the places above */
  gdouble value;        /* the default */
  gdouble least, most;
  gdouble below;        /* also as a float32; infinite: no such bound */
  gboolean is_open;     /* least itself is refused */
  gboolean is_optional; /* GTORCH_NONE or GTORCH_NONE_DOUBLE says that there is no number */
  GType (*type) (void); /* of an enumeration */
} GTorchSetting;

typedef struct
{
  const gchar *name;  /* the name of a boolean that may be TRUE only under a condition */
  const gchar *needs; /* the condition, as written in the row */
  guint number;
  gboolean (*holds) (const gdouble *numbers);
} GTorchSettingRule;

struct _GTorchSettings
{
  const gchar *who; /* the name in messages */
  const GTorchSetting *numbers;
  guint n_numbers;
  const GTorchSettingRule *rules;
  guint n_rules;
};

typedef struct _GTorchSettings GTorchSettings;

/* Returns the table of a class, or NULL: groups of a program's optimizer may have any settings. */
const GTorchSettings *gtorch_settings_of (GTorchOptimizer *self);
/* Finds an argument, or one of its numbers, and sets how many numbers it has; -1 if there is none. */
gint gtorch_settings_find (const GTorchSettings *self, const gchar *name, guint *n);
/* Returns the position after the last number of the argument that begins there. */
guint gtorch_settings_next (const GTorchSettings *self, guint first);
/* INVALID, if a number is out of bounds, or a rule does not hold. */
gboolean gtorch_settings_check (const GTorchSettings *self, const gdouble *numbers, GError **error);
gboolean gtorch_setting_check (const GTorchSettings *self, guint i, gdouble number, GError **error);
gboolean gtorch_settings_check_rules (const GTorchSettings *self, const gdouble *numbers,
                                      GError **error);
/* Checks what is given for the setting that begins at `first` and has n numbers. */
gboolean gtorch_settings_check_given (const GTorchSettings *self, guint first, guint n,
                                      const gdouble *values, gsize n_values, GError **error);
/* The bounds in which a number is valid by itself. */
void gtorch_setting_get_bounds (const GTorchSetting *self, gdouble *low, gdouble *high);
GType gtorch_setting_get_type (const GTorchSetting *self);
/* Reads and writes the member of an instance. */
gdouble gtorch_setting_read (const GTorchSetting *self, gconstpointer instance);
void gtorch_setting_write (const GTorchSetting *self, gpointer instance, gdouble number);

/* What an optimizer has of its settings that is no member of its class. */
typedef struct
{
  gdouble learning_rate, weight_decay; /* of groups that are added later */
  gboolean has_rate, has_decay;        /* or those of the class */
  gboolean is_told;                    /* of a change by a group, which warns itself */
  gdouble shown[GTORCH_SETTINGS_MAX];  /* the numbers of the first group that were notified last */
} GTorchOptimizerRates;

GTorchOptimizerRates *gtorch_optimizer_get_rates (GTorchOptimizer *self);
/* A handler: notifies the properties of the numbers of the first group that have changed. */
void gtorch_optimizer_follow (GTorchOptimizer *self, const gchar *name, GTorchParamGroup *group);

/* Gets the defaults, which later groups begin with. */
void gtorch_optimizer_get_defaults (GTorchOptimizer *self, gdouble *numbers);
void gtorch_optimizer_take_default (GTorchOptimizer *self, guint i, gdouble number);
/* The learning rate and the weight decay that later groups begin with. */
void gtorch_optimizer_set_default_rates (GTorchOptimizer *self, gdouble learning_rate,
                                         gdouble weight_decay);

void gtorch_optimizer_notify_learning_rate (GTorchOptimizer *self);
/* Notifies the property of a number. */
void gtorch_optimizer_notify_number (GTorchOptimizer *self, guint i);

/* For rows of properties: that of a number reads the first group, or the default if there is none, and is
 * written to all groups. */
void gtorch_setting_get_value (gpointer object, const GTorchField *field, GValue *value);
gboolean gtorch_setting_set_value (gpointer object, const GTorchField *field, const GValue *value);

#define GTORCH_SETTING_FIELD \
  GTORCH_FIELD_SETTING, .get_value = gtorch_setting_get_value, .set_value = gtorch_setting_set_value

/* --- groups --- */

/* Gets the numbers of a group: by the table of the optimizer, whose defaults it has if it was never added. */
void gtorch_param_group_get_numbers (GTorchParamGroup *self, GTorchOptimizer *optimizer,
                                     gdouble *numbers);
/* Writes them to a struct of the class as if they were its own. */
void gtorch_param_group_fill (GTorchParamGroup *self, GTorchOptimizer *optimizer,
                              gpointer instance);
/* Checks the numbers of a group that belongs to the optimizer. */
gboolean gtorch_param_group_check_numbers (GTorchParamGroup *self, GTorchOptimizer *optimizer,
                                           GError **error);
/* Gives a group that is added to an optimizer the settings that it lacks. Fails for unknown ones. */
gboolean gtorch_param_group_adopt (GTorchParamGroup *self, GTorchOptimizer *optimizer,
                                   GError **error);
/* Sets n numbers of one setting of a group that was added. `is_quiet`: without a warning of captured
 * steps. */
void gtorch_param_group_take_numbers (GTorchParamGroup *self, guint first, guint n,
                                      const gdouble *numbers, gboolean is_quiet);
/* The names of the settings in a state dict: texts that last as long as the group's settings do. */
GPtrArray *gtorch_param_group_list_names (GTorchParamGroup *self);

G_END_DECLS
