/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Objects that load a state, and snapshots of them. */

#pragma once

#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>
#include <gtorch/optim/gtorch-optimizer-private.h>
#include <string.h>

#include "test-device.h"

/* --- an optimizer of a program --- */

typedef GTorchOptimizer TestOptimizer;
typedef GTorchOptimizerClass TestOptimizerClass;

static GType test_optimizer_get_type (void);

G_DEFINE_TYPE (TestOptimizer, test_optimizer, GTORCH_TYPE_OPTIMIZER)

/* Its state has another dtype than the parameter. */
static gboolean
test_optimizer_step_param (GTorchOptimizer *self, GTorchParamGroup *group, GTorchTensor *param,
                           GTorchTensor *grad, GError **error)
{
  g_autoptr (GTorchTensor) fine =
      gtorch_tensor_full_like (param, 0.125, GTORCH_DTYPE_FLOAT64, error);
  g_autoptr (GTorchTensor) count = gtorch_full (NULL, 0, 3, GTORCH_DTYPE_INT64, NULL, error);

  if (fine == NULL || count == NULL)
    return FALSE;
  gtorch_optimizer_set_state (self, param, "fine", fine);
  gtorch_optimizer_set_state (self, param, "count", count);
  return TRUE;
}

static void
test_optimizer_class_init (TestOptimizerClass *klass)
{
  klass->step_param = test_optimizer_step_param;
}

static void
test_optimizer_init (TestOptimizer *self)
{
}

/* --- objects that load a state --- */

typedef struct
{
  const gchar *name;
  gpointer (*make) (guint variant, guint seed);
  guint variant;
  GHashTable *(*get) (gpointer self);
  gboolean (*load) (gpointer self, GHashTable *state, GError **error);
  void (*shoot) (gpointer self, GByteArray *bits); /* takes a snapshot */
  /* returns borrowed tensors that a load writes to, or NULL */
  GPtrArray *(*list_targets) (gpointer self);
} Subject;

static void
shoot_tensor (GTorchTensor *tensor, GByteArray *bits)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  gpointer storage = impl->storage;
  gsize n;

  g_byte_array_append (bits, (gconstpointer) &impl, sizeof impl);
  g_byte_array_append (bits, (gconstpointer) &storage, sizeof storage);
  g_byte_array_append (bits, &impl->dtype, sizeof impl->dtype);
  g_byte_array_append (bits, (gconstpointer) impl->shape, impl->n_dims * sizeof (gint64));
  if (storage != NULL)
    {
      g_autofree gpointer elements = test_dup_elements (tensor, &n);

      g_byte_array_append (bits, elements, n);
    }
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

static GPtrArray *
sorted_names (GHashTable *state)
{
  GPtrArray *names = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer key;

  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    g_ptr_array_add (names, key);
  g_ptr_array_sort (names, compare_names);
  return names;
}

/* Returns a copy of the state in its own memory. */
static GHashTable *
copy_state (GHashTable *state)
{
  GHashTable *copy = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  GHashTableIter iter;
  gpointer key, value;

  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &key, &value))
    g_hash_table_insert (copy, g_strdup (key), gtorch_tensor_clone (value, NULL));
  return copy;
}

/* modules */

static gpointer
make_module (guint variant, guint seed)
{
  GTorchSequential *inner = gtorch_sequential_new ();
  GTorchSequential *net = gtorch_sequential_new ();
  g_autoptr (GTorchModule) linear = NULL;
  g_autoptr (GTorchModule) norm = NULL;
  g_autoptr (GTorchModule) last = NULL;

  gtorch_manual_seed (seed);
  linear = GTORCH_MODULE (gtorch_linear_new (3, 3, NULL));
  norm = GTORCH_MODULE (gtorch_batch_norm1d_new (3, NULL));
  last = GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LINEAR, NULL, "in-features", (gint64) 3,
                                           "out-features", (gint64) 2, "has-bias", FALSE, NULL));
  g_assert_true (gtorch_sequential_append (inner, linear, NULL));
  g_assert_true (gtorch_sequential_append (inner, norm, NULL));
  g_assert_true (gtorch_sequential_append (net, GTORCH_MODULE (inner), NULL));
  g_assert_true (gtorch_sequential_append (net, last, NULL));
  g_object_unref (inner);
  return net;
}

static GHashTable *
get_module (gpointer self)
{
  g_autoptr (GHashTable) state = gtorch_module_state_dict (self);

  return copy_state (state);
}

static gboolean
load_module (gpointer self, GHashTable *state, GError **error)
{
  return gtorch_module_load_state_dict (self, state, TRUE, error);
}

static gboolean
load_module_loosely (gpointer self, GHashTable *state, GError **error)
{
  return gtorch_module_load_state_dict (self, state, FALSE, error);
}

