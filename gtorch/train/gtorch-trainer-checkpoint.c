/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checkpoints: one safetensors file with everything that a run goes on from. The names of its tensors begin
 * with the part that they belong to: "model.", "optimizer.", "scaler.", "schedule.0." and so on; generators
 * are "generator.cpu" and the like, "trainer" is a GVariant of type a{sv}: the counters and the state of
 * the loader, and "program" is what a function of the program gave. A run that goes on from there computes
 * the same bits as one that never ended. */

#include "config.h"

#include "train/gtorch-trainer-checkpoint-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-file-save-private.h"
#include "device/gtorch-device-private.h"
#include "device/gtorch-generator.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-ops-private.h"
#include "io/gtorch-safetensors.h"
#include "nn/gtorch-module-members.h"
#include "nn/gtorch-module-state.h"
#include "nn/gtorch-spread-private.h"
#include "tensor/gtorch-tensor-private.h"

#define FORMAT_NAME "gtorch-trainer-1"
#define PROGRAM     "program"

static void
lists_init (GTorchTrainerLists *lists)
{
  lists->names = g_ptr_array_new_with_free_func (g_free);
  lists->tensors = g_ptr_array_new_with_free_func (g_object_unref);
}

void
gtorch_trainer_lists_clear (GTorchTrainerLists *lists)
{
  g_clear_pointer (&lists->names, g_ptr_array_unref);
  g_clear_pointer (&lists->tensors, g_ptr_array_unref);
}

/* Takes the tensor. */
static void
lists_take (GTorchTrainerLists *lists, const gchar *prefix, const gchar *name, GTorchTensor *tensor)
{
  g_ptr_array_add (lists->names, g_strconcat (prefix, name, NULL));
  g_ptr_array_add (lists->tensors, tensor);
}

/* --- the parts that have states of tensors --- */

typedef struct
{
  gpointer object;
  gchar *prefix;
  GPtrArray *(*get) (gpointer object, gchar ***names, GError **error);
  gboolean (*set) (gpointer object, const gchar *const *names, GTorchTensor **tensors, gsize n,
                   GError **error);
} Part;

static GPtrArray *
get_model (gpointer object, gchar ***names, GError **error)
{
  return gtorch_module_state_lists (object, names);
}

static gboolean
set_model (gpointer object, const gchar *const *names, GTorchTensor **tensors, gsize n,
           GError **error)
{
  return gtorch_module_load_state_lists (object, names, tensors, n, TRUE, error);
}

static GPtrArray *
get_optimizer (gpointer object, gchar ***names, GError **error)
{
  return gtorch_optimizer_state_lists (object, names);
}

static gboolean
set_optimizer (gpointer object, const gchar *const *names, GTorchTensor **tensors, gsize n,
               GError **error)
{
  return gtorch_optimizer_load_state_lists (object, names, tensors, n, error);
}

static GPtrArray *
get_schedule (gpointer object, gchar ***names, GError **error)
{
  return gtorch_lr_scheduler_state_lists (object, names);
}

static gboolean
set_schedule (gpointer object, const gchar *const *names, GTorchTensor **tensors, gsize n,
              GError **error)
{
  return gtorch_lr_scheduler_load_state_lists (object, names, tensors, n, error);
}

static GPtrArray *
get_scaler (gpointer object, gchar ***names, GError **error)
{
  return gtorch_grad_scaler_state_lists (object, names, error);
}

static gboolean
set_scaler (gpointer object, const gchar *const *names, GTorchTensor **tensors, gsize n,
            GError **error)
{
  return gtorch_grad_scaler_load_state_lists (object, names, tensors, n, error);
}

static void
part_clear (gpointer data)
{
  g_free (((Part *) data)->prefix);
}

