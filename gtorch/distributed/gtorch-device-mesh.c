/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-device-mesh.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-text-private.h"
#include "tensor/gtorch-impl-private.h"

/**
 * GTorchDeviceMesh:
 *
 * Processes that are arranged in several dimensions, with a group for each line.
 *
 * In a mesh of 2 rows and 4 columns the ranks 0 to 3 are the first row. Along the first dimension, whose
 * group has 2 ranks, batches may be divided, and along the second, whose group has 4, the matrices of a
 * layer.
 *
 * ```c
 * const gint64 shape[] = { 2, 4 };
 * const gchar *const names[] = { "data", "model", NULL };
 * g_autoptr (GTorchDeviceMesh) mesh = gtorch_device_mesh_new (world, shape, 2, names, &error);
 * GTorchProcessGroup *columns = gtorch_device_mesh_get_group (mesh, 1, &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchDeviceMesh
{
  GObject parent_instance;
  GTorchProcessGroup *world;
  gint64 shape[GTORCH_MAX_DIMS], coordinate[GTORCH_MAX_DIMS];
  guint n_dims;
  gchar **dim_names;
  GPtrArray *groups; /* of this rank, one for each dimension */
};

G_DEFINE_TYPE (GTorchDeviceMesh, gtorch_device_mesh, G_TYPE_OBJECT)

typedef GTorchDeviceMesh Self;

static const GTorchField fields[] = {
  /**
   * GTorchDeviceMesh:world:
   *
   * The group of all processes of the mesh.
   *
   * Since: 0.1
   */
  { "world", GTORCH_PROPERTY_OBJECT (GTorchProcessGroup, gtorch_process_group_get_type,
                                     gtorch_device_mesh_get_world, NULL) },
};

static void
gtorch_device_mesh_finalize (GObject *object)
{
  GTorchDeviceMesh *self = GTORCH_DEVICE_MESH (object);

  g_clear_object (&self->world);
  g_strfreev (self->dim_names);
  g_ptr_array_unref (self->groups);
  G_OBJECT_CLASS (gtorch_device_mesh_parent_class)->finalize (object);
}

static void
gtorch_device_mesh_class_init (GTorchDeviceMeshClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_device_mesh_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_device_mesh_init (GTorchDeviceMesh *self)
{
  self->groups = g_ptr_array_new_with_free_func (g_object_unref);
}

/* All ranks make all groups, in one order. */
static gboolean
make_groups (GTorchDeviceMesh *self, guint dim, GError **error)
{
  const gint64 size = gtorch_process_group_get_size (self->world), length = self->shape[dim];
  const gint rank = gtorch_process_group_get_rank (self->world);
  g_autofree gint64 *ranks = g_new (gint64, length);
  gint64 step = 1, first, i;
  guint k;

  if (length == size)
    {
      g_ptr_array_add (self->groups, g_object_ref (self->world));
      return TRUE;
    }
  for (k = dim + 1; k < self->n_dims; k++)
    step *= self->shape[k];
  for (first = 0; first < size; first++)
    {
      g_autoptr (GTorchProcessGroup) group = NULL;
      gboolean is_own = FALSE;

      if (first / step % length != 0) /* not the beginning of a line */
        continue;
      for (i = 0; i < length; i++)
        {
          ranks[i] = first + i * step;
          is_own |= ranks[i] == rank;
        }
      group = gtorch_process_group_new_part (self->world, ranks, length, -1, error);
      if (group == NULL)
        return FALSE;
      if (is_own)
        g_ptr_array_add (self->groups, g_steal_pointer (&group));
    }
  return TRUE;
}

static gboolean
check_shape (GTorchProcessGroup *world, const gint64 *shape, gsize n_dims,
             const gchar *const *dim_names, GError **error)
{
  const gint64 size = gtorch_process_group_get_size (world);
  gint64 total = 1;
  gsize i, k;

  for (i = 0; i < n_dims && i < GTORCH_MAX_DIMS; i++)
    if (shape[i] < 1 || __builtin_mul_overflow (total, shape[i], &total))
      total = -1;
  if (n_dims < 1 || n_dims > GTORCH_MAX_DIMS || total != size)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("device_mesh: a mesh of %zu dimensions with %" PRId64 " places for %" PRId64
                      " processes: each has one, lengths are 1 or "
                      "more, and there are 1 to %d of them"),
                   n_dims, total, size, GTORCH_MAX_DIMS);
      return FALSE;
    }
  if (dim_names == NULL)
    return TRUE;
  for (i = 0; dim_names[i] != NULL; i++)
    for (k = 0; k < i; k++)
      if (strcmp (dim_names[i], dim_names[k]) == 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("device_mesh: two dimensions have the name “%s”"),
                       gtorch_name_str (dim_names[i]));
          return FALSE;
        }
  if (i == n_dims)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("device_mesh: there are %zu names for %zu dimensions"), i, n_dims);
  return FALSE;
}

