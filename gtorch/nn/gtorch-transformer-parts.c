/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the modules of transformers share: the parts of layers, and stacks of them. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "nn/gtorch-attention.h"
#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-layers.h"
#include "nn/gtorch-multihead-attention.h"
#include "nn/gtorch-sequential.h"
#include "nn/gtorch-transformer-private.h"

void
gtorch_transformer_get_child_value (gpointer object, const GTorchField *field, GValue *value)
{
  const gchar *name =
      g_str_has_prefix (field->name, "custom-") ? field->name + strlen ("custom-") : "activation";

  if (gtorch_module_get_member_kind (object, name) == GTORCH_MEMBER_KIND_MODULE)
    g_value_take_object (value, gtorch_module_get_module (object, name, NULL));
}

static gpointer
check_class (GTorchModule *self, const gchar *name, gpointer child, GType type, GError **error)
{
  const gchar *wanted = g_type_name (type);

  if (G_TYPE_CHECK_INSTANCE_TYPE (child, type))
    return child;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %s is of the class %s, not of %s"), gtorch_module_type_name (self), name,
               child != NULL ? gtorch_module_type_name (child) : "NULL",
               wanted + strlen ("GTorch"));
  return NULL;
}

gpointer
gtorch_transformer_get_child (GTorchModule *self, const gchar *name, GType type, GError **error)
{
  g_autoptr (GTorchModule) child = gtorch_module_get_module (self, name, error);

  if (child == NULL || check_class (self, name, child, type, error) == NULL)
    return NULL;
  return g_steal_pointer (&child);
}

/* --- the construction of layers --- */

/* Takes the child. */
static gboolean
add (GTorchModule *self, const gchar *name, gpointer child, GError **error)
{
  g_autoptr (GTorchModule) module = child;

  return module != NULL && gtorch_module_register_module (self, name, module, error);
}

GTorchModule *
gtorch_transformer_new_norm (gint64 d_model, gdouble eps, gboolean bias, GError **error)
{
  g_autoptr (GTorchSize) size = gtorch_size_new (&d_model, 1);

  return gtorch_module_new (GTORCH_TYPE_LAYER_NORM, error, "normalized-shape", size, "eps", eps,
                            "has-bias", bias, NULL);
}

static gboolean
add_attention (GTorchModule *self, const gchar *name, const GTorchTransformerSettings *settings,
               GError **error)
{
  return add (self, name,
              gtorch_module_new (GTORCH_TYPE_MULTIHEAD_ATTENTION, error, "embed-dim",
                                 settings->d_model, "num-heads", settings->nhead, "dropout",
                                 settings->dropout, "bias", settings->bias, "batch-first",
                                 settings->batch_first, NULL),
              error);
}

static gboolean
add_linear (GTorchModule *self, const gchar *name, gint64 from, gint64 to, gboolean bias,
            GError **error)
{
  return add (self, name,
              gtorch_module_new (GTORCH_TYPE_LINEAR, error, "in-features", from, "out-features", to,
                                 "has-bias", bias, NULL),
              error);
}

static gboolean
add_dropout (GTorchModule *self, const gchar *name, gdouble p, GError **error)
{
  return add (self, name, gtorch_module_new (GTORCH_TYPE_DROPOUT, error, "p", p, NULL), error);
}

static gboolean
build_layer (GTorchModule *self, const GTorchTransformerSettings *settings, gboolean is_decoder,
             GError **error)
{
  static const gchar *const norms[] = { "norm1", "norm2", "norm3" };
  static const gchar *const dropouts[] = { "dropout1", "dropout2", "dropout3" };
  const guint n = is_decoder ? 3 : 2;

  if (!gtorch_layer_check_least (self, "d_model", settings->d_model, 1, error)
      || !gtorch_layer_check_least (self, "nhead", settings->nhead, 1, error)
      || !gtorch_layer_check_multiple (self, "d_model", settings->d_model, "nhead", settings->nhead,
                                       error)
      || !gtorch_layer_check_least (self, "dim_feedforward", settings->dim_feedforward, 1, error)
      || !gtorch_layer_check_range (self, "dropout", settings->dropout, 0, 1, FALSE, error)
      || !add_attention (self, "self_attn", settings, error)
      || (is_decoder && !add_attention (self, "multihead_attn", settings, error))
      || !add_linear (self, "linear1", settings->d_model, settings->dim_feedforward, settings->bias,
                      error)
      || !add_dropout (self, "dropout", settings->dropout, error)
      || !add_linear (self, "linear2", settings->dim_feedforward, settings->d_model, settings->bias,
                      error))
    return FALSE;
  for (guint i = 0; i < n; i++)
    if (!add (self, norms[i],
              gtorch_transformer_new_norm (settings->d_model, settings->layer_norm_eps,
                                           settings->bias, error),
              error))
      return FALSE;
  for (guint i = 0; i < n; i++)
    if (!add_dropout (self, dropouts[i], settings->dropout, error))
      return FALSE;
  return add (self, "activation",
              settings->activation != NULL ? g_object_ref (settings->activation)
                                           : GTORCH_MODULE (gtorch_relu_new ()),
              error);
}

void
gtorch_transformer_build_layer (GTorchModule *self, const GTorchTransformerSettings *settings,
                                gboolean is_decoder)
{
  GError *error = NULL;

  if (!build_layer (self, settings, is_decoder, &error))
    gtorch_module_set_error (self, error);
}

/* --- the forward pass of layers --- */

static GTorchTensor *
call_child (GTorchModule *self, const gchar *name, GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchModule) child = gtorch_module_get_module (self, name, error);

  return child != NULL ? gtorch_module_forward (child, x, error) : NULL;
}