/* Schedules set learning rates of the optimizer, which is behind them. */
static GArray *
list_parts (GTorchTrainerPrivate *priv, GTorchGradScaler *scaler)
{
  GArray *parts = g_array_new (FALSE, FALSE, sizeof (Part));
  Part part;

  g_array_set_clear_func (parts, part_clear);
  part = (Part){ priv->module, g_strdup ("model."), get_model, set_model };
  g_array_append_val (parts, part);
  for (guint i = 0; i < priv->schedules->len; i++)
    {
      const GTorchTrainerSchedule *one = priv->schedules->pdata[i];

      part =
          (Part){ one->scheduler, g_strdup_printf ("schedule.%u.", i), get_schedule, set_schedule };
      g_array_append_val (parts, part);
    }
  if (scaler != NULL)
    {
      part = (Part){ scaler, g_strdup ("scaler."), get_scaler, set_scaler };
      g_array_append_val (parts, part);
    }
  part = (Part){ priv->optimizer, g_strdup ("optimizer."), get_optimizer, set_optimizer };
  g_array_append_val (parts, part);
  return parts;
}

/* Appends the state of a part; copied: loading changes tensors in place. */
static gboolean
part_get (const Part *part, GTorchTrainerLists *lists, const gchar *prefix, gboolean is_copied,
          GError **error)
{
  g_auto (GStrv) names = NULL;
  g_autoptr (GPtrArray) tensors = part->get (part->object, &names, error);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

  if (tensors == NULL)
    return FALSE;
  for (guint i = 0; i < tensors->len; i++)
    {
      GTorchTensor *tensor = tensors->pdata[i];
      GTorchImpl *copy;

      if (!is_copied)
        {
          lists_take (lists, prefix, names[i], g_object_ref (tensor));
          continue;
        }
      copy = gtorch_op_clone (gtorch_tensor_unwrap (tensor), error);
      if (copy == NULL)
        return FALSE;
      lists_take (lists, prefix, names[i], gtorch_tensor_wrap (copy));
    }
  return TRUE;
}

/* Sets the state of a part from the names that begin with its prefix, or, without one, all. */
static gboolean
part_set (const Part *part, const GTorchTrainerLists *lists, const gchar *prefix, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GPtrArray) tensors = g_ptr_array_new ();

  for (guint i = 0; i < lists->names->len; i++)
    if (g_str_has_prefix (lists->names->pdata[i], prefix))
      {
        g_ptr_array_add (names, (gchar *) lists->names->pdata[i] + strlen (prefix));
        g_ptr_array_add (tensors, lists->tensors->pdata[i]);
      }
  g_ptr_array_add (names, NULL);
  return part->set (part->object, (const gchar *const *) names->pdata,
                    (GTorchTensor **) tensors->pdata, tensors->len, error);
}

/* --- counters and generators --- */

static GTorchTensor *
wrap_bytes (GBytes *bytes, GError **error)
{
  const gint64 n = g_bytes_get_size (bytes);

  return gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_UINT8, &n, 1, error);
}

static GVariant *
pack_counters (GTorchTrainerPrivate *priv, GVariant *loader)
{
  const GTorchTrainerCounters *counters = &priv->counters;
  g_auto (GVariantDict) dict;

  g_variant_dict_init (&dict, NULL);
  g_variant_dict_insert (&dict, "epoch", "x", counters->epoch);
  g_variant_dict_insert (&dict, "step", "x", counters->step);
  g_variant_dict_insert (&dict, "evaluations", "x", counters->n_evaluations);
  g_variant_dict_insert (&dict, "bad-evaluations", "x", counters->n_bad);
  g_variant_dict_insert (&dict, "best", "d", counters->best);
  g_variant_dict_insert (&dict, "loss", "d", counters->loss);
  g_variant_dict_insert (&dict, "epoch-loss-sum", "d", counters->epoch_sum);
  g_variant_dict_insert (&dict, "epoch-loss-count", "x", counters->epoch_count);
  if (loader != NULL)
    g_variant_dict_insert_value (&dict, "loader", loader);
  return g_variant_ref_sink (g_variant_dict_end (&dict));
}

/* The bytes are little-endian everywhere. */
static GVariant *
in_order (GVariant *variant)
{
  return G_BYTE_ORDER == G_BIG_ENDIAN ? g_variant_byteswap (variant) : g_variant_ref (variant);
}