static GPtrArray *
list_module (gpointer self)
{
  GPtrArray *targets = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (self, TRUE);
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (self, TRUE);
  guint i;

  for (i = 0; i < g_list_model_get_n_items (parameters); i++)
    g_ptr_array_add (targets, g_list_model_get_item (parameters, i));
  for (i = 0; i < g_list_model_get_n_items (buffers); i++)
    g_ptr_array_add (targets, g_list_model_get_item (buffers, i));
  return targets;
}

static void
shoot_module (gpointer self, GByteArray *bits)
{
  g_autoptr (GPtrArray) targets = list_module (self);
  guint i;

  for (i = 0; i < targets->len; i++)
    {
      guint8 requires_grad = gtorch_tensor_get_requires_grad (targets->pdata[i]);
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (targets->pdata[i]);

      shoot_tensor (targets->pdata[i], bits);
      g_byte_array_append (bits, &requires_grad, 1);
      if (grad != NULL)
        shoot_tensor (grad, bits);
    }
}

/* optimizers */

enum
{
  SGD,
  ADAM,
  AMSGRAD,
  ADAM_W,
  OWN,
  CAPTURABLE = 16,
};

static GListModel *
make_params (guint first, guint n, guint seed)
{
  GListStore *list = g_list_store_new (GTORCH_TYPE_TENSOR);
  guint i;

  for (i = first; i < first + n; i++)
    {
      g_autoptr (GTorchTensor) param =
          gtorch_full (GTORCH_SHAPE (2, 1 + i), 0.5 * (i + seed), GTORCH_DTYPE_FLOAT32, NULL, NULL);

      gtorch_tensor_set_requires_grad (param, TRUE, NULL);
      g_list_store_append (list, param);
    }
  return G_LIST_MODEL (list);
}

static void
give (GTorchParamGroup *group, const gchar *name, gdouble value)
{
  g_autoptr (GError) error = NULL;

  gtorch_param_group_set_setting (group, name, &value, 1, &error);
  g_assert_no_error (error);
}

static gpointer
make_optimizer (guint variant, guint seed)
{
  g_autoptr (GListModel) some = make_params (0, 2, seed);
  g_autoptr (GListModel) more = make_params (2, 1, seed);
  g_autoptr (GTorchParamGroup) group = gtorch_param_group_new (more, 0.25, 0.125, NULL);
  g_autoptr (GPtrArray) params = NULL;
  g_autoptr (GError) error = NULL;
  GTorchOptimizer *self;
  guint step, i;

  switch (variant % CAPTURABLE)
    {
    case SGD:
      self = GTORCH_OPTIMIZER (gtorch_sgd_new (some, 0.5, 0.5, NULL));
      give (group, "momentum", 0.25 + 0.125 * seed);
      break;
    case ADAM_W:
      self = GTORCH_OPTIMIZER (gtorch_adam_w_new (some, 0.5, 0.5, NULL));
      break;
    case OWN:
      {
        g_autoptr (GTorchParamGroup) first = gtorch_param_group_new (some, 0.5, 0, NULL);

        self = g_object_new (test_optimizer_get_type (), NULL);
        g_assert_true (gtorch_optimizer_add_param_group (self, first, NULL));
        give (group, "own", 1.5 + seed);
        break;
      }
    default:
      self = GTORCH_OPTIMIZER (gtorch_adam_new (some, 0.5, NULL));
      g_object_set (self, "amsgrad", variant % CAPTURABLE == AMSGRAD, NULL);
      give (group, "beta2", 0.25 + 0.125 * seed);
    }
  g_assert_true (gtorch_optimizer_add_param_group (self, group, NULL));
  gtorch_optimizer_set_capturable (self, variant >= CAPTURABLE);
  params = gtorch_optimizer_dup_params (self);
  for (step = 0; step <= seed; step++)
    {
      for (i = 0; i < params->len; i++)
        {
          g_autoptr (GTorchTensor) grad =
              gtorch_tensor_full_like (params->pdata[i], 0.25 * (1 + seed), GTORCH_DTYPE_NONE,
                                       NULL);

          g_assert_true (gtorch_tensor_set_grad (params->pdata[i], grad, NULL));
        }
      gtorch_optimizer_step (self, &error);
      g_assert_no_error (error);
    }
  return self;
}

static GHashTable *
get_optimizer (gpointer self)
{
  g_autoptr (GHashTable) state = gtorch_optimizer_state_dict (self);

  return copy_state (state);
}

static gboolean
load_optimizer (gpointer self, GHashTable *state, GError **error)
{
  return gtorch_optimizer_load_state_dict (self, state, error);
}

