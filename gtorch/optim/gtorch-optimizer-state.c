/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The state of an optimizer as a table, and loading it. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "device/gtorch-device.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-create.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "optim/gtorch-param-group-private.h"
#include "optim/gtorch-step-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-scope-private.h"
#include "nn/gtorch-state-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "nn/gtorch-module-private.h"

#define INITIAL "initial_lr" /* only there after a schedule has begun */
#define COUNT   "params"     /* how many parameters a group has; not there in older states */

/* --- steps that several processes share --- */

gboolean
gtorch_optimizer_set_share (GTorchOptimizer *self, const GTorchOptimizerShare *share, gpointer data,
                            GDestroyNotify destroy)
{
  GTorchOptimizerShared *shared = gtorch_optimizer_get_shared (self);

  if (shared->share != NULL)
    return FALSE;
  *shared = (GTorchOptimizerShared){ share, data, destroy };
  return TRUE;
}

gboolean
gtorch_optimizer_owns (GTorchOptimizer *self, GTorchTensor *param)
{
  const GTorchOptimizerShared *shared = gtorch_optimizer_get_shared (self);

  return G_LIKELY (shared->share == NULL) || shared->share->owns (shared->data, self, param);
}

gboolean
gtorch_optimizer_end_shared (GTorchOptimizer *self, GError **error)
{
  const GTorchOptimizerShared *shared = gtorch_optimizer_get_shared (self);

  return shared->share == NULL || shared->share->end (shared->data, self, error);
}

/* --- the state --- */

static void
put_count (GHashTable *dict, guint i, GTorchParamGroup *group)
{
  const guint n = g_list_model_get_n_items (gtorch_param_group_get_params (group));
  GTorchImpl *number = gtorch_impl_new_number (n);

  number->is_number = FALSE;
  g_hash_table_insert (dict, g_strdup_printf ("group.%u." COUNT, i), gtorch_tensor_wrap (number));
}

static void
put_setting (GHashTable *dict, guint i, GTorchParamGroup *group, const gchar *name)
{
  gsize n = 0;
  g_autofree gdouble *values = gtorch_param_group_get_setting (group, name, &n, NULL);
  GTorchTensor *tensor;

  if (n == 1)
    {
      GTorchImpl *number = gtorch_impl_new_number (values[0]);

      number->is_number = FALSE;
      tensor = gtorch_tensor_wrap (number);
    }
  else
    tensor = gtorch_tensor_new_from_doubles (values, n, (const gint64[]){ n }, 1,
                                             GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), NULL);
  if (tensor != NULL)
    g_hash_table_insert (dict, g_strdup_printf ("group.%u.%s", i, name), tensor);
}

/**
 * gtorch_optimizer_state_dict:
 * @self: an optimizer
 *
 * Gets the state of the optimizer: `state.<parameter>.<name>` for each parameter by its position, and
 * `group.<group>.<setting>` for all settings of each group by PyTorch's names, such as `group.0.betas`, as
 * float64 numbers, with `initial_lr` where a schedule has begun, and the number of the group's parameters as
 * `group.0.params`. The tensors of the parameters' states are
 * shared, not copied.
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): names and tensors, for
 *   [func@safetensors_save] for example
 *
 * Since: 0.1
 */
GHashTable *
gtorch_optimizer_state_dict (GTorchOptimizer *self)
{
  g_autoptr (GPtrArray) params = NULL;
  GHashTable *dict;
  GListModel *groups;
  guint i, j;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), NULL);
  dict = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  params = gtorch_optimizer_dup_params (self);
  for (i = 0; i < params->len; i++)
    {
      GHashTable *states =
          g_hash_table_lookup (gtorch_optimizer_get_states (self), params->pdata[i]);
      GHashTableIter iter;
      gpointer name, value;

      if (states == NULL)
        continue;
      g_hash_table_iter_init (&iter, states);
      while (g_hash_table_iter_next (&iter, &name, &value))
        g_hash_table_insert (dict, g_strdup_printf ("state.%u.%s", i, (const gchar *) name),
                             g_object_ref (value));
    }
  groups = gtorch_optimizer_get_param_groups (self);
  for (i = 0; i < g_list_model_get_n_items (groups); i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      g_autoptr (GPtrArray) names = gtorch_param_group_list_names (group);

      for (j = 0; j < names->len; j++)
        put_setting (dict, i, group, names->pdata[j]);
      put_count (dict, i, group);
    }
  return dict;
}