static gboolean
unpack_counters (GVariant *variant, GTorchTrainerCounters *counters, GVariant **loader)
{
  g_auto (GVariantDict) dict;
  gboolean result;

  g_variant_dict_init (&dict, variant);
  result = g_variant_dict_lookup (&dict, "epoch", "x", &counters->epoch)
           && g_variant_dict_lookup (&dict, "step", "x", &counters->step)
           && g_variant_dict_lookup (&dict, "evaluations", "x", &counters->n_evaluations)
           && g_variant_dict_lookup (&dict, "bad-evaluations", "x", &counters->n_bad)
           && g_variant_dict_lookup (&dict, "best", "d", &counters->best)
           && g_variant_dict_lookup (&dict, "loss", "d", &counters->loss)
           && g_variant_dict_lookup (&dict, "epoch-loss-sum", "d", &counters->epoch_sum)
           && g_variant_dict_lookup (&dict, "epoch-loss-count", "x", &counters->epoch_count)
           && counters->epoch >= 0 && counters->step >= 0 && counters->n_evaluations >= 0
           && counters->n_bad >= 0 && counters->epoch_count >= 0;
  *loader = g_variant_dict_lookup_value (&dict, "loader", G_VARIANT_TYPE_VARDICT);
  return result;
}

/* The generators that training draws from: that of the CPU, and of the device of the module. */
static guint
list_generators (GTorchTrainerPrivate *priv, GTorchGenerator **generators, gchar **names)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (priv->module, TRUE);
  g_autoptr (GTorchTensor) first = g_list_model_get_item (parameters, 0);
  GTorchDevice *device = first != NULL ? gtorch_tensor_get_device (first) : NULL;
  guint n = 0;

  generators[n] = gtorch_device_get_default_generator (gtorch_device_cpu ());
  names[n++] = g_strdup ("generator.cpu");
  if (device != NULL && device != gtorch_device_cpu ())
    {
      generators[n] = gtorch_device_get_default_generator (device);
      names[n++] = g_strdup ("generator.device");
    }
  return n;
}

/* --- what is the program's own --- */

/* NULL without an error: there is none. */
static GBytes *
get_program (GTorchTrainer *self, GError **error)
{
  const GTorchTrainerFunc *save = &gtorch_trainer_get_private (self)->save;
  g_autoptr (GBytes) bytes = NULL;
  GError *local = NULL;

  if (save->func == NULL)
    return NULL;
  bytes = ((GTorchTrainerSaveFunc) save->func) (self, save->data, &local);
  return gtorch_callback_ended ("the function of set_save_function ()", bytes != NULL, local, error)
             ? g_steal_pointer (&bytes)
             : NULL;
}

static gboolean
set_program (GTorchTrainer *self, GBytes *bytes, GError **error)
{
  const GTorchTrainerFunc *load = &gtorch_trainer_get_private (self)->load;
  GError *local = NULL;
  gboolean result;

  if (load->func == NULL)
    return TRUE;
  result = ((GTorchTrainerLoadFunc) load->func) (self, bytes, load->data, &local);
  return gtorch_callback_ended ("the function of set_load_function ()", result, local, error);
}

/* --- writing --- */

const gchar *const gtorch_trainer_metadata[] = { "format", FORMAT_NAME, NULL };

