/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "vision/gtorch-image-folder.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-text-private.h"
#include "data/gtorch-dataset-private.h"
#include "io/gtorch-source-private.h"

/**
 * GTorchImageFolder:
 *
 * Images in folders that are called like their classes: `root/cat/1.jpg`, `root/dog/a/2.png`.
 *
 * Sample i is a tuple of an image, [channels, height, width] of uint8, or what the transform makes of it,
 * and the number of its class. Classes are numbered in the order of their names, and so are the files of a
 * class, those in folders within it included. Files whose names do not end like those of images are left out.
 *
 * ```c
 * g_autoptr (GTorchImageFolder) folder =
 *     gtorch_image_folder_new (root, GTORCH_MODULE (transform), GTORCH_IMAGE_MODE_RGB, NULL, &error);
 * ```
 *
 * Since: 0.1
 */

typedef struct
{
  GFile *file;
  gint64 class;
} Item;

struct _GTorchImageFolder
{
  GTorchDataset parent_instance;
  GTorchModule *transform;
  GTorchImageMode mode;
  GPtrArray *classes; /* names, and NULL */
  GArray *items;
};

G_DEFINE_TYPE (GTorchImageFolder, gtorch_image_folder, GTORCH_TYPE_DATASET)

typedef GTorchImageFolder Self;

#define MAX_DEPTH 32 /* links may lead round in circles */

static gint64
gtorch_image_folder_get_length (GTorchDataset *dataset, GError **error)
{
  return GTORCH_IMAGE_FOLDER (dataset)->items->len;
}

static GTorchSample *
gtorch_image_folder_get_item (GTorchDataset *dataset, gint64 index, GCancellable *cancellable,
                              GError **error)
{
  GTorchImageFolder *self = GTORCH_IMAGE_FOLDER (dataset);
  g_autoptr (GTorchTensor) image = NULL;
  g_autoptr (GTorchTensor) changed = NULL;
  GTorchSample *parts[2], *sample;
  const Item *item;

  if (!gtorch_index_check ("image_folder", index, self->items->len, error))
    return NULL;
  item = &g_array_index (self->items, Item, index);
  image = gtorch_image_load_file (item->file, self->mode, TRUE, 0, cancellable, error);
  if (image != NULL)
    changed = self->transform != NULL ? gtorch_module_forward (self->transform, image, error)
                                      : g_object_ref (image);
  if (changed == NULL)
    {
      g_autofree gchar *name = g_file_get_parse_name (item->file);

      g_prefix_error (error, "“%s”: ", name);
      return NULL;
    }
  parts[0] = gtorch_sample_new_tensor (changed);
  parts[1] = gtorch_sample_new_int (item->class);
  sample = gtorch_sample_new_tuple (parts, 2, error);
  gtorch_sample_unref (parts[0]);
  gtorch_sample_unref (parts[1]);
  return sample;
}

static void
item_clear (gpointer data)
{
  g_object_unref (((Item *) data)->file);
}

static void
gtorch_image_folder_finalize (GObject *object)
{
  GTorchImageFolder *self = GTORCH_IMAGE_FOLDER (object);

  g_clear_object (&self->transform);
  g_ptr_array_unref (self->classes);
  g_array_unref (self->items);
  G_OBJECT_CLASS (gtorch_image_folder_parent_class)->finalize (object);
}

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchImageFolder:transform: (getter get_transform)
   *
   * What changes the images, or %NULL.
   *
   * Since: 0.1
   */
  { "transform",
    GTORCH_PROPERTY_OBJECT (GTorchModule, gtorch_module_get_type, gtorch_image_folder_get_transform, NULL) },
};
/* clang-format on */