static gboolean
fail_load (GError **error, const gchar *name, const gchar *why)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, _ ("load_state_dict: “%s” %s"),
               gtorch_name_str (name), why);
  return FALSE;
}

/* The changes that a load is going to make. */
typedef struct
{
  GPtrArray *params;
  GHashTable *states;        /* the new states of the optimizer */
  GTorchStateWrites *writes; /* writes to memory that graphs have captured */
  GPtrArray *settings;       /* of each group: name -> GArray of gdouble */
} Load;

static void
load_clear (Load *load)
{
  g_clear_pointer (&load->params, g_ptr_array_unref);
  g_clear_pointer (&load->states, g_hash_table_unref);
  g_clear_pointer (&load->writes, gtorch_state_writes_free);
  g_clear_pointer (&load->settings, g_ptr_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Load, load_clear)

/* Splits `state.3.exp_avg` into its parts. Returns FALSE if the name is not of this form. */
typedef struct
{
  gboolean is_group;
  guint64 index;
  const gchar *name;
} Entry;

static gboolean
parse_entry (const gchar *key, Entry *entry)
{
  gchar *end = NULL;

  entry->is_group = g_str_has_prefix (key, "group.");
  if (!entry->is_group && !g_str_has_prefix (key, "state."))
    return FALSE;
  key += strlen ("state.");
  if (!g_ascii_isdigit (key[0]) || (key[0] == '0' && key[1] != '.'))
    return FALSE;
  entry->index = g_ascii_strtoull (key, &end, 10);
  entry->name = end + 1;
  return end[0] == '.' && end[1] != '\0';
}

/* What a group must have, and initial_lr, which it may have. */
static gboolean
is_setting (GTorchOptimizer *self, guint64 index, const gchar *name)
{
  g_autoptr (GTorchParamGroup) group =
      g_list_model_get_item (gtorch_optimizer_get_param_groups (self), (guint) index);
  g_autoptr (GPtrArray) names = gtorch_param_group_list_names (group);

  return strcmp (name, INITIAL) == 0 || strcmp (name, COUNT) == 0
         || g_ptr_array_find_with_equal_func (names, name, g_str_equal, NULL);
}

/* The count and what else is one number for a parameter. */
static gboolean
is_number (const GTorchStep *step, const gchar *name)
{
  guint i;

  for (i = 0; i < step->n_states; i++)
    if (strcmp (step->states[i].name, name) == 0)
      return step->states[i].is_number;
  return FALSE;
}

/* Optimizers that are not rows may have any state. */
static gboolean
is_known_state (const GTorchStep *step, const gchar *name)
{
  guint i;

  for (i = 0; step != NULL && i < step->n_states; i++)
    if (strcmp (step->states[i].name, name) == 0)
      return TRUE;
  return step == NULL;
}

/* A state without steps has entries of no parameter, so that only the counts tell that it is another
 * optimizer's. */
static gboolean
check_counts (GTorchOptimizer *self, GHashTable *state, GError **error)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (self);

  for (guint i = 0; i < g_list_model_get_n_items (groups); i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      const guint n = g_list_model_get_n_items (gtorch_param_group_get_params (group));
      g_autofree gchar *key = g_strdup_printf ("group.%u." COUNT, i);
      gpointer value = g_hash_table_lookup (state, key);
      gdouble found;

      if (!GTORCH_IS_TENSOR (value)) /* what is none is refused elsewhere */
        continue;
      if (!gtorch_state_get_number ("load_state_dict", key, value, 0, G_MAXDOUBLE, TRUE, &found,
                                    error))
        return FALSE;
      if (found != n)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("load_state_dict: group %u of the state has %.0f parameters, and that of "
                          "the optimizer %u"),
                       i, found, n);
          return FALSE;
        }
    }
  return TRUE;
}