static GTorchTensor *
attend (GTorchModule *self, GTorchTensor *x, const GTorchTransformerPart *part, GError **error)
{
  GTorchTensor *memory = part->memory != NULL ? part->memory : x;
  g_autoptr (GTorchModule) child =
      gtorch_transformer_get_child (self, part->attention, GTORCH_TYPE_ATTENTION, error);
  GTorchTensor *output = NULL;

  if (child == NULL
      || !gtorch_attention_forward (GTORCH_ATTENTION (child), x, memory, memory, part->padding,
                                    FALSE, part->mask, TRUE, part->is_causal, &output, NULL, error))
    return NULL;
  return output;
}

static GTorchTensor *
feed_forward (GTorchModule *self, GTorchTensor *x, GError **error)
{
  static const gchar *const steps[] = { "linear1", "activation", "dropout", "linear2" };
  g_autoptr (GTorchTensor) value = g_object_ref (x);

  for (guint i = 0; i < G_N_ELEMENTS (steps); i++)
    {
      GTorchTensor *output = call_child (self, steps[i], value, error);

      if (output == NULL)
        return NULL;
      g_object_unref (value);
      value = output;
    }
  return g_steal_pointer (&value);
}

static GTorchTensor *
sum (GTorchTensor *a, GTorchTensor *b, GError **error)
{
  return gtorch_tensor_wrap (
      gtorch_op_add (gtorch_tensor_unwrap (a), gtorch_tensor_unwrap (b), 1, error));
}

static GTorchTensor *
run_part (GTorchModule *self, GTorchTensor *x, const GTorchTransformerPart *part,
          gboolean norm_first, GError **error)
{
  g_autoptr (GTorchTensor) input =
      norm_first ? call_child (self, part->norm, x, error) : g_object_ref (x);
  g_autoptr (GTorchTensor) made = NULL;
  g_autoptr (GTorchTensor) dropped = NULL;
  g_autoptr (GTorchTensor) total = NULL;

  if (input != NULL)
    made = part->attention != NULL ? attend (self, input, part, error)
                                   : feed_forward (self, input, error);
  dropped = made != NULL ? call_child (self, part->dropout, made, error) : NULL;
  total = dropped != NULL ? sum (x, dropped, error) : NULL;
  if (total == NULL || norm_first)
    return g_steal_pointer (&total);
  return call_child (self, part->norm, total, error);
}

GTorchTensor *
gtorch_transformer_run (GTorchModule *self, GTorchTensor *x, const GTorchTransformerPart *parts,
                        guint n_parts, gboolean norm_first, GError **error)
{
  g_autoptr (GTorchTensor) value = g_object_ref (x);

  for (guint i = 0; i < n_parts; i++)
    {
      GTorchTensor *output = run_part (self, value, &parts[i], norm_first, error);

      if (output == NULL)
        return NULL;
      g_object_unref (value);
      value = output;
    }
  return g_steal_pointer (&value);
}

/* --- stacks of layers --- */

void
gtorch_transformer_add_layers (GTorchModule *self)
{
  g_autoptr (GTorchSequential) layers = gtorch_sequential_new ();

  gtorch_module_register_module (self, "layers", GTORCH_MODULE (layers), NULL);
}

gboolean
gtorch_transformer_check_layer (GTorchModule *self, gpointer layer, GType type, GError **error)
{
  return check_class (self, "a layer", layer, type, error) != NULL;
}

gboolean
gtorch_transformer_add_layer (GTorchModule *self, GTorchModule *layer, GError **error)
{
  g_autoptr (GTorchModule) layers =
      gtorch_transformer_get_child (self, "layers", GTORCH_TYPE_SEQUENTIAL, error);

  return layers != NULL && gtorch_sequential_append (GTORCH_SEQUENTIAL (layers), layer, error);
}

gboolean
gtorch_transformer_add_copies (GTorchModule *self, GTorchModule *layer, gint64 n, GError **error)
{
  if (!gtorch_layer_check_between (self, "num_layers", n, 1, GTORCH_TRANSFORMER_MOST_LAYERS, error))
    return FALSE;
  for (gint64 i = 0; i < n; i++)
    {
      g_autoptr (GTorchModule) copy = gtorch_module_copy (layer, error);

      if (copy == NULL || !gtorch_transformer_add_layer (self, copy, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_transformer_add_norm (GTorchModule *self, GTorchModule *norm, GError **error)
{
  return norm == NULL || gtorch_module_register_module (self, "norm", norm, error);
}

GPtrArray *
gtorch_transformer_dup_layers (GTorchModule *self, GType type, GError **error)
{
  g_autoptr (GTorchModule) layers = gtorch_module_get_module (self, "layers", error);
  g_autoptr (GPtrArray) found = layers != NULL ? gtorch_module_dup_children (layers, NULL) : NULL;

  for (guint i = 0; found != NULL && i < found->len; i++)
    if (!gtorch_transformer_check_layer (self, found->pdata[i], type, error))
      return NULL;
  return g_steal_pointer (&found);
}

gint64
gtorch_transformer_count_layers (GTorchModule *self)
{
  g_autoptr (GTorchModule) layers = gtorch_module_get_module (self, "layers", NULL);
  g_autoptr (GPtrArray) found = layers != NULL ? gtorch_module_dup_children (layers, NULL) : NULL;

  return found != NULL ? found->len : 0;
}

GTorchTensor *
gtorch_transformer_finish (GTorchModule *self, GTorchTensor *x, GError **error)
{
  if (gtorch_module_get_member_kind (self, "norm") != GTORCH_MEMBER_KIND_MODULE)
    return g_object_ref (x);
  return call_child (self, "norm", x, error);
}