/* The names, which end with NULL, and the tensors of a file. */
gboolean
gtorch_trainer_collect (GTorchTrainer *self, GTorchGradScaler *scaler, GVariant *loader,
                        GTorchTrainerLists *lists, GError **error)
{
  GTorchTrainerPrivate *priv = gtorch_trainer_get_private (self);
  g_autoptr (GArray) parts = list_parts (priv, scaler);
  g_autoptr (GVariant) counters = pack_counters (priv, loader);
  g_autoptr (GVariant) ordered = in_order (counters);
  g_autoptr (GBytes) bytes = g_variant_get_data_as_bytes (ordered);
  g_autoptr (GBytes) program = NULL;
  GTorchGenerator *generators[2];
  gchar *names[2];
  GTorchTensor *tensor;
  const guint n = list_generators (priv, generators, names);
  gboolean result = TRUE;
  GError *local = NULL;

  lists_init (lists);
  for (guint i = 0; i < parts->len && result; i++)
    {
      const Part *part = &g_array_index (parts, Part, i);

      result = part_get (part, lists, part->prefix, FALSE, error);
    }
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GBytes) state = gtorch_generator_get_state (generators[i]);

      tensor = result ? wrap_bytes (state, error) : NULL;
      if (tensor != NULL)
        lists_take (lists, "", names[i], tensor);
      result = tensor != NULL;
      g_free (names[i]);
    }
  program = result ? get_program (self, &local) : NULL;
  if (program != NULL)
    {
      tensor = wrap_bytes (program, error);
      if (tensor == NULL)
        return FALSE;
      lists_take (lists, "", PROGRAM, tensor);
    }
  else if (local != NULL)
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  tensor = result ? wrap_bytes (bytes, error) : NULL;
  if (tensor == NULL)
    return FALSE;
  lists_take (lists, "", "trainer", tensor);
  g_ptr_array_add (lists->names, NULL);
  return TRUE;
}

static gboolean
save (GTorchTrainer *self, GTorchGradScaler *scaler, GVariant *loader, GFile *file,
      GCancellable *cancellable, GError **error)
{
  g_auto (GTorchTrainerLists) lists = { NULL };

  if (!gtorch_trainer_collect (self, scaler, loader, &lists, error))
    return FALSE;
  return gtorch_safetensors_save_file_lists ((const gchar *const *) lists.names->pdata,
                                             (GTorchTensor **) lists.tensors->pdata,
                                             lists.tensors->len, gtorch_trainer_metadata, file,
                                             cancellable, NULL, NULL, error);
}

gboolean
gtorch_trainer_write_checkpoint (GTorchTrainerRun *run, GFile *file, GError **error)
{
  g_autoptr (GVariant) loader = NULL;
  GError *local = NULL;

  if (!g_file_make_directory_with_parents (run->settings.checkpoint_folder, run->cancellable,
                                           &local)
      && !g_error_matches (local, G_IO_ERROR, G_IO_ERROR_EXISTS))
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  g_clear_error (&local);
  loader = gtorch_data_loader_get_state (run->priv->loader, error);
  if (loader == NULL)
    return FALSE;
  return save (run->trainer, run->settings.scaler, loader, file, run->cancellable, error);
}

#define PREFIX "step-"

static gchar *
name_step (gint64 step)
{
  return g_strdup_printf (PREFIX "%010" G_GINT64_FORMAT ".safetensors", step);
}

static gint
compare_names (gconstpointer one, gconstpointer other)
{
  return strcmp (*(const gchar *const *) one, *(const gchar *const *) other);
}

/* The step of a name that a trainer gives a checkpoint, or -1. */
static gint64
find_step (const gchar *name)
{
  g_autofree gchar *own = NULL;
  gint64 step;

  if (!g_str_has_prefix (name, PREFIX))
    return -1;
  step = g_ascii_strtoll (name + strlen (PREFIX), NULL, 10);
  own = name_step (step);
  return strcmp (name, own) == 0 ? step : -1;
}