static void
find_missing (GHashTable *state, GPtrArray *missing, const gchar *kind, guint index,
              const gchar *name)
{
  g_autofree gchar *key = g_strdup_printf ("%s.%u.%s", kind, index, name);

  if (!g_hash_table_contains (state, key))
    g_ptr_array_add (missing, g_steal_pointer (&key));
}

/* Checks that the entries belong to this optimizer: each group has its numbers, and each parameter with
 * state has the entries that every step needs. */
static gboolean
check_entries (GTorchOptimizer *self, GHashTable *state, guint n_params, guint n_groups,
               GError **error)
{
  const GTorchStep *step = gtorch_step_find (self);
  g_autoptr (GPtrArray) missing = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) unexpected = g_ptr_array_new ();
  g_autofree gboolean *was_stepped = g_new0 (gboolean, n_params);
  GHashTableIter iter;
  gpointer key;
  guint i, k;

  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    {
      Entry entry;

      if (!parse_entry (key, &entry) || entry.index >= (entry.is_group ? n_groups : n_params)
          || (entry.is_group ? !is_setting (self, entry.index, entry.name)
                             : !is_known_state (step, entry.name)))
        g_ptr_array_add (unexpected, key);
      else if (!entry.is_group)
        was_stepped[entry.index] = TRUE;
    }
  for (i = 0; i < n_groups; i++)
    {
      g_autoptr (GTorchParamGroup) group =
          g_list_model_get_item (gtorch_optimizer_get_param_groups (self), i);
      g_autoptr (GPtrArray) names = gtorch_param_group_list_names (group);

      for (k = 0; k < names->len; k++)
        if (strcmp (names->pdata[k], INITIAL) != 0)
          find_missing (state, missing, "group", i, names->pdata[k]);
    }
  for (i = 0; step != NULL && i < n_params; i++)
    for (k = 0; was_stepped[i] && k < step->n_states; k++)
      if (step->always & (1u << k))
        find_missing (state, missing, "state", i, step->states[k].name);
  return gtorch_state_check_names ("load_state_dict", missing, unexpected, error);
}

/* Converts an entry to the form that the steps of this optimizer need: optimizers of the library use one
 * dtype for a parameter and the states like it, and float64 for a count. */
static GTorchTensor *
convert_state (GTorchOptimizer *self, GTorchTensor *param, const gchar *key, const gchar *name,
               GTorchTensor *value, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (value), *like = gtorch_tensor_unwrap (param);
  gboolean is_ours = gtorch_optimizer_is_fused (self);
  gboolean is_scalar = is_ours ? is_number (gtorch_step_find (self), name) : impl->n_dims == 0;
  guint dtype = !is_ours ? GTORCH_DTYPE_NONE : is_scalar ? GTORCH_DTYPE_FLOAT64 : like->dtype;
  g_autoptr (GTorchImpl) converted = NULL;
  GTorchImpl *copy;

  if (impl->storage == NULL || like->storage == NULL)
    {
      fail_load (error, key,
                 impl->storage == NULL ? _ ("was released")
                                       : _ ("belongs to a parameter that was released"));
      return NULL;
    }
  if (is_scalar ? impl->numel != 1
                : GTORCH_OPTIMIZER_GET_CLASS (self)->has_own_shapes == NULL
                      && !gtorch_impl_same_shape (impl, like))
    {
      fail_load (error, key,
                 is_scalar ? _ ("is not one number")
                           : _ ("does not have the shape of its parameter"));
      return NULL;
    }
  if (is_ours && is_scalar
      && !gtorch_state_get_number ("load_state_dict", key, value, 0, G_MAXDOUBLE,
                                   strcmp (name, "step") == 0, NULL, error))
    return NULL;
  if (dtype != GTORCH_DTYPE_NONE && gtorch_dtype_loses_imaginary (impl->dtype, dtype))
    {
      fail_load (error, key, _ ("is complex, and its parameter is not"));
      return NULL;
    }
  converted =
      gtorch_impl_to (impl, is_scalar && !is_ours ? NULL : gtorch_impl_device (like), dtype, error);
  if (converted != NULL && is_ours && is_scalar && converted->n_dims > 0)
    {
      GTorchImpl *single = gtorch_op_reshape (converted, NULL, 0, error);

      gtorch_impl_unref (converted);
      converted = single;
    }
  copy = converted != NULL ? gtorch_op_clone (converted, error) : NULL;
  if (copy == NULL)
    {
      g_prefix_error (error, "load_state_dict: %s: ", gtorch_name_str (key));
      return NULL;
    }
  return gtorch_tensor_wrap (copy);
}