static void
gtorch_image_folder_class_init (GTorchImageFolderClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_image_folder_finalize;
  GTORCH_DATASET_CLASS (klass)->get_length = gtorch_image_folder_get_length;
  GTORCH_DATASET_CLASS (klass)->get_item = gtorch_image_folder_get_item;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_image_folder_init (GTorchImageFolder *self)
{
  self->classes = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (self->classes, NULL);
  self->items = g_array_new (FALSE, FALSE, sizeof (Item));
  g_array_set_clear_func (self->items, item_clear);
}

/* --- what is there --- */

static gboolean
is_image (const gchar *name)
{
  static const gchar *const endings[] = { ".jpg", ".jpeg", ".png", ".ppm",  ".bmp",
                                          ".gif", ".pgm",  ".tif", ".tiff", ".webp" };
  g_autofree gchar *lower = g_ascii_strdown (name, -1);

  for (guint i = 0; i < G_N_ELEMENTS (endings); i++)
    if (g_str_has_suffix (lower, endings[i]))
      return TRUE;
  return FALSE;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

/* The names of folders and of files, each sorted. */
static gboolean
list_folder (GFile *folder, GPtrArray *folders, GPtrArray *files, GCancellable *cancellable,
             GError **error)
{
  g_autoptr (GFileEnumerator) entries =
      g_file_enumerate_children (folder,
                                 G_FILE_ATTRIBUTE_STANDARD_NAME "," G_FILE_ATTRIBUTE_STANDARD_TYPE,
                                 G_FILE_QUERY_INFO_NONE, cancellable, error);
  GFileInfo *info;

  if (entries == NULL)
    return FALSE;
  do
    {
      if (!g_file_enumerator_iterate (entries, &info, NULL, cancellable, error))
        return FALSE;
      if (info != NULL)
        g_ptr_array_add (g_file_info_get_file_type (info) == G_FILE_TYPE_DIRECTORY ? folders
                                                                                   : files,
                         g_strdup (g_file_info_get_name (info)));
    }
  while (info != NULL);
  g_ptr_array_sort (folders, compare_names);
  g_ptr_array_sort (files, compare_names);
  return TRUE;
}

static gboolean
add_images (GTorchImageFolder *self, GFile *folder, gint64 class, guint depth,
            GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) folders = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func (g_free);

  if (!list_folder (folder, folders, files, cancellable, error))
    return FALSE;
  for (guint i = 0; i < files->len; i++)
    if (is_image (files->pdata[i]))
      {
        Item item = { g_file_get_child (folder, files->pdata[i]), class };

        g_array_append_val (self->items, item);
      }
  for (guint i = 0; i < folders->len; i++)
    {
      g_autoptr (GFile) inner = g_file_get_child (folder, folders->pdata[i]);

      if (depth == MAX_DEPTH)
        {
          g_autofree gchar *name = g_file_get_parse_name (inner);

          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("image_folder: “%s” is deeper than %d folders"), name, MAX_DEPTH);
          return FALSE;
        }
      if (!add_images (self, inner, class, depth + 1, cancellable, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
fill (GTorchImageFolder *self, GFile *root, GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) folders = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func (g_free);
  g_autofree gchar *name = g_file_get_parse_name (root);

  if (!list_folder (root, folders, files, cancellable, error))
    return FALSE;
  if (folders->len == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                   _ ("image_folder: “%s” has no folders, which are the classes"), name);
      return FALSE;
    }
  g_ptr_array_set_size (self->classes, 0);
  for (guint i = 0; i < folders->len; i++)
    {
      g_autoptr (GFile) folder = g_file_get_child (root, folders->pdata[i]);
      guint n = self->items->len;

      if (!gtorch_name_check ("image_folder", folders->pdata[i], error)
          || !add_images (self, folder, i, 1, cancellable, error))
        return FALSE;
      if (self->items->len == n)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                       _ ("image_folder: “%s”: the class “%s” has no images"), name,
                       (const gchar *) folders->pdata[i]);
          return FALSE;
        }
      g_ptr_array_add (self->classes, g_strdup (folders->pdata[i]));
    }
  g_ptr_array_add (self->classes, NULL);
  return TRUE;
}

/**
 * gtorch_image_folder_new:
 * @root: the folder that has a folder for each class
 * @transform: (nullable): what changes each image, such as a [class@Sequential] of [class@Resize] and others
 * @mode: which channels the images have
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Lists the images of a folder. They are read when they are asked for.
 *
 * Workers call the transform in several threads at a time. Fails with %GTORCH_ERROR_NOT_FOUND if there are
 * no classes or one has no images, and with an error of GIO's if a folder cannot be read.
 *
 * Returns: (transfer full): a new data set, or %NULL on error
 *
 * Since: 0.1
 */