static void
shoot_optimizer (gpointer self, GByteArray *bits)
{
  g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (self);
  GListModel *groups = gtorch_optimizer_get_param_groups (self);
  guint i, k;

  for (i = 0; i < params->len; i++)
    {
      GHashTable *states =
          g_hash_table_lookup (gtorch_optimizer_get_states (self), params->pdata[i]);
      g_autoptr (GPtrArray) names = states != NULL ? sorted_names (states) : NULL;

      shoot_tensor (params->pdata[i], bits);
      for (k = 0; states != NULL && k < names->len; k++)
        {
          g_byte_array_append (bits, names->pdata[k], strlen (names->pdata[k]));
          shoot_tensor (g_hash_table_lookup (states, names->pdata[k]), bits);
        }
    }
  for (i = 0; i < g_list_model_get_n_items (groups); i++)
    {
      g_autoptr (GTorchParamGroup) group = g_list_model_get_item (groups, i);
      g_auto (GStrv) names = gtorch_param_group_get_setting_names (group);

      for (k = 0; names[k] != NULL; k++)
        {
          gsize n;
          g_autofree gdouble *numbers = gtorch_param_group_get_setting (group, names[k], &n, NULL);

          g_byte_array_append (bits, (gconstpointer) numbers, n * sizeof (gdouble));
        }
    }
}

/* scalers */

static gpointer
make_scaler (guint variant, guint seed)
{
  GTorchGradScaler *self = gtorch_grad_scaler_new ();
  g_autoptr (GTorchTensor) loss = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL);

  g_object_set (self, "scale-factor", 256.0 * (1 + seed), "growth-interval", 10 + (gint) seed,
                "growth-factor", 2.0 + seed, NULL);
  if (variant > 0) /* its numbers are in device memory */
    gtorch_tensor_unref (gtorch_grad_scaler_scale (self, loss, NULL));
  return self;
}

static GHashTable *
get_scaler (gpointer self)
{
  g_autoptr (GHashTable) state = gtorch_grad_scaler_state_dict (self, NULL);

  return copy_state (state);
}

static gboolean
load_scaler (gpointer self, GHashTable *state, GError **error)
{
  return gtorch_grad_scaler_load_state_dict (self, state, error);
}

static void
shoot_scaler (gpointer self, GByteArray *bits)
{
  g_autoptr (GHashTable) state = gtorch_grad_scaler_state_dict (self, NULL);
  g_autoptr (GPtrArray) names = sorted_names (state);
  guint i;

  for (i = 0; i < names->len; i++)
    {
      gdouble number =
          gtorch_tensor_item_double (g_hash_table_lookup (state, names->pdata[i]), NULL);

      g_byte_array_append (bits, (gconstpointer) &number, sizeof number);
    }
}

/* schedules */

static gpointer
make_schedule (guint variant, guint seed)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer (SGD, seed);
  GTorchLRScheduler *self =
      GTORCH_LR_SCHEDULER (gtorch_step_lr_new (optimizer, 1 + (gint) seed, 0.5, NULL));
  guint i;

  for (i = 0; i < seed; i++)
    g_assert_true (gtorch_lr_scheduler_step (self, NULL));
  return self;
}

static GHashTable *
get_schedule (gpointer self)
{
  g_autoptr (GHashTable) state = gtorch_lr_scheduler_state_dict (self);

  return copy_state (state);
}

static gboolean
load_schedule (gpointer self, GHashTable *state, GError **error)
{
  return gtorch_lr_scheduler_load_state_dict (self, state, error);
}

static void
shoot_schedule (gpointer self, GByteArray *bits)
{
  g_autoptr (GHashTable) state = gtorch_lr_scheduler_state_dict (self);
  g_autoptr (GPtrArray) names = sorted_names (state);
  guint i;

  for (i = 0; i < names->len; i++)
    {
      gsize n;
      g_autofree gpointer elements =
          test_dup_elements (g_hash_table_lookup (state, names->pdata[i]), &n);

      g_byte_array_append (bits, elements, n);
    }
}

/* clang-format off */
static const Subject subjects[] = {
  { "module",         make_module,    0,                 get_module,    load_module,         shoot_module,    list_module },
  { "module_loosely", make_module,    0,                 get_module,    load_module_loosely, shoot_module,    list_module },
  { "sgd",            make_optimizer, SGD,               get_optimizer, load_optimizer,      shoot_optimizer, NULL },
  { "sgd_capturable", make_optimizer, SGD | CAPTURABLE,  get_optimizer, load_optimizer,      shoot_optimizer, NULL },
  { "adam",           make_optimizer, ADAM,              get_optimizer, load_optimizer,      shoot_optimizer, NULL },
  { "adam_captured",  make_optimizer, ADAM | CAPTURABLE, get_optimizer, load_optimizer,      shoot_optimizer, NULL },
  { "amsgrad",        make_optimizer, AMSGRAD,           get_optimizer, load_optimizer,      shoot_optimizer, NULL },
  { "adam_w",         make_optimizer, ADAM_W,            get_optimizer, load_optimizer,      shoot_optimizer, NULL },
  { "own",            make_optimizer, OWN,               get_optimizer, load_optimizer,      shoot_optimizer, NULL },
  { "scaler",         make_scaler,    0,                 get_scaler,    load_scaler,         shoot_scaler,    NULL },
  { "step_lr",        make_schedule,  0,                 get_schedule,  load_schedule,       shoot_schedule,  NULL },
  { "scaler_used",    make_scaler,    1,                 get_scaler,    load_scaler,         shoot_scaler,    NULL },
};
/* clang-format on */