/* Returns TRUE if graphs have captured the existing memory. */
static gboolean
is_captured (GTorchOptimizer *self, GTorchTensor *known, GTorchTensor *value)
{
  GTorchImpl *have = known != NULL ? gtorch_tensor_unwrap (known) : NULL;
  GTorchImpl *wanted = gtorch_tensor_unwrap (value);

  return gtorch_optimizer_get_capturable (self) && have != NULL
         && gtorch_impl_write_obstacle (have) == NULL && gtorch_impl_same_shape (have, wanted)
         && have->dtype == wanted->dtype
         && gtorch_impl_device (have) == gtorch_impl_device (wanted);
}

static gboolean
load_state (GTorchOptimizer *self, Load *load, const gchar *key, guint64 index, const gchar *name,
            GTorchTensor *value, GError **error)
{
  g_autoptr (GTorchTensor) copy = NULL;
  GTorchTensor *param = load->params->pdata[index], *known;

  if (!gtorch_optimizer_owns (self, param)) /* another process has it */
    return TRUE;
  copy = convert_state (self, param, key, name, value, error);
  if (copy == NULL)
    return FALSE;
  known = gtorch_optimizer_get_state (self, param, name);
  if (!is_captured (self, known, copy))
    {
      gtorch_scope_exempt (copy);
      gtorch_optimizer_states_put (load->states, param, name, copy);
      return TRUE;
    }
  gtorch_optimizer_states_put (load->states, param, name, known);
  return gtorch_state_writes_add (load->writes, gtorch_tensor_unwrap (known),
                                  gtorch_tensor_unwrap (copy), "load_state_dict", key, error);
}

/* The bounds of number i of a setting, and whether it has to be whole. */
static void
get_bounds (GTorchParamGroup *group, const gchar *name, guint i, gdouble *low, gdouble *high,
            gboolean *is_whole)
{
  guint n;
  gint first = group->settings != NULL ? gtorch_settings_find (group->settings, name, &n) : -1;

  *low =
      strcmp (name, "lr") == 0 || strcmp (name, "weight_decay") == 0 || strcmp (name, INITIAL) == 0
          ? 0
          : -G_MAXDOUBLE;
  *high = G_MAXDOUBLE;
  *is_whole = FALSE;
  if (first < 0 || group->settings->numbers[first].offset < 0)
    return;
  gtorch_setting_get_bounds (&group->settings->numbers[first + i], low, high);
  *is_whole = group->settings->numbers[first + i].kind != GTORCH_FIELD_DOUBLE;
}

/* What bounds do not say: numbers below one that is no bound itself, and choices. */
static gboolean
check_number (GTorchParamGroup *group, const gchar *key, const gchar *name, guint i, gdouble number,
              GError **error)
{
  g_autoptr (GError) failure = NULL;
  guint n;
  gint first = group->settings != NULL ? gtorch_settings_find (group->settings, name, &n) : -1;

  if (first < 0 || gtorch_setting_check (group->settings, first + i, number, &failure))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, _ ("load_state_dict: “%s”: %s"),
               gtorch_name_str (key), failure->message);
  return FALSE;
}

