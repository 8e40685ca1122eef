/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_safetensors_load (GInputStream *stream, GTorchDevice *device,
                                     GHashTable **metadata, GCancellable *cancellable,
                                     GFileProgressCallback progress, gpointer progress_data,
                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_safetensors_load_async (GInputStream *stream, GTorchDevice *device, int io_priority,
                                    GCancellable *cancellable, GFileProgressCallback progress,
                                    gpointer progress_data, GDestroyNotify progress_data_free,
                                    GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_safetensors_load_finish (GAsyncResult *result, GHashTable **metadata,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_safetensors_load_bytes (GBytes *bytes, GHashTable **metadata,
                                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_safetensors_load_file (GFile *file, gboolean map, GTorchDevice *device,
                                          GHashTable **metadata, GCancellable *cancellable,
                                          GFileProgressCallback progress, gpointer progress_data,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_safetensors_load_file_async (GFile *file, gboolean map, GTorchDevice *device,
                                         int io_priority, GCancellable *cancellable,
                                         GFileProgressCallback progress, gpointer progress_data,
                                         GDestroyNotify progress_data_free,
                                         GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GHashTable *gtorch_safetensors_load_file_finish (GAsyncResult *result, GHashTable **metadata,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_safetensors_load_bytes_lists (GBytes *bytes, gchar ***names, gchar ***metadata,
                                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_safetensors_load_lists (GInputStream *stream, GTorchDevice *device,
                                          gchar ***names, gchar ***metadata,
                                          GCancellable *cancellable, GFileProgressCallback progress,
                                          gpointer progress_data,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_safetensors_load_file_lists (GFile *file, gboolean map, GTorchDevice *device,
                                               gchar ***names, gchar ***metadata,
                                               GCancellable *cancellable,
                                               GFileProgressCallback progress,
                                               gpointer progress_data,
                                               GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_safetensors_load_finish_lists (GAsyncResult *result, gchar ***names,
                                                 gchar ***metadata,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save (GHashTable *tensors, GHashTable *metadata, GOutputStream *stream,
                                  GCancellable *cancellable, GFileProgressCallback progress,
                                  gpointer progress_data, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_safetensors_save_async (GHashTable *tensors, GHashTable *metadata,
                                    GOutputStream *stream, int io_priority,
                                    GCancellable *cancellable, GFileProgressCallback progress,
                                    gpointer progress_data, GDestroyNotify progress_data_free,
                                    GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_finish (GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_file (GHashTable *tensors, GHashTable *metadata, GFile *file,
                                       GCancellable *cancellable, GFileProgressCallback progress,
                                       gpointer progress_data, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_safetensors_save_file_async (GHashTable *tensors, GHashTable *metadata, GFile *file,
                                         int io_priority, GCancellable *cancellable,
                                         GFileProgressCallback progress, gpointer progress_data,
                                         GDestroyNotify progress_data_free,
                                         GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_file_finish (GAsyncResult *result, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_lists (const gchar *const *names, GTorchTensor **tensors,
                                        gsize n_tensors, const gchar *const *metadata,
                                        GOutputStream *stream, GCancellable *cancellable,
                                        GFileProgressCallback progress, gpointer progress_data,
                                        GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_file_lists (const gchar *const *names, GTorchTensor **tensors,
                                             gsize n_tensors, const gchar *const *metadata,
                                             GFile *file, GCancellable *cancellable,
                                             GFileProgressCallback progress, gpointer progress_data,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_safetensors_save_lists_async (const gchar *const *names, GTorchTensor **tensors,
                                          gsize n_tensors, const gchar *const *metadata,
                                          GOutputStream *stream, int io_priority,
                                          GCancellable *cancellable, GFileProgressCallback progress,
                                          gpointer progress_data, GDestroyNotify progress_data_free,
                                          GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_lists_finish (GAsyncResult *result, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_safetensors_save_file_lists_async (
    const gchar *const *names, GTorchTensor **tensors, gsize n_tensors,
    const gchar *const *metadata, GFile *file, int io_priority, GCancellable *cancellable,
    GFileProgressCallback progress, gpointer progress_data, GDestroyNotify progress_data_free,
    GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_safetensors_save_file_lists_finish (GAsyncResult *result, GError **error);

G_END_DECLS
