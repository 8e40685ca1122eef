/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What workers write. Each of their streams has a thread, which reads it and writes whole lines, so
 * that lines of different workers are not mixed, and so that a console that takes nothing holds up no
 * more than what writes to it. */

#include "config.h"

#include "gtorch-run-private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_LINE (1 << 20) /* bytes; a longer line is written in parts */
#define N_LINES  20        /* of the tail */

struct _GTorchRunOutput
{
  gint ref_count;
  gint fd, console, file, stop;
  gchar *prefix;
  GString *line;
  GQueue tail; /* gchar * */
  GSourceFunc done;
  gpointer user_data;
};

static GMutex console_lock;

/* A reader that is gone loses the output; the worker goes on. */
static void
write_all (gint fd, const gchar *data, gsize size)
{
  while (size > 0)
    {
      const gssize n = write (fd, data, size);
      struct pollfd wait = { fd, POLLOUT, 0 };

      if (n >= 0)
        {
          data += n;
          size -= (gsize) n;
        }
      else if (errno == EAGAIN)
        poll (&wait, 1, -1);
      else if (errno != EINTR)
        return;
    }
}

static void
keep_tail (GTorchRunOutput *self, const gchar *line, gsize size)
{
  g_queue_push_tail (&self->tail, g_strndup (line, MIN (size, 1000)));
  if (g_queue_get_length (&self->tail) > N_LINES)
    g_free (g_queue_pop_head (&self->tail));
}

/* A line with its end. */
static void
write_line (GTorchRunOutput *self, const gchar *line, gsize size)
{
  keep_tail (self, line, size - 1);
  if (self->console < 0)
    return;
  g_mutex_lock (&console_lock);
  if (*self->prefix != '\0')
    {
      g_autoptr (GString) whole = g_string_new (self->prefix);

      g_string_append_len (whole, line, (gssize) size);
      write_all (self->console, whole->str, whole->len);
    }
  else
    write_all (self->console, line, size);
  g_mutex_unlock (&console_lock);
}

static void
take (GTorchRunOutput *self, const gchar *data, gsize size)
{
  const gchar *begin;
  gsize used = 0;

  if (self->file >= 0)
    write_all (self->file, data, size);
  g_string_append_len (self->line, data, (gssize) size);
  for (begin = self->line->str;; begin = self->line->str + used)
    {
      const gchar *end = memchr (begin, '\n', self->line->len - used);

      if (end == NULL)
        break;
      write_line (self, begin, (gsize) (end + 1 - begin));
      used = (gsize) (end + 1 - self->line->str);
    }
  g_string_erase (self->line, 0, (gssize) used);
}

static void
end_line (GTorchRunOutput *self)
{
  if (self->line->len == 0)
    return;
  g_string_append_c (self->line, '\n');
  write_line (self, self->line->str, self->line->len);
  g_string_truncate (self->line, 0);
}

/* Until the end, or, once it has been stopped, until there is nothing. */
static void
read_lines (GTorchRunOutput *self)
{
  gchar buffer[16384];

  for (;;)
    {
      struct pollfd fds[] = { { self->fd, POLLIN, 0 }, { self->stop, POLLIN, 0 } };
      gssize n;

      if (poll (fds, 2, -1) < 0 && errno != EINTR)
        return;
      if (fds[0].revents == 0 && fds[1].revents != 0)
        return;
      if (fds[0].revents == 0)
        continue;
      n = read (self->fd, buffer, sizeof buffer);
      if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return;
      if (n > 0)
        take (self, buffer, (gsize) n);
      if (self->line->len > MAX_LINE)
        end_line (self);
    }
}

static gpointer
run (gpointer data)
{
  GTorchRunOutput *self = data;

  read_lines (self);
  end_line (self);
  close (self->fd);
  if (self->file >= 0)
    close (self->file);
  g_idle_add (self->done, self->user_data);
  gtorch_run_output_unref (self);
  return NULL;
}

GTorchRunOutput *
gtorch_run_output_new (gint fd, gint console, const gchar *prefix, gint file, GSourceFunc done,
                       gpointer user_data)
{
  GTorchRunOutput *self = g_new0 (GTorchRunOutput, 1);

  self->ref_count = 2;
  self->fd = fd;
  self->console = console;
  self->file = file;
  self->stop = eventfd (0, EFD_CLOEXEC);
  self->prefix = g_strdup (prefix);
  self->line = g_string_new (NULL);
  self->done = done;
  self->user_data = user_data;
  g_thread_unref (g_thread_new ("output", run, self));
  return self;
}

void
gtorch_run_output_stop (GTorchRunOutput *self)
{
  const guint64 one = 1;

  write_all (self->stop, (const gchar *) &one, sizeof one);
}

gchar *
gtorch_run_output_get_tail (GTorchRunOutput *self)
{
  g_autoptr (GString) text = g_string_new (NULL);
  const GList *item;

  for (item = self->tail.head; item != NULL; item = item->next)
    g_string_append_printf (text, "%s%s", text->len > 0 ? "\n" : "", (const gchar *) item->data);
  return g_utf8_make_valid (text->str, (gssize) text->len);
}

void
gtorch_run_output_unref (GTorchRunOutput *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  close (self->stop);
  g_queue_clear_full (&self->tail, g_free);
  g_string_free (self->line, TRUE);
  g_free (self->prefix);
  g_free (self);
}