static guint
count_numbers (GTorchParamGroup *group, const gchar *name)
{
  gsize n = 1;
  g_autofree gdouble *values = gtorch_param_group_get_setting (group, name, &n, NULL);

  return values != NULL ? n : 1; /* the initial rate, where no schedule has begun */
}

static gboolean
load_setting (GTorchOptimizer *self, Load *load, const gchar *key, guint64 index, const gchar *name,
              GTorchTensor *value, GError **error)
{
  g_autoptr (GTorchParamGroup) group =
      g_list_model_get_item (gtorch_optimizer_get_param_groups (self), (guint) index);
  const guint n = count_numbers (group, name);
  g_autoptr (GArray) numbers = g_array_new (FALSE, FALSE, sizeof (gdouble));
  GTorchImpl *impl = gtorch_tensor_unwrap (value);
  guint i;

  if (impl->storage != NULL && impl->dtype != GTORCH_DTYPE_FLOAT64)
    return fail_load (error, key, _ ("is not a float64"));
  if (n > 1 && impl->storage != NULL && (impl->n_dims != 1 || impl->numel != n))
    return fail_load (error, key, _ ("does not have as many numbers as the setting"));
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) one = n > 1 && impl->storage != NULL
                                         ? gtorch_tensor_select (value, 0, i, error)
                                         : g_object_ref (value);
      gdouble low, high, number;
      gboolean is_whole;

      get_bounds (group, name, i, &low, &high, &is_whole);
      if (one == NULL
          || !gtorch_state_get_number ("load_state_dict", key, one, low, high, is_whole, &number,
                                       error)
          || !check_number (group, key, name, i, number, error))
        return FALSE;
      g_array_append_val (numbers, number);
    }
  g_hash_table_insert (load->settings->pdata[index], g_strdup (name), g_steal_pointer (&numbers));
  return TRUE;
}

/* Numbers that are valid by themselves may not be so together. */
static gboolean
check_settings (GTorchOptimizer *self, Load *load, GError **error)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (self);
  gdouble numbers[GTORCH_SETTINGS_MAX];
  guint k, i, n;

  for (k = 0; k < load->settings->len; k++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, k);
      const GTorchSettings *settings = group->settings;
      g_autoptr (GError) failure = NULL;

      for (i = 0; settings != NULL && i < settings->n_numbers; i += n)
        {
          const GArray *given =
              g_hash_table_lookup (load->settings->pdata[k], settings->numbers[i].arg);

          n = given->len;
          memcpy (numbers + i, given->data, n * sizeof (gdouble));
        }
      if (settings != NULL && !gtorch_settings_check (settings, numbers, &failure))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, "load_state_dict: group.%u: %s", k,
                       failure->message);
          return FALSE;
        }
    }
  return TRUE;
}

/* Returns the group of a parameter. */
static GTorchParamGroup *
find_group (GTorchOptimizer *self, GTorchTensor *param)
{
  GListModel *groups = gtorch_optimizer_get_param_groups (self);
  guint n = g_list_model_get_n_items (groups), i, k;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      GListModel *params = gtorch_param_group_get_params (group);

      for (k = 0; k < g_list_model_get_n_items (params); k++)
        {
          g_autoptr (GTorchTensor) one = g_list_model_get_item (params, k);

          if (one == param)
            return g_steal_pointer (&group);
        }
    }
  return NULL;
}

/* Forgets entries that the state lacks. Where graphs use them, they get their initial values; a missing
 * count of a parameter that has been stepped, which SGD need not have, becomes 1. */