GTorchImageFolder *
gtorch_image_folder_new (GFile *root, GTorchModule *transform, GTorchImageMode mode,
                         GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchImageFolder) self = NULL;

  g_return_val_if_fail (G_IS_FILE (root), NULL);
  g_return_val_if_fail (transform == NULL || GTORCH_IS_MODULE (transform), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (mode < GTORCH_IMAGE_MODE_UNCHANGED || mode > GTORCH_IMAGE_MODE_RGB_ALPHA)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("image_folder: there is no mode %d"), (gint) mode);
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_IMAGE_FOLDER, NULL);
  g_set_object (&self->transform, transform);
  self->mode = mode;
  return fill (self, root, cancellable, error) ? g_steal_pointer (&self) : NULL;
}

typedef struct
{
  GFile *root;
  GTorchModule *transform;
  GTorchImageMode mode;
} Wish;

static void
wish_free (gpointer data)
{
  Wish *wish = data;

  g_object_unref (wish->root);
  g_clear_object (&wish->transform);
  g_free (wish);
}

static gpointer
create_run (gpointer data, GCancellable *cancellable, GError **error)
{
  const Wish *wish = data;

  return gtorch_image_folder_new (wish->root, wish->transform, wish->mode, cancellable, error);
}

/**
 * gtorch_image_folder_create_async:
 * @root: the folder that has a folder for each class
 * @transform: (nullable): what changes each image
 * @mode: which channels the images have
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Lists the images of a folder in another thread; see [ctor@ImageFolder.new].
 *
 * Since: 0.1
 */
void
gtorch_image_folder_create_async (GFile *root, GTorchModule *transform, GTorchImageMode mode,
                                  int io_priority, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  Wish *wish;

  g_return_if_fail (G_IS_FILE (root));
  g_return_if_fail (transform == NULL || GTORCH_IS_MODULE (transform));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_image_folder_create_async, cancellable, callback, user_data);
  wish = g_new (Wish, 1);
  *wish = (Wish){ g_object_ref (root), transform != NULL ? g_object_ref (transform) : NULL, mode };
  gtorch_source_run (task, io_priority, create_run, wish, wish_free, g_object_unref);
}

/**
 * gtorch_image_folder_create_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@ImageFolder.create_async].
 *
 * Returns: (transfer full): a new data set, or %NULL on error
 *
 * Since: 0.1
 */
GTorchImageFolder *
gtorch_image_folder_create_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_image_folder_create_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_image_folder_get_classes:
 * @self: a data set
 *
 * Gets the names of the classes, in the order of their numbers.
 *
 * Returns: (transfer none) (array zero-terminated=1): the names
 *
 * Since: 0.1
 */
const gchar *const *
gtorch_image_folder_get_classes (GTorchImageFolder *self)
{
  g_return_val_if_fail (GTORCH_IS_IMAGE_FOLDER (self), NULL);
  return (const gchar *const *) self->classes->pdata;
}

/**
 * gtorch_image_folder_get_file:
 * @self: a data set
 * @index: which sample
 * @error: return location for an error
 *
 * Gets the file of a sample. Fails with %GTORCH_ERROR_INDEX if there is no such sample.
 *
 * Returns: (transfer none): the file, or %NULL on error
 *
 * Since: 0.1
 */
GFile *
gtorch_image_folder_get_file (GTorchImageFolder *self, gint64 index, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_IMAGE_FOLDER (self), NULL);
  return gtorch_index_check ("image_folder", index, self->items->len, error)
             ? g_array_index (self->items, Item, index).file
             : NULL;
}

/**
 * gtorch_image_folder_get_class:
 * @self: a data set
 * @index: which sample
 * @error: return location for an error
 *
 * Gets the number of a sample's class, without reading the image. Fails with %GTORCH_ERROR_INDEX if there
 * is no such sample.
 *
 * Returns: the number, or -1 on error
 *
 * Since: 0.1
 */
gint64
gtorch_image_folder_get_class (GTorchImageFolder *self, gint64 index, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_IMAGE_FOLDER (self), -1);
  return gtorch_index_check ("image_folder", index, self->items->len, error)
             ? g_array_index (self->items, Item, index).class
             : -1;
}

/**
 * gtorch_image_folder_get_transform:
 * @self: a data set
 *
 * Gets what changes the images.
 *
 * Returns: (transfer none) (nullable): the module, or %NULL
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_image_folder_get_transform (GTorchImageFolder *self)
{
  g_return_val_if_fail (GTORCH_IS_IMAGE_FOLDER (self), NULL);
  return self->transform;
}
