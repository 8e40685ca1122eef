/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-embedding.h"

#include <glib/gi18n-lib.h>

#include "gtorch-field-private.h"
#include "autograd/gtorch-grad-mode.h"
#include "gtorch-init.h"
#include "gtorch-ops-private.h"

/**
 * GTorchEmbedding:
 *
 * A table of learned vectors, looked up by index.
 *
 * The input holds indices, int64 or int32, in any shape; the output has one dimension more. `weight`,
 * [num-embeddings, embedding-dim], begins as numbers from the standard normal distribution.
 *
 * Since: 0.1
 */

struct _GTorchEmbedding
{
  GTorchModule parent_instance;
  gint64 num_embeddings;
  gint64 embedding_dim;
  gint64 padding_idx;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "num-embeddings", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchEmbedding, num_embeddings), 0 },
  { "embedding-dim", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchEmbedding, embedding_dim), 0 },
  { "padding-idx", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchEmbedding, padding_idx), -1, TRUE },
  { "weight", GTORCH_FIELD_PARAMETER, 0 },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchEmbedding, gtorch_embedding, GTORCH_TYPE_MODULE)

static gboolean
gtorch_embedding_zero_row (GTorchEmbedding *self, GTorchTensor *weight, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchImpl) row = NULL;

  if (self->padding_idx >= self->num_embeddings)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("%s: padding_idx %" G_GINT64_FORMAT " is out of range for %" G_GINT64_FORMAT
                      " embeddings"),
                   gtorch_module_type_name (self), self->padding_idx, self->num_embeddings);
      return FALSE;
    }
  row = gtorch_op_select (gtorch_tensor_unwrap (weight), 0, self->padding_idx, error);
  return row != NULL && gtorch_op_zero_inplace (row, error);
}

static void
gtorch_embedding_constructed (GObject *object)
{
  GTorchEmbedding *self = GTORCH_EMBEDDING (object);
  GTorchModule *module = GTORCH_MODULE (object);
  const gint64 shape[] = { self->num_embeddings, self->embedding_dim };
  GTorchTensor *weight;
  GError *error = NULL;

  if (gtorch_module_check_size (module, "num_embeddings", self->num_embeddings, 1)
      && gtorch_module_check_size (module, "embedding_dim", self->embedding_dim, 1)
      && gtorch_module_check_size (module, "padding_idx", self->padding_idx, -1))
    {
      weight = gtorch_module_add_parameter (module, "weight", shape, 2);
      if (weight != NULL
          && (!gtorch_init_normal (weight, 0, 1, NULL, &error)
              || (self->padding_idx >= 0 && !gtorch_embedding_zero_row (self, weight, &error))))
        gtorch_module_set_error (module, error);
    }
  G_OBJECT_CLASS (gtorch_embedding_parent_class)->constructed (object);
}

static GTorchTensor *
gtorch_embedding_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchEmbedding *self = GTORCH_EMBEDDING (module);
  return gtorch_tensor_wrap (gtorch_op_embedding (gtorch_module_parameter_impl (module, 0),
                                                  gtorch_tensor_unwrap (input), self->padding_idx,
                                                  error));
}

static gchar *
gtorch_embedding_extra_repr (GTorchModule *module)
{
  GTorchEmbedding *self = GTORCH_EMBEDDING (module);
  GString *text = g_string_new (NULL);

  g_string_printf (text, "%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT, self->num_embeddings,
                   self->embedding_dim);
  if (self->padding_idx >= 0)
    g_string_append_printf (text, ", padding_idx=%" G_GINT64_FORMAT, self->padding_idx);
  return g_string_free (text, FALSE);
}

static void
gtorch_embedding_class_init (GTorchEmbeddingClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_embedding_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_embedding_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_embedding_extra_repr;

  /**
   * GTorchEmbedding:num-embeddings:
   *
   * How many vectors there are.
   *
   * Since: 0.1
   */

  /**
   * GTorchEmbedding:embedding-dim:
   *
   * How long they are.
   *
   * Since: 0.1
   */

  /**
   * GTorchEmbedding:padding-idx:
   *
   * The index of a vector that stays zero, or -1 for none.
   *
   * Since: 0.1
   */

  /**
   * GTorchEmbedding:weight:
   *
   * The vectors.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_embedding_init (GTorchEmbedding *self)
{
}

/**
 * gtorch_embedding_new:
 * @num_embeddings: how many vectors
 * @embedding_dim: how long they are
 * @padding_idx: index of a vector that stays zero, or -1
 * @error: return location for an error
 *
 * Makes a table of vectors, new ones from the default generator.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID or
 *   %GTORCH_ERROR_INDEX if a number is out of its range
 *
 * Since: 0.1
 */
GTorchEmbedding *
gtorch_embedding_new (gint64 num_embeddings, gint64 embedding_dim, gint64 padding_idx,
                      GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_EMBEDDING, "num-embeddings",
                                              num_embeddings, "embedding-dim", embedding_dim,
                                              "padding-idx", padding_idx, NULL),
                                error);
}