static gboolean
load_rest (GTorchOptimizer *self, Load *load, GError **error)
{
  GHashTableIter params, states;
  gpointer param, table, name, known;

  g_hash_table_iter_init (&params, gtorch_optimizer_get_states (self));
  while (g_hash_table_iter_next (&params, &param, &table))
    {
      GHashTable *loaded = g_hash_table_lookup (load->states, param);
      gboolean is_foreign = !g_ptr_array_find (load->params, param, NULL);
      gboolean was_stepped = loaded != NULL;

      g_hash_table_iter_init (&states, table);
      while (g_hash_table_iter_next (&states, &name, &known))
        {
          g_autoptr (GTorchParamGroup) group = NULL;
          g_autoptr (GTorchImpl) first = NULL;
          GTorchImpl *impl = gtorch_tensor_unwrap (known);

          if (loaded != NULL && g_hash_table_contains (loaded, name))
            continue;
          if (!is_foreign && !is_captured (self, known, known))
            continue;
          gtorch_optimizer_states_put (load->states, param, name, known);
          loaded = g_hash_table_lookup (load->states, param);
          if (is_foreign)
            continue;
          group = find_group (self, param);
          first = gtorch_op_full_like (impl,
                                       was_stepped && strcmp (name, "step") == 0
                                           ? 1
                                           : gtorch_step_get_begin (self, group, name),
                                       GTORCH_DTYPE_NONE, error);
          if (first == NULL
              || !gtorch_state_writes_add (load->writes, impl, first, "load_state_dict", name,
                                           error))
            return FALSE;
        }
    }
  return TRUE;
}

static void
take_settings (GTorchParamGroup *group, GHashTable *settings)
{
  GHashTableIter iter;
  gpointer name, value;

  g_hash_table_iter_init (&iter, settings);
  while (g_hash_table_iter_next (&iter, &name, &value))
    {
      const gdouble *values = (const gdouble *) (gpointer) ((GArray *) value)->data;
      guint n = 0;
      gint first = group->settings != NULL ? gtorch_settings_find (group->settings, name, &n) : -1;

      if (first < 0) /* which cannot fail for checked values */
        gtorch_param_group_set_setting (group, name, values, ((GArray *) value)->len, NULL);
      else
        gtorch_param_group_take_numbers (group, first, n, values, FALSE);
    }
}

static void
add_used (GPtrArray *used, gpointer tensor)
{
  if (GTORCH_IS_TENSOR (tensor))
    g_ptr_array_add (used, gtorch_tensor_unwrap (tensor));
}

/* Other threads may release any of these meanwhile. */
static GPtrArray *
list_used (GTorchOptimizer *self, GHashTable *state)
{
  g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (self);
  GPtrArray *used = g_ptr_array_new ();
  GHashTableIter iter, states;
  gpointer table, value;
  guint i;

  for (i = 0; i < params->len; i++)
    add_used (used, params->pdata[i]);
  g_hash_table_iter_init (&iter, gtorch_optimizer_get_states (self));
  while (g_hash_table_iter_next (&iter, NULL, &table))
    {
      g_hash_table_iter_init (&states, table);
      while (g_hash_table_iter_next (&states, NULL, &value))
        add_used (used, value);
    }
  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    add_used (used, value);
  return used;
}

