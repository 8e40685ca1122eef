/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-dataset.h>
#include <gtorch/nn/gtorch-module.h>
#include <gtorch/vision/gtorch-image.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_IMAGE_FOLDER (gtorch_image_folder_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchImageFolder, gtorch_image_folder, GTORCH, IMAGE_FOLDER, GTorchDataset)

GTORCH_AVAILABLE_IN_0_1
GTorchImageFolder *gtorch_image_folder_new (GFile *root, GTorchModule *transform,
                                            GTorchImageMode mode, GCancellable *cancellable,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_image_folder_create_async (GFile *root, GTorchModule *transform, GTorchImageMode mode,
                                       int io_priority, GCancellable *cancellable,
                                       GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchImageFolder *gtorch_image_folder_create_finish (GAsyncResult *result,
                                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
const gchar *const *gtorch_image_folder_get_classes (GTorchImageFolder *self);
GTORCH_AVAILABLE_IN_0_1
GFile *gtorch_image_folder_get_file (GTorchImageFolder *self, gint64 index, GError **error);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_image_folder_get_class (GTorchImageFolder *self, gint64 index, GError **error);
GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_image_folder_get_transform (GTorchImageFolder *self);

G_END_DECLS