/* The names of the checkpoints of steps in the folder, the oldest first. */
GPtrArray *
gtorch_trainer_list_checkpoints (GFile *folder, GCancellable *cancellable, GError **error)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  GError *local = NULL;
  g_autoptr (GFileEnumerator) files =
      g_file_enumerate_children (folder, G_FILE_ATTRIBUTE_STANDARD_NAME, G_FILE_QUERY_INFO_NONE,
                                 cancellable, &local);
  GFileInfo *info;

  while (local == NULL && g_file_enumerator_iterate (files, &info, NULL, cancellable, &local)
         && info != NULL)
    {
      const gchar *name = g_file_info_get_name (info);

      if (find_step (name) >= 0)
        g_ptr_array_add (names, g_strdup (name));
    }
  if (local != NULL && !g_error_matches (local, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
    {
      g_propagate_error (error, local);
      g_ptr_array_unref (names);
      return NULL;
    }
  g_clear_error (&local);
  g_ptr_array_sort (names, compare_names);
  return names;
}

/* Removes all but the last few of the steps up to the present one; that a file cannot be removed does no
 * harm. */
static gboolean
remove_old (GTorchTrainerRun *run, GError **error)
{
  const gint64 n = run->settings.keep_checkpoints;
  g_autoptr (GPtrArray) names = NULL;

  if (n == 0)
    return TRUE;
  names =
      gtorch_trainer_list_checkpoints (run->settings.checkpoint_folder, run->cancellable, error);
  while (names != NULL && names->len > 0 && find_step (names->pdata[names->len - 1]) > run->step)
    g_ptr_array_set_size (names, names->len - 1); /* of another training */
  for (guint i = 0; names != NULL && i + n < names->len; i++)
    {
      g_autoptr (GFile) file = g_file_get_child (run->settings.checkpoint_folder, names->pdata[i]);

      g_file_delete (file, NULL, NULL);
    }
  return names != NULL;
}

gboolean
gtorch_trainer_run_checkpoint (GTorchTrainerRun *run, GError **error)
{
  g_autofree gchar *name = name_step (run->step);
  g_autoptr (GFile) file = g_file_get_child (run->settings.checkpoint_folder, name);

  if (!gtorch_trainer_write_checkpoint (run, file, error))
    return FALSE;
  run->saved_step = run->step;
  return remove_old (run, error);
}

gboolean
gtorch_trainer_check_whole (GTorchTrainer *self, const gchar *op, GError **error)
{
  g_autoptr (GListModel) params =
      gtorch_module_get_parameters (gtorch_trainer_get_private (self)->module, TRUE);

  for (guint i = 0; i < g_list_model_get_n_items (params); i++)
    {
      g_autoptr (GTorchTensor) param = g_list_model_get_item (params, i);

      if (gtorch_spread_find (param) == NULL)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: the parameter “%s”, of shape %s, is a part of one that is spread over "
                      "processes: the checkpoint of a trainer has only what one process has "
                      "(safetensors_save_index () writes what all have)"),
                   op, gtorch_parameter_get_name (GTORCH_PARAMETER (param)),
                   gtorch_impl_shape_str (gtorch_tensor_unwrap (param)));
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_trainer_check_checkpoint (GTorchTrainer *self, const gchar *op, GError **error)
{
  return gtorch_trainer_check (self, error) && gtorch_trainer_check_whole (self, op, error)
         && gtorch_trainer_check_idle (self, op, error);
}

/* Where the next run would go on. */
GVariant *
gtorch_trainer_get_loader_state (GTorchTrainerPrivate *priv, GError **error)
{
  return priv->loader_state != NULL ? g_variant_ref (priv->loader_state)
                                    : gtorch_data_loader_get_state (priv->loader, error);
}

/**
 * gtorch_trainer_save_checkpoint:
 * @self: a trainer
 * @file: the file to write or replace
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes everything that a later run goes on from: the states of the module, the optimizer, the schedules,
 * the scaler, the generators of random numbers and the loader, and how far training is. The file is complete
 * or not there at all. It is a safetensors file, whose names begin with `model.` for the module.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if a run goes on, %GTORCH_ERROR_NOT_SUPPORTED if each
 *   process has a part of the module, or with the error of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_save_checkpoint (GTorchTrainer *self, GFile *file, GCancellable *cancellable,
                                GError **error)
{
  GTorchTrainerPrivate *priv;
  g_autoptr (GVariant) loader = NULL;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (!gtorch_trainer_check_checkpoint (self, "save_checkpoint", error))
    return FALSE;
  priv = gtorch_trainer_get_private (self);
  loader = gtorch_trainer_get_loader_state (priv, error);
  if (loader == NULL)
    return FALSE;
  return save (self, priv->settings.scaler, loader, file, cancellable, error);
}

/* --- reading --- */

static GTorchTensor *
find_tensor (const GTorchTrainerLists *lists, const gchar *name)
{
  for (guint i = 0; i < lists->names->len; i++)
    if (g_str_equal (lists->names->pdata[i], name))
      return lists->tensors->pdata[i];
  return NULL;
}

static gboolean
fail_format (GFile *file, const gchar *what, GError **error)
{
  g_autofree gchar *name = g_file_get_parse_name (file);

  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("load_checkpoint: %s is no checkpoint of a trainer: %s"), name, what);
  return FALSE;
}