static gboolean
load_all (GTorchOptimizer *self, GHashTable *state, GPtrArray *used, GError **error)
{
  GTORCH_HOLD_MANY ((GTorchImpl **) used->pdata, used->len);
  g_auto (Load) load = { NULL };
  g_autoptr (GTorchGradGuard) guard = NULL;
  GListModel *groups;
  GHashTableIter iter;
  gpointer key, value;
  guint n_groups, i;

  guard = gtorch_no_grad ();
  groups = gtorch_optimizer_get_param_groups (self);
  n_groups = g_list_model_get_n_items (groups);
  load.params = gtorch_optimizer_dup_params (self);
  load.states = gtorch_optimizer_states_new ();
  load.writes = gtorch_state_writes_new ();
  load.settings = g_ptr_array_new_with_free_func ((GDestroyNotify) g_hash_table_unref);
  for (i = 0; i < n_groups; i++)
    g_ptr_array_add (load.settings, g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
                                                           (GDestroyNotify) g_array_unref));
  if (!check_counts (self, state, error)
      || !check_entries (self, state, load.params->len, n_groups, error))
    return FALSE;

  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &key, &value))
    {
      Entry entry;

      if (!GTORCH_IS_TENSOR (value))
        return fail_load (error, key, _ ("is not a tensor"));
      if (parse_entry (key, &entry) && entry.is_group && strcmp (entry.name, COUNT) == 0)
        continue;
      if (!parse_entry (key, &entry)
          || !(entry.is_group
                   ? load_setting (self, &load, key, entry.index, entry.name, value, error)
                   : load_state (self, &load, key, entry.index, entry.name, value, error)))
        return FALSE;
    }
  if (!check_settings (self, &load, error) || !load_rest (self, &load, error)
      || !gtorch_state_writes_run (load.writes, error))
    return FALSE;

  /* no failure is possible from here on */
  gtorch_optimizer_take_states (self, g_steal_pointer (&load.states));
  for (i = 0; i < n_groups; i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);

      if (group != NULL)
        take_settings (group, load.settings->pdata[i]);
    }
  return TRUE;
}

/**
 * gtorch_optimizer_load_state_dict:
 * @self: an optimizer
 * @state: (element-type utf8 GTorchTensor): the result of [method@Optimizer.state_dict]
 * @error: return location for an error
 *
 * Replaces the state by that of another optimizer of as many parameters. The tensors are copied, and
 * converted to the dtype and the device that the steps need. The groups of both must have as many parameters,
 * as far as @state says so. @state must have all settings of all groups
 * and, of each parameter of which it has any entries, all that every step of this class needs; entries
 * that depend on a setting, such as the momentum of #GTorchSGD, may be missing, and start anew. Unknown
 * entries are errors. Nothing is changed if @state is invalid: if, for example, a count of steps is not a
 * whole number of at least 0.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_FOUND listing the missing and the unexpected entries,
 *   or %GTORCH_ERROR_FORMAT naming the invalid entry
 *
 * Since: 0.1
 */
gboolean
gtorch_optimizer_load_state_dict (GTorchOptimizer *self, GHashTable *state, GError **error)
{
  g_autoptr (GPtrArray) used = NULL;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  used = list_used (self, state);
  return load_all (self, state, used, error);
}

/**
 * gtorch_optimizer_state_lists:
 * @self: an optimizer
 * @names: (out) (optional) (transfer full) (array zero-terminated=1): the names, in no particular order
 *
 * Gets the state of [method@Optimizer.state_dict] as lists.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensor of each name
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_optimizer_state_lists (GTorchOptimizer *self, gchar ***names)
{
  g_autoptr (GHashTable) dict = NULL;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), NULL);
  dict = gtorch_optimizer_state_dict (self);
  return gtorch_state_to_lists (dict, names);
}

/**
 * gtorch_optimizer_load_state_lists:
 * @self: an optimizer
 * @names: (array zero-terminated=1): the name of each tensor
 * @tensors: (array length=n_tensors): tensors
 * @n_tensors: the length of @tensors, which is that of @names
 * @error: return location for an error
 *
 * Does the same as [method@Optimizer.load_state_dict].
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the lengths differ or a name appears twice,
 *   and with the errors
 *   of [method@Optimizer.load_state_dict]
 *
 * Since: 0.1
 */
gboolean
gtorch_optimizer_load_state_lists (GTorchOptimizer *self, const gchar *const *names,
                                   GTorchTensor **tensors, gsize n_tensors, GError **error)
{
  g_autoptr (GHashTable) state = NULL;

  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (self), FALSE);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, FALSE);
  state = gtorch_state_from_lists (names, tensors, n_tensors, error);
  return state != NULL && gtorch_optimizer_load_state_dict (self, state, error);
}
