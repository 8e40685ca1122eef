/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>
#include <sys/stat.h>
#include <sys/types.h>

G_BEGIN_DECLS

/* A function that writes the whole content. */
typedef gboolean (*GTorchFileSaveFunc) (GOutputStream *stream, GCancellable *cancellable,
                                        gpointer data, GError **error);

/* Creates or replaces a file atomically: on failure nothing has changed. The library writes all its files
 * with this function. */
gboolean gtorch_file_save (GFile *file, GTorchFileSaveFunc func, gpointer data,
                           GCancellable *cancellable, GError **error);
gboolean gtorch_file_save_bytes (GFile *file, GBytes *bytes, GCancellable *cancellable,
                                 GError **error);

/* Opens a file, or makes it, to append to it: for logs, whose last records a loss of power may take. */
GOutputStream *gtorch_file_append (GFile *file, GError **error);

/* The system calls of a save; they return -1 and set errno as the system does. Tests replace them, to
 * record calls or let them fail. */
typedef struct
{
  int (*status) (int folder, const char *name, struct stat *status, int flags);
  int (*access) (int folder, const char *name, int mode, int flags);
  int (*open) (int folder, const char *name, int flags, mode_t mode);
  ssize_t (*write) (int fd, const void *data, size_t n_bytes);
  int (*chown) (int fd, uid_t owner, gid_t group);
  int (*chmod) (int fd, mode_t mode);
  int (*sync) (int fd);
  int (*close) (int fd);
  int (*exchange) (int folder, const char *one, const char *other);
  int (*rename) (int folder, const char *from, const char *to);
  int (*remove) (int folder, const char *name);
} GTorchFileCalls;

extern const GTorchFileCalls gtorch_file_system;
extern const GTorchFileCalls *gtorch_file_calls;

G_END_DECLS