gboolean
gtorch_trainer_read_checkpoint (GFile *file, GCancellable *cancellable, GTorchTrainerLists *lists,
                                GError **error)
{
  g_auto (GStrv) names = NULL;
  g_auto (GStrv) metadata = NULL;
  g_autoptr (GPtrArray) tensors =
      gtorch_safetensors_load_file_lists (file, FALSE, gtorch_device_cpu (), &names, &metadata,
                                          cancellable, NULL, NULL, error);

  if (tensors == NULL)
    return FALSE;
  lists_init (lists);
  for (guint i = 0; i < tensors->len; i++)
    lists_take (lists, "", names[i], g_object_ref (tensors->pdata[i]));
  return TRUE;
}

static gboolean
read_counters (GFile *file, const GTorchTrainerLists *lists, GTorchTrainerCounters *counters,
               GVariant **loader, GError **error)
{
  GTorchTensor *packed = find_tensor (lists, "trainer");
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GVariant) variant = NULL;
  g_autoptr (GVariant) ordered = NULL;
  g_autoptr (GVariant) normal = NULL;

  if (packed == NULL)
    return fail_format (file, _ ("it has no counters"), error);
  bytes = gtorch_tensor_get_bytes (packed, error);
  if (bytes == NULL)
    return FALSE;
  variant = g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE_VARDICT, bytes, FALSE));
  ordered = in_order (variant);
  normal = g_variant_get_normal_form (ordered);
  return unpack_counters (normal, counters, loader)
         || fail_format (file, _ ("its counters are missing, or below 0"), error);
}

/* Gives all parts their states, or none: those that have got theirs get the former ones back. */
static gboolean
set_parts (GArray *parts, const GTorchTrainerLists *lists, GError **error)
{
  g_autofree GTorchTrainerLists *former = g_new0 (GTorchTrainerLists, parts->len);
  gboolean result = TRUE;
  guint i;

  for (i = 0; i < parts->len && result; i++)
    {
      const Part *part = &g_array_index (parts, Part, i);

      lists_init (&former[i]);
      result = part_get (part, &former[i], "", TRUE, error)
               && part_set (part, lists, part->prefix, error);
    }
  /* The optimizer's learning rates are part of its state, and the last to be taken back. */
  for (guint j = 0; j + 1 < i && !result; j++)
    part_set (&g_array_index (parts, Part, j), &former[j], "", NULL);
  for (guint j = 0; j < i; j++)
    gtorch_trainer_lists_clear (&former[j]);
  return result;
}

/* Sets the generators, or none. */
static gboolean
set_generators (GTorchTrainerPrivate *priv, GFile *file, const GTorchTrainerLists *lists,
                GError **error)
{
  GTorchGenerator *generators[2];
  gchar *names[2];
  g_autoptr (GBytes) former = NULL;
  const guint n = list_generators (priv, generators, names);
  gboolean result = TRUE;

  former = gtorch_generator_get_state (generators[0]);
  for (guint i = 0; i < n; i++)
    {
      GTorchTensor *tensor = find_tensor (lists, names[i]);
      g_autoptr (GBytes) state =
          tensor != NULL && result ? gtorch_tensor_get_bytes (tensor, error) : NULL;

      /* A checkpoint of a run on the CPU has none of the GPU's. */
      if (tensor == NULL && i == 0)
        result = fail_format (file, _ ("it has no state of the generator"), error);
      else if (tensor != NULL && result)
        result = state != NULL && gtorch_generator_set_state (generators[i], state, error);
      g_free (names[i]);
    }
  if (!result)
    gtorch_generator_set_state (generators[0], former, NULL);
  return result;
}

