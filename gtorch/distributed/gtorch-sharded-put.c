/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Files that several processes write together: one makes the file, and each puts its part of a tensor to its
 * place. */

#include "config.h"

#include "distributed/gtorch-sharded-file-private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <unistd.h>

#include "base/gtorch-error.h"

static gboolean
refuse_file (const gchar *path, gint fd, GError **error)
{
  const gint code = errno;

  g_set_error (error, G_IO_ERROR, g_io_error_from_errno (code), _ ("safetensors_index: %s: %s"),
               path, g_strerror (code));
  if (fd >= 0)
    close (fd);
  return FALSE;
}

static gboolean
put_run (gint fd, const gchar *data, gsize n, guint64 at)
{
  gsize done = 0;

  while (done < n)
    {
      const gssize written = pwrite (fd, data + done, n - done, (off_t) (at + done));

      if (written < 0 && errno == EINTR)
        continue;
      if (written <= 0)
        return FALSE;
      done += written;
    }
  return TRUE;
}

static gboolean
end_file (const gchar *path, gint fd, gboolean is_done, GError **error)
{
  if (!is_done || fsync (fd) != 0)
    return refuse_file (path, fd, error);
  return close (fd) == 0 || refuse_file (path, -1, error);
}

gboolean
gtorch_sharded_make_file (const gchar *path, const GString *text, guint64 size, GError **error)
{
  const gint fd = open (path, O_WRONLY | O_CLOEXEC | O_CREAT | O_TRUNC, 0666);

  return end_file (path, fd,
                   fd >= 0 && ftruncate (fd, (off_t) size) == 0
                       && put_run (fd, text->str, text->len, 0),
                   error);
}

/* Writes the elements of a part in the runs in which they follow each other in the whole. */
static gboolean
put_part (gint fd, const gchar *data, const GTorchImpl *impl, const GTorchPart *part, guint64 at)
{
  gint64 index[GTORCH_MAX_DIMS] = { 0 }, run = (gint64) gtorch_dtype_size (impl->dtype), stride;
  gint inner = (gint) part->n_dims - 1, i;

  if (impl->numel == 0)
    return TRUE;
  while (inner > 0 && impl->shape[inner] == part->shape[inner])
    run *= part->shape[inner--];
  stride = run; /* of the last dimension that has an index */
  if (inner >= 0)
    run *= impl->shape[inner];
  for (;;)
    {
      guint64 place = 0;
      gint64 step = stride;

      for (i = inner; i >= 0; i--)
        {
          place += (guint64) ((part->first[i] + index[i]) * step);
          step *= part->shape[i];
        }
      if (!put_run (fd, data, (gsize) run, at + place))
        return FALSE;
      data += run;
      for (i = inner - 1; i >= 0 && ++index[i] == impl->shape[i]; i--)
        index[i] = 0;
      if (i < 0)
        return TRUE;
    }
}

gboolean
gtorch_sharded_put_part (const gchar *path, GBytes *bytes, const GTorchImpl *impl,
                         const GTorchPart *part, guint64 at, GError **error)
{
  const gint fd = open (path, O_WRONLY | O_CLOEXEC);

  return end_file (path, fd,
                   fd >= 0 && put_part (fd, g_bytes_get_data (bytes, NULL), impl, part, at), error);
}