/**
 * gtorch_device_mesh_new:
 * @world: the group of all processes
 * @shape: (array length=n_dims): the lengths of the dimensions, whose product is the size of @world
 * @n_dims: the number of dimensions, 1 or more
 * @dim_names: (nullable) (array zero-terminated=1): names of the dimensions
 * @error: return location for an error
 *
 * Arranges processes, in the order of their ranks, and makes a group for each line of them. All ranks call
 * this.
 *
 * Returns: (transfer full): a new mesh, or %NULL with @error set: %GTORCH_ERROR_SHAPE if there are not as
 *   many places as processes
 *
 * Since: 0.1
 */
GTorchDeviceMesh *
gtorch_device_mesh_new (GTorchProcessGroup *world, const gint64 *shape, gsize n_dims,
                        const gchar *const *dim_names, GError **error)
{
  g_autoptr (GTorchDeviceMesh) self = NULL;
  gint64 rest;
  guint i;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (world) && (shape != NULL || n_dims == 0), NULL);
  if (!check_shape (world, shape, n_dims, dim_names, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_DEVICE_MESH, NULL);
  self->world = g_object_ref (world);
  self->n_dims = (guint) n_dims;
  memcpy (self->shape, shape, n_dims * sizeof *shape);
  self->dim_names = g_strdupv ((gchar **) dim_names);
  rest = gtorch_process_group_get_rank (world);
  for (i = self->n_dims; i-- > 0;)
    {
      self->coordinate[i] = rest % shape[i];
      rest /= shape[i];
    }
  for (i = 0; i < self->n_dims; i++)
    if (!make_groups (self, i, error))
      return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_device_mesh_get_world:
 * @self: a mesh
 *
 * Gets the group of all processes of the mesh.
 *
 * Returns: (transfer none) (nullable): the group
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_device_mesh_get_world (GTorchDeviceMesh *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MESH (self), NULL);
  return self->world;
}

/**
 * gtorch_device_mesh_get_shape:
 * @self: a mesh
 * @n_dims: (out): the number of dimensions
 *
 * Gets the lengths of the dimensions.
 *
 * Returns: (transfer full) (array length=n_dims): the lengths
 *
 * Since: 0.1
 */
gint64 *
gtorch_device_mesh_get_shape (GTorchDeviceMesh *self, gsize *n_dims)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MESH (self) && n_dims != NULL, NULL);
  *n_dims = self->n_dims;
  return g_memdup2 (self->shape, MAX (self->n_dims, 1) * sizeof (gint64));
}

/**
 * gtorch_device_mesh_get_coordinate:
 * @self: a mesh
 * @n_dims: (out): the number of dimensions
 *
 * Gets the place of this process, its rank in the group of each dimension.
 *
 * Returns: (transfer full) (array length=n_dims): the place
 *
 * Since: 0.1
 */
gint64 *
gtorch_device_mesh_get_coordinate (GTorchDeviceMesh *self, gsize *n_dims)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MESH (self) && n_dims != NULL, NULL);
  *n_dims = self->n_dims;
  return g_memdup2 (self->coordinate, MAX (self->n_dims, 1) * sizeof (gint64));
}

/**
 * gtorch_device_mesh_get_dim_names:
 * @self: a mesh
 *
 * Gets the names of the dimensions.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names; none if the mesh has none
 *
 * Since: 0.1
 */
gchar **
gtorch_device_mesh_get_dim_names (GTorchDeviceMesh *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE_MESH (self), NULL);
  return self->dim_names == NULL ? g_new0 (gchar *, 1) : g_strdupv (self->dim_names);
}

/**
 * gtorch_device_mesh_find_dim:
 * @self: a mesh
 * @name: the name of a dimension
 * @error: return location for an error
 *
 * Finds a dimension by its name.
 *
 * Returns: the dimension, or -1 with @error set: %GTORCH_ERROR_INVALID if none has the name
 *
 * Since: 0.1
 */
gint
gtorch_device_mesh_find_dim (GTorchDeviceMesh *self, const gchar *name, GError **error)
{
  guint i;

  g_return_val_if_fail (GTORCH_IS_DEVICE_MESH (self) && name != NULL, -1);
  for (i = 0; self->dim_names != NULL && self->dim_names[i] != NULL; i++)
    if (strcmp (self->dim_names[i], name) == 0)
      return (gint) i;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("device_mesh: no dimension has the name “%s”"), gtorch_name_str (name));
  return -1;
}

/**
 * gtorch_device_mesh_get_group:
 * @self: a mesh
 * @dim: a dimension, negative ones count from the end
 * @error: return location for an error
 *
 * Gets the processes that differ from this one in one dimension only, and itself.
 *
 * Returns: (transfer none): the group, or %NULL with %GTORCH_ERROR_INDEX if there is no such dimension
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_device_mesh_get_group (GTorchDeviceMesh *self, gint dim, GError **error)
{
  gint n;

  g_return_val_if_fail (GTORCH_IS_DEVICE_MESH (self), NULL);
  n = (gint) self->n_dims;
  if (dim >= -n && dim < n)
    return self->groups->pdata[dim < 0 ? dim + n : dim];
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
               _ ("device_mesh: dim %d is out of range for %d dimensions"), dim, n);
  return NULL;
}