/* Takes what a file has, all of it or nothing. */
gboolean
gtorch_trainer_apply (GTorchTrainer *self, GFile *file, const GTorchTrainerLists *lists,
                      GError **error)
{
  GTorchTrainerPrivate *priv = gtorch_trainer_get_private (self);
  GTorchTensor *program = find_tensor (lists, PROGRAM);
  g_autoptr (GArray) parts = NULL;
  g_autoptr (GVariant) loader = NULL;
  g_autoptr (GVariant) former = NULL;
  g_autoptr (GBytes) own = NULL;
  g_autoptr (GBytes) former_own = NULL;
  GTorchTrainerCounters counters = { 0 };
  GError *local = NULL;

  if (!read_counters (file, lists, &counters, &loader, error))
    return FALSE;
  if (program != NULL)
    {
      own = gtorch_tensor_get_bytes (program, &local);
      former_own = own != NULL ? get_program (self, &local) : NULL;
      if (local != NULL)
        {
          g_propagate_error (error, local);
          return FALSE;
        }
    }
  if (loader != NULL)
    {
      former = gtorch_data_loader_get_state (priv->loader, error);
      if (former == NULL || !gtorch_data_loader_set_state (priv->loader, loader, error))
        return FALSE;
    }
  parts = list_parts (priv, priv->settings.scaler);
  if ((own != NULL && !set_program (self, own, error)) || !set_parts (parts, lists, error)
      || !set_generators (priv, file, lists, error))
    {
      if (former != NULL)
        gtorch_data_loader_set_state (priv->loader, former, NULL);
      if (former_own != NULL)
        set_program (self, former_own, NULL);
      return FALSE;
    }
  g_clear_pointer (&priv->loader_state, g_variant_unref);
  priv->loader_state = g_steal_pointer (&loader);
  g_mutex_lock (&priv->lock);
  priv->counters = counters;
  g_mutex_unlock (&priv->lock);
  return TRUE;
}

/**
 * gtorch_trainer_load_checkpoint:
 * @self: a trainer
 * @file: a checkpoint
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Takes everything from a checkpoint, so that the next run goes on from there. The trainer must have been
 * made like the one that wrote it: with the same module, optimizer, schedules and loader. Then its steps give
 * the same bits as those of a run that never ended.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_FORMAT for a file that is no such checkpoint, with the errors
 *   of the parts that a state does not fit, or of the file; then nothing has changed
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_load_checkpoint (GTorchTrainer *self, GFile *file, GCancellable *cancellable,
                                GError **error)
{
  g_auto (GTorchTrainerLists) lists = { NULL };

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return gtorch_trainer_check_checkpoint (self, "load_checkpoint", error)
         && gtorch_trainer_read_checkpoint (file, cancellable, &lists, error)
         && gtorch_trainer_apply (self, file, &lists, error);
}

GFile *
gtorch_trainer_find_folder (GTorchTrainer *self, GError **error)
{
  GFile *folder = gtorch_trainer_get_private (self)->settings.checkpoint_folder;

  if (folder == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("resume: there is no checkpoint_folder"));
  return folder;
}

/**
 * gtorch_trainer_resume:
 * @self: a trainer with a [property@Trainer:checkpoint-folder]
 * @found: (out) (optional): whether there was a checkpoint
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Loads the checkpoint of the last step in the folder, if there is one; see [method@Trainer.load_checkpoint].
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if there is no folder, or with an error of
 *   [method@Trainer.load_checkpoint]
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_resume (GTorchTrainer *self, gboolean *found, GCancellable *cancellable,
                       GError **error)
{
  GFile *folder;
  g_autoptr (GPtrArray) names = NULL;
  g_autoptr (GFile) file = NULL;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  folder = gtorch_trainer_find_folder (self, error);
  names = folder != NULL ? gtorch_trainer_list_checkpoints (folder, cancellable, error) : NULL;
  if (names == NULL)
    return FALSE;
  if (names->len > 0)
    {
      file = g_file_get_child (folder, names->pdata[names->len - 1]);
      if (!gtorch_trainer_load_checkpoint (self, file, cancellable, error))
        return FALSE;
    }
  if (found != NULL)
    *found = names->len > 0;
  return TRUE;
}
